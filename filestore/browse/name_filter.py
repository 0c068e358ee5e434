"""What a person types to have fewer names in a list: which names pass, and how well. Pure.

One rule: no name costs more than its length, whatever is typed, and no single call of code that is
not Python's goes over more than a block, so that no other thread is kept waiting.
"""

import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Self, TypeVar

from msgspec import Struct

from filestore.config.layout import folded_path
from filestore.core.errors import UsageError

Key = TypeVar("Key")

FEW: Final = 100
"""With fewer names that have the text as it was typed, its letters may be scattered."""
MOST: Final = 20_000
"""Names that are ranked; more than that tell a person nothing, and stay in their order."""
_AT_ONCE: Final = 4_096
"""Names that are searched in one call."""
_GAP: Final = 15
"""Characters between two scattered letters, at most."""
_LEAST_SCATTERED: Final = 3
"""Fewer letters alone are found in nearly every name."""


class Names(Struct, frozen=True):
    """Some names in one text."""

    keys: "array[int]"
    joined: str
    """Separated by NUL."""
    folded: str
    """The same without cases."""


def names_of(pieces: Iterable[tuple[Iterable[int], str]]) -> Iterator[Names]:
    """Names a block at a time; they come with their keys, some separated by NUL."""
    keys, names = array("q"), []
    for some, joined in pieces:
        keys.extend(some)
        names += joined.split("\0")
        while len(names) >= _AT_ONCE:
            yield _block(keys[:_AT_ONCE], names[:_AT_ONCE])
            del keys[:_AT_ONCE], names[:_AT_ONCE]
    if names:
        yield _block(keys, names)


def _block(keys: "array[int]", names: Sequence[str]) -> Names:
    joined = "\0".join(names)
    folded = folded_path(joined)
    return Names(keys, joined, joined if folded == joined else folded)


