"""`filestore init --in-place`: a folder of documents becomes a store, and stays what it was."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import filestore
from tests.system.snapshots import Seen, snapshot

OURS = {"filestore.toml", ".filestore"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Documents in a git work tree, with names that ours could be mistaken for.

    One is empty and one a link: a command that indexes them ends with 1.
    """
    folder = tmp_path / "notes"
    files = {
        "Home.md": b"---\ntags: [a]\n---\n# Home\r\nwords\r\n",
        "source/original.txt": b"one\r\ntwo\r\n",
        "source/.filestore-tmp-1": b"not ours",
        "chunked/a/chunk1.md": b"their own",
        "chunked/.filestore-tmp-2": b"not ours",
        ".undo/kept": b"theirs",
        ".gitignore": b"*.pdf\n",
        ".gitattributes": b"* text=auto\n",
        "sub/Über.md": b"",
        "paper.pdf": b"%PDF-1.4\n",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "link.md").symlink_to("Home.md")
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "notes")
    return folder


def _git(folder: Path, *words: str) -> str:
    words = ("git", "-c", "protocol.file.allow=always", "-C", str(folder), *words)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _theirs(folder: Path) -> Seen:
    """What is not ours; of the folder that git keeps its own things in only what a command left."""
    found = snapshot(folder)
    return {
        path: seen
        for path, seen in found.items()
        if path.split("/")[0] not in OURS and not path.startswith(".git/")
    }


def _new(folder: Path, before: Seen) -> set[str]:
    return {path.split("/")[0] for path in snapshot(folder).keys() - before.keys()}


@pytest.mark.parametrize("words", [("--in-place",), ("--layout", "in-place"), ("--in-place", ".")])
def test_only_two_names_are_new(run: Any, notes: Path, words: tuple[str, ...]) -> None:
    """The settings and a sidecar that git leaves out by itself; all else stays, stamps and all."""
    every, before = snapshot(notes), _theirs(notes)
    done = run("init", *words, "--json", cwd=notes)
    assert (done.code, done.json["layout"], done.json["root"]) == (1, "in-place", str(notes))
    assert done.json["sync"]["embedded"] > 0
    assert done.json["sync"]["remaining"]
    assert _theirs(notes) == before
    assert _new(notes, every) == OURS
    assert 'layout = "in-place"' in (notes / "filestore.toml").read_text()
    sidecar = notes / ".filestore"
    assert sidecar.stat().st_mode & 0o777 == 0o700
    assert (sidecar / ".gitignore").read_bytes() == b"*\n"
    assert _git(notes, "status", "--porcelain") == "?? filestore.toml\n"


def test_says_what_is_next(run: Any, notes: Path) -> None:
    """Two commands lead to answers, and the second is named."""
    done = run("init", "--in-place", notes)
    assert "layout in-place" in done.stdout
    (words,) = re.findall("^next: filestore (--store .*)$", done.stdout, re.MULTILINE)
    # As it is printed, from where it was printed, it finds a document.
    assert run(*shlex.split(words)).stdout.partition(":")[0].endswith(".md")
    inside = notes.parent / "other"
    inside.mkdir()
    (inside / "tides.md").write_text("# Tides\n\nThe moon pulls.\n")
    done = run("init", "--in-place", cwd=inside)
    assert "next: filestore search Tides\n" in done.stdout
    assert "filestore add" not in done.stdout


def test_one_layout_is_chosen(run: Any, notes: Path) -> None:
    """Two that contradict each other are wrong usage, and nothing is made."""
    before = snapshot(notes)
    done = run("init", "--in-place", "--layout", "tree", cwd=notes)
    assert done.code == 2
    assert "leave one out" in done.stderr
    assert snapshot(notes) == before


def test_a_store_inside_a_store_is_refused(run: Any, notes: Path) -> None:
    """Also the second time, and below; the folder stays as it is."""
    assert run("init", "--in-place", notes).code in (0, 1)
    before = snapshot(notes)
    for folder in (notes, notes / "sub"):
        done = run("init", "--in-place", folder)
        assert done.code == 4
        assert "is a store already" in done.stderr
    assert snapshot(notes) == before


def test_a_store_below_the_folder_may_stay(run: Any, notes: Path) -> None:
    """Chunk files that were made of the documents before are a store of their own."""
    assert run("init", "file_index", cwd=notes).code == 0
    before = _theirs(notes)
    assert run("init", "--in-place", cwd=notes).code in (0, 1)
    assert _theirs(notes) == before


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_work_tree_of_another_repository_is_made_a_store(
    run: Any, notes: Path, tmp_path: Path, kind: str
) -> None:
    """Its `.git` is a file, which stays; the sidecar is left out there, too."""
    folder = tmp_path / "other"
    if kind == "worktree":
        _git(notes, "worktree", "add", "-q", str(folder), "-b", "side")
    else:
        outer = tmp_path / "outer"
        outer.mkdir()
        _git(outer, "init", "-q")
        _git(outer, "submodule", "add", "-q", str(notes), "inner")
        folder = outer / "inner"
    before = _theirs(folder)
    assert run("init", "--in-place", folder).code in (0, 1)
    assert _theirs(folder) == before
    assert _git(folder, "status", "--porcelain") == "?? filestore.toml\n"


@pytest.fixture
def read_only(small_disk: Path) -> Iterator[Callable[[], None]]:
    """Has a file system of its own take nothing more."""

    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(small_disk)], check=True)

    yield partial(remount, "ro")
    remount("rw")


