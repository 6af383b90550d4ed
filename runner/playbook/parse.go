package playbook

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// codeInternal is the JSON-RPC code of an error step that names none.
const codeInternal = -32603

// Parse reads a playbook. The error lists everything that is wrong with it, a
// line each.
func Parse(data []byte) (*Playbook, error) {
	document, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("read playbook: %w", err)
	}
	r := &reader{}
	book := r.playbook(document)
	if err := r.err(); err != nil {
		return nil, err
	}
	return book, nil
}

func (r *reader) playbook(document any) *Playbook {
	object := r.object("playbook", document, "memory", "turns")
	if object == nil {
		return nil
	}
	book := &Playbook{Memory: r.choice("", object, "memory", MemoryNone, MemoryHome)}
	turns := r.list("turns", object["turns"])
	if turns != nil && len(turns) == 0 {
		r.problem("turns", "must not be empty")
	}
	for i, turn := range turns {
		book.Turns = append(book.Turns, r.turn(fmt.Sprintf("turns[%d]", i), turn))
	}
	r.references(book)
	return book
}

func (r *reader) turn(path string, v any) Turn {
	object := r.object(path, v, "when", "steps", "stop")
	if object == nil {
		return Turn{}
	}
	turn := Turn{
		When: r.pattern(path, object, "when"),
		Stop: r.choice(path, object, "stop", "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"),
	}
	steps, ok := object["steps"]
	if !ok {
		return turn
	}
	for i, step := range r.list(join(path, "steps"), steps) {
		turn.Steps = append(turn.Steps, r.step(fmt.Sprintf("%s.steps[%d]", path, i), step))
	}
	return turn
}

// step reads an object whose only member names the kind of step.
func (r *reader) step(path string, v any) Step {
	kinds := map[string]func(path string, v any) Step{
		"call":       r.call,
		"error":      r.failure,
		"exit":       func(path string, v any) Step { return Exit{r.integer(path, v, 0, 255)} },
		"hang":       r.hang,
		"permission": r.permission,
		"raw":        func(path string, v any) Step { return Raw{r.text(path, v)} },
		"say":        func(path string, v any) Step { return Say{r.text(path, v)} },
		"sleep":      func(path string, v any) Step { return Sleep{r.duration(path, v)} },
		"think":      func(path string, v any) Step { return Think{r.text(path, v)} },
	}
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		r.problem(path, "must be an object with one member: %s", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		return Hang{}
	}
	for kind, value := range object {
		if read, ok := kinds[kind]; ok {
			return read(join(path, kind), value)
		}
		r.problem(join(path, kind), "is no step; steps are %s", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	return Hang{}
}

func (r *reader) call(path string, v any) Step {
	object := r.object(path, v, "tool", "server", "args", "save", "expect", "capture")
	if object == nil {
		return Call{}
	}
	call := Call{
		Tool:    r.text(join(path, "tool"), object["tool"]),
		Server:  r.optionalText(path, object, "server"),
		Args:    map[string]any{},
		Save:    r.optionalText(path, object, "save"),
		Expect:  r.pattern(path, object, "expect"),
		Capture: map[string]*regexp.Regexp{},
	}
	if call.Save != "" {
		r.variable(join(path, "save"), call.Save)
	}
	if args, ok := object["args"]; ok {
		if call.Args, ok = args.(map[string]any); !ok {
			r.problem(join(path, "args"), "must be an object")
		}
	}
	if captures, ok := object["capture"]; ok {
		call.Capture = r.captures(join(path, "capture"), captures)
	}
	return call
}

func (r *reader) captures(path string, v any) map[string]*regexp.Regexp {
	object, ok := v.(map[string]any)
	if !ok {
		r.problem(path, "must be an object of regular expressions")
		return nil
	}
	captures := make(map[string]*regexp.Regexp, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		r.variable(join(path, name), name)
		pattern := r.pattern(path, object, name)
		if pattern != nil && pattern.NumSubexp() == 0 {
			r.problem(join(path, name), "must have a group")
		}
		captures[name] = pattern
	}
	return captures
}

func (r *reader) permission(path string, v any) Step {
	object := r.object(path, v, "tool", "title", "input", "expect")
	if object == nil {
		return Permission{}
	}
	return Permission{
		Tool:   r.text(join(path, "tool"), object["tool"]),
		Title:  r.optionalText(path, object, "title"),
		Input:  object["input"],
		Expect: r.choice(path, object, "expect", "", Allow, Deny),
	}
}

func (r *reader) hang(path string, v any) Step {
	if v != nil && v != true {
		r.problem(path, "must be true")
	}
	return Hang{}
}

func (r *reader) failure(path string, v any) Step {
	if text, ok := v.(string); ok {
		return Error{Code: codeInternal, Message: r.text(path, text)}
	}
	object := r.object(path, v, "code", "message")
	if object == nil {
		return Error{}
	}
	failure := Error{Code: codeInternal, Message: r.text(join(path, "message"), object["message"])}
	if code, ok := object["code"]; ok {
		failure.Code = r.integer(join(path, "code"), code, -1<<31, 1<<31-1)
	}
	return failure
}
