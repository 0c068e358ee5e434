"""The command line: finds the command, runs it, turns what goes wrong into words and exit codes.

One file a command; only the one that is asked for is imported. stdout is data, stderr the rest.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than all that a command asks of a server.
    from collections.abc import Sequence
    from typing import Final

EXIT_INTERRUPTED: Final = 130
EXIT_PARTIAL: Final = 5
"""Some of what was asked for was done, and some failed. A script that gets 3 knows that nothing
was, one that gets 1 that all was; only this code says that both happened."""
_COLLECTED_AFTER: Final = (100_000, 20, 100)
"""Objects made between two searches for garbage cycles: values of a large store form none, and
looking through them again and again costs more than all the rest of a short command."""


_VERBOSE: Final = frozenset(("-v", "--verbose"))
_ASKS_FOR_HELP: Final = frozenset(("help", "-h", "--help"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(*_COLLECTED_AFTER)
    words = list(sys.argv[1:] if arguments is None else arguments)
    encoding = None
    if arguments is None and (sys.getfilesystemencoding() != "utf-8" or "utf8" in sys._xoptions):
        encoding, words = _in_locale(words)
    for name, mode in (("stdout", "w"), ("stderr", "w"), ("stdin", "r")):
        if getattr(sys, name) is None:
            # Closed by the caller: what is written goes nowhere.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            # A terminal of few characters gets the others escaped.
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    as_json = _as_json(words)
    try:
        if words in (["--version"], ["-V"]):
            from filestore._version import __version__

            sys.stdout.write(f"filestore {__version__}\n")
            sys.stdout.flush()
            return 0
        code = _run(words, asks=encoding is None)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as error:
        from filestore.cli import _output

        return _output.interrupted(error, as_json=as_json)
    except BrokenPipeError:
        # The reader of our output has seen enough; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from filestore.cli import _output

        return _output.unexpected(error, as_json=as_json)


def _run(words: list[str], *, asks: bool) -> int:
    """Run a command, in a server that is there or by itself, and return its exit code.

    Args:
        words: Of the command line.
        asks: Whether a server may be asked: it writes for locales of UTF-8.
    """
    if not _ASKS_FOR_HELP.isdisjoint(words):
        from filestore.cli import _help

        if text := _help.asked(words):
            from filestore.cli import _pager

            _pager.show(text, wanted=_pager.is_wanted(words))
            return 0
    from filestore.server import wire

    began = time.perf_counter()
    reply = wire.reply_to(words) if asks else None
    if reply is not None:
        if "show" in words and sys.stdout.isatty():
            from filestore.cli import _pager

            with _pager.collected(wanted=_pager.is_wanted(words)):
                code = wire.write_reply(reply)
        else:
            code = wire.write_reply(reply)
        if not _VERBOSE.isdisjoint(words[: words.index("--")] if "--" in words else words):
            sys.stderr.write(f"server: answered in {time.perf_counter() - began:.3f} s\n")
        return code
    from filestore.cli import _output, _parser
    from filestore.core.errors import FilestoreError
    from filestore.fs.programs import guarded

    try:
        _output.require_room()
        run, options = _parser.parse(words)
        if run.__name__.removeprefix("run_") in wire.ASKED:
            _output.tell("server: none answered")
        with guarded(), _output.timed("all"):
            return run(options)
    except FilestoreError as error:
        return _output.report(error, as_json=_as_json(words))


def _as_json(words: list[str]) -> bool:
    return any(word.partition("=")[0] == "--json" for word in words)


def _in_locale(words: list[str]) -> tuple[str | None, list[str]]:
    """The encoding of a person whose locale is not of UTF-8, and the words that they typed.

    Python would take names of files in that encoding for other ones. What a person types and reads
    is in it, all else in UTF-8. None for the encoding of this process; where the process has to be
    started anew for that, this does not return.
    """
    import contextlib
    import locale

    from filestore.fs.programs import restart_in_utf8, was_restarted

    restart_in_utf8()
    if not was_restarted():
        return None, words
    encoding = locale.getencoding()
    found = []
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            # Neither UTF-8 nor the name of a file.
            if not os.path.lexists(word):
                with contextlib.suppress(ValueError):
                    word = os.fsencode(word).decode(encoding)
        found.append(word)
    return encoding, found
