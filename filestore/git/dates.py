"""When files were first and last committed, by one pass of git's log. Asks git, changes nothing.

One rule: a repository is a stranger's. Paths are read between NULs, a stamp that is in no calendar
is none, and what takes git too long is an error, not a date.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from filestore.git import process

_REF: Final = re.compile(rb"ref: (refs/[^\x00-\x20\x7f]+)")
_NAME: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_REFS: Final = 64 << 20
_LAST_S: Final = 253_402_300_799
"""The end of the year 9999."""
_LOG: Final = (
    *("log", "-z", "--topo-order", "--reverse", "--format=%x01%ct", "--name-status", "-M", "-l400"),
    *("--diff-merges=combined", "--no-ext-diff", "--no-show-signature", "--no-mailmap"),
)
_DIFF: Final = (
    *("diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"),
    "--ignore-submodules=all",
)


class Change(Struct, frozen=True):
    """What a commit did to one file."""

    path: bytes
    """Relative to the top of the work tree."""
    at_s: int
    """When it was committed, in seconds since 1970."""
    before: bytes = b""
    """What it was called before, where the commit renamed it."""
    is_gone: bool = False


def head(folder: str) -> str:
    """The name of the commit that HEAD of the work tree around a folder is; "" for none.

    Read without starting git, unless it is where only git finds it.
    """
    tree = process.work_tree(folder)
    state = None if tree is None else process.state_folder(tree)
    if state is None:
        return ""
    held = process.read_start(os.path.join(state, "HEAD"), process.POINTER_BYTES).strip()
    if (named := _REF.fullmatch(held)) is not None and b".." not in held:
        common = process.common_folder(state)
        place = os.path.join(common, os.fsdecode(named[1]))
        held = process.read_start(place, process.POINTER_BYTES).strip()
        if not held:
            packed = process.read_start(os.path.join(common, "packed-refs"), _MOST_REFS)
            line = re.search(rb"(?m)^([0-9a-f]{40,64}) %s$" % re.escape(named[1]), packed)
            held = line[1] if line else b""
            if line is None and not os.path.isdir(os.path.join(common, "reftable")):
                return ""
    if _NAME.fullmatch(held) is None:
        try:
            answer = process.ask(folder, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        except (process.NoAnswerError, OSError):
            return ""
        held = answer.output.strip()
    return held.decode() if _NAME.fullmatch(held) else ""


def is_ancestor(folder: str, old: str, new: str) -> bool:
    """Whether a commit is another one, or before it.

    Raises:
        NoAnswerError: Git does not answer.
    """
    return process.ask(folder, "merge-base", "--is-ancestor", old, new).status == 0


def is_later(folder: str, old: str, new: str) -> bool:
    """Whether a commit comes after another one, as far as git says so."""
    if not (old and new) or old == new or (tree := process.work_tree(folder)) is None:
        return False
    with contextlib.suppress(process.NoAnswerError, OSError):
        return is_ancestor(tree, old, new)
    return False


def changes(folder: str, below: Sequence[str], new: str, old: str = "") -> Iterator[Change]:
    """What the commits up to one did to files, the oldest first.

    Args:
        folder: The top of the work tree.
        below: Files and folders that are looked at, relative to it; "." for all.
        new: The name of the last commit.
        old: The commit after which they begin; "" for the first one.

    Raises:
        NoAnswerError: Git does not answer, takes too long, or its objects are not all here.
    """
    wanted = f"{old}..{new}" if old else new
    fields = iter(_answered(folder, *_LOG, wanted, "--", *below).split(b"\0"))
    at_s = 0
    for word in fields:
        if word.startswith(b"\x01"):
            at_s = _stamp(word[1:])
        elif kind := word.strip(b"\n"):
            # Of a merge there is one letter for each parent, and one path.
            before = next(fields, b"") if kind[:1] == b"R" and kind[1:].isdigit() else b""
            path = next(fields, b"")
            if path:
                yield Change(path, at_s, before=before, is_gone=not kind.strip(b"D"))


def edited(folder: str, below: Sequence[str], commit: str) -> list[bytes]:
    """The files that git tracks and that differ from a commit; see `changes`."""
    return _answered(folder, *_DIFF, commit, "--", *below).split(b"\0")[:-1]


def _stamp(written: bytes) -> int:
    """A time since 1970; 0 for one that no clock shows."""
    if len(written) > 12 or not written.isdigit():
        return 0
    return min(int(written), _LAST_S)


def _answered(folder: str, *words: str) -> bytes:
    answer = process.ask(folder, *words)
    if answer.status != 0:
        line = answer.message.partition("\n")[0]
        raise process.NoAnswerError(f"git: {line or answer.status}", remedy="git fsck")
    return answer.output
