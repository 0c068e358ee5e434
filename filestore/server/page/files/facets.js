// What hits have in common, counted, and the filters that a choice of it becomes.
//
// A choice is a new search, so that what was beyond the first hits is found, too; how fresh a file
// is no search can filter by: that narrows the hits that are there. What is counted is every hit of
// the answer, of which only the first are shown, and whether there may be more is said.

import { read } from "./address.js";
import { el, many, named, number, shown } from "./dom.js";

const VALUES = 8;
const KEYS = 8;
const LONGEST = 80;

const FRESH = { fresh: "as indexed", outdated: "outdated", edited: "edited", gone: "gone" };

/** The filters of an address. */
export function filtersOf(values) {
  // Without what every object has: a key may be called "constructor".
  const where = Object.create(null);
  for (const one of values.getAll("where")) {
    const [key, value] = pair(one);
    if (key === null) continue;
    where[key] = key in where ? [...where[key], value] : [value];
  }
  const kinds = values.getAll("kind").filter((one) => one === "chunk" || one === "summary");
  // Of a document and a folder both must hold, of several patterns one: the folder narrows here.
  const documents = values.getAll("source");
  const sources = documents.length ? documents : values.getAll("folder");
  return { where, source: sources.map(exactly), kind: kinds };
}

/** The folder that is one resource, which a hit's document lies in; null for any other. */
function folderOf({ source, resource }) {
  if (!source || !resource) return null;
  const at = `/${source}`.indexOf(`/${resource}/`);
  return at < 0 ? null : source.slice(0, at + resource.length);
}

const has = (values, name, value) => !values.has(name) || values.getAll(name).includes(value);

/** Whether a hit is of a document that is meant: a pattern finds its name in other folders, too. */
export function isMeant(hit, values) {
  return has(values, "source", hit.source) && has(values, "folder", folderOf(hit));
}

/** Whether a hit is shown, of those that were found. */
export function isNarrowed(hit, values) {
  return has(values, "fresh", hit.freshness) && has(values, "only", hit.document);
}

function pair(text) {
  try {
    const found = JSON.parse(text);
    return Array.isArray(found) && found.length === 2 && typeof found[0] === "string" ? found : [null];
  } catch {
    return [null];
  }
}

/** A glob that means just this path. */
const exactly = (path) => path.replace(/[[*?]/g, "[$&]");

/** Groups of choices, with how many of the hits have each. */
export function facets(hits, values, isAll) {
  const groups = [
    group("Folder", "folder", count(hits, (hit) => [folderOf(hit)].filter(Boolean)), values),
    group("Document", "source", count(hits.filter((hit) => hit.source), (hit) => [hit.source]), values),
    group("Text without document", "only", count(hits.filter((hit) => !hit.source), (hit) => [hit.document]), values),
    group("Kind", "kind", count(hits, (hit) => [hit.kind].filter((one) => one !== "document")), values),
    group("Freshness", "fresh", count(hits, (hit) => [hit.freshness]), values, FRESH),
    ...metadata(hits, values),
  ].filter(Boolean);
  if (!groups.length) return null;
  const before = document.querySelector(".facets details");
  const open = before ? before.open : matchMedia("(min-width: 56rem)").matches || chosenCount(values) > 0;
  return el("aside", { class: "facets", "aria-labelledby": "filters" },
    el("details", { open },
      el("summary", {}, el("h2", { id: "filters" }, "Filters",
        chosenCount(values) ? ` (${chosenCount(values)} on)` : "")),
      groups,
      el("p", { class: "soft" }, isAll ? `Counted over all ${many(hits.length, "result")}.`
        : `Counted over the best ${many(hits.length, "result")}; there may be more.`)));
}

function chosenCount(values) {
  return ["folder", "source", "only", "kind", "fresh", "where"].reduce((sum, name) => sum + values.getAll(name).length, 0);
}

function count(hits, of) {
  const found = new Map();
  for (const hit of hits) for (const one of new Set(of(hit))) found.set(one, (found.get(one) || 0) + 1);
  return found;
}

/** Frontmatter keys that tell hits apart; what each hit has another value of does not. */
function metadata(hits, values) {
  const keys = new Map();
  for (const hit of hits) {
    for (const [key, given] of Object.entries(hit.metadata || {})) {
      for (const value of Array.isArray(given) ? given : [given]) {
        if (value === null || typeof value === "object" || String(value).length > LONGEST) continue;
        if (!keys.has(key)) keys.set(key, []);
        keys.get(key).push([hit, value]);
      }
    }
  }
  const chosen = new Set(values.getAll("where").map((one) => pair(one)[0]).filter((one) => one !== null));
  // What is chosen can be taken back, also where nothing was found.
  for (const key of chosen) if (!keys.has(key)) keys.set(key, []);
  return [...keys]
    .filter(([key, found]) => {
      const different = new Set(found.map(([, value]) => value)).size;
      return chosen.has(key) || (key !== "title" && (different <= VALUES || different < found.length));
    })
    .sort(([, one], [, other]) => other.length - one.length)
    .slice(0, KEYS)
    .map(([key, found]) => {
      const counts = new Map();
      for (const [, value] of found) {
        const choice = JSON.stringify([key, value]);
        counts.set(choice, (counts.get(choice) || 0) + 1);
      }
      return group(key, "where", counts, values);
    });
}

function group(title, name, counts, values, words = {}) {
  const mine = (one) => name !== "where" || pair(one)[0] === title;
  const chosen = values.getAll(name).filter(mine);
  for (const one of chosen) if (!counts.has(one)) counts.set(one, 0);
  if (!chosen.length && counts.size < 2) return null;
  const ordered = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  const some = ordered.filter(([value], at) => at < VALUES || chosen.includes(value));
  return el("fieldset", {},
    el("legend", { dir: "auto" }, shown(title).slice(0, LONGEST)),
    some.map(([value, hits]) => choice(name, value, hits, chosen, words)),
    ordered.length > some.length
      ? el("p", { class: "soft" }, `${number(ordered.length - some.length)} more`) : null);
}

function choice(name, value, hits, chosen, words) {
  const label = name === "where" ? String(pair(value)[1]) : Object.hasOwn(words, value) ? words[value] : value;
  const box = el("input", {
    type: "checkbox", checked: chosen.includes(value), "data-choice": `${name} ${value}`,
    // As the address is by then: a second choice may come before the first is drawn.
    onchange: () => { location.hash = `#/?${toggled(name, value, read().values)}`; },
  });
  return el("label", { class: "choice" }, box, ["folder", "source", "only"].includes(name) ? filed(label) : named(label, ""),
    el("span", { class: "count" },
    el("span", { class: "unseen" }, "hits: "), number(hits)));
}

/** The name of a file, and below it where it lies. */
function filed(path) {
  const at = path.lastIndexOf("/") + 1;
  return el("span", { class: "named" }, named(path.slice(at), ""),
    at ? el("span", { class: "folder" }, named(path.slice(0, at), "")) : null);
}

function toggled(name, value, values) {
  const next = new URLSearchParams();
  let was = false;
  for (const [key, one] of values) {
    if (key === name && one === value) was = true;
    else if (key !== "k") next.append(key, one);
  }
  if (!was) next.append(name, value);
  return next;
}
