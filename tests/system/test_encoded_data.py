"""A picture that stands in a note as text is neither embedded, nor found, nor shown."""

import base64
import random
from typing import Any

import pytest

import filestore

_PICTURE = base64.b64encode(random.Random(3).randbytes(40_000)).decode()
_NOTE = (
    "# Hike\n\nWe met an otter.\n\n![a bridge of stone](data:image/png;base64,{0})\n\n"
    "```\n{1}\n```\n\nThen we had soup.\n"
)


@pytest.mark.parametrize("layout", ["in-place", "tree"])
def test_a_picture_as_text_takes_no_place(new_workspace: Any, layout: str) -> None:
    """Few sections; the words around it are found on their lines; what was added comes back."""
    lines = "\n".join(_PICTURE[at : at + 76] for at in range(0, 8_000, 76))
    text = _NOTE.format(_PICTURE, lines)
    work = new_workspace(layout="tree", init=layout == "tree")
    work.write("notes/hike.md", text)
    root = work.folder / "notes"
    if layout == "tree":
        work("add", "notes/hike.md")
        assert work("reconstruct", "hike.md").stdout == text
        root = work.folder
    else:
        work("init", "--in-place", "notes")
    (item,) = work.json("ls", cwd=root)["items"]
    assert item["chunks"] <= 2
    for query, line in (("otter", 3), ("bridge of stone", 5), ("soup", text.count("\n"))):
        (hit, *_) = work.json("search", query, cwd=root)["hits"]
        assert hit["line"] == line
        assert _PICTURE[:20] not in hit["excerpt"]
    assert not work.json("search", _PICTURE[200:240], "--mode", "keyword", cwd=root, code=1)["hits"]
    assert work.json("verify", "--level", "full", cwd=root)["clean"]
    with filestore.open(root) as store:
        assert store.status().clean
