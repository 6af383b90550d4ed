package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// chartFiles is where the chart's templates find what follows config/.
var chartFiles = filepath.Join("charts", "axiom-operator", "files")

// addChartParts adds the types one by one, and the roles and webhook
// configurations as lists by kind.
func addChartParts(files map[string][]byte, root string) error {
	types, err := build(root, "crd")
	if err != nil {
		return err
	}
	for _, crd := range types.Resources() {
		if files[filepath.Join(chartFiles, "crds", crd.GetName()+".yaml")], err = crd.AsYAML(); err != nil {
			return fmt.Errorf("write type %s: %w", crd.GetName(), err)
		}
	}
	all, err := build(root, "default")
	if err != nil {
		return err
	}
	for name, chosen := range chartParts() {
		text, err := choose(all, chosen)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		files[filepath.Join(chartFiles, name)] = text
	}
	certificates, err := build(root, "cert-manager")
	if err != nil {
		return err
	}
	files[filepath.Join(chartFiles, "certificates.yaml")], err = choose(certificates, func(r *resource.Resource) bool {
		return r.GetGvk().Group == "cert-manager.io"
	})
	if err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	watched, err := filesys.MakeFsOnDisk().ReadFile(filepath.Join(root, watchedRole))
	if err != nil {
		return fmt.Errorf("read role: %w", err)
	}
	files[filepath.Join(chartFiles, "watched-role.yaml")] = watched
	return nil
}

// chartParts are the files of the chart by name, with what belongs into each.
func chartParts() map[string]func(*resource.Resource) bool {
	named := func(kind string, names ...string) func(*resource.Resource) bool {
		return func(r *resource.Resource) bool {
			return r.GetKind() == kind && (len(names) == 0 || r.GetName() == names[0])
		}
	}
	return map[string]func(*resource.Resource) bool{
		"mutating.yaml":       named("MutatingWebhookConfiguration"),
		"validating.yaml":     named("ValidatingWebhookConfiguration"),
		"manager-role.yaml":   named("ClusterRole", managerRole),
		"own-role.yaml":       named("Role"),
		"network-policy.yaml": named("NetworkPolicy"),
		"user-roles.yaml": func(r *resource.Resource) bool {
			return r.GetKind() == "ClusterRole" && r.GetName() != managerRole
		},
	}
}

const managerRole = "axiom-manager-role"

// choose writes the resources that are wanted, as documents of one text.
func choose(all resmap.ResMap, wanted func(*resource.Resource) bool) ([]byte, error) {
	var texts []string
	for _, r := range all.Resources() {
		if !wanted(r) {
			continue
		}
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return []byte(strings.Join(texts, "---\n")), nil
}
