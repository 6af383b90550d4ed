package gateway

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/continuity"
	"github.com/apitomy/axiom-operator/internal/template"
)

// reservedPrefix begins the variables that the operator sets for its own programs.
const reservedPrefix = "AXIOM_"

var imageDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// promptAgent is the agent in the live pod of a session of role Prompt.
type promptAgent struct {
	// digest of its policy.
	digest string
	// continuity of its template.
	continuity api.Continuity
}

// agent finds out what the agent in the session's live pod is.
func (s *Server) agent(ctx context.Context, session *api.AgentSession) (promptAgent, error) {
	spec, err := s.templateOf(ctx, session)
	if err != nil {
		return promptAgent{}, err
	}
	pod := &corev1.Pod{}
	name := fmt.Sprintf("%s-%d", session.Name, session.Status.Attempt)
	err = s.live.Get(ctx, types.NamespacedName{Namespace: session.Namespace, Name: name}, pod)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(pod, session) {
		return promptAgent{}, unauthorized() // the caller's pod is no more
	}
	if err != nil {
		return promptAgent{}, fmt.Errorf("read agent pod: %w", err)
	}
	container := pod.Spec.Containers[0]
	image := imageOf(pod, container)
	if image == "" {
		return promptAgent{}, unavailable("The agent's image is not known yet; try again in a moment")
	}
	digest, err := continuity.Policy{
		Role: session.Spec.Role, ImageDigest: image, Command: container.Command, Model: modelOf(container),
		Instructions: spec.SystemPrompt, Continuity: spec.Continuity,
	}.Digest()
	return promptAgent{digest: digest, continuity: spec.Continuity}, err
}

// templateOf is the template of a session, as an agent of it sees it.
func (s *Server) templateOf(ctx context.Context, session *api.AgentSession) (api.SessionTemplateSpec, error) {
	name := session.Spec.TemplateRef.Name
	spec, err := s.template(ctx, session.Namespace, name)
	if apierrors.IsNotFound(err) {
		return spec, notFound("Session template %s not found", name)
	}
	if err != nil {
		return spec, fmt.Errorf("read session template: %w", err)
	}
	if session.Spec.RunRef != nil {
		spec = template.InRun(spec)
	}
	return spec, nil
}

// imageOf is the digest of the container's image: the one that it was asked for
// by, else the one that the node runs; empty while the node has not said.
func imageOf(pod *corev1.Pod, container corev1.Container) string {
	if pinned := imageDigest.FindString(container.Image); pinned != "" {
		return pinned
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container.Name {
			return imageDigest.FindString(status.ImageID)
		}
	}
	return ""
}

// modelOf is the environment by which agents choose their model. Values of Secrets
// are not looked at: a credential may be renewed.
func modelOf(container corev1.Container) map[string]string {
	model := map[string]string{}
	for _, variable := range container.Env {
		if strings.HasPrefix(variable.Name, reservedPrefix) || variable.Name == "HOME" {
			continue
		}
		model[variable.Name] = "value:" + variable.Value
		if source := variable.ValueFrom; source != nil && source.SecretKeyRef != nil {
			model[variable.Name] = "secret:" + source.SecretKeyRef.Name + "/" + source.SecretKeyRef.Key
		}
	}
	for i, source := range container.EnvFrom {
		if source.SecretRef != nil {
			model[fmt.Sprintf("[%d]", i)] = "secret:" + source.SecretRef.Name // no variable has such a name
		}
	}
	return model
}
