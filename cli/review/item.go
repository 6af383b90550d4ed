package review

import (
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// An Item is an action type or tool that differs. It has no value on the side on
// which it does not exist.
type Item struct {
	Type string
	Name string
	// Before and After are JSON trees, nil for nothing.
	Before, After any
}

// Tell implements [command.Answer].
func (i Item) Tell(p *command.Page) {
	title := command.Clean(i.Type + " " + i.Name)
	before, _ := i.Before.(map[string]any)
	after, _ := i.After.(map[string]any)
	switch {
	case i.After == nil:
		p.Line("%s", p.Paint(terminal.Red, "- "+title))
		return
	case i.Before == nil:
		p.Line("%s", p.Paint(terminal.Green, "+ "+title))
	default:
		p.Line("%s", p.Paint(terminal.Yellow, "~ "+title))
	}
	tellChanges(p, "    ", compareEntries("item", before, after))
}
