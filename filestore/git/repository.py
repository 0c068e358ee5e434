"""What git knows of the folder a store lies in. Asks git, changes nothing, and works without it."""

import contextlib
import functools
import os
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
            f"a git {word} is under way: no chunk file is written until it is over",
            remedy=f"finish it, or take it back with '{last}'; then run the command again",
        )


def unmerged(chunked: str) -> set[ChunkPath]:
    """The chunk files that git's index holds unmerged.

    Args:
        chunked: Their folder.
    """
    listed = _names(chunked, "ls-files", "-z", "--unmerged", "--", ".")
    return {ChunkPath(entry.partition("\t")[2]) for entry in listed}


def blob(folder: str, path: str, revision: str = "HEAD") -> bytes | None:
    """What git has of a path, relative to the folder; None where it has nothing.

    Args:
        folder: A folder of the work tree.
        path: Relative to it.
        revision: A commit; "" for the index.
    """
    return _git(folder, "cat-file", "blob", f"{revision}:./{path}")


def staged(folder: str, path: str) -> tuple[bytes | None, bytes | None] | None:
    """Our and their bytes of a file that git's index holds unmerged; None where it is merged."""
    base, ours, theirs = (blob(folder, path, f":{stage}") for stage in (1, 2, 3))
    return None if base is ours is theirs is None else (ours, theirs)


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
