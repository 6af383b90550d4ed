package controllers

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

var updateGolden = flag.Bool("update-agent-pods", false, "write the golden files of pods anew")

// everythingSet is a runtime in which a user set all that can be set.
func everythingSet() api.RuntimeSpec {
	return api.RuntimeSpec{
		Image: "registry.example.com/agents/acp:1.4", Command: []string{"my-agent"}, Args: []string{"--acp"},
		Env: []api.EnvVar{
			{Name: "LEVEL", Value: "debug"},
			{Name: "KEY", SecretKeyRef: &api.KeyRef{Name: "keys", Key: "main"}},
		},
		Resources:        &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}},
		ImagePullSecrets: []api.LocalRef{{Name: "pull"}},
		NodeSelector:     map[string]string{"pool": "agents"},
		Tolerations:      []corev1.Toleration{{Key: "agents", Operator: corev1.TolerationOpExists}},
		RuntimeClassName: "gvisor",
	}
}

func podState(how func(*api.AgentSessionSpec)) sessionState {
	state := sessionCase{prompt: api.PromptQueued, isStarting: true}.state()
	state.session.Spec.TemplateRef.Name = api.TemplateWorkbench
	how(&state.session.Spec)
	return state
}

var agentPods = map[string]func(*api.AgentSessionSpec){
	"agent-pod-default": func(*api.AgentSessionSpec) {},
	"agent-pod-full": func(spec *api.AgentSessionSpec) {
		spec.Runtime, spec.ModelSecretRef = everythingSet(), &api.LocalRef{Name: "model"}
	},
	"agent-pod-scripted": func(spec *api.AgentSessionSpec) {
		spec.Runtime.PlaybookRef = &api.KeyRef{Name: "demo", Key: "playbook.yaml"}
	},
	"agent-pod-free-standing": func(spec *api.AgentSessionSpec) { spec.CompositionRef = nil },
}

func TestAgentPodsAreTheGoldenOnes(t *testing.T) {
	for name, how := range agentPods {
		t.Run(name, func(t *testing.T) {
			pod, err := agentPod(podState(how), workbenchOptions())
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *updateGolden {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("pod differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAgentPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, how := range agentPods {
		t.Run(name, func(t *testing.T) {
			pod, err := agentPod(podState(how), workbenchOptions())
			if err != nil {
				t.Fatal(err)
			}
			level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Errorf("not restricted: %s", result.ForbiddenDetail())
			}
			spec := pod.Spec
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
				t.Error("it gets a service-account token or service links")
			}
			if spec.RestartPolicy != corev1.RestartPolicyNever || spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.ServiceAccountName != "" {
				t.Errorf("pod has more than it may: %+v", spec)
			}
			for _, container := range append(spec.InitContainers, spec.Containers...) {
				if !*container.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("container %s can write to its root", container.Name)
				}
				if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
					t.Errorf("container %s has no bounds", container.Name)
				}
			}
			if tools := spec.Containers[0].VolumeMounts[0]; tools.MountPath != "/axiom" || !tools.ReadOnly {
				t.Errorf("the operator's programs are mounted as %+v", tools)
			}
		})
	}
}

func TestThePodKnowsItsTokenByReferenceOnly(t *testing.T) {
	for name, how := range agentPods {
		t.Run(name, func(t *testing.T) {
			pod, err := agentPod(podState(how), workbenchOptions())
			if err != nil {
				t.Fatal(err)
			}
			var found bool
			for _, variable := range pod.Spec.Containers[0].Env {
				if variable.Name == "AXIOM_SESSION_TOKEN" {
					found = true
					if variable.Value != "" || variable.ValueFrom.SecretKeyRef.Name != "c-agent-1" || variable.ValueFrom.SecretKeyRef.Key != "token" {
						t.Errorf("token is given as %+v", variable)
					}
				}
			}
			if !found {
				t.Error("the agent gets no token")
			}
			for _, volume := range pod.Spec.Volumes {
				if volume.Secret != nil && (len(volume.Secret.Items) != 1 || volume.Secret.Items[0].Key != "ca.crt") {
					t.Errorf("volume %s shows more of the Secret than its certificates", volume.Name)
				}
			}
			for _, container := range pod.Spec.InitContainers {
				if len(container.Env)+len(container.EnvFrom) > 0 {
					t.Errorf("container %s has an environment", container.Name)
				}
			}
		})
	}
}

