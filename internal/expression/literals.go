package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// literalRules refuses literals that are no part of the language, and those that can only fail. The latter would make
// the interpreter say at length which value was wrong, and a value may share its parts so often that it has no end when
// it is spelt out.
type literalRules struct{}

// Name implements [cel.ASTValidator].
func (literalRules) Name() string { return "axiom.validator.literals" }

// Validate implements [cel.ASTValidator].
func (literalRules) Validate(_ *cel.Env, _ cel.ValidatorConfig, checked *ast.AST, issues *cel.Issues) {
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ListKind:
			validateList(checked, e.AsList(), issues)
		case ast.MapKind:
			validateMap(checked, e.AsMap(), issues)
		case ast.StructKind:
			issues.ReportErrorAtID(e.ID(), "messages are no part of the language")
		default: // anything else may stand anywhere
		}
	}))
}

func validateList(checked *ast.AST, list ast.ListExpr, issues *cel.Issues) {
	for _, i := range list.OptionalIndices() {
		validateOptional(checked, list.Elements()[i], issues)
	}
}

func validateMap(checked *ast.AST, literal ast.MapExpr, issues *cel.Issues) {
	for _, e := range literal.Entries() {
		entry := e.AsMapEntry()
		if !canBeKey(checked.GetType(entry.Key().ID())) {
			issues.ReportErrorAtID(entry.Key().ID(), "%v", errKey)
		}
		if entry.IsOptional() {
			validateOptional(checked, entry.Value(), issues)
		}
	}
}

func validateOptional(checked *ast.AST, value ast.Expr, issues *cel.Issues) {
	if checked.GetType(value.ID()).TypeName() != types.OptionalType.TypeName() {
		issues.ReportErrorAtID(value.ID(), "only an optional can be behind a question mark")
	}
}

func canBeKey(t *types.Type) bool {
	switch t.Kind() {
	case types.DynKind, types.StringKind, types.IntKind, types.UintKind, types.BoolKind:
		return true
	default:
		return false
	}
}
