"""Repair on a real disk: what is planned is what is done, and what moved on is left alone."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.chunks import chunk_file, layout

WORDS = ("amber", "basalt", "copper", "diorite", "emerald", "flint")


def fill(workspace: Any, number: int = 6, *, commit: bool = False) -> list[Path]:
    """A store of one-chunk documents with a word each; the paths of their chunk files."""
    names = [f"{WORDS[index % 6]}{index // 6 or ''}.md" for index in range(number)]
    for name in names:
        workspace.write(f"notes/{name}", f"# {name[:-3]}\n\nAll about {name[:-3]} here.\n")
    workspace("add", "notes", "--each")
    if commit:
        workspace.git("add", "-A")
        workspace.git("commit", "-q", "-m", "Add notes")
    return [workspace.chunked / workspace.chunks(name)[0] for name in names]


def shown(workspace: Any, path: Path) -> str:
    return path.relative_to(workspace.store).as_posix()


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and when it was written, but for the logs of SQLite."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def kinds(steps: list[dict[str, Any]]) -> list[str]:
    return sorted(step["kind"] for step in steps)


def codes(findings: list[dict[str, Any]]) -> list[str]:
    return sorted(finding["code"] for finding in findings if finding["severity"] != "I")


def repair(workspace: Any, *words: object, code: int | None = 0) -> Any:
    return workspace.json("repair", "--yes", *words, code=code)


def assert_nothing_to_do(workspace: Any, *words: object) -> None:
    """Another repair plans nothing and makes no new generation."""
    before = workspace.json("status", code=None)["generation"]
    done = repair(workspace, *words, code=None)
    assert done["plan"]["steps"] == []
    assert done["applied"] == done["skipped"] == done["undo"] == []
    assert workspace.json("status", code=None)["generation"] == before


# The sidecar follows the files


def test_the_sidecar_follows_and_no_file_is_written(either: Any) -> None:
    """An edit, a move, a loss and a new file are followed; files stay, and the next has no work."""
    edited, moved, lost, *_ = fill(either)
    edited.write_bytes(edited.read_bytes() + b"More words.\n")
    target = moved.with_name("renamed.md")
    moved.rename(target)
    lost.unlink()
    (either.chunked / "own.md").write_text("Words of my own.\n")
    truth = either.truth()
    planned = either.json("repair", "--plan", code=1)["plan"]
    assert kinds(planned["steps"]) == ["forget", "index", "reindex", "repoint"]
    assert (planned["texts"], planned["known"]) == (2, 0)
    done = repair(either)
    assert kinds(done["applied"]) == ["forget", "index", "reindex", "repoint"]
    assert done["embedded"] == 2
    assert done["skipped"] == done["undo"] == []
    assert codes(done["remaining"]) == []
    assert either.truth() == truth
    assert_nothing_to_do(either)


def test_a_plan_changes_nothing(workspace: Any) -> None:
    """``--plan`` exits 1 where there is work and leaves store and generation as they are."""
    paths = fill(workspace)
    paths[0].write_bytes(paths[0].read_bytes() + b"More words.\n")
    paths[1].unlink()
    before = files(workspace.store)
    workspace("repair", "--plan", "--write-files", "--level", "full", code=1)
    assert files(workspace.store) == before
    done = workspace("repair", "--plan", code=1)
    assert "re-index (1 file" in done.stdout
    assert "builtin/1:384 has to embed 1 passage (0 from cache)" in done.stdout
    assert files(workspace.store) == before


def test_known_texts_are_told_apart(workspace: Any) -> None:
    """A text that was embedded once is announced as known, and costs nothing."""
    path = fill(workspace)[0]
    first = path.read_bytes()
    path.write_bytes(first + b"More words.\n")
    repair(workspace)
    path.write_bytes(first)
    planned = workspace.json("repair", "--plan", code=1)["plan"]
    assert (planned["texts"], planned["known"]) == (0, 1)
    done = repair(workspace)
    assert (done["embedded"], done["reused"]) == (0, 1)


def test_only_and_path_narrow(workspace: Any) -> None:
    """What was not chosen stays as it is, and is said to remain."""
    first, second, third, *_ = fill(workspace)
    first.write_bytes(first.read_bytes() + b"More words.\n")
    second.write_bytes(second.read_bytes() + b"More words.\n")
    third.unlink()
    done = repair(workspace, "--only", "modified", "--path", shown(workspace, first), code=1)
    assert [step["path"] for step in done["applied"]] == [shown(workspace, first)]
    assert codes(done["remaining"]) == ["missing", "modified"]
    done = repair(workspace, "--only", "missing", code=1)
    assert kinds(done["applied"]) == ["forget"]
    assert codes(done["remaining"]) == ["modified"]
    indexed = [first.relative_to(workspace.chunked).as_posix()]
    assert workspace.found("more", "--no-update") == indexed


def test_a_withheld_file_is_taken_out_of_answers_once(workspace: Any) -> None:
    """A file that became unusable is withheld by a repair and left to a person; then it is told."""
    path = fill(workspace)[0]
    path.write_bytes(b"---\n[\n---\nWords.\n")
    done = repair(workspace, code=1)
    assert kinds(done["applied"]) == ["withhold"]
    assert codes(done["remaining"]) == ["malformed-frontmatter"]
    assert [left["code"] for left in done["plan"]["left"]] == ["malformed-frontmatter"]
    assert workspace.found("amber") == []
    assert_nothing_to_do(workspace)


@pytest.mark.parametrize(
    "part", ["faiss", "flipped", "fulltext", "embeddings", "map", "catalog", "no catalog"]
)
def test_damaged_parts_are_made_again(workspace: Any, part: str) -> None:
    """Whatever part of the sidecar is damaged or gone, a repair leaves a store that is clean."""
    fill(workspace)
    truth = workspace.truth()
    sidecar = workspace.sidecar
    if part == "faiss":
        (path,) = sidecar.glob("vectors-*.faiss")
        path.unlink()
    elif part == "flipped":
        (path,) = sidecar.glob("vectors-*.faiss")
        data = bytearray(path.read_bytes())
        data[-9] ^= 0x40
        path.write_bytes(data)
    elif part == "map":
        connection = sqlite3.connect(sidecar / "catalog.sqlite")
        with connection:
            connection.execute("UPDATE files SET resource = 'other' WHERE id = 1")
        connection.close()
    elif part == "fulltext":
        shutil.rmtree(sidecar / "fulltext")
    elif part == "embeddings":
        (sidecar / "embeddings.sqlite").write_bytes(b"no database at all, but some bytes")
    elif part == "catalog":
        (sidecar / "catalog.sqlite").write_bytes(b"no database at all, but some bytes")
    else:
        for path in sidecar.glob("catalog.sqlite*"):
            path.unlink()
    planned = workspace.json("repair", "--plan", "--level", "full", code=1)["plan"]
    expected = {
        "faiss": "rebuild-index",
        "flipped": "rebuild-index",
        "map": "rebuild-catalog",
        "fulltext": "rebuild-fulltext",
        "embeddings": "salvage",
        "catalog": "rebuild-catalog",
        "no catalog": "rebuild-catalog",
    }[part]
    assert kinds(planned["steps"]) == [expected]
    texts = 6 if part == "embeddings" else 0
    assert planned["texts"] == texts
    done = repair(workspace, "--level", "full")
    assert kinds(done["applied"]) == [expected]
    assert done["embedded"] == texts
    assert codes(done["remaining"]) == []
    assert workspace.truth() == truth
    assert_nothing_to_do(workspace, "--level", "full")
    assert workspace.found("amber")


# What went missing comes back


def test_a_lost_file_comes_back_from_what_was_seen(either: Any) -> None:
    """With ``--write-files`` a deleted file is restored, shown as a diff; undo takes it."""
    path = fill(either)[0]
    path.write_bytes(chunk_file.update(path.read_bytes(), questions=("Which resin?",)))
    either.sync()
    data = path.read_bytes()
    path.unlink()
    planned = either.json("repair", "--plan", "--write-files", code=1)["plan"]
    (step,) = planned["steps"]
    assert (step["kind"], step["from"], step["truth"]) == ("restore", "last seen", True)
    assert '+  "Which resin?"' in step["diff"] or "Which resin?" in step["diff"]
    done = repair(either, "--write-files")
    assert path.read_bytes() == data
    assert codes(done["remaining"]) == []
    assert len(done["undo"]) == 1
    assert_nothing_to_do(either, "--write-files")
    either("undo")
    assert not path.exists()
    assert either.drift() == {"missing": [shown(either, path)]}
    repair(either, "--write-files")
    assert path.read_bytes() == data


def test_an_undone_repair_says_what_is_to_be_done(workspace: Any) -> None:
    """What a repair mended is told again after undo: gone files, and bytes never indexed."""
    lost, rotten, third, *_ = fill(workspace)
    record = third.parent / "meta.json"
    kept = workspace.truth()
    lost.unlink()
    workspace.rot(rotten, rotten.read_bytes().replace(b"basalt", b"bosalt"))
    record.write_text("{ no record")
    broken = workspace.truth()
    repair(workspace, "--level", "full", "--write-files")
    assert workspace.truth() == kept
    said = workspace("undo").stdout
    assert "restored 3 files as before the repair: 'filestore status' says what to do" in said
    assert workspace.truth() == broken
    assert workspace.drift() == {
        "missing": [shown(workspace, lost)],
        "modified": [shown(workspace, rotten)],
        "record-invalid": [shown(workspace, record)],
    }
    workspace("redo")
    assert workspace.truth() == kept
    workspace.assert_settled()


def test_an_undone_removal_is_indexed_where_it_was(workspace: Any) -> None:
    """What a repair removed comes back to the answers; an edit nobody had indexed is told."""
    known, edited, *_ = fill(workspace)
    for name in ("amber", "basalt"):
        (workspace.folder / "notes" / f"{name}.md").unlink()
    edited.write_bytes(edited.read_bytes() + b"An unseen edit.\n")
    truth = workspace.truth()
    repair(workspace, "--only", "source-missing", "--write-files", code=None)
    assert not known.exists()
    assert not edited.exists()
    workspace("undo")
    assert workspace.truth() == truth
    indexed = [known.relative_to(workspace.chunked).as_posix()]
    assert workspace.found("amber", "--no-update") == indexed
    assert workspace.drift()["untracked"] == [shown(workspace, edited)]


def test_a_forgotten_file_comes_back_by_name(workspace: Any) -> None:
    """After ``sync`` forgot a deletion, ``repair --path P --write-files`` brings the file back."""
    path = fill(workspace)[0]
    data = path.read_bytes()
    path.unlink()
    workspace.sync()
    name = path.relative_to(workspace.chunked).as_posix()
    assert workspace.json("repair", "--plan", "--write-files")["plan"]["steps"] == []
    done = repair(workspace, "--path", name, "--write-files")
    assert kinds(done["applied"]) == ["restore"]
    assert path.read_bytes() == data
    workspace.assert_settled()


def test_a_lost_record_comes_back(either: Any) -> None:
    """A record that was deleted is restored byte for byte, also after a sync forgot it."""
    fill(either)
    name, data = next((name, data) for name, data in either.truth().items() if "json" in name)
    path = either.chunked / name
    path.unlink()
    repair(either, "--write-files")
    assert path.read_bytes() == data
    path.unlink()
    either.sync(code=None)
    repair(either, "--write-files", "--path", name)
    assert path.read_bytes() == data
    either.assert_settled()


def test_the_newer_of_git_and_last_seen_wins(workspace: Any) -> None:
    """Git's text comes back where it was committed after the file was last seen, else the other."""
    first, second, *_ = fill(workspace, commit=True)
    older = {path: path.read_bytes() for path in (first, second)}
    for path in older:
        os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    workspace.sync()
    newer = older[first] + b"Committed, never indexed.\n"
    first.write_bytes(newer)
    workspace.git("commit", "-qam", "Write more")
    first.unlink()
    second.unlink()
    planned = workspace.json("repair", "--plan", "--write-files", code=1)["plan"]
    assert {step["path"]: step["from"] for step in planned["steps"]} == {
        shown(workspace, first): "git",
        shown(workspace, second): "last seen",
    }
    repair(workspace, "--write-files")
    assert first.read_bytes() == newer
    assert second.read_bytes() == older[second]
    workspace.json("status")


