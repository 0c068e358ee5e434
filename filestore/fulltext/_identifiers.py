"""Words with signs in them: versions, tickets, addresses, paths, names in code, tags, emoji.

The tokenizers take such words apart. Here they are found whole, with the parts of them that a
person may ask for alone, and compounds with a hyphen are found as the one word that others write.

Most texts are prose, which has few such words, and a store has the same ones again and again. So a
text is cut at its blanks, words of letters alone are passed over, and what another one has in it is
remembered. The expressions never go back (possessive): their time is linear in the word. Pure.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

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
"""So many digits of a hash name it."""
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
    return beside_words(text)[0].split()


def beside_words(text: str) -> tuple[str, str]:
    """What the index has of a text beside its words, with blanks between.

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
    """The identifiers of a text as written, in lower case; emoji that stand together as one."""
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
    """Whether a word is an identifier that has no meaning beside its name, or an emoji."""
    return is_strict(word) or is_long(word) or not any(map(str.isalnum, word))


PART: Final = re.compile(r"[^\W_]+")


@cache
def _breaks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Where an identifier is made of others, and numbers that stand in longer names."""
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
