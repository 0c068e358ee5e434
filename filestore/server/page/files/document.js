// A document from beginning to end, with the passages of the last search in it, and its links.

import { ask } from "./api.js";
import { read, to } from "./address.js";
import { el, many, named, number, problem, prose, say, show, shown } from "./dom.js";
import { spansOf } from "./passages.js";
import { Drawing, Flow, sourceBlocks } from "./rendered.js";
import { FRESHNESS, lastAnswer, plain } from "./search.js";

const SHOWN_LINKS = 100;

let passages = [];
let current = -1;
/** What is shown, as it was given: the other view of it asks nothing. */
let open = null;
/** Whether documents are shown as they are written. */
let isSource = false;

export async function documentView(values, signal) {
  const given = { path: values.get("path") || "", rendered: true };
  if (/^\d{1,9}$/.test(values.get("first") || "")) given.first = Number(values.get("first"));
  else if (/^\d{1,9}$/.test(values.get("line") || "")) given.line = Number(values.get("line"));
  if (values.get("link")) given.link = values.get("link");
  const found = await ask("document", given, signal);
  if (given.link) {
    // The address of what the link leads to, so that a reload does not follow it again.
    history.replaceState(null, "", to("document", { path: at(found).path, line: found.line || "" }));
    values = read().values;
  }
  open = { found, values, below: el("div", { class: "links" }) };
  draw();
  begin(values, found);
  linked(found, open.below, signal);
}

function draw() {
  const { found, values, below } = open;
  const canBeRead = found.prose && found.parts.some((part) => part.blocks);
  const isRead = canBeRead && !isSource;
  const states = new Set(found.parts.map((part) => part.freshness));
  const worst = ["gone", "edited", "outdated"].find((one) => states.has(one));
  const hits = hitsOf(found, values);
  const text = textOf(found, hits, isRead);
  const [first] = found.parts[0]?.blocks || [];
  const isTitled = isRead && !found.first && first && first.kind === "heading" && first.level === 1;
  show(found.title,
    el("p", { class: "back" }, el("a", { href: back(), id: "back" }, "← Back")),
    // What the document begins with is its title: it is not to be read twice.
    el("h1", { tabindex: "-1", class: isTitled ? "unseen" : null }, el("bdi", {}, prose(found.title))),
    el("p", { class: "place" }, named(found.path), worst ? el("span", { class: `fresh ${worst}` }, ` ${FRESHNESS[worst]}`) : null),
    stale(found),
    el("div", { class: "steps" },
      canBeRead ? el("button", { type: "button", id: "source", "aria-pressed": String(isSource), "aria-keyshortcuts": "s", onclick: toggle }, "Source") : null,
      el("a", { class: "button", href: to("similar", { path: at(found) ? at(found).path : found.path }) }, "Similar passages"),
      text.querySelector("mark[data-first]") ? steps() : null),
    metadata(found.metadata),
    left(found, values, false),
    text,
    left(found, values, true),
    below);
  passages = [...document.querySelectorAll("mark[data-first]")];
}

