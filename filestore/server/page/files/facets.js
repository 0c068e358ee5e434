// Filters of a search: folder, tag and type of document, each with how many of the hits it leaves.
//
// A choice is a new search, so that what was beyond the first hits is found, too. What is counted is
// every hit of the answer, of which only the first are shown, and whether there may be more is said.

import { read } from "./address.js";
import { el, many, named, number } from "./dom.js";

const VALUES = 8;
const LONGEST = 80;
const MODES = { hybrid: "words and meaning", keyword: "words", vector: "meaning" };
/** The values of an address that narrow a search, with what they are called. */
const GROUPS = { in: "Folder", tag: "Tag", type: "Type" };

/** The filters of an address, as a search takes them. */
export function filtersOf(values) {
  const tags = values.getAll("tag");
  return {
    in: values.getAll("in").slice(0, 1),
    where: tags.length ? { tags } : {},
    source: values.getAll("type").map(globOf),
  };
}

/** The glob of all files of a type, however its name is written; of none, one that no file has. */
function globOf(type) {
  const signs = Array.from(type.replace(/[^\p{L}\p{N}_+-]/gu, "?"));
  return `*.${signs.map((sign) => (/\p{L}/u.test(sign) ? `[${sign.toLowerCase()}${sign.toUpperCase()}]` : sign)).join("")}`;
}

/** As folders of a search are named: a chunk file of no document by its place among chunk files. */
const pathOf = (hit) => hit.source || hit.path.replace(/^chunked\//, "");

function typeOf(hit) {
  const name = pathOf(hit).split("/").pop();
  const at = name.lastIndexOf(".");
  return at > 0 && /^[\p{L}\p{N}_+-]{1,12}$/u.test(name.slice(at + 1)) ? name.slice(at + 1).toLowerCase() : null;
}

/** The folder, with "/" behind it, that all hits are in; "" for that of all documents. */
function commonFolder(hits) {
  const paths = hits.map(pathOf);
  let [folder = ""] = paths;
  while (folder && !paths.every((one) => one.startsWith(folder))) folder = upTo(folder.replace(/\/$/, ""));
  return folder.endsWith("/") ? folder : upTo(folder);
}

const upTo = (path) => path.slice(0, path.lastIndexOf("/") + 1);

/** The folder of a hit one level below another one; null where it is in that itself. */
function folderOf(hit, above) {
  const path = pathOf(hit);
  const at = path.indexOf("/", above.length);
  return at < 0 ? null : path.slice(0, at);
}

function tagsOf(hit) {
  const found = hit.metadata?.tags;
  const all = Array.isArray(found) ? found : [found];
  return all.filter((one) => typeof one === "string" && one && one.length <= LONGEST);
}

/** What is chosen, each to be taken back by one press; null for nothing. */
export function chosenIn(values) {
  const all = Object.keys(GROUPS).flatMap((name) => values.getAll(name).map((value) => [name, value]));
  if (!all.length) return null;
  return el("ul", { class: "chosen", "aria-label": "Chosen filters" }, all.map(([name, value]) => el("li", {},
    el("button", {
      type: "button", "data-choice": `without ${name} ${value}`,
      onclick: () => changed((next) => without(next, name, value)),
    }, el("span", { class: "unseen" }, "Remove the filter "), `${GROUPS[name]}: `,
    named(labelOf(name, value), ""), el("span", { "aria-hidden": "true" }, " ×")))));
}

/** Groups of choices, and what hits are ranked by. */
export function facets(hits, values, mode, isAll) {
  const above = commonFolder(hits);
  const groups = [
    group("in", count(hits, (hit) => [folderOf(hit, above)].filter(Boolean)), values, hits.length),
    group("tag", count(hits, tagsOf), values, hits.length),
    group("type", count(hits, (hit) => [typeOf(hit)].filter(Boolean)), values, hits.length),
  ].filter(Boolean);
  const before = document.querySelector(".facets details");
  const open = before ? before.open : matchMedia("(min-width: 56rem)").matches;
  return el("aside", { class: "facets", "aria-labelledby": "filters" },
    el("details", { open },
      el("summary", {}, el("h2", { id: "filters" }, "Filters")),
      groups,
      groups.length ? el("p", { class: "soft" }, isAll ? `Counted over all ${many(hits.length, "result")}.`
        : `Counted over the best ${many(hits.length, "result")}; there may be more.`) : null,
      ranked(mode)));
}

function ranked(mode) {
  return el("p", {}, el("label", { for: "mode" }, "Ranked by "),
    el("select", {
      id: "mode", "data-choice": "mode",
      onchange: (event) => changed((next) => {
        next.delete("mode");
        if (event.target.value !== "hybrid") next.set("mode", event.target.value);
      }),
    }, Object.entries(MODES).map(([name, words]) => el("option", { value: name, selected: name === mode }, words))));
}

/** What stays of an address when other words are searched for. */
export function keptOf(values) {
  return Object.fromEntries([...Object.keys(GROUPS), "mode"].map((name) => [name, values.getAll(name)]));
}

/** Take a choice out of an address. */
function without(values, name, value) {
  const others = values.getAll(name).filter((one) => one !== value);
  values.delete(name);
  for (const one of others) values.append(name, one);
}

const labelOf = (name, value) => (name === "in" ? `${value}/` : value);

/** Go to the address as it is by then, changed: a second choice may come before the first is drawn. */
function changed(change) {
  const next = new URLSearchParams(read().values);
  next.delete("k");
  change(next);
  location.hash = `#/?${next}`;
}

function count(hits, of) {
  const found = new Map();
  for (const hit of hits) for (const one of new Set(of(hit))) found.set(one, (found.get(one) || 0) + 1);
  return found;
}

function group(name, counts, values, all) {
  const chosen = values.getAll(name);
  // What is chosen can be taken back, also where nothing was found.
  for (const one of chosen) if (!counts.has(one)) counts.set(one, name === "in" ? all : 0);
  // What all have tells none apart.
  if (!chosen.length && [...counts.values()].every((one) => one === all)) return null;
  const ordered = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  const isFirst = ([value], at) => at < VALUES || chosen.includes(value);
  const some = ordered.filter(isFirst);
  const rest = ordered.filter((one, at) => !isFirst(one, at));
  const choices = (pairs) => pairs.map(([value, hits]) => choice(name, value, hits, chosen));
  const more = el("button", {
    type: "button", class: "quiet",
    onclick: () => {
      const nodes = choices(rest);
      more.replaceWith(...nodes);
      nodes[0].querySelector("input").focus();
    },
  }, `${number(rest.length)} more`);
  return el("fieldset", {}, el("legend", {}, GROUPS[name]), choices(some), rest.length ? more : null);
}

function choice(name, value, hits, chosen) {
  const isOn = chosen.includes(value);
  const box = el("input", {
    type: "checkbox", checked: isOn, "data-choice": `${name} ${value}`,
    onchange: () => changed((next) => {
      if (isOn) return without(next, name, value);
      // A folder is in another one: the last one that was chosen counts.
      if (name === "in") next.delete(name);
      return next.append(name, value);
    }),
  });
  return el("label", { class: "choice" }, box, named(labelOf(name, value), ""),
    el("span", { class: "count" }, el("span", { class: "unseen" }, "hits: "), number(hits)));
}
