"""What is staged for the next commit, checked as `verify` checks what is on disk. Changes nothing.

Reads git's index and no file of the work tree: what is committed is what was staged, whatever an
editor wrote since. One rule: a blob is looked at by the very functions that look at a file, and
ignore rules of the index say what is left out. Links and submodules are no files, so they pass.
"""

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.chunks.layout import Layout, describe_unread
from filestore.chunks.observation import INDEXED, RECORD, UNMERGED, Observation, why_excluded
from filestore.config import settings
from filestore.config.layout import MAX_SOURCE_BYTES, SETTINGS, Places, folded_path
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding, is_clean, with_tree, worst_first
from filestore.core.paths import TOP, ChunkPath, Tree, around, folder_of, has_plain_names
from filestore.extract.ignore_files import GIT, GIT_RULES, OWN_RULES
from filestore.extract.tree_rules import MARKS, documents_of
from filestore.fs import disk
from filestore.git import process, repository
from filestore.git.process import Blobs, GitAnswer, NoAnswerError, ask
from filestore.verify.names import is_ours, why_unportable
from filestore.verify.run import Checked

_NOT_CHECKED: Final = ("files that are not staged", "catalog", "vectors")
_DIFF: Final = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames")
_IN_COMMIT: Final = ("--diff-filter=ACMRTU", "--ita-invisible-in-index")
"""What a commit takes: not what was deleted, or `git add -N` only announced."""


class NotInGitError(FilestoreError):
    """Git is needed and is not here, or knows nothing of this folder."""


class Staged(Struct, frozen=True, kw_only=True):
    """The result of one check of the index."""

    files: int
    """How many staged files of the store were looked at."""
    findings: tuple[Finding, ...]
    """Worst first."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found beyond notes and accepted warnings."""
        return is_clean(self.findings)

    @property
    def stops_commit(self) -> bool:
        """Whether it is more than what a person may want to know, and commit as it is."""
        found = [one for one in self.findings if not is_clean([one])]
        return any(one.severity == "E" or one.meaning.stops_commit for one in found)

    def to_dict(self) -> dict[str, Any]:
        """The values that `--json` prints; see JSON.md, Checked."""
        return Checked(
            level="staged",
            findings=self.findings,
            checked=(f"staged files: {self.files}",),
            not_checked=_NOT_CHECKED,
        ).to_dict()


