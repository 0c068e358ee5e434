"""`filestore update`: originals that changed, came, were renamed or went, in one batch."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from filestore.store import Store
from tests.system.conftest import prose

PAGES = {name: f"# {name}\n\n{prose(name.lower())}" for name in ("Home", "Yard", "Attic")}


@pytest.fixture
def wiki(either: Any) -> Any:
    """A folder of three notes and a note by itself, added."""
    for name, text in PAGES.items():
        either.write(f"wiki/{name}.md", text)
    either.write("memo.md", "# Memo\n\nA memo.\n")
    either("add", "wiki", "memo.md")
    return either


def chunk_with(workspace: Any, words: str) -> Path:
    """The one chunk file that has some words."""
    files = [path for path in workspace.chunked.rglob("*.md") if path.is_file()]
    (found,) = (path for path in files if words in path.read_text())
    return found


def record_of(workspace: Any, source: str) -> Any:
    """The record of a source."""
    files = [path for path in workspace.chunked.rglob("*.json") if path.is_file()]
    records = [json.loads(path.read_text()) for path in files]
    (found,) = (record for record in records if record["source"] == source)
    return found


def rename(workspace: Any, old: str, new: str) -> None:
    (workspace.folder / old).rename(workspace.folder / new)


def test_nothing_changed(wiki: Any) -> None:
    """Nothing is written, nothing is left, and the exit code is that of success."""
    before = wiki.committed()
    done = wiki("update")
    assert done.stdout.splitlines() == [
        "sources unchanged",
        "embedded 0 passages (0 from cache)",
    ]
    assert wiki.committed() == before
    assert wiki.json("update", "--plan")["plan"]["changes"] == []


def test_everything_at_once(wiki: Any) -> None:
    """Edits, a new file, and a renamed one: only what changed is written and embedded."""
    wiki.write("wiki/Home.md", PAGES["Home"] + "\nOne more line.\n")
    wiki.write("wiki/New.md", "# New\n\nWords of the new one.\n")
    rename(wiki, "wiki/Yard.md", "wiki/Garden.md")
    rename(wiki, "memo.md", "reminder.md")
    before = wiki.committed()
    plan = wiki.json("update", "--plan", code=1)["plan"]
    assert wiki.committed() == before
    changes = {one["resource"]: one for one in plan["changes"]}
    assert changes["wiki"]["modified"] == ["../wiki/Home.md"]
    assert changes["wiki"]["new"] == ["../wiki/New.md"]
    assert changes["wiki"]["renamed"] == {"../wiki/Yard.md": "../wiki/Garden.md"}
    assert changes["memo.md"]["moved_to"] == "../reminder.md"
    report = wiki.json("update")
    assert report["plan"] == plan
    assert [one["resource"] for one in report["updated"]] == ["memo.md", "wiki"]
    assert (report["embedded"], report["remaining"], report["conflicts"]) == (2, [], [])
    after = wiki.committed()
    assert wiki.json("update")["updated"] == []
    assert wiki.committed() == after
    wiki.assert_settled()
    wiki("undo", report["undo"])
    assert wiki.committed() == before


def test_a_renamed_original_keeps_its_chunk_files(wiki: Any) -> None:
    """With a person's edit, questions and names in them; only the key that names it changes."""
    path = chunk_with(wiki, "about yard")
    own = path.with_name("yard of mine.md")
    path.rename(own)
    own.write_text(own.read_text().replace("step 4", "step four"))
    text = own.read_text()
    rename(wiki, "wiki/Yard.md", "wiki/Garden.md")
    report = wiki.json("update")
    assert (report["embedded"], report["conflicts"]) == (1, [])
    changed = own.read_text().splitlines()
    assert [line for line in changed if line not in text.splitlines()] == [
        'source: "../wiki/Garden.md"'
    ]
    sources = {one["source"] for one in record_of(wiki, "../wiki")["documents"]}
    assert sources == {"../wiki/Garden.md", "../wiki/Home.md", "../wiki/Attic.md"}
    wiki.write("wiki/Garden.md", PAGES["Yard"].replace("step 9", "step nine"))
    assert wiki.json("update")["updated"][0]["merged"] == [
        f"chunked/{own.relative_to(wiki.chunked)}"
    ]
    assert "step four" in own.read_text()
    assert "step nine" in own.read_text()


