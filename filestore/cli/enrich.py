"""Questions and summaries, planned, asked for and made."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

from filestore.cli import EXIT_PARTIAL, _context, _output
from filestore.core.errors import RefusedError
from filestore.core.safe_text import safe_text, shown_path
from filestore.server.operations import CommonOptions, argument, option

if TYPE_CHECKING:
    from filestore.enrich.plan import EnrichPlan, EnrichReport, KeptFile

_SHOWN = 10


class Enrich(CommonOptions, frozen=True, kw_only=True):
    """What the command takes."""

    resources: Annotated[list[str], argument("RESOURCE")] = []
    """only these (default: all)"""
    questions: Annotated[int | None, option("N")] = None
    """make at most N questions for each text, offline keys; alone: no summaries (default: 3)"""
    summaries: bool = False
    """summarise texts that belong together; alone: no questions"""
    across: bool = False
    """also summarise what the resources have on top: one tree over the store"""
    refresh: bool = False
    """make again only what is out of date"""
    plan: bool = False
    """only show what it would take"""
    budget: Annotated[int | None, option("TOKENS")] = None
    """begin nothing beyond this number of tokens"""
    generator: Annotated[str | None, option("G")] = None
    """extractive, or openai:MODEL (default: the store's)"""
    yes: bool = False
    """do not ask"""


def run_enrich(options: Enrich) -> int:
    """Make questions and summaries, and keep them as files that can be read, corrected and merged.

    Offline there are keys in place of questions, a heading path and rare terms, and a summary is
    the first sentences of its texts; questions take a chat service.

    Example: filestore enrich handbook --questions 3 --summaries
    """
    wanted: dict[str, Any] = {
        "across": options.across,
        "refresh": options.refresh,
        "generator": options.generator,
    }
    if options.summaries or options.questions is not None:
        wanted |= {"questions": options.questions, "summaries": options.summaries}
    with _context.open_store(options) as store:
        if options.plan or not store.model.generator(options.generator).is_free:
            with _output.progress_bar() as on_progress:
                plan = store.plan_enrich(*options.resources, on_progress=on_progress, **wanted)
            if options.plan and options.json:
                _output.write_json(plan.to_dict())
                return 0
            if options.plan:
                _plan_words(plan, _output.line)
                return 0
            if plan.planned and not options.yes:
                _ask(plan, options)
        with _output.progress_bar() as on_progress:
            report = store.enrich(
                *options.resources, budget=options.budget, on_progress=on_progress, **wanted
            )
    if options.json:
        _output.write_json(report.to_dict())
    else:
        _words(report)
    if report.problem is not None:
        # The report is printed already, in JSON with the problem.
        code = report.problem.exit_code
        return code if options.json else _output.report(report.problem, as_json=False)
    left = _output.left_without(report.not_embedded)
    if not report.failed:
        return left
    return EXIT_PARTIAL if report.questions or report.summaries else 3


def _plan_words(plan: "EnrichPlan", line: Any) -> None:
    line(f"generator {_output.one_line(plan.generator)}")
    line(f"{plan.lines} for {_output.count(plan.questions, 'text')}")
    line(_output.count(plan.summaries, "summary", "summaries"))
    if plan.removed:
        line(f"{_output.count(plan.removed, 'summary', 'summaries')} to be removed")
    if plan.from_cache:
        line(f"{plan.from_cache:,} of them from cache")
    line(_price(plan))
    if plan.threshold is not None:
        _output.wrapped("", [str(plan.threshold)])
    _kept(plan.kept, line)
    for note in plan.notes:
        line(_output.one_line(note))


def _price(plan: "EnrichPlan") -> str:
    if plan.is_free:
        return "runs here: costs nothing"
    words = f"about {plan.tokens_in:,} tokens in, at most {plan.tokens_out:,} out"
    if plan.seconds is not None:
        words += f"; some {max(1, round(plan.seconds / 60)):,} min"
    if plan.cost is None:
        return f"{words}; no price is set: price_in, price_out under [generator]"
    return f"{words}; {plan.cost:,.2f} by the prices in filestore.toml"


def _ask(plan: "EnrichPlan", options: Enrich) -> None:
    """Ask before anything is paid for.

    Raises:
        RefusedError: No terminal is there to ask on, or the answer is no.
    """
    if options.json or not sys.stdin.isatty():
        raise RefusedError(
            f"{plan.planned:,} requests to {plan.generator}: nobody can be asked",
            remedy="look with --plan, then add --yes",
        )
    _plan_words(plan, _output.say)
    _output.go_on("make them?", refused="nothing was made")


def _words(report: "EnrichReport") -> None:
    if report.threshold is not None:
        _output.wrapped("", [str(report.threshold)])
    _output.line(
        f"{report.lines} in {_output.count(report.questions, 'file')},"
        f" {_output.count(report.summaries, 'summary', 'summaries')} written"
        + (f", {report.removed:,} removed" if report.removed else "")
    )
    if report.tokens:
        _output.line(f"{report.bill.tokens_in:,} tokens in, {report.bill.tokens_out:,} out")
    if report.bill.from_cache:
        _output.line(f"{report.bill.from_cache:,} results from cache")
    _output.line(_output.embedded(report.embedded, report.reused))
    _kept(report.kept, _output.line)
    for note in report.notes:
        _output.say(_output.one_line(note))
    for failed in _output.first(report.failed, _SHOWN, _output.say):
        _output.say(f"failed {shown_path(failed['path'])} ({failed['kind']}):")
        for line in _output.folded(f"    {safe_text(failed['error'])}", indent=4):
            _output.say(line)
    if report.bill.left:
        _output.say(
            f"{_output.count(report.bill.left, 'task')} left: run the command again;"
            " what was made is kept"
        )
    if report.undo:
        _output.line(f"take it back with: filestore undo {report.undo}")


def _kept(kept: "list[KeptFile]", line: Any) -> None:
    for one in _output.first(kept, _SHOWN, line):
        line(f"kept {shown_path(one.path)}: {one.reason}")
