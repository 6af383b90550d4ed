package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/expression"
)

type evalAnswer struct {
	OK        bool            `json:"ok"`
	Value     json.RawMessage `json:"value"`
	ValueType string          `json:"valueType"`
	Error     string          `json:"error"`
}

func (x evalAnswer) Tell(p *command.Page) {
	if !x.OK {
		p.Line("%s: %s", p.Paint(terminal.Red, "error"), command.Clean(x.Error))
		return
	}
	p.Line("%s", x.Value)
}

func (a *app) eval() *cobra.Command {
	cmd := command.Leaf("eval --scope SCOPE --expression EXPRESSION [--context FILE] [--event FILE] [-o json]",
		"Evaluate a CEL expression as a run would", `
Evaluates an expression over the context of a run and an event, each a file with
an object. The scope says where the expression stands and so what it sees:

  `+strings.Join(scopeNames(), "\n  ")+`

A scope that sees no event finds one that is given as context.event.`, `
  axiom expression eval --scope edge-condition --expression 'context.score >= 7' --context context.yaml
  echo '{ref: r-17}' | axiom expression eval --scope human-task-title \
    --expression "'Release ' + context.ref" --context -`)
	var scope, text, contextPath, eventPath string
	cmd.Flags().StringVar(&scope, "scope", "", "`SCOPE`: where the expression stands")
	cmd.Flags().StringVar(&text, "expression", "", "the `EXPRESSION`")
	fileFlag(cmd, &contextPath, "context", "the context")
	fileFlag(cmd, &eventPath, "event", "the event map")
	command.Require(cmd, "scope", "expression")
	a.AddOutput(cmd, command.Text, command.JSON)
	complete := cobra.FixedCompletions(scopeNames(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("scope", complete); err != nil {
		panic(err) // the flag is declared above
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		request, err := a.request(scope, text, contextPath, eventPath)
		if err != nil {
			return err
		}
		answer := evalAnswerOf(expression.Evaluate(cmd.Context(), expression.NewCache(), request))
		if err := a.Show(answer); err != nil {
			return err
		}
		return command.Verdict(answer.OK)
	}
	return cmd
}

func (a *app) request(scope, text, contextPath, eventPath string) (expression.Request, error) {
	known, ok := expression.ParseScope(scope)
	if !ok {
		return expression.Request{}, fmt.Errorf("there is no scope %q, only %s", scope, strings.Join(scopeNames(), ", "))
	}
	request := expression.Request{Expression: text, Scope: known}
	if contextPath != "" {
		context, err := a.loadVariable(contextPath)
		if err != nil {
			return expression.Request{}, err
		}
		request.Context = context
	}
	if eventPath != "" {
		event, err := a.loadVariable(eventPath)
		if err != nil {
			return expression.Request{}, err
		}
		request.Event = event
	}
	return request, nil
}

func (a *app) loadVariable(path string) (map[string]any, error) {
	doc, err := a.loader.Load(path)
	if err != nil {
		return nil, err
	}
	return doc.Object()
}

// evalAnswerOf has all members in any case; the value of what failed is null.
func evalAnswerOf(r expression.Result) evalAnswer {
	if !r.OK {
		return evalAnswer{Value: json.RawMessage("null"), ValueType: "null", Error: r.Error}
	}
	return evalAnswer{OK: true, Value: json.RawMessage(r.ValueJSON), ValueType: r.ValueType}
}

func scopeNames() []string {
	var names []string
	for _, scope := range expression.Scopes() {
		names = append(names, string(scope))
	}
	return names
}
