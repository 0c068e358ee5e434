"""A document as a person reads it: blocks of words, each with its line in the text and its target.

Pure. One rule: nothing of a text is left out: a line that no block of Markdown holds, such as the
definition of a link, is a block as it is written.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from filestore.chunking.blocks import is_headed
from filestore.core.schema import JsonObject
from filestore.extract import is_markdown
from filestore.extract.markdown_read import DEFINITION, without_brackets

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Style = Literal["", "strong", "emphasis", "code", "struck"]
Kind = Literal["prose", "heading", "code", "table", "rule"]
MOST_NESTED: Final = 40
"""Lists and quotations in each other; what is deeper is shown as it is written."""
MOST_PARSED: Final = 6_000
"""Characters of a paragraph: brackets without an end cost the square of their number."""
_WIKI: Final = re.compile(r"\[\[([^\[\]\n]+)\]\]")
QUOTE: Final = "> "
BULLET: Final = "- "
_STYLES: Final[dict[str, Style]] = {"strong": "strong", "em": "emphasis", "s": "struck"}
_WHOLE: Final = frozenset(
    ["heading_open", "paragraph_open", "table_open", "fence", "code_block", "html_block", "hr"]
)
"""Tokens that hold the words of their lines."""


class Run(JsonObject, Struct, frozen=True):
    """Words of one look."""

    SPARSE = "target style"

    text: str
    """As they are read."""
    line: int
    """In which they begin, from 1."""
    target: str = ""
    """Where they lead, as it is written; of a note ``[[name]]``. "" for nowhere."""
    style: Style = ""
    """`strong`, `emphasis`, `code` or `struck`; "" for plain words."""


Words = tuple[Run, ...]


class Block(JsonObject, Struct, frozen=True, kw_only=True):
    """A paragraph, a heading, a listing, a table, or a rule."""

    SPARSE = "lines rows level marks"

    kind: Kind
    """`prose`, `heading`, `code`, `table` or `rule`."""
    line: int
    """The first one of the text, from 1."""
    lines: tuple[Words, ...] = ()
    """What is read, cut where the text says so; a paragraph is one line however it is written."""
    rows: tuple[tuple[Words, ...], ...] = ()
    """The cells of a table, the names of its columns first."""
    level: int = 0
    """Of a heading, from 1."""
    marks: tuple[str, ...] = ()
    """Of the lists and quotations that it is in, from the outermost: ``> ``, or the sign of an
    item, blank where the item began above."""

    @property
    def title(self) -> str:
        """The words of a heading."""
        return " ".join("".join(run.text for line in self.lines for run in line).split())


def read_blocks(text: str, *, first: int = 1, of: str = "") -> list[Block]:
    """The blocks of a text, in order.

    Args:
        text: With whatever line ends.
        first: The number of its first line.
        of: The document that it was read of: source code, for one, is a single listing. "" for
            Markdown.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if of and not is_markdown(of):
        written = text.rstrip("\n").split("\n")
        lines = tuple((Run(line, first + at),) for at, line in enumerate(written))
        return [Block(kind="code", line=first, lines=lines)]
    written = text.split("\n")
    tokens = _parser().parse(text)
    found = list(_Reader(written, first).blocks(tokens))
    covered: set[int] = set()
    for token in tokens:
        if token.map and token.type in _WHOLE:
            covered.update(range(*token.map))
    left = [
        Block(kind="prose", line=first + at, lines=(_as_written(line, first + at),))
        for at, line in enumerate(written)
        if at not in covered and line.strip(" \t>")
    ]
    return sorted([*found, *left], key=lambda one: one.line) if left else found


def heading_line(found: Iterable[Block], heading: str) -> int:
    """The line of the first heading that an address names; 0 for none."""
    headings = [one for one in found if one.kind == "heading"]
    for is_exact in (True, False):
        for one in headings:
            if is_headed([one.title], heading, is_exact=is_exact):
                return one.line
    return 0


def _as_written(line: str, number: int) -> Words:
    defined = DEFINITION.match(line)
    if defined is None:
        return (Run(line, number),)
    start, end = defined.span(2)
    target = without_brackets(defined[2])
    return (
        Run(line[:start], number),
        Run(line[start:end], number, target),
        Run(line[end:], number),
    )