def test_a_read_only_folder_is_named(
    run: Any, small_disk: Path, read_only: Callable[[], None]
) -> None:
    """The settings have to lie in it, so that no other place of the sidecar is offered."""
    read_only()
    done = run("init", "--in-place", small_disk)
    assert done.code == 3
    assert "make the folder writable" in done.stderr
    assert "[sidecar]" not in done.stderr
    assert list(small_disk.iterdir()) == []


def test_a_read_only_clone_has_its_sidecar_elsewhere(
    run: Any, small_disk: Path, read_only: Callable[[], None], tmp_path: Path
) -> None:
    """Where the settings lie there already the way out is said, and it is one."""
    assert run("init", "--in-place", small_disk).code in (0, 1)
    shutil.rmtree(small_disk / ".filestore")
    read_only()
    done = run("sync", cwd=small_disk)
    assert done.code == 3
    assert f"cannot write {small_disk / '.filestore'}" in done.stderr
    assert "[sidecar] in filestore/settings.toml" in done.stderr
    elsewhere = _sidecar_elsewhere(tmp_path, small_disk)
    run("undo", cwd=small_disk, env={"XDG_CONFIG_HOME": str(tmp_path / "configuration")})
    assert (elsewhere / "catalog.sqlite").is_file()


def _sidecar_elsewhere(around: Path, root: Path) -> Path:
    """Have the user's own settings name another folder for what is derived."""
    folder = around / "configuration" / "filestore"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text(f'[sidecar]\n"{root}" = "{around / "derived"}"\n')
    return around / "derived"


def test_a_sidecar_that_somebody_planted_is_refused(run: Any, notes: Path, tmp_path: Path) -> None:
    """Before anything is written, not after."""
    (notes / ".filestore").symlink_to(tmp_path)
    before = snapshot(notes)
    done = run("init", "--in-place", notes)
    assert done.code == 4
    assert "symbolic link" in done.stderr
    assert snapshot(notes) == before


def test_the_sidecar_is_left_out_of_git_again(run: Any, notes: Path) -> None:
    """Whoever deletes it whole gets its rule back with the rest, from any command that writes."""
    assert run("init", "--in-place", notes).code in (0, 1)
    shutil.rmtree(notes / ".filestore")
    run("undo", cwd=notes)
    assert (notes / ".filestore" / ".gitignore").read_bytes() == b"*\n"
    assert _git(notes, "status", "--porcelain") == "?? filestore.toml\n"


def test_a_sidecar_of_ones_own_leaves_the_folder_alone(notes: Path, tmp_path: Path) -> None:
    """The user's setting wins: of all that is derived nothing lies beside the documents."""
    elsewhere, every = _sidecar_elsewhere(tmp_path, notes), snapshot(notes)
    configuration = tmp_path / "configuration"
    with filestore.create(
        notes, layout="in-place", configuration=configuration, embedder="builtin"
    ) as store:
        assert store.places.undo == str(elsewhere / "undo")
    assert _new(notes, every) == {"filestore.toml"}
    assert (elsewhere / "catalog.sqlite").is_file()


REFUSED = [
    ("add", "Home.md"),
    ("add",),
    ("rm", "Home.md"),
    ("update",),
    ("update", "--plan"),
    ("reconstruct", "Home.md"),
    ("repair", "--remove", "Home.md", "--yes"),
]


@pytest.mark.parametrize("words", REFUSED)
def test_no_command_writes_a_document(run: Any, notes: Path, words: tuple[str, ...]) -> None:
    """Each says in one sentence why, and what a person does instead; no file changes."""
    assert run("init", "--in-place", notes).code in (0, 1)
    before = _theirs(notes)
    done = run(*words, cwd=notes)
    assert done.code == 3
    assert "this store indexes the folder itself" in done.stderr
    assert _theirs(notes) == before


@pytest.mark.parametrize("word", ["undo", "redo"])
def test_there_is_nothing_to_undo(run: Any, notes: Path, word: str) -> None:
    """Nothing was ever changed, and what has the name of our temporary files is not ours."""
    assert run("init", "--in-place", notes).code in (0, 1)
    before = _theirs(notes)
    done = run(word, cwd=notes)
    assert "Traceback" not in done.stderr
    assert done.code == 1
    assert _theirs(notes) == before


def test_what_is_staged_is_checked_from_the_root(run: Any, notes: Path) -> None:
    """A document at the top of the work tree is named as it lies; our settings are no document."""
    assert run("init", "--in-place", notes).code in (0, 1)
    marks = b"<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
    for name in ("broken.md", ".hidden/broken.md", "sub/broken.txt", "broken.png"):
        (notes / name).parent.mkdir(exist_ok=True)
        (notes / name).write_bytes(marks)
    _git(notes, "add", "-A")
    done = run("verify", "--staged", "--json", cwd=notes)
    found = {(finding["code"], finding["path"]) for finding in done.json["findings"]}
    assert found == {("conflict-markers", name) for name in ("broken.md", "sub/broken.txt")}


def test_hooks_are_installed_as_ever(run: Any, notes: Path) -> None:
    """They lie in git's own folder, and the folder of documents stays as it is."""
    assert run("init", "--in-place", notes).code in (0, 1)
    before = _theirs(notes)
    assert run("git", "install", cwd=notes).code == 0
    assert (notes / ".git" / "hooks" / "pre-commit").is_file()
    assert _theirs(notes) == before
