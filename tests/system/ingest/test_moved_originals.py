"""Originals around a store of chunk files under other paths, and chunk files of a person."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import filestore
from filestore import FilestoreError, RefusedError, Store
from filestore.history.backup_store import Originals
from tests.system.conftest import files_below

FILES = {
    "docs/rent.md": "# Rent\n\nPaid in March, see [gas](gas.md) and [[lease]].\n",
    "docs/gas.md": "# Gas\n\nThe gas [rent](rent.md#rent), [l](../lease.md).\n",
    "lease.md": "# Lease\n\nTwo years, [rent](docs/rent.md), ![p](docs/p.png).\n",
    "docs/p.png": "a picture",
}


@pytest.fixture(params=["tree", "flat"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A folder and a file as resources, in a git work tree, and two chunk files of a person."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with filestore.create(
        tmp_path / "file_index", layout=request.param, embedder="builtin"
    ) as made:
        made.add("docs")
        made.add("lease.md")
        own = Path(made.places.chunked) / ("own" if request.param == "tree" else "")
        own.mkdir(exist_ok=True)
        (own / "one.md").write_text("# One\n\n[two](two.md)\n")
        (own / "two.md").write_text("# Two\n\n[one](one.md)\n")
        made.sync()
        assert made.status().clean
        yield made


def truth(store: Store) -> dict[str, bytes]:
    """What a person has in the work tree."""
    found = files_below(Path(store.root).parent)
    derived = (".git/", "file_index/.sidecar/", "file_index/.undo/")
    return {path: data for path, data in found.items() if not path.startswith(derived)}


def test_what_was_written_in_originals_is_shown(store: Store, tmp_path: Path) -> None:
    """Also of files outside of the root; not of one that a stranger names in what was kept."""
    done = store.move("docs/rent.md", "docs/miete.md")
    (change,) = store.changes(done.undo, diff=True).changes
    assert "-The gas [rent](rent.md#rent), [l](../lease.md)." in str(change.diff)
    assert "+The gas [rent](miete.md#rent), [l](../lease.md)." in str(change.diff)
    far = tmp_path.parent / f"{tmp_path.name}.md"
    far.write_bytes((tmp_path / "docs/gas.md").read_bytes())
    kept = Path(store.places.undo) / str(done.undo) / "batch.json"
    kept.write_text(kept.read_text().replace("../docs/gas.md", f"../../{far.name}"))
    (change,) = store.changes(done.undo, diff=True).changes
    assert f"+++ ../../{far.name}\n(not kept" in str(change.diff)


@pytest.mark.parametrize(
    ("old", "new", "text", "sources"),
    [
        (
            "docs/rent.md",
            "docs/sub/miete.md",
            "[rent](docs/sub/miete.md), ![p](docs/p.png)",
            {"../docs", "../lease.md"},
        ),
        (
            "lease.md",
            "papers/lease.md",
            "[rent](../docs/rent.md), ![p](../docs/p.png)",
            {"../docs", "../papers/lease.md"},
        ),
        (
            "docs",
            "handbook",
            "[rent](handbook/rent.md), ![p](handbook/p.png)",
            {"../handbook", "../lease.md"},
        ),
    ],
)
def test_an_original_moves_and_is_re_ingested(
    store: Store, old: str, new: str, text: str, sources: set[str]
) -> None:
    """Links in originals lead on, the records name the new paths, one undo takes all of it back."""
    before = truth(store)
    store.plan_move(old, new)
    assert truth(store) == before
    done = store.move(old, new)
    top = Path(store.root).parent
    assert text in (top / (new if old == "lease.md" else "lease.md")).read_text()
    assert not (top / old).exists()
    assert store.status().clean
    assert not done.left
    assert {one["source"] for one in store.resources()} - {"", None} == sources
    assert store.undo(done.undo) is not None
    assert truth(store) == before
    assert store.status().clean
    assert not store.batches()[-1].is_all("after")


def test_a_chunk_file_of_a_person_moves_as_a_document(store: Store) -> None:
    """With its links and the ones to it; a generated one is refused with that reason."""
    before = truth(store)
    own = "own/" if store.settings.layout == "tree" else ""
    done = store.move(f"chunked/{own}one.md", f"chunked/{own}uno.md")
    two = Path(store.places.chunked) / own / "two.md"
    assert two.read_text() == "# Two\n\n[one](uno.md)\n"
    assert (done.links, store.status().clean) == (1, True)
    store.undo()
    assert truth(store) == before
    made = next(one["path"] for one in store.chunks("lease.md"))
    with pytest.raises(RefusedError, match="is generated"):
        store.move(made, f"chunked/{own}other.md")
    assert truth(store) == before


def test_what_cannot_be_moved_stays(store: Store) -> None:
    """Out of its resource, of the work tree, or into git's folder."""
    before = truth(store)
    for old, new in (
        ("docs/rent.md", "rent.md"),
        ("docs/p.png", "docs/q.png"),
        ("docs/rent.md", "file_index/rent.md"),
        ("lease.md", "../lease.md"),
        ("docs/rent.md", "docs/.git/x.md"),
        ("docs/rent.md", "docs/gas.md"),
        ("docs/rent.md", ".git/x.md"),
        ("file_index/filestore.toml", "x.toml"),
        (".git/config", "config.md"),
    ):
        for act in (store.plan_move, store.move):
            with pytest.raises(FilestoreError):
                act(old, new)
            assert truth(store) == before, (old, new)


def test_a_record_reaches_no_file_around_that_the_store_may_not_look_at(store: Store) -> None:
    """A made-up change of a file out of the work tree, or of what is no note, is refused."""
    done = store.move("docs/rent.md", "docs/miete.md")
    assert done.undo is not None
    record = Path(store.places.undo) / done.undo / "batch.json"
    good = record.read_text()
    before = truth(store)
    for path in ("../../rent.md", "../.git/rent.md", "../docs/rent.py", "../../../etc/rent.md"):
        record.write_text(good.replace("../docs/miete.md", path))
        with pytest.raises(FilestoreError):
            store.undo(done.undo)
        assert truth(store) == before
    record.write_text(good)
    with Originals.open(store.places.undo) as kept:
        assert kept.batch(done.undo).entries
    assert store.undo(done.undo) is not None


@pytest.mark.parametrize("plans", [True, False], ids=["planned", "done"])
def test_a_program_moves_no_original(store: Store, plans: bool) -> None:
    """What lies outside of the store people change; a chunk file of theirs it moves."""
    before = truth(store)
    own = next(path for path in before if path.endswith("one.md")).removeprefix("file_index/")
    with Store.open(store.root, for_programs=True) as program:
        move = program.plan_move if plans else program.move
        for path, new in (("docs/rent.md", "docs/miete.md"), (own, "../one.md")):
            with pytest.raises(FilestoreError) as refused:
                move(path, new)
            assert "outside of the" in refused.value.message
            assert "ask the person" in refused.value.message
        assert truth(store) == before
        move(own, own.replace("one.md", "other.md"))
