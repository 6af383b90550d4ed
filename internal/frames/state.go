package frames

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/apitomy/axiom-operator/internal/engine"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A State is a run between two steps. It goes through JSON without loss.
type State struct {
	// Root is the instance of the workflow that the run began with.
	Root engine.Instance `json:"root"`
	// Frames are the live calls in the order they were opened.
	Frames []Frame `json:"frames,omitempty"`
	// Calls are the open calls for each item of a list.
	Calls []CallState `json:"calls,omitempty"`
	// Opened counts the frames that a component node opened so far, by the address of its frame and its id. What it counts
	// within a frame is forgotten with the frame, whose address does not come again.
	Opened map[string]int `json:"opened,omitempty"`
	// Entries counts the history entries of the run.
	Entries int `json:"entries"`
}

// A Frame is a live call of a component.
type Frame struct {
	// Path is the address of the frame, such as Implementation[2]/observe[1].
	Path string `json:"path"`
	// Call is the address of the activation that made the call.
	Call      string `json:"call"`
	Component string `json:"component"`
	// Iteration of a repeat, or Item of a list, from 1. Else it is 0.
	Iteration int `json:"iteration,omitempty"`
	Item      int `json:"item,omitempty"`
	// Instance knows activations by their addresses within the frame.
	Instance engine.Instance `json:"instance"`
}

// A CallState is how far a call for each item of a list has come.
type CallState struct {
	// Call is the address of the activation that makes it.
	Call string `json:"call"`
	// Items are those of the list when the node was entered, Results those of the calls made so far.
	Items   []any `json:"items,omitempty"`
	Results []any `json:"results,omitempty"`
}

// UnmarshalJSON keeps integers exact, which the decoder of the standard library would make doubles.
func (c *CallState) UnmarshalJSON(data []byte) error {
	var raw struct {
		Call    string          `json:"call"`
		Items   json.RawMessage `json:"items"`
		Results json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	items, err := decodeList(raw.Items)
	if err != nil {
		return fmt.Errorf("decode items: %w", err)
	}
	results, err := decodeList(raw.Results)
	if err != nil {
		return fmt.Errorf("decode results: %w", err)
	}
	*c = CallState{Call: raw.Call, Items: items, Results: results}
	return nil
}

func decodeList(data json.RawMessage) ([]any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	v, err := jsonvalue.Decode(data)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, errNoList
	}
	return list, nil
}

// copied is a state whose lists and maps may be changed. Instances in them are replaced, never changed.
func (s State) copied() State {
	s.Frames, s.Calls, s.Opened = slices.Clone(s.Frames), slices.Clone(s.Calls), maps.Clone(s.Opened)
	if s.Opened == nil {
		s.Opened = map[string]int{}
	}
	return s
}

// compact is a state in which what is empty is absent, as JSON has it.
func (s State) compact() State {
	if len(s.Frames) == 0 {
		s.Frames = nil
	}
	if len(s.Calls) == 0 {
		s.Calls = nil
	}
	if len(s.Opened) == 0 {
		s.Opened = nil
	}
	return s
}

func (s State) frameAt(path string) int {
	return slices.IndexFunc(s.Frames, func(f Frame) bool { return f.Path == path })
}

func (s State) callAt(activation string) int {
	return slices.IndexFunc(s.Calls, func(c CallState) bool { return c.Call == activation })
}

// A Step is what came of a call.
type Step struct {
	// State is the one to go on with, also if the step was not applied.
	State State
	// Applied tells whether anything happened; if not, Reason says why.
	Applied bool
	Reason  engine.Reason
	// Closed are the history entries written, in order.
	Closed []Entry
	// Opened are the addresses of the activations that were parked and still are, but for those that call.
	Opened []string
	// Outputs are those of the run, and Outcome the word that the end node left which it reached, once it completed.
	Outputs map[string]any
	Outcome string
}

// An Entry is the history of one activation, written when it closes, or of a frame, written when it opens.
type Entry struct {
	// Entry has the full address of the activation, and numbers entries over all frames.
	engine.Entry
	// Call is that of a frame that opened; the activation is then the one that calls, which is still open.
	Call *CallEntry `json:"call,omitempty"`
}

// A CallEntry tells of a frame that opened.
type CallEntry struct {
	// Path is the address of the frame.
	Path       string `json:"path"`
	Component  string `json:"component"`
	SourcePath string `json:"sourcePath"`
	SourceHash string `json:"sourceHash"`
	Iteration  int    `json:"iteration,omitempty"`
	Item       int    `json:"item,omitempty"`
}

// A ParkedActivation is an open activation for somebody to serve. Its address is the full one.
type ParkedActivation struct {
	engine.ParkedActivation
	// Frame is the address of its frame and Component the name of what the frame calls; both are empty for the root.
	Frame     string `json:"frame,omitempty"`
	Component string `json:"component,omitempty"`
}
