"""`filestore sync`: the index follows the files, at the least cost, and never writes a file."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.chunks import chunk_file
from filestore.fs import disk
from filestore.fulltext import Writer

WORDS = ("amber", "basalt", "copper", "diorite", "emerald", "flint")


def fill(workspace: Any, number: int = 6) -> list[Path]:
    """A store of one-chunk documents with a word each; the paths of their chunk files."""
    names = [f"{WORDS[index % 6]}{index // 6 or ''}.md" for index in range(number)]
    for name in names:
        workspace.write(f"notes/{name}", f"# {name[:-3]}\n\nAll about {name[:-3]} here.\n")
    workspace("add", "notes", "--each")
    return [workspace.chunked / workspace.chunks(name)[0] for name in names]


def codes(findings: list[dict[str, Any]]) -> list[str]:
    return sorted(finding["code"] for finding in findings)


def damage(path: Path, *, at: float = 0.5) -> None:
    """Flip a bit of a file without changing its size."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x40
    path.write_bytes(data)


def test_keys_and_code(either: Any) -> None:
    """The report says what was applied, what remains, and what it cost."""
    path = fill(either)[0]
    path.write_bytes(path.read_bytes() + b"More words.\n")
    report = either.json("sync")
    assert codes(report["applied"]) == ["modified"]
    assert report["remaining"] == []
    assert report["embedded"] == 1
    assert report["reused"] == 0
    assert "nothing to do" in either("sync").stdout
    path.write_bytes(b"---\n[\n---\nWords.\n")
    done = either("sync", code=1)
    assert "left for you" in done.stdout
    assert "malformed-frontmatter" in done.stdout


def test_modified(either: Any) -> None:
    """A changed text is found by its new words and no longer by its old ones."""
    path = fill(either)[0]
    path.write_bytes(path.read_bytes().replace(b"All about amber", b"Nothing but resin"))
    report = either.sync()
    assert report["embedded"] == 1
    assert either.found("resin") == [path.relative_to(either.chunked).as_posix()]
    assert either.found('"all about amber"') == []
    either.assert_settled()


def test_modified_back_costs_nothing(either: Any) -> None:
    """A text that was embedded once is never embedded again, as after a change of branch."""
    path = fill(either)[0]
    first = path.read_bytes()
    path.write_bytes(first + b"More words.\n")
    assert either.sync()["embedded"] == 1
    path.write_bytes(first)
    report = either.sync()
    assert (report["embedded"], report["reused"]) == (0, 1)
    either.assert_settled()


def test_questions_are_embedded_and_found(either: Any) -> None:
    """Each question leads to its file, and only a new one is embedded."""
    path = fill(either)[0]
    asked = ["Which resin is fossil?", "What floats in brine?"]
    path.write_bytes(chunk_file.update(path.read_bytes(), questions=asked))
    assert either.sync()["embedded"] == 2
    hits = either.json("search", "what floats in brine", "--mode", "vector")["hits"]
    assert either.store / hits[0]["path"] == path
    path.write_bytes(chunk_file.update(path.read_bytes(), questions=[*asked, "And where?"]))
    assert either.sync()["embedded"] == 1
    either.assert_settled()


def test_metadata_modified(either: Any) -> None:
    """A key of the user is a filter after sync, and costs no embedding."""
    path = fill(either)[0]
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\nmood: good\n", 1))
    report = either.sync()
    assert codes(report["applied"]) == ["metadata-modified"]
    assert (report["embedded"], report["reused"]) == (0, 0)
    assert either.found("all", "--where", "mood=good") == [
        path.relative_to(either.chunked).as_posix()
    ]
    either.assert_settled()


def test_untracked(either: Any) -> None:
    """A file that a person wrote without any frontmatter is indexed as it is."""
    fill(either)
    folder = either.chunked / "mine" / "deep"
    folder.mkdir(parents=True)
    (folder / "thought.md").write_text("A thought about gneiss.\n")
    report = either.sync()
    assert codes(report["applied"]) == ["untracked"]
    assert report["embedded"] == 1
    assert either.found("gneiss") == ["mine/deep/thought.md"]
    either.assert_settled()


def test_missing(either: Any) -> None:
    """A file that is gone leaves answers and vectors; back again it costs nothing."""
    path = fill(either)[0]
    data = path.read_bytes()
    path.unlink()
    assert codes(either.sync()["applied"]) == ["missing"]
    assert either.found("amber") == []
    either.assert_settled()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    report = either.sync()
    assert (report["embedded"], report["reused"]) == (0, 1)
    assert len(either.found("amber")) == 1
    either.assert_settled()


