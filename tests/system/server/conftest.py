"""Stores that are served, without a network: an event loop, named stores, and their routes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import filestore
from filestore.server.stores import Access, Caller, Stores

RENT = "The rent is paid on the third working day.\n"
GAS = "Gas is read off in March.\n"
PERSON = Caller(name="", writes=True, person=True)
AGENT = Caller(name="agent", writes=True, person=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The root of a store with two notes."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        store.put([RENT, GAS], into="notes", names=["rent", "gas"])
    return tmp_path / "kb"


@pytest.fixture
def stores(place: Path) -> Iterator[Stores]:
    """It alone, to be read and written."""
    with Stores.open([str(place)], Access(writes=True)) as opened:
        yield opened
