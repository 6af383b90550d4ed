package workflow

import "strings"

// regionsOf is a document from lines like "a b c" (edges from a to b and from a to c) in which s is the start, names that
// begin with e are ends and all others are waits. A target with a ? has a condition, with a ! is the default, with a *
// is an error edge, for which its source is an action.
func regionsOf(lines ...string) string {
	var nodes, edges []string
	seen := map[string]bool{}
	failing := map[string]bool{}
	for _, line := range lines {
		if source, _, _ := strings.Cut(line, " "); strings.Contains(line, "*") {
			failing[source] = true
		}
	}
	for _, line := range lines {
		names := strings.Fields(line)
		for i, name := range names {
			target := strings.TrimRight(name, "?!*")
			if !seen[target] {
				seen[target] = true
				nodes = append(nodes, regionNode(target, failing[target]))
			}
			if i > 0 {
				edges = append(edges, regionEdge(names[0], target, strings.TrimPrefix(name, target)))
			}
		}
	}
	return flow(strings.Join(nodes, ", "), strings.Join(edges, ", "))
}

func regionNode(name string, fails bool) string {
	switch {
	case name == "s":
		return startNode
	case strings.HasPrefix(name, "e"):
		return "{id: " + name + ", type: end, name: E}"
	case fails:
		return "{id: " + name + ", type: action, name: A, config: {actionType: a, inputs: {}, outputs: []}}"
	}
	return "{id: " + name + ", type: wait, name: W, config: {duration: PT0S}}"
}

func regionEdge(source, target, mark string) string {
	members := map[string]string{"": "", "?": ", condition: 'true'", "!": ", isDefault: true", "*": ", isError: true"}[mark]
	return "{id: '" + source + "-" + target + mark + "', source: " + source + ", target: " + target + members + "}"
}

func parallelCases() map[string]validationCase {
	return map[string]validationCase{
		"plain edges among others": {
			bad:  regionsOf("s a?", "s b", "s c!", "a e", "b e", "c e"),
			want: "DUPLICATE_EDGE_PRIORITY(s) MIXED_FORK_EDGES!(s)",
			good: regionsOf("s a?", "s b!", "a e", "b e"),
		},
		"plain edges beside a default": {bad: regionsOf("s a", "s b!", "a e", "b e"), want: "MIXED_FORK_EDGES!(s)"},
		"a branch with an end of its own": {
			bad:  regionsOf("s a b", "a e1", "b e2"),
			want: "PARALLEL_BRANCH_REACHES_END!(s)",
			good: regionsOf("s a b", "a e", "b e"),
		},
		"a way round the join": {
			bad:  regionsOf("s a b", "a e1? j!", "b j", "j e"),
			want: "PARALLEL_BRANCH_REACHES_END!(s)",
			good: regionsOf("s a b", "a c? d!", "c d2", "d d2", "d2 j", "b j", "j e"),
		},
		"an error edge round the join": {
			bad:  regionsOf("s a b", "a j", "a e1*", "b j", "j e"),
			want: "PARALLEL_BRANCH_REACHES_END!(s)",
			good: regionsOf("s a b", "a m", "a m*", "m j", "b j", "j e"),
			rest: "DUPLICATE_EDGE(a-m*)",
		},
		"branches that never meet": {
			bad:  regionsOf("s f? e!", "f a b", "a a2", "a2 a", "b b2", "b2 b"),
			want: "NO_PATH_TO_END(f) NO_PATH_TO_END(a) NO_PATH_TO_END(b) NO_PATH_TO_END(a2) NO_PATH_TO_END(b2) FORK_WITHOUT_JOIN!(f)",
			good: regionsOf("s f? e!", "f a b", "a j", "b j", "j e2"),
		},
		"a branch back to the fork": {
			bad:  regionsOf("s f", "f a b", "a f? j!", "b j", "j e"),
			want: "PARALLEL_REGION_CYCLE!(f)",
			good: regionsOf("s f", "f a b", "a a2? a3!", "a2 a", "a3 j", "b j", "j f? e!"),
		},
		"a branch with two ways into the join": {
			bad:  regionsOf("s a b", "a c? j!", "c j", "b j", "j e"),
			want: "UNBALANCED_PARALLEL!(s)",
			good: regionsOf("s a b", "a c? m!", "c m", "m j", "b j", "j e"),
		},
		"paths that merge before the join": {
			bad:  regionsOf("s a b c", "a m", "b m", "m j", "c j", "j e"),
			want: "UNBALANCED_PARALLEL!(s) CROSSING_PARALLEL_REGIONS!(s)",
			good: regionsOf("s a b c", "a j", "b j", "c j", "j e"),
		},
		"an inner region that ends at the outer join": {
			bad:  regionsOf("s a b", "a c d", "c j", "d j", "b j", "j e"),
			want: "UNBALANCED_PARALLEL!(s) CROSSING_PARALLEL_REGIONS!(a)",
			good: regionsOf("s a b", "a c d", "c k", "d k", "k j", "b j", "j e"),
		},
		"an edge from outside into a branch": {
			bad:  regionsOf("s p? f!", "p b", "f a b", "a j", "b j", "j e"),
			want: "CROSSING_PARALLEL_REGIONS!(f)",
			good: regionsOf("s p? f!", "p f", "f a b", "a j", "b j", "j e"),
		},
		"an edge from outside into the join": {
			bad:  regionsOf("s p? f!", "p j", "f a b", "a j", "b j", "j e"),
			want: "CROSSING_PARALLEL_REGIONS!(f)",
			good: regionsOf("s p? f!", "p k", "f a b", "a j", "b j", "j k", "k e"),
		},
		"an edge from nowhere into the join": {
			bad:  regionsOf("s f", "f a b", "a j", "b j", "j e", "u j"),
			want: "NO_INCOMING_EDGES(u) UNREACHABLE_NODE(u) CROSSING_PARALLEL_REGIONS!(f)",
		},
		"an error edge of the fork into a branch": {
			bad:  regionsOf("s f", "f a b", "f a2*", "a a2", "a2 j", "b j", "j e"),
			want: "CROSSING_PARALLEL_REGIONS!(f)",
			good: regionsOf("s f", "f a b", "f x*", "x e1", "a a2", "a2 j", "b j", "j e"),
		},
		"an error edge of the fork into the join": {
			bad:  regionsOf("s f", "f a b", "f j*", "a j", "b j", "j e"),
			want: "CROSSING_PARALLEL_REGIONS!(f)",
		},
		"a loop from behind the join into a branch": {
			bad:  regionsOf("s a b", "a a2", "a2 j", "b j", "j a2? e!"),
			want: "PARALLEL_BRANCH_REACHES_END!(s)",
		},
		"both branches are edges to the join": {
			bad:  regionsOf("s j j", "j e"),
			want: "DUPLICATE_EDGE_ID!(s-j) DUPLICATE_EDGE(s-j)",
		},
		"a join that is a fork": {
			bad: regionsOf("s a b", "a j", "b j", "j c d", "c k", "d k", "k e"),
		},
		"an end that is a join": {
			bad: regionsOf("s a b c", "a e", "b e", "c e"),
		},
		"a loop within a branch": {
			bad: regionsOf("s f", "f a b", "a c", "c a? d!", "d j", "b j", "j e"),
		},
		"no verdict while edges dangle": {
			bad:  flow(startNode+", {id: a, type: end, name: A}, {id: b, type: end, name: B}", "{id: sa, source: s, target: a}, {id: sb, source: s, target: b}, {id: sc, source: s, target: c}"),
			want: "INVALID_EDGE_TARGET!(sc)",
		},
	}
}
