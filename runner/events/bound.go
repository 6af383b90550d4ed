package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxData bounds the data of one event, in bytes, so that every batch stays
// well under what the gateway takes.
const maxData = 256 << 10

// bounds are tried in order until the data of an event fits.
var bounds = []bound{
	{characters: 16 << 10, entries: 200},
	{characters: 1000, entries: 50},
	{characters: 100, entries: 10},
}

type bound struct{ characters, entries int }

// encode returns the JSON text of an event's data, cut down to maxData. An
// object that is too large for all its values being short becomes empty.
func encode(data map[string]any) (json.RawMessage, error) {
	for _, b := range bounds {
		text, err := json.Marshal(b.cut(data))
		if err != nil {
			return nil, fmt.Errorf("encode event data: %w", err)
		}
		if len(text) <= maxData {
			return text, nil
		}
	}
	return json.RawMessage(`{"truncated":true}`), nil
}

// cut returns a copy of a JSON tree with long strings and lists cut, saying by
// how much.
func (b bound) cut(v any) any {
	switch v := v.(type) {
	case string:
		return b.cutString(v)
	case []any:
		return b.cutList(v)
	case map[string]any:
		short := make(map[string]any, len(v))
		for name, member := range v {
			short[name] = b.cut(member)
		}
		return short
	default:
		return v
	}
}

func (b bound) cutString(s string) string {
	if len(s) <= b.characters || utf8.RuneCountInString(s) <= b.characters {
		return s
	}
	characters := []rune(s)
	return fmt.Sprintf("%s…[truncated %d chars]", string(characters[:b.characters]), len(characters)-b.characters)
}

func (b bound) cutList(list []any) []any {
	kept := slices.Clone(list[:min(len(list), b.entries)])
	for i, element := range kept {
		kept[i] = b.cut(element)
	}
	if more := len(list) - len(kept); more > 0 {
		kept = append(kept, fmt.Sprintf("…[%d more items]", more))
	}
	return kept
}
