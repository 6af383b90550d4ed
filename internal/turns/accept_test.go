package turns_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

func TestPlanAccept(t *testing.T) {
	named := func(script string) api.NamedTool {
		return api.NamedTool{Name: "a", ToolSpec: api.ToolSpec{ScriptTemplate: script}}
	}
	toolOf := func(script string) *api.ItemContent {
		c, err := turns.ContentOf(api.ItemTool, named(script))
		if err != nil {
			t.Fatal(err)
		}
		return content(c.Revision)
	}
	flow := func(name string) string {
		c, err := turns.ContentOf(api.ItemWorkflow, workflow.Blank(name))
		if err != nil {
			t.Fatal(err)
		}
		return c.Revision
	}
	base, result := flow("base"), flow("result")
	changed := api.TurnStatus{BaseRevision: base, ResultRevision: result}
	with := func(status api.TurnStatus, writes ...api.ItemWrite) api.TurnStatus {
		status.ItemWrites = writes
		return status
	}
	waits := func(before, after *api.ItemContent) api.ItemWrite {
		return api.ItemWrite{Type: api.ItemTool, Name: "a", Before: before, After: after, Staged: true, State: api.ItemIntended}
	}
	creates := api.ItemWrite{Type: api.ItemWorkflow, Name: "w", After: content(base), Staged: true, State: api.ItemIntended}

	for name, tc := range map[string]struct {
		status   api.TurnStatus
		workflow string
		tools    []api.NamedTool
		want     string
		mismatch string
	}{
		"a workflow on its base":      {status: changed, workflow: "base", want: "workflow"},
		"one that is there":           {status: changed, workflow: "result"},
		"one on another base":         {status: changed, workflow: "other", want: "workflow", mismatch: "workflow"},
		"one whose base is gone":      {status: changed, want: "workflow", mismatch: "(none)"},
		"a new one":                   {status: with(changed, creates), want: "workflow"},
		"a new one beside another":    {status: with(changed, creates), workflow: "base", want: "workflow", mismatch: "not (none)"},
		"a tool on its base":          {status: with(api.TurnStatus{}, waits(toolOf("0"), toolOf("1"))), tools: []api.NamedTool{named("0")}, want: "tool/a"},
		"a tool alone, on any base":   {status: with(api.TurnStatus{BaseRevision: base}, waits(toolOf("0"), toolOf("1"))), workflow: "other", tools: []api.NamedTool{named("0")}, want: "tool/a"},
		"a tool that is there":        {status: with(api.TurnStatus{}, waits(toolOf("0"), toolOf("1"))), tools: []api.NamedTool{named("1")}},
		"a tool that was edited":      {status: with(api.TurnStatus{}, waits(toolOf("0"), toolOf("1"))), tools: []api.NamedTool{named("2")}, want: "tool/a", mismatch: "tool/a"},
		"a new tool":                  {status: with(api.TurnStatus{}, waits(nil, toolOf("1"))), want: "tool/a"},
		"a new tool beside another":   {status: with(api.TurnStatus{}, waits(nil, toolOf("1"))), tools: []api.NamedTool{named("2")}, want: "tool/a", mismatch: "not (none)"},
		"a tool that goes":            {status: with(api.TurnStatus{}, waits(toolOf("0"), nil)), tools: []api.NamedTool{named("0")}, want: "tool/a"},
		"a tool that is gone":         {status: with(api.TurnStatus{}, waits(toolOf("0"), nil))},
		"both":                        {status: with(changed, waits(toolOf("0"), toolOf("1"))), workflow: "base", tools: []api.NamedTool{named("0")}, want: "workflow tool/a"},
		"both, of which one is there": {status: with(changed, waits(toolOf("0"), toolOf("1"))), workflow: "result", tools: []api.NamedTool{named("0")}, want: "tool/a"},
		"what was written directly":   {status: with(api.TurnStatus{}, wrote(tool("a"), "0", "1"))},
	} {
		t.Run(name, func(t *testing.T) {
			comp, turn := &api.Composition{}, turnOf()
			comp.Spec.Tools, turn.Status = tc.tools, tc.status
			if tc.workflow != "" {
				comp.Spec.Workflow = raw(text(workflow.Blank(tc.workflow)))
			}
			plan, err := turns.PlanAccept(comp, turn)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			if plan.Workflow {
				left = append(left, "workflow")
			}
			for _, write := range plan.Items {
				left = append(left, turns.ItemOf(write).String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(left, " ")); diff != "" || plan.IsDone() != (tc.want == "") {
				t.Errorf("done %t; left differs (-want +got):\n%s", plan.IsDone(), diff)
			}
			if (plan.Mismatch != "") != (tc.mismatch != "") || !strings.Contains(plan.Mismatch, tc.mismatch) {
				t.Errorf("mismatch is %q, want %q", plan.Mismatch, tc.mismatch)
			}
		})
	}
}

func TestWhoseContentItIs(t *testing.T) {
	direct, waiting := wrote(tool("a"), "0", "2"), staged(tool("b"), "0", "1")
	direct.State, direct.Confirmed = api.ItemIntended, &api.ConfirmedWrite{After: content("1")}
	status := api.TurnStatus{ResultRevision: "r", ItemWrites: []api.ItemWrite{direct, waiting, wrote(tool("c"), "0", "")}}
	flow := turns.Item{Type: api.ItemWorkflow, Name: "w"}
	for name, tc := range map[string]struct {
		state    api.TurnPhase
		item     turns.Item
		revision string
		want     bool
	}{
		"a result that waits":             {api.TurnAwaitingResolution, flow, "r", true},
		"a result that was rejected":      {api.TurnRejected, flow, "r", false},
		"another workflow":                {api.TurnApplied, flow, "s", false},
		"no workflow":                     {api.TurnApplied, flow, "", false},
		"a write on its way":              {api.TurnWorking, tool("a"), "2", true},
		"the write before":                {api.TurnWorking, tool("a"), "1", true},
		"what was there before":           {api.TurnWorking, tool("a"), "0", false},
		"a write of a turn that failed":   {api.TurnFailed, tool("a"), "2", true},
		"a staged item that waits":        {api.TurnAwaitingResolution, tool("b"), "1", true},
		"a staged item, rejected":         {api.TurnRejected, tool("b"), "1", false},
		"a removal":                       {api.TurnWorking, tool("c"), "", true},
		"an item that it did not touch":   {api.TurnWorking, tool("d"), "1", false},
		"the absence of an untouched":     {api.TurnWorking, tool("d"), "", false},
		"an action type of a tool's name": {api.TurnWorking, turns.Item{Type: api.ItemActionType, Name: "a"}, "2", false},
	} {
		t.Run(name, func(t *testing.T) {
			turn := turnOf()
			turn.Status = status
			turn.Status.State = tc.state
			if got := turns.Gives(turn, tc.item, tc.revision); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
