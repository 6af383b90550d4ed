package expression

import (
	"fmt"
	"maps"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// maxTypeDepth bounds how deep lists, maps and optionals nest in the types of an expression. The checker takes time by
// the cube of that and more: an expression of 1 KiB can keep it busy for minutes.
const maxTypeDepth = 16

// checkDepth refuses a parsed expression whose types nest too deep, before they are worked out.
func checkDepth(parsed *ast.AST) error {
	d := depths{}
	d.of(parsed.Expr(), map[string]int{contextVariable: 1, eventVariable: 1, inputsVariable: 1})
	if d.deepest > maxTypeDepth {
		return fmt.Errorf("its lists, maps and optionals nest deeper than %d", maxTypeDepth)
	}
	return nil
}

// depths bounds the depths of types from above. A scalar, and anything dynamic, has depth 0; a list, a map, an optional
// and the type of something have one more than what they are of.
type depths struct {
	deepest int // of any part
}

// of is the depth of the type of e, where the variables in scope have the depths given.
func (d *depths) of(e ast.Expr, vars map[string]int) int {
	depth := 0
	switch e.Kind() {
	case ast.IdentKind:
		depth = ofName(e.AsIdent(), vars)
	case ast.SelectKind:
		depth = d.of(e.AsSelect().Operand(), vars)
	case ast.ListKind:
		depth = 1 + d.ofAll(e.AsList().Elements(), vars)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			depth = max(depth, d.of(entry.AsMapEntry().Key(), vars), d.of(entry.AsMapEntry().Value(), vars))
		}
		depth++
	case ast.CallKind:
		depth = d.ofCall(e.AsCall(), vars)
	case ast.ComprehensionKind:
		depth = d.ofComprehension(e.AsComprehension(), vars)
	default: // a literal, which is a scalar
	}
	d.deepest = max(d.deepest, depth)
	return depth
}

// ofName takes what is no variable for the name of a type: that has the type of a type.
func ofName(name string, vars map[string]int) int {
	if depth, ok := vars[name]; ok {
		return depth
	}
	return 1
}

func (d *depths) ofAll(parts []ast.Expr, vars map[string]int) int {
	depth := 0
	for _, part := range parts {
		depth = max(depth, d.of(part, vars))
	}
	return depth
}

// ofCall knows the functions that hand on lists, maps or optionals; the others give scalars. The namespace of a function
// is parsed as its target, which does no harm.
func (d *depths) ofCall(call ast.CallExpr, vars map[string]int) int {
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	depth := d.ofAll(args, vars)
	switch call.FunctionName() {
	case "of", "optional.of", "ofNonZeroValue", "type":
		return depth + 1
	case "value", operators.Index:
		return max(depth-1, 0)
	case "flatten":
		return max(depth-1, 1)
	case "range", "split", operators.OptSelect, operators.OptIndex:
		return max(depth, 1)
	case operators.Add, operators.Conditional, "or", "orValue", "first", "last", "slice", "reverse", "distinct", "sort",
		"@sortByAssociatedKeys":
		return depth
	}
	return 0
}

// ofComprehension follows what a macro is made of: a variable for the elements, and one for the result so far.
func (d *depths) ofComprehension(c ast.ComprehensionExpr, vars map[string]int) int {
	inner := maps.Clone(vars)
	inner[c.IterVar()] = max(d.of(c.IterRange(), vars)-1, 0)
	inner[c.AccuVar()] = d.of(c.AccuInit(), vars)
	d.of(c.LoopCondition(), inner)
	inner[c.AccuVar()] = max(inner[c.AccuVar()], d.of(c.LoopStep(), inner))
	return d.of(c.Result(), inner)
}
