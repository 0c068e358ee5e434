"""`filestore evaluate`: figures of every mode from questions whose answers are known."""

import io
import json
import sys
from typing import Any

import pytest

MEASURES = {"ndcg", "recall", "mrr"}
COLUMNS = ["grep", "keyword", "vector", "hybrid"]


def library(workspace: Any) -> None:
    """A store with a handbook as one resource, and two single documents."""
    workspace.write("handbook/leave.md", "# Leave\n\nParental leave lasts twelve months.\n")
    workspace.write("handbook/travel.md", "# Travel\n\nTrains are booked in second class.\n")
    workspace.write("anchor.md", "# Anchors\n\nAn anchor holds the boat in soft seabed.\n")
    workspace.write("knots.txt", "A bowline never slips. Sailors tie it with one hand.\n")
    workspace("add", "handbook", "anchor.md", "knots.txt")


def questions(workspace: Any, *entries: tuple[str, Any]) -> Any:
    """A file of questions with their answers."""
    lines = [json.dumps({"query": query, "relevant": right}) for query, right in entries]
    return workspace.write("questions.jsonl", "\n".join(lines) + "\n")


def test_every_mode_has_figures(either: Any) -> None:
    """Each mode is measured over all questions; what is easy is found by all of them."""
    library(either)
    path = questions(
        either,
        ("parental leave months", ["handbook/leave.md"]),
        ("anchor seabed", ["anchor.md"]),
        ("bowline", {"knots.txt": 2, "anchor.md": 0}),
    )
    done = either.json("evaluate", path)
    assert (done["queries"], done["k"]) == (3, 10)
    assert list(done["modes"]) == COLUMNS
    for scores in done["modes"].values():
        assert scores == {"ndcg": 1.0, "recall": 1.0, "mrr": 1.0}
    hybrid = done["hybrid"]
    assert hybrid["against"] in ("keyword", "vector")
    assert (hybrid["difference"], hybrid["interval_95"]) == (0.0, [0.0, 0.0])


def unwanted(workspace: Any, *rows: dict[str, Any]) -> Any:
    """A file of questions about boats, each with what must not come."""
    lines = [json.dumps({"query": "anchor boat", "relevant": ["anchor.md"], **row}) for row in rows]
    return workspace.write("questions.jsonl", "\n".join(lines) + "\n")


def test_what_must_not_come_is_counted(either: Any) -> None:
    """By any of its names, among the first places alone; the other figures stay as they were."""
    library(either)
    either.write("draft.md", "# Draft\n\nAn anchor for the boat, a draft.\n")
    either("add", "draft.md")
    for row, count, named in (
        ({"not": ["draft.md"]}, 1, 1),
        ({"not": ["../draft.md", "knots.txt"]}, 1, 2),
        ({"not": ["handbook"]}, 0, 1),
    ):
        path = unwanted(either, row, {})
        done = either.json("evaluate", path, "--per-query", "-k", 2)
        assert list(done["unwanted"]) == COLUMNS
        for found in done["unwanted"].values():
            assert found == {"count": count, "named": named, "rate": count / named}
        asked, plain = done["per_query"]
        assert asked["modes"] == plain["modes"]
        assert asked["unwanted"] == dict.fromkeys(COLUMNS, row["not"][:1] if count else [])
        assert "unwanted" not in plain
    said = either("evaluate", unwanted(either, {"not": ["draft.md"]}), "--per-query").stdout
    assert "    hybrid: must not come: draft.md\n" in said
    assert "must not be among the first 10, and are: grep 1 of 1, keyword 1 of 1" in said
    first = either.json("evaluate", unwanted(either, {"not": ["knots.txt"]}), "-k", 1)
    assert first["unwanted"]["hybrid"]["count"] == 0
    assert "unwanted" not in either.json("evaluate", unwanted(either, {}))


def test_what_must_not_come_and_is_nothing_here(either: Any) -> None:
    """Is said, since a slip would pass for a good figure; what answers is none of it."""
    library(either)
    done = either.json("evaluate", unwanted(either, {"not": ["drafft.md"]}))
    assert done["unwanted"]["hybrid"] == {"count": 0, "named": 1, "rate": 0}
    assert "line 1: 'drafft.md' in 'not' is nothing in the store" in done["notes"]
    both = either("evaluate", unwanted(either, {"not": ["anchor.md"]}), code=3).stderr
    assert "line 1: 'anchor.md' is in 'relevant' and in 'not'" in both


