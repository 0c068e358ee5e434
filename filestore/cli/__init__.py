"""The command line: finds the command, runs it, turns what goes wrong into words and exit codes.

One file a command; only the one that is asked for is imported. stdout is data, stderr the rest.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import Final

COMMANDS: Final = {
    "init": "make a store",
    "add": "bring documents in, or up to date",
    "rm": "remove resources",
    "ls": "list resources, or the chunks of one",
    "show": "show one chunk with its record",
    "status": "what drifted, by stat",
    "verify": "check everything, change nothing",
    "sync": "bring the index in step with the files",
    "repair": "plan what verify found, ask, and mend it",
    "undo": "take a change of files back, or list what can be",
    "redo": "make a change again that was undone",
    "watch": "keep it in step while files change",
    "git": "hooks that keep it in step with what git does",
    "search": "ask a question",
    "evaluate": "how well the store answers questions",
    "embedder": "the models that are here; another one for the store",
    "trust": "let the store reach the service that its settings name",
    "reconstruct": "put a resource's text together again",
    "demo": "a first look, in a temporary folder",
    "tui": "open the inspector",
}
"""Every command with its one line of help; each is a module of this package."""

EXIT_INTERRUPTED: Final = 130
_COLLECTED_AFTER: Final = (100_000, 20, 100)
"""Objects made between two searches for garbage cycles: values of a large store form none, and
looking through them again and again costs more than all the rest of a short command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(*_COLLECTED_AFTER)
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by whoever called: what is written goes nowhere.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if words in (["--version"], ["-V"]):
        from filestore._version import __version__

        sys.stdout.write(f"filestore {__version__}\n")
        return 0
    from filestore.cli import _diagnostics, _parser
    from filestore.errors import FilestoreError

    as_json = "--json" in words
    try:
        options = _parser.parse(words)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except FilestoreError as error:
        return _diagnostics.report(error, as_json=as_json)
    except KeyboardInterrupt:
        return _diagnostics.interrupted(as_json=as_json)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _diagnostics.unwritable(error)
