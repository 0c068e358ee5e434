"""What the tools answer in words, for agents, which pay for every word.

One rule: what a store holds cannot pass for our words. A line of ours is one line whatever it
holds, each line of a passage begins with ``> ``, the text of a file is between two fences that are
not in it, and a name with blanks in it is quoted.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import orjson

from filestore.core.errors import FilestoreError
from filestore.core.safe_text import brief_path, listed, safe_text
from filestore.search.place import LINES_AROUND
from filestore.server.client_words import for_clients
from filestore.server.operations import TOOLS

Answer = Mapping[str, Any]


class Passage(str):
    """Words of the store, shown in lines that are marked as such."""

    __slots__ = ()


class Whole(Passage):
    """The text of a file, shown as it is, between fences: an edit names passages of it."""

    __slots__ = ()


_MOST_PATHS: Final = 20
"""Files of one code that are named; the rest is counted."""
_MOST_TEXT: Final = 50_000
"""Characters of one text; the JSON has all of it."""
_FENCE: Final = "```"
_SYNC: Final = "run 'sync'"
"""How a note ends that says the same."""
_PLAIN_NAME: Final = re.compile(r"[^\s\"'`()\[\]<>,:]+(?::[^\s\"'`()\[\]<>,:]+)*")
"""A name that ends where the next word of ours begins."""
_CLOSES: Final = re.compile(r"[\[\]\"]")
"""What a note may not have that stands in brackets."""


_WORDED: Final[dict[str, Callable[[Answer], Iterator[str]]]] = {}
"""By the name of the operation."""


def _words_of(*names: str) -> Callable[[Callable[[Answer], Iterator[str]]], object]:
    """Register how some operations' answers are put into words."""
    return lambda put: _WORDED.update(dict.fromkeys(names, put))


def text_of(name: str, answer: Answer, root: str, conventions: str = "") -> str:
    """What an operation answered, in few words.

    Args:
        name: Of the operation.
        answer: As `--json` has it.
        root: Of the store.
        conventions: How notes are written there, as the user allowed to say.
    """
    pieces = [*_WORDED[name](answer)]
    if not any(piece.endswith(_SYNC) for piece in pieces):
        for store, one in answer.get("stores", {"": answer}).items():
            pieces += _behind(one.get("behind", {}), f"{shown_name(store)}: " if store else "")
    if conventions:
        pieces += ["how notes are written in this store:", Passage(conventions)]
    if undo := answer.get("undo"):
        # The person who undoes it may be in another store.
        pieces.append(f"Undo: filestore --store {shlex.quote(root)} undo {undo}")
    return "\n".join(_written(pieces))


def _behind(behind: Answer, store: str) -> Iterator[str]:
    """What the index lacks, where it lacks something."""
    lacks = [f"{behind[what]:,} {what}" for what in ("new", "edited") if behind.get(what)]
    lacking = []
    if lacks:
        is_one = len(lacks) == 1 and lacks[0].startswith("1 ")
        lacking.append(
            f"{' and '.join(lacks)} {'file is' if is_one else 'files are'} not indexed: sync"
        )
    if gone := behind.get("gone"):
        lacking.append(f"{gone:,} indexed {'file is' if gone == 1 else 'files are'} gone")
    if lacking:
        yield f"Note: {store}{'; '.join(lacking)}"


def _written(pieces: Iterable[str]) -> Iterator[str]:
    """Pieces as lines: ours one each, those of the store marked, and not too many of them."""
    left = _MOST_TEXT
    for piece in pieces:
        if left <= 0:
            yield "… (cut)"
            return
        shown = piece[:left]
        left -= len(shown)
        if not isinstance(piece, Passage):
            yield safe_text(shown, keep_newlines=False)
            continue
        text = safe_text(shown.replace("\r\n", "\n"))
        if isinstance(piece, Whole):
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(len(_FENCE), longest + 1)
            yield f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
        else:
            yield "\n".join(f"> {line}" for line in text.split("\n"))
        if len(shown) < len(piece):
            yield "… (cut)"
            return


