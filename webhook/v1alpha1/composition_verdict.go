package v1alpha1

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

const (
	// maxVerdicts and maxVerdictBytes bound what is remembered of workflows: a
	// draft comes to one door after the other, and back with each edit of
	// something else.
	maxVerdicts     = 256
	maxVerdictBytes = 8 << 10
)

// refusedProblems are the only problems of a workflow that keep a draft from
// being stored.
var refusedProblems = []string{"INVALID_WORKFLOW", "WORKFLOW_TOO_LARGE", "TOO_MANY_NODES", "TOO_MANY_EDGES"}

// verdict is all that admission has to say of the text of a workflow, whatever
// else its composition holds.
type verdict struct {
	// revision of the document; empty without one.
	revision string
	// err says why the text has no revision although there is one.
	err error
	// refusals keep it from being stored.
	refusals []string
	// warnings tell at once what will keep it from running.
	warnings []string
	// required are the inputs that a run must be given.
	required []string
}

// size in bytes, roughly.
func (v verdict) size() int {
	size := 0
	for _, text := range slices.Concat(v.refusals, v.warnings, v.required) {
		size += len(text)
	}
	return size
}

// verdicts judges workflows and remembers small verdicts by the digest of the
// text.
type verdicts struct {
	checker workflow.ExpressionChecker
	known   *lru.Cache
}

func newVerdicts(checker workflow.ExpressionChecker) verdicts {
	return verdicts{checker: checker, known: lru.New(maxVerdicts)}
}

// of is the verdict on a workflow; nothing is said of none.
func (v verdicts) of(raw *runtime.RawExtension) verdict {
	if raw == nil {
		return verdict{}
	}
	digest := sha256.Sum256(raw.Raw)
	if known, ok := v.known.Get(digest); ok {
		result, _ := known.(verdict)
		return result
	}
	result := judge(raw.Raw, v.checker)
	if result.size() <= maxVerdictBytes {
		v.known.Add(digest, result)
	}
	return result
}

func judge(text []byte, checker workflow.ExpressionChecker) verdict {
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return verdict{err: err, refusals: []string{err.Error()}}
	}
	problems := workflow.Validate(value, checker)
	result := verdict{refusals: refusalsOf(problems), warnings: warningsOf(problems)}
	doc, _ := value.(map[string]any)
	if result.revision, result.err = changeset.Revision(doc); result.err == nil {
		result.required = requiredInputs(doc)
	}
	return result
}

func refusalsOf(problems []workflow.Problem) []string {
	var refusals []string
	for _, problem := range problems {
		if slices.Contains(refusedProblems, problem.Code) {
			refusals = append(refusals, problem.Message)
		}
	}
	return refusals
}

func warningsOf(problems []workflow.Problem) []string {
	var warnings []string
	hidden := 0
	for _, problem := range problems {
		switch {
		case !problem.IsError():
		case len(warnings) == maxWarnings:
			hidden++
		default:
			warnings = append(warnings, describe(problem))
		}
	}
	if hidden > 0 {
		warnings = append(warnings, fmt.Sprintf("spec.workflow: %d more errors", hidden))
	}
	return warnings
}

func describe(p workflow.Problem) string {
	path := field.NewPath("spec", "workflow")
	switch {
	case p.NodeID != "":
		path = path.Child("nodes").Key(p.NodeID)
	case p.EdgeID != "":
		path = path.Child("edges").Key(p.EdgeID)
	}
	return fmt.Sprintf("%s: %s: %s", path, p.Code, p.Message)
}

func requiredInputs(doc workflow.Document) []string {
	var names []string
	for _, node := range workflow.Read(doc).Nodes() {
		for _, f := range node.InputFields() {
			if f.IsRequired() {
				names = append(names, f.Name())
			}
		}
	}
	return names
}
