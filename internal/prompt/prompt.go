// Package prompt writes what an agent is told at the start of a turn: what
// draft it works on, what people edited since it last looked, and what the
// person is looking at.
//
// The package is text in, text out; it knows nothing of where the facts are
// kept.
package prompt

import (
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/internal/journal"
)

// Edit is one item that a person changed since the agent's last turn.
type Edit struct {
	// Type and Name of the item.
	Type, Name string
	// Diff of a workflow, empty when there is nothing to tell.
	Diff string
}

// Selection is what the person was looking at.
type Selection struct {
	Nodes, Edges []string
}

// Turn is what a preamble tells.
type Turn struct {
	// WorkflowRevision that the agent starts from; empty: there is no workflow.
	WorkflowRevision string
	// First is true for a composition's first turn, which has nothing to catch up with.
	First bool
	// Edits by people since the turn before.
	Edits []Edit
	// Selection, when anything is selected.
	Selection Selection
}

// Of is the whole prompt: the preamble, a blank line, the message byte for byte.
func Of(turn Turn, message string) string {
	return Preamble(turn) + "\n\n" + message
}

// Preamble tells an agent where it stands.
func Preamble(turn Turn) string {
	lines := []string{"[Workbench context]"}
	if turn.WorkflowRevision == "" {
		lines = append(lines, "No workflow yet.")
	} else {
		lines = append(lines, "Workflow content revision: "+turn.WorkflowRevision)
	}
	if !turn.First {
		lines = append(lines, editLines(turn.Edits)...)
	}
	if len(turn.Selection.Nodes)+len(turn.Selection.Edges) > 0 {
		lines = append(lines, fmt.Sprintf("The user is looking at: nodes %s edges %s", list(turn.Selection.Nodes), list(turn.Selection.Edges)))
	}
	return strings.Join(append(lines, "[End of workbench context]"), "\n")
}

func editLines(edits []Edit) []string {
	if len(edits) == 0 {
		return []string{"User edits since your last turn: none"}
	}
	var lines []string
	for _, edit := range edits {
		lines = append(lines, fmt.Sprintf("- %s '%s': edited by the user", edit.Type, journal.OneLine(edit.Name)))
		if edit.Diff == "" {
			continue
		}
		for line := range strings.SplitSeq(edit.Diff, "\n") {
			lines = append(lines, "  "+journal.OneLine(line))
		}
	}
	return lines
}

func list(ids []string) string {
	return "[" + strings.Join(ids, ", ") + "]"
}
