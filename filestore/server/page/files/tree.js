// What is in the store: folders in each other with how many documents each has, and the documents.

import { ask } from "./api.js";
import { to } from "./address.js";
import { el, many, named, number, problem, prose, say, show } from "./dom.js";

/** Characters of names that are asked for at once; the rest follows on demand. */
const MOST = 20_000;

export async function startView(signal) {
  const found = await ask("list", { most: MOST }, signal);
  show("",
    el("h1", {}, "What is here"),
    el("p", { class: "soft" }, many(found.documents, "document"),
      found.folder ? [" in ", named(found.folder)] : null),
    found.documents ? rows(found, signal) : el("p", { class: "empty" },
      "Nothing is indexed yet: ", el("code", {}, "filestore add"), " adds documents, ",
      el("code", {}, "filestore sync"), " what is in the store."));
  document.getElementById("main").removeAttribute("aria-busy");
}

function rows(found, signal) {
  const list = el("ul", { class: "tree" });
  fill(list, found, signal);
  return list;
}

/** Put what was found at the end of a list, and behind it what asks for the rest. */
function fill(list, found, signal) {
  list.append(
    ...found.folders.map((one) => folder(one, found.folder, signal)),
    ...found.items.map((one) => item(one)));
  if (!found.left) return;
  const button = el("button", {
    type: "button",
    onclick: () => asked(button.parentNode, signal, { folder: found.folder, after: found.next }, (more) => {
      const first = list.children.length - 1;
      button.parentNode.remove();
      fill(list, more, signal);
      list.children[first]?.querySelector("a, button").focus();
    }),
  }, `${number(found.left)} more`);
  list.append(el("li", { class: "more" }, button));
}

async function asked(row, signal, given, then) {
  try {
    then(await ask("list", { most: MOST, ...given }, signal));
  } catch (error) {
    if (error.name !== "AbortError") row.append(problem(error));
  }
}

function folder({ path, documents }, above, signal) {
  const name = path.slice(path.startsWith(above) ? above.length : 0);
  const row = el("li");
  const button = el("button", {
    type: "button", class: "folder walked", "aria-expanded": "false",
    onclick: () => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!isOpen));
      const inside = row.querySelector(":scope > .tree, :scope > .problem");
      if (inside?.matches(".problem")) inside.remove();
      else if (inside) inside.hidden = isOpen;
      if (isOpen || inside?.matches(".tree")) return;
      asked(row, signal, { folder: path }, (found) => {
        row.append(rows(found, signal));
        say(many(found.folders.length + found.items.length, "line"));
      });
    },
  }, named(name), el("span", { class: "count" }, ` ${many(documents, "document")}`));
  row.append(button);
  return row;
}

function item({ path, title }) {
  const name = path.split("/").pop();
  return el("li", {},
    el("a", { class: "walked", href: to("document", { path, whole: "1" }) }, title ? el("bdi", {}, prose(title)) : named(name)),
    title ? el("span", { class: "soft" }, " ", named(name)) : null);
}
