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
found as one, and their parts as well, since the same signs may be wanted as they are. Where such a
word is, it is shown.

Words with signs in them (versions, tickets, addresses, paths, names in code, tags, emoji) are taken
apart by the tokenizers. Here they are found whole, with the parts of them that a person may ask for
alone, and compounds with a hyphen are found as the one word that others write. A text is cut at its
blanks, words of letters alone are passed over, and what another one has in it is remembered, since
a store has the same ones again and again. The expressions never go back (possessive): their time is
linear in the word.

Most texts are English prose in ASCII: everything else is behind a test that costs them next to
nothing. Pure; the tokenizers themselves are tantivy's.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from filestore.core.spelling import normalized

if TYPE_CHECKING:
    import tantivy


MAX_IDENTIFIER_CHARACTERS: Final = 128
"""As many as a SHA-512 has."""
LONG_WORD_CHARACTERS: Final = 64
"""From here on the tokenizers leave out a word, and it is an identifier."""
INSIDE: Final = "~"
"""Before an identifier that is part of a longer one: ``3.11`` of ``python-3.11``."""
_MAX_COMPOUND_CHARACTERS: Final = 12
_MIN_PLAIN_CHARACTERS: Final = 4
_HASH_DIGITS: Final = frozenset("0123456789abcdef")
_REMEMBERED: Final = 16_384
_BLANKS: Final = str.maketrans(dict.fromkeys("()[]{}\"'`*;!?|=", " "))
"""Signs of no identifier."""
_BEHIND: Final = ".,:)]}\"'`*;!?"


# A text drawn with few signs: letters and digits a, capitals A, all else a blank. Looking for a few
# bytes in this outline is far cheaper than running a regular expression over prose.
_CAMEL_OUTLINE: Final = "".join(
    "A" if c.isupper() else "a" if c.isalnum() or c == "_" else " " for c in map(chr, range(256))
).encode("ascii")

HASH_CHARACTERS: Final = 7
"""How many digits of a hash name it."""
HASH: Final = re.compile(rf"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{{HASH_CHARACTERS},128}}")
_WHOLE_WORD: Final = re.compile(r"\w++")
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]")
_CAMEL_BREAK: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def _joined() -> re.Pattern[str]:
    """Identifiers, and words without a joint."""
    return re.compile(
        r"(?<![\w-])--[^\W_][\w-]*+"  # --no-embed
        r"|(?:(?=[.#@/\\:~])(?:(?<![\w.])\.{1,2}[/\\]|(?<![\w<:/\\])[/\\]|(?<!\w)~/"
        r"|(?<![\w.])\.(?=[^\W\d])|(?<![\w#&])\#|(?<![\w@])@|(?<![\w:])::(?=[0-9A-Fa-f]{1,4}\b)))?+"
        r"\w++(?:(?:::|->|:?//?|:?\\\\?|[/\\]\.|[-.:@&+\#]|(?<=\d),(?=\d))\w++)*+"
        r"(?:\+\+|\#(?!\w))?+"
    )


def identifiers_of(text: str) -> list[str]:
    """The identifiers of a text and those in them, as the index has them."""
    return extra_words(text)[0].split()


def extra_words(text: str) -> tuple[str, str]:
    """What the index has of a text besides its words, with blanks between.

    Args:
        text: As `clean` returned it.

    Returns:
        The identifiers, and those in them behind `INSIDE`; and of each short compound with a hyphen
        (Wi-Fi, UTF-8) the one word that it also is; both in lower case.
    """
    parted = text.translate(_BLANKS) if text.isascii() else text
    found = dict.fromkeys(
        [
            _remembered(word) if len(word) < LONG_WORD_CHARACTERS else _read(word)
            for word in [one.rstrip(_BEHIND) for one in parted.split() if not one.isalpha()]
            if not word.isalnum() or len(word) >= LONG_WORD_CHARACTERS
        ]
    )
    return " ".join([one for one, _ in found if one]), " ".join([one for _, one in found if one])


def _read(word: str) -> tuple[str, str]:
    identifiers: list[str] = []
    for whole in wholes_of(word):
        identifiers.append(whole)
        if not whole.isalnum():
            identifiers += [f"{INSIDE}{one}" for one in _inside(whole) if one != whole]
    compounds = [one for _, _, one in compounds_in(word)] if "-" in word else []
    return " ".join(identifiers), " ".join(compounds)


_remembered: Final = lru_cache(_REMEMBERED)(_read)
"""Texts alone, which the collector of garbage passes over."""


def wholes_of(text: str) -> list[str]:
    """The identifiers of a text as written, in lower case; emoji that are together as one."""
    found = [
        word.lower()
        for word in _joined().findall(text)
        if (is_long(word) if word.isalnum() else _is_identifier(word))
    ]
    if not text.isascii():
        found += ["".join(signs) for signs in emoji_of(text)]
    return [word for word in found if len(word) <= MAX_IDENTIFIER_CHARACTERS]


def is_long(word: str) -> bool:
    """Whether the tokenizers leave out a word; what parts texts in the index is none."""
    return len(word) >= LONG_WORD_CHARACTERS and word.strip("0") != ""


def _is_identifier(word: str) -> bool:
    """Whether a word with a sign is more than a rule, a compound or a note (``a-b``, ``note#``)."""
    if word.endswith("#"):
        return len(word) == 2 and word[0].isalpha()
    if "-" in word and word.replace("-", "").isalpha() and not word.startswith("--"):
        return False
    return any(map(str.isalnum, word))