class _StagedFile(Struct, frozen=True, kw_only=True):
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
        SettingsError: The settings that the commit would change cannot be used.
    """
    work_tree = process.work_tree(places.root)
    if work_tree is None:
        raise NotInGitError(
            f"{places.root} lies in no git work tree", remedy="'git init', or plain 'verify'"
        )
    path = os.path.join(os.path.relpath(places.root, work_tree), SETTINGS)
    index = _Index(work_tree, os.path.normpath(path))
    for entry in index.staged():
        if entry.merged:
            # What no clone could use is refused, whatever the settings on disk are.
            with index.blobs() as blobs:
                data = blobs.read(entry.blob, settings.MAX_BYTES)[1]
            settings.parse(data, name=f"the staged {SETTINGS}")
    index = _Index(work_tree, os.path.relpath(places.chunked, work_tree))
    tree = places.tree
    entries = index.staged()
    if entries and places.rules is not None:
        entries = index.walked(places, entries)
    if not entries:
        return Staged(files=0, findings=())
    found = [*_content_findings(tree, index, entries, layout)]
    paths = [entry.path for entry in entries]
    found += collisions(tree, paths, index.paths())
    found += unportable(tree, paths)
    return Staged(files=len(entries), findings=with_tree(worst_first(found), tree))


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
    tree: Tree, index: "_Index", entries: Sequence[_StagedFile], layout: Layout
) -> Iterator[Finding]:
    with index.blobs() as blobs:
        for entry in entries:
            path = tree.store_path(entry.path)
            if not entry.merged:
                detail = why_excluded("conflict-markers", UNMERGED)
                yield Finding(code="conflict-markers", path=path, detail=detail)
                continue
            name, own = entry.path.rpartition("/")[2], layout.of(entry.path)
            is_unread = own.unread_code(name, entry.mode, 0) != ""
            size, data = (0, b"") if is_unread else blobs.read(entry.blob, own.most_bytes)
            code = own.unread_code(name, entry.mode, size)
            values = (size, 0, 0, 0, entry.mode)
            seen = Observation(path=entry.path, values=values, state=code or INDEXED, data=data)
            if code:
                most = own.most_bytes
                seen.detail = describe_unread(code, name, entry.mode, size, most_bytes=most)
            else:
                own.interpret(seen, name)
            if seen.state not in (INDEXED, RECORD):
                detail = why_excluded(seen.state, seen.detail)
                yield Finding(code=seen.state, path=path, detail=detail)


class _Index:
    """Git's index, or the one that git's variable names, below one folder."""

    def __init__(self, tree: str, folder: str) -> None:
        self._tree = tree
        self._folder = folder.replace(os.sep, "/")
        index = os.environ.get("GIT_INDEX_FILE")
        self._index = os.path.abspath(index) if index else ""

    def staged(self) -> list[_StagedFile]:
        """The files that the next commit adds or changes, and what is unmerged."""
        # Against the commit that the next one follows, or the empty tree.
        before = "HEAD"
        if self._ask("rev-parse", "--verify", "--quiet", before).status != 0:
            answer = self._ask("hash-object", "-t", "tree", os.devnull)
            before = answer.output.decode().strip()
        fields = self._names(*_DIFF, *_IN_COMMIT, before)
        found = []
        for head, path in zip(fields[::2], fields[1::2], strict=True):
            old, mode, _, blob, status = head.lstrip(":").split(" ")
            merged = not status.startswith("U")
            kind = int(mode if merged else old, 8)
            if stat.S_ISREG(kind) or not kind:
                below = self._inside(path)
                found.append(_StagedFile(path=below, mode=kind, blob=blob, merged=merged))
        return found

    def paths(self) -> list[ChunkPath]:
        """Every path of the index."""
        start = "" if self._folder == "." else f"{self._folder}/"
        return [self._inside(path) for path in self._files if path.startswith(start)]

    @cached_property
    def _around(self) -> list[str]:
        """Where rules may be above the folder, from the top of the work tree."""
        parts = [] if self._folder == "." else self._folder.split("/")
        above = ["".join(f"{part}/" for part in parts[:depth]) for depth in range(len(parts))]
        return [f"{folder}{name}" for folder in above for name in (OWN_RULES, GIT_RULES)]

    @cached_property
    def _files(self) -> dict[str, str]:
        """What the index has in the folder, and rules above it: path to blob, "" for no file."""
        fields = self._names("ls-files", "-z", "--stage", more=self._around)
        heads = (field.partition("\t") for field in fields)
        return {
            path: head.split(" ")[1] if head.startswith("100") else "" for head, _, path in heads
        }

    def walked(self, places: Places, entries: Sequence[_StagedFile]) -> list[_StagedFile]:
        """Those of some entries that a walk of a checkout would find in documents in place.

        Raises:
            TreeRulesError: Ignore rules cannot be followed.
        """
        folders = {TOP, *(folder for one in entries for folder in around(one.path))}
        # An index may come from a stranger, with names that no checkout would make.
        marks = (path for path in self.paths() if path.rpartition("/")[2] in MARKS)
        files: dict[str, str] = dict.fromkeys((one.path for one in entries), "")
        files |= dict.fromkeys((path for path in marks if folder_of(path) in folders), "")
        files = {
            path: ""
            for path in files
            if has_plain_names(path) and GIT not in path.lower().split("/")
        }
        state = repository.git_folder(self._tree)
        assert places.rules is not None
        assert state is not None
        with tempfile.TemporaryDirectory(prefix="filestore-index-") as made, self.blobs() as blobs:
            top = os.path.realpath(made)
            root = os.path.normpath(os.path.join(top, self._folder))
            os.makedirs(root, exist_ok=True)
            # What git ignores in this clone alone is asked, too.
            os.symlink(os.path.realpath(state), os.path.join(top, GIT))
            files |= {GIT: ""} if root == top else {}
            fetch = partial(self._put, top, blobs)
            for path in self._around:
                fetch(os.path.join(top, path))
            there = replace(places, root=root, rules=places.rules.at(root), fetch=fetch)
            found = documents_of(there, files)
        return [one for one in entries if one.path in found]

    def _put(self, top: str, blobs: Blobs, path: str) -> None:
        """Write a file of the index where rules look for it, in a folder that replaces ours."""
        with disk.disk_errors(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if blob := self._files.get(os.path.relpath(path, top)):
                with open(path, "xb") as file:
                    file.write(blobs.read(blob, MAX_SOURCE_BYTES)[1])

    def blobs(self) -> Blobs:
        """Hand out blobs, one after another."""
        return Blobs(self._tree)

    def _inside(self, path: str) -> ChunkPath:
        if self._folder == ".":
            return ChunkPath(path)
        return ChunkPath(path.removeprefix(self._folder).removeprefix("/"))

    def _names(self, *words: str, more: Sequence[str] = ()) -> list[str]:
        """What a git command prints for the folder, and more paths, between its NULs."""
        answer = self._ask(*words, "--", self._folder, *more)
        if answer.status != 0:
            raise NotInGitError(f"git cannot tell what is staged: {answer.message}")
        return answer.output.decode("utf-8", "surrogateescape").split("\0")[:-1]

    def _ask(self, *words: str) -> GitAnswer:
        try:
            return ask(self._tree, *words, index=self._index)
        except NoAnswerError as error:
            raise NotInGitError(error.message, remedy=error.remedy) from error
