package content_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/content"
)

const namespace = "team-a"

func newClient(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), funcs)
}

func owner(name string) *api.Turn {
	return &api.Turn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("uid-of-" + name)}}
}

func stored(t *testing.T, c client.Client, digest string) *corev1.ConfigMap {
	t.Helper()
	object := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: content.Name(digest)}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func ownersOf(object *corev1.ConfigMap) (names []string) {
	for _, reference := range object.OwnerReferences {
		names = append(names, reference.Kind+"/"+reference.Name)
	}
	return names
}

func TestWhatIsPutIsGot(t *testing.T) {
	for name, data := range map[string][]byte{
		"text":    []byte("hello"),
		"nothing": {},
		"bytes":   {0, 0xff, '\n'},
		"much":    bytes.Repeat([]byte("x"), 600<<10),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{})
			s := content.Store{Client: c}
			ref, err := s.Put(t.Context(), owner("a"), data)
			if err != nil {
				t.Fatal(err)
			}
			if want := (api.ContentRef{Digest: content.Digest(data), Size: int64(len(data))}); ref != want {
				t.Errorf("reference %+v, want %+v", ref, want)
			}
			got, err := s.Get(t.Context(), namespace, ref.Digest)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			object := stored(t, c, ref.Digest)
			if object.Immutable == nil || !*object.Immutable || object.Labels[api.LabelContent] != "true" {
				t.Errorf("ConfigMap is %+v", object.ObjectMeta)
			}
		})
	}
}

func TestDigestAndName(t *testing.T) {
	digest := content.Digest([]byte("hello"))
	if want := "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"; digest != want {
		t.Errorf("digest %s, want %s", digest, want)
	}
	if got, want := content.Name(digest), "axiom-content-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
	// Whatever somebody writes into a status, looking it up is no crash.
	for _, odd := range []string{"", "sha256:", "x", "sha256:2cf2"} {
		_ = content.Name(odd)
	}
}

func TestEqualValuesAreShared(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	s := content.Store{Client: c}
	var digest string
	for _, name := range []string{"a", "b", "a"} {
		ref, err := s.Put(t.Context(), owner(name), []byte("hello"))
		if err != nil {
			t.Fatal(err)
		}
		digest = ref.Digest
	}
	if diff := cmp.Diff([]string{"Turn/a", "Turn/b"}, ownersOf(stored(t, c, digest))); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Errorf("%d ConfigMaps, %v", len(list.Items), err)
	}
}

func TestNamespacesShareNothing(t *testing.T) {
	s := content.Store{Client: newClient(t, interceptor.Funcs{})}
	ref, err := s.Put(t.Context(), owner("a"), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "team-b", ref.Digest); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that it is not found", err)
	}
}

func TestDamagedContentIsNotTaken(t *testing.T) {
	digest := content.Digest([]byte("hello"))
	for name, object := range map[string]*corev1.ConfigMap{
		"other bytes":          {BinaryData: map[string][]byte{"content": []byte("hell")}},
		"no bytes":             {},
		"text instead":         {Data: map[string]string{"content": "hello"}},
		"under another key":    {BinaryData: map[string][]byte{"data": []byte("hello")}},
		"only the name agrees": {BinaryData: map[string][]byte{"content": []byte("anything")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{})
			s := content.Store{Client: c}
			object.Name, object.Namespace = content.Name(digest), namespace
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(t.Context(), namespace, digest); !errors.Is(err, content.ErrDamaged) || got != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := s.Named(t.Context(), namespace, object.Name); !errors.Is(err, content.ErrDamaged) || got != nil {
				t.Errorf("by name: %q, %v", got, err)
			}
			if _, err := s.Put(t.Context(), owner("a"), []byte("hello")); !errors.Is(err, content.ErrDamaged) {
				t.Errorf("put: %v", err)
			}
			if owners := ownersOf(stored(t, c, digest)); len(owners) != 0 {
				t.Errorf("it was adopted by %v", owners)
			}
		})
	}
}

