package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi/server"
	"github.com/apitomy/axiom-operator/internal/edit"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// UpsertAgentItem gives an item of the composition the content that the agent
// wants it to have.
func (s *Server) UpsertAgentItem(ctx context.Context, request server.UpsertAgentItemRequestObject) (server.UpsertAgentItemResponseObject, error) {
	change, err := readItemChange(request.Body)
	if err != nil {
		return nil, err
	}
	content, err := s.changeItem(ctx, request.Namespace, request.Name, change)
	if err != nil {
		return nil, err
	}
	return server.UpsertAgentItem200JSONResponse(shownContent(content)), nil
}

// RemoveAgentItem takes an action type or tool out of the composition.
func (s *Server) RemoveAgentItem(ctx context.Context, request server.RemoveAgentItemRequestObject) (server.RemoveAgentItemResponseObject, error) {
	if err := checkItemType(request.Type); err != nil {
		return nil, err
	}
	change := itemChange{item: turns.Item{Type: api.ItemType(request.Type), Name: request.Item}, base: request.Params.BaseRevision}
	if _, err := s.changeItem(ctx, request.Namespace, request.Name, change); err != nil {
		return nil, err
	}
	return server.RemoveAgentItem204Response{}, nil
}

// changeItem makes a change, against whatever others do at the same time, and
// returns the content that the item has now.
func (s *Server) changeItem(ctx context.Context, namespace, name string, change itemChange) (item.Content, error) {
	var content item.Content
	err := s.settleFor(ctx, callerOf(ctx), func() error {
		write, err := s.checkItem(ctx, namespace, name, change)
		if err != nil {
			return err
		}
		content = write.content
		if write.staged {
			return s.stage(ctx, write)
		}
		return s.writeDirect(ctx, write)
	})
	return content, err
}

// itemWrite is a change that passed its checks.
type itemWrite struct {
	itemChange
	comp *api.Composition
	turn *api.Turn
	// live is the content in the draft, nil when there is none.
	live *turns.Content
	// content to be; the zero one when the item shall go.
	content item.Content
	// staged changes wait in the turn.
	staged bool
}

// liveRevision is empty when the draft has no such item.
func (w *itemWrite) liveRevision() string {
	if w.live == nil {
		return ""
	}
	return w.live.Revision
}

// isRemoval tells whether the item shall go.
func (w *itemWrite) isRemoval() bool { return w.itemChange.content == nil }

// value is the content as a patch has it; nil when the item shall go.
func (w *itemWrite) value() any {
	if w.isRemoval() {
		return nil
	}
	return w.content.Value
}

