package v1alpha1

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

func TestValidateNewTurn(t *testing.T) {
	cases := map[string]struct {
		change func(*api.Turn)
		want   []string
	}{
		"a message":                   {change: func(*api.Turn) {}},
		"the longest name":            {change: func(turn *api.Turn) { turn.Name = strings.Repeat("n", maxTurnName) }},
		"the longest name of a retry": {change: func(turn *api.Turn) { turn.Name, turn.Spec.RetryOf = strings.Repeat("n", maxRetryName), "t" }},
		"one character more":          {change: func(turn *api.Turn) { turn.Name = strings.Repeat("n", maxTurnName+1) }, want: []string{"metadata.name: Too long: has 58 characters, the limit is 57"}},
		"the longest text":            {change: func(turn *api.Turn) { turn.Spec.Message = strings.Repeat("é", maxMessageBytes/2) }},
		"one byte more":               {change: func(turn *api.Turn) { turn.Spec.Message = strings.Repeat("é", maxMessageBytes/2) + "e" }, want: []string{"spec.message: Too long: has 65537 bytes, the limit is 65536"}},
		"blanks":                      {change: func(turn *api.Turn) { turn.Spec.Message = "\u00a0\n" }, want: []string{"spec.message: Required value: must not be blank"}},
		"a selection for a session": {
			change: func(turn *api.Turn) {
				turn.Spec.CompositionRef, turn.Spec.SessionRef = nil, &api.LocalRef{Name: "s"}
				turn.Spec.Selection = &api.Selection{}
			},
			want: []string{"spec.selection: Forbidden: may be set for compositions only"},
		},
		"every decision": {
			change: func(turn *api.Turn) {
				turn.Spec.Resolution, turn.Spec.Interrupt, turn.Spec.Undo = api.ResolutionStale, true, true
			},
			want: []string{
				"spec.resolution: Forbidden: must not be set at creation", "spec.interrupt: Forbidden: must not be set at creation",
				"spec.undo: Forbidden: must not be set at creation",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			turn := &api.Turn{Spec: api.TurnSpec{CompositionRef: &api.LocalRef{Name: "c"}, Message: "m"}}
			tc.change(turn)
			if diff := cmp.Diff(tc.want, messages(validateNewTurn(turn))); diff != "" {
				t.Errorf("validateNewTurn() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLendsPower(t *testing.T) {
	cases := map[string]struct {
		agent api.CompositionAgent
		want  bool
	}{
		"nothing said":         {api.CompositionAgent{}, true},
		"direct":               {api.CompositionAgent{ItemPolicy: api.ItemDirect, ChangeSetPolicy: api.ChangeSetManual}, true},
		"staged":               {api.CompositionAgent{ItemPolicy: api.ItemStaged}, false},
		"staged and manual":    {api.CompositionAgent{ItemPolicy: api.ItemStaged, ChangeSetPolicy: api.ChangeSetManual}, false},
		"staged and automatic": {api.CompositionAgent{ItemPolicy: api.ItemStaged, ChangeSetPolicy: api.ChangeSetAutomatic}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lendsPower(&api.Composition{Spec: api.CompositionSpec{Agent: tc.agent}}); got != tc.want {
				t.Errorf("lendsPower() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestStampsOfTurns(t *testing.T) {
	type stamps = map[string]string
	const operator = "op"
	cases := map[string]struct {
		user                string
		before, after       *api.TurnSpec
		stored, sent, wants stamps
	}{
		"a creation":            {user: "ann", after: &api.TurnSpec{}, wants: stamps{api.AnnotationRequestedBy: "ann"}},
		"a forged creation":     {user: "ann", after: &api.TurnSpec{}, sent: stamps{api.AnnotationRequestedBy: "bea", api.AnnotationUndoneBy: "bea"}, wants: stamps{api.AnnotationRequestedBy: "ann"}},
		"another's annotations": {user: "ann", after: &api.TurnSpec{}, sent: stamps{"x": "y"}, wants: stamps{api.AnnotationRequestedBy: "ann", "x": "y"}},
		"a resolution": {
			user: "bea", before: &api.TurnSpec{}, after: &api.TurnSpec{Resolution: api.ResolutionRejected},
			stored: stamps{api.AnnotationRequestedBy: "ann"}, wants: stamps{api.AnnotationRequestedBy: "ann", api.AnnotationResolvedBy: "bea"},
		},
		"a resolution that stands": {
			user: "bea", before: &api.TurnSpec{Resolution: api.ResolutionRejected}, after: &api.TurnSpec{Resolution: api.ResolutionRejected},
			stored: stamps{api.AnnotationResolvedBy: "ann"}, sent: stamps{api.AnnotationResolvedBy: "bea"}, wants: stamps{api.AnnotationResolvedBy: "ann"},
		},
		"an interrupt and an undo": {
			user: "bea", before: &api.TurnSpec{}, after: &api.TurnSpec{Interrupt: true, Undo: true},
			wants: stamps{api.AnnotationInterruptedBy: "bea", api.AnnotationUndoneBy: "bea"},
		},
		"the operator for somebody": {user: operator, after: &api.TurnSpec{}, sent: stamps{api.AnnotationRequestedBy: "ann"}, wants: stamps{api.AnnotationRequestedBy: "ann"}},
		"the operator for itself":   {user: operator, after: &api.TurnSpec{}, wants: stamps{api.AnnotationRequestedBy: operator}},
		"the operator, forgetting":  {user: operator, before: &api.TurnSpec{}, after: &api.TurnSpec{}, stored: stamps{api.AnnotationRequestedBy: "ann"}, wants: stamps{api.AnnotationRequestedBy: "ann"}},
		"the operator, later on":    {user: operator, before: &api.TurnSpec{}, after: &api.TurnSpec{}, sent: stamps{api.AnnotationUndoneBy: "ann"}, wants: stamps{api.AnnotationUndoneBy: "ann"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request[api.Turn]{after: &api.Turn{ObjectMeta: metav1.ObjectMeta{Annotations: tc.sent}, Spec: *tc.after}}
			req.UserInfo = authenticationv1.UserInfo{Username: tc.user}
			if tc.before != nil {
				req.before = &api.Turn{ObjectMeta: metav1.ObjectMeta{Annotations: tc.stored}, Spec: *tc.before}
			}
			got, err := turnDoors{operator: operator}.annotate(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wants, got); diff != "" {
				t.Errorf("annotate() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordOfTurn(t *testing.T) {
	base := &api.ContentRef{Digest: "sha256:aa", Size: 2}
	set := func(id string) api.AcceptedChangeSet {
		return api.AcceptedChangeSet{ID: id, Ops: 1, Revision: "r", Content: &runtime.RawExtension{Raw: []byte(`{"ops":[1]}`)}}
	}
	working := api.TurnStatus{State: api.TurnWorking, BaseRevision: "r0", Base: base, ChangeSets: []api.AcceptedChangeSet{set("a"), set("b")}}
	before := &api.ItemContent{Revision: "r1"}
	wrote := api.TurnStatus{State: api.TurnWorking, ItemWrites: []api.ItemWrite{
		{Type: api.ItemTool, Name: "w", Before: before, State: api.ItemWritten},
		{Type: api.ItemTool, Name: "c", Before: before, State: api.ItemIntended, Confirmed: &api.ConfirmedWrite{Action: api.ItemUpdated}},
		{Type: api.ItemTool, Name: "i", Before: before, State: api.ItemIntended},
	}}
	cases := map[string]struct {
		was    api.TurnStatus
		change func(*api.TurnStatus)
		want   []string
	}{
		"nothing":              {working, func(*api.TurnStatus) {}, nil},
		"one set more":         {working, func(s *api.TurnStatus) { s.ChangeSets = append(s.ChangeSets, set("c")) }, nil},
		"the spelling of one":  {working, func(s *api.TurnStatus) { s.ChangeSets[0].Content.Raw = []byte(`{"ops": [1.0]}`) }, nil},
		"an end":               {working, func(s *api.TurnStatus) { s.State = api.TurnCompleted }, nil},
		"a step back":          {working, func(s *api.TurnStatus) { s.State = api.TurnPending }, []string{`status.state: Invalid value: "Pending": must not follow Working`}},
		"one set less":         {working, func(s *api.TurnStatus) { s.ChangeSets = s.ChangeSets[:1] }, []string{"status.changeSets: Forbidden: must only grow: it had 2 change sets and has 1"}},
		"another set":          {working, func(s *api.TurnStatus) { s.ChangeSets[1].Content.Raw = []byte(`{"ops":[2]}`) }, []string{"status.changeSets[1]: Forbidden: must not change"}},
		"a set kept elsewhere": {working, func(s *api.TurnStatus) { s.ChangeSets[1].Content, s.ChangeSets[1].Ref = nil, base }, []string{"status.changeSets[1]: Forbidden: must not change"}},
		"another base": {working, func(s *api.TurnStatus) { s.Base = nil; s.BaseRevision = "" }, []string{
			"status.baseRevision: Forbidden: must not change once it is set", "status.base: Forbidden: must not change once it is set",
		}},
		"an intent less":            {wrote, func(s *api.TurnStatus) { s.ItemWrites = s.ItemWrites[:2] }, nil},
		"an intent on another":      {wrote, func(s *api.TurnStatus) { s.ItemWrites[2].Before = nil }, nil},
		"a second write":            {wrote, func(s *api.TurnStatus) { s.ItemWrites[0].After, s.ItemWrites[0].State = before, api.ItemIntended }, nil},
		"a write less":              {wrote, func(s *api.TurnStatus) { s.ItemWrites = s.ItemWrites[2:] }, []string{"status.itemWrites: Forbidden: tool/w must stay, since it was written", "status.itemWrites: Forbidden: tool/c must stay, since it was written"}},
		"a write with another past": {wrote, func(s *api.TurnStatus) { s.ItemWrites[1].Before = nil }, []string{"status.itemWrites[tool/c].before: Forbidden: must not change once the item was written"}},
		"a first base":              {api.TurnStatus{}, func(s *api.TurnStatus) { s.Base, s.BaseRevision = base, "r0" }, nil},
		"a base without a name":     {api.TurnStatus{}, func(s *api.TurnStatus) { s.Base = base }, []string{"status.base: Forbidden: must be set together with `baseRevision`"}},
		"a name without a base":     {api.TurnStatus{}, func(s *api.TurnStatus) { s.BaseRevision = "r0" }, []string{"status.base: Forbidden: must be set together with `baseRevision`"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := tc.was.DeepCopy()
			tc.change(is)
			path := field.NewPath("status")
			got := append(validateMove(&tc.was, is, path), slices.Concat(validateBase(&tc.was, is, path), validateGrowth(&tc.was, is, path), validateItemWrites(&tc.was, is, path))...)
			if diff := cmp.Diff(tc.want, messages(got)); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// write is an admission request for an object's JSON.
func write(kind, user, before, after string) admission.Request {
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "ns",
		Kind:     metav1.GroupVersionKind{Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Kind: kind},
		Resource: metav1.GroupVersionResource{Group: api.GroupVersion.Group, Version: api.GroupVersion.Version, Resource: strings.ToLower(kind) + "s"},
		UserInfo: authenticationv1.UserInfo{Username: user},
		Object:   runtime.RawExtension{Raw: []byte(after)},
	}}
	if before != "" {
		req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(before)}
	}
	return req
}
