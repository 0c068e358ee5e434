"""What goes on around a store and passes: another writer, one that died, git at work.

Changes nothing.
"""

import os
from collections.abc import Iterator

from filestore import locking, originals, replacing, worktree
from filestore.batches import Group, Version
from filestore.fileio import WriteFailedError
from filestore.findings import Finding
from filestore.places import Places


def findings(places: Places) -> list[Finding]:
    """What is under way while the store is looked at."""
    locked = _locked(places)
    # A living writer is in the middle of something, too.
    dead = [] if locked else [*_broken_off(places)]
    return [*locked, *dead, *_git_operation(places)]


def _locked(places: Places) -> list[Finding]:
    if not locking.held(places.lock):
        return []
    detail = f"held by {locking.holder(places.lock)}"
    return [Finding(code="locked", path=".sidecar/lock", detail=detail)]


def _broken_off(places: Places) -> Iterator[Finding]:
    """Changes of truth files whose writer died half-way; not those that came to their end."""
    for group in originals.broken_off(places.undo):
        if not _is_half(places.root, group):
            continue
        command = f"filestore undo {group.identifier}"
        if group.sequence:
            wanted = next(one.wanted for one in group.batches if one.sequence == group.sequence)
            word = "undo" if wanted == "before" else "redo"
            way_out = f"its {word} was broken off: 'filestore {word} {group.identifier}' goes on"
        else:
            way_out = f"it was broken off: '{command}' takes it back, or run it again"
        yield Finding(
            code="leftovers", path=f".undo/{group.identifier}", detail=f"{group.what}: {way_out}"
        )


def _is_half(root: str, group: Group) -> bool:
    """Whether files of a change are neither all as before nor all as after it."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        held = {path: _digest(handle, path) for path in group.links()}
    finally:
        os.close(handle)
    sides = (
        {path: links[0].entry.before for path, links in group.links().items()},
        {path: links[-1].entry.after for path, links in group.links().items()},
    )
    return not any(
        all(held[path] == _digest_of(version) for path, version in side.items()) for side in sides
    )


def _digest(root: int, path: str) -> bytes | None:
    try:
        seen = replacing.look(root, path)
    except (replacing.ChangedMeanwhile, WriteFailedError):
        return b""
    return seen.digest if seen else None


def _digest_of(version: Version | None) -> bytes | None:
    return version.digest if version else None


def _git_operation(places: Places) -> list[Finding]:
    word = worktree.operation(places.root)
    tree = worktree.git_work_tree(places.root)
    if not word or tree is None:
        return []
    path = os.path.relpath(os.path.join(tree, ".git"), places.root)
    return [Finding(code="git-operation", path=path, detail=f"a git {word} is under way")]
