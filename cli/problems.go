package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// tellProblems lists problems by the node or edge they are about, each with its
// place in the file.
func tellProblems(p *command.Page, doc *source.Document, problems []workflow.Problem) {
	p.Line("%s: %s", command.Clean(doc.Name), headline(p, problems))
	l := newLocator(doc)
	var subjects []string
	grouped := map[string][]string{}
	for _, problem := range problems {
		subject := l.subject(problem)
		if _, isKnown := grouped[subject]; !isKnown {
			subjects = append(subjects, subject)
		}
		grouped[subject] = append(grouped[subject], problemLine(p, doc.Name, l.position(problem), problem))
	}
	for _, subject := range subjects {
		p.Line("\n%s", p.Paint(terminal.Bold, subject))
		for _, line := range grouped[subject] {
			p.Line("  %s", line)
		}
	}
}

func headline(p *command.Page, problems []workflow.Problem) string {
	errors := 0
	for _, problem := range problems {
		if problem.IsError() {
			errors++
		}
	}
	warnings := len(problems) - errors
	switch {
	case errors > 0 && warnings > 0:
		return p.Paint(terminal.Red, "invalid") + ", " + command.Plural(errors, "error") + " and " + command.Plural(warnings, "warning")
	case errors > 0:
		return p.Paint(terminal.Red, "invalid") + ", " + command.Plural(errors, "error")
	case warnings > 0:
		return p.Paint(terminal.Green, "valid") + ", " + command.Plural(warnings, "warning")
	}
	return p.Paint(terminal.Green, "valid")
}

func problemLine(p *command.Page, name string, at source.Position, problem workflow.Problem) string {
	style := terminal.Yellow
	if problem.IsError() {
		style = terminal.Red
	}
	place := command.Clean(name)
	if at != (source.Position{}) {
		place += ":" + at.String()
	}
	return fmt.Sprintf("%s: %s: %s %s", p.Paint(terminal.Cyan, place), p.Paint(style, problem.Severity),
		command.Clean(problem.Message), p.Paint(terminal.Dim, "("+problem.Code+")"))
}

// A locator finds the part of a file that a problem is about.
type locator struct {
	doc *source.Document
	// nodes and edges are the indices of the entries of an id, and the other two
	// the first entries themselves.
	nodes, edges             map[string][]int
	nodeEntries, edgeEntries map[string]map[string]any
	// repeats counts the problems told of repeated ids, each of which is about
	// another entry.
	repeats map[workflow.Problem]int
}

func newLocator(doc *source.Document) *locator {
	object, _ := doc.Value.(map[string]any)
	return &locator{
		doc:         doc,
		nodes:       indicesByID(object["nodes"]),
		edges:       indicesByID(object["edges"]),
		nodeEntries: review.EntriesByID(object["nodes"]),
		edgeEntries: review.EntriesByID(object["edges"]),
		repeats:     map[workflow.Problem]int{},
	}
}

func indicesByID(v any) map[string][]int {
	list, _ := v.([]any)
	indices := make(map[string][]int, len(list))
	for i, entry := range list {
		object, _ := entry.(map[string]any)
		if id, ok := object["id"].(string); ok {
			indices[id] = append(indices[id], i)
		}
	}
	return indices
}

// subject names what a problem is about.
func (l *locator) subject(problem workflow.Problem) string {
	switch {
	case problem.NodeID != "":
		return "node " + review.Describe("node", problem.NodeID, l.nodeEntries[problem.NodeID])
	case problem.EdgeID != "":
		return "edge " + review.Describe("edge", problem.EdgeID, l.edgeEntries[problem.EdgeID])
	}
	return "workflow"
}

var (
	// entryInMessage is how problems of entries without an id say which they mean.
	entryInMessage = regexp.MustCompile(`entry (\d+) of (nodes|edges)`)
	// The others are how problems of a part of a node or an edge do.
	inputInMessage  = regexp.MustCompile(`^input "([^"]+)"`)
	placeInMessage  = regexp.MustCompile(`\b(?:output|match|entry) (\d+)\b`)
	memberInMessage = regexp.MustCompile(`^([\w.]+) of (?:retry|correlationKey|edge)\b`)
)