def test_a_renamed_file_that_is_a_resource(wiki: Any) -> None:
    """It keeps its resource and its name; later edits of it are followed."""
    rename(wiki, "memo.md", "wiki/../reminder.md")
    assert wiki.json("update")["embedded"] == 0
    wiki.write("reminder.md", "# Memo\n\nA reminder.\n")
    report = wiki.json("update", "memo.md")
    assert [one["resource"] for one in report["updated"]] == ["memo.md"]
    assert "A reminder." in chunk_with(wiki, "reminder.").read_text()
    assert wiki.json("add", "reminder.md")["unchanged"][0]["resource"] == "memo.md"
    wiki.assert_settled()


def edited(text: str) -> str:
    """A document in which some lines say something else."""
    return text.replace("step 9", "step nine").replace("step 2", "step two")


def test_an_original_that_was_renamed_and_edited(wiki: Any) -> None:
    """Its chunk files stay, with a person's edit; one document of a folder, and one added alone."""
    path = chunk_with(wiki, "about yard")
    path.write_text(path.read_text().replace("step 4", "step four"))
    rename(wiki, "wiki/Yard.md", "wiki/Garden.md")
    wiki.write("wiki/Garden.md", edited(PAGES["Yard"]))
    wiki.write("alone/Lawn.md", PAGES["Yard"])
    wiki("add", "alone/Lawn.md")
    rename(wiki, "alone/Lawn.md", "alone/Grass.md")
    wiki.write("alone/Grass.md", edited(PAGES["Yard"]))
    files = {path for path in wiki.truth() if path.endswith(".md")}
    planned = wiki.json("update", "--plan", code=1)["plan"]["changes"]
    assert [(one["modified"], one["renamed"]) for one in planned] == [
        (["../alone/Lawn.md"], {"../alone/Lawn.md": "../alone/Grass.md"}),
        (["../wiki/Yard.md"], {"../wiki/Yard.md": "../wiki/Garden.md"}),
    ]
    assert not any(one["gone"] or one["new"] for one in planned)
    said = wiki("update", "--plan", code=1).stdout
    assert "wiki: 1 changed, 1 renamed\n    changed ../wiki/Yard.md\n" in said
    report = wiki.json("update")
    assert report["conflicts"] == report["remaining"] == []
    assert {one["resource"] for one in report["updated"]} == {"wiki", "Lawn.md"}
    assert {path for path in wiki.truth() if path.endswith(".md")} == files
    for words in ("step four", "step nine", "step two"):
        assert words in path.read_text()
    assert {one["source"] for one in record_of(wiki, "../wiki")["documents"]} == {
        f"../wiki/{name}.md" for name in ("Attic", "Garden", "Home")
    }
    assert record_of(wiki, "../alone/Grass.md")["source"] == "../alone/Grass.md"
    wiki.assert_settled()
    assert wiki.json("update", "--plan")["plan"]["changes"] == []


@pytest.mark.parametrize("why", ["two came", "two went", "another text", "too large"])
def test_a_rename_with_edits_that_is_not_sure(wiki: Any, why: str) -> None:
    """What went is gone, and what came is new."""
    (wiki.folder / "wiki/Yard.md").unlink()
    text = edited(PAGES["Yard"])
    if why == "two went":
        (wiki.folder / "wiki/Attic.md").unlink()
    if why == "another text":
        text = prose("garden") + "".join(PAGES["Yard"].splitlines(keepends=True)[:9])
    wiki.write("wiki/Garden.md", text + "\n" * (2**20 if why == "too large" else 1))
    if why == "two came":
        wiki.write("wiki/Lawn.md", text)
    (change,) = wiki.json("update", "--plan", code=1)["plan"]["changes"]
    assert change["renamed"] == {}
    assert "../wiki/Yard.md" in change["gone"]
    assert "../wiki/Garden.md" in change["new"]


