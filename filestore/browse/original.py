"""An original of a chunk store: its text, and which of its chunks have a line, a page, a heading.

One rule: a line of an original is found by the texts of its chunks, never by a record of lines,
because there is none.
"""

from collections.abc import Iterator, Sequence

from filestore.browse.spans import FileText, NoLineError, Range
from filestore.catalog import Catalog, FileRow
from filestore.chunking import join
from filestore.chunks import kept
from filestore.config.layout import Places
from filestore.extract import is_text
from filestore.fs import disk
from filestore.sidecar import originals


def data_of(places: Places, catalog: Catalog, source: str) -> bytes:
    """The bytes of an original as it is now.

    Raises:
        NoLineError: The store may not look at it, or it cannot be read.
    """
    path = originals.of_places(places).followed(catalog.originals().get(source) or source)
    if path is None:
        raise NoLineError(f"{source} is not looked at", remedy="filestore trust --list")
    try:
        return disk.read_path(path)
    except OSError as error:
        raise NoLineError(
            f"cannot read {source}: {error.strerror or error}",
            remedy="'filestore ls' leads to its chunks: name one",
        ) from error


def rows_at(
    places: Places, catalog: Catalog, source: str, rows: Sequence[FileRow], wanted: Range
) -> Sequence[FileRow]:
    """The chunks of an original that have what is named of it.

    Args:
        places: Where the store lies.
        catalog: Inside a snapshot.
        source: The original.
        rows: All its chunks, in reading order.
        wanted: What of it.

    Raises:
        NoLineError: None of them has it.
    """
    if wanted.unit == "pages":
        pages = [row.headings_and_pages()[1] for row in rows]
        last = wanted.first if wanted.last is None else wanted.last
        found = [
            row
            for row, of_row in zip(rows, pages, strict=True)
            if any(wanted.first <= page <= last for page in of_row)
        ]
        if not found:
            known = sorted({page for of_row in pages for page in of_row})
            there = f"it has {known[0]:,} to {known[-1]:,}" if known else "it has no pages"
            raise NoLineError(
                f"there is no page {wanted.first:,} of {source}: {there}; name {source}"
            )
        return found
    if wanted.unit == "section":
        from filestore.chunking.blocks import is_headed

        trails = [row.headings_and_pages()[0] for row in rows]
        found = [
            row
            for row, trail in zip(rows, trails, strict=True)
            if any(is_headed(trail[:end], wanted.heading) for end in range(1, len(trail) + 1))
        ]
        # The first heading of a chunk may have others below it.
        found = found or [row for row in rows if _has(_body(catalog, row), wanted)]
        if not found:
            raise NoLineError(f"{source} has no heading {wanted.heading[:80]!r}: name {source}")
        return found
    return _rows_of_lines(places, catalog, source, rows, wanted)


def _has(body: str, wanted: Range) -> bool:
    try:
        FileText(text=body, name="").span(wanted)
    except NoLineError:
        return False
    return True


def _body(catalog: Catalog, row: FileRow) -> str:
    """What a chunk was when it was made."""
    if row.edited:
        return (catalog.generated(row.origin or "") or b"").decode()
    data = catalog.content(row.id)
    return kept.read(data).body if data is not None else ""


def _rows_of_lines(
    places: Places, catalog: Catalog, source: str, rows: Sequence[FileRow], wanted: Range
) -> Sequence[FileRow]:
    bodies = [_body(catalog, row) for row in rows]
    # What is no text has the lines of what was read of it.
    text = join(bodies)
    if is_text(source):
        text = data_of(places, catalog, source).decode("utf-8", "replace").replace("\r\n", "\n")
    count = FileText(text=text).line_count
    if wanted.first > count:
        raise NoLineError(
            f"{source} has no line {wanted.first:,}: it has {count:,}; name {source}:1"
        )
    last = wanted.first if wanted.unit == "passage" else min(wanted.last or count, count)
    ends = [row_at(text, bodies, line) for line in (wanted.first, last)]
    if None in ends:
        starts = list(_starts(places, catalog, source, rows, bodies))
        ends = [_last_begun(starts, line) for line in (wanted.first, last)]
    first, end = ends
    if first is None or end is None:
        raise NoLineError(
            f"line {wanted.first:,} of {source} is in no chunk: the file changed since it was"
            " added, or its text was converted",
            remedy=f"'filestore add {source}' reads it again; or name one of its chunks",
        )
    return rows[first : max(first, end) + 1]


def _last_begun(starts: Sequence[int], line: int) -> int | None:
    """The last chunk that begins at a line or above; None where the next one is not found."""
    found = max((n for n, start in enumerate(starts) if 0 < start <= line), default=None)
    return None if found is None or not all(starts[found + 1 : found + 2]) else found


def _starts(
    places: Places,
    catalog: Catalog,
    source: str,
    rows: Sequence[FileRow],
    bodies: Sequence[str],
) -> Iterator[int]:
    """The line of an original on which each chunk begins, as search finds it; 0 for none."""
    from filestore.search.place import Chunk, Locator

    locator = Locator(lambda: originals.of_places(places), catalog, [source])
    for row, body in zip(rows, bodies, strict=True):
        found = locator.whole(Chunk.of(row, places.tree, body, source, edited=row.edited))
        yield (found.line or 0) if found.document == source else 0


def row_at(text: str, bodies: Sequence[str], line: int) -> int | None:
    """Which of some texts, in their order in a document, holds a line of it; pure.

    A line between two belongs to the first, where both are found and nothing lies between them.

    Args:
        text: The document.
        bodies: The texts; texts that are not in it are passed over.
        line: 1-based.
    """
    start, end, last, missed = 0, 0, None, False
    for place, body in enumerate(bodies):
        words = body.replace("\r\n", "\n").strip()
        at = text.find(words, end) if words else -1
        if at < 0 and words:
            # A chunk may repeat the end of the one before.
            at = text.find(words, start)
        if at < 0:
            missed = True
            continue
        first = text.count("\n", 0, at) + 1
        if first > line:
            # What was passed over may have been just here.
            return None if missed and last is not None else (place if last is None else last)
        if line <= first + words.count("\n"):
            return place
        start, end, last, missed = at + 1, at + len(words), place, False
    return None if missed else last
