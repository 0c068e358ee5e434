"""The look before an answer: what is new is found, what is gone is kept, nobody is kept waiting."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from filestore.fs import scan
from filestore.sidecar import commit, fulltext_file
from filestore.store import Store, look
from filestore.sync import little
from tests.system.search.test_freshness import without_powers

NOTHING = {"new": 0, "edited": 0, "gone": 0, "unembedded": 0}


@pytest.fixture(params=["tree", "flat", "in-place"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where people write files of a store, in each layout; `root_of` names its root."""
    root = tmp_path / "kb"
    root.mkdir()
    (root / "a.md").write_text("# Ants\n\nAnts farm aphids.\n")
    with Store.create(root, embedder="builtin", layout=request.param) as store:
        tree = Path(store.places.chunked)
        if request.param != "in-place":
            tree.mkdir(exist_ok=True)
            (root / "a.md").rename(tree / "a.md")
        store.sync()
    return tree


def root_of(folder: Path) -> Path:
    return folder.parent if folder.name == "chunked" else folder


def asked(folder: Path, query: str, **options: Any) -> tuple[list[str], Any]:
    """The names of the files that answer in a process of its own, and the answer."""
    with Store(root_of(folder)) as store:
        answer = store.search(query, mode="keyword", **options)
        return [Path(hit.path).name for hit in answer], answer


def test_what_a_person_just_wrote_is_found(folder: Path) -> None:
    """A new file, an edit and a move, at once, by words and by meaning; nothing is behind."""
    (folder / "b.md").write_text("# Bees\n\nBees make honey.\n")
    names, answer = asked(folder, "honey")
    assert names == ["b.md"]
    assert answer.to_dict()["behind"] == NOTHING
    assert answer.notes == ()
    assert (answer.indexed_at or "").endswith("Z")
    (folder / "b.md").write_text("# Bees\n\nBees make wax.\n")
    assert asked(folder, "wax")[0] == ["b.md"]
    assert asked(folder, "honey")[0] == []
    (folder / "b.md").rename(folder / "c.md")
    assert asked(folder, "wax")[0] == ["c.md"]
    with Store(root_of(folder)) as store:
        assert store.search("wax", mode="vector").hits[0].path.endswith("c.md")
        assert store.status().clean


def test_without_a_look_the_index_answers(folder: Path) -> None:
    """Where a person asks for that, once or in the settings; nothing is written then."""
    (folder / "b.md").write_text("# Bees\n\nBees make honey.\n")
    names, answer = asked(folder, "honey", update=False)
    before = answer.generation
    assert names == []
    assert answer.to_dict()["behind"] == {**NOTHING, "new": None, "edited": None, "gone": None}
    settings = root_of(folder) / "filestore.toml"
    settings.write_text(settings.read_text() + "\n[search]\nupdate = false\n")
    names, answer = asked(folder, "honey")
    assert (names, answer.generation) == ([], before)