def test_a_renamed_folder(wiki: Any) -> None:
    """All of its documents go with it, those that are edited or gone since as well."""
    path = chunk_with(wiki, "about yard")
    path.write_text(path.read_text().replace("step 4", "step four"))
    rename(wiki, "wiki", "docs")
    plan = wiki.json("update", "--plan", code=1)["plan"]
    assert plan["changes"][0]["moved_to"] == "../docs"
    report = wiki.json("update")
    assert report["conflicts"] == []
    assert "step four" in path.read_text()
    assert {one["source"] for one in record_of(wiki, "../docs")["documents"]} == {
        f"../docs/{name}.md" for name in PAGES
    }
    wiki.assert_settled()


def test_a_repair_does_not_remove_what_was_renamed(wiki: Any) -> None:
    """Its chunks are as good as they were: the plan says what follows it instead."""
    rename(wiki, "wiki/Yard.md", "wiki/Garden.md")
    before = wiki.committed()
    done = wiki("repair", "--only", "source-missing", "--write-files", "--yes", code=1)
    assert "'filestore update' follows it to ../wiki/Garden.md" in done.stdout
    assert wiki.committed() == before


def test_what_is_gone_stays_until_it_is_asked_for(wiki: Any) -> None:
    """Its chunks are searched, as outdated; `--remove-gone` removes them, and undo brings back."""
    (wiki.folder / "wiki/Attic.md").unlink()
    before = wiki.committed()
    done = wiki("update", code=1)
    assert "source deleted: 1 chunk stays; --remove-gone removes it" in done.stdout
    assert wiki.committed() == before
    (hit,) = wiki.json("search", "attic", "--mode", "keyword")["hits"]
    assert hit["freshness"] == "outdated"
    wiki.write("wiki/New.md", "# New\n\nWords of the new one.\n")
    assert wiki.json("update", code=1)["updated"][0]["chunks"] == 4
    middle = wiki.committed()
    report = wiki.json("update", "--remove-gone")
    assert report["remaining"] == []
    assert wiki.json("search", "attic", "--mode", "keyword", code=1)["hits"] == []
    wiki("undo", report["undo"])
    assert wiki.committed() == middle


@pytest.mark.parametrize("gone", ["memo.md", "wiki"])
def test_all_of_a_resource_is_gone(wiki: Any, gone: str) -> None:
    """`--remove-gone` takes the record as well, so that the name is free again."""
    path = wiki.folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = wiki.committed()
    wiki("update", code=1)
    assert wiki.committed() == before
    report = wiki.json("update", "--remove-gone")
    assert [one["resource"] for one in report["removed"]] == [gone]
    assert gone not in [one["resource"] for one in wiki.json("ls")["items"]]
    wiki.assert_settled()
    wiki("undo", report["undo"])
    assert wiki.committed() == before
    assert set(wiki.drift()) == {"source-missing"}


@pytest.mark.parametrize("gone", ["memo.md", "wiki", "wiki/Home.md"])
def test_a_hand_edit_outlives_its_original(wiki: Any, gone: str) -> None:
    """Even `--remove-gone` keeps it, as a conflict in which a person chooses."""
    path = chunk_with(wiki, "A memo." if gone == "memo.md" else "about home")
    path.write_text(path.read_text() + "My own line.\n")
    target = wiki.folder / gone
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    report = wiki.json("update", "--remove-gone", code=1)
    assert [one["path"] for one in report["conflicts"]] == [
        f"chunked/{path.relative_to(wiki.chunked)}"
    ]
    assert "My own line." in path.read_text()
    after = wiki.committed()
    again = wiki.json("update", "--remove-gone", code=1)
    assert (again["updated"], again["removed"], again["undo"]) == ([], [], None)
    assert wiki.committed() == after
    assert "ingest-conflict" in wiki.drift()
    wiki("repair", "--theirs", path, "--yes", code=None)
    assert not path.exists()


def test_a_conflict_is_kept_and_told(wiki: Any) -> None:
    """Where a hand edit and the new text overlap both stay; a second update writes nothing."""
    path = chunk_with(wiki, "about home")
    path.write_text(path.read_text().replace("in step 4", "in my step"))
    wiki.write("wiki/Home.md", PAGES["Home"].replace("in step 4", "in their step"))
    report = wiki.json("update", code=1)
    assert len(report["conflicts"]) == 1
    assert "ingest-conflict" in {one["code"] for one in report["remaining"]}
    after = wiki.committed()
    again = wiki.json("update", code=1)
    assert (again["updated"], again["unchanged"], again["undo"]) == ([], [], None)
    assert wiki.committed() == after


