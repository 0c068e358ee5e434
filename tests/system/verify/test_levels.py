"""`filestore verify` at its levels: what each finds, what each says it did not look at."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.verify import _catalog
from tests.system.search.test_freshness import without_powers
from tests.system.snapshots import snapshot
from tests.system.verify.test_every_code import (
    Scene,
    alike,
    cut_otherwise,
    faiss_file,
    in_database,
    linked,
    no_model,
    oversized,
    unportable,
)

LEVELS = ("fast", "full", "deep")


def verified(scene: Scene, level: str, *words: str) -> Any:
    return scene.workspace.json("verify", "--level", level, *words, code=None)


def codes(done: Any) -> list[str]:
    return sorted(finding["code"] for finding in done["findings"])


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00no such format\xff" * 999)


def drift(scene: Scene) -> None:
    scene.note("a.md").write_text("Other words than before.\n")
    scene.note("b.md").unlink()
    (scene.chunked / "new.md").write_text("Words of a new file.\n")
    (scene.chunked / "broken.md").write_text("---\na: [\n---\nWords.\n")


def garbage_faiss(scene: Scene) -> None:
    garbage(faiss_file(scene))


def garbage_fulltext(scene: Scene) -> None:
    for path in (scene.sidecar / "fulltext").rglob("*"):
        if path.is_file():
            garbage(path)


def garbage_catalog(scene: Scene) -> None:
    garbage(scene.sidecar / "catalog.sqlite")


def garbage_embeddings(scene: Scene) -> None:
    garbage(scene.sidecar / "embeddings.sqlite")


def no_sidecar(scene: Scene) -> None:
    shutil.rmtree(scene.sidecar)


def nothing(_: Scene) -> None:
    pass


STATES = {
    "clean": (nothing, []),
    "drifted": (drift, ["malformed-frontmatter", "missing", "modified", "untracked"]),
    "garbage FAISS": (garbage_faiss, ["index-damaged"]),
    "garbage full text": (garbage_fulltext, ["fulltext-damaged"]),
    "garbage catalog": (garbage_catalog, ["catalog-damaged"]),
    "garbage embeddings": (garbage_embeddings, ["embeddings-damaged"]),
    "no sidecar": (no_sidecar, ["catalog-missing"]),
}


@pytest.mark.parametrize("state", STATES)
def test_every_level_works_and_changes_nothing(scene: Scene, state: str) -> None:
    """In every state all levels answer, find just that, and leave every file as it was."""
    bring_about, expected = STATES[state]
    bring_about(scene)
    before = snapshot(scene.folder)
    for level in LEVELS:
        done = verified(scene, level)
        assert snapshot(scene.folder) == before
        assert [code for code in codes(done) if code != "hand-edited"] == expected
        assert done["clean"] is (not expected)
        assert done["checked"]
        assert done["not_checked"] or level == "deep"
    status = scene.workspace.json("status", code=None)
    assert sorted(status["drift"]) == expected
    assert snapshot(scene.folder) == before


@pytest.mark.parametrize(
    "bring_about",
    [
        drift,
        garbage_fulltext,
        garbage_embeddings,
        lambda scene: cut(scene.sidecar / "embeddings.sqlite"),
        alike,
        unportable,
        cut_otherwise,
        oversized,
        linked,
        no_model,
    ],
)
def test_status_is_as_strict_as_fast(scene: Scene, bring_about: Callable[[Scene], Any]) -> None:
    """What makes one of the two say that a store is not clean makes the other say it, too."""
    bring_about(scene)
    found = [one for one in verified(scene, "fast")["findings"] if one["severity"] != "I"]
    status = scene.workspace.json("status", code=1)
    noted = {"litter", "leftovers"}
    assert {code for code in status["drift"] if code not in noted} == {one["code"] for one in found}
    assert found


def cut(path: Path) -> None:
    """Truncate a file in the middle."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_fast_opens_the_embeddings(scene: Scene) -> None:
    """What their header and size tell is told; that no row was read is said."""
    assert "rows of the embeddings" in verified(scene, "fast")["not_checked"]
    cut(scene.sidecar / "embeddings.sqlite")
    (finding,) = verified(scene, "fast")["findings"]
    assert (finding["code"], finding["path"]) == (
        "embeddings-damaged",
        ".sidecar/embeddings.sqlite",
    )
    assert finding["detail"]
    in_database(scene.folder / "other.sqlite", "CREATE TABLE notes(text)")
    shutil.move(scene.folder / "other.sqlite", scene.sidecar / "embeddings.sqlite")
    (finding,) = verified(scene, "fast")["findings"]
    assert "another program" in finding["detail"]
    answer = scene.workspace("search", "words")
    assert finding["repair"].partition("' ")[0].strip("'") in answer.stderr


