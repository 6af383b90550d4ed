package mcpserver_test

import (
	"os"
	"strings"
	"testing"

	"github.com/apitomy/axiom-operator/internal/expression"
)

func TestSchemaNamesEveryScope(t *testing.T) {
	schema, err := os.ReadFile("testdata/evaluate_expression.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range expression.Scopes() {
		if !strings.Contains(string(schema), string(scope)) {
			t.Errorf("the schema does not name scope %s", scope)
		}
	}
}
