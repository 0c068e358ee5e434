"""Summaries of notes in place, and questions: beside them, never among them, as editable."""

import os
from collections.abc import Callable

import pytest

from tests.system.conftest import Workspace, files_below

HOME = """# Home

Some words about the house and its garden and what grows there in summer time.

## Heating

The boiler heats the water. It stands in the cellar, and its pressure must be 1.5 bar.
{boiler}

## Service

The boiler must be serviced every year. Its pressure is checked in the cellar.
{boiler}

## Garden

Roses grow in the garden. They need water every day in summer, and they like the sun.
{roses}

## Watering

Water the roses in the garden each evening in summer, never at noon in the sun.
{roses}
""".format(
    boiler="The boiler in the cellar needs water at the right pressure all year. " * 6,
    roses="The roses in the garden need water in summer, in the evening, not in the sun. " * 6,
)
MADE = ".filestore-summaries"


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Workspace:
    """Notes in a work tree, in place and committed."""
    made = new_workspace(init=False)
    made.write("notes/Home.md", HOME)
    made.write("notes/Stub.md", "# Stub\n\nOne line about a walrus.\n")
    made("init", "--in-place", "--embedder", "builtin")
    commit(made, "notes")
    return made


def commit(notes: Workspace, message: str) -> None:
    notes.git("add", "-A")
    notes.git("commit", "-qm", message)


def truth(notes: Workspace) -> dict[str, bytes]:
    """What a person wrote: every file but the sidecar, git's own, and what was made of notes."""
    ours = (".git/", ".filestore/", f"{MADE}/")
    found = files_below(notes.folder)
    return {path: data for path, data in found.items() if not path.startswith(ours)}


def made(notes: Workspace) -> dict[str, bytes]:
    """What was made of notes, by path below its folder."""
    folder = notes.folder / MADE
    return files_below(folder) if folder.exists() else {}


def texts(notes: Workspace) -> str:
    return b"".join(made(notes).values()).decode()


def test_summaries_lie_beside_the_notes_and_are_searched(notes: Workspace) -> None:
    """What a person wrote stays byte for byte; a note of one section gets no summary."""
    before = truth(notes)
    report = notes.json("enrich", "--summaries")
    assert report["summaries"] > 0
    assert truth(notes) == before
    assert made(notes)
    assert all(path.startswith("notes/Home.md/summary") for path in made(notes))
    assert notes.json("status")["drift"] == {}
    assert notes.json("verify")["findings"] == []
    hits = notes.json("search", "boiler pressure cellar", "--kind", "summary")["hits"]
    assert hits[0]["path"].startswith(f"{MADE}/notes/Home.md/summary")
    assert hits[0]["resource"] == "notes/Home.md"
    listed = notes.json("ls")["items"]
    assert [one["resource"] for one in listed] == ["notes/Home.md", "notes/Stub.md"]
    assert notes.json("enrich", "--summaries")["summaries"] == 0


def test_an_edit_makes_only_its_summaries_stale(notes: Workspace) -> None:
    notes("enrich", "--summaries")
    notes.write("notes/Home.md", HOME.replace("1.5 bar", "1.8 bar"))
    assert notes.sync(code=1)["remaining"][0]["code"] == "summary-stale"
    stale = notes.drift()["summary-stale"]
    assert 0 < len(stale) <= len(made(notes))
    assert notes.json("enrich", "--refresh", "--plan")["summaries"] == len(stale)
    assert 0 < notes.json("enrich", "--refresh")["summaries"] <= len(stale)
    assert notes.drift() == {}


def test_undo_takes_it_back_byte_for_byte(notes: Workspace) -> None:
    before = files_below(notes.folder / "notes")
    notes("enrich", "--summaries")
    after = made(notes)
    notes("undo")
    assert made(notes) == {}
    assert files_below(notes.folder / "notes") == before
    assert notes.drift() == {}
    notes("redo")
    assert made(notes) == after
    assert notes.drift() == {}