def test_a_file_seen_after_its_commit_comes_back_as_seen(workspace: Any) -> None:
    """An edit that was indexed and never committed is what comes back."""
    path = fill(workspace, commit=True)[0]
    edited = path.read_bytes() + b"Indexed, never committed.\n"
    path.write_bytes(edited)
    workspace.sync()
    path.unlink()
    repair(workspace, "--write-files")
    assert path.read_bytes() == edited


def test_rot_is_restored_to_the_recorded_bytes(either: Any) -> None:
    """A rotten file comes back as recorded, though git has another text of it."""
    path = fill(either, commit=True)[0]
    path.write_bytes(path.read_bytes() + b"Indexed, never committed.\n")
    either.sync()
    data = path.read_bytes()
    either.rot(path, data.replace(b"amber", b"ember"))
    done = repair(either, "--level", "full", code=1)
    assert done["applied"] == []
    assert [(step["kind"], step["applies"]) for step in done["plan"]["steps"]] == [
        ("restore", False)
    ]
    assert codes(done["remaining"]) == ["bit-rot"]
    done = repair(either, "--level", "full", "--write-files")
    (step,) = done["applied"]
    assert "ember" in step["diff"]
    assert path.read_bytes() == data
    assert codes(done["remaining"]) == []
    assert_nothing_to_do(either, "--level", "full", "--write-files")