// detailOf is the part of a member that a message names, as the end of a path.
func detailOf(message string) []any {
	if input := inputInMessage.FindStringSubmatch(message); input != nil {
		return []any{input[1]}
	}
	if place := placeInMessage.FindStringSubmatch(message); place != nil {
		index, _ := strconv.Atoi(place[1])
		return []any{index}
	}
	var path []any
	if member := memberInMessage.FindStringSubmatch(message); member != nil {
		for name := range strings.SplitSeq(member[1], ".") {
			path = append(path, name)
		}
	}
	return path
}

// position is where the part at fault begins, or what is around it.
func (l *locator) position(problem workflow.Problem) source.Position {
	switch {
	case problem.NodeID != "" && len(l.nodes[problem.NodeID]) > 0:
		return l.at(problem, "nodes", l.nodes[problem.NodeID])
	case problem.EdgeID != "" && len(l.edges[problem.EdgeID]) > 0:
		return l.at(problem, "edges", l.edges[problem.EdgeID])
	}
	if parts := entryInMessage.FindStringSubmatch(problem.Message); parts != nil {
		index, _ := strconv.Atoi(parts[1])
		return l.doc.Position(parts[2], index)
	}
	return l.doc.Position(memberOfCode(documentMembers, problem.Code)...)
}

func (l *locator) at(problem workflow.Problem, list string, indices []int) source.Position {
	index, members := indices[0], nodeMembers
	if strings.HasPrefix(problem.Code, "DUPLICATE_") && strings.HasSuffix(problem.Code, "_ID") {
		l.repeats[problem]++
		index = indices[min(l.repeats[problem], len(indices)-1)]
	}
	if list == "edges" {
		members = edgeMembers
	}
	member := memberOfCode(members, problem.Code)
	return l.doc.Position(slices.Concat([]any{list, index}, member, detailOf(problem.Message))...)
}

// A codeMember says that codes with a word in them are about a member.
type codeMember struct {
	word string
	path []any
}

// The first entry whose word is in a code counts.
var (
	documentMembers = []codeMember{
		{"WORKFLOW_ID", []any{"id"}},
		{"WORKFLOW_NAME", []any{"name"}},
		{"WORKFLOW_DESCRIPTION", []any{"description"}},
		{"WORKFLOW_VERSION", []any{"version"}},
		{"EDGES", []any{"edges"}},
		{"NODE", []any{"nodes"}},
		{"EMPTY_WORKFLOW", []any{"nodes"}},
	}
	nodeMembers = []codeMember{
		{"EDGE", nil},
		{"NODE_ID", []any{"id"}},
		{"NODE_TYPE", []any{"type"}},
		{"NODE_NAME", []any{"name"}},
		{"NODE_POSITION", []any{"position"}},
		{"NODE_CONFIG", []any{"config"}},
		{"WIDGET", []any{"config", "outputs"}},
		{"DEFAULT_VALUE", []any{"config", "outputs"}},
		{"ACTION_TYPE", []any{"config", "actionType"}},
		{"COMPONENT", []any{"config", "component"}},
		{"TIMEOUT", []any{"config", "timeout"}},
		{"RETRY", []any{"config", "retry"}},
		{"TITLE", []any{"config", "title"}},
		{"DESCRIPTION", []any{"config", "description"}},
		{"ASSIGNEES", []any{"config", "assignees"}},
		{"SCHEMA", []any{"config", "responseSchema"}},
		{"EVENT_TYPE", []any{"config", "eventType"}},
		{"LOOKBACK", []any{"config", "lookback"}},
		{"MATCH", []any{"config", "match"}},
		{"CORRELATION", []any{"config", "correlationKey"}},
		{"DURATION", []any{"config", "duration"}},
		{"INPUT", []any{"config", "inputs"}},
		{"OUTPUT", []any{"config", "outputs"}},
		{"SELECT", []any{"config", "outputs"}},
	}
	edgeMembers = []codeMember{
		{"EDGE_ID", []any{"id"}},
		{"EDGE_SOURCE", []any{"source"}},
		{"EDGE_TARGET", []any{"target"}},
		{"CONDITION", []any{"condition"}},
		{"INVALID_TIMEOUT_EDGE", []any{"isTimeout"}},
		{"INVALID_ERROR_EDGE", []any{"isError"}},
	}
)

func memberOfCode(members []codeMember, code string) []any {
	at := slices.IndexFunc(members, func(m codeMember) bool { return strings.Contains(code, m.word) })
	if at < 0 {
		return nil
	}
	return members[at].path
}
