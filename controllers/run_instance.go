package controllers

import (
	"encoding/json"
	"fmt"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/engine"
)

// Bounds of texts that are in a status for people only. The engine never reads
// them back; the schema would refuse longer ones.
const (
	maxRunTitle     = 1024
	maxRunCondition = 1024
	maxRunName      = 1024
)

// runInstance reads the engine's state from a status; values that are kept
// outside stay outside. The state shares nothing with the status.
func runInstance(status *api.RunInstance) (engine.Instance, error) {
	var in engine.Instance
	if err := runRecode(status, &in); err != nil {
		return in, fmt.Errorf("read instance: %w", err)
	}
	if in.Context == nil {
		in.Context = engine.Values{}
	}
	return in, nil
}

// statusInstance writes the engine's state for a status.
func statusInstance(in engine.Instance, shelf *runShelf) (*api.RunInstance, error) {
	inputs := make([]engine.Values, len(in.ActiveBranches))
	branches := make([]engine.ActiveBranch, len(in.ActiveBranches))
	for i, branch := range in.ActiveBranches {
		inputs[i], branch.Input = branch.Input, nil
		branch.Title = truncate(branch.Title, maxRunTitle)
		branch.Condition = truncate(branch.Condition, maxRunCondition)
		branches[i] = branch
	}
	values, refs := in.Context, in.ContextRefs
	in.ActiveBranches, in.Context, in.ContextRefs = branches, nil, nil

	out := &api.RunInstance{}
	if err := runRecode(in, out); err != nil {
		return nil, fmt.Errorf("write instance: %w", err)
	}
	var err error
	if out.Context, out.ContextRefs, err = shelf.placeContext(values, refs); err != nil {
		return nil, fmt.Errorf("write instance: %w", err)
	}
	for i := range out.ActiveBranches {
		branch := &out.ActiveBranches[i]
		if branch.Input, branch.InputRef, err = shelf.placeValues(inputs[i]); err != nil {
			return nil, fmt.Errorf("write input of %s: %w", branch.Activation, err)
		}
	}
	return out, nil
}

// statusEntry writes a closed activation for a status.
func statusEntry(entry engine.Entry, shelf *runShelf) (api.HistoryEntry, error) {
	input, output := entry.Input, entry.Output
	entry.Input, entry.Output = nil, nil
	entry.Title = truncate(entry.Title, maxRunTitle)
	entry.Condition = truncate(entry.Condition, maxRunCondition)
	entry.Name = truncate(entry.Name, maxRunName)
	entry.By = truncate(entry.By, maxRunName)

	var out api.HistoryEntry
	if err := runRecode(entry, &out); err != nil {
		return out, fmt.Errorf("write history of %s: %w", entry.Activation, err)
	}
	var err error
	if out.Input, out.InputRef, err = shelf.placeValues(input); err != nil {
		return out, fmt.Errorf("write input of %s: %w", entry.Activation, err)
	}
	if out.Output, out.OutputRef, err = shelf.placeValues(output); err != nil {
		return out, fmt.Errorf("write output of %s: %w", entry.Activation, err)
	}
	return out, nil
}

// runRecode turns one type into another that has the same JSON.
func runRecode(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