def test_rot_without_the_recorded_bytes_offers_git_and_says_so(workspace: Any) -> None:
    """Where the catalog's own copy is damaged too, git's text is offered as one that differs."""
    path = fill(workspace, commit=True)[0]
    committed = path.read_bytes()
    path.write_bytes(committed + b"Indexed, never committed.\n")
    workspace.sync()
    workspace.rot(path, path.read_bytes().replace(b"amber", b"ember"))
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite")
    with connection:
        connection.execute("UPDATE contents SET data = CAST(data || x'21' AS BLOB)")
    connection.close()
    planned = workspace.json("repair", "--plan", "--write-files", "--only", "bit-rot", code=1)
    (step,) = planned["plan"]["steps"]
    assert step["from"] == "git"
    assert "differs from what was recorded last" in step["detail"]
    repair(workspace, "--write-files", "--only", "bit-rot", code=None)
    assert path.read_bytes() == committed


def test_an_unusable_record_comes_back(either: Any) -> None:
    """A record that nobody can read is made again from what was last seen, also after a sync."""
    fill(either)
    (name, data) = next(
        (name, data) for name, data in either.truth().items() if name.endswith(".json")
    )
    path = either.chunked / name
    for sync_first in (False, True):
        path.write_bytes(b"{ no record")
        if sync_first:
            either.sync(code=1)
        done = repair(either, "--write-files")
        assert "restore" in kinds(done["applied"])
        assert path.read_bytes() == data
        assert codes(done["remaining"]) == []
    either.assert_settled()


