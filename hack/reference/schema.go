package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// schema is what the reference tells of an OpenAPI schema.
type schema struct {
	Type        string             `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
	MaxLength   int                `json:"maxLength"`
	MaxItems    int                `json:"maxItems"`
	Pattern     string             `json:"pattern"`
	Enum        []string           `json:"enum"`
}

// field is a row of the reference.
type field struct{ Path, Text, Rules string }

// readSchema reads the schema of a kind's spec from its definition.
func readSchema(root, resource string) (*schema, error) {
	data, err := os.ReadFile(filepath.Join(root, "config", "crd", "bases", "axiom.apitomy.io_"+resource+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return nil, fmt.Errorf("decode definition of %s: %w", resource, err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.at("spec"), nil
}

func (s *schema) at(name string) *schema { return s.Properties[name] }

// fields are the members of an object, those of the objects in it among them.
func (s *schema) fields() []field { return s.below("") }

func (s *schema) below(prefix string) []field {
	var rows []field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member := s.Properties[name]
		path := prefix + name
		rows = append(rows, field{Path: path, Text: member.text(), Rules: member.rules(slices.Contains(s.Required, name))})
		switch {
		case member.Items != nil:
			rows = append(rows, member.Items.below(path+"[].")...)
		default:
			rows = append(rows, member.below(path+".")...)
		}
	}
	return rows
}

func (s *schema) text() string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s.Description), " "), "|", `\|`)
}

func (s *schema) rules(isRequired bool) string {
	rules := []string{s.form()}
	if isRequired {
		rules = append(rules, "required")
	}
	if s.MaxLength > 0 {
		rules = append(rules, fmt.Sprintf("at most %d characters", s.MaxLength))
	}
	if s.MaxItems > 0 {
		rules = append(rules, fmt.Sprintf("at most %d entries", s.MaxItems))
	}
	if s.Pattern != "" {
		rules = append(rules, "matches `"+strings.ReplaceAll(s.Pattern, "|", `\|`)+"`")
	}
	if len(s.Enum) > 0 {
		rules = append(rules, "one of "+quoted(s.Enum))
	}
	return strings.Join(rules, ", ")
}

// form is the type of a value as people call it.
func (s *schema) form() string {
	switch s.Type {
	case "string":
		return "text"
	case "array":
		return "list"
	}
	return s.Type
}
