"""The counts of `tests/structure.toml` may fall, and rise only with a reason."""

import ast
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.bench import structure


def test_a_count_rises_only_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check names it; writing needs the reason and keeps it; a lower count is a new bound."""
    ratchet = tmp_path / "structure.toml"
    ratchet.write_text('[counts]\n"modules" = 6\n"exceptions" = 3\n')
    monkeypatch.setattr(structure, "RATCHET", ratchet)
    found = {"modules": 7, "exceptions": 2}
    monkeypatch.setattr(structure, "Checkout", lambda _: SimpleNamespace(counts=lambda: found))

    def ran(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["structure.py", *words])
        return structure.main()

    assert ran("--check") == 1
    assert "modules: 6 -> 7 (+1)" in capsys.readouterr().err
    assert ran("--write") == 1
    assert ran("--check") == 1
    assert ran("--write", "--reason", "A reader of tables") == 0
    assert ran("--check") == 0
    recorded = tomllib.loads(ratchet.read_text())
    assert recorded["raised"] == [{"reason": "A reader of tables", "figures": "modules +1"}]
    found["exceptions"] = 3
    assert ran("--check") == 1


def test_the_code_uses_no_more_of_the_words_that_are_to_go() -> None:
    """Names, comments and docstrings of the product hold at most as many as are recorded."""
    recorded = tomllib.loads(structure.RATCHET.read_text("utf-8"))["counts"]
    checkout = structure.Checkout(structure.RATCHET.parents[1])
    found = {f"word `{word}`": count for word, count in checkout.words().items()}
    assert {name: count for name, count in found.items() if count > recorded[name]} == {}


def test_words_are_found_in_names_comments_and_docstrings_alone() -> None:
    """Also across lines and in parts of names; what is printed has words of its own."""
    text = (
        '"""Files taken\n    in."""\n'
        "class ToldError(Exception): ...\n"
        "# so\n# many\n"
        "def put_aside(): print('nobody said so many')\n"
    )
    module = structure.Module(name="", text=text, tree=ast.parse(text))
    found = [word for word, pattern in structure.WORDS.items() if pattern.search(module.prose())]
    assert found == ["told", "so many", "take in", "put aside"]