/** Show the source, or what is read again; where one is in it stays. */
export function toggle() {
  if (!open || !document.getElementById("source")) return;
  const top = [...document.querySelectorAll(".text [data-line]")].find((one) => one.getBoundingClientRect().bottom > 0);
  const [line, part] = top ? [Number(top.dataset.line), top.closest(".part").id] : [0, ""];
  const before = current;
  isSource = !isSource;
  draw();
  document.getElementById("source").focus({ preventScroll: true });
  say(isSource ? "source" : "as it is read");
  if (before >= 0 && before < passages.length) return visit(before, false);
  const lines = document.querySelectorAll(`${part ? `#${part} ` : ".text "}[data-line]`);
  ([...lines].find((one) => Number(one.dataset.line) >= line) || document.querySelector("main")).scrollIntoView({ block: "start" });
  return undefined;
}

const at = (found) => found.parts[found.at - found.first] || found.parts[0];

const STALE = {
  gone: ["was deleted since it was indexed", "were deleted since they were indexed", "filestore sync"],
  edited: ["was edited since it was indexed: shown as it is now, found by its earlier text",
    "were edited since they were indexed: shown as they are now, found by their earlier text", "filestore sync"],
  outdated: ["was made from an older version of the original, or the original is gone",
    "were made from an older version of the original, or the original is gone", "filestore update"],
};

/** What of the document is not what the index has; null where all of it is. */
function stale(found) {
  const told = Object.entries(STALE).map(([freshness, [one, more, remedy]]) => {
    const count = found.parts.filter((part) => part.freshness === freshness).length;
    if (!count) return null;
    const subject = count === found.total ? "This document" : `${number(count)} of ${many(found.total, "passage")}`;
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

/** Whether the lines of a text are those of the document: of one that was converted they are not. */
function hasLines(part, path) {
  if (!part.line || /\.x?html?$/i.test(path)) return false;
  const count = part.end_line - part.line + 1;
  const most = part.text.trimStart().split("\n").length;
  return part.text.trim().split("\n").length <= count && count <= most;
}

/** The text, part by part. */
function textOf(found, hits, isRead) {
  const flows = new Map();
  const isCounted = found.parts.every((part) => hasLines(part, found.path));
  const blocks = found.parts.map((part) => {
    const own = isRead ? part.blocks || [] : sourceBlocks(part.text, firstOf(part));
    if (!flows.has(part.path)) flows.set(part.path, new Flow());
    flows.get(part.path).add(part, own);
    return own;
  });
  const drawings = new Map([...flows].map(([path, flow]) => {
    const mine = hits.filter((hit) => hit.path === path);
    return [path, new Drawing(path, mine.length ? spansOf(flow, mine, isCounted) : [])];
  }));
  return el("div", { class: `text ${isRead ? "read" : found.prose ? "prose" : "source"}${isCounted ? " counted" : ""}` },
    found.parts.map((part, number_) => {
      const node = el("div", {
        class: "part", id: `part-${number_ + found.first}`, tabindex: "-1", role: "group",
        "aria-label": (part.headings.map(prose).join(" › ") || `Passage ${number(number_ + found.first + 1)}`).slice(0, 200),
        "data-part": number_ + found.first,
      }, about(part, found, found.parts[number_ - 1]), part.problem ? el("p", { class: "problem", dir: "auto" }, prose(part.problem)) : null);
      drawings.get(part.path).draw(node, blocks[number_]);
      return node;
    }));
}

/** The line on which the text of a part begins, blank lines included. */
function firstOf(part) {
  if (!part.line) return 1;
  const blank = part.text.length - part.text.trimStart().length;
  return part.line - (part.text.slice(0, blank).split("\n").length - 1);
}

/** What a reader is told of a part: its file, where it is one of several, its page, how it is not fresh. */
function about(part, found, before) {
  const words = [
    part.path === found.path ? null : named(part.path),
    part.page && part.page !== before?.page ? el("span", {}, `page ${number(part.page)}`) : null,
    part.freshness === "fresh" || found.total === 1 ? null : el("span", { class: `fresh ${part.freshness}` }, FRESHNESS[part.freshness]),
  ].filter(Boolean);
  return words.length ? el("p", { class: "about" }, words) : null;
}

function metadata(values) {
  const all = Object.entries(values).slice(0, 50);
  if (!all.length) return null;
  return el("details", { class: "metadata" },
    el("summary", {}, "Properties"),
    el("dl", {}, all.map(([key, value]) => el("div", {},
      el("dt", {}, named(key)), el("dd", { dir: "auto" }, prose(plain(value)).slice(0, 2000))))));
}

function steps() {
  return [
    el("button", { type: "button", id: "before", "aria-keyshortcuts": "p", onclick: () => step(-1) }, "Passage before"),
    el("button", { type: "button", id: "next", "aria-keyshortcuts": "n", onclick: () => step(1) }, "Next passage"),
    el("span", { id: "which", class: "soft" }),
  ];
}

/** Links to the parts that are not given at once. */
function left(found, values, after) {
  const end = found.first + found.parts.length;
  const missing = after ? found.total - end : found.first;
  if (!missing) return null;
  const first = after ? end : Math.max(0, found.first - Math.max(found.parts.length, 20));
  return el("p", {}, el("a", {
    class: "button",
    href: to("document", { path: values.get("path"), first: String(first) }),
  }, many(missing, after ? "later passage" : "earlier passage")));
}

/** The documents that link to this one, and that it links to, once they are known. */
async function linked(found, into, signal) {
  try {
    const { incoming, outgoing } = await ask("links", { path: found.path }, signal);
    const froms = once(incoming.map((one) => ({ ...one, at: one.path })), found);
    const tos = once(outgoing.map((one) => ({ ...one, at: one.moved_to || one.target, line: null })), found);
    into.replaceChildren(...[listed("Linked from", "incoming", froms), listed("Links to", "outgoing", tos)].filter(Boolean));
  } catch (error) {
    if (error.name !== "AbortError") into.replaceChildren(problem(error));
  }
}

/** Each other file once, with its first line. */
function once(links, found) {
  const own = new Set([found.path, ...found.parts.map((part) => part.path)]);
  const files = new Map();
  for (const link of links) if (!own.has(link.at) && !files.has(link.at)) files.set(link.at, link);
  return [...files.values()];
}

const LEADS = new Set(["there", "moved"]);

function listed(title, id, links) {
  if (!links.length) return null;
  return el("section", { "aria-labelledby": id },
    el("h2", { id }, title, el("span", { class: "count" }, ` ${number(links.length)}`)),
    el("ul", {}, links.slice(0, SHOWN_LINKS).map((link) => el("li", {},
      LEADS.has(link.state) ? el("a", { href: to("document", { path: link.at, line: link.line || "" }) }, named(link.at)) : named(link.at),
      link.state === "there" ? null : el("span", { class: "soft" }, ` ${shown(link.state)}`)))),
    links.length > SHOWN_LINKS ? el("p", { class: "soft" }, `and ${number(links.length - SHOWN_LINKS)} more: filestore links`) : null);
}

function begin(values, found) {
  const chosen = passages.findIndex((one) => one.dataset.first === "chosen");
  current = -1;
  if (chosen >= 0) return visit(chosen);
  const part = values.get("first") || values.get("whole") ? null : document.getElementById(`part-${found.at}`);
  const wanted = Number(values.get("line")) || 0;
  const blocks = part && wanted ? [...part.querySelectorAll("[data-line]")] : [];
  // The block in which the line is: the last one that begins above it, or on it.
  const begun = blocks.filter((one) => Number(one.dataset.line) <= wanted).pop();
  if (begun) {
    const end = Number(values.get("end")) || wanted;
    for (const one of blocks) {
      if (one === begun || (Number(one.dataset.line) > wanted && Number(one.dataset.line) <= end)) one.classList.add("in");
    }
    begun.classList.add("here");
    part.focus({ preventScroll: true });
    begun.scrollIntoView({ block: "center" });
  } else if (part && found.at > 0) {
    part.focus({ preventScroll: true });
    part.scrollIntoView({ block: "start" });
  } else {
    document.querySelector("main h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  return undefined;
}

/** Go to the passage that comes next, or came before. */
export function step(by) {
  if (!passages.length) return;
  visit((current + by + passages.length) % passages.length);
}

function visit(index, takesFocus = true) {
  for (const one of document.querySelectorAll(".here")) one.classList.remove("here");
  current = index;
  const mark = passages[index];
  for (const one of document.querySelectorAll(`[data-passage="${mark.dataset.passage}"]`)) {
    if (one.closest(".part").dataset.part === mark.closest(".part").dataset.part) one.closest(".block").classList.add("here");
  }
  if (takesFocus) mark.closest(".part").focus({ preventScroll: true });
  mark.scrollIntoView({ block: "center" });
  const words = `passage ${index + 1} of ${passages.length}`;
  document.getElementById("which").textContent = words;
  say(words);
}

export function leave() {
  location.hash = back();
}
