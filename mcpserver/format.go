package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// formatJSON is a value as JSON, indented by two, with its texts as they are:
// a model reads `<`, not what browsers need it to be.
func formatJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode answer: %w", err)
	}
	tree, err := jsonvalue.Decode(data)
	if err != nil {
		return "", fmt.Errorf("decode answer: %w", err)
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(tree); err != nil {
		return "", fmt.Errorf("encode answer: %w", err)
	}
	return strings.TrimSuffix(buffer.String(), "\n"), nil
}

// verdict tells in a word whether an item with the problems is valid.
func verdict(problems []openapi.ItemProblem) string {
	for _, problem := range problems {
		if problem.Severity == openapi.SeverityError {
			return "INVALID"
		}
	}
	if len(problems) > 0 {
		return "VALID with warnings"
	}
	return "VALID"
}

// lines puts texts one below the other, and leaves out empty ones.
func lines(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\n")
}
