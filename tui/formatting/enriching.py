"""Lines for enriching: what it would take, what was done. Pure.

One rule: what it costs is said before anything else.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from filestore import FilestoreError
from filestore.browse import shown_path
from tui.formatting.lines import Line, count, field, line

if TYPE_CHECKING:
    from filestore.browse import EnrichPlan, EnrichReport

_SHOWN: Final = 10


def has_work(plan: "EnrichPlan") -> bool:
    """Whether anything would be made or removed."""
    return bool(plan.questions or plan.summaries or plan.removed)


def nothing_to_do(plan: "EnrichPlan", *, refresh: bool) -> str:
    """Why nothing is asked."""
    kept = f"; {count(len(plan.kept), 'file')} kept as edited by hand" if plan.kept else ""
    return f"{'nothing is out of date' if refresh else 'everything is made already'}{kept}"


def scope(plan: "EnrichPlan") -> str:
    """How much would be made."""
    return f"{plan.lines} for {count(plan.questions, 'text')}, {_summaries(plan.summaries)}"


def plan_lines(plan: "EnrichPlan") -> list[Line]:
    """What it costs, who makes it, what stays."""
    lines = [
        field("price", price(plan), "note" if plan.is_free else "warning"),
        field("generator", plan.generator),
    ]
    if plan.from_cache:
        lines.append(field("known", f"{plan.from_cache:,} of them, from cache"))
    if plan.removed:
        lines.append(field("removed", _summaries(plan.removed)))
    for one in plan.kept[:_SHOWN]:
        lines.append(field("kept", f"{shown_path(one.path)}: {one.reason}"))
    if len(plan.kept) > _SHOWN:
        lines.append(field("", f"… {len(plan.kept) - _SHOWN:,} more", "quiet"))
    lines += [line(note, "warning") for note in plan.notes]
    return [*lines, line("files are backed up first: undo takes all of it back", "note")]


def price(plan: "EnrichPlan") -> str:
    """What it costs, as far as anybody can know."""
    if plan.is_free:
        return "runs here: costs nothing"
    tokens = f"about {plan.tokens_in:,} tokens in, at most {plan.tokens_out:,} out"
    if plan.cost is None:
        return f"{tokens}; no price is set: price_in, price_out under [generator]"
    return f"{plan.cost:,.2f} by the prices in filestore.toml; {tokens}"


def summary(report: "EnrichReport") -> str:
    """What was done, in a few words."""
    removed = f", {report.removed:,} removed" if report.removed else ""
    kept = f", {len(report.kept):,} kept as edited by hand" if report.kept else ""
    undo = f"; u undoes {report.undo}" if report.undo else ""
    tokens = f"; {report.tokens:,} tokens" if report.tokens else ""
    made = f"{report.lines} in {count(report.questions, 'file')}"
    return f"{made}, {_summaries(report.summaries)} written{removed}{kept}{tokens}{undo}"


def failure(report: "EnrichReport") -> FilestoreError:
    """What was not made, and why."""
    named: Sequence[str] = [
        f"{one['path']} ({one['kind']}): {one['error']}" for one in report.failed
    ]
    return FilestoreError(
        f"{count(len(named), 'text')} failed: {named[0]}",
        remedy="enrich again: what was made is kept",
        detail="\n".join(named),
    )


def _summaries(number: int) -> str:
    return "1 summary" if number == 1 else f"{number:,} summaries"
