package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Formats of output.
const (
	formatText = "text"
	formatJSON = "json"
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

// addOutput declares the flag -o of a command, whose first format is what it
// prints without.
func (a *app) addOutput(cmd *cobra.Command, formats ...string) {
	value := &format{allowed: formats}
	cmd.Flags().VarP(value, "output", "o", "output: "+strings.Join(formats, ", "))
	complete := cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag is declared above
	}
	cmd.PreRun = func(*cobra.Command, []string) { a.format = *value }
}

// An answer is what a command has to say. As JSON it is what it marshals to.
type answer interface {
	// tell writes it for people.
	tell(p *page)
}

// show prints an answer.
func (a *app) show(x answer) error {
	if a.format.name == formatJSON {
		return a.showJSON(x)
	}
	p := &page{Palette: a.palette}
	x.tell(p)
	return a.print(p.String())
}

func (a *app) showJSON(v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return a.print(b.String())
}

func (a *app) print(text string) error {
	if _, err := fmt.Fprint(a.env.Stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// A page is text for people, in lines.
type page struct {
	strings.Builder
	terminal.Palette
}

// line writes a line. Arguments that came from a file must be clean.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.Builder, format, args...)
	p.WriteByte('\n')
}

// clean is a text from a file, fit for a line.
func clean(text string) string {
	return terminal.Clean(text)
}

// valueText shows a JSON value in a line, cut if it is long.
func valueText(v any) string {
	const limit = 160
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "…"
	}
	runes := []rune(terminal.Clean(strings.TrimRight(b.String(), "\n")))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// orEmpty is a list that is never null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// textOf is a member of a tree that should be text.
func textOf(v any) string {
	text, _ := v.(string)
	return text
}

// isSame compares two values by what they mean.
func isSame(a, b any) bool {
	return jsonvalue.Equal(a, b)
}
