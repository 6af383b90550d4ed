package expression

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// Compiling has a price as evaluation has one. Parsing takes time by the tokens of a text, and checking its types by the
// nodes that parsing makes of them; but what the checker knows of type variables it copies for each overload it tries,
// so that a text of a few KiB with many empty lists or comparisons keeps it busy for seconds.
const (
	// maxEffort bounds what compiling one expression may take. Nobody writes one that takes a tenth of it.
	maxEffort = 50_000
	// textEffort is what the shortest text takes.
	textEffort = 8
	// syntaxEffort is what a text that cannot be parsed takes besides.
	syntaxEffort = 12
	// bytesPerEffort is how much text is read in the time a token takes, if it is one literal.
	bytesPerEffort = 64
	// variablesPerUnit is how many type variables are copied in the time a token takes.
	variablesPerUnit = 16
)

var errEffort = errors.New("it is too much to compile: split it, or make it simpler")

// A signature is what the overloads of a function mean for the checker.
type signature struct {
	overloads int
	// variables counts the type variables of all overloads.
	variables int
}

func signaturesOf(env *cel.Env) map[string]signature {
	signatures := map[string]signature{}
	for name, function := range env.Functions() {
		var s signature
		for _, overload := range function.OverloadDecls() {
			s.overloads++
			s.variables += len(overload.TypeParams())
		}
		signatures[name] = s
	}
	return signatures
}

// textEffortOf is what parsing takes.
func textEffortOf(text string) int {
	return textEffort + tokensOf(text) + len(text)/bytesPerEffort
}

// tokensOf counts words and everything else that is no white space. Words within quotes count too, which does no harm.
func tokensOf(text string) int {
	count := 0
	inWord := false
	for i := range len(text) {
		isWord := isWordByte(text[i])
		if !isWord && !isSpace(text[i]) || isWord && !inWord {
			count++
		}
		inWord = isWord
	}
	return count
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'
}

// checkEffortOf bounds from above what checking takes.
func checkEffortOf(parsed *ast.AST, signatures map[string]signature) int {
	e := checkEffort{signatures: signatures}
	e.add(parsed.Expr())
	return e.nodes + e.copied/variablesPerUnit
}

// checkEffort goes through an expression in the order of the checker.
type checkEffort struct {
	signatures map[string]signature
	nodes      int
	// variables are those the checker may know by now, copied how many it may have copied.
	variables int
	copied    int
}

func (e *checkEffort) add(expr ast.Expr) {
	e.nodes++
	switch expr.Kind() {
	case ast.SelectKind:
		e.add(expr.AsSelect().Operand())
		e.try(1, 0)
	case ast.ListKind:
		e.addList(expr.AsList())
	case ast.MapKind:
		e.addMap(expr.AsMap())
	case ast.CallKind:
		e.addCall(expr.AsCall())
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		e.addAll([]ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()})
		e.try(4, 0)
	default: // a name or a literal, whose type is known
	}
}

func (e *checkEffort) addAll(exprs []ast.Expr) {
	for _, expr := range exprs {
		e.add(expr)
	}
}

// addList knows that only a list without elements has one of any type.
func (e *checkEffort) addList(list ast.ListExpr) {
	e.addAll(list.Elements())
	if list.Size() == 0 {
		e.variables++
	}
	e.try(list.Size(), 0)
}

func (e *checkEffort) addMap(m ast.MapExpr) {
	for _, entry := range m.Entries() {
		e.add(entry.AsMapEntry().Key())
		e.add(entry.AsMapEntry().Value())
	}
	if m.Size() == 0 {
		e.variables += 2
	}
	e.try(2*m.Size(), 0)
}

// addCall takes a target that is a name for the namespace of the function as well, which is settled only by the checker.
func (e *checkEffort) addCall(call ast.CallExpr) {
	s := e.signatures[call.FunctionName()]
	if call.IsMemberFunction() {
		e.add(call.Target())
		if call.Target().Kind() == ast.IdentKind {
			qualified := e.signatures[call.Target().AsIdent()+"."+call.FunctionName()]
			s = signature{overloads: s.overloads + qualified.overloads, variables: s.variables + qualified.variables}
		}
	}
	e.addAll(call.Args())
	e.try(s.overloads, s.variables)
}

// try stands for comparing types as often, which may bring in so many more variables.
func (e *checkEffort) try(times, variables int) {
	e.variables += variables
	e.copied += times * e.variables
}
