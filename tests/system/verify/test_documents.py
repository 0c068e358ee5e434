"""Documents in place as `status`, `sync` and `verify` see them; none of these writes one."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.conftest import Workspace, prose
from tests.system.verify.test_every_code_in_place import Notes


@pytest.fixture
def notes(new_workspace: Callable[..., Workspace]) -> Notes:
    """An empty folder with a store in place."""
    made = Notes(new_workspace(init=False))
    made("init", "--in-place", "--embedder", "builtin")
    return made


def sections(notes: Notes) -> int:
    """How many sections are known."""
    ((count,),) = notes.in_catalog("SELECT count(*) FROM parts")
    return int(count)


def embeddings(notes: Notes) -> set[bytes]:
    """The embedding keys of all sections."""
    return {key for (key,) in notes.in_catalog("SELECT key FROM vectors")}


def test_documents_are_cut_again(notes: Notes) -> None:
    """Another budget cuts them otherwise, once; what was known as a text keeps its vector."""
    notes.write("long.md", "# Long\n\n" + "".join(prose(one) + "\n" for one in ("a", "b", "c")))
    notes.write("short.md", "# Short\n\nA few words.\n")
    notes.sync()
    before, known = sections(notes), embeddings(notes)
    settings = notes.folder / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 60"))
    assert notes.drift() == {"chunker-changed": ["filestore.toml"]}
    report = notes.sync()
    assert [one["code"] for one in report["applied"]] == ["chunker-changed"]
    assert sections(notes) > before
    assert report["embedded"] == len(embeddings(notes) - known)
    notes.assert_settled()


def test_documents_that_are_edited_are_cut_again_with_the_others(notes: Notes) -> None:
    """What is indexed between the change and the cut leaves the finding as it was."""
    notes.write("long.md", "# Long\n\n" + "".join(prose(one) + "\n" for one in ("a", "b", "c")))
    notes.sync()
    settings = notes.folder / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 60"))
    notes.write("new.md", "New words.\n")
    (notes.folder / "long.md").rename(notes.folder / "longer.md")
    report = notes.sync()
    codes = {one["code"] for one in report["applied"]}
    assert codes == {"chunker-changed", "moved", "untracked"}
    notes.assert_settled()


def test_a_large_document_is_read_again_whole(notes: Notes) -> None:
    """More than a chunk file may have is no rot where it was indexed so."""
    line = "A line of a long note that says nothing new at all, again and again.\n"
    settings = notes.folder / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 8192"))
    notes.write("large.txt", line * (17 * 1024 * 1024 // len(line)))
    notes.sync()
    notes.assert_settled()
    notes.rot(notes.folder / "large.txt", (line * (17 * 1024 * 1024 // len(line)))[:-2].encode())
    found = notes.json("verify", "--level", "full", code=1)["findings"]
    assert [(one["code"], one["path"]) for one in found if one["severity"] != "I"] == [
        ("bit-rot", "large.txt")
    ]


ODD = {
    "zero.md": b"",
    "blank.md": b" \n\n\t\n",
    "head only.md": b"---\ntags: [a]\n---\n",
    "binary.md": bytes(range(256)) * 4,
    "utf16.md": "\ufeffUtf words of this note.\n".encode("utf-16-le"),
    "latin.md": "Caf\u00e9 words.\n".encode("latin-1"),
    "bom.md": "\ufeff# Bom\n\nWords after a mark.\n".encode(),
    "cr.md": b"# Old\rWords on a lone line.\rMore.\r",
    "crlf.md": b"---\r\ntags: [a]\r\n---\r\n# New\r\n\r\nWords on lines.\r\n",
    "broken.md": b'---\na: "open\n---\nWords below.\n',
    "nul.md": b"Words\x00 with a zero byte.\n",
    "long line.md": b"word " * 40_000,
    "empty.html": b"<html><body></body></html>",
    "fake.pdf": b"%PDF-1.4\nno paper\n",
    "fake.docx": b"PK\x03\x04 no archive",
    "notes.toml": b"a = 1\n",
    "script.py": b"def broken(:\n    pass\n",
    "marks.md": b"# One\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
    "n\u0303fd.md": b"A decomposed name.\n",
    ("n" * 250) + ".md": b"A long name.\n",
}


def test_what_sync_leaves_is_what_status_tells(notes: Notes) -> None:
    """Whatever lies there, status after a sync tells what the sync left, and nothing to be done."""
    for name, data in ODD.items():
        notes.write(name, data)
    notes.write("sub/again.md", ODD["latin.md"])
    told = notes.json("sync", code=1)
    left = {(one["code"], one["path"]) for one in told["remaining"]}
    for _ in range(2):
        drift = notes.drift()
        assert {(code, path) for code, paths in drift.items() for path in paths} == left
        again = notes.json("sync", code=1)
        assert (again["applied"], again["embedded"]) == ([], 0)
        assert {(one["code"], one["path"]) for one in again["remaining"]} == left
    checked = notes.json("verify", "--level", "full", code=1)
    serious = {(one["code"], one["path"]) for one in checked["findings"] if one["severity"] != "I"}
    assert serious <= left


def test_what_cannot_be_read_may_move(notes: Notes) -> None:
    """A document that is left out is left out under its new name, and told of at once."""
    notes.write("fake.pdf", b"%PDF-1.4\nno paper\n")
    notes.sync(code=1)
    (notes.folder / "fake.pdf").rename(notes.folder / "other.pdf")
    told = notes.sync(code=1)
    assert [(one["code"], one["path"]) for one in told["remaining"]] == [
        ("extraction-failed", "other.pdf")
    ]
    assert notes.drift() == {"extraction-failed": ["other.pdf"]}


def test_pointers_of_git_lfs_are_named_and_never_found(notes: Notes) -> None:
    """A clone without git-lfs: what it lacks comes with 'git lfs pull', and is indexed then."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064d}\nsize 9\n".encode()
    for name in ("big.md", "book.pdf", "sheet.xlsx"):
        notes.write(name, pointer)
    told = notes.sync(code=1)["remaining"]
    assert [(one["code"], one["path"]) for one in told] == [
        ("extraction-failed", name) for name in ("big.md", "book.pdf", "sheet.xlsx")
    ]
    assert all("'git lfs pull'" in one["detail"] for one in told)
    notes.write("big.md", b"# Walruses\n\nThey are here now.\n")
    notes.sync(code=1)
    assert notes.drift() == {"extraction-failed": ["book.pdf", "sheet.xlsx"]}


