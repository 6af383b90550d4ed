package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"

	"github.com/apitomy/axiom-operator/internal/isoduration"
)

// maxExpression bounds a text, in characters.
const maxExpression = 16 << 10

// newEnvironments makes the environment of each scope, and the planner of all: they differ in their variables only.
func newEnvironments() (map[Scope]*cel.Env, *planner, error) {
	base, err := newBaseEnvironment()
	if err != nil {
		return nil, nil, fmt.Errorf("create environment: %w", err)
	}
	environments := make(map[Scope]*cel.Env)
	for _, scope := range fixedScopes() {
		if environments[scope], err = base.Extend(variablesOf(scope)...); err != nil {
			return nil, nil, fmt.Errorf("create environment of %s: %w", scope, err)
		}
	}
	planner, err := newPlanner(base)
	return environments, planner, err
}

func variablesOf(scope Scope) []cel.EnvOption {
	var options []cel.EnvOption
	for _, name := range scope.Variables() {
		options = append(options, cel.Variable(name, typeOfVariable(scope, name)))
	}
	return options
}

func typeOfVariable(scope Scope, name string) *cel.Type {
	switch name {
	case scope.item():
		return cel.DynType
	case indexVariable:
		return cel.IntType
	}
	return cel.MapType(cel.StringType, cel.DynType)
}

// newBaseEnvironment pins the version of each library, so that an upgrade of the module adds no function by itself.
func newBaseEnvironment() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return cel.NewCustomEnv(
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.CustomTypeAdapter(&adapter{registry}),
		cel.CustomTypeProvider(registry),
		cel.StdLib(),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.DefaultUTCTimeZone(true),
		cel.OptionalTypes(cel.OptionalTypesVersion(1)),
		firstAndLast(),
		ext.Strings(ext.StringsVersion(5)),
		ext.Math(ext.MathVersion(3)),
		ext.Lists(ext.ListsVersion(4)),
		ext.Sets(ext.SetsVersion(1)),
		ext.Encoders(ext.EncodersVersion(0)),
		jsonEncode(),
		isoDuration(),
		cel.ASTValidators(literalRules{}),
	)
}

// firstAndLast are declared here because the library version that has them has unwrap as well.
func firstAndLast() cel.EnvOption {
	return func(env *cel.Env) (*cel.Env, error) {
		for name, at := range map[string]func(size types.Int) types.Int{
			"first": func(types.Int) types.Int { return 0 },
			"last":  func(size types.Int) types.Int { return size - 1 },
		} {
			element := cel.TypeParamType("T")
			var err error
			env, err = cel.Function(name, cel.MemberOverload("list_"+name,
				[]*cel.Type{cel.ListType(element)}, cel.OptionalType(element),
				cel.UnaryBinding(func(v ref.Val) ref.Val { return elementAt(v.(traits.Lister), at) })))(env)
			if err != nil {
				return nil, err
			}
		}
		return env, nil
	}
}

func elementAt(list traits.Lister, at func(size types.Int) types.Int) ref.Val {
	size := list.Size().(types.Int)
	if size == 0 {
		return types.OptionalNone
	}
	return types.OptionalOf(list.Get(at(size)))
}

// jsonEncode takes the place of the function of the library, which is not canonical. What it does is among the overrides.
func jsonEncode() cel.EnvOption {
	return cel.Function("json.encode", cel.Overload("json_encode_dyn", []*cel.Type{cel.DynType}, cel.StringType))
}

func isoDuration() cel.EnvOption {
	return cel.Function("isoDuration", cel.Overload("isoDuration_string", []*cel.Type{cel.StringType}, cel.DurationType,
		cel.UnaryBinding(func(v ref.Val) ref.Val {
			d, err := isoduration.Parse(string(v.(types.String)))
			if err != nil {
				return types.WrapErr(err)
			}
			return types.Duration{Duration: d}
		})))
}
