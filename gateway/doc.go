// Package gateway is the HTTP API that pods of the operator call, and senders of
// events: agents read and change the composition of their session, runners fetch
// prompts and report events, scripts report their result, and whoever holds the
// credential of an event source tells what happened elsewhere.
//
// It decides who may call what and in which order a request is checked; what
// changes mean is decided by the pure packages. The order is that of the
// caller's problems, so that a stranger learns nothing of an object's state:
//
//	size ▶ caller ▶ rate ▶ syntax ▶ state ▶ content ▶ write
//	 413   401 404   429    400    409 400   422      503
//
// The first three stand in front of every route (guard.go). The package keeps
// no state between requests but the rates of its callers: every effect is a
// write to the API server with the version that it was computed from, and is
// computed anew when somebody else was faster. Once a request is past the guard
// its writes are finished, whether or not the caller waits for the answer.
package gateway
