package live

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
)

// resources of the API, and those of them that have a status of their own.
var (
	resources = []string{
		"actiontypes", "agentsessions", "compositions", "humantasks", "sessiontemplates", "streamevents", "tools", "turns", "workflowruns",
	}
	statuses = []string{
		"actiontypes/status", "agentsessions/status", "compositions/status", "humantasks/status", "streamevents/status", "tools/status",
		"turns/status", "workflowruns/status",
	}
)

const (
	// managerLabel is on all that belongs to the operator's pods.
	managerLabel, managerValue = "control-plane", "controller-manager"
	// leaseName is that of the lease by which one replica leads.
	leaseName = "axiom-operator"
	// webhookSuffix ends the names of the operator's webhooks.
	webhookSuffix = ".axiom.apitomy.io"

	installAgain = "install the operator's manifests again"
)

// checkAPI holds what the cluster serves against what this program speaks.
func (d *doctor) checkAPI(context.Context) (finding, error) {
	list, err := d.served()
	if apierrors.IsNotFound(err) {
		return broken("install the operator's CustomResourceDefinitions", "the cluster does not serve %s", api.GroupVersion), nil
	}
	if err != nil {
		return finding{}, fmt.Errorf("look at API: %w", err)
	}
	missing := slices.DeleteFunc(slices.Concat(resources, statuses), func(name string) bool {
		for _, served := range list.APIResources {
			if served.Name == name {
				return true
			}
		}
		return false
	})
	if len(missing) > 0 {
		return broken("upgrade the CustomResourceDefinitions", "%s lacks %s", api.GroupVersion, strings.Join(missing, ", ")), nil
	}
	return fine("%s is served with %s", api.GroupVersion, command.Plural(len(resources), "kind")), nil
}

// checkAdmission sends what only the operator's admission would refuse.
func (d *doctor) checkAdmission(ctx context.Context) (finding, error) {
	task := &api.HumanTask{}
	task.Namespace, task.GenerateName = d.namespace, "axiom-doctor-"
	task.Spec.HumanContext.Title = "Is anybody there?"
	task.Spec.ExpiresAfter = "no duration"
	err := d.Create(ctx, task, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return broken(installAgain, "nothing refused an object that is not valid: the webhooks are not in force"), nil
	case apierrors.IsInternalError(err) && errors.As(err, &status):
		return broken("see whether the operator is ready, and whether network policies let the API server reach it", "the webhooks cannot be reached: %s", status.Status().Message), nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook"):
		return fine("an object that is not valid is refused"), nil
	}
	return finding{}, err
}

// checkCertificate looks at whom the API server trusts to be the operator.
func (d *doctor) checkCertificate(ctx context.Context) (finding, error) {
	bundles, err := d.caBundles(ctx)
	if err != nil {
		return finding{}, err
	}
	if len(bundles) == 0 {
		return broken(installAgain, "there are no webhooks of the operator"), nil
	}
	findings := make([]finding, 0, len(bundles))
	for _, bundle := range bundles {
		findings = append(findings, judgeBundle(bundle, d.clock.Now()))
	}
	return worst(findings...), nil
}

// A caBundle is what a webhook of the operator trusts.
type caBundle struct {
	webhook string
	pem     []byte
}

func (d *doctor) caBundles(ctx context.Context) ([]caBundle, error) {
	changing, judging := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{changing, judging} {
		if err := d.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list webhooks: %w", err)
		}
	}
	var bundles []caBundle
	add := func(name string, config admissionv1.WebhookClientConfig) {
		if strings.HasSuffix(name, webhookSuffix) {
			bundles = append(bundles, caBundle{name, config.CABundle})
		}
	}
	for _, configuration := range changing.Items {
		for _, webhook := range configuration.Webhooks {
			add(webhook.Name, webhook.ClientConfig)
		}
	}
	for _, configuration := range judging.Items {
		for _, webhook := range configuration.Webhooks {
			add(webhook.Name, webhook.ClientConfig)
		}
	}
	return bundles, nil
}

