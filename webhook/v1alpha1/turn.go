package v1alpha1

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// +kubebuilder:webhook:path=/mutate/turns,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,reinvocationPolicy=Never,timeoutSeconds=10,groups=axiom.apitomy.io,resources=turns,verbs=create;update,versions=v1alpha1,name=turn.axiom.apitomy.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate/turns,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,groups=axiom.apitomy.io,resources=turns,verbs=create;update,versions=v1alpha1,name=turn.axiom.apitomy.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate/turns/status,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=20,groups=axiom.apitomy.io,resources=turns/status,verbs=update,versions=v1alpha1,name=turn-status.axiom.apitomy.io,admissionReviewVersions=v1

// turnDoors are the doors of Turn.
type turnDoors struct {
	operator string
	live     client.Reader
	access   access
	contents content.Store
}

// annotate stamps who asked for what. Nobody but the operator, which acts on
// behalf of others, writes these annotations.
func (t turnDoors) annotate(_ context.Context, req request[api.Turn]) (map[string]string, error) {
	stored, was := map[string]string{}, api.TurnSpec{}
	if !req.isCreate() {
		stored, was = req.before.Annotations, req.before.Spec
	}
	is := req.after.Spec
	stamps := []struct {
		key   string
		fresh bool
	}{
		{api.AnnotationRequestedBy, req.isCreate()},
		{api.AnnotationResolvedBy, was.Resolution == "" && is.Resolution != ""},
		{api.AnnotationInterruptedBy, !was.Interrupt && is.Interrupt},
		{api.AnnotationUndoneBy, !was.Undo && is.Undo},
	}
	annotations := copyAnnotations(req.after.Annotations)
	for _, stamp := range stamps {
		value := stored[stamp.key]
		if stamp.fresh {
			value = req.UserInfo.Username
		}
		if t.isOperator(req) {
			value = cmp.Or(annotations[stamp.key], value)
		}
		setOrRemove(annotations, stamp.key, value)
	}
	return annotations, nil
}

func (t turnDoors) validate(ctx context.Context, req request[api.Turn]) ([]string, error) {
	if req.isCreate() {
		return nil, t.validateCreate(ctx, req)
	}
	was, is := req.before.Spec, req.after.Spec
	var steps []func(context.Context, request[api.Turn]) error
	if was.Resolution == "" && is.Resolution != "" {
		steps = append(steps, t.validateResolution)
	}
	if !was.Interrupt && is.Interrupt {
		steps = append(steps, t.validateInterrupt)
	}
	if !was.Undo && is.Undo {
		steps = append(steps, t.validateUndo)
	}
	for _, step := range steps {
		if err := step(ctx, req); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (t turnDoors) validateCreate(ctx context.Context, req request[api.Turn]) error {
	spec := req.after.Spec
	if spec.RetryOf != "" {
		if err := t.operatorOnly(req, "spec.retryOf"); err != nil {
			return err
		}
	}
	if spec.Prompt != nil {
		// The operator alone makes these, beside a session that it has just made.
		return t.operatorOnly(req, "spec.prompt")
	}
	if err := req.invalid(validateNewTurn(req.after)); err != nil {
		return err
	}
	if spec.CompositionRef != nil {
		return t.validateComposition(ctx, req, spec.CompositionRef.Name)
	}
	if spec.SessionRef != nil {
		return t.validateSession(ctx, req, spec.SessionRef.Name)
	}
	return nil // the schema wants one of them
}

// validateComposition looks at the composition that a turn shall work on. The
// operator meets its own rules when it claims: it is asked for the target only.
func (t turnDoors) validateComposition(ctx context.Context, req request[api.Turn], name string) error {
	composition := &api.Composition{}
	if err := t.target(ctx, req, "compositions", name, composition); err != nil || t.isOperator(req) {
		return err
	}
	if lendsPower(composition) {
		if err := t.mayUpdate(ctx, req, name); err != nil {
			return err
		}
	}
	if composition.Status.TurnState == api.TurnStateWorking && composition.Status.CurrentTurn != "" {
		return req.conflict("An AI turn is already running: %s", composition.Status.CurrentTurn)
	}
	return t.validateBoundSession(ctx, req, composition)
}

// validateBoundSession refuses a composition whose session was stopped for good.
func (t turnDoors) validateBoundSession(ctx context.Context, req request[api.Turn], composition *api.Composition) error {
	if composition.Status.Session == "" {
		return nil
	}
	session := &api.AgentSession{}
	err := t.live.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: composition.Status.Session}, session)
	if err != nil && !apierrors.IsNotFound(err) {
		return fault("read session %s: %w", composition.Status.Session, err)
	}
	return refuseStopped(req, session)
}

