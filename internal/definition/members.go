package definition

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxComponents bounds a bundle.
const maxComponents = 32

// Rules of bundles.
const (
	ruleNotMapping = "not-a-mapping"
	ruleEmpty      = "empty"
	ruleMember     = "member"
	ruleTooMany    = "too-many"
)

// A member is an entry of a bundle, valid or not.
type member struct {
	key, value *yaml.Node
	name       string
	text       yamlText
}

func (m member) fault(code, rule string) *fault {
	return m.text.with(code).fault(rule, m.key.Line)
}

// readBundle lists the entries of the bundle in the order of their names, those of equal names as written.
func (d *document) readBundle() ([]member, *fault) {
	text := d.headText.with(CodeBundleMalformed)
	bundle := memberOf(d.head, memberWorkflow)
	if bundle == nil {
		return nil, nil
	}
	if rule := ruleOfMapping(bundle); rule != "" {
		return nil, text.fault(rule, bundle.Line)
	}
	components := memberOf(bundle, memberComponents)
	if components == nil || len(bundle.Content) != 2 {
		return nil, text.fault(ruleMember, bundle.Line)
	}
	if rule := ruleOfMapping(components); rule != "" {
		return nil, text.fault(rule, components.Line)
	}
	if len(components.Content) > 2*maxComponents {
		return nil, text.fault(ruleTooMany, components.Line)
	}
	var members []member
	for i := 0; i < len(components.Content); i += 2 {
		key := components.Content[i]
		members = append(members, member{key: key, value: components.Content[i+1], name: key.Value, text: text})
	}
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return members, nil
}

func ruleOfMapping(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.MappingNode:
		return ruleNotMapping
	case len(n.Content) == 0:
		return ruleEmpty
	}
	return ""
}
