package expression

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// equal compares two values as CEL does and charges for each pair of parts it looks at. The library compares without
// counting, and values can share parts so often that comparing them would not end.
func equal(m *meter, a, b ref.Val) bool {
	m.charge(stepCost)
	switch a := a.(type) {
	case traits.Lister:
		other, ok := b.(traits.Lister)
		return ok && equalLists(m, a, other)
	case traits.Mapper:
		other, ok := b.(traits.Mapper)
		return ok && equalMaps(m, a, other)
	case *types.Optional:
		other, ok := b.(*types.Optional)
		return ok && equalOptionals(m, a, other)
	}
	if length := textLength(a); length == textLength(b) {
		m.chargeText(length)
	}
	return types.Equal(a, b) == types.True
}

func equalLists(m *meter, a, b traits.Lister) bool {
	if sizeOf(a) != sizeOf(b) {
		return false
	}
	for x, y := a.Iterator(), b.Iterator(); x.HasNext() == types.True; {
		if !equal(m, x.Next(), y.Next()) {
			return false
		}
	}
	return true
}

func equalMaps(m *meter, a, b traits.Mapper) bool {
	if sizeOf(a) != sizeOf(b) {
		return false
	}
	m.charge(keyCost * sizeOf(a)) // at once: the keys are put in order however soon the maps differ
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		other, found := b.Find(key)
		if !found || !equal(m, a.Get(key), other) {
			return false
		}
	}
	return true
}

func equalOptionals(m *meter, a, b *types.Optional) bool {
	if !a.HasValue() || !b.HasValue() {
		return a.HasValue() == b.HasValue()
	}
	return equal(m, a.GetValue(), b.GetValue())
}

func opEqual(m *meter, args []ref.Val) ref.Val {
	return types.Bool(equal(m, args[0], args[1]))
}

func opNotEqual(m *meter, args []ref.Val) ref.Val {
	return types.Bool(!equal(m, args[0], args[1]))
}

func contains(m *meter, list traits.Lister, value ref.Val) bool {
	for it := list.Iterator(); it.HasNext() == types.True; {
		if equal(m, value, it.Next()) {
			return true
		}
	}
	return false
}

// opIn looks through lists; the keys of a map are found without a search.
func opIn(m *meter, args []ref.Val) (ref.Val, bool) {
	list, ok := listAt(args, 1)
	if !ok {
		return nil, false
	}
	m.charge(stepCost)
	return types.Bool(contains(m, list, args[0])), true
}

func opDistinct(m *meter, args []ref.Val) (ref.Val, bool) {
	list, ok := listAt(args, 0)
	if !ok {
		return nil, false
	}
	m.charge(listCost)
	var kept []ref.Val
	for it := list.Iterator(); it.HasNext() == types.True; {
		value := it.Next()
		if containsValue(m, kept, value) {
			continue
		}
		if len(kept) == maxElements {
			return types.WrapErr(errElements), true
		}
		m.charge(stepCost)
		kept = append(kept, value)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, kept), true
}

func containsValue(m *meter, values []ref.Val, value ref.Val) bool {
	for _, other := range values {
		if equal(m, value, other) {
			return true
		}
	}
	return false
}

// onSets makes an operation of a relation between two sets, which are lists of bounded length.
func onSets(relation func(m *meter, a, b traits.Lister) bool) func(m *meter, args []ref.Val) (ref.Val, bool) {
	return func(m *meter, args []ref.Val) (ref.Val, bool) {
		a, aOK := listAt(args, 0)
		b, bOK := listAt(args, 1)
		if !aOK || !bOK {
			return nil, false
		}
		if err := checkElements(max(sizeOf(a), sizeOf(b))); err != nil {
			return types.WrapErr(err), true
		}
		m.charge(stepCost)
		return types.Bool(relation(m, a, b)), true
	}
}

var (
	opSetsContains   = onSets(containsAll)
	opSetsEquivalent = onSets(func(m *meter, a, b traits.Lister) bool { return containsAll(m, a, b) && containsAll(m, b, a) })
	opSetsIntersects = onSets(containsAny)
)

func containsAll(m *meter, list, values traits.Lister) bool {
	for it := values.Iterator(); it.HasNext() == types.True; {
		if !contains(m, list, it.Next()) {
			return false
		}
	}
	return true
}

func containsAny(m *meter, list, values traits.Lister) bool {
	for it := values.Iterator(); it.HasNext() == types.True; {
		if contains(m, list, it.Next()) {
			return true
		}
	}
	return false
}
