"""What commits did to one file, newest first, as `git log --follow` goes.

Along every branch that its content came by: a merge is looked at from each of its sides, and one
that took what a side had did nothing itself. Asks git; touches no work tree.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from filestore.git import process
from filestore.git.revisions import Commit, answered

_FORMAT: Final = "--format=%T%x00%ct%x00%an%x00%s"
_EMPTY_TREES: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""What git calls a tree without entries, by the length of its hashes."""
_MOST_NAMES: Final = 100
"""A file is followed through so many renames."""


class Version(Struct, frozen=True, kw_only=True):
    """A file as one commit has it."""

    path: str
    """Relative to the top of the work tree."""
    blob: str | None
    """The name of its bytes; None where there is no such file."""


class Step(Struct, frozen=True, kw_only=True):
    """A commit after which a file is another than before on each side that it came by."""

    commit: Commit
    after: Version
    before: Sequence[Version]
    """One for each parent; none of the first commit of all."""
    parents: Sequence[str]
    """The commits that `before` is of, with those left out that did nothing to the file."""


def lineage(top: str, path: str) -> Iterator[Step]:
    """The commits of HEAD that had to do with a file, newest first; none where it never was.

    A step is given for a merge that only took what a side had, too.

    Args:
        top: Of the work tree.
        path: Relative to it; need not be there any more.

    Raises:
        NoAnswerError: Git does not answer.
    """
    names = [path]
    for full in ((), ("--full-history",)):
        while True:
            steps, other = _followed(top, names, full)
            if other is None or len(names) >= _MOST_NAMES:
                break
            # Its commits belong among those that were listed: they are listed again, together.
            names.append(other)
        if steps:
            break
    yield from steps


class _Listed(Struct, frozen=True):
    commit: Commit
    tree: str
    parents: tuple[str, ...]


def _followed(
    top: str, names: Sequence[str], words: Sequence[str]
) -> tuple[list[Step], str | None]:
    """The steps of a file that had these names, the first one last; or one more name of it."""
    listed = _commits(top, names, words)
    changes = _changes(top, listed, names)
    held: dict[str, Version] = {}
    steps = []
    for name, one in listed.items():
        after = held.get(name)
        if after is None and not held:
            after = Version(path=names[0], blob=_blob(top, name, names[0]))
        if after is None:
            continue
        sides = list(_sides(one, listed))
        before = [_before(after, changes[tree, one.tree]) for _, tree in sides]
        if after.blob is not None and not any(version.blob for version in before):
            source = _renamed_from(top, name, after.path)
            if source is not None and source.path not in names:
                return [], source.path
            before = [source or version for version in before]
        for (parent, _), version in zip(sides, before, strict=True):
            if parent:
                held.setdefault(parent, version)
        steps.append(Step(commit=one.commit, after=after, before=before, parents=one.parents))
    return steps if any(version.blob for step in steps for version in _held(step)) else [], None


def _held(step: Step) -> tuple[Version, ...]:
    return (step.after, *step.before)


def _sides(one: _Listed, listed: Mapping[str, _Listed]) -> Iterator[tuple[str, str]]:
    """Each parent with its tree; of the first commit of all, nothing with the empty one."""
    for parent in one.parents:
        if parent in listed:
            yield parent, listed[parent].tree
    if not one.parents:
        yield "", _EMPTY_TREES[len(one.tree)]


def _before(after: Version, changed: Mapping[str, tuple[str | None, str | None]]) -> Version:
    blob, _ = changed.get(after.path, (after.blob, None))
    return Version(path=after.path, blob=blob)


def _commits(top: str, names: Sequence[str], words: Sequence[str]) -> dict[str, _Listed]:
    """The commits of HEAD that had to do with some names, newest first, children before parents."""
    said = answered(
        process.ask(
            top, "rev-list", "--date-order", "--parents", _FORMAT, *words, "HEAD", "--", *names
        )
    )
    found: dict[str, _Listed] = {}
    lines = iter(said.decode("utf-8", "replace").split("\n"))
    for line in lines:
        if not line.startswith("commit "):
            continue
        name, *parents = line.split(" ")[1:]
        tree, seconds, author, subject = next(lines).split("\0", 3)
        commit = Commit(commit=name, committed=int(seconds), author=author, subject=subject)
        found[name] = _Listed(commit, tree, tuple(parents))
    return found


def _changes(
    top: str, listed: Mapping[str, _Listed], names: Sequence[str]
) -> dict[tuple[str, str], dict[str, tuple[str | None, str | None]]]:
    """By two trees: each name that is not the same in both, with the blobs of both."""
    pairs = [(tree, one.tree) for one in listed.values() for _, tree in _sides(one, listed)]
    given = "".join(f"{before} {after}\n" for before, after in pairs).encode("ascii")
    words = ("--stdin", "-r", "--no-renames", "--raw", "--no-abbrev", "-z", "--", *names)
    said = answered(process.ask(top, "diff-tree", *words, given=given))
    found: dict[tuple[str, str], dict[str, tuple[str | None, str | None]]] = {
        pair: {} for pair in pairs
    }
    fields = iter(said.decode("utf-8", "surrogateescape").split("\0"))
    current: dict[str, tuple[str | None, str | None]] = {}
    for field in fields:
        *heads, entry = field.split("\n")
        for head in heads:
            before, _, after = head.partition(" ")
            current = found[before, after]
        if entry.startswith(":"):
            blobs = entry.split(" ")[2:4]
            current[next(fields)] = _or_none(blobs[0]), _or_none(blobs[1])
    return found


def _or_none(blob: str) -> str | None:
    return blob if blob.strip("0") else None


def _blob(top: str, commit: str, path: str) -> str | None:
    """The name of a file's bytes at a commit, if that has the file."""
    said = answered(process.ask(top, "ls-tree", "-z", "--full-tree", commit, "--", path))
    for entry in said.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        words, _, found = entry.partition("\t")
        if found == path and words.split(" ")[1] == "blob":
            return words.split(" ")[2]
    return None


def renamed_to(top: str, commit: str, path: str) -> Version | None:
    """What a file was called by the commit that took it away; None where it is gone."""
    for old, new in _renames(top, commit):
        if old.path == path:
            return new
    return None


def _renamed_from(top: str, commit: str, path: str) -> Version | None:
    """What a file was called before the commit that added it; None where it is new."""
    for old, new in _renames(top, commit):
        if new.path == path:
            return old
    return None


def _renames(top: str, commit: str) -> Iterator[tuple[Version, Version]]:
    """What a commit renamed, as it was called before and after."""
    words = ("-r", "-M", "--diff-filter=R", "--raw", "--no-abbrev", "-z")
    answer = process.ask(top, "diff-tree", *words, f"{commit}^1", commit)
    # The first commit of all, or of a shallow clone, has none before.
    said = answer.output if answer.status == 0 else b""
    fields = iter(said.decode("utf-8", "surrogateescape").split("\0")[:-1])
    for entry, old, new in zip(fields, fields, fields, strict=False):
        blobs = entry.split(" ")[2:4]
        yield Version(path=old, blob=blobs[0]), Version(path=new, blob=blobs[1])


def relative_to_top(top: str, path: str) -> str | None:
    """A path as git names it; None for one outside of the work tree, or for its top.

    Args:
        top: Of the work tree, real.
        path: Absolute.
    """
    folder, name = os.path.split(os.path.normpath(path))
    found = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)
    return None if found == "." or found.split("/")[0] == ".." else found
