package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// measureAdmission creates compositions, without keeping them, each after a raw
// write.
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
		document := chainOf(askNode, size.nodes-2)
		var samples paired
		for i := range w.pick(40, 8) {
			began := time.Now()
			if err := w.writeRaw(ctx, probe, i); err != nil {
				return nil, err
			}
			limit := time.Since(began)
			began = time.Now()
			if err := w.person.Create(ctx, w.composition(w.name("draft"), namespace, document), client.DryRunAll); err != nil {
				return nil, fmt.Errorf("admit composition: %w", err)
			}
			samples.add(time.Since(began), limit)
		}
		figures = append(figures, figure{
			measure: fmt.Sprintf("admission of a workflow of %d nodes, a dry run", size.nodes), goal: fmt.Sprintf("≤ %.0f×", size.limit),
			limit: size.limit, ratio: samples.ratio(50),
			value: fmt.Sprintf("%s (%s)", times(samples.ratio(50)), ms(median(samples.measured))), raw: ms(median(samples.raw)),
		})
	}
	return figures, nil
}
