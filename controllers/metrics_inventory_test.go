package controllers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook" // registers the metrics of webhooks
)

// inventory lists every metric that a manager registers, with its labels. The rules
// and dashboards beside it are held against it in a module of its own.
const inventory = "../config/monitoring/metrics.txt"

func TestInventoryOfMetricsIsTrue(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewRunMetrics(registry); err != nil {
		t.Fatal(err)
	}
	registry.MustRegister(NewPhaseMetrics(fake.NewFakeClient()))
	builtIn, isRegistry := metrics.Registry.(*prometheus.Registry)
	if !isRegistry {
		t.Fatalf("the registry of controller-runtime is a %T", metrics.Registry)
	}
	lines := slices.Concat(describe(t, registry), describe(t, builtIn))
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") })
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(inventory, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(inventory)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s lists other metrics; UPDATE_GOLDEN=1 writes it (-listed +registered):\n%s", inventory, diff)
	}
}

// describe is a line for each metric: its name, and its labels by name.
func describe(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	var lines []string
	for description := range descriptions {
		found := describedMetric.FindStringSubmatch(description.String())
		if found == nil {
			t.Errorf("cannot read %s", description)
			continue
		}
		labels := strings.FieldsFunc(found[2], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		lines = append(lines, strings.Join(append([]string{found[1]}, labels...), " "))
	}
	return lines
}
