package item

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Tree is the JSON tree of a stored content.
func Tree(data []byte) (map[string]any, error) {
	value, err := jsonvalue.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode content: %w", err)
	}
	tree, isObject := value.(map[string]any)
	if !isObject {
		return nil, errors.New("content is no object")
	}
	return tree, nil
}

// Set gives an item of a draft the stored content, or adds it.
func Set(comp *api.Composition, kind api.ItemType, data []byte) error {
	spec := &comp.Spec
	switch kind {
	case api.ItemWorkflow:
		spec.Workflow = &runtime.RawExtension{Raw: data}
	case api.ItemActionType:
		var named api.NamedActionType
		if err := json.Unmarshal(data, &named); err != nil {
			return fmt.Errorf("decode action type: %w", err)
		}
		spec.ActionTypes = replace(spec.ActionTypes, named, func(a api.NamedActionType) bool { return a.Name == named.Name })
	case api.ItemTool:
		var named api.NamedTool
		if err := json.Unmarshal(data, &named); err != nil {
			return fmt.Errorf("decode tool: %w", err)
		}
		spec.Tools = replace(spec.Tools, named, func(t api.NamedTool) bool { return t.Name == named.Name })
	}
	return nil
}

// replace puts an entry in the place of the one that it is instead of, or at the end.
func replace[T any](list []T, entry T, isSame func(T) bool) []T {
	list = slices.Clone(list)
	i := slices.IndexFunc(list, isSame)
	if i < 0 {
		return append(list, entry)
	}
	list[i] = entry
	return list
}

// Unset takes an item out of a draft.
func Unset(comp *api.Composition, kind api.ItemType, name string) {
	spec := &comp.Spec
	switch kind {
	case api.ItemWorkflow:
		spec.Workflow = nil
	case api.ItemActionType:
		spec.ActionTypes = slices.DeleteFunc(slices.Clone(spec.ActionTypes), func(a api.NamedActionType) bool { return a.Name == name })
	case api.ItemTool:
		spec.Tools = slices.DeleteFunc(slices.Clone(spec.Tools), func(t api.NamedTool) bool { return t.Name == name })
	}
}
