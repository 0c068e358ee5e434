"""Commits as a person names them, the files that each has, and the commits that changed a path.

Asks git; touches no work tree. One rule: a tree may come from a stranger, so a name in it that
leads out of its folder is an error for every reader.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.paths import SETTINGS, StorePath
from filestore.core.safe_text import brief
from filestore.git import process
from filestore.git.process import GitAnswer

_FORMAT: Final = "--format=%H%x00%ct%x00%an%x00%s"
_FIELDS: Final = 4
_REGULAR: Final = ("100644", "100755", "100664")
"""The modes of files; the last one is of old repositories."""
_SUBMODULE: Final = "160000"
_MOST_NAMED: Final = 500
_WORK_TREE: Final = ("diff-index", "--ignore-submodules=all")
"""Compares with the work tree. Each submodule would be looked at by a git of its own, which takes
the settings of that repository, and these may name programs."""
_NO_NAMES: Final = ("", ".", "..", ".git")
_SIGNS: Final = [f"{start}{name}{end}" for name in _NO_NAMES for start in "\t/" for end in "/\0"]
"""Where none of these is in a list of files, no path has a part that no checkout makes."""


class NoRevisionError(FilestoreError, LookupError):
    """No commit has that name, or it is not in this clone."""


class UnsafeTreeError(FilestoreError, ValueError):
    """A commit has a file under a name that no checkout would make."""


class Commit(Struct, frozen=True, kw_only=True):
    """One commit."""

    commit: str
    """Its full name; None for today's files."""
    committed: int
    """When, in seconds since 1970."""
    author: str
    """Who wrote it."""
    subject: str
    """The first line of its message."""


class FilesAt(Struct, frozen=True, kw_only=True):
    """What a commit has in a folder; symbolic links are left out."""

    files: dict[str, str] = field(default_factory=dict)
    """Relative path to the name of its blob."""
    submodules: dict[str, str] = field(default_factory=dict)
    """Relative path to the name of the commit."""


def resolve(folder: str, revision: str) -> Commit:
    """The commit that a revision means, such as ``HEAD~3``, a tag, a branch or a hash.

    Raises:
        NoRevisionError: There is none of that name here.
        NoAnswerError: There is no git, or no repository, or the commit is lost.
    """
    found, name = "", ""
    # Git would read a name with a NUL or a line end as something else.
    if revision.strip() and revision.isprintable():
        found = _parsed(folder, revision)
    if found:
        # A name may end in a text that is searched for, so the object alone is named.
        name = _parsed(folder, f"{found}^{{commit}}")
    if not name:
        named = brief(revision)
        if is_shallow(folder):
            raise NoRevisionError(
                f"no commit {named} in this clone, which has only the newest ones",
                remedy="git fetch --unshallow",
            )
        if found not in ("", revision) and process.ask(folder, "cat-file", "-t", found).status != 0:
            raise process.NoAnswerError(f"git cannot read what {named} names", remedy="git fsck")
        if not _parsed(folder, "HEAD"):
            raise NoRevisionError("nothing is committed yet", remedy="git commit")
        raise NoRevisionError(f"no commit {named} in this repository", remedy="git log --oneline")
    return next(log(folder, "--no-walk", name))


def _parsed(folder: str, name: str) -> str:
    """The object that a name means; "" for none.

    Raises:
        NoRevisionError: It means several.
    """
    answer = process.ask(folder, "rev-parse", "--verify", "--end-of-options", name)
    if answer.status == 0 and "is ambiguous" in answer.message:
        raise NoRevisionError(
            f"{brief(name)} is the name of several things",
            remedy="name it whole, as refs/heads/NAME or refs/tags/NAME",
        )
    return answer.output.decode("ascii").strip() if answer.status == 0 else ""


def is_shallow(folder: str) -> bool:
    """Whether the history of a clone was cut off."""
    answer = process.ask(folder, "rev-parse", "--is-shallow-repository")
    return answer.output.strip() == b"true"


def is_partial(folder: str) -> bool:
    """Whether a clone left out blobs, to be fetched when they are asked for."""
    answer = process.ask(folder, "rev-parse", "--git-path", "objects/pack")
    packs = os.path.join(folder, os.fsdecode(answer.output.rstrip(b"\n")))
    try:
        return any(name.endswith(".promisor") for name in os.listdir(packs))
    except OSError:
        return False


def log(folder: str, *words: str) -> Iterator[Commit]:
    """The commits that `git rev-list` names with some words, in its order.

    Raises:
        NoAnswerError: Git does not answer: its objects are not all here.
    """
    answer = process.ask(folder, "rev-list", _FORMAT, *words)
    for line in answered(answer).decode("utf-8", "replace").split("\n"):
        fields = line.split("\0")
        # A line of its own before each says its name once more.
        if len(fields) == _FIELDS:
            commit, seconds, author, subject = fields
            yield Commit(commit=commit, committed=int(seconds), author=author, subject=subject)


