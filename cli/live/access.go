package live

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"

	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // whatever way of logging in a kubeconfig names
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

// access is what the flags say about the cluster and who asks.
type access struct {
	loading   clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// restrict stands between the connection and the cluster; nil: nothing does.
	restrict transport.WrapperFunc
}

// addFlags declares those of kubectl's flags that choose a cluster, a namespace
// and a user.
func (a *access) addFlags(flags *pflag.FlagSet) {
	a.loading = *clientcmd.NewDefaultClientConfigLoadingRules()
	a.loading.WarnIfAllMissing = false // that is an error of its own
	flags.StringVar(&a.loading.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "`FILE` with the kubeconfig")
	flags.SortFlags = false
	clientcmd.BindOverrideFlags(&a.overrides, flags, clientcmd.ConfigOverrideFlags{
		CurrentContext: clientcmd.FlagInfo{LongName: clientcmd.FlagContext, Description: "context of the kubeconfig to use"},
		ContextOverrideFlags: clientcmd.ContextOverrideFlags{
			ClusterName:  clientcmd.FlagInfo{LongName: clientcmd.FlagClusterName, Description: "cluster of the kubeconfig to use"},
			AuthInfoName: clientcmd.FlagInfo{LongName: clientcmd.FlagAuthInfoName, Description: "user of the kubeconfig to use"},
			Namespace:    clientcmd.FlagInfo{LongName: clientcmd.FlagNamespace, ShortName: "n", Description: "namespace to work in"},
		},
		AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			Impersonate:       clientcmd.FlagInfo{LongName: clientcmd.FlagImpersonate, Description: "user to act as"},
			ImpersonateGroups: clientcmd.FlagInfo{LongName: clientcmd.FlagImpersonateGroup, Description: "group to act as a member of; may be repeated"},
			ImpersonateUID:    clientcmd.FlagInfo{LongName: clientcmd.FlagImpersonateUID, Description: "UID to act as"},
		},
		Timeout: clientcmd.FlagInfo{LongName: clientcmd.FlagTimeout, Default: "0", Description: "how long a single request may take, such as 30s"},
	})
}

// A cluster is a connection with the rights of one user.
type cluster struct {
	client.WithWatch
	namespace string
	// served are the resources of the API that the cluster serves, subresources
	// included.
	served func() (*metav1.APIResourceList, error)
}

// connect makes the connection. Warnings of the API server go to stderr.
func (a *access) connect(version string, stderr io.Writer) (*cluster, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&a.loading, &a.overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster to speak with: name a kubeconfig with KUBECONFIG or --kubeconfig")
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read namespace of kubeconfig: %w", err)
	}
	config.UserAgent = "axiom/" + version
	config.QPS = -1 // a command has few requests, and somebody who waits for them
	if a.restrict != nil {
		config.Wrap(a.restrict)
	}
	config.WarningHandler = rest.NewWarningWriter(stderr, rest.WarningWriterOptions{Deduplicate: true})
	scheme := newScheme()
	reach, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: newMapper(scheme)})
	if err != nil {
		return nil, fmt.Errorf("connect to cluster: %w", err)
	}
	looks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster: %w", err)
	}
	served := func() (*metav1.APIResourceList, error) {
		return looks.ServerResourcesForGroupVersion(api.GroupVersion.String())
	}
	return &cluster{WithWatch: reach, namespace: namespace, served: served}, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, admissionv1.AddToScheme,
		coordinationv1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, storagev1.AddToScheme, api.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // a type is declared twice
		}
	}
	return scheme
}

// clusterKinds are those kinds the commands look at that are in no namespace.
var clusterKinds = []string{
	"Namespace", "StorageClass", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "SelfSubjectReview", "SelfSubjectAccessReview",
}

// newMapper knows the resources of the kinds without asking for them.
func newMapper(scheme *runtime.Scheme) apimeta.RESTMapper {
	mapper := apimeta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		scope := apimeta.RESTScopeNamespace
		if slices.Contains(clusterKinds, kind.Kind) {
			scope = apimeta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}

// explain says what a failed request means to somebody who does not know the API.
func explain(err error) error {
	var status apierrors.APIStatus
	var address *url.Error
	switch {
	case errors.As(err, &status) && isUnknownResource(status):
		return fmt.Errorf("the cluster does not serve %s: is Axiom installed there? (%w)", api.GroupVersion, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know who you are: log in again (%w)", err)
	case errors.As(err, &address) && isUnreachable(address):
		return fmt.Errorf("reach cluster: %w", address.Err)
	}
	return err
}

// isUnknownResource tells a kind that is not there from an object that is not.
func isUnknownResource(status apierrors.APIStatus) bool {
	s := status.Status()
	return s.Code == 404 && (s.Details == nil || s.Details.Name == "")
}

// isMissing tells that there is no object of the name.
func isMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && !isUnknownResource(status)
}

func isUnreachable(err *url.Error) bool {
	var failed *net.OpError
	return errors.As(err, &failed)
}

// A refusal is what the API server answers to a write that it does not take.
type refusal struct {
	Code    int32  `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// refusalOf is the refusal that an error of a write is, nil when the write failed
// for another cause.
func refusalOf(err error) *refusal {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || isUnknownResource(status) {
		return nil
	}
	s := status.Status()
	switch s.Code {
	case 400, 403, 404, 409, 413, 422:
		return &refusal{Code: s.Code, Reason: string(s.Reason), Message: reasonIn(s.Message)}
	}
	return nil
}

// preamble is what the API server and its webhooks put in front of a reason: which
// object it is about, and who refused it.
var preamble = regexp.MustCompile(`^(admission webhook "[^"]*" denied the request: )?` +
	`(Operation cannot be fulfilled on \S+ "[^"]*": |\S+ "[^"]*" is (invalid|forbidden): )?`)

// reasonIn is a message without that.
func reasonIn(message string) string {
	return message[len(preamble.FindString(message)):]
}
