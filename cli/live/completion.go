package live

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/template"
)

// completionTime is what somebody at a shell waits for a cluster.
const completionTime = 3 * time.Second

// A naming says which objects the first argument of a command may name.
type naming struct {
	list client.ObjectList
	// about says in a few words what an object is; false: it does not fit the command.
	about func(client.Object) (string, bool)
}

// namings are those of the commands, by their words.
func namings() map[string]naming {
	turns := naming{&api.TurnList{}, aboutTurn}
	runs := naming{&api.WorkflowRunList{}, aboutRun}
	liveRuns := naming{&api.WorkflowRunList{}, aboutLiveRun}
	return map[string]naming{
		"turn send":  {&api.CompositionList{}, aboutAny},
		"turn watch": turns, "turn diff": turns, "turn accept": turns, "turn reject": turns, "turn undo": turns, "turn interrupt": turns, "turn export": turns,
		"run watch": runs, "run explain": runs, "run show": runs, "run graph": runs, "run cancel": liveRuns, "resume": liveRuns,
		"answer":        {&api.HumanTaskList{}, aboutTask},
		"session logs":  {&api.AgentSessionList{}, aboutAny},
		"template show": {&api.SessionTemplateList{}, aboutAny}, "template clone": {&api.SessionTemplateList{}, aboutAny},
	}
}

func aboutAny(client.Object) (string, bool) { return "", true }

func aboutTurn(object client.Object) (string, bool) {
	turn, isTurn := object.(*api.Turn)
	return string(turn.Status.State), isTurn
}

func aboutRun(object client.Object) (string, bool) {
	run, isRun := object.(*api.WorkflowRun)
	return string(orPending(run.Status.Phase)), isRun
}

func aboutLiveRun(object client.Object) (string, bool) {
	run, isRun := object.(*api.WorkflowRun)
	return string(orPending(run.Status.Phase)), isRun && !run.Status.Phase.IsTerminal()
}

func aboutTask(object client.Object) (string, bool) {
	task, isTask := object.(*api.HumanTask)
	return command.Clean(task.Spec.HumanContext.Title), isTask && task.Status.Phase == api.TaskAwaitingInput
}

// addCompletions has a shell complete names of objects, and of namespaces.
func (a *app) addCompletions(groups []*cobra.Command) {
	known := namings()
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		if n, isNamed := known[cmd.CommandPath()]; isNamed {
			cmd.ValidArgsFunction = a.completeNames(n)
		}
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	for _, group := range groups {
		add(group)
		if err := group.RegisterFlagCompletionFunc("namespace", a.completeNamespaces); err != nil {
			panic(err) // the flag is not declared
		}
	}
}

func (a *app) completeNames(n naming) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var builtIn []cobra.Completion
		if _, isTemplate := n.list.(*api.SessionTemplateList); isTemplate {
			for _, name := range template.Names() {
				builtIn = append(builtIn, cobra.CompletionWithDesc(name, "built-in"))
			}
		}
		return a.namesBegun(cmd, begun, n, builtIn), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.namesBegun(cmd, begun, naming{&corev1.NamespaceList{}, aboutAny}, nil), cobra.ShellCompDirectiveNoFileComp
}

// namesBegun are those that begin so. A cluster that does not answer completes nothing: a
// shell is no place for an error.
func (a *app) namesBegun(cmd *cobra.Command, begun string, n naming, names []cobra.Completion) []cobra.Completion {
	if c, err := a.connect(); err == nil {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		names = append(names, c.completions(ctx, n)...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name cobra.Completion) bool { return !strings.HasPrefix(name, begun) })
}

func described(name, about string) cobra.Completion {
	if about == "" {
		return name
	}
	return cobra.CompletionWithDesc(name, about)
}

func (c *cluster) completions(ctx context.Context, n naming) []cobra.Completion {
	var options []client.ListOption
	if _, isEverywhere := n.list.(*corev1.NamespaceList); !isEverywhere {
		options = append(options, client.InNamespace(c.namespace))
	}
	if err := c.List(ctx, n.list, options...); err != nil {
		return nil
	}
	var names []cobra.Completion
	_ = apimeta.EachListItem(n.list, func(item runtime.Object) error {
		if object, isObject := item.(client.Object); isObject {
			if about, fits := n.about(object); fits {
				names = append(names, described(object.GetName(), about))
			}
		}
		return nil
	})
	return names
}
