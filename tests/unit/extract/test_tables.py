"""Tables of PDFs, out of made-up words and boxes: cells, what is no table, and nothing lost."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract._pdf import to_markdown
from filestore.extract._pdf.lines import (
    Line,
    Measures,
    PageLines,
    flowing_on,
    page_blocks,
)
from filestore.extract._pdf.tables import Box, Grid, may_hold_table, with_tables
from filestore.extract._pdf.words import Words

MEASURES = Measures(size=10.0, leading=1.2, advance=0.5, typewriter=False)
STOCK = [["Item", "Shelf", "Count"], ["Bolts", "", "450"], ["Nuts", "B-07", ""]]


def word(text, left, bottom, page=0):
    return Line(text, page, left, left + 5.0 * len(text), bottom, 10.0)


def drawn(rows, *, page=0, top=700.0):
    """The words of a table, its lines, and what the second reader says of it."""
    words, lines, boxes = [], [], []
    for number, row in enumerate(rows):
        bottom = top - 16 * number
        found = []
        boxes.append([])
        for column, cell in enumerate(row):
            left = 50.0 + 130 * column
            box = Box(left, bottom - 2, left + max(5.0 * len(cell), 5), bottom + 10)
            boxes[-1].append(box if cell else None)
            for text in cell.split():
                found.append(word(text, left, bottom, page))
                left += 5.0 * len(text) + 3
        if not found:
            continue
        words += found
        text = " ".join(one.text for one in found)
        lines.append(Line(text, page, found[0].left, found[-1].right, bottom, 10.0))
    region = Box(40.0, top - 16 * len(rows), 600.0, top + 12)
    return words, lines, Grid(region, tuple(map(tuple, boxes)))


def written(*pages):
    blocks = [page_blocks(page.lines, {}, MEASURES) for page in pages]
    return to_markdown(flowing_on(blocks), Words())[0]


def read(rows, *, before=(), after=(), page=0):
    words, lines, grid = drawn(rows, page=page)
    whole = PageLines(height=842.0, lines=(*before, *lines, *after))
    above = [word(t, line.left, line.bottom) for line in before for t in line.text.split()]
    below = [word(t, line.left, line.bottom) for line in after for t in line.text.split()]
    return with_tables(whole, [*above, *words, *below], [grid], MEASURES)


def test_empty_cells_keep_their_columns():
    above = Line("Stock of May", 0, 50.0, 110.0, 780.0, 10.0)
    assert written(read(STOCK, before=[above])) == (
        "Stock of May\n\n| Item | Shelf | Count |\n| --- | --- | --- |\n"
        "| Bolts |  | 450 |\n| Nuts | B-07 |  |\n"
    )


def test_a_sentence_above_is_no_header():
    """Also where the second reader takes its last line, cut at two spaces, for the first row."""
    words, lines, grid = drawn(STOCK)
    above, left = [], 50.0
    for text in ["changes", "show", "who", "moved", "what,", "and", "when"]:
        above.append(word(text, left, 716.0))
        left = above[-1].right + 3
    cells = [above[:2], above[2:5], above[5:]]
    first = tuple(Box(some[0].left, 714.0, some[-1].right, 726.0) for some in cells)
    sentence = Line(" ".join(one.text for one in above), 0, 50.0, left, 716.0, 10.0)
    page = with_tables(
        PageLines(height=842.0, lines=(sentence, *lines)),
        [*above, *words],
        [Grid(Box(40.0, 600.0, 600.0, 730.0), (first, *grid.rows))],
        MEASURES,
    )
    assert "and when\n\n| Item | Shelf | Count |" in written(page)


def test_a_table_over_pages_has_its_header_once():
    pages = [read(STOCK), read([STOCK[0], ["Hinges", "D-02", "64"]], page=1)]
    text = written(*pages)
    assert text.count("Item") == 1
    assert text.endswith("| Nuts | B-07 |  |\n| Hinges | D-02 | 64 |\n")


def test_a_bar_in_a_cell_stays_in_it():
    assert "| a\\|b \\\\ | x | 1 |" in written(read([STOCK[0], ["a|b \\", "x", "1"]]))


def test_rows_that_the_second_reader_put_into_one_are_parted():
    """A number is never the second line of a cell."""
    words, lines, grid = drawn([*STOCK, ["Hinges", "D-02", "64"]])
    rows = (*grid.rows[:1], grid.rows[1])
    page = with_tables(
        PageLines(height=842.0, lines=tuple(lines)), words, [Grid(grid.box, rows)], MEASURES
    )
    assert "| Hinges | D-02 | 64 |" in written(page)


PROSE = "the water of the upper valley is kept in fields while pumps drain it again"


@pytest.mark.parametrize(
    "rows",
    [
        [[f"Chapter {n}", f"{4 * n}"] for n in range(1, 9)],
        [["Field", PROSE], ["", PROSE], ["", PROSE], ["Mill", PROSE], ["", PROSE]],
        [[PROSE, PROSE]] * 5,
        [["0", "20", "40"], ["60", "80", "100"]],
        [["Axis", "", "", ""], ["", "x", "", ""], ["", "", "y", ""], ["", "", "", "z"]],
    ],
    ids=["contents", "margin", "columns", "chart", "scattered"],
)
def test_what_is_no_table_stays_as_it_was(rows):
    assert not any(line.table for line in read(rows).lines)


def test_code_is_no_table():
    words, lines, grid = drawn([["if", "x", "1"], ["do", "y", "2"]])
    words, lines = (
        [Line(w.text, 0, w.left, w.right, w.bottom, 10.0, typewriter=True) for w in some]
        for some in (words, lines)
    )
    page = PageLines(height=842.0, lines=tuple(lines))
    assert with_tables(page, words, [grid], MEASURES) == page


def test_a_page_of_prose_is_not_read_twice():
    lines = tuple(Line(PROSE, 0, 50.0, 420.0, 700.0 - 12 * n, 10.0) for n in range(40))
    assert not may_hold_table(PageLines(height=842.0, lines=lines), MEASURES)
    _, rows, _ = drawn(STOCK)
    assert may_hold_table(PageLines(height=842.0, lines=(*lines, *rows)), MEASURES)
    numbered = [Line("1 2 Foo", 0, 50.0, 200.0, 705.0 - 60 * n, 10.0) for n in range(6)]
    assert not may_hold_table(PageLines(height=842.0, lines=(*lines, *numbered)), MEASURES)
    assert may_hold_table(PageLines(height=842.0, lines=tuple(numbered)), MEASURES)


@given(
    rows=st.lists(
        st.lists(
            st.sampled_from(["", "Nuts", "12", "B-7", "one two", "-3 4", "a|b"]),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=6,
    ),
    sides=st.tuples(*[st.floats(-50, 900)] * 4),
    cut=st.integers(0, 6),
)
def test_no_word_is_lost_or_made_up(rows, sides, cut):
    """Whatever regions the second reader names."""
    words, lines, grid = drawn(rows)
    page = PageLines(height=842.0, lines=tuple(lines))
    odd = Grid(Box(*sides), grid.rows[:cut])
    for grids in ([grid], [odd], [odd, grid], [grid, grid]):
        read_page = with_tables(page, words, grids, MEASURES)
        before = Counter(" ".join(line.text for line in page.lines).split())
        assert Counter(" ".join(line.text for line in read_page.lines).split()) == before
        cells = [w.text for line in read_page.lines for row in line.table for c in row for w in c]
        whole = [line.text for line in read_page.lines if line.table]
        assert Counter(cells) == Counter(" ".join(whole).split())
