package definition_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/definition"
	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// A world is what a walk through the sample meets.
type world struct {
	// verdicts of plans and pull requests, one for each round; the last one goes on. Likewise people's decisions by purpose.
	plans, changes []bool
	decisions      map[string][]bool
	// observations before each proposal.
	observations int
	// isClear tells that no checkpoint needs a person.
	isClear bool
	// hostile is a text that agents put everywhere.
	hostile string
}

// A walker runs a bundle frame by frame, as simply as can be.
type walker struct {
	t      *testing.T
	bundle *definition.Bundle
	world  world
	// turns and actions are the addresses that were visited; texts are what agents and people were shown, by address.
	turns, actions []string
	texts          map[string]string
	failure        string
	seen           map[string]int
}

func walk(t *testing.T, w world) (outcome string, walked *walker) {
	t.Helper()
	walked = &walker{t: t, bundle: admitSample(t), world: w, texts: map[string]string{}, seen: map[string]int{}}
	inputs := map[string]any{"request": "add a health endpoint", "repository": "https://git/app.git", "tracker": "https://git/app"}
	_, outcome = walked.frame(walked.bundle.Root(), "", inputs)
	return outcome, walked
}

// frame runs a document to its end.
func (w *walker) frame(c *definition.Component, path string, inputs map[string]any) (engine.Values, string) {
	now := time.Unix(0, 0)
	values, err := c.Start(inputs)
	w.must(err)
	step, err := engine.Start(w.t.Context(), c.Engine(), values, now)
	w.must(err)
	for w.failure == "" && step.Instance.Status == engine.StatusWaiting {
		p := engine.Parked(c.Engine(), step.Instance)[0]
		out := w.serve(c, path, p, step.Instance.Context)
		if w.failure != "" {
			return nil, ""
		}
		step = engine.Complete(w.t.Context(), c.Engine(), step.Instance, engine.Address{Activation: p.Activation, Attempt: p.Attempt}, out, "", now)
	}
	if step.Instance.Status == engine.StatusFailed {
		w.failure = step.Instance.Failure.Code
	}
	if w.failure != "" {
		return nil, ""
	}
	outputs, err := c.EvaluateOutputs(w.t.Context(), step.Instance.Context)
	w.must(err)
	return outputs, c.Engine().Outcome(step)
}

func (w *walker) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walker) serve(c *definition.Component, path string, p engine.ParkedActivation, values engine.Values) engine.Values {
	address := path + p.Activation
	switch p.Kind {
	case workflow.KindComponent:
		return w.call(c, path, p, values)
	case workflow.KindHumanTask:
		w.texts[address] = w.render(c, p.Config["description"].(string), values)
		proceed := w.next("decision "+p.Title, w.world.decisions[p.Title], true)
		return engine.Values{"proceed": proceed, "response": "resp" + w.world.hostile, "rationale": "ratio"}
	default:
		return w.act(c, address, p, values)
	}
}

func (w *walker) render(c *definition.Component, text string, values engine.Values) string {
	rendered, err := c.Render(w.t.Context(), text, values)
	w.must(err)
	return rendered
}

// next goes through a list as often as it is asked, and stays at its end.
func (w *walker) next(key string, list []bool, otherwise bool) bool {
	w.seen[key]++
	if len(list) == 0 {
		return otherwise
	}
	return list[min(w.seen[key], len(list))-1]
}

// call runs the frames of one node.
func (w *walker) call(c *definition.Component, path string, p engine.ParkedActivation, values engine.Values) engine.Values {
	call, _ := c.Call(p.Node)
	callee, _ := w.bundle.Component(call.Component)
	items, limit := []any{nil}, 1
	if call.ForEach != nil {
		var err error
		items, err = c.CallItems(w.t.Context(), p.Node, values)
		w.must(err)
		limit = 1
	} else if call.Repeat != nil {
		limit = call.Repeat.Max
	}
	var results []any
	merged := values
	for i, item := range items {
		for range limit {
			inputs, err := c.CallInputs(w.t.Context(), p.Node, merged, definition.Item{Value: item, Index: i})
			w.must(err)
			w.seen[path+p.Node]++
			result, _ := w.frame(callee, fmt.Sprintf("%s%s[%d]/", path, p.Node, w.seen[path+p.Node]), inputs)
			if w.failure != "" {
				return nil
			}
			results = append(results, map[string]any(result))
			isDone, err := c.CallUntil(w.t.Context(), p.Node, merged, result)
			w.must(err)
			merged = w.merge(c, p.Node, merged, call, results)
			if isDone {
				break
			}
		}
	}
	return w.merge(c, p.Node, nil, call, results)
}

