package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/content"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

// changes are what a turn makes of a draft.
type changes struct {
	// before and after are the workflows, nil where there is none.
	before, after changeset.Document
	items         []review.Item
}

func (c *cluster) contents() content.Store {
	return content.Store{Client: c}
}

// changesOf reads what the turn changes, or did so far. Its values are kept in
// ConfigMaps.
func (c *cluster) changesOf(ctx context.Context, turn *api.Turn) (*changes, error) {
	before, err := turns.Base(ctx, c.contents(), turn)
	if err != nil {
		return nil, explainContent(err)
	}
	after, err := turns.Working(ctx, c.contents(), turn)
	if err != nil {
		return nil, explainContent(err)
	}
	found := &changes{before: before, after: after}
	for i := range turn.Status.ItemWrites {
		if err := c.addItem(ctx, turn, &turn.Status.ItemWrites[i], found); err != nil {
			return nil, explainContent(err)
		}
	}
	return found, nil
}

func (c *cluster) addItem(ctx context.Context, turn *api.Turn, write *api.ItemWrite, found *changes) error {
	if write.Type == api.ItemWorkflow {
		found.before = nil // the turn made the workflow that it calls its base
		return nil
	}
	before, err := readItem(ctx, c.contents(), turn.Namespace, write.Before)
	if err != nil {
		return err
	}
	after, err := readItem(ctx, c.contents(), turn.Namespace, write.After)
	if err != nil {
		return err
	}
	if !jsonvalue.Equal(before, after) {
		found.items = append(found.items, review.Item{Type: string(write.Type), Name: write.Name, Before: before, After: after})
	}
	return nil
}

// explainContent says which right it takes to read values.
func explainContent(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("what turns change is kept in ConfigMaps, which you may not read: %w", err)
	case errors.Is(err, turns.ErrDamaged), errors.Is(err, content.ErrDamaged):
		return err
	}
	return explain(err)
}

// difference tells the workflows apart.
func (x *changes) difference() review.Difference {
	return review.Compare(x.before, x.after)
}

// Tell implements [command.Answer].
func (x *changes) Tell(p *command.Page) {
	difference := x.difference()
	if !difference.IsZero() || len(x.items) == 0 {
		difference.Tell(p)
	}
	for _, item := range x.items {
		item.Tell(p)
	}
}

// itemAnswer is an item that a turn writes, for programs.
type itemAnswer struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Action string `json:"action"`
	Staged bool   `json:"staged"`
}

func itemAnswers(turn *api.Turn) []itemAnswer {
	items := []itemAnswer{}
	for _, write := range turn.Status.ItemWrites {
		items = append(items, itemAnswer{
			Type: string(write.Type), Name: write.Name, Action: string(write.Action), Staged: write.Staged,
		})
	}
	slices.SortFunc(items, func(a, b itemAnswer) int { return strings.Compare(a.Type+"/"+a.Name, b.Type+"/"+b.Name) })
	return items
}
