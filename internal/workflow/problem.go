package workflow

import (
	"cmp"
	"fmt"
	"slices"
)

// Severities of problems.
const (
	// SeverityError keeps a workflow from running.
	SeverityError = "error"
	// SeverityWarning tells of something that is probably not meant.
	SeverityWarning = "warning"
)

// A Problem is one thing that is wrong with a document.
type Problem struct {
	// Severity is SeverityError or SeverityWarning.
	Severity string `json:"severity"`
	// Code names the rule, for machines.
	Code string `json:"code"`
	// Message says what is wrong, for people.
	Message string `json:"message"`
	// NodeID is the node at fault, if it is one.
	NodeID string `json:"nodeId,omitempty"`
	// EdgeID is the edge at fault, if it is one.
	EdgeID string `json:"edgeId,omitempty"`
}

// IsError tells whether the problem keeps the workflow from running.
func (p Problem) IsError() bool { return p.Severity == SeverityError }

// HasErrors tells whether one of the problems keeps the workflow from running.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, Problem.IsError)
}

// part is the part of a document a problem is about; parts are reported in this order.
type part int

const (
	partDocument part = iota
	partNodes
	partEdges
)

// A rule is one code of a phase. The same code may be an error in one phase and a warning in another.
type rule struct {
	code     string
	severity string
}

// A finding is a problem with its place in the order of its phase.
type finding struct {
	Problem
	part  part
	index int
	rank  int
}

// A report collects what one phase finds, in any order.
type report struct {
	rules []rule
	found []finding
}

// add reports a problem with entry index of a part. The ids may be empty.
func (r *report) add(p part, index int, code, message string) *finding {
	rank := slices.IndexFunc(r.rules, func(known rule) bool { return known.code == code })
	r.found = append(r.found, finding{
		Problem: Problem{Severity: r.rules[rank].severity, Code: code, Message: message},
		part:    p, index: index, rank: rank,
	})
	return &r.found[len(r.found)-1]
}

func (r *report) document(code, format string, args ...any) {
	r.add(partDocument, 0, code, fmt.Sprintf(format, args...))
}

func (r *report) node(index int, id, code, message string) {
	r.add(partNodes, index, code, message).NodeID = id
}

func (r *report) edge(index int, id, code, message string) {
	r.add(partEdges, index, code, message).EdgeID = id
}

// problems are in the order that the package promises: the document, its nodes, its edges as declared, and for each of
// them by the order of the rules.
func (r *report) problems() []Problem {
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.index, b.index), cmp.Compare(a.rank, b.rank))
	})
	problems := make([]Problem, 0, len(r.found))
	for _, f := range r.found {
		problems = append(problems, f.Problem)
	}
	return problems
}

// maxShown bounds how much of a text of the document a message repeats, in characters.
const maxShown = 120

// show quotes a text of the document for a message.
func show(s string) string {
	return fmt.Sprintf("%.*q", maxShown, s)
}
