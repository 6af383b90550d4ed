package controllers

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	// toolsPath is where the operator's static programs are in a pod.
	toolsPath = "/axiom"
	workPath  = "/work"

	volumeTools = "axiom"
	volumeWork  = "work"
	volumeTmp   = "tmp"

	// nonRootUser is the user of every container that the operator makes.
	nonRootUser = 65532

	dnsPort = 53
)

// restrictedPod is the pod-level half of the restricted Pod Security Standard.
func restrictedPod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(nonRootUser)),
		RunAsGroup:     new(int64(nonRootUser)),
		FSGroup:        new(int64(nonRootUser)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// restrictedContainer is the container-level half, with a read-only root.
func restrictedContainer() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// installContainer copies the operator's programs to where the main container
// finds them.
func installContainer(image string, policy corev1.PullPolicy) corev1.Container {
	small := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	return corev1.Container{
		Name:            "install",
		Image:           image,
		ImagePullPolicy: policy,
		Command:         []string{"/usr/local/bin/axiom-runner", "install", "--to", toolsPath},
		Resources:       corev1.ResourceRequirements{Requests: small, Limits: corev1.ResourceList{corev1.ResourceMemory: small[corev1.ResourceMemory], corev1.ResourceCPU: resource.MustParse("500m")}},
		SecurityContext: restrictedContainer(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeTools, MountPath: toolsPath}},
	}
}

// scratchVolumes are what a pod may write to.
func scratchVolumes() []corev1.Volume {
	return []corev1.Volume{
		emptyDir(volumeTools, "256Mi"),
		emptyDir(volumeWork, "1Gi"),
		emptyDir(volumeTmp, "256Mi"),
	}
}

func scratchMounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: volumeTools, MountPath: toolsPath, ReadOnly: true},
		{Name: volumeWork, MountPath: workPath},
		{Name: volumeTmp, MountPath: "/tmp"},
	}
}

func emptyDir(name, limit string) corev1.Volume {
	size := resource.MustParse(limit)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}}
}

// defaultResources fill what a user left unset. A default gives way to what the
// user set on the other side: no request is above its limit.
func defaultResources(set *corev1.ResourceRequirements) corev1.ResourceRequirements {
	filled := corev1.ResourceRequirements{}
	if set != nil {
		filled = *set.DeepCopy()
	}
	requests, limits := listOf(filled.Requests), listOf(filled.Limits)
	for _, d := range []struct {
		name           corev1.ResourceName
		request, limit string
	}{
		{corev1.ResourceCPU, "100m", "1"}, {corev1.ResourceMemory, "256Mi", "1Gi"},
	} {
		request, hasRequest := requests[d.name]
		limit, hasLimit := limits[d.name]
		if !hasRequest {
			request = resource.MustParse(d.request)
		}
		if !hasLimit {
			limit = resource.MustParse(d.limit)
		}
		if !hasRequest && request.Cmp(limit) > 0 {
			request = limit
		}
		if !hasLimit && limit.Cmp(request) < 0 {
			limit = request
		}
		requests[d.name], limits[d.name] = request, limit
	}
	filled.Requests, filled.Limits = requests, limits
	return filled
}

func listOf(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return corev1.ResourceList{}
	}
	return list
}

// closedPolicy is a network policy that lets nothing in, and out only to the
// gateway, to cluster DNS and to what the egress rules name.
func closedPolicy(meta metav1.ObjectMeta, pods map[string]string, gateway GatewayOptions, egress []api.EgressRule) *networkingv1.NetworkPolicy {
	rules := []networkingv1.NetworkPolicyEgressRule{gatewayRule(gateway), dnsRule()}
	for _, rule := range egress {
		rules = append(rules, egressRule(rule))
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: pods},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      rules,
		},
	}
}

func gatewayRule(gateway GatewayOptions) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, gateway.Port)},
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: namespaceNamed(gateway.Namespace),
			PodSelector:       &metav1.LabelSelector{MatchLabels: gateway.PodLabels},
		}},
	}
}

func dnsRule() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolUDP, dnsPort), port(corev1.ProtocolTCP, dnsPort)},
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: namespaceNamed("kube-system"),
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
		}},
	}
}

func egressRule(rule api.EgressRule) networkingv1.NetworkPolicyEgressRule {
	peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: rule.NamespaceSelector, PodSelector: rule.PodSelector}
	if rule.CIDR != "" {
		peer = networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: rule.CIDR}}
	}
	return networkingv1.NetworkPolicyEgressRule{
		Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, rule.Port)},
		To:    []networkingv1.NetworkPolicyPeer{peer},
	}
}

func namespaceNamed(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	value := intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &value}
}