def test_what_was_forgotten_can_come_back(workspace: Any) -> None:
    """After a file was forgotten it is said how it comes back, and that does."""
    workspace.write("note.md", "# Note\n\nSome words.\n")
    workspace.write("kept.md", "# Kept\n\nOther words.\n")
    workspace("add", "note.md", "kept.md")
    (chunk,) = workspace.chunks("note.md")
    data = (workspace.chunked / chunk).read_bytes()
    (workspace.chunked / chunk).unlink()
    said = workspace("sync", code=None).stdout
    assert "filestore repair --path PATH --write-files" in said
    workspace("repair", "--path", f"chunked/{chunk}", "--write-files", "--yes")
    assert (workspace.chunked / chunk).read_bytes() == data
    assert "repair --path" not in workspace("sync").stdout


def test_who_is_waited_for_is_told(workspace: Any) -> None:
    """A sync that has to wait says for whom, once, on standard error."""
    script = (
        "import sys\n"
        "from filestore.fs.lock import writer_lock\n"
        "with writer_lock(sys.argv[1], command='filestore add'):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(workspace.sidecar / "lock")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert holder.stdin is not None
        threading.Timer(1.5, holder.stdin.close).start()
        done = workspace("sync")
        assert done.stderr.count("waiting for 'filestore add', process") == 1
        assert str(holder.pid) in done.stderr


def test_moved(either: Any) -> None:
    """A renamed file is followed: nothing embedded, no vector written, found at its new place."""
    path = fill(either)[0]
    target = either.chunked / "elsewhere" / "renamed file.md"
    target.parent.mkdir()
    path.rename(target)
    vectors = {file.name: file.read_bytes() for file in either.sidecar.glob("vectors-*.faiss")}
    report = either.sync()
    assert codes(report["applied"])[0] == "moved"
    assert (report["embedded"], report["reused"]) == (0, 0)
    assert vectors == {
        file.name: file.read_bytes() for file in either.sidecar.glob("vectors-*.faiss")
    }
    assert either.found("amber") == ["elsewhere/renamed file.md"]
    either.assert_settled()


def test_renamed_folder(workspace: Any) -> None:
    """A renamed resource is followed whole, with its record."""
    fill(workspace)
    workspace.write("notes/long.md", "# Long\n\n" + "Many words of granite. " * 300)
    workspace("add", "notes/long.md")
    (workspace.chunked / "long.md").rename(workspace.chunked / "renamed")
    report = workspace.sync()
    assert set(codes(report["applied"])) == {"moved"}
    assert report["embedded"] == 0
    listed = {item["resource"]: item["source"] for item in workspace.json("ls")["items"]}
    assert listed["renamed"] == "../notes/long.md"
    assert "long.md" not in listed
    workspace.assert_settled()


def test_a_hundred_renames(either: Any) -> None:
    """A hundred renamed files cost no embedding and no row of the index."""
    for number in range(110):
        (either.chunked / f"n{number:03}.md").write_text(f"Words about number{number:03}.\n")
    assert either.sync()["embedded"] == 110
    vectors = {path.name: path.read_bytes() for path in either.sidecar.glob("vectors-*.faiss")}
    for number in range(100):
        (either.chunked / f"n{number:03}.md").rename(either.chunked / f"r{number:03}.md")
    report = either.sync()
    assert codes(report["applied"]) == ["moved"] * 100
    assert report["embedded"] == 0
    assert vectors == {
        path.name: path.read_bytes() for path in either.sidecar.glob("vectors-*.faiss")
    }
    assert either.found("number042") == ["r042.md"]
    either.assert_settled()


def test_swapped_and_chained_names(either: Any) -> None:
    """Files that took each other's names are indexed under their new ones, for nothing."""
    first, second, third = fill(either)[:3]
    a, b, c = first.read_bytes(), second.read_bytes(), third.read_bytes()
    first.write_bytes(c)
    second.write_bytes(a)
    third.write_bytes(b)
    assert either.sync()["embedded"] == 0
    # More than a name is asked: else what has the name comes first.
    assert either.chunked / either.found("about amber")[0] == second
    assert either.chunked / either.found("about basalt")[0] == third
    either.assert_settled()


def test_copies(either: Any) -> None:
    """A copied file shares the vector of its original; both are found, as one hit."""
    path = fill(either)[0]
    shutil.copy(path, either.chunked / "copy.md")
    report = either.sync()
    assert (report["embedded"], report["reused"]) == (0, 1)
    (hit,) = either.json("search", "amber", "--mode", "keyword")["hits"]
    assert {hit["path"], *hit["copies"]} == {
        f"chunked/{path.relative_to(either.chunked)}",
        "chunked/copy.md",
    }
    either.assert_settled()


def many(workspace: Any, number: int = 70) -> None:
    for index in range(number):
        (workspace.chunked / f"n{index:02}.md").write_text(f"Words about number{index:02}.\n")
    workspace.sync()


def test_mass_missing(either: Any) -> None:
    """A mass of missing files is refused with 4, while everything else is done."""
    many(either)
    for index in range(60):
        (either.chunked / f"n{index:02}.md").unlink()
    (either.chunked / "new.md").write_text("New words of gneiss.\n")
    (either.chunked / "n65.md").write_text("Edited words of schist.\n")
    report = either.sync(code=4)
    assert codes(report["applied"]) == ["modified", "untracked"]
    assert codes(report["remaining"]) == ["mass-missing"]
    assert either.found("gneiss") == ["new.md"]
    assert either.found("schist") == ["n65.md"]
    hits = either.json("search", "number03", "--mode", "keyword", code=1)["hits"]
    assert [hit["freshness"] for hit in hits] == ["gone"]
    assert "--forget-missing" in either("sync", code=4).stdout
    report = either.sync("--forget-missing")
    assert codes(report["applied"]) == ["missing"] * 60
    assert either.found("number03") == []
    either.assert_settled()


def test_mass_missing_comes_back(either: Any) -> None:
    """Files that return after the refusal are as they were, for nothing."""
    many(either)
    shutil.move(either.chunked, either.folder / "away")
    either.chunked.mkdir()
    assert codes(either.sync(code=4)["remaining"]) == ["mass-missing"]
    either.chunked.rmdir()
    assert either.json("sync", code=4)["applied"] == []
    shutil.move(either.folder / "away", either.chunked)
    assert either.sync()["embedded"] == 0
    assert either.found("number03") == ["n03.md"]
    either.assert_settled()


def test_the_last_file_of_a_small_store(either: Any) -> None:
    """An emptied tree is never taken for meant, however small it was."""
    (either.chunked / "only.md").write_text("The only words.\n")
    either.sync()
    (either.chunked / "only.md").unlink()
    assert codes(either.sync(code=4)["remaining"]) == ["mass-missing"]
    either.sync("--forget-missing")
    either.assert_settled()


def test_what_git_deleted_is_not_counted(either: Any) -> None:
    """Files that were deleted in a commit are forgotten without a word more."""
    many(either)
    either.git("add", "--all")
    either.git("commit", "-qm", "all")
    either.git("rm", "-q", *[f"file_index/chunked/n{index:02}.md" for index in range(60)])
    assert codes(either.sync(code=4)["remaining"]) == ["mass-missing"]
    either.git("commit", "-qm", "fewer")
    assert codes(either.sync()["applied"]) == ["missing"] * 60
    either.assert_settled()


def test_checkout_of_another_branch_and_back(either: Any) -> None:
    """What git checks out is followed; the way back costs nothing."""
    many(either, 10)
    either.git("add", "--all")
    either.git("commit", "-qm", "one")
    either.git("checkout", "-qb", "other")
    (either.chunked / "n01.md").write_text("Other words of schist.\n")
    (either.chunked / "n02.md").unlink()
    either.git("mv", "file_index/chunked/n03.md", "file_index/chunked/r03.md")
    either.git("add", "--all")
    either.git("commit", "-qm", "two")
    either.sync()
    either.assert_settled()
    either.git("checkout", "-q", "-")
    report = either.sync()
    assert set(codes(report["applied"])) == {"modified", "untracked", "moved"}
    assert report["embedded"] == 0
    assert either.found("schist") == []
    either.assert_settled()


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (b"---\nheadings: [open\n---\nAll about amber here.\n", "malformed-frontmatter"),
        (b"---\nheadings: 5\n---\nAll about amber here.\n", "invalid-metadata"),
        (b"All about amber, caf\xe9.\n", "bad-encoding"),
        (b"---\nmood: none\n---\n \n", "empty"),
    ],
)
def test_withheld_until_mended(either: Any, broken: bytes, code: str) -> None:
    """A broken file leaves answers, is never rewritten, and is back once it is mended."""
    path = fill(either)[0]
    good = path.read_bytes()
    path.write_bytes(broken)
    report = either.sync(code=1)
    assert codes(report["remaining"]) == [code]
    assert either.found("amber") == []
    for mode in ("vector", "hybrid"):
        hits = either.json("search", "amber", "--mode", mode, code=None)["hits"]
        assert all(either.store / hit["path"] != path for hit in hits)
    again = either.sync(code=1)
    assert again["applied"] == []
    assert codes(again["remaining"]) == [code]
    findings = either.json("verify", "--level", "full", code=1)["findings"]
    assert codes(findings) == [code]
    path.write_bytes(good)
    report = either.sync()
    assert report["embedded"] == 0
    assert either.chunked / either.found("amber")[0] == path
    either.assert_settled()


