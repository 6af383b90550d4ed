package expression

import (
	"encoding/json"
	"math"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// An adapter shows JSON trees to CEL without copying them: lists and objects are converted as far as an expression
// looks into them. What is no JSON is left to the library.
type adapter struct {
	types.Adapter
}

// NativeToValue implements [types.Adapter]. A number is an int if its value is integral and fits, however the tree
// holds it, so that respelling 1 as 1.0 cannot change what an expression does.
func (a *adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case ref.Val:
		return v
	case float64:
		return number(v)
	case json.Number:
		return a.decimal(v)
	case map[string]any:
		return &object{members: v, adapter: a}
	case []any:
		return &sequence{elements: v, adapter: a}
	}
	if plain, ok := plainObject(value); ok {
		return &object{members: plain, adapter: a}
	}
	return a.Adapter.NativeToValue(value)
}

// plainObject sees through the type of an object that a package defined for itself.
func plainObject(value any) (map[string]any, bool) {
	named := reflect.ValueOf(value)
	if named.Kind() != reflect.Map || !named.CanConvert(reflect.TypeFor[map[string]any]()) {
		return nil, false
	}
	return reflect.TypeAssert[map[string]any](named.Convert(reflect.TypeFor[map[string]any]()))
}

// decimal works on the text, because a detour over a double would lose digits of a large integer.
func (a *adapter) decimal(text json.Number) ref.Val {
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		return types.NewErr("%v", err)
	}
	return a.NativeToValue(value)
}

func number(f float64) ref.Val {
	if i, ok := integral(f); ok {
		return types.Int(i)
	}
	return types.Double(f)
}

// integral is the int64 of the same value as f, if there is one. Both bounds are exact doubles; the upper one is the
// first that does not fit.
func integral(f float64) (int64, bool) {
	if f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}
