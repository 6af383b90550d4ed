// Package mcpserver offers the gateway's routes to agents as tools of the Model
// Context Protocol.
//
// The server is called workbench. Each tool makes one call and puts the answer
// into one text; what the gateway refuses becomes an error result that says so.
// Texts are made for models: stable, short, and telling what to do next.
//
// The package knows nothing of HTTP, of tokens, or of how its caller talks to
// the agent.
package mcpserver
