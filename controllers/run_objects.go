package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/action"
	"github.com/apitomy/axiom-operator/internal/engine"
)

const (
	// attemptIO is where a script pod finds what it was given.
	attemptIO = "/axiom-io"
	// attemptOutputs is where its script leaves its outputs.
	attemptOutputs = workPath + "/outputs.json"

	// envSecretNames tells the runner which variables hold what must not leave the pod.
	envSecretNames = "AXIOM_SECRET_ENV"

	volumeAttempt   = "given"
	scriptContainer = "script"
)

// childKinds are the kinds of a run's children.
var childKinds = map[string]schema.GroupVersionKind{
	childHumanTask: api.GroupVersion.WithKind(childHumanTask),
	childPod:       corev1.SchemeGroupVersion.WithKind(childPod),

	childAgentSession: api.GroupVersion.WithKind(childAgentSession),

	"ConfigMap": corev1.SchemeGroupVersion.WithKind("ConfigMap"),
}

// attemptMeta is the metadata of an attempt's objects.
func attemptMeta(run *api.WorkflowRun, branch *api.ActiveBranch) metav1.ObjectMeta {
	meta := runChildMeta(run, branch)
	meta.Annotations[api.AnnotationAttempt] = strconv.Itoa(int(branch.Attempt))
	return meta
}

// attemptInputs holds what an attempt is given. It is made first and goes
// last: while it is there, the attempt's Secret may be.
func attemptInputs(run *api.WorkflowRun, branch *api.ActiveBranch, actionType action.Type, input engine.Values) (*corev1.ConfigMap, error) {
	if input == nil {
		input = engine.Values{}
	}
	inputs, err := encodeRunValue(map[string]any(input))
	if err != nil {
		return nil, err
	}
	contract, err := json.Marshal(actionType.Outputs)
	if err != nil {
		return nil, fmt.Errorf("encode contract: %w", err)
	}
	given := &corev1.ConfigMap{
		ObjectMeta: attemptMeta(run, branch),
		Immutable:  new(true),
		Data: map[string]string{
			attemptInputsKey: string(inputs), attemptScriptKey: actionType.Script.Template, attemptContractKey: string(contract),
		},
	}
	given.Name = runInputName(given.Name)
	return given, nil
}

// attemptSecret holds the token that opens the attempt's only route.
func attemptSecret(run *api.WorkflowRun, branch *api.ActiveBranch, value string, ca []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: attemptMeta(run, branch),
		Immutable:  new(true),
		Data:       map[string][]byte{secretKeyToken: []byte(value), secretKeyCA: ca},
	}
}

// attemptPolicy closes the run's pods off from all but the gateway and DNS.
func attemptPolicy(run *api.WorkflowRun, gateway GatewayOptions) *networkingv1.NetworkPolicy {
	pods := map[string]string{api.LabelRun: string(run.UID)}
	return closedPolicy(metav1.ObjectMeta{
		Name:            runPolicyName(run),
		Namespace:       run.Namespace,
		Labels:          maps.Clone(pods),
		OwnerReferences: []metav1.OwnerReference{runReference(run)},
	}, pods, gateway, nil)
}

// attemptPod runs the script of an attempt. The finalizer keeps it until its
// end was committed.
func attemptPod(run *api.WorkflowRun, branch *api.ActiveBranch, actionType action.Type, options RunOptions) *corev1.Pod {
	meta := attemptMeta(run, branch)
	meta.Labels[api.LabelComponent] = api.ComponentAction
	meta.Finalizers = []string{api.FinalizerCollect}

	image := actionType.Script.Image
	if image == "" {
		image = options.ScriptImages[actionType.Script.Language()]
	}
	container := corev1.Container{
		Name:            scriptContainer,
		Image:           image,
		ImagePullPolicy: options.PullPolicy,
		Command: []string{
			toolsPath + "/axiom-runner", "script",
			"--interpreter", actionType.Script.Language(), "--script", attemptIO + "/" + attemptScriptKey,
		},
		WorkingDir:      workPath,
		Env:             attemptEnvironment(meta, actionType.Env, options.Gateway.URL),
		Resources:       defaultResources(options.Resources),
		SecurityContext: restrictedContainer(),
		VolumeMounts: append(scratchMounts(),
			corev1.VolumeMount{Name: volumeAttempt, MountPath: attemptIO, ReadOnly: true},
			corev1.VolumeMount{Name: volumeTrust, MountPath: trustPath, ReadOnly: true}),
	}
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			SecurityContext:              restrictedPod(),
			InitContainers:               []corev1.Container{installContainer(options.OperatorImage, options.PullPolicy)},
			Containers:                   []corev1.Container{container},
			Volumes:                      append(scratchVolumes(), trustVolume(meta.Name), givenVolume(meta.Name)),
		},
	}
}

func givenVolume(attemptName string) corev1.Volume {
	return corev1.Volume{Name: volumeAttempt, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: runInputName(attemptName)},
		Items: []corev1.KeyToPath{
			{Key: attemptInputsKey, Path: attemptInputsKey}, {Key: attemptScriptKey, Path: attemptScriptKey},
		},
	}}}
}

// attemptEnvironment puts the operator's variables behind those of the action
// type, so that they win.
func attemptEnvironment(meta metav1.ObjectMeta, own []action.EnvVar, gatewayURL string) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, v := range own {
		if v.Secret != nil {
			env = append(env, corev1.EnvVar{Name: v.Name, ValueFrom: secretKey(v.Secret.Name, v.Secret.Key)})
			continue
		}
		// A literal is not to be expanded by the kubelet.
		env = append(env, corev1.EnvVar{Name: v.Name, Value: escapeEnvironment(v.Value)})
	}
	if names := attemptSecretNames(own); len(names) > 0 {
		env = append(env, corev1.EnvVar{Name: envSecretNames, Value: strings.Join(names, ",")})
	}
	return append(env,
		corev1.EnvVar{Name: "HOME", Value: workPath},
		corev1.EnvVar{Name: "AXIOM_API_URL", Value: gatewayURL},
		corev1.EnvVar{Name: "AXIOM_ATTEMPT_ID", Value: meta.Namespace + "/" + meta.Name},
		corev1.EnvVar{Name: "AXIOM_ATTEMPT_TOKEN", ValueFrom: secretKey(meta.Name, secretKeyToken)},
		corev1.EnvVar{Name: "AXIOM_CA_FILE", Value: trustPath + "/" + secretKeyCA},
		corev1.EnvVar{Name: "AXIOM_INPUTS", Value: attemptIO + "/" + attemptInputsKey},
		corev1.EnvVar{Name: "AXIOM_OUTPUTS", Value: attemptOutputs},
	)
}

// attemptSecretNames are the variables whose values the runner must not pass on.
func attemptSecretNames(env []action.EnvVar) []string {
	var names []string
	for _, v := range env {
		if v.Secret != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

func runRawJSON(v any) (*runtime.RawExtension, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &runtime.RawExtension{Raw: data}, nil
}

// escapeEnvironment keeps the kubelet from expanding $(NAME) in a literal.
func escapeEnvironment(value string) string {
	return strings.ReplaceAll(value, "$", "$$")
}
