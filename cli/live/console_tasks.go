package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/console"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// taskLine is a question in a list.
type taskLine struct {
	Name    string        `json:"name"`
	Title   string        `json:"title"`
	Phase   api.TaskPhase `json:"phase"`
	Open    bool          `json:"open"`
	Run     string        `json:"run"`
	Created time.Time     `json:"created"`
	// Assignees may answer; null: whoever may patch the status.
	Assignees    *api.Assignees `json:"assignees"`
	ExpiresAfter string         `json:"expiresAfter"`
}

func taskLineOf(task *api.HumanTask) taskLine {
	line := taskLine{
		Name: task.Name, Title: task.Spec.HumanContext.Title, Phase: cmp.Or(task.Status.Phase, api.TaskAwaitingInput),
		Open: humantask.IsOpen(task), Created: task.CreationTimestamp.UTC(), Assignees: task.Spec.Assignees, ExpiresAfter: task.Spec.ExpiresAfter,
	}
	if ref := task.Spec.RunRef; ref != nil {
		line.Run = ref.Name
	}
	return line
}

func (d *consoleDesk) listTasks(ctx context.Context, _ console.Request) (any, error) {
	list := &api.HumanTaskList{}
	if err := d.List(ctx, list, client.InNamespace(d.namespace)); err != nil {
		return nil, refused(err)
	}
	lines := []taskLine{}
	for i := range list.Items {
		lines = append(lines, taskLineOf(&list.Items[i]))
	}
	slices.SortFunc(lines, func(a, b taskLine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return lines, nil
}

// taskPage is a question with its form.
type taskPage struct {
	taskLine
	Context    api.HumanContext `json:"context"`
	Activation string           `json:"activation"`
	// Fields to fill in; empty: the answer is any JSON that suits.
	Fields []askedField `json:"fields"`
	// Schema of the answer as text, where there is one.
	Schema string `json:"schema"`
	// Resume tells whether the run takes the answer only at a resume, for certain.
	Resume     bool          `json:"resume"`
	AnsweredBy *api.Answerer `json:"answeredBy"`
	// Closed is why nobody can answer any more.
	Closed *api.TaskClosed `json:"closed"`
}

func (d *consoleDesk) showTask(ctx context.Context, r console.Request) (any, error) {
	task := &api.HumanTask{}
	if err := d.read(ctx, "task", r.Name, task); err != nil {
		return nil, err
	}
	return taskPageOf(task)
}

func taskPageOf(task *api.HumanTask) (taskPage, error) {
	spec, err := askedBy(task)
	if err != nil {
		return taskPage{}, err
	}
	page := taskPage{
		taskLine: taskLineOf(task), Context: task.Spec.HumanContext, Fields: fieldsOf(spec), Resume: task.Spec.Fingerprint != "",
		AnsweredBy: task.Status.AnsweredBy, Closed: task.Status.Closed,
	}
	if spec.ResponseSchema != nil {
		page.Schema = indented(spec.ResponseSchema)
	}
	if ref := task.Spec.RunRef; ref != nil {
		page.Activation = ref.Activation
	}
	return page, nil
}

// askedBy is what a task asks for, as admission reads it.
func askedBy(task *api.HumanTask) (form.Spec, error) {
	data, err := json.Marshal(task.Spec)
	if err != nil {
		return form.Spec{}, fmt.Errorf("encode task: %w", err)
	}
	tree, err := jsonvalue.Decode(data)
	if err != nil {
		return form.Spec{}, fmt.Errorf("decode task: %w", err)
	}
	object, _ := tree.(map[string]any)
	return form.SpecOf(object), nil
}

// taskGiven is what the page sends: fields as they were typed, or the whole answer
// as JSON text, or why there is none.
type taskGiven struct {
	Fields  map[string]string `json:"fields"`
	Whole   *string           `json:"whole"`
	Failure *string           `json:"failure"`
}

// answerTask holds the answer against the question as admission will, and writes it
// as whoever runs the console.
func (d *consoleDesk) answerTask(ctx context.Context, r console.Request) (any, error) {
	var given taskGiven
	if err := r.Decode(&given); err != nil {
		return nil, err
	}
	task := &api.HumanTask{}
	if err := d.read(ctx, "task", r.Name, task); err != nil {
		return nil, err
	}
	patch, err := given.patch(task)
	if err != nil {
		return nil, err
	}
	if err := d.Status().Patch(ctx, task, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return nil, refused(err)
	}
	return taskPageOf(task)
}

func (g taskGiven) patch(task *api.HumanTask) ([]byte, error) {
	if g.Failure != nil {
		return taskReply{failure: *g.Failure}.patch(true)
	}
	spec, err := askedBy(task)
	if err != nil {
		return nil, err
	}
	answer, wrong := g.answer(spec)
	if len(wrong) == 0 {
		_, wrong = form.Accept(spec, answer)
	}
	if len(wrong) > 0 {
		return nil, wrongAnswer(wrong)
	}
	whole, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return taskReply{whole: string(whole)}.patch(false)
}

// answer is what was typed, as a JSON tree.
func (g taskGiven) answer(spec form.Spec) (any, []form.FieldError) {
	if g.Whole != nil {
		answer, err := jsonvalue.Decode([]byte(*g.Whole))
		if err != nil {
			return nil, []form.FieldError{{Path: "answer", Rule: ruleJSON}}
		}
		return answer, nil
	}
	answer, wrong := map[string]any{}, []form.FieldError(nil)
	for _, field := range fieldsOf(spec) {
		text, isGiven := g.Fields[field.Name]
		if !isGiven {
			continue
		}
		value, err := field.Kind.read(text)
		if err != nil {
			wrong = append(wrong, form.FieldError{Path: field.Name, Rule: ruleJSON})
		}
		answer[field.Name] = value
	}
	return answer, wrong
}

// wrongAnswer tells what is wrong by place and rule, and repeats nothing.
func wrongAnswer(wrong []form.FieldError) error {
	type problem struct {
		Path string `json:"path"`
		Rule string `json:"rule"`
	}
	problems := []problem{}
	for _, one := range wrong {
		problems = append(problems, problem(one))
	}
	return &console.RefusalError{
		Status: http.StatusUnprocessableEntity, Message: "the answer does not fit the question: " + command.Plural(len(wrong), "problem"),
		Problems: problems,
	}
}
