// Package testenv starts a real API server with the project's types for a test
// suite, and stops it with the suite.
//
// Webhook configurations are installed from config/webhook with the suite's
// own certificates when a test asks for them. The package knows where the
// control plane's binaries are; it does not build them (`make envtest-assets`).
package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// OperatorUser is the user that suites run the operator's clients as; pass it
// to the webhooks as the operator's name.
const OperatorUser = "system:serviceaccount:axiom-system:axiom-controller-manager"

// Options of an environment.
type Options struct {
	// Webhooks installs the manifests of config/webhook, rewritten to the
	// address in Environment.Webhook.
	Webhooks bool
}

// Environment is a running API server.
type Environment struct {
	// Admin may do everything.
	Admin *rest.Config
	// Operator is the identity of the operator.
	Operator *rest.Config
	// Scheme has the built-in types and the project's.
	Scheme *kruntime.Scheme
	// Webhook is where the suite must serve admission.
	Webhook envtest.WebhookInstallOptions

	env *envtest.Environment
}

// Root is the directory of the main module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// NewScheme has the built-in types and the project's.
func NewScheme() *kruntime.Scheme {
	scheme := kruntime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return scheme
}

// Start brings the API server up. The caller must Stop it.
func Start(opts Options) (*Environment, error) {
	assets, err := assetsDirectory()
	if err != nil {
		return nil, err
	}
	e := &Environment{Scheme: NewScheme()}
	e.env = &envtest.Environment{
		BinaryAssetsDirectory: assets,
		Scheme:                e.Scheme,
		CRDDirectoryPaths:     []string{filepath.Join(Root(), "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		// A busy machine of two cores is no reason to fail.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	if opts.Webhooks {
		e.env.WebhookInstallOptions.Paths = []string{filepath.Join(Root(), "config", "webhook", "manifests.yaml")}
	}
	if e.Admin, err = e.env.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start API server from %s: %w", assets, err), e.env.Stop())
	}
	e.Webhook = e.env.WebhookInstallOptions
	if e.Operator, err = e.User(OperatorUser, "system:masters"); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// Stop ends the API server and its etcd.
func (e *Environment) Stop() error {
	return e.env.Stop()
}

// User returns the configuration of a named person or service account.
func (e *Environment) User(name string, groups ...string) (*rest.Config, error) {
	user, err := e.env.AddUser(envtest.User{Name: name, Groups: groups}, e.Admin)
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// Kubectl returns a kubectl that speaks as the user of cfg.
func (e *Environment) Kubectl(cfg *rest.Config) (*KubeCtl, error) {
	return newKubeCtl(filepath.Join(e.env.BinaryAssetsDirectory, "kubectl"), cfg)
}

// Client returns an uncached client that never waits for its own patience.
func (e *Environment) Client(cfg *rest.Config) (client.WithWatch, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: e.Scheme})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return c, nil
}

// Namespace is an object to create for a test of its own.
func Namespace(prefix string) *corev1.Namespace {
	ns := &corev1.Namespace{}
	ns.GenerateName = prefix + "-"
	return ns
}

// assetsDirectory is KUBEBUILDER_ASSETS, else the newest of bin/k8s.
func assetsDirectory() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	found, err := filepath.Glob(filepath.Join(Root(), "bin", "k8s", "v*", "kube-apiserver"))
	if err != nil {
		return "", fmt.Errorf("look for control plane: %w", err)
	}
	if len(found) == 0 {
		return "", errors.New("no control plane: run `make envtest-assets`, or set KUBEBUILDER_ASSETS")
	}
	return filepath.Dir(found[len(found)-1]), nil
}
