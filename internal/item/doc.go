// Package item looks at the items of a draft, which are its workflow, its
// action types and its tools: what each is called, which revision its content
// has, and what is wrong with it.
//
// The gateway, which shows items to agents, and the controllers, which keep
// their status, use the same functions, so that an agent and a person read the
// same. Content that somebody wants an item to have is judged before it is
// kept, by the same rules.
//
// An item may be invalid and is an item all the same: only content that the API
// cannot hold is refused. The package knows nothing of turns, of who wrote what,
// or of where items are kept.
package item
