package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the rendered charts in testdata/ that the suites apply to an API server")

const root = "../.."

// object is one of Kubernetes, as a tree.
type object = map[string]any

// render returns the objects that the chart makes in a namespace, by their key,
// and its notes.
func render(t *testing.T, namespace, values string) (objects map[string]object, notes string) {
	t.Helper()
	texts, err := renderTexts(namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]object{}
	for name, text := range texts {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = text
			continue
		}
		if err := addDocuments(objects, []byte(text)); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
	}
	return objects, notes
}

func renderTexts(namespace, values string) (map[string]string, error) {
	chart, err := loader.LoadDir(filepath.Join(root, "charts", "axiom-operator"))
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "axiom", Namespace: namespace, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// addDocuments parses a text of many documents; two of one key are an error.
func addDocuments(objects map[string]object, text []byte) error {
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o object
		err := yaml.UnmarshalStrict(bytes.TrimPrefix(document, []byte("---\n")), &o)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(o) == 0 {
			continue
		}
		if _, twice := objects[keyOf(o)]; twice {
			return fmt.Errorf("%s is there twice", keyOf(o))
		}
		objects[keyOf(o)] = o
	}
	return nil
}

func keyOf(o object) string {
	metadata, _ := o["metadata"].(object)
	namespace, _ := metadata["namespace"].(string)
	return fmt.Sprintf("%v %s/%v", o["kind"], namespace, metadata["name"])
}

// kustomized are the objects of overlays in config/, by their key.
func kustomized(t *testing.T, overlay string) map[string]object {
	t.Helper()
	resources, err := build(root, overlay)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]object{}
	if err := addDocuments(objects, text); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		byName(o)
	}
	return objects
}

// byName orders webhooks: the API server takes them as a map, and kustomize moves
// those that it patches.
func byName(o object) {
	hooks, _ := o["webhooks"].([]any)
	slices.SortFunc(hooks, func(a, b any) int {
		return strings.Compare(a.(object)["name"].(string), b.(object)["name"].(string))
	})
}

// plain takes away what the chart adds to every object.
func plain(objects map[string]object) {
	for _, o := range objects {
		byName(o)
		metadata := o["metadata"].(object)
		strip(metadata, "labels", "app.kubernetes.io/", "helm.sh/")
		strip(metadata, "annotations", "helm.sh/")
		if o["kind"] == "Deployment" {
			strip(o["spec"].(object)["template"].(object)["metadata"].(object), "labels", "app.kubernetes.io/", "helm.sh/")
		}
	}
}

func strip(metadata object, member string, prefixes ...string) {
	texts, isThere := metadata[member].(object)
	if !isThere {
		return
	}
	maps.DeleteFunc(texts, func(key string, _ any) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	if len(texts) == 0 {
		delete(metadata, member)
	}
}

// asText writes objects in the order of their keys.
func asText(t *testing.T, objects map[string]object) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		written, err := yaml.Marshal(objects[key])
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(written)
	}
	return text.Bytes()
}

// golden compares with a file of testdata/, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is out of date: go test -update in hack/dist", path)
	}
}
