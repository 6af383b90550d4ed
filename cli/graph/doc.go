// Package graph draws workflow documents: as Mermaid, as DOT, as SVG and as text
// for a terminal.
//
// A Graph is what all four draw: the nodes and edges of a document, or of two
// documents with what one adds, changes and removes marked. It is made for
// drafts too, so it takes what it finds: a repeated id is a node of its own, and
// an edge to a node that is not there ends at a stand-in that says so.
//
// For SVG the package lays a graph out by itself. Edges that close a loop are
// turned round, every node gets the layer behind the last one that leads to it,
// edges over several layers and edges with a label get places in the layers they
// pass, the order within a layer is swept until few edges cross, and at last
// every place moves as near to its neighbours as the ones beside it allow.
//
// The same document gives the same bytes. The package knows nothing of whether a
// workflow is valid, or of files.
package graph
