package definition

import (
	"slices"
	"time"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Types of the inputs and outputs of actions, beside those of declarations.
const (
	// TypeStrings is a list of strings.
	TypeStrings = "strings"
	// TypeTexts is an object of strings.
	TypeTexts = "texts"
	// TypeList is a list of anything.
	TypeList = "list"
	// TypeName is the name of something that the run opened, or an object that has it as its member name.
	TypeName = "name"
	// TypeAny is any value but null.
	TypeAny = "any"
)

// Actions of runs that are defined in Git.
const (
	ActionRepositoryOpen      = "repository.open"
	ActionWorktreeOpen        = "worktree.open"
	ActionFilesGlob           = "files.glob"
	ActionFilesRead           = "files.read"
	ActionGitSwitch           = "git.switch"
	ActionGitAdd              = "git.add"
	ActionGitCommit           = "git.commit"
	ActionGitPush             = "git.push"
	ActionPullRequestUpsert   = "pullRequest.upsert"
	ActionPullRequestReviews  = "pullRequest.reviews"
	ActionPullRequestComments = "pullRequest.comments"
	ActionPullRequestChecks   = "pullRequest.checks"
	ActionIssueRead           = "issue.read"
	ActionIssueUpsert         = "issue.upsert"
	ActionHTTPFetch           = "http.fetch"
	ActionAgentPrompt         = "agent.prompt"
	ActionFragmentEvaluate    = "fragment.evaluate"
)

// Members of the configuration that only some actions have.
const (
	memberPrompt      = "prompt"
	memberReply       = "reply"
	memberBody        = "body"
	memberAllow       = "allow"
	memberPaths       = "paths"
	memberMethod      = "method"
	memberRequire2xx  = "require2xx"
	memberCredentials = "credentials"
)

// A Parameter is an input or an output of an action.
type Parameter struct {
	Name     string
	Type     string
	Required bool
}

// A Contract is what an action takes and gives.
type Contract struct {
	Action  string
	Inputs  []Parameter
	Outputs []Parameter
	// Config are the members of the configuration that only some actions have. A prompt and a body are required.
	Config []string
	// Timeout of an activation where nothing is said.
	Timeout time.Duration
}

const (
	defaultTimeout = 10 * time.Minute
	promptTimeout  = 30 * time.Minute
	// maxTimeout bounds what may be said.
	maxTimeout = 24 * time.Hour
)

// Contracts are those of all actions, in the order of their documentation.
func Contracts() []Contract {
	return []Contract{
		local(ActionRepositoryOpen, required(TypeString, "name", "url"), optional(TypeString, "base")).
			gives(TypeObject, "repository").has(memberCredentials),
		local(ActionWorktreeOpen, required(TypeName, "repository"), required(TypeString, "name", "branch"), optional(TypeString, "base")).
			gives(TypeObject, "worktree").has(memberCredentials),
		local(ActionFilesGlob, required(TypeName, "worktree"), required(TypeStrings, "include"), optional(TypeStrings, "exclude")).
			gives(TypeStrings, "paths"),
		local(ActionFilesRead, required(TypeName, "worktree"), required(TypeStrings, "paths")).gives(TypeList, "files"),
		local(ActionGitSwitch, required(TypeName, "worktree"), required(TypeString, "branch"), optional(TypeString, "base")).
			gives(TypeObject, "worktree").has(memberCredentials),
		local(ActionGitAdd, required(TypeName, "worktree"), required(TypeStrings, "paths")).
			gives(TypeStrings, "staged").gives(TypeString, "indexTree"),
		local(ActionGitCommit, required(TypeName, "worktree"), required(TypeString, "message")).
			gives(TypeString, "commit", "parent", "tree"),
		local(ActionGitPush, required(TypeName, "worktree")).gives(TypeObject, "push").has(memberCredentials),
		local(ActionPullRequestUpsert, required(TypeName, "worktree"), required(TypeString, "title"), optional(TypeNumber, "number"),
			optional(TypeString, "base"), optional(TypeBoolean, "draft")).
			gives(TypeObject, "pullRequest").has(memberBody, memberCredentials),
		evidence(ActionPullRequestReviews, "reviews"),
		evidence(ActionPullRequestComments, "comments"),
		evidence(ActionPullRequestChecks, "checks"),
		local(ActionIssueRead, required(TypeString, "url")).gives(TypeObject, "issue").has(memberCredentials),
		local(ActionIssueUpsert, required(TypeString, "tracker", "key", "title"), optional(TypeStrings, "labels"), optional(TypeString, "assignee")).
			gives(TypeObject, "issue").has(memberBody, memberCredentials),
		local(ActionHTTPFetch, required(TypeString, "url"), optional(TypeTexts, "headers")).
			gives(TypeObject, "response").has(memberMethod, memberRequire2xx, memberCredentials),
		local(ActionAgentPrompt, required(TypeString, "agent", "session")).
			gives(TypeAny, "reply").has(memberPrompt, memberReply).within(promptTimeout),
		local(ActionFragmentEvaluate, required(TypeName, "worktree"), required(TypeAny, "fragment")).
			gives(TypeList, "observations", "changed").has(memberAllow, memberPaths),
	}
}

// ContractOf finds the contract of an action.
func ContractOf(action string) (Contract, bool) {
	contracts := Contracts()
	at := slices.IndexFunc(contracts, func(c Contract) bool { return c.Action == action })
	if at < 0 {
		return Contract{}, false
	}
	return contracts[at], true
}

func local(action string, inputs ...[]Parameter) Contract {
	return Contract{Action: action, Inputs: slices.Concat(inputs...), Timeout: defaultTimeout}
}

func evidence(action, list string) Contract {
	return local(action, required(TypeString, "url"), optional(TypeString, "commit")).
		gives(TypeList, list).gives(TypeString, "headSha").has(memberCredentials)
}

func required(valueType string, names ...string) []Parameter {
	return parameters(valueType, true, names)
}

func optional(valueType string, names ...string) []Parameter {
	return parameters(valueType, false, names)
}

func parameters(valueType string, isRequired bool, names []string) []Parameter {
	var all []Parameter
	for _, name := range names {
		all = append(all, Parameter{Name: name, Type: valueType, Required: isRequired})
	}
	return all
}

func (c Contract) gives(valueType string, names ...string) Contract {
	c.Outputs = append(c.Outputs, required(valueType, names...)...)
	return c
}

func (c Contract) has(members ...string) Contract {
	c.Config = members
	return c
}

func (c Contract) within(timeout time.Duration) Contract {
	c.Timeout = timeout
	return c
}

func hasParameter(all []Parameter, name string) bool {
	return slices.ContainsFunc(all, func(p Parameter) bool { return p.Name == name })
}

// take checks the type of a value that is not null, and gives it in the form that actions know.
func (p Parameter) take(v any) (any, bool) {
	switch p.Type {
	case TypeAny:
		return v, true
	case TypeName:
		if object, isObject := v.(map[string]any); isObject {
			v = object["name"]
		}
		_, isString := v.(string)
		return v, isString
	case TypeList:
		_, isList := v.([]any)
		return v, isList
	case TypeStrings:
		list, isList := v.([]any)
		return v, isList && !slices.ContainsFunc(list, isNoString)
	case TypeTexts:
		object, isObject := v.(map[string]any)
		for _, member := range object {
			isObject = isObject && !isNoString(member)
		}
		return v, isObject
	case TypeNumber:
		_, isNumber := jsonvalue.Number(v)
		return v, isNumber
	}
	return v, hasType(v, p.Type)
}

func isNoString(v any) bool {
	_, isString := v.(string)
	return !isString
}
