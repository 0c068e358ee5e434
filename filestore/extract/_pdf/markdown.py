"""Blocks of a PDF as Markdown, and where in it each page starts.

One rule: what looks like Markdown structure is structure of the PDF; the same characters in its
text are escaped.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from filestore.extract._pdf.layout import BULLETS, Block, is_bullet, is_item, without_bullet
from filestore.extract._pdf.lines import Line, without_leader
from filestore.extract._pdf.words import Words, joined
from filestore.extract.base import Page

_STRUCTURE: Final = re.compile(
    r"#{1,6}(?:\s|$)|=+\s*$|-+\s*$|`{3}|~{3}|(?:\*\s*){3,}$|(?:_\s*){3,}$|(?:-\s*){3,}$|<[a-zA-Z/!?]|>"
)
_STRUCTURE_START: Final = frozenset("#=-`~*_<>")
_CLOSING: Final = re.compile(r"(?<=\s)#+$")
_DEEPEST_INDENT: Final = 60  # columns
_TICKS: Final = re.compile(r"`+")


class _Output(Struct, kw_only=True):
    """The text so far."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    pages: list[Page] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def mark(self, line: Line) -> None:
        """Notes that a line starts here."""
        if not self.pages or self.pages[-1].number <= line.page:
            self.pages.append(Page(start=self.length, number=line.page + 1))


def to_markdown(blocks: Iterable[Block], words: Words) -> tuple[str, tuple[Page, ...]]:
    """Writes blocks as Markdown.

    Args:
        blocks: In order.
        words: Those of the document, to tell hyphens of words from hyphens of line ends.

    Returns:
        The text, and where its pages start.
    """
    output = _Output()
    before: Block | None = None
    for block in blocks:
        if before is not None:
            both = before.kind == block.kind == "text"
            tight = both and is_item(before.lines[0].text) and is_item(block.lines[0].text)
            output.write("\n" if tight else "\n\n")
        if block.kind == "code":
            _write_code(output, block)
        else:
            heading = block.kind == "heading"
            start = 0
            for end in range(1, len(block.lines) + 1):
                if end < len(block.lines) and (heading or block.flows[end - 1]):
                    continue
                if start:
                    output.write("\n")
                mark = f"{'#' * block.level} " if heading else ""
                _write_flow(output, block.lines[start:end], mark, words)
                start = end
        before = block
    output.write("\n")
    return "".join(output.parts), tuple(output.pages)


def _write_flow(output: _Output, lines: Sequence[Line], mark: str, words: Words) -> None:
    """Writes lines that flow on as one line."""
    first, last = lines[0], lines[-1]
    pieces = [without_leader(first.text)]
    if not mark and first.text[0] in BULLETS and is_bullet(first.text):
        mark, pieces[0] = "- ", without_bullet(first.text)
    for before, line in pairwise(lines):
        pieces[-1] += joined(before.text, line.text, hyphen=before.hyphen, words=words)
        pieces.append(line.text)
    if last.hyphen:
        pieces[-1] += "-"
    whole = "".join(pieces)
    if mark.startswith("#"):
        pieces[-1] = _CLOSING.sub(r"\\\g<0>", pieces[-1])
        whole = "".join(pieces)
    elif whole[:1] in _STRUCTURE_START and not mark and _STRUCTURE.match(whole):
        mark = "\\"
    output.mark(first)
    if first.page == last.page:
        output.write(f"{mark}{whole}")
        return
    output.write(mark)
    for line, piece in zip(lines, pieces, strict=True):
        output.mark(line)
        output.write(piece)


def _write_code(output: _Output, block: Block) -> None:
    """Writes lines with the white space before them that a PDF knows as a distance only."""
    left = min(line.left for line in block.lines)
    widest = max(block.lines, key=lambda line: len(line.text))
    column = widest.width / max(1, len(widest.text))
    texts: list[str] = []
    for line in block.lines:
        columns = round((line.left - left) / column) if column > 0.5 else 0
        hyphen = "-" if line.hyphen else ""
        texts.append(f"{' ' * min(columns, _DEEPEST_INDENT)}{line.text}{hyphen}")
    longest = max((len(run) for text in texts for run in _TICKS.findall(text)), default=0)
    output.mark(block.lines[0])
    if len(texts) == 1 and not longest:
        output.write(f"`{texts[0]}`")
        return
    fence = "`" * max(3, longest + 1)
    output.write(f"{fence}\n")
    for line, text in zip(block.lines, texts, strict=True):
        output.mark(line)
        output.write(f"{text}\n")
    output.write(fence)
