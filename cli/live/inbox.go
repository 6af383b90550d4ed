package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/humantask"
)

// wide is the output that has all of what a task asks.
const wide = "wide"

// A search says whose tasks are looked for, and where.
type search struct {
	everywhere, mine bool
}

func (a *app) inbox() *cobra.Command {
	cmd := command.Leaf("inbox [-A] [--mine] [-o wide|json|yaml]", "List the questions that wait for a person", `
Lists the human tasks that nobody has answered, the oldest first: what each asks, who
may answer it, until when, and the command to do it. With -o wide it has the whole
question and the fields of the answer.

With --mine those are left out that only others may answer. That needs a cluster that
tells who you are, which every recent one does.`, `
  axiom inbox
  axiom inbox -A --mine
  axiom inbox -o json | jq -r '.tasks[].command'`)
	var s search
	cmd.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "look into all namespaces")
	cmd.Flags().BoolVar(&s.mine, "mine", false, "leave out what only others may answer")
	a.AddOutput(cmd, command.Text, wide, command.JSON, command.YAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.showInbox(cmd.Context(), c, s)
	}
	return cmd
}

// An inboxAnswer are the tasks that wait, the oldest first.
type inboxAnswer struct {
	Tasks []waitingTask `json:"tasks"`

	isWide bool
}

// A waitingTask is a question that nobody has answered.
type waitingTask struct {
	Task        string `json:"task"`
	Namespace   string `json:"namespace"`
	Run         string `json:"run"`
	Activation  string `json:"activation"`
	Title       string `json:"title"`
	Description string `json:"description"`
	CreatedAt   string `json:"createdAt"`
	// ExpiresAt is RFC 3339; empty: it waits for ever.
	ExpiresAt string `json:"expiresAt"`
	// Assignees are the only ones who may answer; null: whoever may write tasks.
	Assignees      *api.Assignees `json:"assignees"`
	Fields         []form.Field   `json:"fields"`
	ResponseSchema any            `json:"responseSchema,omitempty"`
	Command        string         `json:"command"`

	age, left string
}

func (a *app) showInbox(ctx context.Context, c *cluster, s search) error {
	namespace := c.namespace
	if s.everywhere {
		namespace = ""
	}
	var who *authenticationv1.UserInfo
	if s.mine {
		found, err := c.whoAmI(ctx)
		if err != nil {
			return err
		}
		who = found
	}
	tasks := &api.HumanTaskList{}
	err := c.List(ctx, tasks, client.InNamespace(namespace), client.MatchingFields{"status.phase": string(api.TaskAwaitingInput)})
	if err != nil {
		return fmt.Errorf("list tasks: %w", explain(err))
	}
	answer := inboxAnswer{Tasks: []waitingTask{}, isWide: a.Format() == wide}
	slices.SortFunc(tasks.Items, byAge)
	now := a.clock.Now()
	for i := range tasks.Items {
		task := &tasks.Items[i]
		if closedBecause(task, now) != "" || who != nil && !humantask.IsFor(task, who.Username, who.Groups) {
			continue
		}
		answer.Tasks = append(answer.Tasks, a.waitingTask(task, now, s.everywhere))
	}
	if a.Format() == command.YAML {
		return a.showManifest(answer)
	}
	return a.Show(answer)
}

func byAge(x, y api.HumanTask) int {
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// whoAmI is the caller, as the cluster sees them.
func (c *cluster) whoAmI(ctx context.Context) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask the cluster who you are: %w", explain(err))
	}
	return &review.Status.UserInfo, nil
}

func (a *app) waitingTask(task *api.HumanTask, now time.Time, everywhere bool) waitingTask {
	about := task.Spec.HumanContext
	waits := waitingTask{
		Task: task.Name, Namespace: task.Namespace, Title: about.Title, Description: about.Description,
		CreatedAt: task.CreationTimestamp.UTC().Format(time.RFC3339), Assignees: task.Spec.Assignees, Fields: []form.Field{},
		Command: a.invocation("answer", task.Name), age: duration.HumanDuration(now.Sub(task.CreationTimestamp.Time)),
	}
	if everywhere {
		waits.Command = a.Name() + " answer " + task.Name + " -n " + task.Namespace
	}
	if run := task.Spec.RunRef; run != nil {
		waits.Run, waits.Activation = run.Name, run.Activation
	}
	if end, isLimited := humantask.Expiry(task); isLimited {
		waits.ExpiresAt, waits.left = end.UTC().Format(time.RFC3339), duration.HumanDuration(end.Sub(now))
	}
	// What cannot be read can still be answered by whoever knows how.
	if spec, err := humantask.Form(task); err == nil {
		waits.Fields, waits.ResponseSchema = command.OrEmpty(spec.Fields), spec.ResponseSchema
	}
	return waits
}

// Tell implements [command.Answer].
func (x inboxAnswer) Tell(p *command.Page) {
	if len(x.Tasks) == 0 {
		p.Line("nothing waits for an answer")
	}
	for i, task := range x.Tasks {
		if i > 0 {
			p.Line("")
		}
		task.tell(p, x.isWide)
	}
}

func (x waitingTask) tell(p *command.Page, isWide bool) {
	p.Line("%s", p.Paint(terminal.Bold, command.Clean(x.Title)))
	p.Line("  %s", joined(x.about()...))
	if isWide {
		x.tellQuestion(p)
	}
	p.Line("  %s", p.Paint(terminal.Cyan, x.Command))
}

// about says how old the question is, who asks, whom, and until when.
func (x waitingTask) about() []string {
	parts := []string{"waits for " + x.age}
	if x.left != "" {
		parts[0] += ", " + x.left + " left"
	}
	if x.Run != "" {
		parts = append(parts, "run "+x.Run+" at "+x.Activation)
	}
	switch names := x.names(); {
	case x.Assignees == nil:
	case names == "":
		parts = append(parts, "for nobody")
	default:
		parts = append(parts, "for "+names)
	}
	return parts
}

func (x waitingTask) names() string {
	if x.Assignees == nil {
		return ""
	}
	return strings.Join(slices.Concat(x.Assignees.Users, x.Assignees.Groups), ", ")
}

func (x waitingTask) tellQuestion(p *command.Page) {
	for line := range strings.Lines(x.Description) {
		p.Line("    %s", command.Clean(strings.TrimRight(line, "\r\n")))
	}
	for _, field := range x.Fields {
		kind := field.Type
		if field.Required {
			kind += ", required"
		}
		p.Line("    %s", joined("- "+field.Name, kind, field.Description))
	}
	if x.ResponseSchema != nil {
		p.Line("    answer  %s", command.ValueText(x.ResponseSchema))
	}
}
