"""Pages a second of PDF extraction, next to a plain loop that asks pypdfium2 for the same text.

Both run in turns in this process over the same files: those given, or a manual made up here. The
garbage collector is set as in the child process that extracts, and processor time is counted, as
other work on the machine does not change it. The last row is the wall time of the command that adds
a manual to a store: extract, chunk, write, index.
"""

import argparse
import gc
import random
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import measure

SHARE = 0.5
ADDED_S = 5.0
ADDED_PAGES = 500
_PAGES = 300
_LINES = 42
_LINE_LENGTH = 84
_SYLLABLES = ("ba", "den", "fi", "gor", "ka", "lum", "me", "nis", "o", "pra", "ru", "sel", "ti")
_COMMON = ("the", "of", "and", "a", "in", "to", "is", "it", "for", "that", "file", "store")
_RARE = 4_000


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="PDF", help="default: a manual made up")
    parser.add_argument("--runs", type=int, default=5, help="default: %(default)s")
    # `all.py` tells every benchmark these; there is no store here.
    for name in ("--files", "--folders"):
        parser.add_argument(name, dest="ignored", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    _collect_as_the_child_does()
    rows = []
    for path in given.files or ["a manual made up"]:
        data = _read(path) if given.files else _manual(_PAGES)
        rows.append(_row(path.rpartition("/")[2], data, given.runs))
    rows.append(_added_row(_manual(ADDED_PAGES), given.runs))
    title = f"PDF, median of {given.runs} paired runs, gc threshold {gc.get_threshold()[0]:,}"
    print(measure.table(title, rows))


def _collect_as_the_child_does() -> None:
    from filestore.extract import pool

    gc.set_threshold(pool._GARBAGE_AFTER)


def _added_row(data: bytes, runs: int) -> measure.Row:
    """From a file to a store that can be searched, through the command line."""
    added_s = statistics.median(_added(data).wall_s for _ in range(runs))
    return measure.Row(
        figure=f"`add` of a manual of {ADDED_PAGES} pages, embedder builtin",
        ours=f"{added_s:.2f} s",
        goal=f"< {ADDED_S:g} s",
        met=added_s < ADDED_S,
    )


def _added(data: bytes) -> measure.Run:
    with tempfile.TemporaryDirectory() as root:
        Path(root, "manual.pdf").write_bytes(data)
        measure.run(measure.filestore("init", "--embedder", "builtin"), folder=root)
        return measure.run(measure.filestore("add", "manual.pdf"), folder=root)


def _row(label: str, data: bytes, runs: int) -> measure.Row:
    _extracted(data)
    pairs = list(
        zip(
            *measure.alternate(
                runs, lambda: _timed(_extracted, data), lambda: _timed(_plain, data)
            ),
            strict=True,
        )
    )
    pages = _plain(data)
    ours = statistics.median(pages / ours_s for ours_s, _ in pairs)
    theirs = statistics.median(pages / theirs_s for _, theirs_s in pairs)
    ratio = statistics.median(theirs_s / ours_s for ours_s, theirs_s in pairs)
    return measure.Row(
        figure=f"{label}, {pages:,} pages",
        ours=f"{ours:,.0f} pages/s",
        yardstick=f"plain loop {theirs:,.0f} pages/s",
        compared=f"× {ratio:.2f}",
        goal=f"≥ × {SHARE:g}",
        met=ratio >= SHARE,
    )


def _timed(action: Callable[[bytes], int], data: bytes) -> float:
    gc.collect()
    started = time.process_time()
    action(data)
    return time.process_time() - started


def _extracted(data: bytes) -> int:
    from filestore.extract._pdf import PdfExtractor

    return len(PdfExtractor().extract(data, name="manual.pdf").pages)


def _plain(data: bytes) -> int:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    count = len(document)
    for number in range(count):
        page = document[number]
        text_page = page.get_textpage()
        text_page.get_text_range()
        text_page.close()
        page.close()
    document.close()
    return count


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _manual(pages: int) -> bytes:
    """A manual of plain prose with headers, page numbers and a heading on every page."""
    chance = random.Random(pages)
    rare = ["".join(chance.choices(_SYLLABLES, k=3)) for _ in range(_RARE)]
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", _FONT]
    kids = []
    for page in range(pages):
        kids.append(f"{len(objects) + 2} 0 R")
        content = zlib.compress(_content(page, chance, rare))
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream"
            % (len(content), content)
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
    objects[1] = f"<< /Type /Pages /Count {pages} /Kids [{' '.join(kids)}] >>".encode()
    return _file(objects)


_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def _content(page: int, chance: random.Random, rare: Sequence[str]) -> bytes:
    rows = [f"BT /F1 10 Tf 72 800 Td (A manual, part {page // 20}) Tj ET"]
    rows.append(f"BT /F1 16 Tf 72 760 Td (Section {page + 1}) Tj ET")
    for line in range(_LINES):
        text = _prose(chance, rare)
        rows.append(f"BT /F1 10 Tf 72 {730 - 15 * line} Td ({text}) Tj ET")
    rows.append(f"BT /F1 10 Tf 300 40 Td ({page + 1}) Tj ET")
    return "\n".join(rows).encode()


def _prose(chance: random.Random, rare: Sequence[str]) -> str:
    """A line in which every other word is a common one."""
    text = chance.choice(rare).capitalize()
    while len(text) < _LINE_LENGTH:
        text += f" {chance.choice(_COMMON)} {chance.choice(rare)}"
    return text


def _file(objects: Sequence[bytes]) -> bytes:
    body = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    body += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    body += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
    )
    return bytes(body)


if __name__ == "__main__":
    main()
