"""Files whose names are not UTF-8, and texts with half characters, of every kind that is read."""

import os
from pathlib import Path

import pytest

import filestore
from filestore import extract
from filestore.browse import look_at_folder

pytestmark = pytest.mark.safety

ODD = b"q\xfe"
CONTENTS = {
    "words": b"hello words\n",
    "other bytes": b"h\xff\xfeello words \xed\xa0\x80\n",
    "half characters": b'{"cells": [{"cell_type": "markdown", "metadata": {}, "source": '
    b'["# T \\ud800 x"]}], "metadata": {"title": "\\ud800"}, "nbformat": 4, "a": "\\udcff"}\n',
}
"""What each file holds, which for most kinds is nothing of theirs."""


def suffixes() -> list[str]:
    """Every suffix that an extractor is there for."""
    return sorted(suffix for _, ends in extract._FAMILY for suffix in ends.split())


@pytest.mark.parametrize("content", CONTENTS)
def test_no_name_and_no_content_stops_the_sync(tmp_path: Path, content: str) -> None:
    """Each file is indexed or has its finding, and the look before counts it."""
    root = tmp_path / "notes"
    (root / os.fsdecode(ODD)).mkdir(parents=True)
    for suffix in suffixes():
        for folder in (root, root / os.fsdecode(ODD)):
            (folder / os.fsdecode(ODD + suffix.encode())).write_bytes(CONTENTS[content])
    expected = 2 * len(suffixes())
    assert look_at_folder(os.fspath(root)).documents == expected
    with filestore.create(root, layout="in-place", embedder="builtin") as store:
        crashed = [one for one in store.sync().remaining if "crashed" in one.detail]
        assert not crashed
        assert not [one for one in store.verify(level="full").findings if one.code == "untracked"]
        assert store.search("hello words" if content != "half characters" else "T x", k=3)
