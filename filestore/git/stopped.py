"""What a person has to know where git stopped at a conflict: whose the sides are, and how it ends.

Asks git, changes nothing. One rule: a command is named only where git takes it.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from filestore.core.caller import working_folder
from filestore.core.safe_text import shell_word
from filestore.git import process, repository

_MERGED: Final = re.compile(r"branch '([^']+)'")
"""In the message that git prepares for a merge."""
_SUBJECT: Final = 60
_HASH: Final = re.compile(r"[0-9a-f]{40,64}\Z")


class SideNames(Struct, frozen=True, kw_only=True):
    """Branch and commit of the two sides, in git's use of the words; "" where that is not known."""

    ours: str = ""
    theirs: str = ""

    def of(self, side: str) -> str:
        """The name of a side."""
        return {"ours": self.ours, "theirs": self.theirs}.get(side, "")


class _Commit(Struct, frozen=True, kw_only=True):
    short: str
    branches: tuple[str, ...]
    subject: str

    def named(self, branch: str = "") -> str:
        """Branch and hash."""
        known = branch or (self.branches[0] if self.branches else "")
        return f"{known} {self.short}".strip()


def side_names(folder: str, path: str = "") -> SideNames:
    """Whose text the sides of a conflict are. A rebase swaps them: there one's own is *theirs*.

    Args:
        folder: A folder of the work tree.
        path: A file in conflict, relative to it, by which a stash is recognised.
    """
    state = repository.git_folder(folder)
    if state is None or not repository.is_stopped(folder):
        return SideNames()
    word, head = repository.operation(folder), _text(state, "HEAD")
    branch = head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else ""
    rebase = next((one for one in _REBASES if os.path.isdir(os.path.join(state, one))), "")
    other = {"rebase": "REBASE_HEAD", "am": ""}.get(word, f"{word}_HEAD".upper().replace("-", "_"))
    wanted = {"ours": "HEAD", "theirs": _text(state, other) if word and other else "refs/stash"}
    if word == "rebase":
        wanted["onto"] = _text(state, f"{rebase}/onto")
    commits = _commits(folder, wanted)
    ours, theirs = commits.get("ours"), commits.get("theirs")
    mine = ours.named(branch) if ours else ""
    if word == "rebase":
        onto = commits.get("onto")
        mine = onto.named() if onto else mine
        if onto and ours and onto.short != ours.short:
            mine += ", with your commits before"
        branch = _text(state, f"{rebase}/head-name").removeprefix("refs/heads/")
        own = f'{theirs.named(branch)}, your commit "{theirs.subject}"' if theirs else branch
        return SideNames(ours=mine, theirs=own)
    if word == "am":
        return SideNames(ours=mine, theirs="the patch")
    if theirs is None:
        return SideNames(ours=mine)
    its = theirs.named()
    if word == "merge":
        merged = _MERGED.search(_text(state, "MERGE_MSG"))
        its = theirs.named(merged[1] if merged and merged[1] in theirs.branches else "")
    elif word == "cherry-pick":
        its = f'{its}, commit "{theirs.subject}"'
    elif word == "revert":
        its = f'without {theirs.short} "{theirs.subject}"'
    else:
        held = repository.staged(folder, path) if path else None
        is_stash = held and held[1] == repository.blob(folder, path, "refs/stash")
        its = f'stash {theirs.short}, "{theirs.subject}"' if is_stash else ""
    return SideNames(ours=mine, theirs=its)


def all_unmerged(folder: str) -> set[str]:
    """Every file of the work tree in conflict, relative to its top, also outside a store."""
    top = process.work_tree(os.path.realpath(folder))
    return set() if top is None else set(repository.unmerged(top))


def ending(folder: str, added: Mapping[str, bytes | None]) -> str:
    """The command that goes on once some files are added; "" where nothing is under way.

    Args:
        folder: A folder of the work tree.
        added: What they will hold, None for one that is gone; relative to the top.
    """
    word = repository.operation(folder)
    top = process.work_tree(os.path.realpath(folder))
    if word in ("", "bisect") or top is None:
        return ""
    # Git refuses to make an empty commit of anything but a merge.
    changed = repository.staged_paths(top)
    is_empty = word != "merge" and all(
        path in added and repository.blob(top, path) == added[path] for path in changed
    )
    return f"git {word} --{'skip' if is_empty else 'continue'}"


_REBASES: Final = ("rebase-merge", "rebase-apply")


def _text(state: str, name: str) -> str:
    data = process.read_start(os.path.join(state, name), process.POINTER_BYTES)
    return data.decode("utf-8", "replace").strip()


def _commits(folder: str, wanted: Mapping[str, str]) -> dict[str, _Commit]:
    """What git knows of commits, by the names that they are wanted under."""
    found = dict[str, _Commit]()
    for name, revision in wanted.items():
        if not (revision in ("HEAD", "refs/stash") or _HASH.match(revision)):
            continue
        lines = _lines(folder, "log", "-1", "--format=%H%n%h%n%s", revision, "--")
        if len(lines) > 1:
            full, short, subject = (*lines, "")[:3]
            known = f"--points-at={full}"
            places = ("refs/heads", "refs/remotes")
            refs = _lines(folder, "for-each-ref", known, "--format=%(refname)", *places)
            branches = tuple(ref.split("/", 2)[2] for ref in refs)
            cut = subject if len(subject) <= _SUBJECT else f"{subject[: _SUBJECT - 1]}…"
            found[name] = _Commit(short=short, branches=branches, subject=cut)
    return found


def _lines(folder: str, *words: str) -> list[str]:
    try:
        answer = process.ask(folder, *words)
    except (process.NoAnswerError, OSError):
        return []
    text = answer.output.decode("utf-8", "replace") if answer.status == 0 else ""
    return text.split("\n")[:-1]


def add_command(paths: Iterable[str], folder: str) -> str:
    """The command that tells git that files are resolved, from a folder.

    Args:
        paths: Absolute.
        folder: Where it is typed.
    """
    names = [os.path.relpath(path, folder) for path in paths]
    # Git takes some signs as patterns, and a colon at the start as a command of its own.
    literal = " --literal-pathspecs" if any(_PATTERN.search(name) for name in names) else ""
    return " ".join((f"git{literal} add", *(shell_word(_plain(name)) for name in names)))


def side_command(folder: str, path: str, side: str) -> str:
    """The command of git by which a file becomes one side of its conflict, from where one is.

    Args:
        folder: A folder of the work tree.
        path: Of the file, relative to it.
        side: ``ours`` or ``theirs``.
    """
    held = repository.staged(folder, path) or (None, None)
    whole = os.path.join(folder, path)
    add = add_command([whole], working_folder())
    before, _, names = add.partition(" add ")
    if held[side == "theirs"] is None:
        return f"{before} rm --quiet -- {names}"
    words = [] if repository.is_unmerged(folder, path) else ["checkout --merge"]
    done = [f"{before} {word} -- {names}" for word in (*words, f"checkout --{side}")]
    return " && ".join((*done, add))


_PATTERN: Final = re.compile(r"[*?\[\\]|\A:")


def _plain(name: str) -> str:
    return f"./{name}" if name.startswith(("-", ":")) else name
