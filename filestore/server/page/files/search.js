// The search: a query and filters from the address, hits, and what else they could be narrowed by.

import { ask, store } from "./api.js";
import { go, read, to } from "./address.js";
import { el, focusHeading, many, named, notes, number, pieces, prose, say, show, shown } from "./dom.js";
import { chosenIn, facets, filtersOf, keptOf } from "./facets.js";
import { startView } from "./tree.js";

export const FRESHNESS = {
  fresh: "as indexed",
  outdated: "outdated: its original changed",
  edited: "edited since it was indexed",
  gone: "the file is gone",
};
const FIRST = 20;
/** So many are asked for while a query is typed, more than a screen has; the rest comes once it is. */
const BEGUN = 10;
const MOST = 1000;
/** So many are asked for once nothing more is typed: what the filters count is more than what is shown first. */
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

/** What an address asks for, as the server takes it; `isTyping` for the first hits alone. */
function askedBy(values, isTyping) {
  const k = Math.min(Math.max(Math.floor(Number(values.get("k"))) || FIRST, 1), MOST);
  const mode = ["keyword", "vector"].includes(values.get("mode")) ? values.get("mode") : "hybrid";
  const query = values.get("q") || "";
  const begun = values.has("begun");
  return { shown: k, given: { query, k: isTyping ? BEGUN : Math.max(k, COUNTED), mode, begun, ...filtersOf(values) } };
}

export async function searchView(values, signal, returning, isTyping = false) {
  const asked = askedBy(values, isTyping);
  const { query } = asked.given;
  // Only another query: what is being typed stays when the same one is drawn again.
  if (query !== written && !isTyping) document.getElementById("query").value = query;
  written = query;
  if (!query.trim()) return startView(signal);
  const key = JSON.stringify([store(), asked.given]);
  if (!last || last.key !== key) {
    opened = -1;
    // While an answer is waited for, what is there stays, and is said to be old.
    if (!isTyping) document.getElementById("main").setAttribute("aria-busy", "true");
    last = { key, answer: await ask("search", asked.given, signal), shown: [] };
    last.answer.hits.forEach((hit, index) => { hit.index = index; });
  }
  draw(last.answer, values, asked, isTyping);
  if (returning && opened >= 0) document.getElementById(`hit-${opened}`)?.focus();
  return undefined;
}

/** The address of what is typed; for the first letter a new one, so that back leads to what was there. */
export function typed(query) {
  const { page, values } = read();
  const isNew = page !== "search" || !values.get("q");
  const address = to("search", query.trim() ? { q: query, ...keptOf(values), begun: "1" } : {});
  if (address === (location.hash || "#/")) return false;
  history[isNew ? "pushState" : "replaceState"](null, "", address);
  written = query;
  return true;
}

function draw(answer, values, asked, isTyping) {
  const { activeElement } = document;
  const { choice } = activeElement.dataset;
  const shownBefore = activeElement.id === "more" ? document.querySelectorAll("a.open").length : -1;
  const isAll = answer.hits.length < asked.given.k;
  last.shown = answer.hits.slice(0, asked.shown);
  const counted = countOf(last.shown.length, answer.hits.length, isAll);
  const main = show(answer.query ? asked.given.query : "",
    el("h1", { class: "unseen" }, "Results"),
    el("div", { class: "found" },
      facets(answer.hits, values, asked.given.mode, isAll),
      el("section", { class: "results", "aria-labelledby": "count" },
        chosenIn(values),
        el("h2", { id: "count", tabindex: "-1" }, counted),
        understood(answer, asked.given.mode),
        notes([...answer.notes, ...edited(last.shown)]),
        answer.respelt ? el("p", { class: "soft", dir: "auto" }, `Nothing for ${prose(answer.query)}; for ${prose(answer.respelt)}:`) : null,
        last.shown.length ? kept(last.shown) : nothing(values),
        answer.nearest.length ? [el("p", {}, "Nothing is close; the nearest:"), list(answer.nearest)] : null,
        last.shown.length < answer.hits.length || !isAll ? more(values, asked.shown) : null)));
  main.dataset.query = asked.given.query;
  main.removeAttribute("aria-busy");
  if (!isTyping) say(counted);
  // Whoever chose something stays there, or is at what comes of it where that is gone; whoever asked for
  // more is at the first of it.
  if (choice) ([...document.querySelectorAll("[data-choice]")].find((one) => one.dataset.choice === choice)
    || document.querySelector(".chosen button") || document.getElementById("count")).focus();
  else if (shownBefore >= 0) document.querySelectorAll("a.open")[shownBefore]?.focus();
  else if (activeElement.matches("a.open") && activeElement.isConnected) activeElement.focus();
  else scrollTo(0, 0);
}

