"""Answers of several servers behind one, when one of them is away."""

from typing import Any

import pytest

from filestore.index._pgvector.table import Shard, gather, note, together
from filestore.index.backend import BackendUnreachable

PARTS = [Shard(server=name, schema="public", name=f"of_{name}") for name in ("a", "b", "c")]


def rows_of(part: Shard) -> bytes:
    return f"SELECT id FROM {part.name}".encode()


def asking(*away: str):
    """What each server holds is its own name; a name that is away, or `front`, does not answer."""

    def ask(statement: Any, _: Any) -> list[tuple[str]]:
        text = statement.decode()
        if "front" in away or any(text.endswith(f"of_{name}") for name in away):
            raise BackendUnreachable("no answer", detail=f"no answer to {text}\nand no more")
        return [(text.rpartition("_")[2],)]

    return ask


def test_every_server_is_asked() -> None:
    """Where all answer nothing is missing, and nothing is said."""
    found = gather(asking(), PARTS, rows_of, None)
    assert [row[0] for row in found.rows] == ["a", "b", "c"]
    assert note(found.missing) == ""


def test_a_server_that_is_away_is_named() -> None:
    """The others answer, and the note names the one that does not, on one line."""
    found = gather(asking("b"), PARTS, rows_of, None)
    assert [row[0] for row in found.rows] == ["a", "c"]
    assert list(found.missing) == ["b"]
    assert note(found.missing) == "without the vectors on b: no answer to SELECT id FROM of_b"


def test_no_answer_at_all_is_an_error() -> None:
    """Neither all servers away, nor the one in front, is told as a part of an answer."""
    for away in (("a", "b", "c"), ("front",)):
        with pytest.raises(BackendUnreachable):
            gather(asking(*away), PARTS, rows_of, None)


def test_all_are_asked_in_one_statement() -> None:
    """Each part has its own order and limit."""
    text = together(PARTS[:2], rows_of)
    assert text == b"(SELECT id FROM of_a) UNION ALL (SELECT id FROM of_b)"