def test_a_mass_of_missing_files_is_never_forgotten(workspace: Any) -> None:
    """Where all files are gone, a repair without ``--write-files`` leaves them, else restores."""
    fill(workspace)
    truth = workspace.truth()
    shutil.rmtree(workspace.chunked)
    done = repair(workspace, code=1)
    assert done["plan"]["steps"] == []
    assert codes(done["remaining"]) == ["mass-missing"]
    done = repair(workspace, "--write-files")
    assert workspace.truth() == truth
    assert codes(done["remaining"]) == []
    assert done["embedded"] == 0
    assert len(done["undo"]) == 1
    workspace.assert_settled()


# Sources, links, conflicts


def test_a_changed_source_is_taken_in_again(either: Any) -> None:
    """With ``--write-files`` a source that changed is cut anew; nothing happens without."""
    fill(either)
    either.write("notes/amber.md", "# amber\n\nNothing but resin here.\n")
    done = repair(either, code=1)
    assert done["applied"] == []
    assert codes(done["remaining"]) == ["source-modified"]
    done = repair(either, "--write-files")
    assert kinds(done["applied"]) == ["reingest"]
    assert len(done["undo"]) == 1
    assert either.found("resin")
    assert_nothing_to_do(either, "--write-files")


def test_a_vanished_source_is_removed_only_by_name(workspace: Any) -> None:
    """What was made of a source that went is removed where ``--only source-missing`` says so."""
    paths = fill(workspace)
    truth = workspace.truth()
    (workspace.folder / "notes" / "amber.md").unlink()
    done = repair(workspace, "--write-files", code=1)
    assert done["applied"] == []
    assert codes(done["remaining"]) == ["source-missing"]
    done = repair(workspace, "--only", "source-missing", "--write-files")
    assert kinds(done["applied"]) == ["remove"]
    assert not paths[0].exists()
    assert len(workspace.truth()) == len(truth) - 2
    assert codes(done["remaining"]) == []
    workspace("undo")
    assert workspace.truth() == truth


