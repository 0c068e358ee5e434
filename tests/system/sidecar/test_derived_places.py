"""Whatever stands in place of a derived file: one sync puts it away and makes the file anew."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest


def _folder(path: Path) -> None:
    path.mkdir()


def _filled_folder(path: Path) -> None:
    path.mkdir()
    (path / "mine.txt").write_text("a person's own\n")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _file(path: Path) -> None:
    path.write_text("not what belongs here\n")


PLACES: Final = (
    "catalog.sqlite",
    "catalog.sqlite-wal",
    "clock",
    "embeddings.sqlite",
    "fulltext",
    "fulltext/.filestore-tmp-0011223344556677",
    "fulltext/part-*",
    "fulltext/part-*/meta.json",
    "fulltext/part-left",
    "fulltext/stamp.json",
    "quarantine",
    ".filestore-tmp-0011223344556677",
    "vectors-*.faiss",
)


@pytest.fixture
def stored(workspace: Any) -> Any:
    """A store with everything that a sync writes."""
    workspace.write("manual.md", "# Manual\n\nThe pump needs care.\n")
    workspace("add", "manual.md")
    return workspace


def _put_in_place_of(place: Path, plant: Callable[[Path], None]) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()
    plant(place)


def _named(workspace: Any, name: str) -> Path:
    """The one path that is there under a pattern, or the name itself."""
    found = [*workspace.sidecar.glob(name)]
    return found[0] if found else workspace.sidecar / name


@pytest.mark.parametrize("plant", [_folder, _filled_folder, _pipe, _file])
@pytest.mark.parametrize("name", PLACES)
def test_a_sync_puts_it_away(stored: Any, name: str, plant: Callable[[Path], None]) -> None:
    """It ends well, the store answers as before, and another sync has nothing to do."""
    _put_in_place_of(_named(stored, name), plant)
    stored.sync()
    assert stored.found("pump")
    stored.assert_settled()


@pytest.mark.parametrize("plant", [_folder, _filled_folder, _pipe])
@pytest.mark.parametrize("name", ["fulltext/stamp.json", "vectors-*.faiss", "catalog.sqlite"])
def test_a_sync_that_verified_puts_it_away(
    stored: Any, name: str, plant: Callable[[Path], None]
) -> None:
    """The same where a verification found it first, and its finding is mended."""
    _put_in_place_of(_named(stored, name), plant)
    stored("repair", "--level", "full", "--yes")
    assert stored.found("pump")
    stored.assert_settled()


@pytest.mark.parametrize("name", ["clock", "fulltext/stamp.json"])
def test_what_a_person_put_there_is_kept(stored: Any, name: str) -> None:
    """It goes into quarantine, and not away."""
    _put_in_place_of(stored.sidecar / name, _filled_folder)
    stored.sync()
    kept = [path.name for path in (stored.sidecar / "quarantine").rglob("*.txt")]
    assert kept == ["mine.txt"]


@pytest.mark.parametrize("plant", [_folder, _filled_folder, _pipe])
def test_nobody_writes_without_the_lock(stored: Any, plant: Callable[[Path], None]) -> None:
    """What stands in place of the lock is no lock: it is named, and nothing is written."""
    before = stored.truth()
    _put_in_place_of(stored.sidecar / "lock", plant)
    done = stored("sync", code=3)
    assert f"{stored.sidecar}/lock is" in done.stderr
    assert "  remove" in done.stderr
    assert stored.truth() == before
    _put_in_place_of(stored.sidecar / "lock", _file)
    stored.assert_settled()
