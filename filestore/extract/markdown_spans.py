"""Where code, and the destinations of links, stand in a Markdown text, without parsing all of it.

Pure, and in linear time whatever the text: notes are read by the hundred thousand, and a stranger
may have written them. One rule: nothing is moved, so that an offset here is one in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from filestore.core.encoded_data import blanked, fenced

_FENCE: Final = re.compile(r"^[ \t>]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_BACKTICKS: Final = re.compile(r"(?<!\\)`+")
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\r?\n")
_BARE: Final = r"[^\x00-\x20\x7f()<>]"
_DESTINATION: Final = rf"(<[^<>\n]*>|{_BARE}+(?:\({_BARE}*\){_BARE}*)*)"
_TITLE: Final = r"""(?:[ \t\r\n]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?"""
INLINE: Final = re.compile(rf"(?<!\\)\]\([ \t\r\n]*{_DESTINATION}{_TITLE}[ \t\r\n]*\)")
"""The end of an inline link, from the bracket that closes its label; group 1 is where it leads."""
DEFINITION: Final = re.compile(
    # The line end stands with the blanks before it: two runs of blanks side by side would be
    # matched in every way in which they can be parted.
    rf"^[ >]{{0,3}}\[([^\]\n]+)\]:(?:[ \t]*\r?\n)?[ \t]*{_DESTINATION}{_TITLE}[ \t]*\r?$",
    re.MULTILINE,
)
"""A reference definition: its label, and where it leads."""
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_INDENTED: Final = re.compile(r" {4}| {0,3}\t")
_FIRST_INDENTED: Final = re.compile(r"(?:\A|\n)[ \t]*(?:\n {4}|\n {0,3}\t)|\A(?: {4}| {0,3}\t)")
_REMARK: Final = re.compile(
    # What stands in a link is a part of its name.
    r"\\.|\[\[[^\[\]\n]+\]\]|\]\((?:<[^<>\n]*>|[^\s()<>]*)"
    r"|(?P<comment><!--|%%)|(?P<tag><[A-Za-z][^<>]*>)|(?P<math>\$\$?)|(?P<blank>\n[ \t]*(?=\n))"
)
_ENDS: Final = {"<!--": "-->", "%%": "%%"}
_ATTRIBUTE: Final = re.compile(r"""=\s*["']""")
_LIST_ITEM: Final = re.compile(r"[ >]*(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


def destinations(body: str) -> list[tuple[int, int]]:
    """Where the destinations of links stand, in order: start and end, in characters."""
    visible = without_remarks(without_code(body))
    found = {match.span(1) for match in INLINE.finditer(visible)}
    found.update(match.span(2) for match in DEFINITION.finditer(visible))
    return sorted(found)


def without_brackets(destination: str) -> str:
    """A destination without its angle brackets."""
    return destination[1:-1] if destination.startswith("<") else destination


def unescaped(text: str) -> str:
    """A text without its entities and backslashes."""
    if "&" in text:
        import html

        text = html.unescape(text)
    return _ESCAPE.sub(r"\1", text)


def percent_decoded(name: str) -> str | None:
    """A name as it is on the disk; None for one that no file can have."""
    decoded = name
    if "%" in name:
        from urllib.parse import unquote_to_bytes

        encoded = name.encode("utf-8", "surrogateescape")
        decoded = unquote_to_bytes(encoded).decode("utf-8", "surrogateescape")
    return None if "\0" in decoded else decoded


# What is code, and no link


def without_code(body: str) -> str:
    """The body with blanks in place of fenced code and code spans; all else stays where it was."""
    if "`" not in body and "~~~" not in body:
        return body
    return blanked(body, _code(body))


def without_remarks(visible: str) -> str:
    """A text whose code is blank, with blanks in place of comments, math and HTML's attributes.

    None of it holds a link, whatever it looks like: nobody who reads the page can follow one.
    """
    if not any(sign in visible for sign in ("<", "%%", "$")):
        return visible
    return blanked(visible, _apart(sorted(_remarks(visible))))


def _apart(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Stretches in order, without what lies in an earlier one."""
    end = 0
    for start, stop in spans:
        if stop > end:
            yield max(start, end), stop
            end = stop


def _remarks(visible: str) -> Iterator[tuple[int, int]]:
    last = {mark: visible.rfind(end) for mark, end in _ENDS.items()}
    passed, math = 0, (0, "")
    for match in _REMARK.finditer(visible):
        start, stop, mark = match.start(), match.end(), match[0]
        if start < passed or match.lastgroup is None:
            continue
        if match.lastgroup == "comment" and stop <= last[mark]:
            passed = visible.index(_ENDS[mark], stop) + len(_ENDS[mark])
            yield start, passed
        elif match.lastgroup == "tag" and _ATTRIBUTE.search(mark):
            yield start, stop
        elif match.lastgroup == "blank":
            math = (0, "")
        elif match.lastgroup == "math" and math[1] == mark and _closes(visible, start, stop):
            yield math[0], stop
            math = (0, "")
        elif match.lastgroup == "math" and math[1] != "$$" and _opens(visible, start, stop):
            math = (start, mark)


def _opens(visible: str, start: int, stop: int) -> bool:
    """Whether math can begin with a dollar sign; one that ends an amount of money begins none."""
    after = visible[stop : stop + 1]
    return stop - start == 2 or not (visible[start - 1 : start].isalnum() or after.isspace())


def _closes(visible: str, start: int, stop: int) -> bool:
    """Whether math can end with a dollar sign; one that begins an amount of money ends none."""
    return stop - start == 2 or not (
        visible[start - 1 : start].isspace() or visible[stop : stop + 1].isalnum()
    )


def without_any_code(body: str) -> str:
    """The body with blanks in place of all its code, in fences, in spans, or indented."""
    visible = without_code(body)
    # The pattern looks at every character; few texts have what it begins with at all.
    if not ("    " in body or "\t" in body) or not _FIRST_INDENTED.search(body):
        return visible
    return "\n".join(_without_indented(body, visible))


def _without_indented(body: str, visible: str) -> Iterator[str]:
    """Lines with blanks in place of code that is marked by four blanks before it.

    What is indented in a list is taken for a part of its item, and so for no code. The blanks that
    stand for a span of code mark nothing: only those of the body itself do.
    """
    is_blank, in_code, in_list = True, False, False
    for line, shown in zip(body.split("\n"), visible.split("\n"), strict=True):
        if not shown or shown.isspace():
            is_blank = True
            yield shown
            continue
        if _INDENTED.match(line):
            in_code = in_code or (is_blank and not in_list)
        else:
            in_code = False
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and (not is_blank or line[0] == " "))
        is_blank = False
        yield " " * len(line) if in_code else shown


def _code(body: str) -> Iterator[tuple[int, int]]:
    end = 0
    for start, stop in fenced(body, _FENCE, "`"):
        yield from _spans(body, end, start)
        yield start, stop
        end = stop
    yield from _spans(body, end, len(body))


def _spans(body: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Code between runs of backticks of one length, which no blank line may part."""
    runs: list[re.Match[str]] = []
    for match in _BACKTICKS.finditer(body, start, stop):
        if runs and _BLANK_LINE.search(body, runs[-1].end(), match.start()):
            yield from _paired(runs)
            runs = []
        runs.append(match)
    yield from _paired(runs)


def _paired(runs: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    places: dict[int, list[int]] = {}
    for place, run in enumerate(runs):
        places.setdefault(len(run[0]), []).append(place)
    at = 0
    while at < len(runs):
        alike = places[len(runs[at][0])]
        following = bisect_right(alike, at)
        if following < len(alike):
            closing = alike[following]
            yield runs[at].start(), runs[closing].end()
            at = closing
        at += 1
