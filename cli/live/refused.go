package live

import (
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
)

// A refusedAnswer tells of a wish that the API server or its admission refused.
type refusedAnswer struct {
	Turn    string   `json:"turn,omitempty"`
	Run     string   `json:"run,omitempty"`
	Task    string   `json:"task,omitempty"`
	Refused *refusal `json:"refused"`
}

// Tell implements [command.Answer].
func (x refusedAnswer) Tell(p *command.Page) {
	p.Line("%s: %s", p.Paint(terminal.Red, "refused"), command.Clean(x.Refused.Message))
}

// refuse tells of a write that was refused and ends the command. Whatever else
// went wrong is an error as it is.
func (a *app) refuse(turn string, err error) error {
	return a.tellRefusal(refusedAnswer{Turn: turn}, err)
}

func (a *app) tellRefusal(answer refusedAnswer, err error) error {
	if answer.Refused = refusalOf(err); answer.Refused == nil {
		return explain(err)
	}
	if err := a.Show(answer); err != nil {
		return err
	}
	return command.ErrVerdict
}