/** The list of hits that is there, where it begins with the same ones: nobody's click or focus goes with it. */
let drawn = { keys: [], node: null };
function kept(hits) {
  const keys = hits.map((hit) => JSON.stringify([hit.path, hit.line, hit.freshness, hit.excerpt, hit.marks]));
  const goesOn = drawn.node && drawn.keys.length <= keys.length && drawn.keys.every((key, at) => key === keys[at]);
  if (goesOn) drawn.node.append(...hits.slice(drawn.keys.length).map(entry));
  else drawn.node = list(hits);
  drawn.keys = keys;
  return drawn.node;
}

/** How many are shown, of how many; behind the best there may be more. */
function countOf(shownNow, found, isAll) {
  if (isAll && shownNow === found) return many(found, "result");
  return `${number(shownNow)} of ${number(found)}${isAll ? "" : " or more"} results`;
}

/** How the query was understood, where that is not plain. */
function understood(answer, mode) {
  const words = [];
  const { required = [], excluded = [] } = answer.understood;
  if (required.length) words.push(`must have ${required.join(", ")}`);
  if (excluded.length) words.push(`without ${excluded.join(", ")}`);
  if (answer.mode !== mode) words.push(`answered by ${answer.mode}`);
  return words.length ? el("p", { class: "soft", dir: "auto" }, prose(words.join(" · "))) : null;
}

/** The server says it of originals; of edited texts each hit alone does. */
function edited(hits) {
  const count = hits.filter((hit) => hit.freshness === "edited").length;
  return count ? [`${number(count)} of these results ${count === 1 ? "was" : "were"} edited since the index was made: run 'filestore sync'`] : [];
}

function list(hits) {
  return el("ol", { class: "hits" }, hits.map(entry));
}

function entry(hit) {
  const document_ = hit.document || hit.source || hit.path;
  const section = (hit.section || hit.headings || []).filter((one, at) => at || one !== hit.title);
  const title = hit.title || document_.split("/").pop();
  // A document in place that has pages, no lines, is opened at its page.
  const page = hit.page && !hit.line && hit.path === hit.document ? `:p${hit.page}` : "";
  const href = to("document", {
    path: hit.path + page, line: hit.line || "", end: hit.end_line || "",
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
      about(hit)));
}

/** What is to be said of a hit that is not so of nearly every one; null for nothing. */
function about(hit) {
  const words = [
    hit.freshness === "fresh" ? null : el("span", { class: `fresh ${hit.freshness}` }, FRESHNESS[hit.freshness] || shown(hit.freshness)),
    hit.kind === "summary" ? el("span", {}, "summary") : null,
    hit.question ? el("span", { dir: "auto" }, `answers: ${prose(hit.question)}`) : null,
    hit.date ? el("span", {}, shown(hit.date)) : null,
    hit.notes ? el("span", { class: "fresh edited", dir: "auto" }, prose(hit.notes.join("; "))) : null,
    hit.reason ? el("span", { dir: "auto" }, prose(hit.reason)) : null,
    hit.copies && hit.copies.length ? el("span", {}, `+${many(hit.copies.length, "copy", "copies")}`) : null,
    ...tags(hit.metadata),
  ].filter(Boolean);
  return words.length ? el("p", { class: "about" }, words) : null;
}

function place(hit) {
  if (hit.line) return `:${hit.line}`;
  if (hit.page) return `, page ${hit.page}`;
  return hit.pages && hit.pages.length ? `, pages ${hit.pages.join(", ")}` : "";
}

function excerpt(hit) {
  return el("p", { class: "excerpt", dir: "auto" },
    pieces(hit.excerpt, hit.marks || [])
      .map(([piece, inside]) => (inside ? el("mark", {}, piece) : piece)));
}

function tags(metadata) {
  const found = metadata && metadata.tags;
  const all = (Array.isArray(found) ? found : found ? [found] : []).slice(0, 8);
  return all.map((one) => el("bdi", { class: "tag" }, prose(plain(one)).slice(0, 60)));
}

export const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function nothing(values) {
  const narrowed = [...values.keys()].some((name) => !["q", "k", "mode", "begun"].includes(name));
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
  show("Similar passages",
    el("h1", {}, "Similar passages"),
    el("p", {}, "To ", el("a", { href: to("document", { path }) }, named(path))),
    notes(answer.notes),
    answer.hits.length ? list(answer.hits) : el("p", {}, "There are none."));
  for (const title of document.querySelectorAll("main h3")) title.setAttribute("aria-level", "2");
  focusHeading();
}

export function submit() {
  const query = document.getElementById("query").value;
  const values = query.trim() ? { q: query, ...keptOf(read().values) } : {};
  const before = location.hash;
  forget();
  if (to("search", values) === before) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else go("search", values);
}
