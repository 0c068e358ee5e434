"""What git knows of the folder a store lies in. Asks git, changes nothing, and works without it."""

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from filestore.core.errors import RefusedError
from filestore.core.paths import ChunkPath, StorePath, Tree
from filestore.git import process

_OPERATIONS: Final = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
"""What lies in git's folder while it is in the middle of something; the first one tells."""


class GitBusyError(RefusedError):
    """Git is in the middle of an operation, which decides what the files are to be."""


def work_tree(root: str) -> str:
    """The folder whose files may be referenced in place: the git work tree around the store.

    Without git it is the folder that the store lies in.
    """
    return process.work_tree(root) or os.path.dirname(root)


def git_folder(folder: str) -> str | None:
    """The folder in which git keeps the state of the work tree around a folder; None without."""
    tree = process.work_tree(os.path.abspath(folder))
    return None if tree is None else process.state_folder(tree)


def operation(folder: str) -> str:
    """What git is in the middle of around a folder, such as ``merge``; "" for nothing."""
    state = git_folder(folder)
    if state is None:
        return ""
    for name, word in _OPERATIONS.items():
        if os.path.exists(os.path.join(state, name)):
            return word
    return ""


def refuse_during_operation(folder: str) -> None:
    """Let no truth file be written while git decides what the files are to be.

    Raises:
        GitBusyError: A merge, rebase or the like is under way.
    """
    word = operation(folder)
    if word:
        last = "git bisect reset" if word == "bisect" else f"git {word} --abort"
        raise GitBusyError(
            f"a git {word} is in progress: files are not changed until it ends",
            remedy=f"'{last}' aborts it; or finish it, then run this again",
        )


def is_stopped(folder: str) -> bool:
    """Whether git may have files as unmerged around a folder; tells without starting it.

    A `git stash pop` with a conflict is no operation, and leaves what it made of the files.
    """
    state = git_folder(folder)
    made = state is not None and os.path.exists(os.path.join(state, "AUTO_MERGE"))
    return made or operation(folder) != ""


def unmerged(chunked: str) -> set[ChunkPath]:
    """The files that git's index holds unmerged, or has taken with their conflict markers.

    Args:
        chunked: Their folder.
    """
    waiting, added = _conflicted(chunked, ".")
    changed = _staged_blobs(chunked, ".") if added else {}
    # Once it is committed so, that was somebody's wish.
    doubted = {path: stages for path, stages in added.items() if changed.get(path)}
    if doubted:
        with contextlib.suppress(process.NoAnswerError, OSError), process.Blobs(chunked) as blobs:
            for path, stages in doubted.items():
                names = [changed[path], *(stages[one] for one in _SIDES if one in stages)]
                held, *sides = (
                    len(_FIRST_MARKER.findall(blobs.read(name, process.MOST_BYTES)[1]))
                    for name in names
                )
                if held > max(sides, default=0):
                    waiting[path] = stages
    return set(map(ChunkPath, waiting))


_FIRST_MARKER: Final = re.compile(rb"^<{7}(?: .*)?\r?$", re.MULTILINE)
_SIDES: Final = ("2", "3")
"""The stages at which git's index holds our and their version."""


