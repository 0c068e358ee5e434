"""Markdown without parsing all of it: where code and links are, and the words as they are read.

Pure, and in linear time whatever the text: notes are read by the hundred thousand, and a stranger
may have written them. One rule: nothing is added and nothing moves: an offset here is one in
the text, and the words that are read are in it, in this order.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from filestore.chunking import blanked, fenced

_FENCE: Final = re.compile(r"^[ \t>]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_BACKTICKS: Final = re.compile(r"(?<!\\)`+")
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\r?\n")
_BARE: Final = r"[^\x00-\x20\x7f()<>]"
_DESTINATION: Final = rf"(<[^<>\n]*>|{_BARE}+(?:\({_BARE}*\){_BARE}*)*)"
_TITLE: Final = r"""(?:[ \t\r\n]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?"""
INLINE: Final = re.compile(rf"(?<!\\)\]\([ \t\r\n]*{_DESTINATION}{_TITLE}[ \t\r\n]*\)")
"""The end of an inline link, from the bracket that closes its label; group 1 is where it leads."""
DEFINITION: Final = re.compile(
    # The line end is with the blanks before it: two runs of blanks side by side would be
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
    # What is in a link is a part of its name.
    r"\\.|\[\[[^\[\]\n]+\]\]|\]\((?:<[^<>\n]*>|[^\s()<>]*)"
    r"|(?P<comment><!--|%%)|(?P<tag><[A-Za-z][^<>]*>)|(?P<math>\$\$?)|(?P<blank>\n[ \t]*(?=\n))"
)
_ENDS: Final = {"<!--": "-->", "%%": "%%"}
_ATTRIBUTE: Final = re.compile(r"""=\s*["']""")
_LIST_ITEM: Final = re.compile(r"[ >]*(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


def destinations(body: str) -> list[tuple[int, int]]:
    """Where the destinations of links are, in order: start and end, in characters."""
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
    spans, end = list[tuple[int, int]](), 0
    for start, stop in fenced(body, _FENCE, "`"):
        spans += [*_spans(body, end, start), (start, stop)]
        end = stop
    return blanked(body, [*spans, *_spans(body, end, len(body))])


def without_remarks(visible: str) -> str:
    """A text whose code is blank, with blanks in place of comments, math and HTML's attributes.

    None of it holds a link, whatever it looks like: no reader of the page can follow one.
    """
    if not any(sign in visible for sign in ("<", "%%", "$")):
        return visible
    spans, end = list[tuple[int, int]](), 0
    for start, stop in sorted(_remarks(visible)):
        # What begins in another one is in order behind it.
        if stop > end:
            spans.append((max(start, end), stop))
            end = stop
    return blanked(visible, spans)


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
        elif match.lastgroup == "math":
            before, after = visible[start - 1 : start], visible[stop : stop + 1]
            is_double = stop - start == 2
            # A sign that begins an amount of money ends no math, one that ends it begins none.
            if math[1] == mark and (is_double or not (before.isspace() or after.isalnum())):
                yield math[0], stop
                math = (0, "")
            elif math[1] != "$$" and (is_double or not (before.isalnum() or after.isspace())):
                math = (start, mark)


def without_any_code(body: str) -> str:
    """The body with blanks in place of all its code, in fences, in spans, or indented."""
    visible = without_code(body)
    # The pattern looks at every character; few texts have what it begins with at all.
    if not ("    " in body or "\t" in body) or not _FIRST_INDENTED.search(body):
        return visible
    # What is indented in a list is taken for a part of its item, and so for no code. Blanks that
    # replace a span of code mark nothing: only those of the body itself do.
    lines: list[str] = []
    is_blank, in_code, in_list = True, False, False
    for line, shown in zip(body.split("\n"), visible.split("\n"), strict=True):
        if not shown or shown.isspace():
            is_blank = True
            lines.append(shown)
            continue
        if _INDENTED.match(line):
            in_code = in_code or (is_blank and not in_list)
        else:
            in_code = False
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and (not is_blank or line[0] == " "))
        is_blank = False
        lines.append(" " * len(line) if in_code else shown)
    return "\n".join(lines)


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


Edit = tuple[int, int, str]
"""Start and end in the text, and what is read there."""

_SIGNS: Final = re.compile(r"[-\[\]<*_~=\\&`|>#]")
_TAGS: Final = (
    "a|abbr|b|big|blockquote|br|center|cite|code|dd|del|details|div|dl|dt|em|figcaption|figure|font"
    "|h[1-6]|hr|i|iframe|img|ins|kbd|li|mark|ol|p|picture|pre|q|s|samp|section|small|source|span"
    "|strike|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|video|wbr"
)
_TOKEN_SIGN: Final = re.compile(r"[\\!\[\]<&*_~=\n]")
"""What a token begins with: all else is passed over quickly."""
_TOKEN: Final = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<wiki>!?\[\[[^\[\]\n]++\]\])"
    r"|(?P<note>\[\^[^\[\]\s]++\]:?)"
    r"|(?P<open>!?\[)|(?P<close>\])"
    rf"|(?P<tag></?(?:{_TAGS})(?=[\s/>])[^<>]*+>)"
    r"|(?P<address><[A-Za-z][\w+.-]*+:[^\s<>]*+>|<[\w.+-]++@[\w.-]++>)"
    r"|(?P<entity>&#?\w{1,32};)"
    r"|(?P<emphasis>\*{1,3}|_{1,3}|~~|==)"
    r"|(?P<blank>\n[ \t\r>]*(?=\n))",
    re.IGNORECASE,
)
_GAP: Final = re.compile(r"<(?:br|/(?:d[dt]|div|h[1-6]|li|p|t[dhr]))\b", re.IGNORECASE)
"""A tag that parts words; others are within them."""
_REFERENCE: Final = re.compile(r"\]\[[^\[\]\n]*+\]")
_ALT: Final = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_LINE: Final = re.compile(
    r"[ \t]*(?P<quote>(?:>[ \t]?)++)?(?:(?P<heading>\#{1,6}[ \t]+)|(?P<row>\|[ \t]*))?"
)
_CLOSING: Final = re.compile(r"(?<![ \t])(?:[ \t]+#+|[ \t]*\|)[ \t\r]*$")
_SILENT: Final = re.compile(
    rf"[ \t>]*+(?:(?:</?(?!img)(?:{_TAGS})(?=[\s/>])[^<>]*+>[ \t]*)++"
    r"|(?:```|~~~)[^`\n]{0,99}|={3,}|(?:[-*_][ \t]*){3,}|(?=[^\n|]*\|)(?=[^\n-]*-)[|: \t-]++)\s*$"
)
"""A line that only tells where something begins or ends."""
_BRACKETS: Final = ("[]", "()", "<>")
_SILENT_SIGNS: Final = frozenset("`~=-*_|:[><")