func TestACompositionIDIsForBoundSessionsOnly(t *testing.T) {
	environment := func(name string) map[string]string {
		pod, err := agentPod(podState(agentPods[name]), workbenchOptions())
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, variable := range pod.Spec.Containers[0].Env {
			found[variable.Name] = variable.Value
		}
		return found
	}
	if got := environment("agent-pod-default")["AXIOM_COMPOSITION_ID"]; got != "team-a/c" {
		t.Errorf("composition id %q", got)
	}
	if _, set := environment("agent-pod-free-standing")["AXIOM_COMPOSITION_ID"]; set {
		t.Error("a free-standing session has a composition id")
	}
}

func TestCredentialsOfAPod(t *testing.T) {
	pod, err := agentPod(podState(func(spec *api.AgentSessionSpec) {
		agentPods["agent-pod-full"](spec)
		// Its own token under another name is a Secret like any other.
		spec.Runtime.Env = append(spec.Runtime.Env, api.EnvVar{Name: "MINE", SecretKeyRef: &api.KeyRef{Name: "c-agent-1", Key: "token"}})
	}), workbenchOptions())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"keys", "c-agent-1", "model"}, credentialsOf(pod)); diff != "" {
		t.Errorf("credentials differ (-want +got):\n%s", diff)
	}
}

