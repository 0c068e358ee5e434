"""The one place that starts programs: our own Python, git, a person's editor and desktop.

The working folder may come from a stranger, and both Python and PATH may look there: `python -m`
puts it first on its path, and an empty entry of PATH means it. One rule: nothing in it is run, but
a program that a person names with a slash.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from filestore.core.errors import FilestoreError

if TYPE_CHECKING:
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
            f"names of files are in UTF-8, and this process reads them as {encoding}",
            remedy="start Python with PYTHONUTF8=1, or in a locale of UTF-8",
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


def run_program(command: Sequence[str], **how: Any) -> "subprocess.CompletedProcess[bytes]":
    r"""Run a person's program as `subprocess.run` does, in the environment that they had.

    Until it ends, Ctrl-C and Ctrl-\ are its own, as with git: an editor keeps what is not saved.

    Raises:
        FileNotFoundError: There is no such program.
    """
    import subprocess

    given: dict[str, str | None] = {**os.environ, **_replaced}
    variables = {name: value for name, value in given.items() if value is not None}
    with _interrupts_left_to_it():
        return subprocess.run(_with_file(command), env=variables, check=False, **how)


@contextlib.contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Do nothing at the signals that the keys of a terminal send to every program on it."""
    import signal
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
    """The entries of a path but those that Python, or a variable, took from where it was started.

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
