"""Summaries of notes in place, and questions: beside them, never among them, as editable."""

import os
from collections.abc import Callable

import pytest

from filestore.browse import InspectedStore
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
    path.write_text("<<<<<<< ours\n" + whole + "=======\n" + whole + ">>>>>>> theirs\n")
    assert notes.drift()["conflict-markers"] == [f"{MADE}/{name}"]
    notes("sync", code=1)
    path.write_text(whole)
    notes("sync")
    assert notes.drift() == {}


def test_a_folder_that_cannot_be_written_is_said(notes: Workspace) -> None:
    """Nothing is made among the notes; what was made is kept, and written the next time."""
    before = truth(notes)
    notes.write(f"{MADE}", "a file in the way")
    done = notes("enrich", "--summaries", code=None)
    assert done.code != 0
    assert truth(notes) | {MADE: b"a file in the way"} == before | {MADE: b"a file in the way"}
    (notes.folder / MADE).unlink()
    assert notes.json("enrich", "--summaries")["summaries"] > 0


QUESTIONS = f"{MADE}/notes/Home.md/questions.md"


def ask(notes: Workspace, query: str) -> list[tuple[str, int]]:
    hits = notes.json("search", query, "--mode", "keyword", code=None)["hits"]
    return [(hit["path"], hit["line"]) for hit in hits]


def test_a_question_leads_to_its_section(notes: Workspace) -> None:
    """A person's own is found by each way of searching, and shows the note, not the list."""
    notes.write("notes/Home.md", f"{HOME}\nIt is a #house text.\n")
    notes("sync")
    before = truth(notes)
    assert notes.json("enrich", "--questions", "2")["questions"] == 2
    assert truth(notes) == before
    path = notes.folder / QUESTIONS
    listed = path.read_text()
    comment = listed.split("## Home > Watering\n")[1].partition("\n")[0]
    path.write_text(listed.replace(comment, f"{comment}\n- Quand arroser les fleurs fragiles ?"))
    notes("sync")
    assert notes.drift() == {}
    assert notes.json("verify")["findings"] == []
    line = 1 + HOME[: HOME.index("## Watering")].count("\n")
    for mode in ("keyword", "vector", "hybrid"):
        hits = notes.json("search", "Quand arroser les fleurs fragiles", "--mode", mode)["hits"]
        assert (hits[0]["path"], hits[0]["kind"]) == ("notes/Home.md", "document")
        assert hits[0]["line"] >= line
        assert hits[0]["headings"] == ["Home", "Watering"]
        assert hits[0]["freshness"] == "fresh"
        assert all(MADE not in hit["path"] for hit in hits)
        filtered = ("--mode", mode, "--where", "tags=house")
        hits = notes.json("search", "Quand arroser les fleurs fragiles", *filtered)["hits"]
        assert [hit["headings"] for hit in hits] == [["Home", "Watering"]]


def test_a_question_whose_text_changed_finds_nothing(notes: Workspace) -> None:
    """It is stale until it is made again; a person's own goes along with its text."""
    notes("enrich", "--questions", "2")
    path = notes.folder / QUESTIONS
    listed = path.read_text()
    comment = listed.split("## Home\n")[1].partition("\n")[0]
    path.write_text(listed.replace(comment, f"{comment}\n- Combien de bars ?"))
    notes("sync")
    assert ask(notes, "combien bars")[0][0] == "notes/Home.md"
    notes.write("notes/Home.md", HOME.replace("1.5 bar", "1.8 atmospheres"))
    notes("sync", code=1)
    assert notes.drift() == {"summary-stale": [QUESTIONS]}
    assert ask(notes, "combien") == []
    assert notes.json("enrich", "--refresh", "--questions", "2")["questions"] == 1
    assert notes.drift() == {}
    assert ask(notes, "combien")[0][0] == "notes/Home.md"


def test_a_deleted_question_stays_away(notes: Workspace) -> None:
    """Whatever is made again; a changed one stays as a person changed it."""
    notes("enrich", "--questions", "2")
    path = notes.folder / QUESTIONS
    lines = path.read_text().split("\n")
    asked = [number for number, line in enumerate(lines) if line.startswith("- ")]
    deleted, changed = lines[asked[0]], f"{lines[asked[1]]} And since when?"
    lines[asked[1]] = changed
    del lines[asked[0]]
    path.write_text("\n".join(lines))
    notes("sync")
    assert notes.json("enrich", "--questions", "2")["questions"] == 0
    first = HOME.partition("\n\n")[2].partition("\n")[0]
    notes.write("notes/Home.md", HOME.replace(first, f"{first} And a word more."))
    notes("enrich", "--refresh", "--questions", "2", code=None)
    after = path.read_text().split("\n")
    assert changed in after
    assert deleted not in after[: after.index("## Home > Service")]


def test_lines_that_are_no_questions_are_told(notes: Workspace) -> None:
    """And the file stays as it is, whatever is asked for, until a person corrected it."""
    notes("enrich", "--questions", "2")
    path = notes.folder / QUESTIONS
    path.write_text(path.read_text() + "\nSome remark of mine.\n")
    assert notes.drift() == {"invalid-metadata": [QUESTIONS]}
    wrong = path.read_bytes()
    report = notes.json("enrich", "--questions", "4", code=None)
    assert [one["path"] for one in report["kept"]] == [QUESTIONS]
    assert path.read_bytes() == wrong
    assert notes.drift() == {"invalid-metadata": [QUESTIONS]}