// checkItem holds a change against composition and turn as they are now, in the
// order in which a caller may learn of them.
func (s *Server) checkItem(ctx context.Context, namespace, name string, change itemChange) (*itemWrite, error) {
	comp, err := s.composition(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	turn, err := s.runningTurn(ctx, comp)
	if err != nil {
		return nil, err
	}
	if turn == nil {
		return nil, noTurn()
	}
	if err := s.catchUp(ctx, comp, turn, change.item); err != nil {
		return nil, err
	}
	write := &itemWrite{itemChange: change, comp: comp, turn: turn, staged: isStaged(turn, change.item)}
	if write.live, err = turns.Live(comp, change.item); err != nil {
		return nil, err
	}
	var unkept error
	if !write.isRemoval() {
		// What cannot be kept is refused after all that is wrong with the change
		// itself.
		write.content, unkept = item.Read(change.item.Type, change.content, s.expressions)
	}
	if err := s.checkState(ctx, write); err != nil {
		return nil, err
	}
	if unkept != nil {
		return nil, unprocessable("The content cannot be kept: " + unkept.Error())
	}
	return write, nil
}

// isStaged tells where a change goes: an item stays where the turn first put it.
func isStaged(turn *api.Turn, wanted turns.Item) bool {
	if write := turns.FindWrite(&turn.Status, wanted); write != nil {
		return write.Staged
	}
	return turn.Status.ItemPolicy == api.ItemStaged
}

func (s *Server) checkState(ctx context.Context, write *itemWrite) error {
	if write.isDone() {
		return nil // a repetition of what was done
	}
	entry := turns.FindWrite(&write.turn.Status, write.item)
	switch {
	case write.item.Type == api.ItemWorkflow && write.isRemoval():
		return invalid("A workflow cannot be removed")
	case write.item.Type == api.ItemWorkflow && write.hasWorkflow():
		return invalid("The composition already has a workflow; change it with propose_workflow_changes")
	case write.isRemoval() && !write.isVisible(entry):
		return noItem(write.item)
	}
	if err := s.checkBase(ctx, write, entry); err != nil {
		return err
	}
	if entry == nil && len(write.turn.Status.ItemWrites) >= turns.MaxItems {
		return tooLarge(detailTurnFull)
	}
	return nil
}

// isDone tells whether the item is as the change wants it, by this turn's hand
// or in the draft.
func (w *itemWrite) isDone() bool {
	if w.isRemoval() {
		return false
	}
	entry := turns.FindWrite(&w.turn.Status, w.item)
	if w.staged {
		return entry != nil && turns.RevisionOf(entry.After) == w.content.Revision
	}
	return w.content.Revision != "" && w.liveRevision() == w.content.Revision
}

func (w *itemWrite) hasWorkflow() bool {
	// A workflow that a crashed request only intended to write is none.
	isOpen := w.liveRevision() == "" && w.turn.Status.BaseRevision == ""
	return !isOpen
}

// isVisible tells whether the agent sees the item.
func (w *itemWrite) isVisible(entry *api.ItemWrite) bool {
	if w.staged && entry != nil {
		return entry.After != nil
	}
	// A removal whose receipt is missing may be asked for again.
	isIntended := entry != nil && entry.State == api.ItemIntended && entry.After == nil
	return w.live != nil || isIntended
}

// checkBase makes sure that the turn, or its agent, knows what is to be replaced.
func (s *Server) checkBase(ctx context.Context, write *itemWrite, entry *api.ItemWrite) error {
	live := write.liveRevision()
	if write.base != nil && *write.base == live {
		return nil
	}
	known, err := s.knownRevisions(ctx, write, entry)
	if err != nil {
		return err
	}
	if slices.Contains(known, live) {
		return nil
	}
	p := conflict("%s was changed by the user during this turn; send its revision as baseRevision", write.item)
	p.Expected, p.Actual = known[0], live
	return p
}

// knownRevisions are those that the turn found, or left, in the draft.
func (s *Server) knownRevisions(ctx context.Context, write *itemWrite, entry *api.ItemWrite) ([]string, error) {
	switch {
	case entry == nil:
		revision, err := s.claimedRevision(ctx, write)
		return []string{revision}, err
	case entry.Staged:
		return []string{turns.RevisionOf(entry.Before)}, nil
	case entry.State == api.ItemIntended:
		return []string{entry.Replaces, turns.RevisionOf(entry.After)}, nil
	}
	return []string{turns.RevisionOf(entry.After)}, nil
}

// stage records a change that waits for the turn's acceptance.
func (s *Server) stage(ctx context.Context, write *itemWrite) error {
	if write.isDone() {
		return nil
	}
	if err := s.rehearse(ctx, write); err != nil {
		return err
	}
	before := write.turn.Status.DeepCopy()
	if err := s.intend(ctx, write); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, &write.turn.Status) {
		return nil // the draft has it
	}
	if err := s.live.Status().Update(ctx, write.turn); err != nil {
		return fmt.Errorf("record staged item: %w", err)
	}
	return nil
}

// rehearse lets the API server say what it would make of a staged content, as
// long as the agent can still mend it.
func (s *Server) rehearse(ctx context.Context, write *itemWrite) error {
	if write.isRemoval() {
		return nil
	}
	return s.patchItem(ctx, write.comp, write, client.DryRunAll)
}

// writeDirect writes a change into the draft: first that it is meant, with both
// contents, then the draft, then the receipt. Whoever comes after a crash in
// between finds what was meant, and the draft as it was or as it shall be.
func (s *Server) writeDirect(ctx context.Context, write *itemWrite) error {
	entry := turns.FindWrite(&write.turn.Status, write.item)
	if write.liveRevision() == write.content.Revision {
		return s.settleEntry(ctx, write, entry)
	}
	if !isIntended(entry, write) {
		if err := s.intend(ctx, write); err != nil {
			return err
		}
		if err := s.live.Status().Update(ctx, write.turn); err != nil {
			return fmt.Errorf("record intended item: %w", err)
		}
	}
	comp, err := s.awaitHistory(ctx, write.comp)
	if err != nil {
		return err
	}
	if err := s.patchItem(ctx, comp, write); err != nil {
		return errors.Join(err, s.revoke(ctx, write, err))
	}
	return s.confirm(ctx, write)
}

// settleEntry brings the record of an item up to date whose content is in the
// draft already: it was meant to be there, or something else was meant that the
// agent no longer wants.
func (s *Server) settleEntry(ctx context.Context, write *itemWrite, entry *api.ItemWrite) error {
	switch {
	case entry == nil || entry.State == api.ItemWritten:
		return nil
	case turns.RevisionOf(entry.After) == write.content.Revision:
		return s.confirm(ctx, write)
	}
	return s.updateTurn(ctx, write.turn, func(status *api.TurnStatus) bool {
		now := turns.FindWrite(status, write.item)
		if now == nil || now.State == api.ItemWritten {
			return false
		}
		turns.Revoke(status, write.item)
		return true
	})
}

