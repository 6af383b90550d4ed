package turns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// MaxItems of one turn.
const MaxItems = 64

// ErrFull says that a turn has written as many items as it may.
var ErrFull = errors.New("the turn has written as many items as it may")

// Item names an item of a draft. A draft has one workflow, whatever its name.
type Item struct {
	Type api.ItemType
	Name string
}

// String is `<type>/<name>`.
func (i Item) String() string {
	return string(i.Type) + "/" + i.Name
}

// is tells whether a write is that of the item.
func (i Item) is(write *api.ItemWrite) bool {
	return write.Type == i.Type && (i.Type == api.ItemWorkflow || write.Name == i.Name)
}

// ItemOf names the item of a write.
func ItemOf(write *api.ItemWrite) Item {
	return Item{Type: write.Type, Name: write.Name}
}

// Content is what an item holds.
type Content struct {
	// Revision names the content; a workflow's leaves the layout out.
	Revision string
	// Data is JSON text, the same for equal contents, that keeps every number as
	// it is.
	Data []byte
}

// ContentOf names and encodes the content of an item: a document, or any value
// that has the JSON form of the item's entry in the draft.
func ContentOf(kind api.ItemType, value any) (Content, error) {
	tree, err := treeOf(value)
	if err != nil {
		return Content{}, fmt.Errorf("read content: %w", err)
	}
	data, err := encode(tree)
	if err != nil {
		return Content{}, fmt.Errorf("encode content: %w", err)
	}
	revision, err := revisionOf(kind, tree)
	if err != nil {
		return Content{}, fmt.Errorf("take revision of content: %w", err)
	}
	return Content{Revision: revision, Data: data}, nil
}