class Read(NamedTuple):
    """A stretch of a text as it is read."""

    text: str
    starts: list[int]
    """Where in the whole text each kept piece starts."""
    places: list[int]
    """Where in what is read it is."""

    def place(self, at: int) -> int:
        """Where a place of the whole text is in what is read; of what is not, where that was."""
        piece = max(0, bisect_right(self.starts, at) - 1)
        following = self.places[piece + 1] if piece + 1 < len(self.places) else len(self.text)
        found = self.places[piece] + at - self.starts[piece]
        return min(max(found, self.places[piece]), following)


class Markdown:
    """A text of Markdown, of which parts are read."""

    def __init__(self, text: str, *, is_code: bool = False) -> None:
        """Take the text.

        Args:
            text: The text.
            is_code: Whether it is source code, in which nothing is markup.
        """
        self.text = text
        self._is_code = is_code
        self._known: tuple[int, int, list[Edit]] = (0, 0, [])

    @cached_property
    def _visible(self) -> str:
        """The text with blanks in place of its code."""
        return without_any_code(self.text)

    @cached_property
    def _defined(self) -> frozenset[str]:
        """The labels that say where they lead."""
        return frozenset(found[1].casefold() for found in DEFINITION.finditer(self.text))

    @cached_property
    def _comments(self) -> list[Edit]:
        """They may go over several paragraphs."""
        found: list[Edit] = []
        start = self._visible.find("<!--")
        while start >= 0 and (end := self._visible.find("-->", start) + 3) > 2:
            found.append((start, end, ""))
            start = self._visible.find("<!--", end)
        return found

    def is_code(self, start: int, end: int) -> bool:
        """Whether nothing in a stretch is markup."""
        return self._is_code or self._visible[start:end].isspace()

    def is_silent(self, start: int, end: int) -> bool:
        """Whether a line says nothing to who reads it: a fence, a rule, a comment, a definition."""
        if self._is_code:
            return False
        if any(last >= end for _, last, _ in _between(self._comments, start, start + 1)):
            return True
        line = self.text[start:end]
        is_sign = line.lstrip()[:1] in _SILENT_SIGNS
        if not (is_sign and (_SILENT.match(line) or DEFINITION.match(line))):
            return False
        return line.lstrip(" \t>")[:3] in ("```", "~~~") or not self.is_code(start, end)

    def read(self, start: int, end: int) -> Read:
        """A stretch as it is read, without white space around it."""
        pieces, starts, places = [], [], []
        length, at = 0, start
        for first, last, shown in [*self.edits(start, end), (end, end, "")]:
            if last < at:
                continue
            first = max(first, at)
            starts += [at, first] if shown else [at]
            places += [length, length + first - at] if shown else [length]
            pieces += [self.text[at:first], shown]
            length += first - at + len(shown)
            at = last
        found = "".join(pieces)
        blank = len(found) - len(found.lstrip())
        return Read(found.strip(), starts, [place - blank for place in places])

    def hides(self, begun: int, start: int, end: int) -> bool:
        """Whether a stretch of a sentence that has begun is code, or in what is not read."""
        if self.is_code(start, start + 1):
            return True
        count = self.text.count
        if not (self._known[0] <= begun and end <= self._known[1]) and all(
            count(one, begun, start) == count(other, begun, start) for one, other in _BRACKETS
        ):
            # All that is not read is in brackets.
            return False
        return any(first < start and end < last for first, last, _ in self.edits(begun, end))

    def fits(self, start: int, end: int, most: int) -> bool:
        """Whether a stretch is read as that number of characters, or fewer."""
        return end - start <= most or len(self.read(start, end).text) <= most

    def edits(self, start: int, end: int) -> list[Edit]:
        """What is read otherwise than it is written, in order."""
        if self._is_code or _SIGNS.search(self.text, start, end) is None:
            return []
        first, last, found = self._known
        if not (first <= start and end <= last):
            # What begins in a sentence may end in another one of its paragraph.
            first, last = self.text.rfind("\n\n", 0, start) + 1, self.text.find("\n\n", end)
            last = len(self.text) if last < 0 else last
            found = []
            comments = _between(self._comments, first, last)
            edits = {*comments, *self._of_lines(first, last), *self._inline(first, last)}
            for edit in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
                if not found or edit[0] >= found[-1][1]:
                    found.append(edit)
            self._known = first, last, found
        return _between(found, start, end)

    def _of_lines(self, start: int, end: int) -> Iterator[Edit]:
        """The marks that lines begin and end with; lines that say nothing."""
        at = start
        while at < end:
            stop = self.text.find("\n", at, end)
            stop = end if stop < 0 else stop
            if self.is_silent(at, stop):
                yield at, min(stop + 1, end), ""
            elif (match := _LINE.match(self.text, at, stop)) is not None and match.lastgroup:
                first = match.start("quote" if match["quote"] else match.lastgroup)
                # Blanks replace code in what is visible: they are no blanks next to a sign.
                is_seen = self._visible[first] == self.text[first]
                if is_seen:
                    yield first, match.end(), ""
                closing = _CLOSING.search(self.text, match.end(), stop)
                if is_seen and closing is not None and match.lastgroup != "quote":
                    yield closing.start(), stop, ""
            at = stop + 1

    def _inline(self, start: int, end: int) -> Iterator[Edit]:
        """Links, emphasis, tags, escapes and entities."""
        text, visible = self.text, self._visible
        opened: list[re.Match[str]] = []
        emphasis: dict[str, int] = {}
        passed = start
        for sign in _TOKEN_SIGN.finditer(visible, start, end):
            at = sign.start()
            token = _TOKEN.match(visible, at, end) if at >= passed else None
            if token is None:
                continue
            stop, kind = token.end(), token.lastgroup
            passed = stop
            if kind == "open":
                opened.append(token)
            elif kind == "close" and opened:
                label = opened.pop()
                link_end = self._link_end(label, at, end)
                if link_end > at:
                    passed = link_end
                    yield label.start(), label.end(), ""
                    yield at, passed, ""
            elif kind == "emphasis":
                # Code next to a sign is blank in what is visible.
                before, after = text[max(start, at - 1) : at], text[stop : min(stop + 1, end)]
                is_word = str.isalnum if token[0][0] == "_" else _is_plain
                if token[0] in emphasis and before.strip() and not is_word(after):
                    yield emphasis[token[0]], emphasis.pop(token[0]) + stop - at, ""
                    yield at, stop, ""
                elif after.strip() and not is_word(before):
                    emphasis[token[0]] = at
            elif kind == "blank":
                opened, emphasis = [], {}
            else:
                yield from _edits_of(token)

    def _link_end(self, label: re.Match[str], at: int, end: int) -> int:
        """Where a link ends whose label is closed at a place; that place where it is none."""
        inline = INLINE.match(self._visible, at, end)
        if inline is not None:
            return inline.end()
        if self._visible.startswith("]()", at):
            return at + 3
        reference = _REFERENCE.match(self._visible, at, end)
        if reference is not None:
            # What follows a letter is an index: x[0][1].
            is_index = self._visible[label.start() - 1 : label.start()].isalnum()
            return at if is_index else reference.end()
        return at + 1 if self.text[label.end() : at].casefold() in self._defined else at


