package jsonvalue

import (
	"encoding/json"
	"strconv"
)

// Clone returns a deep copy: nothing done to it changes v.
func Clone(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = Clone(element)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[name] = Clone(member)
		}
		return object
	}
	return v
}

// Equal tells whether a and b have the same canonical JSON: 1 equals 1.0, the
// order of members is of no account, that of list elements is. A number that
// is no finite double equals nothing, nor does a Go value that is no JSON.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		other, ok := b.(bool)
		return ok && a == other
	case string:
		other, ok := b.(string)
		return ok && a == other
	case []any:
		other, ok := b.([]any)
		return ok && equalLists(a, other)
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && equalObjects(a, other)
	}
	x, xOK := Number(a)
	y, yOK := Number(b)
	return xOK && yOK && x == y
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for name, member := range a {
		other, ok := b[name]
		if !ok || !Equal(member, other) {
			return false
		}
	}
	return true
}

// Size returns the length of v as compact JSON in bytes, without writing it:
// integers with all their digits, strings with as few escapes as possible. A
// value that has no JSON counts nothing.
func Size(v any) int {
	switch v := v.(type) {
	case nil:
		return len("null")
	case bool:
		return len(strconv.FormatBool(v))
	case string:
		return sizeOfString(v)
	case []any:
		size := sizeOfBrackets(len(v))
		for _, element := range v {
			size += Size(element)
		}
		return size
	case map[string]any:
		size := sizeOfBrackets(len(v))
		for name, member := range v {
			size += sizeOfString(name) + len(":") + Size(member)
		}
		return size
	}
	return sizeOfNumber(v)
}

// sizeOfBrackets counts the brackets of a list or an object with n entries,
// and the commas in it.
func sizeOfBrackets(n int) int {
	return len("[]") + max(n-1, 0)
}

func sizeOfString(s string) int {
	size := len(`""`) + len(s)
	for i := range len(s) {
		if escape := escapes[s[i]]; escape != "" {
			size += len(escape) - 1
		}
	}
	return size
}

func sizeOfNumber(v any) int {
	var buf [32]byte
	switch n := v.(type) {
	case int64:
		return len(strconv.AppendInt(buf[:0], n, 10))
	case int:
		return len(strconv.AppendInt(buf[:0], int64(n), 10))
	case int32:
		return len(strconv.AppendInt(buf[:0], int64(n), 10))
	case json.Number:
		return len(n)
	}
	f, ok := Number(v)
	if !ok {
		return 0
	}
	return len(appendDouble(buf[:0], f))
}