def test_a_renamed_withheld_file(either: Any) -> None:
    """A broken file with a new name is still left for the user, and the code says so."""
    fill(either)
    (either.chunked / "broken.md").write_bytes(b"caf\xe9\n")
    either.sync(code=1)
    (either.chunked / "broken.md").rename(either.chunked / "renamed.md")
    report = either.sync(code=1)
    assert [found["path"] for found in report["remaining"]] == ["chunked/renamed.md"]


def test_conflict_markers(either: Any) -> None:
    """An unresolved merge in a generated body is withheld; a text about merges is not."""
    path = fill(either)[0]
    good = path.read_bytes()
    conflict = b"<<<<<<< ours\nAll about amber.\n=======\nNothing.\n>>>>>>> theirs\n"
    path.write_bytes(good + conflict)
    (either.chunked / "about git.md").write_bytes(b"They look so:\n\n```\n" + conflict + b"```\n")
    report = either.sync(code=1)
    assert codes(report["applied"]) == ["untracked"]
    assert codes(report["remaining"]) == ["conflict-markers"]
    path.write_bytes(good)
    either.sync()
    either.assert_settled()


def test_a_broken_record(workspace: Any) -> None:
    """A record that cannot be used is named and left; its chunks stay in answers."""
    fill(workspace)
    record = workspace.chunked / "amber.md" / "meta.json"
    good = record.read_bytes()
    record.write_bytes(b"{ not json")
    assert codes(workspace.sync(code=1)["remaining"]) == ["record-invalid"]
    assert workspace.found("amber") == ["amber.md/chunk1.md"]
    record.write_bytes(good)
    workspace.sync()
    workspace.assert_settled()


