"""What is staged for the next commit, checked as `verify` checks what is on disk. Changes nothing.

Reads git's index and no file of the work tree: what is committed is what was staged, whatever an
editor wrote since. One rule: a blob is looked at by the very functions that look at a file.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Final, Self

from filestore import drift, observe, worktree
from filestore.errors import FilestoreError
from filestore.findings import CODES, Finding, worst_first
from filestore.observation import INDEXED, RECORD, UNMERGED, Observation
from filestore.places import Places
from filestore.portable_names import why_unportable
from filestore.settings import Layout

_DIFF: Final = ("diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff")
_PIECE: Final = 1 << 20


class NotInGitError(FilestoreError):
    """Git is needed and is not here, or knows nothing of this folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The result of one check of the index."""

    files: int
    """How many staged files of the store were looked at."""
    findings: tuple[Finding, ...]
    """Worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: str
    """Below `chunked/`."""
    mode: int
    blob: str
    merged: bool


def check(places: Places, layout: Layout) -> Staged:
    """Look at every chunk file and record that the next commit would add or change.

    Git's variable for another index, as it sets it for a hook, is honoured.

    Raises:
        NotInGitError: There is no git, or no work tree around the store.
    """
    tree = worktree.git_work_tree(places.root)
    if tree is None:
        raise NotInGitError(
            f"{places.root} lies in no git work tree", remedy="'git init', or plain 'verify'"
        )
    index = _Index(tree, os.path.relpath(places.chunked, tree))
    entries = index.staged()
    if not entries:
        return Staged(files=0, findings=())
    found = [*_content_findings(index, entries, layout)]
    paths = [entry.path for entry in entries]
    found += [*collisions(paths, index.paths()), *unportable(paths)]
    return Staged(files=len(entries), findings=tuple(worst_first(found)))


def collisions(staged: Iterable[str], every: Iterable[str]) -> Iterator[Finding]:
    """Staged paths that some file systems cannot tell from another path of the index; pure."""
    by_folded: dict[str, set[str]] = {}
    for path in every:
        by_folded.setdefault(drift.folded_path(path), set()).add(path)
    for path in staged:
        others = by_folded.get(drift.folded_path(path), set()) - {path}
        if others:
            detail = f"differs from {drift.root_path(min(others))} only by case or composition"
            yield Finding(code="name-collision", path=drift.root_path(path), detail=detail)


def unportable(staged: Iterable[str]) -> Iterator[Finding]:
    """Staged names, also of folders, that some file system cannot hold; pure."""
    told: set[str] = set()
    for path in staged:
        if not path.endswith((".md", ".json")):
            continue
        parts = path.split("/")
        for depth, name in enumerate(parts, 1):
            named = "/".join(parts[:depth])
            reason = why_unportable(name)
            if reason and named not in told:
                told.add(named)
                detail = reason if named == path else f"the folder's name: {reason}"
                yield Finding(code="unportable-name", path=drift.root_path(named), detail=detail)


def _content_findings(
    index: "_Index", entries: Sequence[_Entry], layout: Layout
) -> Iterator[Finding]:
    with index.blobs() as blobs:
        for entry in entries:
            path = drift.root_path(entry.path)
            if not entry.merged:
                yield Finding(code="conflict-markers", path=path, detail=UNMERGED)
                continue
            seen = _observed(entry, blobs, layout)
            if seen.state not in (INDEXED, RECORD):
                detail = seen.detail or CODES[seen.state].repair
                yield Finding(code=seen.state, path=path, detail=detail)


def _observed(entry: _Entry, blobs: "_Blobs", layout: Layout) -> Observation:
    name = entry.path.rpartition("/")[2]
    # Git has no blob for a submodule, and none that is too large is wanted in memory.
    is_link = observe.unread_code(name, entry.mode, 0, layout) != ""
    size, data = (0, b"") if is_link else blobs.read(entry.blob, observe.MAX_CHUNK_BYTES)
    values = (size, 0, 0, 0, entry.mode)
    code = observe.unread_code(name, entry.mode, size, layout)
    seen = Observation(path=entry.path, values=values, state=code or INDEXED, data=data)
    if code:
        seen.detail = observe.describe_unread(code, name, entry.mode, size)
    else:
        observe.interpret(seen, name, layout=layout)
    return seen


class _Index:
    """Git's index, or the one that git's variable names, below one folder."""

    def __init__(self, tree: str, folder: str) -> None:
        self._tree = tree
        self._folder = folder.replace(os.sep, "/")
        self._environment = worktree.quiet_environment()
        index = os.environ.get("GIT_INDEX_FILE")
        if index:
            self._environment["GIT_INDEX_FILE"] = os.path.abspath(index)

    def staged(self) -> list[_Entry]:
        """What the next commit adds or changes, and what is unmerged."""
        fields = self._names(*_DIFF, "--diff-filter=ACMRTU")
        found = []
        for head, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, status = head.lstrip(":").split(" ")
            below = self._below(path)
            merged = not status.startswith("U")
            found.append(_Entry(path=below, mode=int(mode, 8), blob=blob, merged=merged))
        return found

    def paths(self) -> list[str]:
        """Every path of the index."""
        return [self._below(path) for path in self._names("ls-files", "-z", "--cached")]

    def blobs(self) -> "_Blobs":
        """Hand out blobs, one after another."""
        return _Blobs(self._command("cat-file", "--batch"), self._environment)

    def _below(self, path: str) -> str:
        return path.removeprefix(self._folder).removeprefix("/")

    def _command(self, *words: str) -> list[str]:
        return ["git", "-C", self._tree, "-c", "core.fsmonitor=false", *words]

    def _names(self, *words: str) -> list[str]:
        """What a git command prints for the folder, between its NULs."""
        command = [*self._command(*words), "--", self._folder]
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise NotInGitError(f"git cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "surrogateescape").strip()
            raise NotInGitError(f"git cannot tell what is staged: {said}")
        return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


class _Blobs:
    """A git process that hands out blobs by name."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def read(self, name: str, limit: int) -> tuple[int, bytes]:
        """The size of a blob and its bytes; none where it is larger than a limit.

        Raises:
            NotInGitError: Git does not have it.
        """
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(name.encode() + b"\n")
        asked.flush()
        words = answers.readline().split()
        if len(words) != 3:
            raise NotInGitError(f"git has no blob {name}", remedy="git fsck")
        size = int(words[2])
        data = answers.read(size) if size <= limit else _pass_over(answers, size)
        answers.read(1)
        return size, data


def _pass_over(stream: IO[bytes], size: int) -> bytes:
    while size > 0:
        size -= len(stream.read(min(size, _PIECE))) or size
    return b""