def test_one_document_of_a_folder_is_removed(either: Any) -> None:
    """The record keeps the other documents, and their chunks stay byte for byte."""
    either.write("book/one.md", "# One\n\nFirst words of a book.\n")
    either.write("book/two.md", "# Two\n\nSecond words of a book.\n")
    either("add", "book")
    truth = either.truth()
    (either.folder / "book" / "one.md").unlink()
    repair(either, "--only", "source-missing", "--write-files")
    after = either.truth()
    gone = truth.keys() - after.keys()
    assert len(gone) == 1
    assert b"First words" in truth[gone.pop()]
    assert either.found("second")
    assert codes(either.json("verify")["findings"]) == []
    either("undo")
    assert either.truth() == truth


def test_links_follow_a_move(workspace: Any) -> None:
    """A person's link to a file that moved leads to its new place; nothing else changes."""
    target = fill(workspace)[0]
    own = workspace.chunked / "own.md"
    own.write_text("See [amber](amber.md/chunk1.md) and [copper](copper.md/chunk1.md).\n")
    workspace.sync()
    moved = target.with_name("resin.md")
    target.rename(moved)
    done = repair(workspace, code=1)
    assert codes(done["remaining"]) == ["link-dangling"]
    done = repair(workspace, "--write-files")
    assert kinds(done["applied"]) == ["relink"]
    text = own.read_text()
    assert text == "See [amber](amber.md/resin.md) and [copper](copper.md/chunk1.md).\n"
    assert codes(done["remaining"]) == []
    assert_nothing_to_do(workspace, "--write-files")


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_conflict_is_resolved_by_choice(either: Any, choice: str) -> None:
    """``--ours`` keeps the edit, ``--theirs`` the new text; the next add finds nothing to do."""
    path = fill(either)[0]
    lines = [f"Line {number} says what amber is and where it lies." for number in range(9)]
    either.write("notes/amber.md", "# amber\n\n" + "\n".join(lines) + "\n")
    either("add", "notes", "--each")
    path = either.chunked / either.chunks("amber.md")[0]
    edited = path.read_bytes().replace(b"Line 4 says what", b"My own view of what")
    path.write_bytes(edited)
    either.sync()
    lines[4] = "All that is new of amber stands in this line."
    either.write("notes/amber.md", "# amber\n\n" + "\n".join(lines) + "\n")
    either("add", "notes", "--each", code=None)
    (finding,) = [
        finding
        for finding in either.json("verify", code=1)["findings"]
        if finding["code"] == "ingest-conflict"
    ]
    assert finding["path"] == shown(either, path)
    assert_nothing_to_do(either, "--write-files")
    done = repair(either, f"--{choice}", path.relative_to(either.chunked).as_posix())
    assert kinds(done["applied"]) == [f"resolve-{choice}"]
    assert codes(done["remaining"]) == []
    assert_nothing_to_do(either, "--write-files")
    kept = b"My own view" if choice == "ours" else b"All that is new"
    assert kept in path.read_bytes()
    again = either.json("add", "notes", "--each")
    assert again["updated"] == again["added"] == []


def contend(workspace: Any, *, edited_lines: int = 1) -> Path:
    """A file whose first lines were edited by hand, and whose source changed there, too."""
    lines = [f"Line {number} says what amber is and where it lies." for number in range(60)]
    for name in ("basalt.md", "copper.md"):
        workspace.write(f"notes/{name}", f"# {name}\n\nAll about {name} here.\n")
    source = workspace.write("notes/amber.md", "# amber\n\n" + "\n".join(lines[:9]) + "\n")
    workspace("add", "notes")
    path: Path = workspace.chunked / workspace.chunks("notes")[0]
    mine = "".join(f"My own line {number}.\n" for number in range(edited_lines))
    text = path.read_text()
    assert "Line 4 says" in text
    path.write_text(text.replace(lines[4] + "\n", mine))
    workspace.sync()
    source.write_text(source.read_text().replace(lines[4], "All that is new stands here."))
    workspace.write("notes/basalt.md", "# basalt.md\n\nAnother text altogether.\n")
    workspace("add", "notes", code=1)
    return path


