"""From text to the words that are indexed and searched, the same on both sides.

Two fields carry the score. ``exact`` holds the words as written, without case and accents, with
positions, and identifiers whole (``foo_bar``, ``std::vector``, ``--no-embed``). ``stem`` has their
stems, in the language of the document, and the parts of camelCase words. One field serves all
languages, because BM25 compares lengths within a field: a field for each language would starve the
languages that are rare in a store. Scripts written without spaces go into ``exact`` as pairs of
characters and into ``stem`` as single ones, alphabets among them into both as triples. Languages
that join words into one have ``gram``, the five-letter pieces of long words, so that "Stadt" finds
"Hauptstadt".

Words that markup parts (`caf&eacute;`, `un**believ**able`, `H<sub>2</sub>O`) are read as one and
found as one beside their parts, since the same signs may be meant as they stand. Where such a word
stands is where it is shown.

Most texts are English prose in ASCII: everything else is behind a test that costs them next to
nothing. Pure; the tokenizers themselves are tantivy's.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from filestore.core.spelling import normalized
from filestore.fulltext._identifiers import camel_parts, camel_words_of

if TYPE_CHECKING:
    import tantivy

INVISIBLE: Final = (
    "\0\u00ad\u034f\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060"
    "\u2066\u2067\u2068\u2069\ufeff"
)
"""Signs that part a word where it may be broken, join letters, or turn them; and what is none."""

_MARKUP: Final = (
    r"\*{1,3}|~~|==|\\(?=_)|</?(?:abbr|b|big|del|em|font|i|ins|mark|s|small|span|strong|sub|sup|tt"
    rf"|u|wbr)(?:\s[^<>\n]{{0,200}})?/?>|[{INVISIBLE}]"
)
_MARKUP_SIGNS: Final = "*~=\\<&\0"
"""Of ASCII, in some of which all markup and entities begin."""
_ENTITY: Final = r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_PART: Final = re.compile(rf"{_MARKUP}|{_ENTITY}")
_WHOLE: Final = re.compile(rf"\w*+(?:(?:{_PART.pattern})++\w*+)++")
_BARE: Final = re.compile(_MARKUP)
_WHOLE_WORD: Final = re.compile(r"\w++")
_LONGEST: Final = 64
"""Letters before the first sign; longer words are indexed by none of their parts."""

MAX_WORD_BYTES: Final = 64
DEFAULT_LANGUAGE: Final = "english"
COMPOUNDING: Final = frozenset({"danish", "dutch", "finnish", "german", "norwegian", "swedish"})
GRAM_CHARACTERS: Final = 5
MIN_COMPOUND_CHARACTERS: Final = 8

LANGUAGES: Final = (
    "english",
    "german",
    "french",
    "spanish",
    "italian",
    "portuguese",
    "dutch",
    "swedish",
    "danish",
    "norwegian",
    "finnish",
    "hungarian",
    "romanian",
    "russian",
    "turkish",
    "greek",
    "arabic",
)
"""Those with a stemmer."""
_JOINING: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    f"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0dff{INVISIBLE}"
)
WORD: Final = re.compile(rf"[^\W_]++(?:[{_JOINING}]++|[^\W_]++)*+")
"""Vowel signs and accents that follow their letter, and what is invisible, end no word."""

_SHORT: Final = 256
"""Characters of a text that is kept: the words of a query are cleaned some twenty times."""
_INVISIBLE: Final = dict.fromkeys(map(ord, INVISIBLE))


_FOLDED: Final = re.compile(
    "["
    "\u0300-\u036f\u0483-\u0487"  # accents that are part of no letter
    "\u0130\u0400\u0401\u040d\u0450\u0451\u045d"  # İ, ё
    "\u0386-\u03ce\u1f00-\u1fff"  # Greek
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # points of Hebrew
    "\u0610-\u061a\u0622\u0623\u0625\u0640\u0649\u064b-\u065f\u0670\u0671\u06a9\u06cc"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"  # vowel signs and alefs of Arabic
    "\u0e47-\u0e4e\u0ec8-\u0ecd\u1037\u1039\u103a\u17c9-\u17d3\u17dd"  # tones and signs
    "]"
)
_OTHERWISE: Final = str.maketrans(
    "\u0622\u0623\u0625\u0671\u0649\u06a9\u06cc\u0130\u03c2",
    "\u0627\u0627\u0627\u0627\u064a\u0643\u064aI\u03c3",
)


@cache
def _folded(sign: str) -> str:
    """What a letter with a mark is searched as, or the mark alone.

    Tones and the like part words of other writing than theirs, but are no letters to tantivy: a
    letter of the Shan stands for each.
    """
    if (known := sign.translate(_OTHERWISE)) != sign:
        return known
    if "\u0e00" < sign < "\u1800":
        return chr(0x1075 + ord(sign) % 13)
    letter = unicodedata.normalize("NFD", sign)[0]
    return "" if unicodedata.category(letter) in ("Mn", "Lm") else letter


def clean(text: str) -> str:
    """The text in compatibility form, without invisible characters and lone surrogates.

    Of letters beyond Latin without what some write and others do not; tantivy folds the Latin ones,
    whose stemmers want their accents.
    """
    if text.isascii():
        return text.replace("\0", "")
    return _short_clean(text) if len(text) <= _SHORT else _clean(text)


def _clean(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    if any(sign in text for sign in INVISIBLE):
        text = text.translate(_INVISIBLE)
    text = normalized("NFKC", text)
    # The forms of compatibility part a vowel of Thai and one of Lao; a hyphen is one.
    text = text.replace("\u2010", "-")
    text = text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    return _FOLDED.sub(lambda sign: _folded(sign[0]), text)


_short_clean: Final = lru_cache(1_024)(_clean)

_LETTERED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese, Khmer: alphabets without spaces."""
SPACELESS: Final = re.compile(
    f"[{_LETTERED}]+|["
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3041-\u30ff\u3100-\u312f\u31a0-\u31ff"  # kana, Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]+"
)
LETTERED: Final = re.compile(f"[{_LETTERED}]+")


