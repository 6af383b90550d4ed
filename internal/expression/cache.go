package expression

import (
	"container/list"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
)

const (
	// maxCachedPrograms and maxCachedText bound what a cache remembers; the least recently used goes first. Some 4,000
	// short expressions are those of many hundred definitions.
	maxCachedPrograms = 4096
	maxCachedText     = 4 << 20
	// maxCachedEffort bounds the memory of what is made of the texts, some 100 bytes for a unit.
	maxCachedEffort = 500_000
	// environmentEffort is what an environment of its own adds to an expression.
	environmentEffort = 250
)

var (
	errScope  = errors.New("unknown scope")
	errLength = fmt.Errorf("it is over %d characters", maxExpression)
)

// A Cache compiles expressions and remembers what came of it, failures included. It may be used by several goroutines
// at once. It is made by [NewCache].
type Cache struct {
	environments map[Scope]*cel.Env
	signatures   map[string]signature
	planner      *planner

	mu      sync.Mutex
	entries map[key]*list.Element // of *entry
	recent  *list.List            // front: most recently used
	text    int                   // bytes of all texts in entries
	effort  int                   // of all entries
}

type key struct {
	scope Scope
	text  string
}

// An entry is a text whose types are checked. Its program is made when somebody asks for it: most of those who validate
// a document evaluate nothing.
type entry struct {
	key
	effort     int
	resultType string
	err        error

	planning sync.Once
	env      *cel.Env
	checked  *cel.Ast // until planned; nil for a blank text too
	program  *Program
	planErr  error
}

// NewCache makes an empty cache with the environments of all scopes.
func NewCache() *Cache {
	environments, planner, err := newEnvironments()
	if err != nil {
		panic(err) // they are built from constants, so only a mistake in this package gets here
	}
	return &Cache{
		environments: environments,
		signatures:   signaturesOf(environments[ScopeActionInput]),
		planner:      planner,
		entries:      map[key]*list.Element{},
		recent:       list.New(),
	}
}

// Compile returns the program of a text in a scope. The error is a [*CompileError].
func (c *Cache) Compile(scope Scope, text string) (*Program, error) {
	e := c.entry(scope, text)
	if e.err != nil {
		return nil, e.err
	}
	e.planning.Do(func() { e.plan(c.planner) })
	return e.program, e.planErr
}

// Check checks a text in the scope of the given name and returns its result type, see [Program.ResultType].
func (c *Cache) Check(scope, text string) (string, error) {
	resultType, _, err := c.CheckEffort(scope, text)
	return resultType, err
}

// CheckEffort is Check that also tells what checking the text takes, whether or not it was remembered: the effort of one
// token is 1. It is at most some 50,000.
func (c *Cache) CheckEffort(scope, text string) (resultType string, effort int, err error) {
	parsed, ok := parseScope(scope)
	if !ok {
		return "", 0, fmt.Errorf("unknown scope %q", scope)
	}
	e := c.entry(parsed, text)
	return e.resultType, e.effort, e.err
}

func (c *Cache) entry(scope Scope, text string) *entry {
	k := key{scope, text}
	if found := c.find(k); found != nil {
		return found
	}
	// Outside the lock: two goroutines may check the same text once each, but nobody waits for somebody else's.
	return c.remember(c.check(k))
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

// remember returns the entry to use, which is the one that was there first.
func (c *Cache) remember(e *entry) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[e.key]; ok {
		return element.Value.(*entry)
	}
	c.entries[e.key] = c.recent.PushFront(e)
	c.text += len(e.text)
	c.effort += e.effort
	for c.recent.Len() > maxCachedPrograms || c.text > maxCachedText || c.effort > maxCachedEffort {
		oldest := c.recent.Remove(c.recent.Back()).(*entry)
		delete(c.entries, oldest.key)
		c.text -= len(oldest.text)
		c.effort -= oldest.effort
	}
	return e
}

func (c *Cache) check(k key) *entry {
	e := &entry{key: k, effort: textEffort}
	env, ok := c.environmentOf(k.scope)
	switch {
	case !ok:
		e.err = compileError(k, errScope)
	case strings.TrimSpace(k.text) == "":
		e.resultType = typeOfBlank(k.scope)
	case utf8.RuneCountInString(k.text) > maxExpression:
		e.err = compileError(k, errLength)
	default:
		e.env = env
		e.checkText(c.signatures)
		if k.scope.item() != "" {
			e.effort += environmentEffort
		}
	}
	return e
}

// environmentOf makes an environment for a scope whose variables are named by whoever uses it.
func (c *Cache) environmentOf(scope Scope) (*cel.Env, bool) {
	if scope.item() == "" {
		env, ok := c.environments[scope]
		return env, ok
	}
	if _, ok := parseScope(string(scope)); !ok {
		return nil, false
	}
	env, err := c.environments[ScopeActionInput].Extend(
		cel.Variable(scope.item(), cel.DynType), cel.Variable(indexVariable, cel.IntType))
	return env, err == nil
}

// checkText refuses a text as early as it can, and each time with what it took.
func (e *entry) checkText(signatures map[string]signature) {
	e.effort = textEffortOf(e.text)
	parsed, err := parse(e.env, e.text)
	if err != nil {
		e.effort += syntaxEffort
		e.err = compileError(e.key, err)
		return
	}
	if err := checkDepth(parsed.NativeRep()); err != nil {
		e.err = compileError(e.key, err)
		return
	}
	effort := e.effort + checkEffortOf(parsed.NativeRep(), signatures)
	if effort > maxEffort {
		e.err = compileError(e.key, errEffort)
		return
	}
	e.effort = effort // only now, for nothing more is done than parsing before
	checked, issues := e.env.Check(parsed)
	if err := firstIssues(issues); err != nil {
		e.err = compileError(e.key, err)
		return
	}
	e.checked, e.resultType = checked, checked.OutputType().String()
}

// plan makes the program of an entry without error. The optimizer of the library stays off: it would refuse an
// expression for a constant that cannot be converted, even in an arm that is never taken.
func (e *entry) plan(p *planner) {
	program := &Program{scope: e.scope, text: e.text, resultType: e.resultType}
	if e.checked == nil {
		e.program = program
		return
	}
	planned, err := e.env.Program(e.checked, cel.CustomDecoratorV2(p.forExpression(e.checked.NativeRep()).decorate))
	e.checked = nil
	if err != nil {
		e.planErr = compileError(e.key, err)
		return
	}
	program.planned = planned
	e.program = program
}

func firstIssues(issues *cel.Issues) error {
	found := issues.Errors()
	var reasons []string
	for _, issue := range found[:min(len(found), maxShownIssues)] {
		// Containers are a notion of the library that no expression here has.
		message := strings.ReplaceAll(issue.Message, " (in container '')", "")
		if issue.Location.Line() > 0 {
			message = fmt.Sprintf("%d:%d: %s", issue.Location.Line(), issue.Location.Column()+1, message)
		}
		reasons = append(reasons, message)
	}
	if reasons == nil {
		return issues.Err()
	}
	return errors.New(strings.Join(reasons, "; "))
}

func compileError(k key, err error) error {
	return &CompileError{
		Scope:      k.scope,
		Expression: oneLine(k.text, maxShownExpression),
		Reason:     oneLine(err.Error(), maxShownReason),
	}
}

func typeOfBlank(scope Scope) string {
	if scope == ScopeEdgeCondition {
		return "bool"
	}
	return "null_type"
}
