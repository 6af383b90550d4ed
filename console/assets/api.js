// Speaks with the program behind the page.

export class Refused extends Error {
  constructor(status, message, problems) {
    super(message);
    this.status = status;
    this.problems = problems ?? [];
  }
}

async function ask(path, options) {
  const response = await fetch(`/api/${path}`, options);
  if (response.status === 401) throw new Refused(401, "This page is not let in any more: start the console again and open its link.");
  const body = await response.json().catch(() => ({ error: `the program answered ${response.status}` }));
  if (!response.ok) throw new Refused(response.status, body.error, body.problems);
  return body;
}

export function read(...path) {
  return ask(path.map(encodeURIComponent).join("/"));
}

export function readActivation(run, activation) {
  return ask(`runs/${encodeURIComponent(run)}/activation?of=${encodeURIComponent(activation)}`);
}

export function write(path, body = {}) {
  return ask(path.map(encodeURIComponent).join("/"), {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}

// follow tells of changes for as long as the page can be seen: browsers allow few
// connections, and a hidden page needs none. It says first that all may have changed.
export function follow({ changed, state }) {
  let source = null;
  const blind = new Map();
  const told = () => state(blind.size ? `not live: ${[...blind.keys()].sort().join(", ")}` : "live", [...blind.values()].join("\n"));
  const open = () => {
    source = new EventSource("/api/events");
    source.onopen = () => { blind.clear(); told(); };
    source.onerror = () => state("reconnecting", "");
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.blind) { blind.set(event.kind, event.blind); told(); return; }
      changed(event.kind, event.name);
    };
  };
  const turn = () => {
    if (document.hidden) { source?.close(); source = null; state("paused", ""); } else if (!source) open();
  };
  document.addEventListener("visibilitychange", turn);
  turn();
}