def test_one_repair_is_one_undo(workspace: Any) -> None:
    """A choice, and the source that is taken in again after it, go back with one `undo`."""
    path = contend(workspace)
    workspace.write("notes/copper.md", "# copper.md\n\nChanged while the choice was waiting.\n")
    before = workspace.truth()
    done = repair(workspace, "--theirs", shown(workspace, path))
    assert workspace.found("waiting")
    after = workspace.truth()
    assert len([name for name in after if after[name] != before.get(name)]) == 3
    assert len(done["undo"]) == 1
    assert workspace.json("undo", "--list")["batches"][0]["id"] == done["undo"][0]
    undone = workspace.json("undo")
    assert workspace.truth() == before
    assert undone["id"] == done["undo"][0]
    assert workspace.json("redo")["redone"] == undone["undone"]
    assert workspace.truth() == after
    workspace.assert_settled()


def test_an_edit_that_goes_is_shown_whole(workspace: Any) -> None:
    """Whoever takes the new text sees each line of the edit first, in words and in JSON."""
    path = contend(workspace, edited_lines=60)
    name = shown(workspace, path)
    words = workspace("repair", "--plan", "--theirs", name, code=1).stdout
    (step,) = workspace.json("repair", "--plan", "--theirs", name, code=1)["plan"]["steps"]
    for number in range(60):
        assert f"      -My own line {number}.\n" in words
        assert f"\n-My own line {number}.\n" in step["diff"]
    assert "then its source is re-ingested" in step["detail"]
    assert step["texts"] == 1


def test_a_choice_about_another_text_is_refused(workspace: Any) -> None:
    """Where the source changed again while the choice waited, it has to be added first."""
    path = contend(workspace)
    source = workspace.folder / "notes" / "amber.md"
    source.write_text(source.read_text() + "One line more.\n")
    before = workspace.truth()
    done = workspace("repair", "--theirs", shown(workspace, path), "--yes", code=3)
    assert "changed again" in done.stderr
    assert "filestore add" in done.stderr
    assert workspace.truth() == before


def test_a_choice_waits_for_git_s_conflict(workspace: Any) -> None:
    """In a file with marks of a merge nothing is chosen, and what to do first is told."""
    path = contend(workspace)
    marked = path.read_bytes() + b"<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> other\n"
    path.write_bytes(marked)
    done = repair(workspace, "--theirs", shown(workspace, path), code=1)
    reasons = {left["code"]: left["repair"] for left in done["plan"]["left"]}
    assert "resolve git's conflict in it first" in reasons["ingest-conflict"]
    assert path.read_bytes() == marked


def test_another_model_has_a_price(workspace: Any) -> None:
    """Where the settings name another model a plan says how many texts that is."""
    fill(workspace)
    workspace.in_catalog("UPDATE meta SET value = 'other/1:9' WHERE key = 'fingerprint'")
    left = workspace.json("repair", "--plan", code=1)["plan"]["left"]
    (reason,) = [one["repair"] for one in left if one["code"] == "model-changed"]
    assert "0 passages to embed, 6 from cache" in reason
    assert "filestore embedder set" in reason


def test_a_choice_without_a_conflict_is_refused(workspace: Any) -> None:
    """A file for which nothing waits is named, and the store is unusable as asked."""
    path = fill(workspace)[0]
    done = workspace("repair", "--ours", path, "--yes", code=3)
    assert "no pending ingest conflict" in done.stderr


# What moves on between plan and repair


def test_a_plan_is_applied_where_it_holds(workspace: Any) -> None:
    """What moved on since it was planned is skipped with a reason, the rest is done."""
    first, second, third, fourth, fifth, _ = fill(workspace)
    data = {path: path.read_bytes() for path in (first, second, third, fourth, fifth)}
    for path in (first, second):
        path.write_bytes(path.read_bytes() + b"More words.\n")
    for path in (third, fourth, fifth):
        path.unlink()
    with filestore.open(workspace.store) as store:
        plan = store.plan(truth=True)
        second.write_bytes(data[second] + b"Other words.\n")
        fourth.write_bytes(data[fourth])
        truth = workspace.truth()
        report = store.apply(plan)
    assert {(step.kind, step.path) for step in report.applied} == {
        ("reindex", shown(workspace, first)),
        ("restore", shown(workspace, third)),
        ("restore", shown(workspace, fifth)),
    }
    skipped = {step.path: reason for step, reason in report.skipped}
    assert skipped.keys() == {shown(workspace, second), shown(workspace, fourth)}
    assert all(skipped.values())
    written = {path: data[path] for path in (third, fifth)}
    expected = truth | {
        path.relative_to(workspace.chunked).as_posix(): held for path, held in written.items()
    }
    assert workspace.truth() == expected
    assert [one.code for one in report.remaining if one.severity != "I"] == ["modified"]


