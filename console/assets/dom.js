// Builds elements. Texts go in as texts: nothing that a cluster says becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// link leads to an object of a section.
export function link(section, name, text, attributes) {
  return h("a", { href: address(section, name), ...attributes }, text ?? name);
}

export function address(section, name) {
  return name === undefined ? `#/${section}` : `#/${section}/${encodeURIComponent(name)}`;
}

export function time(at) {
  if (!at) return "";
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return h("time", { datetime: at, title: at }, date.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" }));
}

// badge shows a state by a word and a shape, not by its colour alone.
export function badge(state) {
  return h("span", { class: `badge ${toneOf(state)}` }, state || "—");
}

const tones = {
  good: ["Applied", "Completed", "Undone", "True", "valid"],
  bad: ["Failed", "Stale", "Refused", "False", "invalid", "TimedOut", "Expired"],
  waits: ["AwaitingResolution", "AwaitingInput", "Suspended", "Waiting", "Rejected", "Cancelled"],
  works: ["Working", "Running"],
};

export function toneOf(state) {
  return Object.keys(tones).find((tone) => tones[tone].includes(state)) ?? "plain";
}

export function notice(kind, ...content) {
  return h("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "note" }, ...content);
}

export function hidden(why) {
  return why ? notice("warning", "Not everything is shown: ", why) : null;
}

// confirm asks before something that cannot be taken back by the same key.
export function confirm(title, text, action) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "confirm-title", onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("h2", { id: "confirm-title" }, title),
      h("p", null, text),
      h("p", { class: "actions" },
        h("button", { type: "button", class: "primary", autofocus: true, onclick: () => dialog.close("yes") }, action),
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Leave it")));
    document.body.append(dialog);
    dialog.showModal();
  });
}
