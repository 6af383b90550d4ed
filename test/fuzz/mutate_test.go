package fuzz

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// place is a member of an object or an item of a list, and how to change it.
type place struct {
	value any
	set   func(any)
	drop  func()
}

// places of a tree, from the top down.
func places(tree any) []place {
	var found []place
	collect(tree, &found)
	return found
}

func collect(tree any, found *[]place) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			*found = append(*found, place{
				value: tree[name], set: func(v any) { tree[name] = v }, drop: func() { delete(tree, name) },
			})
			collect(tree[name], found)
		}
	case []any:
		for i := range tree {
			*found = append(*found, place{value: tree[i], set: func(v any) { tree[i] = v }, drop: func() { tree[i] = nil }})
			collect(tree[i], found)
		}
	}
}

// huge is about what the API server takes of an object, in bytes.
const huge = 1 << 21

// mutate changes a tree in one place.
func (d *dice) mutate(tree map[string]any) {
	all := places(tree)
	if len(all) == 0 {
		return
	}
	at := pick(d, all)
	// Most of what is large is not that large.
	size := huge >> d.IntN(14)
	switch d.IntN(12) {
	case 0:
		at.set(nil)
	case 1:
		at.drop()
	case 2:
		at.set(d.deep(pick(d, []int{20, 200, d.deepest})))
	case 3:
		word := d.word() + "."
		at.set(strings.Repeat(word, 1+size/len(word)))
	case 4:
		each := len(encode(map[string]any{"v": at.value}))
		at.set(copied(slices.Repeat([]any{at.value}, min(1500, 1+size/each))))
	case 5:
		if object, isObject := at.value.(map[string]any); isObject {
			object[d.word()] = d.anything(0)
		}
	case 6:
		at.set([]any{at.value})
	case 7:
		at.set(map[string]any{"value": at.value})
	case 8:
		at.set(copied(pick(d, all).value))
	default:
		at.set(d.anything(2))
	}
}

// deep nests lists and objects.
func (d *dice) deep(levels int) any {
	var v any = d.word()
	for range levels {
		if d.once(2) {
			v = []any{v}
		} else {
			v = map[string]any{"d": v}
		}
	}
	return v
}

// copied is a tree none of whose parts is in it twice, or anywhere else.
func copied(tree any) any {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	var copied any
	if json.Unmarshal(data, &copied) != nil {
		return nil
	}
	return copied
}

// corrupt changes a body where JSON itself ends.
func (d *dice) corrupt(body []byte) []byte {
	// The API server itself takes a version that is no number for its own fault.
	from := 0
	if mark := bytes.Index(body, []byte(versionMark)); mark >= 0 {
		from = mark + len(versionMark)
	}
	at := from + d.IntN(len(body)-from+1)
	insert := func(text string) []byte { return slices.Concat(body[:at], []byte(text), body[at:]) }
	switch d.IntN(9) {
	case 0:
		return body[:at]
	case 1:
		return insert(pick(d, []string{"\xff", "\xc0\x80", "\xed\xa0\x80", "\x00", "\ufeff", "\\ud800"}))
	case 2:
		return bytes.Replace(body, []byte(`:true`), []byte(`:1e400`), 1)
	case 3:
		return bytes.Replace(body, []byte(`"spec":`), []byte(`"spec":{},"spec":`), 1)
	case 4:
		return append(body, pick(d, []string{" {}", ",", "]", "\n---\n{}"})...)
	case 5:
		return bytes.Replace(body, []byte(`":"`), []byte(`":"`+"\xf0\x28\x8c\x28"), 1+d.IntN(4))
	case 6:
		return bytes.ReplaceAll(body, []byte(`null`), []byte(`nul`))
	case 7:
		return []byte(strings.Repeat("[", 100_000))
	}
	return insert(pick(d, []string{`"`, `{`, `}`, `[`, `:`, `,`, `0`, `-`, `\u0000`}))
}
