package yamlerror_test

import (
	"errors"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/apitomy/axiom-operator/internal/yamlerror"
)

func TestLinesOfErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text, reason string
		line         int
	}{
		"of the scanner":     {"a: 1\nb: \"x\n\n", "found unexpected end of stream", 2},
		"of the parser":      {"a: 1\nb: [1\nc: 2\n", "did not find expected ',' or ']'", 2},
		"of a mapping":       {"a: 1\n- b\n", "did not find expected key", 2},
		"a tab":              {"a:\n\t- b\n", "found character that cannot start any token", 2},
		"without a position": {"\x01", "control characters are not allowed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var node yaml.Node
			err := yaml.Unmarshal([]byte(tc.text), &node)
			if err == nil {
				t.Fatal("this is YAML")
			}
			if line, reason := yamlerror.Read(err); line != tc.line || reason != tc.reason {
				t.Errorf("got line %d, %q; want line %d, %q (%v)", line, reason, tc.line, tc.reason, err)
			}
		})
	}
}

func TestErrorsOfOthers(t *testing.T) {
	t.Parallel()
	if line, reason := yamlerror.Read(errors.New("yaml: unmarshal errors:\n  line 1: x")); line != 0 || reason != "unmarshal errors:" {
		t.Errorf("got line %d, %q", line, reason)
	}
}
