package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/cli/graph"
	"github.com/apitomy/axiom-operator/cli/review"
	"github.com/apitomy/axiom-operator/console"
	"github.com/apitomy/axiom-operator/internal/turns"
	"github.com/apitomy/axiom-operator/internal/workflow"
)

// compositionLine is a composition in a list.
type compositionLine struct {
	Name        string        `json:"name"`
	Goal        string        `json:"goal"`
	Revision    string        `json:"revision"`
	TurnState   api.TurnState `json:"turnState"`
	CurrentTurn string        `json:"currentTurn"`
	PendingTurn string        `json:"pendingTurn"`
	// Valid is True, False or Unknown.
	Valid    string        `json:"valid"`
	Problems []api.Problem `json:"problems"`
}

func compositionLineOf(comp *api.Composition) compositionLine {
	status := &comp.Status
	line := compositionLine{
		Name: comp.Name, Goal: comp.Spec.Goal, Revision: status.WorkflowRevision, TurnState: status.TurnState,
		CurrentTurn: status.CurrentTurn, PendingTurn: status.PendingTurn, Valid: "Unknown", Problems: []api.Problem{},
	}
	if found := apimeta.FindStatusCondition(status.Conditions, api.ConditionValid); found != nil {
		line.Valid = string(found.Status)
	}
	for _, item := range status.Items {
		line.Problems = append(line.Problems, item.Problems...)
	}
	return line
}

func (d *consoleDesk) listCompositions(ctx context.Context, _ console.Request) (any, error) {
	list := &api.CompositionList{}
	if err := d.List(ctx, list, client.InNamespace(d.namespace)); err != nil {
		return nil, refused(err)
	}
	lines := []compositionLine{}
	for i := range list.Items {
		lines = append(lines, compositionLineOf(&list.Items[i]))
	}
	return lines, nil
}

// compositionPage is a composition with its drawing.
type compositionPage struct {
	compositionLine
	drawing
	Turns []turnLine `json:"turns"`
}

// drawing is a workflow to be shown.
type drawing struct {
	// Picture is null where there is no workflow.
	Picture *graph.Picture `json:"picture"`
	// Nodes are the texts of the nodes by id, as indented JSON.
	Nodes map[string]string `json:"nodes"`
}

// drawingOf lays a graph out; the document has its nodes in full.
func drawingOf(g *graph.Graph, docs ...workflow.Document) (drawing, error) {
	// Both halves of a comparison keep to the budget of a document.
	if len(g.Nodes) > 2*workflow.MaxNodes || len(g.Edges) > 2*workflow.MaxEdges {
		return drawing{}, fmt.Errorf("draw workflow: %d nodes and %d edges are too many", len(g.Nodes), len(g.Edges))
	}
	picture := graph.Place(g)
	d := drawing{Picture: &picture, Nodes: map[string]string{}}
	for _, doc := range docs {
		for id, node := range review.EntriesByID(doc["nodes"]) {
			d.Nodes[id] = indented(node)
		}
	}
	return d, nil
}

// indented is a JSON tree as text, numbers as they are.
func indented(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return "…"
	}
	return text.String()
}

// turnLine is a turn in a list.
type turnLine struct {
	Turn    string        `json:"turn"`
	Number  int64         `json:"number"`
	State   api.TurnPhase `json:"state"`
	Message string        `json:"message"`
	Created time.Time     `json:"created"`
}

// maxTurns bounds the turns that the page of a composition lists.
const maxTurns = 50

func (d *consoleDesk) showComposition(ctx context.Context, r console.Request) (any, error) {
	comp := &api.Composition{}
	if err := d.read(ctx, "composition", r.Name, comp); err != nil {
		return nil, err
	}
	page := compositionPage{compositionLine: compositionLineOf(comp)}
	if comp.Spec.Workflow != nil {
		doc, err := turns.Document(comp.Spec.Workflow)
		if err != nil {
			return nil, fmt.Errorf("read workflow: %w", err)
		}
		if page.drawing, err = drawingOf(graph.Of(doc), doc); err != nil {
			return nil, err
		}
	}
	var err error
	page.Turns, err = d.turnsOf(ctx, comp.Name)
	return page, err
}

// turnsOf are the latest turns of a composition, the newest first.
func (d *consoleDesk) turnsOf(ctx context.Context, composition string) ([]turnLine, error) {
	list := &api.TurnList{}
	if err := d.List(ctx, list, client.InNamespace(d.namespace)); err != nil {
		return nil, refused(err)
	}
	lines := []turnLine{}
	for i := range list.Items {
		turn := &list.Items[i]
		if ref := turn.Spec.CompositionRef; ref == nil || ref.Name != composition {
			continue
		}
		lines = append(lines, turnLine{
			Turn: turn.Name, Number: turn.Status.Number, State: cmp.Or(turn.Status.State, api.TurnPending),
			Message: turn.Spec.Message, Created: turn.CreationTimestamp.UTC(),
		})
	}
	slices.SortFunc(lines, func(a, b turnLine) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Number, a.Number), cmp.Compare(a.Turn, b.Turn))
	})
	return lines[:min(len(lines), maxTurns)], nil
}

// read gets an object of the namespace, and says what it is if it is not there.
func (d *consoleDesk) read(ctx context.Context, what, name string, object client.Object) error {
	err := d.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: name}, object)
	switch {
	case isMissing(err):
		return d.missing(what, name)
	case err != nil:
		return refused(err)
	}
	return nil
}

// linesOf is an answer as people read it, without colours.
func linesOf(x command.Answer) string {
	p := &command.Page{}
	x.Tell(p)
	return p.String()
}
