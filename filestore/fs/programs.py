"""Processes: programs that are started safely, children of ours and their one protocol, forks.

The working folder may come from a stranger, and both Python and PATH may look there: `python -m`
puts it first on its path, and an empty entry of PATH means it. One rule: nothing in it is run, but
a program that a person names with a slash.

A child is a module of ours, started fresh, with a socket to its parent: it inherits no lock, no
thread and no database, and ends when its line does. A message is its length, eight bytes, and that
many bytes; what the bytes mean is up to both ends. Only a child that reads nothing foreign may send
pickles. A fork shares work over values in memory (`shared`), where that takes less time than a
fresh interpreter needs to start; if it dies, that costs time, never a result.
"""

import contextlib
import errno
import marshal
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from filestore.core.errors import FilestoreError

if TYPE_CHECKING:
    import socket
    import subprocess

_OWN: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder, or archive, that this package was imported from."""

_IN_UTF8: Final = "-Xutf8=1"
_replaced: dict[str, str | None] = {}
"""Variables that `guarded` replaced, as the person had them."""


class LocaleError(FilestoreError):
    """The process reads names of files in another encoding than they have."""


def require_utf8() -> None:
    """Refuse to work where names of files would be taken for others.

    Raises:
        LocaleError: The locale of this process is not one of UTF-8.
    """
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise LocaleError(
            f"file names are in UTF-8, but this process reads {encoding}; start it"
            " with PYTHONUTF8=1",
        )


def restart_in_utf8() -> None:
    """Start this process anew with names of files in UTF-8, whatever its locale says.

    Only for one that is ours, at its beginning. It returns where there is no need, or no way.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable and not was_restarted():
        os.execv(sys.executable, [sys.executable, _IN_UTF8, *sys.orig_argv[1:]])


def was_restarted() -> bool:
    """Whether the person's locale has another encoding than this process."""
    return sys.orig_argv[1:2] == [_IN_UTF8]


def find_program(name: str) -> str | None:
    """The file of a program; only absolute entries of PATH are searched for a name."""
    import shutil

    return shutil.which(name, path=_program_path(os.environ))


def start_program(command: Sequence[str], **how: Any) -> "subprocess.Popen[bytes]":
    """Start a program as `subprocess.Popen` does.

    Raises:
        FileNotFoundError: There is no such program.
    """
    import subprocess

    return subprocess.Popen(_with_file(command), **how)


def run_program(
    command: Sequence[str], *, variables: Mapping[str, str] | None = None, **how: Any
) -> "subprocess.CompletedProcess[bytes]":
    r"""Run a person's program as `subprocess.run` does, in the environment that they had.

    Until it ends, Ctrl-C and Ctrl-\ are its own, as with git: an editor keeps what is not saved.

    Args:
        command: The program and its arguments.
        variables: More of them than the person had.
        how: Other arguments of `subprocess.run`.

    Raises:
        FileNotFoundError: There is no such program.
    """
    import subprocess

    given: dict[str, str | None] = {**os.environ, **_replaced, **(variables or {})}
    had = {name: value for name, value in given.items() if value is not None}
    with _interrupts_left_to_it():
        return subprocess.run(_with_file(command), env=had, check=False, **how)