func TestMergeRuntime(t *testing.T) {
	full := everythingSet()
	other := api.RuntimeSpec{
		Image: "other", Command: []string{"other"}, Args: []string{"x"}, Env: []api.EnvVar{{Name: "OTHER"}},
		Resources: &corev1.ResourceRequirements{}, ImagePullSecrets: []api.LocalRef{{Name: "other"}},
		NodeSelector: map[string]string{"other": ""}, Tolerations: []corev1.Toleration{{Key: "other"}}, RuntimeClassName: "other",
		PlaybookRef: &api.KeyRef{Name: "other"},
	}
	withoutPlaybook := other
	withoutPlaybook.PlaybookRef = nil
	for name, tc := range map[string]struct{ first, second, want api.RuntimeSpec }{
		"what is unset comes from the second": {api.RuntimeSpec{}, other, other},
		"what is set stays":                   {full, withoutPlaybook, full},
		"a command has its own arguments": {
			api.RuntimeSpec{Command: []string{"mine"}},
			withoutPlaybook,
			func() api.RuntimeSpec {
				want := withoutPlaybook
				want.Command, want.Args = []string{"mine"}, nil
				return want
			}(),
		},
		"arguments alone go to the second's command": {
			api.RuntimeSpec{Args: []string{"y"}},
			api.RuntimeSpec{Command: []string{"c"}, Args: []string{"x"}},
			api.RuntimeSpec{Command: []string{"c"}, Args: []string{"y"}},
		},
		"a command is not played over by the second's playbook": {
			api.RuntimeSpec{Command: []string{"mine"}}, api.RuntimeSpec{PlaybookRef: &api.KeyRef{Name: "p"}}, api.RuntimeSpec{Command: []string{"mine"}},
		},
		"a playbook stays beside the second's command": {
			api.RuntimeSpec{PlaybookRef: &api.KeyRef{Name: "p"}},
			api.RuntimeSpec{Command: []string{"c"}},
			api.RuntimeSpec{PlaybookRef: &api.KeyRef{Name: "p"}, Command: []string{"c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mergeRuntime(tc.first, tc.second)); diff != "" {
				t.Errorf("runtime differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTemplateFillsTheComposition(t *testing.T) {
	state := podState(func(spec *api.AgentSessionSpec) { spec.Runtime.Image = "mine" })
	state.template = api.SessionTemplateSpec{
		Runtime: api.RuntimeSpec{Image: "template's", Command: []string{"from-template"}}, ModelSecretRef: &api.LocalRef{Name: "template-key"},
	}
	pod, err := agentPod(state, workbenchOptions())
	if err != nil {
		t.Fatal(err)
	}
	container := pod.Spec.Containers[0]
	if container.Image != "mine" || container.Command[2] != "from-template" || container.EnvFrom[0].SecretRef.Name != "template-key" {
		t.Errorf("container is %+v", container)
	}
}

func TestDefaultResources(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		found := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			found[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return found
	}
	for name, tc := range map[string]struct {
		set              *corev1.ResourceRequirements
		requests, limits corev1.ResourceList
	}{
		"nothing is set": {nil, list("cpu", "100m", "memory", "256Mi"), list("cpu", "1", "memory", "1Gi")},
		"a small limit lowers the request": {
			&corev1.ResourceRequirements{Limits: list("cpu", "50m")}, list("cpu", "50m", "memory", "256Mi"), list("cpu", "50m", "memory", "1Gi"),
		},
		"a large request raises the limit": {
			&corev1.ResourceRequirements{Requests: list("memory", "4Gi")}, list("cpu", "100m", "memory", "4Gi"), list("cpu", "1", "memory", "4Gi"),
		},
		"what is set stays": {
			&corev1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("cpu", "3", "gpu", "1")},
			list("cpu", "2", "memory", "256Mi"), list("cpu", "3", "memory", "1Gi", "gpu", "1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.set.DeepCopy()
			got := defaultResources(tc.set)
			if diff := cmp.Diff(corev1.ResourceRequirements{Requests: tc.requests, Limits: tc.limits}, got); diff != "" {
				t.Errorf("resources differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.set); diff != "" {
				t.Errorf("what the user set has changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestThePolicyOpensThreeWaysAndNoMore(t *testing.T) {
	state := podState(func(spec *api.AgentSessionSpec) {
		spec.Egress = []api.EgressRule{{CIDR: "203.0.113.0/24", Port: 443}, {PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "model"}}, Port: 80}}
	})
	state.template.Egress = []api.EgressRule{{NamespaceSelector: &metav1.LabelSelector{}, Port: 81}}
	got := networkPolicyFor(state, workbenchOptions())

	if diff := cmp.Diff(map[string]string{api.LabelSession: "c-agent"}, got.Spec.PodSelector.MatchLabels); diff != "" {
		t.Errorf("selected pods differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{"Ingress", "Egress"}, got.Spec.PolicyTypes); diff != "" || got.Spec.Ingress != nil {
		t.Errorf("policy types differ (-want +got):\n%s, ways in %v", diff, got.Spec.Ingress)
	}
	namespace := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}}
	}
	pods := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	want := []networkingv1.NetworkPolicyEgressRule{
		{Ports: []networkingv1.NetworkPolicyPort{port(tcp, 8443)}, To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: namespace("axiom-system"), PodSelector: pods("app", "gateway")}}},
		{Ports: []networkingv1.NetworkPolicyPort{port(udp, 53), port(tcp, 53)}, To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: namespace("kube-system"), PodSelector: pods("k8s-app", "kube-dns")}}},
		{Ports: []networkingv1.NetworkPolicyPort{port(tcp, 443)}, To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "203.0.113.0/24"}}}},
		{Ports: []networkingv1.NetworkPolicyPort{port(tcp, 80)}, To: []networkingv1.NetworkPolicyPeer{{PodSelector: pods("app", "model")}}},
		{Ports: []networkingv1.NetworkPolicyPort{port(tcp, 81)}, To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}},
	}
	if diff := cmp.Diff(want, got.Spec.Egress); diff != "" {
		t.Errorf("ways out differ (-want +got):\n%s", diff)
	}
}

func TestThePodIsThePolicys(t *testing.T) {
	state := podState(agentPods["agent-pod-default"])
	pod, err := agentPod(state, workbenchOptions())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range networkPolicyFor(state, workbenchOptions()).Spec.PodSelector.MatchLabels {
		if pod.Labels[name] != value {
			t.Errorf("label %s of the pod is %q, want %q", name, pod.Labels[name], value)
		}
	}
	if !strings.HasPrefix(pod.Name, state.session.Name+"-") {
		t.Errorf("pod is named %q", pod.Name)
	}
}
