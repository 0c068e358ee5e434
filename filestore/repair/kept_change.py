"""A change of truth files that was kept: its files as they are, and the side that is wanted.

Reads; changes nothing. One rule: a file that holds neither what the change wrote nor what was there
before was edited since.
"""

import contextlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from filestore.core.errors import RefusedError
from filestore.core.hashing import content_hash
from filestore.core.safe_text import shown_path
from filestore.fs import transaction
from filestore.fs.disk import read_below
from filestore.fs.transaction import ChangedMeanwhile, Content, Replacement, Seen
from filestore.history.backup_store import Originals
from filestore.history.batch import (
    Batch,
    BatchInvalidError,
    Entry,
    Group,
    Link,
    State,
    Version,
    grouped,
)


def choices(batches: Iterable[Batch], wanted: State) -> list[Group]:
    """What may be undone or redone, the command that is meant first; pure.

    First what a writer that died was at, then the newest that is not undone, or what was undone
    last.
    """
    groups = grouped(batch for batch in batches if not batch.problem)
    broken_off = [group for group in groups if _is_broken_off(group, wanted)]
    others = [
        group for group in groups if not group.is_all(wanted) and not _is_broken_off(group, wanted)
    ]
    key = by_number if wanted == "before" else _by_sequence
    return [
        *sorted(broken_off, key=_by_sequence, reverse=True),
        *sorted(others, key=key, reverse=True),
    ]


def next_undo_redo(batches: Iterable[Batch]) -> tuple[str, str]:
    """The changes that undo and redo would take; "" for none. Pure."""
    kept = list(batches)
    undo, redo = choices(kept, "before"), choices(kept, "after")
    return undo[0].id if undo else "", redo[0].id if redo else ""


def _is_broken_off(group: Group, wanted: State) -> bool:
    return any(one.underway and one.wanted == wanted and one.sequence for one in group.batches)


def by_number(group: Group) -> int:
    """Which change was made first."""
    return int(group.id)


def _by_sequence(group: Group) -> int:
    return group.sequence


def named(originals: Originals, identifier: str) -> Group:
    """What a batch belongs to."""
    batch = originals.batch(identifier)
    for group in grouped(one for one in originals.batches() if not one.problem):
        if any(one.identifier == identifier for one in group.batches):
            return group
    return Group(batches=(batch,))


_NAMED: Final = 20
"""So many edited files are named in a refusal; the rest is counted."""


class EditedSinceError(RefusedError):
    """Files of a command were edited since, so that putting them back would lose something."""

    def __init__(
        self, message: str, *, paths: Sequence[str] = (), remedy: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy, detail=detail)
        self.paths = tuple(paths)
        """Relative to the store root."""


