"""Exports and imports that are killed: no torn pack, a sound cache, and the next one completes."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy
import pytest

from filestore.embed.cache import EmbeddingCache
from filestore.embed.pack import Pack
from tests.conftest import CHECKOUT

VECTORS: Final = 12_000
DIMENSION: Final = 384


@pytest.fixture
def root(run: Any, store_folder: Path) -> Path:
    """A store with one note, and a cache that takes a moment to be read or written."""
    (store_folder / "chunked" / "note.md").write_text("The winter ferry leaves at seven.\n")
    assert run("sync", cwd=store_folder).code == 0
    found = numpy.random.default_rng(1).standard_normal((VECTORS, DIMENSION)).astype("<f4")
    found /= numpy.linalg.norm(found, axis=1, keepdims=True)
    chance = random.Random(1)
    with EmbeddingCache.open(str(store_folder / ".sidecar" / "embeddings.sqlite")) as cache:
        (name,) = cache.fingerprints()
        cache.put(name, [chance.randbytes(32) for _ in found], found)
    return store_folder


def duration_s(root: Path, *words: str) -> float:
    """How long a command takes that is left alone."""
    started = time.monotonic()
    assert command(root, *words).wait(timeout=120) == 0
    return time.monotonic() - started


def command(root: Path, *words: str) -> "subprocess.Popen[bytes]":
    """A command under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "filestore", "embeddings", *words],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed(root: Path, after_s: float, *words: str) -> bool:
    """Whether a command was still at it when it was killed."""
    process = command(root, *words)
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait(timeout=120) == -signal.SIGKILL


def whole(path: Path) -> str:
    """The digest of a pack that is whole."""
    with Pack.open(str(path)) as pack:
        pack.check()
        return pack.info.digest


def kill_exports(root: Path, times: int) -> None:
    """Kill exports over an earlier pack: it is there, or the new one; nothing else ever is."""
    folder = root.parent / "packs"
    folder.mkdir()
    pack = folder / "all.fspack"
    took_s = duration_s(root, "export", "--all", str(pack))
    large = whole(pack)
    duration_s(root, "export", str(folder / "small.fspack"))
    small = whole(folder / "small.fspack")
    chance = random.Random(7)
    for _ in range(times):
        shutil.copy(folder / "small.fspack", pack)
        killed(root, chance.uniform(0.3, 1.05) * took_s, "export", "--all", str(pack))
        assert whole(pack) in (small, large)
    left = [path for path in folder.iterdir() if path.suffix != ".fspack"]
    assert len(left) <= 1
    duration_s(root, "export", "--all", str(pack))
    assert whole(pack) == large
    assert {path.name for path in folder.iterdir()} == {"all.fspack", "small.fspack"}


def kill_imports(root: Path, times: int) -> None:
    """Kill imports into an empty cache: what is there is sound, and the next one adds the rest."""
    pack = root.parent / "all.fspack"
    duration_s(root, "export", "--all", str(pack))
    digest = whole(pack)
    sidecar = root / ".sidecar"
    shutil.rmtree(sidecar)
    took_s = duration_s(root, "import", str(pack))
    chance = random.Random(8)
    stopped = set()
    for _ in range(times):
        shutil.rmtree(sidecar)
        killed(root, chance.uniform(0.3, 1.05) * took_s, "import", str(pack))
        stopped.add(sound_rows(sidecar / "embeddings.sqlite"))
        duration_s(root, "import", str(pack))
        assert sound_rows(sidecar / "embeddings.sqlite") == VECTORS + 1
    duration_s(root, "export", "--all", str(pack))
    assert whole(pack) == digest
    # It was hit at work at least once, or the moments say nothing.
    assert times < 20 or stopped - {0, VECTORS + 1}


def sound_rows(path: Path) -> int:
    """How many vectors a cache has; all of them have to be sound."""
    if not path.exists():
        return 0
    with EmbeddingCache.open(str(path)) as cache:
        names = list(cache.fingerprints())
        assert all(cache.verify(name) == [] for name in names)
        return sum(cache.count(name) for name in names)


def test_killed_exports(root: Path) -> None:
    """Once; the exhaustive run kills thirty."""
    kill_exports(root, 1)


def test_killed_imports(root: Path) -> None:
    """Once; the exhaustive run kills thirty."""
    kill_imports(root, 1)


@pytest.mark.exhaustive
def test_many_killed_exports(root: Path) -> None:
    """Thirty."""
    kill_exports(root, 30)


@pytest.mark.exhaustive
def test_many_killed_imports(root: Path) -> None:
    """Thirty."""
    kill_imports(root, 30)
