package expression

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// An object shows a JSON object as a CEL map. It differs from the map of the library in that its keys come in order, so
// that an expression gives the same list each time, and in that it is small: one is made whenever an expression
// mentions it.
type object struct {
	members map[string]any
	adapter *adapter
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	member, found := o.members[string(name)]
	if !found {
		return nil, false
	}
	return o.adapter.NativeToValue(member), true
}

// Get implements [traits.Indexer].
func (o *object) Get(key ref.Val) ref.Val {
	if member, found := o.Find(key); found {
		return member
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements [traits.Container].
func (o *object) Contains(key ref.Val) ref.Val {
	_, found := o.Find(key)
	return types.Bool(found)
}

// Iterator implements [traits.Iterable]: the keys in bytewise order.
func (o *object) Iterator() traits.Iterator {
	names := slices.Sorted(maps.Keys(o.members))
	return &iterator{size: len(names), at: func(i int) ref.Val { return types.String(names[i]) }}
}

// Size implements [traits.Sizer].
func (o *object) Size() ref.Val { return types.Int(len(o.members)) }

// IsZeroValue implements [traits.Zeroer].
func (o *object) IsZeroValue() bool { return len(o.members) == 0 }

// Type implements [ref.Val].
func (o *object) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (o *object) Value() any { return o.members }

// Equal implements [ref.Val].
func (o *object) Equal(other ref.Val) ref.Val {
	return types.NewStringInterfaceMap(o.adapter, o.members).Equal(other)
}

// ConvertToType implements [ref.Val].
func (o *object) ConvertToType(target ref.Type) ref.Val { return convertAggregate(o, target) }

// ConvertToNative implements [ref.Val].
func (o *object) ConvertToNative(target reflect.Type) (any, error) {
	return nil, fmt.Errorf("convert map to %v", target)
}

// A sequence shows a JSON list as a CEL list. It is smaller than the list of the library.
type sequence struct {
	elements []any
	adapter  *adapter
}

// Get implements [traits.Indexer].
func (s *sequence) Get(index ref.Val) ref.Val {
	i, err := types.IndexOrError(index)
	switch {
	case err != nil:
		return types.WrapErr(err)
	case i < 0 || i >= len(s.elements):
		return types.NewErr("index out of bounds: %d", i)
	}
	return s.at(i)
}

func (s *sequence) at(i int) ref.Val { return s.adapter.NativeToValue(s.elements[i]) }

// Iterator implements [traits.Iterable].
func (s *sequence) Iterator() traits.Iterator { return &iterator{size: len(s.elements), at: s.at} }

// Size implements [traits.Sizer].
func (s *sequence) Size() ref.Val { return types.Int(len(s.elements)) }

// IsZeroValue implements [traits.Zeroer].
func (s *sequence) IsZeroValue() bool { return len(s.elements) == 0 }

// Add implements [traits.Adder].
func (s *sequence) Add(other ref.Val) ref.Val { return s.dynamic().Add(other) }

// Contains implements [traits.Container].
func (s *sequence) Contains(value ref.Val) ref.Val { return s.dynamic().Contains(value) }

// Equal implements [ref.Val].
func (s *sequence) Equal(other ref.Val) ref.Val { return s.dynamic().Equal(other) }

// dynamic is the list of the library, which does the rest.
func (s *sequence) dynamic() traits.Lister { return types.NewDynamicList(s.adapter, s.elements) }

// Type implements [ref.Val].
func (s *sequence) Type() ref.Type { return types.ListType }

// Value implements [ref.Val].
func (s *sequence) Value() any { return s.elements }

// ConvertToType implements [ref.Val].
func (s *sequence) ConvertToType(target ref.Type) ref.Val { return convertAggregate(s, target) }

// ConvertToNative implements [ref.Val].
func (s *sequence) ConvertToNative(target reflect.Type) (any, error) {
	return nil, fmt.Errorf("convert list to %v", target)
}

// convertAggregate converts a list or a map, which become nothing else.
func convertAggregate(value ref.Val, target ref.Type) ref.Val {
	switch target {
	case value.Type():
		return value
	case types.TypeType:
		return value.Type().(ref.Val)
	}
	return types.NewErr("type conversion error from '%s' to '%s'", value.Type(), target)
}

// An iterator goes through size values. As a value it is nothing: the embedded one is nil, for the interpreter only
// asks for the next.
type iterator struct {
	ref.Val
	size int
	next int
	at   func(i int) ref.Val
}

// HasNext implements [traits.Iterator].
func (it *iterator) HasNext() ref.Val { return types.Bool(it.next < it.size) }

// Next implements [traits.Iterator].
func (it *iterator) Next() ref.Val {
	it.next++
	return it.at(it.next - 1)
}

// An orderedMap is the map of a literal. Its keys come in the order of their types, then of their values.
type orderedMap struct {
	traits.Mapper
	keys []ref.Val
}

var errKey = errors.New("a map key must be a string, an int, a uint or a bool")

// orderMap makes an orderedMap of what a map literal gives, and hands on its errors.
func orderMap(value ref.Val) ref.Val {
	literal, ok := value.(traits.Mapper)
	if !ok {
		return value
	}
	keys := make([]ref.Val, 0, sizeOf(literal))
	for it := literal.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		if !isKey(key) {
			return types.WrapErr(errKey)
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return &orderedMap{Mapper: literal, keys: keys}
}

func isKey(value ref.Val) bool {
	switch value.(type) {
	case types.String, types.Int, types.Uint, types.Bool:
		return true
	}
	return false
}

func compareKeys(a, b ref.Val) int {
	if byType := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); byType != 0 {
		return byType
	}
	return int(a.(traits.Comparer).Compare(b).(types.Int))
}

// Iterator implements [traits.Iterable].
func (m *orderedMap) Iterator() traits.Iterator {
	return &iterator{size: len(m.keys), at: func(i int) ref.Val { return m.keys[i] }}
}

// IsZeroValue implements [traits.Zeroer].
func (m *orderedMap) IsZeroValue() bool { return len(m.keys) == 0 }
