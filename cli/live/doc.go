// Package live holds the commands that speak with a cluster: they ask agents to
// change compositions, follow their work, carry out what people decide on it, read
// what was said, and start, resume, cancel and read runs.
//
// All of that goes through the API server with the rights of whoever calls, and
// nothing is decided here: admission says what is allowed, and the operator what
// comes of it. What has to be waited for is watched. Progress is told on standard
// error, so that standard output has the answer alone.
package live