def text_of_error(error: FilestoreError) -> str:
    """What was not done, why, and what helps."""
    message, remedy = (for_clients(one, TOOLS) for one in (error.message, error.remedy))
    remedy = f"Try: {' '.join(remedy.split())}" if remedy else ""
    pieces = [message, Passage(error.detail), remedy]
    return "\n".join(_written(filter(None, pieces)))


def shown_name(name: str) -> str:
    """A path or a name, so that it is seen where it ends."""
    return name if _PLAIN_NAME.fullmatch(name) else orjson.dumps(name).decode()


def _listed_name(path: str) -> str:
    return shown_name(brief_path(path))


@_words_of("search")
def _search(answer: Answer) -> Iterator[str]:
    if respelt := answer.get("respelt"):
        yield f"nothing for {shown_name(answer['query'])}; for {shown_name(respelt)}:"
    elif answer["nearest"]:
        yield "nothing close; nearest:"
    hits = answer["hits"] or answer["nearest"]
    heads = [_found_head(number, hit) for number, hit in enumerate(hits, start=1)]
    lines = max((len(hit.get("before", ())) for hit in hits), default=0)
    most = _MOST_ASKED if lines > LINES_AROUND else MOST_FOUND
    room = most - sum(map(len, answer["notes"])) - _ROOM_LEFT
    used = [*accumulate(map(len, heads))]
    shown = max(min(1, len(hits)), sum(one <= room / 2 for one in used))
    titles = [_found_title(hit) for hit in hits[:shown]]
    texts = [safe_text(hit["passage"]["text"] or hit["excerpt"]) for hit in hits[:shown]]
    room -= sum(len(one) + 2 for one in (*heads[:shown], *titles))
    rooms = shares([marked_length(one) for one in texts], room)
    cut = 0
    for hit, head, title, text, most in zip(hits, heads, titles, texts, rooms, strict=False):
        part = text if marked_length(text) <= most else _shortened(hit, text, most)
        cut += part is not text
        yield head
        # A passage that begins with its heading tells it itself.
        has_title = title and part.lstrip("\n").partition("\n")[0].rstrip() != title
        yield Passage(f"{title}\n{part}" if has_title else part)
    if more := len(hits) - shown:
        yield f"left: {counted(more, 'more hit')}; name a filter, or ask with a smaller k"
    if cut:
        yield f"left: {counted(cut, 'passage')} shortened; show reads on at PATH:LINE"
    yield from _closing(answer)


MOST_FOUND: Final = 6_000
"""Characters of an answer to a search, however many hits are asked for."""
_MOST_ASKED: Final = 10_000
"""Where more lines around each are asked for."""
_ROOM_LEFT: Final = 200
"""For notes."""
_LONGEST_TITLE: Final = 200


def _found_head(number: int, hit: Answer) -> str:
    """The line of a hit: first its path, as the tools take it, then where the passage is, and why.

    In a store of chunks also where that is in the original.
    """
    path, line, end = shown_name(hit["path"]), hit["line"], hit["end_line"]
    lines = f":{line}-{end}" if line and end != line else f":{line}" if line else ""
    pages = f":p{hit['page']}" if hit["page"] and not line else ""
    around = hit["passage"]
    if hit["document"] != hit["path"]:
        path += f" ({shown_name(hit['document'])}{lines}{pages})"
    else:
        path += pages or (f":{line}" if line else "")
        if line and (around["line"], around["end_line"]) != (line, line):
            path += f" (lines {around['line']}-{around['end_line']})"
    copies = len(hit["copies"])
    notes = "; ".join(
        orjson.dumps(one).decode() if _CLOSES.search(one) else one for one in hit.get("notes", ())
    )
    more = f"+{copies} {'copy' if copies == 1 else 'copies'}" if copies else ""
    store = f"store {shown_name(hit['store'])}" if "store" in hit else ""
    why = "; ".join(filter(None, (hit["reason"], more)))
    return " ".join(
        filter(
            None,
            (f"{number}. {path}{_fresh(hit)}", store, hit["date"], notes and f"[{notes}]", why),
        )
    )


