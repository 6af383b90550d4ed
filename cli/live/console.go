package live

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/cli/command"
	"github.com/apitomy/axiom-operator/console"
)

func (a *app) consoleCommand() *cobra.Command {
	cmd := command.Leaf("console [--port PORT] [-n NAMESPACE]", "Serve a page for compositions, questions and runs", `
Serves a page on this machine that shows the compositions of a namespace as graphs,
with what turns change drawn into them, the questions that wait for an answer as
forms, and runs as they go. Decisions and answers are written as you, with your
kubeconfig; nothing is installed in the cluster, and nothing listens there.

The page is reachable from this machine alone. The link that is printed lets one
browser in, once. Ctrl-C ends the page.`, `
  axiom console -n release
  axiom console --port 8600
  axiom console --as alice --as-group editors`)
	var port uint16
	cmd.Flags().Uint16Var(&port, "port", 0, "`PORT` of the loopback address; any free one without")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.access.restrict = onlyConsoleRequests
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.serveConsole(cmd.Context(), c, port)
	}
	return cmd
}

func (a *app) serveConsole(ctx context.Context, c *cluster, port uint16) error {
	listener, err := console.Listen(ctx, port)
	if err != nil {
		return err
	}
	d := &consoleDesk{cluster: c}
	server, err := console.New(listener, console.Options{Routes: d.routes(), Watch: d.watch})
	if err != nil {
		_ = listener.Close()
		return err
	}
	if err := a.Print(server.URL() + "\n"); err != nil {
		_ = listener.Close()
		return err
	}
	a.Complain("open that link in a browser; Ctrl-C ends the page")
	return server.Serve(ctx)
}

// A consoleDesk is what the page shows and does in a namespace, as one user.
type consoleDesk struct {
	*cluster
}

// routes are all that the page may ask for.
func (d *consoleDesk) routes() []console.Route {
	return []console.Route{
		{Method: http.MethodGet, Path: "place", Answer: d.place},
		{Method: http.MethodGet, Path: "compositions", Answer: d.listCompositions},
		{Method: http.MethodGet, Path: "compositions/{name}", Answer: d.showComposition},
		{Method: http.MethodGet, Path: "turns/{name}", Answer: d.showTurn},
		{Method: http.MethodPost, Path: "turns/{name}/accept", Answer: d.wishesTurn(patchAccept)},
		{Method: http.MethodPost, Path: "turns/{name}/reject", Answer: d.wishesTurn(patchReject)},
		{Method: http.MethodPost, Path: "turns/{name}/undo", Answer: d.wishesTurn(patchUndo)},
		{Method: http.MethodGet, Path: "tasks", Answer: d.listTasks},
		{Method: http.MethodGet, Path: "tasks/{name}", Answer: d.showTask},
		{Method: http.MethodPost, Path: "tasks/{name}/answer", Answer: d.answerTask},
		{Method: http.MethodGet, Path: "runs", Answer: d.listRuns},
		{Method: http.MethodGet, Path: "runs/{name}", Answer: d.showRun},
		{Method: http.MethodGet, Path: "runs/{name}/activation", Answer: d.showActivation},
		{Method: http.MethodPost, Path: "runs/{name}/resume", Answer: d.resumeRun},
	}
}

func (d *consoleDesk) place(context.Context, console.Request) (any, error) {
	return map[string]string{"namespace": d.namespace}, nil
}

// refused is an error of a request as the page hears of it: what the cluster refused
// keeps its code.
func refused(err error) error {
	if r := refusalOf(err); r != nil {
		return &console.RefusalError{Status: int(r.Code), Message: r.Message}
	}
	return explain(err)
}

// missing says that an object is not there.
func (d *consoleDesk) missing(what, name string) error {
	return &console.RefusalError{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no %s %s in namespace %s", what, name, d.namespace)}
}
