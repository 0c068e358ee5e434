"""What must hold of a folder of qdrant-client's, on a real disk."""

import json
import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from filestore.core.errors import FilestoreError
from filestore.index import open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendMissing,
    BackendUnreachable,
    BackendUnusable,
    EmbedConfig,
    Item,
    digest,
)
from tests.advice import all_words
from tests.vectors import unit_rows

EMBED = EmbedConfig(fingerprint="a model/1", dimension=24)
COUNT = 60
FEW = 16
"""Items of a push that is killed: each is a transaction."""
PUSH = """
import sys
from tests.system.index.test_qdrant import items, opened
folder, count = sys.argv[1:]
with opened(folder) as backend:
    backend.delete(range(-20, -10))
    print("pushing", flush=True)
    backend.upsert(items(generation=2, count=int(count)))
    backend.save(owner="me", generation=2)
"""
HOLD = """
import sys
from tests.system.index.test_qdrant import opened
with opened(sys.argv[1]) as backend:
    print("open", flush=True)
    sys.stdin.readline()
"""
LOOK = """
import sys
from filestore.index.backend import BackendUnreachable
from tests.system.index.test_qdrant import backend
print("ready", flush=True)
while True:
    try:
        with backend(sys.argv[1]) as rows:
            rows.load()
    except BackendUnreachable:
        pass
"""
"""Look at a folder again and again."""
CHECKOUT = str(Path(__file__).parents[3])


def backend(folder, **options):
    chosen = {"path": "rows", **options}
    return open_backend(
        BackendChoice(kind="qdrant", options=chosen, folder=str(folder), environment={})
    )


def opened(folder, **options):
    made = backend(folder, **options)
    made.load()
    made.set_embed_config(EMBED)
    return made


def items(generation=1, count=COUNT):
    """Ids on both sides of zero; another generation changes half of them."""
    rows = unit_rows(count, seed=3)
    other = unit_rows(count, seed=generation)
    return [
        Item(
            id=key - 20,
            vector=other[key] if key % 2 else rows[key],
            doc_id=str(key),
            content_hash=f"h{generation if key % 2 else 0}-{key}",
            metadata={"files": [{"path": [f"{key}.md"], "odd": [str(key % 2)]}]},
        )
        for key in range(count)
    ]


def wanted(some):
    return {one.id: digest(one.vector.reshape(1, -1))[0] for one in some}


