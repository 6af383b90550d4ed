package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultPatience = 30 * time.Second
	// lookEvery is the time between two looks at a world that comes to rest.
	lookEvery = 40 * time.Millisecond
	// looksAtFirst and looksAfterwards are how often a world must look the same
	// in a row to be at rest. What all others are compared with is looked at for
	// longer.
	looksAtFirst    = 15
	looksAfterwards = 5
)

var errRestless = errors.New("the objects do not come to rest")

// rest looks at the objects until nobody has written them for a while and, with
// something wanted, they are as wanted. With the last look it returns an error
// if they are not at rest; whether they are as wanted is for the caller to see.
func (s Scenario) rest(ctx context.Context, namespace string, want []any) ([]any, error) {
	patience, looks := s.Patience, looksAfterwards
	if patience <= 0 {
		patience = defaultPatience
	}
	if want == nil {
		looks = looksAtFirst
	}
	seen := gaze{want: want}
	err := wait.PollUntilContextTimeout(ctx, lookEvery, patience, true, func(ctx context.Context) (bool, error) {
		// What time cut off shows nothing.
		if look := s.look(ctx, namespace); ctx.Err() == nil {
			seen.add(look)
		}
		return seen.same >= looks, nil
	})
	look := seen.last
	switch {
	case err == nil:
		return look.objects, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case look.err != nil:
		return nil, look.err
	case want != nil && !cmp.Equal(want, look.objects):
		return look.objects, nil
	}
	return look.objects, errRestless
}

// gaze is how long a world has looked the same.
type gaze struct {
	want []any
	last glimpse
	same int
}

func (g *gaze) add(look glimpse) {
	switch {
	case look.err != nil || g.want != nil && !cmp.Equal(g.want, look.objects):
		g.same = 0
	case look.versions != g.last.versions:
		g.same = 1
	default:
		g.same++
	}
	g.last = look
}

// glimpse is what one look at a world shows.
type glimpse struct {
	objects []any
	// versions differ as soon as anybody has written an object.
	versions string
	err      error
}

func (s Scenario) look(ctx context.Context, namespace string) glimpse {
	found, err := s.Ending(ctx, namespace)
	if err != nil {
		return glimpse{err: fmt.Errorf("look at the ending: %w", err)}
	}
	objects, err := normalForm(found, namespace, s.Normalize)
	return glimpse{objects: objects, versions: versionsOf(found), err: err}
}

func versionsOf(objects []client.Object) string {
	versions := make([]string, len(objects))
	for i, object := range objects {
		versions[i] = string(object.GetUID()) + "/" + object.GetName() + "@" + object.GetResourceVersion()
	}
	slices.Sort(versions)
	return strings.Join(versions, " ")
}
