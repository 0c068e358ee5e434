"""The judge of answers: its sets, its halves, its figures, and what it embeds twice."""

import json
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.bench.retrieval import __main__ as program
from tests.bench.retrieval import ledger, sets, texts
from tests.bench.retrieval.asking import Answer, Place, ask
from tests.bench.retrieval.material import AbsentError, Material

TOY: Final = sets.Built(
    documents={
        "pear.md": "# Pear\n\nA juicy fruit that grows on trees.\n",
        "tin.md": "# Tin\n\nA silvery metal that is soldered.\n",
        "owl.md": "# Owl\n\nA bird that hunts at night.\n",
    },
    questions=(
        sets.Asked(query="silvery metal", relevant=("tin.md",)),
        sets.Asked(query="bird that hunts at night", relevant=("owl.md",)),
        sets.Asked(query="juicy fruit", relevant=("tin.md",)),
    ),
)
"""The last answer is said to be one that no search puts first."""


def answer(
    name: str, query: str, keyword: float, vector: float, hybrid: float, half: sets.Half = "tuning"
) -> Answer:
    """One with these scores."""
    ndcg = {"keyword": keyword, "vector": vector, "hybrid": hybrid}
    return Answer(set=name, query=query, half=half, rankings={}, ndcg=ndcg, recall=ndcg)


def run(name: str, answers: list[Answer], **said: Any) -> ledger.Run:
    """A run with these answers."""
    made: Mapping[str, Any] = {
        "date": "2026-01-01 00:00 UTC",
        "commit": "0123abc",
        "embedder": "builtin",
        "fingerprint": "builtin/1:384",
        "sets": {one.set: {"digest": "d", "documents": 3} for one in answers},
        "skipped": {},
    }
    return ledger.Run(name=name, answers=answers, **{**made, **said})


def test_a_question_stays_in_its_half() -> None:
    """By its own text alone, the same everywhere; both halves of our own set have enough."""
    assert sets.Asked(query="silvery metal", relevant=("a",)).half == "tuning"
    assert sets.Asked(query="silvery metal", relevant=("b", "c")).half == "tuning"
    assert sets.Asked(query="fruit with juice", relevant=("a",)).half == "confirming"
    lines = sets.ASKED.read_text("utf-8").splitlines()
    asked = [sets.Asked(**json.loads(line)) for line in lines]
    assert len({one.query for one in asked}) == 60
    assert min(sum(one.half == half for one in asked) for half in sets.HALVES) >= 20


def test_a_set_without_its_material_says_why(tmp_path: Path) -> None:
    """Each of them, so that a run goes on with the others; twenty need no more than packages."""
    nothing = Material(folder=tmp_path)
    absent = {}
    for name in sets.SETS:
        try:
            sets.build(name, nothing)
        except AbsentError as error:
            absent[name] = str(error)
    assert sets.SETS.keys() - absent.keys() <= {"code commits"}
    assert all("--fetch" in reason or "--data" in reason for reason in absent.values() if reason)
    assert sum("--fetch" in reason for reason in absent.values()) >= 20


def test_pages_become_text_and_what_asks_for_them() -> None:
    """The line that says what a page is for is taken out of it; markup goes, words stay."""
    page = '.TH OWL 1\n.SH NAME\nowl \\- hunt\n.SH USE\n.B \\-\\-mice\n\\fIall\\fP of "them"\n'
    assert texts.man_page(page) == ("hunt", '## USE\n\n--mice\nall of "them"')
    assert texts.man_page(".so man1/owl.1\n") is None
    html = "<h2>1. Why?</h2><script>x</script><p>For <b>this</b>\n reason.</p><pre>a\n b</pre>"
    assert texts.of_html(html) == "## 1. Why?\nFor this reason.\n\na\n b"
    assert list(texts.sections(texts.of_html(html))) == [("1. Why?", "For this reason.\n\na\n b")]
    assert texts.of_pod("=head2 Is B<it> L<so|x>?\n\n=over\n\nYes, C<< a > b >>.") == (
        "## Is it so?\n\n\nYes, a > b."
    )
    words = list(texts.entries("owl\n\n   A bird.\n   Hunts.\n\ntin\n\n   A metal.\n"))
    assert words == [("owl", "A bird.\nHunts."), ("tin", "A metal.")]
    assert texts.first_sentence("One is\nhere. Two is there.") == ("One is here.", "Two is there.")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Where the toy's store and vectors lie."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Place(work=tmp_path, embedder="builtin")