@cache
def _parser() -> "MarkdownIt":
    """One for every thread."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": MOST_NESTED})
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.core.ruler.at("inline", _inline)
    # It puts its rules in order when it first needs them, which two threads must not do at once.
    parser.parse("*")
    return parser


def _inline(state: Any) -> None:
    """The rule of the parser for what is in paragraphs: a huge one is left as it is written."""
    from markdown_it.token import Token

    for token in state.tokens:
        if token.type == "inline":
            if len(token.content) <= MOST_PARSED:
                state.md.inline.parse(token.content, state.md, state.env, token.children)
                continue
            for number, line in enumerate(token.content.split("\n")):
                token.children += [Token("softbreak", "", 0)] if number else []
                token.children.append(Token("text", "", 0, content=line))


def _wikilink(state: Any, silent: bool) -> bool:
    """The rule of the parser for `[[name|label]]`."""
    found = _WIKI.match(state.src, state.pos, state.posMax)
    # `[[1]](notes.md)` is a link whose label is in brackets.
    if found is None or state.src.startswith("(", found.end()):
        return False
    if not silent:
        name, bar, label = found[1].partition("|")
        token = state.push("wikilink", "", 0)
        token.content = label if bar else name.removesuffix("\\")
        token.attrs = {"href": f"[[{name.removesuffix(chr(92))}]]"}
    state.pos = found.end()
    return True


class _Reader:
    """Makes blocks of what was parsed."""

    def __init__(self, written: Sequence[str], first: int) -> None:
        self._written = written
        self._first = first
        self._line = first
        self._marks: list[str] = []
        self._counts: list[int] = []
        self._level = 0
        self._table: tuple[int, list[list[Words]]] | None = None

    def blocks(self, tokens: Iterable["Token"]) -> Iterator[Block]:
        """The blocks, in order."""
        for token in tokens:
            self._line = self._first + token.map[0] if token.map else self._line
            if token.nesting > 0:
                self._enter(token)
                continue
            made = self._made(token)
            if made is not None:
                yield made
                # What follows in an item stands below its words, without a sign of its own.
                self._marks = [one if one == QUOTE else " " * len(one) for one in self._marks]
            if token.type in ("bullet_list_close", "ordered_list_close"):
                self._counts.pop()
            elif token.type in ("list_item_close", "blockquote_close"):
                self._marks.pop()

    def _enter(self, token: "Token") -> None:
        match token.type:
            case "blockquote_open":
                self._marks.append(QUOTE)
            case "bullet_list_open" | "ordered_list_open":
                self._counts.append(int(token.attrs.get("start", 1)))
            case "list_item_open":
                is_numbered = token.markup in (".", ")")
                number = f"{self._counts[-1]}{token.markup} "
                self._marks.append(number if is_numbered else BULLET)
                self._counts[-1] += 1
            case "heading_open":
                self._level = int(token.tag[1:])
            case "table_open":
                self._table = self._line, []
            case "tr_open" if self._table is not None:
                self._table[1].append([])

    def _made(self, token: "Token") -> Block | None:
        """The block that a token is, or ends; None for none."""
        marks, line = tuple(self._marks), self._line
        if token.type == "inline":
            words = _words(token, self._written, line, self._first)
            if self._table is not None:
                self._table[1][-1].append(tuple(run for part in words for run in part))
                return None
            level, self._level = self._level, 0
            kind: Kind = "heading" if level else "prose"
            return Block(kind=kind, line=line, lines=words, level=level, marks=marks)
        if token.type in ("fence", "code_block", "html_block"):
            begins = line + (token.type == "fence")
            code = token.content.removesuffix("\n").split("\n")
            lines = tuple((Run(one, begins + number),) for number, one in enumerate(code))
            return Block(kind="code", line=line, lines=lines, marks=marks)
        if token.type == "table_close" and self._table is not None:
            (begun, rows), self._table = self._table, None
            return Block(kind="table", line=begun, rows=tuple(map(tuple, rows)), marks=marks)
        return Block(kind="rule", line=line, marks=marks) if token.type == "hr" else None


def _words(token: "Token", written: Sequence[str], line: int, first: int) -> tuple[Words, ...]:
    """The words of a paragraph, cut where it has a hard break."""
    lines: list[list[Run]] = [[]]
    looks: list[Style] = [""]
    target, may_drift = "", False
    last = first + (token.map[1] if token.map else line - first + 1)
    for child in token.children or ():
        text, look = child.content, looks[-1]
        match child.type:
            case "softbreak" | "hardbreak":
                text = " "
                line += 1
                if child.type == "hardbreak":
                    lines.append([])
                    continue
            case "link_open":
                target = str(child.attrs.get("href", ""))
            case "link_close":
                target = ""
            case "image":
                source = str(child.attrs.get("src", ""))
                lines[-1].append(Run(f"[image: {text or source}]", line, target or source, look))
                continue
            case "wikilink":
                lines[-1].append(Run(text, line, str(child.attrs["href"]), look))
                continue
            case "code_inline":
                look = "code"
            case _ if child.nesting > 0:
                looks.append(_STYLES.get(child.tag, looks[-1]))
            case _ if child.nesting < 0:
                looks.pop()
        if may_drift and text.strip():
            # Code may go over several lines, which no token counts.
            there = (one for one in range(line, last) if text in written[one - first])
            line = next(there, line)
        may_drift = may_drift or child.type == "code_inline"
        if text:
            lines[-1].append(Run(text.replace("\n", " "), line, target, look))
            line += text.count("\n")
    return tuple(map(tuple, lines))
