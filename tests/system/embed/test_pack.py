"""Packs: the same embeddings give the same bytes, and what is not whole is not taken for one."""

import hashlib
import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.errors import FilestoreError
from filestore.embed.cache import row_checksum, seed_of
from filestore.embed.pack import NotAPack, Pack, PackDamaged, PackNewer, Source, write
from tests.advice import all_words

MODELS = {"builtin/1:4": 4, "onnx/1:é:3": 3}
MAGIC = b"\x93FSPACK\n"


def unit(count: int, dimension: int, seed: int = 1) -> Any:
    """Vectors of length 1."""
    vectors = numpy.random.default_rng(seed).standard_normal((count, dimension)).astype("<f4")
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True).astype("<f4")


def rows(count: int, dimension: int, seed: int = 1) -> dict[bytes, bytes]:
    """Raw vectors by key."""
    chance = random.Random(seed)
    return {chance.randbytes(32): one.tobytes() for one in unit(count, dimension, seed)}


def packed(path: Path, models: dict[str, dict[bytes, bytes]], size: int = 2) -> bytes:
    """The bytes of a pack of these rows by fingerprint, given some at a time."""
    sources = []
    for name, vectors in models.items():
        keys = sorted(vectors)
        some = [keys[at : at + size] for at in range(0, len(keys), size)]
        batches = [(part, [vectors[key] for key in part]) for part in some]
        sources.append(Source(fingerprint=name, dimension=MODELS[name], batches=batches))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        write(descriptor, sources)
    finally:
        os.close(descriptor)
    return path.read_bytes()


def read(path: Path) -> dict[str, dict[bytes, bytes]]:
    """All that is in a pack, after it was checked."""
    with Pack.open(str(path)) as pack:
        pack.check()
        return {
            model.fingerprint: {
                key: vector.astype("<f4").tobytes()
                for keys, vectors in pack.blocks(model)
                for key, vector in zip(keys, vectors, strict=True)
            }
            for model in pack.models
        }


@pytest.fixture
def small() -> dict[str, dict[bytes, bytes]]:
    """Rows of two models."""
    return {name: rows(5, dimension) for name, dimension in MODELS.items()}


@given(counts=st.tuples(st.integers(0, 9), st.integers(0, 9)), size=st.integers(1, 9))
def test_what_is_packed_comes_out(
    tmp_path_factory: pytest.TempPathFactory, counts: tuple[int, int], size: int
) -> None:
    """Every vector comes back bit for bit, whatever the number at a time; no vectors, no pack."""
    path = tmp_path_factory.getbasetemp() / "round.fspack"
    every = dict(zip(MODELS, counts, strict=True))
    models = {name: rows(count, MODELS[name]) for name, count in every.items()}
    data = packed(path, models, size)
    assert packed(path, dict(reversed(models.items()))) == data
    if any(counts):
        assert read(path) == {name: found for name, found in models.items() if found}
    else:
        assert data == b""


def test_equal_packs_have_equal_digests(
    tmp_path: Path, small: dict[str, dict[bytes, bytes]]
) -> None:
    """The digest is that of the embeddings: another vector, another digest."""
    digests = set()
    for seed in (1, 1, 2):
        small["builtin/1:4"] = rows(5, 4, seed)
        packed(tmp_path / "some.fspack", small)
        with Pack.open(str(tmp_path / "some.fspack")) as pack:
            digests.add(pack.info.digest)
    assert len(digests) == 2


def test_another_text_changes_one_row(tmp_path: Path, small: dict[str, dict[bytes, bytes]]) -> None:
    """A pack with one text more has the rows of the one before, and one more between them."""
    before = packed(tmp_path / "some.fspack", small)
    small["builtin/1:4"] |= rows(1, 4, seed=3)
    after = packed(tmp_path / "some.fspack", small)
    row = 32 + 8 + 16
    assert len(after) == len(before) + row
    changed = [
        at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other
    ]
    head = 48 + 2 * 16 + sum(len(name.encode()) for name in small)
    first = next(at for at in changed if at >= head)
    place = head + (first - head) // row * row
    assert after[place + row :] == before[place:]


