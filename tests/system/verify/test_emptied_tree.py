"""A tree that was emptied is told, whatever else went with it, as long as git's HEAD has its files.

With a catalog, without one, with one that knows nothing; what a person took out of git is no loss.
"""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

MASS: Final = {"mass-missing": ["chunked"]}
WORDS: Final = "Words of number{number:03}.\n"


def codes(found: list[dict[str, Any]]) -> list[str]:
    return sorted({one["code"] for one in found})


def commit(workspace: Any, message: str = "all") -> None:
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", message)


@pytest.fixture
def filled(either: Any) -> Any:
    """Two notes, committed and indexed."""
    for name in ("one.md", "two.md"):
        either.write(name, f"# {name}\n\nWords of {name}.\n")
    either("add", "one.md", "two.md")
    commit(either)
    return either


def many(workspace: Any, number: int = 100) -> None:
    """Files in five folders, committed and indexed."""
    for index in range(number):
        workspace.write(
            f"file_index/chunked/part{index % 5}/n{index:03}.md", WORDS.format(number=index)
        )
    workspace.sync()
    commit(workspace)


def lose_catalog(workspace: Any) -> None:
    shutil.rmtree(workspace.sidecar)


def empty_catalog(workspace: Any) -> None:
    """What a sync of an emptied tree left behind before such a tree was told."""
    lose_catalog(workspace)
    shutil.move(workspace.chunked, workspace.folder / "away")
    shutil.move(workspace.folder / ".git", workspace.folder / "git-away")
    workspace.chunked.mkdir()
    workspace("sync", code=None)
    shutil.rmtree(workspace.chunked)
    shutil.move(workspace.folder / "away", workspace.chunked)
    shutil.move(workspace.folder / "git-away", workspace.folder / ".git")


def keep_catalog(workspace: Any) -> None:
    pass


