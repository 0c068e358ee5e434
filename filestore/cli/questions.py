"""Questions with known answers: how good search is, and when an answer changed."""

import os
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from msgspec.structs import asdict, replace

from filestore import extract
from filestore.cli import EXIT_INTERRUPTED, _context, _output, _progress
from filestore.core.errors import UsageError
from filestore.core.safe_text import shown_path, timestamp
from filestore.fulltext import Syntax
from filestore.past import moment
from filestore.past.compare import Gate
from filestore.search import Mode
from filestore.search.evaluate import Compared
from filestore.server import requests
from filestore.server.operations import LIMIT, CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.past.compare import ComparedQuery
    from filestore.past.moment import LogEntry
    from filestore.search.evaluate import Evaluation

_QUERY_COLUMNS = 36


class Evaluate(requests.ReadingOptions, frozen=True, kw_only=True):
    """What the command takes."""

    queries: Annotated[str, argument("QUERIES")]
    """JSON lines, "-" for standard input: {"query": "…", "relevant": ["leave.md"]}, where relevant
    names chunk files, sources or documents, or is an object of them to grades; "not" lists
    what must not come"""
    k: Annotated[int, option("N", *LIMIT)] = 10
    """look at the first N results"""
    syntax: Syntax = "auto"
    """as in 'filestore search'"""
    compare: bool = False
    """also ask with and without questions, summaries, rewriting and reranking"""
    rewrite: Annotated[int, option("N")] = 3
    """with --compare: new queries for each, 0 for none"""
    rerank: Annotated[str, option("R")] = "cross-encoder"
    """with --compare: as in 'filestore search', "" for none"""
    per_query: bool = False
    """also show each question"""


def run_evaluate(options: Evaluate) -> int:
    """Score search on questions with known answers: grep, keyword, vector and hybrid.

    Example: filestore evaluate questions.jsonl -k 10 --json
    """
    questions = _context.read_questions(options.queries)
    compared = Compared(rewrite=options.rewrite, rerank=options.rerank) if options.compare else None
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        found = store.evaluate(
            questions,
            k=options.k,
            syntax=options.syntax,
            compared=compared,
            on_progress=on_progress,
        )
    found = replace(found, per_query=found.results if options.per_query else ())
    if not _context.printed_json(options, found):
        if found.per_query:
            _each(found)
        _output.score_table(found.count, found.modes.items(), names=9, each=14)
        _output.line(f"means over {_output.count(len(found.results), 'question')}")
        if found.unwanted:
            each = [f"{by} {one.count:,} of {one.named:,}" for by, one in found.unwanted.items()]
            _output.line(f"must not be among the first {found.count}, and are: {', '.join(each)}")
        if found.hybrid is not None:
            interval = _output.interval(found.hybrid.difference)
            _output.line(f"hybrid against {found.hybrid.against}, nDCG: {interval}")
        if found.compared:
            # A line for each way to ask, the plain one first.
            means = [f"{name}@{found.count}" for name in ("nDCG", "recall", "MRR")]
            heads = "".join(f"{name:>11}" for name in (*means, "ms", "tokens"))
            _output.line()
            _output.line(f"{'hybrid':10}{heads}   against plain, nDCG, 95 %", style="1")
        for one in found.compared:
            figures = ["–"] * 3
            if one.scores is not None:
                figures = [f"{score:.4f}" for score in asdict(one.scores).values()]
                figures += [f"{one.milliseconds:.1f}", f"{one.tokens:.0f}"]
            against = ""
            if (difference := one.against_plain) is not None:
                low, high = difference.low, difference.high
                against = f"   {difference.mean:+.4f}, {low:+.4f} to {high:+.4f}"
            shown = "".join(f"{figure:>11}" for figure in figures)
            _output.line(f"{one.name:10}{shown}{against}")
    return 0


def _each(found: "Evaluation") -> None:
    """A line for each question with its nDCG in each mode."""
    heads = "".join(f"{mode:>9}" for mode in found.modes)
    _output.line(f"{f'nDCG@{found.count}':{_QUERY_COLUMNS}}{heads}", style="1")
    for result in found.results:
        query = " ".join(result.question.query.split())
        shown = query if len(query) < _QUERY_COLUMNS else f"{query[: _QUERY_COLUMNS - 2]}…"
        scores = [result.scores.get(mode) for mode in found.modes]
        figures = ["–" if one is None else f"{one.ndcg:.4f}" for one in scores]
        _output.line(f"{shown:{_QUERY_COLUMNS}}" + "".join(f"{figure:>9}" for figure in figures))
        for mode, names in result.came.items():
            for name in names:
                _output.line(f"    {mode}: must not come: {shown_path(name)}")
    _output.line()


_SHOWN: Final = 20
"""Queries listed; the rest is counted."""


