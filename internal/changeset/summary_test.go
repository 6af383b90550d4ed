package changeset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/changeset"
)

// What an agent is told of a person's edits.
func TestSummaryOfEdits(t *testing.T) {
	const before = `{"name":"t","nodes":[{"id":"a","type":"start"},{"id":"b","type":"wait","position":{"x":1}},{"id":"c","type":"end"}],` +
		`"edges":[{"id":"e1","source":"a","target":"b"},{"id":"e2","source":"b","target":"c"}]}`
	for name, tc := range map[string]struct{ after, want string }{
		"workbench 55: nothing": {before, ""},
		"workbench 55: added": {
			`{"nodes":[{"id":"a","type":"start"},{"id":"b","type":"wait"},{"id":"c","type":"end"},{"id":"d"},{"id":"f"}],` +
				`"edges":[{"id":"e1","source":"a","target":"b"},{"id":"e2","source":"b","target":"c"}]}`,
			"added nodes: d, f",
		},
		"workbench 55: removed": {
			`{"nodes":[{"id":"a","type":"start"},{"id":"b","type":"wait"}],"edges":[{"id":"e1","source":"a","target":"b"},{"id":"e2","source":"b","target":"c"}]}`,
			"removed nodes: c",
		},
		"workbench 55: changed": {
			`{"nodes":[{"id":"a","type":"start"},{"id":"b","type":"wait","x-mine":[1]},{"id":"c","type":"end"}],` +
				`"edges":[{"id":"e1","source":"a","target":"b"},{"id":"e2","source":"b","target":"c"}]}`,
			"changed nodes: b",
		},
		"workbench 55: edges": {
			`{"nodes":[{"id":"a","type":"start"},{"id":"b","type":"wait"},{"id":"c","type":"end"}],"edges":[{"id":"e1","source":"a","target":"c"}]}`,
			"edges changed",
		},
		"workbench 55: all of it, in this order": {
			`{"nodes":[{"id":"a","type":"start","name":"A"},{"id":"b","type":"wait"},{"id":"d"}],"edges":[]}`,
			"added nodes: d\nremoved nodes: c\nchanged nodes: a\nedges changed",
		},
		"workbench 55: layout only": {
			`{"nodes":[{"id":"a","type":"start","position":{"x":5}},{"id":"b","type":"wait"},{"id":"c","type":"end"}],` +
				`"edges":[{"id":"e1","source":"a","target":"b"},{"id":"e2","source":"b","target":"c"}]}`,
			"",
		},
		"workbench 55: another order of keys, nodes and edges": {
			`{"nodes":[{"type":"end","id":"c"},{"type":"start","id":"a"},{"id":"b","type":"wait"}],` +
				`"edges":[{"target":"c","id":"e2","source":"b"},{"id":"e1","source":"a","target":"b"}]}`,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := changeset.Diff(decode(t, before).(map[string]any), decode(t, tc.after).(map[string]any)).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}
