"""A document as the words that may name what it is about, and how rare they are in English.

One rule: what is code, a link's address, or a word that most texts have is none of them.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct

from filestore.core.paths import ChunkPath
from filestore.embed import vocabulary
from filestore.embed.vocabulary import STOP_WORDS
from filestore.extract.markdown_read import without_code, without_remarks

COMMON: Final = 1_100
"""Words of English, the most frequent, that tell nothing."""
_RARE: Final = 30_000
_LOOKED_AT: Final = 8_000
"""Characters of one document."""
_LONGEST: Final = 40
_LINK: Final = re.compile(
    r"!?\[\[(?:[^\[\]|\n]{0,300}\|)?([^\[\]\n]{1,300})\]\]|!?\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)"
    r"|https?://\S+|\{[^{}\n]{0,300}\}"
)
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[\w'’.+-])+")
_BETWEEN: Final = re.compile(r"[.,;:!?]+(?:\s|$)|[\n()\[\]|*_#>\"“”]")
_CLITIC: Final = re.compile(r"['’](?:s|t|re|ll|ve|d|m)$", re.IGNORECASE)
_STOP: Final = frozenset(("hello", "welcome", "thank", "please")).union(*STOP_WORDS.values())


class Words(Struct, frozen=True):
    """The words of one document, and how it writes them."""

    path: str
    weights: dict[str, float]
    in_names: frozenset[str]
    """Those of its title and headings."""
    spelled: dict[str, str]
    files: tuple[ChunkPath, ...] = ()


def words_of(path: str, names: str, text: str, files: tuple[ChunkPath, ...] = ()) -> Words:
    """The words, and pairs of words, of a document that may name something."""
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    in_names: set[str] = set()
    for part, weight in ((names, 3), (text, 1)):
        for run in _runs(part):
            before = ""
            for word in run:
                key = _folded(word)
                keys = {key: word}
                if before:
                    keys[f"{_folded(before)} {key}"] = f"{before} {word}"
                before = word if _tells(key) and word.isascii() else ""
                if not _tells(key):
                    continue
                for one, spelling in keys.items():
                    counts[one] += weight
                    spelled.setdefault(one, spelling)
                if weight > 1:
                    in_names.update(keys)
    weights = {key: 1 + math.log(count) for key, count in counts.items()}
    return Words(path, weights, frozenset(in_names), spelled, files)


def _runs(text: str) -> Iterator[list[str]]:
    """The words of a text between its signs, without code, links by their text."""
    visible = _LINK.sub(r" \1\2 ", without_remarks(without_code(text[:_LOOKED_AT])))
    for line in _BETWEEN.split(visible):
        run: list[str] = []
        for found in _WORD.findall(line):
            word = _CLITIC.sub("", found.strip("'’.+-"))
            if re.match(f"[{_UNSPACED}]", word):
                run += [word[at : at + 2] for at in range(len(word) - 1)]
            elif word.count("-") > 1:
                # The name of a file.
                run += word.split("-")
            else:
                run.append(word)
        yield run


def _folded(word: str) -> str:
    """A word as it is compared: its plural is the same."""
    key = word.casefold()
    if len(key) > 3 and key.isascii() and key[-1] == "s" and key[-2:] not in ("ss", "us", "is"):
        return f"{key[:-3]}y" if key.endswith("ies") else key[:-1]
    return key


@lru_cache(maxsize=1 << 16)
def _tells(word: str) -> bool:
    """Whether a word may name what something is about."""
    if len(word) > _LONGEST or word in _STOP or sum(map(str.isalpha, word)) * 2 <= len(word):
        return False
    if not word.isascii():
        return len(word) > 1
    return len(word) > 2 and not word.endswith("ly") and rank(word) > COMMON


@cache
def _ranks() -> dict[str, int]:
    words = [one for one in vocabulary.words() if one.isalpha() and len(one) > 1]
    return {word: place for place, word in enumerate(words)}


def rank(word: str) -> int:
    return min(_ranks().get(one, _RARE) for one in word.split())
