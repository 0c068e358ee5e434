"""Which names of a folder ignore rules may leave out, found for all of its names at once.

To ask each rule about each name costs more than to stat the files. Pure. One rule: no name that a
rule leaves out is missed; one too many is only asked about for nothing.

An entry matches a pattern only if its name matches the pattern's last part, so that alone is looked
at: of most patterns it is a name, or begins or ends with what is no wildcard.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from filestore.extract.ignore import MAX_RULES, Rule, Rules

_WILDCARD: Final = re.compile(rb"[*?\[\\]")
_STARS: Final = re.compile(rb"\*+")
_APART: Final = re.compile(rb"[*?]|\[.*\]|\\.?|\[.*", re.DOTALL)
"""What stands between the texts that a pattern has in all that it matches, or more than that."""


class _Names(Struct):
    """What names look like that some rules may leave out."""

    whole: set[str] = field(default_factory=set)
    starts: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    expressions: dict[bytes, str] = field(default_factory=dict)
    """Of names with a slash at their end, to a text that is in every name that matches."""
    everything: bool = False

    def take(self, last: bytes, rule: Rule) -> None:
        """Take up a rule by the last part of its pattern."""
        last = _STARS.sub(b"*", last)
        wildcard = _WILDCARD.search(last)
        if wildcard is None:
            self.whole.add(os.fsdecode(last))
        elif last == b"*":
            self.everything = True
        elif wildcard.start() and _is_text(last[: wildcard.start()]):
            self.starts.add(os.fsdecode(last[: wildcard.start()]))
        elif last.startswith(b"*") and not _WILDCARD.search(last, 1) and _is_text(last[1:]):
            self.ends.add(os.fsdecode(last[1:]))
        elif b"/" in rule.pattern:
            self.everything = True
        else:
            parts = filter(_is_text, _APART.split(last))
            self.expressions[rule.expression] = max(map(os.fsdecode, parts), key=len, default="")

    def find(self, names: Sequence[str], suffixes: "Suffixes") -> set[int]:
        """The places of names that look so."""
        if self.everything:
            return set(range(len(names)))
        found = set(starting(names, self.starts))
        whole = self.whole
        if 16 * len(whole) > len(names):
            whole = whole.intersection(names)
        found.update(places(names, whole))
        if self.ends:
            found.update(suffixes.ending(tuple(self.ends)))
        if self.expressions:
            found.update(self._matching(names, suffixes.text))
        return found

    def _matching(self, names: Sequence[str], text: str) -> list[int]:
        matches: set[bytes] = set()
        possible = [expression for expression, part in self.expressions.items() if part in text]
        encoded = os.fsencode(text) if possible else b""
        for expression in possible:
            matches.update(_whole(expression).findall(encoded))
        named = {os.fsdecode(name[:-1]) for name in matches}
        return [place for place, name in enumerate(names) if name in named] if named else []


@lru_cache(maxsize=MAX_RULES)
def _whole(expression: bytes) -> re.Pattern[bytes]:
    """For names between slashes, of which an expression may take the second itself."""
    return re.compile(b"(?<=/)(?:%s)(?<=/)" % expression, re.DOTALL)


def _is_text(part: bytes) -> bool:
    """Whether it decodes to the same characters wherever it stands."""
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


class Suffixes:
    """The ends of some names, from their last dot on; of one without a dot its last character."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.text = f"/{'/'.join(names)}/"
        """All names, each between slashes."""
        # Where a few names tell the suffixes of all, counting is much faster than cutting.
        some = {_suffix(names[place]) for place in (0, len(names) // 2, -1)} if names else set()
        dotted = [suffix for suffix in some if suffix.startswith(".")]
        counted = sum(self.text.count(f"{suffix}/") for suffix in dotted)
        self.all = some if counted == len(names) else set(map(_suffix, names))

    def places(self, suffixes: set[str]) -> list[int]:
        """The places of names that end with one of some of these."""
        if not suffixes:
            return []
        return [place for place, name in enumerate(self._names) if _suffix(name) in suffixes]

    def ending(self, ends: tuple[str, ...]) -> list[int]:
        """The places of names that end with any of some texts."""
        possible = {
            suffix
            for suffix in self.all
            if suffix.endswith(ends) or any(end.endswith(suffix) for end in ends)
        }
        return [place for place in self.places(possible) if self._names[place].endswith(ends)]


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def places(names: Sequence[str], wanted: Iterable[str]) -> list[int]:
    """The places of those of some wanted names that are among sorted ones."""
    found: list[int] = []
    if names:
        low, high = names[0], names[-1]
        for name in wanted:
            if low <= name <= high and names[place := bisect_left(names, name)] == name:
                found.append(place)
    return found


def starting(names: Sequence[str], starts: Sequence[str] | set[str]) -> list[int]:
    """The places of sorted names that begin with any of some texts, none of which is empty."""
    found: list[int] = []
    if not names:
        return found
    low, high = names[0][0], names[-1][0]
    for start in starts:
        if not low <= start[0] <= high:
            continue
        place = bisect_left(names, start)
        while place < len(names) and names[place].startswith(start):
            found.append(place)
            place += 1
    return found


class Hints(Struct):
    """What names look like that lists of rules may leave out, by folder."""

    anywhere: _Names = field(default_factory=_Names)
    in_folder: dict[bytes, _Names] = field(default_factory=dict)
    """Of rules that speak of what stands directly in one folder."""
    below: dict[bytes, _Names] = field(default_factory=dict)
    """Of rules that speak of what is somewhere below a folder."""

    def find(self, base: bytes, names: Sequence[str], suffixes: Suffixes) -> set[int]:
        """The places of names that the rules may leave out.

        Args:
            base: Their folder, from the top, with a slash at the end.
            names: Sorted.
            suffixes: Theirs.
        """
        found = self.anywhere.find(names, suffixes)
        direct = self.in_folder.get(base)
        if direct is not None:
            found |= direct.find(names, suffixes)
        for folder, inside in self.below.items():
            if base.startswith(folder):
                found |= inside.find(names, suffixes)
        return found


def hints(lists: Sequence[tuple[bytes, Rules]]) -> Hints:
    """What to look for: each list of rules with its folder, from the top, a slash at the end."""
    made = Hints()
    for base, rules in lists:
        for rule in rules.by_name:
            if rule.leaves_out:
                made.anywhere.take(rule.pattern, rule)
        for rule in rules.by_path:
            if rule.leaves_out:
                _take_path(made, base, rule)
    return made


def _take_path(made: Hints, base: bytes, rule: Rule) -> None:
    pattern = rule.pattern.removeprefix(b"/")
    wildcard = _WILDCARD.search(pattern)
    plain = pattern if wildcard is None else pattern[: wildcard.start()]
    cut = plain.rfind(b"/") + 1
    folder, rest = base + pattern[:cut], pattern[cut:]
    has_folders = b"/" in rest or b"**" in rest
    if has_folders and (b"\\" in rest or b"[" in rest):
        # A slash in brackets or after a backslash is none that parts folders.
        made.below.setdefault(folder, _Names()).everything = True
    elif has_folders:
        made.below.setdefault(folder, _Names()).take(rest.rpartition(b"/")[2], rule)
    else:
        made.in_folder.setdefault(folder, _Names()).take(rest, rule)
