package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// A newRun is what the flags of create say.
type newRun struct {
	name                       string
	git, ref, commit, path     string
	secret, deadline           string
	texts, values, credentials []string
	dryRun                     bool
}

func (a *app) createRun() *cobra.Command {
	cmd := command.Leaf("create NAME --git URL (--ref REF | --commit ID) --path FILE [flags]", "Start a run of a definition in Git", `
Creates a run of the Markdown document at a path of a Git repository. A branch or tag
is looked up once, here, and the run is written with the commit that it stands for: it
executes that one, whatever becomes of the branch.

Values of --input are text; --input-json takes any JSON. A repository that is not
public is read with the Secret that --credentials-secret names, which you must be
allowed to read; with --commit nothing is asked of the repository here.

With --dry-run admission judges the run, nothing is kept, and its manifest is printed.`, `
  axiom run create add-health --git https://git.example.com/acme/workflows.git \
    --ref main --path adversarial-implementation/start.md \
    --input request="add a health endpoint" --credential project=acme-app-write
  axiom run create count --git git@git.example.com:acme/workflows.git \
    --commit 8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a --path count.md \
    --input-json limit=3 --dry-run > run.yaml`)
	cmd.Args = exactArgs("the name of a run")
	var n newRun
	flags := cmd.Flags()
	flags.StringVar(&n.git, "git", "", "`URL` of the repository: https://, ssh:// or user@host:path")
	flags.StringVar(&n.ref, "ref", "", "branch or tag whose commit to run")
	flags.StringVar(&n.commit, "commit", "", "`ID` of the commit to run, in full")
	flags.StringVar(&n.path, "path", "", "`FILE` of the root document in the commit")
	flags.StringArrayVar(&n.texts, "input", nil, "input as `NAME=TEXT`; may be repeated")
	flags.StringArrayVar(&n.values, "input-json", nil, "input as `NAME=JSON`; may be repeated")
	flags.StringArrayVar(&n.credentials, "credential", nil, "Secret that effects may use, as `ALIAS=SECRET`; may be repeated")
	flags.StringVar(&n.secret, "credentials-secret", "", "`NAME` of the Secret to read the repository with")
	flags.StringVar(&n.deadline, "active-deadline", "", "ISO 8601 `DURATION`, such as P7D, after which the run fails")
	flags.BoolVar(&n.dryRun, "dry-run", false, "keep nothing, print the manifest")
	command.Require(cmd, "git", "path")
	cmd.MarkFlagsMutuallyExclusive("ref", "commit")
	cmd.MarkFlagsOneRequired("ref", "commit")
	a.AddOutput(cmd, command.Text, command.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n.name = args[0]
		run, err := n.manifest()
		if err != nil {
			return err
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.startRun(cmd.Context(), c, run, n)
	}
	return cmd
}

// manifest is the run that the flags describe; its commit is missing if a ref is
// to be looked up.
func (n newRun) manifest() (*api.WorkflowRun, error) {
	run := &api.WorkflowRun{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "WorkflowRun"},
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
	}
	run.Spec.Git = &api.GitSource{URL: n.git, Commit: n.commit, Path: n.path}
	run.Spec.ResumePolicy, run.Spec.ActiveDeadline = api.ResumeExplicit, n.deadline
	if n.secret != "" {
		run.Spec.Git.CredentialsRef = &api.LocalRef{Name: n.secret}
	}
	for _, text := range n.credentials {
		alias, secret, err := pair("--credential", text)
		if err != nil {
			return nil, err
		}
		if secret == "" {
			return nil, fmt.Errorf("--credential %s names no Secret", alias)
		}
		run.Spec.Credentials = append(run.Spec.Credentials, api.RunCredential{Name: alias, SecretRef: api.LocalRef{Name: secret}})
	}
	inputs, err := namedValues("input", n.texts, n.values)
	if err != nil || len(inputs) == 0 {
		return run, err
	}
	data, err := json.Marshal(inputs)
	if err != nil {
		return nil, fmt.Errorf("encode inputs: %w", err)
	}
	run.Spec.Inputs = &runtime.RawExtension{Raw: data}
	return run, nil
}

