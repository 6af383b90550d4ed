package changeset

import (
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// AuthorHost is the author of change sets by a person or a pipeline, and of
// every inverse.
const AuthorHost = "host"

// agentPrefix begins the author of every change set by an agent.
const agentPrefix = "agent:"

// ChangeSet is a list of operations written for one revision of a document.
type ChangeSet struct {
	// ID is chosen by the author.
	ID string `json:"id"`
	// BaseRevision is the revision the operations were written for.
	BaseRevision string `json:"baseRevision"`
	// Author is AuthorHost, or "agent:" and a name.
	Author string `json:"author"`
	// Summary is one line for people.
	Summary string `json:"summary"`
	// Ops are the operations as JSON values, in order.
	Ops []any `json:"ops"`
}

// Apply runs ops, a list of operations, in order on a copy of doc; each sees
// what those before it did. The first one refused rejects them all.
func Apply(doc Document, ops any) (Document, *Rejection) {
	if _, rejection := revisionOf(doc); rejection != nil {
		return nil, rejection
	}
	list, rejection := listOfOps(ops)
	if rejection != nil {
		return nil, rejection
	}
	s := stateOf(doc)
	if rejection := run(s, list); rejection != nil {
		return nil, rejection
	}
	return s.document(), nil
}

// ApplyChecked applies a change set, given as a JSON value or a ChangeSet, if
// doc still has its base revision, and returns the result and the revision of
// the result. Sets by an agent may not restore.
func ApplyChecked(doc Document, changeSet any) (result Document, revision string, rej *Rejection) {
	proposal, rej := proposalOf(changeSet)
	if rej != nil {
		return nil, "", rej
	}
	list, rej := proposal.check(doc)
	if rej != nil {
		return nil, "", rej
	}
	s := stateOf(doc)
	if rej = run(s, list); rej != nil {
		return nil, "", rej
	}
	result = s.document()
	revision, rej = revisionOf(result)
	if rej != nil {
		return nil, "", rej
	}
	return result, revision, nil
}

// Combine makes one change set of those a turn had accepted one after the
// other: applied to the base in one go it gives what they gave. Without any
// operation there is none, and ok is false.
func Combine(turn, baseRevision, author string, sets []ChangeSet) (cs ChangeSet, ok bool) {
	var ops []any
	for _, set := range sets {
		for _, op := range set.Ops {
			ops = append(ops, jsonvalue.Clone(op))
		}
	}
	if len(ops) == 0 {
		return ChangeSet{}, false
	}
	return ChangeSet{
		ID:           turn,
		BaseRevision: baseRevision,
		Author:       author,
		Summary:      fmt.Sprintf("AI turn: %d workflow change(s)", len(ops)),
		Ops:          ops,
	}, true
}

// proposal is what counts of a change set, not yet judged.
type proposal struct {
	baseRevision, author, ops any
}

func (cs ChangeSet) proposal() proposal {
	return proposal{baseRevision: cs.BaseRevision, author: cs.Author, ops: cs.Ops}
}

func proposalOf(changeSet any) (proposal, *Rejection) {
	switch set := changeSet.(type) {
	case ChangeSet:
		return set.proposal(), nil
	case *ChangeSet:
		if set != nil {
			return set.proposal(), nil
		}
	case map[string]any:
		if set != nil {
			return proposal{baseRevision: set["baseRevision"], author: set["author"], ops: set["ops"]}, nil
		}
	}
	return proposal{}, reject(CodeMalformed, "the change set is not an object")
}

// check makes every test that comes before the operations themselves, and
// returns those.
func (p proposal) check(doc Document) ([]any, *Rejection) {
	revision, rejection := revisionOf(doc)
	if rejection != nil {
		return nil, rejection
	}
	if base, ok := p.baseRevision.(string); !ok || base != revision {
		return nil, reject(CodeStale, "base revision %s is not the current revision %s", nameRevision(p.baseRevision), revision)
	}
	list, rejection := listOfOps(p.ops)
	if rejection != nil {
		return nil, rejection
	}
	if author, _ := p.author.(string); strings.HasPrefix(author, agentPrefix) {
		return list, refuseRestore(list)
	}
	return list, nil
}

// nameRevision bounds what a rejection repeats of a base revision that may be
// anything.
func nameRevision(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", text)
	}
	return "(none)"
}

func listOfOps(ops any) ([]any, *Rejection) {
	list, ok := ops.([]any)
	if !ok {
		return nil, reject(CodeMalformed, "ops is not a list")
	}
	return list, nil
}

func refuseRestore(ops []any) *Rejection {
	for i, raw := range ops {
		if op, _ := raw.(map[string]any); op["op"] == opRestore {
			return reject(CodeMalformed, "restore is not open to agents").at(i)
		}
	}
	return nil
}

// revisionOf returns the revision of a document that operations can work on.
func revisionOf(doc Document) (string, *Rejection) {
	revision, err := Revision(doc)
	if err != nil {
		return "", reject(CodeMalformed, "the document has no revision: %v", err)
	}
	for _, name := range []string{membersNodes, membersEdges} {
		if !isListOrNull(doc[name]) {
			return "", reject(CodeMalformed, "%s of the document is not a list", name)
		}
	}
	return revision, nil
}

func isListOrNull(v any) bool {
	_, isList := v.([]any)
	return isList || v == nil
}

// run applies raw operations one after the other. Once one is rejected, s is
// good for nothing.
func run(s *state, ops []any) *Rejection {
	for i, raw := range ops {
		if _, rejection := applyRaw(s, raw); rejection != nil {
			return rejection.at(i)
		}
	}
	return nil
}

func applyRaw(s *state, raw any) (operation, *Rejection) {
	op, rejection := parse(raw)
	if rejection != nil {
		return nil, rejection
	}
	return op, op.apply(s)
}
