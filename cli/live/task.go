package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A taskReply is what the flags of answer say.
type taskReply struct {
	whole, failure string
	texts, values  []string
}

// replyFlags are the flags of a reply.
var replyFlags = []string{"answer", "field", "field-json", "failure"}

func (a *app) answerTask() *cobra.Command {
	cmd := command.Leaf("answer TASK [--answer JSON | --field NAME=TEXT ... | --failure REASON]", "Answer a question of a run", `
Answers a human task, whole or field by field: values of --field are text, and
--field-json takes any JSON. With --failure the task is said to be impossible.

Without any of them it asks for each field, if a person sits at a terminal: what does
not fit is asked for again, secrets are not shown, and nothing is sent before the
whole answer was seen.

The first answer counts. Admission holds it against the question, and notes who gave
it; it is not shown again here. A run of a definition in Git takes it when somebody
asks for the resume.

The exit code is 1 if the answer was refused, or the task is not open.`, `
  axiom answer release-7
  axiom answer add-health-4be1c07d92a1b3c4 --field-json proceed=true \
    --field response="Go ahead" --field rationale="The scope is right"
  axiom answer release-7 --answer '{"approved": false}'
  axiom answer release-7 --failure "the window was missed"`)
	cmd.Args = exactArgs("the name of a human task")
	var r taskReply
	flags := cmd.Flags()
	flags.StringVar(&r.whole, "answer", "", "the whole answer, as `JSON`")
	flags.StringArrayVar(&r.texts, "field", nil, "field of the answer as `NAME=TEXT`; may be repeated")
	flags.StringArrayVar(&r.values, "field-json", nil, "field of the answer as `NAME=JSON`; may be repeated")
	flags.StringVar(&r.failure, "failure", "", "`REASON` why the task cannot be done")
	if a.console == nil {
		cmd.MarkFlagsOneRequired(replyFlags...)
	}
	for _, fields := range []string{"field", "field-json"} {
		cmd.MarkFlagsMutuallyExclusive("answer", "failure", fields)
	}
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(replyFlags, cmd.Flags().Changed) {
			return a.askAnswer(cmd.Context(), args[0])
		}
		patch, err := r.patch(cmd.Flags().Changed("failure"))
		if err != nil {
			return err
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.giveAnswer(cmd.Context(), c, args[0], patch)
	}
	return cmd
}

// patch writes the reply as it is, nulls included, which a merge would drop.
func (r taskReply) patch(isFailure bool) ([]byte, error) {
	member, value := "answer", any(json.RawMessage(r.whole))
	switch {
	case isFailure:
		member, value = "failure", map[string]any{"reason": r.failure}
	case len(r.texts)+len(r.values) > 0:
		fields, err := namedValues("field", r.texts, r.values)
		if err != nil {
			return nil, err
		}
		value = fields
	default:
		if _, err := jsonvalue.Decode([]byte(r.whole)); err != nil {
			return nil, errors.New("--answer is no JSON")
		}
	}
	return replyPatch(member, value)
}

func replyPatch(member string, value any) ([]byte, error) {
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status/" + member, "value": value}})
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return patch, nil
}

// A givenAnswer tells of an answer that counts, and not what it is.
type givenAnswer struct {
	Task       string        `json:"task"`
	Run        string        `json:"run"`
	Phase      api.TaskPhase `json:"phase"`
	AnsweredBy string        `json:"answeredBy"`
	// Resume tells whether the run takes the answer only at a resume, for certain.
	Resume bool `json:"resume"`
}

// Tell implements [command.Answer].
func (x givenAnswer) Tell(p *command.Page) {
	p.Line("%s", p.Paint(terminal.Green, command.Clean(fmt.Sprintf("answered task %s as %s", x.Task, x.AnsweredBy))))
	if x.Resume {
		p.Line("  run %s takes it at a resume: axiom resume %s", x.Run, x.Run)
	}
}

func (a *app) giveAnswer(ctx context.Context, c *cluster, name string, patch []byte) error {
	task := &api.HumanTask{}
	task.Namespace, task.Name = c.namespace, name
	err := c.Status().Patch(ctx, task, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case isMissing(err):
		return fmt.Errorf("there is no task %s in namespace %s", name, c.namespace)
	case err != nil:
		return a.tellRefusal(refusedAnswer{Task: name}, err)
	}
	given := givenAnswer{Task: name, Phase: task.Status.Phase, Resume: task.Spec.Fingerprint != ""}
	if by := task.Status.AnsweredBy; by != nil {
		given.AnsweredBy = by.Username
	}
	if run := task.Spec.RunRef; run != nil {
		given.Run = run.Name
	}
	return a.Show(given)
}
