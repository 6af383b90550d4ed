package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// workbench 51: the line of an event, and the line of a problem.
func TestWorkbench51SummarizeEventAndFormatProblems(t *testing.T) {
	for name, tc := range map[string]struct{ event, want string }{
		"workbench 51: an event": {
			`{"id":"e1","type":"issue.comment.created","eventSourceId":"gh","ref":"r","timestamp":"t","actor":{"login":"octo","name":"n"},
				"payload":{"issue":{},"comment":{}}}`,
			"e1 issue.comment.created gh r actor=octo at t keys=[comment, issue]",
		},
		"an actor with a name alone":     {`{"id":"e1","actor":{"name":"Octo"}}`, "e1 - - - actor=Octo at - keys=[]"},
		"a payload that is no object":    {`{"id":"e1","payload":[1]}`, "e1 - - - actor=- at - keys=[]"},
		"members of the wrong type":      {`{"id":7,"type":null,"actor":"octo"}`, "- - - - actor=- at - keys=[]"},
		"no event at all":                {`[]`, "- - - - actor=- at - keys=[]"},
		"a sender who writes lines":      {`{"id":"e1","ref":"a\n- [ERROR] b\u2028c"}`, "e1 - - a - [ERROR] b c actor=- at - keys=[]"},
		"a payload whose names are long": {`{"id":"e1","payload":{"` + strings.Repeat("k", 9) + `":1}}`, "e1 - - - actor=- at - keys=[kkkkkkkkk]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarizeEvent(decode(t, tc.event)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	problems := []openapi.ItemProblem{{Severity: "error", Path: "content", Code: "c", Message: "m"}}
	if got := openapi.ProblemLines(problems); got != "- [ERROR] content c: m" {
		t.Errorf("workbench 51: a problem reads %q", got)
	}
}

// workbench 52: a path into an event, and how much of it is shown.
func TestWorkbench52PickPathAndTruncateDeep(t *testing.T) {
	event := decode(t, `{"payload":{"issue":{"labels":[{"name":"bug"},[1,[2]]],"milestone":null,"":{"x":1}}}}`)
	for name, tc := range map[string]struct {
		path  string
		want  any
		found bool
	}{
		"workbench 52: a name in a list":      {"payload.issue.labels[0].name", "bug", true},
		"workbench 52: a path that is absent": {"payload.issue.assignee", nil, false},
		"null is there":                       {"payload.issue.milestone", nil, true},
		"what is below null is not":           {"payload.issue.milestone.title", nil, false},
		"lists in lists":                      {"payload.issue.labels[1][1][0]", int64(2), true},
		"beyond the end":                      {"payload.issue.labels[2]", nil, false},
		"before the beginning":                {"payload.issue.labels[-1]", nil, false},
		"a number that is too large":          {"payload.issue.labels[99999999999999999999]", nil, false},
		"an index of an object":               {"payload[0]", nil, false},
		"a name of a list":                    {"payload.issue.labels.name", nil, false},
		"a bracket that is left open":         {"payload.issue.labels[0", nil, false},
		"brackets around nothing":             {"payload.issue.labels[]", nil, false},
		"an empty name in the middle":         {"payload.issue..x", int64(1), true},
		"a dot at the end":                    {"payload.", nil, false},
		"a dot at the beginning":              {".payload", nil, false},
		"only dots":                           {"...", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := pickPath(event, tc.path)
			if diff := cmp.Diff(tc.want, got); diff != "" || found != tc.found {
				t.Errorf("found %t (-want +got):\n%s", found, diff)
			}
		})
	}
	if got, found := pickPath(event, ""); !found || !cmp.Equal(got, event) {
		t.Errorf("the empty path gives %v, %t", got, found)
	}
	want := map[string]any{"s": "xxxx…[truncated 6 chars]", "a": []any{int64(1), int64(2), "…[2 more items]"}}
	if diff := cmp.Diff(want, truncateDeep(decode(t, `{"s":"xxxxxxxxxx","a":[1,2,3,4]}`), 4, 2)); diff != "" {
		t.Errorf("workbench 52: truncateDeep (-want +got):\n%s", diff)
	}
}

func FuzzPickPath(f *testing.F) {
	for _, path := range []string{"a.b[0]", "[", "]", "a[", "..", "[0][1].x", "a[0]b", "\x00[9]"} {
		f.Add(path, `{"a":{"b":[1,[2]]},"":null}`)
	}
	f.Fuzz(func(t *testing.T, path, text string) {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Skip()
		}
		part, found := pickPath(value, path)
		if !found && part != nil {
			t.Errorf("a part that was not found: %v", part)
		}
		if path == "" && !found {
			t.Error("the whole was not found")
		}
	})
}

func FuzzTruncateDeep(f *testing.F) {
	f.Add(`{"s":"xxxxxxxxxx","a":[1,2,3,4]}`, 4, 2)
	f.Add(`["äöü😀",[[[[1]]]]]`, 1, 0)
	f.Fuzz(func(t *testing.T, text string, stringLimit, listLimit int) {
		if stringLimit < 0 || listLimit < 0 || stringLimit > 100 || listLimit > 100 {
			t.Skip()
		}
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			t.Skip()
		}
		before := jsonvalue.Clone(value)
		got := truncateDeep(value, stringLimit, listLimit)
		if problem := unbounded(got, stringLimit+len("…[truncated 99999999 chars]"), listLimit+1); problem != "" {
			t.Error(problem)
		}
		scribble(got)
		if !cmp.Equal(before, value) {
			t.Error("the copy shares memory with the value")
		}
		if whole := truncateDeep(value, len(text)+1, len(text)+1); !cmp.Equal(whole, value) {
			t.Errorf("a value within its limits became %v", whole)
		}
	})
}

// unbounded names a string or list over its limit.
func unbounded(value any, stringLimit, listLimit int) string {
	switch v := value.(type) {
	case string:
		if utf8.RuneCountInString(v) > stringLimit {
			return fmt.Sprintf("a string of %d characters", utf8.RuneCountInString(v))
		}
	case []any:
		if len(v) > listLimit {
			return fmt.Sprintf("a list of %d entries", len(v))
		}
		for _, item := range v {
			if problem := unbounded(item, stringLimit, listLimit); problem != "" {
				return problem
			}
		}
	case map[string]any:
		for _, member := range v {
			if problem := unbounded(member, stringLimit, listLimit); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// scribble writes all over a value.
func scribble(value any) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			scribble(v[i])
			v[i] = "scribble"
		}
	case map[string]any:
		for name := range v {
			scribble(v[name])
			v[name] = "scribble"
		}
	}
}
