package main

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

const namespace = "axiom-system"

// overlays of config/ and the values by which the chart makes the same.
var overlays = map[string]struct{ overlay, values string }{
	"default":           {"default", ""},
	"high-availability": {"high-availability", "replicas: 2"},
	"namespaced":        {"namespaced", "namespaces: [team-a]"},
	"cert-manager":      {"cert-manager", "certificate: {source: CertManager}"},
}

func TestTheChartMakesWhatTheOverlaysMake(t *testing.T) {
	for name, tc := range overlays {
		t.Run(name, func(t *testing.T) {
			want := kustomized(t, tc.overlay)
			// helm install --create-namespace makes that one.
			delete(want, "Namespace /"+namespace)
			got, _ := render(t, namespace, tc.values)
			plain(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("config/%s (-) and the chart (+):\n%s", tc.overlay, diff)
			}
		})
	}
}

func TestWhatTheSuitesApplyIsWhatTheChartMakes(t *testing.T) {
	cases := map[string]string{
		"everything": everything,
		"separate":   "{clusterObjects: false, namespaces: [team-a]}",
	}
	for name, tc := range overlays {
		cases[name] = tc.values
	}
	for name, values := range cases {
		t.Run(name, func(t *testing.T) {
			objects, _ := render(t, namespace, values)
			// The types are those of config/crd.
			maps.DeleteFunc(objects, func(_ string, o object) bool { return o["kind"] == "CustomResourceDefinition" })
			golden(t, "chart-"+name+".yaml", asText(t, objects))
		})
	}
}

