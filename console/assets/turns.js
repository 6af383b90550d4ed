// A turn: what an agent was asked, what it changes, and what a person decides.

import { read, write } from "./api.js";
import { badge, confirm, h, hidden, link, notice } from "./dom.js";
import { drawGraph, nodePanel } from "./graph.js";
import { problems } from "./compositions.js";

const decisions = {
  accept: { key: "a", label: "Accept", title: "Accept these changes?", text: "All of them are applied to the draft at once.", done: "Accepted.", fits: (t) => t.state === "AwaitingResolution" },
  reject: { key: "x", label: "Reject", title: "Reject these changes?", text: "The draft stays as it is. The turn is over.", done: "Rejected.", fits: (t) => t.state === "AwaitingResolution" },
  undo: { key: "u", label: "Undo", title: "Take this turn back?", text: "The draft gets back what it had before. What was edited since is skipped.", done: "Asked for the undo.", fits: (t) => t.undoable },
};

async function decide(name, data, tools) {
  const { title, text, label, done } = decisions[name];
  if (await confirm(title, text, label)) await tools.attempt(() => write(["turns", data.turn, name]), done);
}

export const turn = {
  kinds: ["turn", "composition"],
  load: (name) => read("turns", name),
  keys: (data, tools) => Object.fromEntries(Object.entries(decisions).filter(([, d]) => d.fits(data))
    .map(([name, d]) => [d.key, [d.label.toLowerCase(), () => decide(name, data, tools)]])),
  draw: (data, tools) => [
    h("p", { class: "way" }, link("compositions", undefined, "Compositions"), data.composition && [" / ", link("compositions", data.composition)]),
    h("h1", null, data.turn, " ", badge(data.state)),
    data.detail && h("p", null, data.detail),
    hidden(data.hidden),
    data.retry && notice("works", "The agent was asked again: ", link("turns", data.retry)),
    h("div", { class: "actions", role: "group", "aria-label": "Decide" }, Object.entries(decisions).filter(([, d]) => d.fits(data)).map(([name, d]) =>
      h("button", { type: "button", id: `decide-${name}`, class: name === "accept" ? "primary" : "", "aria-keyshortcuts": d.key, onclick: () => decide(name, data, tools) }, d.label, " ", h("kbd", null, d.key)))),
    h("div", { class: "split" },
      h("div", null,
        drawGraph(data.picture, { tools, label: `Changes of ${data.turn}` }),
        data.changes && h("section", { "aria-label": "Changes in words" }, h("h2", null, "Changes"), changesOf(data.changes))),
      h("aside", { "aria-label": "About the turn" },
        nodePanel(data.nodes, tools.state.selected),
        h("h2", null, "Asked"), h("p", { class: "speech" }, data.message),
        data.reply && [h("h2", null, "Answered"), h("p", { class: "speech" }, data.reply)],
        undone(data.undo),
        problems(data.problems),
        data.notices.length > 0 && [h("h2", null, "Notices"), h("ul", null, data.notices.map((one) => h("li", null, one)))])),
  ],
};

function changesOf(text) {
  const tone = { "+": "added", "-": "removed", "~": "changed" };
  return h("pre", { class: "changes", tabindex: "0" }, text.trimEnd().split("\n").map((line) => h("span", { class: tone[line.trimStart()[0]] ?? "" }, `${line}\n`)));
}

function undone(report) {
  if (!report) return null;
  const lines = [["restored", report.restored], ["removed", report.removed], ["skipped", report.skipped], ["left to you", report.forClient]];
  return [h("h2", null, "Undo"), report.message && notice("warning", "Nothing was taken back: ", report.message), h("ul", null,
    report.workflowRestored && h("li", null, "restored: workflow"),
    lines.flatMap(([does, items]) => items.map((item) => h("li", null, `${does}: ${item}`))))];
}