def test_an_unreadable_folder_is_one_finding(scene: Scene) -> None:
    """At every level the folder is told, and not each file in it; that they were not read is."""
    folder = scene.note().parent
    folder.chmod(0)
    scene.stack.callback(folder.chmod, 0o755)
    for level in ("fast", "full"):
        done = without_powers("verify", "--level", level, "--json", cwd=scene.folder)
        answer = json.loads(done.stdout)
        told = [(one["code"], one["path"]) for one in answer["findings"]]
        assert told == [("unreadable", scene.shown(folder))]
    assert "contents of 2 files below what is unreadable" in answer["not_checked"]


def test_an_endpoint_that_is_not_trusted(scene: Scene) -> None:
    """A model that may not be reached is not to be installed, but to be trusted."""
    scene.serve()
    scene.workspace("trust", "--revoke")
    (finding,) = verified(scene, "fast")["findings"]
    assert finding["code"] == "model-missing"
    assert "filestore trust" in finding["detail"]
    assert "filestore trust" in finding["repair"]


def test_a_log_that_a_writer_left_stays(scene: Scene) -> None:
    """Looking at a store whose writer was killed does not write its log into the database."""
    reader = sqlite3.connect(scene.sidecar / "catalog.sqlite")
    reader.execute("SELECT count(*) FROM files").fetchone()
    (scene.chunked / "new.md").write_text("Words of a new file.\n")
    scene.workspace("sync")
    killed = scene.folder / "killed"
    shutil.copytree(scene.sidecar, killed, ignore=shutil.ignore_patterns("*-shm"))
    reader.close()
    shutil.rmtree(scene.sidecar)
    shutil.move(killed, scene.sidecar)
    scene.sidecar.chmod(0o700)
    log = scene.sidecar / "catalog.sqlite-wal"
    assert log.stat().st_size
    before, logged = snapshot(scene.folder), log.read_bytes()
    for level in LEVELS:
        assert verified(scene, level)["clean"] is True
        assert snapshot(scene.folder) == before
        assert log.read_bytes() == logged


def test_read_only(scene: Scene) -> None:
    """A store that nobody may write to is verified at every level all the same."""
    if os.geteuid() == 0:
        mounted = subprocess.run(
            ["mount", "--bind", "-o", "ro", scene.store, scene.store], capture_output=True
        )
        if mounted.returncode:
            pytest.skip("root may write everywhere, and nothing can be mounted here")
        scene.stack.callback(subprocess.run, ["umount", "-l", scene.store], check=True)
    else:
        for path in [scene.store, *scene.store.rglob("*")]:
            path.chmod(path.stat().st_mode & ~0o222)
            scene.stack.callback(path.chmod, path.stat().st_mode | 0o200)
    before = snapshot(scene.store)
    for level in LEVELS:
        done = verified(scene, level)
        assert (done["clean"], codes(done)) == (True, [])
    assert snapshot(scene.store) == before


def test_what_was_not_checked_is_said(scene: Scene) -> None:
    """Each level names what it leaves to the next."""
    assert "contents of files with unchanged stats" in verified(scene, "fast")["not_checked"]
    full = verified(scene, "full")
    assert {"contents of all files", "every stored embedding"} <= set(full["checked"])
    assert full["not_checked"] == ["whether the model still gives the same vectors"]
    deep = verified(scene, "deep")
    assert "the embeddings of 3 passages against the model" in deep["checked"]
    assert "whether passages are found by their own vectors: 3" in deep["checked"]
    assert "the words of 3 of 3 files in the full-text index" in deep["checked"]
    assert deep["not_checked"] == []