@pytest.mark.parametrize("limit", ["MOST_FILES", "MOST_BYTES"])
def test_many_or_large_files_wait_for_a_sync(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """They are counted and nothing is indexed; so is one edit among them."""
    monkeypatch.setattr(little, limit, 2)
    for number in range(3):
        (folder / f"b{number}.md").write_text("# Bees\n\nBees make honey.\n")
    (folder / "a.md").write_text("# Ants\n\nAnts have honey, too.\n")
    names, answer = asked(folder, "honey")
    assert names == []
    assert answer.to_dict()["behind"] == {**NOTHING, "new": 3, "edited": 1}
    assert answer.notes == (
        "3 new files and 1 file that may be edited are not indexed: run 'filestore sync'",
    )


def test_what_is_gone_is_kept_until_a_person_syncs(workspace: Any) -> None:
    """After a hundred searches beside a deleted chunk, its text still can be restored."""
    path = workspace.chunked / "note.md"
    path.write_text("Honey of my own.\n")
    other = workspace.chunked / "other.md"
    other.write_text("Wax of my own.\n")
    workspace.sync()
    path.unlink()
    for number in range(100):
        other.write_text(f"Wax of my own, {number} times.\n")
        with Store(workspace.store) as store:
            answer = store.search("own", mode="keyword")
            assert [hit.path for hit in answer] == ["chunked/other.md"]
            assert answer.behind.gone == 1
    assert workspace.json("search", "honey", code=1)["notes"] == [
        "1 indexed file is gone: run 'filestore sync'"
    ]
    workspace("repair", "--write-files", "--yes")
    assert path.read_text() == "Honey of my own.\n"


def test_a_folder_that_is_not_mounted(folder: Path) -> None:
    """Nothing is refreshed, hits come as they were indexed, and the first line says why."""
    away = folder.parent / "away"
    (folder / "b.md").write_text("# Bees\n\nBees make honey.\n")
    with Store(root_of(folder)) as store:
        store.sync()
        generation = store.search("honey").generation
    own = ("filestore.toml", ".filestore", ".gitignore", ".gitattributes")
    shutil.copytree(folder, away, ignore=shutil.ignore_patterns(*own))
    for path in away.iterdir():
        (folder / path.name).unlink()
    names, answer = asked(folder, "honey")
    assert names == ["b.md"]
    assert [(hit.freshness, "make honey" in hit.text) for hit in answer] == [("gone", True)]
    assert "make honey" in answer.hits[0].excerpt
    assert answer.notes[0].startswith("the folder is empty or not mounted")
    assert (answer.generation, answer.behind.gone) == (generation, 2)
    shutil.copytree(away, folder, dirs_exist_ok=True)
    names, answer = asked(folder, "honey")
    assert [hit.freshness for hit in answer] == ["fresh"]
    assert answer.behind.gone == 0


@contextmanager
def held(lock: str, *, dead: bool = False) -> Iterator[None]:
    """The writer's lock, held by another process; a dead one leaves what it wrote there."""
    code = (
        "import fcntl, os, sys; f = open(sys.argv[1], 'a+'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print(flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    if dead:
        process.kill()
    yield
    process.communicate()


def test_who_writes_is_not_waited_for(folder: Path) -> None:
    """The answer comes without what is new, which is said; a dead writer's lock is none."""
    with Store(root_of(folder)) as store:
        lock = store.places.lock
    (folder / "b.md").write_text("# Bees\n\nBees make honey.\n")
    with held(lock):
        names, answer = asked(folder, "honey")
    assert names == []
    assert answer.to_dict()["behind"] == {**NOTHING, "new": 1}
    assert answer.notes[0].startswith("1 new file is not indexed (another writer holds the store")
    with held(lock, dead=True):
        assert asked(folder, "honey")[0] == ["b.md"]


def test_who_may_not_write_is_told_what_is_behind(workspace: Any) -> None:
    """A read-only store answers, and counts what differs by reading it, not by stamps."""
    first, second = workspace.chunked / "a.md", workspace.chunked / "b.md"
    first.write_text("Honey in a jar.\n")
    second.write_text("Honey in a comb.\n")
    workspace.sync()
    first.touch()
    second.write_text("Honey in a hive.\n")
    places = [workspace.store, *(path for path in workspace.store.rglob("*") if path.is_dir())]
    for place in places:
        place.chmod(0o555)
    for path in (workspace.store / ".sidecar").rglob("*"):
        path.chmod(0o444 if path.is_file() else 0o555)
    try:
        done = without_powers("search", "honey", cwd=workspace.folder)
    finally:
        for place in places:
            place.chmod(0o755)
    assert done.returncode == 0
    assert "a.md" in done.stdout
    assert "b.md:1  [edited]" in done.stdout
    assert "1 edited file is not indexed (" in done.stderr


def test_processes_that_index_at_once(folder: Path) -> None:
    """Each answers, and together they index every file once."""
    for number in range(12):
        (folder / f"b{number}.md").write_text(f"# Bees {number}\n\nBees make honey.\n")
    command = [sys.executable, "-m", "filestore", "search", "honey", "--mode", "keyword"]
    many = [subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert {process.wait() for process in many} <= {0, 1}
    assert 0 in {process.returncode for process in many}
    names, answer = asked(folder, "honey", k=20)
    assert sorted(names) == sorted(f"b{number}.md" for number in range(12))
    assert answer.to_dict()["behind"] == NOTHING
    with Store(root_of(folder)) as store:
        assert store.verify(level="full").clean


def test_a_tree_that_changes_while_it_is_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went, or changed, after it was listed is no error, and is right the next time."""
    walk = scan.scan_tree

    def changing(*words: Any, **named: Any) -> scan.TreeScan:
        (folder / "b.md").write_text("# Bees\n\nBees make honey.\n")
        (folder / "c.md").write_text("# Cats\n\nCats make no honey.\n")
        seen = walk(*words, **named)
        (folder / "b.md").unlink()
        (folder / "c.md").write_text("# Cats\n\nCats like honey.\n")
        return seen

    monkeypatch.setattr(scan, "scan_tree", changing)
    names, answer = asked(folder, "honey")
    assert (names, [hit.freshness for hit in answer]) == (["c.md"], ["fresh"])
    monkeypatch.setattr(scan, "scan_tree", walk)
    names, answer = asked(folder, "like")
    assert (names, answer.to_dict()["behind"]) == (["c.md"], NOTHING)


def test_a_look_that_would_take_long_is_not_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how long a few files take, or a walk took until it was given up; both are said."""
    (folder / "sub").mkdir()
    (folder / "sub/b.md").write_text("# Bees\n\nBees make honey.\n")
    monkeypatch.setattr(look, "MOST_S", -1.0)
    for few, said in ((0, "its 1 files would take about 0 s"), (10, "would take more than 0 s")):
        monkeypatch.setattr(look, "_FEW", few)
        names, answer = asked(folder, "honey")
        assert (names, answer.behind.new) == ([], None)
        assert answer.notes[0].startswith("the folder was not looked at, ")
        assert said in answer.notes[0]


def test_a_look_holds_for_a_moment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process it is not repeated within that, unless the index changed."""
    walks = []
    walk = scan.scan_tree
    monkeypatch.setattr(scan, "scan_tree", lambda *a, **k: walks.append(1) or walk(*a, **k))
    monkeypatch.setattr(look, "HOLDS_S", 3600.0)
    with Store(root_of(folder)) as store:
        for _ in range(3):
            assert len(store.search("aphids", mode="keyword")) == 1
        assert len(walks) == 1
        monkeypatch.setattr(look, "HOLDS_S", 0.0)
        (folder / "b.md").write_text("# Bees\n\nBees keep no aphids.\n")
        assert len(store.search("aphids", mode="keyword")) == 2


def test_what_broke_is_said_each_time(workspace: Any) -> None:
    """A file that cannot be indexed any more is not taken out of the index in silence."""
    path = workspace.chunked / "note.md"
    path.write_text("Honey of my own.\n")
    workspace.sync()
    path.write_text("---\na: [\n---\nHoney.\n")
    for _ in range(2):
        done = workspace.json("search", "honey", "--mode", "keyword", code=1)
        assert done["notes"] == [
            "1 file is excluded (1 malformed-frontmatter): 'filestore status' says more"
        ]


def test_a_file_from_the_future_is_indexed_once(folder: Path) -> None:
    """No stat tells that it is the same: it is read before each answer, and nothing is written."""
    os.utime(folder / "a.md", (2**31, 2**31))
    before = [asked(folder, "ants")[1].generation for _ in range(3)][-1]
    assert asked(folder, "ants")[1].generation == before
    with Store(root_of(folder)) as store:
        assert store.sync().generation == before


def test_no_large_index_is_written_whole_before_an_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an edit deletes counts in its scores until the next sync, which leaves it out."""
    monkeypatch.setattr(commit, "QUICK_TEXTS", -1)
    monkeypatch.setattr(fulltext_file, "MOST_DELETED", 1.0)
    for name in ("b", "c", "d"):
        (folder / f"{name}.md").write_text("# Bees\n\nBees make honey.\n")
    assert asked(folder, "honey")[1].behind.new == 0
    (folder / "b.md").write_text("# Bees\n\nBees make wax.\n")
    assert asked(folder, "wax")[0] == ["b.md"]
    with Store(root_of(folder)) as store:
        assert store.status().deleted_texts == 1
        store.sync()
        assert store.status().deleted_texts == 0


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_an_index_made_anew(folder: Path, seed: int) -> None:
    """Whatever was written, edited and moved between searches: the same hits and scores."""
    chance = random.Random(seed)
    words = ["amber", "basalt", "copper", "diorite", "emerald", "flint", "garnet", "zinc"]
    for turn in range(12):
        paths = sorted(folder.rglob("*.md"))
        path = chance.choice(paths)
        text = " ".join(chance.choices(words, k=chance.randint(1, 30)))
        match chance.randrange(3):
            case 0:
                (folder / f"note{turn}.md").write_text(f"# {text[:20]}\n\n{text}.\n")
            case 1:
                path.write_text(path.read_text() + f"\n{text}.\n")
            case 2:
                path.rename(folder / f"moved{turn}.md")
        asked(folder, text)
    anew = root_of(folder).with_name("anew")
    shutil.copytree(root_of(folder), anew)
    sidecar = next(anew / name for name in (".sidecar", ".filestore") if (anew / name).is_dir())
    shutil.rmtree(sidecar)
    with Store(anew) as fresh, Store(root_of(folder)) as store:
        fresh.sync()
        for word in words:
            for mode in ("keyword", "vector", "hybrid"):
                ours, theirs = (
                    [(hit.path, round(hit.score, 6)) for hit in each.search(word, mode=mode)]
                    for each in (store, fresh)
                )
                assert ours == theirs
        assert store.search("zinc").behind.gone == 0
