package v1alpha1

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/template"
)

// +kubebuilder:webhook:path=/validate/sessiontemplates,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=sessiontemplates,verbs=create;update,versions=v1alpha1,name=sessiontemplate.axiom.apitomy.io,admissionReviewVersions=v1

var (
	toolNameForm = regexp.MustCompile(`^[A-Za-z0-9_.:/@-]+$`)
	bashForm     = regexp.MustCompile(`^Bash\([^()*]*[^()*\s] \*\)$`)
)

const groupTool = "tool"

func validateTemplate(_ context.Context, req request[api.SessionTemplate]) ([]string, error) {
	spec := &req.after.Spec
	if !req.isCreate() && apiequality.Semantic.DeepEqual(req.before.Spec, *spec) {
		return nil, nil
	}
	if err := req.invalid(validateTemplateSpec(spec, field.NewPath("spec"))); err != nil {
		return nil, err
	}
	return promptWarnings(spec.SystemPrompt), nil
}

func validateTemplateSpec(spec *api.SessionTemplateSpec, path *field.Path) field.ErrorList {
	return slices.Concat(
		validateNotBlank(spec.SystemPrompt, path.Child("systemPrompt")),
		validateServers(spec.MCPServers, path.Child("mcpServers")),
		validateTools(spec, path.Child("allowedTools")),
		validatePatterns(spec.ToolNamePatterns, path.Child("toolNamePatterns")),
	)
}

func validateServers(servers []api.MCPServer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, server := range servers {
		if err := validateServer(server, path.Key(server.Name)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func validateServer(server api.MCPServer, path *field.Path) *field.Error {
	own := template.OwnServers()
	isBuiltIn := slices.ContainsFunc(own, func(s template.Server) bool { return s.Alias == server.Name })
	// The tools of a server with such a name would pass for the operator's own.
	isReserved := slices.ContainsFunc(own, func(s template.Server) bool { return s.Name == server.Name })
	switch {
	case isBuiltIn && server.URL != "":
		return field.Forbidden(path.Child("url"), "must not be set for a built-in server")
	case isBuiltIn:
		return nil
	case strings.HasPrefix(server.Name, "@"):
		return field.NotSupported(path.Child("name"), server.Name, []string{"@axiom-assistant", "@axiom-workbench"})
	case isReserved:
		return field.Invalid(path.Child("name"), server.Name, "must not be the name of a built-in server")
	case !isWebURL(server.URL):
		return field.Invalid(path.Child("url"), server.URL, "must be an absolute URL with http or https")
	}
	return nil
}

func validateTools(spec *api.SessionTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, tool := range spec.AllowedTools {
		switch {
		case !toolNameForm.MatchString(tool) && !bashForm.MatchString(tool):
			errs = append(errs, field.Invalid(path.Index(i), tool, "must be the exact name of a tool, or Bash(<prefix> *)"))
		case strings.HasPrefix(tool, template.MCPPrefix) && !isDeclared(tool, spec.MCPServers):
			errs = append(errs, field.Invalid(path.Index(i), tool, "must be a tool of a server in `mcpServers`"))
		}
	}
	return errs
}

// isDeclared tells whether an MCP tool is one of a declared or built-in server.
// A server's name may hold the separator itself, so names are tried, not cut out.
func isDeclared(tool string, servers []api.MCPServer) bool {
	isOwn := slices.ContainsFunc(template.OwnServers(), func(s template.Server) bool { return s.Has(tool) })
	return isOwn || slices.ContainsFunc(servers, func(s api.MCPServer) bool { return template.Server{Name: s.Name}.Has(tool) })
}

// validatePatterns wants to learn a tool's name at least: built-in tools have
// no server.
func validatePatterns(patterns []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		compiled, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Index(i), pattern, "must be a regular expression: "+err.Error()))
		case compiled.SubexpIndex(groupTool) < 0:
			errs = append(errs, field.Invalid(path.Index(i), pattern, "must have a group `tool`, and a group `server` if the title names one"))
		}
	}
	return errs
}

// promptWarnings tells of placeholders that nothing replaces.
func promptWarnings(prompt string) []string {
	var warnings []string
	unknown := template.UnknownPlaceholders(prompt)
	for _, found := range unknown[:min(len(unknown), maxWarnings)] {
		warnings = append(warnings, fmt.Sprintf("spec.systemPrompt: %.80s is not replaced", found))
	}
	return warnings
}
