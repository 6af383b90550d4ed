package controllers

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leadership is how one process among several comes to carry runs. The zero value
// is that of a process that is alone.
type Leadership struct {
	// Lease that the leader holds; without a name there is none.
	Lease types.NamespacedName
	// Identity of this process as the lease's holder.
	Identity string
}

// isHeld reads the lease and tells whether this process leads now. A lease that has
// run out counts as lost even if nobody took it yet: somebody may at any moment.
func (l Leadership) isHeld(ctx context.Context, live client.Reader, now time.Time) (bool, error) {
	if l.Lease.Name == "" {
		return true, nil
	}
	lease := &coordinationv1.Lease{}
	if err := client.IgnoreNotFound(live.Get(ctx, l.Lease, lease)); err != nil {
		return false, fmt.Errorf("read lease %s: %w", l.Lease, err)
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return false, nil
	}
	end := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	return *spec.HolderIdentity == l.Identity && now.Before(end), nil
}
