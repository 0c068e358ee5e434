"""A store that an earlier filestore made: opened as it is, nothing embedded again, nothing lost."""

import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

MADE: Final = Path(__file__).parents[2] / "data" / "store_0_1_0.tar.gz"
"""How it was made stands in the README.md beside it."""
LINE: Final = "A cast-iron pot keeps the steam in."
LIST: Final = ["list.txt/chunk1.md", "list.txt/meta.json"]
CUT: Final = {"chunker-changed": [f"chunked/{one}/meta.json" for one in ("bread.html", "tea.md")]}
"""Documents that were cut otherwise, which an update cuts anew."""
UNMERGED: Final = "git has it as unmerged; 'git add' it when it is as it should be"
"""What it kept of a file without conflict markers that git had as unmerged."""


@pytest.fixture
def earlier(
    new_workspace: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """The store of the earlier version, opened by the user who made it."""
    made = new_workspace("kb", init=False)
    with tarfile.open(MADE) as packed:
        # Python knows it since 3.11.4, and from 3.12 on warns where none is named.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(made.folder, **safely)
    (made.folder / "configuration").rename(tmp_path / "configuration")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    return made


def test_it_answers_as_it_is(earlier: Any) -> None:
    """Nothing drifted, nothing is damaged, and both rankings find what was indexed.

    Its full-text index splits words otherwise: nothing of it is opened, a sync writes it again.
    """
    status = earlier.json("status", code=1)
    drift = {"fulltext-missing": [".sidecar/fulltext"], **CUT}
    assert (status["clean"], status["drift"]) == (False, drift)
    checked = earlier.json("verify", "--level", "full", code=1)
    assert {(one["code"], one["path"]) for one in checked["findings"]} == {
        ("hand-edited", "chunked/bread.html/chunk1.md"),
        ("fulltext-missing", ".sidecar/fulltext"),
        *(("chunker-changed", path) for path in CUT["chunker-changed"]),
    }
    earlier.sync(code=1)
    hits = earlier.json("search", "steam in an iron pot", "--mode", "hybrid")["hits"]
    assert (hits[0]["path"], hits[0]["freshness"]) == ("chunked/bread.html/chunk1.md", "fresh")
    assert hits[0]["why"].keys() == {"keyword", "vector"}
    assert earlier.found("lentils") == []


def test_nothing_is_embedded_again(earlier: Any) -> None:
    """Sync writes the full-text index once, and after an edit embeds that one text."""
    report = earlier.sync(code=1)
    assert [one["code"] for one in report["applied"]] == ["fulltext-missing"]
    assert {one["code"] for one in report["remaining"]} == {"chunker-changed"}
    assert report["embedded"] == 0
    assert earlier.sync(code=1)["applied"] == []
    with open(earlier.chunked / "tea.md" / "chunk1.md", "a") as file:
        file.write("\nWhite tea takes five minutes.\n")
    assert earlier.sync(code=1)["embedded"] == 1
    assert earlier.drift() == CUT


def test_its_changes_are_undone(earlier: Any) -> None:
    """Undo brings back the files that the earlier version removed, then takes back its adding."""
    before = earlier.truth()
    earlier("undo")
    brought = earlier.truth()
    assert sorted(brought.keys() - before.keys()) == LIST
    assert before.items() <= brought.items()
    assert earlier.sync(code=1)["embedded"] == 0
    assert earlier.found("lentils") == LIST[:1]
    assert earlier.drift()["chunker-changed"] == sorted(
        [*CUT["chunker-changed"], "chunked/list.txt/meta.json"]
    )
    earlier("redo")
    assert earlier.truth() == before
    earlier("undo")
    # The line that a person wrote into a file that the adding made is not taken with it.
    earlier("undo", code=None)
    assert LINE in (earlier.chunked / "bread.html" / "chunk1.md").read_text()


def test_its_documents_are_added_again(earlier: Any) -> None:
    """The sources are known, and a hand edit survives a new version of its document."""
    page = earlier.folder / "docs" / "bread.html"
    page.write_text(page.read_text().replace("Rye bread", "Spelt bread"))
    earlier("add", "docs/bread.html", "docs/tea.md")
    text = (earlier.chunked / "bread.html" / "chunk1.md").read_text()
    assert "Spelt bread" in text
    assert LINE in text
    earlier.assert_settled()


def test_another_user_trusts_no_index_file_of_it(
    earlier: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens all the same: the vectors are read where they were kept, and none is made again."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    hits = earlier.json("search", "steam in an iron pot", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/bread.html/chunk1.md"
    report = earlier.sync(code=1)
    assert [one["code"] for one in report["applied"]] == ["fulltext-missing", "index-foreign"]
    assert report["embedded"] == 0
    assert earlier.drift() == CUT


def test_a_file_it_kept_as_unmerged_is_looked_at_again(workspace: Any) -> None:
    """It kept a sentence where a word is kept now; the end of the conflict is seen either way.

    The merge and its end leave the file's stat as it was, so that only what the catalog keeps
    tells that the file has to be looked at.
    """
    workspace.write(".gitattributes", "*.md -merge\n")
    path = workspace.write("file_index/chunked/own.md", "Amber.\n")
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "base")
    for branch, text in (("theirs", "Amber and cobalt.\n"), ("ours", "Amber and basalt.\n")):
        workspace.git("checkout", "-q", "-b", branch, *(["theirs~"] if branch == "ours" else []))
        path.write_text(text)
        workspace.git("commit", "-qam", branch)
    workspace.sync()
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("merge", "theirs")
    workspace.sync(code=1)
    workspace.in_catalog("UPDATE files SET detail = ? WHERE detail = 'unmerged'", UNMERGED)
    (found,) = workspace.in_catalog("SELECT detail FROM files WHERE path = ?", b"own.md")
    assert found == (UNMERGED,)
    assert workspace.found("basalt") == []
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "ours")
    assert workspace.drift() == {"modified": ["chunked/own.md"]}
    assert workspace.sync()["embedded"] == 0
    assert workspace.found("basalt") == ["own.md"]
    workspace.assert_settled()