def empty_all(workspace: Any) -> None:
    for path in list(workspace.chunked.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty_but_records(workspace: Any) -> None:
    for path in list(workspace.chunked.rglob("*.md")):
        if path.is_file():
            path.unlink()


def remove_tree(workspace: Any) -> None:
    shutil.rmtree(workspace.chunked)


CATALOGS: Final = {"kept": keep_catalog, "lost": lose_catalog, "empty": empty_catalog}
EMPTIED: Final = {"all": empty_all, "but records": empty_but_records, "the folder": remove_tree}


@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("how", EMPTIED)
def test_an_emptied_tree_is_told_and_comes_back(filled: Any, catalog: str, how: str) -> None:
    """Status, verify and sync say so, sync refuses with 4, and a repair restores it from git."""
    truth = filled.truth()
    CATALOGS[catalog](filled)
    EMPTIED[how](filled)
    assert filled.drift()["mass-missing"] == ["chunked"]
    for level in ("fast", "full"):
        found = filled.json("verify", "--level", level, code=1)["findings"]
        assert "mass-missing" in codes(found)
        assert "missing" not in codes(found)
    assert codes(filled.json("sync", code=4)["remaining"]) == ["mass-missing"]
    assert filled.drift() == MASS
    assert codes(filled.json("sync", code=4)["remaining"]) == ["mass-missing"]
    assert "--write-files" in filled("repair", "--plan", code=1).stdout
    done = filled.json("repair", "--write-files", "--yes")
    assert {step["kind"] for step in done["applied"]} >= {"restore"}
    assert filled.truth() == truth
    filled.assert_settled()
    assert filled.found("words")


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_repair_alone_brings_it_back(filled: Any, catalog: str) -> None:
    """No sync has to come before it, and one undo takes it back."""
    truth = filled.truth()
    CATALOGS[catalog](filled)
    empty_all(filled)
    done = filled.json("repair", "--write-files", "--yes")
    assert done["remaining"] == [] or codes(done["remaining"]) == ["duplicate"]
    assert filled.truth() == truth
    filled.assert_settled()
    assert len(done["undo"]) == 1


@pytest.mark.parametrize("catalog", CATALOGS)
def test_whoever_means_it_says_so_once(filled: Any, catalog: str) -> None:
    """After --forget-missing it is silent, although HEAD has the files until the next commit."""
    CATALOGS[catalog](filled)
    empty_all(filled)
    filled.json("sync", code=4)
    filled.json("sync", "--forget-missing")
    filled.assert_settled()
    filled.write("file_index/chunked/new.md", "New words.\n")
    filled.sync()
    (filled.chunked / "new.md").unlink()
    filled.json("sync", "--forget-missing")
    commit(filled, "gone")
    filled.assert_settled()


@pytest.mark.parametrize("committed", [False, True])
def test_what_was_taken_out_of_git_is_no_loss(filled: Any, committed: bool) -> None:
    """A deletion that was staged or committed is meant: a new catalog knows nothing of it."""
    filled.git("rm", "-qr", "file_index/chunked")
    if committed:
        filled.git("commit", "-qm", "gone")
    lose_catalog(filled)
    filled.chunked.mkdir(exist_ok=True)
    assert filled.drift() == {"catalog-missing": [".sidecar/catalog.sqlite"]}
    filled.sync()
    filled.assert_settled()


def test_a_store_that_was_emptied_by_our_commands_is_silent(filled: Any) -> None:
    """Whoever removes the last resource knows it, and is asked nothing before the commit."""
    filled("rm", *(item["resource"] for item in filled.json("ls")["items"]))
    filled.assert_settled()


def test_one_folder_with_the_catalog(filled: Any) -> None:
    """A resource that went together with the catalog is missing, and comes back or is forgotten."""
    many(filled)
    truth = filled.truth()
    lose_catalog(filled)
    shutil.rmtree(filled.chunked / "part3")
    gone = [f"chunked/part3/n{index:03}.md" for index in range(3, 100, 5)]
    assert filled.drift() == {
        "catalog-missing": [".sidecar/catalog.sqlite"],
        "missing": sorted(gone),
    }
    done = filled.json("repair", "--write-files", "--yes")
    assert filled.truth() == truth
    assert {step["path"] for step in done["applied"] if step["kind"] == "restore"} == set(gone)
    filled.assert_settled()
    lose_catalog(filled)
    shutil.rmtree(filled.chunked / "part3")
    report = filled.sync()
    assert sorted(one["path"] for one in report["applied"] if one["code"] == "missing") == gone
    filled.assert_settled()


def test_half_of_it_with_the_catalog(filled: Any) -> None:
    """More than the limit gone is a mass, told after the rest was indexed, too."""
    many(filled)
    truth = filled.truth()
    lose_catalog(filled)
    for number in (0, 1, 2):
        shutil.rmtree(filled.chunked / f"part{number}")
    assert filled.drift() == {"catalog-missing": [".sidecar/catalog.sqlite"]} | MASS
    report = filled.sync(code=4)
    assert codes(report["remaining"]) == ["mass-missing"]
    assert filled.found("number003") == ["part3/n003.md"]
    assert filled.drift() == MASS
    assert "60 of 10" in filled("status", code=1).stdout
    filled.json("verify", "--level", "full", code=1)
    filled.json("repair", "--write-files", "--yes")
    assert filled.truth() == truth
    filled.assert_settled()


def test_files_that_come_back_by_themselves_are_new(filled: Any) -> None:
    """What git checks out again is indexed, and nothing is said of it any more."""
    many(filled)
    lose_catalog(filled)
    empty_all(filled)
    filled.sync(code=4)
    filled.git("checkout", "--", ".")
    filled.sync()
    assert filled.found("number003") == ["part3/n003.md"]
    filled.assert_settled()


def test_a_folder_that_was_renamed_is_no_loss(filled: Any) -> None:
    """Files of another name with the bytes that HEAD has are the same files, with no catalog."""
    many(filled)
    lose_catalog(filled)
    for number in range(5):
        (filled.chunked / f"part{number}").rename(filled.chunked / f"chapter{number}")
    assert filled.drift() == {"catalog-missing": [".sidecar/catalog.sqlite"]}
    filled.sync()
    filled.assert_settled()


def test_what_git_does_not_check_out_is_no_loss(filled: Any) -> None:
    """A sparse checkout leaves files out on purpose."""
    many(filled)
    filled.git("sparse-checkout", "set", "--no-cone", "/*", "!/file_index/chunked/part*")
    assert not (filled.chunked / "part1").exists()
    lose_catalog(filled)
    assert filled.drift() == {"catalog-missing": [".sidecar/catalog.sqlite"]}
    filled.sync()
    filled.assert_settled()


def test_below_what_cannot_be_read_nothing_is_lost(filled: Any) -> None:
    """A folder in the way of the files is told; nobody says that what was below it is gone."""
    many(filled)
    lose_catalog(filled)
    place = filled.chunked / "part1"
    shutil.rmtree(place)
    deep = place
    for _ in range(70):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert "mass-missing" not in filled.drift()


@pytest.mark.parametrize("how", EMPTIED)
def test_a_store_deep_in_a_larger_repository(
    new_workspace: Callable[..., Any], tmp_path: Path, how: str
) -> None:
    """The store's own part of HEAD is what counts, and only that is brought back."""
    workspace = new_workspace("outer", init=False)
    workspace.write("chunked/other.md", "Not of the store.\n")
    workspace.write("docs/deep/file_index/../chunked.md", "Nor this.\n")
    workspace("init", "docs/deep/file_index")
    workspace.store = workspace.folder / "docs/deep/file_index"
    workspace.chunked = workspace.store / "chunked"
    workspace.sidecar = workspace.store / ".sidecar"
    (workspace.chunked / "own.md").write_text("Words of basalt.\n")
    inside = workspace.folder / "docs/deep"
    workspace("sync", cwd=inside)
    commit(workspace)
    truth = workspace.truth()
    (workspace.folder / "chunked/other.md").unlink()
    lose_catalog(workspace)
    EMPTIED[how](workspace)
    drift = workspace.json("status", cwd=inside, code=1)["drift"]
    assert drift["mass-missing"] == ["chunked"]
    workspace.json("sync", cwd=inside, code=4)
    workspace.json("repair", "--write-files", "--yes", cwd=inside)
    assert workspace.truth() == truth
    assert not (workspace.folder / "chunked/other.md").exists()


def test_adding_does_not_hide_it(filled: Any) -> None:
    """A document that is added to an emptied store makes a catalog that knows of the loss."""
    lose_catalog(filled)
    empty_all(filled)
    filled.write("three.md", "# three\n\nWords of three.\n")
    filled("add", "three.md", code=None)
    assert set(filled.drift()) == {"missing"}
    assert len(filled.drift()["missing"]) == 4


def test_without_git_a_new_catalog_is_silent(workspace: Any) -> None:
    """Where nothing was ever committed nobody can know what there was."""
    workspace.write("file_index/chunked/own.md", "Words.\n")
    workspace.sync()
    lose_catalog(workspace)
    (workspace.chunked / "own.md").unlink()
    workspace.sync()
    workspace.assert_settled()


def test_the_rows_of_what_is_lost_are_sound(filled: Any) -> None:
    """What the catalog notes of files it never saw is no damage, and holds no text."""
    lose_catalog(filled)
    empty_all(filled)
    filled.json("sync", code=4)
    connection = sqlite3.connect(filled.sidecar / "catalog.sqlite")
    states = {state for (state,) in connection.execute("SELECT state FROM files")}
    connection.close()
    assert states == {"missing"}
    found = filled.json("verify", "--level", "full", code=1)["findings"]
    assert codes(found) == ["mass-missing"]
    filled.json("ls")
    assert filled.found("words") == []


def three(workspace: Any) -> dict[str, bytes]:
    """Three notes, committed and indexed; what their folders hold."""
    for name in ("one.md", "two.md", "three.md"):
        workspace.write(name, f"# {name}\n\nWords of {name}.\n")
    workspace("add", "one.md", "two.md", "three.md")
    commit(workspace)
    return dict(workspace.truth())


@pytest.mark.parametrize("catalog", ["kept", "lost"])
@pytest.mark.parametrize("how", EMPTIED)
def test_folders_of_a_mass_come_back_where_they_are_named(
    workspace: Any, catalog: str, how: str
) -> None:
    """What lies below a path that is named is brought back, whatever else is gone."""
    truth = three(workspace)
    CATALOGS[catalog](workspace)
    EMPTIED[how](workspace)
    paths = ("--path", "chunked/one.md", "--path", "chunked/three.md")
    planned = workspace("repair", "--plan", *paths, code=1).stdout
    assert "--write-files" in planned
    done = workspace.json("repair", "--write-files", "--yes", *paths, code=1)
    restored = {step["path"] for step in done["applied"] if step["kind"] == "restore"}
    assert {path for path in restored if path.endswith("/chunk1.md")} == {
        "chunked/one.md/chunk1.md",
        "chunked/three.md/chunk1.md",
    }
    assert not (workspace.chunked / "two.md" / "chunk1.md").exists()
    workspace.json("repair", "--write-files", "--yes", "--path", "chunked", code=None)
    assert workspace.truth() == truth
    workspace.assert_settled()


def test_the_rest_of_a_mass_is_not_forgotten_in_passing(workspace: Any) -> None:
    """A part that came back makes the rest no small loss: it stays a mass, until it is settled."""
    truth = three(workspace)
    empty_but_records(workspace)
    workspace.json("repair", "--write-files", "--yes", "--path", "chunked/one.md/chunk1.md", code=1)
    assert workspace.drift() == MASS
    assert codes(workspace.json("sync", code=4)["remaining"]) == ["mass-missing"]
    workspace.json("repair", "--write-files", "--yes")
    assert workspace.truth() == truth
    workspace.assert_settled()
    (workspace.chunked / "one.md" / "chunk1.md").unlink()
    assert workspace.drift() == {"missing": ["chunked/one.md/chunk1.md"]}


@pytest.mark.parametrize("how", ["checked out", "forgotten", "committed"])
def test_the_rest_of_a_mass_is_settled_by_any_means(workspace: Any, how: str) -> None:
    """After git brought it back, or a person let it go, one file that goes is missing again."""
    three(workspace)
    empty_but_records(workspace)
    workspace.json("repair", "--write-files", "--yes", "--path", "chunked/one.md", code=1)
    if how == "checked out":
        workspace.git("checkout", "--", ".")
    elif how == "committed":
        commit(workspace, "gone")
    workspace.json("sync", *(["--forget-missing"] if how == "forgotten" else []), code=None)
    assert "mass-missing" not in workspace.drift()
    workspace.write("file_index/chunked/own.md", "Words of basalt.\n")
    workspace.json("sync", code=None)
    (workspace.chunked / "own.md").unlink()
    assert workspace.drift()["missing"] == ["chunked/own.md"]


def test_a_path_that_nobody_ever_had_is_told(workspace: Any) -> None:
    """Also where much is gone, a slip of the pen is no path of the store."""
    three(workspace)
    empty_all(workspace)
    done = workspace("repair", "--write-files", "--yes", "--path", "chunked/onee.md", code=3)
    assert "no such file in the store, now or earlier" in done.stderr
    workspace("repair", "--write-files", "--plan", "--path", "chunked/one.md", code=1)


def notes_in(new_workspace: Callable[..., Any], layout: str) -> Any:
    """Two notes that git does not have, and beside them what is no text."""
    work = new_workspace(layout="flat" if layout == "flat" else "tree", init=layout != "in-place")
    for name in ("one.md", "two.md"):
        work.write(f"notes/{name}", f"# {name}\n\nWords of {name}.\n")
    if layout != "in-place":
        work("add", "notes/one.md", "notes/two.md")
        return work
    work.write("notes/empty.md", "")
    work.write("notes/picture.png", b"\x89PNG\r\n\x1a\n")
    work("init", "--in-place", "notes", "--embedder", "builtin", code=1)
    work.store, work.sidecar = work.folder / "notes", work.folder / "notes" / ".filestore"
    work.chunked = work.store
    work("enrich", "--store", work.store)
    return work


@pytest.mark.parametrize("layout", ["tree", "flat", "in-place"])
def test_the_last_texts_are_a_mass_however_few(
    new_workspace: Callable[..., Any], layout: str
) -> None:
    """Records, summaries, pictures and empty notes do not count; what removes it is said."""
    work = notes_in(new_workspace, layout)
    here = ("--store", work.store)
    texts = [path for path in work.chunked.glob("**/[!.]*.md") if "/." not in str(path)]
    kept = {path: path.read_bytes() for path in texts if path.stat().st_size and path.is_file()}
    for path in kept:
        path.unlink()
    for _ in range(2):
        done = work.json("sync", *here, code=4)
        (mass,) = (one for one in done["remaining"] if one["code"] == "mass-missing")
        assert mass["detail"].startswith("2 of ")
        assert "…" not in mass["detail"]
        answer = work.json("search", "words", *here, code=1)
        assert (
            [note for note in answer["notes"] if "gone" in note]
            == [
                note
                for note in answer["notes"]
                if note.startswith("the folder is empty or not mounted: 2 of ")
                and "'filestore sync --forget-missing'" in note
            ]
            != []
        )
    for path, data in kept.items():
        path.write_bytes(data)
    assert work.json("sync", *here, code=None)["embedded"] == 0
    first = min(kept)
    first.unlink()
    answer = work.json("search", "words", *here)
    assert "1 indexed file is gone: run 'filestore sync'" in answer["notes"]
    done = work.json("sync", *here, code=None)
    assert "mass-missing" not in {one["code"] for one in done["remaining"]}
    max(kept).unlink()
    work.json("sync", *here, code=4)
    work.json("sync", "--forget-missing", *here, code=None)
    assert work.json("search", "words", *here, code=1)["notes"] == []
