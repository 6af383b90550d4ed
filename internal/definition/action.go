package definition

import (
	"maps"
	"slices"
	"time"

	"github.com/apitomy/axiom-operator/internal/fragment"
	"github.com/apitomy/axiom-operator/internal/reply"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// An ActionConfig is what a node says of its action, as it is written.
type ActionConfig struct {
	// Action is the type.
	Action string
	// Prompt refers to a section. Body does, or is a text.
	Prompt, Body string
	// Reply is what an agent has to reply.
	Reply Reply
	// Allow are the classes that a fragment may have.
	Allow []string
	// Include and Exclude are patterns of the paths that a fragment may name.
	Include, Exclude []string
	// Method of a request, and whether every other status than success fails.
	Method     string
	Require2xx bool
	// Credentials is an alias of the run; empty: none are wanted.
	Credentials string
	// Timeout of an activation.
	Timeout time.Duration
}

// A Reply is the contract of a reply.
type Reply struct {
	// Schema is a JSON Schema; nil if any text will do.
	Schema any
	// Repairs is how often the agent may correct the form.
	Repairs int
}

// Rules of actions.
const (
	ruleActionType = "action-type"
	ruleConfig     = "config-member"
	ruleInput      = "input"
	ruleNoInput    = "missing-input"
	ruleOutput     = "output"
	ruleReply      = "reply"
	ruleSchema     = "reply-schema"
)

// Members that every action has.
const (
	memberActionType = "actionType"
)

var actionMembers = []string{memberActionType, memberInputs, memberOutputs, memberTimeout}

// readAction holds the configuration of an action against the contract; what is wrong with it is told by a rule.
func readAction(node workflow.Node) (ActionConfig, string) {
	raw := node.Config()
	action, _ := raw[memberActionType].(string)
	contract, known := ContractOf(action)
	if !known {
		return ActionConfig{}, ruleActionType
	}
	if rule := contract.checkNames(node); rule != "" {
		return ActionConfig{}, rule
	}
	config := ActionConfig{
		Action: action, Timeout: contract.Timeout, Method: "GET", Allow: []string{string(fragment.Read)}, Reply: Reply{Repairs: reply.DefaultRepairs},
	}
	if timeout, ok := node.Timeout(); ok {
		config.Timeout = timeout
	}
	if config.Timeout > maxTimeout {
		return config, memberTimeout
	}
	for _, name := range []string{memberPrompt, memberBody} {
		if _, isString := raw[name].(string); slices.Contains(contract.Config, name) && !isString {
			return config, name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if rule := config.read(name, raw[name]); rule != "" {
			return config, rule
		}
	}
	return config, ""
}

// checkNames refuses whatever the contract does not have, and the lack of what it demands.
func (c Contract) checkNames(node workflow.Node) string {
	for name := range node.Config() {
		if !slices.Contains(actionMembers, name) && !slices.Contains(c.Config, name) {
			return ruleConfig
		}
	}
	inputs := node.Inputs()
	for name := range inputs {
		if !hasParameter(c.Inputs, name) {
			return ruleInput
		}
	}
	for _, input := range c.Inputs {
		if input.Required && inputs[input.Name] == nil {
			return ruleNoInput + " " + input.Name
		}
	}
	for _, output := range node.OutputFields() {
		if !hasParameter(c.Outputs, output.Name()) {
			return ruleOutput
		}
	}
	return ""
}

// read takes one member that only some actions have. A null one is absent.
func (a *ActionConfig) read(name string, v any) (rule string) {
	if name == memberReply && v != nil {
		return a.readReply(v)
	}
	read, isMember := map[string]func(v any) bool{
		memberPrompt:      func(v any) (ok bool) { a.Prompt, ok = v.(string); return ok },
		memberBody:        func(v any) (ok bool) { a.Body, ok = v.(string); return ok },
		memberAllow:       func(v any) (ok bool) { a.Allow, ok = readAllow(v); return ok },
		memberPaths:       a.readPaths,
		memberMethod:      func(v any) (ok bool) { a.Method, ok = v.(string); return ok && slices.Contains(methods, a.Method) },
		memberRequire2xx:  func(v any) (ok bool) { a.Require2xx, ok = v.(bool); return ok },
		memberCredentials: func(v any) (ok bool) { a.Credentials, ok = v.(string); return ok && a.Credentials != "" },
	}[name]
	if v == nil || !isMember || read(v) {
		return ""
	}
	return name
}

// methods are those of requests that change nothing.
var methods = []string{"GET", "HEAD"}

func (a *ActionConfig) readReply(v any) (rule string) {
	raw, isObject := v.(map[string]any)
	for name := range raw {
		isObject = isObject && (name == "schema" || name == "repairs")
	}
	repairs, isInteger := raw["repairs"].(int64)
	switch {
	case !isObject, raw["repairs"] != nil && (!isInteger || reply.CheckRepairs(repairs) != nil):
		return ruleReply
	case reply.Contract{Schema: raw["schema"]}.Check() != nil:
		return ruleSchema
	case isInteger:
		a.Reply.Repairs = int(repairs)
	}
	a.Reply.Schema = raw["schema"]
	return ""
}

// readAllow reads classes of fragments: at least one, none twice.
func readAllow(v any) ([]string, bool) {
	classes, ok := readStrings(v)
	return classes, ok && fragment.Options{Allow: classes}.Check() == nil
}

func (a *ActionConfig) readPaths(v any) bool {
	raw, ok := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		patterns, isList := readStrings(raw[name])
		ok = ok && isList
		switch name {
		case "include":
			a.Include = patterns
		case "exclude":
			a.Exclude = patterns
		default:
			return false
		}
	}
	return ok && fragment.Options{Include: a.Include, Exclude: a.Exclude}.Check() == nil
}

func readStrings(v any) ([]string, bool) {
	list, ok := v.([]any)
	texts := make([]string, 0, len(list))
	for _, entry := range list {
		text, isString := entry.(string)
		ok = ok && isString
		texts = append(texts, text)
	}
	return texts, ok
}
