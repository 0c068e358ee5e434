"""A source that changed is added again over chunk files that people edited: nothing is lost."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore import extract
from filestore.catalog import Catalog, Conflict
from filestore.chunking.blocks import split
from filestore.chunks import chunk_file
from filestore.chunks.layout import TREE
from filestore.config.layout import Places
from filestore.config.user_config import Originals
from filestore.core.hashing import embedding_key, origin_hash
from filestore.core.progress import ignore
from filestore.git.merge import Merged, Overlap, merge
from filestore.ingest.add import SourceOutside, add_all, recorded_sources
from filestore.ingest.regenerate import in_order
from filestore.sidecar.originals import Reachable
from filestore.store import Store
from filestore.verify.recorded_state import Choice, resolve
from tests.advice import all_words

TOPICS = ("apples", "pears", "plums", "cherries", "figs")
SENTENCES = 11


def sentences(topic: str) -> list[str]:
    """As many lines about a topic as fill a chunk, in words that no other topic has."""
    return [
        f"Item {number} of {topic}: {topic}{number} with {topic}ish care, {topic}ly done."
        for number in range(1, SENTENCES + 1)
    ]


Sections = dict[str, list[str]]


def written(sections: Sections) -> str:
    """A document with a section for every topic."""
    parts = ["\n".join([f"## About {topic}\n", *lines]) for topic, lines in sections.items()]
    return "\n\n".join(parts) + "\n"


def document(*topics: str) -> Sections:
    """Sections as they are first."""
    return {topic: sentences(topic) for topic in topics or TOPICS}


def chunk_paths(workspace: Any) -> list[Path]:
    """Every chunk file of a store."""
    return [path for path in workspace.chunked.rglob("*.md") if path.is_file()]


def chunk_about(workspace: Any, topic: str) -> Path:
    """The one chunk file that holds the section about a topic."""
    (found,) = [path for path in chunk_paths(workspace) if f"## About {topic}" in path.read_text()]
    return found


def edit(path: Path, old: str, new: str) -> None:
    """Change some words of a file, as a person does in an editor."""
    data = path.read_bytes()
    assert old.encode() in data
    path.write_bytes(data.replace(old.encode(), new.encode()))


def conflicts_of(workspace: Any) -> list[Conflict]:
    """What waits for a person's choice."""
    catalog = Catalog.open(str(workspace.sidecar / "catalog.sqlite"))
    try:
        return catalog.conflicts()
    finally:
        catalog.close()


def choose(workspace: Any, choice: Choice) -> None:
    """Resolve every conflict of a store in one way."""
    for conflict in conflicts_of(workspace):
        path = workspace.chunked / conflict.path
        after = resolve(path.read_bytes(), conflict, choice)
        if after is None:
            path.unlink()
        else:
            path.write_bytes(after)


@pytest.fixture
def manual(either: Any) -> Callable[[Sections], None]:
    """Writes the source; the first one is added already."""

    def write(sections: Sections) -> None:
        either.write("manual.md", written(sections))

    write(document())
    either("add", "manual.md")
    return write


# Merging


def test_two_changes_in_one_chunk_are_merged(either: Any, manual: Any) -> None:
    """An edit and a new wording in other lines stand in the file afterwards, and all is settled."""
    path = chunk_about(either, "pears")
    name = path.name
    edit(path, "Item 2 of pears", "My item 2 of pears")
    either.sync()
    changed = document()
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    report = either.json("add", "manual.md")
    assert report["conflicts"] == []
    assert report["updated"][0]["merged"] == [f"chunked/{path.relative_to(either.chunked)}"]
    chunk = chunk_file.parse(path.read_bytes())
    assert (path.name, chunk.body.count("My item 2"), chunk.body.count("Item 9 is new.")) == (
        name,
        1,
        1,
    )
    assert "Item 9 of pears" not in chunk.body
    assert either.json("add", "manual.md")["unchanged"]
    either.assert_settled()