// encode writes a tree with sorted members and no escapes that could make it
// outgrow what holds it. Canonical JSON would round large integers.
func encode(tree any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

func treeOf(value any) (any, error) {
	if doc, isDocument := value.(map[string]any); isDocument {
		return doc, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonvalue.Decode(data)
}

func revisionOf(kind api.ItemType, tree any) (string, error) {
	if doc, isDocument := tree.(map[string]any); isDocument && kind == api.ItemWorkflow {
		return changeset.Revision(doc)
	}
	return changeset.ContentRevision(tree)
}

// Live is the content of an item in a draft, nil when the draft has no such item.
func Live(comp *api.Composition, item Item) (*Content, error) {
	value, err := liveValue(comp, item)
	if err != nil || value == nil {
		return nil, err
	}
	found, err := ContentOf(item.Type, value)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", item, err)
	}
	return &found, nil
}

// LiveRevision is the revision of an item in a draft, empty when the draft has
// no such item.
func LiveRevision(comp *api.Composition, item Item) (string, error) {
	live, err := Live(comp, item)
	if err != nil || live == nil {
		return "", err
	}
	return live.Revision, nil
}

func liveValue(comp *api.Composition, item Item) (any, error) {
	if item.Type == api.ItemWorkflow {
		doc, err := Document(comp.Spec.Workflow)
		if err != nil || doc == nil {
			return nil, err
		}
		return doc, nil
	}
	i := indexOf(comp, item)
	switch {
	case i < 0:
		return nil, nil
	case item.Type == api.ItemActionType:
		return comp.Spec.ActionTypes[i], nil
	default:
		return comp.Spec.Tools[i], nil
	}
}

// indexOf is where an action type or tool stands in its list, -1 when it is not there.
func indexOf(comp *api.Composition, item Item) int {
	if item.Type == api.ItemActionType {
		return slices.IndexFunc(comp.Spec.ActionTypes, func(a api.NamedActionType) bool { return a.Name == item.Name })
	}
	return slices.IndexFunc(comp.Spec.Tools, func(t api.NamedTool) bool { return t.Name == item.Name })
}

// FindWrite is the turn's write of an item, nil when it did not touch it. It
// points into the status.
func FindWrite(status *api.TurnStatus, item Item) *api.ItemWrite {
	for i := range status.ItemWrites {
		if item.is(&status.ItemWrites[i]) {
			return &status.ItemWrites[i]
		}
	}
	return nil
}

// RevisionOf is the revision of a content that may not be there.
func RevisionOf(content *api.ItemContent) string {
	if content == nil {
		return ""
	}
	return content.Revision
}

// Write is a turn's wish to give an item another content.
type Write struct {
	Item Item
	// Live is the content in the draft now, nil when there is none.
	Live *api.ItemContent
	// After is the content to be, nil when the item shall go.
	After *api.ItemContent
	// Staged writes wait in the turn until it is accepted.
	Staged bool
}

// Intend records a write before anything is written. A staged one is complete
// with that; one that leads back to what the draft has is no write at all.
func Intend(status *api.TurnStatus, write Write) error {
	entry := FindWrite(status, write.Item)
	if entry == nil {
		if len(status.ItemWrites) >= MaxItems {
			return ErrFull
		}
		status.ItemWrites = append(status.ItemWrites, api.ItemWrite{Type: write.Item.Type, Name: write.Item.Name, Before: write.Live, Staged: write.Staged})
		entry = &status.ItemWrites[len(status.ItemWrites)-1]
	}
	if entry.State == api.ItemWritten {
		entry.Confirmed = &api.ConfirmedWrite{Action: entry.Action, After: entry.After}
	}
	if !entry.Staged && entry.Confirmed == nil {
		entry.Before = write.Live // nothing was written before this
	}
	entry.After, entry.State = write.After, api.ItemIntended
	entry.Action = actionOf(entry.Before, entry.After)
	if entry.Staged {
		settleStaged(status, entry)
		return nil
	}
	entry.Replaces = RevisionOf(write.Live)
	return nil
}

// settleStaged makes a staged workflow what the turn works on, and forgets a
// write that changes nothing.
func settleStaged(status *api.TurnStatus, entry *api.ItemWrite) {
	if RevisionOf(entry.Before) == RevisionOf(entry.After) {
		item := ItemOf(entry)
		status.ItemWrites = slices.DeleteFunc(status.ItemWrites, func(w api.ItemWrite) bool { return item.is(&w) })
		return
	}
	beginWith(status, entry)
}

// Confirm notes that an intended write is in the draft.
func Confirm(status *api.TurnStatus, item Item) {
	entry := FindWrite(status, item)
	if entry == nil {
		return
	}
	entry.State, entry.Replaces, entry.Confirmed = api.ItemWritten, "", nil
	beginWith(status, entry)
}

// Revoke forgets an intended write that never got into the draft.
func Revoke(status *api.TurnStatus, item Item) {
	entry := FindWrite(status, item)
	switch {
	case entry == nil || entry.State == api.ItemWritten:
		return
	case entry.Confirmed != nil:
		entry.Action, entry.After = entry.Confirmed.Action, entry.Confirmed.After
		Confirm(status, item)
	default:
		status.ItemWrites = slices.DeleteFunc(status.ItemWrites, func(w api.ItemWrite) bool { return item.is(&w) })
	}
}

// beginWith makes a workflow that the turn created its base and its working
// document: change sets go on from there.
func beginWith(status *api.TurnStatus, entry *api.ItemWrite) {
	if entry.Type != api.ItemWorkflow || entry.After == nil || status.BaseRevision != "" {
		return
	}
	status.BaseRevision, status.WorkingRevision = entry.After.Revision, entry.After.Revision
	status.Base = &api.ContentRef{Digest: entry.After.Digest}
}

func actionOf(before, after *api.ItemContent) api.ItemAction {
	switch {
	case after == nil:
		return api.ItemRemoved
	case before == nil:
		return api.ItemCreated
	}
	return api.ItemUpdated
}

// Verdict is what became of an intended write.
type Verdict int

const (
	// VerdictWritten means that the draft has the content.
	VerdictWritten Verdict = iota
	// VerdictOpen means that the draft is as the write expects it, and can still be written.
	VerdictOpen
	// VerdictLost means that somebody else changed the item.
	VerdictLost
)

// Judge tells what became of an intended write, given the item's live revision.
func Judge(write *api.ItemWrite, live string) Verdict {
	switch live {
	case RevisionOf(write.After):
		return VerdictWritten
	case write.Replaces:
		return VerdictOpen
	}
	return VerdictLost
}

// Unsettled are the items whose direct write nobody has confirmed.
func Unsettled(status *api.TurnStatus) []Item {
	var items []Item
	for i := range status.ItemWrites {
		if write := &status.ItemWrites[i]; write.State == api.ItemIntended && !write.Staged {
			items = append(items, ItemOf(write))
		}
	}
	return items
}

// Staged are the writes that wait for the turn's acceptance.
func Staged(status *api.TurnStatus) []*api.ItemWrite {
	var staged []*api.ItemWrite
	for i := range status.ItemWrites {
		if write := &status.ItemWrites[i]; write.Staged && write.State == api.ItemIntended {
			staged = append(staged, write)
		}
	}
	return staged
}

// HasEffect tells whether the agent did anything that a repeated prompt would
// do again.
func HasEffect(status *api.TurnStatus) bool {
	return len(status.ChangeSets) > 0 || len(status.ItemWrites) > 0
}

// Gives tells whether a content of an item, or its absence when the revision is
// empty, is what the turn recorded as its own: a result or staged item that may
// be or was applied, or a direct write.
func Gives(turn *api.Turn, item Item, revision string) bool {
	status := &turn.Status
	isApplicable := status.State == api.TurnAwaitingResolution || status.State == api.TurnApplied
	if item.Type == api.ItemWorkflow && isApplicable && revision != "" && revision == status.ResultRevision {
		return true
	}
	write := FindWrite(status, item)
	if write == nil || write.Staged && !isApplicable {
		return false
	}
	return revision == RevisionOf(write.After) || write.Confirmed != nil && revision == RevisionOf(write.Confirmed.After)
}
