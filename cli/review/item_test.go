package review_test

import (
	"testing"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
)

func TestItems(t *testing.T) {
	before := map[string]any{"name": "find-logs", "description": "Finds logs", "parameters": []any{map[string]any{"name": "since"}}}
	after := map[string]any{"name": "find-logs", "description": "Finds all logs", "parameters": []any{}}
	for name, tc := range map[string]struct {
		item review.Item
		want string
	}{
		"one that is new":  {review.Item{Type: "tool", Name: "find-logs", After: map[string]any{"name": "find-logs", "scriptTemplate": "echo hi"}}, "+ tool find-logs\n    + scriptTemplate: \"echo hi\"\n"},
		"one that is gone": {review.Item{Type: "action-type", Name: "scan", Before: before}, "- action-type scan\n"},
		"one that differs": {review.Item{Type: "tool", Name: "find-logs", Before: before, After: after}, "~ tool find-logs\n    ~ description: \"Finds logs\" → \"Finds all logs\"\n    - parameters[since]: {\"name\":\"since\"}\n"},
		"a hostile name":   {review.Item{Type: "tool", Name: "a\x1bb", Before: before}, "- tool a�b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &command.Page{}
			tc.item.Tell(p)
			if got := p.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
