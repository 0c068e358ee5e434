// A document from beginning to end, with the passages of the last search in it.

import { ask } from "./api.js";
import { to } from "./address.js";
import { el, many, named, number, pieces, prose, say, show } from "./dom.js";
import { FRESHNESS, lastAnswer, plain } from "./search.js";

/** So many characters of a link are not shown in an excerpt. */
const MOST_HIDDEN = 1000;

let passages = [];
let current = -1;

export async function documentView(values, signal) {
  const path = values.get("path") || "";
  const given = { path };
  if (/^\d{1,9}$/.test(values.get("first") || "")) given.first = Number(values.get("first"));
  else if (/^\d{1,9}$/.test(values.get("line") || "")) given.line = Number(values.get("line"));
  const found = await ask("document", given, signal);
  const hits = hitsOf(found, values);
  const others = new Set(found.parts.map((part) => part.freshness));
  show(found.title,
    el("p", { class: "back" }, el("a", { href: back(), id: "back" }, "← Back")),
    el("h1", { tabindex: "-1" }, el("bdi", {}, prose(found.title))),
    el("p", { class: "place" }, named(found.path)),
    el("p", { class: "about" },
      el("span", { class: `fresh ${worst(others)}` }, FRESHNESS[worst(others)]),
      el("span", {}, many(found.total, "part")),
      el("a", { href: to("similar", { path: found.parts[0] ? at(found).path : path }) }, "Similar texts")),
    stale(found),
    metadata(found.metadata),
    hits.length ? steps() : null,
    left(found, values, false),
    el("div", { class: found.prose ? "text prose" : "text source" }, found.parts.map((part, at) => drawn(part, at + found.first, found, hits))),
    left(found, values, true));
  passages = [...document.querySelectorAll("mark[data-first]")];
  begin(values, found);
}

const at = (found) => found.parts[found.at - found.first] || found.parts[0];

function worst(all) {
  return ["gone", "edited", "outdated"].find((one) => all.has(one)) || "fresh";
}

const STALE = {
  gone: ["is gone since the index was made", "are gone since the index was made", "filestore sync"],
  edited: ["was edited since the index was made: shown as it is now, found by what it said before",
    "were edited since the index was made: shown as they are now, found by what they said before", "filestore sync"],
  outdated: ["was made from an older version of the original, or the original is gone",
    "were made from an older version of the original, or the original is gone", "filestore update"],
};

/** What of the document is not what the index has; null where all of it is. */
function stale(found) {
  const told = Object.entries(STALE).map(([freshness, [one, more, remedy]]) => {
    const count = found.parts.filter((part) => part.freshness === freshness).length;
    if (!count) return null;
    const subject = count === found.total ? "This text" : `${number(count)} of ${many(found.total, "part")}`;
    return el("p", {}, `${subject} ${count === 1 || count === found.total ? one : more}. What to do: `, el("code", {}, remedy), ".");
  }).filter(Boolean);
  return told.length ? el("div", { class: "outdated", role: "note" }, told) : null;
}

function back() {
  return sessionHash || "#/";
}

/** Where the results are that led here. */
let sessionHash = "";
export function cameFrom(hash) {
  sessionHash = hash;
}

/** The hits of the last answer that are texts of this document. */
function hitsOf(found, values) {
  const answer = lastAnswer();
  if (!answer || values.get("whole")) return [];
  const chosen = values.get("hit");
  return answer.hits
    .filter((hit) => hit.excerpt && found.parts.some((part) => part.path === hit.path))
    .map((hit) => ({ ...hit, chosen: String(hit.index) === chosen }));
}

/** Passages of hits in a part: start and end in its text, and what of them matched. */
function spansOf(part, hits, inPlace) {
  const found = [];
  for (const hit of hits) {
    if (hit.path !== part.path) continue;
    if (inPlace && (hit.line && part.line && !(part.line <= hit.line && hit.line <= part.end_line))) continue;
    const place = placeOf(hit, part);
    if (!place || (inPlace && !hit.line && !hit.text.startsWith(part.text.slice(0, 200)))) continue;
    found.push({ ...place, chosen: hit.chosen });
  }
  found.sort((one, other) => one.start - other.start);
  return found.filter((one, at) => !at || one.start >= found[at - 1].end);
}