def test_without_embedding(either: Any) -> None:
    """With --no-embed new texts wait, are found by word, and the next sync embeds only them."""
    fill(either)
    (either.chunked / "new.md").write_text("New words of gneiss.\n")
    report = either.sync("--no-embed")
    assert report["embedded"] == 0
    assert codes(report["remaining"]) == ["vector-pending"]
    assert either.found("gneiss") == ["new.md"]
    assert either.drift() == {"vector-pending": [".sidecar/embeddings.sqlite"]}
    assert "vectors: 6 of 7" in either("status").stdout
    report = either.sync()
    assert report["embedded"] == 1
    hits = either.json("search", "gneiss", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/new.md"
    either.assert_settled()


# Damage to what is derived: the files are as they were, and no text is paid for twice.


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garbage(path: Path) -> None:
    path.write_bytes(b"This is no database.\n" * 500)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (remove, "catalog-missing"),
        (garbage, "catalog-damaged"),
        (truncate, "catalog-damaged"),
        (lambda path: damage(path, at=0.0), "catalog-damaged"),
    ],
    ids=["missing", "garbage", "truncated", "header"],
)
def test_catalog(either: Any, harm: Callable[[Path], None], code: str) -> None:
    """A catalog that is gone or damaged is made again from the files, with nothing embedded."""
    fill(either)
    catalog = either.sidecar / "catalog.sqlite"
    harm(catalog)
    assert list(either.drift()) == [code]
    report = either.sync()
    assert code in codes(report["applied"])
    assert report["embedded"] == 0
    assert len(set(either.found("amber"))) == 1
    assert len(either.json("ls")["items"]) == 6
    either.assert_settled()
    if code == "catalog-damaged":
        assert "1-catalog.sqlite" in os.listdir(either.sidecar / "quarantine")


def test_an_emptied_catalog(either: Any) -> None:
    """A catalog of no bytes is filled again, with nothing embedded."""
    fill(either)
    empty(either.sidecar / "catalog.sqlite")
    assert either("search", "amber", code=None).code in (1, 3)
    assert either.sync()["embedded"] == 0
    assert len(set(either.found("amber"))) == 1
    either.assert_settled()