def test_only_what_is_named(wiki: Any) -> None:
    """Another resource stays behind; a name that is none says what there is."""
    wiki.write("wiki/Home.md", "# Home\n\nOther words.\n")
    wiki.write("memo.md", "# Memo\n\nOther words.\n")
    report = wiki.json("update", "wiki", code=1)
    assert [one["resource"] for one in report["updated"]] == ["wiki"]
    assert wiki.drift() == {"source-modified": ["../memo.md"]}
    assert "no document 'nothing'" in wiki("update", "nothing", code=3).stderr


def test_add_without_a_path(wiki: Any) -> None:
    """Inside an added folder it updates that folder; elsewhere it asks for a path."""
    wiki.write("wiki/sub/Deep.md", "# Deep\n\nWords of the deep.\n")
    wiki.write("memo.md", "# Memo\n\nOther words.\n")
    report = wiki.json("add", cwd=wiki.folder / "wiki/sub", code=1)
    assert [one["resource"] for one in report["updated"]] == ["wiki"]
    assert wiki.drift() == {"source-modified": ["../memo.md"]}
    assert wiki.json("add", cwd=wiki.folder)["updated"][0]["resource"] == "memo.md"
    elsewhere = wiki.folder / "elsewhere"
    elsewhere.mkdir()
    done = wiki("add", cwd=elsewhere, code=2)
    assert f"try: filestore add {elsewhere}" in done.stderr
    assert "name a file or a folder" in wiki("add", "--into", "x", code=2).stderr


def test_no_file_is_written_in_the_middle_of_a_merge(wiki: Any) -> None:
    """As for every command that writes chunk files: it is refused, and says why."""
    git = ["git", "-C", str(wiki.folder), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True).stdout
    (wiki.folder / ".git/MERGE_HEAD").write_bytes(head)
    wiki.write("wiki/Home.md", "# Home\n\nOther words.\n")
    before = wiki.committed()
    assert "merge" in wiki("update", code=4).stderr
    assert wiki.committed() == before


def test_a_record_of_a_stranger(wiki: Any, tmp_path: Path) -> None:
    """What it names outside the work tree is not looked at, and that is said."""
    outside = tmp_path.parent / "stranger.md"
    outside.write_text("Words of a stranger.\n")
    for path in wiki.chunked.rglob("*.json"):
        if path.is_file() and '"../memo.md"' in path.read_text():
            path.write_text(path.read_text().replace("../memo.md", f"../../../{outside.name}"))
    before = wiki.committed()
    done = wiki("update", code=None)
    assert "not looked at: 1 original" in done.stderr
    assert "1 original" in wiki("status").stderr or "the original" in wiki("status").stderr
    assert wiki.committed() == before


def of_documents(workspace: Any) -> set[str]:
    """What the chunk files were made from."""
    heads = (path.read_text() for path in workspace.chunked.rglob("chunk*.md"))
    return {line for head in heads for line in head.splitlines() if line.startswith("source:")}


def folder_of_three(workspace: Any) -> None:
    for name in ("a", "b", "s/c"):
        workspace.write(f"h/{name}.md", f"# {name}\n\nWords of {name}.\n")
    workspace("add", "h")


def test_a_file_that_moved_into_a_subfolder_moves_alone(workspace: Any) -> None:
    """The others stay where they are, also where what is gone is to be removed."""
    folder_of_three(workspace)
    (workspace.folder / "h/old").mkdir()
    (workspace.folder / "h/a.md").rename(workspace.folder / "h/old/a.md")
    workspace("update", "--remove-gone")
    names = ("h/old/a.md", "h/b.md", "h/s/c.md")
    assert of_documents(workspace) == {f'source: "../{name}"' for name in names}
    assert workspace.drift() == {}
    workspace.write("h/new.md", "# New\n\nNew words.\n")
    assert workspace.drift().keys() == {"source-untracked"}


def test_only_what_the_plan_names_is_removed(workspace: Any) -> None:
    """A document that a rule hides, or that cannot be looked at, is not gone."""
    folder_of_three(workspace)
    workspace.write("h/.filestoreignore", "s/\n")
    (workspace.folder / "h/a.md").unlink()
    assert "gone ../h/a.md" in workspace("update", "--remove-gone").stdout
    assert of_documents(workspace) == {'source: "../h/b.md"', 'source: "../h/s/c.md"'}


