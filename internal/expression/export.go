package expression

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// An exporter turns CEL values into JSON trees. It counts the bytes of their compact JSON on the way and stops as soon
// as there are too many: a small expression can name one value so often that it would never end otherwise.
type exporter struct {
	limit int
	size  int
	meter *meter // charged for each value, so that the work inside an evaluation is counted
}

// value is v as a JSON tree. Doubles of integral value become int64 if they fit, as they would if the JSON was read
// back.
func (e *exporter) value(v ref.Val) (any, error) {
	if err := e.meter.spend(stepCost); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *types.Err:
		return nil, v
	case *types.Optional:
		if !v.HasValue() {
			return e.leaf(nil)
		}
		return e.value(v.GetValue())
	case traits.Lister:
		return e.list(v)
	case traits.Mapper:
		return e.object(v)
	}
	leaf, err := scalar(v)
	if err != nil {
		return nil, err
	}
	return e.leaf(leaf)
}

// scalar is the JSON of a value that has no parts.
func scalar(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Double:
		return double(float64(v))
	case types.String:
		return string(v), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return seconds(v.Duration), nil
	}
	return nil, fmt.Errorf("a value of type %s has no JSON", v.Type().TypeName())
}

func double(f float64) (any, error) {
	switch {
	case math.IsNaN(f):
		return nil, errors.New("NaN has no JSON")
	case math.IsInf(f, 0):
		return nil, errors.New("an infinite number has no JSON")
	}
	if i, ok := integral(f); ok {
		return i, nil
	}
	return f, nil
}

// seconds spells d as a decimal number of seconds with all its nanoseconds, and an s.
func seconds(d time.Duration) string {
	sign, magnitude := "", uint64(d)
	if d < 0 {
		sign, magnitude = "-", -magnitude
	}
	whole, nanos := magnitude/uint64(time.Second), magnitude%uint64(time.Second)
	fraction := ""
	if nanos != 0 {
		fraction = "." + strings.TrimRight(fmt.Sprintf("%09d", nanos), "0")
	}
	return sign + strconv.FormatUint(whole, 10) + fraction + "s"
}

func (e *exporter) list(v traits.Lister) (any, error) {
	n := int(v.Size().(types.Int))
	if err := e.brackets(n); err != nil {
		return nil, err
	}
	list := make([]any, 0, n)
	for it := v.Iterator(); it.HasNext() == types.True; {
		element, err := e.value(it.Next())
		if err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	return list, nil
}

func (e *exporter) object(v traits.Mapper) (any, error) {
	n := int(v.Size().(types.Int))
	if err := e.brackets(n); err != nil {
		return nil, err
	}
	object := make(map[string]any, n)
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map key of type %s has no JSON", key.Type().TypeName())
		}
		if err := e.count(jsonvalue.Size(string(name)) + len(":")); err != nil {
			return nil, err
		}
		member, err := e.value(v.Get(key))
		if err != nil {
			return nil, err
		}
		object[string(name)] = member
	}
	return object, nil
}

func (e *exporter) leaf(value any) (any, error) {
	return value, e.count(jsonvalue.Size(value))
}

// brackets counts the brackets of a list or an object with n entries, and its commas.
func (e *exporter) brackets(n int) error {
	return e.count(len("[]") + max(n-1, 0))
}

func (e *exporter) count(n int) error {
	if e.size += n; e.size > e.limit {
		return fmt.Errorf("the value is over %d KiB", e.limit/1024)
	}
	return nil
}