def _found_title(hit: Answer) -> str:
    """The title of a document and the headings above a passage, as a line of the store's."""
    names = (
        hit["section"] if hit["title"] in hit["section"][:1] else [hit["title"], *hit["section"]]
    )
    title = safe_text(" ".join(" > ".join(filter(None, names)).split()))
    title = title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}…"
    return f"# {title}" if title else ""


def marked_length(text: str) -> int:
    """How long a text is with its marks."""
    return len(text) + 3 * (text.count("\n") + 1)


def shares(needs: Sequence[int], room: int) -> list[int]:
    """What each of some texts may have of a room, so that no long one takes it from the others.

    The first get more than the last, and what one leaves the others have.
    """
    found, left = [0] * len(needs), list(range(len(needs)))
    while left:
        weight = sum(1 / (at + 2) for at in left)
        parts = {at: int(max(0, room) / (at + 2) / weight) for at in left}
        small = [at for at in left if needs[at] <= parts[at]]
        for at in small or left:
            found[at] = needs[at] if small else parts[at]
        room -= sum(needs[at] for at in small)
        left = [at for at in left if at not in small] if small else []
    return found


def _shortened(hit: Answer, text: str, most: int) -> str:
    """As many lines of a passage as there is room for, around the ones of its excerpt."""
    lines, around = text.split("\n"), hit["passage"]
    excerpt = safe_text(hit["excerpt"])
    if around["text"] and hit["line"] and around["line"]:
        top = hit["line"] - around["line"]
        bottom = min(len(lines), top + hit["end_line"] - hit["line"] + 1)
        if 0 <= top < bottom and marked_length("\n".join(lines[top:bottom])) <= most - 4:
            while True:
                for wider in ((top, bottom + 1), (top - 1, bottom)):
                    is_there = wider[0] >= 0 and wider[1] <= len(lines)
                    if is_there and marked_length("\n".join(lines[slice(*wider)])) <= most - 4:
                        top, bottom = wider
                        break
                else:
                    return "\n".join(lines[top:bottom]).strip("\n")
    room = max(0, most - 4 - 3 * excerpt.count("\n"))
    return excerpt if len(excerpt) <= room else f"{excerpt[:room]}…"


@_words_of("similar")
def _similar(answer: Answer) -> Iterator[str]:
    for number, hit in enumerate(answer["hits"], start=1):
        source = hit["source"] if hit["source"] != hit["path"] else None
        yield _head(number, hit, f" ({shown_name(source)})" if source else "")
        headings = _brief(" > ".join(hit["headings"]))
        text = _brief(hit["text"])
        yield Passage(f"# {headings}\n{text}" if headings else text)
    yield from _closing(answer)


def _closing(answer: Answer) -> Iterator[str]:
    if not answer["hits"] and not answer.get("nearest"):
        yield "nothing found"
    yield from _notes(answer)


def _notes(answer: Answer) -> Iterator[str]:
    yield from (f"Note: {for_clients(note, TOOLS)}" for note in answer["notes"])


@_words_of("list")
def _list(answer: Answer) -> Iterator[str]:
    where = f" in {_listed_name(answer['folder'])}" if answer["folder"] else ""
    yield f"{counted(answer['documents'], 'document')}{where}"
    for one in answer["folders"]:
        yield f"- {_listed_name(one['path'])} {counted(one['documents'], 'document')}"
    for key, head in (("newest", "newest:"), ("linked", "most linked:"), ("items", "documents:")):
        yield from _listed(answer[key], head)
    if answer["next"]:
        # Only the newest have dates.
        newest = "recent and " if any(one.get("date") for one in answer["items"]) else ""
        yield f"… {answer['left']:,} more: list with {newest}after {_listed_name(answer['next'])}"