def test_nothing_that_could_be_read_is_no_partial_success(workspace: Any) -> None:
    """Where every document fails the exit code is that of `add`."""
    folder_of_three(workspace)
    for path in (workspace.folder / "h").rglob("*.md"):
        path.write_bytes(b"")
    workspace("update", code=3)


def test_a_new_child_of_a_folder_of_which_each_was_added(either: Any) -> None:
    """It is told, and becomes a resource of its own; other files beside them are nobody's."""
    either.write("shelf/one.md", PAGES["Home"])
    either.write("shelf/in/deep.md", PAGES["Yard"])
    either.write("apart/alone.md", PAGES["Attic"])
    either.write("shelf/.filestoreignore", "draft.md\n")
    either("add", "shelf", "--each")
    either("add", "apart/alone.md")
    assert either.drift() == {}
    either.write("shelf/two.md", "# Two\n\nWords of two.\n")
    either.write("shelf/new/three.md", "# Three\n\nWords of three.\n")
    either.write("shelf/draft.md", "# Draft\n\nWords of a draft.\n")
    either.write("apart/other.md", "# Other\n\nWords of another.\n")
    (either.folder / "shelf/empty").mkdir()
    assert either.drift() == {"source-untracked": ["../shelf/new", "../shelf/two.md"]}
    assert either.json("update", "one.md", code=1)["added"] == []
    plan = either.json("update", "--plan", code=1)["plan"]
    assert [one["resource"] for one in plan["changes"]] == ["new", "two.md"]
    report = either.json("update")
    assert [one["resource"] for one in report["added"]] == ["new", "two.md"]
    assert either.found("Three") == either.chunks("new")
    either.assert_settled()
    either.write("shelf/new/four.md", "# Four\n\nWords of four.\n")
    rename(either, "shelf/one.md", "shelf/first.md")
    report = either.json("update")
    assert {one["resource"] for one in report["updated"]} == {"new", "one.md"}
    assert report["added"] == []
    either.write("shelf/five.md", "# Five\n\nWords of five.\n")
    done = either.json("add", cwd=either.folder / "shelf")
    assert [one["resource"] for one in done["added"]] == ["five.md"]
    assert "name it in the .filestoreignore" in either("rm", "two.md").stderr
    assert either.drift() == {"source-untracked": ["../shelf/two.md"]}


def test_a_store_of_before_learns_what_each_was(workspace: Any) -> None:
    """A record that does not say so yet says it once its folder is added with --each again."""
    workspace.write("shelf/one.md", PAGES["Home"])
    workspace("add", "shelf/one.md")
    workspace.write("shelf/two.md", PAGES["Yard"])
    assert workspace.drift() == {}
    report = workspace.json("add", "shelf", "--each")
    assert [one["resource"] for one in report["added"]] == ["two.md"]
    assert [one["resource"] for one in report["updated"]] == ["one.md"]
    assert [one["resource"] for one in workspace.json("add", "shelf", "--each")["unchanged"]] == [
        "one.md",
        "two.md",
    ]
    workspace("add", "shelf/one.md")
    assert record_of(workspace, "../shelf/one.md")["each"] is True


def test_what_is_watched(workspace: Any) -> None:
    """Every folder in which a new original may come, and what decides which files are originals."""
    (workspace.folder / "wiki/a/b").mkdir(parents=True)
    workspace.write("wiki/Home.md", PAGES["Home"])
    workspace.write("shelf/one.md", PAGES["Yard"])
    workspace.write("memo.md", "# Memo\n\nA memo.\n")
    workspace("add", "wiki", "memo.md")
    workspace("add", "shelf", "--each")
    (workspace.folder / "shelf/in").mkdir()
    with Store(workspace.store) as store:
        watched = {Path(path) for path in store.plan_update().watched}
    files = {"wiki/Home.md", "shelf/one.md", "memo.md"}
    folders = {"wiki", "wiki/a", "wiki/a/b", "shelf", "shelf/in"}
    rules = {
        f"{folder}/{name}" for folder in folders for name in (".gitignore", ".filestoreignore")
    }
    assert watched == {workspace.folder / name for name in files | folders | rules}


