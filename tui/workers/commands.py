"""Commands of the program: what they take, and one of them in a process of its own.

One rule: it gets no keyboard, so where it would ask a person it refuses and says what to add.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from filestore import Progress
from filestore.browse import InspectedStore
from filestore.fs.programs import start_python

_PROGRESS: Final = re.compile(r"progress: (.+) (\d+)(?:/(\d+))?")
_PIECE: Final = 1 << 16


def options(_: InspectedStore, _reporter: Any) -> Mapping[str, Sequence[str]]:
    """The options of every command, and of every action of one as "COMMAND ACTION"."""
    from filestore.cli._parser import options_of_commands

    return options_of_commands()


def run(store: InspectedStore, reporter: Any, *, words: Sequence[str]) -> int:
    """Run a command on the store, report what it prints and how far it is; returns its exit code.

    Args:
        store: Named by a variable: what is typed may name another one.
        reporter: Gets lines as they come.
        words: The command, without the program's name.
    """
    variables = {"FILESTORE": store.root, "FILESTORE_PROGRESS": "plain"}
    with start_python(
        "filestore",
        *words,
        environment={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            _report(process, reporter)
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            # What it says of what it leaves is shown, too.
            _report(process, reporter)
            raise


def _report(process: "subprocess.Popen[bytes]", reporter: Any) -> None:
    for line in _lines(process):
        progress = _PROGRESS.fullmatch(line)
        if progress is None:
            reporter.printed(line)
        else:
            stage, done, total = progress.groups()
            number = int(total) if total else None
            reporter.progress(Progress(stage=stage, done=int(done), total=number))


def _lines(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    """What a process prints, line by line; a line without an end in pieces."""
    assert process.stdout is not None
    begun = b""
    while piece := os.read(process.stdout.fileno(), _PIECE):
        *lines, begun = (begun + piece).split(b"\n")
        if len(begun) > _PIECE:
            lines, begun = [*lines, begun], b""
        yield from (line.decode("utf-8", "replace") for line in lines)
    if begun:
        yield begun.decode("utf-8", "replace")
