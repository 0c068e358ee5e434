"""Files under other paths, with the links to them: in place, as originals, as chunk files."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import FilestoreError, RefusedError, Store, UsageError
from filestore.fs.transaction import ChangedMeanwhile
from filestore.ingest.edits import OtherRevisionError
from tests.system.conftest import files_below

NOTES = {
    "Home.md": "# Home\n\n[[rent]] and [the rent](flat/rent.md#when), ![plan](flat/plan.png).\n",
    "flat/rent.md": "# Rent\n\nPaid in March. Up: [home](../Home.md). ![p](plan.png)\n",
    "flat/gas.md": "# Gas\n\n[rent](rent.md), [[rent|the rent]]\r\n`[[rent]]`",
    "other.md": "# Other\n\nNothing about it.\n",
}


NOTEBOOK = (
    '{"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# Book\\n", "[r](rent.md)"]}'
    '], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
)


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Store]:
    """Notes in place, with a picture and a hidden file."""
    root = tmp_path / "vault"
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "flat/plan.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with filestore.create(root, layout="in-place", embedder="builtin") as made:
        made.sync()
        yield made


def truth(store: Store) -> dict[str, tuple[bytes, int]]:
    """What a person has in the folder, with its permissions."""
    root = Path(store.root)
    found = files_below(root)
    return {
        path: (data, stat.S_IMODE((root / path).stat().st_mode))
        for path, data in found.items()
        if not path.startswith((".filestore/", ".sidecar/", ".undo/"))
    }


def text_of(store: Store, path: str) -> str:
    return (Path(store.root) / path).read_bytes().decode()


def test_a_note_moves_with_its_links_and_back(vault: Store) -> None:
    """Links to it and in it lead on, nothing is embedded twice, undo restores bytes and modes."""
    rent = Path(vault.root) / "flat/rent.md"
    rent.chmod(0o640)
    before = truth(vault)
    planned = vault.plan_move("flat/rent.md", "money/Rent of May.md")
    assert truth(vault) == before
    assert not planned.done
    assert planned.undo is None
    done = vault.move("flat/rent.md", "money/Rent of May.md", shown=planned)
    assert [one.path for one in done.relinked] == ["Home.md", "flat/gas.md", "flat/rent.md"]
    assert text_of(vault, "Home.md") == (
        "# Home\n\n[[Rent of May]] and [the rent](money/Rent%20of%20May.md#when),"
        " ![plan](flat/plan.png).\n"
    )
    assert text_of(vault, "flat/gas.md") == (
        "# Gas\n\n[rent](../money/Rent%20of%20May.md), [[Rent of May|the rent]]\r\n`[[rent]]`"
    )
    assert text_of(vault, "money/Rent of May.md") == (
        "# Rent\n\nPaid in March. Up: [home](../Home.md). ![p](../flat/plan.png)\n"
    )
    assert (Path(vault.root) / "money/Rent of May.md").stat().st_mode & 0o777 == 0o640
    assert vault.status().clean
    assert [link.path for link in vault.links("money/Rent of May.md").incoming] == [
        "Home.md",
        "Home.md",
        "flat/gas.md",
        "flat/gas.md",
    ]
    undone = vault.undo()
    assert undone is not None
    assert undone.embedded == 0
    assert truth(vault) == before
    assert not (Path(vault.root) / "money").exists()
    assert vault.status().clean
    assert vault.redo() is not None
    assert vault.status().clean
    assert "money/Rent of May.md" in truth(vault)


def test_what_only_moves_is_not_embedded(vault: Store) -> None:
    """A file with the same text under another name."""
    done = vault.move("other.md", "elsewhere.md")
    assert (done.embedded, done.relinked) == (0, ())
    assert vault.search("nothing about it", mode="keyword").hits[0].path == "elsewhere.md"


def test_what_only_moves_keeps_its_date(vault: Store) -> None:
    """There, back by undo, and again by redo; a file in which links are written is of now."""
    root = Path(vault.root)
    for name in ("other.md", "flat/plan.png", "flat/gas.md"):
        os.utime(root / name, ns=(1, 1_500_000_000_123_456_789))

    def dates(*names: str) -> set[int]:
        return {(root / name).stat().st_mtime_ns for name in names}

    vault.move("other.md", "deep/else.md")
    vault.move("flat", "house")
    assert dates("deep/else.md", "house/plan.png") == {1_500_000_000_123_456_789}
    assert vault.status().clean
    vault.undo()
    vault.undo()
    assert dates("other.md", "flat/plan.png") == {1_500_000_000_123_456_789}
    vault.redo()
    assert dates("deep/else.md") == {1_500_000_000_123_456_789}
    vault.move("flat/rent.md", "flat/lease.md")
    assert min(dates("flat/gas.md")) > 1_500_000_000_123_456_789
    assert vault.status().clean


def test_a_folder_moves_with_pictures_and_without_hidden_files(vault: Store) -> None:
    """What is hidden stays and is reported; the picture comes back by undo."""
    (Path(vault.root) / "flat/.draft.md").write_text("hidden")
    before = truth(vault)
    done = vault.move("flat", "house/flat")
    assert {one.to for one in done.moved} == {
        "house/flat/gas.md",
        "house/flat/plan.png",
        "house/flat/rent.md",
    }
    assert [one.path for one in done.left] == ["flat/.draft.md"]
    assert "![plan](house/flat/plan.png)" in text_of(vault, "Home.md")
    assert "[home](../../Home.md). ![p](plan.png)" in text_of(vault, "house/flat/rent.md")
    assert vault.status().clean
    vault.undo()
    assert truth(vault) == before
    assert vault.status().clean


def test_into_a_folder_that_is_there_and_by_case_alone(vault: Store) -> None:
    """As mv does; a name in other letters is another one for links by path."""
    assert vault.move("other.md", "flat").to == "flat/other.md"
    done = vault.move("flat/rent.md", "flat/Rent.md")
    assert "flat/Rent.md" in truth(vault)
    assert "flat/rent.md" not in truth(vault)
    assert "[the rent](flat/Rent.md#when)" in text_of(vault, "Home.md")
    assert "[[rent]]" in text_of(vault, "Home.md")
    assert done.undo
    assert vault.undo() is not None


REFUSED = {
    "onto a file": ("other.md", "Home.md"),
    "onto a file in other letters": ("other.md", "HOME.md"),
    "onto itself": ("other.md", "other.md"),
    "a folder into itself": ("flat", "flat/inner/flat"),
    "out of the store": ("other.md", "../other.md"),
    "out of it on the way": ("other.md", "flat/../../other.md"),
    "an absolute path": ("other.md", "/tmp/filestore-none/other.md"),
    "a hidden folder": ("other.md", ".obsidian/other.md"),
    "a hidden name": ("other.md", ".other.md"),
    "the sidecar": ("other.md", ".filestore/other.md"),
    "a control character": ("other.md", "a\x1bb.md"),
    "a line end": ("other.md", "a\nb.md"),
    "signs that turn others": ("other.md", "a\u202eb.md"),
    "a long name": ("other.md", "x" * 1_000 + ".md"),
    "a long path": ("other.md", "x" * 200 + "/" + ("y" * 200 + "/") * 6 + "o.md"),
    "a deep path": ("other.md", "d/" * 100 + "o.md"),
    "another suffix": ("other.md", "other.txt"),
    "no suffix": ("other.md", "other"),
    "a device": ("other.md", "con.md"),
    "below a file": ("other.md", "Home.md/other.md"),
    "nothing": ("other.md", ""),
    "what is not there": ("none.md", "x.md"),
    "the settings": ("filestore.toml", "x.toml"),
    "the root": (".", "x"),
    "a name no link can have": ("flat/rent.md", "flat/rent [old].md"),
    "a NUL": ("other.md", "a\0b.md"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_moved_changes_nothing(vault: Store, case: str) -> None:
    """It is refused with a remedy or a reason, planned or not."""
    before = truth(vault)
    for act in (vault.plan_move, vault.move):
        with pytest.raises((UsageError, RefusedError, FilestoreError)) as caught:
            act(*REFUSED[case])
        assert "Traceback" not in str(caught.value)
        assert truth(vault) == before
    assert vault.status().clean
    assert not vault.batches()


def test_a_file_that_is_read_only_or_edited_meanwhile_stops_all(vault: Store) -> None:
    """Of the file with links nothing is written, and of no other either."""
    gas = Path(vault.root) / "flat/gas.md"
    planned = vault.plan_move("flat/rent.md", "rent.md")
    gas.write_bytes(gas.read_bytes() + b"\n[again](rent.md)\n")
    before = truth(vault)
    with pytest.raises(ChangedMeanwhile):
        vault.move("flat/rent.md", "rent.md", shown=planned)
    assert truth(vault) == before
    gas.chmod(0o444)
    before = truth(vault)
    with pytest.raises(RefusedError, match="read-only"):
        vault.move("flat/rent.md", "rent.md")
    assert truth(vault) == before
    gas.chmod(0o644)
    assert vault.move("flat/rent.md", "rent.md").done
    # An edit that the index has not seen counts.
    assert "[again](../rent.md)" in text_of(vault, "flat/gas.md")
    assert vault.status().clean


def test_another_revision_is_refused_by_name(vault: Store) -> None:
    """The one of `show` is taken, that of another file or an older one is not."""
    revision = vault.show("other.md").revision
    with pytest.raises(OtherRevisionError, match="revision"):
        vault.move("other.md", "o.md", revision=vault.show("Home.md").revision)
    (Path(vault.root) / "other.md").write_text("# Other\n\nEdited.\n")
    with pytest.raises(OtherRevisionError, match=revision):
        vault.move("other.md", "o.md", revision=revision)
    assert vault.move("other.md", "o.md", revision=vault.show("other.md").revision).done


def test_what_is_no_utf_8_or_no_markdown_is_reported(vault: Store) -> None:
    """It stays byte for byte, and the answer says that its links break."""
    root = Path(vault.root)
    (root / "old.md").write_bytes("# Öl\n\n[rent](flat/rent.md) für\n".encode("latin-1"))
    (root / "flat/book.ipynb").write_text(NOTEBOOK)
    vault.sync()
    before = truth(vault)
    done = vault.move("flat/rent.md", "rent.md")
    assert [one.path for one in done.left] == ["flat/book.ipynb", "old.md"]
    after = truth(vault)
    assert all(after[path] == before[path] for path in ("flat/book.ipynb", "old.md"))
    vault.undo()
    assert truth(vault) == before


def test_what_is_not_indexed_moves_as_well(vault: Store) -> None:
    """A new note is indexed where it lies then; where rules leave it out nothing indexed goes."""
    root = Path(vault.root)
    (root / ".gitignore").write_text("drafts/\n")
    (root / "drafts").mkdir()
    (root / "drafts/idea.md").write_text("# Idea\n\n[rent](../flat/rent.md)\n")
    vault.sync()
    with pytest.raises(RefusedError, match="left out"):
        vault.move("other.md", "drafts/other.md")
    assert vault.move("drafts/idea.md", "idea.md").done
    assert text_of(vault, "idea.md") == "# Idea\n\n[rent](flat/rent.md)\n"
    assert vault.status().clean
    vault.undo()
    assert vault.status().clean


def test_rules_hold_in_a_folder_that_is_to_be_made(vault: Store) -> None:
    """Its files are left out by their names as they are in any other folder."""
    (Path(vault.root) / ".gitignore").write_text("*.draft.md\ndrafts/\n")
    for new in ("new/deep/other.draft.md", "new/drafts/other.md"):
        with pytest.raises(RefusedError, match="left out"):
            vault.move("other.md", new)
    assert vault.move("other.md", "new/deep/other.md").done
    assert vault.status().clean


def test_the_rules_of_a_folder_are_read_once_for_all_its_files(
    vault: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each file, when they move nor when that is undone."""
    for number in range(50):
        (Path(vault.root) / f"flat/{number}.md").write_text(f"# Number {number}\n")
    vault.sync()
    listed: list[Any] = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path=".": (listed.append(path), real(path))[1])
    vault.move("flat", "home")
    vault.undo()
    assert len(listed) < 50


def test_a_link_that_is_no_file_is_not_moved(vault: Store) -> None:
    """Symbolic links are not followed."""
    os.symlink("Home.md", Path(vault.root) / "link.md")
    with pytest.raises(RefusedError):
        vault.move("link.md", "other-link.md")