// everything is set to something else than the default.
const everything = `
image: {repository: registry.example/axiom, digest: "sha256:` + digest + `", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
replicas: 3
podDisruptionBudget: {minAvailable: 50%}
namespaces: [team-a, team-b]
crds: {install: true, keep: false}
webhooks: {namePrefix: axiom-teams}
certificate: {source: CertManager}
manager:
  runWorkers: 16
  workers: 2
  maxSessionsPerNamespace: 5
  agentImage: registry.example/agent:1
  agentCommand: [agent, --acp]
  kubeAPI: {qps: 50, burst: 100}
  drainSeconds: 10
  shutdownSeconds: 60
  extraArgs: [--zap-log-level=1]
  extraEnv: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://otel:4318"}]
workspace: {sizeLimit: 10Gi}
resources: {requests: {cpu: "1", memory: 1Gi}, limits: {memory: 2Gi}}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: infra, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: system-cluster-critical
podAnnotations: {example.com/a: b}
monitoring: {enabled: true, port: 9090, serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}}
`

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestEveryValueReachesAnObject(t *testing.T) {
	objects, notes := render(t, "elsewhere", everything)
	text := string(asText(t, objects))
	for _, want := range []string{
		"image: registry.example/axiom@sha256:" + digest, "--operator-image=registry.example/axiom@sha256:" + digest,
		"imagePullPolicy: Always", "--image-pull-policy=Always", "- name: registry\n", "replicas: 3", "minAvailable: 50%", "maxUnavailable: 0",
		"--namespaces=team-a,team-b", "--webhook-configurations=\n", "name: axiom-teams-validating-webhook-configuration",
		"--serving-certificate=External", "cert-manager.io/inject-ca-from: elsewhere/axiom-serving-cert", "axiom-gateway.elsewhere.svc",
		"--run-workers=16", "--workers=2", "--max-sessions-per-namespace=5", "--agent-image=registry.example/agent:1",
		"--agent-command=agent\n", "--agent-command=--acp", "--kube-api-qps=50", "--kube-api-burst=100", "seconds: 10",
		"--graceful-shutdown-timeout=60s", "terminationGracePeriodSeconds: 80", "--zap-log-level=1", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"sizeLimit: 10Gi", "memory: 2Gi", "kubernetes.io/os: linux", "key: infra", "nodeAffinity", "system-cluster-critical",
		"example.com/a: b", "--metrics-bind-address=:9090", "interval: 15s", "release: prometheus", "port: metrics",
		`request.userInfo.username != "system:serviceaccount:elsewhere:axiom-controller-manager"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, kept := range []string{"resource-policy", "axiom-system", "axiom-validating-webhook-configuration", "kind: ClusterRoleBinding"} {
		if strings.Contains(text, kept) {
			t.Errorf("there is %s", kept)
		}
	}
	if !strings.Contains(notes, "team-a, team-b") {
		t.Errorf("notes are %s", notes)
	}
}

func TestPartsAreLeftOut(t *testing.T) {
	for values, kinds := range map[string][]string{
		"clusterObjects: false":                                {"CustomResourceDefinition", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
		"crds: {install: false}":                               {"CustomResourceDefinition"},
		"networkPolicy: {enabled: false}":                      {"NetworkPolicy"},
		"{replicas: 2, podDisruptionBudget: {enabled: false}}": {"PodDisruptionBudget"},
		"replicas: 1":                                          {"PodDisruptionBudget", "Certificate", "ServiceMonitor"},
		"{namespaces: [a], clusterObjects: false}":             {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"},
	} {
		objects, _ := render(t, namespace, values)
		for key, o := range objects {
			if kind, _ := o["kind"].(string); slices.Contains(kinds, kind) {
				t.Errorf("with %s there is %s", values, key)
			}
		}
	}
}

func TestTypesAreKeptUnlessSaidOtherwise(t *testing.T) {
	for values, want := range map[string]int{"": 9, "crds: {keep: false}": 0} {
		objects, _ := render(t, namespace, values)
		if got := bytes.Count(asText(t, objects), []byte("helm.sh/resource-policy: keep")); got != want {
			t.Errorf("with %q %d types are kept, want %d", values, got, want)
		}
	}
}

func TestUnusableValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"replicas: 0":                                    "replicas",
		"replicas: two":                                  "replicas",
		"replica: 2":                                     "replica",
		"namespaces: team-a":                             "namespaces",
		"namespaces: [Team_A]":                           "namespaces",
		"namespaces: [a, a]":                             "namespaces",
		"image: {digest: abc}":                           "digest",
		"image: {pullPolicy: Sometimes}":                 "pullPolicy",
		"certificate: {source: Mine}":                    "source",
		"manager: {runWorkers: 0}":                       "runWorkers",
		"manager: {kubeAPI: {qps: 0}}":                   "qps",
		"manager: {extraArgs: [zap]}":                    "extraArgs",
		"monitoring: {port: 8443}":                       "port",
		"monitoring: {serviceMonitor: {interval: soon}}": "interval",
		"workspace: {sizeLimit: big}":                    "sizeLimit",
		"podDisruptionBudget: {minAvailable: 0}":         "minAvailable",
		"crds: {keep: sometimes}":                        "keep",
		"webhooks: {namePrefix: A_}":                     "namePrefix",
	} {
		_, err := renderTexts(namespace, values)
		if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s named", values, err, want)
		}
	}
}

func TestTheChartIsLinted(t *testing.T) {
	for _, values := range []map[string]any{nil, {"namespaces": []any{"team-a"}}, {"replicas": 2, "monitoring": map[string]any{"enabled": true}}} {
		found := lint.AllWithKubeVersion(filepath.Join(root, "charts", "axiom-operator"), values, namespace, nil)
		for _, message := range found.Messages {
			// A missing icon is the one thing it has to say.
			if message.Severity > support.InfoSev {
				t.Errorf("with %v: %v", values, message)
			}
		}
	}
}

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for _, m := range manifests() {
		if _, err := build(root, m.overlay); err != nil {
			t.Error(err)
		}
	}
	files := map[string][]byte{}
	if err := addManifests(files, root, "registry.example/axiom@sha256:"+digest); err != nil {
		t.Fatal(err)
	}
	text := string(files[filepath.Join("dist", "install.yaml")])
	if strings.Contains(text, defaultImage) || strings.Count(text, "registry.example/axiom@sha256:"+digest) != 2 {
		t.Error("the image is not in both places")
	}
}

func TestTheRoleOfANamespaceHasNothingOfTheCluster(t *testing.T) {
	got := withinNamespaces([]rule{
		{Resources: []string{"pods"}, Verbs: []string{"get"}},
		{Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{Resources: []string{"localsubjectaccessreviews", "subjectaccessreviews"}, Verbs: []string{"create"}},
		{Resources: []string{"mutatingwebhookconfigurations"}, ResourceNames: []string{"a"}, Verbs: []string{"update"}},
	})
	want := []rule{
		{Resources: []string{"pods"}, Verbs: []string{"get"}},
		{Resources: []string{"localsubjectaccessreviews"}, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
