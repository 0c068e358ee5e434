"""What chunks repeat is left out of the text again, whatever was cut, and only where it is sure."""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filestore.chunking.blocks import split
from filestore.chunks import chunk_file
from filestore.chunks.reading_order import Written, own_texts, reconstruct
from filestore.core.paths import StorePath

WORDS = st.sampled_from(["row", "a pump", "`x`", "", "**b** c", "-", "1,364", "e.g. this", "漢字"])
ROWS = st.lists(st.lists(WORDS, min_size=2, max_size=2), max_size=12)
TABLES = ROWS.map(
    lambda rows: "| Name | Value |\n|---|:-:|\n" + "".join(f"| {a} | {b} |\n" for a, b in rows)
)
CODE = st.sampled_from(["x = 1\n", "\n", "    if y:\n", "# no heading\n", "| a | b |\n", "`` z\n"])
FENCES = st.builds(
    lambda mark, lines, closing: f"{mark}py\n{''.join(lines)}{mark if closing else ''}\n",
    st.sampled_from(["```", "~~~", "`````"]),
    st.lists(CODE, max_size=20),
    st.booleans(),
)
SENTENCES = st.lists(
    st.sampled_from(["The lease ends in May. ", "Pay within six weeks.\n", "Why? ", "No. 5 is, "]),
    max_size=12,
).map(lambda some: "".join(some) + "\n")
ITEMS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["- item", "1. first\n", "* two\nlines", "> q"])),
    max_size=14,
).map(lambda some: "".join(f"{'  ' * depth}{words}\n" for depth, words in some))
NESTED = st.one_of(TABLES, FENCES).flatmap(
    lambda block: st.sampled_from(["- above\n\n", "> ", "1. one\n"]).map(
        lambda mark: (
            f"> {block.replace(chr(10), chr(10) + '> ')}\n"
            if mark == "> "
            else mark + "".join(f"   {line}\n" for line in block.split("\n"))
        )
    )
)
BLOCKS = st.one_of(TABLES, FENCES, SENTENCES, ITEMS, NESTED, st.just("## Section\n"))
DOCUMENTS = st.lists(BLOCKS, max_size=6).map("\n".join)


def chunks_of(text: str, budget: int) -> list[tuple[StorePath, chunk_file.Chunk]]:
    """The chunk files of a text, read back from their bytes."""
    files = []
    for number, piece in enumerate(split(text, syntax="markdown", budget=budget), 1):
        body = f"{piece.before}{text[piece.start : piece.end]}{piece.after}"
        data = chunk_file.generate(body=body, repeats=(len(piece.before), len(piece.after)))
        files.append((StorePath(f"chunked/a.md/chunk{number}.md"), chunk_file.parse(data)))
    return files


def edited(
    file: tuple[StorePath, chunk_file.Chunk], body: str
) -> tuple[StorePath, chunk_file.Chunk]:
    """A chunk file as a person left it."""
    path, chunk = file
    return path, chunk_file.parse(chunk_file.generate(body=body, repeats=chunk.repeats))


TABLE = "| Name | Value |\n|---|---|\n" + "".join(f"| row {n} | value {n} |\n" for n in range(12))
LISTING = "```py\n" + "".join(f"x{n} = {n}\n" for n in range(30)) + "```\n"


@settings(deadline=None, max_examples=300)
@given(text=DOCUMENTS, budget=st.integers(4, 60), returns=st.booleans())
@example(text=TABLE, budget=40, returns=False)
@example(text=LISTING, budget=40, returns=True)
@example(text=LISTING + "\n" + LISTING, budget=40, returns=False)
def test_a_document_comes_back_whatever_is_cut(text: str, budget: int, returns: bool) -> None:
    """Every byte of it, also where its lines end in carriage returns."""
    text = text.replace("\n", "\r\n") if returns else text
    done = reconstruct(chunks_of(text, budget))
    assert done.text == text
    assert done.warnings == ()


