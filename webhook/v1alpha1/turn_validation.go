package v1alpha1

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	maxTurnName     = 57
	maxMessageBytes = 64 << 10
)

// validateNewTurn judges a turn by itself.
func validateNewTurn(turn *api.Turn) field.ErrorList {
	path := field.NewPath("spec")
	return slices.Concat(
		validateName(turn.Name, maxTurnName),
		validateMessage(turn.Spec.Message, path.Child("message")),
		validateSelection(&turn.Spec, path.Child("selection")),
		validateUndecided(&turn.Spec, path),
	)
}

func validateMessage(message string, path *field.Path) field.ErrorList {
	if len(message) > maxMessageBytes {
		return field.ErrorList{excess(path, len(message), maxMessageBytes, "bytes")}
	}
	return validateNotBlank(message, path)
}

func validateSelection(spec *api.TurnSpec, path *field.Path) field.ErrorList {
	if spec.Selection != nil && spec.CompositionRef == nil {
		return field.ErrorList{field.Forbidden(path, "may be set for compositions only")}
	}
	return nil
}

// validateUndecided keeps decisions out of a turn that nothing came of yet.
func validateUndecided(spec *api.TurnSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(name string, set bool) {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), "must not be set at creation"))
		}
	}
	refuse("resolution", spec.Resolution != "")
	refuse("interrupt", spec.Interrupt)
	refuse("undo", spec.Undo)
	return errs
}

// lendsPower tells whether what an agent does in a turn changes the composition
// without another decision.
func lendsPower(composition *api.Composition) bool {
	agent := composition.Spec.Agent
	return agent.ChangeSetPolicy == api.ChangeSetAutomatic || agent.ItemPolicy != api.ItemStaged
}

// changedSomething tells whether there is anything to undo.
func changedSomething(turn *api.Turn) bool {
	return turn.Status.State == api.TurnApplied
}

// shown names a state, also that of a turn nobody looked at yet.
func shown(state api.TurnPhase) api.TurnPhase {
	return cmp.Or(state, api.TurnPending)
}