def test_what_is_not_read_is_counted_by_suffix(notes: Notes) -> None:
    """Formats without reader, and files of no known name that are no text: never litter."""
    for name in ("a.key", "b.KEY", "in/c.one", "blob", "d.odd"):
        notes.write(name, b"\0\0\1")
    notes.sync()
    assert notes.drift() == {"not-read": ["a.key", "b.KEY", "blob", "d.odd", "in/c.one"]}
    assert notes.json("status")["clean"]
    said = notes("status").stdout
    assert "not read: 2 .key, 1 .odd, 1 .one, 1 other\n" in said
    assert "litter" not in said


def damaged_page(path: Path) -> None:
    """A database whose second half is gone."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


@pytest.mark.parametrize("name", ["catalog.sqlite", "documents.sqlite", "embeddings.sqlite"])
@pytest.mark.parametrize("harm", ["gone", "damaged", "foreign", "link"])
def test_a_lost_part_is_made_again(notes: Notes, name: str, harm: str) -> None:
    """Whatever happens to a derived file, sync makes it again, and answers are what they were."""
    notes.write("a.md", "# Lease\n\nThe lease renewal is due in May.\n")
    notes.write("page.html", "<h1>Copper</h1><p>Copper is for wires.</p>")
    notes.sync()
    before = notes.json("search", "copper wires")["hits"]
    path = notes.sidecar / name
    if harm == "damaged":
        damaged_page(path)
    else:
        path.unlink()
    for end in ("-wal", "-shm"):
        path.with_name(name + end).unlink(missing_ok=True)
    if harm == "foreign":
        import sqlite3

        with sqlite3.connect(path) as connection:
            connection.executescript(
                "CREATE TABLE documents(id, key, data);"
                " CREATE VIEW files AS SELECT load_extension('x') AS id;"
                " CREATE TRIGGER t AFTER INSERT ON documents BEGIN SELECT 1; END"
            )
        connection.close()
    if harm == "link":
        shutil.copy(notes.folder / "a.md", notes.folder / "target.md")
        notes.sync(code=None)
        path.unlink(missing_ok=True)
        path.symlink_to(notes.folder / "target.md")
    report = notes.sync("--full", code=None)
    if name != "embeddings.sqlite":
        assert report["embedded"] == 0
    notes.sync(code=None)
    now = notes.json("search", "copper wires")["hits"]
    assert [hit["path"] for hit in now][:1] == [hit["path"] for hit in before][:1] == ["page.html"]
    notes.assert_settled()


def test_what_rules_leave_out_is_forgotten(notes: Notes) -> None:
    """However much it is, it is not missing: it comes back with the rule, and embeds nothing."""
    for number in range(60):
        notes.write(f"drafts/{number}.md", f"# Draft {number}\n\nWords of draft {number}.\n")
    notes.write("a.md", "# Kept\n\nWords that stay.\n")
    notes.write("fake.pdf", b"%PDF-1.4\nno paper\n")
    notes.sync(code=1)
    notes.write(".gitignore", "drafts/\n*.pdf\n")
    drift = notes.drift()
    assert (set(drift), len(drift["left-out"])) == ({"left-out"}, 61)
    planned = notes.json("repair", "--plan", code=None)["plan"]["steps"]
    assert {step["kind"] for step in planned} == {"forget"}
    report = notes.sync()
    assert {one["code"] for one in report["applied"]} == {"left-out"}
    notes.assert_settled()
    assert notes.found("draft") == []
    (notes.folder / ".gitignore").unlink()
    drift = notes.drift()
    assert (set(drift), len(drift["untracked"])) == ({"untracked"}, 61)
    assert notes.sync(code=1)["embedded"] == 0
    assert len(notes.found("words draft")) > 1


def test_a_repair_forgets_what_rules_leave_out(notes: Notes) -> None:
    """The plan's step is applied as a sync would."""
    notes.write("a.md", "# Kept\n\nWords that stay.\n")
    notes.write("b.md", "# Gone\n\nWords that go.\n")
    notes.sync()
    notes.write(".gitignore", "b.md\n")
    notes("repair", "--yes")
    notes.assert_settled()


