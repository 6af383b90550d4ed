package v1alpha1

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	maxTurnName = 57
	// maxRetryName leaves room for what the operator appends to a turn's name.
	maxRetryName    = 63
	maxMessageBytes = 64 << 10
)

// validateNewTurn judges a turn by itself.
func validateNewTurn(turn *api.Turn) field.ErrorList {
	path := field.NewPath("spec")
	longest := maxTurnName
	if turn.Spec.RetryOf != "" {
		longest = maxRetryName
	}
	return slices.Concat(
		validateName(turn.Name, longest),
		validateMessage(&turn.Spec, path.Child("message")),
		validateSelection(&turn.Spec, path.Child("selection")),
		validateUndecided(&turn.Spec, path),
	)
}

// validateMessage leaves a turn alone that carries the prompt of a run instead.
func validateMessage(spec *api.TurnSpec, path *field.Path) field.ErrorList {
	if spec.Prompt != nil {
		return nil
	}
	message := spec.Message
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

// shown names a state, also that of a turn nobody looked at yet.
func shown(state api.TurnPhase) api.TurnPhase {
	return cmp.Or(state, api.TurnPending)
}