def test_answers_after_a_rebuilt_catalog(either: Any) -> None:
    """The full-text index of a lost catalog gives no hit twice, and none for a text that went."""
    path = fill(either)[0]
    remove(either.sidecar / "catalog.sqlite")
    path.write_bytes(path.read_bytes().replace(b"All about amber", b"Nothing but resin"))
    either.sync()
    assert len(either.found("basalt")) == 1
    assert len(either.found("resin")) == 1
    assert either.found('"all about amber"') == []


def test_whole_sidecar(either: Any) -> None:
    """Without its sidecar a store is rebuilt from its files alone."""
    fill(either)
    before = either.json("search", "amber basalt", "--mode", "hybrid")["hits"]
    remove(either.sidecar)
    report = either.sync()
    assert report["embedded"] == 6
    assert either.json("search", "amber basalt", "--mode", "hybrid")["hits"] == before
    either.assert_settled()


def index_file(workspace: Any) -> Path:
    """The newest of the FAISS files."""
    found: list[Path] = list(workspace.sidecar.glob("vectors-*.faiss"))
    return max(found, key=lambda path: int(path.stem.partition("-")[2]))


@pytest.mark.parametrize(
    ("harm", "code"),
    [(remove, "index-missing"), (truncate, "index-damaged"), (empty, "index-damaged")],
)
def test_index(either: Any, harm: Callable[[Path], None], code: str) -> None:
    """A FAISS file that is gone or cut is one finding, and written again from the embeddings."""
    fill(either)
    path = index_file(either)
    whole = path.read_bytes()
    harm(path)
    assert list(either.drift()) == [code]
    hits = either.json("search", "amber", "--mode", "vector")["hits"]
    assert hits[0]["resource"] == "amber.md"
    report = either.sync()
    assert codes(report["applied"]) == [code]
    assert report["embedded"] == 0
    assert index_file(either).read_bytes() == whole
    either.assert_settled()


@pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.9, 0.9999])
def test_index_with_a_flipped_bit(either: Any, at: float) -> None:
    """A flipped bit is not seen by stat; verify finds it, no search uses it, sync mends it."""
    fill(either)
    damage(index_file(either), at=at)
    assert either.drift() == {}
    findings = either.json("verify", "--level", "full", code=1)["findings"]
    assert set(codes(findings)) == {"index-damaged"}
    hits = either.json("search", "amber", "--mode", "vector")["hits"]
    assert hits[0]["resource"] == "amber.md"
    report = either.sync()
    assert codes(report["applied"]) == ["index-damaged"]
    assert report["embedded"] == 0
    either.assert_settled()


def test_index_lost_with_the_last_file(either: Any) -> None:
    """A store that has no vectors any more needs no FAISS file."""
    (either.chunked / "only.md").write_text("The only words.\n")
    either.sync()
    remove(index_file(either))
    (either.chunked / "only.md").unlink()
    either.sync("--forget-missing")
    either.assert_settled()


def test_index_behind(either: Any) -> None:
    """Few changes are replayed beside the FAISS file, many make a new one due."""
    fill(either)
    first = index_file(either).name
    (either.chunked / "one.md").write_text("One more about gneiss.\n")
    either.sync()
    assert index_file(either).name == first
    hits = either.json("search", "gneiss", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/one.md"
    either.assert_settled()
    for number in range(120):
        (either.chunked / f"n{number}.md").write_text(f"Words about number{number}.\n")
    either.sync()
    assert index_file(either).name != first
    assert len(list(either.sidecar.glob("vectors-*.faiss"))) <= 2
    either.assert_settled()


def test_old_index_file_put_back(either: Any) -> None:
    """A FAISS file of another generation under the right name is known by its hash."""
    fill(either)
    old = index_file(either).read_bytes()
    for number in range(120):
        (either.chunked / f"n{number}.md").write_text(f"Words about number{number}.\n")
    either.sync()
    index_file(either).write_bytes(old)
    assert list(either.drift()) == ["index-damaged"]
    assert either.sync()["embedded"] == 0
    either.assert_settled()


def fulltext(workspace: Any) -> Path:
    found: Path = workspace.sidecar / "fulltext"
    return found


def harm_stamp(folder: Path) -> None:
    (folder / "stamp.json").write_bytes(b"{}")


def harm_part(folder: Path) -> None:
    remove(sorted(folder.rglob("*.store"))[0])


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (remove, "fulltext-missing"),
        (harm_stamp, "fulltext-damaged"),
        (harm_part, "fulltext-damaged"),
        (lambda folder: truncate(sorted(folder.rglob("*.idx"))[0]), "fulltext-damaged"),
    ],
    ids=["folder", "stamp", "part", "cut"],
)
def test_fulltext(either: Any, harm: Callable[[Path], None], code: str) -> None:
    """A full-text index that is gone or damaged is said with the answer, and built again."""
    fill(either)
    harm(fulltext(either))
    assert list(either.drift()) == [code]
    done = either("search", "amber", code=None)
    assert "filestore sync" in done.stderr
    report = either.sync()
    assert codes(report["applied"]) == [code]
    assert report["embedded"] == 0
    assert len(either.found("amber")) == 1
    either.assert_settled()


