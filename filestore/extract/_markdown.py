"""Markdown files: the body byte for byte, the frontmatter of other tools as metadata.

Holds no knowledge of the store's own frontmatter. One rule: a frontmatter that cannot be read, or
that tries to do harm, is no reason to lose the document: it stays in the text, and is reported.
"""

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from filestore.chunking._blocks import markdown_parser
from filestore.extract._text import decode, encoding_metadata
from filestore.extract.base import (
    FRONTMATTER_ERROR,
    MAX_DEPTH,
    DepthError,
    Document,
    Extractor,
    document_text,
    empty_error,
    json_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from markdown_it.token import Token

_LIMIT_BYTES: Final = 65_536
_MAX_EVENTS: Final = 10_000
_TITLE_WINDOW: Final = 65_536  # characters; a title further down names a part, not the document
_TITLE_LIMIT: Final = 500
_MAX_NESTING: Final = 20
_LINE_ENDS: Final = re.compile(r"\r\n?")

_DOTTED: Final = re.compile(r"(?:[^\s=.]{1,100}\s*\.\s*){20}")
"""Keys such as a.b.c without end, which cost the TOML reader quadratic time."""

_FENCES: Final = {
    "yaml": (re.compile(r"---[ \t]*\n"), re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M)),
    "toml": (re.compile(r"\+\+\+[ \t]*\n"), re.compile(r"^\+\+\+[ \t]*(?:\n|\Z)", re.M)),
    "json": (re.compile(r"\{[ \t]*\n"), re.compile(r"^\}[ \t]*(?:\n|\Z)", re.M)),
}


class MarkdownExtractor(Extractor):
    """Markdown in any dialect, with YAML, TOML or JSON frontmatter."""

    name = "markdown"
    version = 1

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


def read_frontmatter(text: str) -> tuple[dict[str, Any], int]:
    """The frontmatter of a text, and where its body starts.

    Args:
        text: With LF line ends.

    Returns:
        Metadata as JSON values, and the offset of the body in characters: 0 where there is no
        frontmatter, or one that cannot be read; the metadata then says why.
    """
    for syntax, (opening, closing) in _FENCES.items():
        opened = opening.match(text)
        closed = opened and closing.search(text, opened.end())
        if opened and closed:
            inner = text[opened.end() : closed.start()]
            try:
                values = _load(syntax, inner)
            except _UnreadableError as error:
                return {FRONTMATTER_ERROR: str(error)}, 0
            return ({}, 0) if values is None else (values, closed.end())
    return {}, 0


class _UnreadableError(ValueError):
    """The frontmatter cannot be read; the message is short enough to be kept."""


def _load(syntax: str, inner: str) -> dict[str, Any] | None:
    """The values between the fences; None if they are no mapping, so not meant as frontmatter."""
    import yaml

    if len(inner.encode()) > _LIMIT_BYTES:
        raise _UnreadableError(f"larger than {_LIMIT_BYTES // 1024} KiB")
    try:
        values = _parse(syntax, inner)
        if values is None:
            return {}
        return json_value(values) if isinstance(values, Mapping) else None
    except (_UnreadableError, DepthError) as error:
        raise _UnreadableError(str(error)) from error
    except RecursionError as error:
        raise _UnreadableError(str(DepthError())) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        # the library's own words are left out: they change with its version, metadata must not
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 2}, column {mark.column + 1})" if mark else ""
        raise _UnreadableError(f"not valid {syntax.upper()}{place}") from error


def _parse(syntax: str, inner: str) -> object:
    if syntax == "toml":
        import tomllib

        if _DOTTED.search(inner):
            raise DepthError
        return tomllib.loads(inner)
    if syntax == "json":
        return json.loads("{" + inner + "}")
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = documents = 0
    for count, event in enumerate(yaml.parse(inner, Loader=loader)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _UnreadableError("anchors and aliases are not allowed")
        if getattr(event, "tag", None):
            raise _UnreadableError("tags are not allowed")
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            raise _UnreadableError("merge keys are not allowed")
        if depth > MAX_DEPTH:
            raise DepthError
        if count > _MAX_EVENTS or documents > 1:
            raise _UnreadableError("too many values, or more than one document")
    return YAMLHandler().load(inner)


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