def test_a_catalog_made_again_misses_nothing_that_rules_leave_out(notes: Notes) -> None:
    """What a damaged catalog knew and rules leave out now did not get lost."""
    notes.write("a.md", "# Kept\n\nWords that stay.\n")
    notes.write("b.md", "# Gone\n\nWords that go.\n")
    notes.sync()
    notes.write(".gitignore", "b.md\n")
    path = notes.sidecar / "catalog.sqlite"
    path.write_bytes(path.read_bytes()[:-4096])
    notes.sync("--full", code=None)
    notes.assert_settled()


def test_one_of_some_texts_may_go(notes: Notes) -> None:
    """A folder without Markdown is not an empty one."""
    for name in ("a.txt", "b.txt", "c.txt"):
        notes.write(name, f"Words of {name}.\n")
    notes.sync()
    (notes.folder / "a.txt").unlink()
    assert notes.drift() == {"missing": ["a.txt"]}
    notes.sync()
    notes.assert_settled()


def planted(notes: Notes, old: str, new: str) -> None:
    """Change what is kept of every document, as if it had been extracted so."""
    from msgspec.structs import replace

    from filestore.chunks import kept

    connection = sqlite3.connect(notes.sidecar / "documents.sqlite")
    with connection:
        for key, data in connection.execute("SELECT key, data FROM documents").fetchall():
            made = kept.decode(data)
            changed = replace(made, text=made.text.replace(old, new))
            written = kept.encode(changed, kept.file_hash_of(data))
            connection.execute("UPDATE documents SET data = ? WHERE key = ?", (written, key))
    connection.close()


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_a_lost_catalog_extracts_nothing_again(notes: Notes, harm: str) -> None:
    """What was extracted is taken from where it is kept, down to a word that stands there alone."""
    notes.write("page.html", "<h1>Copper</h1><p>Copper is for wires.</p>")
    notes.sync()
    planted(notes, "wires", "pipes")
    path = notes.sidecar / "catalog.sqlite"
    if harm == "gone":
        path.unlink()
    else:
        damaged_page(path)
    notes.sync(code=None)
    assert notes.found("pipes") == ["page.html"]
    (notes.sidecar / "documents.sqlite").unlink()
    path.unlink()
    notes.sync()
    assert notes.found("wires") == ["page.html"]


