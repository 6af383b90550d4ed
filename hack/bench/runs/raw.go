package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rawEntries are the closed nodes in the status of a raw write, which makes it
// that of a run in the first quarter of a chain of 50.
const rawEntries = 8

// rawStatus is a status of the shape and size that a run has after so many
// closed nodes: the cost of a write lies in its members more than in its bytes.
func rawStatus(mark, closed int) map[string]any {
	const at = "2026-01-01T00:00:00.000000000Z"
	var conditions, entries []any
	for _, kind := range []string{"Accepted", "Waiting", "Reconciling", "Stalled", "Ready"} {
		conditions = append(conditions, map[string]any{
			"type": kind, "status": "True", "reason": "HumanTask", "message": "n1#1", "observedGeneration": int64(1), "lastTransitionTime": at,
		})
	}
	visits := map[string]any{}
	for i := range closed {
		visits[nodeID(i)] = int64(1)
		entries = append(entries, map[string]any{
			"seq": int64(i), "activation": activation(i), "node": nodeID(i), "name": "Ask", "type": "human-task", "branch": "root", "edge": "e1",
			"enteredOn": at, "completedOn": at, "outcome": "Completed", "title": "Step of run", "by": "ada",
			"input": map[string]any{"Ref": "run"}, "output": map[string]any{"ok": true},
		})
	}
	return map[string]any{
		"mark": int64(mark), "phase": "Waiting", "conditions": conditions, "observedGeneration": int64(1),
		"definition": map[string]any{"snapshot": "chain-0123456789", "revision": "sha256:" + strings.Repeat("0", 64)},
		"history":    map[string]any{"total": int64(closed), "entries": entries},
		"instance": map[string]any{
			"status": "waiting", "step": int64(closed), "visits": visits, "context": map[string]any{"ref": "run", "ok": true},
			"activeBranches": []any{map[string]any{
				"branch": "root", "node": "n9", "activation": "n9#1", "edge": "e9", "enteredOn": at, "title": "Step of run",
				"child": map[string]any{"kind": "HumanTask", "name": "run-1-0123456789abcdef"}, "input": map[string]any{"Ref": "run"},
			}},
		},
	}
}

// probe makes an object for raw writes. It has a spec, like everybody's objects:
// of one without any the API server would not note who manages which field.
func (w *world) probe(ctx context.Context, namespace string) (*unstructured.Unstructured, error) {
	p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"for": "raw writes"}}}
	p.SetGroupVersionKind(probeKind)
	p.SetNamespace(namespace)
	p.SetName(w.name("probe"))
	if err := w.admin.Create(ctx, p); err != nil {
		return nil, fmt.Errorf("create probe: %w", err)
	}
	return p, nil
}

// writeRaw writes a probe's whole status once, with its resource version.
func (w *world) writeRaw(ctx context.Context, p *unstructured.Unstructured, mark int) error {
	return w.writeStatus(ctx, p, rawStatus(mark, rawEntries))
}

func (w *world) writeStatus(ctx context.Context, p *unstructured.Unstructured, status map[string]any) error {
	p.Object["status"] = status
	if err := w.admin.Status().Update(ctx, p); err != nil {
		return fmt.Errorf("write probe: %w", err)
	}
	return nil
}

// relay is one raw write, watched, answered by another raw write, watched: what
// no engine that keeps its state in this API server can do without.
type relay struct {
	world       *world
	first, then *unstructured.Unstructured
	seen        watch.Interface
	mark        int
}

func (w *world) newRelay(ctx context.Context, namespace string) (*relay, error) {
	r := &relay{world: w}
	var err error
	if r.first, err = w.probe(ctx, namespace); err != nil {
		return nil, err
	}
	if r.then, err = w.probe(ctx, namespace); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(probeKind)
	r.seen, err = w.admin.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch probes: %w", err)
	}
	return r, nil
}

func (r *relay) close() { r.seen.Stop() }

// run passes the relay once.
func (r *relay) run(ctx context.Context) (time.Duration, error) {
	return r.pass(ctx, rawEntries, rawEntries)
}

// pass writes one object after the other, with the status of a run after so many
// closed nodes; each is seen before the next is written.
func (r *relay) pass(ctx context.Context, firstClosed, thenClosed int) (time.Duration, error) {
	r.mark++
	began := time.Now()
	for _, leg := range []struct {
		probe  *unstructured.Unstructured
		closed int
	}{{r.first, firstClosed}, {r.then, thenClosed}} {
		if err := r.world.writeStatus(ctx, leg.probe, rawStatus(r.mark, leg.closed)); err != nil {
			return 0, err
		}
		if err := r.await(ctx, leg.probe, r.mark); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// node makes the writes that a human task costs whoever keeps a run's history in
// its status: a new object, its status, and that of the run.
func (r *relay) node(ctx context.Context, closed int) error {
	task, err := r.world.probe(ctx, r.first.GetNamespace())
	if err != nil {
		return err
	}
	if err := r.await(ctx, task, 0); err != nil {
		return err
	}
	r.first = task
	_, err = r.pass(ctx, 0, closed)
	return err
}

// await waits until a mark is seen on a probe, of one without status for the
// probe itself.
func (r *relay) await(ctx context.Context, p *unstructured.Unstructured, mark int) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-r.seen.ResultChan():
			if !open {
				return errors.New("the watch of probes ended")
			}
			seen, _ := event.Object.(*unstructured.Unstructured)
			if seen == nil || seen.GetName() != p.GetName() {
				continue
			}
			if seenMark, _, _ := unstructured.NestedInt64(seen.Object, "status", "mark"); seenMark == int64(mark) {
				return nil
			}
		}
	}
}

// rawRate is how many raw status writes the server takes in a second, with so
// many writers at a time, each on an object of its own.
func (w *world) rawRate(ctx context.Context, namespace string, writers, writes int) (float64, error) {
	probes := make([]*unstructured.Unstructured, writers)
	for i := range probes {
		var err error
		if probes[i], err = w.probe(ctx, namespace); err != nil {
			return 0, err
		}
	}
	var busy sync.WaitGroup
	errs := make([]error, writers)
	each := writes / writers
	began := time.Now()
	for i, p := range probes {
		busy.Go(func() {
			for n := 1; n <= each && errs[i] == nil; n++ {
				errs[i] = w.writeRaw(ctx, p, n)
			}
		})
	}
	busy.Wait()
	return float64(each*writers) / time.Since(began).Seconds(), errors.Join(errs...)
}