def _listed(documents: Sequence[Answer], head: str) -> Iterator[str]:
    if documents:
        yield head
    for one in documents:
        words = [_listed_name(one["path"]), one.get("date", "")]
        words += [orjson.dumps(one["title"]).decode()] if one.get("title") else []
        words += [counted(one["links"], "link")] if one.get("links") else []
        yield f"- {' '.join(filter(None, words))}"


@_words_of("show")
def _show(answer: Answer) -> Iterator[str]:
    record, left = answer["record"], answer["left"]
    about = [] if record["indexed"] else ["not indexed"]
    about += [record["freshness"]] if record.get("freshness", "fresh") != "fresh" else []
    source = record.get("source")
    about += [f"from {shown_name(source)}"] if source and source != answer["path"] else []
    path = shown_name(answer["path"])
    yield f"{path} [{', '.join(about)}]" if about else path
    if answer["revision"]:
        yield f"revision: {answer['revision']}"
    keys = answer["frontmatter"]
    for key, sign in _SHOWN:
        if key in keys:
            value = keys[key]
            text = sign.join(map(str, value)) if isinstance(value, list) else str(value)
            yield Passage(f"{key}: {_brief(text)}")
    if left and answer["lines"]:
        first, last = answer["lines"]
        yield f"lines {first:,}-{last:,} of {last + left['after']:,}"
    body = answer["body"]
    has_long_fence = "`" * _LONGEST_FENCE in body
    yield Passage(body) if has_long_fence else Whole(body)
    if left and left["next"]:
        yield f"… {counted(left['after'], 'more line')}: show {shown_name(left['next'])}"


_LONGEST_FENCE: Final = 50
"""Signs: a text with a longer one is quoted line by line."""
_SHOWN: Final = (("title", ", "), ("tags", ", "), ("headings", " > "), ("pages", ", "))


MOST_ABOUT: Final = 4_000
"""Characters of what something is about."""


@_words_of("about")
def _about(answer: Answer) -> Iterator[str]:
    """As much as there is room for, what matters first; what is left is counted."""
    pieces = [*_about_pieces(answer)]
    notes = [*_notes(answer)]
    room = MOST_ABOUT - _ROOM_LEFT - sum(map(len, notes))
    used = [*accumulate(marked_length(piece) + 3 for piece in pieces)]
    shown = max(1, sum(one <= room for one in used))
    yield from pieces[:shown]
    if left := len(pieces) - shown + answer["left"]:
        yield f"… {left:,} more: about or list with a folder or a document"
    yield from notes


def _about_pieces(answer: Answer) -> Iterator[str]:
    counts = [counted(answer["resources"], "document"), counted(answer["chunks"], "passage")]
    yield f"{', '.join(counts)} in {shown_name(answer['name']) if answer['name'] else 'the store'}"
    if answer["topics"]:
        yield "topics:"
    for one in answer["topics"]:
        paths = ", ".join(map(shown_name, one["paths"]))
        yield f"- {counted(one['documents'], 'document')}: {paths}"
        yield Passage(", ".join(one["terms"]))
    for one in answer["folders"]:
        yield f"- {_listed_name(one['path'])} {counted(one['documents'], 'document')}"
    yield from _nodes(answer["nodes"], "")
    if not answer["nodes"]:
        outline = ((one["depth"], _brief(one["title"])) for one in answer["outline"])
        yield from (Passage(f"{'  ' * depth}- {title}") for depth, title in outline)
    for one in answer["documents"]:
        name = shown_name(one["resource"])
        yield f"- {name}"
        if one["title"] and one["title"] != one["resource"]:
            yield Passage(_brief(one["title"]))
    if answer["left"]:
        yield from _listed(answer["newest"], "newest:")
        yield from _listed(answer["linked"], "most linked:")


