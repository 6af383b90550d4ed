// Package console is the door of a local web page: it decides who gets in, which
// requests there are, and how a browser hears of changes. What the requests do comes
// from outside, as a list of routes; nothing that is not on it is reachable.
//
// The door is on a loopback address. A link with a token that works once is
// exchanged for a cookie, which only the page itself can send. A request that names
// another host, that comes from another page, or that would write without saying
// where it comes from, is refused before it is looked at: a name that somebody points
// at the loopback address, or a page that is open beside, gets nothing.
//
// Pages, scripts and styles are part of the program. The package knows nothing of
// clusters, of workflows, or of who may do what.
package console
