"""What enriching would take and what it did, in words."""

import pytest
from msgspec.structs import replace

from filestore.browse import EnrichPlan, EnrichReport
from filestore.enrich.plan import KeptFile
from filestore.generate import Price
from tui.formatting import plain, reports

PAID = {"generator": "openai:m", "is_free": False, "tokens_in": 1_000_000, "tokens_out": 2_000}


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({}, "runs here: costs nothing"),
        (PAID, "about 1,000,000 tokens in, at most 2,000 out; no price is set"),
        (
            PAID | {"price": Price(per_million_in=2.0, per_million_out=10.0)},
            "2.02 by the prices in",
        ),
    ],
)
def test_the_price_comes_first(plan, said):
    """Nothing, tokens without a price, or money, as far as it is known."""
    lines = reports.plan_lines(EnrichPlan(summaries=2, **plan))
    assert said in plain(lines[:1])


def test_what_is_kept_is_named():
    """A summary that was edited by hand stays, and is named before anything is made."""
    plan = EnrichPlan(kept=[KeptFile(path="a/summary1.md", reason="edited by hand")])
    assert "a/summary1.md: edited by hand" in plain(reports.plan_lines(plan))
    assert not reports.has_work(plan)
    assert "1 file kept" in reports.nothing_to_do(plan, refresh=True)


def test_the_outcome_in_a_few_words():
    """What was written, what was kept, how it is undone, and what failed."""
    report = EnrichReport(
        questions=1,
        summaries=2,
        undo="000007",
        failed=[{"path": "chunked/a/chunk1.md", "kind": "questions", "error": "refused"}],
    )
    assert reports.summary(report) == ("questions in 1 file, 2 summaries written; u undoes 000007")
    assert "keys in 1 file" in reports.summary(replace(report, lines="keys"))
    assert "chunked/a/chunk1.md (questions): refused" in reports.failure(report).message