class KeptChange(Struct, frozen=True, kw_only=True):
    """What a command changed, the side that is wanted, and its files as they are."""

    root: int
    originals: Originals
    group: Group
    links: Mapping[str, tuple[Link, ...]]
    """Each file with its changes, oldest first."""
    wanted: State
    seen: Mapping[str, Seen | None]
    foreign: frozenset[str]
    """Paths at which something else than a file stands."""

    def holds(self, path: str, version: Version | None) -> bool:
        """Whether a file holds a version."""
        there = self.seen.get(path)
        held = there.digest if there else None
        return path not in self.foreign and held == (version.digest if version else None)

    def edited(self) -> list[str]:
        """The files that hold nothing of what they were made to hold, nor what was there before."""
        return sorted(
            path
            for path, links in self.links.items()
            if not any(
                self.holds(path, side)
                for one in links
                for side in (one.entry.before, one.entry.after)
            )
        )

    def replacements(self) -> list[Replacement]:
        """What is to happen to the files that do not hold what is wanted."""
        found = []
        for path, links in self.links.items():
            link = self.goal(links)
            if link is None or self.holds(path, self._side(link.entry)):
                continue
            before, after = self.seen[path], self._side(link.entry)
            now = then = None
            if before is not None:
                read = partial(self._held, path, before.digest)
                now = Content(digest=before.digest, read=read, mode=before.mode)
            if after is not None:
                blob = f"{link.number}.{self.wanted}"
                read = partial(self.originals.blob, link.batch, blob, after.digest)
                then = Content(digest=after.digest, read=read, mode=after.mode)
            found.append(Replacement(path=path, before=now, after=then))
        return found

    def goal(self, links: Sequence[Link]) -> Link | None:
        """The change of a file whose wanted side it is to hold; None where it is to stay."""
        if self.wanted == "before":
            return links[0]
        for link in reversed(links):
            # Without a mode the change never came as far as this file: nothing was taken from it.
            if link.entry.after is None or link.entry.after.mode is not None:
                return link
        return None

    @property
    def command(self) -> str:
        """What a person types to go on with it."""
        return f"filestore {'undo' if self.wanted == 'before' else 'redo'} {self.group.id}"

    def made_by(self, path: str) -> tuple[str, int]:
        """The newest change that made a file what it is, by batch and number."""
        links = self.links[path]
        made = [link for link in links if self.holds(path, link.entry.after)]
        link = made[-1] if made else links[-1]
        return link.batch, link.number

    def _side(self, entry: Entry) -> Version | None:
        return entry.before if self.wanted == "before" else entry.after

    def _held(self, path: str, digest: bytes) -> bytes:
        """What a file held when it was looked at; what was replaced since is kept in a batch."""
        try:
            data, _ = read_below(self.root, path)
            if content_hash(data) != digest:
                raise ChangedMeanwhile(f"{path} was edited meanwhile", paths=[path])
            return data
        except (OSError, ChangedMeanwhile):
            for link in self.links[path]:
                for side, version in (("before", link.entry.before), ("after", link.entry.after)):
                    if version and version.digest == digest:
                        with contextlib.suppress(BatchInvalidError):
                            return self.originals.blob(link.batch, f"{link.number}.{side}", digest)
            raise


def look(root: int, originals: Originals, group: Group, wanted: State) -> KeptChange:
    """Look at the files of a change."""
    seen: dict[str, Seen | None] = {}
    foreign = set()
    links = group.links()
    for path in links:
        try:
            seen[path] = transaction.look(root, path)
        except ChangedMeanwhile:
            foreign.add(path)
    return KeptChange(
        root=root,
        originals=originals,
        group=group,
        links=links,
        wanted=wanted,
        seen=seen,
        foreign=frozenset(foreign),
    )


def edited_since(change: KeptChange, edited: Sequence[str]) -> EditedSinceError:
    """Say which files stand in the way, and what to do about them."""
    group = change.group
    by = {
        path: later.id
        for later in grouped(one for one in change.originals.batches() if not one.problem)
        if by_number(later) > by_number(group) and later.is_all("after")
        for path, links in later.links().items()
        if change.holds(path, links[-1].entry.after)
    }
    lines = [
        f"  {shown_path(path)}" + (f" (by {by[path]})" if path in by else "")
        for path in edited[:_NAMED]
    ]
    if len(edited) > _NAMED:
        lines.append(f"  … and {len(edited) - _NAMED} more")
    word = "undone" if change.wanted == "before" else "redone"
    return EditedSinceError(
        "\n".join([f"{group.id} cannot be {word}, files were edited since:", *lines]),
        paths=edited,
        remedy=_way_out(change, edited, by),
        detail=f"{group.what}: {len(edited)} of {len(change.links)} files were edited since",
    )


def _way_out(change: KeptChange, edited: Sequence[str], by: Mapping[str, str]) -> str:
    """What makes a refusal go away; no command of ours takes a person's edit from a file."""
    if all(path in by for path in edited):
        return f"filestore undo {max(by[path] for path in edited)}"
    first = next(path for path in edited if path not in by)
    link = change.links[first][-1]
    kept, name = link.entry.after, f"{link.number}.after"
    if kept is None or kept.mode is None:
        link = change.links[first][0]
        kept, name = link.entry.before, f"{link.number}.before"
    quoted = shown_path(shlex.quote(first))
    put_back = f"rm {quoted}" if kept is None else f"cp .undo/{link.batch}/{name} {quoted}"
    return (
        "'git diff' shows the edit; save it elsewhere, then in the folder of the store: "
        f"{put_back} && {change.command}"
    )
