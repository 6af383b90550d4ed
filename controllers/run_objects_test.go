package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
)

func testRunOptions() RunOptions {
	return RunOptions{
		OperatorImage: "operator:1",
		ScriptImages:  map[string]string{action.InterpreterBash: "bash:1", action.InterpreterPython: "python:1"},
		PullPolicy:    corev1.PullIfNotPresent,
		Gateway: GatewayOptions{
			URL: "https://gateway/api/v1", Namespace: "axiom-system", PodLabels: map[string]string{"app": "gateway"}, Port: 8443,
		},
	}
}

// attemptOf is the open attempt of the flow's action.
func attemptOf(t *testing.T) (*api.WorkflowRun, *api.ActiveBranch) {
	t.Helper()
	run := startedState(t, runTestFlow).run
	return run, runOpenBranch(run, "work#1")
}

func TestAttemptPodMeetsTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	run, branch := attemptOf(t)
	pod := attemptPod(run, branch, action.Type{Mode: action.ModeScript}, testRunOptions())
	spec := pod.Spec
	if spec.RestartPolicy != corev1.RestartPolicyNever || *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks {
		t.Errorf("pod restarts or gets what it must not have: %+v", spec)
	}
	if !*spec.SecurityContext.RunAsNonRoot || *spec.SecurityContext.RunAsUser != nonRootUser ||
		spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod is not restricted: %+v", spec.SecurityContext)
	}
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		security := container.SecurityContext
		if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !cmp.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("container %s is not restricted: %+v", container.Name, security)
		}
		if len(container.Resources.Requests) == 0 || len(container.Resources.Limits) == 0 {
			t.Errorf("container %s has no bounds", container.Name)
		}
	}
	for _, volume := range spec.Volumes {
		if volume.HostPath != nil {
			t.Errorf("volume %s is of the host", volume.Name)
		}
	}
}

