package cli_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	// live is the one package of the command line that speaks with a cluster.
	live = "github.com/apitomy/axiom-operator/cli/live"
	// supervised has a scanner for secrets in it, whose library knows the network.
	supervised = "github.com/apitomy/axiom-operator/cli/supervised"
)

// What works on files needs no cluster and no network, and neither does anything
// that it is made of.
func TestNoKubernetesInside(t *testing.T) {
	own := goList(t, "./...")
	own = slices.DeleteFunc(own, func(name string) bool { return name == live || name == supervised })
	packages := goList(t, append([]string{"-deps"}, own...)...)
	if len(packages) < 50 {
		t.Fatalf("only %d packages: %v", len(packages), packages)
	}
	for _, name := range packages {
		first, _, _ := strings.Cut(name, "/")
		if first == "k8s.io" || first == "sigs.k8s.io" || name == "net/http" || name == "crypto/tls" || name == live {
			t.Errorf("it has %s", name)
		}
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(list))
}
