// Package store keeps the journals of agent sessions in ConfigMaps, one for
// each chunk, owned by the session.
//
// Chunks are found by a label with the session's UID, so that a session that
// was deleted and made again has a journal of its own. Every write is a create,
// or an update of the version that was read: of two writers one is told that
// there is a conflict and begins anew. The package decides nothing about
// contents; that is the business of the package journal.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/journal"
)

const (
	// LabelJournal on a chunk holds the UID of its session.
	LabelJournal = "axiom.apitomy.io/journal"

	// Key of a chunk's lines in its ConfigMap.
	Key = "history.jsonl"

	annotationNumber   = "axiom.apitomy.io/journal-chunk"
	annotationFirst    = "axiom.apitomy.io/journal-first"
	annotationLast     = "axiom.apitomy.io/journal-last"
	annotationPosition = "axiom.apitomy.io/journal-position"
	annotationMarks    = "axiom.apitomy.io/journal-marks"
	annotationSealed   = "axiom.apitomy.io/journal-sealed"

	// markSeparator stands between marks; no key has one.
	markSeparator = " "

	// maxRaces is how often in a row somebody else may be faster with a journal.
	maxRaces = 5
)

// ErrDamaged says that a chunk lacks what the store wrote on it.
var ErrDamaged = errors.New("journal is damaged")

// Store reads and writes journals.
type Store struct {
	Client client.Client
	// Reader must read live: a cached one could miss what another replica wrote.
	Reader client.Reader
}

// Extent tells which part of a journal is kept, and how far it goes.
type Extent struct {
	// Chunks that are kept.
	Chunks int
	// First and Last are the numbers of the oldest and the newest event that are
	// kept; 0 when none is.
	First, Last int64
	// Position up to which the runner's events are in the journal.
	Position journal.Position
}

// Extent returns which part of the session's journal is kept.
func (s Store) Extent(ctx context.Context, session *api.AgentSession) (Extent, error) {
	chunks, err := s.list(ctx, session)
	if err != nil || len(chunks) == 0 {
		return Extent{}, err
	}
	newest := chunks[len(chunks)-1]
	return Extent{Chunks: len(chunks), First: chunks[0].First, Last: newest.Last, Position: newest.Position}, nil
}

// Position returns up to where the runner's events are in the session's journal.
func (s Store) Position(ctx context.Context, session *api.AgentSession) (journal.Position, error) {
	extent, err := s.Extent(ctx, session)
	return extent.Position, err
}

// Walk gives the events behind a number to visit, in order, until that returns
// an error, and returns the number of the newest event there is. Chunks are read
// one at a time.
func (s Store) Walk(ctx context.Context, session *api.AgentSession, after int64, visit func(journal.Line) error) (int64, error) {
	chunks, err := s.list(ctx, session)
	if err != nil {
		return after, err
	}
	last := after
	for _, chunk := range chunks {
		if chunk.Last <= after {
			continue
		}
		full, _, err := s.get(ctx, session, chunk.Number)
		if apierrors.IsNotFound(err) {
			continue // it became too old in the meantime
		}
		if err != nil {
			return last, err
		}
		for _, line := range full.Lines(last) {
			if err := visit(line); err != nil {
				return last, err
			}
		}
		last = max(last, full.Last)
	}
	return last, nil
}

// Load returns the events of the session's journal since the conversation last
// began.
func (s Store) Load(ctx context.Context, session *api.AgentSession) ([]journal.Event, error) {
	list := &corev1.ConfigMapList{}
	if err := s.Reader.List(ctx, list, ChunksOf(session)...); err != nil {
		return nil, fmt.Errorf("list journal chunks: %w", err)
	}
	chunks := make([]journal.Chunk, 0, len(list.Items))
	for i := range list.Items {
		chunk, err := read(&list.Items[i].ObjectMeta)
		if err != nil {
			return nil, err
		}
		chunk.Text = list.Items[i].Data[Key]
		chunks = append(chunks, chunk)
	}
	slices.SortFunc(chunks, byNumber)
	texts := make([]string, 0, len(chunks))
	for _, chunk := range chunks {
		texts = append(texts, chunk.Text)
	}
	return journal.Load(texts...), nil
}

// Append adds a batch of the session's live pod to its journal and returns the
// sequence up to which the pod's events are in it. The error is a
// [*journal.GapError] when events are missing before the batch, and a conflict
// or already-exists error of the API when somebody else was faster.
func (s Store) Append(ctx context.Context, session *api.AgentSession, batch []journal.Entry) (int64, error) {
	attempt := session.Status.Attempt
	end, err := s.end(ctx, session)
	if err != nil {
		return 0, err
	}
	fresh, err := end.newest.Position.Accept(attempt, batch)
	if err != nil {
		return 0, err
	}
	written, err := s.add(ctx, session, end, fresh)
	return written.Position.In(attempt), err
}

