package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// generated heads each file.
const generated = "# Made by make generate from config/; do not edit.\n"

// manifest is one file of dist/ and the overlay of config/ that it is made of.
type manifest struct{ file, overlay string }

func manifests() []manifest {
	return []manifest{
		{"install.yaml", "default"},
		{"crds.yaml", "crd"},
		{"namespaced-cluster.yaml", "namespaced/cluster"},
		{"namespaced-operator.yaml", "namespaced/operator"},
		{"namespaced-watched.yaml", "namespaced/watched"},
	}
}

func addManifests(files map[string][]byte, root, image string) error {
	for _, m := range manifests() {
		resources, err := build(root, m.overlay)
		if err != nil {
			return err
		}
		text, err := resources.AsYaml()
		if err != nil {
			return fmt.Errorf("write %s: %w", m.file, err)
		}
		text = bytes.ReplaceAll(text, []byte(defaultImage), []byte(image))
		files[filepath.Join("dist", m.file)] = append([]byte(generated), text...)
	}
	return nil
}

// build makes the resources of an overlay in config/.
func build(root, overlay string) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces and types before what needs them
	options.PluginConfig = types.DisabledPluginConfig()
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", overlay))
	if err != nil {
		return nil, fmt.Errorf("build config/%s: %w", overlay, err)
	}
	return resources, nil
}

// watchedRole is the role in a namespace that the operator watches.
var watchedRole = filepath.Join("config", "namespaced", "watched", "role.yaml")

// rule of a role, as RBAC spells it.
type rule struct {
	APIGroups     []string `json:"apiGroups"`
	ResourceNames []string `json:"resourceNames,omitempty"`
	Resources     []string `json:"resources"`
	Verbs         []string `json:"verbs"`
}

// role is a Role or a ClusterRole.
type role struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Rules      []rule            `json:"rules"`
}

// namespacedRole is the manager's cluster role without what no role in a namespace
// can allow.
func namespacedRole(root string) ([]byte, error) {
	read, err := filesys.MakeFsOnDisk().ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read cluster role: %w", err)
	}
	var r role
	if err := yaml.UnmarshalStrict(read, &r); err != nil {
		return nil, fmt.Errorf("parse cluster role: %w", err)
	}
	r.Kind = "Role"
	r.Rules = withinNamespaces(r.Rules)
	text, err := yaml.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write role: %w", err)
	}
	return append([]byte(generated), text...), nil
}

// withinNamespaces are the rules without objects that have no namespace.
func withinNamespaces(rules []rule) (kept []rule) {
	for _, r := range rules {
		r.Resources = slices.DeleteFunc(r.Resources, isOfCluster)
		if len(r.Resources) > 0 {
			kept = append(kept, r)
		}
	}
	return kept
}

func isOfCluster(resource string) bool {
	return strings.HasSuffix(resource, "webhookconfigurations") || resource == "tokenreviews" || resource == "subjectaccessreviews"
}