@pytest.mark.parametrize(
    ("bring_about", "words"),
    [
        (garbage_faiss, "FAISS rows"),
        (garbage_fulltext, "full-text entries"),
        (garbage_embeddings, "vectors"),
        (lambda scene: scene.set_embedder("onnx:nobody/has-this"), "the model"),
        (garbage_catalog, "what changed or came"),
    ],
)
def test_what_stopped_a_check_is_said(
    scene: Scene, bring_about: Callable[[Scene], None], words: str
) -> None:
    """What could not be compared stands among what was not checked."""
    bring_about(scene)
    assert any(said.startswith(words) for said in verified(scene, "deep")["not_checked"])


@pytest.mark.parametrize("damage", [garbage_catalog, no_sidecar])
def test_files_are_judged_without_a_catalog(scene: Scene, damage: Callable[[Scene], None]) -> None:
    """Beside the missing catalog stands what is wrong with files, and nothing is untracked."""
    (scene.chunked / "broken.md").write_text("---\na: [\n---\nWords.\n")
    (scene.chunked / "empty.md").write_text("")
    (scene.chunked / "link.md").symlink_to("nowhere")
    (scene.chunked / "latin.md").write_bytes(b"caf\xe9\n")
    (scene.chunked / "merged.md").write_text(
        f'---\norigin: "sha256:{"0" * 64}"\n---\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n'
    )
    (scene.chunked / "a.md" / "meta.json").write_text("{")
    damage(scene)
    whole = set(codes(verified(scene, "full")))
    judged = {
        "bad-encoding",
        "conflict-markers",
        "empty",
        "malformed-frontmatter",
        "record-invalid",
        "symlink",
    }
    assert whole - judged <= {"catalog-damaged", "catalog-missing"}
    assert judged <= whole
    fast = verified(scene, "fast")
    assert set(codes(fast)) - {"catalog-damaged", "catalog-missing"} == {"symlink"}
    assert "contents of files" in fast["not_checked"]


def test_a_cause_hides_its_consequences(scene: Scene) -> None:
    """A deleted part is one finding, whatever hangs on it."""
    faiss_file(scene).unlink()
    assert codes(verified(scene, "deep")) == ["index-missing"]
    scene.workspace("sync")
    (scene.sidecar / "embeddings.sqlite").unlink()
    for level in LEVELS:
        done = verified(scene, level)
        assert codes(done) == ["embeddings-damaged"]
        assert done["findings"][0]["detail"] == "the file is gone"
    scene.workspace("sync")
    scene.workspace.assert_settled()


def test_newer_formats(scene: Scene) -> None:
    """What a newer version wrote is a finding, and nothing of the store is looked at."""
    in_database(scene.sidecar / "catalog.sqlite", "PRAGMA user_version = 99")
    for level in LEVELS:
        done = verified(scene, level)
        assert codes(done) == ["format-newer"]
        assert done["findings"][0]["path"] == ".sidecar/catalog.sqlite"
        assert (done["clean"], done["checked"]) == (False, [])
        assert done["not_checked"] == ["everything: it was not opened"]
    assert "99" in scene.workspace("status", code=3).stderr
    assert "99" in scene.workspace("search", "words", code=3).stderr


def test_embeddings_of_a_newer_format(scene: Scene) -> None:
    """Newer embeddings are told like every other newer part."""
    in_database(scene.sidecar / "embeddings.sqlite", "PRAGMA user_version = 99")
    (finding,) = verified(scene, "full")["findings"]
    assert (finding["code"], finding["path"]) == ("format-newer", ".sidecar/embeddings.sqlite")


def test_an_outdated_catalog(scene: Scene) -> None:
    """The catalog of an older version is as good as none, and its message says why."""
    in_database(scene.sidecar / "catalog.sqlite", "PRAGMA user_version = 1")
    (finding,) = verified(scene, "full")["findings"]
    assert finding["code"] == "catalog-missing"
    assert "schema 1" in finding["detail"]
    assert scene.workspace.sync()["embedded"] == 0
    scene.workspace.assert_settled()


