package workspace

import (
	"context"
	"errors"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// A PushEffect is the head of a worktree, as an intent fixed it, at the branch of the same name on its remote.
type PushEffect struct {
	Remote   *Remote
	Objects  *Objects
	Worktree Worktree
	// missed is why the last update may not have been made, until it is observed what became of it.
	missed *effect.Observation
}

var _ effect.Effect = (*PushEffect)(nil)

// Members of what a push observes and returns.
const (
	memberRemoteCommit = "remoteCommit"
	memberRelation     = "relation"
	relationAncestor   = "ancestor"
)

func (p *PushEffect) ref() string {
	return headsPrefix + p.Worktree.Branch
}

// Observe lists the remote's refs. The branch may be pushed where it is proven not to be there or to be where the run
// itself can have left it.
func (p *PushEffect) Observe(ctx context.Context) (effect.Observation, error) {
	listing, err := p.Remote.List(ctx)
	if err != nil {
		return observed(err)
	}
	commit := listing.refs[p.ref()]
	if listing.IsAmbiguous(p.ref()) {
		return effect.Observation{Verdict: effect.Ambiguous, Message: "the remote listed the branch more than once"}, nil
	}
	if commit == p.Worktree.Head {
		return effect.Observation{
			Verdict: effect.Compatible, Result: map[string]any{"push": map[string]any{"ref": p.ref(), "commit": commit}},
		}, nil
	}
	if commit == "" {
		return p.absent(map[string]any{memberRemoteCommit: nil}), nil
	}
	isAncestor, err := p.Objects.IsAncestor(p.Worktree, commit)
	if err != nil {
		return effect.Observation{}, err
	}
	if isAncestor {
		return p.absent(map[string]any{memberRemoteCommit: commit, memberRelation: relationAncestor}), nil
	}
	return effect.Observation{
		Verdict: effect.Conflict, Message: "the branch is at a commit that is not of the worktree",
		Observed: []any{map[string]any{memberRemoteCommit: commit}},
	}, nil
}

// absent is an absence, unless an update was just sent from it: then that one was not made.
func (p *PushEffect) absent(preState map[string]any) effect.Observation {
	if missed := p.missed; missed != nil {
		p.missed = nil
		return *missed
	}
	return effect.Observation{Verdict: effect.Absent, PreState: preState}
}

// Perform pushes from what was observed.
func (p *PushEffect) Perform(ctx context.Context, absent effect.Observation) error {
	old, _ := absent.PreState[memberRemoteCommit].(string)
	pack, err := p.Objects.PackFor(p.Worktree, old)
	if err != nil {
		return err
	}
	err = p.Remote.Push(ctx, RefUpdate{Ref: p.ref(), Old: old, New: p.Worktree.Head}, pack)
	if reason, retryAfter, ok := Unavailable(err); ok {
		missed := effect.Missed(reason, retryAfter)
		p.missed = &missed
	}
	return err
}

// IsCreate is false: an update names what it starts from, so it cannot be made twice.
func (p *PushEffect) IsCreate(effect.Observation) bool {
	return false
}

// observed is what an error of listing says.
func observed(err error) (effect.Observation, error) {
	if reason, retryAfter, ok := Unavailable(err); ok {
		return effect.Missed(reason, retryAfter), nil
	}
	if final, ok := errors.AsType[*effect.Failure](err); ok {
		return effect.Observation{}, final
	}
	return effect.Observation{}, err
}