def test_questions_of_two_branches_merge_line_by_line(notes: Workspace) -> None:
    """Each added one to another section: git has both, and nothing is made twice."""
    notes("enrich", "--questions", "2")
    commit(notes, "questions")
    listed = (notes.folder / QUESTIONS).read_text()
    sections = listed.split("<!-- ")

    def add(number: int, question: str) -> str:
        changed = list(sections)
        changed[number] = changed[number].replace("-->\n\n", f"-->\n\n- {question}\n")
        return "<!-- ".join(changed)

    notes.git("checkout", "-qb", "side")
    notes.write(QUESTIONS, add(1, "Side?"))
    commit(notes, "side")
    notes.git("checkout", "-q", "-")
    notes.write(QUESTIONS, add(len(sections) - 1, "Main?"))
    commit(notes, "main")
    notes.git("merge", "-q", "side", "-m", "both")
    both = (notes.folder / QUESTIONS).read_text()
    assert "- Side?" in both
    assert "- Main?" in both
    notes("sync")
    assert notes.drift() == {}
    assert notes.json("enrich", "--questions", "2")["questions"] == 0


def test_nothing_is_embedded_or_made_twice(notes: Workspace) -> None:
    """Also where the catalog is gone: what was made lies in files, and their vectors are kept."""
    notes("enrich")
    before = made(notes)
    (notes.folder / ".filestore/catalog.sqlite").unlink()
    notes("sync")
    report = notes.json("enrich")
    assert (report["questions"], report["summaries"], report["embedded"]) == (0, 0, 0)
    assert made(notes) == before
    assert notes.json("verify")["findings"] == []
    assert notes.json("duplicates", "--above", "1", code=1)["groups"] == []
    with InspectedStore(notes.folder) as store:
        drawn = store.vector_map()
        assert not any(path.endswith("/questions.md") for path in drawn.paths)
        assert (len(drawn.paths), drawn.left_out) == (drawn.total, 0)


def test_what_was_made_goes_along_with_a_note(notes: Workspace) -> None:
    """With what a person wrote in it, and without a text being made or embedded again."""
    notes("enrich")
    summary = notes.folder / MADE / "notes/Home.md/summary1.md"
    summary.write_text(summary.read_text() + "\nA word of mine about the boiler.\n")
    notes("sync", code=None)
    notes("enrich", "--refresh")
    before = len(made(notes))
    (notes.folder / "house").mkdir()
    (notes.folder / "notes/Home.md").rename(notes.folder / "house/House.md")
    notes("sync", code=1)
    report = notes.json("enrich", "--refresh")
    assert any("house/House.md" in note for note in report["notes"])
    assert report["embedded"] == 0
    assert len(made(notes)) == before
    moved = notes.folder / MADE / "house/House.md/summary1.md"
    assert "A word of mine" in moved.read_text()
    assert not summary.exists()
    codes = {one["code"] for one in notes.json("verify")["findings"]}
    assert codes <= {"hand-edited"}
    stale = notes.drift().get("summary-stale", [])
    assert all("house/House.md" in path for path in stale)
    notes("undo")
    assert summary.exists()
    assert not moved.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_notes_that_may_only_be_read_are_left_alone(notes: Workspace) -> None:
    """The sidecar keeps what was made; it is written once that may be."""
    before = truth(notes)
    notes.folder.chmod(0o555)
    try:
        done = notes("enrich", code=None)
    finally:
        notes.folder.chmod(0o755)
    assert done.code not in (0, 1)
    assert truth(notes) == before
    assert made(notes) == {}
    assert notes.json("enrich")["from_cache"] > 0


def test_rules_that_leave_out_dot_folders_leave_out_no_summaries(notes: Workspace) -> None:
    """Whether they are committed is another matter."""
    notes("enrich")
    notes.write(".gitignore", f".*\n{MADE}/\n")
    assert notes.drift() == {}
    assert notes.json("search", "boiler", "--kind", "summary")["hits"]


def test_what_does_not_belong_there_is_told(notes: Workspace) -> None:
    """A link out of it is not followed, a document in it is none, nothing else is read."""
    notes("enrich")
    target = notes.folder / MADE / "notes/Home.md"
    (target / "summary9.md").symlink_to("/etc/passwd")
    (target / "mine.txt").write_text("words\n")
    notes.write(f"{MADE}/notes/Home.md/odd.md", '---\nkind: "questions"\n---\n')
    drift = notes.drift()
    assert drift["symlink"] == [f"{MADE}/notes/Home.md/summary9.md"]
    assert drift["litter"] == [f"{MADE}/notes/Home.md/mine.txt"]
    assert drift["empty"] == [f"{MADE}/notes/Home.md/odd.md"]
    notes("sync", code=1)
    assert notes.json("search", "root", "--mode", "keyword", code=None)["hits"] == []


def test_a_summary_that_names_itself_or_nothing_is_stale(notes: Workspace) -> None:
    """Cycles and lies in what a person wrote end neither a status nor a run."""
    notes("enrich", "--summaries")
    name = f"{MADE}/notes/Home.md/summary8.md"
    key = "0" * 64
    notes.write(
        name,
        f"""---
kind: "summary"
level: 7
children: [{{"path": "{name}", "hash": "sha256:{key}"}}, {{"path": "../x", "hash": "no"}}]
---
A text of mine.
""",
    )
    notes("sync", code=1)
    assert name in notes.drift()["summary-stale"]
    report = notes.json("enrich", "--refresh", code=None)
    assert name in [one["path"] for one in report["kept"]]
    assert "A text of mine." in texts(notes)


def test_staged_files_are_looked_at(notes: Workspace) -> None:
    """The hook reads what is committed of them, too."""
    notes("enrich")
    notes.git("add", "-A")
    assert notes.json("verify", "--staged")["findings"] == []
    path = notes.folder / QUESTIONS
    path.write_text(path.read_text() + "No question.\n")
    notes.git("add", "-A")
    findings = notes.json("verify", "--staged", code=None)["findings"]
    assert [one["path"] for one in findings] == [QUESTIONS]


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
