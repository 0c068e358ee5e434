"""What hangs over the cells of a sheet as Markdown: charts, texts that are drawn, comments.

One rule: nothing that is only linked to is looked for; a part that is not in the file costs itself.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from filestore.extract._office.archive import Archive
from filestore.extract._office.charts import CHART, DRAWING, chart, drawing_text
from filestore.extract._office.open_document import DRAW, OPEN, TABLE, TEXT, chart_of
from filestore.extract._office.package import OFFICE, local_name, relationships, xml_root

_MOST_COMMENTS: Final = 1_000
"""Of one sheet."""
_SHAPES: Final = f"{{{DRAWING}/spreadsheetDrawing}}"
_ANNOTATION: Final = f"{{{OPEN}office:1.0}}annotation"


def around_cells(archive: Archive, part: str) -> str:
    """The charts, drawn texts and comments of a sheet of an Excel workbook."""
    links: dict[str, list[str]] = {}
    for link in relationships(archive, part):
        if not link.external and link.target in archive.parts:
            links.setdefault(link.kind, []).append(link.target)
    pieces = [piece for drawing in links.get("drawing", ()) for piece in _drawn(archive, drawing)]
    threads, notes = (
        [each for listing in links.get(kind, ()) for each in _comments(xml_root(archive, listing))]
        for kind in ("threadedComment", "comments")
    )
    answered = {cell for cell, _ in threads}  # a note repeats what a thread begins with
    notes = [*threads, *(each for each in notes if each[0] not in answered)]
    return _written([*pieces, *_noted(notes)])


def _drawn(archive: Archive, drawing: str) -> Iterator[str]:
    targets = {link.id: link.target for link in relationships(archive, drawing)}
    for element in xml_root(archive, drawing).iter(f"{CHART}chart", f"{_SHAPES}txBody"):
        if element.tag != f"{CHART}chart":
            yield drawing_text(element)
        elif (target := targets.get(element.get(f"{{{OFFICE}}}id", ""))) in archive.parts:
            title, rows, more = chart(xml_root(archive, str(target)))
            yield from (title, _grid(rows), more)


def _comments(root: Any) -> Iterator[tuple[str, str]]:
    """The cell, author and words of each comment; its answers follow it."""
    authors = [_line(each) for each in root.iter("{*}author")]
    threads: dict[str, list[str]] = {}
    for element in root.iter("{*}comment", "{*}threadedComment"):
        number = element.get("authorId", "")
        known = number.isdecimal() and len(number) < 7 and int(number) < len(authors)
        words = " ".join("".join(element.itertext("{*}t", "{*}text")).split())
        signed = _signed(authors[int(number)] if known else "", words)
        threads.setdefault(element.get("ref", ""), []).extend(signed)
    return ((cell, words) for cell, thread in threads.items() for words in thread)


def around_open_cells(archive: Archive, sheet: Any) -> str:
    """The same of a sheet of an OpenDocument workbook."""
    pieces: list[str] = []
    for element in sheet.iter(f"{DRAW}object", f"{DRAW}text-box", f"{DRAW}custom-shape"):
        if element.tag == f"{DRAW}object":
            title, grid = chart_of(element, archive)
            lines = (row for each in grid for row in each.iter(f"{TABLE}table-row"))
            rows = [[" ".join(map(_line, cell.iter(f"{TEXT}p"))) for cell in row] for row in lines]
            pieces += (title, _grid(rows))
        else:
            pieces.append(" ".join(_line(each) for each in element.iter(f"{TEXT}p")))
    return _written([*pieces, *_noted(_annotations(sheet))])


def _annotations(sheet: Any) -> Iterator[tuple[str, str]]:
    number = 0
    for row in sheet.iter(f"{TABLE}table-row"):
        column = 0
        for cell in row:
            for note in cell.iterfind(_ANNOTATION):
                author = next((_line(each) for each in note if local_name(each) == "creator"), "")
                words = " ".join(_line(each) for each in note.iter(f"{TEXT}p"))
                for signed in _signed(author, words):
                    yield f"{_letters(column)}{number + 1}", signed
            column += _repeated(cell, "columns")
        number += _repeated(row, "rows")


def _letters(column: int) -> str:
    """The name of a column, from 0."""
    letters = ""
    while column >= 0:
        letters = chr(65 + column % 26) + letters
        column = column // 26 - 1
    return letters


def _repeated(element: Any, what: str) -> int:
    number = element.get(f"{TABLE}number-{what}-repeated", "1")
    return int(number) if number.isdecimal() and len(number) < 8 else 1


def _signed(author: str, words: str) -> list[str]:
    """A comment with its author, who often begins it with the name; none where it is empty."""
    words = words.removeprefix(f"{author}:").strip()
    return [f" by {author}: {words}" if author else f": {words}"] if words else []


def _line(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _noted(comments: Iterable[tuple[str, str]]) -> Iterator[str]:
    for count, (cell, words) in enumerate(comments):
        if count == _MOST_COMMENTS:
            yield "[More comments]"
            return
        yield f"[Comment at {cell}{words}]" if cell else f"[Comment{words}]"


def _grid(rows: list[list[str]]) -> str:
    """The figures of a chart, their names above them."""
    if rows and not any(row and row[0] for row in rows):
        rows = [row[1:] for row in rows]
    lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    lines[1:1] = [" | ".join(["---"] * len(rows[0]))] if rows else []
    return "\n".join(f"| {line} |" for line in lines)


def _written(pieces: Iterable[str]) -> str:
    return "\n\n".join(dict.fromkeys(piece for piece in pieces if piece))
