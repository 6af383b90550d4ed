package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// contents is what editors of a composition change: layout and settings are no
// part of it.
type contents struct {
	// revision of the workflow; empty without one.
	revision string
	// items are action types and tools as JSON text, by `<type>/<name>`: their
	// order in the lists means nothing.
	items map[string]string
}

func contentsOf(c *api.Composition, v verdict) (contents, error) {
	if v.err != nil {
		return contents{}, v.err
	}
	result := contents{revision: v.revision, items: map[string]string{}}
	for _, item := range itemsOf(c) {
		text, err := json.Marshal(item.content)
		if err != nil {
			return contents{}, fmt.Errorf("encode %s/%s: %w", item.kind, item.name, err)
		}
		result.items[fmt.Sprintf("%s/%s", item.kind, item.name)] = string(text)
	}
	return result, nil
}

// item is one action type or tool.
type item struct {
	kind    api.ItemType
	name    string
	path    *field.Path
	content any
}

func itemsOf(c *api.Composition) []item {
	spec := field.NewPath("spec")
	var items []item
	for i := range c.Spec.ActionTypes {
		it := &c.Spec.ActionTypes[i]
		items = append(items, item{api.ItemActionType, it.Name, spec.Child("actionTypes").Key(it.Name), it})
	}
	for i := range c.Spec.Tools {
		it := &c.Spec.Tools[i]
		items = append(items, item{api.ItemTool, it.Name, spec.Child("tools").Key(it.Name), it})
	}
	return items
}

func (c contents) equal(other contents) bool {
	return c.revision == other.revision && maps.Equal(c.items, other.items)
}

// sameJSON compares two values exactly, whatever their spelling. One that cannot
// be read equals nothing.
func sameJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, errX := jsonvalue.Decode(a.Raw)
	y, errY := jsonvalue.Decode(b.Raw)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}