@contextlib.contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Do nothing at the signals that the keys of a terminal send to every program on it."""
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Not SIG_IGN, which the program would inherit.
    numbers = (signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def start_python(
    module: str,
    *arguments: str,
    cwd: str | None = None,
    environment: Mapping[str, str] = os.environ,
    **how: Any,
) -> "subprocess.Popen[bytes]":
    """Start ``python -P -m module arguments…`` as `subprocess.Popen` does.

    It imports what this process imports, but nothing from its working folder, from ours, or from
    the folder of the script that embeds us.

    Args:
        module: Of ours.
        arguments: Its arguments.
        cwd: Its working folder; None for ours.
        environment: What it inherits.
        how: Other arguments of `subprocess.Popen`.
    """
    import subprocess

    path = os.pathsep.join(_importable(sys.path, *([cwd] if cwd else [])))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        cwd=cwd,
        env={**environment, **safe_variables(environment), "PYTHONPATH": path},
        **how,
    )


def safe_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What to change in an environment for what may start Python, or programs by name."""
    safe = {"PATH": _program_path(environment), "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
    if "PYTHONPATH" in environment:
        entries = environment["PYTHONPATH"].split(os.pathsep)
        safe["PYTHONPATH"] = os.pathsep.join(_importable(entries))
    return safe


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Make this process's environment safe: libraries start helpers in it by themselves.

    Only for a process that is ours. `run_program` still gives a person's programs what it replaced.
    """
    if _replaced:
        yield
        return
    safe = safe_variables(os.environ)
    _replaced.update({name: os.environ.get(name) for name in safe})
    os.environ.update(safe)
    try:
        yield
    finally:
        for name, value in _replaced.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _replaced.clear()


def _with_file(command: Sequence[str]) -> list[str]:
    file = find_program(command[0])
    if file is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    return [file, *command[1:]]


def _program_path(environment: Mapping[str, str]) -> str:
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    # An empty PATH would mean the working folder.
    return os.pathsep.join(filter(os.path.isabs, entries)) or os.defpath


def _importable(entries: Iterable[str], *folders: str) -> Iterator[str]:
    """The entries of a path without any that Python, or a variable, took from where it was started.

    The folder that we were imported from stays whatever it is: its code runs already.
    """
    # What Python puts first on the path for a script; for a module that is the working folder.
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    is_script = file and (spec is None or spec.name == "__main__")
    script = os.path.dirname(os.path.realpath(file)) if is_script and file else os.curdir
    started = (os.curdir, os.environ.get("PWD", os.curdir), script, *folders)
    refused = set(map(_identity, started))
    for entry in entries:
        if _identity(entry or os.curdir) == _identity(_OWN):
            yield _OWN
        elif os.path.isabs(entry) and os.pathsep not in entry and _identity(entry) not in refused:
            yield entry


def _identity(path: str) -> object:
    """The same for two paths of one folder."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return path
    return status.st_dev, status.st_ino


_LENGTH_BYTES: Final = 8
_PIECE: Final = 1 << 20
_TAIL_BYTES: Final = 4_000


class Line:
    """One end of the socket between a child and its parent.

    One thread may send while another receives.

    Raises from any method:
        OSError: The other end is gone.
    """

    def __init__(self, end: "socket.socket") -> None:
        self._end = end

    def fileno(self) -> int:
        """The handle, readable once a message comes or the other end is gone."""
        return self._end.fileno()

    def send(self, *parts: bytes) -> None:
        """Send one message of several parts."""
        self._end.sendall(sum(map(len, parts)).to_bytes(_LENGTH_BYTES, "little"))
        for part in parts:
            self._end.sendall(part)

    def receive(self, timeout_s: float | None = None) -> bytes:
        """The next message.

        Raises:
            TimeoutError: It did not come in time; the line is of no use any more.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        length = int.from_bytes(self._read(_LENGTH_BYTES, deadline), "little")
        return self._read(length, deadline)

    def _read(self, size: int, deadline: float | None) -> bytes:
        import select

        waiting = select.poll()
        waiting.register(self, select.POLLIN)
        parts: list[bytes] = []
        while size:
            left_ms = None if deadline is None else max(0, deadline - time.monotonic()) * 1000
            if not waiting.poll(left_ms):
                raise TimeoutError("no answer in time")
            part = self._end.recv(min(size, _PIECE))
            if not part:
                raise ConnectionAbortedError("the other process ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def __iter__(self) -> Iterator[bytes]:
        """Every message until the other end is gone."""
        with contextlib.suppress(ConnectionError):
            while True:
                yield self.receive()

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class Child(Line):
    """A running child, and the parent's end of its line."""

    def __init__(self, module: str, *arguments: str, own_session: bool = False) -> None:
        """Start ``python -P -m module arguments… handle``.

        Args:
            module: Calls `parent_line` and answers until that ends.
            arguments: Its other arguments.
            own_session: Keeps Ctrl-C and password prompts away from the terminal, lets `kill` end
                what the child started as well, and keeps what it wrote for `last_output`; else
                what it writes is dropped.
        """
        import socket
        import subprocess
        import tempfile

        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self._own_session = own_session
        self._output = tempfile.TemporaryFile() if own_session else None  # noqa: SIM115 - `kill`
        output = self._output or subprocess.DEVNULL
        try:
            self._process = start_python(
                module,
                *arguments,
                str(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
                start_new_session=own_session,
            )
        except BaseException:
            ours.close()
            if self._output is not None:
                self._output.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """Of the process; in a session of its own, of its process group as well."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs, even if another process still holds its end of the line."""
        return self._process.poll() is None

    def wait(self, within_s: float | None = None) -> None:
        """Return once it ended by itself, or that took longer."""
        from subprocess import TimeoutExpired

        with contextlib.suppress(TimeoutExpired):
            self._process.wait(within_s)

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self._process.terminate()

    def close(self, within_s: float | None = None) -> None:
        """Close its line so that it ends; kill it if that takes longer."""
        super().close()
        self.wait(within_s)
        self.kill()

    def kill(self) -> int:
        """End it at once; returns its exit status, negative for a signal it died of."""
        super().close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._own_session:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()
        status = self._process.wait()
        if self._output is not None:
            self._output.close()
        return status

    def last_output(self) -> str:
        """The end of what a child in a session of its own wrote to standard output and error."""
        if self._output is None:
            return ""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        return self._output.read().decode("utf-8", "replace").strip()


def parent_line(memory_bytes: int | None = None) -> Line:
    """In a child: its end of the line, the last of its arguments.

    Args:
        memory_bytes: The most address space that a child may have which reads what is foreign: the
            kernel holds it to that, and lets it write no file and leave no core dump. None for one
            that reads what is ours.
    """
    import resource
    import socket

    handle = int(sys.argv[-1])
    os.set_inheritable(handle, False)
    if memory_bytes is not None:
        none = (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)
        for what, most in (*((one, 0) for one in none), (resource.RLIMIT_AS, memory_bytes)):
            _, hard = resource.getrlimit(what)
            allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
            # Not every system limits the address space; time is limited by the one that waits.
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(what, (allowed, allowed))
    return Line(socket.socket(fileno=handle))


MOST_BLOCKS: Final = 255
"""A block is one byte in a pipe: the process that reads it works on it."""

Value = TypeVar("Value")


@contextlib.contextmanager
def shared(
    count: int, work: Callable[[int], Value], *, processes: int
) -> Iterator[Callable[[], list[Value]]]:
    """Begin to work on some blocks, which this process and a forked child take in turns.

    The child is forked first, so that it works while we do something else.

    Args:
        count: How many there are, `MOST_BLOCKS` at most.
        work: What is done for one, in either process: its value is made of what `marshal` knows.
        processes: 2 forks a child; only for a process without threads. With 1 nothing is begun.

    Yields:
        What works on the rest, and gives the values of all blocks in their order.
    """
    if processes < 2 or count < 2:
        yield lambda: [work(number) for number in range(count)]
        return
    turns, given = os.pipe()
    os.write(given, bytes(range(count)))
    os.close(given)
    reader, writer = os.pipe()
    fork = _Fork(work, count)
    try:
        # Closed in any case before the child is waited for, which else may wait for us.
        with os.fdopen(reader, "rb") as sent, os.fdopen(turns, "rb", buffering=0):
            fork.begin(turns, reader, writer)
            yield lambda: fork.results(turns, sent.read)
    finally:
        fork.end()


class _Fork(Generic[Value]):
    def __init__(self, work: Callable[[int], Value], count: int) -> None:
        self._work = work
        self._count = count
        self._child = 0
        self._status: int | None = 1

    def begin(self, turns: int, reader: int, writer: int) -> None:
        """Fork the child, which alone has the end that is written to."""
        own = os.getpid()
        # Ctrl-C waits until `end` knows of the child; the child itself is not asked.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            # Where no child can be forked, this process takes all turns, and nothing is sent.
            with contextlib.suppress(OSError):
                child = os.fork()
                if child == 0:
                    os.close(reader)
                    self._run_child(turns, writer, parent=own)
                self._child, self._status = child, None
            os.close(writer)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def _run_child(self, turns: int, writer: int, *, parent: int) -> None:
        code = 1
        try:
            values = self._take_turns(turns, parent=parent)
            with os.fdopen(writer, "wb") as stream:
                # Read only by the process that this one was forked from, through their own pipe.
                stream.write(marshal.dumps(values))
            code = 0
        finally:
            os._exit(code)

    def _take_turns(self, turns: int, *, parent: int | None = None) -> dict[int, Value]:
        """Take turns that are still free; a child ends with its parent, even a killed one."""
        values: dict[int, Value] = {}
        while turn := os.read(turns, 1):
            if parent is not None and os.getppid() != parent:
                os._exit(1)
            values[turn[0]] = self._work(turn[0])
        return values

    def results(self, turns: int, receive: Callable[[], bytes]) -> list[Value]:
        """The values of all blocks; what the child did not send is made here."""
        values = self._take_turns(turns)
        sent = receive()
        if self._wait() == 0:
            values |= marshal.loads(sent)
        return [
            values[number] if number in values else self._work(number)
            for number in range(self._count)
        ]

    def end(self) -> None:
        """Leave no child behind; one whose results are not needed is killed."""
        if self._status is None:
            os.kill(self._child, signal.SIGKILL)
            self._wait()

    def _wait(self) -> int:
        if self._status is None:
            _, self._status = os.waitpid(self._child, 0)
        return self._status
