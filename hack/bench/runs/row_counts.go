package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// measureCounts counts what the operator does for chains of 50 nodes that are
// completed one after the other.
func measureCounts(ctx context.Context, w *world) ([]figure, error) {
	const nodes = 50
	p, err := w.play(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var figures []figure
	for _, kind := range []chainKind{byAnswers, byEvents} {
		comp, err := p.prepare(ctx, kind, nodes)
		if err != nil {
			return nil, err
		}
		before, _, err := w.operator.quiet(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.chain(ctx, kind, comp, nodes); err != nil {
			return nil, err
		}
		after, _, err := w.operator.quiet(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, countFigures(kind.short+": ", after.since(before), nodes)...)
	}
	return figures, nil
}

func countFigures(what string, stats managerStats, nodes int) []figure {
	// The start is a step, too.
	steps := float64(nodes + 1)
	writes := float64(stats.Requests["PUT workflowruns/status"]) / steps
	events := float64(stats.Requests["POST events"]+stats.Requests["PATCH events"]) / float64(nodes)
	reconciles := float64(stats.Reconciles["workflowrun"]) / float64(nodes)
	return []figure{
		{measure: what + "writes of the run per committed step", goal: "≤ 1.05", limit: 1.05, ratio: writes, value: fmt.Sprintf("%.2f", writes)},
		{measure: what + "Events per node", goal: "≤ 0.2", limit: 0.2, ratio: events, value: fmt.Sprintf("%.2f", events)},
		{measure: what + "reconciles of the run per node", goal: "≤ 1.2", limit: 1.2, ratio: reconciles, value: fmt.Sprintf("%.2f", reconciles)},
		{measure: what + "all requests of the operator per node", goal: "", noGoal: true, value: listed(stats.Requests, nodes)},
		{measure: what + "all reconciles per node", goal: "", noGoal: true, value: listed(stats.Reconciles, nodes)},
	}
}

// listed names counts per node, in order of name.
func listed(counts map[string]int, nodes int) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s %.2f", key, float64(counts[key])/float64(nodes)))
	}
	return strings.Join(texts, ", ")
}
