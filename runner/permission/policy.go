// Package permission decides what an agent's permission request is answered.
//
// The protocol carries no tool name, so one is read from the request first
// ([Names]) and then held against the list of allowed tools ([Policy]). Only
// an exact entry, or a `Bash(<prefix> *)` entry whose prefix begins the one
// simple command, allows; whatever cannot be named is denied. An answer is
// always one of the options on offer, and never one that allows for good.
//
// An agent writes its own titles: the policy keeps an honest agent on its
// path, and is no wall against a dishonest one. The package knows nothing of
// connections or of what the tools do.
package permission

import (
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// shell is the tool whose rules look at the command.
const shell = "Bash"

// Call is the tool call that an agent asks permission for.
type Call struct {
	// Name of the tool, or empty if it could not be read.
	Name string
	// Input of the tool as the agent reported it: a JSON tree.
	Input any
}

// Policy allows exactly the tools it lists. The zero value allows nothing.
type Policy struct {
	names    map[string]bool
	prefixes []string
}

// NewPolicy returns the policy of a list of allowed tools: exact names, or
// `Bash(<prefix> *)`.
func NewPolicy(allowedTools []string) Policy {
	policy := Policy{names: make(map[string]bool, len(allowedTools))}
	for _, rule := range allowedTools {
		if prefix, ok := commandPrefix(rule); ok {
			policy.prefixes = append(policy.prefixes, prefix)
			continue
		}
		if rule != "" {
			policy.names[rule] = true
		}
	}
	return policy
}

// commandPrefix returns the words that a `Bash(<prefix> *)` rule wants a
// command to begin with.
func commandPrefix(rule string) (string, bool) {
	inner, ok := strings.CutPrefix(rule, shell+"(")
	if !ok {
		return "", false
	}
	prefix, ok := strings.CutSuffix(inner, " *)")
	return prefix, ok && strings.TrimSpace(prefix) != ""
}

// Allows reports whether the call may be made.
func (p Policy) Allows(call Call) bool {
	if call.Name == "" {
		return false
	}
	if p.names[call.Name] {
		return true
	}
	if call.Name != shell {
		return false
	}
	command, ok := commandOf(call.Input)
	if !ok {
		return false
	}
	for _, prefix := range p.prefixes {
		if isSimpleCommand(command, prefix) {
			return true
		}
	}
	return false
}

func commandOf(input any) (string, bool) {
	object, ok := input.(map[string]any)
	if !ok {
		return "", false
	}
	command, ok := object["command"].(string)
	return command, ok
}

// Answer picks the outcome for the options on offer. An allowed call takes
// the option that allows once; without one on offer, or when the call is
// denied, the answer is the first on offer of: reject once, reject always,
// cancelled. allowed tells which of the two it was.
func Answer(options []acp.PermissionOption, allow bool) (outcome acp.RequestPermissionOutcome, allowed bool) {
	if allow {
		if id, ok := offered(options, acp.PermissionOptionKindAllowOnce); ok {
			return selected(id), true
		}
	}
	for _, kind := range []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways} {
		if id, ok := offered(options, kind); ok {
			return selected(id), false
		}
	}
	return Cancelled(), false
}

func offered(options []acp.PermissionOption, kind acp.PermissionOptionKind) (acp.PermissionOptionId, bool) {
	for _, option := range options {
		if option.Kind == kind && isUnambiguous(options, option) {
			return option.OptionId, true
		}
	}
	return "", false
}

// isUnambiguous reports whether every option with the same id is of the same
// kind: answering an id that also stands for "always" would be answered so.
func isUnambiguous(options []acp.PermissionOption, picked acp.PermissionOption) bool {
	for _, option := range options {
		if option.OptionId == picked.OptionId && option.Kind != picked.Kind {
			return false
		}
	}
	return true
}

func selected(id acp.PermissionOptionId) acp.RequestPermissionOutcome {
	return acp.RequestPermissionOutcome{Selected: &acp.RequestPermissionOutcomeSelected{OptionId: id, Outcome: "selected"}}
}

// Cancelled is the answer to requests of a prompt that is being cancelled.
func Cancelled() acp.RequestPermissionOutcome {
	return acp.RequestPermissionOutcome{Cancelled: &acp.RequestPermissionOutcomeCancelled{Outcome: "cancelled"}}
}
