// Drafts: the list of them, and each as a graph with its turns.

import { read } from "./api.js";
import { badge, h, link, notice, time } from "./dom.js";
import { drawGraph, nodePanel } from "./graph.js";

const kinds = ["composition", "turn"];

export const compositions = {
  kinds,
  load: () => read("compositions"),
  draw: (list) => [
    h("h1", null, "Compositions"),
    list.length === 0 ? h("p", { class: "empty" }, "There is no composition in this namespace.")
      : h("ul", { class: "cards" }, list.map((one) => h("li", { class: "card" },
        h("h2", null, link("compositions", one.name, null, { "data-row": true, id: `row-${one.name}` })),
        h("p", { class: "goal" }, one.goal),
        h("p", { class: "facts" }, badge(validity(one)), one.problems.length > 0 && ` ${count(one.problems.length, "problem")}`,
          one.currentTurn && [" · an agent works: ", link("turns", one.currentTurn)]),
        one.pendingTurn && notice("decide", link("turns", one.pendingTurn, `${one.pendingTurn} waits for your decision`))))),
  ],
};

export const composition = {
  kinds,
  load: (name) => read("compositions", name),
  draw: (data, tools) => [
    h("p", { class: "way" }, link("compositions", undefined, "Compositions")),
    h("h1", null, data.name, " ", badge(validity(data))),
    h("p", { class: "goal" }, data.goal),
    data.pendingTurn && notice("decide", h("strong", null, "A turn waits for a decision: "), link("turns", data.pendingTurn, `review ${data.pendingTurn}`)),
    data.currentTurn && notice("works", "An agent works on this draft: ", link("turns", data.currentTurn)),
    h("div", { class: "split" },
      drawGraph(data.picture, { tools, label: `Workflow of ${data.name}` }),
      h("aside", { "aria-label": "About the draft" },
        nodePanel(data.nodes, tools.state.selected),
        problems(data.problems),
        h("h2", null, "Turns"),
        data.turns.length === 0 ? h("p", { class: "empty" }, "No agent was asked yet.")
          : h("ol", { class: "rows" }, data.turns.map((one) => h("li", null,
            link("turns", one.turn, null, { "data-row": true, id: `row-${one.turn}` }), " ", badge(one.state), h("br"),
            h("span", { class: "message" }, one.message), h("br"), h("small", null, time(one.created))))))),
  ],
};

function validity(one) {
  return { True: "valid", False: "invalid" }[one.valid] ?? "not checked yet";
}

export function problems(list) {
  if (!list || list.length === 0) return null;
  return [h("h2", null, "Problems"), h("ul", { class: "problems" }, list.map((problem) => h("li", { class: problem.severity },
    h("strong", null, problem.severity), ": ", problem.path && [h("code", null, problem.path), ": "], problem.message, " ", h("small", null, problem.code))))];
}

function count(n, thing) {
  return n === 1 ? `1 ${thing}` : `${n} ${thing}s`;
}
