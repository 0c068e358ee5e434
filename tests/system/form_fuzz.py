"""Damages `.ragmd` files and indexes of FAISS + JSON, and reads them: an error of ours, or sound.

Bytes are flipped, cut, repeated, moved; numbers and texts of the JSON become others; a file becomes
one of another index. What is read all the same must be sound: texts, finite vectors of the stated
dimension, and equal when it is written and read again. It runs in a child with little memory, so
that a crash or a greedy reading is seen.

    python tests/system/form_fuzz.py                  10,000 damages
    python tests/system/form_fuzz.py --count 1000000
    python tests/system/form_fuzz.py --only 4711      one of them, told in full
"""

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import faiss
import numpy as np

from filestore.exchange import document_map, mapped
from filestore.exchange.base import Chunk, Collection, Form, FormDamaged, Resource
from filestore.exchange.faiss_json import FaissJson
from filestore.exchange.ragmd import RagMd

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.advice import advised

COUNT: Final = 10_000
SEED: Final = 16
MEMORY_BYTES: Final = 256 * 1024 * 1024
"""More than the process has when it begins: a thousand times the largest file."""
LIMIT_S: Final = 2.0
"""The files have some kilobytes; only a reading that is much too slow is to be seen."""
DIMENSION: Final = 6

_NUMBERS: Final = (
    *(b"-1", b"0", b"1", b"7", b"2147483648", b"4294967295", b"9223372036854775807", b"1e999"),
    *(b"18446744073709551616", b"NaN", b"-Infinity", b"null", b"true", b"0.5", b"[]", b"{}", b'""'),
    *(b"9" * 400, b'"x"', b"1e-999", b"01", b"[" * 2_000, b'{"a":' * 200),
)
_TEXTS: Final = (
    *(b'""', b'"\\ud800"', b'"\\u0000"', b'"../../x"', b'"/etc/passwd"', b'"a\\n## Chunks\\n"'),
    *(b'"' + b"x" * 5_000 + b'"', b"7", b"null", b"[]", b"{}", b'"filestore"', b'"chunk1"'),
)
_WORDS: Final = tuple(
    value.to_bytes(8, "little", signed=value < 0)
    for value in (0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
)


def indexes(folder: Path) -> list[tuple[Form, Path]]:
    """Sound ones of each kind: ours, of other classes, and as other programs write them."""
    rows = np.random.default_rng(1).standard_normal((9, DIMENSION)).astype(np.float32)
    made: list[tuple[Form, Path]] = []
    for form, names in (
        (RagMd(), ["one.ragmd", "two.md"]),
        (FaissJson(), ["folder", "vectors-x.faiss"]),
    ):
        for name in names:
            form.write(str(folder / name), _collection(rows))
            made.append((form, folder / name))
    for number, description in enumerate(("IVF3,Flat", "IDMap,Flat")):
        path = folder / f"other-{number}"
        FaissJson().write(str(path), _collection(rows))
        index = faiss.index_factory(DIMENSION, description)
        index.train(np.vstack([rows] * 30))
        its_own = np.load(path / "embeddings.npy")
        if description.startswith("IDMap"):
            index.add_with_ids(its_own, np.arange(len(its_own)))
        else:
            index.add(its_own)
        faiss.write_index(index, str(path / "index.faiss"))
        made.append((FaissJson(), path))
    return made


def _collection(rows: Any) -> Collection:
    def chunk(resource: str, at: int, **vectors: Any) -> Chunk:
        frontmatter = {"headings": ["A | b", "```"], "source": f"docs/{at % 2}.md", "mine": [1, {}]}
        text = f"Text {at} of {resource}, 🜁.\n\n## Chunks\n```json\n"
        return Chunk(
            path=f"{resource}/chunk{at}.md",
            text=text,
            frontmatter=frontmatter,
            vectors=vectors["v"],
        )

    resources = [
        Resource(
            name=name,
            chunks=tuple(
                chunk(
                    name, at, v={part: rows[3 * number + at + part] for part in range(1 + at % 2)}
                )
                for at in range(3)
            ),
            record={"format": 1, "source": name, "documents": [{"source": "docs/0.md"}]},
        )
        for number, name in enumerate(("a", "b"))
    ]
    return Collection(resources=resources, model="m/1", dimension=DIMENSION)


def damage(data: bytes, chance: random.Random) -> bytes:
    """Some bytes, changed in one to four places."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if changed:
            chance.choice(_WAYS)(changed, chance)
    return bytes(changed)


def _flip(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] = chance.choice(b'\0\n\r`#|-:{}[]",=\xff')


def _cut(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    del data[at : at + chance.choice((1, 2, 7, 40, 400, len(data)))]


def _repeat(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    piece = data[at : at + chance.choice((1, 3, 50, 800))]
    data[at:at] = piece * chance.choice((1, 1, 2, 50))


def _move(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    piece = data[at : at + chance.choice((1, 30, 600))]
    del data[at : at + len(piece)]
    to = chance.randrange(len(data) + 1)
    data[to:to] = piece


def _word(data: bytearray, chance: random.Random) -> None:
    # Most numbers of an index stand at its beginning.
    at = chance.randrange(min(len(data), chance.choice((60, len(data)))))
    size = chance.choice((4, 8))
    data[at : at + size] = chance.choice(_WORDS)[:size]


def _value(pattern: bytes, others: tuple[bytes, ...]) -> Callable[[bytearray, random.Random], None]:
    def change(data: bytearray, chance: random.Random) -> None:
        found = list(re.finditer(pattern, bytes(data[:20_000])))
        if found:
            one = chance.choice(found)
            data[one.start() : one.end()] = chance.choice(others)

    return change


def _line(data: bytearray, chance: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    data[:] = b"\n".join(lines)


_WAYS: Final = (
    *(_flip, _set, _cut, _repeat, _move, _word, _line),
    _value(rb"-?\b[0-9]+\b", _NUMBERS),
    _value(rb'"[^"\\\n]*"', _TEXTS),
)


def check(form: Form, path: Path, folder: Path) -> str:
    """Read an index: what came of it. Raises whatever should not come of it."""
    try:
        found = form.read(str(path))
        resources = list(found)
    except FormDamaged as error:
        return "refused" if advised(error) else "refused without a word"
    for one in resources:
        for chunk in one.chunks:
            assert isinstance(chunk.text, str)
            for vector in chunk.vectors.values():
                assert vector.shape == (found.dimension,)
                assert np.isfinite(vector).all()
    again = folder / ("again.ragmd" if isinstance(form, RagMd) else "again")
    written = Collection(resources=resources, model=found.model, dimension=found.dimension)
    try:
        form.write(str(again), written)
    except FormDamaged:
        return "read, too deep to be written"
    assert _plain(form.read(str(again))) == _plain(resources), "it is not the same when read again"
    return "read, with notes" if found.left_out else "read"


def _plain(resources: Any) -> dict[str, Any]:
    """Resources as values that can be compared; two of one name are one."""
    found: dict[str, Any] = {}
    for one in resources:
        chunks = [
            (
                chunk.text,
                dict(chunk.frontmatter),
                {k: v.tobytes() for k, v in chunk.vectors.items()},
            )
            for chunk in one.chunks
        ]
        held = found.setdefault(one.name, [[], None])
        held[0] += chunks
        held[1] = held[1] or one.record
    return found


def one_damage(number: int, sound: list[tuple[Form, Path]], folder: Path) -> tuple[str, str]:
    """Damage one file of one index, and read that: what came of it, and where."""
    chance = random.Random(SEED * 1_000_003 + number)
    form, path = sound[number % len(sound)]
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    if path.suffix == ".faiss":
        files.append(path.with_name("metadata-x.json"))
    file = chance.choice(files)
    before = file.read_bytes()
    file.write_bytes(damage(before, chance))
    try:
        return check(form, path, folder), f"{path.name}: {file.name}"
    finally:
        file.write_bytes(before)


def run(count: int, only: int | None) -> int:
    """Damage so many times; says what came of them."""
    outcomes: Counter[str] = Counter()
    failed, slowest = 0, 0.0
    assert document_map
    assert mapped
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound = indexes(folder)
        assert {check(form, path, folder) for form, path in sound} <= {"read"}
        _limit()
        for number in range(count) if only is None else [only]:
            started = time.perf_counter()
            try:
                outcome, where = one_damage(number, sound, folder)
            except Exception:
                failed += 1
                print(f"damage {number}:\n{traceback.format_exc(limit=-4)}", flush=True)
                continue
            took = time.perf_counter() - started
            slowest = max(slowest, took)
            if took > LIMIT_S:
                failed += 1
                print(f"damage {number} took {took:.1f} s", flush=True)
            outcomes[outcome] += 1
            failed += outcome == "refused without a word"
            if only is not None:
                print(outcome, where)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{sum(outcomes.values()):,} damages: {dict(outcomes)}, slowest {slowest * 1000:.0f} ms,")
    print(f"peak memory {peak} MB; {failed:,} failed")
    return 1 if failed else 0


def _limit() -> None:
    """Allow so much memory more than there is in use."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))


def main() -> int:
    """Run in a child, so that a crash is an exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, help="default: %(default)s")
    parser.add_argument("--only", type=int, metavar="N", help="the damage of this number")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        return run(given.count, given.only)
    words = [sys.executable, __file__, "--here", "--count", str(given.count)]
    words += [] if given.only is None else ["--only", str(given.only)]
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root + os.pathsep + os.environ.get("PYTHONPATH", "")}
    return subprocess.run(words, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
