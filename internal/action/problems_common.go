package action

import (
	"fmt"
	"slices"
	"strings"
)

func (r *report) name(name string) {
	if blank(name) {
		r.fail("MISSING_NAME", "name", "a name is needed")
	}
}

func (r *report) description(text string) {
	if blank(text) {
		r.warn("MISSING_DESCRIPTION", "description", "a description tells people and agents what it is for")
	}
}

func (r *report) interpreter(path, name string) {
	if name != "" && !slices.Contains([]string{InterpreterBash, InterpreterNode, InterpreterPython}, name) {
		r.fail("INVALID_INTERPRETER", path, "interpreter %s is not one of bash, node, python", show(name))
	}
}

func (r *report) script(path, text string) {
	if blank(text) {
		r.fail("MISSING_SCRIPT", path, "a script is needed")
	}
}

// fieldRules say what the fields of one list may be.
type fieldRules struct {
	// list is the member that holds the fields.
	list string
	// types are those a field may have.
	types []string
	// anyCase makes names that differ only in case the same.
	anyCase bool
}

func (r *report) fields(rules fieldRules, fields []Field) {
	seen := map[string]bool{}
	for i, f := range fields {
		path := fmt.Sprintf("%s[%d]", rules.list, i)
		r.fieldName(path+".name", f.Name)
		key := f.Name
		if rules.anyCase {
			key = strings.ToLower(key)
		}
		if seen[key] && !blank(key) {
			r.fail("DUPLICATE_FIELD_NAME", path+".name", "%s is declared twice in %s", show(f.Name), rules.list)
		}
		seen[key] = true
		if f.Type != "" && !slices.Contains(rules.types, f.Type) {
			r.fail("INVALID_FIELD_TYPE", path+".type", "type %s is not one of %s", show(f.Type), strings.Join(rules.types, ", "))
		}
	}
}

func (r *report) fieldName(path, name string) {
	switch {
	case blank(name):
		r.fail("MISSING_FIELD_NAME", path, "a name is needed")
	case !identifier.MatchString(name):
		r.fail("INVALID_FIELD_NAME", path, "%s is not an identifier (letters, digits, _)", show(name))
	}
}