// namedValues are those of a flag that takes NAME=TEXT and of its sibling -json,
// which takes NAME=JSON. No message repeats a value.
func namedValues(noun string, texts, values []string) (map[string]any, error) {
	named := map[string]any{}
	add := func(flag, text string, read func(string) (any, error)) error {
		name, value, err := pair(flag, text)
		if err != nil {
			return err
		}
		if _, isGiven := named[name]; isGiven {
			return fmt.Errorf("%s %s is given twice", noun, name)
		}
		if named[name], err = read(value); err != nil {
			return fmt.Errorf("%s %s is no JSON: put text into --%s", flag, name, noun)
		}
		return nil
	}
	for _, text := range texts {
		if err := add("--"+noun, text, func(value string) (any, error) { return value, nil }); err != nil {
			return nil, err
		}
	}
	for _, text := range values {
		if err := add("--"+noun+"-json", text, func(value string) (any, error) { return jsonvalue.Decode([]byte(value)) }); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// pair splits NAME=VALUE.
func pair(flag, text string) (name, value string, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return "", "", fmt.Errorf("%s takes NAME=VALUE", flag)
	}
	return name, value, nil
}

// A startedRun is a run that was created.
type startedRun struct {
	Run    string `json:"run"`
	Commit string `json:"commit"`
	Path   string `json:"path"`
	// Ref that was looked up; empty if the commit was given.
	Ref string `json:"ref"`
}

// Tell implements [command.Answer].
func (x startedRun) Tell(p *command.Page) {
	at := x.Commit
	if x.Ref != "" {
		at += ", which is what " + command.Clean(x.Ref) + " is at"
	}
	p.Line("created run %s of %s at %s", x.Run, command.Clean(x.Path), at)
}

func (a *app) startRun(ctx context.Context, c *cluster, run *api.WorkflowRun, n newRun) error {
	run.Namespace = c.namespace
	if n.ref != "" {
		commit, err := a.lookUp(ctx, c, run.Spec.Git, n.ref)
		if err != nil {
			return err
		}
		run.Spec.Git.Commit = commit
	}
	stored := run.DeepCopy()
	var options []client.CreateOption
	if n.dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.Create(ctx, stored, options...); err != nil {
		return a.tellRefusal(refusedAnswer{Run: run.Name}, err)
	}
	if n.dryRun {
		return a.showRunManifest(run)
	}
	return a.Show(startedRun{Run: run.Name, Commit: run.Spec.Git.Commit, Path: run.Spec.Git.Path, Ref: n.ref})
}

// showRunManifest prints what apply would take, without what only a stored run has.
func (a *app) showRunManifest(run *api.WorkflowRun) error {
	manifest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(run)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	delete(manifest, "status")
	return a.showManifest(manifest)
}

// lookUp asks the repository for the commit of a branch or tag.
func (a *app) lookUp(ctx context.Context, c *cluster, source *api.GitSource, ref string) (string, error) {
	locator, err := remotes.ParseLocator(source.URL)
	if err != nil {
		return "", fmt.Errorf("--git: %w", err)
	}
	auth, err := c.gitAuth(ctx, locator, source.CredentialsRef)
	if err != nil {
		return "", fmt.Errorf("look up %s: %w; --commit needs no look", ref, err)
	}
	remote := workspace.Remote{URL: source.URL, Auth: auth, HTTP: a.git, Dial: new(net.Dialer).DialContext}
	listing, err := remote.List(ctx)
	if err != nil {
		return "", fmt.Errorf("list refs of repository: %w", err)
	}
	resolved, err := listing.Resolve(ref)
	var failure *effect.Failure
	switch {
	case errors.As(err, &failure) && failure.Code == workspace.CodeRefNotFound:
		return "", fmt.Errorf("the repository has no branch and no tag %s", ref)
	case err != nil:
		return "", fmt.Errorf("look up %s: %w", ref, err)
	}
	return resolved.Commit, nil
}

// gitAuth takes what a Secret has for the repository's host, if one is named.
func (c *cluster) gitAuth(ctx context.Context, locator remotes.Locator, ref *api.LocalRef) (workspace.Auth, error) {
	isSSH := locator.Scheme() == "ssh"
	switch {
	case ref == nil && isSSH:
		return workspace.Auth{}, errors.New("--credentials-secret must name a Secret with a key and the hosts that are known")
	case ref == nil:
		return workspace.Auth{}, nil
	case locator.Scheme() == "http":
		return workspace.Auth{}, errors.New("a Secret is not sent over plain HTTP")
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: ref.Name}, secret); err != nil {
		return workspace.Auth{}, fmt.Errorf("read Secret: %w", explain(err))
	}
	credential, err := remotes.ReadCredential(secret, locator.Host())
	if err != nil {
		return workspace.Auth{}, err
	}
	var auth workspace.Auth
	if isSSH {
		auth.PrivateKey, auth.KnownHosts, err = credential.SSH()
	} else {
		auth.Username, auth.Password, err = credential.Basic()
	}
	return auth, err
}