@pytest.mark.parametrize("kind", [".idx", ".term", ".store", ".pos", ".fast"])
def test_fulltext_with_a_flipped_bit(either: Any, kind: str) -> None:
    """Any file of the index with a flipped bit is found by verify and mended by sync."""
    fill(either)
    for path in fulltext(either).rglob(f"*{kind}"):
        damage(path)
    findings = either.json("verify", "--level", "full", code=1)["findings"]
    assert set(codes(findings)) == {"fulltext-damaged"}
    report = either.sync()
    assert codes(report["applied"]) == ["fulltext-damaged"]
    assert len(either.found("amber")) == 1
    either.assert_settled()


def test_edit_beside_a_flipped_bit(either: Any) -> None:
    """A damaged full-text index stops neither a sync nor an add: it is built again."""
    path = fill(either)[0]
    for file in fulltext(either).rglob("*.idx"):
        damage(file)
    path.write_bytes(path.read_bytes() + b"More words.\n")
    report = either.sync()
    assert codes(report["applied"]) == ["fulltext-damaged", "modified"]
    either.assert_settled()


def test_fulltext_behind(either: Any) -> None:
    """An index from an older generation is replayed up to the catalog's."""
    paths = fill(either)
    older = either.folder / "older"
    shutil.copytree(fulltext(either), older)
    paths[0].write_bytes(paths[0].read_bytes().replace(b"All about amber", b"Now about resin"))
    paths[1].unlink()
    (either.chunked / "new.md").write_text("New words of gneiss.\n")
    either.sync()
    shutil.rmtree(fulltext(either))
    shutil.copytree(older, fulltext(either))
    assert list(either.drift()) == ["fulltext-behind"]
    report = either.sync()
    assert codes(report["applied"]) == ["fulltext-behind"]
    assert report["embedded"] == 0
    assert either.found("gneiss") == ["new.md"]
    assert len(either.found("resin")) == 1
    assert either.found("basalt") == []
    either.assert_settled()


def test_a_large_index_that_is_behind_is_not_rebuilt(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the changes it lacks, which cost what they are and not what the store is."""
    for number in range(600):
        workspace.write(f"file_index/chunked/r/n{number}.md", f"Words of stone{number}.\n")
    workspace("sync")
    older = workspace.folder / "older"
    shutil.copytree(fulltext(workspace), older)
    workspace.write("file_index/chunked/new.md", "New words of gneiss.\n")
    workspace("sync")
    shutil.rmtree(fulltext(workspace))
    shutil.copytree(older, fulltext(workspace))
    assert list(workspace.drift()) == ["fulltext-behind"]
    rebuilt = list[bool]()
    open_writer = Writer.open

    def opening(folder: str, previous: Any = None, **named: Any) -> Any:
        rebuilt.append(previous is None)
        return open_writer(folder, previous, **named)

    monkeypatch.setattr(Writer, "open", opening)
    assert codes(workspace.sync()["applied"]) == ["fulltext-behind"]
    assert rebuilt == [False]
    assert workspace.found("gneiss") == ["new.md"]


def test_search_replays_an_index_that_is_behind(either: Any) -> None:
    """A question finds what a crash hid from the index, and leaves the rest to the next sync."""
    fill(either)
    older = either.folder / "older"
    shutil.copytree(fulltext(either), older)
    (either.chunked / "new.md").write_text("New words of gneiss.\n")
    either.sync()
    shutil.rmtree(fulltext(either))
    shutil.copytree(older, fulltext(either))
    assert either.found("gneiss") == ["new.md"]
    assert list(either.drift()) == ["fulltext-behind"]
    either.sync()
    assert either.found("gneiss") == ["new.md"]
    either.assert_settled()


def test_nobody_who_reads_takes_the_lock(either: Any) -> None:
    """While another process holds the lock every reading command answers, and writes nothing."""
    paths = fill(either)
    older = either.folder / "older"
    shutil.copytree(fulltext(either), older)
    (either.chunked / "new.md").write_text("New words of gneiss.\n")
    either.sync()
    shutil.rmtree(fulltext(either))
    shutil.copytree(older, fulltext(either))
    before = contents_below(either.sidecar)
    with (either.sidecar / "lock").open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert either.found("gneiss") == ["new.md"]
        assert sorted(either.drift()) == ["fulltext-behind", "locked"]
        either("verify", "--level", "full", code=1)
        either("show", os.path.relpath(paths[0], either.chunked))
        either("ls")
    assert contents_below(either.sidecar) == before


def contents_below(folder: Path) -> dict[str, bytes]:
    """Every file of the sidecar but what SQLite needs to read."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal", "clock"))
    }


