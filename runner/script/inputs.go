package script

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

const (
	inputPrefix = "AXIOM_INPUT_"
	// maxVariable bounds the value of an input's variable, in bytes.
	maxVariable = 32 << 10
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// inputVariables returns the variables of the inputs, a JSON object, sorted by
// name. Inputs whose name or value fits no variable are only in the file.
func inputVariables(inputs []byte) ([]string, error) {
	tree, err := jsonvalue.Decode(inputs)
	if err != nil {
		return nil, err
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("the inputs are no JSON object")
	}
	var variables []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !identifier.MatchString(name) {
			continue
		}
		value, err := jsonvalue.StringForm(object[name])
		if err != nil {
			return nil, err
		}
		if len(value) <= maxVariable && !strings.ContainsRune(value, 0) {
			variables = append(variables, inputPrefix+name+"="+value)
		}
	}
	return variables, nil
}
