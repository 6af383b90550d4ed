package template

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed zz_generated.reference.md
var reference string

//go:embed zz_generated.changesets.md
var changesetReference string

// Placeholders of a system prompt.
const (
	placeholderReference  = "{{reference}}"
	placeholderChangeSets = "{{changesetReference}}"
)

var placeholderForm = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// Render replaces the placeholders of a system prompt, and leaves what looks like
// one alone.
func Render(systemPrompt string) string {
	return strings.NewReplacer(
		placeholderReference, strings.TrimSpace(reference),
		placeholderChangeSets, strings.TrimSpace(changesetReference),
	).Replace(systemPrompt)
}

// UnknownPlaceholders are those of a system prompt that nothing replaces, each
// once, in their order.
func UnknownPlaceholders(systemPrompt string) []string {
	var unknown []string
	for _, found := range placeholderForm.FindAllString(systemPrompt, -1) {
		isKnown := found == placeholderReference || found == placeholderChangeSets
		if !isKnown && !slices.Contains(unknown, found) {
			unknown = append(unknown, found)
		}
	}
	return unknown
}
