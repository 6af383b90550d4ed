package action

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Modes of action types.
const (
	ModeScript = "script"
	// ModeNode is another name for ModeScript.
	ModeNode  = "node"
	ModeAgent = "agent"
)

// Interpreters of scripts.
const (
	InterpreterBash   = "bash"
	InterpreterNode   = "node"
	InterpreterPython = "python"
)

// Types of fields. An empty type is TypeString.
const (
	TypeString  = "string"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeObject  = "object"
)

// A Type is an action type.
type Type struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Mode        string   `json:"mode"`
	Script      Script   `json:"script"`
	Agent       Agent    `json:"agent"`
	Env         []EnvVar `json:"env"`
	Inputs      []Field  `json:"inputs"`
	Outputs     []Field  `json:"outputs"`
}

// A Script is what an action type of mode script runs.
type Script struct {
	Interpreter string `json:"interpreter"`
	Template    string `json:"scriptTemplate"`
	Image       string `json:"image"`
}

// An Agent is what an action type of mode agent asks.
type Agent struct {
	Prompt          string `json:"promptTemplate"`
	SessionTemplate string `json:"sessionTemplate"`
}

// An EnvVar is a variable of a script's environment.
type EnvVar struct {
	Name   string  `json:"name"`
	Value  string  `json:"value"`
	Secret *KeyRef `json:"secretKeyRef"`
}

// A KeyRef names a key of a Secret.
type KeyRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// A Field is a declared input, output or parameter.
type Field struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

// A Tool is a script with parameters that agents may call.
type Tool struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Parameters  []Field  `json:"parameters"`
	Interpreter string   `json:"interpreter"`
	Template    string   `json:"scriptTemplate"`
	Labels      []string `json:"labels"`
}

// ReadType reads an action type from anything whose JSON has its members: a
// document or an API type. Unknown members are passed over.
func ReadType(name string, spec any) (Type, error) {
	var t Type
	if err := convert(spec, &t); err != nil {
		return Type{}, fmt.Errorf("read action type %q: %w", name, err)
	}
	t.Name = name
	return t, nil
}

// ReadTool reads a tool as ReadType reads an action type.
func ReadTool(name string, spec any) (Tool, error) {
	var t Tool
	if err := convert(spec, &t); err != nil {
		return Tool{}, fmt.Errorf("read tool %q: %w", name, err)
	}
	t.Name = name
	return t, nil
}

func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode item: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode item: %w", err)
	}
	return nil
}

// RunsScript tells whether the action is a script.
func (t Type) RunsScript() bool {
	return t.Mode == ModeScript || t.Mode == ModeNode
}

// Language is the interpreter of the script, bash unless it says otherwise.
func (s Script) Language() string {
	if s.Interpreter == "" {
		return InterpreterBash
	}
	return s.Interpreter
}

// identifier is what a variable of any of the interpreters may be called.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func blank(s string) bool {
	return strings.TrimSpace(s) == ""
}
