// The search: a query and filters from the address, hits, and what else they could be narrowed by.

import { ask, store } from "./api.js";
import { go, to } from "./address.js";
import { el, focusHeading, many, named, notes, number, pieces, prose, say, show, shown } from "./dom.js";
import { facets, filtersOf, isMeant, isNarrowed } from "./facets.js";

export const FRESHNESS = {
  fresh: "as indexed",
  outdated: "outdated: its original changed",
  edited: "edited since it was indexed",
  gone: "the file is gone",
};
const FIRST = 20;
const MOST = 1000;
/** So many are asked for at least: what the filters count is more than what is shown first. */
const COUNTED = 100;

/** The last answer, so that going back from a document asks nothing again. */
let last = null;
let opened = -1;
let written = null;

/** The last answer, with the hits of it that are shown. */
export const lastAnswer = () => last && { ...last.answer, hits: last.shown };
export function forget() {
  last = null;
}
export function remember(index) {
  opened = index;
}

export async function searchView(values, signal, returning) {
  const query = values.get("q") || "";
  // Only another query: what is being typed stays when the same one is drawn again.
  if (query !== written) document.getElementById("query").value = query;
  written = query;
  const mode = document.getElementById("mode");
  mode.value = values.get("mode") || "hybrid";
  if (!mode.value) mode.value = "hybrid";
  if (!query.trim()) return startView(signal);
  const k = Math.min(Math.max(Math.floor(Number(values.get("k"))) || FIRST, 1), MOST);
  const filters = filtersOf(values);
  const given = {
    query, k: Math.max(k, COUNTED), mode: mode.value,
    where: filters.where, source: filters.source, kind: filters.kind,
  };
  const key = JSON.stringify([store(), given]);
  if (!last || last.key !== key) {
    opened = -1;
    busy();
    last = { key, answer: await ask("search", given, signal), shown: [] };
    last.answer.hits.forEach((hit, index) => { hit.index = index; });
  }
  draw(last.answer, values, k, given.k);
  if (returning && opened >= 0) document.getElementById(`hit-${opened}`)?.focus();
}

/** While an answer is waited for, what is there stays, and is said to be old. */
function busy() {
  document.getElementById("main").setAttribute("aria-busy", "true");
}

function draw(answer, values, k, asked) {
  const { activeElement } = document;
  const choice = activeElement.dataset.choice;
  const shownBefore = activeElement.id === "more" ? document.querySelectorAll("a.open").length : -1;
  const meant = answer.hits.filter((hit) => isMeant(hit, values));
  const found = meant.filter((hit) => isNarrowed(hit, values));
  const hits = found.slice(0, k);
  const isAll = answer.hits.length < asked;
  last.shown = hits;
  const counted = countOf(hits.length, found.length, isAll ? 0 : answer.hits.length);
  const main = show(answer.query,
    el("h1", { class: "unseen" }, "Results"),
    el("div", { class: "found" },
      facets(meant, values, isAll),
      el("section", { class: "results", "aria-labelledby": "count" },
        el("h2", { id: "count" }, counted),
        understood(answer),
        notes([...answer.notes, ...edited(hits)]),
        answer.respelt ? el("p", { class: "soft", dir: "auto" }, `Nothing for ${prose(answer.query)}; for ${prose(answer.respelt)}:`) : null,
        hits.length ? list(hits) : nothing(values),
        answer.nearest.length ? [el("p", {}, "Nothing is close; the nearest:"), list(answer.nearest)] : null,
        hits.length < found.length || !isAll ? more(values, k) : null)));
  main.removeAttribute("aria-busy");
  say(counted);
  // Whoever chose something stays there; whoever asked for more is at the first of it.
  if (choice) [...document.querySelectorAll("[data-choice]")].find((one) => one.dataset.choice === choice)?.focus();
  else if (shownBefore < 0) scrollTo(0, 0);
  else document.querySelectorAll("a.open")[shownBefore]?.focus();
}

/** How many are shown, of how many; behind the best of a long answer there may be more. */
function countOf(shownNow, found, best) {
  if (shownNow < found) return `${number(shownNow)} of ${number(found)}${best ? " or more" : ""} results`;
  return many(found, "result") + (best ? ` among the best ${number(best)}` : "");
}

/** How the query was understood, where that is not plain. */
function understood(answer) {
  const words = [];
  const { required = [], excluded = [] } = answer.understood;
  if (required.length) words.push(`must have ${required.join(", ")}`);
  if (excluded.length) words.push(`without ${excluded.join(", ")}`);
  if (answer.mode !== document.getElementById("mode").value) words.push(`answered by ${answer.mode}`);
  return words.length ? el("p", { class: "soft", dir: "auto" }, prose(words.join(" · "))) : null;
}

/** The server says it of originals; of edited texts each hit alone does. */
function edited(hits) {
  const count = hits.filter((hit) => hit.freshness === "edited").length;
  return count ? [`${number(count)} of these results ${count === 1 ? "was" : "were"} edited since the index was made: run 'filestore sync'`] : [];
}

export function list(hits) {
  return el("ol", { class: "hits" }, hits.map(entry));
}

