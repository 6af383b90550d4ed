package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// measureAdmission creates compositions, without keeping them, each after a raw
// write and before the same document in an object that nobody judges: what the
// API server takes for its size alone.
func measureAdmission(ctx context.Context, w *world) ([]figure, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	probe, err := w.probe(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, size := range []struct {
		nodes int
		limit float64
	}{{10, 3}, {1000, 10}} {
		a := &admissions{world: w, probe: probe, nodes: size.nodes}
		if err := w.profiled(ctx, fmt.Sprintf("admission-%d", size.nodes), func() error { return a.run(ctx) }); err != nil {
			return nil, err
		}
		measure := fmt.Sprintf("admission of a workflow of %d nodes, a dry run", size.nodes)
		figures = append(figures,
			figure{
				measure: measure, goal: fmt.Sprintf("≤ %.0f×", size.limit), limit: size.limit, ratio: a.judged.ratio(50),
				value: fmt.Sprintf("%s (%s; %s)", times(a.judged.ratio(50)), ms(median(a.judged.measured)), a.judged.processor()), raw: ms(median(a.judged.raw)),
			},
			figure{
				measure: measure + ", over the same document without schema and webhooks", noGoal: true,
				value: fmt.Sprintf("%s (%s); that one takes %s (%s)",
					times(a.bare.ratio(50)), a.bare.processor(), times(quotient(median(a.bare.raw), median(a.judged.raw))), ms(median(a.bare.raw))),
				raw: ms(median(a.judged.raw)),
			})
	}
	return figures, nil
}

// admissions of documents of one size, each of them new.
type admissions struct {
	world *world
	probe *unstructured.Unstructured
	nodes int
	// judged are admissions against raw writes, bare the same ones against raw
	// objects with the same document.
	judged, bare paired
}

func (a *admissions) run(ctx context.Context) error {
	for i := range a.world.pick(40, 8) {
		limit, usedRaw, err := timed(func() error { return a.world.writeRaw(ctx, a.probe, i) })
		if err != nil {
			return err
		}
		document := chainOf(askNode, a.nodes-2)
		document["description"] = a.world.name("document")
		admitted, used, err := timed(func() error {
			return a.world.person.Create(ctx, a.world.composition(a.world.name("draft"), a.probe.GetNamespace(), document), client.DryRunAll)
		})
		if err != nil {
			return fmt.Errorf("admit composition: %w", err)
		}
		bare, usedBare, err := timed(func() error { return a.world.admitRaw(ctx, a.probe.GetNamespace(), document) })
		if err != nil {
			return err
		}
		a.judged.add(admitted, limit)
		a.judged.use(used, usedRaw)
		a.bare.add(admitted, bare)
		a.bare.use(used, usedBare)
	}
	return nil
}

// admitRaw creates an object that holds a document, without keeping it.
func (w *world) admitRaw(ctx context.Context, namespace string, document map[string]any) error {
	p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workflow": document}}}
	p.SetGroupVersionKind(probeKind)
	p.SetNamespace(namespace)
	p.SetName(w.name("probe"))
	if err := w.admin.Create(ctx, p, client.DryRunAll); err != nil {
		return fmt.Errorf("admit raw document: %w", err)
	}
	return nil
}
