"""What a command says: results on stdout, all else on stderr. Nothing from a file goes out raw."""

import contextlib
import json
import os
import re
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from filestore.cli import EXIT_INTERRUPTED, _terminal
from filestore.core.caller import absolute, other_caller
from filestore.core.codes import CODES, SEVERITY_WORDS
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.findings import NOTHING, Finding, is_clean
from filestore.core.safe_text import inner_word, safe_json, safe_text, shown_path, without_name
from filestore.core.schema import Failure

if TYPE_CHECKING:
    from filestore.config.layout import Places
    from filestore.core.paths import StorePath
    from filestore.search.metrics import Difference, Scores
    from filestore.sync.apply import SyncReport


T = TypeVar("T")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_SHOWN = 10
"""Paths listed under one code; the rest is counted."""


def write_json(value: dict[str, Any]) -> None:
    """Print one JSON object, or the fields of it that are wanted."""
    _write_whole(_wanted(value))


def _write_whole(value: dict[str, Any]) -> None:
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.flush()
    sys.stdout.write(_json_text(data))
    sys.stdout.flush()


def write_json_line(value: dict[str, Any]) -> None:
    """Print one JSON object on one line, at once: one event of a command that goes on."""
    data = orjson.dumps(_wanted(value), option=orjson.OPT_APPEND_NEWLINE)
    sys.stdout.write(_json_text(data))
    sys.stdout.flush()


def _wanted(value: dict[str, Any]) -> dict[str, Any]:
    if not (fields := _terminal.wishes().fields):
        return value
    from filestore.cli._fields import picked

    found: dict[str, Any] = picked(value, fields)
    return found


def _json_text(data: bytes) -> str:
    """JSON that can be written in any encoding."""
    text = safe_json(data).decode()
    if getattr(sys.stdout, "encoding", None) in (None, "utf-8", "UTF-8"):
        return text
    return _NOT_ASCII.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def line(text: str = "", *, style: str = "") -> None:
    """Print one line, made safe for a terminal; on a narrow one it is broken between words."""
    safe = safe_text(text)
    if 0 < _terminal.columns() < _terminal.USUAL:
        safe = "\n".join(map(_fitted, safe.split("\n")))
    if style and _terminal.colours():
        safe = f"\x1b[{style}m{safe}\x1b[0m"
    sys.stdout.write(safe + "\n")


def styled(pieces: Iterable[tuple[str, str]], *, link: str = "") -> None:
    """Print one line of several styles, made safe for a terminal.

    Args:
        pieces: Texts with their styles.
        link: An address that the first piece leads to; "" for none.
    """
    colours = _terminal.colours()
    for text, style in pieces:
        safe = one_line(text)
        if link:
            safe, link = f"\x1b]8;;{link}\x1b\\{safe}\x1b]8;;\x1b\\", ""
        sys.stdout.write(f"\x1b[{style}m{safe}\x1b[0m" if safe and style and colours else safe)
    sys.stdout.write("\n")


def wrapped(head: str, parts: Iterable[str]) -> None:
    """Print a list in lines as wide as the terminal."""
    text = "; ".join(parts)
    width = _terminal.width()
    for one in textwrap.wrap(text, width, initial_indent=head, subsequent_indent="    "):
        line(one)


_SEVERITY_STYLE = {"E": "31", "W": "33", "I": "2"}


