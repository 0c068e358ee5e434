"""Metadata as (key, value) pairs that filters match, from frontmatter and documents. Pure.

Nested keys are joined by a dot, a list gives one pair an item, values are compared as text.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from filestore.chunks.chunk_file import Chunk

MAX_VALUE: Final = 512
"""Longer values are text, not metadata."""
MAX_DEPTH: Final = 4
QUESTIONS_FROM: Final = "questions_origin.text"
"""Which text the questions of a file were made from: it tells which are out of date."""
UNFILTERED: Final = frozenset(
    {"origin", "order", "overlap", "questions", "questions_origin", "children"}
)
"""Our own keys, which no filter uses."""


def metadata_pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every pair of some metadata, each once, in order."""
    yield from dict.fromkeys(_nested("", values, 0))


def pairs_of(chunk: "Chunk") -> Iterator[tuple[str, str]]:
    """Every pair of a file, each once, in order."""
    origin = chunk.questions_origin
    made_from = [(QUESTIONS_FROM, origin.text)] if origin is not None else []
    yield from dict.fromkeys((*metadata_pairs(chunk.frontmatter), *chunk.pairs, *made_from))


def _nested(prefix: str, values: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if depth == 0 and key in UNFILTERED:
            continue
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, Mapping):
                if depth < MAX_DEPTH:
                    yield from _nested(f"{name}.", item, depth + 1)
            elif not isinstance(item, list):
                written = value_text(item)
                if len(written) <= MAX_VALUE:
                    yield name, written


def value_text(value: Any) -> str:
    """A scalar as it is compared: text as it is, the rest as JSON writes it."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
