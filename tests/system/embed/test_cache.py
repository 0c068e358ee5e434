"""The embeddings on a real disk: kept, checked, damaged, salvaged."""

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.hashing import embedding_key
from filestore.embed.cache import (
    EmbeddingCache,
    EmbeddingsBusy,
    EmbeddingsDamaged,
    EmbeddingsMissing,
    EmbeddingsNewer,
)
from tests.advice import all_words

MODEL = "builtin/1:384"
GARBAGE = {
    "text": b"not a database " * 100,
    "one byte": b"x",
    "noise": random.Random(0).randbytes(50_000),
    "zeros": bytes(50_000),
}


def some_keys(count: int) -> list[bytes]:
    return [embedding_key(f"text {number}") for number in range(count)]


def some_vectors(count: int, dimension: int = 384) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((count, dimension)).astype(np.float32)


def filled(path: Path, count: int) -> tuple[list[bytes], np.ndarray]:
    keys, vectors = some_keys(count), some_vectors(count)
    with EmbeddingCache.open(str(path)) as cache:
        cache.put(MODEL, keys, vectors)
    return keys, vectors


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)


def flip_vector(path: Path, vector: np.ndarray) -> None:
    flip(path, path.read_bytes().index(vector.astype("<f4").tobytes()) + 100)


def test_what_is_put_is_got_bit_for_bit(tmp_path: Path) -> None:
    """Vectors come back exactly, in the order asked, also after reopening and from a reader."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 1_200)
    order = random.Random(1).sample(range(1_200), 1_200)
    for read_only in (False, True):
        with EmbeddingCache.open(str(path), read_only=read_only) as cache:
            got, found = cache.get(MODEL, [keys[place] for place in order])
            assert found.all()
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, vectors[order])
            assert cache.count(MODEL) == 1_200
            assert cache.fingerprints() == {MODEL: 384}


def test_absent_and_repeated_keys(tmp_path: Path) -> None:
    """A key without a row is said to be absent and is zero; a repeated key is filled each time."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 3)
    unknown = embedding_key("unknown")
    with EmbeddingCache.open(str(path)) as cache:
        got, found = cache.get(MODEL, [keys[2], unknown, keys[2]])
        assert found.tolist() == [True, False, True]
        np.testing.assert_array_equal(got, np.stack([vectors[2], 0 * vectors[0], vectors[2]]))
        assert cache.has(MODEL, [*keys, unknown]) == set(keys)
        assert cache.damaged == 0


def test_models_do_not_mix(tmp_path: Path) -> None:
    """The same key under another model is another row; an unknown model has none."""
    keys, vectors = some_keys(2), some_vectors(2)
    with EmbeddingCache.open(str(tmp_path / "e.sqlite")) as cache:
        cache.put("one", keys, vectors)
        cache.put("two", keys[:1], some_vectors(1, 16))
        assert cache.fingerprints() == {"one": 384, "two": 16}
        assert cache.has("two", keys) == {keys[0]}
        assert cache.get("two", keys)[0].shape == (2, 16)
        assert cache.has("three", keys) == set()
        assert cache.count("three") == 0
        assert not cache.get("three", keys)[1].any()
        np.testing.assert_array_equal(cache.get("one", keys)[0], vectors)


def test_putting_again_changes_nothing(tmp_path: Path) -> None:
    """A second put writes no row, and the first vector stays."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 10)
    with EmbeddingCache.open(str(path)) as cache:
        assert cache.put(MODEL, keys, -vectors) == 0
        np.testing.assert_array_equal(cache.get(MODEL, keys)[0], vectors)
        assert cache.put(MODEL, [], some_vectors(0)) == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(-5, 5)), max_size=12))
def test_put_then_get_is_the_first_value(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    """Whatever is put in whatever order, get returns the first vector of each key."""
    path = tmp_path_factory.mktemp("cache") / "e.sqlite"
    first: dict[bytes, int] = {}
    with EmbeddingCache.open(str(path)) as cache:
        for number, value in rows:
            key = embedding_key(str(number))
            cache.put("m", [key], np.full((1, 4), value, dtype=np.float32))
            first.setdefault(key, value)
        got, found = cache.get("m", list(first))
        assert found.all()
        assert [row[0] for row in got.tolist()] == list(first.values())


def test_rows_stream_in_key_order(tmp_path: Path) -> None:
    """All rows of a model come sorted by key, as raw float32."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 50)
    with EmbeddingCache.open(str(path)) as cache:
        rows = list(cache.rows(MODEL))
    assert [key for key, _ in rows] == sorted(keys)
    assert dict(rows)[keys[9]] == vectors[9].tobytes()


