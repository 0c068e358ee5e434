"""The words of PDF pages: plain characters, and words that a line end broke.

One rule: a hyphen at a line end goes or stays as the document itself writes the word elsewhere,
else by the shape of the word.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from filestore.extract._pdf.lines import Line

SOFT_HYPHEN: Final = "\u00ad"
HYPHENS: Final = ("-", "\u2010", SOFT_HYPHEN)
BROKEN: Final = "\ufffe"
"""What pdfium puts in place of a hyphen and the line break after it."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_WORD: Final = re.compile(r"[^\W\d_]+$")
_FIRST_WORD: Final = re.compile(r"[^\W\d_]+")
_FIRST_COMPOUND: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ADDRESS_SIGNS: Final = frozenset("/._=&?%#")
_LONGEST_ADDRESS: Final = 300  # characters
_LONGEST_TOKEN: Final = 80  # characters: no word is longer
_TOKEN_LETTERS: Final = re.compile(r"[\"'“‘«(\[]*[^\W\d_]+")
_COMPOUND: Final = re.compile(
    r"(?:well|self|ill|vice|quasi|cross|all)-(?!ish|ness|ing$|less|ation|ergi|ianc|igat|ocat)[a-z]{4,}"
    r"|(?:high|low|long|short|full|half|part|hard|fast|large|small|open|single|double|two|three|four"
    r"|five|first|second|third|old|new|far|near|deep|wide|right|left|blue|red|green|black|white)-(?!light|list|mail|wash|com|land|print)"
    r"(?:[a-z]{3,}(?:ed|ing)|term|level|scale|range|time|year|day|way|size|class|known|born|made"
    r"|like|end|speed|quality|cost|rate|frequency|order|hand|part|person|dimensional)"
)
"""Of these the first part is a word, and no word begins so and is broken there."""
_PARTICLE: Final = re.compile(
    r"(?:은|는|을|를|의|에|로|으로|에서|에게|까지|부터|들은|들이|들을|들의|니다|습니다"
    r"|다(?=[.,]))(?=[\s.,!?)]|$)|[.,!?)]"
)
"""What no Korean line begins with where words are kept whole."""
_WORD_END: Final = re.compile(
    r"[은는을를에의로와과도만서고며면지게어아해여한된할던]$|[가-힣]{2}이$|^[이그저두세네]$"
)
"""How most Korean words end."""
_FEWEST: Final = 25  # Korean line ends for one that says where lines end: fewer are chance
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")
_SHORTEST_PART: Final = 4  # letters: `back-ground` is two words as likely as `con-tain` is not
_UNSPACED: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]")

_ODD: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00a0\u00ad\u2000-\u200b\u2028-\u202f\u205f\u2060\u2066-\u2069"
    "\ufb00-\ufb06\ufeff\ufff9-\uffff\ud800-\udfff\uf020-\uf0ff]"
)
_LIGATURES: Final = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
    # Symbol fonts in the private use area: almost always the bullets of lists.
    **dict.fromkeys("\uf0a7\uf0a8\uf0b7\uf076\uf0d8\uf0fc\uf06c\uf06e\uf071\uf075", "•"),
}


def plain(text: str) -> str:
    """The text with letters for ligatures, plain spaces, and nothing that cannot be seen."""
    return _ODD.sub(_plain_character, text)


def _plain_character(found: re.Match[str]) -> str:
    character = found[0]
    if character in _LIGATURES:
        return _LIGATURES[character]
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":
        return " "
    return character if "\uf020" <= character <= "\uf0ff" or character == "\ufffd" else ""


class Words(Struct, frozen=True, kw_only=True):
    """The words that a document says about its own spelling, in lower case."""

    whole: frozenset[str] = frozenset()
    """All that are within a line; compounds with their hyphens."""
    leading: frozenset[str] = frozenset()
    """The first parts of compounds: `multi` of `multi-agent`."""
    korean: Literal["words", "anywhere", "drawn"] = "words"
    """Where Korean lines end: between words, anywhere, or with each space that is there drawn."""


