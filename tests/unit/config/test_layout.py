"""What must hold of where things lie: the truth in the root, what is derived in the sidecar."""

import os

import pytest

from filestore.config.layout import RECORD_NAME, Places

TRUTH = {"settings": "filestore.toml", "chunked": "chunked", "source": "source", "undo": ".undo"}
DERIVED = {
    "catalog": "catalog.sqlite",
    "embeddings": "embeddings.sqlite",
    "fulltext": "fulltext",
    "lock": "lock",
    "clock": "clock",
    "quarantine": "quarantine",
}


@pytest.mark.parametrize("sidecar", ["/somewhere/store/.sidecar", "/elsewhere/sidecar"])
def test_what_is_derived_lies_in_the_sidecar_wherever_that_is(sidecar):
    """Moving the sidecar moves all of it and nothing else."""
    places = Places(root="/somewhere/store", sidecar=sidecar)
    for attribute, name in TRUTH.items():
        assert getattr(places, attribute) == os.path.join("/somewhere/store", name)
    for attribute, name in DERIVED.items():
        assert getattr(places, attribute) == os.path.join(sidecar, name)


def test_every_place_is_listed_here():
    """A new place is decided upon: truth or derived."""
    named = {name for name, value in vars(Places).items() if isinstance(value, property)}
    assert named == TRUTH.keys() | DERIVED.keys()


def test_the_record_is_told_from_chunk_files_by_its_name():
    """The record of a resource is never taken for one of its chunks."""
    assert not RECORD_NAME.endswith(".md")
