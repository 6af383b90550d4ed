package expression

import (
	"math/bits"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// checkElements refuses lists over the limit.
func checkElements(n int) error {
	if n > maxElements {
		return errElements
	}
	return nil
}

// buildList refuses lists over the limit and charges for building the others.
func buildList(m *meter, n int) error {
	if err := checkElements(n); err != nil {
		return err
	}
	m.charge(listCost + n)
	return nil
}

// guardWhole stands before functions whose result is as long as the list they are given.
func guardWhole(m *meter, args []ref.Val) error {
	list, ok := listAt(args, 0)
	if !ok {
		return nil
	}
	return buildList(m, sizeOf(list))
}

// priceWhole is for functions that read a list and build nothing.
func priceWhole(m *meter, args []ref.Val) error {
	if list, ok := listAt(args, 0); ok {
		m.charge(sizeOf(list))
	}
	return nil
}

func guardRange(m *meter, args []ref.Val) error {
	n := intAt(args, 0, 0)
	if n > maxElements {
		return errElements
	}
	return buildList(m, max(int(n), 0))
}

// guardSlice leaves bounds outside the list to the library, which refuses them.
func guardSlice(m *meter, args []ref.Val) error {
	list, ok := listAt(args, 0)
	from, to := intAt(args, 1, 0), intAt(args, 2, 0)
	if !ok || from < 0 || to < from || to > int64(sizeOf(list)) {
		return nil
	}
	return buildList(m, int(to-from))
}

// guardSort charges a comparison sort, with the text of the keys read in each of its rounds. The keys are the last
// argument, which is the list itself where there is no other.
func guardSort(m *meter, args []ref.Val) error {
	keys, ok := listAt(args, len(args)-1)
	if !ok {
		return nil
	}
	n := sizeOf(keys)
	if err := buildList(m, n); err != nil {
		return err
	}
	text := 0
	for it := keys.Iterator(); it.HasNext() == types.True; {
		text += textLength(it.Next())
	}
	rounds := bits.Len(uint(n))
	m.charge(n * rounds)
	m.chargeText(text * rounds)
	return nil
}

func guardFlatten(m *meter, args []ref.Val) error {
	list, ok := listAt(args, 0)
	if !ok {
		return nil
	}
	n, err := flattenedSize(m, list, intAt(args, 1, 1))
	if err != nil {
		return err
	}
	return buildList(m, n)
}

// flattenedSize counts the elements at a depth. It pays for each list it enters, because lists without elements would
// let it go on for ever.
func flattenedSize(m *meter, list traits.Lister, depth int64) (int, error) {
	total := 0
	m.charge(stepCost + sizeOf(list))
	for it := list.Iterator(); it.HasNext() == types.True; {
		inner, isList := it.Next().(traits.Lister)
		if !isList || depth <= 0 {
			total++
			continue
		}
		n, err := flattenedSize(m, inner, depth-1)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxElements {
			return 0, errElements
		}
	}
	return total, nil
}
