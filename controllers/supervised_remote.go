package controllers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/forge"
	"github.com/apitomy/axiom-operator/internal/remotes"
	"github.com/apitomy/axiom-operator/internal/workspace"
)

// remoteTimeout bounds one conversation with a remote.
const remoteTimeout = 2 * time.Minute

// allowed reads the list of what may be talked to. Without one nothing may be.
func (r *SupervisedRunReconciler) allowed(ctx context.Context) (*remotes.Remotes, error) {
	listed := &corev1.ConfigMap{}
	if r.Options.Remotes.Name != "" {
		if err := client.IgnoreNotFound(r.Live.Get(ctx, r.Options.Remotes, listed)); err != nil {
			return nil, fmt.Errorf("read list of remotes: %w", err)
		}
	}
	list, err := remotes.Parse(listed.Data)
	if err != nil {
		return nil, fmt.Errorf("read list of remotes %s: %w", r.Options.Remotes, err)
	}
	return list, nil
}

// credential reads what a Secret of the run has for a host; a run that names none
// shows nothing.
func (r *SupervisedRunReconciler) credential(ctx context.Context, run *api.WorkflowRun, secretName, host string) (remotes.Credential, bool, error) {
	if secretName == "" {
		return remotes.Credential{}, false, nil
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: secretName}, secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return remotes.Credential{}, false, fmt.Errorf("read credentials: %w", err)
	}
	found, err := remotes.ReadCredential(secret, host)
	return found, err == nil, err
}

// secretOf is the name of the Secret of an alias.
func secretOf(run *api.WorkflowRun, alias string) (string, error) {
	if alias == "" {
		return "", nil
	}
	for _, c := range run.Spec.Credentials {
		if c.Name == alias {
			return c.SecretRef.Name, nil
		}
	}
	return "", &effect.Failure{Code: effect.CodeCredentialsMissing, Message: "the run has no credentials of the alias that the action names"}
}

// gitRemote is the way to a repository.
func (r *SupervisedRunReconciler) gitRemote(ctx context.Context, run *api.WorkflowRun, url, secretName string) (*workspace.Remote, remotes.Locator, error) {
	locator, err := remotes.ParseLocator(url)
	if err != nil {
		return nil, locator, err
	}
	list, err := r.allowed(ctx)
	if err != nil {
		return nil, locator, err
	}
	access, err := list.Git(locator)
	if err != nil {
		return nil, locator, err
	}
	remote := &workspace.Remote{URL: locator.Text(), HTTP: r.Network.Transport(access)}
	remote.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Network.Dial(ctx, access) }
	shown, has, err := r.credential(ctx, run, secretName, locator.Host())
	if err != nil {
		return nil, locator, err
	}
	switch {
	case locator.Scheme() == "ssh" && !has:
		err = &effect.Failure{Code: effect.CodeCredentialsMissing, Message: "a repository that is reached by SSH needs credentials"}
	case locator.Scheme() == "ssh":
		remote.Auth.PrivateKey, remote.Auth.KnownHosts, err = shown.SSH()
	case has:
		remote.Auth.Username, remote.Auth.Password, err = shown.Basic()
	}
	return remote, locator, err
}

// forgeClient talks to a forge on behalf of an alias.
func (r *SupervisedRunReconciler) forgeClient(ctx context.Context, run *api.WorkflowRun, at forge.Address, alias string) (*forge.Client, error) {
	token, err := r.token(ctx, run, at.Forge.Access.Host, alias)
	if err != nil {
		return nil, err
	}
	return forge.NewClient(at.Forge, r.Network.Transport(at.Forge.Access), token, r.Clock), nil
}

// token is what a host is shown on behalf of an alias; empty without one.
func (r *SupervisedRunReconciler) token(ctx context.Context, run *api.WorkflowRun, host, alias string) (string, error) {
	name, err := secretOf(run, alias)
	if err != nil {
		return "", err
	}
	shown, has, err := r.credential(ctx, run, name, host)
	if err != nil || !has {
		return "", err
	}
	return shown.Token()
}

// failureOf is the failure that no repetition mends, nil if there is none.
func failureOf(err error) *effect.Failure {
	failure, isFailure := errors.AsType[*effect.Failure](err)
	if !isFailure {
		return nil
	}
	return failure
}
