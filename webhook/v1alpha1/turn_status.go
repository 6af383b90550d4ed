package v1alpha1

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// validateStatus holds what the operator records of a turn against the rules of
// turns and change sets: the gateway writes it on behalf of an agent.
func (t turnDoors) validateStatus(ctx context.Context, req request[api.Turn]) ([]string, error) {
	if !t.isOperator(req) {
		return nil, req.forbidden("only the operator writes the status")
	}
	path := field.NewPath("status")
	was, is := &req.before.Status, &req.after.Status
	errs := slices.Concat(validateMove(was, is, path), validateBase(was, is, path), validateGrowth(was, is, path), validateItemWrites(was, is, path))
	if err := req.invalid(errs); err != nil {
		return nil, err
	}
	if sameWork(was, is) {
		return nil, nil
	}
	errs, err := t.validateWork(ctx, req, path)
	if err != nil {
		return nil, err
	}
	return nil, req.invalid(errs)
}

func validateMove(was, is *api.TurnStatus, path *field.Path) field.ErrorList {
	if turns.CanMove(was.State, is.State) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("state"), is.State, fmt.Sprintf("must not follow %s", shown(was.State)))}
}

// validateBase lets the base be set once.
func validateBase(was, is *api.TurnStatus, path *field.Path) field.ErrorList {
	if was.BaseRevision == "" {
		if (is.BaseRevision == "") != (is.Base == nil) {
			return field.ErrorList{field.Forbidden(path.Child("base"), "must be set together with `baseRevision`")}
		}
		return nil
	}
	var errs field.ErrorList
	if is.BaseRevision != was.BaseRevision {
		errs = append(errs, field.Forbidden(path.Child("baseRevision"), "must not change once it is set"))
	}
	if !apiequality.Semantic.DeepEqual(is.Base, was.Base) {
		errs = append(errs, field.Forbidden(path.Child("base"), "must not change once it is set"))
	}
	return errs
}

// validateGrowth keeps the change sets that were accepted.
func validateGrowth(was, is *api.TurnStatus, path *field.Path) field.ErrorList {
	path = path.Child("changeSets")
	if len(is.ChangeSets) < len(was.ChangeSets) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("must only grow: it had %d change sets and has %d", len(was.ChangeSets), len(is.ChangeSets)))}
	}
	for i := range was.ChangeSets {
		if !sameChangeSet(&was.ChangeSets[i], &is.ChangeSets[i]) {
			return field.ErrorList{field.Forbidden(path.Index(i), "must not change")}
		}
	}
	return nil
}

// validateItemWrites keeps what the turn wrote into the draft: an undo must find
// what was there before.
func validateItemWrites(was, is *api.TurnStatus, path *field.Path) field.ErrorList {
	path = path.Child("itemWrites")
	var errs field.ErrorList
	for i := range was.ItemWrites {
		write := &was.ItemWrites[i]
		if write.State != api.ItemWritten && write.Confirmed == nil {
			continue
		}
		item := turns.ItemOf(write)
		kept := turns.FindWrite(is, item)
		switch {
		case kept == nil:
			errs = append(errs, field.Forbidden(path, item.String()+" must stay, since it was written"))
		case !apiequality.Semantic.DeepEqual(kept.Before, write.Before):
			errs = append(errs, field.Forbidden(path.Key(item.String()).Child("before"), "must not change once the item was written"))
		}
	}
	return errs
}

func sameChangeSet(a, b *api.AcceptedChangeSet) bool {
	return a.ID == b.ID && a.Ops == b.Ops && a.Revision == b.Revision &&
		apiequality.Semantic.DeepEqual(a.Ref, b.Ref) && sameJSON(a.Content, b.Content)
}

// sameWork tells whether there is nothing to recompute. Most writes leave the
// work alone, and must get through even if stored content is lost.
func sameWork(was, is *api.TurnStatus) bool {
	return len(was.ChangeSets) == len(is.ChangeSets) && was.BaseRevision == is.BaseRevision && was.WorkingRevision == is.WorkingRevision
}

// validateWork makes the working workflow again and compares revisions.
func (t turnDoors) validateWork(ctx context.Context, req request[api.Turn], path *field.Path) (field.ErrorList, error) {
	was, is := &req.before.Status, &req.after.Status
	// The namespace and name of a status write are the stored ones.
	known := &api.Turn{ObjectMeta: req.before.ObjectMeta, Status: *was}
	if was.BaseRevision == "" {
		known.Status.Base = is.Base
	}
	working, err := turns.Working(ctx, t.contents, known)
	if err != nil {
		return t.unreadable(path.Child("base"), err)
	}
	revision, err := revisionOf(working)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("base"), is.Base, err.Error())}, nil
	}
	if was.BaseRevision == "" && is.BaseRevision != revision {
		return field.ErrorList{unequal(path.Child("baseRevision"), is.BaseRevision, revision)}, nil
	}
	for i := len(was.ChangeSets); i < len(is.ChangeSets); i++ {
		at := path.Child("changeSets").Index(i)
		set, err := t.changeSet(ctx, req.Namespace, &is.ChangeSets[i])
		if err != nil {
			return t.unreadable(at, err)
		}
		if working, revision, err = applyRecorded(working, set, &is.ChangeSets[i]); err != nil {
			return field.ErrorList{field.Invalid(at, is.ChangeSets[i].ID, err.Error())}, nil
		}
	}
	if is.WorkingRevision != revision {
		return field.ErrorList{unequal(path.Child("workingRevision"), is.WorkingRevision, revision)}, nil
	}
	return nil, nil
}

// applyRecorded applies a change set and holds what was recorded of it against
// the result.
func applyRecorded(working changeset.Document, set any, recorded *api.AcceptedChangeSet) (changeset.Document, string, error) {
	result, revision, rejection := changeset.ApplyChecked(working, set)
	if rejection != nil {
		return nil, "", fmt.Errorf("rejected: %s", rejection)
	}
	object, _ := set.(map[string]any)
	if ops, _ := object["ops"].([]any); len(ops) != int(recorded.Ops) {
		return nil, "", fmt.Errorf("`ops` must be %d, the number of operations", len(ops))
	}
	if recorded.Revision != revision {
		return nil, "", fmt.Errorf("`revision` must be that of the result, %s", revision)
	}
	return result, revision, nil
}

// changeSet reads a recorded change set as it was sent: the typed form would
// hide what is malformed.
func (t turnDoors) changeSet(ctx context.Context, namespace string, recorded *api.AcceptedChangeSet) (any, error) {
	switch {
	case recorded.Content != nil:
		return jsonvalue.Decode(recorded.Content.Raw)
	case recorded.Ref == nil:
		return nil, nil // not an object, as the check says
	}
	data, err := t.contents.Get(ctx, namespace, recorded.Ref.Digest)
	if err != nil {
		return nil, err
	}
	return jsonvalue.Decode(data)
}

// unreadable blames the request for content that is not there.
func (t turnDoors) unreadable(path *field.Path, err error) (field.ErrorList, error) {
	if apierrors.IsNotFound(err) {
		return field.ErrorList{field.Forbidden(path, "refers to content that is not stored")}, nil
	}
	return nil, fault("read the work of a turn: %w", err)
}

func revisionOf(doc changeset.Document) (string, error) {
	if doc == nil {
		return "", nil
	}
	return changeset.Revision(doc)
}

func unequal(path *field.Path, given, computed string) *field.Error {
	return field.Invalid(path, given, fmt.Sprintf("must be the revision of the content, %q", computed))
}
