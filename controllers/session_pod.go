package controllers

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	trustPath    = "/etc/axiom/trust"
	playbookPath = "/etc/axiom/playbook"

	volumeTrust    = "trust"
	volumePlaybook = "playbook"

	agentContainer = "agent"

	// envToken is the variable that the session's token is given in.
	envToken = "AXIOM_SESSION_TOKEN"
	// envHome is the variable that the agent's home is given in.
	envHome = "HOME"
)

// errNoAgent says what a user must set when nothing names an agent.
var errNoAgent = &impossibleError{reason: "no agent is configured: set `agent.runtime.command` or `agent.runtime.playbookRef` of the composition, or the operator's default runtime"}

// agentPod is the pod of the live attempt. Users choose what `runtime` has and
// nothing else of it.
func agentPod(state sessionState, options SessionOptions) (*corev1.Pod, error) {
	session := state.session
	runtime := mergeRuntime(mergeRuntime(session.Spec.Runtime, state.template.Runtime), options.DefaultRuntime)
	command, err := agentCommand(&runtime, options)
	if err != nil {
		return nil, err
	}
	container := corev1.Container{
		Name:            agentContainer,
		Image:           runtime.Image,
		ImagePullPolicy: options.PullPolicy,
		Command:         command,
		WorkingDir:      workPath,
		Env:             agentEnvironment(state, runtime, options),
		EnvFrom:         modelEnvironment(state),
		Resources:       defaultResources(runtime.Resources),
		SecurityContext: restrictedContainer(),
		VolumeMounts:    append(scratchMounts(), corev1.VolumeMount{Name: volumeTrust, MountPath: trustPath, ReadOnly: true}),
	}
	pod := &corev1.Pod{
		ObjectMeta: agentMeta(session),
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			SecurityContext:              restrictedPod(),
			InitContainers:               []corev1.Container{installContainer(options.OperatorImage, options.PullPolicy)},
			Containers:                   []corev1.Container{container},
			Volumes:                      append(scratchVolumes(), trustVolume(attemptName(session))),
			NodeSelector:                 runtime.NodeSelector,
			Tolerations:                  runtime.Tolerations,
		},
	}
	for _, secret := range runtime.ImagePullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret.Name})
	}
	if runtime.RuntimeClassName != "" {
		pod.Spec.RuntimeClassName = &runtime.RuntimeClassName
	}
	if playbook := runtime.PlaybookRef; playbook != nil {
		mountPlaybook(&pod.Spec, playbook)
	}
	if takesPrompts(session) {
		moveIntoEmptyRoom(session, &pod.Spec)
	}
	return pod, nil
}

// agentCommand starts the runner with the agent; a playbook replaces image and
// agent by the scripted one.
func agentCommand(runtime *api.RuntimeSpec, options SessionOptions) ([]string, error) {
	runner := toolsPath + "/axiom-runner"
	if playbook := runtime.PlaybookRef; playbook != nil {
		runtime.Image = options.OperatorImage
		return []string{runner, "--", runner, "scripted", "--playbook", playbookPath + "/" + playbook.Key}, nil
	}
	if runtime.Image == "" || len(runtime.Command) == 0 {
		return nil, errNoAgent
	}
	return slices.Concat([]string{runner, "--"}, runtime.Command, runtime.Args), nil
}

func agentMeta(session *api.AgentSession) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      attemptName(session),
		Namespace: session.Namespace,
		Labels: map[string]string{
			api.LabelSession:   session.Name,
			api.LabelComponent: api.ComponentAgent,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(session, api.GroupVersion.WithKind("AgentSession"))},
	}
}

