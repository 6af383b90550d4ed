package changeset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// document decodes what a fuzzer made up; most of it is no document.
func document(text string) (changeset.Document, bool) {
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		return nil, false
	}
	doc, ok := v.(changeset.Document)
	return doc, ok
}

// drafts are documents that are wrong in their own ways.
var drafts = []string{
	`{}`, `{"nodes":null,"edges":[]}`, `{"nodes":[{"id":"a"},{"id":"a"}],"edges":[{"id":"e","source":"a"}]}`,
	`{"nodes":[1,{"id":"a","config":[],"position":2}],"edges":{"x":1}}`, `{"id":"\ud83d\ude00","version":1e21,"nodes":[{"position":null}]}`,
}

func FuzzRevision(f *testing.F) {
	for _, row := range vectors(revisionVectors, 3) {
		f.Add(row[2])
	}
	for _, draft := range drafts {
		f.Add(draft)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, ok := document(text)
		if !ok {
			return
		}
		want := revision(t, doc) // whatever decodes has one
		if got := revision(t, decode(t, canonical(t, doc)).(changeset.Document)); got != want {
			t.Errorf("canonical text has revision %s, want %s", got, want)
		}
		if nodes, ok := doc["nodes"].([]any); ok {
			for _, node := range nodes {
				if object, ok := node.(map[string]any); ok {
					object["position"] = text
				}
			}
		}
		if got := revision(t, doc); got != want {
			t.Errorf("positions changed the revision to %s, want %s", got, want)
		}
		doc["x-fuzz"] = doc["x-fuzz"] == nil
		if got := revision(t, doc); got == want {
			t.Errorf("another member left the revision at %s", got)
		}
	})
}

func addOperations(f *testing.F) {
	for _, row := range vectors(appliedVectors, 3) {
		f.Add(baseJSON, row[2])
	}
	for _, row := range vectors(rejectedVectors, 4) {
		f.Add(baseJSON, row[3])
	}
	for _, draft := range drafts {
		f.Add(draft, `[{"op":"updateNode","id":"a","patch":{"name":"A"}}]`)
		f.Add(draft, `[{"op":"restore","member":"nodes","value":[5,{"id":"a"}]},{"op":"removeNode","id":"a"}]`)
	}
}

func FuzzApply(f *testing.F) {
	addOperations(f)
	f.Fuzz(func(t *testing.T, docText, opsText string) {
		doc, ok := document(docText)
		ops, err := jsonvalue.Decode([]byte(opsText))
		if !ok || err != nil {
			return
		}
		docBefore, opsBefore := canonical(t, doc), canonical(t, ops)
		result, rejection := changeset.Apply(doc, ops)
		if (result == nil) != (rejection != nil) {
			t.Fatalf("result %v, rejection %v", result, rejection)
		}
		checked, revised, checkedRejection := changeset.ApplyChecked(doc, map[string]any{"baseRevision": revision(t, doc), "ops": ops})
		if diff := cmp.Diff(rejection, checkedRejection); diff != "" {
			t.Errorf("Apply and ApplyChecked (-unchecked +checked)\n%s", diff)
		}
		if rejection == nil {
			assertSame(t, "checked", result, checked)
			if want := revision(t, result); revised != want {
				t.Errorf("revision %s, want %s", revised, want)
			}
			changeset.Diff(doc, result)
			scramble(result)
		}
		if canonical(t, doc) != docBefore || canonical(t, ops) != opsBefore {
			t.Error("arguments changed")
		}
	})
}

func FuzzInverse(f *testing.F) {
	addOperations(f)
	f.Fuzz(func(t *testing.T, docText, opsText string) {
		doc, ok := document(docText)
		v, err := jsonvalue.Decode([]byte(opsText))
		ops, isList := v.([]any)
		if !ok || err != nil || !isList {
			return
		}
		result, rejection := changeset.Apply(doc, ops)
		inverse, inverseRejection := changeset.Inverse(doc, changeset.ChangeSet{Ops: ops})
		if diff := cmp.Diff(rejection, inverseRejection); diff != "" {
			t.Fatalf("Apply and Inverse (-apply +inverse)\n%s", diff)
		}
		if rejection != nil {
			return
		}
		back, revised, rejection := changeset.ApplyChecked(result, inverse)
		if want := revision(t, doc); rejection != nil || revised != want {
			t.Fatalf("back: %s, %v, want %s\n%s", revised, rejection, want, canonical(t, inverse.Ops))
		}
		forward, rejection := changeset.Inverse(result, inverse)
		if rejection != nil {
			t.Fatalf("no inverse of the inverse: %s", rejection)
		}
		if _, revised, rejection = changeset.ApplyChecked(back, forward); rejection != nil || revised != inverse.BaseRevision {
			t.Fatalf("forward again: %s, %v, want %s", revised, rejection, inverse.BaseRevision)
		}
	})
}

func FuzzUndo(f *testing.F) {
	for _, row := range vectors(appliedVectors, 3) {
		result, rejection := changeset.Apply(base(f), decode(f, row[2]))
		if rejection != nil {
			f.Fatal(rejection)
		}
		f.Add(baseJSON, canonical(f, result), baseJSON)
		f.Add(baseJSON, canonical(f, result), canonical(f, result))
	}
	for _, draft := range drafts {
		f.Add(draft, `{"nodes":[{"id":"b"}]}`, `{"nodes":[{"id":"b"}],"x":1}`)
	}
	f.Fuzz(func(t *testing.T, beforeText, afterText, liveText string) {
		before, beforeOK := document(beforeText)
		after, afterOK := document(afterText)
		live, liveOK := document(liveText)
		if !beforeOK || !afterOK || !liveOK {
			return
		}
		result, conflict := changeset.Undo(before, after, live)
		if (result == nil) != (conflict != nil) {
			t.Fatalf("result %v, conflict %v", result, conflict)
		}
		if conflict != nil {
			return
		}
		if revision(t, after) == revision(t, live) {
			if got, want := revision(t, result), revision(t, before); got != want {
				t.Errorf("nothing since, but revision %s, want %s", got, want)
			}
			return
		}
		assertMerged(t, before, after, live, result)
	})
}
