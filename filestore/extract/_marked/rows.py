"""Tables of values, records and subtitles: rows with their header, records with their names.

One rule: what is beyond the most of a table is counted at its end, and no row is read in two.
"""

import csv
import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from filestore.extract._marked import Written, numbered
from filestore.extract._office.marks import MAX_CELLS, MAX_COLUMNS, MAX_ROWS
from filestore.extract._office.sheets import tables
from filestore.extract.base import ExtractionError
from filestore.extract.markdown import prose

_LONGEST_LINE: Final = 4_000_000
_LONGEST_CELL: Final = 30_000
_MOST_CELL_LINES: Final = 500
"""A quote that is open for longer is none."""
_DELIMITERS: Final = ",;\t|"
_TRIED_LINES: Final = 60
_DIRECTIVE: Final = re.compile(r"sep=(.)\n", re.I)


def delimited(text: str, delimiter: str, *, quoting: bool = True) -> Iterator[list[str]]:
    """The rows of a text.

    Raises:
        csv.Error: A quote is never closed, or a value is too long.
    """
    lines = (line + "\n" for line in text.split("\n"))
    mode: Literal[0, 3] = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
    before = csv.field_size_limit(_LONGEST_LINE)
    try:
        yield from csv.reader(lines, delimiter=delimiter, quoting=mode, skipinitialspace=True)
    finally:
        csv.field_size_limit(before)


def _delimiter(text: str, *, is_tabbed: bool) -> str:
    """What parts the values: what gives the first rows the same number, the most of them."""
    head = "\n".join(text.split("\n", _TRIED_LINES)[:_TRIED_LINES])[:_LONGEST_CELL]
    best, delimiter = (0.0, 0), "\t" if is_tabbed else ","
    for one in ("\t" + _DELIMITERS) if is_tabbed else _DELIMITERS:
        try:
            widths = [len(row) for row in delimited(head, one) if row]
        except csv.Error:
            continue
        usual = max(set(widths), key=widths.count, default=0)
        score = widths.count(usual) / max(1, len(widths)), usual
        if usual > 1 and score > best:
            best, delimiter = score, one
    return delimiter


def read_table(text: str, out: Written, name: str) -> None:
    """Write values that a sign parts as tables of Markdown."""
    if max(map(len, text.split("\n"))) > _LONGEST_LINE:
        raise ExtractionError(
            f"{name} is refused: a line of it has more than {_LONGEST_LINE:,} characters"
            "; split its rows into lines, or leave it out",
        )
    skipped = 0
    if directive := _DIRECTIVE.match(text):
        skipped, text, delimiter = 1, text[directive.end() :], directive[1]
    else:
        delimiter = _delimiter(text, is_tabbed=name.lower().endswith(".tsv"))
    try:
        found = _rows(text, delimiter, skipped, quoting=True)
    except csv.Error:
        found = _rows(text, delimiter, skipped, quoting=False)
    rows, numbers, left = found
    places = iter([number for row, number in zip(rows, numbers, strict=True) if any(row)])
    last = 1
    for block in tables(rows):
        if out.lines:
            out.add(last, "")
        for at, line in enumerate(block.split("\n")):
            is_rule = at == 1 and not line.strip("|- ")
            if line and not is_rule and (line.strip("| ") or at):
                last = next(places, last)
            out.add(last, line)
    if left:
        out.block(last, f"[Left out of this table, {left}]")


