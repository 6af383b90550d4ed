package reply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// maxShown bounds how much of a name a fault repeats, in characters.
const maxShown = 80

// decode reads a reply that must be one JSON value, bare or in a fence.
func decode(text string) (value any, fault string) {
	data := []byte(unfenced(strings.TrimSpace(text)))
	if len(data) == 0 {
		return nil, "the reply is empty; it must be one JSON value"
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return nil, "the reply must be one JSON value and nothing else: " + err.Error()
	}
	if name, repeats := repeatedName(data); repeats {
		return nil, fmt.Sprintf("the member %.*q is there twice", maxShown, name)
	}
	return value, ""
}

// fence is a reply that is one fenced block.
var fence = regexp.MustCompile("(?s)^```json[ \t]*\r?\n(.*)\n[ \t]*```$")

func unfenced(text string) string {
	if match := fence.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return text
}

// repeatedName finds a member of an object that is there twice: readers differ in
// which of the two they take. The text is valid JSON.
func repeatedName(text []byte) (string, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var open []*openValue
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", false // the end
		}
		if delim, isDelim := token.(json.Delim); isDelim && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
			continue
		}
		if len(open) > 0 {
			if name, repeats := open[len(open)-1].take(token); repeats {
				return name, true
			}
		}
		if delim, isDelim := token.(json.Delim); isDelim {
			open = append(open, &openValue{isObject: delim == '{', atName: delim == '{', names: map[string]bool{}})
		}
	}
}

// openValue is an object or list whose end was not read yet.
type openValue struct {
	isObject bool
	// atName: the next token is the name of a member.
	atName bool
	names  map[string]bool
}

// take notes a token of the value itself and tells whether it repeats a name.
func (o *openValue) take(token json.Token) (string, bool) {
	if !o.isObject {
		return "", false
	}
	wasName := o.atName
	o.atName = !o.atName
	if !wasName {
		return "", false
	}
	name, _ := token.(string)
	if o.names[name] {
		return name, true
	}
	o.names[name] = true
	return "", false
}
