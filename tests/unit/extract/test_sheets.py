"""Rows of a sheet as tables: headers, notes between them, and every value in its column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.extract._office.sheets import tidied


def grid(*rows: str) -> str:
    """A grid as the reader writes it, of words parted by commas."""
    cells = [row.split(",") for row in rows]
    width = max(map(len, cells))
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in cells]
    return "\n".join([lines[0], "| " + " | ".join(["---"] * width) + " |", *lines[1:]])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["Boat,Euro", "small,12"], ["| Boat | Euro |", "| --- | --- |", "| small | 12 |"]),
        (
            [",,", "Sales 2024,,", ",,", "Date,Item,Units", "2024-01-01,Boat,", ",Total,12", ",,"],
            [
                *("Sales 2024", "", "| Date | Item | Units |", "| --- | --- | --- |"),
                *("| 2024-01-01 | Boat |  |", "|  | Total | 12 |"),
            ],
        ),
        (["2019,2020", "1,2"], ["| 2019 | 2020 |", "| --- | --- |", "| 1 | 2 |"]),
        (["1,2", "3,4"], ["|  |  |", "| --- | --- |", "| 1 | 2 |", "| 3 | 4 |"]),
        ([",a,b,", ",1,2,"], ["| a | b |", "| --- | --- |", "| 1 | 2 |"]),
        (["first line", "second line"], ["first line", "", "second line"]),
        (
            ["a,b", "1,2", ",", "x,y", "3,4"],
            [
                *("| a | b |", "| --- | --- |", "| 1 | 2 |", ""),
                *("| x | y |", "| --- | --- |", "| 3 | 4 |"),
            ],
        ),
        (["a,b", "1,2", ",", ",2"], ["| a | b |", "| --- | --- |", "| 1 | 2 |", "|  | 2 |"]),
    ],
)
def test_a_sheet_is_tables_with_their_header(rows, expected):
    assert tidied(grid(*rows)).splitlines() == expected


CELLS = st.sampled_from(["", "", "a", "b c", "12", "25%", "2024-01-01", r"x \| y"])


@given(st.lists(st.lists(CELLS, min_size=4, max_size=4), min_size=1, max_size=8))
def test_no_value_is_lost_or_twice_and_columns_keep_their_order(rows):
    """All values of the grid, row by row from the left, and no others."""
    found = tidied(grid(*[",".join(row) for row in rows]))
    read = [
        cell.strip()
        for line in found.splitlines()
        if not line.startswith("| ---")
        for cell in (line[2:-2].split(" | ") if line.startswith("|") else [line])
    ]
    assert [cell for cell in read if cell] == [cell for row in rows for cell in row if cell]