func (w *walker) merge(c *definition.Component, node string, values engine.Values, call definition.Call, results []any) engine.Values {
	result := map[string]any{"items": append([]any{}, results...)}
	if call.ForEach == nil {
		result = results[len(results)-1].(map[string]any)
	}
	outputs, err := c.CallOutputs(w.t.Context(), node, result)
	w.must(err)
	merged := engine.Values{}
	maps.Copy(merged, values)
	maps.Copy(merged, outputs)
	return merged
}

func (w *walker) act(c *definition.Component, address string, p engine.ParkedActivation, values engine.Values) engine.Values {
	config, _ := c.ActionConfig(p.Node)
	inputs, err := c.ResolveInputs(w.t.Context(), p.Node, values)
	w.must(err)
	if config.Action == definition.ActionAgentPrompt {
		w.turns = append(w.turns, fmt.Sprintf("%s (%s)", address, strings.ToUpper(inputs["session"].(string)[:1])))
		w.texts[address] = w.render(c, config.Prompt, values)
		return engine.Values{"reply": w.reply(address)}
	}
	w.actions = append(w.actions, address)
	if config.Body != "" {
		w.texts[address] = w.render(c, config.Body, values)
	}
	return w.result(config.Action, inputs)
}

func (w *walker) reply(address string) any {
	node := address[strings.LastIndexByte(address, '/')+1:]
	h := w.world.hostile
	switch {
	case node == "assess#1":
		return map[string]any{
			"requiresUser": !w.world.isClear, "assessment": "assessed" + h, "question": "question?", "options": []any{"left", "right"}, "recommendation": "left",
		}
	case strings.HasPrefix(address, "Planning[") && node == "verdict#1":
		return map[string]any{"passed": w.next("plans", w.world.plans, true), "review": "plan-review" + h, "revisionPrompt": "plan-revision" + h}
	case strings.HasPrefix(address, "Implementation[") && node == "verdict#1":
		finding := map[string]any{"key": "later", "disposition": "defer", "title": "Later", "description": "described" + h, "evidence": []any{"seen"}}
		other := map[string]any{"key": "now", "disposition": "fix", "title": "Now", "description": "d", "evidence": []any{}}
		return map[string]any{
			"passed": w.next("changes", w.world.changes, true), "review": "change-review", "revisionPrompt": "change-revision", "findings": []any{finding, other},
		}
	case node == "prompt#1":
		frame := strings.TrimSuffix(address, "/"+node)
		round := frame[:strings.LastIndexByte(frame, '/')]
		if w.seen[round+" observed"]++; w.seen[round+" observed"] <= w.world.observations {
			return map[string]any{"kind": "observation", "fragment": map[string]any{"operations": []any{map[string]any{"read": map[string]any{"path": "README.md"}}}}}
		}
		return map[string]any{"kind": "proposal", "proposal": map[string]any{
			"changes": map[string]any{"operations": []any{}}, "title": "Title", "commitMessage": "Message", "report": "reported" + h,
		}}
	}
	return "said by " + address + h
}