def test_refusals_of_other_commands(scene: Scene) -> None:
    """What verify prints as a finding stops every other command as before."""
    scene.sidecar.chmod(0o777)
    assert codes(verified(scene, "fast")) == ["unsafe-sidecar"]
    words = scene.workspace("verify", code=1).stdout
    assert "everyone may write to it" in " ".join(words.split())
    assert "checked: nothing" in words
    assert "filestore repair" not in words
    scene.workspace("search", "words", code=4)
    scene.workspace("sync", code=4)


# Slices


def test_slices_cover_everything_once(scene: Scene) -> None:
    """Whatever is wrong is found by exactly one of the slices, at every count of them."""
    for number in range(12):
        (scene.chunked / f"n{number}.md").write_text(f"Words of the file number {number}.\n")
    faiss_file(scene).unlink()
    scene.workspace("sync")
    paths = [f"chunked/n{number}.md" for number in range(12)]
    for path in paths:
        scene.replace_embedding(scene.store / path, lambda vector: vector[::-1])
    scene.in_catalog("UPDATE files SET checksum = x'00' WHERE CAST(path AS TEXT) GLOB 'n*.md'")
    found: list[tuple[str, str]] = []
    for number in range(1, 5):
        done = verified(scene, "full", "--sample", f"{number}/4")
        found += [(finding["code"], finding["path"]) for finding in done["findings"]]
        assert any(f"slice {number}/4" in words for words in done["not_checked"])
    assert sorted(found) == sorted(
        [("map-mismatch", path) for path in paths] + [("vector-mismatch", path) for path in paths]
    )


def test_slices_of_the_model(scene: Scene) -> None:
    """A vector that the model would not give is found by one of the deep slices, in that alone."""
    path = scene.note()
    scene.replace_embedding(path, lambda vector: vector[::-1])
    scene.workspace("sync", "--full", code=None)
    done = [verified(scene, "deep", "--sample", f"{number}/3") for number in (1, 2, 3)]
    assert sorted(map(codes, done)) == [[], [], ["vector-mismatch"]]
    said = [words for one in done for words in one["checked"] if "own vectors: " in words]
    assert sum(int(words.rpartition(" ")[2]) for words in said) == 3


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/2/3", "1 / 2"])
def test_slices_that_are_none(scene: Scene, text: str) -> None:
    """A slice that does not exist is wrong usage."""
    done = scene.workspace("verify", "--level", "full", f"--sample={text}", code=2)
    assert "N/T" in done.stderr


def test_a_slice_of_nothing(scene: Scene) -> None:
    """Level fast reads no contents, so that there is nothing to take a slice of."""
    assert "--level full" in scene.workspace("verify", "--sample", "1/2", code=2).stderr


# Deep


def test_what_the_model_would_not_give(scene: Scene) -> None:
    """A vector that is whole and indexed, but not the model's, is found by deep and embedded."""
    path = scene.note()
    scene.replace_embedding(path, lambda vector: vector[::-1])
    scene.workspace("sync", "--full", code=None)
    assert codes(verified(scene, "full")) == []
    (finding,) = verified(scene, "deep")["findings"]
    assert (finding["code"], finding["path"]) == ("vector-mismatch", scene.shown(path))
    assert "to what the model gives now, expected at least 0.995" in finding["detail"]
    report = scene.workspace.sync("--deep")
    assert report["embedded"] == 1
    assert codes(verified(scene, "deep")) == []


def test_rows_that_the_index_lacks(scene: Scene) -> None:
    """A vector that the FAISS file should have and has not is named, and written again."""
    path = scene.chunked / "new.md"
    path.write_text("Words of a new file.\n")
    scene.workspace("sync")
    scene.in_catalog("DELETE FROM index_delta")
    (finding,) = verified(scene, "full")["findings"]
    assert (finding["code"], finding["path"]) == ("vector-missing", "chunked/new.md")
    assert "not in the index" in finding["detail"]
    assert scene.workspace.sync("--full")["embedded"] == 0
    scene.workspace.assert_settled()


