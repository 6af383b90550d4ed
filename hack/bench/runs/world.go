package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/apitomy/axiom-operator/internal/testing/testenv"
	doors "github.com/apitomy/axiom-operator/webhook/v1alpha1"
)

// defaultWorkers of the run controller, where a row does not say another number.
const defaultWorkers = 8

// world is an API server, an operator and the people who use them.
type world struct {
	quick bool
	out   io.Writer
	began time.Time

	env     *testenv.Environment
	kubectl *testenv.KubeCtl
	// admin sets up, person answers and applies. Neither has a cache.
	admin, person client.WithWatch
	// config of the admin, for clients of other kinds.
	config *rest.Config

	// gateway is where the operator serves it, agents is the client of those who ask it.
	gateway string
	agents  *http.Client

	operator *process
	workers  int
	logFile  *os.File
	profile  string
	names    int
}

// probeKind is what raw writes are made on: no schema, no webhook.
var probeKind = schema.GroupVersionKind{Group: "bench.axiom.apitomy.io", Version: "v1", Kind: "Probe"}

func newWorld(ctx context.Context, opts *options, out io.Writer) (w *world, err error) {
	w = &world{quick: opts.quick, out: out, began: time.Now(), profile: opts.profile}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if opts.keepLog != "" {
		if w.logFile, err = os.OpenFile(opts.keepLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return w, fmt.Errorf("open log: %w", err)
		}
	}
	if w.profile != "" {
		if err := os.MkdirAll(w.profile, 0o750); err != nil {
			return w, fmt.Errorf("make directory of profiles: %w", err)
		}
	}
	w.say("starting etcd and kube-apiserver")
	if w.env, err = testenv.Start(testenv.Options{Webhooks: true}); err != nil {
		return w, err
	}
	if err := errors.Join(w.connect(), w.meetGateway(ctx)); err != nil {
		return w, err
	}
	if err := errors.Join(w.exemptOperator(ctx), w.installProbes(ctx)); err != nil {
		return w, err
	}
	return w, w.operate(ctx, defaultWorkers)
}

func (w *world) connect() error {
	person, err := w.env.User("ada", "system:masters")
	if err != nil {
		return err
	}
	if w.kubectl, err = w.env.Kubectl(w.env.Operator); err != nil {
		return err
	}
	w.config = rest.CopyConfig(w.env.Admin)
	w.config.QPS = -1
	utilruntime.Must(apiextensionsv1.AddToScheme(w.env.Scheme))
	if w.admin, err = w.env.Client(w.env.Admin); err != nil {
		return err
	}
	w.person, err = w.env.Client(person)
	return err
}

func (w *world) close() error {
	var errs []error
	if w.operator != nil {
		errs = append(errs, w.operator.stop())
	}
	if w.kubectl != nil {
		errs = append(errs, w.kubectl.Close())
	}
	if w.env != nil {
		errs = append(errs, w.env.Stop())
	}
	if w.logFile != nil {
		errs = append(errs, w.logFile.Close())
	}
	return errors.Join(errs...)
}

// say tells of progress.
func (w *world) say(format string, args ...any) {
	tell(w.out, "%6.1fs  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// pick is the full amount, or the quick one.
func (w *world) pick(full, quick int) int {
	if w.quick {
		return quick
	}
	return full
}

// operate starts the operator, in place of the one that runs, and waits until
// it is quiet.
func (w *world) operate(ctx context.Context, workers int) error {
	if w.operator != nil {
		if err := w.operator.stop(); err != nil {
			return fmt.Errorf("stop the operator: %w", err)
		}
		w.operator = nil
	}
	w.workers = workers
	if err := w.start(ctx); err != nil {
		return err
	}
	w.say("operator runs with %d workers", workers)
	return w.ready(ctx)
}

func (w *world) start(ctx context.Context) error {
	var log io.Writer
	if w.logFile != nil {
		log = w.logFile
	}
	var err error
	w.operator, err = startProcess(ctx, managerSettings{
		Kubeconfig: w.kubectl.Kubeconfig(), Username: testenv.OperatorUser,
		Host: w.env.Webhook.LocalServingHost, Port: w.env.Webhook.LocalServingPort, CertDir: w.env.Webhook.LocalServingCertDir,
		Gateway: w.gateway, Workers: w.workers, Log: log != nil,
	}, log)
	return err
}

// ready waits until admission answers.
func (w *world) ready(ctx context.Context) error {
	for {
		comp := w.composition("ready", "default", chainOf(askNode, 1))
		if err := w.person.Create(ctx, comp, client.DryRunAll); err == nil {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for admission: %w", err)
		}
	}
}

// namespace makes a namespace of its own for a measurement.
func (w *world) namespace(ctx context.Context) (string, error) {
	ns := testenv.Namespace("bench")
	if err := w.admin.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("create namespace: %w", err)
	}
	return ns.Name, nil
}

// name is one that was not used before.
func (w *world) name(prefix string) string {
	w.names++
	return fmt.Sprintf("%s-%d", prefix, w.names)
}

// profileLength is how much of what is measured a profile covers.
const profileLength = 5 * time.Second

// profiled measures while the CPU of the operator and that of the API server
// are profiled, if that is wanted.
func (w *world) profiled(ctx context.Context, name string, measure func() error) error {
	if w.profile == "" {
		return measure()
	}
	file := func(whose string) string { return filepath.Join(w.profile, name+"-"+whose+".pprof") }
	done := make(chan error, 2)
	go func() { done <- w.operator.profile(ctx, profileLength, file("operator")) }()
	go func() { done <- w.profileServer(ctx, profileLength, file("server")) }()
	return errors.Join(measure(), <-done, <-done)
}

// profileServer writes a CPU profile of the API server's next seconds to a file.
func (w *world) profileServer(ctx context.Context, length time.Duration, path string) error {
	server, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	data, err := server.RESTClient().Get().AbsPath("/debug/pprof/profile").
		Param("seconds", strconv.Itoa(int(length.Seconds()))).Timeout(time.Minute).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("profile the API server: %w", err)
	}
	return os.WriteFile(path, data, 0o600)
}

// exemptOperator does to the configuration of webhooks what the operator's own
// program does to it in a cluster.
func (w *world) exemptOperator(ctx context.Context) error {
	var configs admissionv1.ValidatingWebhookConfigurationList
	if err := w.admin.List(ctx, &configs); err != nil {
		return fmt.Errorf("list webhooks: %w", err)
	}
	for i := range configs.Items {
		if doors.ExemptOperator(&configs.Items[i], testenv.OperatorUser) {
			if err := w.admin.Update(ctx, &configs.Items[i]); err != nil {
				return fmt.Errorf("exempt the operator: %w", err)
			}
		}
	}
	return nil
}

func (w *world) installProbes(ctx context.Context) error {
	preserve := true
	open := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "probes." + probeKind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: probeKind.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "probes", Singular: "probe", Kind: probeKind.Kind, ListKind: "ProbeList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: probeKind.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: open},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
	if err := w.admin.Create(ctx, crd); err != nil {
		return fmt.Errorf("install probes: %w", err)
	}
	for {
		_, err := w.probe(ctx, "default")
		if err == nil {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for probes: %w", err)
		}
	}
}
