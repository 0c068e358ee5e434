"""Score search on questions with known answers: grep, keyword, vector and hybrid."""

from typing import TYPE_CHECKING, Annotated

from msgspec.structs import asdict, replace

from filestore.cli import _context, _diagnostics, _output
from filestore.cli._given import read_questions
from filestore.core.safe_text import shown_path
from filestore.fulltext import Syntax
from filestore.search.evaluate import Compared
from filestore.server.options import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.search.evaluate import Evaluation

EXAMPLE = "filestore evaluate questions.jsonl -k 10 --json"
_QUERY_COLUMNS = 36


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    queries: Annotated[str, argument("QUERIES")]
    """JSON lines, "-" for standard input: {"query": "…", "relevant": ["leave.md"]}, where relevant
    names chunk files, sources or resources, or is an object of them to grades; "not" lists those
    that must not come"""
    k: Annotated[int, option("N")] = 10
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


def run(options: Options) -> int:
    """Measure, and print the means."""
    questions = read_questions(options.queries)
    compared = Compared(rewrite=options.rewrite, rerank=options.rerank) if options.compare else None
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        found = store.evaluate(
            questions,
            k=options.k,
            syntax=options.syntax,
            compared=compared,
            on_progress=on_progress,
        )
    found = replace(found, per_query=found.results if options.per_query else ())
    _context.tell(options, found, _words)
    return 0


def _words(found: "Evaluation") -> None:
    if found.per_query:
        _each(found)
    heads = "".join(f"{name:>14}" for name in _measures(found.count))
    _output.line(f"{'':9}{heads}", style="1")
    for mode, scores in found.modes.items():
        figures = ["–"] * 3 if scores is None else [f"{one:.4f}" for one in asdict(scores).values()]
        _output.line(f"{mode:9}" + "".join(f"{figure:>14}" for figure in figures))
    _output.line(f"means over {_output.count(len(found.results), 'question')}")
    if found.unwanted:
        each = [f"{by} {one.count:,} of {one.named:,}" for by, one in found.unwanted.items()]
        _output.line(f"must not be among the first {found.count}, and are: {', '.join(each)}")
    if found.hybrid is not None:
        difference = found.hybrid.difference
        _output.line(
            f"hybrid against {found.hybrid.against}, nDCG: {difference.mean:+.4f},"
            f" 95 % interval {difference.low:+.4f} to {difference.high:+.4f}"
        )
    if found.compared:
        _compared(found)


def _compared(found: "Evaluation") -> None:
    """A line for each way to ask, the plain one first."""
    heads = "".join(f"{name:>11}" for name in (*_measures(found.count), "ms", "tokens"))
    _output.line()
    _output.line(f"{'hybrid':10}{heads}   against plain, nDCG, 95 %", style="1")
    for one in found.compared:
        scores = [] if one.scores is None else asdict(one.scores).values()
        figures = [f"{score:.4f}" for score in scores] or ["–"] * 3
        if one.scores is not None:
            figures += [f"{one.milliseconds:.1f}", f"{one.tokens:.0f}"]
        against = ""
        if one.against_plain is not None:
            low, high = one.against_plain.low, one.against_plain.high
            against = f"   {one.against_plain.mean:+.4f}, {low:+.4f} to {high:+.4f}"
        _output.line(f"{one.name:10}" + "".join(f"{figure:>11}" for figure in figures) + against)


def _measures(count: int) -> tuple[str, ...]:
    return f"nDCG@{count}", f"recall@{count}", f"MRR@{count}"


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