@settings(deadline=None)
@given(text=DOCUMENTS, budget=st.integers(4, 60))
def test_a_document_comes_back_from_files_with_other_line_ends(text: str, budget: int) -> None:
    """A tool that gives each line of each file a carriage return loses nothing."""
    found = [
        Written(None, chunk.body.replace("\n", "\r\n"), 0, chunk.repeats)
        for _, chunk in chunks_of(text, budget)
    ]
    assert "".join(own_texts(found)) == text.replace("\n", "\r\n")


@pytest.mark.parametrize("text", [TABLE, LISTING, "- Rent\n" + "  - due on the first of May\n" * 9])
def test_each_piece_can_be_read_alone(text: str) -> None:
    """A table has its header in each, a listing its fence, a list the item that it is under."""
    opening = text.split("|---")[0].splitlines()[0]
    found = [chunk.body for _, chunk in chunks_of(text, 40)]
    assert len(found) > 2
    assert all(body.startswith(opening) for body in found)
    assert all(body.count("```") % 2 == 0 for body in found)


@settings(deadline=None, max_examples=300)
@given(data=st.data(), text=DOCUMENTS, budget=st.integers(4, 60), line=st.text(max_size=9))
def test_no_line_of_a_person_s_is_lost(data: st.DataObject, text: str, budget: int, line: str):
    """Wherever a line is put into a chunk, it is in the text, and so is the document."""
    files = chunks_of(text, budget)
    if not files:
        return
    number = data.draw(st.integers(0, len(files) - 1))
    lines = files[number][1].body.split("\n")
    at = data.draw(st.integers(0, len(lines)))
    body = "\n".join([*lines[:at], f"MINE {line}".replace("\n", " "), *lines[at:]])
    files[number] = edited(files[number], body)
    joined = reconstruct(files).text
    assert "MINE" in joined
    assert not Counter("".join(text.split())) - Counter(joined)


def test_a_header_that_was_corrected_stays_with_its_chunk() -> None:
    """Whoever changes the header in one chunk has written something."""
    files = chunks_of(TABLE, 40)
    files[1] = edited(files[1], files[1][1].body.replace("Name", "Title"))
    done = reconstruct(files)
    assert "| Title | Value |" in done.text
    assert [one.split(":")[0] for one in done.warnings] == ["chunked/a.md/chunk2.md"]


def test_what_stood_above_a_deleted_chunk_stays() -> None:
    """Without the chunk that has the header, or the fence, the next one keeps its own."""
    for text, opening in ((TABLE, "| Name"), (LISTING, "```py")):
        files = chunks_of(text, 40)
        assert reconstruct(files[1:]).text.startswith(opening)
        # The fence before a chunk that is gone closes.
        rest = reconstruct([*files[:1], *files[2:]]).text
        assert rest.count("```") % 2 == 0


@pytest.mark.parametrize("repeats", [[3], "x", [1, "a"], [True, 0], [9**9, 9**9], [-1, -1], None])
def test_what_a_stranger_says_of_a_body_takes_nothing_from_it(repeats: object) -> None:
    """A forged count leaves nothing out."""
    first, second = "| a | b |\n|---|---|\n| 1 | 2 |\n", "My own line.\n"
    found = own_texts([Written(None, first), Written(None, second, 0, repeats)])
    assert found == [first, second]


@pytest.mark.parametrize("count", range(1, 40))
def test_a_count_that_hides_text_takes_nothing(count: int) -> None:
    """Only lines that stand above are left out, and none that no cut repeats."""
    first = "# Title\n\nSame line.\n\n| 1 | 2 |\n"
    second = "Same line.\n| 1 | 2 |\nMore.\n"
    for repeats in ([count, 0], [0, count], [count, count]):
        found = own_texts([Written(None, first), Written(None, second, 0, repeats)])
        assert found == [first, second]
