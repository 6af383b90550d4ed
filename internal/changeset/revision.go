package changeset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Document is a workflow document as its decoded JSON tree.
type Document = map[string]any

// ErrNoDocument reports a nil document: JSON null has no revision.
var ErrNoDocument = errors.New("document is not an object")

// Revision names the content of doc: "sha256:" and the lower-case hexadecimal
// digest of its canonical JSON, the position of each node left out. It is an
// error if doc is nil or holds what has no canonical JSON, such as a number
// beyond the doubles.
func Revision(doc Document) (string, error) {
	if doc == nil {
		return "", fmt.Errorf("hash document: %w", ErrNoDocument)
	}
	revision, err := ContentRevision(withoutPositions(doc))
	if err != nil {
		return "", fmt.Errorf("hash document: %w", err)
	}
	return revision, nil
}

// ContentRevision names the content of any JSON value in the way of Revision,
// with nothing left out.
func ContentRevision(v any) (string, error) {
	text, err := jsonvalue.Canonical(v)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(digest[:]), nil
}

// withoutPositions returns doc without the positions of its nodes. It shares
// everything else with doc and is for reading only.
func withoutPositions(doc Document) Document {
	nodes, ok := doc[membersNodes].([]any)
	if !ok {
		return doc
	}
	bare := make([]any, len(nodes))
	for i, node := range nodes {
		bare[i] = withoutPosition(node)
	}
	doc = maps.Clone(doc)
	doc[membersNodes] = bare
	return doc
}

// withoutPosition returns node, which may be any value, without its position.
// It shares everything else with node and is for reading only.
func withoutPosition(node any) any {
	object, ok := node.(map[string]any)
	if !ok {
		return node
	}
	if _, placed := object[memberPosition]; !placed {
		return node
	}
	object = maps.Clone(object)
	delete(object, memberPosition)
	return object
}

// placedLike returns a shallow copy of node that stands where other stands,
// or nowhere if other has no position.
func placedLike(node, other map[string]any) map[string]any {
	node = maps.Clone(node)
	delete(node, memberPosition)
	if position, placed := other[memberPosition]; placed {
		node[memberPosition] = position
	}
	return node
}
