// Package jsonvalue reads, compares and writes JSON values held as Go trees
// of nil, bool, string, int64, float64, []any and map[string]any. It decides
// what makes two values the same: their canonical text after RFC 8785, in
// which every number is the nearest double, members stand in the order of
// their UTF-16 code units and nothing is escaped that need not be.
//
// Numbers also arrive as int, int32 and json.Number where a caller built a
// tree by hand, and are treated alike. A nil list or map inside a tree is an
// empty one.
//
// The package knows nothing of workflows, of schemas or of Kubernetes.
package jsonvalue
