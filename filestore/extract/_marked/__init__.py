"""Texts with a markup of their own, tables, records and subtitles, written anew as Markdown.

Which function reads which suffix is one table. One rule: what a reader does not know stays as it is
written, and each line of the result knows the line of the file it was made of.
"""

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct, field

from filestore.extract.base import (
    Document,
    ExtractionError,
    Extractor,
    decode,
    document_text,
    encoding_metadata,
    json_value,
)


class Written(Struct):
    """Lines of Markdown with the lines of the file they are of, 0 for none."""

    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def add(self, number: int, *texts: str) -> None:
        """Add texts of one line of the file; of blank lines in a row the first."""
        for line in "\n".join(texts).split("\n") if texts else ():
            if line.strip() or (self.lines and self.lines[-1]):
                self.put(number, line)

    def put(self, number: int, line: str) -> None:
        """Add a line, even a blank one."""
        self.lines.append(line.rstrip())
        self.numbers.append(number)

    def block(self, number: int, *texts: str) -> None:
        """Add texts with a blank line before them."""
        if self.lines and self.lines[-1]:
            self.add(number, "")
        self.add(number, *texts)


Line = tuple[int, str]
"""A line with its number in the file."""

_READERS: Final = {
    "rst": "rst:read_rst",
    "rest": "rst:read_rst",
    "org": "markup:read_org",
    "adoc": "markup:read_adoc",
    "asciidoc": "markup:read_adoc",
    "tex": "tex:read_tex",
    "csv": "rows:read_table",
    "tsv": "rows:read_table",
    "jsonl": "rows:read_records",
    "ndjson": "rows:read_records",
    "vtt": "rows:read_subtitles",
    "srt": "rows:read_subtitles",
    "xml": "xml:read_xml",
    "rss": "xml:read_xml",
    "atom": "xml:read_xml",
    "fb2": "xml:read_xml",
}
_NO_LINES: Final = "xml:"
_LONE_CR: Final = re.compile(r"\r(?!\n)")


class MarkedExtractor(Extractor):
    """Markup of other kinds, by the suffix of the name."""

    name = "marked"
    version = 3
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Writes the file as Markdown; see `Extractor.extract`."""
        decoded, encoding = decode(data, name=name)
        text = document_text(decoded, name=name)
        target = _READERS[name.lower().rpartition(".")[2]]
        module, _, function = target.partition(":")
        read: Callable[[str, Written, str], None]
        read = getattr(import_module(f"{__name__}.{module}"), function)
        out = Written()
        try:
            read(text, out, name)
        except RecursionError as error:
            raise ExtractionError(
                f"{name} is refused: its parts are nested too deeply; convert it to text, or"
                " leave it out",
            ) from error
        body = "\n".join(out.lines) + "\n"
        metadata = {key: json_value(value) for key, value in out.metadata.items() if value}
        is_read = bool(body.strip())
        # Where lines end with LF, a CR is a sign within one, and here it is a line end.
        is_odd = target.startswith(_NO_LINES) or (_LONE_CR.search(decoded) and "\n" in decoded)
        return Document(
            text=document_text(body if is_read else text, name=name),
            syntax="markdown" if is_read else "text",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
            title=" ".join(str(metadata.get("title", "")).split()),
            lines=tuple(out.numbers) if is_read and not is_odd else (),
        )


def numbered(text: str) -> list[Line]:
    """The lines of a text with their numbers."""
    return list(enumerate(text.expandtabs(8).split("\n"), 1))


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as a table of Markdown, the first its header; cells are Markdown on one line."""
    width = max(map(len, rows), default=0)
    cells = [
        [" ".join(cell.replace("|", "\\|").split()) for cell in row] + [""] * (width - len(row))
        for row in rows
    ]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [*lines[:1], "| " + " | ".join(["---"] * width) + " |", *lines[1:]] if width else []


def dedented(block: Sequence[Line]) -> list[Line]:
    """Lines without the blanks that all begin with, and without blank ones around them."""
    first = next((at for at, (_, line) in enumerate(block) if line.strip()), len(block))
    last = next((at for at in range(len(block), 0, -1) if block[at - 1][1].strip()), 0)
    kept = block[first:last]
    margin = min((indent(line) for _, line in kept if line.strip()), default=0)
    return [(number, line[margin:]) for number, line in kept]


def indent(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def listing(out: Written, at: int, block: Sequence[Line], language: str, pad: str = "") -> None:
    """Add lines as a fenced listing.

    Args:
        out: Where to.
        at: The line that says so.
        block: The lines of the listing.
        language: Of the listing, or empty.
        pad: What is before each line, within a list.
    """
    longest = max((len(run) for _, line in block for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    kept = dedented(block)
    out.block(at, f"{pad}{fence}{language}")
    for number, line in kept:
        out.put(number, f"{pad}{line}")
    out.add(kept[-1][0] if kept else at, f"{pad}{fence}")


_TICKS: Final = re.compile("^ *(`{3,})")
