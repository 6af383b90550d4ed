package path

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/testing/kubelet"
	"github.com/apitomy/axiom-operator/internal/testing/testenv"
)

const (
	compositionName = "cve-triage"
	turnName        = "ask-security"
	runName         = "cve-2026-1234"
	patience        = 90 * time.Second
	// crashTimeout bounds the exploration of every write.
	crashTimeout = 30 * time.Minute
)

// story is one walk of the main path in a namespace.
type story struct {
	namespace string
	node      *kubelet.Kubelet
	// playbook changes the sample's playbook; may be nil.
	playbook func(string) string
	// whileWorking acts while the agent works; may be nil.
	whileWorking func(ctx context.Context, s story) error
}

// walk plays everybody but the operator: the people, and the node.
func (s story) walk(ctx context.Context) ([]client.Object, error) {
	nodeCtx, stop := context.WithCancel(ctx)
	s.node = nodeOf(s.namespace)
	ended := make(chan error, 1)
	go func() { ended <- s.node.Run(nodeCtx) }()
	err := s.acts(ctx)
	var objects []client.Object
	if err == nil {
		objects, err = ending(ctx, s.namespace)
	}
	stop()
	return objects, errors.Join(err, <-ended)
}

func nodeOf(namespace string) *kubelet.Kubelet {
	return &kubelet.Kubelet{Client: admin, Namespace: namespace, Programs: programs, Log: GinkgoWriter}
}

func (s story) acts(ctx context.Context) error {
	for _, act := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"compose", s.compose}, {"ask the agent", s.ask}, {"accept", s.accept}, {"run", s.run}, {"answer", s.answer}, {"come to rest", s.rest},
	} {
		if err := act.do(ctx); err != nil {
			return fmt.Errorf("%s: %w%s", act.name, err, s.standing())
		}
	}
	return nil
}

func (s story) compose(ctx context.Context) error {
	change := s.playbook
	if change == nil {
		change = func(text string) string { return text }
	}
	for _, name := range []string{"playbook.yaml", "composition.yaml"} {
		if err := s.create(ctx, name, change); err != nil {
			return err
		}
	}
	comp := &api.Composition{}
	return s.until(ctx, comp, compositionName, func() bool {
		return apimeta.IsStatusConditionTrue(comp.Status.Conditions, api.ConditionValid) && comp.Status.Snapshot != ""
	})
}

func (s story) ask(ctx context.Context) error {
	if err := s.create(ctx, "turn.yaml", nil); err != nil {
		return err
	}
	if s.whileWorking != nil {
		if err := s.whileWorking(ctx, s); err != nil {
			return err
		}
	}
	turn := &api.Turn{}
	return s.until(ctx, turn, turnName, func() bool { return turn.Status.State == api.TurnAwaitingResolution })
}

func (s story) accept(ctx context.Context) error {
	turn := &api.Turn{ObjectMeta: s.meta(turnName)}
	if err := alice.Patch(ctx, turn, merge(`{"spec":{"resolution":"Accepted"}}`)); err != nil {
		return err
	}
	if err := s.until(ctx, turn, turnName, func() bool { return turn.Status.State == api.TurnApplied }); err != nil {
		return err
	}
	comp := &api.Composition{}
	return s.until(ctx, comp, compositionName, func() bool {
		return comp.Status.ObservedGeneration == comp.Generation && comp.Status.WorkflowRevision == turn.Status.ResultRevision &&
			comp.Status.PendingTurn == ""
	})
}

func (s story) run(ctx context.Context) error {
	if err := s.create(ctx, "run.yaml", nil); err != nil {
		return err
	}
	run := &api.WorkflowRun{}
	return s.until(ctx, run, runName, func() bool { return run.Status.Phase == api.RunWaiting })
}

func (s story) answer(ctx context.Context) error {
	tasks := &api.HumanTaskList{}
	err := s.poll(ctx, func(ctx context.Context) (bool, error) {
		err := admin.List(ctx, tasks, client.InNamespace(s.namespace))
		return len(tasks.Items) == 1 && tasks.Items[0].Status.Phase == api.TaskAwaitingInput, err
	})
	if err != nil {
		return fmt.Errorf("wait for the task: %w", err)
	}
	if err := alice.Status().Patch(ctx, &tasks.Items[0], merge(`{"status":{"answer":{"approved":"true","note":"done"}}}`)); err != nil {
		return err
	}
	run := &api.WorkflowRun{}
	return s.until(ctx, run, runName, func() bool { return run.Status.Phase == api.RunCompleted })
}

// rest waits until what belongs to the run is gone and the agent is idle.
func (s story) rest(ctx context.Context) error {
	return s.poll(ctx, func(ctx context.Context) (bool, error) {
		pods, secrets, tasks := &corev1.PodList{}, &corev1.SecretList{}, &api.HumanTaskList{}
		session, comp := &api.AgentSession{}, &api.Composition{}
		err := errors.Join(
			admin.List(ctx, pods, client.InNamespace(s.namespace)),
			admin.List(ctx, secrets, client.InNamespace(s.namespace)),
			admin.List(ctx, tasks, client.InNamespace(s.namespace)),
			admin.Get(ctx, s.key(compositionName+"-agent"), session),
			admin.Get(ctx, s.key(compositionName), comp),
		)
		// One pod and one Secret stay: the idle agent's.
		return err == nil && len(pods.Items) == 1 && len(secrets.Items) == 1 &&
			session.Status.Phase == api.SessionReady && session.Status.CurrentTurn == "" &&
			tasks.Items[0].Status.Phase == api.TaskCompleted &&
			comp.Status.Items[0].LastTurn == turnName &&
			apimeta.IsStatusConditionTrue(comp.Status.Conditions, api.ConditionAgentReady), err
	})
}

// ending is every object of the path as it is in the end.
func ending(ctx context.Context, namespace string) ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&api.CompositionList{}, &api.TurnList{}, &api.AgentSessionList{}, &api.WorkflowRunList{}, &api.HumanTaskList{},
		&appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.SecretList{}, &networkingv1.NetworkPolicyList{},
	} {
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			object, isObject := item.(client.Object)
			if !isObject {
				return fmt.Errorf("%T is no object", item)
			}
			objects = append(objects, object)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (s story) create(ctx context.Context, sample string, change func(string) string) error {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "cve-triage", sample))
	if err != nil {
		return err
	}
	text := string(data)
	if change != nil {
		text = change(text)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return err
	}
	wanted := newUnstructured(object)
	wanted.SetNamespace(s.namespace)
	return alice.Create(ctx, wanted)
}

func (s story) until(ctx context.Context, object client.Object, name string, holds func() bool) error {
	err := s.poll(ctx, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, s.key(name), object)
		return err == nil && holds(), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for %T %s: %w", object, name, err)
	}
	return nil
}

func (s story) poll(ctx context.Context, holds wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, holds)
}

func (s story) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

// standing tells how far the story came, for a test's output.
func (s story) standing() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	turn, session, run := &api.Turn{}, &api.AgentSession{}, &api.WorkflowRun{}
	_ = admin.Get(ctx, s.key(turnName), turn)
	_ = admin.Get(ctx, s.key(compositionName+"-agent"), session)
	_ = admin.Get(ctx, s.key(runName), run)
	var conditions []string
	for _, c := range run.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s/%s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return fmt.Sprintf("\n  turn %s %q\n  session %s %q prompt %+v\n  run %s %s", turn.Status.State, turn.Status.Detail,
		session.Status.Phase, session.Status.LastFailure, session.Status.Prompt, run.Status.Phase, strings.Join(conditions, "; "))
}
