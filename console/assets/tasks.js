// Questions: the inbox, and each as a form.

import { read, write } from "./api.js";
import { badge, h, link, notice, time } from "./dom.js";

const kinds = ["task"];

export const inbox = {
  kinds,
  load: () => read("tasks"),
  draw: (tasks) => {
    const open = tasks.filter((one) => one.open);
    const over = tasks.filter((one) => !one.open).reverse();
    return [
      h("h1", null, "Inbox"),
      open.length === 0 ? h("p", { class: "empty" }, "Nothing waits for an answer.") : rows(open),
      over.length > 0 && [h("h2", null, "Over"), rows(over)],
    ];
  },
};

function rows(tasks) {
  return h("ul", { class: "cards" }, tasks.map((one) => h("li", { class: "card" },
    h("h2", null, link("tasks", one.name, one.title, { "data-row": true, id: `row-${one.name}` })),
    h("p", { class: "facts" }, badge(one.phase), " since ", time(one.created), one.run && [" · run ", link("runs", one.run)], expiry(one)),
    h("p", { class: "facts" }, addressees(one.assignees)))));
}

function expiry(one) {
  return one.expiresAfter && ` · within ${one.expiresAfter}`;
}

function addressees(assignees) {
  if (!assignees) return "for whoever may answer";
  const names = [...(assignees.users ?? []), ...(assignees.groups ?? []).map((group) => `group ${group}`)];
  return names.length ? `for ${names.join(", ")}` : "for nobody";
}

export const task = {
  kinds,
  load: (name) => read("tasks", name),
  draw: (data, tools) => [
    h("p", { class: "way" }, link("inbox", undefined, "Inbox")),
    h("h1", null, data.title, " ", badge(data.phase)),
    h("p", { class: "facts" }, data.run && ["run ", link("runs", data.run), ` · ${data.activation} · `], addressees(data.assignees), expiry(data)),
    data.context.description && h("p", { class: "speech" }, data.context.description),
    data.context.details && h("dl", { class: "details" }, data.context.details.map((one) => [h("dt", null, one.label), h("dd", null, one.value)])),
    data.context.references && h("ul", null, data.context.references.map((one) => h("li", null, reference(one)))),
    data.open ? formOf(data, tools) : ended(data),
  ],
};

// reference is a link only where it leads to the web.
function reference({ label, url }) {
  return /^https?:\/\//.test(url) ? h("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, label) : `${label}: ${url}`;
}

function ended(data) {
  if (data.closed) return notice("warning", `Nobody can answer any more: ${data.closed.reason}. `, data.closed.message);
  return notice("done", "Answered by ", h("strong", null, data.answeredBy?.username ?? "somebody"), ".",
    data.resume && data.run && [" Its run takes the answer at a resume: ", link("runs", data.run)]);
}

const rules = {
  required: "It must be given.", type: "It is not of the type that is asked for.", option: "It is none of the options.", enum: "It is none of the options.",
  json: "It is no JSON.", minLength: "It is too short.", maxLength: "It is too long.", minimum: "It is too small.", maximum: "It is too large.", pattern: "It does not have the form that is asked for.",
  additionalProperties: "There is more than is asked for.",
};

function formOf(data, tools) {
  const isWhole = data.fields.length === 0;
  const asked = isWhole ? [{ name: "answer", label: "Answer", description: "As JSON", kind: "json", required: true, options: [], default: "" }] : data.fields;
  const summary = h("div", { id: "summary", tabindex: "-1" });
  const form = h("form", {
    novalidate: true, "aria-label": "Answer",
    onsubmit: (event) => {
      event.preventDefault();
      const fields = textsOf(form, asked);
      send(data, tools, isWhole ? { whole: fields.answer ?? "" } : { fields }, { form, summary, done: "Answered." });
    },
  },
  summary, asked.map(fieldOf),
  h("p", { class: "actions" },
    h("button", { type: "submit", id: "send", class: "primary" }, "Send the answer"),
    h("button", { type: "button", id: "refuse", onclick: () => giveUp(data, tools, form, summary) }, "It cannot be done…")),
  data.schema && h("details", null, h("summary", null, "Schema of the answer"), h("pre", { class: "json", tabindex: "0" }, data.schema)));
  return form;
}