def test_signs_and_small_numbers_keep_their_bits(tmp_path: Path) -> None:
    """A negative zero and a number below the normal ones come back as they were."""
    odd = numpy.array([[1.0, -0.0, 1e-42, 0.0]], "<f4")
    models = {"builtin/1:4": {b"k" * 32: odd.tobytes()}}
    packed(tmp_path / "some.fspack", models)
    assert read(tmp_path / "some.fspack") == models


def test_rows_that_no_reader_takes_are_left_out(tmp_path: Path) -> None:
    """What somebody put into a cache does not spoil a pack: NaN, a zero, a key of another length,
    keys out of order."""
    nan, zero, good = numpy.full(4, numpy.nan, "<f4"), numpy.zeros(4, "<f4"), unit(1, 4)[0]
    keys = [b"a" * 32, b"b" * 32, b"c" * 31, b"d" * 32, b"c" * 32, b"d" * 32, b"e" * 32]
    raw = [one.tobytes() for one in (nan, zero, good, good, good, good, good)]
    path = tmp_path / "some.fspack"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    made = write(
        descriptor, [Source(fingerprint="builtin/1:4", dimension=4, batches=[(keys, raw)])]
    )
    os.close(descriptor)
    assert [one.vectors for one in made] == [2]
    assert list(read(path)["builtin/1:4"]) == [b"d" * 32, b"e" * 32]


def test_every_flipped_bit_is_found(tmp_path: Path, small: dict[str, dict[bytes, bytes]]) -> None:
    """Whichever bit of a pack is another one, the pack is refused."""
    path = tmp_path / "some.fspack"
    whole = packed(path, small)
    for place in range(len(whole)):
        for bit in range(8):
            data = bytearray(whole)
            data[place] ^= 1 << bit
            path.write_bytes(data)
            with pytest.raises((NotAPack, PackDamaged, PackNewer)):
                read(path)


def test_every_other_length_is_found(tmp_path: Path, small: dict[str, dict[bytes, bytes]]) -> None:
    """A pack that was cut anywhere, or has something behind it, is refused when it is opened."""
    path = tmp_path / "some.fspack"
    whole = packed(path, small)
    for data in (*(whole[:end] for end in range(len(whole))), whole + b"\0", whole + whole):
        path.write_bytes(data)
        with pytest.raises((NotAPack, PackDamaged)):
            Pack.open(str(path))


def row(name: str, key: bytes, vector: Any) -> bytes:
    """A row as a pack has it, its checksum right."""
    raw = numpy.asarray(vector, "<f4").tobytes()
    return key + row_checksum(seed_of(name), key, raw) + raw


def crafted(
    body: bytes, *said: tuple[bytes, int, int], version: int = 1, count: int | None = None
) -> bytes:
    """A pack whose digest is right, whatever it says: name, dimension and number of each model."""
    table = b"".join(
        struct.pack("<QII", number, dimension, len(name)) + name for name, dimension, number in said
    )
    head = struct.pack("<8sII", MAGIC, version, len(said) if count is None else count)
    return head + hashlib.sha256(body + head + table).digest() + table + body


