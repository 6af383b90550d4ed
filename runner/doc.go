// Package runner drives one agent of one session: it is the first process of
// an agent pod, speaks the Agent Client Protocol with the program beside it,
// and brings what that says to the gateway.
//
//	gateway ── prompts ──▶ runner ── session/prompt ──▶ agent
//	gateway ◀── events ─── runner ◀── session/update ── agent ── MCP ──▶ gateway
//
// One prompt is worked on at a time. It is acknowledged, given to the agent,
// and ends in exactly one result, sent after every event that came before it:
//
//	Completed    the agent ended its turn
//	Interrupted  the agent stopped because it was asked to
//	Failed       anything else: another stop reason, an error, too much time, a
//	             tool that is not for it, the end of the program
//
// There is no result when the pod itself is told to end: whoever queued the
// prompt then sees a lost pod and may queue it again. For the same reason no
// event says then that the turn or the session ended.
//
// The agent offers its tools itself; the runner lends it neither files nor
// terminals, and answers its permission requests by policy. What an agent
// reports is held back from the journal only where it would show a secret.
//
// The package knows nothing of Kubernetes: its world is the gateway's routes
// and one program.
package runner
