"""Changes of one text: a passage, a section, an addition at the end. Pure.

One rule: every character outside of what is named stays, line ends included, and what is named is
there exactly once, in the revision that was read.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from filestore.chunking.blocks import markdown_blocks
from filestore.core.errors import RefusedError, UsageError
from filestore.core.hashing import revision_of
from filestore.core.paths import StorePath
from filestore.core.safe_text import brief, shown_path
from filestore.extract.markdown import read_frontmatter

_UNDERLINE: Final = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$", re.M)
_ATX: Final = re.compile(r" {0,3}#{1,6}(?:[ \t\n]|\Z)")
_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)*")
_GOES_ON: Final = re.compile(
    r"[ \t]*(?:(?P<item>(?:[-*+]|[0-9]{1,9}[.)])[ \t])|(?P<row>\|)|(?P<quotation>>))|[ \t]"
)
"""The start of a line that belongs to one of its kind, or as indented to any above it."""
_WITHIN: Final = " > "
"""Between a heading and one below it, as hits name them."""
_MOST_PLACES: Final = 3


class NotedElsewhere(RefusedError):
    """What was to be changed is not as it was named."""


class OtherRevisionError(RefusedError):
    """A file is not, or no more, as it was read."""


class Edit(Struct, frozen=True, kw_only=True):
    """A change of a text; without `old` and `section` an addition at its end."""

    old: str = ""
    """The passage that is replaced."""
    section: str = ""
    """The heading below which all text is replaced, down to the next one of its level or above."""
    new: str


def edit_of(old: str, section: str, new: str) -> Edit:
    """A replacement.

    Raises:
        UsageError: It does not name one thing that is replaced.
    """
    if bool(old) == bool(section):
        raise UsageError(
            "an edit replaces one thing: give old, a passage, or section, a heading; or use append"
        )
    return Edit(old=old, section=section, new=new)


def check_revision(path: StorePath, data: bytes, given: str | None) -> None:
    """Refuse a file that is not the one that was read.

    Args:
        path: Of the file, as `show` names it.
        data: What it holds.
        given: The revision that was read; None where none is asked for.

    Raises:
        OtherRevisionError: It has another one, which the message names.
    """
    now = revision_of(path, data)
    if given is not None and given != now:
        shown = shown_path(path)
        raise OtherRevisionError(
            f"{shown} has revision {now}, not {brief(given)}: nothing was written"
            f"; show {shown} again, and change what it holds now",
        )


def changed(before: str, edit: Edit, *, shown: str, above: int = 0) -> str:
    """A text after an edit; lines are found whether they end in LF or CR LF, and stay so.

    Args:
        before: The text.
        edit: The change.
        shown: The name of the file, for messages.
        above: How many lines the file has above the text.

    Raises:
        NotedElsewhere: What is named is not there exactly once.
    """
    text = before.replace("\r\n", "\n")
    new = edit.new.replace("\r\n", "\n")
    if edit.old:
        start, end = _passage(text, edit.old.replace("\r\n", "\n"), shown, above)
    elif edit.section:
        start, end, new = _section(text, edit.section, new, shown, above)
    else:
        start = end = len(text)
        new = _added(text, new)
    if before.count("\r\n") * 2 > before.count("\n"):
        new = new.replace("\n", "\r\n")
    return f"{before[: _place(before, start)]}{new}{before[_place(before, end) :]}"


def _added(text: str, new: str) -> str:
    """A text as it is added: a paragraph of its own, unless it goes on with a list or the like."""
    above = text if not text or text.endswith("\n") else f"{text}\n"
    last, first = above[:-1].rpartition("\n")[2], new.partition("\n")[0]
    before, after = _GOES_ON.match(last), _GOES_ON.match(first)
    goes_on = after and (
        after.lastgroup is None or (before and before.lastgroup == after.lastgroup)
    )
    blank = "" if not last.strip() or not first.strip() or goes_on else "\n"
    return f"{above[len(text) :]}{blank}{new}{'' if new.endswith(chr(10)) else chr(10)}"


def _place(text: str, offset: int) -> int:
    """Where a character is whose place was counted with one character for each CR LF."""
    place = offset
    for found in re.finditer("\r\n", text):
        if found.start() >= place:
            break
        place += 1
    return place


def _passage(text: str, old: str, shown: str, above: int) -> tuple[int, int]:
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) <= _MOST_PLACES:
        places.append(at)
        at = text.find(old, at + 1)
    if len(places) != 1:
        raise _not_once("passage", text, places, shown, above)
    return places[0], places[0] + len(old)


def _not_once(what: str, text: str, places: list[int], shown: str, above: int) -> NotedElsewhere:
    lines = [above + text.count("\n", 0, at) + 1 for at in places[:_MOST_PLACES]]
    where = f"on lines {' and '.join(map(str, lines))}" if places else "nowhere"
    more = " and more" if len(places) > _MOST_PLACES else ""
    return NotedElsewhere(
        f"the {what} is {where}{more} in {shown}, expected exactly once: nothing was written"
        f"; show it again, and name a {what} that is there once",
    )


def _section(text: str, named: str, new: str, shown: str, above: int) -> tuple[int, int, str]:
    """Where the text below a heading is, and what takes its place, blank lines around it kept."""
    wanted = _written_title(named)
    headings = list(_headings(text))
    found = [one for one in headings if wanted in one.names]
    if len(found) != 1:
        places = [one.start for one in found[: _MOST_PLACES + 1]]
        raise _not_once("heading", text, places, shown, above)
    (heading,) = found
    below = headings[headings.index(heading) + 1 :]
    end = next((one.start for one in below if one.level <= heading.level), len(text))
    before = text[heading.end : end]
    first, _, rest = new.lstrip("\n").partition("\n")
    if _ATX.match(first) and _written_title(first) in heading.names:
        new = rest
    new = new.strip("\n")
    lead, trail = "\n", "\n" if end == len(text) else "\n\n"
    if before.strip():
        lead = before[: len(before) - len(_BLANK_LINES.sub("", before, count=1))]
        trail = before[len(before.rstrip()) :]
    if not new:
        lead, trail = "", trail[1:]
    if not text[: heading.end].endswith("\n"):
        lead = f"\n{lead}"
    return heading.end, end, f"{lead}{new}{trail}"


class _Heading(Struct, frozen=True, kw_only=True):
    start: int
    end: int
    """Behind its last line."""
    level: int
    names: frozenset[str]
    """What it may be called: as it is written, or read, and behind the headings above it."""


def _headings(text: str) -> Iterator[_Heading]:
    mark = len(text) - len(text.removeprefix("\ufeff"))
    top = mark + read_frontmatter(text[mark:])[1]
    around: list[tuple[int, str]] = []
    for block in markdown_blocks(text[top:]):
        if block.kind != "heading":
            continue
        start = top + block.start
        end = text.find("\n", start) + 1 or len(text)
        written = text[start:end]
        if not _ATX.match(written):
            underline = _UNDERLINE.search(text, end)
            end = min(underline.end() + 1, len(text)) if underline else end
        around = [one for one in around if one[0] < block.level]
        around.append((block.level, block.title))
        titles = [title for _, title in around]
        paths = (_WITHIN.join(titles[number:]) for number in range(len(titles)))
        yield _Heading(
            start=start,
            end=end,
            level=block.level,
            names=frozenset({_written_title(written), *paths}),
        )


def _written_title(line: str) -> str:
    """The words of a heading's line, without its signs."""
    return " ".join(re.sub(r"\A[ \t]*#{1,6}(?=[ \t])", "", line).rstrip("# \t\n").split())