function entry(hit) {
  const document_ = hit.document || hit.source || hit.path;
  const section = (hit.section || hit.headings || []).filter((one, at) => at || one !== hit.title);
  const title = hit.title || document_.split("/").pop();
  const href = to("document", {
    path: hit.path, line: hit.line || "", end: hit.end_line || "",
    hit: hit.index ?? "",
  });
  return el("li", { class: hit.freshness === "fresh" ? null : "stale" },
    el("article", {},
      el("h3", {},
        el("a", { class: "open", href, id: hit.index === undefined ? null : `hit-${hit.index}`, onclick: () => remember(hit.index ?? -1) },
          el("bdi", {}, prose(title)),
          section.length ? el("span", { class: "section" }, el("span", { class: "unseen" }, ", section "),
            el("bdi", {}, section.map(prose).join(" › "))) : null)),
      el("p", { class: "place" }, named(document_), place(hit)),
      excerpt(hit),
      el("p", { class: "about" },
        el("span", { class: `fresh ${hit.freshness}` }, FRESHNESS[hit.freshness] || shown(hit.freshness)),
        el("span", {}, shown(hit.kind)),
        hit.question ? el("span", { dir: "auto" }, `answers: ${prose(hit.question)}`) : null,
        hit.date ? el("span", {}, shown(hit.date)) : null,
        hit.notes ? el("span", { class: "fresh edited", dir: "auto" }, prose(hit.notes.join("; "))) : null,
        hit.reason ? el("span", { dir: "auto" }, prose(hit.reason)) : null,
        hit.copies && hit.copies.length ? el("span", {}, `+${many(hit.copies.length, "copy", "copies")}`) : null,
        tags(hit.metadata))));
}

export function place(hit) {
  if (hit.line) return `:${hit.line}`;
  if (hit.page) return `, page ${hit.page}`;
  return hit.pages && hit.pages.length ? `, pages ${hit.pages.join(", ")}` : "";
}

function excerpt(hit) {
  const text = hit.excerpt || (hit.text || "").slice(0, 400);
  return el("p", { class: "excerpt", dir: "auto" },
    pieces(text, hit.excerpt ? hit.marks || [] : [])
      .map(([piece, inside]) => (inside ? el("mark", {}, piece) : piece)));
}

function tags(metadata) {
  const found = metadata && metadata.tags;
  const all = (Array.isArray(found) ? found : found ? [found] : []).slice(0, 8);
  return all.map((one) => el("bdi", { class: "tag" }, prose(plain(one)).slice(0, 60)));
}

export const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function nothing(values) {
  const narrowed = [...values.keys()].some((name) => !["q", "k", "mode"].includes(name));
  return el("div", { class: "empty" },
    el("p", {}, "Nothing was found."),
    el("p", {}, narrowed
      ? el("a", { href: to("search", { q: values.get("q"), mode: values.get("mode") }) }, "Search without filters")
      : "Try fewer words, or others that the text may use."));
}

function more(values, k) {
  if (k >= MOST) return null;
  const next = new URLSearchParams(values);
  next.set("k", String(Math.min(MOST, k < 100 ? k + FIRST : k * 2)));
  return el("p", {}, el("a", { class: "button", id: "more", href: `#/?${next}` }, "More results"));
}

export async function similarView(values, signal) {
  const path = values.get("path") || "";
  const answer = await ask("similar", { path, k: FIRST }, signal);
  show("Similar texts",
    el("h1", {}, "Similar texts"),
    el("p", {}, "To ", el("a", { href: to("document", { path }) }, named(path))),
    notes(answer.notes),
    answer.hits.length ? list(answer.hits) : el("p", {}, "There are none."));
  for (const title of document.querySelectorAll("main h3")) title.setAttribute("aria-level", "2");
  focusHeading();
}

const SHOWN = 200;

async function startView(signal) {
  const about = await ask("about", { depth: 1 }, signal);
  const some = about.documents.slice(0, SHOWN);
  const rest = about.resources - some.length;
  show("",
    el("h1", {}, "What is here"),
    el("p", { class: "soft" },
      `${many(about.resources, "document")}, ${many(about.chunks, "text")}`
      + (about.summaries ? `, ${many(about.summaries, "summary", "summaries")}` : "")),
    el("ul", { class: "documents" }, some.map((one) => el("li", {},
      el("a", { href: to("resource", { name: one.resource }) }, el("bdi", {}, one.title ? prose(one.title) : shown(one.resource))),
      el("span", { class: "soft" }, one.title && one.title !== one.resource ? named(one.resource) : null,
        ` ${many(one.chunks, "text")}`)))),
    about.chunks + about.summaries ? null : el("p", { class: "empty" },
      "Nothing is indexed yet: ", el("code", {}, "filestore add"), " takes documents in, ",
      el("code", {}, "filestore sync"), " what lies in the store."),
    rest > 0 ? el("p", { class: "soft" }, `${number(rest)} more are not listed; search finds them.`) : null);
  document.getElementById("main").removeAttribute("aria-busy");
}

/** A resource is one document, which is shown at once, or has several. */
export async function resourceView(values, signal) {
  const name = values.get("name") || "";
  const { items } = await ask("ls", { resource: name }, signal);
  const found = new Map();
  for (const item of items) {
    const path = item.source || item.path;
    if (path && !found.has(path)) found.set(path, item.path);
  }
  if (found.size === 1) {
    const [path] = found.values();
    location.replace(to("document", { path, whole: "1" }));
    return;
  }
  const all = [...found].slice(0, 1000);
  show(name,
    el("h1", {}, named(name, "")),
    el("ul", { class: "documents" }, all.map(([shownAs, path]) => el("li", {},
      el("a", { href: to("document", { path, whole: "1" }) }, named(shownAs))))),
    found.size > all.length ? el("p", { class: "soft" }, `${number(found.size - all.length)} more are not listed.`) : null);
  focusHeading();
}

export function submit() {
  const query = document.getElementById("query").value;
  const mode = document.getElementById("mode").value;
  const before = location.hash;
  const values = { q: query, mode: mode === "hybrid" ? "" : mode };
  forget();
  if (to("search", values) === before) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else go("search", values);
}