// judgeBundle takes the certificate of a bundle that lasts longest.
func judgeBundle(bundle caBundle, now time.Time) finding {
	var last time.Time
	rest := bundle.pem
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	todo := "see the operator's log: it renews the certificate by itself, and writes the bundle into its webhooks"
	switch until := last.UTC().Format(time.RFC3339); {
	case last.IsZero():
		return broken(todo, "webhook %s trusts nobody", bundle.webhook)
	case !now.Before(last):
		return broken(todo, "what webhook %s trusts expired at %s", bundle.webhook, until)
	case last.Sub(now) < expiresSoon:
		return doubted(todo, "what webhook %s trusts expires at %s", bundle.webhook, until)
	default:
		return fine("the webhooks trust a certificate until %s", until)
	}
}

// checkOperator looks at the Deployment of the operator.
func (d *doctor) checkOperator(ctx context.Context) (finding, error) {
	list := &appsv1.DeploymentList{}
	if err := d.List(ctx, list, client.InNamespace(d.home), client.MatchingLabels{managerLabel: managerValue}); err != nil {
		return finding{}, fmt.Errorf("list deployments: %w", err)
	}
	if len(list.Items) == 0 {
		return broken("install the operator, or name its namespace with --operator-namespace", "there is no operator in namespace %s", d.home), nil
	}
	deployment := list.Items[0]
	wanted := int32(1)
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	image := ""
	if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		image = containers[0].Image
	}
	ready := deployment.Status.ReadyReplicas
	todo := fmt.Sprintf("kubectl describe pods -n %s -l %s=%s", d.home, managerLabel, managerValue)
	switch {
	case ready == 0:
		return broken(todo, "no replica of %s is ready", image), nil
	case ready < wanted:
		return doubted(todo, "%d of %d replicas of %s are ready", ready, wanted, image), nil
	}
	return fine("%d of %d replicas of %s are ready", ready, wanted, image), nil
}

// checkLeader looks at whether a replica runs the controllers.
func (d *doctor) checkLeader(ctx context.Context) (finding, error) {
	lease := &coordinationv1.Lease{}
	err := d.Get(ctx, client.ObjectKey{Namespace: d.home, Name: leaseName}, lease)
	todo := fmt.Sprintf("kubectl logs -n %s -l %s=%s", d.home, managerLabel, managerValue)
	if isMissing(err) {
		return doubted(todo, "nobody has led yet: the operator runs without --leader-elect, or not at all"), nil
	}
	if err != nil {
		return finding{}, fmt.Errorf("read lease: %w", err)
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return broken(todo, "nobody leads: no replica runs the controllers"), nil
	}
	patience := 2 * time.Duration(*spec.LeaseDurationSeconds) * time.Second
	if age := d.clock.Since(spec.RenewTime.Time); age > patience {
		return broken(todo, "%s has not renewed its lead for %s", *spec.HolderIdentity, age.Truncate(time.Second)), nil
	}
	return fine("%s leads", *spec.HolderIdentity), nil
}

// checkGateway looks at whether agents and actions find the gateway.
func (d *doctor) checkGateway(ctx context.Context) (finding, error) {
	services := &corev1.ServiceList{}
	if err := d.List(ctx, services, client.InNamespace(d.home)); err != nil {
		return finding{}, fmt.Errorf("list services: %w", err)
	}
	at := slices.IndexFunc(services.Items, func(service corev1.Service) bool {
		return slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Name == "gateway" })
	})
	if at < 0 {
		return broken(installAgain, "no Service in namespace %s has the port gateway: no agent and no action can report", d.home), nil
	}
	name := services.Items[at].Name
	slicesOf := &discoveryv1.EndpointSliceList{}
	if err := d.List(ctx, slicesOf, client.InNamespace(d.home), client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
		return finding{}, fmt.Errorf("list endpoints: %w", err)
	}
	ready := 0
	for _, slice := range slicesOf.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if ready == 0 {
		return broken("see whether the operator is ready, and has the labels that the Service selects", "Service %s/%s leads nowhere", d.home, name), nil
	}
	return fine("Service %s/%s has %s", d.home, name, command.Plural(ready, "endpoint")), nil
}