async function giveUp(data, tools, form, summary) {
  const reason = await askReason();
  if (reason !== null) await send(data, tools, { failure: reason }, { form, summary, done: "Said that it cannot be done." });
}

function askReason() {
  return new Promise((resolve) => {
    const text = h("textarea", { id: "reason", rows: 3, required: true });
    const dialog = h("dialog", { "aria-labelledby": "reason-title", onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes" ? text.value : null); } },
      h("h2", { id: "reason-title" }, "Why can it not be done?"),
      h("label", { for: "reason" }, "Reason"), text,
      h("p", { class: "actions" },
        h("button", { type: "button", class: "primary", onclick: () => { if (text.reportValidity()) dialog.close("yes"); } }, "Say so"),
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Leave it")));
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function send(data, tools, body, { form, summary, done }) {
  clear(form, summary);
  try {
    await write(["tasks", data.name, "answer"], body);
    tools.say(done);
    await tools.reload();
  } catch (error) {
    tools.say("");
    tell(error, form, summary);
  }
}

function clear(form, summary) {
  summary.replaceChildren();
  for (const text of form.querySelectorAll(".wrong")) text.textContent = "";
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

// tell says what is wrong beside the fields that it is about, and all of it on top.
function tell(error, form, summary) {
  const lines = error.problems.map(({ path, rule }) => {
    const field = form.querySelector(`[data-field="${CSS.escape(path.split(/[.[]/)[0])}"]`);
    const text = rules[rule] ?? `It breaks the rule ${rule}.`;
    if (!field) return h("li", null, `${path}: ${text}`);
    field.querySelector(".wrong").textContent = text;
    for (const input of field.querySelectorAll("input, textarea, select")) input.setAttribute("aria-invalid", "true");
    return h("li", null, h("strong", null, field.dataset.label), `: ${text}`);
  });
  summary.replaceChildren(notice("error", error.message, lines.length > 0 && h("ul", null, lines)));
  summary.focus();
}

// textsOf are the fields that were filled in, as they were typed.
function textsOf(form, asked) {
  const fields = {};
  const given = new FormData(form);
  for (const { name } of asked) {
    const text = given.get(`field-${name}`);
    if (text !== null && text !== "") fields[name] = text;
  }
  return fields;
}

function fieldOf(field) {
  const id = `field-${field.name}`;
  const hints = `${id}-about ${id}-wrong`;
  const input = inputOf(field, { id, name: id, "aria-describedby": hints, "aria-required": field.required ? "true" : null });
  const about = [h("span", { class: "about", id: `${id}-about` }, field.description), h("span", { class: "wrong", id: `${id}-wrong` })];
  const label = [field.label, !field.required && h("small", null, " optional")];
  if (field.kind === "boolean") {
    return h("fieldset", { "data-field": field.name, "data-label": field.label, "aria-describedby": hints }, h("legend", null, label), input, about);
  }
  return h("div", { class: "field", "data-field": field.name, "data-label": field.label }, h("label", { for: id }, label), input, about);
}

function inputOf(field, attributes) {
  const value = field.default;
  switch (field.kind) {
    case "boolean":
      return h("div", { class: "choices" }, [["true", "Yes"], ["false", "No"]].map(([text, label]) =>
        h("label", null, h("input", { type: "radio", name: attributes.name, value: text, checked: value === text }), ` ${label}`)));
    case "select":
    case "choice":
      return h("select", attributes, h("option", { value: "" }, "—"), field.options.map((one) => h("option", { value: one.value, selected: value === one.value }, one.label || one.value)));
    case "text":
      return h("input", { type: "text", value, ...attributes });
    case "number":
      return h("input", { type: "text", inputmode: "decimal", value, ...attributes });
    default:
      return h("textarea", { rows: field.kind === "multiline" ? 4 : 6, class: field.kind === "multiline" ? null : "code", spellcheck: String(field.kind === "multiline"), ...attributes }, value);
  }
}
