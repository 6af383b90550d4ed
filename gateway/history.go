package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list

// snapshot is what the gateway reads of a ControllerRevision of a composition.
type snapshot struct {
	Generation int64 `json:"generation"`
	Items      []struct {
		Type            api.ItemType `json:"type"`
		Name            string       `json:"name"`
		ContentRevision string       `json:"contentRevision"`
		Author          api.Author   `json:"author"`
		Turn            string       `json:"turn"`
	} `json:"items"`
}

func (n snapshot) revisionOf(wanted turns.Item) string {
	for _, entry := range n.Items {
		isNamed := wanted.Type == api.ItemWorkflow || entry.Name == wanted.Name
		if entry.Type == wanted.Type && isNamed && entry.ContentRevision != "" {
			return entry.ContentRevision
		}
	}
	return ""
}

// claimedRevision is the revision that an item had when the turn claimed the
// composition; empty when there was none.
func (s *Server) claimedRevision(ctx context.Context, write *itemWrite) (string, error) {
	claimed := write.comp.Status.LastTurnGeneration
	if write.comp.Generation == claimed {
		return write.liveRevision(), nil
	}
	list := &appsv1.ControllerRevisionList{}
	err := s.live.List(ctx, list, client.InNamespace(write.comp.Namespace), client.MatchingLabels{api.LabelComposition: write.comp.Name})
	if err != nil {
		return "", fmt.Errorf("list snapshots of composition: %w", err)
	}
	var newest *appsv1.ControllerRevision
	for i := range list.Items {
		object := &list.Items[i]
		isUsable := metav1.IsControlledBy(object, write.comp) && object.Revision <= claimed
		if isUsable && (newest == nil || object.Revision > newest.Revision) {
			newest = object
		}
	}
	if newest == nil {
		return "", nil
	}
	found, err := readSnapshot(newest)
	return found.revisionOf(write.item), err
}

func readSnapshot(object *appsv1.ControllerRevision) (snapshot, error) {
	var found snapshot
	if err := json.Unmarshal(object.Data.Raw, &found); err != nil {
		return snapshot{}, fmt.Errorf("decode snapshot %s: %w", object.Name, err)
	}
	return found, nil
}

// errChanged says that what a write was computed from is no more.
var errChanged = errors.New("the draft changed")

// awaitHistory returns the composition once what it holds has its snapshot, so
// that nothing is replaced which nobody recorded. It is a lost race when the
// content changes meanwhile, or the turn is over.
func (s *Server) awaitHistory(ctx context.Context, comp *api.Composition) (*api.Composition, error) {
	if isRecorded(comp) {
		return comp, nil
	}
	// Listening begins before the first look, so that nothing falls in between.
	news, leave := s.bells.listen(compositionTopic(client.ObjectKeyFromObject(comp)))
	defer leave()
	for {
		now := &api.Composition{}
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(comp), now); err != nil {
			return nil, fmt.Errorf("read composition: %w", err)
		}
		if now.UID != comp.UID || now.Generation != comp.Generation || !isSameClaim(now, comp) {
			return nil, apierrors.NewConflict(schema.GroupResource{Group: api.GroupVersion.Group, Resource: "compositions"}, comp.Name, errChanged)
		}
		if isRecorded(now) {
			return now, nil
		}
		select {
		case _, open := <-news:
			if !open {
				return nil, unavailable("The gateway shuts down; try again in a moment")
			}
		case <-ctx.Done():
			return nil, unavailable("The history of the composition is not up to date; try again in a moment")
		}
	}
}

// isRecorded tells whether what the draft holds has its snapshot.
func isRecorded(comp *api.Composition) bool {
	return comp.Status.ObservedGeneration == comp.Generation && comp.Status.Snapshot != ""
}

func isSameClaim(a, b *api.Composition) bool {
	if a.Status.Claim == nil || b.Status.Claim == nil {
		return a.Status.Claim == b.Status.Claim
	}
	return a.Status.Claim.UID == b.Status.Claim.UID
}