def test_the_originals_of_copies(either: Any) -> None:
    """A copy follows its original, where that is there and this user added it; else it stays."""
    far = either.folder.parent / "far"
    far.mkdir()
    (far / "one.md").write_text("# One\n\nWords from afar.\n")
    either("add", far)
    (path,) = either.chunks("far")
    (far / "one.md").write_text("# One\n\nWords from further.\n")
    (far / "two.md").write_text("# Two\n\nMore words.\n")
    assert either.drift() == {"source-modified": ["source/far/one.md"]}
    (hit,) = either.json("search", "afar", "--mode", "keyword")["hits"]
    assert hit["freshness"] == "outdated"
    assert str(far) in either("trust", "--list").stdout
    either("trust", "--revoke")
    assert either.drift() == {}
    assert "filestore trust" in either("status").stderr
    either("trust", "--yes")
    plan = either.json("update", "--plan", code=1)["plan"]
    assert plan["changes"][0]["modified"] == ["source/far/one.md"]
    report = either.json("update")
    assert [one["resource"] for one in report["updated"]] == ["far"]
    assert (either.store / "source/far/one.md").read_text() == "# One\n\nWords from further.\n"
    assert b"further" in (either.chunked / path).read_bytes()
    assert len(either.chunks("far")) == 2
    either.assert_settled()
    either("undo", report["undo"])
    either("update")
    shutil.rmtree(far)
    assert either.drift() == {}
    assert either("update").stdout.startswith("sources unchanged")


def test_a_hand_edit_behind_the_original_of_a_copy(workspace: Any) -> None:
    """What overlaps waits for a choice, and is not copied again each time."""
    far = workspace.folder.parent / "far.md"
    far.write_text("# One\n\nWords from afar.\n")
    workspace("add", far)
    chunk = workspace.chunked / "far.md/chunk1.md"
    chunk.write_text(chunk.read_text().replace("afar", "my side"))
    far.write_text("# One\n\nWords from further.\n")
    assert len(workspace.json("update", code=1)["conflicts"]) == 1
    assert workspace.json("update", code=1)["plan"]["changes"] == []
    workspace("repair", "--theirs", "far.md/chunk1.md", "--write-files", "--yes", code=None)
    workspace.assert_settled()


def test_an_undone_update_leaves_no_conflict(either: Any) -> None:
    """What waited behind a hand edit was part of it: the next update begins anew."""
    either.write("wiki/a.md", f"# A\n\n{prose('amber')}\n## B\n\n{prose('basalt')}")
    either("add", "wiki")
    chunk = chunk_with(either, "about amber")
    chunk.write_text(chunk.read_text().replace("step 4", "step four"))
    either("sync")
    text = (either.folder / "wiki/a.md").read_text().replace("in step 4", "in step IV")
    either.write("wiki/a.md", text)
    before = either.truth()
    report = either.json("update", code=1)
    assert len(report["conflicts"]) == 1
    either("undo", report["undo"])
    assert either.truth() == before
    assert either.drift() == {"source-modified": ["../wiki/a.md"]}
    again = either.json("update", code=1)
    assert again["plan"]["changes"][0]["modified"] == ["../wiki/a.md"]
    assert again["conflicts"] == report["conflicts"]


def test_a_merge_that_the_disk_refuses_is_no_conflict(
    workspace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document is as it was, the reason is told, and once there is room the texts merge."""
    workspace.write("lease.md", "# Lease\n\nIt is due in May.\n\nIt ends in June.\n")
    workspace("add", "lease.md")
    chunk = workspace.chunked / "lease.md/chunk1.md"
    chunk.write_text(chunk.read_text().replace("in June", "in June, at last"))
    workspace("sync")
    workspace.write("lease.md", "# Lease\n\nIt is due in April.\n\nIt ends in June.\n")
    before = workspace.truth()
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        done = workspace("update", code=3)
    assert "cannot merge texts in" in done.stderr
    assert workspace.truth() == before
    assert workspace.drift() == {"source-modified": ["../lease.md"]}
    assert workspace.json("update")["updated"][0]["merged"] == ["chunked/lease.md/chunk1.md"]
    assert "April" in chunk.read_text()
    assert "at last" in chunk.read_text()