// Record adds an event of the operator's own to the session's journal, once for
// each key, which must have no space in it. A repetition long after is not
// noticed. The error is a conflict or already-exists error of the API when
// somebody else was faster again and again.
func (s Store) Record(ctx context.Context, session *api.AgentSession, key string, event journal.Event) error {
	var err error
	for range maxRaces {
		err = s.record(ctx, session, key, event)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

func (s Store) record(ctx context.Context, session *api.AgentSession, key string, event journal.Event) error {
	end, err := s.end(ctx, session)
	if err != nil || end.newest.Has(key) {
		return err
	}
	_, err = s.add(ctx, session, end, []journal.Entry{{Event: event, Key: key}})
	return err
}

// end is where a journal goes on.
type end struct {
	// chunks without their lines, oldest first.
	chunks []journal.Chunk
	// newest of them with its lines, and the object that holds it; zero and nil
	// when there is none.
	newest journal.Chunk
	object *corev1.ConfigMap
}

func (s Store) end(ctx context.Context, session *api.AgentSession) (end, error) {
	chunks, err := s.list(ctx, session)
	if err != nil || len(chunks) == 0 {
		return end{}, err
	}
	newest, object, err := s.get(ctx, session, chunks[len(chunks)-1].Number)
	return end{chunks: chunks, newest: newest, object: object}, err
}

// add writes entries at the end and returns the chunk that is the newest then.
func (s Store) add(ctx context.Context, session *api.AgentSession, at end, entries []journal.Entry) (journal.Chunk, error) {
	changed := at.newest.Append(session.Status.Attempt, entries)
	if len(changed) == 0 {
		return at.newest, nil
	}
	if err := s.write(ctx, session, changed, at.object); err != nil {
		return journal.Chunk{}, err
	}
	last := changed[len(changed)-1]
	return last, s.prune(ctx, session, at.chunks, last.Number)
}

// write stores chunks in order; the object is that of the newest one before.
func (s Store) write(ctx context.Context, session *api.AgentSession, chunks []journal.Chunk, newest *corev1.ConfigMap) error {
	for _, chunk := range chunks {
		if newest != nil && newest.Name == name(session, chunk.Number) {
			fill(newest, chunk)
			if err := s.Client.Update(ctx, newest); err != nil {
				return fmt.Errorf("update journal chunk: %w", err)
			}
			continue
		}
		if err := s.Client.Create(ctx, newObject(session, chunk)); err != nil {
			return fmt.Errorf("create journal chunk: %w", err)
		}
	}
	return nil
}

// prune deletes those of the chunks that are too old now that the newest has
// the given number.
func (s Store) prune(ctx context.Context, session *api.AgentSession, chunks []journal.Chunk, newest int64) error {
	for _, chunk := range chunks {
		if chunk.Number > newest-journal.MaxChunks {
			return nil
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name(session, chunk.Number), Namespace: session.Namespace,
		}}
		if err := s.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete journal chunk: %w", err)
		}
	}
	return nil
}

// list returns the session's chunks without their lines, oldest first.
func (s Store) list(ctx context.Context, session *api.AgentSession) ([]journal.Chunk, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := s.Reader.List(ctx, list, ChunksOf(session)...); err != nil {
		return nil, fmt.Errorf("list journal chunks: %w", err)
	}
	chunks := make([]journal.Chunk, 0, len(list.Items))
	for i := range list.Items {
		chunk, err := read(&list.Items[i].ObjectMeta)
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, chunk)
	}
	slices.SortFunc(chunks, byNumber)
	return chunks, nil
}

func (s Store) get(ctx context.Context, session *api.AgentSession, number int64) (journal.Chunk, *corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: session.Namespace, Name: name(session, number)}
	if err := s.Reader.Get(ctx, key, object); err != nil {
		return journal.Chunk{}, nil, fmt.Errorf("read journal chunk: %w", err)
	}
	chunk, err := read(&object.ObjectMeta)
	if err != nil {
		return journal.Chunk{}, nil, err
	}
	chunk.Text = object.Data[Key]
	return chunk, object, nil
}

// ChunksOf selects the objects that hold the session's journal.
func ChunksOf(session *api.AgentSession) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(session.Namespace),
		client.MatchingLabels{LabelJournal: string(session.UID)},
	}
}

func name(session *api.AgentSession, number int64) string {
	return fmt.Sprintf("%s-journal-%d", session.Name, number)
}

func byNumber(a, b journal.Chunk) int {
	return cmp.Compare(a.Number, b.Number)
}

func newObject(session *api.AgentSession, chunk journal.Chunk) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            name(session, chunk.Number),
		Namespace:       session.Namespace,
		Labels:          map[string]string{LabelJournal: string(session.UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(session, api.GroupVersion.WithKind("AgentSession"))},
	}}
	fill(object, chunk)
	return object
}

func fill(object *corev1.ConfigMap, chunk journal.Chunk) {
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[annotationNumber] = strconv.FormatInt(chunk.Number, 10)
	object.Annotations[annotationFirst] = strconv.FormatInt(chunk.First, 10)
	object.Annotations[annotationLast] = strconv.FormatInt(chunk.Last, 10)
	object.Annotations[annotationPosition] = chunk.Position.String()
	object.Annotations[annotationMarks] = strings.Join(chunk.Marks, markSeparator)
	if chunk.Sealed {
		object.Annotations[annotationSealed] = "true"
	}
	object.Data = map[string]string{Key: chunk.Text}
}

// read returns a chunk without its lines.
func read(meta *metav1.ObjectMeta) (journal.Chunk, error) {
	chunk := journal.Chunk{
		Sealed: meta.Annotations[annotationSealed] == "true",
		Marks:  strings.Fields(meta.Annotations[annotationMarks]),
	}
	for annotation, figure := range map[string]*int64{
		annotationNumber: &chunk.Number, annotationFirst: &chunk.First, annotationLast: &chunk.Last,
	} {
		value, err := strconv.ParseInt(meta.Annotations[annotation], 10, 64)
		if err != nil {
			return chunk, fmt.Errorf("read annotation %s of journal chunk %s: %w: %w", annotation, meta.Name, ErrDamaged, err)
		}
		*figure = value
	}
	var err error
	if chunk.Position, err = journal.ParsePosition(meta.Annotations[annotationPosition]); err != nil {
		return chunk, fmt.Errorf("read position of journal chunk %s: %w: %w", meta.Name, ErrDamaged, err)
	}
	return chunk, nil
}