def findings(found: Iterable[Finding]) -> None:
    """Print findings grouped by code, worst first as they come; accepted ones are marked."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.code, []).append(finding)
    for code, members in groups.items():
        worst = members[0]
        if code == "not-read":
            from filestore.extract import count_by_suffix

            counted = count_by_suffix(member.path for member in members)
            for one in folded(f"not read: {counted}", indent=4):
                line(one, style=_SEVERITY_STYLE[worst.severity])
            continue
        repair = _as_typed(worst.repair)
        head = f"{SEVERITY_WORDS[worst.severity]} {code} ({len(members):,}): {repair}"
        for one in folded(head, indent=4):
            line(one, style=_SEVERITY_STYLE[worst.severity])
        for member in first(members, _SHOWN, rest=""):
            path = f"    {shown_path(member.path)}{' (accepted)' if member.accepted else ''}"
            detail = "" if member.meaning.self_evident else member.detail
            with_detail(path, shown_path(without_name(member.path, detail)))


def with_detail(path: str, detail: str, write: Callable[[str], None] = line) -> None:
    """Print a path and its detail: on one line where both fit, else the detail below."""
    if len(path) + 2 + len(detail) <= _terminal.width():
        write(f"{path}  {detail}".rstrip())
        return
    write(path)
    for one in folded(f"        {detail}", indent=8):
        write(one)


def _fitted(line: str) -> str:
    room = _terminal.room()
    if len(line) <= room:
        return line
    blanks = len(line) - len(line.lstrip())
    return "\n".join(folded(line, indent=min(blanks + 2, room // 2)))


def folded(text: str, *, indent: int) -> list[str]:
    """A text in lines as wide as the terminal, words and commands left whole where they fit."""
    width = _terminal.width()
    # No blank: no line ends there.
    text = re.sub(
        rf"'filestore [^']{{,{max(width - indent - 12, 0)}}}'",
        lambda found: found[0].replace(" ", "\0"),
        text,
    )
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [one.replace("\0", " ") for one in lines]


def next_command(found: Sequence[Finding], places: "Places | None") -> None:
    """Print the command that repairs findings, and the one for what it leaves.

    Args:
        found: Findings.
        places: Where the store lies; None where it cannot be opened.
    """
    serious = [one for one in found if one.severity != "I" and not one.accepted]
    if places is not None and way_out(places, found):
        serious = [one for one in serious if one.code != "conflict-markers"]
    safe = sum(finding.safe for finding in serious)
    if safe:
        from filestore.sidecar.vector_home import is_doubted

        full = any(one.meaning.repaired_after == "full" for one in serious if one.safe)
        full = full or is_doubted(serious)  # which a plain sync does not ask
        line(f"'{command('sync --full' if full else 'sync')}' repairs {safe:,} of {len(serious):,}")
    others = [one for one in serious if not one.safe and not one.meaning.refused]
    if others:
        is_deep = any(one.meaning.repaired_after == "full" for one in others)
        level = " --level full" if is_deep else ""
        line(f"'{command(f'repair{level} --plan')}' shows what can be done about the rest")


def way_out(
    places: "Places", found: Sequence[Finding], chosen: "Collection[StorePath]" = ()
) -> bool:
    """Print the commands that lead out of git's conflict; returns whether there is one.

    Args:
        places: Where the store lies.
        found: Findings.
        chosen: Files in which a side was chosen just now.
    """
    if not any(one.meaning.of_git for one in found):
        return False
    from filestore.repair import way_out as leading

    way = leading.way_out(places, found, chosen)
    if way is None:
        return False
    # Without a terminal to ask on, the command has to say so.
    yes = "" if sys.stdin.isatty() else " --yes"
    for number, side in enumerate(("ours", "theirs")) if way.choose or way.by_git else ():
        name = way.names.of(side)
        line(f"{side}{f' ({name})' if name else ''}:")
        if way.choose:
            line(f"    {command(way.command(places, side))}{yes}")
        for commands in first(way.by_git, _SHOWN, rest="; see 'git status'"):
            line(f"    {commands[number]}")
    for path, side in way.deleted:
        line(f"    {shown_path(path)}: {side} deleted it")
    for path in way.edit:
        line(f"{shown_path(path)}: its conflict markers are incomplete; edit it")
    if way.commands:
        line("next:")
    for of_git in way.commands:
        line(f"    {of_git}")
    return True


_NAMED: Final = re.compile(r"((?:^|(?<=try: )|(?<='))filestore )(?=[a-z])(?!init\b|help\b)")
"""Where a sentence of ours names a command that works on a store."""


def command(words: str) -> str:
    """A command of ours as it is typed here, with the --store that this one was given."""
    return _as_typed(f"filestore {words}")


def _as_typed(text: str) -> str:
    store = _terminal.wishes().store
    if not store:
        return text
    if store.startswith("-"):
        store = f"./{store}"
    return _NAMED.sub(lambda found: f"{found[1]}--store {inner_word(store)} ", text)


def count(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def left_out(sentences: Sequence[str], more: int) -> None:
    """Say on stderr what could not be taken, the first of it one by one."""
    for sentence in sentences[:_SHOWN]:
        sys.stderr.write(one_line(f"left out: {sentence}") + "\n")
    rest = len(sentences[_SHOWN:]) + more
    if rest:
        sys.stderr.write(f"left out: … and {rest:,} more\n")


def first(
    items: Collection[T],
    most: int,
    write: Callable[[str], None] = line,
    *,
    indent: str = "    ",
    rest: str = "; --json lists them all",
) -> Iterator[T]:
    """The first of some items, to be printed one by one; then says how many are not shown."""
    yield from islice(items, most)
    if len(items) > most:
        write(f"{indent}… and {len(items) - most:,} more{rest}")


def score_table(
    count: int, rows: "Iterable[tuple[str, Scores | None]]", *, names: int, each: int = 12
) -> None:
    """Print mean scores of the first `count` results, in columns of the widths `names` and `each`.

    A row is a name with its scores; None where it has none.
    """
    heads = "".join(f"{name}@{count}".rjust(each) for name in ("nDCG", "recall", "MRR"))
    line(f"{'':{names}}{heads}", style="1")
    for name, scores in rows:
        found = (scores.ndcg, scores.recall, scores.mrr) if scores else ()
        figures = [f"{one:{each}.4f}" for one in found] or ["–".rjust(each)] * 3
        line(f"{name:{names}}{''.join(figures)}")


def interval(difference: "Difference") -> str:
    """How far two means are apart."""
    low, high = difference.interval_95
    return f"{difference.mean:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}"


def one_line(text: str) -> str:
    """A text of others, safe on a line of ours."""
    return safe_text(text, keep_newlines=False)


def clipped(text: str, width: int) -> str:
    """A text on one line, its end cut where it is longer."""
    plain = one_line(text)
    return plain if len(plain) <= width else f"{plain[: max(1, width - 1)]}…"


def cut_line(text: str, *, end: str = "", indent: int = 0, style: str = "") -> None:
    """Print a text that is cut where a line of 80 columns ends.

    Args:
        text: Of others.
        end: Ours, behind it; never cut.
        indent: Columns before the text.
        style: Of the line, or of the lines where the terminal is narrower.
    """
    blank = " " * indent
    shown = clipped(text, _terminal.USUAL - indent - len(end))
    for one in folded(f"{blank}{shown}{end}", indent=indent):
        line(one, style=style)


def pages(numbers: Sequence[int]) -> str:
    """Where to look in the source, behind a comma; "" where it has no pages."""
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f", page {numbers[0]}"
    return f", pages {numbers[0]} to {numbers[-1]}"


_DONE: Final = {
    "rebuild-catalog": ("rebuilt the catalog", ""),
    "salvage": ("rebuilt the embeddings from the sound ones", ""),
    "index": ("indexed", "new file"),
    "reindex": ("re-indexed", "changed file"),
    "update-record": ("updated the metadata of", "file"),
    "forget": ("removed from the index", "missing file"),
    "repoint": ("updated the path of", "renamed file"),
    "collect": ("deleted", "temporary file"),
    "embed": ("added missing vectors", ""),
    "rebuild-index": ("rebuilt the vector index", ""),
    "rebuild-fulltext": ("rebuilt the full-text index", ""),
}
"""What a sync did by a kind of step: a verb, and what it counts, if anything."""


def done(applied: Iterable[Finding]) -> str:
    """What a sync did, in words."""
    parts = []
    for kind, number in Counter(CODES[finding.code].step for finding in applied).items():
        verb, noun = _DONE.get(kind, ("repaired", "finding"))
        parts.append(f"{verb} {count(number, noun)}" if noun else verb)
    return "; ".join(parts) or NOTHING


def embedded(number: int, reused: int) -> str:
    """How many passages were embedded, and how many were not for being in the cache."""
    return f"embedded {count(number, 'passage')} ({reused:,} from cache)"


def synced(report: "SyncReport") -> None:
    """Say what a sync did, and what it left."""
    is_clean_now = is_clean(report.remaining)
    if _terminal.wishes().quiet and is_clean_now:
        return
    line(done(report.applied))
    line(embedded(report.embedded, report.reused))
    if report.uncounted:
        line(f"keyword scores no longer count {count(report.uncounted, 'deleted passage')}")
    if report.pruned:
        line(f"removed {count(report.pruned, 'embedding')} that no passage here and no undo has")
    if any(one.code == "missing" and one.tree.is_written for one in report.applied):
        line(f"to restore a missing file: {command('repair --path PATH --write-files')}")
    if not is_clean_now:
        line("left for you:")
    findings(report.remaining)


_FILES = 128
"""Open files that must be allowed: a sync of a large store has half as many."""
_MEMORY_BYTES = {"v": 1536 << 20, "d": 512 << 20}
"""Option of ulimit to so much as must be allowed, to index some hundred files on one core."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def report(error: FilestoreError, *, as_json: bool) -> int:
    """Say what went wrong and what to do; returns the exit code."""
    if as_json:
        _write_whole(Failure.of(error).to_dict())
    else:
        say_error("filestore", error)
    return error.exit_code


