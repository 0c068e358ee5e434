"""Where git keeps what it knows of a folder, and the one place that starts it. Changes nothing.

A `.git` may come from a stranger, and its settings can name programs. One rule: git is shown a
folder of ours in its place, with settings of ours; of the repository it gets HEAD, references,
objects and index, which are data. So no setting has to be known to be harmless. Only where hooks
belong is asked of the repository itself, by `rev-parse`, which starts nothing.
"""

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, TYPE_CHECKING, Final

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.fs import part
from filestore.fs.part import NotAFileError
from filestore.fs.programs import safe_variables, start_program

if TYPE_CHECKING:
    import subprocess
    import threading

POINTER_BYTES: Final = 4096
FILES: Final = ("HEAD", "commondir", "index")
"""What git reads from the folder of a work tree's state, whatever it is asked."""
SHARED_FILES: Final = ("packed-refs", "shallow")
SHARED_FOLDERS: Final = ("objects", "objects/info", "objects/pack", "refs")
"""The same from the folder that linked work trees share: these with what lies below, the objects
themselves left out, of which there may be many."""
SETTINGS_FILES: Final = frozenset({"config", "config.worktree"})
"""Read as well where the settings of a repository are asked for."""


def work_tree(folder: str) -> str | None:
    """The git work tree around a folder; None without git."""
    while True:
        state = state_folder(folder) if os.path.exists(os.path.join(folder, ".git")) else None
        # Git, too, takes nothing else of that name for its own.
        if state is not None and os.path.lexists(os.path.join(state, "HEAD")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def state_folder(tree: str) -> str | None:
    """The folder in which git keeps the state of a work tree."""
    path = os.path.join(tree, ".git")
    if os.path.isdir(path):
        return path
    # A linked work tree or a submodule: the file says where the folder is.
    word, _, target = read_start(path, POINTER_BYTES).partition(b": ")
    named = os.fsdecode(target.strip())
    return os.path.join(tree, named) if word == b"gitdir" and "\0" not in named else None


def common_folder(state: str) -> str:
    """The folder that a linked work tree shares with the others: all but its HEAD and its index."""
    shared = read_start(os.path.join(state, "commondir"), POINTER_BYTES).strip()
    return os.path.realpath(os.path.join(state, os.fsdecode(shared.partition(b"\0")[0])))


def require_files(state: str, *, settings: bool = False, objects: bool = False) -> None:
    """Refuse what git would wait for, or read without end: a pipe in the place of a file, say.

    Args:
        state: The folder in which git keeps the state of a work tree.
        settings: Whether the settings are to be read.
        objects: Whether each object is looked at, too.

    Raises:
        NotAFileError: There is such a thing.
    """
    common = common_folder(state)
    own = (*FILES, *(SETTINGS_FILES if settings else ()))
    shared = (*SHARED_FILES, *(SETTINGS_FILES if settings else ()))
    places = [os.path.join(state, name) for name in own]
    places += [os.path.join(common, name) for name in shared]
    for name in SHARED_FOLDERS:
        folder = os.path.join(common, name)
        _require(folder, stat.S_IFDIR)
        if name != "objects" or objects:
            places += _no_files_below(folder)
    for path in places:
        _require(path, stat.S_IFREG)


def _require(path: str, kind: int) -> None:
    try:
        found = stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        # Git says itself what it cannot look at.
        return
    if found != kind:
        what = part.KINDS.get(found, "something unknown")
        raise part.not_a_file(path, f"is {what}, not {part.KINDS[kind]}")


def _no_files_below(folder: str) -> Iterator[str]:
    """What is neither a file nor a folder, at any depth."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _no_files_below(entry.path)
            elif not entry.is_file() and not entry.is_dir():
                yield entry.path


def read_start(path: str, most: int) -> bytes:
    """The first bytes of a regular file; none of anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(handle, most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(handle)


TIMEOUT_S: Final = 30.0
MOST_BYTES: Final = 256 * 1024 * 1024
"""More than this is not taken from one answer."""

_CONFIG: Final = """\
[core]
\trepositoryformatversion = 1
\tbare = false
\tfsmonitor = false
\thooksPath = /dev/null
[log]
\tshowSignature = false
[protocol]
\tallow = never
"""
_LINKED: Final = ("refs", "packed-refs", "shallow", "reftable", "logs")
"""What git reads from the folder of a repository, besides its objects and its index."""
_OF_ITS_OWN: Final = ("reftable", "logs")
"""The ones that each linked work tree has."""
_HEAD: Final = re.compile(rb"ref: refs/[^\x00-\x20\x7f]+|[0-9a-f]{40}|[0-9a-f]{64}")
_EXTENSIONS: Final = {
    rb"(?im)^[^#;\n]*\bobjectformat\s*=\s*\"?sha256": "objectFormat = sha256",
    rb"(?im)^[^#;\n]*\brefstorage\s*=\s*\"?reftable": "refStorage = reftable",
}
"""The two settings without which a repository cannot be read; a wrong one only makes git fail."""
_CONFIG_BYTES: Final = 1 << 20
_PIECE: Final = 1 << 20
_AT_ONCE: Final = 64
_MOST_HELD: Final = 32 << 20


class NoAnswerError(FilestoreError):
    """Git cannot be asked: it is not installed, takes too long, or there is no repository."""


class GitAnswer(Struct, frozen=True, kw_only=True):
    """What git answered."""

    status: int
    output: bytes
    message: str
    """What it wrote for a person, mostly why it failed."""


def environment() -> dict[str, str]:
    """The environment in which git answers about the folder it is asked about, and changes nothing.

    A hook runs with variables that point elsewhere; a clone's settings must not start a program.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    # An object that is not here is not fetched: newer git obeys the first, any git the second.
    offline = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    literal = {"GIT_LITERAL_PATHSPECS": "1"}
    return kept | safe_variables(kept) | quiet | offline | literal


def ask(folder: str, *words: str, index: str = "", given: bytes = b"") -> GitAnswer:
    """What git says of the repository around a folder, whatever the settings of that are.

    Args:
        folder: Where git runs: paths of the command and of the answer are relative to it, as far as
            the command has them so.
        words: A command that reads objects, references or the index.
        index: Another index than the repository's; absolute.
        given: What it is given to read.

    Raises:
        NoAnswerError: There is no git or no repository, or it takes too long.
    """
    with _apart(folder, index) as variables:
        return _answer(["git", "--no-pager", *words], folder, variables, given)


def ask_where(folder: str, *words: str) -> GitAnswer:
    """What `git rev-parse` says of places: the one question that takes a repository's settings.

    Raises:
        NoAnswerError: There is no git, or it takes too long.
    """
    _require_places(_state_of(folder)[1], settings=True)
    return _answer(["git", "rev-parse", *words], folder, environment())


def merge_files(folder: str, *words: str) -> GitAnswer:
    """What `git merge-file` makes of files in a folder that lies in no repository.

    Raises:
        NoAnswerError: There is no git, or it takes too long.
    """
    outside = {"GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
    return _answer(["git", "merge-file", *words], folder, environment() | _SETTINGLESS | outside)


class Blobs:
    """A git process that hands out blobs by name."""

    def __init__(self, folder: str) -> None:
        """Start it.

        Args:
            folder: Of a work tree.

        Raises:
            NoAnswerError: There is no git or no repository.
        """
        with contextlib.ExitStack() as stack:
            variables = stack.enter_context(_apart(folder, ""))
            self._folder = folder
            command = ["git", "--no-pager", "cat-file", "--batch"]
            self._process = stack.enter_context(_started(command, folder, variables))
            self._closing = stack.pop_all()

    def __enter__(self) -> "Blobs":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._closing.close()

    def read(self, name: str, limit: int) -> tuple[int, bytes]:
        """The size of a blob and its bytes; none where it is larger than a limit.

        Args:
            name: Of the blob, or ``commit:path``; without a line end.
            limit: The most bytes that are taken.

        Raises:
            NoAnswerError: Git does not have it.
        """
        (found,) = self.read_all([name], limit)
        if found is None:
            raise NoAnswerError(f"git has no blob {name}", remedy="git fsck")
        return found

    def read_all(self, names: Iterable[str], limit: int) -> Iterator[tuple[int, bytes] | None]:
        """What `read` gives for each of some names; None for what git does not have.

        Raises:
            NoAnswerError: Git ended, or takes too long.
        """
        remaining = iter(names)
        # This many questions fit into the pipe while git waits for its answers to be read.
        while some := list(islice(remaining, _AT_ONCE)):
            asked = b"".join(os.fsencode(name) + b"\n" for name in some)
            left = len(some)
            while left:
                found = self._answers(asked, left, limit)
                if not found:
                    raise NoAnswerError(f"git has no blob {some[-left]}", remedy="git fsck")
                yield from found
                asked, left = b"", left - len(found)

    def _answers(self, asked: bytes, count: int, limit: int) -> list[tuple[int, bytes] | None]:
        """The answers to some questions, as many as are worth holding; none where git gives up."""
        found: list[tuple[int, bytes] | None] = []
        held = 0
        with _patience(self._process) as late, contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.write(asked)
            self._process.stdin.flush()
            while len(found) < count and held < _MOST_HELD:
                answer = self._answer(limit)
                if answer is None:
                    break
                held += len(answer[1])
                found.append(answer if answer[0] >= 0 else None)
        if late.is_set():
            raise _took_too_long(["git", "cat-file"], self._folder)
        return found

    def _answer(self, limit: int) -> tuple[int, bytes] | None:
        """Size and bytes of one answer, the size being negative where there is no such blob."""
        answers = self._process.stdout
        assert answers is not None
        line = answers.readline(POINTER_BYTES)
        words = line.split()
        if line.endswith((b" missing\n", b" ambiguous\n")):
            return -1, b""
        if len(words) != 3:
            return None
        size, is_blob = int(words[2]), words[1] == b"blob"
        # What is no blob is read as well, or the next answer would begin with it.
        wanted = is_blob and size <= limit
        data, left = (answers.read(size), 0) if wanted else (b"", size)
        while left > 0:
            left -= len(answers.read(min(left, _PIECE))) or left
        answers.read(1)
        if wanted and len(data) < size:
            return None
        return (size, data) if is_blob else (-1, b"")


# How git is started

_SETTINGLESS: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
}


@contextlib.contextmanager
def _apart(folder: str, index: str) -> Iterator[dict[str, str]]:
    """The variables with which git reads a repository and none of its settings."""
    tree, state = _state_of(folder)
    if tree is None or state is None:
        raise NoAnswerError(f"{folder} lies in no git work tree", remedy="git init")
    _require_places(state)
    import tempfile

    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="filestore-git-"))
            common = _furnish(place, state)
        except (OSError, ValueError) as error:
            raise NoAnswerError(f"git's folder {state} cannot be read: {error}") from error
        yield (
            environment()
            | _SETTINGLESS
            | {
                "GIT_DIR": place,
                "GIT_WORK_TREE": tree,
                "GIT_OBJECT_DIRECTORY": os.path.join(common, "objects"),
                "GIT_INDEX_FILE": index or os.path.join(state, "index"),
            }
        )


def _state_of(folder: str) -> tuple[str | None, str | None]:
    """The work tree around a folder, and where git keeps its state; None without git."""
    tree = work_tree(os.path.realpath(folder))
    return tree, None if tree is None else state_folder(tree)


def _require_places(state: str | None, *, settings: bool = False, objects: bool = False) -> None:
    """Raise what git would wait for, by its name, before it is started."""
    if state is None:
        return
    try:
        require_files(state, settings=settings, objects=objects)
    except NotAFileError as error:
        remedy = f"{error.remedy}, or clone the repository again"
        raise NoAnswerError(error.message, remedy=remedy) from error


def _furnish(place: str, state: str) -> str:
    """Make a folder one that git takes for a repository; returns where its objects are."""
    common = common_folder(state)
    config = read_start(os.path.join(common, "config"), _CONFIG_BYTES)
    needed = [line for pattern, line in _EXTENSIONS.items() if re.search(pattern, config)]
    path = os.path.join(state, "HEAD")
    # Old repositories have a link in its place.
    is_link = os.path.islink(path) and os.readlink(path).startswith("refs/")
    linked = b"ref: " + os.fsencode(os.readlink(path)) if is_link else b""
    head = linked or read_start(path, POINTER_BYTES)
    if not _HEAD.fullmatch(head.strip()) or b".." in head:
        raise ValueError("HEAD names no commit")
    with open(os.path.join(place, "config"), "wb") as file:
        file.write(("\n\t".join([f"{_CONFIG}[extensions]", *needed]) + "\n").encode())
    with open(os.path.join(place, "HEAD"), "wb") as file:
        file.write(head.strip() + b"\n")
    for name in _LINKED:
        found = os.path.join(state if name in _OF_ITS_OWN else common, name)
        if os.path.isdir(found) or os.path.isfile(found):
            os.symlink(found, os.path.join(place, name))
    for name in os.listdir(state):
        if name.startswith("sharedindex."):
            os.symlink(os.path.join(os.path.realpath(state), name), os.path.join(place, name))
    return common


def _answer(
    command: Sequence[str], folder: str, variables: dict[str, str], given: bytes = b""
) -> GitAnswer:
    import tempfile

    with (
        tempfile.TemporaryFile() as standard_input,
        tempfile.TemporaryFile() as messages,
        contextlib.ExitStack() as stack,
    ):
        standard_input.write(given)
        standard_input.seek(0)
        process = stack.enter_context(
            _started(command, folder, variables, standard_input, messages)
        )
        stack.callback(process.kill)
        late = stack.enter_context(_patience(process))
        assert process.stdout is not None
        output = process.stdout.read(MOST_BYTES)
        if process.stdout.read(1):
            raise NoAnswerError(f"{_named(command)} answers with more than {MOST_BYTES:,} bytes")
        status = process.wait()
        if late.is_set():
            raise _took_too_long(command, folder)
        messages.seek(0)
        words = messages.read(_PIECE).decode("utf-8", "surrogateescape").strip()
        return GitAnswer(status=status, output=output, message=words)


def _took_too_long(command: Sequence[str], folder: str) -> NoAnswerError:
    """What to say of git that was ended; what it waited for is named where that can be seen."""
    try:
        _require_places(_state_of(folder)[1], settings=True, objects=True)
    except NoAnswerError as error:
        return error
    return NoAnswerError(
        f"{_named(command)} took longer than {TIMEOUT_S:g} s in {folder}",
        remedy=f"'git -C {shlex.quote(folder)} fsck' shows what keeps it waiting",
    )


def _named(command: Sequence[str]) -> str:
    return f"git {next(word for word in command[1:] if not word.startswith('-'))}"


def _started(
    command: Sequence[str],
    folder: str,
    variables: dict[str, str],
    standard_input: IO[bytes] | None = None,
    messages: IO[bytes] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start git; a pipe for input that is not given, and messages that are not asked for lost."""
    import subprocess

    try:
        return start_program(
            command,
            cwd=folder,
            env=variables,
            stdin=standard_input or subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages or subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        missing = error.filename in ("git", None)
        reason = "git is not installed" if missing else f"there is no folder {folder}"
        raise NoAnswerError(reason, remedy="install git" if missing else "") from error
    except (OSError, ValueError) as error:
        raise NoAnswerError(f"git cannot be run: {error}; install git") from error


@contextlib.contextmanager
def _patience(process: "subprocess.Popen[bytes]") -> "Iterator[threading.Event]":
    """End a process that takes too long; the event tells that it was."""
    import threading

    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(TIMEOUT_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