/** Where an excerpt stands in a text that may have it several times; null for nowhere. */
function placeOf(hit, part) {
  const { text } = part;
  const first = readFrom(hit, text, 0);
  if (!hit.line || !part.line) return first;
  const blank = text.length - text.trimStart().length;
  for (let place = first; place; place = readFrom(hit, text, place.start + 1)) {
    if (part.line + text.slice(blank, place.start).split("\n").length - 1 === hit.line) return place;
  }
  return first;
}

/** The first place from one on where the words of an excerpt stand in order: links hide what is between. */
function readFrom(hit, text, from) {
  const words = pieces(hit.excerpt, hit.marks || []).flatMap(([piece, inside]) =>
    [...piece.matchAll(/[\p{L}\p{N}\p{M}_]+/gu)].map(([word], at) => ({ word, inside, goesOn: at > 0 })));
  if (!words.length) return null;
  let start = text.indexOf(words[0].word, from);
  for (; start >= 0; start = text.indexOf(words[0].word, start + 1)) {
    const found = readAt(words, text, start);
    const next = found && readFrom(hit, text.slice(0, found.end), start + 1);
    // Where the words stand closest together.
    if (found) return next || found;
  }
  return null;
}

/** Words that follow each other from a place on, and which of them matched; null where they do not. */
function readAt(words, text, start) {
  const marked = [];
  let end = start;
  for (const { word, inside, goesOn } of words) {
    const at = text.slice(end, end + MOST_HIDDEN + word.length).indexOf(word);
    if (at < 0) return null;
    if (inside && goesOn) marked[marked.length - 1][1] = end + at + word.length;
    else if (inside) marked.push([end + at, end + at + word.length]);
    end += at + word.length;
  }
  return { start, end, words: marked };
}

function drawn(part, position, found, hits) {
  const id = `part-${position}`;
  const spans = spansOf(part, hits, found.kind === "document");
  const headings = part.headings.filter((one, level) => level || one !== found.title);
  const title = headings.length ? headings.map(prose).join(" › ") : `Part ${number(position + 1)}`;
  const range = part.line ? (part.end_line > part.line ? `lines ${part.line}–${part.end_line}` : `line ${part.line}`)
    : part.page ? `page ${part.page}` : "";
  return el("section", { class: "part", id, tabindex: "-1", "aria-labelledby": `${id}-title`, "data-part": position },
    el("header", {},
      el("h2", { id: `${id}-title` }, el("bdi", {}, title)),
      el("p", { class: "soft" }, range,
        part.freshness === "fresh" ? null : el("span", { class: `fresh ${part.freshness}` }, `${range ? " · " : ""}${FRESHNESS[part.freshness]}`),
        part.path === found.path ? null : el("span", { class: "file" }, named(part.path)))),
    part.problem ? el("p", { class: "problem", dir: "auto" }, prose(part.problem)) : null,
    lines(part, spans, found.path));
}

/** Whether the lines of a text are those of the document: of one that was converted they are not. */
function hasLines(part, path) {
  if (!part.line || /\.x?html?$/i.test(path)) return false;
  const count = part.end_line - part.line + 1;
  const most = part.text.trimStart().split("\n").length;
  return part.text.trim().split("\n").length <= count && count <= most;
}

function lines(part, spans, path) {
  const text = part.text;
  const isCounted = hasLines(part, path);
  const made = el("div", { class: "lines" });
  let start = 0;
  let fenced = false;
  let count = isCounted ? part.line - 1 : 0;
  let begun = false;
  for (const line of text.replace(/\s+$/, "").split("\n")) {
    const end = start + line.length;
    begun = begun || line.trim() !== "";
    if (begun) {
      count += 1;
      const fence = /^\s*(```|~~~)/.test(line);
      const code = fenced || fence || /^(\||\t| {4})/.test(line);
      if (fence) fenced = !fenced;
      const inside = spans.filter((span) => span.start <= end && span.end > start);
      made.append(el("div", {
        class: `line${code ? " code" : ""}${/^#{1,6} /.test(line) && !fenced ? " heading" : ""}${inside.length ? " in" : ""}`,
        "data-line": isCounted ? count : null,
      }, el("span", { dir: "auto" }, signs(text, start, end, inside))));
    }
    start = end + 1;
  }
  return made;
}

