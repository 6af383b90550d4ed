package v1alpha1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return scheme
}

// brokenDoors cannot read or ask anything: the API server is away.
func brokenDoors() map[string]admission.Handler {
	away := fake.NewClientBuilder().WithScheme(newScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("connection refused")
		},
	}).Build()
	return doors(away, Options{Operator: "op"})
}

const (
	typeOf   = `"apiVersion":"axiom.apitomy.io/v1alpha1","kind":"%s"`
	workFlow = `,"metadata":{"name":"x"},"spec":{"workflow":{"id":"x"}}}`
)

func manifest(kind, rest string) string {
	return fmt.Sprintf("{"+typeOf, kind) + rest
}

func TestManifestsAndDoorsAgree(t *testing.T) {
	text, err := os.ReadFile("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var served, installed []string
	for path := range brokenDoors() {
		served = append(served, path)
	}
	for part := range strings.SplitSeq(string(text), "---\n") {
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration // both kinds share what is read
		if err := yaml.Unmarshal([]byte(part), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, hook := range configuration.Webhooks {
			installed = append(installed, *hook.ClientConfig.Service.Path)
			if *hook.FailurePolicy != admissionregistrationv1.Fail || *hook.SideEffects != admissionregistrationv1.SideEffectClassNone {
				t.Errorf("%s: failure policy %s, side effects %s", hook.Name, *hook.FailurePolicy, *hook.SideEffects)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(installed)
	if diff := cmp.Diff(installed, served); diff != "" {
		t.Errorf("doors mismatch (-installed +served):\n%s", diff)
	}
}

func TestDoorsFailClosed(t *testing.T) {
	composition := manifest("Composition", workFlow)
	annotated := strings.Replace(composition, `"name":"x"`, `"name":"x","annotations":{"axiom.apitomy.io/turn":"t"}`, 1)
	turn := manifest("Turn", `,"metadata":{"name":"t"},"spec":{"compositionRef":{"name":"c"},"message":"m"}}`)
	ofSession := manifest("Turn", `,"metadata":{"name":"t"},"spec":{"sessionRef":{"name":"s"},"message":"m"}}`)
	waiting := strings.TrimSuffix(turn, "}") + `,"status":{"state":"AwaitingResolution"}}`
	accepted := strings.Replace(turn, `"message"`, `"resolution":"Accepted","message"`, 1)
	based := strings.TrimSuffix(turn, "}") + `,"status":{"state":"Working","baseRevision":"sha256:a","base":{"digest":"sha256:b"}}}`
	checkpoint := manifest("HumanTask", `,"metadata":{"name":"t"},"spec":{"fingerprint":"f","runRef":{"name":"r","uid":"u","activation":"a#1"}}}`)
	consent := strings.TrimSuffix(checkpoint, "}") + `,"status":{"answer":{"ok":true},"answeredBy":{"username":"ann"},"answeredAt":"2026-05-04T10:01:00Z"}}`
	cases := map[string]struct {
		path     string
		req      admission.Request
		wantCode int
		want     string
	}{
		"the turn of an annotation cannot be read": {"/validate/compositions", write("Composition", "ann", "", annotated), 500, "read turn t: connection refused"},
		"the composition cannot be read":           {"/validate/turns", write("Turn", "ann", "", turn), 500, "read compositions c"},
		"the session cannot be read":               {"/validate/turns", write("Turn", "ann", "", ofSession), 500, "read agentsessions s"},
		"access cannot be reviewed":                {"/validate/turns", write("Turn", "ann", waiting, accepted), 500, "review access to compositions c"},
		"stored work cannot be read":               {"/validate/turns/status", write("Turn", "op", turn, based), 500, "read the work of a turn"},
		"a composition that is none":               {"/validate/compositions", write("Composition", "ann", "", manifest("Composition", `,"spec":{"goal":7}}`)), 400, "decode Composition"},
		"the run that asks cannot be read":         {"/validate/humantasks/status", write("HumanTask", "ann", checkpoint, consent), 500, "read run r: connection refused"},
		"nothing":                                  {"/validate/turns", write("Turn", "ann", "", ""), 400, "decode Turn"},
		"a stored turn that is none":               {"/validate/turns", write("Turn", "ann", `{`, turn), 400, "decode stored Turn"},
		"a task's status that is none":             {"/validate/humantasks/status", write("HumanTask", "ann", manifest("HumanTask", "}"), "{"), 400, "decode HumanTask"},
		"a stored task that is none":               {"/validate/humantasks/status", write("HumanTask", "ann", "{", manifest("HumanTask", "}")), 400, "decode stored HumanTask"},
	}
	handlers := brokenDoors()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := handlers[tc.path].Handle(t.Context(), tc.req)
			if response.Allowed || int(response.Result.Code) != tc.wantCode || !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("got allowed %t, %v, want %d with %q", response.Allowed, response.Result, tc.wantCode, tc.want)
			}
		})
	}
}

// The schema names the field of what cannot be decoded; a mutating door would be
// in its way.
func TestMutatingDoorsLeaveShapesToTheSchema(t *testing.T) {
	handlers := brokenDoors()
	for path, req := range map[string]admission.Request{
		"/mutate/compositions":      write("Composition", "ann", "", manifest("Composition", `,"spec":{"goal":7}}`)),
		"/mutate/turns":             write("Turn", "ann", "", manifest("Turn", `,"spec":{"message":7}}`)),
		"/mutate/workflowruns":      write("WorkflowRun", "ann", "", manifest("WorkflowRun", `,"metadata":{"annotations":{"axiom.apitomy.io/resumed-by":"x"}}}`)),
		"/mutate/humantasks/status": write("HumanTask", "ann", manifest("HumanTask", "}"), manifest("HumanTask", `,"status":7}`)),
	} {
		response := handlers[path].Handle(t.Context(), req)
		if !response.Allowed || len(response.Patches) > 0 {
			t.Errorf("%s: allowed %t with patches %v, want allowed without", path, response.Allowed, response.Patches)
		}
	}
}

func TestMutatingDoorsPatchNothingElse(t *testing.T) {
	handlers := brokenDoors()
	task := manifest("HumanTask", `,"metadata":{"name":"t"},"spec":{"humanContext":{"title":"T"}}}`)
	run := func(spec string) string {
		return manifest("WorkflowRun", `,"metadata":{"name":"r"},"spec":{`+spec+`}}`)
	}
	answered := strings.TrimSuffix(task, "}") + `,"status":{"answer":{"n":1.50},"answeredBy":{"username":"x"}}}`
	for path, tc := range map[string]struct {
		req  admission.Request
		want []string
	}{
		"/mutate/compositions": {write("Composition", "ann", "", manifest("Composition", workFlow)), []string{"add /metadata/annotations"}},
		"/mutate/turns":        {write("Turn", "ann", "", manifest("Turn", `,"metadata":{"name":"t"},"spec":{"message":"m"}}`)), []string{"add /metadata/annotations"}},
		"/mutate/workflowruns": {
			write("WorkflowRun", "ann", run(`"resumePolicy":"Automatic"`), run(`"resumeRequests":1`)),
			[]string{"add /metadata/annotations", "add /spec/resumePolicy"},
		},
		"/mutate/humantasks/status": {write("HumanTask", "ann", task, answered), []string{
			"add /status/answeredAt", "add /status/answeredBy", "add /status/conditions", "add /status/observedGeneration", "add /status/phase",
		}},
	} {
		response := handlers[path].Handle(t.Context(), tc.req)
		var got []string
		for _, patch := range response.Patches {
			got = append(got, patch.Operation+" "+patch.Path)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: patches mismatch (-want +got):\n%s", path, diff)
		}
	}
}

func TestSetupNeedsTheOperator(t *testing.T) {
	if err := Setup(nil, Options{}); err == nil || !strings.Contains(err.Error(), "the operator's user name is not set") {
		t.Errorf("Setup() without an operator: %v", err)
	}
}

func TestRefusedKeepsCauses(t *testing.T) {
	response := refused(change(t, `{}`, `{}`).invalid(validateName(strings.Repeat("n", 60), 52)))
	text, err := json.Marshal(response.Result)
	if err != nil {
		t.Fatal(err)
	}
	if response.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(string(text), `"field":"metadata.name"`) {
		t.Errorf("refused() = %s, want the field among the causes", text)
	}
	if plain := refused(errors.New("odd")); plain.Result.Code != http.StatusInternalServerError {
		t.Errorf("refused() of a plain error has code %d, want 500", plain.Result.Code)
	}
}
