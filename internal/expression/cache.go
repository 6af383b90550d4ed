package expression

import (
	"container/list"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
)

const (
	// maxCachedPrograms and maxCachedText bound what a cache remembers; the least recently used goes first. Some 4,000
	// short expressions are those of many hundred definitions.
	maxCachedPrograms = 4096
	maxCachedText     = 4 << 20
)

// A Cache compiles expressions and remembers what came of it, failures included. It may be used by several goroutines
// at once. It is made by [NewCache].
type Cache struct {
	environments map[Scope]*cel.Env
	planner      *planner

	mu      sync.Mutex
	entries map[key]*list.Element // of *entry
	recent  *list.List            // front: most recently used
	text    int                   // bytes of all texts in entries
}

type key struct {
	scope Scope
	text  string
}

type entry struct {
	key
	program *Program
	err     error
}

// NewCache makes an empty cache with the environments of all scopes.
func NewCache() *Cache {
	environments, planner, err := newEnvironments()
	if err != nil {
		panic(err) // they are built from constants, so only a mistake in this package gets here
	}
	return &Cache{
		environments: environments,
		planner:      planner,
		entries:      map[key]*list.Element{},
		recent:       list.New(),
	}
}

// Compile returns the program of a text in a scope. The error is a [*CompileError].
func (c *Cache) Compile(scope Scope, text string) (*Program, error) {
	k := key{scope, text}
	if found := c.find(k); found != nil {
		return found.program, found.err
	}
	// Outside the lock: two goroutines may compile the same text once each, but nobody waits for somebody else's.
	program, err := c.compile(scope, text)
	c.remember(&entry{key: k, program: program, err: err})
	return program, err
}

// Check compiles a text in the scope of the given name and returns its result type, see [Program.ResultType].
func (c *Cache) Check(scope, text string) (string, error) {
	parsed, ok := ParseScope(scope)
	if !ok {
		return "", fmt.Errorf("unknown scope %q", scope)
	}
	program, err := c.Compile(parsed, text)
	if err != nil {
		return "", err
	}
	return program.ResultType(), nil
}

func (c *Cache) find(k key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[k]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(element)
	return element.Value.(*entry)
}

func (c *Cache) remember(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[e.key]; ok {
		return
	}
	c.entries[e.key] = c.recent.PushFront(e)
	c.text += len(e.text)
	for c.recent.Len() > maxCachedPrograms || c.text > maxCachedText {
		oldest := c.recent.Remove(c.recent.Back()).(*entry)
		delete(c.entries, oldest.key)
		c.text -= len(oldest.text)
	}
}

func (c *Cache) compile(scope Scope, text string) (*Program, error) {
	env, ok := c.environments[scope]
	if !ok {
		return nil, &CompileError{Scope: scope, Expression: oneLine(text, maxShownExpression), Reason: "unknown scope"}
	}
	if strings.TrimSpace(text) == "" {
		return blankProgram(scope, text), nil
	}
	checked, err := check(env, text)
	if err != nil {
		return nil, compileError(scope, text, err)
	}
	// The optimizer of the library stays off: it would refuse an expression for a constant that cannot be converted,
	// even in an arm that is never taken.
	planned, err := env.Program(checked, cel.CustomDecoratorV2(c.planner.forExpression(checked.NativeRep()).decorate))
	if err != nil {
		return nil, compileError(scope, text, err)
	}
	return &Program{scope: scope, text: text, resultType: checked.OutputType().String(), planned: planned}, nil
}

func check(env *cel.Env, text string) (*cel.Ast, error) {
	parsed, issues := env.Parse(text)
	if err := firstIssues(issues); err != nil {
		return nil, err
	}
	if err := checkDepth(parsed.NativeRep()); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	return checked, firstIssues(issues)
}

func firstIssues(issues *cel.Issues) error {
	found := issues.Errors()
	var reasons []string
	for _, issue := range found[:min(len(found), maxShownIssues)] {
		// Containers are a notion of the library that no expression here has.
		message := strings.ReplaceAll(issue.Message, " (in container '')", "")
		reasons = append(reasons, fmt.Sprintf("%d:%d: %s", issue.Location.Line(), issue.Location.Column()+1, message))
	}
	if reasons == nil {
		return issues.Err()
	}
	return errors.New(strings.Join(reasons, "; "))
}

func compileError(scope Scope, text string, err error) error {
	return &CompileError{
		Scope:      scope,
		Expression: oneLine(text, maxShownExpression),
		Reason:     oneLine(err.Error(), maxShownReason),
	}
}

func blankProgram(scope Scope, text string) *Program {
	resultType := "null_type"
	if scope == ScopeEdgeCondition {
		resultType = "bool"
	}
	return &Program{scope: scope, text: text, resultType: resultType}
}
