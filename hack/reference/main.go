// Command reference writes what agents are told of the language they work in:
// node kinds, expressions, events, action types, tools and change sets.
//
// Names, lists and limits come from the packages and schemas that enforce them,
// so that an agent is never told of what the operator does not know; the words
// between them are in the templates beside this file.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/event"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

//go:embed *.tmpl
var pages embed.FS

// facts are what the pages tell.
type facts struct {
	Kinds                   []kind
	FieldTypes              []string
	Scopes                  []scope
	EventTypes              []string
	Event, ActionType, Tool []field
	Codes                   []code
}

type kind struct {
	Name    workflow.Kind
	Members []workflow.Member
}

type scope struct {
	Name      expression.Scope
	Result    string
	Variables []string
}

// code of a rejection, and what an agent does about it.
type code struct{ Name, Means string }

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// run writes the pages of the repository at root.
func run(root string) error {
	known, err := gather(root)
	if err != nil {
		return err
	}
	for _, page := range []string{"reference", "changesets"} {
		text, err := render(page, known)
		if err != nil {
			return err
		}
		path := filepath.Join(root, "internal", "template", "zz_generated."+page+".md")
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // source that everybody may read
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}

func gather(root string) (facts, error) {
	known := facts{FieldTypes: workflow.FieldTypes(), EventTypes: event.GitHubTypes(), Codes: codes()}
	for _, k := range workflow.Kinds() {
		known.Kinds = append(known.Kinds, kind{k, k.Members()})
	}
	for _, s := range expression.Scopes() {
		result := "any value"
		if s.IsCondition() {
			result = "boolean"
		}
		known.Scopes = append(known.Scopes, scope{s, result, s.Variables()})
	}
	compositions, err := readSchema(root, "compositions")
	if err != nil {
		return known, err
	}
	events, err := readSchema(root, "streamevents")
	if err != nil {
		return known, err
	}
	known.ActionType = compositions.at("actionTypes").Items.fields()
	known.Tool = compositions.at("tools").Items.fields()
	known.Event = events.fields()
	return known, nil
}

func codes() []code {
	return []code{
		{changeset.CodeStale, "`baseRevision` is not the working revision: call get_composition"},
		{changeset.CodeMalformed, "a member is missing or of the wrong type"},
		{changeset.CodeTargetMissing, "no node or edge has that id"},
		{changeset.CodeDuplicateID, "a node or edge has that id already"},
		{changeset.CodeEdgeEndpointMissing, "an edge's source or target does not exist"},
	}
}

func render(page string, known facts) ([]byte, error) {
	name := page + ".md.tmpl"
	parsed, err := template.New(name).Funcs(template.FuncMap{"code": quoted}).ParseFS(pages, name)
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, known); err != nil {
		return nil, fmt.Errorf("render page: %w", err)
	}
	return text.Bytes(), nil
}

// quoted sets names in code, with commas between.
func quoted(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
