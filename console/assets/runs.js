// Runs: the list of them, and each as a timeline over its graph.

import { read, readActivation, write } from "./api.js";
import { badge, confirm, h, hidden, link, notice, s, time } from "./dom.js";
import { drawGraph, nodePanel } from "./graph.js";

export const runs = {
  kinds: ["run"],
  load: () => read("runs"),
  draw: (list) => [
    h("h1", null, "Runs"),
    list.length === 0 ? h("p", { class: "empty" }, "There is no run in this namespace.")
      : h("table", null,
        h("thead", null, h("tr", null, ["Run", "Of", "Phase", "At", "Started"].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", null, list.map((one) => h("tr", null,
          h("th", { scope: "row" }, link("runs", one.name, null, { "data-row": true, id: `row-${one.name}` })),
          h("td", null, one.of),
          h("td", null, badge(one.phase), one.outcome && ` ${one.outcome}`),
          h("td", null, one.at, one.waitsFor && h("small", null, ` waits for ${one.waitsFor}`)),
          h("td", null, time(one.created)))))),
  ],
};

export const run = {
  kinds: ["run", "task"],
  load: (name) => read("runs", name),
  keys: (data, tools) => ({
    "[": ["a step back", () => move(data, tools, position(data, tools) - 1)],
    "]": ["a step on", () => move(data, tools, position(data, tools) + 1)],
    l: ["live", () => move(data, tools, data.history.length)],
    ...(data.resumable ? { r: ["resume", () => resume(data, tools)] } : {}),
  }),
  draw: (data, tools) => {
    const at = position(data, tools);
    return [
      h("p", { class: "way" }, link("runs", undefined, "Runs")),
      h("h1", null, data.run, " ", badge(data.phase)),
      h("p", { class: "facts" }, data.git ? ["of ", h("code", null, data.git.path), " at ", h("code", null, data.git.commit.slice(0, 12))] : ["of ", link("compositions", data.composition)],
        data.outcome && ` · outcome ${data.outcome}`, data.waitsFor && ` · waits for ${data.waitsFor}`),
      hidden(data.hidden),
      data.failure && notice("error", h("strong", null, data.failure.code), " ", data.failure.node && `at ${data.failure.node}: `, data.failure.message),
      Object.values(data.tasks).map((name) => notice("decide", "It waits for an answer: ", link("tasks", name))),
      data.resumable && h("p", { class: "actions" }, h("button", { type: "button", id: "resume", "aria-keyshortcuts": "r", onclick: () => resume(data, tools) }, "Resume ", h("kbd", null, "r"))),
      control(data, tools, at),
      h("div", { class: "split" },
        h("div", null, data.picture ? drawGraph(data.picture, { tools, label: `Run ${data.run}, ${moment(data, at)}`, ...progress(data, at) })
          : h("p", { class: "empty" }, "There is no graph to draw: the timeline has it all.")),
        h("aside", { "aria-label": "About the run" },
          activationPanel(data, tools),
          data.picture && nodePanel(data.nodes, tools.state.selected))),
      h("h2", null, "Timeline"),
      timeline(data, tools, at),
    ];
  },
};

// position is how many closed activations of the history are shown; all of them, and
// those to come, as long as nobody moved.
function position(data, tools) {
  return Math.min(tools.state.at ?? data.history.length, data.history.length);
}

function move(data, tools, to) {
  const at = Math.min(Math.max(to, 0), data.history.length);
  tools.state.at = at === data.history.length ? undefined : at;
  tools.redraw();
  tools.say(moment(data, at));
}

function moment(data, at) {
  return at === data.history.length ? "as it is now" : `after step ${at} of ${data.history.length}`;
}

async function resume(data, tools) {
  if (await confirm("Resume this run?", "It takes the answers that were given until now.", "Resume")) {
    await tools.attempt(() => write(["runs", data.run, "resume"]), "Asked for the resume.");
  }
}

