package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errEnough ends a watch that has seen what it is for.
var errEnough = errors.New("seen enough")

// An observer is told what there is, and of everything that happens after. It
// ends the watch by an error, [errEnough] if all is well.
type observer struct {
	// listed is told when the list has what there is now. That may happen again,
	// when so much time was lost that changes may be missed.
	listed func() error
	// changed is told of each change after.
	changed func(kind watch.EventType, object runtime.Object) error
}

// observe watches the objects of a list until the observer or the context ends
// it. Connections that break are made again.
func (c *cluster) observe(ctx context.Context, list client.ObjectList, o observer, options ...client.ListOption) error {
	ctx = klog.NewContext(ctx, logr.Discard()) // errors that count are returned
	for {
		err := c.listAndWatch(ctx, list, o, options)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			return err
		}
	}
}

func (c *cluster) listAndWatch(ctx context.Context, list client.ObjectList, o observer, options []client.ListOption) error {
	if err := c.List(ctx, list, options...); err != nil {
		return explain(err)
	}
	if err := o.listed(); err != nil {
		return err
	}
	from := func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, list, append([]client.ListOption{&client.ListOptions{Raw: &raw}}, options...)...)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: from})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return explain(apierrors.FromObject(event.Object))
		}
		if err := o.changed(event.Type, event.Object); err != nil {
			return err
		}
	}
	return nil
}

// follow gives the object of a name to see, now and whenever it changes, and then
// says if it was deleted. While there is none, it waits for it.
func follow[T client.Object](ctx context.Context, c *cluster, list client.ObjectList, name string, see func(object T, isGone bool) error) error {
	return c.observe(ctx, list, observer{
		listed: func() error {
			return apimeta.EachListItem(list, func(item runtime.Object) error { return seeAs(item, false, see) })
		},
		changed: func(kind watch.EventType, object runtime.Object) error {
			return seeAs(object, kind == watch.Deleted, see)
		},
	}, client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": name})
}

func seeAs[T client.Object](item runtime.Object, isGone bool, see func(object T, isGone bool) error) error {
	object, ok := item.(T)
	if !ok {
		return fmt.Errorf("watch: got a %T", item)
	}
	return see(object, isGone)
}