def test_what_a_person_wrote_in_a_summary_stays(notes: Workspace) -> None:
    notes("enrich", "--summaries")
    (name,) = (path for path in made(notes) if path.endswith("summary1.md"))
    path = notes.folder / MADE / name
    path.write_text(path.read_text() + "\nA word of mine about the boiler.\n")
    notes("sync", code=None)
    notes.write("notes/Home.md", HOME.replace("1.5 bar", "1.8 bar"))
    report = notes.json("enrich", "--refresh")
    assert [one["path"] for one in report["kept"]] == [f"{MADE}/{name}"]
    assert "A word of mine" in path.read_text()


def test_a_note_that_is_gone_takes_its_summaries_along(notes: Workspace) -> None:
    """At the next run, which says so; until then they are stale."""
    notes("enrich", "--summaries")
    (notes.folder / "notes/Home.md").unlink()
    notes.sync("--forget-missing", code=1)
    assert "summary-stale" in notes.drift()
    assert notes.json("enrich", "--refresh")["removed"] > 0
    assert made(notes) == {}
    assert notes.drift() == {}


def test_what_git_merges_is_as_both_made_it(notes: Workspace) -> None:
    """Two branches that summarised the same notes made the same files."""
    notes.git("checkout", "-qb", "side")
    notes("enrich", "--summaries")
    commit(notes, "side")
    side = made(notes)
    notes.git("checkout", "-q", "-")
    notes("sync", "--forget-missing")
    assert made(notes) == {}
    notes("enrich", "--summaries")
    commit(notes, "main")
    assert made(notes) == side
    notes.git("merge", "-q", "side", "-m", "both")
    assert made(notes) == side
    assert notes.drift() == {}


def test_broken_frontmatter_in_a_summary_is_told(notes: Workspace) -> None:
    """With the codes of chunk files, which notes do not have."""
    notes("enrich", "--summaries")
    name = min(made(notes))
    path = notes.folder / MADE / name
    whole = path.read_text()
    path.write_text(whole.replace("level: 1", 'level: "high"'))
    assert notes.drift()["invalid-metadata"] == [f"{MADE}/{name}"]
    path.write_text("

def test_a_note_whose_name_may_not_be_written_is_named(notes: Workspace) -> None:
    """Some systems would take it for a hidden file; all others get what was made of them."""
    notes.write("\u200d.odd.md", HOME.replace("boiler", "engine"))
    notes("sync")
    report = notes.json("enrich", code=None)
    assert {one["kind"] for one in report["failed"]} == {"write"}
    assert all("odd.md" in one["path"] for one in report["failed"])
    assert "notes/Home.md/questions.md" in made(notes)
    assert not any("odd" in path for path in made(notes))


def test_two_branches_that_made_different_files_lose_nothing(notes: Workspace) -> None:
    """Git shows the conflict, status says what to do; a person's words are in one of the sides."""
    notes.git("checkout", "-qb", "side")
    notes.write("notes/Home.md", HOME.replace("1.5 bar", "1.9 bar"))
    notes("sync")
    notes("enrich")
    commit(notes, "side")
    notes.git("checkout", "-q", "-")
    notes("sync", "--forget-missing")
    notes.write("notes/Home.md", HOME.replace("they like the sun", "they like the moon"))
    notes("sync")
    notes("enrich")
    commit(notes, "main")
    with pytest.raises(Exception, match="merge"):
        notes.git("merge", "side", "-m", "both")
    notes("sync", code=1)
    drift = notes.drift()
    assert QUESTIONS in drift["conflict-markers"]
    assert "invalid-metadata" not in drift
    assert "enrich --refresh" in " ".join(notes("status", code=1).stdout.split())
    before = made(notes)
    assert notes("enrich", code=None).code != 0
    assert made(notes) == before
    notes.git("checkout", "--ours", MADE)
    commit(notes, "merged")
    notes("sync", code=1)
    notes("enrich", "--refresh")
    assert notes.drift() == {}
    assert notes.json("verify")["findings"] == []
    assert ask(notes, "moon")[0][0] == "notes/Home.md"
