package controllers

import (
	"cmp"
	"strings"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// attribution is who made an item's content.
type attribution struct {
	author   api.Author
	username string
	turn     string
}

// authorship tells who made what is new in a draft.
type authorship struct {
	// editor is the user whom admission saw at the latest edit.
	editor string
	// brought is the turn whose annotation came with the latest edit; empty when
	// none did.
	brought string
	// mark is that of the operator's own write among the latest edits; empty when
	// there was none.
	mark string
	// turns of the composition.
	turns []api.Turn
	// records are the history so far.
	records []snapshotRecord
}

func authorshipOf(comp *api.Composition, records []snapshotRecord, found []api.Turn) authorship {
	newest := newestOf(records).data
	by := authorship{
		editor:  comp.Annotations[api.AnnotationEditedBy],
		turns:   found,
		records: records,
	}
	if turn := comp.Annotations[api.AnnotationTurn]; turn != comp.Status.ObservedTurn && turn != newest.Turn {
		by.brought = turn
	}
	if mark := comp.Annotations[api.AnnotationWrite]; mark != newest.Write {
		by.mark = mark
	}
	return by
}

// of attributes one item's new content: to the turn that recorded it, to the
// turn that the edit named, else to the user. What an undo brings back is the
// work of whoever asked for it.
func (a authorship) of(item turns.Item, revision string) attribution {
	user := attribution{author: api.AuthorUser, username: a.editor}
	if strings.HasPrefix(a.mark, turns.MarkUndoPrefix) {
		return user
	}
	if turn := a.whose(item, revision); turn != nil {
		return a.ai(turn)
	}
	turn := a.named()
	switch {
	case a.brought == "", turn != nil && a.isMarked(turn):
		// The operator writes a result exactly: what else is there was edited
		// since, before the controller had a look.
		return user
	case turn == nil:
		return attribution{author: api.AuthorAI, username: a.editor, turn: a.brought}
	}
	return a.ai(turn)
}

func (a authorship) ai(turn *api.Turn) attribution {
	return attribution{author: api.AuthorAI, username: cmp.Or(decidedBy(turn), a.editor), turn: turn.Name}
}

// whose is the turn that recorded an item's content as its own, nil when none
// did; the one that wrote last or that the edit named, else the newest. A
// content that history has of the turn is new only if the turn wrote it again.
func (a authorship) whose(item turns.Item, revision string) *api.Turn {
	var newest *api.Turn
	for i := range a.turns {
		turn := &a.turns[i]
		if !turns.Gives(turn, item, revision) || !a.isMarked(turn) && a.hasHad(turn, item, revision) {
			continue
		}
		if a.isMarked(turn) || turn.Name == a.brought {
			return turn
		}
		if newest == nil || isNewer(turn, newest) {
			newest = turn
		}
	}
	return newest
}

// hasHad tells whether history has an item's content as a turn's work.
func (a authorship) hasHad(turn *api.Turn, item turns.Item, revision string) bool {
	for _, record := range a.records {
		for _, entry := range record.data.Items {
			isItem := entry.Type == item.Type && (item.Type == api.ItemWorkflow || entry.Name == item.Name)
			if isItem && entry.Turn == turn.Name && entry.ContentRevision == revision {
				return true
			}
		}
	}
	return false
}

// named is the turn that the edit named, nil when it is not known.
func (a authorship) named() *api.Turn {
	for i := range a.turns {
		if a.turns[i].Name == a.brought {
			return &a.turns[i]
		}
	}
	return nil
}

// isMarked tells whether the operator wrote for the turn among the latest edits.
func (a authorship) isMarked(turn *api.Turn) bool {
	return a.mark != "" && turns.MarkedBy(a.mark, turn)
}