def vocabulary(lines: Iterable[Line]) -> Words:
    """The words of a document, without the ones that a line end broke."""
    parts: list[str] = []
    broken = False
    ends: Counter[str] = Counter()
    for line in lines:
        if broken and not line.text.isascii() and _HANGUL.match(line.text):
            ends["bound"] += _PARTICLE.match(line.text) is not None
        text = line.text.partition(" ")[2] if broken else line.text
        hangul = not line.text.isascii() and _HANGUL.match(line.text[-1]) is not None
        if hangul:
            ends["all"] += 1
            ends["drawn"] += line.spaced
        broken = line.hyphen or hangul
        parts.append(text.rpartition(" ")[0] if broken else text)
    # No word goes beyond white space, most tokens of a long text are there many times, and most
    # of the others are words as they are: little is left to search through.
    tokens = set("\n".join(set("\n".join(parts).split())).casefold().split())
    words = set(filter(str.isalpha, tokens))
    words.update(_WORD.findall("\n".join(tokens - words)))
    leading = (word.partition("-")[0] for word in words if "-" in word)
    many = max(1, ends["all"] // _FEWEST)
    return Words(
        whole=frozenset(words),
        leading=frozenset(leading),
        korean="drawn"
        if ends["drawn"] >= many
        else "anywhere"
        if ends["bound"] >= many
        else "words",
    )


def joined(before: str, after: str, *, hyphen: bool, words: Words, spaced: bool = False) -> str:
    """What goes between the end of one line and the start of the next: a space, a hyphen, nothing.

    Args:
        before: The text up to the line end, without its hyphen.
        after: The text of the next line.
        hyphen: Whether there was a hyphen.
        words: Those of the document, as `vocabulary` gives them.
        spaced: Whether there was white space.
    """
    if not hyphen:
        if not before[-1:].isascii() or not after[:1].isascii():
            if _HANGUL.match(before[-1]) or _HANGUL.match(after):
                return _korean(before, after, words, spaced=spaced)
            return "" if _UNSPACED.match(before[-1]) and _UNSPACED.match(after) else " "
        if before[-1:] not in _ADDRESS_SIGNS or not after[:1].isalnum():
            return " "
        # A web address may be broken after one of its signs.
        token = before[-_LONGEST_ADDRESS:].rpartition(" ")[2]
        is_address = "://" in token and (before[-1] != "." or after[0].islower())
        return "" if is_address else " "
    token = before[-_LONGEST_TOKEN:].rpartition(" ")[2]
    if not token:
        return "- "
    last_word = _LAST_WORD.search(token)
    if last_word is None or not after[:1].islower():
        return "-"
    last = last_word[0].casefold()
    after = after[:_LONGEST_TOKEN].casefold()
    first = _first(_FIRST_WORD, after)
    if f"{last}{first}" in words.whole:
        return ""
    compound = _first(_FIRST_COMPOUND, after)
    if f"{last}-{first}" in words.whole or f"{last}-{compound}" in words.whole:
        return "-"
    if _TOKEN_LETTERS.fullmatch(token) is None:
        return "-"  # part of a name, a path, an option or a longer compound
    if _COMPOUND.fullmatch(f"{last}-{first}"):
        return "-"
    both = last in words.whole and first in words.whole
    if both and min(len(last), len(first)) >= _SHORTEST_PART:
        return "-"
    return "-" if last in words.whole and last in words.leading else ""


def _korean(before: str, after: str, words: Words, *, spaced: bool) -> str:
    """A space or nothing, as the file draws it, the document writes the word, or words end."""
    is_word = before[-1].isalnum()
    if is_word and words.korean == "drawn":
        return " " if spaced else ""
    if _PARTICLE.match(after):
        return ""
    last = before[-_LONGEST_TOKEN:].rpartition(" ")[2].casefold()
    first = _first(_FIRST_WORD, after[:_LONGEST_TOKEN]).casefold()
    both = last in words.whole and first in words.whole
    if is_word and f"{last}{first}" in words.whole and not both:
        return ""
    if words.korean == "words" or not is_word or both:
        return " "
    return " " if _WORD_END.search(last) else ""


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.match(text)
    return found[0] if found else ""
