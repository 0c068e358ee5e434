"""What is added twice: chunk files of a store, files of an added folder, folders around files."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from filestore.ingest.sources import Outcome
from filestore.store import Store


def indexed(workspace: Any) -> list[str]:
    """The documents that records name, with their resources."""
    found = []
    for path in sorted(workspace.chunked.rglob("*.json")):
        if path.is_file():
            record = json.loads(path.read_text())
            name = record.get("resource") or path.parent.name
            found += [f"{name}: {one['source']}" for one in record["documents"]]
    return sorted(found)


def other_store(folder: Path) -> None:
    """A store with one document, and a note beside its chunk files."""
    with Store.create(folder, embedder="builtin") as store:
        note = folder.parent / "original.md"
        note.write_text("# Original\n\nWords of the original.\n")
        store.add(note)
    (folder / "notes.md").write_text("A note in the folder of the store.\n")


def test_a_folder_that_holds_stores(either: Any) -> None:
    """Neither this store nor another one gives its chunk files as documents; the other is named."""
    either.write("docs/one.md", "# One\n\nWords of one.\n")
    either.write("docs/two.md", "# Two\n\nWords of two.\n")
    other_store(either.folder / "docs/other")
    done = either("add", ".")
    names = {"docs/one.md", "docs/two.md", "docs/original.md"}
    assert indexed(either) == sorted(f"work: ../{name}" for name in names)
    assert "left out docs/other: holds the chunk files of a filestore store" in done.stderr
    assert either("add", ".").stdout.startswith("unchanged work")
    assert either.drift() == {}


def test_each_child_but_the_stores(either: Any) -> None:
    """The children of a folder that are stores are left out as well."""
    either.write("docs/one.md", "# One\n\nWords of one.\n")
    other_store(either.folder / "docs/other")
    either("add", "docs", "--each")
    assert indexed(either) == ["one.md: ../docs/one.md", "original.md: ../docs/original.md"]


def test_another_store_by_name(either: Any) -> None:
    """What lies beside its chunk files may be meant; the chunk files themselves are refused."""
    other_store(either.folder / "other")
    either("add", "other")
    assert indexed(either) == ["other: ../other/filestore.toml", "other: ../other/notes.md"]
    chunks = (either.folder / "other/chunked").rglob("*.md")
    chunk = next(path for path in chunks if path.is_file())
    for path in ("other/chunked", chunk):
        done = either("add", path, code=3)
        assert "lies among the chunk files of the store" in done.stderr
    assert indexed(either) == ["other: ../other/filestore.toml", "other: ../other/notes.md"]


def test_a_folder_with_settings_and_no_chunk_files_is_none(either: Any) -> None:
    """A stray settings file hides no documents."""
    either.write("docs/filestore.toml", "format = 1\n")
    either.write("docs/one.md", "# One\n\nWords of one.\n")
    either("add", "docs")
    assert indexed(either) == ["docs: ../docs/filestore.toml", "docs: ../docs/one.md"]


def test_a_file_of_an_added_folder(either: Any) -> None:
    """It is there already, or will be: no second resource is made of it."""
    either.write("docs/sub/one.md", "# One\n\nWords of one.\n")
    either("add", "docs")
    before = either.truth()
    new = either.write("docs/sub/two.md", "# Two\n\nWords of two.\n")
    for words in (["docs/sub/one.md"], [new], ["docs/sub"], [new, "--into", "mine"]):
        done = either("add", *words, code=4)
        assert "a document added before" in done.stderr or "to the document 'docs'" in done.stderr
        assert "filestore update" in done.stderr
    shutil.rmtree(either.folder / "docs/sub")
    assert either.truth() == before


def test_a_file_that_its_folder_ignores(either: Any) -> None:
    """Whoever names what is ignored means it: no other resource will ever have it."""
    either.write("docs/one.md", "# One\n\nWords of one.\n")
    either.write("docs/.filestoreignore", "draft.md\n")
    either.write("docs/draft.md", "# Draft\n\nWords of a draft.\n")
    either("add", "docs")
    either("add", "docs/draft.md")
    assert indexed(either) == ["docs: ../docs/one.md", "draft.md: ../docs/draft.md"]
    (either.folder / "docs/.filestoreignore").unlink()
    assert either.drift() == {}
    assert "draft.md: belongs to the document draft.md" in either("add", "docs").stderr


def test_a_folder_around_what_was_added(either: Any) -> None:
    """It takes what nobody has, whether the others were added before or in the same command."""
    either.write("docs/sub/one.md", "# One\n\nWords of one.\n")
    either.write("docs/two.md", "# Two\n\nWords of two.\n")
    either("add", "docs/sub/one.md", "docs")
    assert indexed(either) == ["docs: ../docs/two.md", "one.md: ../docs/sub/one.md"]
    assert "every file in" in either("add", "docs/sub", code=4).stderr
    done = either("add", "docs", "docs/two.md", code=5)
    assert done.stdout.startswith("unchanged docs")
    assert either.drift() == {}


def test_copies_from_elsewhere(either: Any) -> None:
    """A file of a folder that was copied is part of that one, too."""
    elsewhere = either.folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.md").write_text("# Far\n\nWords from afar.\n")
    either("add", elsewhere)
    assert (
        "belongs to the document 'elsewhere'" in either("add", elsewhere / "far.md", code=4).stderr
    )


def test_copies_are_announced_before_they_are_made(either: Any) -> None:
    """With their number and size; a second add of the same file copies and says nothing."""
    elsewhere = either.folder.parent / "elsewhere"
    elsewhere.mkdir()
    for name in ("one.md", "two.md"):
        (elsewhere / name).write_text(f"# {name}\n\nWords.\n")
    done = either("add", elsewhere)
    assert (
        "copied 2 files (34 bytes) from outside the work tree to source/elsewhere;" in done.stderr
    )
    assert "--no-copy" in done.stderr
    assert "copied" not in either("add", elsewhere).stderr
    (elsewhere / "one.md").write_text("# one\n\nOther words.\n")
    assert either.json("add", elsewhere)["updated"][0]["copied_bytes"] == 20


def test_a_refused_copy_is_not_made(either: Any) -> None:
    """Whoever is told and interrupts has no copy."""
    far = either.folder.parent / "far.md"
    far.write_text("# Far\n\nWords from afar.\n")

    def refuse(_: str, __: Outcome) -> None:
        raise KeyboardInterrupt

    with Store(either.store) as store, pytest.raises(KeyboardInterrupt):
        store.add(far, on_copy=refuse)
    assert not (either.store / "source").exists()
    assert either.truth() == {}


def test_originals_that_are_only_referenced(either: Any) -> None:
    """They stay where they are, also when they are added again, and are followed from there."""
    far = either.folder.parent / "far.md"
    far.write_text("# Far\n\nWords from afar.\n")
    either("add", "--no-copy", far)
    assert not (either.store / "source").exists()
    assert indexed(either) == ["far.md: ../../far.md"]
    far.write_text("# Far\n\nOther words.\n")
    assert either.json("add", far)["updated"][0]["source"] == "../../far.md"
    assert not (either.store / "source").exists()
    far.write_text("# Far\n\nMore words.\n")
    assert either.drift() == {"source-modified": ["../../far.md"]}
    assert either.json("update")["updated"][0]["resource"] == "far.md"