function control(data, tools, at) {
  const count = data.history.length;
  return h("div", { class: "control", role: "group", "aria-label": "Moment" },
    h("button", { type: "button", id: "back", "aria-keyshortcuts": "[", disabled: at === 0, onclick: () => move(data, tools, at - 1) }, "◀"),
    h("input", {
      type: "range", id: "moment", min: 0, max: count, value: at, "aria-label": "Step of the history", "aria-valuetext": moment(data, at),
      oninput: (event) => move(data, tools, Number(event.target.value)),
    }),
    h("button", { type: "button", id: "on", "aria-keyshortcuts": "]", disabled: at === count, onclick: () => move(data, tools, at + 1) }, "▶"),
    h("button", { type: "button", id: "now", "aria-keyshortcuts": "l", "aria-pressed": String(at === count), onclick: () => move(data, tools, count) }, "Live"),
    h("span", null, moment(data, at)));
}

// progress is what the graph says about a moment. Activations within calls count for
// the node that calls.
function progress(data, at) {
  const marks = {};
  const taken = new Set();
  const past = data.history.slice(0, at);
  for (const entry of past) {
    if (entry.activation.includes("/")) continue;
    const mark = (marks[entry.node] ??= { count: 0 });
    mark.count += 1;
    mark.state = entry.outcome === "Completed" ? "done" : "failed";
    if (entry.edge) taken.add(entry.edge);
  }
  for (const activation of openAt(data, at)) {
    const node = activation.split("/")[0].replace(/[#[].*$/, "");
    const mark = (marks[node] ??= { count: 0 });
    mark.state = "open";
    if (!activation.includes("/")) mark.count += 1;
  }
  return { marks, taken };
}

// openAt are the activations that had been entered by then and were not closed.
function openAt(data, at) {
  if (at === data.history.length) return data.open.map((one) => one.activation);
  const now = at === 0 ? "" : data.history[at - 1].completedOn;
  return [...data.history.slice(at), ...data.open].filter((one) => at > 0 && (one.enteredOn ?? "") <= now).map((one) => one.activation);
}

function timeline(data, tools, at) {
  const instants = [...data.history, ...data.open].flatMap((one) => [one.enteredOn, one.completedOn]).map((text) => Date.parse(text ?? "")).filter((n) => !Number.isNaN(n));
  const from = Math.min(...instants);
  const span = Math.max(Math.max(...instants) - from, 1);
  const bar = (one, isOpen) => {
    const x = ((Date.parse(one.enteredOn ?? "") - from) / span) * 1000;
    const to = isOpen ? 1000 : ((Date.parse(one.completedOn ?? "") - from) / span) * 1000;
    return Number.isNaN(x) || Number.isNaN(to) ? null : s("svg", { class: "bar", viewBox: "0 0 1010 10", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { x, y: 1, width: Math.max(to - x, 10), height: 8 }));
  };
  const row = (one, step, isOpen) => h("li", { class: [isOpen ? "open" : one.outcome === "Completed" ? "done" : "failed", step > at ? "later" : "", step === at ? "here" : ""].join(" ").trim() },
    h("button", {
      type: "button", "data-row": true, id: `entry-${isOpen ? `open-${one.activation}` : one.seq}`, "aria-current": step === at && !isOpen ? "step" : null,
      onclick: () => { tools.state.at = isOpen || step === data.history.length ? undefined : step; look(data, tools, one.activation); },
    }, h("span", { class: "what" }, one.activation), " ", h("span", { class: "how" }, isOpen ? "open" : one.outcome, one.error && ` ${one.error.code}`)),
    bar(one, isOpen), h("small", null, time(isOpen ? one.enteredOn : one.completedOn), one.by && ` by ${one.by}`));
  return h("ol", { class: "timeline" }, data.history.map((entry, i) => row(entry, i + 1, false)), data.open.map((one) => row(one, data.history.length, true)));
}

// look shows an activation with its values, which are read only then.
async function look(data, tools, activation) {
  tools.state.activation = { name: activation };
  tools.redraw();
  let found;
  try {
    found = await readActivation(data.run, activation);
  } catch (error) {
    found = { text: "", hidden: error.message };
  }
  if (tools.state.activation?.name !== activation) return;
  tools.state.activation = { name: activation, ...found };
  tools.redraw();
}

function activationPanel(data, tools) {
  const shown = tools.state.activation;
  if (!shown) return h("p", { class: "hint" }, "Choose a step of the timeline to see its values.");
  return h("section", { "aria-label": `Activation ${shown.name}` }, h("h2", null, "Activation ", h("code", null, shown.name)),
    hidden(shown.hidden), h("pre", { class: "json", tabindex: "0" }, shown.text ?? "…"));
}
