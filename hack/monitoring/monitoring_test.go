// Package monitoring holds what config/monitoring asks Prometheus to what there is:
// every name and label of a metric in a rule or dashboard is one that the operator has.
package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const config = "../../config/monitoring/"

// added are the labels that scraping adds to each series.
var added = []string{"job", "namespace", "pod", "instance", "service", "endpoint", "container"}

// phases that a metric may be asked for.
var phases = map[string][]string{
	"axiom_workflow_runs":                 {"Pending", "Running", "Waiting", "Suspended", "Completed", "Failed", "Cancelled"},
	"axiom_workflow_runs_finished_total":  {"Completed", "Failed", "Cancelled"},
	"axiom_workflow_run_duration_seconds": {"Completed", "Failed", "Cancelled"},
	"axiom_human_tasks":                   {"AwaitingInput", "Completed", "Failed", "Expired", "Cancelled"},
}

// metrics are the labels of each metric that there is.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(config + "metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{"up": nil} // made by Prometheus itself
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		known[words[0]] = words[1:]
	}
	return known
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	data, err := os.ReadFile(config + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Groups []struct {
				Name  string
				Rules []rule
			}
		}
	}
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range manifest.Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("there are %d rules", len(all))
	}
	return all
}

type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID      int
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

func dashboards(t *testing.T) []dashboard {
	t.Helper()
	files, err := filepath.Glob(config + "dashboards/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %q", err, files)
	}
	var all []dashboard
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	return all
}

// check says what an expression asks for that there is not.
func check(known map[string][]string, expr string) (wrong []string, has []string) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}, nil
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			wrong = append(wrong, checkSelector(known, node)...)
		case *parser.AggregateExpr:
			wrong = append(wrong, checkGrouping(known, node)...)
			has = append(has, node.Grouping...)
		}
		return nil
	})
	return wrong, has
}

func checkSelector(known map[string][]string, selector *parser.VectorSelector) (wrong []string) {
	base, names := lookUp(known, selector.Name)
	if base == "" {
		return []string{"there is no metric " + selector.Name}
	}
	for _, m := range selector.LabelMatchers {
		switch {
		case m.Name == labels.MetricName:
		case !slices.Contains(names, m.Name):
			wrong = append(wrong, selector.Name+" has no label "+m.Name)
		case m.Name == "phase" && m.Type == labels.MatchEqual && phases[base] != nil && !slices.Contains(phases[base], m.Value):
			wrong = append(wrong, base+" has no phase "+m.Value)
		}
	}
	return wrong
}

// checkGrouping holds the labels that are kept against those of what is summed up.
func checkGrouping(known map[string][]string, aggregate *parser.AggregateExpr) (wrong []string) {
	parser.Inspect(aggregate.Expr, func(node parser.Node, _ []parser.Node) error {
		selector, isSelector := node.(*parser.VectorSelector)
		if !isSelector {
			return nil
		}
		_, names := lookUp(known, selector.Name)
		for _, label := range aggregate.Grouping {
			if !slices.Contains(names, label) {
				wrong = append(wrong, selector.Name+" has no label "+label)
			}
		}
		return nil
	})
	return wrong
}

// lookUp finds a metric by the name of a series, and the labels of that.
func lookUp(known map[string][]string, series string) (base string, names []string) {
	if names, isKnown := known[series]; isKnown {
		return series, slices.Concat(names, added)
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, isPart := strings.CutSuffix(series, suffix)
		names, isKnown := known[base]
		if isPart && isKnown && strings.HasSuffix(base, "_seconds") {
			return base, slices.Concat(names, added, []string{"le"})
		}
	}
	return "", nil
}

func TestRulesAskForWhatThereIs(t *testing.T) {
	known := metrics(t)
	for _, r := range rules(t) {
		wrong, has := check(known, r.Expr)
		for _, fault := range wrong {
			t.Errorf("%s: %s", r.Alert, fault)
		}
		for _, label := range templated(r.Annotations["summary"] + r.Annotations["description"]) {
			if !slices.Contains(has, label) {
				t.Errorf("%s tells of the label %s, which its expression does not keep", r.Alert, label)
			}
		}
	}
}

var label = regexp.MustCompile(`\$labels\.(\w+)|\{\{(\w+)\}\}`)

func templated(text string) (names []string) {
	for _, found := range label.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1]+found[2])
	}
	return names
}

func TestDashboardsAskForWhatThereIs(t *testing.T) {
	known := metrics(t)
	seen := map[string]bool{}
	for _, d := range dashboards(t) {
		if seen[d.UID] || d.UID == "" || len(d.Panels) < 10 {
			t.Errorf("dashboard %q has the uid %q and %d panels", d.Title, d.UID, len(d.Panels))
		}
		seen[d.UID] = true
		for _, panel := range d.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s, %s asks for nothing", d.Title, panel.Title)
			}
			for _, target := range panel.Targets {
				wrong, has := check(known, target.Expr)
				for _, fault := range wrong {
					t.Errorf("%s, %s: %s", d.Title, panel.Title, fault)
				}
				for _, name := range templated(target.LegendFormat) {
					if !slices.Contains(has, name) {
						t.Errorf("%s, %s: the legend names %s, which the expression does not keep", d.Title, panel.Title, name)
					}
				}
			}
		}
	}
}

func TestEveryAlertHasARunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented, alerts []string
	for _, found := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(section, -1) {
		documented = append(documented, found[1])
	}
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		if want := "/docs/operations.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
			t.Errorf("the runbook of %s is %s", r.Alert, r.Annotations["runbook_url"])
		}
		if r.For == "" || r.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s lacks something: %+v", r.Alert, r)
		}
	}
	if !slices.Equal(alerts, documented) {
		t.Errorf("the alerts are %q, docs/operations.md has %q", alerts, documented)
	}
}

func TestFaultsAreFound(t *testing.T) {
	known := metrics(t)
	for expr, want := range map[string]string{
		`sum(axiom_runs)`:                                                   "there is no metric axiom_runs",
		`axiom_human_tasks{state="AwaitingInput"}`:                          "axiom_human_tasks has no label state",
		`axiom_human_tasks{phase="Waiting"}`:                                "axiom_human_tasks has no phase Waiting",
		`sum by (code) (rate(axiom_activations_closed_total[5m]))`:          "axiom_activations_closed_total has no label code",
		`histogram_quantile(0.9, sum by (le) (workqueue_depth_bucket))`:     "there is no metric workqueue_depth_bucket",
		`sum(axiom_human_tasks`:                                             "parse error",
		`axiom_workflow_run_duration_seconds_bucket{le="1",outcome="done"}`: "has no label outcome",
	} {
		if wrong, _ := check(known, expr); !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("%s: found %q, want %q", expr, wrong, want)
		}
	}
}
