package v1alpha1

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// excess names the figure and the limit of something that is too large.
func excess(path *field.Path, figure, limit int, unit string) *field.Error {
	return &field.Error{
		Type:     field.ErrorTypeTooLong,
		Field:    path.String(),
		BadValue: figure,
		Detail:   fmt.Sprintf("has %d %s, the limit is %d", figure, unit, limit),
	}
}

func validateName(name string, limit int) field.ErrorList {
	if length := utf8.RuneCountInString(name); length > limit {
		return field.ErrorList{excess(field.NewPath("metadata", "name"), length, limit, "characters")}
	}
	return nil
}

func validateNotBlank(text string, path *field.Path) field.ErrorList {
	if strings.TrimSpace(text) == "" {
		return field.ErrorList{field.Required(path, "must not be blank")}
	}
	return nil
}

// validateISODuration judges an optional ISO 8601 duration, which must be
// positive.
func validateISODuration(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	d, err := workflow.ParseDuration(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be an ISO 8601 duration such as PT30M or P2D: "+err.Error())}
	}
	if d <= 0 {
		return field.ErrorList{field.Invalid(path, text, "must be positive")}
	}
	return nil
}

// validateTimeouts judges the two durations of an agent.
func validateTimeouts(turn, idle *metav1.Duration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if turn != nil && turn.Duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("turnTimeout"), turn.Duration.String(), "must be positive"))
	}
	if idle != nil && idle.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("idleTimeout"), idle.Duration.String(), "must not be negative; 0s never suspends"))
	}
	return errs
}

// validateUnchanged refuses every member of an object that differs, but the
// mutable ones. It sees members that the schema leaves open, which rules of the
// schema cannot.
func validateUnchanged(before, after map[string]any, path *field.Path, mutable ...string) field.ErrorList {
	var errs field.ErrorList
	for _, name := range changedMembers(before, after) {
		if !slices.Contains(mutable, name) {
			errs = append(errs, field.Forbidden(path.Child(name), "must not change"))
		}
	}
	return errs
}

// changedMembers names, in order, the members that two objects do not share
// exactly. Integers differ beyond the doubles too.
func changedMembers(before, after map[string]any) []string {
	names := maps.Clone(before)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		was, had := before[name]
		is, has := after[name]
		return had == has && reflect.DeepEqual(was, is)
	})
}

// memberOf reads an object that is a top-level member of an object's JSON; nil
// without it.
func memberOf(raw []byte, name string) (map[string]any, error) {
	root, err := objectOf(raw)
	member, _ := root[name].(map[string]any)
	return member, err
}

// objectOf reads an object's JSON; nil if it is none.
func objectOf(raw []byte) (map[string]any, error) {
	value, err := jsonvalue.Decode(raw)
	object, _ := value.(map[string]any)
	return object, err
}
