// Package action judges action types and tools: whether a draft of one may
// run, and whether the values that enter and leave an action keep its contract.
//
// Problems lists what is wrong with an item in a fixed order, rule by rule and
// then by place, so that the same item always reads the same. Rules that need
// to know what else exists ask the Surroundings they are given; without an
// answer they are silent.
//
// A contract is checked, never enforced: a value that could be converted to its
// declared type passes and stays as it is.
//
// The package knows nothing of pods, of Kubernetes or of how an item is stored.
package action
