"""When a file, a section, or the answer to a question changed, and by which commit.

PATH is a file of the store, there or gone, or an original; with :LINE the section or the chunk that
holds it. Of a question every commit of the first parents that touched the store is asked, newest
first, and held against the one before.
"""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from filestore.cli import EXIT_INTERRUPTED, _context, _diagnostics, _output
from filestore.core.errors import UsageError
from filestore.core.safe_text import safe_text, shown_path, timestamp
from filestore.past.events import Log
from filestore.search.answer import MODES

if TYPE_CHECKING:
    from filestore.past.events import AnswerChange, FileChange, LogEntry

EXAMPLE = "filestore log handbook/leave.md:12"
_NEXT = "interrupted: what was found so far"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "asked",
        metavar="PATH|QUERY",
        nargs="+",
        help="several words need no quotes; put -- before words that begin with a sign",
    )
    parser.add_argument(
        "--path", action="store_true", help="it is a file: an error where none is or was called so"
    )
    parser.add_argument(
        "--query", action="store_true", help="it is a question, whatever files are called"
    )
    parser.add_argument(
        "--max",
        type=int,
        default=50,
        metavar="N",
        help="at most N changes of a file, or commits that are asked (default: 50)",
    )
    parser.add_argument(
        "-k",
        type=int,
        default=10,
        metavar="N",
        help="of a question: the first N results count (default: 10)",
    )
    parser.add_argument(
        "--mode", choices=MODES, default="hybrid", help="of a question; default: hybrid"
    )
    parser.add_argument(
        "--embed",
        action="store_true",
        help="of a question: embed the texts of each commit that never were",
    )


def run(options: Any) -> int:
    """Look back; 1 where nothing is found."""
    if options.path and options.query:
        raise UsageError("--path and --query exclude each other", remedy="choose one")
    asked = " ".join(options.asked)
    entries: list[LogEntry] = []
    try:
        with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
            found = store.log(
                asked,
                meant_as="path" if options.path else "query" if options.query else "either",
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
        _print(options, Log(asked=asked, about="query", entries=tuple(entries), notes=(_NEXT,)))
        return EXIT_INTERRUPTED
    _print(options, found)
    return 0 if found.entries else 1


def _print(options: Any, found: Log) -> None:
    if options.json:
        _output.write_json(found.to_dict())
        return
    for note in found.notes:
        _diagnostics.say(note)
    for entry in found.entries:
        _entry(entry, has_one=found.about != "query" and len(entry.files) == 1)
    if not found.entries:
        _output.line("nothing found")


def _entry(entry: "LogEntry", *, has_one: bool) -> None:
    commit = entry.commit
    if commit is None:
        _output.line("not committed" if entry.files else "today, as indexed", style="1")
    else:
        when = timestamp(commit.committed).partition(" ")[0]
        author = safe_text(commit.author, keep_newlines=False)
        head = f"{commit.commit[:12]} {when} {author}  {commit.subject}"
        _output.line(_output.clipped(head, _output.WIDTH), style="1")
    for change in entry.files:
        _output.line(f"    {_file(change, has_one=has_one)}")
    for line in _answers(entry):
        _output.line(f"    {line}")


def _file(change: "FileChange", *, has_one: bool) -> str:
    what = {"metadata": "metadata only"}.get(change.what, change.what)
    was = f" from {shown_path(change.was)}" if change.was is not None else ""
    if change.was is not None and change.what != "renamed":
        was = f", renamed{was}"
    path = shown_path(change.path)
    if change.what == "renamed":
        return f"renamed{was} to {path}"
    return f"{what}{was}" if has_one and change.was is None else f"{what} {path}{was}"


def _answers(entry: "LogEntry") -> Iterator[str]:
    if entry.begins:
        yield "the store begins here"
    for change in entry.gained:
        yield f"+ {_named(change)}  #{change.rank}{_first(entry, change)}"
    for change in entry.edited:
        yield f"~ {_named(change)}  #{change.rank}, edited{_first(entry, change)}"
    for change in entry.lost:
        yield f"- {_named(change)}  was #{change.rank}"
    if entry.first is not None and not any(
        change.path == entry.first for change in (*entry.gained, *entry.edited)
    ):
        yield f"^ {shown_path(entry.first)}  first now"


def _first(entry: "LogEntry", change: "AnswerChange") -> str:
    return ", first now" if change.path == entry.first else ""


def _named(change: "AnswerChange") -> str:
    was = f" (was {shown_path(change.was)})" if change.was is not None else ""
    return shown_path(change.path) + was