@pytest.mark.parametrize(
    "name",
    [
        "../handbook/leave.md",
        "handbook/leave.md",
        "leave.md",
        "./handbook/leave.md",
        "handbook",
        "CHUNK",
        "BELOW",
    ],
)
def test_an_answer_has_many_names(either: Any, name: str) -> None:
    """A chunk's path, a source as recorded or its end, and a resource all name the answer."""
    library(either)
    hit = either.json("search", "parental leave", "-k", "1")["hits"][0]["path"]
    name = {"CHUNK": hit, "BELOW": hit.removeprefix("chunked/")}.get(name, name)
    done = either.json("evaluate", questions(either, ("parental leave", [name])))
    assert done["modes"]["keyword"]["mrr"] == 1.0


def test_sources_are_ranked_once_each(workspace: Any, manual: Any) -> None:
    """Many chunks of one source take one place, and the list is filled from below them."""
    workspace.write("big.md", manual([f"harbour {number}" for number in range(12)]))
    workspace.write("small.txt", "The harbour is small.\n")
    workspace("add", "big.md", "small.txt")
    path = questions(workspace, ("harbour", ["../small.txt"]))
    done = workspace.json("evaluate", path, "-k", "2")
    assert done["modes"]["keyword"]["recall"] == 1.0
    assert done["modes"]["grep"]["recall"] == 1.0
    chunk = workspace.json("ls", "small.txt")["items"][0]["path"]
    by_chunk = workspace.json("evaluate", questions(workspace, ("harbour", [chunk])), "-k", "2")
    assert by_chunk["modes"]["grep"]["recall"] == 0.0


def test_each_question_is_told_when_asked(workspace: Any) -> None:
    """With --per-query every question has its measures, and their mean is the mode's."""
    library(workspace)
    path = questions(workspace, ("leave", ["leave.md"]), ("xyzzy", ["anchor.md"]))
    done = workspace.json("evaluate", path, "--per-query")
    assert [(one["id"], one["line"], one["query"]) for one in done["per_query"]] == [
        ("1", 1, "leave"),
        ("2", 2, "xyzzy"),
    ]
    for mode in COLUMNS:
        each = [one["modes"][mode]["ndcg"] for one in done["per_query"]]
        assert sum(each) / 2 == pytest.approx(done["modes"][mode]["ndcg"])
    assert "per_query" not in workspace.json("evaluate", path)
    assert "xyzzy" in workspace("evaluate", path, "--per-query").stdout


def test_words_are_a_table(workspace: Any) -> None:
    """The table has a line for each mode and fits a terminal of 80 columns."""
    library(workspace)
    path = questions(workspace, ("leave " * 40, ["leave.md"]), ("anchor", ["anchor.md"]))
    done = workspace("evaluate", path, "--per-query", "-k", "5")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [
        line.split()[0] for line in lines if line.split()[:1][0:] and line.split()[0] in COLUMNS
    ]
    table = {line.split()[0]: line.split()[1:] for line in lines if line[:8].strip() in COLUMNS}
    assert list(table) == COLUMNS
    assert all(len(figures) == 3 for figures in table.values())
    assert "recall@5" in done.stdout
    assert "95 % interval" in done.stdout


def test_vectors_that_cannot_answer_have_no_figures(workspace: Any) -> None:
    """Without the store's model its columns are empty and say why; no other mode stands in."""
    library(workspace)
    path = questions(workspace, ("leave", ["leave.md"]))
    settings = workspace.store / "filestore.toml"
    text = settings.read_text()
    settings.write_text(text.replace('embedder = "builtin"', 'embedder = "onnx:no-such-model"'))
    assert settings.read_text() != text
    done = workspace.json("evaluate", path)
    assert done["modes"]["vector"] is None
    assert done["modes"]["hybrid"] is None
    assert done["hybrid"] is None
    assert done["modes"]["keyword"]["mrr"] == 1.0
    assert any(note.startswith("vector: not measured") for note in done["notes"])
    words = workspace("evaluate", path)
    assert "vector: not measured" in words.stderr
    assert "–" in words.stdout


