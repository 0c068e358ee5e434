// Elements from values. One rule: whatever comes from a store becomes text, never markup.

const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A name on one line: what could hide in it or turn it around becomes visible. */
export function shown(name) {
  return String(name).replace(INVISIBLE, (sign) => {
    const code = sign.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

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
    el("p", { dir: "auto" }, el("strong", {}, "Error: "), shown(error.message)),
    error.detail ? el("p", { dir: "auto" }, shown(error.detail)) : null,
    error.remedy ? el("p", { dir: "auto" }, "What to do: ", shown(error.remedy)) : null,
    again ? el("p", {}, el("button", { type: "button", onclick: again }, "Try again")) : null);
}

export function notes(list) {
  return list.length
    ? el("ul", { class: "notes", "aria-label": "Notes" }, list.map((one) => el("li", { dir: "auto" }, shown(one))))
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
  document.title = title ? `${shown(title).slice(0, 100)} – filestore` : "filestore";
  return main;
}

export function focusHeading() {
  const heading = document.querySelector("main h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus();
  }
}