# In UTF-8 these scripts begin with other bytes than Latin, Greek, Cyrillic and typographic signs.
_OTHER_BYTES: Final = bytes(code for code in range(256) if code < 0xE0 or code == 0xE2)


def has_spaceless(text: str) -> bool:
    """Whether there may be a script without spaces in a text; quick, and never wrongly no."""
    return not text.isascii() and bool(text.encode("utf-8").translate(None, _OTHER_BYTES))


def width_of(run: str) -> int:
    """How many characters of a run of a script without spaces are a term."""
    return 3 if LETTERED.match(run) else 2


def space_pairs(text: str) -> str:
    """Each run of a script without spaces as its overlapping pairs, of an alphabet its triples."""
    return SPACELESS.sub(_pieces, text) if has_spaceless(text) else text


def space_singles(text: str) -> str:
    """Each run of a script without spaces as its single characters, of an alphabet its triples."""
    return SPACELESS.sub(_singles, text) if has_spaceless(text) else text


def _pieces(run: re.Match[str]) -> str:
    text, width = run[0], width_of(run[0])
    pieces = [text[start : start + width] for start in range(len(text) - width + 1)]
    return f" {' '.join(pieces) or text} "


def _singles(run: re.Match[str]) -> str:
    return _pieces(run) if LETTERED.match(run[0]) else f" {' '.join(run[0])} "


def short_runs(text: str) -> list[str]:
    """The runs of an alphabet without spaces that are shorter than a triple."""
    runs = LETTERED.findall(text) if has_spaceless(text) else ()
    return [run for run in runs if len(run) < 3]


def _ends(text: str) -> list[str]:
    """The ends of runs of an alphabet without spaces, which are shorter than a triple.

    With them a term begins with each letter, so that one letter and two are found as beginnings.
    """
    runs = LETTERED.findall(text) if has_spaceless(text) else ()
    return sorted({run[-length:] for run in runs for length in (1, 2) if length < len(run)})


_WORD: Final = re.compile(r"[^\W\d_]+")


def grams_of(text: str, *, shortest: int) -> list[str]:
    """The five-letter pieces of the words of at least so many letters, in lower case."""
    return [
        word[start : start + GRAM_CHARACTERS]
        for word in _WORD.findall(text.lower())
        if len(word) >= shortest
        for start in range(len(word) - GRAM_CHARACTERS + 1)
    ]


_APART: Final = f" {'0' * MAX_WORD_BYTES} "
"""A word that is too long for the index, and leaves its place empty: no phrase reaches across."""


def prepare(text: str) -> tuple[str, str]:
    """What the fields `exact` and `stem` get of a text that `clean` returned.

    Words that markup parts are in it as one word, too.
    """
    if parted := [clean(read) for _, _, read in parted_words(text)]:
        text = _APART.join((text, *parted))
    exact, stem = space_pairs(text), space_singles(text)
    if ends := _ends(text):
        exact = _APART.join((exact, *ends))
    if camel_words := camel_words_of(text):
        stem = f"{stem} {camel_parts(camel_words)}"
    return exact, stem


def build_schema() -> "tantivy.Schema":
    """The fields of the index: nothing is stored, the id is a fast field."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", indexed=True, fast=True)
    builder.add_text_field("exact", tokenizer_name="exact", index_option="position")
    builder.add_text_field("whole", tokenizer_name="gram", index_option="basic")
    builder.add_text_field("stem", tokenizer_name=DEFAULT_LANGUAGE, index_option="freq")
    builder.add_text_field("gram", tokenizer_name="gram", index_option="freq")
    return builder.build()


def build_exact_analyzer() -> "tantivy.TextAnalyzer":
    """Words as written, without case and accents."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    words = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(MAX_WORD_BYTES))
    return words.filter(Filter.lowercase()).filter(Filter.ascii_fold()).build()


def build_gram_analyzer() -> "tantivy.TextAnalyzer":
    """Pieces of words as they come, without accents."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.ascii_fold()).build()


def build_stem_analyzer(language: str) -> "tantivy.TextAnalyzer":
    """Stems, taken before accents are folded, because the stemmers know the accents."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    words = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(MAX_WORD_BYTES))
    stems = words.filter(Filter.lowercase()).filter(Filter.stemmer(language))
    return stems.filter(Filter.ascii_fold()).build()


def parted_words(text: str) -> Iterator[tuple[int, int, str]]:
    """The words of a text that markup parts: start, end, and what is read there."""
    if text.isascii() and not any(sign in text for sign in _MARKUP_SIGNS):
        return
    end = 0
    for part in _PART.finditer(text):
        if part.start() < end:
            continue
        start = part.start()
        while start > end and part.start() - start < _LONGEST:
            if not (text[start - 1].isalnum() or text[start - 1] == "_"):
                break
            start -= 1
        whole = _WHOLE.match(text, start)
        if whole is None:
            continue
        import html

        end = whole.end()
        read = _BARE.sub("", html.unescape(_BARE.sub("", whole[0])))
        apart = set(_WHOLE_WORD.findall(_PART.sub(" ", whole[0])))
        if not apart.issuperset(_WHOLE_WORD.findall(read)) or "&" in read.strip("&"):
            yield start, end, read