NAME = "m"
GOOD = [1.0, 0.0]
ONE, TWO = row(NAME, b"1" * 32, GOOD), row(NAME, b"2" * 32, GOOD)
CRAFTED = {
    "more rows than there are": crafted(ONE, (b"m", 2, 2)),
    "fewer rows than there are": crafted(ONE + TWO, (b"m", 2, 1)),
    "2**60 rows": crafted(ONE, (b"m", 2, 2**60)),
    "all rows that a number can say": crafted(ONE, (b"m", 2, 2**64 - 1)),
    "vectors of 2**32 - 1 numbers": crafted(ONE, (b"m", 2**32 - 1, 1)),
    "vectors of no numbers": crafted(row(NAME, b"1" * 32, []), (b"m", 0, 1)),
    "another dimension": crafted(ONE, (b"m", 3, 1)),
    "no models": crafted(b""),
    "2**32 - 1 models": crafted(ONE, (b"m", 2, 1), count=2**32 - 1),
    "a model without rows": crafted(ONE, (b"a", 2, 0), (b"m", 2, 1)),
    "a model twice": crafted(ONE + ONE, (b"m", 2, 1), (b"m", 2, 1)),
    "models out of order": crafted(ONE + row("a", b"1" * 32, GOOD), (b"m", 2, 1), (b"a", 2, 1)),
    "no name": crafted(row("", b"1" * 32, GOOD), (b"", 2, 1)),
    "a name that is no text": crafted(ONE, (b"\xff", 2, 1)),
    "a name of two lines": crafted(row("a\nb", b"1" * 32, GOOD), (b"a\nb", 2, 1)),
    "a name that steers a terminal": crafted(row("\x1b[2J", b"1" * 32, GOOD), (b"\x1b[2J", 2, 1)),
    "a name that is longer than the file": crafted(ONE, (b"m" * 5_000, 2, 1)),
    "a key twice": crafted(ONE + ONE, (b"m", 2, 2)),
    "keys out of order": crafted(TWO + ONE, (b"m", 2, 2)),
    "the rows of another model": crafted(ONE, (b"n", 2, 1)),
    "NaN": crafted(row(NAME, b"1" * 32, [numpy.nan, 1]), (b"m", 2, 1)),
    "infinity": crafted(row(NAME, b"1" * 32, [numpy.inf, 1]), (b"m", 2, 1)),
    "a vector of length 2": crafted(row(NAME, b"1" * 32, [2, 0]), (b"m", 2, 1)),
    "a vector of zeros": crafted(row(NAME, b"1" * 32, [0, 0]), (b"m", 2, 1)),
    "a vector too long to be squared": crafted(row(NAME, b"1" * 32, [3e38, 3e38]), (b"m", 2, 1)),
    "version 0": crafted(ONE, (b"m", 2, 1), version=0),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_lie_with_a_right_digest_is_found(tmp_path: Path, what: str) -> None:
    """Whoever makes a file by hand gets no further than who damages one."""
    path = tmp_path / "some.fspack"
    path.write_bytes(crafted(ONE + TWO, (b"m", 2, 2)))
    assert len(read(path)["m"]) == 2
    path.write_bytes(CRAFTED[what])
    with pytest.raises(PackDamaged):
        read(path)


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    """A pack of a later version says which one, and what to do."""
    path = tmp_path / "some.fspack"
    path.write_bytes(crafted(ONE, (b"m", 2, 1), version=7))
    with pytest.raises(PackNewer, match="format 7, this version reads up to 1") as caught:
        Pack.open(str(path))
    assert "upgrade" in all_words(caught.value)


def test_a_file_that_changes_while_it_is_read_is_noticed(
    tmp_path: Path, small: dict[str, dict[bytes, bytes]]
) -> None:
    """What was checked is what is read afterwards, or an error: other rows, none, or a cut."""
    path = tmp_path / "some.fspack"
    packed(path, small)
    for change in (rows(5, 4, seed=9), {}):
        with Pack.open(str(path)) as pack:
            pack.check()
            model = pack.models[0]
            # In the same file, so that it stays the one that is open.
            packed(path, small | {"builtin/1:4": change})
            with pytest.raises(PackDamaged):
                list(pack.blocks(model))
        packed(path, small)


def test_keys_are_found_among_many(tmp_path: Path) -> None:
    """Each key that is there is found, and none that is not."""
    path = tmp_path / "some.fspack"
    many = rows(1_000, 4)
    packed(path, {"builtin/1:4": many}, size=300)
    with Pack.open(str(path)) as pack:
        (model,) = pack.models
        asked = [*many, *rows(100, 4, seed=2), b"\0" * 32, b"\xff" * 32]
        found = pack.find(model, asked)
    assert {key: vector.tobytes() for key, vector in found.items()} == many


@pytest.mark.parametrize("name", ["nowhere", "folder", "pipe", "text", "empty", "/dev/zero"])
def test_what_is_no_pack_is_refused_at_once(tmp_path: Path, name: str) -> None:
    """Nothing, a folder, a pipe, another file, a device: each is named, and none is waited for."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("Some words.\n")
    (tmp_path / "empty").touch()
    with pytest.raises(FilestoreError, match=name):
        Pack.open(str(tmp_path / name))


def test_a_sparse_file_of_any_size_costs_nothing(tmp_path: Path) -> None:
    """A file that says a tebibyte and has it, as a hole, is refused at its first row."""
    path = tmp_path / "some.fspack"
    number = 2**40 // 48
    head = crafted(b"", (b"m", 2, number))
    path.write_bytes(head)
    os.truncate(path, len(head) + number * 48)
    with Pack.open(str(path)) as pack, pytest.raises(PackDamaged, match="checksum"):
        pack.check()
