package changeset

import "fmt"

// The codes of a rejection.
const (
	// CodeStale: the document is no longer at the base revision.
	CodeStale = "stale"
	// CodeMalformed: the change set, the document or an operation has the
	// wrong shape.
	CodeMalformed = "malformed"
	// CodeTargetMissing: what an operation changes is not there.
	CodeTargetMissing = "target-missing"
	// CodeDuplicateID: an id an operation brings in is taken.
	CodeDuplicateID = "duplicate-id"
	// CodeEdgeEndpointMissing: an edge would begin or end at no node.
	CodeEdgeEndpointMissing = "edge-endpoint-missing"
)

// Rejection says why a change set was not applied. It is a result, not a
// fault of the program.
type Rejection struct {
	// Code is one of the constants above.
	Code string `json:"code"`
	// OpIndex counts from 0; it is nil when no single operation is to blame.
	OpIndex *int `json:"opIndex,omitempty"`
	// Reason tells the author what to mend.
	Reason string `json:"reason"`
}

// String gives code, place and reason in one line.
func (r Rejection) String() string {
	if r.OpIndex == nil {
		return fmt.Sprintf("%s: %s", r.Code, r.Reason)
	}
	return fmt.Sprintf("%s at op %d: %s", r.Code, *r.OpIndex, r.Reason)
}

func (r Rejection) at(index int) *Rejection {
	r.OpIndex = &index
	return &r
}

func reject(code, format string, args ...any) *Rejection {
	return &Rejection{Code: code, Reason: fmt.Sprintf(format, args...)}
}