// catchUp writes the receipts that an earlier request left out, so that the
// turn goes on from what is in the draft. The item that is about to change has
// rules of its own.
func (s *Server) catchUp(ctx context.Context, comp *api.Composition, turn *api.Turn, except turns.Item) error {
	changed := false
	for _, unsettled := range turns.Unsettled(&turn.Status) {
		if unsettled == except {
			continue
		}
		live, err := turns.LiveRevision(comp, unsettled)
		if err != nil {
			return err
		}
		if turns.Judge(turns.FindWrite(&turn.Status, unsettled), live) == turns.VerdictWritten {
			turns.Confirm(&turn.Status, unsettled)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if err := s.live.Status().Update(ctx, turn); err != nil {
		return fmt.Errorf("record written items: %w", err)
	}
	return nil
}

// isIntended tells whether exactly this change is recorded already.
func isIntended(entry *api.ItemWrite, write *itemWrite) bool {
	return entry != nil && entry.State == api.ItemIntended && turns.RevisionOf(entry.After) == write.content.Revision &&
		entry.Replaces == write.liveRevision()
}

// intend stores both contents and puts the change into the turn's status, which
// it does not write.
func (s *Server) intend(ctx context.Context, write *itemWrite) error {
	intended := turns.Write{Item: write.item, Staged: write.staged}
	var err error
	if intended.Live, err = s.keepContent(ctx, write.turn, write.live); err != nil {
		return err
	}
	if !write.isRemoval() {
		if intended.After, err = s.keepContent(ctx, write.turn, &write.content.Content); err != nil {
			return err
		}
	}
	if entry := turns.FindWrite(&write.turn.Status, write.item); entry != nil && entry.Staged {
		// The agent may have acknowledged what a person made of it.
		entry.Before = intended.Live
	}
	if err := turns.Intend(&write.turn.Status, intended); err != nil {
		return tooLarge(detailTurnFull)
	}
	return nil
}

func (s *Server) keepContent(ctx context.Context, turn *api.Turn, content *turns.Content) (*api.ItemContent, error) {
	if content == nil {
		return nil, nil
	}
	ref, err := s.contents.Put(ctx, turn, content.Data)
	if err != nil {
		return nil, fmt.Errorf("store content of item: %w", err)
	}
	return &api.ItemContent{Revision: content.Revision, Digest: ref.Digest}, nil
}

// patchItem changes the item in exactly this version of the draft.
func (s *Server) patchItem(ctx context.Context, comp *api.Composition, write *itemWrite, options ...client.PatchOption) error {
	if err := edit.Write(ctx, s.live, comp, turns.Edits{
		Mark:  turns.MarkItem(write.turn, comp.Generation),
		By:    write.turn.Annotations[api.AnnotationRequestedBy],
		Items: []turns.Edit{{Item: write.item, Value: write.value()}},
	}, options...); err != nil {
		return fmt.Errorf("write item: %w", err)
	}
	return nil
}

// confirm writes the receipt. The draft has the change by then, so that it must
// not fail for somebody else's write of the turn.
func (s *Server) confirm(ctx context.Context, write *itemWrite) error {
	return s.updateTurn(ctx, write.turn, func(status *api.TurnStatus) bool {
		entry := turns.FindWrite(status, write.item)
		if entry == nil || entry.State == api.ItemWritten || turns.RevisionOf(entry.After) != write.content.Revision {
			return false
		}
		turns.Confirm(status, write.item)
		return true
	})
}

// revoke takes back what was meant if the API server refused it: else the next
// look at the turn would count on it.
func (s *Server) revoke(ctx context.Context, write *itemWrite, refusal error) error {
	if !isRefusal(refusal) {
		return nil
	}
	return s.updateTurn(ctx, write.turn, func(status *api.TurnStatus) bool {
		entry := turns.FindWrite(status, write.item)
		if entry == nil || entry.State == api.ItemWritten || turns.RevisionOf(entry.After) != write.content.Revision {
			return false
		}
		turns.Revoke(status, write.item)
		return true
	})
}

// updateTurn changes the status of a turn, again on a fresh turn when somebody
// else was faster. A turn that is gone needs no change.
func (s *Server) updateTurn(ctx context.Context, turn *api.Turn, change func(*api.TurnStatus) bool) error {
	fresh := true
	return settle(func() error {
		if !fresh {
			now := &api.Turn{}
			err := s.live.Get(ctx, client.ObjectKeyFromObject(turn), now)
			if apierrors.IsNotFound(err) || err == nil && now.UID != turn.UID {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read turn: %w", err)
			}
			*turn = *now
		}
		fresh = false
		if !change(&turn.Status) {
			return nil
		}
		if err := s.live.Status().Update(ctx, turn); err != nil {
			return fmt.Errorf("update turn: %w", err)
		}
		return nil
	})
}
