// Package v1alpha1 decides which writes of the kinds of axiom.apitomy.io the
// API server admits, and stamps who made them.
//
// The schemas judge shapes; the doors here judge what needs another object, the
// caller's name, a parser or the pure packages that the controllers use too.
// Each kind has a pair of doors at most. The mutating one never refuses but for
// an edit that was based on old content; it writes annotations, and in human
// tasks the stamp of an answer, by a patch of exactly those members, so that
// documents pass through byte for byte. The validating one judges what will be
// stored. All of them fail closed, read live and change nothing elsewhere: a
// dry run gives the verdict of the real request.
//
// An update that leaves the spec alone is not judged by rules about the spec,
// so that an object stored under older rules can still be labelled, released by
// its finalizers and deleted.
//
// The package knows nothing of controllers, runs or agents at work.
package v1alpha1
