package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/terminal"
)

// Formats of output.
const (
	Text = "text"
	JSON = "json"
	YAML = "yaml"
)

// A format is the value of the flag -o.
type format struct {
	name    string
	allowed []string
}

// String implements pflag.Value.
func (f *format) String() string { return f.name }

// Type implements pflag.Value.
func (f *format) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (f *format) Set(name string) error {
	if !slices.Contains(f.allowed, name) {
		return fmt.Errorf("there is no such output, only %s", strings.Join(f.allowed, ", "))
	}
	f.name = name
	return nil
}

// AddOutput declares the flag -o of a command, whose first format is what it
// prints without.
func (a *App) AddOutput(cmd *cobra.Command, formats ...string) {
	value := &format{allowed: formats}
	cmd.Flags().VarP(value, "output", "o", "output: "+strings.Join(formats, ", "))
	complete := cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag is declared above
	}
	cmd.PreRun = func(*cobra.Command, []string) { a.format = *value }
}

// Format is the value of the flag -o; empty if it was not given.
func (a *App) Format() string { return a.format.name }

// An Answer is what a command has to say. As JSON it is what it marshals to.
type Answer interface {
	// Tell writes it for people.
	Tell(p *Page)
}

// Show prints an answer.
func (a *App) Show(x Answer) error {
	if a.Format() == JSON {
		return a.ShowJSON(x)
	}
	p := &Page{Palette: a.Palette}
	x.Tell(p)
	return a.Print(p.String())
}

// ShowJSON prints a value as indented JSON.
func (a *App) ShowJSON(v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return a.Print(b.String())
}

// Print writes to standard output.
func (a *App) Print(text string) error {
	if _, err := fmt.Fprint(a.Stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// A Page is text for people, in lines.
type Page struct {
	strings.Builder
	terminal.Palette
}

// Line writes a line. Arguments that came from a file must be clean.
func (p *Page) Line(format string, args ...any) {
	fmt.Fprintf(&p.Builder, format, args...)
	p.WriteByte('\n')
}

// Clean is a text from a file, fit for a line.
func Clean(text string) string {
	return terminal.Clean(text)
}

// maxShown is how much of a value is shown, in characters.
const maxShown = 160

// ValueText shows a JSON value in a line, cut if it is long.
func ValueText(v any) string {
	runes := valueRunes(v)
	return shownPart(runes, 0, len(runes))
}

// Contrast shows two values in a line each, of long ones the stretch that differs
// and a few characters around it.
func Contrast(before, after any) (was, is string) {
	const around = 20
	a, b := valueRunes(before), valueRunes(after)
	if max(len(a), len(b)) <= maxShown {
		return string(a), string(b)
	}
	shorter := min(len(a), len(b))
	head, tail := 0, 0
	for head < shorter && a[head] == b[head] {
		head++
	}
	for tail < shorter-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from, behind := max(head-around, 0), max(tail-around, 0)
	return shownPart(a, from, len(a)-behind), shownPart(b, from, len(b)-behind)
}

// shownPart cuts a text where it would be too long, and marks what is left out.
func shownPart(text []rune, from, to int) string {
	to = min(to, from+maxShown)
	shown := string(text[from:to])
	if from > 0 {
		shown = "…" + shown
	}
	if to < len(text) {
		shown += "…"
	}
	return shown
}

func valueRunes(v any) []rune {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return []rune("…")
	}
	return []rune(terminal.Clean(strings.TrimRight(b.String(), "\n")))
}

// Plural counts things.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// OrEmpty is a list that is never null in JSON.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// TextOf is a member of a tree that should be text.
func TextOf(v any) string {
	text, _ := v.(string)
	return text
}