def test_unknown_answers_are_named(workspace: Any) -> None:
    """Entries that name nothing, or several things, are told with their lines and their number."""
    library(workspace)
    workspace.write("old/leave.md", "# Leave\n\nOld rules.\n")
    workspace("add", "old")
    path = questions(
        workspace,
        ("a", ["anchor.md", "no/such.md"]),
        ("b", ["anchor.md"]),
        ("c", ["leave.md"]),
    )
    done = workspace.json("evaluate", path, code=3)
    assert "2 entries" in done["error"]
    assert "line 1: 'no/such.md'" in done["error"]
    assert "line 3: 'leave.md': it could be" in done["error"]
    assert done["remedy"]


def test_bad_questions_are_named(workspace: Any) -> None:
    """A malformed line, an empty and a missing file end with 3 and a sentence; -k 0 with 2."""
    library(workspace)
    path = workspace.write("q.jsonl", '{"query": "a", "relevant": ["anchor.md"]}\n{"query": 1}\n')
    assert "line 2" in workspace.json("evaluate", path, code=3)["error"]
    assert "no question" in workspace.json("evaluate", workspace.write("e", ""), code=3)["error"]
    assert "cannot read" in workspace.json("evaluate", "none.jsonl", code=3)["error"]
    good = questions(workspace, ("a", ["anchor.md"]))
    assert "-k" in workspace.json("evaluate", good, "-k", "0", code=2)["error"]


def test_questions_come_from_standard_input(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dash stands for standard input."""
    library(workspace)
    data = b'{"query": "anchor", "relevant": ["anchor.md"]}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert workspace.json("evaluate", "-")["queries"] == 1


def test_measuring_changes_nothing(workspace: Any) -> None:
    """Files, record and generation are the same afterwards."""
    library(workspace)
    before = workspace.committed(), workspace.json("status")
    workspace("evaluate", questions(workspace, ("anchor", ["anchor.md"])))
    assert (workspace.committed(), workspace.json("status")) == before


def enriched(workspace: Any) -> Any:
    """A store with a summary and questions, and questions that each of these answers."""
    workspace.write("file_index/chunked/boats/chunk1.md", "A keel of oak is laid.\n")
    workspace.write(
        "file_index/chunked/boats/chunk2.md",
        '---\nquestions: ["Who sews canvas?"]\n---\nSails of flax.\n',
    )
    workspace.write("file_index/chunked/plants/chunk1.md", "Beans climb poles.\n")
    workspace.summarize(
        "boats/summary1.md",
        "Shipwrights",
        "How shipwrights work.\n",
        ["boats/chunk1.md", "boats/chunk2.md"],
    )
    workspace.sync()
    return questions(
        workspace,
        ("shipwrights work", ["boats"]),
        ("who sews canvas", ["chunked/boats/chunk2.md"]),
        ("beans climb poles", ["plants"]),
    )


def test_with_and_without(workspace: Any) -> None:
    """Each way to ask has figures; what finds more is ahead of the plain one, with an interval."""
    done = workspace.json("evaluate", enriched(workspace), "--compare", "--rerank", "")
    found = {one["name"]: one for one in done["compared"]}
    assert list(found) == ["plain", "questions", "summaries", "both", "rewrite"]
    assert found["plain"]["difference"] is None
    assert found["summaries"]["scores"]["ndcg"] > found["plain"]["scores"]["ndcg"]
    assert found["both"]["scores"] == {"ndcg": 1.0, "recall": 1.0, "mrr": 1.0}
    assert found["both"]["difference"] > 0
    low, high = found["both"]["interval_95"]
    assert low <= found["both"]["difference"] <= high
    assert found["rewrite"]["scores"]["recall"] == 1.0
    assert all(one["milliseconds"] > 0 and one["tokens"] == 0 for one in found.values())


def test_what_cannot_be_compared_is_said(workspace: Any) -> None:
    """A reranker that is not here has no figures, and the reason is told; the rest goes on."""
    path = enriched(workspace)
    done = workspace.json("evaluate", path, "--compare", "--rerank", "oracle", "--rewrite", "0")
    found = {one["name"]: one for one in done["compared"]}
    assert found["rerank"]["scores"] is None
    assert "rewrite" not in found
    assert any(one.startswith("rerank: not measured: unknown") for one in done["notes"])
    words = workspace("evaluate", path, "--compare", "--rerank", "oracle").stdout
    assert "against plain" in words
    assert "0 to 20" in workspace("evaluate", path, "--compare", "--rewrite", "99", code=2).stderr


def test_without_comparing_there_is_none(workspace: Any) -> None:
    """An ordinary evaluation has no such key."""
    assert "compared" not in workspace.json("evaluate", enriched(workspace))
