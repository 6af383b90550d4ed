package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

func TestExemptOperator(t *testing.T) {
	config := &admissionv1.ValidatingWebhookConfiguration{Webhooks: []admissionv1.ValidatingWebhook{
		{Name: "status.axiom.apitomy.io"}, {Name: "humantask-status.axiom.apitomy.io"}, {Name: "humantask.axiom.apitomy.io"},
	}}
	if !ExemptOperator(config, `robot "x"`) || ExemptOperator(config, `robot "x"`) {
		t.Error("ExemptOperator() does not change the configuration once")
	}
	wanted := []admissionv1.MatchCondition{{Name: exemption, Expression: `request.userInfo.username != "robot \"x\""`}}
	for i, want := range [][]admissionv1.MatchCondition{wanted, nil, wanted} {
		if diff := cmp.Diff(want, config.Webhooks[i].MatchConditions); diff != "" {
			t.Errorf("%s mismatch (-want +got):\n%s", config.Webhooks[i].Name, diff)
		}
	}
	if !ExemptOperator(config, "another") {
		t.Error("ExemptOperator() keeps the old name")
	}
}
