// Leads from addresses to views, and keeps what is shown as it is in the cluster.

import { follow, read } from "./api.js";
import { address, h, notice } from "./dom.js";
import { composition, compositions } from "./compositions.js";
import { turn } from "./turns.js";
import { inbox, task } from "./tasks.js";
import { run, runs } from "./runs.js";

const main = document.getElementById("main");
const lists = { compositions, inbox, runs };
const pages = { compositions: composition, turns: turn, tasks: task, runs: run };
const sections = { compositions: "compositions", turns: "compositions", inbox: "inbox", tasks: "inbox", runs: "runs" };

// shown is the view on the page: its address, what it was drawn from, and what a
// person did with it since.
let shown = { hash: null, text: null, view: null, data: null, state: {} };

function route() {
  const [, section = "", name] = location.hash.split("/");
  const view = name === undefined ? lists[section] : pages[section];
  return view ? { section, name: name === undefined ? undefined : decodeURIComponent(name), view } : null;
}

async function go() {
  const to = route();
  if (!to) { location.replace(address("compositions")); return; }
  const isNew = shown.hash !== location.hash;
  if (isNew) shown = { hash: location.hash, text: null, view: to.view, data: null, state: {} };
  const mine = shown;
  for (const anchor of document.querySelectorAll("[data-section]")) {
    if (anchor.dataset.section === sections[to.section]) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  try {
    const data = await to.view.load(to.name);
    if (mine !== shown) return;
    const text = JSON.stringify(data);
    if (text === mine.text) return;
    mine.text = text;
    mine.data = data;
    draw(isNew);
  } catch (error) {
    if (mine === shown) fail(error, isNew);
  }
}

function draw(isNew) {
  const { view, data, state } = shown;
  const focused = document.activeElement?.id;
  main.replaceChildren(...[state.error && notice("error", state.error), view.draw(data, tools(state))].flat(Infinity).filter(Boolean));
  document.title = `${main.querySelector("h1")?.textContent ?? "Axiom"} – Axiom`;
  main.dataset.ready = location.hash;
  if (isNew) main.focus({ preventScroll: true });
  else if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function fail(error, isNew) {
  if (isNew) main.replaceChildren(h("h1", null, "Not shown"));
  main.querySelector(":scope > .notice.error")?.remove();
  main.prepend(notice("error", error.message));
  shown.text = null;
  main.dataset.ready = location.hash;
}

// tools are what views may do with the page they are on.
function tools(state) {
  return {
    state,
    redraw: () => draw(false),
    reload: go,
    say,
    // attempt does something that may be refused, and tells how it went.
    attempt: async (does, done) => {
      state.error = null;
      try {
        await does();
        say(done);
        await go();
      } catch (error) {
        say("");
        state.error = error.message;
        draw(false);
      }
    },
  };
}

function say(text) {
  document.getElementById("status").textContent = text;
}

// Changes that come close together are one look at the cluster.
let pending = null;
const changes = new Set();

function changed(kind) {
  changes.add(kind);
  if (pending) return;
  pending = setTimeout(() => {
    pending = null;
    const kinds = [...changes];
    changes.clear();
    if (kinds.includes("task")) count();
    if (kinds.some((k) => shown.view?.kinds.includes(k))) go();
  }, 60);
}

async function count() {
  const label = document.getElementById("waiting");
  const open = await read("tasks").then((tasks) => tasks.filter((t) => t.open).length, () => 0);
  label.textContent = open;
  label.hidden = open === 0;
}

function connection(text, detail) {
  const label = document.getElementById("live");
  label.textContent = text;
  label.title = detail;
  label.dataset.state = text;
}

// Keys of a single character can be switched off, for people who speak to their
// computer.
const keysOff = "axiom-console-keys-off";

const everywhere = {
  1: ["compositions", () => { location.hash = address("compositions"); }],
  2: ["inbox", () => { location.hash = address("inbox"); }],
  3: ["runs", () => { location.hash = address("runs"); }],
  j: ["next of a list", () => step(1)],
  k: ["previous of a list", () => step(-1)],
  "?": ["these keys", () => help()],
};

function step(by) {
  const rows = [...main.querySelectorAll("[data-row]")];
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
}

function keyed(event) {
  const isTyping = event.target.closest?.("input:not([type=range]):not([type=radio]), textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(keysOff)) return;
  const own = shown.data ? shown.view?.keys?.(shown.data, tools(shown.state)) ?? {} : {};
  const found = own[event.key] ?? everywhere[event.key];
  if (!found) return;
  event.preventDefault();
  found[1]();
}

function help() {
  const own = shown.data ? shown.view?.keys?.(shown.data, tools(shown.state)) ?? {} : {};
  const rows = (keys) => Object.entries(keys).map(([key, [does]]) => [h("dt", null, h("kbd", null, key)), h("dd", null, does)]);
  const dialog = h("dialog", { "aria-labelledby": "help-title", onclose: () => dialog.remove() },
    h("h2", { id: "help-title" }, "Keys"),
    h("dl", { class: "keys" }, rows(own), rows(everywhere),
      h("dt", null, h("kbd", null, "← ↑ → ↓")), h("dd", null, "from node to node of a graph"),
      h("dt", null, h("kbd", null, "Enter")), h("dd", null, "opens, or shows the node")),
    h("p", null, h("label", null,
      h("input", {
        type: "checkbox", checked: !localStorage.getItem(keysOff),
        onchange: (event) => { if (event.target.checked) localStorage.removeItem(keysOff); else localStorage.setItem(keysOff, "1"); },
      }), " Keys of one character do something")),
    h("p", { class: "actions" }, h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", go);
addEventListener("keydown", keyed);
document.getElementById("help").addEventListener("click", help);
read("place").then((place) => { document.getElementById("namespace").textContent = place.namespace; }, () => {});
follow({ changed, state: connection });
count();
go();