def test_many_are_counted(scene: Scene) -> None:
    """Of more than ten files with one damage there is one finding that counts them."""
    for number in range(12):
        (scene.chunked / f"n{number}.md").write_text(f"Words of the file number {number}.\n")
    scene.workspace("sync")
    for number in range(12):
        path = scene.chunked / f"n{number}.md"
        scene.replace_embedding(path, lambda vector: 2 * vector)
    (finding,) = [
        one for one in verified(scene, "full")["findings"] if one["code"] == "vector-invalid"
    ]
    assert "12 vectors of 12 files" in finding["detail"]
    assert "chunked/n0.md" in finding["detail"]
    assert scene.workspace.sync("--full")["embedded"] == 12
    assert codes(verified(scene, "full")) == []


@pytest.mark.usefixtures("without_pauses")
def test_a_model_that_does_not_answer(scene: Scene) -> None:
    """A service that is down is no finding; what it would have said was not checked."""
    from tests.system.embedding_server import status

    server = scene.serve()
    server.behave(status(500))
    done = verified(scene, "deep")
    assert codes(done) == []
    assert any("it does not answer" in words for words in done["not_checked"])
    assert not any("against the model" in words for words in done["checked"])


def test_a_file_that_nobody_can_vouch_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no user's mark can be made, the FAISS file is not opened, and that is said."""
    (scene.folder / "blocked").write_text("A file where a folder is wanted.")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(scene.folder / "blocked"))
    done = verified(scene, "full")
    assert codes(done) == []
    assert any(words.startswith("FAISS rows") for words in done["not_checked"])


def test_vectors_stay_where_there_is_no_model(scene: Scene) -> None:
    """Without the model nothing is thrown away that it alone could make again."""
    scene.replace_embedding(scene.note(), lambda vector: 2 * vector)
    scene.set_embedder("onnx:nobody/has-this")
    assert codes(verified(scene, "full")) == ["model-missing", "vector-invalid"]
    count = "SELECT count(*) FROM vectors"
    before = in_database(scene.sidecar / "embeddings.sqlite", count)
    index = faiss_file(scene)
    scene.workspace("sync", "--full", code=None)
    assert index.exists()
    assert in_database(scene.sidecar / "embeddings.sqlite", count) == before


def test_words(scene: Scene) -> None:
    """A person reads grouped findings in a terminal's width, and the next command at the end."""
    drift(scene)
    shown = scene.workspace("verify", code=1).stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert any(line.startswith("error modified (1): ") for line in shown)
    assert "'filestore sync' repairs 3 of 4" in shown
    assert shown[-1] == "'filestore repair --plan' shows what can be done about the rest"
    assert scene.workspace("status", code=1).stdout.splitlines()[-2:] == shown[-2:]
    garbage_faiss(scene)
    zero = "UPDATE vectors SET vector = zeroblob(length(vector))"
    in_database(scene.sidecar / "embeddings.sqlite", zero)
    shown = scene.workspace("verify", "--level", "full", code=1).stdout.splitlines()
    assert any(line.startswith("'filestore sync --full' repairs") for line in shown)


def test_a_source_of_the_same_name_hides_no_damage(workspace: Any) -> None:
    """`source/note.md` that changed says nothing of `chunked/source/note.md`, which is read."""
    workspace.write("file_index/source/note.md", "Words of the source.\n")
    workspace("add", "file_index/source/note.md", "--into", "res")
    chunk = workspace.write("file_index/chunked/source/note.md", "Words about whales.\n")
    workspace("sync")
    workspace.write("file_index/source/note.md", "Other words of the source.\n")
    workspace.rot(chunk, b"Words about wholes.\n")
    found = workspace.json("verify", "--level", "full", code=1)["findings"]
    assert {(one["code"], one["path"]) for one in found} >= {
        ("bit-rot", "chunked/source/note.md"),
        ("source-modified", "source/note.md"),
    }


def test_a_document_of_many_sections_is_taken_apart_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many texts it has: the words of each are looked up at the deepest level."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "long.md").write_text("".join(f"# Head {n}\n\nWords {n}.\n\n" for n in range(200)))
    read, kept_read = [], _catalog.kept.read

    def counted(data: bytes) -> Any:
        read.append(data)
        return kept_read(data)

    with filestore.create(notes, layout="in-place", embedder="builtin") as store:
        store.sync()
        monkeypatch.setattr(_catalog.kept, "read", counted)
        checked = store.verify(level="deep").checked
    assert any("the words of 200 of 200 passages" in one for one in checked)
    assert len(read) < 20