def test_a_store_is_asked_in_every_mode(place: Place) -> None:
    """A right answer in the first place gives 1, one that is not found 0."""
    first, second, third = ask("toy", TOY, place)[0]
    assert set(first.ndcg.values()) == set(second.ndcg.values()) == {1.0}
    assert first.ndcg.keys() == {"keyword", "vector", "hybrid"}
    assert third.ndcg["keyword"] == third.recall["keyword"] == 0
    assert third.rankings["keyword"] == ["pear.md"]


@pytest.mark.long
def test_nothing_is_embedded_twice(place: Place) -> None:
    """A second run makes its store anew, and takes all vectors from the first one's."""

    def kept(fingerprint: str) -> tuple[int, int]:
        with closing(sqlite3.connect(place.embeddings)) as database:
            (vectors,) = database.execute("SELECT count(*) FROM vectors").fetchone()
        return vectors, place.questions(fingerprint).stat().st_mtime_ns

    found, fingerprint = ask("toy", TOY, place)
    before = kept(fingerprint)
    assert ask("toy", TOY, place) == (found, fingerprint)
    assert kept(fingerprint) == before


def test_a_run_is_a_line_and_a_table_of_the_ledger(tmp_path: Path) -> None:
    """Sets have the same say whatever their size; losses are against the better leg."""
    answers = [
        answer("small", "a", 1.0, 0.0, 0.5),
        *(answer("large", query, 0.0, 0.5, 0.5) for query in "bcd"),
        answer("large", "e", 1.0, 1.0, 1.0, "confirming"),
    ]
    rows, tables = tmp_path / "rows.jsonl", tmp_path / "tables.md"
    ledger.append(run("one", answers), rows=rows, tables=tables)
    ledger.append(run("two", answers), rows=rows, tables=tables)
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [one["name"] for one in found] == ["one", "two"]
    means = found[0]["means"]["tuning"]
    assert (means["keyword"][0], means["vector"][0], means["hybrid"][0]) == (0.5, 0.25, 0.5)
    assert found[0]["losses"] == {
        "tuning": {"sum": -0.5, "mean": -0.125},
        "confirming": {"sum": 0.0, "mean": 0.0},
    }
    assert found[0]["sets"]["large"]["tuning"]["questions"] == 3
    assert "| large | 3 | 3 + 1 | 0.000 / 0.500 / 0.500 |" in tables.read_text()


def test_two_runs_are_compared_question_by_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By name or commit, first with the same embedder, over the sets that did not change."""
    runs = tmp_path / "runs"
    before = [answer("s", "lost", 1.0, 0.0, 0.5), answer("s", "won", 0.0, 0.0, 0.0)]
    after = [answer("s", "lost", 1.0, 0.0, 0.9), answer("s", "won", 0.0, 0.0, 0.2)]
    other = answer("t", "other", 1.0, 1.0, 1.0)
    changed = {"s": {"digest": "d", "documents": 3}, "t": {"digest": "e", "documents": 3}}
    ledger.keep(run("2026-0123abc-builtin", [*before, other]), runs)
    ledger.keep(run("2026-0123abc-minilm", before, embedder="minilm", date="2027"), runs)
    ledger.keep(run("a-try", [*after, other], sets=changed), runs)
    monkeypatch.setattr(
        sys, "argv", ["x", "--work", str(tmp_path), "--compare", "0123", "a-try", "--most", "2"]
    )
    assert program.main() == 0
    said = capsys.readouterr().out
    assert "2026-0123abc-builtin → a-try" in said
    assert "left out, asked or made differently: t" in said
    assert "hybrid   mean of sets +0.3000 [+0.2000, +0.4000]" in said
    assert "sum -0.50 → -0.10" in said
    assert "'lost': keyword 1.00 → 1.00, vector 0.00 → 0.00, hybrid 0.50 → 0.90" in said
    monkeypatch.setattr(
        sys, "argv", ["x", "--work", str(tmp_path), "--compare", "2026-0123abc-m", "a-try"]
    )
    assert program.main() == 0
    assert "2026-0123abc-minilm → a-try" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["x", "--work", str(tmp_path), "--compare", "none"])
    assert program.main() == 1
