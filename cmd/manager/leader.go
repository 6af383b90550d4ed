package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/apitomy/axiom-operator/controllers"
)

// leaseName is the lease of the replica that runs the controllers.
const leaseName = "axiom-operator"

// renewDeadline is what the leader has to renew its lease; a single request for it
// may take half as long.
const renewDeadline = 10 * time.Second

// lock is what the replicas contend for, and how this one finds out whether it still
// has it; none without leader election.
func (o *options) lock(config *rest.Config) (resourcelock.Interface, controllers.Leadership, error) {
	if !o.leaderElect {
		return nil, controllers.Leadership{}, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, controllers.Leadership{}, fmt.Errorf("find host name: %w", err)
	}
	own := controllers.Leadership{
		Lease:    types.NamespacedName{Namespace: o.namespace, Name: leaseName},
		Identity: host + "_" + string(uuid.NewUUID()),
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, own.Lease.Namespace, own.Lease.Name,
		resourcelock.ResourceLockConfig{Identity: own.Identity}, config, renewDeadline)
	if err != nil {
		return nil, controllers.Leadership{}, fmt.Errorf("make lock of leader: %w", err)
	}
	return lock, own, nil
}
