package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/apitomy/axiom-operator/internal/operator"
)

// parsed are the options of a command line.
func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	opts := &options{}
	opts.register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return opts
}

func TestTheDefaultsCanBeUsed(t *testing.T) {
	if err := parsed(t).validate(); err != nil {
		t.Error(err)
	}
}

func TestUnusableFlagsAreNamed(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"--namespaces=team-a,Team_B", `--namespaces names "Team_B"`},
		{"--namespaces=team-a,", `--namespaces names ""`},
		{"--serving-certificate=Cert", "--serving-certificate must be Own or External"},
		{"--kube-api-qps=0", "--kube-api-qps must not be 0"},
		{"--kube-api-burst=-1", "--kube-api-burst must not be negative"},
		{"--workers=0", "--workers must be at least 1"},
		{"--run-workers=0", "--run-workers must be at least 1"},
		{"--graceful-shutdown-timeout=0s", "--graceful-shutdown-timeout must be positive"},
		{"--image-pull-policy=Sometimes", "--image-pull-policy must be"},
		{"--gateway-url=http://x/api/v1", "--gateway-url must be an https URL"},
		{"--script-image=ruby=x", `the unknown interpreter "ruby"`},
	} {
		err := parsed(t, tc.flag).validate()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %s", tc.flag, err, tc.want)
		}
	}
}

func TestClientsAreLimitedOnlyWhereTheyAreToldTo(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		qps   float32
		burst int
	}{
		{nil, -1, 0},
		{[]string{"--kube-api-qps=50"}, 50, 100},
		{[]string{"--kube-api-qps=0.2"}, 0.2, 1},
		{[]string{"--kube-api-qps=50", "--kube-api-burst=60"}, 50, 60},
	} {
		config := &rest.Config{QPS: 20, Burst: 30}
		parsed(t, tc.args...).client.limit(config)
		if config.QPS != tc.qps || config.Burst != tc.burst {
			t.Errorf("%v: %v requests a second, %d at once", tc.args, config.QPS, config.Burst)
		}
	}
}

func TestTheManagerIsToldWhatTheFlagsSay(t *testing.T) {
	opts := parsed(t, "--namespaces=team-a,team-b", "--workers=3", "--run-workers=5", "--graceful-shutdown-timeout=7s", "--serving-certificate=External")
	keeper := opts.keeper(fake.NewClientBuilder().WithScheme(operator.NewScheme()).Build())
	if !keeper.External || keeper.Secret.Name != servingSecret {
		t.Errorf("keeper of %s, external %t", keeper.Secret, keeper.External)
	}
	manager := opts.manager(keeper, nil)
	if manager.Controller.MaxConcurrentReconciles != 3 || *manager.GracefulShutdownTimeout != 7*time.Second {
		t.Errorf("workers %d, shutdown within %s", manager.Controller.MaxConcurrentReconciles, manager.GracefulShutdownTimeout)
	}
	_, a := manager.Cache.DefaultNamespaces["team-a"]
	_, b := manager.Cache.DefaultNamespaces["team-b"]
	if !a || !b || len(manager.Cache.DefaultNamespaces) != 2 {
		t.Errorf("it watches %v", manager.Cache.DefaultNamespaces)
	}
	for object := range manager.Cache.ByObject {
		if _, isSecret := object.(*corev1.Secret); isSecret {
			t.Error("Secrets are cached")
		}
	}
	settings := opts.operator(keeper)
	if settings.Runs.Workers != 5 || len(settings.Namespaces) != 2 {
		t.Errorf("%d runs at a time, in %v", settings.Runs.Workers, settings.Namespaces)
	}
	if parsed(t).manager(keeper, nil).Cache.DefaultNamespaces != nil {
		t.Error("without the flag it does not watch everywhere")
	}
}
