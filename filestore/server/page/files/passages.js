// Where the excerpts of hits are in the words of a document.

import { pieces } from "./dom.js";

/** So many characters of a link are not shown in an excerpt. */
const MOST_HIDDEN = 1000;

/**
 * Passages of hits in a flow, in order: start and end, and what of them matched.
 * @param isCounted Whether the lines of the flow are those that hits name.
 */
export function spansOf(flow, hits, isCounted) {
  const found = hits
    .map((hit) => [hit, placeOf(hit, flow, isCounted)])
    .filter(([, place]) => place)
    .map(([hit, place]) => ({ ...place, chosen: hit.chosen }));
  found.sort((one, other) => one.start - other.start || Number(other.chosen) - Number(one.chosen));
  return found.filter((one, at) => !at || one.start >= found[at - 1].end);
}

/** Where an excerpt is in a text that may have it several times; null for nowhere. */
function placeOf(hit, flow, isCounted) {
  const words = wordsOf(hit);
  if (!words.length) return null;
  if (hit.line && isCounted) {
    const there = readFrom(words, flow.text, flow.startOf(hit.line));
    if (there && flow.lineAt(there.start) === hit.line) return there;
  } else {
    // Without lines the part tells, whose text the hit has.
    const own = flow.parts.find(({ part }) => part.text && hit.text.startsWith(part.text.slice(0, 200)));
    const there = own && readFrom(words, flow.text.slice(0, own.end), own.start);
    if (there) return there;
  }
  return readFrom(words, flow.text, 0);
}

const wordsOf = (hit) => pieces(hit.excerpt, hit.marks || []).flatMap(([piece, inside]) =>
  [...piece.matchAll(/[\p{L}\p{N}\p{M}_]+/gu)].map(([word], at) => ({ word, inside, goesOn: at > 0 })));

/** The first place from one on where the words of an excerpt are in order: what is between may be hidden. */
function readFrom(words, text, from) {
  let start = text.indexOf(words[0].word, from);
  for (; start >= 0; start = text.indexOf(words[0].word, start + 1)) {
    let found = readAt(words, text, start);
    if (!found) continue;
    // Where the words are closest together.
    for (let next = start; (next = text.indexOf(words[0].word, next + 1)) >= 0 && next < found.end;) {
      const closer = readAt(words, text.slice(0, found.end), next);
      if (closer) found = closer;
    }
    return found;
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