def is_strict(word: str) -> bool:
    """Whether a word is so much of an identifier that its parts are no other way to write it."""
    if "_" in word.strip("_"):
        return True
    parts = PART.findall(word)
    if len(parts) < 2 or not any(map(str.isdigit, word)):
        return False
    # MD5-Prüfsummen is a compound of words.
    return any(map(str.isdecimal, parts)) or not any(map(_is_plain, parts))


def _is_plain(part: str) -> bool:
    """Whether a part of a word with signs is a word itself, and no digits of a hash."""
    is_long_enough = len(part) >= _MIN_PLAIN_CHARACTERS and part.isalpha() and not part.isupper()
    return is_long_enough and not set(part.lower()) <= _HASH_DIGITS


def is_telling(part: str) -> bool:
    """Whether a part of an identifier tells something alone: neither a number nor one letter."""
    return len(part) > 1 and not any(map(str.isdigit, part))


def is_name(word: str) -> bool:
    """Whether a word is an identifier that has no meaning besides its name, or an emoji."""
    return is_strict(word) or is_long(word) or not any(map(str.isalnum, word))


PART: Final = re.compile(r"[^\W_]+")


@cache
def _breaks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Where an identifier is made of others, and numbers that are in longer names."""
    return re.compile(r"[/\\@&+#:]+|->"), re.compile(
        r"(?<![\d.])(?:\d++(?:\.\d++)++|\d{4}-\d\d-\d\d)(?:(?![\w.-])|(?=t\d)|(?=[-._][^\W\d]))"
    )


def _inside(word: str) -> list[str]:
    """The identifiers in an identifier: ``a.md`` of ``docs/a.md``, ``3.11`` of ``v3.11``."""
    if not any(map(str.isalnum, word)):
        return _emoji()[1].findall(word)
    breaks, numbers = _breaks()
    found: list[str] = []
    if len(pieces := breaks.split(word)) > 1:
        found += [one for one in pieces if not one.isalnum() and _is_identifier(one)]
        if "://" in word:
            found.append(word.split("://", 1)[1])
        if word[0] == "#":
            # A tag is one of its parents', too.
            found += [word[:place] for place, sign in enumerate(word) if sign == "/"]
        elif "#" in word[:-1]:
            found.append(word[word.rindex("#") :])
    if "." in word or "-" in word:
        found += numbers.findall(word)
    if "_" in word:
        found += [one for one in _WHOLE_WORD.findall(word) if "_" in one]
    return found


def compounds_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Short compounds with a hyphen: start, end, and the one word that each also is."""
    for match in _hyphened().finditer(text):
        word = match[1] + match[2]
        if len(word) <= _MAX_COMPOUND_CHARACTERS and not word.isdigit():
            yield match.start(), match.end(), word.lower()


@cache
def _hyphened() -> re.Pattern[str]:
    return re.compile(r"(?<![\w.-])([^\W_]++)-([^\W_]++)(?![-_]|\.\w)")


_EMOJI_BYTES: Final = tuple(
    bytes.fromhex(code)
    for code in [
        "f09f",
        "e28c",
        "e28d",
        "e28e",
        "e28f",
        "e298",
        "e299",
        "e29a",
        "e29b",
        "e29c",
        "e29d",
        "e29e",
        "e2ac",
        "e2ad",
        "e2ae",
        "e2af",
    ]
)
_EMOJI_FORMS: Final = "\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff"
"""What joins emoji, or gives them another form."""


@cache
def _emoji() -> tuple[re.Pattern[str], re.Pattern[str]]:
    sign = "\u2318-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
    return re.compile(rf"[{sign}](?:[{sign}{_EMOJI_FORMS}])*+"), re.compile(
        rf"[\U0001f1e6-\U0001f1ff]{{2}}|[{sign}]"
    )


def emoji_of(text: str) -> list[list[str]]:
    """The runs of emoji in a text, each as its signs, whatever their form; a flag is one sign."""
    coded = text.encode("utf-8", "replace")
    if not any(start in coded for start in _EMOJI_BYTES):
        return []
    run, sign = _emoji()
    return [sign.findall(one) for one in run.findall(text)]


def camel_words_of(text: str) -> list[str]:
    """The camelCase words of a text, as written.

    Words with letters beyond Latin-1 are passed over: they are found by their parts.
    """
    outline = b" " + text.encode("latin-1", "replace").translate(_CAMEL_OUTLINE) + b" "
    found: list[str] = []
    place = outline.find(b"aA")
    while place >= 0:
        start, end = outline.rfind(b" ", 0, place) + 1, outline.find(b" ", place)
        # The outline is one blank longer in front.
        found.append(text[start - 1 : end - 1])
        place = outline.find(b"aA", end)
    return [word for word in found if _CAMEL.search(word)]


def camel_parts(words: list[str]) -> str:
    """The parts of camelCase words, with blanks between."""
    return " ".join(_CAMEL_BREAK.sub(" ", word) for word in words)


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
    letter of the Shan takes its place.
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


_WORD: Final = re.compile(r"[^\W\d_]+")


def grams_of(text: str, *, shortest: int) -> list[str]:
    """The five-letter pieces of the words of at least that many letters, in lower case."""
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
    # With its ends a term of an alphabet without spaces begins with each letter, so that one letter
    # and two, shorter than a triple, are found as beginnings.
    runs = LETTERED.findall(text) if has_spaceless(text) else ()
    if ends := sorted({run[-n:] for run in runs for n in (1, 2) if n < len(run)}):
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