def test_embeddings_deleted(either: Any) -> None:
    """Without its embeddings a store still answers, says so, and gets them back."""
    fill(either)
    remove(either.sidecar / "embeddings.sqlite")
    for mode in ("hybrid", "vector", "keyword"):
        hits = either.json("search", "amber", "--mode", mode)["hits"]
        assert hits[0]["resource"] == "amber.md"
    either("verify", "--level", "full", code=1)
    either.sync()
    either.assert_settled()


def test_embeddings_and_index_deleted(either: Any) -> None:
    """Where the vectors are gone in both places one sync embeds every text again."""
    fill(either)
    remove(either.sidecar / "embeddings.sqlite")
    remove(index_file(either))
    assert either.sync()["embedded"] == 6
    either.assert_settled()


def test_embeddings_and_index_come_back_in_two(either: Any) -> None:
    """Where the vectors are gone in both places, nothing lacks after two syncs."""
    fill(either)
    remove(either.sidecar / "embeddings.sqlite")
    remove(index_file(either))
    first = either.json("sync", code=None)["embedded"]
    assert first + either.sync()["embedded"] == 6
    hits = either.json("search", "amber", "--mode", "vector")["hits"]
    assert hits[0]["resource"] == "amber.md"
    either.assert_settled()


@pytest.mark.parametrize(
    "harm",
    [garbage, truncate, lambda path: damage(path, at=0.0)],
    ids=["garbage", "truncated", "header"],
)
def test_embeddings_damaged(either: Any, harm: Callable[[Path], None]) -> None:
    """A damaged file of embeddings is put aside, every answer stays, and it is said."""
    fill(either)
    harm(either.sidecar / "embeddings.sqlite")
    either("search", "amber", "--mode", "hybrid")
    assert codes(either.sync(code=None)["applied"]).count("embeddings-damaged") == 1
    assert "1-embeddings.sqlite" in os.listdir(either.sidecar / "quarantine")
    hits = either.json("search", "amber", "--mode", "vector")["hits"]
    assert hits[0]["resource"] == "amber.md"
    path = either.chunked / either.chunks("amber.md")[0]
    path.write_bytes(path.read_bytes() + b"More words.\n")
    assert either.sync()["embedded"] >= 1
    assert len(either.found("more")) == 1


@pytest.mark.parametrize("harm", [garbage, truncate], ids=["garbage", "truncated"])
def test_lost_embeddings_are_made_again(either: Any, harm: Callable[[Path], None]) -> None:
    """What a damaged file of embeddings lost is embedded again by the sync that says so."""
    fill(either)
    harm(either.sidecar / "embeddings.sqlite")
    either.sync()
    either.assert_settled()


def spoil_rows(workspace: Any, number: int) -> None:
    """Overwrite some vectors as a failing disk would, behind SQLite's back."""
    connection = sqlite3.connect(workspace.sidecar / "embeddings.sqlite")
    with connection:
        connection.execute(
            "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key IN "
            "(SELECT key FROM vectors ORDER BY key LIMIT ?)",
            (number,),
        )
    connection.close()


def test_damaged_embedding_rows(either: Any) -> None:
    """Rows whose checksum does not hold are embedded again, the sound ones are not."""
    fill(either)
    spoil_rows(either, 2)
    findings = either.json("verify", "--level", "full", code=1)["findings"]
    assert "embeddings-damaged" in codes(findings)
    remove(either.sidecar / "catalog.sqlite")
    first = either.json("sync", code=None)["embedded"]
    assert first + either.sync()["embedded"] == 2
    either.assert_settled()


