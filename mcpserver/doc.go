// Package mcpserver offers the gateway's routes to agents as tools of the Model
// Context Protocol.
//
// There are two servers. Workbench has the tools of an agent that edits a
// composition; Assistant those of one that drafts library objects. Each tool
// makes one call and puts the answer into one text; what the gateway refuses
// becomes an error result that says so. Texts are made for models: stable,
// short, bounded, and telling what to do next.
//
// The package knows nothing of HTTP, of tokens, or of how its caller talks to
// the agent.
package mcpserver