// checkNetwork looks for the policy that keeps strangers from the gateway.
func (d *doctor) checkNetwork(ctx context.Context) (finding, error) {
	policies := &networkingv1.NetworkPolicyList{}
	if err := d.List(ctx, policies, client.InNamespace(d.home)); err != nil {
		return finding{}, fmt.Errorf("list network policies: %w", err)
	}
	for _, policy := range policies.Items {
		if policy.Spec.PodSelector.MatchLabels[managerLabel] == managerValue {
			return fine("NetworkPolicy %s/%s guards the operator; whether the cluster enforces it cannot be seen", d.home, policy.Name), nil
		}
	}
	return doubted(installAgain, "no NetworkPolicy in namespace %s guards the operator", d.home), nil
}

// A right is what people who work with Axiom do.
type right struct {
	group, verb, resource, subresource string
}

func (r right) String() string {
	name := r.resource
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	return r.verb + " " + name
}

// rights are asked for one by one.
var rights = []right{
	{api.GroupVersion.Group, "list", "compositions", ""},
	{api.GroupVersion.Group, "update", "compositions", ""},
	{api.GroupVersion.Group, "create", "turns", ""},
	{api.GroupVersion.Group, "update", "turns", ""},
	{api.GroupVersion.Group, "create", "workflowruns", ""},
	{api.GroupVersion.Group, "patch", "workflowruns", ""},
	{api.GroupVersion.Group, "list", "humantasks", ""},
	{api.GroupVersion.Group, "patch", "humantasks", "status"},
	{"", "get", "configmaps", ""},
	{"apps", "get", "controllerrevisions", ""},
}

// checkRights asks what the caller may do in the namespace.
func (d *doctor) checkRights(ctx context.Context) (finding, error) {
	var lacking []string
	for _, r := range rights {
		review := &authorizationv1.SelfSubjectAccessReview{}
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: d.namespace, Group: r.group, Verb: r.verb, Resource: r.resource, Subresource: r.subresource,
		}
		if err := d.Create(ctx, review); err != nil {
			return finding{}, fmt.Errorf("ask for rights: %w", err)
		}
		if !review.Status.Allowed {
			lacking = append(lacking, r.String())
		}
	}
	if len(lacking) > 0 {
		return doubted("have somebody bind the role edit, or axiom-editor, to you in the namespace", "in namespace %s you may not %s", d.namespace, strings.Join(lacking, ", ")), nil
	}
	return fine("in namespace %s you may edit, ask, run and answer", d.namespace), nil
}

// checkPodSecurity looks at what pods the namespace lets in. Those of agents and
// actions keep to the strictest level.
func (d *doctor) checkPodSecurity(ctx context.Context) (finding, error) {
	const label = "pod-security.kubernetes.io/enforce"
	namespace := &corev1.Namespace{}
	if err := d.Get(ctx, client.ObjectKey{Name: d.namespace}, namespace); err != nil {
		if isMissing(err) {
			return broken("create it, or name another with -n", "there is no namespace %s", d.namespace), nil
		}
		return finding{}, fmt.Errorf("read namespace: %w", err)
	}
	level := labels.Set(namespace.Labels).Get(label)
	if level != "restricted" {
		return doubted(fmt.Sprintf("kubectl label namespace %s %s=restricted", d.namespace, label), "namespace %s does not ask pods to be restricted", d.namespace), nil
	}
	return fine("namespace %s lets only restricted pods in", d.namespace), nil
}

// checkStorage looks for where the homes of agents of supervised runs come from.
func (d *doctor) checkStorage(ctx context.Context) (finding, error) {
	classes := &storagev1.StorageClassList{}
	if err := d.List(ctx, classes); err != nil {
		return finding{}, fmt.Errorf("list storage classes: %w", err)
	}
	for _, class := range classes.Items {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return fine("homes of agents come from storage class %s", class.Name), nil
		}
	}
	return doubted("make a storage class the default one", "there is no default storage class: prompts of supervised runs would have no home"), nil
}
