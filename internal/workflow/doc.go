// Package workflow holds the model of workflow documents and decides whether a document may run.
//
// A document is a JSON object held as a Go tree. The types of this package are views of such a tree: they read it with
// the defaults of the format and never write one into it, so that whatever the package does not know survives.
//
// Validate works in phases, each over what the ones before left standing: budgets, the shape of every member, the
// structure of the graph, how it hangs together, the edges, the meaning of each node, and at last the parallel regions.
// The order of its problems depends on the document alone.
//
// A parallel region begins at a fork, where a run splits, and ends at a join, where it waits for all of its branches.
// The candidate for the join is the nearest node that no branch can avoid on its way to an end. It is accepted after one
// walk over the region that steps over regions accepted before; only a fork that is not accepted so is judged the slow
// way, branch by branch.
//
// The package knows nothing of expressions beyond their text (a checker is handed in), of runs, or of Kubernetes.
package workflow