def _rows(
    text: str, delimiter: str, skipped: int, *, quoting: bool
) -> tuple[list[list[str]], list[int], str]:
    """Rows as cells of Markdown, the line of each, and what was too much.

    Raises:
        csv.Error: See `delimited`, and where a value has too many lines.
    """
    rows, numbers = list[list[str]](), list[int]()
    line, cells, left_rows, left_cells = skipped, 0, 0, 0
    for row in delimited(text, delimiter, quoting=quoting):
        first, line = line + 1, line + 1 + sum(value.count("\n") for value in row)
        if line - first > _MOST_CELL_LINES:
            raise csv.Error("a quote is never closed")
        if len(rows) == MAX_ROWS or cells > MAX_CELLS:
            left_rows += any(row)
            continue
        left_cells += max(0, len(row) - MAX_COLUMNS)
        rows.append([_cell(value) for value in row[:MAX_COLUMNS]])
        numbers.append(first)
        cells += len(rows[-1])
    counts = {"rows": left_rows, "cells far right": left_cells}
    return rows, numbers, ", ".join(f"{what}: {n}" for what, n in counts.items() if n)


def _cell(value: str) -> str:
    value = value.strip()
    if len(value) > _LONGEST_CELL:
        value = value[:_LONGEST_CELL] + "…"
    return (
        value.replace("|", "\\|").replace("\n", "<br>") if "|" in value or "\n" in value else value
    )


# ---- records -------------------------------------------------------------------------------------

_TITLES: Final = ("title", "name", "subject", "heading", "question", "id", "key")
_LONGEST_TITLE: Final = 120
_DEEPEST: Final = 6


def read_records(text: str, out: Written, _name: str) -> None:
    """Write a record of JSON a line as a section a record."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            out.block(number, prose(line))
            continue
        known = record if isinstance(record, dict) else {}
        titles = (known.get(key) for key in _TITLES)
        title = next((str(one) for one in titles if isinstance(one, str | int) and one), "")
        shown = " ".join(title.split())[:_LONGEST_TITLE] or f"Record {number}"
        out.block(number, f"## {shown}", "")
        for written in _fields(record, "", 0):
            out.add(number, _sound(written))


def _sound(text: str) -> str:
    """NUL and halves of characters can be written in JSON, and belong in no text."""
    return prose(text.replace("\0", "\ufffd").encode(errors="replace").decode())


def _fields(value: Any, path: str, depth: int) -> Iterator[str]:
    """A line a value, under its name."""
    if isinstance(value, dict) and depth < _DEEPEST:
        for key, inner in value.items():
            yield from _fields(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for inner in value if depth < _DEEPEST else ():
            yield from _fields(inner, path, depth + 1)
    elif value is not None:
        words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        is_long = "\n" in words.strip()
        yield f"{path}:\n\n{words}\n" if path and is_long else f"{path}: {words}" if path else words


# ---- subtitles -----------------------------------------------------------------------------------

_TIMING: Final = re.compile(r"\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}\s+-->\s+[\d:.,]+.*")
_VOICE: Final = re.compile(r"<v(?:\.[^\s>]*)*\s+([^>]*)>")
_TAGS: Final = re.compile(r"</?[a-zA-Z0-9.:][^<>]*>|\{\\[^{}]*\}")
_SECONDS: Final = 60
"""Of one section."""


def read_subtitles(text: str, out: Written, _name: str) -> None:
    """Write what is spoken, a section a minute; a line that the next cue repeats is there once."""
    begun, is_cue, before, speaker = -1, False, "", ""
    for number, line in numbered(text):
        timing = _TIMING.fullmatch(line)
        if timing:
            hours, minutes, seconds = (int(one or 0) for one in timing.groups())
            minute = (hours * 3600 + minutes * 60 + seconds) // _SECONDS
            if minute != begun:
                begun = minute
                out.block(number, f"## {minute // 60}:{minute % 60:02}:00", "")
            is_cue = True
        elif not line.strip():
            is_cue = False
        elif is_cue:
            voice = _VOICE.search(line)
            spoken = " ".join(_TAGS.sub("", line).replace("&nbsp;", " ").split())
            if spoken and spoken != before:
                is_new = voice is not None and voice[1] != speaker
                speaker = voice[1] if voice else speaker
                out.add(number, prose(f"{speaker}: {spoken}" if is_new else spoken))
                before = spoken
    if begun < 0:
        out.add(1, prose(text))
