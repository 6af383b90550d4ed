package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/form"
)

// ErrLeft says that the person went away without an answer.
var ErrLeft = errors.New("nothing was answered")

// A Console is where the person sits.
type Console interface {
	// Say writes a line.
	Say(text string)
	// Line asks for a line, without its end. The error is [io.EOF] when nothing more
	// will come.
	Line(ctx context.Context, prompt string) (string, error)
	// Secret asks for a line and shows nothing of it.
	Secret(ctx context.Context, prompt string) (string, error)
}

// An Interview asks one person.
type Interview struct {
	Console Console
	Palette terminal.Palette
	// IsSecret tells by the name of a field that its value is nobody's to see.
	IsSecret func(name string) bool
}

// Fill asks for an answer that fits, as a JSON tree. The error is [ErrLeft] if the
// person would rather not.
func (i Interview) Fill(ctx context.Context, spec form.Spec) (any, error) {
	questions, whole := questionsOf(spec)
	for n := range questions {
		questions[n].isSecret = questions[n].isSecret || i.IsSecret(questions[n].name)
	}
	answer := map[string]any{}
	pending := questions
	for {
		if err := i.askAll(ctx, pending, answer); err != nil {
			return nil, err
		}
		given := any(answer)
		if whole {
			given = answer[wholeName]
		}
		_, wrong := form.Admit(spec, given)
		if len(wrong) == 0 {
			return given, i.confirm(ctx, questions, answer)
		}
		if pending = i.toMend(questions, wrong); len(pending) == 0 {
			pending = questions
		}
	}
}

// toMend tells what is wrong, and which questions that is about.
func (i Interview) toMend(questions []question, wrong []form.FieldError) []question {
	i.Console.Say("")
	i.Console.Say(i.Palette.Paint(terminal.Red, "the answer does not fit yet"))
	var again []question
	for _, e := range wrong {
		i.Console.Say("  " + command.Clean(e.Error()))
	}
	for _, q := range questions {
		if slices.ContainsFunc(wrong, func(e form.FieldError) bool { return isWithin(e.Path, q.name) }) {
			again = append(again, q)
		}
	}
	return again
}

// isWithin tells of a path whether it is a field's or leads into its value.
func isWithin(path, name string) bool {
	rest, isBelow := strings.CutPrefix(path, name)
	return isBelow && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (i Interview) askAll(ctx context.Context, questions []question, answer map[string]any) error {
	for _, q := range questions {
		value, isGiven, err := i.ask(ctx, q)
		switch {
		case errors.Is(err, io.EOF):
			return ErrLeft
		case err != nil:
			return fmt.Errorf("read answer: %w", err)
		case isGiven:
			answer[q.name] = value
		default:
			delete(answer, q.name)
		}
	}
	return nil
}

// ask puts a question until what is typed fits.
func (i Interview) ask(ctx context.Context, q question) (value any, isGiven bool, err error) {
	i.introduce(q)
	for {
		text, err := i.read(ctx, q)
		if err != nil {
			return nil, false, err
		}
		value, isGiven, complaint := q.take(text)
		if complaint == "" {
			return value, isGiven, nil
		}
		i.Console.Say("  " + i.Palette.Paint(terminal.Red, complaint))
	}
}

// introduce says what is asked, by what, and what may be chosen.
func (i Interview) introduce(q question) {
	i.Console.Say("")
	i.Console.Say(i.Palette.Paint(terminal.Bold, command.Clean(q.label)) + "  " + i.Palette.Paint(terminal.Dim, q.manner()))
	for line := range strings.Lines(q.help) {
		i.Console.Say("  " + command.Clean(strings.TrimRight(line, "\r\n")))
	}
	for n, c := range q.choices {
		i.Console.Say(fmt.Sprintf("  %d  %s", n+1, command.Clean(c.label)))
	}
}

func (i Interview) read(ctx context.Context, q question) (string, error) {
	prompt := q.prompt()
	if q.isSecret {
		return i.Console.Secret(ctx, prompt)
	}
	if !q.isLong {
		return i.Console.Line(ctx, prompt)
	}
	var lines []string
	for {
		line, err := i.Console.Line(ctx, prompt)
		if err != nil {
			return "", err
		}
		if line == endOfText || line == "" && len(lines) == 0 {
			return strings.Join(lines, "\n"), nil
		}
		lines, prompt = append(lines, line), "… "
	}
}

// confirm shows the answer as it will be given, and asks whether it may be.
func (i Interview) confirm(ctx context.Context, questions []question, answer map[string]any) error {
	i.Console.Say("")
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		shown := command.ValueText(answer[name])
		if n := slices.IndexFunc(questions, func(q question) bool { return q.name == name }); n >= 0 && questions[n].isSecret {
			shown = "••••"
		}
		i.Console.Say("  " + command.Clean(name) + ": " + shown)
	}
	for {
		text, err := i.Console.Line(ctx, "give this answer? [Y/n] ")
		switch {
		case errors.Is(err, io.EOF):
			return ErrLeft
		case err != nil:
			return fmt.Errorf("read answer: %w", err)
		}
		if text == "" {
			return nil
		}
		if isYes, isKnown := yesOrNo(text); isKnown && isYes {
			return nil
		} else if isKnown {
			return ErrLeft
		}
	}
}
