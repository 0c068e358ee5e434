"""Ask the same questions at two commits: which answers changed, which were lost, which are new.

A file that was renamed is the same answer. With a bound, such as --max-loss, the exit code is 1
where the answers got worse than that: a check for changes of knowledge, as tests are for code.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from msgspec.structs import asdict

from filestore.cli import _context, _diagnostics, _output
from filestore.cli._given import read_questions
from filestore.core.safe_text import shown_path
from filestore.past.compare import Gate
from filestore.search.query import Mode
from filestore.server.options import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.past.compare import ComparedQuery, StoreComparison
    from filestore.past.moment import ComparedAnswer

EXAMPLE = "filestore compare main HEAD --queries questions.jsonl --max-loss 0.02"
_SHOWN: Final = 20
"""So many queries are listed; the rest is counted."""


class Options(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    first: Annotated[str, argument("REV1")]
    """a commit: HEAD~3, a tag, a branch, a hash"""
    second: Annotated[str | None, argument("REV2")] = None
    """a later one; else today's files, as indexed"""
    queries: Annotated[str, option("FILE")]
    """a question a line, "-" for standard input; or JSON lines as for 'filestore evaluate', where
    relevant may be left out"""
    k: Annotated[int, option("N")] = 10
    """look at the first N results"""
    mode: Mode = "hybrid"
    """what ranks the results"""
    max_loss: Annotated[float | None, option("D")] = None
    """1 if the mean nDCG at REV2 is less by more"""
    min_overlap: Annotated[float | None, option("O")] = None
    """1 if less of the answers is the same, 0 to 1; needs no known answers"""
    embed: bool = False
    """embed the texts of both that never were"""


def run(options: Options) -> int:
    """Compare; 1 where the later time falls below a bound."""
    questions = read_questions(options.queries, known=False)
    gate = Gate(max_loss=options.max_loss, min_overlap=options.min_overlap)
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
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
    _context.tell(options, found, _words)
    return 1 if found.failed else 0


def _words(found: "StoreComparison") -> None:
    for each in found.changed[:_SHOWN]:
        _query(each, found.count)
    if len(found.changed) > _SHOWN:
        _output.line(f"… and {_output.count(len(found.changed) - _SHOWN, 'query', 'queries')} more")
        _output.line("--json has all")
    if found.changed:
        _output.line()
    for time in (found.old, found.new):
        files = _output.count(time.files, "file")
        if time.commit is None:
            _output.line(f"{time.name}: {files} as indexed")
            continue
        what = f"{time.commit.commit[:12]} {time.commit.subject}"
        _output.line(_output.clipped(f"{time.name}: {files}, commit {what}", _output.WIDTH))
    queries = _output.count(found.queries, "query", "queries")
    if found.changed:
        _output.line(
            f"{len(found.changed):,} of {queries} answered otherwise: {found.gained:,} gained,"
            f" {found.lost:,} lost; overlap {found.overlap:.2f}"
        )
    else:
        _output.line(f"{queries}: no answer changed")
    _figures(found)
    for failure in found.failed:
        _output.line(f"failed: {failure}", style="31")


def _query(each: "ComparedQuery", count: int) -> None:
    """A question, with a line for each answer that is another."""
    tail = ""
    if each.scores is not None:
        old, new = each.scores
        tail = f", nDCG@{count} {old.ndcg:.2f} → {new.ndcg:.2f}"
    query = _output.clipped(" ".join(each.question.query.split()), _output.WIDTH - 16 - len(tail))
    _output.line(f"{query}  overlap {each.overlap:.2f}{tail}", style="1")
    for line in _answers(each.answers):
        _output.line(line)


def _answers(answers: "Sequence[ComparedAnswer]") -> Iterator[str]:
    for one in answers:
        name = shown_path(one.path)
        if one.was is not None:
            name += f" (was {shown_path(one.was)})"
        edited = ", edited" if one.edited else ""
        if one.old is None:
            how = f"#{one.new}, new file" if not one.there else f"#{one.new}{edited}"
            yield f"  + {name}  {how}"
        elif one.new is None:
            how = f"was #{one.old}, file gone" if not one.there else f"was #{one.old}{edited}"
            yield f"  - {name}  {how}"
        elif one.old != one.new or one.edited:
            place = f"#{one.new}" if one.old == one.new else f"#{one.old} → #{one.new}"
            yield f"  ~ {name}  {place}{edited}"


def _figures(found: "StoreComparison") -> None:
    if found.against_old is None:
        return
    measures = (f"nDCG@{found.count}", f"recall@{found.count}", f"MRR@{found.count}")
    _output.line(f"{'':16}" + "".join(f"{name:>12}" for name in measures), style="1")
    for time in (found.old, found.new):
        scores = asdict(time.scores).values() if time.scores else ()
        figures = "".join(f"{one:>12.4f}" for one in scores)
        _output.line(f"{_output.clipped(time.name, 16):16}{figures}")
    difference = found.against_old
    _output.line(
        f"nDCG {difference.mean:+.4f}, 95 % interval {difference.low:+.4f} to"
        f" {difference.high:+.4f}, over"
        f" {_output.count(found.questions, 'question')} with known answers"
    )
