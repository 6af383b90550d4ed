package controllers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// snapshotData is what a ControllerRevision of a composition holds.
type snapshotData struct {
	Workflow    *runtime.RawExtension `json:"workflow,omitempty"`
	ActionTypes []api.NamedActionType `json:"actionTypes,omitempty"`
	Tools       []api.NamedTool       `json:"tools,omitempty"`
	// Generation of the composition that this is the content of.
	Generation int64 `json:"generation"`
	// At is when the snapshot was taken, RFC 3339.
	At string `json:"at"`
	// Turn is the composition's turn annotation at that generation; an edit that
	// keeps it is nobody's but its author's.
	Turn string `json:"turn,omitempty"`
	// Write is the mark of the operator's latest write at that generation.
	Write string         `json:"write,omitempty"`
	Items []snapshotItem `json:"items"`
}

// snapshotItem is one item's history: what it is now, and who made it so.
type snapshotItem struct {
	Type api.ItemType `json:"type"`
	Name string       `json:"name"`
	// ContentRevision is empty when the item was removed.
	ContentRevision string     `json:"contentRevision"`
	Author          api.Author `json:"author"`
	Username        string     `json:"username,omitempty"`
	Turn            string     `json:"turn,omitempty"`
	// Generation at which the item got this content.
	Generation int64 `json:"generation"`
}

// snapshotRecord is a snapshot and the object that holds it.
type snapshotRecord struct {
	name string
	// uid and version of the object as it was read.
	uid     types.UID
	version string
	data    snapshotData
}

// Snapshot is an immutable definition that a run may execute.
type Snapshot struct {
	// Name of the ControllerRevision.
	Name string
	// Revision of the workflow; empty when the snapshot has none.
	Revision string
	// Workflow document, nil when the snapshot has none.
	Workflow changeset.Document
	// ActionTypes and Tools of the composition at that time.
	ActionTypes []api.NamedActionType
	Tools       []api.NamedTool
}

// findSnapshot returns the newest snapshot of the composition whose workflow
// has the revision, nil when history has none.
func findSnapshot(ctx context.Context, reader client.Reader, comp *api.Composition, revision string) (*Snapshot, error) {
	records, err := listSnapshots(ctx, reader, comp)
	if err != nil {
		return nil, err
	}
	for _, record := range slices.Backward(records) {
		if record.data.workflowRevision() == revision {
			return record.snapshot()
		}
	}
	return nil, nil //nolint:nilnil // an unknown revision is an ordinary answer
}

// loadSnapshot returns the snapshot of a name, nil when it does not exist.
func loadSnapshot(ctx context.Context, reader client.Reader, namespace, name string) (*Snapshot, error) {
	object := &appsv1.ControllerRevision{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a lost snapshot is an ordinary answer
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	record, err := readSnapshot(object)
	if err != nil {
		return nil, err
	}
	return record.snapshot()
}

// listSnapshots returns the composition's history, oldest first.
func listSnapshots(ctx context.Context, reader client.Reader, comp *api.Composition) ([]snapshotRecord, error) {
	list := &appsv1.ControllerRevisionList{}
	err := reader.List(ctx, list, client.InNamespace(comp.Namespace), client.MatchingLabels{api.LabelComposition: comp.Name})
	if err != nil {
		return nil, fmt.Errorf("list snapshots of composition %s: %w", comp.Name, err)
	}
	var records []snapshotRecord
	for i := range list.Items {
		if !metav1.IsControlledBy(&list.Items[i], comp) {
			continue
		}
		record, err := readSnapshot(&list.Items[i])
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b snapshotRecord) int { return cmp.Compare(a.data.Generation, b.data.Generation) })
	return records, nil
}

func readSnapshot(object *appsv1.ControllerRevision) (snapshotRecord, error) {
	record := snapshotRecord{name: object.Name, uid: object.UID, version: object.ResourceVersion}
	if err := json.Unmarshal(object.Data.Raw, &record.data); err != nil {
		return record, fmt.Errorf("decode snapshot %s: %w", object.Name, err)
	}
	return record, nil
}

