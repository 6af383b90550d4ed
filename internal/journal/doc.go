// Package journal keeps what was said and done in an agent session.
//
// An event is one line of JSON. Lines are numbered through the whole session,
// from 1, and stored in chunks of limited size; a chunk knows the numbers of
// its first and last line, and the position up to which the runner's events
// were taken in. That position makes a repeated batch a no-op and a gap
// visible:
//
//	batch of the runner ─▶ Accept (what is new?) ─▶ Append (which chunks change?) ─▶ written, oldest first
//
// Each chunk that changes carries the position of its last line, so that a
// writer that dies between two chunks has stored a prefix of the batch, and the
// runner's repetition brings the rest.
//
// Reading is forgiving: lines that are no events are passed over. The package
// knows nothing of where chunks are kept; that is the business of its
// subpackage store.
package journal
