package expression

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// checkText refuses texts over the limit and charges for building the others.
func checkText(m *meter, bytes int) error {
	if bytes > maxText {
		return errText
	}
	m.chargeText(bytes)
	return nil
}

// guardAdd stands before + on texts, byte sequences and lists; the list of a map or filter macro grows by it.
func guardAdd(m *meter, args []ref.Val) error {
	left, leftIsList := listAt(args, 0)
	right, rightIsList := listAt(args, 1)
	if leftIsList && rightIsList {
		return checkElements(sizeOf(left) + sizeOf(right))
	}
	if textOf(args) > maxText {
		return errText
	}
	return nil // what is built is as long as what is read
}

func guardReplace(m *meter, args []ref.Val) error {
	text, isText := stringAt(args, 0)
	old, isOld := stringAt(args, 1)
	replacement, isReplacement := stringAt(args, 2)
	if !isText || !isOld || !isReplacement {
		return nil
	}
	count := strings.Count(text, old)
	if n := intAt(args, 3, -1); n >= 0 && n < int64(count) {
		count = int(n)
	}
	return checkText(m, len(text)+count*(len(replacement)-len(old)))
}

func guardJoin(m *meter, args []ref.Val) error {
	list, ok := listAt(args, 0)
	if !ok {
		return nil
	}
	separator, _ := stringAt(args, 1)
	n := sizeOf(list)
	m.charge(n)
	total := max(n-1, 0) * len(separator)
	for it := list.Iterator(); it.HasNext() == types.True && total <= maxText; {
		element, isText := it.Next().(types.String)
		if !isText {
			return errors.New("join needs a list of strings") // the library would spell the element out
		}
		total += len(element)
	}
	return checkText(m, total)
}

func guardSplit(m *meter, args []ref.Val) error {
	text, isText := stringAt(args, 0)
	separator, isSeparator := stringAt(args, 1)
	if !isText || !isSeparator {
		return nil
	}
	parts := strings.Count(text, separator) + 1
	if separator == "" {
		parts = utf8.RuneCountInString(text)
	}
	if n := intAt(args, 2, -1); n >= 0 && n < int64(parts) {
		parts = int(n)
	}
	return buildList(m, parts)
}

func guardQuote(m *meter, args []ref.Val) error {
	text, ok := stringAt(args, 0)
	if !ok {
		return nil
	}
	escaped := 0
	for _, r := range text {
		if strings.ContainsRune("\a\b\f\n\r\t\v\\\"", r) {
			escaped++
		}
	}
	return checkText(m, len(`""`)+len(text)+escaped)
}

func guardBase64Encode(m *meter, args []ref.Val) error {
	return checkText(m, base64.StdEncoding.EncodedLen(textOf(args)))
}

// priceSearch is the price of the library, which compares the sought text anew at each character.
func priceSearch(m *meter, args []ref.Val) error {
	text, _ := stringAt(args, 0)
	sought, _ := stringAt(args, 1)
	m.chargeText(len(text) * len(sought))
	return nil
}

// opJSONEncode writes the canonical text, so that equal values have equal texts.
func opJSONEncode(m *meter, args []ref.Val) ref.Val {
	m.charge(stepCost)
	e := exporter{limit: maxText, meter: m}
	tree, err := e.value(args[0])
	if err != nil {
		return types.WrapErr(err)
	}
	text, err := jsonvalue.Canonical(tree)
	if err != nil {
		return types.WrapErr(err)
	}
	m.chargeText(len(text))
	return types.String(text)
}
