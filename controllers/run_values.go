package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// runShelf decides which values of a status stay in it and which are kept
// outside, and collects the latter. It stores nothing itself.
type runShelf struct {
	// limit in bytes up to which a value stays inline.
	limit int
	// stored are the values that a status named before, by digest.
	stored map[string]api.ValueRef
	// pending are those that must be stored before the status is written.
	pending map[string][]byte
}

// place returns the value inline or as a reference, one of them nil.
func (s *runShelf) place(v any) (*runtime.RawExtension, *api.ValueRef, error) {
	data, err := encodeRunValue(v)
	if err != nil {
		return nil, nil, err
	}
	if len(data) <= s.limit {
		return &runtime.RawExtension{Raw: data}, nil, nil
	}
	ref := s.keep(data)
	return nil, &ref, nil
}

// encodeRunValue writes a value with its members in order, so that equal values
// have one digest. It is not canonical JSON, which would round large integers.
func encodeRunValue(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// keep puts a value outside, whatever its size.
func (s *runShelf) keep(data []byte) api.ValueRef {
	digest := content.Digest(data)
	if ref, ok := s.stored[digest]; ok {
		return ref
	}
	if s.pending == nil {
		s.pending = map[string][]byte{}
	}
	s.pending[digest] = data
	return api.ValueRef{Digest: digest, ConfigMap: content.Name(digest), Bytes: int64(len(data))}
}

// placeValues returns an object inline or as a reference; an empty one is
// neither.
func (s *runShelf) placeValues(values engine.Values) (*runtime.RawExtension, *api.ValueRef, error) {
	if len(values) == 0 {
		return nil, nil, nil
	}
	return s.place(map[string]any(values))
}

// placeContext splits a context into what stays inline and what is kept
// outside, key by key.
func (s *runShelf) placeContext(values engine.Values, refs map[string]engine.ContextRef) (*runtime.RawExtension, map[string]api.ValueRef, error) {
	inline, outside := map[string]json.RawMessage{}, map[string]api.ValueRef{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		raw, ref, err := s.place(values[key])
		if err != nil {
			return nil, nil, fmt.Errorf("context key %q: %w", key, err)
		}
		if ref != nil {
			outside[key] = *ref
			continue
		}
		inline[key] = raw.Raw
	}
	for key, ref := range refs {
		outside[key] = api.ValueRef{Digest: ref.Digest, ConfigMap: ref.ConfigMap, Bytes: int64(ref.Bytes)}
	}
	data, err := json.Marshal(inline)
	if err != nil {
		return nil, nil, fmt.Errorf("encode context: %w", err)
	}
	return &runtime.RawExtension{Raw: data}, outside, nil
}

// runStoredValues are the references that a status holds already.
func runStoredValues(status *api.WorkflowRunStatus) map[string]api.ValueRef {
	stored := map[string]api.ValueRef{}
	add := func(ref *api.ValueRef) {
		if ref != nil {
			stored[ref.Digest] = *ref
		}
	}
	for i := range status.History.Entries {
		add(status.History.Entries[i].InputRef)
		add(status.History.Entries[i].OutputRef)
		add(status.History.Entries[i].ReceiptRef)
	}
	add(status.OutputsRef)
	instances := make([]*api.RunInstance, 0, 1+len(status.Frames))
	if status.Instance != nil {
		instances = append(instances, status.Instance)
	}
	for i := range status.Frames {
		instances = append(instances, &status.Frames[i].Instance)
	}
	for _, instance := range instances {
		for _, ref := range instance.ContextRefs {
			add(&ref)
		}
		for i := range instance.ActiveBranches {
			add(instance.ActiveBranches[i].InputRef)
		}
	}
	for i := range status.Calls {
		add(status.Calls[i].StateRef)
	}
	return stored
}

// hydrate puts the values that are kept outside back into an instance, which
// is changed in place. References are gone from it afterwards.
func (r *WorkflowRunReconciler) hydrate(ctx context.Context, run *api.WorkflowRun, in *engine.Instance) error {
	return r.store().hydrateInstance(ctx, run, run.Status.Instance, in)
}