def started(code, folder):
    """Another process, once it has said its first word."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(FEW)],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline()
    return process


def end(process, number=signal.SIGKILL):
    process.send_signal(number)
    process.communicate()


def test_vectors_come_back_bit_for_bit(tmp_path: Path) -> None:
    """Also minus zero, the smallest number there is, and a length that is not quite 1."""
    rows = unit_rows(50)
    rows[0, :3] = (-0.0, 1e-45, 1e-38)
    rows[1] *= np.float32(1.0000001)
    some = [Item(id=key, vector=row, doc_id="d", content_hash="h") for key, row in enumerate(rows)]
    with opened(tmp_path) as first:
        first.upsert(some)
        first.save(owner="me", generation=1)
        assert first.digests() == wanted(some)
    with opened(tmp_path) as again:
        assert again.digests() == wanted(some)


def test_half_characters_are_replaced(tmp_path: Path) -> None:
    """A name that is no UTF-8 is held with a question mark, and found by itself."""
    row = unit_rows(1)[0]
    metadata = {"files": [{"path": ["caf\udce9"], "k\udce9y": ["a\0b"]}]}
    with opened(tmp_path) as rows:
        rows.upsert(
            [Item(id=1, vector=row, doc_id="d", content_hash="h", text="\ud800", metadata=metadata)]
        )
        where = (("path", ("caf\udce9",)), ("k\udce9y", ("a\0b",)))
        (hit,) = rows.query(row, where=where)
        assert hit.text == "?"
        assert hit.metadata == {"files": [{"path": ["caf?"], "k?y": ["a\0b"]}]}


def test_the_stamp_is_no_hit_and_no_document(tmp_path: Path) -> None:
    """Also where all that is held is farther from the query than nothing at all."""
    row = unit_rows(1)[0]
    with opened(tmp_path) as rows:
        rows.upsert([Item(id=7, vector=-row, doc_id="d", content_hash="h")])
        rows.save(owner="me", generation=1)
        rows.expect("me", 1)
        for top_k in (1, 2, None):
            assert [hit.id for hit in rows.query(row, top_k=top_k)] == [7]
        assert list(rows.digests()) == [7]
        assert list(rows.state.docs) == ["d"]


def test_a_folder_that_is_open_elsewhere_is_named(tmp_path: Path) -> None:
    """Who has it is another process; once that has ended, all is as before."""
    opened(tmp_path).close()
    process = started(HOLD, tmp_path)
    try:
        with (
            backend(tmp_path) as rows,
            pytest.raises(BackendUnreachable, match=r"another process has .*rows") as caught,
        ):
            rows.load()
        assert "keyword" in all_words(caught.value)
        assert isinstance(caught.value, ConnectionError)
        with pytest.raises(BackendUnreachable), backend(tmp_path) as rows:
            rows.clear()
    finally:
        end(process)
    with opened(tmp_path) as rows:
        assert rows.upsert(items()) == COUNT


def test_a_folder_that_cannot_be_is_out_of_reach(tmp_path: Path) -> None:
    """Like a server that is away: a search goes on without it."""
    (tmp_path / "file").touch()
    rows = backend(tmp_path, path="file/rows")
    with pytest.raises(BackendUnreachable, match="Not a directory") as caught:
        rows.load()
    assert rows.address() in caught.value.message
    assert "keyword" in all_words(caught.value)


def test_a_folder_is_waited_for_a_little(tmp_path: Path) -> None:
    """Another command that is about to end is no error."""
    opened(tmp_path).close()
    process = started(HOLD, tmp_path)
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()
    with opened(tmp_path) as rows:
        assert rows.upsert(items()) == COUNT
    process.communicate()


def test_what_is_written_stays_whoever_looks_meanwhile(tmp_path: Path) -> None:
    """The client mends files as it opens them, before it finds that another process has them."""
    opened(tmp_path).close()
    every = items()
    process = started(LOOK, tmp_path)
    try:
        for generation, item in enumerate(every[:8]):
            for _ in range(60):
                try:
                    rows = opened(tmp_path)
                    break
                except BackendUnreachable:
                    continue
            with rows:
                rows.upsert([item])
                rows.save(owner="me", generation=generation)
    finally:
        end(process)
    with opened(tmp_path) as rows:
        assert rows.digests() == wanted(every[:8])


def test_one_process_shares_a_folder(tmp_path: Path) -> None:
    """Two at once see the same; the first that closes takes nothing from the other."""
    query = unit_rows(1)[0]
    with opened(tmp_path) as one:
        with opened(tmp_path) as two:
            one.upsert(items())
            assert len(two.query(query)) == COUNT
        assert len(one.query(query)) == COUNT
        with opened(tmp_path) as two:
            two.clear()
            two.set_embed_config(EMBED)
            two.upsert(items(count=3))
        assert len(one.query(query)) == 3


def kill_while_pushing(folder: Path, chance: random.Random, longest_s: float) -> None:
    """Push in another process, killed at any moment; then push the same again, here."""
    process = started(PUSH, folder)
    pause_s = chance.random() * longest_s
    time.sleep(pause_s)  # the moment of the kill is what is tried, not waited for
    end(process)
    before, after = (items(generation, FEW) for generation in (1, 2))
    with opened(folder) as rows:
        stamp = rows.stamp()
        assert stamp is not None
        if stamp.generation == 2:
            assert rows.digests() == wanted(after)
        rows.delete(range(-20, -10))
        rows.upsert(after)
        rows.save(owner="me", generation=2)
        assert rows.digests() == wanted(after)
        assert {name: doc.content_hash for name, doc in rows.state.docs.items()} == {
            one.doc_id: one.content_hash for one in after
        }
        rows.delete([one.id for one in before])
        rows.upsert(before)
        rows.save(owner="me", generation=1)


def kill_often(folder: Path, times: int) -> None:
    with opened(folder) as rows:
        rows.upsert(items(count=FEW))
        rows.save(owner="me", generation=1)
    process = started(PUSH, folder)
    begun = time.monotonic()
    process.communicate()
    longest_s = time.monotonic() - begun
    chance = random.Random(times)
    with opened(folder) as rows:
        rows.save(owner="me", generation=1)
    for _ in range(times):
        kill_while_pushing(folder, chance, longest_s)


def test_a_push_that_is_killed_can_be_repeated(tmp_path: Path) -> None:
    """Whatever was under way: it opens, a stamp vouches for all, the same push makes it whole."""
    kill_often(tmp_path, 2)


@pytest.mark.exhaustive
def test_a_push_that_is_killed_often_can_be_repeated(tmp_path: Path) -> None:
    """The same, 15 times."""
    kill_often(tmp_path, 15)


def refused(folder):
    """The error of opening and using it; None where it works."""
    try:
        with backend(folder) as rows:
            rows.load()
            rows.query(unit_rows(1)[0], top_k=3)
            rows.digests()
    except FilestoreError as error:
        return error
    return None


def damage(place: Path, how: str) -> None:
    size = min(place.stat().st_size, 2**20)
    with place.open("r+b") as file:
        if how == "junk":
            file.write(random.Random(size).randbytes(size))
        else:
            file.truncate(size // 2 if how == "half" else 0)


def damage_and_clear(folder: Path, how: str, step: int) -> None:
    """Damage every so many file of a folder by itself, open it, clear it, and begin anew."""
    with opened(folder) as rows:
        rows.upsert(items())
        rows.save(owner="me", generation=1)
    shutil.copytree(folder / "rows", folder / "whole")
    names = sorted(path.relative_to(folder / "whole") for path in (folder / "whole").rglob("*"))
    files = [name for name in names if (folder / "whole" / name).is_file()]
    for name in files[::step]:
        shutil.rmtree(folder / "rows")
        shutil.copytree(folder / "whole", folder / "rows")
        damage(folder / "rows" / name, how)
        if error := refused(folder):
            assert isinstance(error, BackendUnusable), name
            assert "rows" in error.message
            assert "filestore sync" in all_words(error)
            assert error.message.isprintable()
        with backend(folder) as rows:
            rows.clear()
        with opened(folder) as rows:
            assert rows.upsert(items(count=5)) == 5
            assert rows.digests() == wanted(items(count=5))


def test_a_damaged_folder_is_named_and_can_be_cleared(tmp_path: Path) -> None:
    """Whichever file it is: an error that says what to do, or what verification will find; the
    process lives, and nothing is left of the damage after a new start."""
    damage_and_clear(tmp_path, "half", 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["empty", "half", "junk"])
def test_all_damage_is_named_and_can_be_cleared(tmp_path: Path, how: str) -> None:
    """The same for every file, in three ways."""
    damage_and_clear(tmp_path, how, 1)


class Planted:
    """A point that runs code when it is read."""

    def __reduce__(self):
        return os.mkdir, ("planted",)


def test_a_strangers_pickles_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """qdrant-client keeps points as pickles; a folder that came with a clone runs nothing."""
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path) as rows:
        rows.upsert(items(count=3))
    database = tmp_path / "rows" / "collection" / "filestore" / "storage.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        planted = pickle.dumps(Planted())
        connection.execute("UPDATE points SET point = ? WHERE rowid = 2", (planted,))
    with (
        backend(tmp_path) as rows,
        pytest.raises(BackendUnusable, match=r"would run posix\.mkdir"),
    ):
        rows.load()
    assert not (tmp_path / "planted").exists()


def test_a_strangers_other_collections_are_not_read(tmp_path: Path) -> None:
    """Whatever a folder lists beside ours: it is not opened, wherever its name leads."""
    opened(tmp_path).close()
    meta = tmp_path / "rows" / "meta.json"
    values = json.loads(meta.read_text())
    values["collections"]["../../elsewhere"] = values["collections"]["filestore"]
    meta.write_text(json.dumps(values))
    with (
        backend(tmp_path) as rows,
        pytest.raises(BackendUnusable, match="another collection"),
    ):
        rows.load()
    with pytest.raises(BackendUnusable, match="another collection"):
        backend(tmp_path).clear()
    assert meta.exists()
    assert not (tmp_path / "elsewhere").exists()


def test_a_collection_of_another_shape_is_left_alone(tmp_path: Path) -> None:
    """Another distance, or vectors with names: named, and not touched."""
    from qdrant_client import QdrantClient, models

    cosine = models.VectorParams(size=3, distance=models.Distance.COSINE)
    dot = models.VectorParams(size=3, distance=models.Distance.DOT)
    for vectors, found in ((cosine, "distance Cosine"), ({"title": dot}, "vectors named title")):
        shutil.rmtree(tmp_path / "rows", ignore_errors=True)
        with closing(QdrantClient(path=str(tmp_path / "rows"))) as client:
            client.create_collection("filestore", vectors_config=vectors)
        with backend(tmp_path) as rows, pytest.raises(BackendUnusable, match=found):
            rows.load()
        with closing(QdrantClient(path=str(tmp_path / "rows"))) as client:
            assert client.collection_exists("filestore")


@pytest.mark.parametrize(
    "options",
    [
        {"path": "rows"},
        {"url": "http://localhost"},
    ],
)
def test_a_missing_package_is_named(without_packages, options) -> None:
    """With the command that installs it, before anything is made."""
    without_packages("qdrant_client")
    with pytest.raises(BackendMissing, match="qdrant") as caught:
        open_backend(
            BackendChoice(kind="qdrant", options=options, folder="/nowhere", environment={})
        )
    assert "pip install qdrant-" in all_words(caught.value)
    assert isinstance(caught.value, ImportError)


def test_a_full_disk_is_named(small_disk: Path) -> None:
    """With what to do."""
    some = [replace(one, text="x" * 50_000) for one in items()]
    with (
        pytest.raises(BackendUnusable, match="rows") as caught,
        closing(opened(small_disk)) as rows,
    ):
        rows.upsert(some)
    assert "free space" in all_words(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The client writes as it opens; that is said, with what to do."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BackendUnusable, match="rows"):
            opened(tmp_path)
    finally:
        tmp_path.chmod(0o700)
