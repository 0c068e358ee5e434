"""A hit whose original changed or went says so; one that is as it was made stays fresh."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from filestore.sidecar import originals
from filestore.store import Store

PAGES = {"Home.md": "# Home\n\nA lantern in the hall.\n", "Yard.md": "# Yard\n\nA lantern.\n"}


@pytest.fixture(params=["folder", "each"])
def wiki(either: Any, request: pytest.FixtureRequest) -> Any:
    """Two notes, as one resource or as one each."""
    for name, text in PAGES.items():
        either.write(f"wiki/{name}", text)
    either("add", "wiki", *(["--each"] if request.param == "each" else []))
    return either


def asked(workspace: Any, *words: str, code: int = 0) -> tuple[dict[str, str], list[str]]:
    """The freshness of each hit by the name of its original, and the notes."""
    done = workspace.json("search", "lantern", "--mode", "keyword", *words, code=code)
    found = {Path(hit["source"] or hit["path"]).name: hit["freshness"] for hit in done["hits"]}
    return found, done["notes"]


def test_what_was_added_is_fresh(wiki: Any) -> None:
    """Nothing is said of originals that are as they were, also where only their stamps moved."""
    assert asked(wiki) == (dict.fromkeys(PAGES, "fresh"), [])
    os.utime(wiki.folder / "wiki/Home.md", ns=(1, 1))
    assert asked(wiki) == (dict.fromkeys(PAGES, "fresh"), [])


def test_a_changed_original(wiki: Any) -> None:
    """The hit shows what is indexed, and that its original says something else now."""
    wiki.write("wiki/Home.md", "# Home\n\nA candle in the hall.\n")
    found, notes = asked(wiki)
    assert found == {"Home.md": "outdated", "Yard.md": "fresh"}
    assert notes == [
        "1 of these results was made from an older version of the original: run 'filestore update'"
    ]
    words = wiki("search", "lantern", "--mode", "keyword")
    assert words.stdout.count("[outdated]") == 1
    wiki.write("wiki/Home.md", PAGES["Home.md"])
    assert asked(wiki)[0] == dict.fromkeys(PAGES, "fresh")


def test_an_original_that_went(wiki: Any) -> None:
    """Deleted and renamed originals are gone; results made from them are results all the same."""
    (wiki.folder / "wiki/Home.md").unlink()
    (wiki.folder / "wiki/Yard.md").rename(wiki.folder / "wiki/Garden.md")
    found, notes = asked(wiki)
    assert found == dict.fromkeys(PAGES, "outdated")
    assert [note.partition(" an ")[0] for note in notes] == ["2 of these results were made from"]


def test_an_edit_is_told_first(wiki: Any) -> None:
    """A chunk that was edited since it was indexed says that, whatever became of its original."""
    wiki.write("wiki/Home.md", "# Home\n\nA candle.\n")
    files = [one for one in wiki.chunked.rglob("*.md") if one.is_file()]
    (path,) = (one for one in files if "hall" in one.read_text())
    path.write_text(path.read_text() + "More of it.\n")
    assert asked(wiki, "--no-update")[0]["Home.md"] == "edited"


def test_a_persons_own_file_has_no_original(either: Any, layout: str) -> None:
    """A file that a person put into the folder of a resource was not made from its source."""
    either.write("Home.md", "# Home\n\nA hall.\n")
    either("add", "Home.md")
    own = either.chunked / ("note.md" if layout == "flat" else "Home.md/note.md")
    own.write_text("A lantern of my own.\n")
    either.sync()
    either.write("Home.md", "# Home\n\nA cellar.\n")
    done = either.json("search", "lantern", "--mode", "keyword")
    assert [(Path(hit["path"]).name, hit["freshness"]) for hit in done["hits"]] == [
        ("note.md", "fresh")
    ]


def test_it_reads_only_what_has_another_stat(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Originals as they were are not opened; of the others only those of hits that are shown."""
    for number in range(30):
        workspace.write(f"wiki/{number:02}.md", f"# Page {number}\n\nLantern {number}.\n")
    workspace("add", "wiki")
    times: Counter[str] = Counter()
    read = originals.read

    def counting(path: str) -> originals.SeenOriginal:
        times[Path(path).name] += 1
        return read(path)

    monkeypatch.setattr(originals, "read", counting)
    with Store(str(workspace.store)) as store:
        assert {hit.freshness for hit in store.search("lantern", k=3)} == {"fresh"}
        assert not times
        for path in (workspace.folder / "wiki").iterdir():
            path.write_text("Dark.\n")
        assert [hit.freshness for hit in store.search("lantern", k=3)] == ["outdated"] * 3
        assert sum(times.values()) == 3


def test_an_original_that_may_not_be_looked_at(workspace: Any, tmp_path: Path) -> None:
    """What a record names outside the work tree is not opened, and nothing is said of it."""
    workspace.write("Home.md", "# Home\n\nA lantern.\n")
    workspace("add", "Home.md")
    record = workspace.chunked / "Home.md/meta.json"
    outside = tmp_path.parent / "elsewhere.md"
    outside.write_text("Another text.\n")
    reference = os.path.relpath(outside, workspace.store)
    record.write_text(record.read_text().replace('"../Home.md"', f'"{reference}"'))
    workspace.sync()
    done = workspace.json("search", "lantern", "--mode", "keyword")
    assert [hit["freshness"] for hit in done["hits"]] == ["fresh"]


def test_other_answers_know_it_too(workspace: Any) -> None:
    """What is similar, and what stands twice, is marked as the hits of a search are."""
    workspace.write("one.md", "# Basalt\n\nColumns of basalt.\n")
    workspace.write("two.md", "# Basalt\n\nColumns of basalt.\n")
    workspace("add", "one.md", "two.md")
    workspace.write("two.md", "# Peat\n\nBogs of peat.\n")
    similar = workspace.json("similar", "one.md")
    assert [hit["freshness"] for hit in similar["hits"]] == ["outdated"]
    assert "older version" in " ".join(similar["notes"])
    (group,) = workspace.json("duplicates", code=None)["groups"]
    assert [file["freshness"] for file in group["files"]] == ["fresh", "outdated"]
