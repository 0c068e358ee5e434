"""Markdown files: the body byte for byte, the frontmatter of other tools as metadata.

Holds no knowledge of the store's own frontmatter. One rule: a frontmatter that cannot be read, or
that tries to do harm, is no reason to lose the document: it stays in the text, and is reported.
"""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from filestore.chunking.blocks import markdown_parser
from filestore.extract._text import decode, encoding_metadata
from filestore.extract.base import Document, Extractor, document_text, empty_error
from filestore.extract.frontmatter import read_frontmatter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from markdown_it.token import Token

_TITLE_WINDOW: Final = 65_536  # characters; a title further down names a part, not the document
_TITLE_LIMIT: Final = 500
_MAX_NESTING: Final = 20
_LINE_ENDS: Final = re.compile(r"\r\n?")


class MarkdownExtractor(Extractor):
    """Markdown in any dialect, with YAML, TOML or JSON frontmatter."""

    name = "markdown"
    version = 2

    def extract(self, data: bytes, *, name: str) -> Document:
        """Takes the frontmatter off; see `Extractor.extract`."""
        decoded, encoding = decode(data, name=name)
        text = document_text(decoded, name=name)
        metadata, start = read_frontmatter(text)
        body = text[start:]
        if not body or body.isspace():
            raise empty_error(name, "found only frontmatter")
        title = metadata.get("title") or first_title(body)
        if title:
            metadata["title"] = str(title) if isinstance(title, int | float) else title
        return Document(
            text=document_text(body, name=name),
            syntax="markdown",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
        )


def first_title(body: str) -> str:
    """The first heading of level 1, as plain text on one line; empty without one."""
    if "#" not in body[:_TITLE_WINDOW] and "=" not in body[:_TITLE_WINDOW]:
        return ""
    parser = markdown_parser(_MAX_NESTING)
    tokens: list[Token] = []
    # Blocks alone: the rest is read where it is a heading.
    text = _LINE_ENDS.sub("\n", body[:_TITLE_WINDOW])
    parser.block.parse(text, parser, {}, tokens)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h1":
            title = plain_text(inline.content)
            if title:
                return title
    return ""


def plain_text(inline: str) -> str:
    """The words of a line of Markdown, without its markup."""
    tokens = markdown_parser(_MAX_NESTING).parseInline(inline[:_TITLE_LIMIT])
    return " ".join("".join(_words(tokens)).split())


def _words(tokens: "Iterable[Token]") -> "Iterator[str]":
    for token in tokens:
        if token.type in {"text", "code_inline"}:
            yield token.content
        elif token.type in {"inline", "image"}:
            yield from _words(token.children or ())
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
