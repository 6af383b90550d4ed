package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/events"
	"github.com/apitomy/axiom-operator/runner/permission"
	"github.com/apitomy/axiom-operator/runner/redact"
)

// StartError means that the agent could not be made ready for prompts.
type StartError struct {
	// Message says why, for people; it holds no secret.
	Message string
}

// Error implements error.
func (e *StartError) Error() string { return e.Message }

// EndError means that the agent's program ended.
type EndError struct {
	// ExitCode of the program, or 128 and the number of the signal.
	ExitCode int
}

// Error implements error.
func (e *EndError) Error() string {
	return fmt.Sprintf("the agent ended with exit code %d", e.ExitCode)
}

// run is one life of one agent.
type run struct {
	Config
	session  *openapi.Session
	redactor *redact.Redactor
	queue    *events.Queue
	client   *acpClient
	link     *link
	timeout  time.Duration
	// http tells whether the agent reaches MCP servers by HTTP.
	http bool
	// canLoad tells whether the agent can take conversations up again.
	canLoad bool
	// fresh means that the conversation has had no prompt yet.
	fresh    bool
	feedback feedback
}

// Run drives the agent until the context ends, which is no error, or until
// there is no more use in it: [*StartError], [*EndError], [ErrSessionGone],
// [ErrRefused].
func Run(ctx context.Context, config Config) error {
	r, err := prepare(ctx, config)
	if err != nil {
		return cleanEnd(ctx, err)
	}
	beyond := context.WithoutCancel(ctx)
	defer r.queue.Close(beyond)
	if err := r.start(ctx); err != nil {
		r.stopAgent()
		return cleanEnd(ctx, r.startError(err))
	}
	defer r.stopAgent()
	return cleanEnd(ctx, r.serve(ctx))
}

// cleanEnd hides what the end of the context made go wrong.
func cleanEnd(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// prepare reads the session's configuration; nothing is started yet but the
// sender of events.
func prepare(ctx context.Context, config Config) (*run, error) {
	env := config.Environment
	session, err := config.Gateway.GetSession(ctx, env.Namespace, env.Name)
	if err != nil {
		return nil, goneOr(fmt.Errorf("read session configuration: %w", err))
	}
	names, err := permission.NewNames(session.ToolNamePatterns, serverNames(session.MCPServers)...)
	if err != nil {
		return nil, &StartError{Message: err.Error()}
	}
	timeout, err := time.ParseDuration(session.TurnTimeout)
	if err != nil || timeout <= 0 {
		return nil, &StartError{Message: fmt.Sprintf("turn timeout %q is no positive duration", session.TurnTimeout)}
	}
	r := &run{Config: config, session: session, timeout: timeout, redactor: redact.New(env.Secrets)}
	r.queue = events.Start(context.WithoutCancel(ctx), events.Config{
		Append: func(ctx context.Context, batch []openapi.Event) (int64, error) {
			return config.Gateway.AppendEvents(ctx, env.Namespace, env.Name, batch)
		},
		Last: session.RunnerSequence, Redactor: r.redactor, Log: config.Log,
	})
	transcript := newTranscript(r.queue.Add, r.redactor, names, config.Now)
	r.client = newACPClient(transcript, permission.NewPolicy(session.AllowedTools), r.refuses())
	return r, nil
}

// refuses reports the strictest policy, which is also that of a policy this
// runner does not know.
func (r *run) refuses() bool { return r.session.PermissionPolicy != openapi.PermissionPolicyAllowlist }

func (r *run) startError(err error) error {
	if started, ok := errors.AsType[*StartError](err); ok {
		return started
	}
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrSessionGone) {
		return err
	}
	return &StartError{Message: r.redactor.String(err.Error())}
}

func (r *run) stopAgent() {
	if r.link == nil {
		return
	}
	r.link.stop()
	<-r.link.ended
	if skipped := r.link.peer.Skipped(); skipped > 0 {
		r.Log.Info("Skipped lines that are no messages", "lines", skipped)
	}
}

// serve works on one prompt after the other.
func (r *run) serve(ctx context.Context) error {
	var after int64
	for {
		prompt, err := r.nextPrompt(ctx, after)
		if err != nil {
			return err
		}
		if prompt == nil {
			continue
		}
		if prompt.Sequence <= after {
			r.pause(ctx)
			continue
		}
		after = prompt.Sequence
		if err := r.work(ctx, prompt); err != nil {
			return err
		}
	}
}

// nextPrompt waits for a prompt for as long as the agent lives; nil means that
// there is none yet.
func (r *run) nextPrompt(ctx context.Context, after int64) (*openapi.Prompt, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := onClose(ctx, r.link.ended, cancel)
	defer stop()

	prompt, err := r.Gateway.NextPrompt(ctx, r.Environment.Namespace, r.Environment.Name, after, r.Timing.Poll)
	select {
	case <-r.link.ended:
		return nil, r.tellEnd()
	default:
	}
	if err != nil {
		return nil, goneOr(fmt.Errorf("wait for prompt: %w", err))
	}
	return prompt, nil
}

// onClose calls f when the channel is closed, unless the context ends first.
func onClose(ctx context.Context, closed <-chan struct{}, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-closed:
			f()
		case <-ctx.Done():
		}
	}()
	return cancel
}

// tellEnd tells that the agent's program ended.
func (r *run) tellEnd() error {
	r.client.transcript.end()
	code := r.link.agent.ExitCode()
	r.queue.Add(eventSessionEnded, map[string]any{"exitCode": code})
	return &EndError{ExitCode: code}
}

// pause keeps a gateway that repeats what is known already from being asked
// without end.
func (r *run) pause(ctx context.Context) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
