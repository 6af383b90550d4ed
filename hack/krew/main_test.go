package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func archives(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What krew asks of a manifest before it takes it into its index.
var (
	pluginName = regexp.MustCompile(`^[\w-]+$`)
	semantic   = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[\w.]+)?$`)
	digest     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func TestManifestIsOneForKrew(t *testing.T) {
	dir := archives(t, "axiom_linux_amd64.tar.gz", "axiom_linux_arm64.tar.gz", "axiom_darwin_arm64.tar.gz", "axiom_windows_amd64.tar.gz", "other.tar.gz")
	var out bytes.Buffer
	if err := write(&out, "v0.2.0-rc.1", dir); err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || !pluginName.MatchString(m.Metadata.Name) || !semantic.MatchString(m.Spec.Version) {
		t.Errorf("it begins\n%.300s", out.String())
	}
	if short := m.Spec.ShortDescription; short == "" || len(short) > 60 || strings.ContainsAny(short, "\r\n") || strings.HasSuffix(short, ".") || m.Spec.Description == "" {
		t.Errorf("the description is %q", short)
	}
	seen := map[string]string{}
	for _, p := range m.Spec.Platforms {
		labels := p.Selector.MatchLabels
		seen[labels["os"]+"/"+labels["arch"]] = p.Bin
		if !digest.MatchString(p.SHA256) || !strings.HasPrefix(p.URI, "https://") || !strings.Contains(p.URI, "/"+m.Spec.Version+"/") || filepath.Ext(p.URI) != ".gz" {
			t.Errorf("platform %v comes from %s, %s", labels, p.URI, p.SHA256)
		}
		if len(p.Files) != 2 || p.Files[0].From != p.Bin || p.Files[0].To != "." {
			t.Errorf("platform %v has the files %v", labels, p.Files)
		}
	}
	want := map[string]string{
		"linux/amd64": "kubectl-axiom", "linux/arm64": "kubectl-axiom", "darwin/arm64": "kubectl-axiom", "windows/amd64": "kubectl-axiom.exe",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("platforms mismatch (-want +got):\n%s", diff)
	}
}

func TestManifestsThatAreNotWritten(t *testing.T) {
	for name, tc := range map[string]struct{ version, dir, want string }{
		"without a version":  {"0.2.0", archives(t, "axiom_linux_amd64.tar.gz"), "must begin with v"},
		"without archives":   {"v0.2.0", archives(t), "there are no archives"},
		"of another archive": {"v0.2.0", archives(t, "axiom_linux_amd64_v2.tar.gz"), "is not named"},
	} {
		if err := write(io.Discard, tc.version, tc.dir); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
