"""Letters and words: normal forms, scripts without spaces, and which known word a typed one is.

Pure. One rule: a short word must be nearly right, because it is near too many others.
`unicodedata` sorts marks that follow each other in the square of their number: for a megabyte of
nothing else that is minutes, in which not even Ctrl-C is heard.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, Literal

from filestore.core.safe_text import offered

_MOST_OFFERED: Final = 3
_LONGEST: Final = 64
"""A longer word is a text, and no misspelt word."""


def edits(word: str, other: str) -> int:
    """The fewest single changes from one word to another.

    A change adds, drops or replaces a letter, or swaps two neighbours, and no place is changed
    twice (the optimal string alignment distance; R. Wagner and R. Lowrance, 1975).
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(word):
        above, row = row, [place + 1]
        for column, against in enumerate(other):
            cost = min(above[column + 1] + 1, row[column] + 1, above[column] + (letter != against))
            if place and column and letter == other[column - 1] and word[place - 1] == against:
                cost = min(cost, before[column - 1] + 1)
            row.append(cost)
        before = above
    return row[-1]


def closest(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known words that a typed one begins, else the nearest ones; mostly none.

    Args:
        word: As typed; dashes before it count for nothing.
        known: Words that would have been right, in the order in which equals are given.
    """
    typed = word.strip("-").lower()
    if not typed or len(typed) > _LONGEST:
        return ()
    names = {one: one.strip("-").lower() for one in known}
    # One letter begins many words; behind two dashes it begins few options.
    tells = len(typed) > 1 or word.startswith("--")
    begun = [one for one, name in names.items() if tells and name.startswith(typed)]
    if begun:
        return tuple(begun[:_MOST_OFFERED])
    most = max(1, min(2, len(typed) // 3))
    near = {
        one: edits(typed, name)
        for one, name in names.items()
        if len(name) > 1 and abs(len(name) - len(typed)) <= most
    }
    least = min(near.values(), default=len(typed))
    if least > most or least >= len(typed):
        return ()
    return tuple(one for one, distance in near.items() if distance == least)[:_MOST_OFFERED]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word; "" where no known one is near."""
    found = closest(word, known)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


_REFINED: Final = 100
"""Paths of very many that are compared sign by sign."""
_LEAST_RATIO: Final = 0.75
"""Of two names that look alike."""
_LEAST_WHOLE: Final = 0.9
"""Of two paths that do."""


def nearest_paths(typed: str, known: Iterable[str]) -> tuple[str, ...]:
    """The three known paths that were most likely wanted, best first; fewer where few are near.

    One of the same name in another folder comes first, then one of that name with another ending,
    then the ones that are written alike. Of very many paths, those sharing most pairs of signs
    are compared.

    Args:
        typed: A path that is none of them.
        known: All there are.
    """
    from difflib import SequenceMatcher
    from heapq import nlargest

    wanted = typed[:_LONGEST_PATH].rstrip("/").casefold()
    name = wanted.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    of_name, of_path = _grams(stem), _grams(wanted)

    def shared(path: str) -> tuple[bool, bool, int, int]:
        folded = path[:_LONGEST_PATH].casefold()
        last = folded.rpartition("/")[2]
        is_same = last.startswith(stem) and (last.rpartition(".")[0] or last) == stem
        near = sum(map(last.__contains__, of_name))
        return last == name, is_same, near, near and sum(map(folded.__contains__, of_path))

    best = nlargest(_REFINED, ((shared(path), path) for path in known))
    ranked = []
    for (is_named, is_same, near, _), path in best:
        folded = path[:_LONGEST_PATH].casefold()
        last = folded.rpartition("/")[2]
        whole = SequenceMatcher(None, folded, wanted, autojunk=False).ratio()
        alike = SequenceMatcher(None, last.rpartition(".")[0] or last, stem, autojunk=False).ratio()
        if is_named or is_same or alike >= _LEAST_RATIO or (near and whole > _LEAST_WHOLE):
            ranked.append((not is_named, not is_same, -whole - alike, path))
    return tuple(path for *_, path in sorted(ranked)[:_MOST_OFFERED])


def did_you_mean_path(typed: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown path; "" where no known one is near."""
    return offered(nearest_paths(typed, sorted({*known} - {typed, ""})))


_LONGEST_PATH: Final = 256
"""Characters of a path that are compared."""


def _grams(text: str) -> frozenset[str]:
    return frozenset(text[at : at + 2] for at in range(max(1, len(text) - 1)))


# Thai, Lao, Tibetan, Burmese, Khmer, kana, ideographs.
UNSPACED: Final = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ranges, as a class of characters of a regular expression has them."""
_MOST: Final = 1_000
"""Marks that are sorted together; no letter has so many."""
_MANY: Final = rf"(?<![^\w\s])[^\w\s]{{{_MOST}}}"
_PARTS: Final = rf"[\w\s]*[^\w\s]{{0,{_MOST}}}"


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """A text in a normal form; of more than 1,000 marks on end, 1,000 at a time are sorted."""
    if len(text) < _MOST or not re.search(_MANY, text):
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, part) for part in re.findall(_PARTS, text))
