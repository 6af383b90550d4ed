// Draws a graph that the program laid out. Everything in it can be reached with the
// keyboard: one node is in the order of Tab, arrows lead to its neighbours.

import { h, s } from "./dom.js";

const MARGIN = 20;
const signs = { added: "+", changed: "~", removed: "−", done: "✓", open: "▶", failed: "✕" };
const words = { done: "done", open: "open", failed: "failed" };

// draw makes the figure of a picture. `marks` are what is to be said about nodes
// beyond the picture, by id: {state, count}; `taken` are the ids of edges to set off;
// `select` hears of the node that somebody chose.
export function drawGraph(picture, { tools, label, marks = {}, taken = new Set(), select }) {
  if (!picture) return h("p", { class: "empty" }, "There is no workflow to draw.");
  const { state } = tools;
  state.zoom ??= 1;
  const image = s("svg", {
    class: `graph${picture.compares ? " compares" : ""}${Object.keys(marks).length ? " marked" : ""}`, role: "group", "aria-label": label,
    viewBox: `${-MARGIN} ${-MARGIN} ${picture.width + 2 * MARGIN} ${picture.height + 2 * MARGIN}`,
    onkeydown: (event) => steer(event, picture, tools, select),
  },
  picture.edges.map((edge) => edgeOf(edge, taken)),
  picture.edges.filter((edge) => edge.caption).map(captionOf),
  picture.nodes.map((node, i) => nodeOf(node, i, { picture, marks, tools, select })));
  const resize = () => {
    image.setAttribute("width", (picture.width + 2 * MARGIN) * state.zoom);
    image.setAttribute("height", (picture.height + 2 * MARGIN) * state.zoom);
  };
  resize();
  const zoom = (by) => () => { state.zoom = by === 0 ? 1 : Math.min(Math.max(state.zoom * by, 0.3), 3); resize(); };
  return h("figure", { class: "drawing" },
    h("figcaption", null, legend(picture, marks),
      h("span", { class: "zoom" },
        h("button", { type: "button", "aria-label": "Smaller", onclick: zoom(1 / 1.25) }, "−"),
        h("button", { type: "button", "aria-label": "Natural size", onclick: zoom(0) }, "1:1"),
        h("button", { type: "button", "aria-label": "Larger", onclick: zoom(1.25) }, "+"))),
    h("div", { class: "canvas" }, image));
}

function legend(picture, marks) {
  if (picture.compares) {
    return h("span", { class: "legend" }, ["added", "changed", "removed"].map((change) => h("span", { class: `key ${change}` }, `${signs[change]} ${change}`)));
  }
  if (Object.keys(marks).length) {
    return h("span", { class: "legend" }, ["done", "open", "failed"].map((mark) => h("span", { class: `key ${mark}` }, `${signs[mark]} ${words[mark]}`)));
  }
  return h("span", { class: "legend" }, `${picture.nodes.length} nodes, ${picture.edges.length} edges`);
}

function edgeOf(edge, taken) {
  return s("g", { class: ["edge", edge.class, edge.change ?? "", taken.has(edge.id) ? "taken" : ""].join(" ").trim(), "data-edge": edge.id },
    s("title", null, edge.says), s("path", { d: edge.line }), s("path", { class: "head", d: edge.head }));
}

function captionOf(edge) {
  return s("g", { class: `caption ${edge.change ?? ""}`.trim(), "aria-hidden": "true" },
    s("title", null, edge.says),
    s("rect", { x: edge.x - edge.room / 2, y: edge.y - 7, width: edge.room, height: 14 }),
    s("text", { x: edge.x, y: edge.y + 4 }, edge.caption));
}