def test_a_copied_store(either: Any) -> None:
    """A store copied elsewhere with its sidecar works there, and nothing is embedded again."""
    fill(either)
    shutil.copytree(either.folder, either.folder.parent / "copy")
    copy = either.folder.parent / "copy" / either.store.name
    report = either.json("--store", copy, "sync")
    assert report["embedded"] == 0
    assert either.json("--store", copy, "verify", "--level", "full")["clean"] is True
    assert len(either.json("--store", copy, "search", "amber")["hits"]) > 0


def test_a_clone_has_the_same_ids(either: Any) -> None:
    """The same tree has the same vector ids on every machine."""
    paths = fill(either)
    either.git("add", "--all")
    either.git("commit", "-qm", "all")
    clone = either.folder.parent / "clone"
    either.git("clone", "-q", ".", str(clone))
    either.json("sync", cwd=clone)
    for path in paths:
        shown = path.relative_to(either.store).as_posix()
        here = either.json("show", shown)["record"]["vector_ids"]
        there = either.json("show", shown, cwd=clone / "file_index")["record"]["vector_ids"]
        assert here == there
    assert either.json("status", cwd=clone)["clean"] is True


def test_forgetting_everything_leaves_it_clean(either: Any) -> None:
    """After a sync that forgets all files there is nothing left to say."""
    fill(either)
    for path in list(either.chunked.rglob("*.*")):
        if path.is_file():
            path.unlink()
    either.json("sync", "--forget-missing")
    either.assert_settled()


def test_full_sync_mends_what_only_a_full_look_finds(either: Any) -> None:
    """Damaged rows of the embeddings are found and mended, the sound ones kept."""
    fill(either)
    spoil_rows(either, 2)
    report = either.json("sync", "--full")
    assert set(codes(report["applied"])) == {"embeddings-damaged"}
    assert report["embedded"] == 2
    either.assert_settled()


@pytest.mark.parametrize("lost", [None, "fulltext", "fulltext/stamp.json"])
def test_scores_do_not_hang_on_the_past(workspace: Any, lost: str | None) -> None:
    """What was deleted or edited leaves no trace in scores, also where the index is made again."""
    workspace.chunked.mkdir(exist_ok=True)
    for number, word in enumerate(("amber", "amber", "basalt", "copper", "amber basalt")):
        (workspace.chunked / f"{number}.md").write_text(f"Words about {word}.\n")
    workspace.sync()
    if lost is not None:
        path = workspace.sidecar / lost
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (workspace.chunked / "0.md").unlink()
    for number in (2, 3):
        (workspace.chunked / f"{number}.md").write_text("Other words, amber.\n")
    (workspace.chunked / "new.md").write_text("New words about copper.\n")
    workspace.sync()

    def scores() -> list[tuple[str, float]]:
        hits = workspace.json("search", "amber words", "--mode", "keyword")["hits"]
        return [(hit["path"], hit["score"]) for hit in hits]

    found = scores()
    assert len(found) >= 4
    shutil.rmtree(workspace.sidecar)
    workspace.sync()
    assert scores() == found


def test_a_sync_reads_the_fulltext_index_once(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are held against their stamp once, and not again to be written to."""
    (workspace.chunked / "one.md").write_text("The first of two.\n")
    workspace.sync()
    read: Counter[str] = Counter()
    hashed = disk.file_hash

    def counting(path: str) -> bytes:
        read[path] += 1
        return hashed(path)

    monkeypatch.setattr(disk, "file_hash", counting)
    (workspace.chunked / "two.md").write_text("The second of two.\n")
    workspace.sync()
    assert set(read.values()) == {1}
    assert workspace.json("verify", "--level", "full")["clean"]


def test_what_a_full_sync_finds_and_cannot_repair_is_told(workspace: Any) -> None:
    """Bit rot: only a full read sees it, and the index already has the sound text."""
    (path, *_) = fill(workspace, 2)
    sound = path.read_bytes()
    workspace.rot(path, sound.replace(b"about", b"abaut"))
    assert codes(workspace.sync()["remaining"]) == []
    report = workspace.sync("--full", code=1)
    assert codes(report["remaining"]) == ["bit-rot"]
    assert (report["applied"], report["embedded"]) == ([], 0)
    path.write_bytes(sound)
    assert codes(workspace.sync("--full")["remaining"]) == []
