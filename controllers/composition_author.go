package controllers

import (
	"cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
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
	// isAutomatic: the operator accepts turns by itself.
	isAutomatic bool
	// turns of the composition, without those whose result history has.
	turns []api.Turn
}

func authorshipOf(comp *api.Composition, records []snapshotRecord, found []api.Turn) authorship {
	by := authorship{
		editor:      comp.Annotations[api.AnnotationEditedBy],
		isAutomatic: comp.Spec.Agent.ChangeSetPolicy == api.ChangeSetAutomatic,
	}
	turn := comp.Annotations[api.AnnotationTurn]
	if turn != comp.Status.ObservedTurn && turn != newestOf(records).data.Turn {
		by.brought = turn
	}
	for i := range found {
		if !isRecorded(records, found[i].Name) {
			by.turns = append(by.turns, found[i])
		}
	}
	return by
}

func isRecorded(records []snapshotRecord, turn string) bool {
	for _, record := range records {
		for _, item := range record.data.Items {
			if item.Turn == turn {
				return true
			}
		}
	}
	return false
}

// of attributes one item's new content: to the turn whose result it is, to the
// turn that the edit named, else to the user.
func (a authorship) of(kind api.ItemType, revision string) attribution {
	if kind == api.ItemWorkflow {
		if turn := a.whoseResult(revision); turn != nil {
			return a.ai(turn)
		}
	}
	turn := a.named()
	switch {
	case a.brought == "", turn != nil && a.isOperators(turn):
		// The operator writes a result exactly: what else is there was edited
		// since, before the controller had a look.
		return attribution{author: api.AuthorUser, username: a.editor}
	case turn == nil:
		return attribution{author: api.AuthorAI, username: a.editor, turn: a.brought}
	}
	return a.ai(turn)
}

func (a authorship) ai(turn *api.Turn) attribution {
	return attribution{author: api.AuthorAI, username: cmp.Or(decidedBy(turn), a.editor), turn: turn.Name}
}

// whoseResult is the turn that gives a workflow this revision, nil when none
// does; the one that the edit named, else the newest.
func (a authorship) whoseResult(revision string) *api.Turn {
	var newest *api.Turn
	for i := range a.turns {
		turn := &a.turns[i]
		if revision == "" || turn.Status.ResultRevision != revision || !isApplicable(turn) {
			continue
		}
		if turn.Name == a.brought {
			return turn
		}
		if newest == nil || isNewer(turn, newest) {
			newest = turn
		}
	}
	return newest
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

// isOperators tells whether it is the operator that writes the turn's result.
func (a authorship) isOperators(turn *api.Turn) bool {
	return turn.Spec.Resolution == api.ResolutionAccepted || turn.Spec.Resolution == "" && a.isAutomatic
}

// isApplicable tells whether the turn's result may have become the draft: it
// may yet be applied, or was.
func isApplicable(turn *api.Turn) bool {
	return turn.Status.State == api.TurnAwaitingResolution || turn.Status.State == api.TurnApplied
}