class Compare(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    first: Annotated[str, argument("REV1")]
    """a commit: HEAD~3, a tag, a branch, a hash"""
    second: Annotated[str | None, argument("REV2")] = None
    """a later one; else today's files, as indexed"""
    queries: Annotated[str, option("FILE")]
    """a question a line, "-" for standard input; or JSON lines as for 'filestore evaluate', where
    relevant may be left out"""
    k: Annotated[int, option("N", *LIMIT)] = 10
    """look at the first N results"""
    mode: Mode = "hybrid"
    """what ranks the results"""
    max_loss: Annotated[float | None, option("D")] = None
    """exit with 1 if the mean nDCG at REV2 is lower by more"""
    min_overlap: Annotated[float | None, option("O")] = None
    """1 if less of the answers is the same, 0 to 1; needs no known answers"""
    embed: bool = False
    """embed the passages of both that never were"""


def run_compare(options: Compare) -> int:
    """Ask the same questions at two commits: which answers changed, which were lost, which are new.

    A file that was renamed is the same answer. With a bound, such as --max-loss, the exit code is 1
    where the answers got worse than that: a check for changes of knowledge, as tests are for code.

    Example: filestore compare main HEAD --queries questions.jsonl --max-loss 0.02
    """
    questions = _context.read_questions(options.queries, known=False)
    gate = Gate(max_loss=options.max_loss, min_overlap=options.min_overlap)
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        found = store.compare(
            questions,
            options.first,
            options.second,
            k=options.k,
            mode=options.mode,
            gate=gate,
            embed=options.embed,
            on_progress=on_progress,
        )
    if not _context.printed_json(options, found):
        for each in _output.first(found.changed, _SHOWN, indent=""):
            _query(each, found.count)
        if found.changed:
            _output.line()
        for time in (found.old, found.new):
            files = _output.count(time.files, "file")
            if time.commit is None:
                _output.line(f"{time.name}: {files} as indexed")
                continue
            what = f"{time.commit.commit[:12]} {time.commit.subject}"
            _output.cut_line(f"{time.name}: {files}, commit {what}")
        queries = _output.count(found.queries, "query", "queries")
        if found.changed:
            _output.line(
                f"{len(found.changed):,} of {queries} answered otherwise: {found.gained:,} gained,"
                f" {found.lost:,} lost; overlap {found.overlap:.2f}"
            )
        else:
            _output.line(f"{queries}: no answer changed")
        if found.against_old is not None:
            times = [(_output.clipped(one.name, 16), one.scores) for one in (found.old, found.new)]
            _output.score_table(found.count, times, names=16)
            asked = _output.count(found.questions, "question")
            difference = _output.interval(found.against_old)
            _output.line(f"nDCG {difference}, over {asked} with known answers")
        for failure in found.failed:
            _output.line(f"failed: {failure}", style="31")
    return 1 if found.failed else 0


def _query(each: "ComparedQuery", count: int) -> None:
    """A question, with a line for each answer that is another."""
    tail = ""
    if each.scores is not None:
        old, new = each.scores
        tail = f", nDCG@{count} {old.ndcg:.2f} → {new.ndcg:.2f}"
    end = f"  overlap {each.overlap:.2f}{tail}"
    _output.cut_line(" ".join(each.question.query.split()), end=end, style="1")
    for one in each.answers:
        name = shown_path(one.path)
        if one.was is not None:
            name += f" (was {shown_path(one.was)})"
        edited = ", edited" if one.edited else ""
        if one.old is None:
            how = f"#{one.new}, new file" if not one.there else f"#{one.new}{edited}"
            _output.line(f"  + {name}  {how}")
        elif one.new is None:
            how = f"was #{one.old}, file gone" if not one.there else f"was #{one.old}{edited}"
            _output.line(f"  - {name}  {how}")
        elif one.old != one.new or one.edited:
            place = f"#{one.new}" if one.old == one.new else f"#{one.old} → #{one.new}"
            _output.line(f"  ~ {name}  {place}{edited}")


_NEXT = "interrupted: what was found so far"


class Log(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    asked: Annotated[str, argument("QUERY", joined=True)]
    """several words need no quotes; put -- before words that begin with a sign"""
    query: bool = False
    """it is a question, even if a file has that name"""
    max: Annotated[int, option("N")] = moment.MOST
    """ask the newest N commits"""
    k: Annotated[int, option("N", *LIMIT)] = 10
    """the first N results count"""
    mode: Mode = "hybrid"
    """what ranks the results"""
    embed: bool = False
    """embed the passages of each commit that never were"""


def run_log(options: Log) -> int:
    """When the answer to a question changed, and by which commit.

    Every commit of the first parents that touched the store is asked as 'search --at' asks it,
    newest first, and held against the one before.

    Example: filestore log how long is parental leave
    """
    entries: list[LogEntry] = []
    is_interrupted = False
    try:
        with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
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
        is_interrupted = True
        found = moment.Log(asked=options.asked, entries=tuple(entries), notes=(_NEXT,))
    if not _context.printed_json(options, found):
        _log_words(found)
    return EXIT_INTERRUPTED if is_interrupted else 0 if found.entries else 1


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


def _log_words(found: moment.Log) -> None:
    for entry in found.entries:
        commit, head = entry.commit, "today, as indexed"
        if commit is not None:
            when = timestamp(commit.committed).partition(" ")[0]
            author = _output.one_line(commit.author)
            head = f"{commit.commit[:12]} {when} {author}  {commit.subject}"
        _output.cut_line(head, style="1")
        if entry.begins:
            _output.line("    the store begins here")
        for sign, changes, edited in (("+", entry.gained, ""), ("~", entry.edited, ", edited")):
            for one in changes:
                is_first = ", first now" if one.path == entry.first else ""
                was = f" (was {shown_path(one.was)})" if one.was is not None else ""
                name = f"{shown_path(one.path)}{was}"
                _output.line(f"    {sign} {name}  #{one.rank}{edited}{is_first}")
        for one in entry.lost:
            was = f" (was {shown_path(one.was)})" if one.was is not None else ""
            _output.line(f"    - {shown_path(one.path)}{was}  was #{one.rank}")
        changed = [one.path for one in (*entry.gained, *entry.edited)]
        if entry.first is not None and entry.first not in changed:
            _output.line(f"    ^ {shown_path(entry.first)}  first now")
    if not found.entries:
        _output.line("nothing found")