func TestAttemptPodRunsTheScriptOfItsActionType(t *testing.T) {
	t.Parallel()
	run, branch := attemptOf(t)
	pod := attemptPod(run, branch, action.Type{
		Script: action.Script{Interpreter: action.InterpreterPython},
		Env: []action.EnvVar{
			{Name: "HOME", Value: "/elsewhere"}, {Name: "PRICE", Value: "$(HOME) $5"}, {Name: "KEY", Secret: &action.KeyRef{Name: "s", Key: "k"}},
		},
	}, testRunOptions())
	container := pod.Spec.Containers[0]
	if got := strings.Join(container.Command, " "); got != "/axiom/axiom-runner script --interpreter python --script /axiom-io/script" {
		t.Errorf("got command %q", got)
	}
	if container.Image != "python:1" {
		t.Errorf("got image %q", container.Image)
	}
	got := map[string]string{}
	for _, v := range container.Env {
		got[v.Name] = v.Value // the last one counts, as for the kubelet
		if v.ValueFrom != nil {
			got[v.Name] = v.ValueFrom.SecretKeyRef.Name + "/" + v.ValueFrom.SecretKeyRef.Key
		}
	}
	want := map[string]string{
		"HOME": "/work", "PRICE": "$$(HOME) $$5", "KEY": "s/k",
		"AXIOM_API_URL": "https://gateway/api/v1", "AXIOM_ATTEMPT_ID": "team/" + pod.Name, "AXIOM_ATTEMPT_TOKEN": pod.Name + "/token",
		"AXIOM_SECRET_ENV": "KEY", "AXIOM_CA_FILE": "/etc/axiom/trust/ca.crt", "AXIOM_INPUTS": "/axiom-io/inputs.json", "AXIOM_OUTPUTS": "/work/outputs.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	wantMeta := metav1.ObjectMeta{
		Name: branch.Child.Name, Namespace: "team", Finalizers: []string{api.FinalizerCollect},
		Labels:          map[string]string{api.LabelRun: string(run.UID), api.LabelComponent: api.ComponentAction},
		Annotations:     map[string]string{api.AnnotationActivation: "work#1", api.AnnotationAttempt: "1"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, api.GroupVersion.WithKind("WorkflowRun"))},
	}
	if diff := cmp.Diff(wantMeta, pod.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestAttemptInputsKeepLargeIntegers(t *testing.T) {
	t.Parallel()
	run, branch := attemptOf(t)
	given, err := attemptInputs(run, branch, action.Type{Script: action.Script{Template: "s"}}, engine.Values{"n": int64(9007199254740993), "t": "<&>"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{attemptInputsKey: `{"n":9007199254740993,"t":"<&>"}`, attemptScriptKey: "s", attemptContractKey: "null"}
	if diff := cmp.Diff(want, given.Data); diff != "" || !*given.Immutable || given.Name != branch.Child.Name+"-in" {
		t.Errorf("%s, data (-want +got):\n%s", given.Name, diff)
	}
}

func TestAttemptSecretHoldsNothingElse(t *testing.T) {
	t.Parallel()
	run, branch := attemptOf(t)
	secret := attemptSecret(run, branch, "t", []byte("c"))
	if diff := cmp.Diff(map[string][]byte{"token": []byte("t"), "ca.crt": []byte("c")}, secret.Data); diff != "" || !*secret.Immutable {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestAttemptPolicyLetsOnlyGatewayAndNamesThrough(t *testing.T) {
	t.Parallel()
	run, _ := attemptOf(t)
	policy := attemptPolicy(run, testRunOptions().Gateway)
	if !cmp.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}) {
		t.Errorf("got types %v", policy.Spec.PolicyTypes)
	}
	if len(policy.Spec.Ingress) != 0 || len(policy.Spec.Egress) != 2 {
		t.Errorf("got %d ways in and %d out, want 0 and 2", len(policy.Spec.Ingress), len(policy.Spec.Egress))
	}
	if diff := cmp.Diff(map[string]string{api.LabelRun: string(run.UID)}, policy.Spec.PodSelector.MatchLabels); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestRunTask(t *testing.T) {
	t.Parallel()
	definition := testDefinition(t, `
id: t
name: T
nodes:
- {id: start, type: start, name: Start}
- id: form
  type: human-task
  name: Approve
  config:
    description: Decide.
    outputs: [{name: ok, type: boolean, required: true}, {name: window, widget: select, options: [{label: Now, value: now}]}]
    assignees: {users: [bob, ada, bob], groups: []}
    timeout: P2D
- {id: strict, type: human-task, name: " ", config: {responseSchema: {type: object}, assignees: {}}}
`)
	for node, tc := range map[string]struct {
		branch api.ActiveBranch
		input  engine.Values
		want   string
	}{
		"form": {
			api.ActiveBranch{Activation: "form#1", Title: "Release"},
			engine.Values{
				"Risk": int64(3), "Map": map[string]any{"b": nil, "a": true}, "Doc": "https://example.invalid/x",
				"Mail": "mailto:a@b", "Relative": "/x", "Nothing": nil,
			},
			`
runRef: {name: flow-1, uid: 5b1e2c34-0000-4000-8000-000000000001, activation: "form#1"}
humanContext:
  title: Release
  description: Decide.
  details:
  - {label: Doc, value: "https://example.invalid/x"}
  - {label: Mail, value: "mailto:a@b"}
  - {label: Map, value: '{"a":true,"b":null}'}
  - {label: Nothing}
  - {label: Relative, value: /x}
  - {label: Risk, value: "3"}
  references: [{label: Doc, url: "https://example.invalid/x"}]
form:
  fields:
  - {name: ok, type: boolean, widget: checkbox, label: ok, required: true}
  - {name: window, type: string, widget: select, label: window, options: [{label: Now, value: now}]}
assignees: {users: [ada, bob]}
expiresAfter: P2D
`,
		},
		"strict": {
			api.ActiveBranch{Activation: "strict#1"}, nil, `
runRef: {name: flow-1, uid: 5b1e2c34-0000-4000-8000-000000000001, activation: "strict#1"}
humanContext: {title: Human Task}
responseSchema: {type: object}
assignees: {}
`,
		},
	} {
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			tc.branch.Child = &api.ChildRef{Kind: childHumanTask, Name: "c"}
			found, _ := definition.engine.Workflow().Node(node)
			task, err := runTask(testRun(), &tc.branch, found, tc.input)
			if err != nil {
				t.Fatal(err)
			}
			var want api.HumanTaskSpec
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asYAML(t, want), asYAML(t, task.Spec)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