func agentEnvironment(state sessionState, runtime api.RuntimeSpec, options SessionOptions) []corev1.EnvVar {
	session := state.session
	env := []corev1.EnvVar{
		{Name: "AXIOM_API_URL", Value: options.Gateway.URL},
		{Name: "AXIOM_SESSION_ID", Value: session.Namespace + "/" + session.Name},
		{Name: "AXIOM_CA_FILE", Value: trustPath + "/" + secretKeyCA},
		{Name: envToken, ValueFrom: secretKey(attemptName(session), secretKeyToken)},
		{Name: envHome, Value: workPath},
		{Name: "AXIOM_SESSION_ATTEMPT", Value: strconv.Itoa(int(session.Status.Attempt))},
	}
	if names := slices.Concat(secretVariables(runtime.Env), state.modelKeys); len(names) > 0 {
		env = append(env, corev1.EnvVar{Name: envSecretNames, Value: strings.Join(names, ",")})
	}
	if ref := session.Spec.CompositionRef; ref != nil {
		env = append(env, corev1.EnvVar{Name: "AXIOM_COMPOSITION_ID", Value: session.Namespace + "/" + ref.Name})
	}
	for _, variable := range runtime.Env {
		set := corev1.EnvVar{Name: variable.Name, Value: variable.Value}
		if ref := variable.SecretKeyRef; ref != nil {
			set = corev1.EnvVar{Name: variable.Name, ValueFrom: secretKey(ref.Name, ref.Key)}
		}
		env = append(env, set)
	}
	return env
}

// secretVariables tells the runner whose values it must not pass on.
func secretVariables(env []api.EnvVar) []string {
	var names []string
	for _, variable := range env {
		if variable.SecretKeyRef != nil {
			names = append(names, variable.Name)
		}
	}
	return names
}

// modelSecret names the Secret with the model's credentials, nil when there is none.
func modelSecret(state sessionState) *api.LocalRef {
	if ref := state.session.Spec.ModelSecretRef; ref != nil {
		return ref
	}
	return state.template.ModelSecretRef
}

func modelEnvironment(state sessionState) []corev1.EnvFromSource {
	ref := modelSecret(state)
	if ref == nil {
		return nil
	}
	return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}}}}
}

func secretKey(name, key string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}
}

// trustVolume shows the gateway's certificates without the token beside them.
func trustVolume(secret string) corev1.Volume {
	return corev1.Volume{Name: volumeTrust, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, Items: []corev1.KeyToPath{{Key: secretKeyCA, Path: secretKeyCA}},
	}}}
}

func mountPlaybook(spec *corev1.PodSpec, ref *api.KeyRef) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volumePlaybook, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name},
			Items:                []corev1.KeyToPath{{Key: ref.Key, Path: ref.Key}},
		},
	}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: volumePlaybook, MountPath: playbookPath, ReadOnly: true})
}

func networkPolicyFor(state sessionState, options SessionOptions) *networkingv1.NetworkPolicy {
	session := state.session
	meta := agentMeta(session)
	meta.Name = session.Name
	return closedPolicy(meta, map[string]string{api.LabelSession: session.Name}, options.Gateway, slices.Concat(session.Spec.Egress, state.template.Egress))
}

// mergeRuntime fills what the first leaves unset from the second.
func mergeRuntime(first, second api.RuntimeSpec) api.RuntimeSpec {
	merged := first
	if merged.Image == "" {
		merged.Image = second.Image
	}
	if len(merged.Command) == 0 {
		merged.Command, merged.Args = second.Command, mergeList(merged.Args, second.Args)
	}
	merged.Env = mergeList(merged.Env, second.Env)
	merged.ImagePullSecrets = mergeList(merged.ImagePullSecrets, second.ImagePullSecrets)
	merged.Tolerations = mergeList(merged.Tolerations, second.Tolerations)
	if merged.Resources == nil {
		merged.Resources = second.Resources
	}
	if len(merged.NodeSelector) == 0 {
		merged.NodeSelector = second.NodeSelector
	}
	if merged.RuntimeClassName == "" {
		merged.RuntimeClassName = second.RuntimeClassName
	}
	if merged.PlaybookRef == nil && len(first.Command) == 0 {
		merged.PlaybookRef = second.PlaybookRef
	}
	return merged
}

func mergeList[T any](first, second []T) []T {
	if len(first) == 0 {
		return second
	}
	return first
}

// credentialsOf lists the Secrets of users that the pod takes its environment
// from; the session's own token is not one of them.
func credentialsOf(pod *corev1.Pod) []string {
	var names []string
	for _, container := range pod.Spec.Containers {
		for _, variable := range container.Env {
			if source := variable.ValueFrom; source != nil && source.SecretKeyRef != nil && variable.Name != envToken {
				names = append(names, source.SecretKeyRef.Name)
			}
		}
		for _, source := range container.EnvFrom {
			names = append(names, source.SecretRef.Name)
		}
	}
	return names
}