class NameFilter(Struct, frozen=True, kw_only=True):
    """What names must, or must not, contain: words, or a match of a regular expression."""

    text: str
    """Upper and lower case are the same; "" is in every name."""
    inverse: bool = False
    regex: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """The filter that was typed: ``words``, ``!words``, ``~regular expression`` or ``!~…``.

        Raises:
            UsageError: The regular expression is invalid.
        """
        rest = text.removeprefix("!")
        typed = cls(text=rest.removeprefix("~"), inverse=rest != text, regex=rest.startswith("~"))
        typed._search()
        return typed

    def places(self, joined: str) -> Sequence[int]:
        """The positions, from 0, of the names that pass; the names are separated by NUL."""
        every = range(joined.count("\0") + 1)
        if not self.text:
            return every
        if self.regex:
            search = self._search()
            return [
                place
                for place, name in enumerate(joined.split("\0"))
                if (search(name) is None) == self.inverse
            ]
        needle, folded = folded_path(self.text), folded_path(joined)
        if needle not in folded:
            return every if self.inverse else ()
        return [
            place
            for place, name in enumerate(folded.split("\0"))
            if (needle in name) != self.inverse
        ]

    def keys(self, names: Iterable[tuple[Key, str]]) -> Iterator[Key]:
        """The keys of the names that pass; some thousands are searched in one call."""
        every = iter(names)
        while some := list(islice(every, _AT_ONCE)):
            # A name with a NUL in it would be two.
            joined = "\0".join(name.replace("\0", " ") for _, name in some)
            yield from (some[place][0] for place in self.places(joined))

    def ranked(self, blocks: Iterable[Names]) -> Iterator[tuple[int, int]]:
        """The keys of names that contain the text, and how well, from 1 to 255; some keys twice.

        A name with the text as it was typed is above every one with its words, or the letters of
        these scattered; of those `MOST` pass, where there are `FEW` others. Of an inverse filter
        the names that it leaves out.
        """
        total = 0
        loosely: dict[int, int] = {}
        for block in blocks:
            names = block.folded.split("\0")
            found = self._exact(block, names, is_ranked=total < MOST)
            total += len(found)
            keys = block.keys
            for place, rank in found:
                yield keys[place], rank
            if not self.regex and not self.inverse and total < FEW and len(loosely) < MOST:
                for place, rank in self._loose(block.folded, names).items():
                    if rank > loosely.get(keys[place], 0):
                        loosely[keys[place]] = rank
        if total < FEW:
            yield from loosely.items()

    def _exact(
        self, block: Names, names: Sequence[str], *, is_ranked: bool
    ) -> list[tuple[int, int]]:
        """The places of names with the text as it was typed; ranks from 100."""
        if self.regex:
            search = self._search()
            cased = enumerate(block.joined.split("\0"))
            return [(place, 255) for place, name in cased if search(name) is not None]
        needle = folded_path(self.text)
        if needle not in block.folded:
            return []
        if not is_ranked:
            return [(place, 100) for place, name in enumerate(names) if needle in name]
        with_case = block.joined.split("\0") if self.text in block.joined else ()
        found = []
        for place, name in enumerate(names):
            if needle in name:
                before, _, behind = name.rpartition(needle)
                rank = 165 - min((len(before) + len(behind)) // 4, 15)
                # Where a word begins, and in the name itself or the innermost heading.
                rank += (0 if before[-1:].isalnum() else 50) + (0 if "/" in behind else 20)
                rank += (0 if " > " in behind else 10) + (0 if before or behind else 5)
                rank += 5 * (bool(with_case) and self.text in with_case[place])
                found.append((place, rank))
        return found

    def _loose(self, folded: str, names: Sequence[str]) -> Mapping[int, int]:
        """The places of names with every word, as it is or its letters scattered; below 100."""
        words = folded_path(self.text).split()
        found: Mapping[int, int] = {}
        for number, word in enumerate(words):
            is_scattered = len(self.text) >= _LEAST_SCATTERED and len(word) > 1
            ranks = _scattered(folded, word) if is_scattered else {}
            if len(words) > 1 and word in folded:
                ranks |= {place: 99 for place, name in enumerate(names) if word in name}
            if number:
                ranks = {place: min(found[place], ranks[place]) for place in found.keys() & ranks}
            found = ranks
        return found

    def _search(self) -> Callable[[str], re.Match[str] | None]:
        try:
            with warnings.catch_warnings():
                # What Python may read otherwise some day is no concern of a person still typing.
                warnings.simplefilter("ignore")
                return re.compile(self.text if self.regex else "", re.IGNORECASE).search
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"invalid regular expression: {self.text}: {error}"
                "; without the ~ it is looked for as is",
            ) from error


def _scattered(folded: str, word: str) -> dict[int, int]:
    """The places of names that have the letters of a word in order, the first where one begins.

    A letter is the first of its kind behind the one before it, and no step is taken back: with the
    gap bounded, as many steps as the names are long, times the letters.
    """
    first, *others = map(re.escape, word)
    begins = rf"{first}(?<![^\W_]{first})"
    letters = re.compile(begins + "".join(rf"[^\0{one}]{{0,{_GAP}}}+{one}" for one in others))
    ranks: dict[int, int] = {}
    known: dict[str, int] = {}
    place = at = 0
    for match in letters.finditer(folded):
        start, end = match.span()
        place += folded.count("\0", at, start)
        at, piece = start, folded[start:end]
        if piece not in known:
            known[piece] = _tightness(piece, word)
        if known[piece] > ranks.get(place, 0):
            ranks[place] = known[piece]
    return ranks


def _tightness(piece: str, word: str) -> int:
    """How well letters are in what spans them: few others between, more of them first ones."""
    at = begun = 0
    for letter in word:
        at = piece.index(letter, at)
        begun += not at or not piece[at - 1].isalnum()
        at += 1
    return min(max(60 + 6 * begun - 3 * (len(piece) - len(word)), 1), 98)
