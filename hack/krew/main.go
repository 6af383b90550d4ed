// Command krew writes the manifest by which krew installs axiom as a plugin of kubectl,
// for the archives of a release:
//
//	go run ./hack/krew --version v0.1.0 --archives dist > axiom.yaml
//
// An archive is named axiom_OS_ARCH.tar.gz and holds kubectl-axiom, with .exe on
// Windows, and LICENSE.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const home = "https://github.com/apitomy/axiom-operator"

func main() {
	version := flag.String("version", "", "version of the release, such as v0.1.0")
	archives := flag.String("archives", "dist", "directory of the archives")
	flag.Parse()
	if err := write(os.Stdout, *version, *archives); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// A manifest is what krew reads of a plugin.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec spec `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Files  []file `json:"files"`
	Bin    string `json:"bin"`
}

type file struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// write writes the manifest of the archives in a directory.
func write(w io.Writer, version, archives string) error {
	if !strings.HasPrefix(version, "v") {
		return errors.New("the version must begin with v")
	}
	paths, err := filepath.Glob(filepath.Join(archives, "axiom_*_*.tar.gz"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("there are no archives in %s", archives)
	}
	m := manifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"}
	m.Metadata.Name = "axiom"
	m.Spec = spec{
		Version: version, Homepage: home, ShortDescription: "Compose, run and answer agent workflows",
		Description: "Works on workflow documents in files, has agents change compositions,\nfollows and explains runs, lists the questions that wait for people and\nanswers them, and checks an installation of Axiom.\n",
	}
	for _, path := range paths {
		p, err := platformOf(path, version)
		if err != nil {
			return err
		}
		m.Spec.Platforms = append(m.Spec.Platforms, p)
	}
	text, err := yaml.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	_, err = w.Write(text)
	return err
}

func platformOf(path, version string) (platform, error) {
	var p platform
	parts := strings.Split(strings.TrimSuffix(filepath.Base(path), ".tar.gz"), "_")
	if len(parts) != 3 {
		return p, fmt.Errorf("%s is not named axiom_OS_ARCH.tar.gz", path)
	}
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return p, fmt.Errorf("read archive: %w", err)
	}
	sum := sha256.Sum256(data)
	p.Selector.MatchLabels = map[string]string{"os": parts[1], "arch": parts[2]}
	p.URI, p.SHA256 = fmt.Sprintf("%s/releases/download/%s/%s", home, version, filepath.Base(path)), hex.EncodeToString(sum[:])
	p.Bin = "kubectl-axiom"
	if parts[1] == "windows" {
		p.Bin += ".exe"
	}
	p.Files = []file{{From: p.Bin, To: "."}, {From: "LICENSE", To: "."}}
	return p, nil
}
