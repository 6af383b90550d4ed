package live

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

// kept are the prefixes of annotations that are somebody's bookkeeping, and no
// part of what an object is.
var kept = []string{api.GroupVersion.Group + "/", "kubectl.kubernetes.io/"}

// manifestOf is an object as a file in Git would have it: what it shall be, and
// nothing that a server adds.
func manifestOf(object *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": object.GetName()}
	if namespace := object.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels := object.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	annotations := map[string]any{}
	for name, value := range object.GetAnnotations() {
		if !isKept(name) {
			annotations[name] = value
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata, "spec": object.Object["spec"],
	}
}

func isKept(annotation string) bool {
	for _, prefix := range kept {
		if strings.HasPrefix(annotation, prefix) {
			return true
		}
	}
	return false
}

// annotate gives a manifest one more annotation.
func annotate(manifest map[string]any, name, value string) {
	metadata := manifest["metadata"].(map[string]any) //nolint:forcetypeassert // manifestOf made it
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[name] = value
}

// showManifest prints a manifest as YAML, or as JSON if that is wanted.
func (a *app) showManifest(manifest any) error {
	if a.Format() == command.JSON {
		return a.ShowJSON(manifest)
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return a.Print(string(text))
}