func (w *walker) result(action string, inputs engine.Values) engine.Values {
	switch action {
	case definition.ActionRepositoryOpen:
		return engine.Values{"repository": map[string]any{"name": inputs["name"], "base": inputs["base"]}}
	case definition.ActionWorktreeOpen:
		return engine.Values{"worktree": map[string]any{"name": inputs["name"], "branch": inputs["branch"]}}
	case definition.ActionFilesGlob:
		return engine.Values{"paths": []any{"AGENTS.md", "docs/AGENTS.md"}}
	case definition.ActionFilesRead:
		return engine.Values{"files": []any{
			map[string]any{"path": "AGENTS.md", "content": "Be kind.\n"}, map[string]any{"path": "docs/AGENTS.md", "content": "Be brief.\n"},
		}}
	case definition.ActionFragmentEvaluate:
		return engine.Values{"observations": []any{map[string]any{"path": "README.md", "found": true, "content": "readme"}}, "changed": []any{}}
	case definition.ActionGitAdd:
		return engine.Values{"staged": []any{}, "indexTree": "t"}
	case definition.ActionGitCommit:
		w.seen["commits"]++
		return engine.Values{"commit": fmt.Sprintf("commit-%d", w.seen["commits"]), "parent": "p", "tree": "t"}
	case definition.ActionPullRequestUpsert:
		number := inputs["number"]
		if number == nil {
			number = int64(7)
			w.seen["created"]++
		}
		return engine.Values{"pullRequest": map[string]any{
			"number": number, "url": "https://git/app/pulls/7", "state": "open", "headSha": "head", "baseSha": "base", "draft": inputs["draft"],
		}}
	case definition.ActionIssueUpsert:
		return engine.Values{"issue": map[string]any{"key": inputs["key"], "url": "https://git/app/issues/1", "number": int64(1)}}
	}
	return engine.Values{"push": map[string]any{}, "reviews": []any{}, "comments": []any{}, "checks": []any{}, "headSha": "head"}
}

func TestSampleReachesEveryOutcome(t *testing.T) {
	t.Parallel()
	no := func(purpose string) map[string][]bool { return map[string][]bool{purpose: {false}} }
	for name, tc := range map[string]struct {
		world   world
		outcome string
		turns   int
	}{
		"accepted":                  {world{observations: 1}, "accepted", 11},
		"accepted without a person": {world{observations: 1, isClear: true}, "accepted", 11},
		"the handoff declined":      {world{decisions: no("validate the handoff")}, "stopped-handoff", 2},
		"the plan declined":         {world{decisions: no("resolve the plan review")}, "stopped-planning", 5},
		"not authorized":            {world{decisions: no("authorize the implementation")}, "stopped-authorization", 6},
		"the change declined":       {world{decisions: no("resolve the pull-request review")}, "stopped-implementation", 9},
		"rejected":                  {world{decisions: no("accept the result")}, "rejected", 10},
		"plans that never pass":     {world{plans: []bool{false}}, "awaiting-direction-planning", 22},
		"changes that never pass":   {world{changes: []bool{false}}, "awaiting-direction-implementation", 6 + 5*4},
		"a second plan":             {world{plans: []bool{false, true}}, "accepted", 10 + 4},
		"a second change":           {world{changes: []bool{false, true}}, "accepted", 10 + 4},
	} {
		t.Run("supervised 27: "+name, func(t *testing.T) {
			t.Parallel()
			outcome, w := walk(t, tc.world)
			if outcome != tc.outcome || w.failure != "" || len(w.turns) != tc.turns {
				t.Errorf("got %q (%s) after %d turns, want %q after %d:\n%s", outcome, w.failure, len(w.turns), tc.outcome, tc.turns, strings.Join(w.turns, "\n"))
			}
		})
	}
}

