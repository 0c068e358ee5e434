"""Splits a text into pieces that each make a good file: whole sections, tables, code that fits.

Pure: no disk, no model; tokens are counted in one way, so that another model means no other pieces.
A token is about a word piece of an English BERT vocabulary: up to seven letters, two digits, one
character of a script without spaces, one sign.

One rule: the pieces partition the text, character for character, whatever it holds. Block structure
comes from markdown-it (block level only), over-long blocks are split by semantic-text-splitter, and
every size is then verified. A size is counted without the white space around a piece, plus its
heading path. Source code is split by the outline that comes with it, as no grammar is known here.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

from msgspec import Struct

from filestore.core.encoded_data import blanked_data
from filestore.core.spelling import UNSPACED

_LETTERS_PER_TOKEN: Final = 7
# Compiled when a text that is not ASCII asks for it: `re` keeps it then.
_TOKEN: Final = (
    rf"[A-Za-z]{{1,{_LETTERS_PER_TOKEN}}}|[0-9]{{1,2}}"
    rf"|[{UNSPACED}]|[^\W\dA-Za-z_{UNSPACED}]{{1,2}}|\S"
)
_LETTERS: Final = bytes(97 if code < 128 and chr(code).isalpha() else 32 for code in range(256))
_NOT_LETTERS: Final = bytes(
    32 if chr(code).isspace() or chr(code).isalpha() else 48 if chr(code).isdigit() else 46
    for code in range(256)
)


def count_tokens(text: str) -> int:
    """How many tokens a text has: the same everywhere, and 0 for an empty text."""
    if not text.isascii():
        return len(re.findall(_TOKEN, text))
    # Three times as fast: runs collapse to one byte a token.
    data = text.encode("ascii")
    letters = b" " + data.translate(_LETTERS)
    letters = letters.replace(b"a" * _LETTERS_PER_TOKEN, b"A")
    others = data.translate(_NOT_LETTERS).replace(b"00", b".")
    tails = letters.count(b" a") + letters.count(b"Aa")
    return letters.count(b"A") + tails + len(others) - others.count(b" ")


CHUNKER: Final = "structure/2"
"""Name and version of what `split` makes; another output needs another version."""


_BLANKS: Final = re.compile(r" {2,}")
_COUNTED: Final = re.compile(r"(?P<way>[^:]*):(?P<size>[0-9]{1,6}):(?P<counter>.*)", re.DOTALL)
_BUILTIN_WINDOW: Final = 256
"""What the builtin embedder took."""


class Section(Struct, frozen=True, kw_only=True):
    """A named part without a heading: a class, a function."""

    start: int
    """Offset in characters; what leads up to it (comments, decorators) belongs to it."""
    level: int
    """1 for the outermost."""
    title: str
    """A name on one line, such as ``Reader`` or ``Reader.open``; empty where the text goes back to
    the section around, after the end of one inside it."""


class Piece(Struct, frozen=True, kw_only=True):
    """One stretch of the text, ``text[start:end]``."""

    start: int
    """In characters."""
    end: int
    """In characters; not included."""
    headings: tuple[str, ...]
    """Titles of the sections around the start, outermost first, with the heading it starts with.

    Plain text. The title of the text comes first, unless the first heading says the same. Outer
    titles are left out where the path would take more than half the budget. Of code that is several
    sections, the names around all of them; a name that the next begins with is left out.
    """


def label(budget: int, *, way: str = CHUNKER) -> str:
    """What a record says of how its text was split; another label means another split.

    Args:
        budget: The most tokens of a piece.
        way: Name and version of how.
    """
    return f"{way}:{budget}"


def is_split_alike(found: str, wanted: str) -> bool:
    """Whether what was split under one label stays as it is under another, today's.

    Labels of before end in what counted the tokens, and their number is the budget or what the
    model took, whichever was less. Another count alone is no reason to split a text again.
    """
    before = _COUNTED.fullmatch(found)
    way, _, budget = wanted.rpartition(":")
    if before is None:
        return found == wanted
    size = int(before["size"])
    window = _BUILTIN_WINDOW if before["counter"] == "builtin" else size
    return before["way"] == way and size == min(int(budget), window)


def split(
    text: str,
    *,
    syntax: Literal["text", "markdown", "code"],
    budget: int,
    count_tokens: Callable[[str], int] = count_tokens,
    title: str = "",
    outline: Sequence[Section] = (),
) -> list[Piece]:
    """Splits a text into pieces that partition it.

    The first piece starts at 0, each starts where the one before ended, the last ends with the
    text. No piece is only white space, unless the whole text is.

    Args:
        text: Any string.
        syntax: How the text marks its structure.
        budget: Most tokens of a piece and its heading path together; exceeded only where a single
            character has more.
        count_tokens: Called a few times per block, never per character.
        title: What the whole text is called; goes before the heading path of every piece.
        outline: The sections of code, in the order of their starts; other syntaxes mark theirs.

    Returns:
        The pieces in order; none for an empty text.

    Raises:
        ValueError: The budget is below 1.
    """
    if budget < 1:
        raise ValueError(f"the token budget of a piece must be at least 1, not {budget}")
    # Who only asks how a text would be split needs none of it.
    from filestore.chunking._splitting import Measure, clean_title
    from filestore.chunking.blocks import code_spans, text_spans

    plain = blanked_data(text)
    if plain is not text:
        # Data has no place in what is embedded, so it takes none of the budget, either.
        text, count_visible = plain, count_tokens
        count_tokens = lambda some: count_visible(_BLANKS.sub(" ", some))  # noqa: E731
    measure = Measure(
        text=text,
        budget=budget,
        count_tokens=count_tokens,
        title=clean_title(title),
        keeps_title=syntax == "code",
    )
    if not text or text.isspace():
        return [Piece(start=0, end=len(text), headings=measure.headings(()))] if text else []
    symbols = ((section.start, section.level, clean_title(section.title)) for section in outline)
    is_markdown = syntax == "markdown"
    spans = code_spans(measure, symbols) if syntax == "code" else text_spans(measure, is_markdown)
    return [
        Piece(start=start, end=end, headings=measure.headings(titles))
        for start, end, titles in spans
    ]


def join(texts: Sequence[str]) -> str:
    """The text whose pieces these are, the inverse of `split`."""
    return "".join(texts)