func (r snapshotRecord) snapshot() (*Snapshot, error) {
	doc, err := turns.Document(r.data.Workflow)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", r.name, err)
	}
	return &Snapshot{
		Name: r.name, Revision: r.data.workflowRevision(), Workflow: doc, ActionTypes: r.data.ActionTypes, Tools: r.data.Tools,
	}, nil
}

func (d snapshotData) workflowRevision() string {
	entry, _ := d.workflow()
	return entry.ContentRevision
}

// workflow is the entry of the workflow that the snapshot has; one that was
// removed or renamed away stands for it only if there is no other.
func (d snapshotData) workflow() (snapshotItem, bool) {
	found, known := snapshotItem{}, false
	for _, item := range d.Items {
		if item.Type != api.ItemWorkflow {
			continue
		}
		if item.ContentRevision != "" {
			return item, true
		}
		found, known = item, true
	}
	return found, known
}

func (d snapshotData) item(kind api.ItemType, name string) (snapshotItem, bool) {
	i := slices.IndexFunc(d.Items, func(item snapshotItem) bool { return item.Type == kind && item.Name == name })
	if i < 0 {
		return snapshotItem{}, false
	}
	return d.Items[i], true
}

// has tells whether the item exists in the snapshot: a removed one does not.
func (d snapshotData) has(kind api.ItemType, name string) bool {
	item, known := d.item(kind, name)
	return known && item.ContentRevision != ""
}

// snapshotName is the same for every controller that takes the snapshot.
func snapshotName(comp *api.Composition, generation int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", comp.UID, generation))
	return comp.Name + "-" + hex.EncodeToString(sum[:5])
}

func snapshotObject(comp *api.Composition, data snapshotData) (*appsv1.ControllerRevision, error) {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false) // escapes could make a large draft outgrow the object
	if err := encoder.Encode(data); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            snapshotName(comp, data.Generation),
			Namespace:       comp.Namespace,
			Labels:          map[string]string{api.LabelComposition: comp.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(comp, api.GroupVersion.WithKind(compositionKind))},
		},
		Revision: data.Generation,
		Data:     runtime.RawExtension{Raw: bytes.TrimSpace(raw.Bytes())},
	}, nil
}

// nextSnapshot returns the composition's snapshot at its present generation,
// and whether any content differs from the newest one there is.
func nextSnapshot(state compositionState, previous snapshotData, by authorship, now time.Time) (snapshotData, bool) {
	comp := state.comp
	data := snapshotData{
		Workflow:    comp.Spec.Workflow,
		ActionTypes: comp.Spec.ActionTypes,
		Tools:       comp.Spec.Tools,
		Generation:  comp.Generation,
		At:          now.UTC().Format(time.RFC3339),
		Turn:        comp.Annotations[api.AnnotationTurn],
		Write:       comp.Annotations[api.AnnotationWrite],
		Items:       []snapshotItem{},
	}
	changed := false
	for _, view := range state.items {
		entry, known := previous.item(view.kind, view.name)
		if !known || entry.ContentRevision != view.revision {
			changed = true
			entry = snapshotItem{Type: view.kind, Name: view.name, ContentRevision: view.revision, Generation: comp.Generation}
			entry.attribute(by)
		}
		data.Items = append(data.Items, entry)
	}
	for _, entry := range previous.Items {
		if _, exists := data.item(entry.Type, entry.Name); exists || entry.ContentRevision == "" {
			continue
		}
		changed = true
		removal := snapshotItem{Type: entry.Type, Name: entry.Name, Generation: comp.Generation}
		removal.attribute(by)
		if successor, renamed := data.workflow(); entry.Type == api.ItemWorkflow && renamed {
			removal.Author, removal.Username, removal.Turn = successor.Author, successor.Username, successor.Turn
		}
		data.Items = append(data.Items, removal)
	}
	return data, changed
}

func (i *snapshotItem) attribute(by authorship) {
	made := by.of(turns.Item{Type: i.Type, Name: i.Name}, i.ContentRevision)
	i.Author, i.Username, i.Turn = made.author, made.username, made.turn
}

// newestAt is the newest of a history's records that is not newer than a
// generation; the zero record when all are.
func newestAt(records []snapshotRecord, generation int64) snapshotRecord {
	found := snapshotRecord{}
	for _, record := range records {
		if record.data.Generation <= generation {
			found = record
		}
	}
	return found
}
