package continuity_test

import (
	"testing"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/continuity"
)

func TestDecide(t *testing.T) {
	committed := &api.AgentConversation{ID: "c-1", PolicyDigest: "p"}
	as := continuity.Present{CanLoad: true, Home: "c-1", Policy: "p"}
	with := func(change func(*continuity.Present)) continuity.Present {
		changed := as
		change(&changed)
		return changed
	}
	for name, tc := range map[string]struct {
		committed *api.AgentConversation
		now       continuity.Present
		reason    string
		want      continuity.Action
	}{
		"the first":                          {nil, continuity.Present{CanLoad: true, Policy: "p"}, "", continuity.Begin},
		"the first, in a home that was used": {nil, as, "", continuity.Begin},
		"an agent that cannot load":          {nil, continuity.Present{Policy: "p"}, api.ReasonLoadUnsupported, continuity.Refuse},
		"all as it was":                      {committed, as, "", continuity.Load},
		"an unknown id":                      {committed, with(func(p *continuity.Present) { p.Failed = api.ReasonSessionLost }), api.ReasonSessionLost, continuity.Refuse},
		"another id":                         {committed, with(func(p *continuity.Present) { p.Failed = api.ReasonSessionDiffers }), api.ReasonSessionDiffers, continuity.Refuse},
		"an empty home":                      {committed, with(func(p *continuity.Present) { p.Home = "" }), api.ReasonVolumeLost, continuity.Refuse},
		"another's home":                     {committed, with(func(p *continuity.Present) { p.Home = "c-2" }), api.ReasonVolumeLost, continuity.Refuse},
		"another agent":                      {committed, with(func(p *continuity.Present) { p.Policy = "q" }), api.ReasonPolicyChanged, continuity.Refuse},
		"another agent in an empty home":     {committed, continuity.Present{Policy: "q"}, api.ReasonPolicyChanged, continuity.Refuse},
		"one that cannot load any more":      {committed, with(func(p *continuity.Present) { p.CanLoad = false }), api.ReasonLoadUnsupported, continuity.Refuse},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []api.Continuity{"", api.ContinuityStrict} {
				if got := continuity.Decide(tc.committed, tc.now, mode); got != (continuity.Decision{Action: tc.want, Reason: tc.reason}) {
					t.Errorf("decided %+v, want %v %s", got, tc.want, tc.reason)
				}
			}
			want := continuity.Decision{Action: tc.want, Reason: tc.reason}
			if tc.want == continuity.Refuse {
				want.Action = continuity.Begin
			}
			if got := continuity.Decide(tc.committed, tc.now, api.ContinuityRecap); got != want {
				t.Errorf("decided %+v with recaps, want %+v", got, want)
			}
		})
	}
}

func TestDigestIsOfEveryPart(t *testing.T) {
	policy := func(change func(*continuity.Policy)) string {
		p := continuity.Policy{
			Role: api.RolePrompt, ImageDigest: "sha256:1", Command: []string{"a", "b c"}, Model: map[string]string{"MODEL": "m"},
			Instructions: "Answer.", Continuity: api.ContinuityStrict,
		}
		change(&p)
		digest, err := p.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	same := policy(func(*continuity.Policy) {})
	if got := policy(func(p *continuity.Policy) { p.Continuity = "" }); got != same {
		t.Error("the default continuity has another digest than its name")
	}
	seen := map[string]string{same: "itself"}
	for name, change := range map[string]func(*continuity.Policy){
		"role":         func(p *continuity.Policy) { p.Role = "Other" },
		"image":        func(p *continuity.Policy) { p.ImageDigest = "sha256:2" },
		"command":      func(p *continuity.Policy) { p.Command = []string{"a", "b", "c"} },
		"model":        func(p *continuity.Policy) { p.Model = map[string]string{"MODEL": "n"} },
		"instructions": func(p *continuity.Policy) { p.Instructions = "Answer!" },
		"continuity":   func(p *continuity.Policy) { p.Continuity = api.ContinuityRecap },
	} {
		digest := policy(change)
		if other, isTaken := seen[digest]; isTaken {
			t.Errorf("another %s has the digest of %s", name, other)
		}
		seen[digest] = name
	}
}
