"""Commits as a person names them, their files, and these files written where they are looked for.

What git stores is read. A filter is a program that a repository names, and is never run; so a file
that git stores otherwise is taken from the work tree where git says that it has not changed since.
Two rules: a tree may come from a stranger, so a name in it that leads out of its folder is an error
for every reader; and nothing is written but below a folder of ours, where nothing is written over.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from filestore.config.layout import MAX_SOURCE_BYTES, Places
from filestore.core.errors import FilestoreError
from filestore.core.paths import SETTINGS, ChunkPath, StorePath, has_plain_names
from filestore.core.safe_text import brief
from filestore.fs import disk, part
from filestore.git.process import Blobs, GitAnswer, NoAnswerError, ask, work_tree

_FORMAT: Final = "--format=%H%x00%ct%x00%an%x00%s"
_FIELDS: Final = 4
_REGULAR: Final = ("100644", "100755", "100664")
"""The modes of files; the last one is of old repositories."""
_LINK_MODE: Final = "160000"
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
        if found not in ("", revision) and ask(folder, "cat-file", "-t", found).status != 0:
            raise NoAnswerError(f"git cannot read what {named} names", remedy="git fsck")
        if not _parsed(folder, "HEAD"):
            raise NoRevisionError("nothing is committed yet", remedy="git commit")
        raise NoRevisionError(f"no commit {named} in this repository", remedy="git log --oneline")
    return next(log_commits(folder, "--no-walk", name))


def _parsed(folder: str, name: str) -> str:
    """The object that a name means; "" for none.

    Raises:
        NoRevisionError: It means several.
    """
    answer = ask(folder, "rev-parse", "--verify", "--end-of-options", name)
    if answer.status == 0 and "is ambiguous" in answer.message:
        raise NoRevisionError(
            f"{brief(name)} is the name of several things"
            ": name it whole, as refs/heads/NAME or refs/tags/NAME",
        )
    return answer.output.decode("ascii").strip() if answer.status == 0 else ""


def is_shallow(folder: str) -> bool:
    """Whether the history of a clone was cut off."""
    answer = ask(folder, "rev-parse", "--is-shallow-repository")
    return answer.output.strip() == b"true"


def is_partial(folder: str) -> bool:
    """Whether a clone left out blobs, to be fetched when they are asked for."""
    answer = ask(folder, "rev-parse", "--git-path", "objects/pack")
    packs = os.path.join(folder, os.fsdecode(answer.output.rstrip(b"\n")))
    try:
        return any(name.endswith(".promisor") for name in os.listdir(packs))
    except OSError:
        return False


def log_commits(folder: str, *words: str) -> Iterator[Commit]:
    """The commits that `git rev-list` names with some words, in its order.

    Raises:
        NoAnswerError: Git does not answer: its objects are not all here.
    """
    answer = ask(folder, "rev-list", _FORMAT, *words)
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
    answer = ask(folder, "ls-tree", "-r", "-z", "--full-tree", tree)
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
        elif mode == _LINK_MODE:
            found.submodules[path] = name
    return found


def stores_at(folder: str, commit: str) -> list[str]:
    """The folders of a commit that have the settings of a store, from the top of the work tree."""
    words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    names = os.fsdecode(answered(ask(folder, *words))).split("\0")
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
    steps = answered(ask(folder, "rev-list", "--first-parent", "--parents", range_))
    # Of a merge only the branch that it was made on.
    pairs = (line.split()[:2] for line in reversed(steps.splitlines()))
    given = b"".join(b" ".join(pair) + b"\n" for pair in pairs)
    words = ("-r", "-M", "--diff-filter=R", "--raw", "-z", "--relative")
    each = ask(folder, "diff-tree", "--stdin", "--no-commit-id", *words, given=given)
    found: dict[StorePath, StorePath] = {}
    for new, old in _renamed(each):
        found[new] = found.pop(old, old)
    if after is None:
        whole = ask(folder, *_WORK_TREE, *words, before, "--", ".")
    else:
        whole = ask(folder, "diff-tree", *words, before, after, "--", ".")
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
    text = answered(ask(folder, *_WORK_TREE, *words))
    return set(text.decode("utf-8", "surrogateescape").split("\0")[:-1])


def answered(answer: GitAnswer) -> bytes:
    """The output of an answer.

    Raises:
        NoAnswerError: It did not do what it was asked.
    """
    if answer.status != 0:
        raise NoAnswerError(f"git: {brief(answer.message) or answer.status}", remedy="git fsck")
    return answer.output


GIT: str = ".git"
"""An empty folder of this name marks the top: what looks for a work tree around the files of a view
ends there, and git finds no repository in it."""

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SUBMODULES: Final = "submodules.json"
"""In the folder of a view: they are asked again for every file that is looked at."""
_MOST_NESTED: Final = 8
NOTE: Final = (
    "some files of the commit are read as git stores them: .gitattributes names a filter, an"
    " encoding or 'ident', which only a checkout applies"
)
_ATTRIBUTES: Final = ".gitattributes"
_CONVERTED: Final = re.compile(rb"[ \t](?:filter|working-tree-encoding)=|[ \t]ident\b")


class Checkout:
    """A folder in place of the work tree at one commit, with its submodules."""

    def __init__(self, folder: str, commit: str, top: str) -> None:
        """Start nothing yet.

        Args:
            folder: Of the work tree; git is asked there.
            commit: Its full name.
            top: The folder in place of the top of the work tree; absolute.
        """
        self._folder = folder
        self._commit = commit
        self._top = top
        self._written_below = top
        self._blobs: Blobs | None = None
        self._modules: dict[str, Checkout] = {}

    def close(self) -> None:
        """End git."""
        for module in self._modules.values():
            module.close()
        if self._blobs is not None:
            self._blobs.__exit__(None, None, None)
            self._blobs = None

    def add_module(self, below: str, folder: str, commit: str) -> None:
        """Take files below a folder from a submodule.

        Args:
            below: The folder, relative to the top.
            folder: Where the submodule is checked out today.
            commit: That it had.
        """
        module = Checkout(folder, commit, os.path.join(self._top, below))
        # Any folder on the way there may have become a link.
        module._written_below = self._top
        # The innermost is asked first.
        self._modules = {below + "/": module, **self._modules}

    def fetch(self, path: str) -> None:
        """Put a file where it is looked for, if the commit has it and it is not there.

        Args:
            path: Absolute, below `top`; any other one is left alone.
        """
        below = os.path.relpath(path, self._top)
        if not has_plain_names(below):
            # The caller may have resolved what leads to the top.
            below = os.path.relpath(path, os.path.realpath(self._top))
            path = os.path.join(self._top, below)
        if os.path.lexists(path) or not has_plain_names(below):
            return
        for start, module in self._modules.items():
            if below.startswith(start):
                module.fetch(path)
                return
        name = f"{self._commit}:{below}"
        with contextlib.suppress(NoAnswerError):
            # A line is one question to git: one that spans two it is asked otherwise.
            blob = blob_at(self._folder, name) if "\n" in below else name
            if blob is not None:
                self.write(path, self.read(blob))

    def read(self, name: str) -> bytes:
        """What git has under the name of a blob, or under ``commit:path``; see `read_all`."""
        (data,) = self.read_all([name])
        return data

    def read_all(self, names: Iterable[str]) -> Iterator[bytes]:
        """What git has under the names of some blobs.

        Raises:
            NoAnswerError: One is not here, or is larger than any document that is read.
        """
        if self._blobs is None:
            self._blobs = Blobs(self._folder)
        asked, names = tee(names)
        for name, found in zip(names, self._blobs.read_all(asked, MAX_SOURCE_BYTES), strict=True):
            if found is None:
                yield self._read_in_module(name)
            elif len(found[1]) < found[0]:
                raise NoAnswerError(f"{name} has {found[0]:,} bytes: too large", remedy="git show")
            else:
                yield found[1]

    def _read_in_module(self, name: str) -> bytes:
        for module in self._modules.values():
            with contextlib.suppress(NoAnswerError):
                return module.read(name)
        if is_partial(self._folder):
            raise NoAnswerError(
                f"blob {name} is not here: this is a partial clone",
                remedy="git fetch --refetch --no-filter",
            )
        raise NoAnswerError(
            f"git has no blob {name} here", remedy="'git fetch' fetches it; 'git fsck' finds damage"
        )

    def write(self, path: str, data: bytes) -> None:
        """Put bytes where a file is looked for; the first one stays."""
        folder, name = os.path.split(os.path.relpath(path, self._written_below))
        temporary = f".filestore-{os.urandom(8).hex()}"
        with (
            part.folder_of(self._written_below) as top,
            part.made_below(top, folder or os.curdir) as handle,
        ):
            descriptor = os.open(temporary, _NEW_FILE, 0o600, dir_fd=handle)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=handle)
                raise


class Submodule(Struct, frozen=True, kw_only=True):
    """A submodule of a commit."""

    path: str
    """Relative to the store root."""
    commit: str
    """That it was to be at."""
    is_here: bool
    """Whether its files could be read."""


def with_submodules(root: str, found: FilesAt, depth: int = 0) -> Iterator[Submodule]:
    """Add the files of submodules to those of a commit, and tell of each.

    Args:
        root: Of the store, or the folder of a submodule.
        found: What the commit has below it; what submodules have is added.
        depth: How many submodules lie around it.
    """
    for path, commit in found.submodules.items():
        folder = os.path.join(root, path)
        inner: FilesAt | None = None
        nested: list[Submodule] = []
        # Where nothing is checked out, git would tell of the repository around.
        if depth < _MOST_NESTED and work_tree(os.path.realpath(folder)) == folder:
            with contextlib.suppress(NoAnswerError):
                inner = files_at(folder, commit)
        if inner is not None:
            nested = list(with_submodules(folder, inner, depth + 1))
            found.files.update({f"{path}/{one}": name for one, name in inner.files.items()})
        yield Submodule(path=path, commit=commit, is_here=inner is not None)
        for one in nested:
            yield replace(one, path=f"{path}/{one.path}")


def save_submodules(folder: str, submodules: list[Submodule]) -> None:
    """Keep them in the folder of a view."""
    if submodules:
        rows = [[os.fsencode(one.path).hex(), one.commit, one.is_here] for one in submodules]
        with open(os.path.join(folder, _SUBMODULES), "xb") as file:
            file.write(orjson.dumps(rows))


def load_submodules(folder: str) -> list[Submodule]:
    """Those of a view."""
    try:
        rows = orjson.loads(disk.read_path(os.path.join(folder, _SUBMODULES)))
    except (OSError, ValueError):
        return []
    return [
        Submodule(path=os.fsdecode(bytes.fromhex(path)), commit=commit, is_here=is_here)
        for path, commit, is_here in rows
        if has_plain_names(os.fsdecode(bytes.fromhex(path)))
    ]


def from_work_tree(
    places: Places, commit: Commit, paths: Sequence[ChunkPath]
) -> Iterator[tuple[ChunkPath, bytes]]:
    """Those of some files that git has as unchanged since a commit, with their bytes of today.

    Args:
        places: Of the store.
        commit: What they are compared with.
        paths: Files that the commit has, of which git may store other bytes.
    """
    if not paths:
        return
    names = [places.tree.store_path(path) for path in paths]
    try:
        changed = changed_since(places.root, commit.commit, names)
    except NoAnswerError:
        return
    for path, name in zip(paths, names, strict=True):
        if name not in changed:
            place = os.path.join(places.chunked, path)
            try:
                if not os.path.islink(place):
                    yield path, disk.read_path(place, limit=MAX_SOURCE_BYTES)
            except OSError as error:
                disk.pass_limits(error)


def are_converted(checkout: Checkout, commit: Commit, root: str, files: Iterable[str]) -> bool:
    """Whether a commit converts files as they are checked out.

    Args:
        checkout: Reads what the commit has.
        commit: Its name is asked for.
        root: The way from the top of the work tree to the store's tree, "" for the top itself.
        files: What the commit has there.
    """
    folders = [root]
    while folders[-1]:
        folders.append(os.path.dirname(folders[-1]))
    names = [os.path.join(folder, _ATTRIBUTES) for folder in folders]
    names += [os.path.join(root, one) for one in files if one.endswith(f"/{_ATTRIBUTES}")]
    for name in names:
        try:
            data = checkout.read(f"{commit.commit}:{name}")
        except NoAnswerError:
            continue
        if _CONVERTED.search(data):
            return True
    return False
