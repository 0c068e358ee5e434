// Elements from values. One rule: whatever comes from a store becomes text, never markup.

// As `core/safe_text`: control signs, what turns text around, what is not seen, half a sign.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufff0-\uffff]/gu;
const STEERING = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

function escaped(sign) {
  const code = sign.codePointAt(0).toString(16);
  if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}

/** A name on one line: what could hide in it or turn it around becomes visible. */
export const shown = (name) => String(name).replace(UNSEEN, escaped);

/** A title, or another line of prose: what joins letters of some scripts stays. */
export const prose = (text) => String(text).replace(STEERING, escaped);

/** An element with attributes and children; texts among them stay texts. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== ""));
  return made;
}

/** The name of a file, a resource or a key. */
export function named(name, className = "name-of") {
  return el("bdi", { class: className }, shown(name));
}

export const number = (value) => Number(value).toLocaleString("en");
export const many = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;

/** Pieces of a text: [text, whether it is inside], by ranges in code points. */
export function pieces(text, ranges) {
  const signs = Array.from(text);
  const found = [];
  let at = 0;
  for (const [start, end] of ranges) {
    if (start > at) found.push([signs.slice(at, start).join(""), false]);
    if (end > Math.max(start, at)) found.push([signs.slice(Math.max(start, at), end).join(""), true]);
    at = Math.max(at, end);
  }
  if (at < signs.length) found.push([signs.slice(at).join(""), false]);
  return found;
}

/** What goes wrong, as the server says it, and what to do. */
export function problem(error, again) {
  return el("div", { class: "problem", role: "alert" },
    el("p", { dir: "auto" }, el("strong", {}, "Error: "), prose(error.message)),
    error.detail ? el("p", { dir: "auto" }, prose(error.detail)) : null,
    error.remedy ? el("p", { dir: "auto" }, "What to do: ", prose(error.remedy)) : null,
    again ? el("p", {}, el("button", { type: "button", onclick: again }, "Try again")) : null);
}

export function notes(list) {
  return list.length
    ? el("ul", { class: "notes", "aria-label": "Notes" }, list.map((one) => el("li", { dir: "auto" }, prose(one))))
    : null;
}

/** Say something to those who do not see it. */
export function say(words) {
  document.getElementById("said").textContent = words;
}

/** Show a view; its heading takes the focus unless something else is to have it. */
export function show(title, ...children) {
  const main = document.getElementById("main");
  main.replaceChildren(...children.flat().filter(Boolean));
  document.title = title ? `${prose(title).slice(0, 100)} – filestore` : "filestore";
  return main;
}

export function focusHeading() {
  const heading = document.querySelector("main h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus();
  }
}