def _nodes(nodes: Iterable[Answer], indent: str) -> Iterator[str]:
    for node in nodes:
        path = shown_name(node["path"])
        yield f"{indent}- {path}{_fresh(node)}"
        if node["title"]:
            yield Passage(_brief(node["title"]))
        if node["text"]:
            yield Passage(_brief(node["text"]))
        yield from _nodes(node["below"], indent + "  ")


@_words_of("status")
def _status(answer: Answer) -> Iterator[str]:
    counts = ", ".join(f"{count} {what}" for what, count in answer["counts"].items())
    yield f"{'clean' if answer['clean'] else 'not clean'}, generation {answer['generation']}"
    yield counts
    for code, paths in answer["drift"].items():
        yield f"{code}: {listed(map(shown_name, paths), _MOST_PATHS)}"
    if answer["drift"]:
        yield "sync updates the index; until then edited files say so where they are found"
    if problem := answer["embedder"]["problem"]:
        yield f"model: {problem}"


@_words_of("sync")
def _sync(answer: Answer) -> Iterator[str]:
    applied, left = len(answer["applied"]), answer["remaining"]
    if applied or answer["embedded"]:
        yield f"repaired {applied}, embedded {answer['embedded']} ({answer['reused']} from cache)"
    elif not left:
        yield "nothing to do: the index is up to date"
    for finding in left[:_MOST_PATHS]:
        yield f"left: {finding['code']} {shown_name(finding['path'])}"
        if finding["detail"]:
            yield Passage(_brief(finding["detail"]))
    if len(left) > _MOST_PATHS:
        yield f"and {len(left) - _MOST_PATHS} more"


@_words_of("add_note", "append", "edit")
def _note(answer: Answer) -> Iterator[str]:
    diff = answer.get("diff")
    done = "would change" if diff else "wrote" if answer["undo"] else "nothing changes in"
    yield f"{done} {shown_name(answer['path'])}"
    if answer["revision"]:
        yield f"revision: {answer['revision']}"
    if diff:
        yield Whole(diff)
    if alike := answer["alike"]:
        yield f"Note: nearly the same name: {', '.join(map(shown_name, alike))}"
    if problem := answer.get("not_embedded"):
        yield f"not embedded: {problem['error']}"


@_words_of("move")
def _move(answer: Answer) -> Iterator[str]:
    verb = "moved" if answer["done"] else "would move"
    yield f"{verb} {shown_name(answer['path'])} to {shown_name(answer['to'])}"
    for one in answer["relinked"][:_MOST_PATHS]:
        yield f"{counted(one['links'], 'link')} written otherwise in {shown_name(one['path'])}"
        if not answer["done"]:
            yield Passage(one["diff"])
    if len(answer["relinked"]) > _MOST_PATHS:
        yield f"and {len(answer['relinked']) - _MOST_PATHS} more files"
    for one in answer["left"][:_MOST_PATHS]:
        yield f"left: {shown_name(one['path'])}: {one['reason']}"
    if problem := answer.get("not_embedded"):
        yield f"not embedded: {problem['error']}"


def counted(count: int, what: str) -> str:
    """A number of things."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _head(number: int, hit: Answer, origin: str) -> str:
    """The line of a hit: first its path, as the tools take it, then where that comes from."""
    path, line = shown_name(hit["path"]), hit.get("line")
    if line and hit.get("document", hit["path"]) == hit["path"]:
        # In place the line selects the section.
        path += f":{line}" if hit["kind"] == "document" else f" line {line}"
    return f"{number}. {path}{origin}{_fresh(hit)} {hit['score']:.2f}"


def _fresh(one: Answer) -> str:
    return "" if one["freshness"] in ("fresh", "") else f" [{one['freshness']}]"


def _brief(text: str) -> str:
    """The first words of a text, on one line."""
    words = " ".join(text[:400].split())
    return words if len(words) <= 200 else f"{words[:200]}…"