def _between(edits: list[Edit], start: int, end: int) -> list[Edit]:
    """The ones that reach into a stretch, of some in order that do not overlap."""
    at = bisect_left(edits, (start,))
    at -= at > 0 and edits[at - 1][1] > start
    return edits[at : bisect_left(edits, (end,))]


def _is_plain(sign: str) -> bool:
    return sign.isascii() and sign.isalnum()


def _edits_of(token: re.Match[str]) -> Iterator[Edit]:
    """What is read of a token that is read as it is."""
    start, end = token.span()
    shown = token[0]
    if token.lastgroup == "escape":
        yield start, start + 1, ""
    elif token.lastgroup == "note":
        yield start, end, ""
    elif token.lastgroup == "address":
        yield start, start + 1, ""
        yield end - 1, end, ""
    elif token.lastgroup == "wiki":
        name, bar, label = shown.lstrip("!")[2:-2].partition("|")
        # The label of a picture may be its width.
        is_width = shown[0] == "!" and not label.strip("0123456789x ")
        is_label = bar and label.strip() and not is_width
        first = end - 2 - len(label) if is_label else start + shown.index("[[") + 2
        yield start, first, ""
        yield (end - 2 if is_label else first + len(name)), end, ""
    elif token.lastgroup == "entity":
        read = unescaped(shown)
        if not any(map(str.isalnum, read)):
            yield start, end, " " if read.isspace() else read
    elif token.lastgroup == "tag":
        alt = _ALT.search(shown) if shown[:4].lower() == "<img" else None
        if alt is None:
            yield start, end, " " if _GAP.match(shown) else ""
        else:
            yield start, start + alt.start(alt.lastindex or 0), ""
            yield start + alt.end(alt.lastindex or 0), end, ""
