// Package content keeps values that are too large for a status in immutable
// ConfigMaps whose names are made from what they hold.
//
// Equal values share one ConfigMap, so storing is idempotent and may be
// repeated by any replica. Every object that refers to a value is one of its
// owners; the value goes with the last of them. A reader checks the digest:
// what it gets is what was stored.
package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
)

const (
	digestPrefix = "sha256:"
	namePrefix   = "axiom-content-"
	key          = "content"
	// nameDigits of the digest make collisions of names as unlikely as those of
	// Git objects; the stored value is checked against the whole digest anyway.
	nameDigits = 40
)

// ErrGone says that a value is not there to be shared, or no longer.
var ErrGone = errors.New("content is gone")

// ErrDamaged says that what is stored under a name is not what it stands for.
var ErrDamaged = errors.New("stored content is damaged")

// MaxInline is the size in bytes up to which a value may stay in a status.
const MaxInline = 4096

// Store reads and writes contents. Its client must read live: a cached reader
// could miss what another replica has just stored.
type Store struct {
	Client client.Client
}

// Digest of a value: `sha256:` and 64 hex digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// Name of the ConfigMap that holds the value of a digest.
func Name(digest string) string {
	digits := strings.TrimPrefix(digest, digestPrefix)
	return namePrefix + digits[:min(nameDigits, len(digits))]
}

// Put stores a value in the owner's namespace, or makes the owner one more
// owner of the value that is there.
func (s Store) Put(ctx context.Context, owner client.Object, data []byte) (api.ContentRef, error) {
	ref := api.ContentRef{Digest: Digest(data), Size: int64(len(data))}
	reference, err := s.ownerReference(owner)
	if err != nil {
		return ref, err
	}
	// The value may go between the attempt to create it and the look at it, when
	// its last owner goes.
	err = retry.OnError(retry.DefaultRetry, isRace, func() error {
		err := s.Client.Create(ctx, newObject(owner.GetNamespace(), ref.Digest, data, reference))
		if apierrors.IsAlreadyExists(err) {
			return s.adopt(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: Name(ref.Digest)}, ref.Digest, reference)
		}
		return err
	})
	switch {
	case errors.Is(err, ErrGone):
		return ref, fmt.Errorf("store content %s: it is deleted each time", ref.Digest)
	case err != nil:
		return ref, fmt.Errorf("store content %s: %w", ref.Digest, err)
	}
	return ref, nil
}

func newObject(namespace, digest string, data []byte, owner metav1.OwnerReference) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            Name(digest),
			Namespace:       namespace,
			Labels:          map[string]string{api.LabelContent: "true"},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Immutable:  &immutable,
		BinaryData: map[string][]byte{key: data},
	}
}

// Get returns the value of a digest.
func (s Store) Get(ctx context.Context, namespace, digest string) ([]byte, error) {
	object := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: Name(digest)}, object); err != nil {
		return nil, fmt.Errorf("read content %s: %w", digest, err)
	}
	return verified(object, digest)
}

// Named returns the value that the ConfigMap of a name holds, where the name is
// all there is to go by.
func (s Store) Named(ctx context.Context, namespace, name string) ([]byte, error) {
	object := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		return nil, fmt.Errorf("read content %s: %w", name, err)
	}
	data, found := object.BinaryData[key]
	if !found || Name(Digest(data)) != name {
		return nil, fmt.Errorf("%w: ConfigMap %s does not hold what it is named after", ErrDamaged, name)
	}
	return data, nil
}

// Share makes an object one more owner of a value that is stored in its
// namespace.
func (s Store) Share(ctx context.Context, owner client.Object, digest string) error {
	reference, err := s.ownerReference(owner)
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		return s.adopt(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: Name(digest)}, digest, reference)
	})
	if err != nil {
		return fmt.Errorf("share content %s: %w", digest, err)
	}
	return nil
}

// adopt adds an owner to the value that is there.
func (s Store) adopt(ctx context.Context, name types.NamespacedName, digest string, owner metav1.OwnerReference) error {
	object := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, name, object); err != nil {
		return goneOr(err)
	}
	if _, err := verified(object, digest); err != nil {
		return err
	}
	if !object.DeletionTimestamp.IsZero() {
		return ErrGone
	}
	if slices.ContainsFunc(object.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
		return nil
	}
	object.OwnerReferences = append(object.OwnerReferences, owner)
	return goneOr(s.Client.Update(ctx, object))
}

func goneOr(err error) error {
	if apierrors.IsNotFound(err) {
		return ErrGone
	}
	return err
}

func isRace(err error) bool {
	return errors.Is(err, ErrGone) || apierrors.IsConflict(err)
}

func (s Store) ownerReference(owner client.Object) (metav1.OwnerReference, error) {
	kind, err := apiutil.GVKForObject(owner, s.Client.Scheme())
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("name kind of content's owner: %w", err)
	}
	return metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(),
		Kind:       kind.Kind,
		Name:       owner.GetName(),
		UID:        owner.GetUID(),
	}, nil
}

// verified keeps a tampered or foreign ConfigMap from being taken for content.
func verified(object *corev1.ConfigMap, digest string) ([]byte, error) {
	data, found := object.BinaryData[key]
	if !found || Digest(data) != digest {
		return nil, fmt.Errorf("%w: ConfigMap %s does not hold %s", ErrDamaged, object.Name, digest)
	}
	return data, nil
}
