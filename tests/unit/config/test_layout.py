"""What must hold of where things lie: the truth in the root, what is derived in the sidecar."""

import os

import pytest

from filestore.config.layout import RECORD_NAME, Places
from filestore.core.paths import DOCUMENTS

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
    assert named - {"closed", "sidecar_name", "undo_name"} == TRUTH.keys() | DERIVED.keys()


def test_beside_documents_nothing_is_kept_but_in_the_sidecar():
    """The root is the tree; whatever a command keeps lies in the sidecar, wherever that is."""
    places = Places(root="/notes", sidecar="/notes/.filestore", tree=DOCUMENTS)
    assert not places.tree.is_written
    assert places.chunked == "/notes"
    assert places.settings == "/notes/filestore.toml"
    for attribute in (*DERIVED, "undo"):
        assert os.path.dirname(getattr(places, attribute)) == "/notes/.filestore"
    assert not Places(root="/notes", sidecar="/notes/.sidecar").tree.has_sections


def test_a_part_is_named_alike_wherever_the_sidecar_lies():
    """Findings name it relative to the root, so they are the same for everybody."""
    for sidecar in ("/notes/.filestore", "/elsewhere/of/mine"):
        beside = Places(root="/notes", sidecar=sidecar, tree=DOCUMENTS)
        apart = Places(root="/notes", sidecar=sidecar)
        assert (beside.sidecar_name, apart.sidecar_name) == (".filestore", ".sidecar")
        assert beside.part("lock") == ".filestore/lock"
        assert apart.part("lock") == ".sidecar/lock"
        assert (beside.part(""), apart.part("")) == (".filestore", ".sidecar")


def test_the_record_is_told_from_chunk_files_by_its_name():
    """The record of a resource is never taken for one of its chunks."""
    assert not RECORD_NAME.endswith(".md")