def _conflicted(
    folder: str, path: str
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Paths that git has as unmerged, and paths that it had so until they were added.

    Each with the blobs that it has of them, by stage. The second ones it keeps until the next
    checkout or merge.
    """
    waiting, added = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    words = ("ls-files", "-z", "-t", "--unmerged", "--resolve-undo", "--", path)
    for entry in _names(folder, *words):
        head, _, name = entry.partition("\t")
        tag, _, blob_name, stage = head.split(" ")
        (waiting if tag == "M" else added).setdefault(name, {})[stage] = blob_name
    return waiting, {name: stages for name, stages in added.items() if name not in waiting}


def staged_paths(folder: str) -> set[str]:
    """The paths in which git's index differs from HEAD."""
    return set(_staged_blobs(folder, "."))


def _staged_blobs(folder: str, path: str) -> dict[str, str]:
    """The paths in which git's index differs from HEAD, with its blob; "" where it has none."""
    words = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--relative")
    fields = list(_fields(_git(folder, *words, "HEAD", "--", path)))
    pairs = zip(fields[::2], fields[1::2], strict=False)
    blobs = ((name, head.split(" ")[3]) for head, name in pairs)
    return {name: blob_name if blob_name.strip("0") else "" for name, blob_name in blobs}


def conflicted(chunked: str) -> set[ChunkPath]:
    """The files that git has as unmerged, or had so until they were added.

    Args:
        chunked: Their folder.
    """
    waiting, added = _conflicted(chunked, ".")
    return set(map(ChunkPath, (*waiting, *added)))


def blob(folder: str, path: str, revision: str = "HEAD") -> bytes | None:
    """What git has of a path, relative to the folder; None where it has nothing.

    Args:
        folder: A folder of the work tree.
        path: Relative to it.
        revision: A commit; "" for the index.
    """
    return _git(folder, "cat-file", "blob", f"{revision}:./{path}")


def staged(folder: str, path: str) -> tuple[bytes | None, bytes | None] | None:
    """Our and their bytes of a file that git's index holds unmerged, or did until it was added.

    None where it has none, or where what ended the conflict is committed.
    """
    waiting, added = (found.get(path) for found in _conflicted(folder, path))
    if added is not None and (operation(folder) or path in _staged_blobs(folder, path)):
        waiting = added
    if waiting is None:
        return None
    names = [waiting.get(stage) for stage in _SIDES]
    ours, theirs = (None if name is None else named_blob(folder, name) for name in names)
    return ours, theirs


def is_unmerged(folder: str, path: str) -> bool:
    """Whether git's index holds a file unmerged now."""
    return path in _conflicted(folder, path)[0]


def is_committed(folder: str, path: str) -> bool:
    """Whether git's HEAD has a file or a folder at a path, relative to a folder."""
    return _git(folder, "cat-file", "-e", f"HEAD:./{path}") is not None


def last_commit(folder: str, path: str) -> tuple[int, bytes] | None:
    """When the newest commit that HEAD has of a path was made, in seconds, and its bytes."""
    data = blob(folder, path)
    made_s = head_time(folder, "--", path)
    return None if data is None or made_s is None else (made_s, data)


def head_time(folder: str, *words: str) -> int | None:
    """When HEAD, or its newest commit of some paths, was made, in seconds; None without any."""
    stamp = (_git(folder, "rev-list", "-1", "--timestamp", "HEAD", *words) or b"").split(b" ")[0]
    return int(stamp) if stamp.isdigit() else None


def blob_names(root: str) -> dict[StorePath, str]:
    """Each path of a store that HEAD has, to the name of its blob."""
    found: dict[StorePath, str] = {}
    for entry in _names(root, "ls-tree", "-r", "-z", "HEAD", "--", "."):
        words, _, path = entry.partition("\t")
        found[StorePath(path)] = words.rpartition(" ")[2]
    return found


def checked_in(root: str, tree: Tree) -> dict[ChunkPath, str]:
    """The files of a tree that HEAD has, and the index has to be checked out.

    The folder may be gone itself. Each has the name of its blob in HEAD. What a person took out of
    the index, or excluded by a sparse checkout, is not among them.
    """
    wanted = {path for tag, path in _tagged(root, tree) if tag == "H"}
    found = {}
    for entry in _names(root, "ls-tree", "-r", "-z", "HEAD", "--", tree.pathspec) if wanted else ():
        words, _, path = entry.partition("\t")
        mode, _, name = words.split(" ")
        if path in wanted and mode.startswith("100"):
            found[tree.chunk_path(StorePath(path))] = name
    return found


def named_blob(folder: str, name: str) -> bytes | None:
    """What git has under the name of a blob; None where it has nothing."""
    return _git(folder, "cat-file", "blob", name)


def blob_namer(like: str) -> Callable[[bytes], str]:
    """What gives bytes the name that git gives them, by the hash that made another name."""
    import hashlib

    made = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return lambda data: made(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def history(folder: str, path: str, most: int = 50) -> Iterator[bytes]:
    """What a path held in earlier commits, newest first, each content once.

    Args:
        folder: A folder of the work tree.
        path: Relative to it; followed through renames that git recognises.
        most: The most commits that are looked at.
    """
    tree = process.work_tree(os.path.realpath(folder))
    if tree is None:
        return
    # As `git log --follow` does: where a commit adds the file, and took another one away that is
    # much like it, the earlier commits are asked for that one. What a merge made counts, too.
    names = [os.path.relpath(os.path.join(os.path.realpath(folder), path), tree)]
    source_of = functools.cache(functools.partial(_renamed_from, tree))
    while True:
        found, other = _followed(_changes(tree, names), names, most, source_of)
        if other is None:
            break
        # Its commits are among the ones just read: they are read again, together.
        names.append(other)
    if not found:
        return
    try:
        with process.Blobs(folder) as blobs:
            for name in found:
                with contextlib.suppress(process.NoAnswerError):
                    size, data = blobs.read(name, process.MOST_BYTES)
                    if len(data) == size:
                        yield data
    except (process.NoAnswerError, OSError):
        return


_Change = tuple[tuple[str, ...], bool]
"""What a commit did to a file: what it held after and before, of a merge only what was made in it;
and whether it was added."""


def _followed(
    commits: Iterable[tuple[str, dict[str, _Change]]],
    names: Sequence[str],
    most: int,
    source_of: Callable[[str, str], str | None],
) -> tuple[list[str], str | None]:
    """The blobs of a file that had these names, the last one first; or one more name of it."""
    current, *earlier = names
    blobs: dict[str, None] = {}
    looked_at = 0
    for commit, changes in commits:
        change = changes.get(current)
        if change is None:
            continue
        looked_at += 1
        if looked_at > most:
            break
        held, is_added = change
        blobs |= dict.fromkeys(held)
        source = source_of(commit, current) if is_added else None
        if source is None:
            continue
        if not earlier:
            return [], source
        current = earlier.pop(0)
    return list(blobs), None


def _changes(tree: str, names: Sequence[str]) -> Iterator[tuple[str, dict[str, _Change]]]:
    """The commits that changed one of some paths, newest first, and what each did to them."""
    commits = _git(tree, "rev-list", "--full-history", "HEAD", "--", *names) or b""
    words = ("-r", "--root", "-c", "--no-renames", "--raw", "--no-abbrev", "-z")
    fields = _fields(_git(tree, "diff-tree", "--stdin", *words, "--", *names, given=commits))
    commit, changes = "", dict[str, _Change]()
    for field in fields:
        if not field.startswith(":"):
            if commit:
                yield commit, changes
            commit, changes = field, {}
            continue
        columns = field.lstrip(":").split(" ")
        parents = len(field) - len(field.lstrip(":"))
        before, after = columns[parents + 1 : -2], columns[-2]
        held = (after, *before) if parents == 1 else (after,)
        is_added = parents == 1 and columns[-1] == "A"
        path = next(fields, "")
        changes[path] = tuple(name for name in held if name.strip("0")), is_added
    if commit:
        yield commit, changes


def _renamed_from(tree: str, commit: str, path: str) -> str | None:
    """What a file was called before the commit that added it; None where it is new."""
    words = ("-r", "-M", "--diff-filter=R", "--no-commit-id", "--raw", "-z")
    fields = _fields(_git(tree, "diff-tree", *words, commit))
    renames = zip(fields, fields, fields, strict=False)
    return next((before for _, before, after in renames if after == path), None)


def _fields(output: bytes | None) -> Iterator[str]:
    """What git printed between NULs."""
    return iter((output or b"").decode("utf-8", "surrogateescape").split("\0")[:-1])


def deleted_paths(root: str, tree: Tree) -> set[ChunkPath]:
    """The paths of a tree that some commit has and git's HEAD or a sparse checkout does not.

    They went on purpose: by a commit, a merge, a change of branch, or a sparse checkout. Empty
    where there is no git. The folder may be gone itself.
    """
    commits = _git(root, "rev-list", "--all", "--", tree.pathspec) or b""
    words = ("-r", "--root", "--no-commit-id", "--no-renames", "--name-only", "--relative", "-z")
    ever = _split(_git(root, "diff-tree", "--stdin", *words, "--", tree.pathspec, given=commits))
    head = _names(root, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", tree.pathspec)
    away = {path for tag, path in _tagged(root, tree) if tag == "S"}
    return set(tree.chunk_paths(map(StorePath, (ever - head) | away)))


def _tagged(root: str, tree: Tree) -> Iterator[tuple[str, str]]:
    """The paths of a tree that git's index has, each with its tag: H, or S for one left out."""
    for entry in _names(root, "ls-files", "-z", "-t", "--cached", "--", tree.pathspec):
        tag, _, path = entry.partition(" ")
        yield tag, path


def _names(folder: str, *words: str) -> set[str]:
    """The names that a git command prints; none where it fails."""
    return _split(_git(folder, *words))


def _split(output: bytes | None) -> set[str]:
    names = (output or b"").decode("utf-8", "surrogateescape").split("\0")
    return {name.strip("\n") for name in names} - {""}


def _git(folder: str, *words: str, given: bytes = b"") -> bytes | None:
    """What a git command prints; None where it fails or there is no git."""
    try:
        answer = process.ask(folder, *words, given=given)
    except (process.NoAnswerError, OSError):
        return None
    return answer.output if answer.status == 0 else None