func TestSampleTakesTheTurnsItPromises(t *testing.T) {
	t.Parallel()
	_, w := walk(t, world{observations: 1})
	want := []string{
		"Discovery[1]/discover#1 (P)", "handoff[1]/assess#1 (U)", "Planning[1]/plan#1 (I)", "Planning[1]/verdict#1 (P)",
		"Planning[1]/checkpoint[1]/assess#1 (U)", "authorize[1]/assess#1 (U)", "Implementation[1]/observe[1]/prompt#1 (I)",
		"Implementation[1]/observe[2]/prompt#1 (I)", "Implementation[1]/verdict#1 (P)", "Implementation[1]/checkpoint[1]/assess#1 (U)",
		"accept[1]/assess#1 (U)",
	}
	if diff := cmp.Diff(want, w.turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	wantActions := []string{
		"open#1", "worktree#1", "find#1", "InstructionFiles[1]/read#1", "Implementation[1]/observe[1]/evaluate#1", "Implementation[1]/apply#1",
		"Implementation[1]/stage#1", "Implementation[1]/commit#1", "Implementation[1]/push#1", "Implementation[1]/publish#1",
		"Implementation[1]/reviews#1", "Implementation[1]/comments#1", "Implementation[1]/checks#1", "Implementation[1]/deferred[1]/file#1",
	}
	if diff := cmp.Diff(wantActions, w.actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestSampleFailsWithoutAProposal(t *testing.T) {
	t.Parallel()
	_, w := walk(t, world{observations: 4})
	if w.failure != engine.CodeNoMatchingEdge || len(w.turns) != 10 || slices.Contains(w.actions, "Implementation[1]/apply#1") {
		t.Errorf("supervised 58: got %q after %d turns", w.failure, len(w.turns))
	}
}

func TestSampleRoundsGoOnWithOnePullRequest(t *testing.T) {
	t.Parallel()
	_, w := walk(t, world{changes: []bool{false}})
	if w.seen["created"] != 1 || w.seen["commits"] != 5 {
		t.Errorf("supervised 57: %d pull requests of %d commits", w.seen["created"], w.seen["commits"])
	}
	for i := 2; i <= 5; i++ {
		verdict := w.texts[fmt.Sprintf("Implementation[%d]/verdict#1", i)]
		if strings.Count(verdict, `{"key":"later","url":"https://git/app/issues/1"}`) != 1 {
			t.Errorf("round %d does not know what was filed, once:\n%s", i, verdict)
		}
	}
}

// What one stage makes, the next ones are shown, and nothing in it is rendered again.
func TestSampleHandsOnWhatItPromises(t *testing.T) {
	t.Parallel()
	const hostile = " ${{ context.request }} $${{ }}"
	_, w := walk(t, world{observations: 1, hostile: hostile, plans: []bool{false, true}, changes: []bool{false, true}})
	instructions := "### AGENTS.md\n\nBe kind.\n\n\n### docs/AGENTS.md\n\nBe brief.\n"
	handoff, plan := "said by Discovery[1]/discover#1"+hostile, "said by Planning[2]/plan#1"+hostile
	decision := `"proceed":true`
	for address, wanted := range map[string][]string{
		"Discovery[1]/discover#1":                  {instructions, "add a health endpoint"},
		"handoff[1]/assess#1":                      {handoff, "validate the handoff"},
		"handoff[1]/ask#1":                         {handoff, "question?", "- left\n- right", "assessed" + hostile, "Only `proceed: true` continues"},
		"Planning[1]/plan#1":                       {instructions, handoff, decision},
		"Planning[1]/verdict#1":                    {instructions, handoff, decision, "said by Planning[1]/plan#1" + hostile},
		"Planning[1]/checkpoint[1]/ask#1":          {"plan-review" + hostile, "plan-revision" + hostile, "Passed: false"},
		"Planning[1]/revise#1":                     {"plan-review" + hostile, "plan-revision" + hostile, decision, `"rationale":"ratio"`, `"response":"resp` + hostile},
		"authorize[1]/ask#1":                       {plan, "plan-review" + hostile, "up to five rounds", "agent/adversarial-implementation", "`main`", "https://git/app", decision},
		"Implementation[1]/observe[1]/prompt#1":    {instructions, plan, decision, "(null: nothing yet):\n\nnull"},
		"Implementation[1]/observe[2]/prompt#1":    {`[{"content":"readme","found":true,"path":"README.md"}]`},
		"Implementation[1]/publish#1":              {"reported" + hostile},
		"Implementation[1]/verdict#1":              {instructions, plan, decision, "reported" + hostile, "commit-1", "https://git/app/pulls/7", "Issues that were filed: []"},
		"Implementation[1]/checkpoint[1]/ask#1":    {plan, "change-review", "change-revision", `"key":"later"`, `"evidence":["seen"]`, "commit-1"},
		"Implementation[1]/deferred[1]/file#1":     {"described" + hostile, "- seen", "https://git/app/pulls/7", decision},
		"Implementation[1]/revise#1":               {"change-review", "change-revision", decision},
		"Implementation[2]/verdict#1":              {`[{"key":"later","url":"https://git/app/issues/1"}]`, "commit-2"},
		"accept[1]/ask#1":                          {plan, "https://git/app/issues/1", "change-review", "commit-2", "changes nothing on the forge"},
		"Implementation[2]/checkpoint[1]/assess#1": {"resolve the pull-request review"},
	} {
		text := w.texts[address]
		for _, part := range wanted {
			encoded := strings.ReplaceAll(part, "\n", `\n`)
			if !strings.Contains(text, part) && !strings.Contains(text, encoded) {
				t.Errorf("%s does not show %q:\n%s", address, part, text)
			}
		}
	}
}

// A task's description is read by an agent first: what is shown to either names no repository.
func TestSampleShowsNoLocator(t *testing.T) {
	t.Parallel()
	_, w := walk(t, world{observations: 1, plans: []bool{false, true}, changes: []bool{false, true}})
	if len(w.texts) == 0 {
		t.Fatal("nothing was shown")
	}
	for address, text := range w.texts {
		if strings.Contains(text, "https://git/app.git") {
			t.Errorf("supervised 29: %s shows the repository's locator:\n%s", address, text)
		}
	}
}

func TestSampleReportIsTheMaterialShown(t *testing.T) {
	t.Parallel()
	_, w := walk(t, world{observations: 1})
	shown := w.texts["Implementation[1]/checkpoint[1]/ask#1"]
	_, material, _ := strings.Cut(shown, "The whole material:\n\n")
	_, report, _ := strings.Cut(w.texts["accept[1]/ask#1"], "The last report:\n\n")
	if material == "" || material != report {
		t.Errorf("supervised 59: the report is not the material (-shown +reported):\n%s", cmp.Diff(material, report))
	}
}

// The gates are these edges and no others.
func TestSampleGates(t *testing.T) {
	t.Parallel()
	flow := admitSample(t).Root().Engine().Workflow()
	type edge struct {
		condition, target string
		isDefault         bool
	}
	decided := func(key, target, stopped string) []edge {
		return []edge{{condition: key + ".proceed", target: target}, {target: stopped, isDefault: true}}
	}
	gate := func(key, target, stopped, awaiting string) []edge {
		return []edge{
			{condition: "!" + key + ".decision.proceed", target: stopped},
			{condition: key + ".decision.proceed && " + key + ".verdictPassed", target: target},
			{target: awaiting, isDefault: true},
		}
	}
	for node, want := range map[string][]edge{
		"handoff":        decided("context.handoffDecision", "Planning", "stopped-handoff"),
		"Planning":       gate("context.planning", "authorize", "stopped-planning", "awaiting-direction-planning"),
		"authorize":      decided("context.authorization", "Implementation", "stopped-authorization"),
		"Implementation": gate("context.implementation", "accept", "stopped-implementation", "awaiting-direction-implementation"),
		"accept":         decided("context.acceptance", "accepted", "rejected"),
	} {
		var got []edge
		for _, e := range flow.Outgoing(node) {
			got = append(got, edge{e.Condition(), e.Target(), e.IsDefault()})
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(edge{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", node, diff)
		}
	}
	var outcomes []string
	for _, node := range flow.Nodes() {
		if node.Kind() == workflow.KindEnd {
			outcomes = append(outcomes, node.Outcome())
			if node.Outcome() != node.ID() {
				t.Errorf("the end %s leaves %s", node.ID(), node.Outcome())
			}
		}
	}
	want := []string{
		"accepted", "rejected", "stopped-handoff", "stopped-planning", "stopped-authorization", "stopped-implementation",
		"awaiting-direction-planning", "awaiting-direction-implementation",
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}
