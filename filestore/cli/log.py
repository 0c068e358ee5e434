"""When the answer to a question changed, and by which commit.

Every commit of the first parents that touched the store is asked as 'search --at' asks it, newest
first, and held against the one before.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from filestore import extract
from filestore.cli import EXIT_INTERRUPTED, _context, _diagnostics, _output
from filestore.core.errors import UsageError
from filestore.core.safe_text import safe_text, shown_path, timestamp
from filestore.past.log import MOST, Log
from filestore.search.query import Mode
from filestore.server.options import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.past.log import AnswerChange, LogEntry

EXAMPLE = "filestore log how long is parental leave"
_NEXT = "interrupted: what was found so far"


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    asked: Annotated[str, argument("QUERY", joined=True)]
    """several words need no quotes; put -- before words that begin with a sign"""
    query: bool = False
    """it is a question, even where a file is called so"""
    max: Annotated[int, option("N")] = MOST
    """ask the newest N commits"""
    k: Annotated[int, option("N")] = 10
    """the first N results count"""
    mode: Mode = "hybrid"
    """what ranks the results"""
    embed: bool = False
    """embed the texts of each commit that never were"""


def run(options: Options) -> int:
    """Look back; 1 where nothing is found."""
    entries: list[LogEntry] = []
    try:
        with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
            if not options.query:
                _refuse_file(options.asked, (os.curdir, store.root, store.places.chunked))
            found = store.log(
                options.asked,
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
        found = Log(asked=options.asked, entries=tuple(entries), notes=(_NEXT,))
        _context.tell(options, found, _words)
        return EXIT_INTERRUPTED
    _context.tell(options, found, _words)
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
            f"'log' of a file was removed, and {shown_path(name)} names one"
            " (--query asks it as a question)",
            remedy=f"git log --follow -- {shlex.quote(name)}",
        )


def _words(found: Log) -> None:
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
