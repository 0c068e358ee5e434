"""What a text is found by beside its own words."""

import pytest

from filestore.chunking import Section
from filestore.chunks import kept
from filestore.chunks.kept import Extracted
from filestore.core.paths import ChunkPath
from filestore.sidecar.file_rows import UNNAMED, entries, header_of

TABLE = "| Name | Office |\n|---|:-:|\n"
ROWS = [f"| name{n} | place{n} |\n" for n in range(4)]


def document(text: str, *cuts: int) -> list:
    """The entries of a document that is cut at some places."""
    ends = [*cuts, len(text)]
    made = Extracted(
        text=text,
        syntax="markdown",
        extractor="markdown/2",
        chunker="x",
        sections=[
            Section(start=start, end=end, headings=(), line=1, end_line=1, page=0)
            for start, end in zip([0, *cuts], ends, strict=True)
        ],
    )
    return list(entries(1, ChunkPath("a/staff.md"), kept.as_chunk(made), UNNAMED))


def test_a_section_that_goes_on_with_a_table_has_its_header() -> None:
    """Not one with a table of its own, nor the text behind it."""
    first, second = f"Staff\n\n{TABLE}{ROWS[0]}", f"{ROWS[1]}{ROWS[2]}"
    text = f"{first}{second}{ROWS[3]}\nA text.\n"
    at = len(first)
    found = document(text, at, at + len(second), len(text) - len("A text.\n"))
    assert [one.text.startswith("| Name | Office |\n| name") for one in found] == [
        False,
        True,
        True,
        False,
    ]
    assert found[3].text == "A text.\n"
    assert found[0].description == "a/staff.md"
    assert {one.description for one in found[1:]} == {""}


@pytest.mark.parametrize(
    "text",
    ["", "| a | b |\n", "| a | b |\n| c | d |\n| e | f |\n", "a | b\n--|--\nc | d\n", "|"],
)
def test_rows_without_a_rule_have_no_header(text: str) -> None:
    """What is no table is not taken for one."""
    assert header_of(text, 0, len(text)) == ""
