package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/workpath"
)

// codeCommitNotPinned is the code of a commit that is a name, or only the
// beginning of an id.
const codeCommitNotPinned = "COMMIT_NOT_PINNED"

// maxRunInputs is what a supervised run's inputs may have in bytes of JSON.
const maxRunInputs = 64 << 10

// documentSuffix is that of every document of a definition.
const documentSuffix = ".md"

var commitForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// validateSupervised judges a new run of a definition in Git, up to the first
// thing that is wrong. It talks to no remote, and repeats no value: any of them
// may have a secret in it. That aliases of credentials are unique, and that there
// is one definition, the schema says.
func (d runDoor) validateSupervised(req request[api.WorkflowRun]) error {
	inputs, err := inputsOf(req.Object.Raw)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	spec, path := &req.after.Spec, field.NewPath("spec")
	for _, check := range []func() field.ErrorList{
		func() field.ErrorList { return validateLocator(spec.Git.URL, path.Child("git", "url")) },
		func() field.ErrorList { return validateCommit(spec.Git.Commit, path.Child("git", "commit")) },
		func() field.ErrorList { return validateDocumentPath(spec.Git.Path, path.Child("git", "path")) },
		func() field.ErrorList { return validateInputsSize(inputs, path.Child("inputs")) },
		func() field.ErrorList { return validateExplicit(spec.ResumePolicy, path.Child("resumePolicy")) },
		func() field.ErrorList { return validateNoSecret(d.scanner, inputs, path.Child("inputs")) },
	} {
		if errs := check(); len(errs) > 0 {
			return req.invalid(errs)
		}
	}
	return nil
}

// inputsOf reads the inputs of a run's JSON; nil without them.
func inputsOf(raw []byte) (any, error) {
	spec, err := memberOf(raw, "spec")
	return spec["inputs"], err
}

// hidden is a field error that does not show the value.
func hidden(path *field.Path, rule string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, rule)}
}

func validateLocator(url string, path *field.Path) field.ErrorList {
	if _, err := remotes.ParseLocator(url); err != nil {
		return hidden(path, err.Error())
	}
	return nil
}

func validateCommit(commit string, path *field.Path) field.ErrorList {
	if commitForm.MatchString(commit) {
		return nil
	}
	return hidden(path, codeCommitNotPinned+": must be the whole id of a commit, 40 or 64 lower-case hexadecimal digits")
}

func validateDocumentPath(document string, path *field.Path) field.ErrorList {
	if workpath.Check(document) == nil && strings.HasSuffix(document, documentSuffix) {
		return nil
	}
	return hidden(path, "must be relative, written without detours, and end in "+documentSuffix)
}

func validateInputsSize(inputs any, path *field.Path) field.ErrorList {
	if size := jsonvalue.Size(inputs); size > maxRunInputs {
		return field.ErrorList{excess(path, size, maxRunInputs, "bytes of JSON")}
	}
	return nil
}

func validateExplicit(policy api.ResumePolicy, path *field.Path) field.ErrorList {
	if policy == "" || policy == api.ResumeExplicit {
		return nil
	}
	return hidden(path, "must be "+string(api.ResumeExplicit)+" for a definition in Git")
}

// validateSupervisedUnchanged names everything that an update would change of
// what the run is, and nothing of what it would be.
func validateSupervisedUnchanged(req request[api.WorkflowRun]) error {
	before, err := memberOf(req.OldObject.Raw, "spec")
	if err != nil {
		return fault("decode stored %s: %w", req.Kind.Kind, err)
	}
	after, err := memberOf(req.Object.Raw, "spec")
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	changed := changedFields(identity(before), identity(after), field.NewPath("spec"))
	if len(changed) == 0 {
		return nil
	}
	causes := make([]metav1.StatusCause, len(changed))
	for i, name := range changed {
		causes[i] = metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: name, Message: "must not change"}
	}
	return req.unprocessable("spec is immutable: "+strings.Join(changed, ", "), causes)
}

// identity is the part of a supervised run's spec that is for good, with what
// it has by default, and credentials in the order of their aliases.
func identity(spec map[string]any) map[string]any {
	identity := maps.Clone(spec)
	if identity == nil {
		identity = map[string]any{}
	}
	for _, name := range mutableRunMembers {
		delete(identity, name)
	}
	if identity["resumePolicy"] == nil {
		identity["resumePolicy"] = string(api.ResumeExplicit)
	}
	credentials, _ := identity["credentials"].([]any)
	identity["credentials"] = slices.SortedFunc(slices.Values(credentials), func(a, b any) int {
		return strings.Compare(aliasOf(a), aliasOf(b))
	})
	return identity
}

func aliasOf(credential any) string {
	object, _ := credential.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// changedFields are the sorted paths of the members that differ as JSON. Of a
// definition in Git it tells the members apart.
func changedFields(before, after map[string]any, path *field.Path) []string {
	names := maps.Clone(before)
	maps.Copy(names, after)
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := before[name]
		is, has := after[name]
		if had == has && jsonvalue.Equal(was, is) {
			continue
		}
		member := path.Child(name)
		from, wasObject := was.(map[string]any)
		to, isObject := is.(map[string]any)
		if name == "git" && wasObject && isObject {
			changed = append(changed, changedFields(from, to, member)...)
			continue
		}
		changed = append(changed, member.String())
	}
	return changed
}
