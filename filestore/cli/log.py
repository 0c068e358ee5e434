"""When the answer to a question changed, and by which commit.

Every commit of the first parents that touched the store is asked as 'search --at' asks it, newest
first, and held against the one before.
"""

import argparse
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from filestore import extract
from filestore.cli import EXIT_INTERRUPTED, _context, _diagnostics, _output
from filestore.core.errors import UsageError
from filestore.core.safe_text import safe_text, shown_path, timestamp
from filestore.past.log import MOST, Log
from filestore.search.query import MODES

if TYPE_CHECKING:
    from filestore.past.log import AnswerChange, LogEntry

EXAMPLE = "filestore log how long is parental leave"
_NEXT = "interrupted: what was found so far"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "asked",
        metavar="QUERY",
        nargs="+",
        help="several words need no quotes; put -- before words that begin with a sign",
    )
    parser.add_argument(
        "--query", action="store_true", help="it is a question, even where a file is called so"
    )
    parser.add_argument(
        "--max",
        type=int,
        default=MOST,
        metavar="N",
        help=f"ask the newest N commits (default: {MOST})",
    )
    parser.add_argument(
        "-k", type=int, default=10, metavar="N", help="the first N results count (default: 10)"
    )
    parser.add_argument("--mode", choices=MODES, default="hybrid", help="default: hybrid")
    parser.add_argument(
        "--embed", action="store_true", help="embed the texts of each commit that never were"
    )


def run(options: Any) -> int:
    """Look back; 1 where nothing is found."""
    asked = " ".join(options.asked)
    entries: list[LogEntry] = []
    try:
        with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
            if not options.query:
                _refuse_file(asked, (os.curdir, store.root, store.places.chunked))
            found = store.log(
                asked,
                most=options.max,
                k=options.k,
                mode=options.mode,
                embed=options.embed,
                on_progress=on_progress,
                on_entry=entries.append,
            )
    except KeyboardInterrupt:
        if not entries:
            raise
        _print(options, Log(asked=asked, entries=tuple(entries), notes=(_NEXT,)))
        return EXIT_INTERRUPTED
    _print(options, found)
    return 0 if found.entries else 1


def _refuse_file(asked: str, starts: Sequence[str]) -> None:
    """Name the command of git that tells what changed a file, there or gone, of PATH or PATH:LINE.

    Raises:
        UsageError: It is a file's name.
    """
    name = re.sub(r":[0-9]+\Z", "", asked)
    is_there = any(os.path.isfile(os.path.join(start, name)) for start in starts)
    if is_there or (not re.search(r"\s", name) and extract.is_known(os.path.basename(name))):
        raise UsageError(
            f"'log' of a file was removed, and {shown_path(name)} names one",
            remedy=f"git log --follow -- {shlex.quote(name)};"
            " 'filestore log --query' asks it as a question",
        )


def _print(options: Any, found: Log) -> None:
    if options.json:
        _output.write_json(found.to_dict())
        return
    for note in found.notes:
        _diagnostics.say(note)
    for entry in found.entries:
        commit, head = entry.commit, "today, as indexed"
        if commit is not None:
            when = timestamp(commit.committed).partition(" ")[0]
            author = safe_text(commit.author, keep_newlines=False)
            head = f"{commit.commit[:12]} {when} {author}  {commit.subject}"
        _output.line(_output.clipped(head, _output.WIDTH), style="1")
        for line in _answers(entry):
            _output.line(f"    {line}")
    if not found.entries:
        _output.line("nothing found")


def _answers(entry: "LogEntry") -> Iterator[str]:
    def named(one: "AnswerChange") -> str:
        was = f" (was {shown_path(one.was)})" if one.was is not None else ""
        return shown_path(one.path) + was

    if entry.begins:
        yield "the store begins here"
    first = entry.first
    for sign, changes, edited in (("+", entry.gained, ""), ("~", entry.edited, ", edited")):
        for one in changes:
            is_first = ", first now" if one.path == first else ""
            yield f"{sign} {named(one)}  #{one.rank}{edited}{is_first}"
    for one in entry.lost:
        yield f"- {named(one)}  was #{one.rank}"
    if first is not None and all(one.path != first for one in (*entry.gained, *entry.edited)):
        yield f"^ {shown_path(first)}  first now"
