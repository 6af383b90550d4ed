// Package turns reads what a turn recorded: its base workflow, the change sets
// it accepted, the working workflow that they make, and which states may
// follow which. The gateway, admission and the controllers use the same
// functions, so that they cannot disagree.
package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Limits of one turn.
const (
	MaxChangeSets = 64
	MaxOps        = 2000
	MaxBytes      = 512 << 10
)

// ErrDamaged says that what a turn recorded does not fit together: somebody
// else wrote its status, or a stored value.
var ErrDamaged = errors.New("the turn's record is damaged")

// Reader gives stored values by digest.
type Reader interface {
	Get(ctx context.Context, namespace, digest string) ([]byte, error)
}

// next lists, for each state, those that may follow it. A turn has no state
// before the operator saw it.
var next = map[api.TurnPhase][]api.TurnPhase{
	"":              {api.TurnPending, api.TurnWorking, api.TurnRefused, api.TurnFailed},
	api.TurnPending: {api.TurnWorking, api.TurnRefused, api.TurnFailed, api.TurnCancelled},
	api.TurnWorking: {
		api.TurnAwaitingResolution, api.TurnCompleted, api.TurnFailed, api.TurnApplied, api.TurnStale, api.TurnCancelled,
	},
	api.TurnAwaitingResolution: {api.TurnApplied, api.TurnRejected, api.TurnStale, api.TurnFailed, api.TurnUndone},
	api.TurnCompleted:          {api.TurnUndone},
	api.TurnApplied:            {api.TurnUndone},
	api.TurnRejected:           {api.TurnUndone},
	api.TurnStale:              {api.TurnUndone},
	api.TurnFailed:             {api.TurnUndone},
}

// CanMove tells whether a turn may go from one state to another, or stay.
func CanMove(from, to api.TurnPhase) bool {
	return from == to || slices.Contains(next[from], to)
}

// IsOver tells whether the agent's part of the turn has ended.
func IsOver(state api.TurnPhase) bool {
	return state != "" && state != api.TurnPending && state != api.TurnWorking
}

// Base returns the workflow at the start of the turn, nil when there was none.
func Base(ctx context.Context, reader Reader, turn *api.Turn) (changeset.Document, error) {
	if turn.Status.Base == nil {
		return nil, nil //nolint:nilnil // no workflow is an ordinary base
	}
	data, err := reader.Get(ctx, turn.Namespace, turn.Status.Base.Digest)
	if err != nil {
		return nil, fmt.Errorf("read base of turn %s: %w", turn.Name, err)
	}
	doc, err := document(data)
	if err != nil {
		return nil, fmt.Errorf("%w: base of turn %s: %w", ErrDamaged, turn.Name, err)
	}
	return doc, nil
}

// ChangeSets returns the accepted change sets in order.
func ChangeSets(ctx context.Context, reader Reader, turn *api.Turn) ([]changeset.ChangeSet, error) {
	sets := make([]changeset.ChangeSet, 0, len(turn.Status.ChangeSets))
	for i := range turn.Status.ChangeSets {
		set, err := ChangeSet(ctx, reader, turn.Namespace, &turn.Status.ChangeSets[i])
		if err != nil {
			return nil, fmt.Errorf("read change set %d of turn %s: %w", i, turn.Name, err)
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// ChangeSet returns one recorded change set, wherever it is kept.
func ChangeSet(ctx context.Context, reader Reader, namespace string, accepted *api.AcceptedChangeSet) (changeset.ChangeSet, error) {
	return decodeSet(ctx, reader, namespace, stored{inline: accepted.Content, ref: accepted.Ref})
}

// Combined returns the turn's combined change set; ok is false when it has none.
func Combined(ctx context.Context, reader Reader, turn *api.Turn) (set changeset.ChangeSet, ok bool, err error) {
	kept := stored{inline: turn.Status.ChangeSet, ref: turn.Status.ChangeSetRef}
	if kept.inline == nil && kept.ref == nil {
		return changeset.ChangeSet{}, false, nil
	}
	set, err = decodeSet(ctx, reader, turn.Namespace, kept)
	if err != nil {
		return changeset.ChangeSet{}, false, fmt.Errorf("read combined change set of turn %s: %w", turn.Name, err)
	}
	return set, true, nil
}

// Working returns the base with all accepted change sets applied, nil when
// there is no workflow. A recorded set that does not apply is an error: the
// status was tampered with.
func Working(ctx context.Context, reader Reader, turn *api.Turn) (changeset.Document, error) {
	working, err := Base(ctx, reader, turn)
	if err != nil || working == nil {
		return working, err
	}
	sets, err := ChangeSets(ctx, reader, turn)
	if err != nil {
		return nil, err
	}
	for i, set := range sets {
		applied, rejection := changeset.Apply(working, set.Ops)
		if rejection != nil {
			return nil, fmt.Errorf("%w: change set %d of turn %s does not apply: %s: %s", ErrDamaged, i, turn.Name, rejection.Code, rejection.Reason)
		}
		working = applied
	}
	return working, nil
}

// stored is a value that is kept in place or by reference.
type stored struct {
	inline *runtime.RawExtension
	ref    *api.ContentRef
}

func decodeSet(ctx context.Context, reader Reader, namespace string, kept stored) (changeset.ChangeSet, error) {
	data, err := kept.bytes(ctx, reader, namespace)
	if err != nil {
		return changeset.ChangeSet{}, err
	}
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return changeset.ChangeSet{}, fmt.Errorf("%w: decode change set: %w", ErrDamaged, err)
	}
	if object, _ := value.(map[string]any); !isList(object["ops"]) {
		return changeset.ChangeSet{}, fmt.Errorf("%w: a change set has no list of ops", ErrDamaged)
	}
	return SetOf(value)
}

func isList(value any) bool {
	_, is := value.([]any)
	return is
}

func (s stored) bytes(ctx context.Context, reader Reader, namespace string) ([]byte, error) {
	if s.inline != nil {
		return s.inline.Raw, nil
	}
	if s.ref == nil {
		return nil, fmt.Errorf("%w: a change set has neither content nor reference", ErrDamaged)
	}
	return reader.Get(ctx, namespace, s.ref.Digest)
}

// SetOf reads a decoded change set into its typed form. Ops stay as they are;
// members of another type than they should have are left out, for whoever
// checks the value itself.
func SetOf(value any) (changeset.ChangeSet, error) {
	object, isObject := value.(map[string]any)
	if !isObject {
		return changeset.ChangeSet{}, errors.New("change set is no object")
	}
	text := func(name string) string {
		s, _ := object[name].(string)
		return s
	}
	ops, _ := object["ops"].([]any)
	return changeset.ChangeSet{
		ID: text("id"), BaseRevision: text("baseRevision"), Author: text("author"), Summary: text("summary"), Ops: ops,
	}, nil
}

// Document decodes a stored workflow; nil when there is none.
func Document(raw *runtime.RawExtension) (changeset.Document, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil //nolint:nilnil // no workflow is an ordinary draft
	}
	return document(raw.Raw)
}

// Raw encodes a workflow for a spec.
func Raw(doc any) (*runtime.RawExtension, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}

func document(data []byte) (changeset.Document, error) {
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode workflow: %w", err)
	}
	doc, isObject := value.(map[string]any)
	if !isObject {
		return nil, errors.New("workflow is no object")
	}
	return doc, nil
}
