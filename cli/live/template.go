package live

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/terminal"
	"github.com/apitomy/axiom-operator/internal/template"
)

func (a *app) template() *cobra.Command {
	cmd := command.Group("template", "Look at the templates of agent sessions", `
A template says how an agent is set up: what it is told, which tools it may use. Some
are built in; others are SessionTemplates of the namespace.`)
	cmd.AddCommand(a.list(), a.show(), a.clone())
	return cmd
}

// A templateAnswer is a template, built in or of the namespace.
type templateAnswer struct {
	Name         string                   `json:"name"`
	BuiltIn      bool                     `json:"builtIn"`
	DisplayName  string                   `json:"displayName"`
	Capabilities []string                 `json:"capabilities"`
	Spec         *api.SessionTemplateSpec `json:"spec,omitempty"`
}

func builtIn(name string, spec api.SessionTemplateSpec) templateAnswer {
	return templateAnswer{
		Name: name, BuiltIn: true, DisplayName: spec.DisplayName, Capabilities: template.Capabilities(name, false).Names(), Spec: &spec,
	}
}

// ownTemplate is one of the namespace. It can grant nothing.
func ownTemplate(object *api.SessionTemplate) templateAnswer {
	return templateAnswer{Name: object.Name, DisplayName: object.Spec.DisplayName, Capabilities: []string{}, Spec: &object.Spec}
}

type templatesAnswer []templateAnswer

// Tell implements [command.Answer].
func (x templatesAnswer) Tell(p *command.Page) {
	table := tabwriter.NewWriter(&p.Builder, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tFROM\tCAPABILITIES\tDISPLAY NAME")
	for _, t := range x {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, t.from(), orDash(t.Capabilities), command.Clean(t.DisplayName))
	}
	_ = table.Flush()
}

func (x templateAnswer) from() string {
	if x.BuiltIn {
		return "built-in"
	}
	return "namespace"
}

func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}

// Tell implements [command.Answer].
func (x templateAnswer) Tell(p *command.Page) {
	p.Line("%s  %s", p.Paint(terminal.Bold, x.Name), p.Paint(terminal.Dim, x.from()))
	servers := make([]string, 0, len(x.Spec.MCPServers))
	for _, server := range x.Spec.MCPServers {
		servers = append(servers, strings.TrimSpace(server.Name+" "+server.URL))
	}
	for _, row := range []struct{ name, value string }{
		{"display name", x.DisplayName},
		{"description", x.Spec.Description},
		{"welcome", x.Spec.WelcomeMessage},
		{"capabilities", orDash(x.Capabilities)},
		{"servers", orDash(servers)},
		{"tools", orDash(x.Spec.AllowedTools)},
	} {
		if row.value != "" {
			p.Line("%-12s  %s", row.name, command.Clean(row.value))
		}
	}
	p.Line("\n%s", p.Paint(terminal.Bold, "system prompt"))
	for line := range strings.Lines(x.Spec.SystemPrompt) {
		p.Line("%s", strings.TrimRight("  "+command.Clean(line), " "))
	}
}

func (a *app) list() *cobra.Command {
	cmd := command.Leaf("list [-o json]", "List templates", `
Lists the templates that are built in and those of the namespace. Capabilities open
routes of the gateway; only built-in templates have any.`, `
  axiom template list
  axiom template list -n team-a -o json | jq -r '.[].name'`)
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		own := &api.SessionTemplateList{}
		if err := c.List(cmd.Context(), own, client.InNamespace(c.namespace)); err != nil {
			return fmt.Errorf("list templates: %w", explain(err))
		}
		answer := templatesAnswer{}
		for _, name := range template.Names() {
			spec, _ := template.BuiltIn(name)
			answer = append(answer, builtIn(name, spec))
		}
		for i := range own.Items {
			answer = append(answer, ownTemplate(&own.Items[i]))
		}
		for i := range answer {
			answer[i].Spec = nil // "show" has it
		}
		return a.Show(answer)
	}
	return cmd
}

func (a *app) show() *cobra.Command {
	cmd := command.Leaf("show TEMPLATE [-o json]", "Show a template", `
Shows what an agent of the template is told and may use. What is built in needs no
cluster to be shown.`, `
  axiom template show axiom-workbench
  axiom template show general-assistant -o json | jq -r .spec.systemPrompt`)
	cmd.Args = exactArgs("the name of a template")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := a.findTemplate(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return a.Show(found)
	}
	return cmd
}

// findTemplate looks among those that are built in first: their names are taken.
func (a *app) findTemplate(ctx context.Context, name string) (templateAnswer, error) {
	if spec, found := template.BuiltIn(name); found {
		return builtIn(name, spec), nil
	}
	c, err := a.connect()
	if err != nil {
		return templateAnswer{}, err
	}
	own := &api.SessionTemplate{}
	err = c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, own)
	if isMissing(err) {
		return templateAnswer{}, fmt.Errorf("there is no template %s, neither built in nor in namespace %s", name, c.namespace)
	}
	if err != nil {
		return templateAnswer{}, fmt.Errorf("read template: %w", explain(err))
	}
	return ownTemplate(own), nil
}

// A cloneRefusal tells of a template that cannot be cloned.
type cloneRefusal struct {
	Template     string   `json:"template"`
	Cloned       bool     `json:"cloned"`
	Reason       string   `json:"reason"`
	Capabilities []string `json:"capabilities"`
}

func (a *app) clone() *cobra.Command {
	cmd := command.Leaf("clone TEMPLATE [--name NAME] [-o yaml|json]", "Print a template as the start of another one", `
Prints a SessionTemplate that says the same, to be changed and applied.

A template with capabilities cannot be cloned: they are for built-in templates only,
and without them the agent could do nothing of what it is told to.`, `
  axiom template clone general-assistant --name editor > editor.yaml`)
	cmd.Args = exactArgs("the name of a template")
	var name string
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the new template; without it, that of the old one with -copy")
	a.AddOutput(cmd, command.YAML, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := a.findTemplate(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if len(found.Capabilities) > 0 {
			return a.refuseClone(found)
		}
		if name == "" {
			name = found.Name + "-copy"
		}
		manifest, err := cloneOf(found.Spec, name)
		if err != nil {
			return err
		}
		return a.showManifest(manifest)
	}
	return cmd
}

func (a *app) refuseClone(found templateAnswer) error {
	reason := "it has capabilities, which no other template may have: " + strings.Join(found.Capabilities, ", ")
	if a.Format() != command.JSON {
		a.Complain(fmt.Sprintf("%s cannot be cloned: %s", found.Name, reason))
		return command.ErrVerdict
	}
	if err := a.ShowJSON(cloneRefusal{Template: found.Name, Reason: reason, Capabilities: found.Capabilities}); err != nil {
		return err
	}
	return command.ErrVerdict
}

// cloneOf is a manifest of a template that says what another one does.
func cloneOf(spec *api.SessionTemplateSpec, name string) (map[string]any, error) {
	clone := api.SessionTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec}
	clone.SetGroupVersionKind(api.GroupVersion.WithKind("SessionTemplate"))
	data, err := json.Marshal(clone)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	return manifestOf(object), nil
}
