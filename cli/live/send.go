package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

const (
	// maxMessage is what a turn takes, in bytes.
	maxMessage = 64 << 10
	// maxPrefix leaves room for what the API server adds to a generated name, so
	// that the whole is no longer than the name of a turn may be.
	maxPrefix = 51
)

// A message is what the flags and arguments of send say.
type message struct {
	file, session, name string
	nodes, edges        []string
	newConversation     bool
	patience            patience
}

func (a *app) send() *cobra.Command {
	cmd := command.Leaf("send (COMPOSITION | --session NAME) (MESSAGE | -f FILE) [flags]", "Send a message to an agent", `
Sends a message to the agent of a composition, or with --session to one that stands
by itself, and shows what the agent does. At the end there is its answer, what it
wants to change and what is wrong with that, and how to accept it.

The message is an argument, or the content of a file; - is standard input. Line
breaks at the end of a file are left out.

Ctrl-C stops the command, not the agent: "turn watch" takes up where it was left,
and "turn interrupt" stops the agent.`, `
  axiom turn send triage "Wait an hour before closing."
  axiom turn send triage --select-node end-1 "What leads here?"
  axiom turn send triage -f request.md --name second-look --no-wait
  git log -1 --format=%B | axiom turn send triage -
  axiom turn send --session helper "What is an SBOM?" -o json | jq -r .reply`)
	cmd.Args = cobra.RangeArgs(0, 2)
	var m message
	flags := cmd.Flags()
	flags.StringVarP(&m.file, "filename", "f", "", "`FILE` with the message; - is standard input")
	flags.StringVar(&m.session, "session", "", "ask the free-standing session of this `NAME`, not a composition")
	flags.StringArrayVar(&m.nodes, "select-node", nil, "say that you look at the node of this `ID`; may be repeated")
	flags.StringArrayVar(&m.edges, "select-edge", nil, "say that you look at the edge of this `ID`; may be repeated")
	flags.BoolVar(&m.newConversation, "new-conversation", false, "have the agent forget what was said before")
	flags.StringVar(&m.name, "name", "", "`NAME` of the turn; without it, one is made from that of the composition")
	m.patience.addFlags(cmd, "the agent")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		turn, err := a.compose(m, args)
		if err != nil {
			return err
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.ask(cmd.Context(), c, turn, m.patience)
	}
	return cmd
}

// compose makes the turn that the flags and arguments describe.
func (a *app) compose(m message, args []string) (*api.Turn, error) {
	turn := &api.Turn{}
	target := m.session
	if m.session == "" {
		if len(args) == 0 {
			return nil, errors.New("name a composition, or a session with --session")
		}
		target, args = args[0], args[1:]
		turn.Spec.CompositionRef = &api.LocalRef{Name: target}
	} else {
		turn.Spec.SessionRef = &api.LocalRef{Name: m.session}
	}
	text, err := a.text(m.file, args)
	if err != nil {
		return nil, err
	}
	turn.Spec.Message, turn.Spec.NewConversation = text, m.newConversation
	if len(m.nodes)+len(m.edges) > 0 {
		turn.Spec.Selection = &api.Selection{Nodes: m.nodes, Edges: m.edges}
	}
	if turn.Name = m.name; m.name == "" {
		turn.GenerateName = target[:min(len(target), maxPrefix)] + "-"
	}
	return turn, nil
}

// text is the message, given as an argument or by a file.
func (a *app) text(file string, args []string) (string, error) {
	switch {
	case len(args) > 1:
		return "", errors.New("one message is expected: put it in quotes")
	case len(args) == 1 && file != "":
		return "", errors.New("the message is given twice, as an argument and by -f")
	case len(args) == 0 && file == "":
		return "", errors.New("there is no message: give one as an argument, or a file with -f")
	case len(args) == 1 && args[0] != "-":
		return args[0], nil
	case len(args) == 1:
		file = "-"
	}
	data, err := a.read(file)
	if err != nil {
		return "", err
	}
	if len(data) > maxMessage {
		return "", fmt.Errorf("the message is larger than %d KiB", maxMessage>>10)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// read reads a file, but little more than a message may have.
func (a *app) read(file string) ([]byte, error) {
	from := a.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read message: %w", err)
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	data, err := io.ReadAll(io.LimitReader(from, 2*maxMessage))
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return data, nil
}

// ask creates the turn and waits for the agent, if that is wanted.
func (a *app) ask(ctx context.Context, c *cluster, turn *api.Turn, p patience) error {
	turn.ObjectMeta = metav1.ObjectMeta{Namespace: c.namespace, Name: turn.Name, GenerateName: turn.GenerateName}
	if err := c.Create(ctx, turn); err != nil {
		return a.refuse("", err)
	}
	if p.no {
		return a.conclude(ctx, c, turn)
	}
	ended, err := a.await(ctx, wait{cluster: c, turn: turn, isOver: isAgentDone, showsWork: true, timeout: p.timeout})
	if err != nil {
		return err
	}
	return a.conclude(ctx, c, ended)
}
