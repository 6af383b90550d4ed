package remotes_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/testing/console"
)

// The list of remotes that the page about supervised runs shows is one.
func TestPageShowsAList(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/supervised.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range console.Blocks(string(page)) {
		if !strings.Contains(block.Text, "kind: ConfigMap\n") {
			continue
		}
		var list corev1.ConfigMap
		if err := yaml.UnmarshalStrict([]byte(block.Text), &list); err != nil {
			t.Fatalf("supervised 60: %v", err)
		}
		if _, err := remotes.Parse(list.Data); err != nil || len(list.Data) != 3 {
			t.Errorf("supervised 60: %d lists, %v", len(list.Data), err)
		}
		return
	}
	t.Error("supervised 60: the page shows no list")
}
