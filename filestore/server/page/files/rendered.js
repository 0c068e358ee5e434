// A document as elements: its blocks as they are read, or its source lines, with passages marked.
//
// One rule: whatever a document says becomes text. A link leads to the store, or is shown with where
// it would lead; a picture is never fetched.

import { to } from "./address.js";
import { el, shown } from "./dom.js";

/** What a browser may open that is asked to leave the page. */
const OUTSIDE = /^(?:https?|mailto):/i;
const SCHEME = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
const DEEPEST = 6;

/** The lines of a text as blocks, each one run. */
export function sourceBlocks(text, first) {
  const found = [];
  let fenced = false;
  let begun = false;
  text.replace(/\s+$/, "").split("\n").forEach((line, at) => {
    begun = begun || line.trim() !== "";
    const fence = /^\s*(```|~~~)/.test(line);
    const isCode = fenced || fence || /^(\||\t| {4})/.test(line);
    if (fence) fenced = !fenced;
    if (begun) found.push({ kind: "line", line: first + at, lines: [[{ text: line, line: first + at }]], isCode });
  });
  return found;
}

/** The words of a file, one after the other, with the place where each run of them begins. */
export class Flow {
  constructor() {
    this.pieces = [];
    this.runs = [];
    this.length = 0;
    this.parts = [];
  }

  /** Add the blocks of a part. */
  add(part, blocks) {
    const start = this.length;
    for (const block of blocks) {
      for (const words of [...(block.lines || []), ...(block.rows || []).flat()]) {
        for (const run of words) {
          this.runs.push({ run, start: this.length });
          run.start = this.length;
          this.push(run.text);
        }
        this.push("\n");
      }
    }
    this.parts.push({ part, start, end: this.length });
  }

  push(text) {
    this.pieces.push(text);
    this.length += text.length;
  }

  get text() {
    this.joined ??= this.pieces.join("");
    return this.joined;
  }

  /** The line on which a place is. */
  lineAt(place) {
    let [low, high] = [0, this.runs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.runs[middle].start <= place) low = middle + 1;
      else high = middle;
    }
    return low ? this.runs[low - 1].run.line : 0;
  }

  /** Where a line begins; the end where it is behind all of them. */
  startOf(line) {
    const found = this.runs.find(({ run }) => run.line >= line);
    return found ? found.start : this.length;
  }
}

/** The elements of some blocks: lists and quotations in each other as their marks say. */
export class Drawing {
  /**
   * @param path The file whose links they are.
   * @param spans Its passages, as places of its flow.
   */
  constructor(path, spans) {
    this.path = path;
    this.spans = spans;
    this.headings = [];
  }

  /** Put blocks into an element. */
  draw(into, blocks) {
    const open = [];
    for (const block of blocks) {
      const marks = block.marks || [];
      marks.forEach((mark, depth) => this.enter(open, depth, mark, into));
      open.length = marks.length;
      (open.length ? open[open.length - 1].node : into).append(this.block(block));
    }
  }

  /** Have the list item or the quotation of a mark open, at a depth. */
  enter(open, depth, mark, into) {
    const parent = depth ? open[depth - 1].node : into;
    const kind = mark.startsWith(">") ? "blockquote" : /^\d/.test(mark) ? "ol" : "ul";
    const before = open[depth];
    if (before && (!mark.trim() || (kind === "blockquote" && before.kind === kind))) return;
    open.length = depth;
    if (kind === "blockquote" || !mark.trim()) {
      // An item that began in what is not given has no sign here.
      const node = el(kind === "blockquote" ? kind : "div", { class: kind === "blockquote" ? null : "goes-on" });
      parent.append(node);
      open.push({ kind, node });
      return;
    }
    const list = before && before.kind === kind && before.list ? before.list : el(kind);
    const node = el("li", { value: kind === "ol" ? String(parseInt(mark, 10)) : null });
    if (!list.parentNode) parent.append(list);
    list.append(node);
    open.push({ kind, node, list });
  }

  block(block) {
    const { start, end } = reach(block);
    const inside = this.spans.filter((span) => span.start < end && span.end > start);
    const className = `block${inside.length ? " in" : ""}`;
    const data = { class: className, "data-line": block.line };
    switch (block.kind) {
      case "line":
        return el("div", { ...data, class: `${className} line${block.isCode ? " code" : ""}` },
          el("span", { dir: "auto" }, block.lines[0][0].text ? this.words(block.lines[0]) : "\u200b"));
      case "heading": {
        const depth = this.depthOf(block.level || 1);
        return el(`h${Math.min(depth, DEEPEST)}`, {
          ...data, class: `${className} level-${block.level}`, dir: "auto",
          "aria-level": depth > DEEPEST ? depth : null,
        }, this.lines(block.lines));
      }
      case "code":
        return el("pre", { ...data, dir: "ltr" }, el("code", {}, (block.lines || []).flatMap((words, at) => [at ? "\n" : "", ...this.words(words)])));
      case "table":
        return this.table(block, data);
      case "rule":
        return el("hr", { class: "block", "data-line": block.line });
      default:
        return el("p", { ...data, dir: "auto" }, this.lines(block.lines));
    }
  }

  /** The level of a heading below the name of the page, without a gap: authors leave some out. */
  depthOf(level) {
    while (this.headings.length && this.headings[this.headings.length - 1] >= level) this.headings.pop();
    this.headings.push(level);
    return this.headings.length + 1;
  }

  lines(lines = []) {
    return lines.flatMap((words, at) => [at ? el("br") : "", ...this.words(words)]);
  }

  table(block, data) {
    const [head, ...rows] = block.rows || [[]];
    return el("div", { ...data, class: `${data.class} wide`, tabindex: "0", role: "group", "aria-label": "Table" },
      el("table", {},
        el("thead", {}, el("tr", {}, head.map((cell) => el("th", { scope: "col", dir: "auto" }, this.words(cell))))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", { dir: "auto" }, this.words(cell))))))));
  }

  words(words) {
    return words.map((run) => this.linked(run, this.styled(run, this.marked(run))));
  }

  styled({ style }, inner) {
    const tag = { strong: "strong", emphasis: "em", code: "code", struck: "s" }[style];
    return tag ? [el(tag, {}, inner)] : inner;
  }

  linked({ target, text }, inner) {
    if (!target) return inner.length === 1 && typeof inner[0] === "string" ? inner[0] : el("span", {}, inner);
    if (text.startsWith("[image: ")) return el("span", { class: "image" }, inner);
    if (OUTSIDE.test(target)) {
      return el("a", { class: "outside", href: target, target: "_blank", rel: "noopener noreferrer" },
        inner, el("span", { class: "unseen" }, " (opens a new tab)"));
    }
    if (SCHEME.test(target)) return el("span", {}, inner, el("span", { class: "soft" }, ` (${shown(target).slice(0, 200)})`));
    return el("a", { href: to("document", { path: this.path, link: target }) }, inner);
  }

  /** A run in pieces: plain, of a passage, and in it what matches. */
  marked({ text, start }) {
    const end = start + text.length;
    const cut = (from, until) => text.slice(from - start, until - start);
    const found = [];
    let at = start;
    for (const span of this.spans) {
      const [from, until] = [Math.max(span.start, start), Math.min(span.end, end)];
      if (until <= from) continue;
      if (from > at) found.push(cut(at, from));
      const inner = [];
      let place = from;
      for (const [first, last] of span.words) {
        if (last <= from || first >= until) continue;
        if (first > place) inner.push(cut(place, first));
        inner.push(el("b", {}, cut(Math.max(first, from), Math.min(last, until))));
        place = Math.min(last, until);
      }
      if (until > place) inner.push(cut(place, until));
      found.push(el("mark", {
        class: "passage", "data-passage": span.start,
        "data-first": span.begun ? null : span.chosen ? "chosen" : "1",
      }, inner));
      span.begun = true;
      at = Math.max(at, until);
    }
    if (end > at) found.push(cut(at, end));
    return found;
  }
}

/** Where the words of a block begin and end in its flow. */
function reach(block) {
  const runs = [...(block.lines || []), ...(block.rows || []).flat()].flat();
  if (!runs.length) return { start: 0, end: 0 };
  const last = runs[runs.length - 1];
  return { start: runs[0].start, end: last.start + last.text.length };
}
