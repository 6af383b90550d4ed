package definition

import (
	"regexp"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/workflow"
)

// componentName is the grammar of the names of components, but for their length.
var componentName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*(\.[A-Z][A-Za-z0-9_]*)*$`)

// maxName bounds the name of a component.
const maxName = 63

var (
	// reservedNames are those of kinds of objects, and of what may become one.
	reservedNames = []string{
		"Composition", "Turn", "HumanTask", "WorkflowRun", "AgentSession", "SessionTemplate", "ActionType", "Tool", "StreamEvent",
	}
	// reservedParts are what the first part of a name must not be.
	reservedParts = []string{
		"Axiom", "Repository", "Worktree", "Files", "Agent", "Fragment", "Git", "PullRequest", "Issue", "Http",
	}
	// coreNames are those of what documents speak of.
	coreNames = []string{
		"Context", "Event", "Result", "Error", "Inputs", "Outputs", "Workflow", "Repeat", "ForEach", "Prompt", "Session", "Reply",
		"Read", "Glob", "Write", "Delete", "Script", "Secret",
	}
)

// plain is what names are compared by, so that two that look alike are one.
func plain(name string) string {
	return strings.NewReplacer(".", "", "_", "", "-", "").Replace(strings.ToLower(name))
}

func isPlainOneOf(name string, names []string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return plain(name) == plain(other) })
}

func isComponentName(name string) bool {
	return len(name) <= maxName && componentName.MatchString(name)
}

// isStructural tells whether a name is that of a kind of nodes or of an action.
func isStructural(name string) bool {
	var taken []string
	for _, kind := range workflow.Kinds() {
		taken = append(taken, string(kind))
	}
	for _, contract := range Contracts() {
		taken = append(taken, contract.Action)
	}
	return isPlainOneOf(name, taken)
}

func isReserved(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return isPlainOneOf(name, reservedNames) || isPlainOneOf(first, reservedParts)
}

func isCore(name string) bool { return isPlainOneOf(name, coreNames) }

// checkNames refuses the first name that breaks the first rule that any of them breaks. A name that is none is not told.
func checkNames(members []member, root string) *Refusal {
	for _, rule := range []struct {
		code     string
		isBroken func(m member) bool
	}{
		{CodeNameInvalid, func(m member) bool { return !isText(m.key) || !isComponentName(m.name) }},
		{CodeNameStructural, func(m member) bool { return isStructural(m.name) }},
		{CodeNameReserved, func(m member) bool { return isReserved(m.name) }},
		{CodeNameCore, func(m member) bool { return isCore(m.name) }},
	} {
		at := slices.IndexFunc(members, rule.isBroken)
		switch {
		case at < 0:
		case rule.code == CodeNameInvalid:
			return members[at].fault(rule.code, "").of(root)
		default:
			return members[at].fault(rule.code, "").of(members[at].name)
		}
	}
	seen := map[string]bool{}
	for _, m := range members {
		if seen[plain(m.name)] {
			return m.fault(CodeNameDuplicate, "").of(m.name)
		}
		seen[plain(m.name)] = true
	}
	return nil
}
