"""Git hooks that keep the index up to date: install, find, remove, run.

A hook of ours is a few lines of shell that start the Python that wrote them, with the stores of the
work tree, one a line. One rule: a file that we did not write, or that was changed since, is never
touched.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from filestore.config.layout import SETTINGS
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.hashing import content_hash
from filestore.core.paths import is_below
from filestore.fs import disk
from filestore.fs.programs import start_python
from filestore.git.process import NoAnswerError, ask_where, environment
from filestore.git.state import read_start, work_tree

CHECKING: Final = "pre-commit"
FOLLOWING: Final = ("post-checkout", "post-merge", "post-rewrite")
HOOKS: Final = (*FOLLOWING, CHECKING)
EXIT_STOP: Final = 64
"""What the hidden action of a checking hook returns to stop a commit; all else lets it pass."""
PATIENCE_S: Final = 10.0
"""So long a hook waits for the index; then that goes on by itself."""

_MARK: Final = "# filestore hook "
_OPTION: Final = "--in="
_MODE: Final = 0o755
_MOST_BYTES: Final = 1 << 20

State = Literal["installed", "updated", "removed", "absent", "foreign", "called"]


class NoRepositoryError(FilestoreError):
    """There is no git, or no work tree around the store."""


class SharedHooksError(RefusedError):
    """The hooks that git runs here are those of other repositories, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Where git runs hooks for a store."""

    tree: str
    """The top of the work tree, where hooks run."""
    hooks: str
    """The folder of the hooks, absolute."""
    store: str
    """The store's root relative to the top."""
    note: str = ""
    """What to know of that folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One hook, with what was found or done."""

    name: str
    path: str
    state: State
    """`installed`: ours, for this store. `updated`, `removed`: just now. `absent`: there is none
    for this store. `foreign`: not ours. `called`: not ours, and it calls filestore itself."""
    line: str = ""
    """What to add to a foreign hook."""

    @property
    def serves(self) -> bool:
        """Whether git runs it for this store."""
        return self.state in ("installed", "updated", "called")


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One store that was synced after git changed its files."""

    store: str
    """Relative to the top of the work tree."""
    finished: bool
    """False where it goes on in the background."""
    said: str
    """What it said."""


def repository(root: str) -> Repository:
    """Where git runs hooks for the store of a root.

    Raises:
        NoRepositoryError: The store lies in no work tree, or there is no git.
        SharedHooksError: The folder of hooks lies outside the repository.
    """
    tree = _ask_git(root, "--show-toplevel")
    around = work_tree(os.path.realpath(root))
    if around is None or os.path.realpath(tree) != around:
        raise NoRepositoryError(
            f"the settings of the repository say that its work tree is {tree}, expected {around}",
            remedy="git config --unset core.worktree",
        )
    # Hooks run at the top, so that is where a relative core.hooksPath counts from.
    common = os.path.realpath(os.path.join(tree, _ask_git(tree, "--git-common-dir")))
    hooks = os.path.realpath(os.path.join(tree, _ask_git(tree, "--git-path", "hooks")))
    store = os.path.relpath(os.path.realpath(root), os.path.realpath(tree))
    if is_below(hooks, common):
        return Repository(tree=tree, hooks=hooks, store=store)
    if not is_below(hooks, os.path.realpath(tree)):
        raise SharedHooksError(
            f"git runs the hooks of {hooks} here (core.hooksPath), outside this repository: other "
            "repositories may share them",
            remedy="'git config --local core.hooksPath .git/hooks', or call filestore from there: "
            + call_line("post-checkout", [store]),
        )
    note = f"{hooks} is part of the work tree: do not commit what names this machine's Python"
    return Repository(tree=tree, hooks=hooks, store=store, note=note)


def _ask_git(folder: str, *words: str) -> str:
    """What git says of a repository.

    Raises:
        NoRepositoryError: It fails, or there is no git.
    """
    try:
        done = ask_where(folder, *words)
    except NoAnswerError as error:
        raise NoRepositoryError(error.message, remedy=error.remedy) from error
    if done.status != 0:
        said = done.said or "it says nothing"
        raise NoRepositoryError(
            f"{folder} lies in no git work tree: {said}", remedy="'git init' around the store"
        )
    return os.fsdecode(done.output).removesuffix("\n")


def status(place: Repository) -> tuple[Hook, ...]:
    """Which hooks serve the store; changes nothing."""
    return tuple(_look(place, name)[0] for name in HOOKS)


def install(place: Repository) -> tuple[Hook, ...]:
    """Write the hooks, or add the store to those that serve others.

    Raises:
        WriteFailedError: The disk refused.
    """
    os.makedirs(place.hooks, exist_ok=True)
    return tuple(_install(place, name) for name in HOOKS)


def remove(place: Repository) -> tuple[Hook, ...]:
    """Take the store out of the hooks, and away those that serve no other.

    Raises:
        WriteFailedError: The disk refused.
    """
    return tuple(_remove(place, name) for name in HOOKS)


def _look(place: Repository, name: str) -> tuple[Hook, list[str]]:
    """One hook as it is, with the stores that it serves."""
    path = os.path.join(place.hooks, name)
    if not os.path.lexists(path):
        return Hook(name=name, path=path, state="absent"), []
    script = "" if os.path.islink(path) else os.fsdecode(read_start(path, _MOST_BYTES))
    stores = stores_of(script)
    if stores is None:
        calls = f"-m filestore git {_OPTION}" in script and f" hook {name}" in script
        line = call_line(name, [place.store])
        return Hook(name=name, path=path, state="called" if calls else "foreign", line=line), []
    served = place.store in stores and os.access(path, os.X_OK)
    return Hook(name=name, path=path, state="installed" if served else "absent"), stores


def _install(place: Repository, name: str) -> Hook:
    hook, stores = _look(place, name)
    if hook.state in ("foreign", "called"):
        return hook
    wanted = hook_script(name, sorted({*stores, place.store}), sys.executable)
    if hook.state == "installed" and _holds(hook.path, wanted):
        return hook
    _write(hook.path, wanted)
    return Hook(name=name, path=hook.path, state="updated")


def _remove(place: Repository, name: str) -> Hook:
    hook, stores = _look(place, name)
    if place.store not in stores:
        return hook
    others = [store for store in stores if store != place.store]
    if others:
        _write(hook.path, hook_script(name, others, sys.executable))
    else:
        try:
            os.unlink(hook.path)
        except OSError as error:
            raise disk.write_failed(hook.path, error) from error
    return Hook(name=name, path=hook.path, state="removed")


def _holds(path: str, script: str) -> bool:
    with open(path, "rb") as file:
        return file.read() == os.fsencode(script)


def _write(path: str, script: str) -> None:
    disk.write_path(path, os.fsencode(script))
    try:
        os.chmod(path, _MODE)
    except OSError as error:
        raise disk.write_failed(path, error) from error


def call_line(name: str, stores: Iterable[str], python: str = sys.executable) -> str:
    """The one line of shell that does in a foreign hook what ours would do."""
    options = "".join(f" {shlex.quote(_OPTION + store)}" for store in stores)
    # A folder named filestore in the work tree must not be taken for the program: -P.
    line = f'{shlex.quote(python)} -P -m filestore git{options} hook {name} "$@"'
    return f"{line} || exit 1" if name == CHECKING else f"{line} || true"


def hook_script(name: str, stores: Sequence[str], python: str) -> str:
    """The text of a hook of ours; `stores_of` reads it back. Pure."""
    gone = (
        "so what is committed was not checked"
        if name == CHECKING
        else "so the index does not follow"
    )
    lines = [
        # An entry that is not absolute means the work tree, which -P does not take from the path.
        'case ":$PYTHONPATH:" in *::* | *:[!/]*) unset PYTHONPATH ;; esac',
        f"python={shlex.quote(python)}",
        'if [ ! -x "$python" ]; then',
        f"    echo \"filestore: $python is gone, {gone}; run 'filestore git install'\" >&2",
        "    exit 0",
        "fi",
        'if [ -n "$(git ls-files -- "${python%/bin/*}" 2>/dev/null)" ]; then',
        f'    echo "filestore: a branch may change $python, {gone}: git keeps its files" >&2',
        "    exit 0",
        "fi",
        f'set -- hook {name} "$@"',
        *(f'set -- {shlex.quote(_OPTION + store)} "$@"' for store in reversed(stores)),
        '"$python" -P -m filestore git "$@"',
        *(_CHECKED if name == CHECKING else ("exit 0",)),
    ]
    body = "\n".join(lines) + "\n"
    return f"#!/bin/sh\n{_marker(body)}\n{body}"


_CHECKED: Final = (
    "case $? in",
    "0) exit 0 ;;",
    f"{EXIT_STOP}) exit 1 ;;",
    "esac",
    'echo "filestore: what is committed was not checked" >&2',
    "exit 0",
)


def _marker(body: str) -> str:
    digest = content_hash(os.fsencode(body)).hex()
    return f"{_MARK}{digest}: written by 'filestore git install', taken away by 'git remove'"


def stores_of(script: str) -> list[str] | None:
    """The stores that a hook of ours serves; None for a script that is not as we wrote it. Pure."""
    shebang, _, rest = script.partition("\n")
    marker, _, body = rest.partition("\n")
    if shebang != "#!/bin/sh" or marker != _marker(body):
        return None
    words = shlex.split(body)
    return [word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)]


def served_roots(tree: str, stores: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The stores of a hook that are there in this work tree, on this branch, with their roots."""
    for store in stores:
        root = os.path.join(tree, store)
        if os.path.isfile(os.path.join(root, SETTINGS)):
            yield store, root


def follow(tree: str, stores: Iterable[str], *, patience_s: float = PATIENCE_S) -> list[Followed]:
    """Sync stores, each in a process of its own that outlives this one if it must.

    It has a session of its own, so that whoever interrupts git does not interrupt it, and writes to
    a file, so that whoever reads git's output does not wait for it.

    Args:
        tree: The top of the work tree.
        stores: Relative to it; those that are not there are passed over.
        patience_s: How long to wait for all of them.
    """
    deadline = time.monotonic() + patience_s
    with contextlib.ExitStack() as files:
        running = []
        for store, root in served_roots(tree, stores):
            log = files.enter_context(tempfile.TemporaryFile())
            process = start_python(
                "filestore",
                *("--store", root, "git", "follow"),
                cwd=root,
                environment=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            running.append((store, process, log))
        done = []
        for store, process, log in running:
            finished = _ended(process, deadline - time.monotonic())
            log.seek(0)
            said = os.fsdecode(log.read()) if finished else ""
            done.append(Followed(store=store, finished=finished, said=said))
        return done


def _ended(process: "subprocess.Popen[bytes]", timeout_s: float) -> bool:
    try:
        process.wait(max(timeout_s, 0))
    except subprocess.TimeoutExpired:
        return False
    return True
