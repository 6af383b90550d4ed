// Package controllers drives the project's kinds: each reconciler gathers what
// it needs, lets a pure function decide, applies the decision and reports it
// in one status update.
//
// A status update is the commit point of a step and always carries the
// resource version it was computed from. Children have deterministic names, so
// that a controller that died anywhere is replaced by one that finds what it
// left.
package controllers