func TestWhatIsPutIsGotByName(t *testing.T) {
	s := content.Store{Client: newClient(t, interceptor.Funcs{})}
	ref, err := s.Put(t.Context(), owner("a"), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Named(t.Context(), namespace, content.Name(ref.Digest)); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := s.Named(t.Context(), namespace, content.Name(content.Digest(nil))); !apierrors.IsNotFound(err) || got != nil {
		t.Errorf("got %q, %v of what is not there", got, err)
	}
}

// The name has only a part of the digest.
func TestADigestOfTheSameNameIsNotTaken(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	s := content.Store{Client: c}
	ref, err := s.Put(t.Context(), owner("a"), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	other := ref.Digest[:len(ref.Digest)-8] + strings.Repeat("0", 8)
	if content.Name(other) != content.Name(ref.Digest) {
		t.Fatal("names differ")
	}
	if _, err := s.Get(t.Context(), namespace, other); !errors.Is(err, content.ErrDamaged) {
		t.Errorf("error %v", err)
	}
}

func TestPuttingSurvivesRaces(t *testing.T) {
	hello := []byte("hello")
	put := func(t *testing.T, c client.Client, name string) {
		t.Helper()
		if _, err := (content.Store{Client: c}).Put(t.Context(), owner(name), hello); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		// race happens once, before the update or before the look, as it says.
		before string
		race   func(t *testing.T, c client.WithWatch)
		want   []string
	}{
		"another owner was faster": {
			before: "update",
			race:   func(t *testing.T, c client.WithWatch) { put(t, c, "faster") },
			want:   []string{"Turn/first", "Turn/faster", "Turn/late"},
		},
		"it is collected after the look": {
			before: "update",
			race: func(t *testing.T, c client.WithWatch) {
				if err := c.Delete(t.Context(), stored(t, c, content.Digest(hello))); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"Turn/late"},
		},
		"it is collected before the look": {
			before: "get",
			race: func(t *testing.T, c client.WithWatch) {
				if err := c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace)); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"Turn/late"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newClient(t, interceptor.Funcs{})
			put(t, inner, "first")
			raced := false
			once := func(at string) {
				if at == tc.before && !raced {
					raced = true
					tc.race(t, inner)
				}
			}
			c := interceptor.NewClient(inner, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					once("get")
					return c.Get(ctx, key, object, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
					once("update")
					return c.Update(ctx, object, opts...)
				},
			})
			put(t, c, "late")
			if diff := cmp.Diff(tc.want, ownersOf(stored(t, inner, content.Digest(hello)))); !raced || diff != "" {
				t.Errorf("raced %t, owners differ (-want +got):\n%s", raced, diff)
			}
		})
	}
}

func TestSharing(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	s := content.Store{Client: c}
	ref, err := s.Put(t.Context(), owner("a"), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Share(t.Context(), owner("b"), ref.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Turn/a", "Turn/b"}, ownersOf(stored(t, c, ref.Digest))); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if err := s.Share(t.Context(), owner("b"), content.Digest([]byte("other"))); !errors.Is(err, content.ErrGone) {
		t.Errorf("error %v, want that there is none", err)
	}
}

func TestADyingValueIsNotAdopted(t *testing.T) {
	c := newClient(t, interceptor.Funcs{})
	digest := content.Digest([]byte("hello"))
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: content.Name(digest), Namespace: namespace, Finalizers: []string{"example.com/slow"}},
		BinaryData: map[string][]byte{"content": []byte("hello")},
	}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, err := (content.Store{Client: c}).Put(t.Context(), owner("a"), []byte("hello")); err == nil {
		t.Error("a reference was given to what is about to go")
	}
}

func TestFailuresAreReported(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)
	for name, tc := range map[string]struct {
		funcs interceptor.Funcs
		want  error
	}{
		"creating": {interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden }}, forbidden},
		"looking": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		}}, boom},
		"sharing": {interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return boom }}, boom},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newClient(t, interceptor.Funcs{})
			if _, err := (content.Store{Client: inner}).Put(t.Context(), owner("first"), []byte("hello")); err != nil {
				t.Fatal(err)
			}
			c := interceptor.NewClient(inner, tc.funcs)
			if _, err := (content.Store{Client: c}).Put(t.Context(), owner("a"), []byte("hello")); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want it to wrap %v", err, tc.want)
			}
		})
	}
}
