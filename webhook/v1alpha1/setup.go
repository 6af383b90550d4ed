package v1alpha1

import (
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/expression"
	"github.com/apitomy/axiom-operator/internal/secretscan"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// +kubebuilder:rbac:groups=axiom.apitomy.io,resources=agentsessions;compositions;turns;workflowruns,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=localsubjectaccessreviews,verbs=create

// Options of the doors.
type Options struct {
	// Operator is the user that the operator's own writes come from, such as
	// `system:serviceaccount:axiom-system:axiom-controller-manager`. Required.
	Operator string
	// Clock stamps answers and tells whether a task has expired; the machine's
	// when nil.
	Clock clock.PassiveClock
	// Expressions compiles those of a workflow to warn of bad ones; without it
	// nothing is said about expressions.
	Expressions *expression.Cache
	// Scanner keeps secrets out of supervised runs: out of their inputs and of
	// answers to them. Without it none of these is let in.
	Scanner *secretscan.Scanner
}

// Setup registers the doors of all kinds with the manager's webhook server. It
// reads live: what a cache missed must not decide what is stored.
func Setup(mgr ctrl.Manager, opts Options) error {
	if opts.Operator == "" {
		return errors.New("set up webhooks: the operator's user name is not set")
	}
	live, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("set up webhooks: create client: %w", err)
	}
	server := mgr.GetWebhookServer()
	for path, handler := range doors(live, opts) {
		server.Register(path, &admission.Webhook{Handler: handler})
	}
	return nil
}

// doors are the handlers by path.
func doors(live client.Client, opts Options) map[string]admission.Handler {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	drafts := compositionDoors{
		operator: opts.Operator, live: live, verdicts: newVerdicts(checkerOf(opts.Expressions)), expressions: opts.Expressions, clock: opts.Clock,
	}
	messages := turnDoors{
		operator: opts.Operator, live: live,
		access: access{client: live}, contents: content.Store{Client: live},
	}
	tasks := taskDoors{operator: opts.Operator, live: live, scanner: opts.Scanner, clock: opts.Clock}
	sessions := sessionDoor{operator: opts.Operator, access: access{client: live}}
	return map[string]admission.Handler{
		"/mutate/compositions":        annotating[api.Composition](drafts.annotate),
		"/validate/compositions":      validating[api.Composition](drafts.validate),
		"/mutate/turns":               annotating[api.Turn](messages.annotate),
		"/validate/turns":             validating[api.Turn](messages.validate),
		"/validate/turns/status":      validating[api.Turn](messages.validateStatus),
		"/validate/humantasks":        validating[api.HumanTask](tasks.validate),
		"/mutate/humantasks/status":   admission.HandlerFunc(tasks.stamp),
		"/validate/humantasks/status": admission.HandlerFunc(tasks.validateStatus),
		"/mutate/workflowruns":        admission.HandlerFunc(completeRun),
		"/validate/workflowruns":      validating[api.WorkflowRun](runDoor{scanner: opts.Scanner}.validate),
		"/validate/agentsessions":     validating[api.AgentSession](sessions.validate),
		"/validate/streamevents":      validating[api.StreamEvent](validateEvent),
		"/validate/actiontypes":       validating[api.ActionType](actionTypeDoor{checker: checkerOf(opts.Expressions)}.validate),
		"/validate/tools":             validating[api.Tool](validateTool),
		"/validate/sessiontemplates":  validating[api.SessionTemplate](validateTemplate),
		"/validate/status":            operatorOnly(opts.Operator),
	}
}

// checkerOf keeps a nil cache from becoming an interface that is not nil.
func checkerOf(cache *expression.Cache) workflow.ExpressionChecker {
	if cache == nil {
		return nil
	}
	return cache
}
