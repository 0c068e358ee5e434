"""What is staged for the next commit, checked as `verify` checks what is on disk. Changes nothing.

Reads git's index and no file of the work tree: what is committed is what was staged, whatever an
editor wrote since. One rule: a blob is looked at by the very functions that look at a file.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from filestore import extract
from filestore.chunks import observe
from filestore.chunks.layout import Layout
from filestore.chunks.observation import INDEXED, RECORD, UNMERGED, Observation, why_excluded
from filestore.config.layout import Places, folded_path
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding, as_told, is_clean, worst_first
from filestore.core.paths import ChunkPath, Tree, is_made
from filestore.core.schema import make
from filestore.git import repository
from filestore.git.process import Answer, Blobs, NoAnswerError, ask
from filestore.verify.names import is_ours, why_unportable

_NOT_CHECKED: Final = ("files that are not staged", "catalog", "vectors")
_DIFF: Final = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames")


class NotInGitError(FilestoreError):
    """Git is needed and is not here, or knows nothing of this folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The result of one check of the index."""

    files: int
    """How many staged files of the store were looked at."""
    findings: tuple[Finding, ...]
    """Worst first."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found beyond notes and accepted warnings."""
        return is_clean(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The values that `--json` prints; see JSON.md, Checked."""
        said = {"checked": [f"staged files: {self.files}"], "not_checked": _NOT_CHECKED}
        own = {"clean": self.clean, "level": "staged", "findings": self.findings}
        return make("Checked", own | said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: ChunkPath
    mode: int
    blob: str
    merged: bool


def check(places: Places, layout: Layout) -> Staged:
    """Look at every chunk file and record that the next commit would add or change.

    Git's variable for another index, as it sets it for a hook, is honoured.

    Raises:
        NotInGitError: There is no git, or no work tree around the store.
        NoAnswerError: Git does not have what its index names.
    """
    work_tree = repository.git_work_tree(places.root)
    if work_tree is None:
        raise NotInGitError(
            f"{places.root} lies in no git work tree", remedy="'git init', or plain 'verify'"
        )
    index = _Index(work_tree, os.path.relpath(places.chunked, work_tree))
    tree = places.tree
    entries = [one for one in index.staged() if _is_of_tree(tree, one.path)]
    if not entries:
        return Staged(files=0, findings=())
    found = [*_content_findings(places.tree, index, entries, layout)]
    paths = [entry.path for entry in entries]
    found += collisions(places.tree, paths, index.paths())
    found += unportable(places.tree, paths)
    return Staged(files=len(entries), findings=as_told(worst_first(found), tree))


def _is_of_tree(tree: Tree, path: ChunkPath) -> bool:
    """Whether a staged path is one that a walk may find; ignore rules are not asked."""
    if tree.folder or is_made(path):
        return True
    if any(part.startswith(".") for part in path.split("/")):
        return False
    return tree.holds(path) and extract.for_name(path.rpartition("/")[2]) is not None


def collisions(
    tree: Tree, staged: Iterable[ChunkPath], every: Iterable[ChunkPath]
) -> Iterator[Finding]:
    """Staged paths that some file systems cannot tell from another path of the index; pure."""
    by_folded: dict[str, set[ChunkPath]] = {}
    for path in every:
        by_folded.setdefault(folded_path(path), set()).add(path)
    for path in staged:
        others = by_folded.get(folded_path(path), set()) - {path}
        if others:
            detail = f"differs from {tree.store_path(min(others))} only by case or composition"
            yield Finding(code="name-collision", path=tree.store_path(path), detail=detail)


def unportable(tree: Tree, staged: Iterable[ChunkPath]) -> Iterator[Finding]:
    """Staged names, also of folders, that some file system cannot hold; pure."""
    reported: set[str] = set()
    for path in staged:
        parts = path.split("/")
        if not is_ours(tree, parts[-1]):
            continue
        for depth, name in enumerate(parts, 1):
            named = ChunkPath("/".join(parts[:depth]))
            reason = why_unportable(name)
            if reason and named not in reported:
                reported.add(named)
                detail = reason if named == path else f"the folder's name: {reason}"
                yield Finding(code="unportable-name", path=tree.store_path(named), detail=detail)


def _content_findings(
    tree: Tree, index: "_Index", entries: Sequence[_Entry], layout: Layout
) -> Iterator[Finding]:
    with index.blobs() as blobs:
        for entry in entries:
            path = tree.store_path(entry.path)
            if not entry.merged:
                detail = why_excluded("conflict-markers", UNMERGED)
                yield Finding(code="conflict-markers", path=path, detail=detail)
                continue
            seen = _observed(entry, blobs, layout)
            if seen.state not in (INDEXED, RECORD):
                detail = why_excluded(seen.state, seen.detail)
                yield Finding(code=seen.state, path=path, detail=detail)


def _observed(entry: _Entry, blobs: Blobs, layout: Layout) -> Observation:
    name = entry.path.rpartition("/")[2]
    layout = layout.of(entry.path)
    # Git has no blob for a submodule, and none that is too large is wanted in memory.
    is_link = layout.unread_code(name, entry.mode, 0) != ""
    size, data = (0, b"") if is_link else blobs.read(entry.blob, layout.most_bytes)
    values = (size, 0, 0, 0, entry.mode)
    code = layout.unread_code(name, entry.mode, size)
    seen = Observation(path=entry.path, values=values, state=code or INDEXED, data=data)
    if code:
        most = layout.most_bytes
        seen.detail = observe.describe_unread(code, name, entry.mode, size, most_bytes=most)
    else:
        layout.interpret(seen, name)
    return seen


class _Index:
    """Git's index, or the one that git's variable names, below one folder."""

    def __init__(self, tree: str, folder: str) -> None:
        self._tree = tree
        self._folder = folder.replace(os.sep, "/")
        index = os.environ.get("GIT_INDEX_FILE")
        self._index = os.path.abspath(index) if index else ""

    def staged(self) -> list[_Entry]:
        """What the next commit adds or changes, and what is unmerged."""
        fields = self._names(*_DIFF, "--diff-filter=ACMRTU", self._last())
        found = []
        for head, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, status = head.lstrip(":").split(" ")
            below = self._inside(path)
            merged = not status.startswith("U")
            found.append(_Entry(path=below, mode=int(mode, 8), blob=blob, merged=merged))
        return found

    def paths(self) -> list[ChunkPath]:
        """Every path of the index."""
        return [self._inside(path) for path in self._names("ls-files", "-z", "--cached")]

    def blobs(self) -> Blobs:
        """Hand out blobs, one after another."""
        return Blobs(self._tree)

    def _inside(self, path: str) -> ChunkPath:
        if self._folder == ".":
            return ChunkPath(path)
        return ChunkPath(path.removeprefix(self._folder).removeprefix("/"))

    def _names(self, *words: str) -> list[str]:
        """What a git command prints for the folder, between its NULs."""
        answer = self._ask(*words, "--", self._folder)
        if answer.status != 0:
            raise NotInGitError(f"git cannot tell what is staged: {answer.said}")
        return answer.output.decode("utf-8", "surrogateescape").split("\0")[:-1]

    def _ask(self, *words: str) -> Answer:
        try:
            return ask(self._tree, *words, index=self._index)
        except NoAnswerError as error:
            raise NotInGitError(error.message, remedy=error.remedy) from error

    def _last(self) -> str:
        """The commit that the next one follows, or the empty tree."""
        if self._ask("rev-parse", "--verify", "--quiet", "HEAD").status == 0:
            return "HEAD"
        return self._ask("hash-object", "-t", "tree", os.devnull).output.decode().strip()