function nodeOf(node, i, { picture, marks, tools, select }) {
  const mark = marks[node.id];
  const sign = signs[node.change] ?? signs[mark?.state];
  const current = tools.state.current ?? picture.nodes[0]?.id;
  const isSelected = tools.state.selected === node.id;
  const round = node.kind === "start" || node.kind === "end" ? node.height / 2 : 7;
  const left = node.x - node.width / 2;
  const top = node.y - node.height / 2;
  return s("g", {
    id: `node-${i}`, class: ["node", node.missing ? "missing" : node.kind, node.change ?? "", mark?.state ?? "", isSelected ? "selected" : ""].join(" ").replace(/ +/g, " ").trim(),
    role: "button", tabindex: node.id === current ? 0 : -1, "data-node": node.id, "aria-pressed": String(isSelected),
    "aria-label": [node.caption, node.detail, node.change, words[mark?.state], mark?.count > 1 ? `${mark.count} times` : ""].filter(Boolean).join(", "),
    onclick: () => choose(node, tools, select),
    onfocus: (event) => { tools.state.current = node.id; rove(event.currentTarget); },
  },
  s("title", null, node.id),
  s("rect", { class: "ring", x: left - 4, y: top - 4, width: node.width + 8, height: node.height + 8, rx: round + 4 }),
  s("rect", { class: "box", x: left, y: top, width: node.width, height: node.height, rx: round }),
  s("text", { class: "name", x: node.x, y: node.y - 2 }, node.caption),
  s("text", { class: "detail", x: node.x, y: node.y + 14 }, node.detail),
  sign && s("g", { class: "sign" }, s("circle", { cx: left + 2, cy: top + 2, r: 9 }), s("text", { x: left + 2, y: top + 6 }, sign)),
  mark?.count > 1 && s("g", { class: "times" },
    s("rect", { x: left + node.width - 16, y: top - 8, width: 28, height: 17, rx: 8 }),
    s("text", { x: left + node.width - 2, y: top + 4.5 }, `×${mark.count}`)));
}

function choose(node, tools, select) {
  tools.state.current = node.id;
  tools.state.selected = tools.state.selected === node.id ? null : node.id;
  select?.(tools.state.selected);
  tools.redraw();
}

function rove(focused) {
  for (const other of focused.parentNode.querySelectorAll(".node")) other.setAttribute("tabindex", other === focused ? "0" : "-1");
}

function steer(event, picture, tools, select) {
  const id = event.target.closest(".node")?.dataset.node;
  const at = picture.nodes.findIndex((node) => node.id === id);
  if (at < 0) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(picture.nodes[at], tools, select);
    return;
  }
  const next = neighbour(picture, at, event.key);
  if (next === undefined) return;
  event.preventDefault();
  document.getElementById(`node-${next}`)?.focus();
}

// neighbour is the node that an arrow leads to: the nearest of those that edges join
// with this one, above or below, or of those beside it.
function neighbour(picture, at, key) {
  const here = picture.nodes[at];
  const joined = picture.edges.flatMap((edge) => (edge.source === at ? [edge.target] : edge.target === at ? [edge.source] : []));
  const isThere = {
    ArrowDown: (node, i) => joined.includes(i) && node.y > here.y,
    ArrowUp: (node, i) => joined.includes(i) && node.y < here.y,
    ArrowLeft: (node) => node.y === here.y && node.x < here.x,
    ArrowRight: (node) => node.y === here.y && node.x > here.x,
  }[key];
  if (!isThere) return undefined;
  return picture.nodes.map((node, i) => ({ i, isThere: isThere(node, i), far: Math.hypot(node.x - here.x, node.y - here.y) }))
    .filter((one) => one.isThere).sort((a, b) => a.far - b.far)[0]?.i;
}

// nodePanel is all there is to say about the node that was chosen.
export function nodePanel(nodes, selected) {
  if (!selected) return h("p", { class: "hint" }, "Choose a node to see all of it.");
  return h("section", { "aria-label": `Node ${selected}` }, h("h2", null, "Node ", h("code", null, selected)), h("pre", { class: "json", tabindex: "0" }, nodes?.[selected] ?? "It is not in the document."));
}