def test_an_edit_is_merged_with_each_new_version(either: Any, manual: Any) -> None:
    """What was merged once is merged again: the new text is remembered beside the edit."""
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    changed = document()
    for number in (8, 10):
        changed["pears"][number] = f"Item {number + 1} is new."
        manual(changed)
        assert either.json("add", "manual.md")["updated"][0]["merged"]
    body = chunk_file.parse(path.read_bytes()).body
    assert [words in body for words in ("My item 2", "Item 9 is new", "Item 11 is new")] == [
        True
    ] * 3


@pytest.mark.parametrize("committed", [True, False])
def test_without_the_sidecar_git_has_the_text_before(
    either: Any, manual: Any, committed: bool
) -> None:
    """The generated text is found in a commit; where nobody has it, a person is asked."""
    if committed:
        either.git("add", ".")
        either.git("commit", "-qm", "one")
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    shutil.rmtree(either.sidecar)
    changed = document()
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    report = either.json("add", "manual.md", code=0 if committed else 1)
    assert ("Item 9 is new." in path.read_text()) is committed
    assert "My item 2" in path.read_text()
    assert [("not kept" in one["detail"]) for one in report["conflicts"]] == [True] * (
        not committed
    )


def test_line_ends_of_an_edit_stay(either: Any, manual: Any) -> None:
    """A file that an editor saved with CRLF has CRLF after a merge, in every line."""
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    changed = document()
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    either("add", "manual.md")
    data = path.read_bytes()
    assert b"Item 9 is new.\r\n" in data
    assert data.count(b"\n") == data.count(b"\r\n")


def test_other_bytes_of_a_merged_file_stay(either: Any, manual: Any) -> None:
    """A person's keys, comments and headings outlive a merge, and undo has the file as it was."""
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    mine = b"# checked by me\nreviewed:   'yes'\n"
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\n" + mine, 1))
    before = path.read_bytes()
    changed = document()
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    either("add", "manual.md")
    assert path.read_bytes().startswith(b"---\n" + mine)
    blobs = [file.read_bytes() for file in (either.store / ".undo").rglob("*") if file.is_file()]
    assert before in blobs


def test_new_headings_come_unless_a_person_changed_them(either: Any, manual: Any) -> None:
    """With the generated file in git, headings follow the source as the text does."""
    topics = {"b.md": "quinces", "c.md": "medlars"}
    for name, topic in topics.items():
        either.write(name, f"# Old\n\n{written(document(topic, f'{topic} wine'))}")
    either("add", *topics)
    either.git("add", ".")
    either.git("commit", "-qm", "one")
    paths = [chunk_about(either, f"{topic} wine") for topic in topics.values()]
    edit(paths[1], '"Old"', '"Mine"')
    for path, (name, topic) in zip(paths, topics.items(), strict=True):
        edit(path, f"Item 2 of {topic} wine", "My item 2")
        text = written(document(topic, f"{topic} wine"))
        either.write(name, "# New\n\n" + text.replace(f"Item 9 of {topic} wine", "Item 9 is new"))
    either("add", *topics)
    found = [chunk_file.parse(path.read_bytes()) for path in paths]
    assert [chunk.headings[0] for chunk in found] == ["New", "Mine"]
    assert all("My item 2" in chunk.body and "9 is new" in chunk.body for chunk in found)


def test_git_merges_what_is_apart_and_names_what_overlaps() -> None:
    """Changes apart are one text; changes of one line are told with line and words."""
    base = "".join(f"line {number}\n" for number in range(9))
    ours = base.replace("line 2", "mine")
    assert merge(base, ours, base.replace("line 7", "new")) == Merged(
        text=base.replace("line 2", "mine").replace("line 7", "new")
    )
    found = merge(base, ours, base.replace("line 2", "new"))
    assert isinstance(found, Overlap)
    assert (found.line, found.last_line) == (3, 3)
    assert "mine" in found.detail
    assert "new" in found.detail


