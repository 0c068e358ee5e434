"""Answers follow from the files: not from what was there before, nor from what came first."""

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.sidecar import fulltext_file
from filestore.store import Store

MODES = ("keyword", "vector", "hybrid")
WORDS = ("amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty")
LAYOUTS = ("tree", "flat", "in-place")


def folder_of(root: Path) -> Path:
    """Where the files of a store lie, in any layout."""
    return root if (root / ".filestore").is_dir() else root / "chunked"


def made_anew(root: Path, into: Path) -> Path:
    """The same files under an index made from scratch."""
    shutil.copytree(root, into, ignore=shutil.ignore_patterns(".sidecar", ".filestore"))
    with Store(into) as store:
        store.sync()
    return into


def answers(root: Path, queries: Iterable[str], k: int = 8) -> list[list[tuple[str, float]]]:
    """Path and score of each hit, for each query in each mode."""
    with Store(root) as store:
        found = [store.search(query, k=k, mode=mode) for query in queries for mode in MODES]
    return [[(hit.path, hit.score) for hit in answer.hits] for answer in found]


def synced(root: Path, *, full: bool = False) -> int:
    """Sync, and say how many deleted texts counted until then."""
    with Store(root) as store:
        return store.sync(full=full).uncounted


def deleted_texts(root: Path) -> int:
    """What `status` says still counts."""
    with Store(root) as store:
        return store.status().deleted_texts


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chance=st.randoms(use_true_random=False))
def test_any_history(layout: str, tmp_path_factory, chance: random.Random) -> None:
    """After edits, deletions and moves a store answers as one that never saw them."""
    root = tmp_path_factory.mktemp("life") / "store"
    Store.create(root, layout=layout, embedder="builtin").close()
    notes = folder_of(root)
    for number in range(chance.randint(3, 25)):
        write(notes / f"{number}.md", chance)
    synced(root)
    for _ in range(chance.randint(1, 3)):
        there = sorted(notes.glob("*.md"))
        for path in chance.sample(there, k=min(2, len(there))):
            match chance.randrange(4):
                case 0:
                    path.unlink()
                case 1:
                    path.rename(path.with_name(f"moved-{path.name}"))
                case 2:
                    write(path, chance)
                case _:
                    shutil.copy(path, path.with_name(f"copy-of-{path.name}"))
        synced(root)
    queries = [" ".join(chance.sample(WORDS, k=chance.randint(1, 3))) for _ in range(4)]
    assert answers(root, queries) == answers(made_anew(root, root.with_name("anew")), queries)
    assert deleted_texts(root) == 0


def write(path: Path, chance: random.Random) -> None:
    """A note of a few words, some of them often."""
    path.write_text(" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) + "\n")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", ["The agenda is empty{}\n", "The agenda of day {} is empty.\n"])
def test_ties_go_by_path(layout: str, text: str, tmp_path: Path) -> None:
    """Of many texts that score alike the first paths are shown, whichever came first."""
    root = tmp_path / "store"
    Store.create(root, layout=layout, embedder="builtin").close()
    names = [f"{number:03}.md" for number in range(150)]
    ends = [" " * (number % 3) + "!" * (number % 2) for number in range(150)]
    for some in (names[100:], names[:50], names[50:100]):
        for name in some:
            number = int(name[:3])
            (folder_of(root) / name).write_text(text.format(ends[number]))
        synced(root)
    for found in answers(root, ["agenda", '"agenda"'], k=3):
        scores = dict(found)
        assert list(scores) == sorted(scores, key=lambda path: (-scores[path], path))
        assert [path.rpartition("/")[2] for path in scores] == names[:3]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("old", "new"), [("stones/a.md", "a.md"), ("a.md", "stones/a.md")])
def test_a_file_moves_into_another_folder(layout: str, old: str, new: str, tmp_path: Path) -> None:
    """What a text belongs to is told by where it is now; that weighs in hybrid search."""
    root = tmp_path / "store"
    Store.create(root, layout=layout, embedder="builtin").close()
    folder = folder_of(root)
    (folder / "stones").mkdir()
    (folder / "stones" / "b.md").write_text("Basalt is a young stone.\n")
    (folder / old).write_text("Amber is old resin.\n")
    synced(root)
    (folder / old).rename(folder / new)
    synced(root)
    there = answers(root, ["amber resin", "stone"])
    assert there == answers(made_anew(root, tmp_path / "anew"), ["amber resin", "stone"])


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that counts as large: deleted texts may count for a while."""
    monkeypatch.setattr(fulltext_file, "EXACT_TEXTS", 100)
    root = tmp_path / "store"
    Store.create(root, layout="in-place", embedder="builtin").close()
    chance = random.Random(3)
    for number in range(300):
        write(root / f"{number:03}.md", chance)
    (root / "rare.md").write_text("A zyzzyva beside the brook.\n")
    (root / "zephyr.md").write_text("A zephyr.\n")
    synced(root)
    return root


def test_a_large_store_counts_few_deleted_texts(large: Path, tmp_path: Path, run) -> None:
    """It says how many, knows none of their words, and `sync --full` is rid of them."""
    for name in ("rare.md", "000.md"):
        (large / name).unlink()
    assert synced(large) == 0
    # A segment of which nothing is left is gone, too.
    counted = deleted_texts(large)
    assert counted in (1, 2)
    said = run("status", cwd=large).stderr
    assert f"keyword scores still count {counted} deleted passage" in said
    assert "run 'filestore sync --full'" in said
    with Store(large) as store:
        assert not store.search("zyzzyva", mode="keyword").hits
    assert synced(large, full=True) == counted
    assert deleted_texts(large) == 0
    queries = ["brook cedar", "zyzzyva", "heron"]
    assert answers(large, queries) == answers(made_anew(large, tmp_path / "anew"), queries)
    assert synced(large, full=True) == 0


def test_a_large_store_is_written_whole_from_one_in_a_hundred(large: Path) -> None:
    """Not the first deleted texts, but too many of them do it, in one commit or in several."""
    counted = []
    for number in range(8):
        (large / f"{number:03}.md").unlink()
        synced(large)
        counted.append(deleted_texts(large))
    # A merge of segments may leave some out before.
    assert max(counted) in (1, 2)
    assert 0 in counted
    for number in range(8, 12):
        (large / f"{number:03}.md").unlink()
    synced(large)
    assert deleted_texts(large) == 0


def test_a_store_that_shrinks_is_exact(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is small is asked of what is left."""
    monkeypatch.setattr(fulltext_file, "EXACT_TEXTS", 301)
    monkeypatch.setattr(fulltext_file, "MOST_DELETED", 0.5)
    (large / "000.md").unlink()
    synced(large)
    assert deleted_texts(large) == 0
