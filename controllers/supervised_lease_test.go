package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestLeadershipIsReadFromItsLease(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	own := Leadership{Lease: types.NamespacedName{Namespace: "axiom-system", Name: "axiom-operator"}, Identity: "this"}
	held := func(by string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: own.Lease.Namespace, Name: own.Lease.Name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &by, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)},
			},
		}
	}
	released := held("", 0)
	released.Spec.HolderIdentity = nil
	for name, tc := range map[string]struct {
		leadership Leadership
		stored     *coordinationv1.Lease
		want       bool
	}{
		"a process that is alone":      {want: true},
		"the holder":                   {own, held("this", 14*time.Second), true},
		"the holder after its time":    {own, held("this", 15*time.Second), false},
		"somebody else holds it":       {own, held("other", 0), false},
		"nobody holds it":              {own, released, false},
		"nobody ever held it":          {own, nil, false},
		"the holder of another's name": {Leadership{Lease: own.Lease, Identity: "thi"}, held("this", 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			build := fake.NewClientBuilder()
			if tc.stored != nil {
				build.WithObjects(tc.stored)
			}
			got, err := tc.leadership.isHeld(t.Context(), build.Build(), now)
			if err != nil || got != tc.want {
				t.Errorf("held %t, error %v, want %t", got, err, tc.want)
			}
		})
	}
}

func TestLeadershipThatCannotBeReadIsNotHeld(t *testing.T) {
	refusal := errors.New("no answer")
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return refusal
		},
	}).Build()
	held, err := Leadership{Lease: types.NamespacedName{Name: "lease"}, Identity: "this"}.isHeld(t.Context(), live, time.Time{})
	if held || !errors.Is(err, refusal) {
		t.Errorf("held %t, error %v", held, err)
	}
}
