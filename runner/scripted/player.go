package scripted

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/runner/playbook"
)

// maxShown bounds what an error repeats of a tool's text, in characters.
const maxShown = 200

// codeInternal is the JSON-RPC code of a step that did not go as expected.
const codeInternal = -32603

// player plays the steps of one prompt.
type player struct {
	agent   *Agent
	session acp.SessionId
	box     *toolbox
}

// scriptedError is an error that the playbook asks for.
type scriptedError struct{ step playbook.Error }

func (e scriptedError) Error() string { return e.step.Message }

// stepError names the step, unless the error is what the step is for.
func stepError(err error, place string) *acp.RequestError {
	if scripted, ok := errors.AsType[scriptedError](err); ok {
		return &acp.RequestError{Code: scripted.step.Code, Message: scripted.step.Message}
	}
	return &acp.RequestError{Code: codeInternal, Message: place + ": " + err.Error()}
}

func (p *player) play(ctx context.Context, step playbook.Step) error {
	switch step := step.(type) {
	case playbook.Call:
		return p.call(ctx, step)
	case playbook.Say:
		return p.say(ctx, step.Text, acp.UpdateAgentMessageText)
	case playbook.Think:
		return p.say(ctx, step.Text, acp.UpdateAgentThoughtText)
	case playbook.Permission:
		return p.askPermission(ctx, step)
	case playbook.Sleep:
		return sleep(ctx, step.Duration)
	case playbook.Exit:
		p.agent.config.Exit(step.Code)
		return nil
	case playbook.Hang:
		<-p.agent.conn.Done()
		return nil
	case playbook.Raw:
		return p.write(step.Text)
	case playbook.Error:
		return scriptedError{step}
	default:
		return fmt.Errorf("step %s cannot be played", step.Name())
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *player) write(text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err := p.agent.out.Write([]byte(text)); err != nil {
		return fmt.Errorf("write raw text: %w", err)
	}
	return nil
}

func (p *player) update(ctx context.Context, update acp.SessionUpdate) error {
	return p.agent.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: p.session, Update: update})
}

func (p *player) say(ctx context.Context, text string, as func(string) acp.SessionUpdate) error {
	expanded, err := p.agent.expandText(text)
	if err != nil {
		return err
	}
	said := as(expanded)
	if said.AgentMessageChunk != nil {
		p.agent.note(p.session, utterance{Text: expanded})
	}
	return p.update(ctx, said)
}

// call calls a tool, tells of it, and compares and keeps what it gave.
func (p *player) call(ctx context.Context, step playbook.Call) error {
	args, err := p.agent.expandObject(step.Args)
	if err != nil {
		return err
	}
	server, tool, err := p.box.find(step.Tool, step.Server)
	if err != nil {
		return err
	}
	id, name := p.agent.nextCall(), "mcp__"+server.name+"__"+tool
	started := acp.StartToolCall(id, name, acp.WithStartKind(acp.ToolKindOther), acp.WithStartStatus(acp.ToolCallStatusPending), acp.WithStartRawInput(args))
	started.ToolCall.Meta = map[string]any{"toolName": name}
	if err := p.update(ctx, started); err != nil {
		return err
	}
	text, failed, err := server.callTool(ctx, tool, args)
	if err != nil {
		text, failed = err.Error(), true
	}
	if err := p.update(ctx, endOfCall(id, text, failed)); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("call the tool: %w", err)
	}
	return p.agent.keep(step, text)
}

func endOfCall(id acp.ToolCallId, text string, failed bool) acp.SessionUpdate {
	status := acp.ToolCallStatusCompleted
	if failed {
		status = acp.ToolCallStatusFailed
	}
	content := []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(text))}
	return acp.UpdateToolCall(id, acp.WithUpdateStatus(status), acp.WithUpdateContent(content))
}

// askPermission asks as an agent does that may be allowed for good, so that a
// policy that does so is seen to.
func (p *player) askPermission(ctx context.Context, step playbook.Permission) error {
	title, err := p.agent.expandText(step.Title)
	if err != nil {
		return err
	}
	input, err := p.agent.expand(step.Input)
	if err != nil {
		return err
	}
	request := acp.RequestPermissionRequest{
		SessionId: p.session,
		ToolCall:  acp.ToolCallUpdate{ToolCallId: p.agent.nextCall(), RawInput: input, Title: &step.Tool},
		Options: []acp.PermissionOption{
			{OptionId: "always", Name: "Always allow", Kind: acp.PermissionOptionKindAllowAlways},
			{OptionId: "once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		},
	}
	if title != "" {
		request.ToolCall.Title = &title
		request.Meta = map[string]any{"toolName": step.Tool}
	}
	answer, err := p.agent.conn.RequestPermission(ctx, request)
	if err != nil {
		return fmt.Errorf("ask for permission: %w", err)
	}
	got := playbook.Deny
	if chosen := answer.Outcome.Selected; chosen != nil && chosen.OptionId != "reject" {
		got = playbook.Allow
	}
	if step.Expect != "" && step.Expect != got {
		return fmt.Errorf("expected %s, got %s", step.Expect, got)
	}
	return nil
}

// nextCall numbers tool calls.
func (a *Agent) nextCall() acp.ToolCallId {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.calls++
	return acp.ToolCallId(fmt.Sprintf("call-%d", a.calls))
}

func (a *Agent) expandText(text string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.variables.ExpandText(text)
}

func (a *Agent) expand(tree any) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.variables.Expand(tree)
}

func (a *Agent) expandObject(tree map[string]any) (map[string]any, error) {
	expanded, err := a.expand(tree)
	object, _ := expanded.(map[string]any)
	return object, err
}

// keep holds a tool's text against what the step expects, and saves what it
// asks for.
func (a *Agent) keep(step playbook.Call, text string) error {
	if step.Expect != nil && !step.Expect.MatchString(text) {
		return fmt.Errorf("expected /%s/, got %q", step.Expect, cut(text))
	}
	a.mu.Lock()
	defer a.mu.Unlock()

	if step.Save != "" {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			return fmt.Errorf("save %s: the result is no JSON: %q", step.Save, cut(text))
		}
		a.variables[step.Save] = value
	}
	for name, pattern := range step.Capture {
		match := pattern.FindStringSubmatch(text)
		if match == nil {
			return fmt.Errorf("capture %s: /%s/ is not in %q", name, pattern, cut(text))
		}
		a.variables[name] = match[1]
	}
	return nil
}

func cut(text string) string {
	characters := []rune(text)
	if len(characters) <= maxShown {
		return text
	}
	return string(characters[:maxShown]) + "…"
}