def test_a_kept_document_of_another_file(notes: Notes) -> None:
    """What is kept of a document is used only for the file that it says it was made from."""
    notes.write("a.md", "# A\n\nWords of the note.\n")
    notes.sync()
    path = notes.sidecar / "documents.sqlite"
    data = path.read_bytes()
    at = data.index(b"\xff\x00filestore document 1\n") + len(b"\xff\x00filestore document 1\n")
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    (notes.sidecar / "catalog.sqlite").unlink()
    notes.sync()
    notes.assert_settled()


def test_a_repair_tells_of_a_document_that_is_none(notes: Notes) -> None:
    """What could not be indexed is said with its reason, and remains as `status` has it then."""
    notes.write("a.md", bytes(range(256)))
    assert notes.drift() == {"untracked": ["a.md"]}
    report = notes.json("repair", "--yes", code=1)
    assert [one["code"] for one in report["remaining"]] == ["bad-encoding"]
    assert "not text" in report["skipped"][0]["reason"]
    assert notes.drift() == {"bad-encoding": ["a.md"]}
    notes.write("a.md", bytes(range(255)))
    (found,) = notes.json("verify", code=1)["findings"]
    assert (found["code"], "sound" in found["detail"]) == ("modified", False)


@pytest.mark.parametrize("harm", ["gone", "cut", "other", "folder"])
def test_git_never_sees_the_sidecar(notes: Notes, harm: str) -> None:
    """Whatever becomes of the file that hides it, the next writer puts that right."""
    path = notes.sidecar / ".gitignore"
    path.unlink()
    if harm == "folder":
        path.mkdir()
    elif harm != "gone":
        path.write_bytes(b"" if harm == "cut" else b"*.tmp\n")
    assert ".filestore/" in notes.git("status", "--short")
    notes.write("a.md", "Words.\n")
    notes.sync()
    assert ".filestore/" not in notes.git("status", "--short")


def test_a_damaged_vector_names_its_section(notes: Notes) -> None:
    """A document has sections, where a chunk file has questions."""
    notes.write("a.md", "# A\n\n" + prose("amber") + "\n# B\n\n" + prose("basalt"))
    notes.sync()
    ((key,),) = notes.in_catalog(
        "SELECT key FROM parts JOIN vectors ON vector = vectors.id WHERE part = 1"
    )
    connection = sqlite3.connect(notes.sidecar / "embeddings.sqlite", isolation_level=None)
    connection.execute("UPDATE vectors SET checksum = x'00' WHERE key = ?", (key,))
    connection.close()
    done = notes.json("verify", "--level", "full", code=1)
    (detail,) = [one["detail"] for one in done["findings"] if one["code"] == "embeddings-damaged"]
    assert detail.startswith("passage 2: ")