def test_lines_like_the_marks_of_a_merge_are_text() -> None:
    """A document about git is merged like any other, however long its marks."""
    marks = f"<<<<<<< a\n{'<' * 40} b\n=======\n>>>>>>> c\n"
    base = f"one\ntwo\n{marks}three\nfour\n"
    assert merge(base, f"ONE\ntwo\n{marks}three\nfour\n", base.replace("four", "FOUR")) == Merged(
        text=f"ONE\ntwo\n{marks}three\nFOUR\n"
    )
    found = merge(base, base.replace("two", "mine"), base.replace("two", "new"))
    assert isinstance(found, Overlap)
    assert found.line == 2


def test_without_git_only_plain_cases_are_merged(
    either: Any, manual: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where git is not installed an edit and a new text are both kept, with the reason."""
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    changed = document()
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    monkeypatch.setenv("PATH", "/nowhere")
    report = either.json("add", "manual.md", code=1)
    assert "git is not installed" in report["conflicts"][0]["detail"]
    monkeypatch.undo()
    assert either.json("add", "manual.md")["updated"][0]["merged"]


# Conflicts


def overlapping(workspace: Any, manual: Any) -> Path:
    """A chunk file of which a person and the source changed the same line, added again."""
    path = chunk_about(workspace, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    changed = document()
    changed["pears"][1] = "Item 2 is new."
    changed["figs"][1] = "Item 2 of figs is new."
    manual(changed)
    workspace("add", "manual.md", code=1)
    return path


def test_both_versions_of_an_overlap_are_kept(either: Any, manual: Any) -> None:
    """The file stays byte for byte, the new text waits, the line is named; the rest follows."""
    before = chunk_about(either, "pears").read_bytes()
    path = overlapping(either, manual)
    assert path.read_bytes() == before.replace(b"Item 2 of pears", b"My item 2 of pears")
    (conflict,) = conflicts_of(either)
    assert either.chunked / conflict.path == path
    assert conflict.theirs is not None
    assert "Item 2 is new." in conflict.theirs
    number = (
        path.read_text()
        .split("\n")
        .index(next(line for line in path.read_text().split("\n") if "My item 2" in line))
    )
    assert f"line {number + 1}:" in conflict.detail
    assert "Item 2 of figs is new." in chunk_about(either, "figs").read_text()


def test_an_open_conflict_is_told_again_and_nothing_changes(either: Any, manual: Any) -> None:
    """Adding again is quiet but for the conflict: no byte and no generation changes."""
    overlapping(either, manual)
    before, generation = either.committed(), either.json("status", code=None)["generation"]
    report = either.json("add", "manual.md", code=1)
    assert len(report["unchanged"]) == len(report["conflicts"]) == 1
    assert either.committed() == before
    assert either.json("status", code=None)["generation"] == generation


def test_a_lost_sidecar_loses_no_conflict(either: Any, manual: Any) -> None:
    """The record still has the old source, so that the same conflict is found again."""
    overlapping(either, manual)
    (before,) = conflicts_of(either)
    shutil.rmtree(either.sidecar)
    either.sync(code=1)
    either("add", "manual.md", code=1)
    (after,) = conflicts_of(either)
    assert (after.path, after.base, after.theirs) == (before.path, before.base, before.theirs)


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_choice_settles_a_conflict(either: Any, manual: Any, choice: Choice) -> None:
    """After a choice the source counts as taken in, and the next version is merged with it."""
    path = overlapping(either, manual)
    choose(either, choice)
    assert ("My item 2" in path.read_text()) is (choice == "ours")
    assert either.json("add", "manual.md")["conflicts"] == []
    assert either.json("add", "manual.md")["unchanged"]
    assert conflicts_of(either) == []
    either.sync()
    either.assert_settled()
    changed = document()
    changed["pears"][1] = "Item 2 is new."
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    assert either.json("add", "manual.md")["conflicts"] == []
    assert "Item 9 is new." in path.read_text()


def make_origins_long(workspace: Any) -> None:
    """Chunk files with all 64 digits of their origin, as they were written before."""
    for path in chunk_paths(workspace):
        chunk = chunk_file.parse(path.read_bytes())
        if not chunk_file.hand_edited(chunk) and f'"{chunk.origin}"' in path.read_text():
            edit(path, f'"{chunk.origin}"', f'"{long_origin(chunk.body)}"')


def long_origin(body: str) -> str:
    """The origin of a body as it was written before."""
    return f"sha256:{embedding_key(body).hex()}"


def make_catalog_old(workspace: Any) -> None:
    """The catalog as the version before left it: long origins, its schema."""
    path = str(workspace.sidecar / "catalog.sqlite")
    with closing(Catalog.open(path)) as catalog:
        rows = list(catalog.all_files())
        bodies = [catalog.content(row.id) or b"" for row in rows if row.origin]
    kept = [body.decode() for (body,) in workspace.in_catalog("SELECT body FROM generated")]
    known = [*kept, *(chunk_file.parse(data).body for data in bodies)]
    long = {origin_hash(body): long_origin(body) for body in known}
    for row in rows:
        if row.origin:
            old = replace(row, origin=long[row.origin])
            statement = "UPDATE files SET origin = ?, checksum = ? WHERE id = ?"
            workspace.in_catalog(statement, old.origin, old.checksum(), row.id)
    places = ("generated", "origin"), ("conflicts", "base"), ("conflicts", "origin")
    for table, column in (*places, ("deleted", "origin")):
        for short, digits in long.items():
            statement = f"UPDATE {table} SET {column} = ? WHERE {column} = ?"
            workspace.in_catalog(statement, digits, short)
    workspace.in_catalog("PRAGMA user_version = 6")


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_store_with_long_origins_goes_on(either: Any, manual: Any, choice: Choice) -> None:
    """What the version before wrote is clean, merged and chosen as ever, and stays as it is."""
    make_origins_long(either)
    either.sync()
    other = chunk_about(either, "plums")
    edit(other, "Item 2 of plums", "My item 2 of plums")
    gone = chunk_about(either, "cherries")
    deleted = gone.read_bytes()
    gone.unlink()
    either.sync()
    path = overlapping(either, manual)
    make_origins_long(either)
    either.sync(code=1)
    drift, (conflict,) = either.drift(), conflicts_of(either)
    make_catalog_old(either)
    truth = either.truth()
    assert either.drift() == drift
    assert conflicts_of(either) == [conflict]
    found = either.json("verify", "--level", "deep", code=1)["findings"]
    assert {one["code"] for one in found} <= {*drift, "hand-edited"}
    either.sync(code=1)
    assert either.drift() == drift
    assert either.truth() == truth
    choose(either, choice)
    assert either.json("add", "manual.md")["conflicts"] == []
    either.assert_settled()
    assert not gone.exists()
    changed = document()
    changed["pears"][1] = "Item 2 is new."
    changed["pears"][8] = "Item 9 is new."
    changed["plums"][8] = "Item 9 is new."
    manual(changed)
    assert either.json("add", "manual.md")["conflicts"] == []
    assert all("Item 9 is new." in one.read_text() for one in (path, other))
    assert "My item 2 of plums" in other.read_text()
    assert "sha256:" in chunk_about(either, "apples").read_text()
    assert "sha256:" not in other.read_text()
    gone.write_bytes(deleted)
    either.sync()
    gone.unlink()
    either("repair", "--write-files", "--yes")
    assert gone.read_bytes() == deleted
    either.assert_settled()


def test_a_text_merged_by_hand_is_ours(either: Any, manual: Any) -> None:
    """A person who brings both together in an editor keeps what they wrote."""
    path = overlapping(either, manual)
    edit(path, "My item 2 of pears", "My new item 2")
    choose(either, "ours")
    either("add", "manual.md")
    assert "My new item 2" in path.read_text()
    assert either.json("add", "manual.md")["unchanged"]


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_an_edit_whose_source_text_went_waits_for_a_choice(
    either: Any, manual: Any, choice: Choice
) -> None:
    """It stays in its file; then it is the person's own, or goes."""
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    manual(document("apples", "plums", "cherries", "figs"))
    for _ in range(2):
        report = either.json("add", "manual.md", code=1)
        assert "gone" in report["conflicts"][0]["detail"]
    assert conflicts_of(either)[0].theirs is None
    choose(either, choice)
    either.sync(code=1)
    either("add", "manual.md")
    assert either.json("add", "manual.md")["unchanged"]
    assert path.exists() is (choice == "ours")
    if choice == "ours":
        assert "My item 2" in path.read_text()
        assert chunk_file.parse(path.read_bytes()).origin is None
    either.assert_settled()


def test_a_document_that_left_its_folder_waits_too(either: Any) -> None:
    """An edited chunk of a document that is gone is a conflict until a person chooses."""
    either.write("book/a.md", written(document("apples")))
    either.write("book/b.md", written(document("pears")))
    either("add", "book")
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    (either.folder / "book/b.md").unlink()
    for _ in range(2):
        assert len(either.json("add", "book", code=1)["conflicts"]) == 1
    choose(either, "theirs")
    either.sync(code=None)
    either("add", "book")
    assert either.json("add", "book")["unchanged"]
    assert "pears" not in "".join(file.read_text() for file in chunk_paths(either))


def test_a_source_that_went_back_takes_everything_back(either: Any, manual: Any) -> None:
    """While a conflict is open some chunks have the new text; the old source has the old ones."""
    path = overlapping(either, manual)
    manual(document())
    assert either.json("add", "manual.md")["conflicts"] == []
    assert conflicts_of(either) == []
    assert "Item 2 of figs is new." not in chunk_about(either, "figs").read_text()
    assert "My item 2" in path.read_text()


def test_a_conflict_goes_with_its_file(either: Any, manual: Any) -> None:
    """Whoever deletes the file has chosen: the new text comes, and nothing waits."""
    overlapping(either, manual).unlink()
    either.sync(code=1)
    report = either.json("add", "manual.md")
    assert report["conflicts"] == conflicts_of(either) == []
    assert "Item 2 is new." in chunk_about(either, "pears").read_text()
    either.assert_settled()


# Moved files and texts


def test_a_renamed_chunk_is_updated_under_its_name(either: Any, manual: Any) -> None:
    """A file that a person renamed belongs to its source still, and is not made a second time."""
    path = chunk_about(either, "pears")
    mine = path.with_name("my favourite.md")
    path.rename(mine)
    either.sync()
    changed = document()
    changed["pears"][1] = "Item 2 is new."
    manual(changed)
    either("add", "manual.md")
    assert chunk_about(either, "pears") == mine
    assert "Item 2 is new." in mine.read_text()
    assert either("reconstruct", "manual.md").stdout == written(changed)
    either.assert_settled()


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("into", ["aside", "other.md"])
def test_a_chunk_in_another_folder_is_updated_there(
    workspace: Any, edited: bool, into: str
) -> None:
    """A file moved out of its resource's folder follows its source, and no other one."""
    workspace.write("manual.md", written(document()))
    workspace.write("other.md", written(document("quinces", "medlars")))
    workspace("add", "manual.md", "other.md")
    path = chunk_about(workspace, "pears")
    target = workspace.chunked / into / "moved.md"
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    workspace.sync()
    if edited:
        edit(target, "Item 5 of pears", "My item 5 of pears")
    changed = document()
    for version in ("new", "newer"):
        changed["pears"][1] = f"Item 2 is {version}."
        workspace.write("manual.md", written(changed))
        workspace("add", "manual.md")
        assert chunk_about(workspace, "pears") == target
        assert f"Item 2 is {version}." in target.read_text()
        assert ("My item 5" in target.read_text()) is edited
    workspace.write("other.md", written(document("quinces")))
    workspace("add", "other.md")
    assert chunk_about(workspace, "pears") == target
    shutil.rmtree(workspace.sidecar)
    workspace.sync()
    workspace.write("other.md", written(document("quinces", "sloes")))
    assert workspace.json("add", "other.md")["conflicts"] == []
    assert chunk_about(workspace, "pears") == target


def test_text_that_moved_and_changed_finds_the_edited_chunk(either: Any, manual: Any) -> None:
    """A section put elsewhere with a new line is merged with the edit of its file."""
    path = chunk_about(either, "pears")
    edit(path, "Item 2 of pears", "My item 2 of pears")
    either.sync()
    changed = document("apples", "plums", "cherries", "figs", "pears")
    changed["pears"][8] = "Item 9 is new."
    manual(changed)
    assert either.json("add", "manual.md")["conflicts"] == []
    body = chunk_file.parse(path.read_bytes()).body
    assert "My item 2" in body
    assert "Item 9 is new." in body
    assert either.chunks("manual.md")[-1] == path.relative_to(either.chunked).as_posix()
    assert either.json("add", "manual.md")["unchanged"]


def test_a_withheld_file_is_neither_written_nor_made_twice(either: Any, manual: Any) -> None:
    """A file that nobody can read now keeps its place and bytes; its new text waits."""
    path = chunk_about(either, "pears")
    broken = path.read_bytes().replace(b"---\n", b"---\nbad: [\n", 1)
    path.write_bytes(broken)
    either.sync(code=1)
    changed = document()
    changed["pears"][1] = "Item 2 is new."
    manual(changed)
    report = either.json("add", "manual.md", code=1)
    assert "excluded from search" in report["conflicts"][0]["detail"]
    assert path.read_bytes() == broken
    assert chunk_about(either, "pears") == path


# Git, and what records name


def test_nothing_is_added_during_a_merge(either: Any, manual: Any) -> None:
    """While git decides what the files are to be, add refuses and writes nothing."""
    (either.folder / ".git" / "MERGE_HEAD").write_text("0" * 40)
    manual(document("figs"))
    before = either.committed()
    done = either("add", "manual.md", code=4)
    assert "merge is in progress" in done.stderr
    assert either.committed() == before


def test_a_recorded_source_is_taken_in_by_its_record(either: Any, tmp_path: Path) -> None:
    """What a record names is brought up to date without naming it; of a copy, the copy."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "copied.md").write_text("Copied words.\n")
    either.write("book/a.md", "Words of a book.\n")
    either("add", outside / "copied.md", "book")
    either.write("book/a.md", "Other words of a book.\n")
    (either.store / "source" / "copied.md").write_text("Other copied words.\n")
    record_paths = [path for path in either.truth() if path.endswith(".json")]
    with Store(str(either.store), configuration=str(tmp_path / "configuration")) as store:
        sources = recorded_sources(
            store.places, store._parts.layout, record_paths, store._parts.reachable()
        )
        parts = store._parts
        with parts.writing("add") as (catalog, embeddings, _):
            report = add_all(parts.held(catalog, embeddings), sources, on_progress=ignore)
    outcomes = report.outcomes
    assert [outcome.status for outcome in outcomes] == ["updated", "updated"]
    either.sync(code=None)  # another configuration has another secret
    assert sorted(chunk_file.parse(path.read_bytes()).body for path in chunk_paths(either)) == [
        "Other copied words.\n",
        "Other words of a book.\n",
    ]
    (outside / "copied.md").write_text("Other copied words.\n")
    either.assert_settled()


@pytest.mark.parametrize("kind", ["absolute", "above", "link", "nul"])
def test_a_record_cannot_name_a_source_outside(workspace: Any, tmp_path: Path, kind: str) -> None:
    """What only a record names is never read from outside the work tree, also not by a link."""
    outside = tmp_path / "secret.md"
    outside.write_text("Secret.\n")
    workspace.write("manual.md", "Words.\n")
    workspace("add", "manual.md")
    record = workspace.chunked / "manual.md" / "meta.json"
    places = Places(root=str(workspace.store), sidecar=str(workspace.sidecar))
    reachable = Reachable(places, Originals())
    (source,) = recorded_sources(places, TREE, ["manual.md/meta.json"], reachable)
    assert (source.path, source.recorded) == (str(workspace.folder / "manual.md"), "../manual.md")
    os.symlink(tmp_path, workspace.folder / "link")
    named = {
        "absolute": str(outside),
        "above": "../../secret.md",
        "link": "../link/secret.md",
        "nul": "../manual.md\\u0000",
    }[kind]
    record.write_text(record.read_text().replace("../manual.md", named))
    with pytest.raises(SourceOutside, match="outside the work tree") as caught:
        recorded_sources(places, TREE, ["manual.md/meta.json"], reachable)
    assert "filestore trust" in all_words(caught.value)


# Whatever people and sources do

EXAMPLES: Final = int(os.environ.get("REINGEST_EXAMPLES", "6"))
"""Random histories in each layout; ``REINGEST_EXAMPLES=500`` tries more."""
WORDS = st.sampled_from(["apples", "pears", "plums", "cherries", "figs", "sloes", "medlars"])
LINES = st.integers(0, SENTENCES - 1)
SOURCE_EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("replace"), WORDS, LINES),
        st.tuples(st.just("insert"), WORDS, LINES),
        st.tuples(st.just("delete"), WORDS, LINES),
        st.tuples(st.just("move"), WORDS, LINES),
    ),
    min_size=2,
    max_size=6,
)
HAND_EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "delete", "append", "returns"]),
        st.integers(0, 9),
        st.integers(2, SENTENCES + 1),
    ),
    min_size=2,
    max_size=6,
)


@dataclass
class Model:
    """A work tree with a source, its store, and what a person wrote into chunk files."""

    folder: Path
    layout: str
    sections: Sections
    mine: dict[str, set[str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Every text that was generated, by its origin."""
    edits: int = 0

    def __post_init__(self) -> None:
        (self.folder / ".git").mkdir()
        root, configuration = self.folder / "file_index", self.folder / "configuration"
        self.store = Store.create(
            str(root), layout=self.layout, configuration=str(configuration), embedder="builtin"
        )

    def add(self) -> Any:
        """Add the source as it is now; what became of it."""
        path = self.folder / "manual.md"
        path.write_text(written(self.sections))
        (outcome,) = self.store.add(path).outcomes
        assert outcome.error is None
        return outcome

    def change_source(self, change: tuple[str, str, int]) -> None:
        """One change of the original."""
        kind, topic, place = change
        if kind == "insert":
            kept = self.sections.pop(topic, sentences(topic))
            items = list(self.sections.items())
            items.insert(place, (topic, kept))
            self.sections = dict(items)
        elif topic in self.sections and kind == "replace":
            self.edits += 1
            self.sections[topic][place] = f"Source line {self.edits} on {topic}."
        elif len(self.sections) > 1 and kind == "delete":
            self.sections.pop(topic, None)
        elif topic in self.sections:
            self.change_source(("insert", topic, place // 2))

    def change_by_hand(self, change: tuple[str, int, int]) -> None:
        """One change of the body of a chunk file, in an editor."""
        kind, which, place = change
        files = sorted(self.files())
        path = files[which % len(files)]
        target = Path(self.store.places.chunked) / path
        head, _, body = target.read_bytes().decode().rpartition("---\n")
        lines = body.split("\n")
        self.edits += 1
        mine = f"Mine {self.edits}, by hand."
        place = min(place, len(lines))
        if kind == "delete":
            gone = lines.pop(min(place, len(lines) - 1)).rstrip("\r")
            self.mine.get(path, set()).discard(gone)
        elif kind != "returns":
            if kind == "replace" and place < len(lines):
                self.mine.get(path, set()).discard(lines.pop(place).rstrip("\r"))
            lines.insert(len(lines) if kind == "append" else place, mine)
            self.mine.setdefault(path, set()).add(mine)
        text = "\n".join(line.rstrip("\r") for line in lines)
        if kind == "returns":
            text = text.replace("\n", "\r\n")
        target.write_bytes(f"{head}---\n{text}".encode())

    def files(self) -> dict[str, bytes]:
        """Chunk files by path."""
        root = Path(self.store.places.chunked)
        found = (path for path in root.rglob("*.md") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}

    def conflicts(self) -> dict[str, Conflict]:
        """What waits, by path."""
        catalog = Catalog.open(self.store.places.catalog)
        try:
            return {conflict.path: conflict for conflict in catalog.conflicts()}
        finally:
            catalog.close()

    def fresh_origins(self) -> list[str]:
        """The texts of the source as it is now, in order, as a new store would have them."""
        extractor = extract.for_name("manual.md")
        assert extractor is not None
        text = extractor.extract(written(self.sections).encode(), name="manual.md")
        pieces = split(
            text.text,
            syntax=text.syntax,
            budget=self.store.settings.budget,
            title=text.title,
            outline=text.outline,
        )
        found = [text.text[piece.start : piece.end] for piece in pieces]
        self.texts |= {origin_hash(body): body for body in found}
        return [origin_hash(body) for body in found]

    def assert_merged(self, path: str, before: bytes, after: bytes) -> None:
        """A file that went on to a new text has each line that is new in it."""
        old, new = chunk_file.parse(before), chunk_file.parse(after)
        if old.origin is not None and new.origin is not None:
            fresh = lines_of(self.texts[new.origin]) - lines_of(self.texts[old.origin])
            assert fresh <= lines_of(new.body), path

    def assert_nothing_lost(self) -> None:
        """What a person wrote is in its file; every text of the source is there once, in order."""
        chunks = chunks_in(Path(self.store.places.chunked))
        for path, lines in self.mine.items():
            assert lines <= lines_of(chunks[path].body)
        waiting = self.conflicts()
        assert waiting.keys() <= chunks.keys()
        new = {conflict.origin for conflict in waiting.values() if conflict.origin is not None}
        settled = [
            chunk.origin
            for path, chunk in chunks.items()
            if chunk.origin is not None and path not in waiting
        ]
        fresh = self.fresh_origins()
        assert settled == [origin for origin in fresh if origin not in new]
        assert new <= set(fresh)


def lines_of(text: str) -> set[str]:
    """The lines of a text, whatever they end with."""
    return {line.rstrip("\r") for line in text.split("\n")}


def chunks_in(folder: Path) -> dict[str, chunk_file.Chunk]:
    """The chunk files below a folder, in reading order."""
    chunks = {
        path.relative_to(folder).as_posix(): chunk_file.parse(path.read_bytes())
        for path in folder.rglob("*.md")
        if path.is_file()
    }
    return {path: chunks[path] for path in in_order({p: c.order for p, c in chunks.items()})}


@contextmanager
def model(layout: str) -> Iterator[Model]:
    """A store to which a source was added."""
    with tempfile.TemporaryDirectory() as folder:
        made = Model(Path(folder), layout, document())
        with made.store:
            made.add()
            made.fresh_origins()
            yield made


@pytest.mark.parametrize("layout", ["tree", "flat"])
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    rounds=st.lists(st.tuples(HAND_EDITS, SOURCE_EDITS), min_size=1, max_size=2),
    choices=st.lists(st.sampled_from(["ours", "theirs"]), min_size=1, max_size=6),
)
def test_no_line_of_a_person_is_lost(layout: str, rounds: Any, choices: list[Choice]) -> None:
    """Edits by hand and of the source, then choices: all is merged or waits, and then settled."""
    with model(layout) as made:
        for by_hand, of_source in rounds:
            for change in by_hand:
                made.change_by_hand(change)
            for change in of_source:
                made.change_source(change)
            before = made.files()
            made.add()
            made.assert_nothing_lost()
            after, wanted = made.files(), set(made.fresh_origins())
            moved = any(kind in ("move", "insert") for kind, _, _ in of_source)
            for path, data in before.items():
                chunk = chunk_file.parse(data)
                if chunk.origin in wanted or path in made.mine:
                    assert path in after
                if path in after:
                    made.assert_merged(path, data, after[path])
                if chunk.origin in wanted and not moved:
                    assert after[path] == data
            waiting = made.conflicts()
            assert made.add().status == "unchanged"
            assert (made.files(), made.conflicts()) == (after, waiting)
        for number, (path, conflict) in enumerate(sorted(made.conflicts().items())):
            choice = choices[number % len(choices)]
            target = Path(made.store.places.chunked) / path
            data = resolve(target.read_bytes(), conflict, choice)
            if choice == "theirs":
                made.mine.pop(path, None)
            if data is None:
                target.unlink()
            else:
                target.write_bytes(data)
        made.store.sync()
        made.add()
        assert made.add().status == "unchanged"
        assert made.conflicts() == {}
        made.assert_nothing_lost()
