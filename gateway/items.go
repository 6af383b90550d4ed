package gateway

import (
	"encoding/json"
	"net/http"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/internal/changeset"
	"github.com/apitomy/axiom-operator/internal/item"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/turns"
)

const (
	// maxProblems bounds the problems that are told of one item.
	maxProblems = 64
	// maxItemName is what any draft takes of a name, in bytes.
	maxItemName = 253
)

// workflowProblems is what is wrong with a workflow document.
func (s *Server) workflowProblems(doc changeset.Document) []openapi.ItemProblem {
	return shownProblems(item.WorkflowProblems(doc, s.expressions))
}

// shownProblems are the worst of an item's problems.
func shownProblems(found []api.Problem) []openapi.ItemProblem {
	problems := make([]openapi.ItemProblem, 0, min(len(found), maxProblems))
	for _, p := range found[:min(len(found), maxProblems)] {
		problems = append(problems, openapi.ItemProblem{
			Severity: openapi.Severity(p.Severity), Path: p.Path, Code: p.Code, Message: p.Message,
		})
	}
	return problems
}

func shownItem(view item.View) openapi.Item {
	return openapi.Item{
		Type: openapi.ItemType(view.Type), Name: view.Name, ContentRevision: view.Revision,
		Valid: view.IsValid(), Problems: shownProblems(view.Problems),
	}
}

func shownContent(content item.Content) openapi.Item {
	return shownItem(item.View{Type: content.Type, Name: content.Name, Revision: content.Revision, Problems: content.Problems})
}

// itemChange is what somebody wants to become of an item.
type itemChange struct {
	item turns.Item
	// content that it shall have; nil when it shall go.
	content map[string]any
	// base is the revision that the caller knows the item by, nil when the caller
	// does not say.
	base *string
}

func readItemChange(body *openapi.ItemChange) (itemChange, error) {
	named, content, err := readContent(body.Type, body.Content)
	return itemChange{item: named, content: content, base: body.BaseRevision}, err
}

// readContent reads a content and the name that it gives its item.
func readContent(kind openapi.ItemType, text json.RawMessage) (turns.Item, map[string]any, error) {
	if err := checkItemType(kind); err != nil {
		return turns.Item{}, nil, err
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return turns.Item{}, nil, invalid("The content cannot be read: %s", err)
	}
	content, isObject := value.(map[string]any)
	if !isObject {
		return turns.Item{}, nil, invalid("The content is not an object")
	}
	name := item.NameOf(content)
	switch {
	case name == "":
		return turns.Item{}, nil, invalid("The content has no name: name is required, and is the item's")
	case len(name) > maxItemName:
		return turns.Item{}, nil, invalid("The name is longer than %d bytes", maxItemName)
	}
	return turns.Item{Type: api.ItemType(kind), Name: name}, content, nil
}

func checkItemType(kind openapi.ItemType) error {
	if !kind.Valid() {
		return invalid("Unknown type of item; use workflow, action-type or tool")
	}
	return nil
}

// jsonText is an answer that is JSON already.
type jsonText []byte

func (t jsonText) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(t)
	return err
}

// VisitGetAgentItemResponse implements the generated interface.
func (t jsonText) VisitGetAgentItemResponse(w http.ResponseWriter) error { return t.write(w) }

// VisitGetItemResponse implements the generated interface.
func (t jsonText) VisitGetItemResponse(w http.ResponseWriter) error { return t.write(w) }

// VisitGetLibraryResponse implements the generated interface.
func (t jsonText) VisitGetLibraryResponse(w http.ResponseWriter) error { return t.write(w) }

// VisitGetStreamEventResponse implements the generated interface.
func (t jsonText) VisitGetStreamEventResponse(w http.ResponseWriter) error { return t.write(w) }