def test_a_folder_that_became_a_link_is_not_written_through(workspace: Any, tmp_path: Path) -> None:
    """A file is not restored into a folder elsewhere that took the place of its own."""
    path = fill(workspace)[0]
    path.unlink()
    outside = tmp_path / "outside"
    with filestore.open(workspace.store) as store:
        plan = store.plan(truth=True)
        shutil.move(path.parent, outside)
        path.parent.symlink_to(outside)
        before = sorted(outside.iterdir())
        report = store.apply(plan)
    assert [step.path for step, _ in report.skipped] == [shown(workspace, path)]
    assert sorted(outside.iterdir()) == before


# Git


def test_no_file_is_written_during_a_merge(workspace: Any) -> None:
    """In the middle of a merge steps that write files are refused, and the sidecar's are not."""
    first, second, *_ = fill(workspace, commit=True)
    first.unlink()
    second.write_bytes(second.read_bytes() + b"More words.\n")
    (workspace.folder / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")
    truth = workspace.truth()
    done = workspace("repair", "--write-files", "--yes", code=4)
    assert "merge" in done.stderr
    assert workspace.truth() == truth
    done = repair(workspace, "--only", "modified", code=None)
    assert kinds(done["applied"]) == ["reindex"]


@pytest.mark.parametrize("reading", range(1, 8))
def test_what_is_saved_after_a_reading_is_never_overwritten(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, reading: int
) -> None:
    """A record that was empty is saved while it is being restored, after any of its readings."""
    fill(workspace, 1)
    (record,) = workspace.chunked.rglob("*.json")
    record.write_bytes(b"")
    workspace("sync", code=None)
    saved, readings = b'{"mine": "edited just now"}\n', 0
    observe_entry = layout.observe_entry

    def observing(handle: int, path: Any, name: str, **named: Any) -> Any:
        nonlocal readings
        seen = observe_entry(handle, path, name, **named)
        if name == record.name:
            readings += 1
            if readings == reading:
                record.write_bytes(saved)
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(layout, "observe_entry", observing)
        workspace("repair", "--write-files", "--yes", code=None)
    assert readings
    assert readings < reading or record.read_bytes() == saved


def test_nothing_is_embedded_where_every_step_is_skipped(workspace: Any) -> None:
    """Lost embeddings are repaired with a step that is applied, not with one that is not."""
    fill(workspace)
    broken = workspace.write("file_index/chunked/broken.md", "---\na: [\n---\n\nWords.\n")
    (workspace.sidecar / "embeddings.sqlite").unlink()
    with filestore.open(workspace.store) as store:
        plan = store.plan(paths=["chunked/broken.md"])
        assert [step.kind for step in plan] == ["withhold"]
        broken.unlink()
        done = store.apply(plan)
    assert (done.applied, done.embedded) == ((), 0)


def test_a_file_that_is_gone_is_why_its_step_is_skipped(workspace: Any) -> None:
    """Also where the whole tree is indexed again, and the file is not met on the way."""
    fill(workspace)
    new = workspace.write("file_index/chunked/new.md", "New words.\n")
    with contextlib.closing(sqlite3.connect(workspace.sidecar / "catalog.sqlite")) as catalog:
        catalog.execute("UPDATE files SET text_key = x'00' WHERE id = 1")
        catalog.commit()
    with filestore.open(workspace.store) as store:
        plan = store.plan(level="full")
        assert [step.kind for step in plan] == ["rebuild-catalog", "index"]
        new.unlink()
        done = store.apply(plan)
    assert [(step.path, reason) for step, reason in done.skipped] == [
        ("chunked/new.md", "chunked/new.md no longer exists")
    ]
