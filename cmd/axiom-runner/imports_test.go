package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRunnerCarriesNoKubernetes keeps the program small: it is copied into
// every agent pod, and has no business with the API server.
func TestRunnerCarriesNoKubernetes(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go tool to ask")
	}
	out, err := exec.Command(tool, "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "sigs.k8s.io/") {
			t.Errorf("it depends on %s", path)
		}
	}
}
