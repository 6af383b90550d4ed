package runs

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/controllers"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/testing/crash"
)

// process is a manager with the controllers that runs need, for one namespace.
type process struct {
	clock clock.PassiveClock
	// before is called before each request to the API server; may be nil.
	before func(*http.Request)
	// after is called with the status code of each answer; may be nil.
	after func(*http.Request, int)
	// curtain hides a resource from the process's cache; may be nil.
	curtain *crash.Curtain
}

func (p process) start(ctx context.Context, cfg *rest.Config, namespace string) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return watched{base, p} })
	if p.curtain != nil {
		cfg.Wrap(p.curtain.Wrap)
	}
	mgr, err := p.manager(cfg, namespace)
	if err != nil {
		return err
	}
	expressions := expression.NewCache()
	for _, controller := range []interface{ SetupWithManager(mgr ctrl.Manager) error }{
		&controllers.CompositionReconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: p.clock, Expressions: expressions},
		&controllers.HumanTaskReconciler{Client: mgr.GetClient(), Clock: p.clock, Recorder: mgr.GetEventRecorder("axiom-tasks")},
		&controllers.WorkflowRunReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: p.clock, Recorder: mgr.GetEventRecorder("axiom-runs"),
			Options: runOptions(), Expressions: expressions,
		},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up %T: %w", controller, err)
		}
	}
	return mgr.Start(ctx)
}

func (p process) manager(cfg *rest.Config, namespace string) (ctrl.Manager, error) {
	hasRun, err := labels.NewRequirement(api.LabelRun, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	ofRuns := cache.ByObject{Label: labels.NewSelector().Add(*hasRun)}
	shutdown := 5 * time.Second
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  env.Scheme,
		Metrics:                 server.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: &shutdown,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: ofRuns, &corev1.ConfigMap{}: ofRuns,
			},
		},
	})
}

// watched tells of each request of a process.
type watched struct {
	base    http.RoundTripper
	process process
}

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.process.before != nil {
		w.process.before(req)
	}
	answer, err := w.base.RoundTrip(req)
	if err == nil && w.process.after != nil {
		w.process.after(req, answer.StatusCode)
	}
	return answer, err
}

func runOptions() controllers.RunOptions {
	return controllers.RunOptions{
		OperatorImage: "example.invalid/operator:test",
		ScriptImages:  map[string]string{"bash": "example.invalid/bash:test"},
		PullPolicy:    corev1.PullNever,
		Random:        rand.Reader,
		Gateway: controllers.GatewayOptions{
			URL: "https://gateway.example.invalid/api/v1", CA: func() []byte { return []byte("certificates") },
			Namespace: "axiom-system", PodLabels: map[string]string{"app": "gateway"}, Port: 8443,
		},
	}
}
