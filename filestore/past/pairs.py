"""Which file of one time is which of another. Pure.

One rule: a file that was renamed is the same file, so that its new name is no answer gained, and
its old one none lost.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject


class Pairs(Struct, frozen=True, kw_only=True):
    """The files of two times that are the same."""

    old: Mapping[StorePath, StorePath]
    """Path of the later time to that of the earlier one."""
    new: Mapping[StorePath, StorePath]
    """The inverse."""


def paired(
    first: Mapping[StorePath, bytes],
    second: Mapping[StorePath, bytes],
    renames: Mapping[StorePath, StorePath],
) -> Pairs:
    """Which files are the same: by path and text, by text, by path, then by what git says.

    Args:
        first: The files of the earlier time, each with a hash of its texts.
        second: Those of the later time.
        renames: New path to old one, of files that are much alike.
    """
    old: dict[StorePath, StorePath] = {}
    new: dict[StorePath, StorePath] = {}

    def take(pairs: Iterator[tuple[StorePath, StorePath]]) -> None:
        for later, earlier in pairs:
            if later in second and earlier in first and later not in old and earlier not in new:
                old[later], new[earlier] = earlier, later

    take((path, path) for path, text in second.items() if first.get(path) == text)
    take(_with_same_text(first, second, set(old)))
    take((path, path) for path in second)
    take(iter(renames.items()))
    return Pairs(old=old, new=new)


def _with_same_text(
    first: Mapping[StorePath, bytes], second: Mapping[StorePath, bytes], known: set[StorePath]
) -> Iterator[tuple[StorePath, StorePath]]:
    """Files of the same text under two paths; where several have it, in the order of paths."""
    by_text: defaultdict[bytes, list[StorePath]] = defaultdict(list)
    for path in sorted(first, reverse=True):
        if path not in known:
            by_text[first[path]].append(path)
    for path in sorted(second):
        if path not in known and by_text.get(second[path]):
            yield path, by_text[second[path]].pop()


class ComparedAnswer(JsonObject, Struct, frozen=True, kw_only=True):
    """One answer to a question, at two times."""

    SPARSE = "was"

    path: StorePath
    """The chunk file, relative to the store; as it is called at the later time, if it is there."""
    was: StorePath | None
    """What it was called at the earlier time, where that is something else."""
    old: int | None
    """Its place at the earlier time, from 1; None where it is none of the first `k`."""
    new: int | None
    """Its place at the later time."""
    edited: bool
    """Whether its text is another."""
    there: bool
    """Whether both times have the file, even where only one of them gives it as an answer."""


def matched(
    old: Sequence[StorePath],
    new: Sequence[StorePath],
    pairs: Pairs,
    first: Mapping[StorePath, bytes],
    second: Mapping[StorePath, bytes],
) -> list[ComparedAnswer]:
    """The answers of two times laid beside each other, those of the later one first.

    Args:
        old: The answers of the earlier time, best first.
        new: Those of the later one.
        pairs: Which files are the same.
        first: The files of the earlier time, each with a hash of its texts.
        second: Those of the later one.
    """
    places = {path: place for place, path in enumerate(old, start=1)}
    found = []
    for place, path in enumerate(new, start=1):
        before = pairs.old.get(path)
        found.append(
            ComparedAnswer(
                path=path,
                was=before if before != path else None,
                old=places.pop(before, None) if before is not None else None,
                new=place,
                edited=before is not None and first.get(before) != second.get(path),
                there=before is not None,
            )
        )
    for path, place in places.items():
        after = pairs.new.get(path)
        found.append(
            ComparedAnswer(
                path=after or path,
                was=path if after is not None and after != path else None,
                old=place,
                new=None,
                edited=after is not None and first.get(path) != second.get(after),
                there=after is not None,
            )
        )
    return found