def exit_code_of(report: "SyncReport") -> int:
    """The exit code of a sync; says why passages were left without vectors."""
    left = left_without(report.problem)
    if report.mass_missing:
        return 4
    return left or (0 if is_clean(report.remaining) else 1)


def left_without(problem: FilestoreError | None) -> int:
    """Say why passages were left without vectors; returns the exit code."""
    from filestore.embed import ModelMissing, UnknownEmbedder
    from filestore.sidecar.model import ModelChanged
    from filestore.sidecar.models import NotEmbedded

    if problem is None:
        return 0
    say(f"filestore: {problem.message}")
    by = "the store's own model" if isinstance(problem, NotEmbedded) else "keyword"
    say(f"  passages without vectors are found by {by}; 'filestore sync' tries again")
    _say_remedy(problem)
    # A model that is not here is a finding like any other; one that fails is a failure.
    is_finding = isinstance(problem, ModelMissing | ModelChanged | UnknownEmbedder)
    return 1 if is_finding else problem.exit_code


def interrupted(error: KeyboardInterrupt, *, as_json: bool) -> int:
    """Say what an interruption left; returns the exit code."""
    (done, following), *_ = (
        *(note.split("\n") for note in getattr(error, "__notes__", ())),
        ("what was done so far is kept", "run it again"),
    )
    message = f"interrupted: {done}; {following} to continue"
    if as_json:
        _write_whole(Failure("interrupted", message, following).to_dict())
    else:
        say(f"filestore: {message}")
    return EXIT_INTERRUPTED