// validateSession looks at the session that a turn shall ask.
func (t turnDoors) validateSession(ctx context.Context, req request[api.Turn], name string) error {
	session := &api.AgentSession{}
	if err := t.target(ctx, req, "agentsessions", name, session); err != nil || t.isOperator(req) {
		return err
	}
	if session.Spec.CompositionRef != nil || session.Spec.RunRef != nil {
		path := field.NewPath("spec", "sessionRef", "name")
		return req.invalid(field.ErrorList{field.Invalid(path, name, "must name a free-standing session, not that of a composition or run")})
	}
	if err := t.validateUnclaimed(ctx, req, session); err != nil {
		return err
	}
	return refuseStopped(req, session)
}

// validateUnclaimed refuses a session that a turn works in. A claim of one that
// is over lingers on only until the operator sees it.
func (t turnDoors) validateUnclaimed(ctx context.Context, req request[api.Turn], session *api.AgentSession) error {
	name := session.Status.CurrentTurn
	if name == "" {
		return nil
	}
	claimant := &api.Turn{}
	err := t.live.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: name}, claimant)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fault("read turn %s: %w", name, err)
	case turns.IsOver(claimant.Status.State):
		return nil
	}
	return req.conflict("An AI turn is already running: %s", name)
}

func refuseStopped(req request[api.Turn], session *api.AgentSession) error {
	if session.Spec.Stopped {
		return req.conflict("agent session %s is stopped", session.Name)
	}
	return nil
}

// target reads what a turn is for.
func (t turnDoors) target(ctx context.Context, req request[api.Turn], resource, name string, into client.Object) error {
	err := t.live.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return req.missing(resource, name)
	}
	if err != nil {
		return fault("read %s %s: %w", resource, name, err)
	}
	return nil
}

func (t turnDoors) validateResolution(ctx context.Context, req request[api.Turn]) error {
	if req.after.Spec.Resolution == api.ResolutionAccepted {
		if err := t.mayUpdateTarget(ctx, req); err != nil {
			return err
		}
	}
	if state := req.before.Status.State; state != api.TurnAwaitingResolution {
		return req.conflict("spec.resolution: the turn is %s, not %s", shown(state), api.TurnAwaitingResolution)
	}
	return nil
}

func (t turnDoors) validateInterrupt(_ context.Context, req request[api.Turn]) error {
	if state := req.before.Status.State; turns.IsOver(state) {
		return req.conflict("spec.interrupt: the turn is over: it is %s", state)
	}
	return nil
}

func (t turnDoors) validateUndo(ctx context.Context, req request[api.Turn]) error {
	if err := t.mayUpdateTarget(ctx, req); err != nil {
		return err
	}
	if !turns.IsOver(req.before.Status.State) {
		return req.conflict("Wait for the AI turn to finish before undoing")
	}
	if !turns.ChangedSomething(req.before) {
		return req.nothing("turn %s changed nothing", req.name)
	}
	return nil
}

// mayUpdateTarget refuses callers who could not make the turn's changes
// themselves: a turn lends no power.
func (t turnDoors) mayUpdateTarget(ctx context.Context, req request[api.Turn]) error {
	if req.before.Spec.CompositionRef == nil || t.isOperator(req) {
		return nil
	}
	return t.mayUpdate(ctx, req, req.before.Spec.CompositionRef.Name)
}

func (t turnDoors) mayUpdate(ctx context.Context, req request[api.Turn], composition string) error {
	allowed, err := t.access.mayUpdate(ctx, req.UserInfo, req.Namespace, composition)
	if err != nil {
		return err
	}
	if !allowed {
		return req.forbidden("user %q must be allowed to update composition %s", req.UserInfo.Username, composition)
	}
	return nil
}

func (t turnDoors) operatorOnly(req request[api.Turn], member string) error {
	if t.isOperator(req) {
		return nil
	}
	return req.forbidden("%s: only the operator may set it", member)
}

func (t turnDoors) isOperator(req request[api.Turn]) bool {
	return req.UserInfo.Username == t.operator
}
