"""Commits as a person names them, the files that each has, and the commits that changed a path.

Asks git; touches no work tree. One rule: a tree may come from a stranger, so a name in it that
leads out of its folder is an error, whoever reads it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from filestore.core.errors import FilestoreError
from filestore.core.paths import StorePath, has_plain_names
from filestore.core.safe_text import brief
from filestore.core.schema import JsonObject
from filestore.git import process
from filestore.git.process import Answer

_FORMAT: Final = "--format=%H%x00%ct%x00%an%x00%s"
_FIELDS: Final = 4
REGULAR: Final = ("100644", "100755", "100664")
"""The modes of files; the last one is of old repositories."""
SUBMODULE: Final = "160000"


class NoRevisionError(FilestoreError, LookupError):
    """No commit has that name, or it is not in this clone."""


class UnsafeTreeError(FilestoreError, ValueError):
    """A commit has a file under a name that no checkout would make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(JsonObject):
    """One commit."""

    commit: str
    """Its full name."""
    committed: int
    """When, in seconds since 1970."""
    author: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a commit has under one path."""

    mode: str
    name: str
    """Of its blob; of a submodule the commit."""


def resolve(folder: str, revision: str) -> Commit:
    """The commit that a revision means, such as ``HEAD~3``, a tag, a branch or a hash.

    Raises:
        NoRevisionError: There is none of that name here.
        NoAnswerError: There is no git, or no repository.
    """
    answer = None
    # Git would read a name with a NUL or a line end as something else.
    if revision.strip() and revision.isprintable():
        wanted = f"{revision}^{{commit}}"
        words = ("--verify", "--quiet", "--end-of-options", wanted)
        answer = process.ask(folder, "rev-parse", *words)
    if answer is None or answer.status != 0:
        named = brief(revision)
        if is_shallow(folder):
            raise NoRevisionError(
                f"no commit {named} in this clone, which has only the newest ones",
                remedy="git fetch --unshallow",
            )
        raise NoRevisionError(f"no commit {named} in this repository", remedy="git log --oneline")
    found = log(folder, "--no-walk", answer.output.decode("ascii").strip())
    return next(found)


def is_shallow(folder: str) -> bool:
    """Whether the history of a clone was cut off."""
    answer = process.ask(folder, "rev-parse", "--is-shallow-repository")
    return answer.output.strip() == b"true"


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


def files_at(
    folder: str, commit: str, paths: Sequence[str] = (".",)
) -> Iterator[tuple[StorePath, Entry]]:
    """The files that a commit has in a folder, links and submodules among them.

    Args:
        folder: Of the work tree.
        commit: Its name.
        paths: Relative to the folder: only what lies there.

    Raises:
        UnsafeTreeError: A name leads out of the folder.
        NoAnswerError: Git does not answer.
    """
    answer = process.ask(folder, "ls-tree", "-r", "-z", commit, "--", *paths)
    text = answered(answer).decode("utf-8", "surrogateescape")
    for line in text.split("\0")[:-1]:
        words, _, path = line.partition("\t")
        mode, _, name = words.split(" ")
        if not has_plain_names(path) or _is_of_git(path):
            raise UnsafeTreeError(
                f"{commit[:12]} has a file {brief(path)}: no checkout would make it",
                remedy="git fsck",
            )
        yield StorePath(path), Entry(mode=mode, name=name)


def first_with(folder: str, paths: Iterable[str]) -> Commit | None:
    """The oldest commit of HEAD that had something under some paths; None where none did."""
    return next(log(folder, "--reverse", "HEAD", "--", *paths), None)


def answered(answer: Answer) -> bytes:
    """What git said.

    Raises:
        NoAnswerError: It did not do what it was asked.
    """
    if answer.status != 0:
        raise process.NoAnswerError(
            f"git: {brief(answer.said) or answer.status}", remedy="git fsck"
        )
    return answer.output


def _is_of_git(path: str) -> bool:
    return any(part.lower() == ".git" for part in path.split("/"))