def require_room() -> None:
    """See to it that enough files can be opened and enough memory can be taken.

    A file that cannot be opened would pass for damaged; native libraries end the process where
    there is no memory.

    Raises:
        LimitReachedError: A limit of this process is too low, and may not be raised.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        if hard != resource.RLIM_INFINITY and hard < _FILES:
            from filestore.fs.disk import too_few_files

            raise too_few_files()
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, hard))
    limits = {"v": resource.RLIMIT_AS, "d": resource.RLIMIT_DATA}
    for option, least in _MEMORY_BYTES.items():
        soft, _ = resource.getrlimit(limits[option])
        if soft == resource.RLIM_INFINITY:
            continue
        # Each of their threads takes room, and else there are as many as the machine has cores.
        for name in _THREADS:
            os.environ.setdefault(name, "1")
        if soft < least:
            from filestore.fs.disk import LimitReachedError

            raise LimitReachedError(
                f"this process may take {soft:,} bytes of memory, {least:,} are needed",
                remedy=f"'ulimit -{option} unlimited' raises the limit, in a new shell",
            )


def unexpected(error: Exception, *, as_json: bool) -> int:
    """Say what the machine refused; returns the exit code. Raises what is a fault of ours."""
    from filestore.fs.disk import pass_limits

    if not isinstance(error, OSError | MemoryError):
        # Python prints it below the traceback.
        error.add_note("try: filestore doctor")
        raise error
    try:
        pass_limits(error)
    except FilestoreError as reason:
        return report(reason, as_json=as_json)
    if isinstance(error, MemoryError):
        return FilestoreError.exit_code
    if error.filename is not None:
        problem = FilestoreError(
            f"cannot use {os.fsdecode(error.filename)}: {error.strerror}",
            remedy="filestore doctor",
            detail=str(error),
        )
        return report(problem, as_json=as_json)
    if isinstance(error, FileNotFoundError):
        # Of what needs no name, only the working folder can be missing.
        gone = FilestoreError("the folder that this runs in is gone: cd to a folder that is there")
        return report(gone, as_json=as_json)
    say(f"filestore: cannot write the answer: {error.strerror or error}")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FilestoreError.exit_code


def say(text: str) -> None:
    """Write one line to stderr; where stderr cannot be written, the exit code has to do."""
    with contextlib.suppress(OSError):
        # Errors contain names of files.
        sys.stderr.write(_as_typed("\n".join(map(shown_path, text.split("\n")))) + "\n")


def paged() -> AbstractContextManager[None]:
    """Until the block ends keep what is printed, and show it through a pager where it is long."""
    from filestore.cli import _pager

    wishes = _terminal.wishes()
    is_here = other_caller() is None
    return _pager.collected(wanted=is_here and not (wishes.no_pager or wishes.no_input))


def note(text: str) -> None:
    """Say what is worth knowing, unless a person wants results and errors alone."""
    if not _terminal.wishes().quiet:
        say(text)


def tell(text: str) -> None:
    """Say how an answer comes about, to a person who wants to know."""
    if _terminal.wishes().verbose:
        say(text)


@contextlib.contextmanager
def timed(phase: str) -> Iterator[str]:
    """Tell how long a phase takes, to a person who wants to know."""
    began = time.perf_counter()
    try:
        yield phase
    finally:
        tell(f"{phase}: {time.perf_counter() - began:.3f} s")


def say_error(head: str, error: FilestoreError) -> None:
    """Write to stderr what went wrong, and what to do."""
    say(f"{head}: {error.message}")
    _say_remedy(error)


def say_failed(path: str, error: FilestoreError) -> None:
    """Write to stderr that a document failed and why, with its path once, as a person wrote it."""
    message = error.message
    for name in (path, absolute(path), os.path.basename(path)):
        named = re.escape(name)
        repeats = (
            rf"^{named}(?:: | (?=is |belongs ))",
            rf"(?<=^cannot read) {named}(?=: )",
            rf": {named}(?=;|$)",
        )
        message = re.sub("|".join(repeats), "", message)
    say(f"failed {shown_path(path)}: {message}")
    _say_remedy(error)


def _say_remedy(error: FilestoreError) -> None:
    for line in error.remedy_lines:
        say(f"  {line}")


def ask(words: str) -> None:
    """Say what is to happen, and ask on the terminal; without one --yes is needed.

    Raises:
        RefusedError: No terminal is there to ask on, or the answer is no.
    """
    if not _terminal.can_ask():
        raise RefusedError(f"{words}: add --yes")
    say(words)
    go_on()


def go_on(question: str = "go on?", *, refused: str = "nothing was changed") -> None:
    """Ask a person who can answer whether to go on.

    Raises:
        RefusedError: The answer is no.
    """
    answer = _terminal.answer(f"{question} [y/N] ", unanswered=refused)
    if answer.strip().lower() not in ("y", "yes"):
        raise RefusedError(f"{refused}: answer y, or add --yes")