def files_at(folder: str, commit: str, below: str = "") -> FilesAt | None:
    """The files that a commit has in a folder, at any depth; None where there is no such folder.

    Args:
        folder: Of the work tree.
        commit: Its name.
        below: A folder in it, to look at instead.

    Raises:
        UnsafeTreeError: A name leads out of the folder.
        NoAnswerError: Git does not answer.
    """
    tree = _parsed(folder, f"{commit}:./{below}")
    if not tree:
        return None
    answer = process.ask(folder, "ls-tree", "-r", "-z", "--full-tree", tree)
    text = answered(answer).decode("utf-8", "surrogateescape")
    lowered = text.lower()
    is_odd = any(sign in lowered for sign in _SIGNS)
    found = FilesAt()
    for line in text.split("\0")[:-1]:
        words, _, path = line.partition("\t")
        if is_odd and not set(path.lower().split("/")).isdisjoint(_NO_NAMES):
            raise UnsafeTreeError(
                f"{commit[:12]} has a file {brief(path)}: no checkout would make it",
                remedy="git fsck",
            )
        mode, _, name = words.split(" ")
        if mode in _REGULAR:
            found.files[path] = name
        elif mode == _SUBMODULE:
            found.submodules[path] = name
    return found


def stores_at(folder: str, commit: str) -> list[str]:
    """The folders of a commit that have the settings of a store, from the top of the work tree."""
    words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    names = os.fsdecode(answered(process.ask(folder, *words))).split("\0")
    return [os.path.dirname(name) or "." for name in names if os.path.basename(name) == SETTINGS]


def blob_at(folder: str, name: str) -> str | None:
    """The name of a blob that is known as ``commit:path``; None where there is none."""
    return _parsed(folder, name) or None


def renames(folder: str, before: str, after: str | None) -> dict[StorePath, StorePath]:
    """What git recognises as renamed between two commits: the new path to the old one.

    Each step between the two is looked at, and then both: a file may change little at a time, and
    be another in the end.

    Args:
        folder: Of the work tree; what lies elsewhere is left out.
        before: A commit.
        after: A later one; None for the files of the work tree that git tracks.

    Raises:
        NoAnswerError: Git does not answer.
    """
    range_ = f"{before}..{after or 'HEAD'}"
    steps = answered(process.ask(folder, "rev-list", "--first-parent", "--parents", range_))
    # Of a merge only the branch that it was made on.
    pairs = (line.split()[:2] for line in reversed(steps.splitlines()))
    given = b"".join(b" ".join(pair) + b"\n" for pair in pairs)
    words = ("-r", "-M", "--diff-filter=R", "--raw", "-z", "--relative")
    each = process.ask(folder, "diff-tree", "--stdin", "--no-commit-id", *words, given=given)
    found: dict[StorePath, StorePath] = {}
    for new, old in _renamed(each):
        found[new] = found.pop(old, old)
    if after is None:
        whole = process.ask(folder, *_WORK_TREE, *words, before, "--", ".")
    else:
        whole = process.ask(folder, "diff-tree", *words, before, after, "--", ".")
    return found | dict(_renamed(whole))


def _renamed(answer: GitAnswer) -> Iterator[tuple[StorePath, StorePath]]:
    fields = iter(answered(answer).decode("utf-8", "surrogateescape").split("\0")[:-1])
    for _, old, new in zip(fields, fields, fields, strict=False):
        yield StorePath(new), StorePath(old)


def changed_since(folder: str, commit: str, paths: Sequence[str]) -> set[str]:
    """Which of some files of the work tree differ from a commit, by the stats that git knows.

    Args:
        folder: Of the work tree.
        commit: Its name.
        paths: Relative to the folder.

    Raises:
        NoAnswerError: Git does not answer.
    """
    named = paths if len(paths) <= _MOST_NAMED else (".",)
    words = ("--name-only", "-z", "--relative", commit, "--", *named)
    text = answered(process.ask(folder, *_WORK_TREE, *words))
    return set(text.decode("utf-8", "surrogateescape").split("\0")[:-1])


def first_with(folder: str, paths: Iterable[str]) -> Commit | None:
    """The oldest commit of HEAD that had something under some paths; None where none did."""
    return next(log(folder, "--reverse", "HEAD", "--", *paths), None)


def answered(answer: GitAnswer) -> bytes:
    """The output of an answer.

    Raises:
        NoAnswerError: It did not do what it was asked.
    """
    if answer.status != 0:
        raise process.NoAnswerError(
            f"git: {brief(answer.message) or answer.status}", remedy="git fsck"
        )
    return answer.output