@pytest.mark.parametrize(
    "vectors",
    [some_vectors(3), some_vectors(2, 16), some_vectors(2).ravel(), some_vectors(2) * np.nan],
    ids=["too many", "other dimension", "flat", "not finite"],
)
def test_vectors_that_do_not_fit_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    """Vectors that do not fit the keys or the model are refused, and nothing is written."""
    path = tmp_path / "e.sqlite"
    filled(path, 1)
    with EmbeddingCache.open(str(path)) as cache:
        with pytest.raises(ValueError, match=r"keys|dimension|finite"):
            cache.put(MODEL, some_keys(2), vectors)
        assert cache.count(MODEL) == 1


def test_a_flipped_bit_is_absent_reported_and_mended(tmp_path: Path) -> None:
    """A row with one flipped bit is not given out, is named by verify, and put mends it."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 30)
    flip_vector(path, vectors[11])
    with EmbeddingCache.open(str(path)) as cache:
        _, found = cache.get(MODEL, keys)
        assert [keys[i] for i in np.flatnonzero(~found)] == [keys[11]] == cache.verify(MODEL)
        assert cache.damaged == 1
        assert len(list(cache.rows(MODEL))) == 29
        assert cache.put(MODEL, keys, vectors) == 1
        assert cache.damaged == 0
        assert cache.verify(MODEL) == []
        np.testing.assert_array_equal(cache.get(MODEL, keys)[0], vectors)


def test_a_damaged_model_record_is_not_trusted(tmp_path: Path) -> None:
    """A model whose recorded dimension changed is damage, and its rows can still be salvaged."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 5)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE models SET dimension = 383")
    connection.close()
    with EmbeddingCache.open(str(path)) as cache, pytest.raises(EmbeddingsDamaged):
        cache.get(MODEL, keys)
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        assert cache.salvage(str(path)) == 5
        np.testing.assert_array_equal(cache.get(MODEL, keys)[0], vectors)


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_is_no_database_is_damage(tmp_path: Path, content: bytes) -> None:
    """Garbage in place of the file is named as damage, stays as it is, and salvages nothing."""
    path = tmp_path / "e.sqlite"
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(EmbeddingsDamaged) as caught:
            EmbeddingCache.open(str(path), read_only=read_only)
        assert "sync" in all_words(caught.value)
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        assert cache.salvage(str(path)) == 0
    assert path.read_bytes() == content


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    """A database that is not ours is refused without a byte of it changed."""
    path = tmp_path / "e.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(EmbeddingsDamaged):
        EmbeddingCache.open(str(path))
    assert path.read_bytes() == before


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    """A file from a later version is refused with a way out."""
    path = tmp_path / "e.sqlite"
    filled(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(EmbeddingsNewer, match="format 9") as caught:
        EmbeddingCache.open(str(path))
    assert "upgrade" in all_words(caught.value)


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """A reader of a file that is not there says so and does not make one."""
    with pytest.raises(EmbeddingsMissing):
        EmbeddingCache.open(str(tmp_path / "e.sqlite"), read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_not_utf_8_or_look_like_options(tmp_path: Path) -> None:
    """The file may lie under any name."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9?mode=ro#%41.sqlite")
    with EmbeddingCache.open(path) as cache:
        cache.put("m", some_keys(1), some_vectors(1))
    assert os.path.exists(path)


def test_an_interrupted_put_leaves_what_was(tmp_path: Path) -> None:
    """A process killed inside a put leaves the rows of the puts before it, all sound."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 20)
    program = (
        "import os, sys, numpy as np; from filestore.embed import cache as c\n"
        "cache = c.EmbeddingCache.open(sys.argv[1])\n"
        "with c._transaction(cache._connection):\n"
        "    model = cache._model_to_write('builtin/1:384', 384)\n"
        "    cache._insert(model, [(os.urandom(32), bytes(1536)) for _ in range(30000)])\n"
        "    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 9
    with EmbeddingCache.open(str(path)) as cache:
        assert cache.count(MODEL) == 20
        assert cache.verify(MODEL) == []
        np.testing.assert_array_equal(cache.get(MODEL, keys)[0], vectors)


def test_a_reader_is_not_held_up_by_a_writer(tmp_path: Path) -> None:
    """While a writer is in a transaction, a reader sees what was committed."""
    path = tmp_path / "e.sqlite"
    keys, _ = filled(path, 5)
    with EmbeddingCache.open(str(path)) as writer:
        writer._connection.execute("BEGIN IMMEDIATE")
        with EmbeddingCache.open(str(path), read_only=True) as reader:
            assert reader.has(MODEL, keys) == set(keys)
        writer._connection.execute("ROLLBACK")


def test_a_locked_file_is_named_as_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer that waits in vain is told to wait, not that something is damaged."""
    monkeypatch.setattr("filestore.embed.cache._BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "e.sqlite"
    filled(path, 1)
    with EmbeddingCache.open(str(path)) as writer, EmbeddingCache.open(str(path)) as second:
        writer._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(EmbeddingsBusy, match="locked"):
            second.put(MODEL, some_keys(2), some_vectors(2))
        writer._connection.execute("ROLLBACK")


@pytest.mark.parametrize("seed", range(6))
def test_salvage_keeps_sound_rows_of_an_overwritten_file(tmp_path: Path, seed: int) -> None:
    """After random pages were overwritten, most rows are kept, each with its exact vector."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 3_000)
    data = bytearray(path.read_bytes())
    noise = random.Random(seed)
    first_leaf = data.index(vectors[0].tobytes())
    for _ in range(5):
        offset = noise.randrange(len(data) // 2, len(data) - 16_384)
        data[offset : offset + 16_384] = noise.randbytes(16_384)
    path.write_bytes(data)
    assert first_leaf > 0
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        kept = cache.salvage(str(path))
        got, found = cache.get(MODEL, keys)
        assert kept == int(found.sum()) > 2_500
        np.testing.assert_array_equal(got[found], vectors[found])
        assert cache.verify(MODEL) == []
    assert path.read_bytes() == data


def test_salvage_of_a_truncated_file(tmp_path: Path) -> None:
    """A file cut in the middle yields the rows before the cut."""
    path = tmp_path / "e.sqlite"
    keys, vectors = filled(path, 2_000)
    os.truncate(path, path.stat().st_size // 2)
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        assert cache.salvage(str(path)) > 600
        got, found = cache.get(MODEL, keys)
        np.testing.assert_array_equal(got[found], vectors[found])


def test_salvage_with_the_models_gone(tmp_path: Path) -> None:
    """Rows of a model that the file no longer names are kept when the caller names it."""
    path = tmp_path / "e.sqlite"
    filled(path, 40)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE models")
    connection.close()
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        assert cache.salvage(str(path)) == 0
        assert cache.salvage(str(path), fingerprints=["other", MODEL]) == 40
        assert cache.salvage(str(path), fingerprints=["other", MODEL]) == 0
        assert cache.fingerprints() == {MODEL: 384}


def test_salvage_reads_the_log_of_a_killed_writer(tmp_path: Path) -> None:
    """Rows that are only in the write-ahead log yet are kept too."""
    path = tmp_path / "e.sqlite"
    program = (
        "import os, sys, numpy as np; from filestore.embed.cache import EmbeddingCache\n"
        "cache = EmbeddingCache.open(sys.argv[1])\n"
        "cache.put('m', [bytes([i]) * 32 for i in range(9)], np.ones((9, 8), np.float32))\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 9
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        assert cache.salvage(str(path)) == 9


def test_salvage_of_nothing(tmp_path: Path) -> None:
    """A path that is not there, a folder or an empty file yields no rows and no error."""
    (tmp_path / "empty").touch()
    with EmbeddingCache.open(str(tmp_path / "new.sqlite")) as cache:
        for name in ("absent", ".", "empty"):
            assert cache.salvage(str(tmp_path / name)) == 0


def test_asking_what_is_there_loads_no_numpy(tmp_path: Path) -> None:
    """Opening, counting and asking for keys work without numpy."""
    path = tmp_path / "e.sqlite"
    filled(path, 1)
    program = (
        "import sys; from filestore.embed.cache import EmbeddingCache\n"
        "cache = EmbeddingCache.open(sys.argv[1])\n"
        "assert cache.count('builtin/1:384') == 1\n"
        "cache.has('builtin/1:384', [bytes(32)]); cache.verify('builtin/1:384')\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 0
