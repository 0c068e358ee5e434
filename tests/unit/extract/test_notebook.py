"""Notebooks become Markdown: what was written, in order, without what was printed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.chunking.blocks import split
from filestore.extract import ExtractionError
from filestore.extract.markdown import NotebookExtractor


def extract(*cells, **rest):
    notebook = {"cells": list(cells), "nbformat": 4, **rest}
    return NotebookExtractor().extract(json.dumps(notebook).encode(), name="a.ipynb")


def cell(kind, source, **rest):
    return {"cell_type": kind, "source": source, **rest}


def test_cells_are_markdown_and_fenced_code():
    """Text stays as it is, code is fenced with its language, outputs are left out."""
    document = extract(
        cell("markdown", ["# Peat\n", "Some *text*."]),
        cell("code", "print(1)\n", outputs=[{"text": ["secret"]}]),
        cell("raw", "left out"),
        cell("code", ""),
        metadata={"language_info": {"name": "python"}},
    )
    assert document.text == "# Peat\nSome *text*.\n\n```python\nprint(1)\n```\n"
    assert document.syntax == "markdown"
    assert document.title == "Peat"
    assert document.metadata == {"language": "python", "title": "Peat"}


def test_a_fence_in_the_code_does_not_end_the_cell():
    """Code that holds a fence is fenced with a longer one."""
    source = 'x = """\n```\n````\n"""'
    assert extract(cell("code", source)).text == f"`````\n{source}\n`````\n"


def test_worksheets_of_version_3_are_read():
    """Cells of old notebooks lie deeper and call their source input."""
    sheets = [{"cells": [cell("heading", "Top", level=2), {"cell_type": "code", "input": "x"}]}]
    assert extract(worksheets=sheets).text == "## Top\n\n```\nx\n```\n"


@pytest.mark.parametrize(
    "data", [b"[1]", b"{", b"[" * 100_000, b'{"cells": 3}', b'{"cells": [[]]}']
)
def test_what_is_no_notebook_is_refused(data):
    """JSON of another form, or none, is refused with a message."""
    with pytest.raises(ExtractionError, match=r"a\.ipynb"):
        NotebookExtractor().extract(data, name="a.ipynb")


@settings(deadline=None)
@given(sources=st.lists(st.text(st.characters(exclude_categories=("Cs",))), max_size=5))
def test_code_cells_stay_blocks(sources):
    """Whatever a code cell holds, no line of it opens a section."""
    kept = [f"# top\n{source}" for source in sources]
    if kept:
        document = extract(*(cell("code", source) for source in kept))
        pieces = split(document.text, syntax="markdown", budget=10, count_tokens=len)
        assert all(piece.headings == () for piece in pieces)