/** The pieces of a line: plain, of a passage, and what matches in it. */
function signs(text, start, end, spans) {
  if (!spans.length) return text.slice(start, end) || "\u200b";
  const found = [];
  let at = start;
  for (const span of spans) {
    const from = Math.max(span.start, start);
    const until = Math.min(span.end, end);
    if (from > at) found.push(text.slice(at, from));
    const inner = [];
    let place = from;
    for (const [first, last] of span.words) {
      if (last <= from || first >= until) continue;
      inner.push(text.slice(place, Math.max(first, from)));
      inner.push(el("b", {}, text.slice(Math.max(first, from), Math.min(last, until))));
      place = Math.min(last, until);
    }
    inner.push(text.slice(place, until));
    if (until > from) {
      const first = !span.begun;
      span.begun = true;
      found.push(el("mark", {
        class: "passage", "data-passage": span.start,
        "data-first": first ? (span.chosen ? "chosen" : "1") : null,
      }, inner));
    }
    at = Math.max(at, until);
  }
  found.push(text.slice(at, end));
  return found;
}

function metadata(values) {
  const all = Object.entries(values).slice(0, 50);
  if (!all.length) return null;
  return el("details", { class: "metadata" },
    el("summary", {}, "What the document says about itself"),
    el("dl", {}, all.map(([key, value]) => el("div", {},
      el("dt", {}, named(key)), el("dd", { dir: "auto" }, prose(plain(value)).slice(0, 2000))))));
}

function steps() {
  return el("p", { class: "steps" },
    el("button", { type: "button", id: "before", onclick: () => step(-1) }, "Passage before"),
    el("button", { type: "button", id: "next", onclick: () => step(1) }, "Next passage"),
    el("span", { id: "which", class: "soft" }));
}

/** Links to the parts that are not given at once. */
function left(found, values, after) {
  const end = found.first + found.parts.length;
  const missing = after ? found.total - end : found.first;
  if (!missing) return null;
  const first = after ? end : Math.max(0, found.first - Math.max(found.parts.length, 20));
  const words = after ? `${number(missing)} later parts` : `${number(missing)} earlier parts`;
  return el("p", {}, el("a", {
    class: "button",
    href: to("document", { path: values.get("path"), first: String(first) }),
  }, words));
}

function begin(values, found) {
  const chosen = passages.findIndex((one) => one.dataset.first === "chosen");
  current = -1;
  if (chosen >= 0) return visit(chosen);
  const heading = document.querySelector("main h1");
  const part = values.get("first") || values.get("whole") ? null : document.getElementById(`part-${found.at}`);
  const line = part && values.get("line") && part.querySelector(`[data-line="${Number(values.get("line"))}"]`);
  if (line) {
    const end = Number(values.get("end")) || Number(values.get("line"));
    for (const one of part.querySelectorAll("[data-line]")) {
      if (Number(one.dataset.line) >= Number(values.get("line")) && Number(one.dataset.line) <= end) one.classList.add("in");
    }
    part.focus({ preventScroll: true });
    line.scrollIntoView({ block: "center" });
  } else if (part && found.at > 0) {
    part.focus({ preventScroll: true });
    part.scrollIntoView({ block: "start" });
  } else {
    heading.focus();
    scrollTo(0, 0);
  }
}

/** Go to the passage that comes next, or came before. */
export function step(by) {
  if (!passages.length) return;
  visit((current + by + passages.length) % passages.length);
}

function visit(index) {
  for (const line of document.querySelectorAll(".line.here")) line.classList.remove("here");
  current = index;
  const mark = passages[index];
  const part = mark.closest(".part");
  for (const one of part.querySelectorAll(`[data-passage="${mark.dataset.passage}"]`)) one.closest(".line").classList.add("here");
  part.focus({ preventScroll: true });
  mark.scrollIntoView({ block: "center" });
  const words = `passage ${index + 1} of ${passages.length}`;
  document.getElementById("which").textContent = words;
  say(words);
}

export function leave() {
  location.hash = back();
}
