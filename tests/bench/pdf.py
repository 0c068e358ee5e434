"""Pages a second of PDF extraction, next to a plain loop that asks pypdfium2 for the same text.

Both run in turns in this process over the same files: those given, or a manual made up here.
"""

import argparse
import statistics
import time
import zlib
from collections.abc import Callable, Sequence

import measure

SHARE = 0.5
_PAGES = 300
_LINES = 42
_WORDS = ("the", "store", "keeps", "every", "chunk", "in", "a", "file", "of", "its", "own", "place")


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
    rows = []
    for path in given.files or ["a manual made up"]:
        data = _read(path) if given.files else _manual()
        rows.append(_row(path.rpartition("/")[2], data, given.runs))
    print(measure.table(f"PDF extraction, median of {given.runs} paired runs", rows))


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
    started = time.perf_counter()
    action(data)
    return time.perf_counter() - started


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


def _manual() -> bytes:
    """A manual of plain prose with headers, page numbers and a heading on every page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", _FONT]
    kids = []
    for page in range(_PAGES):
        kids.append(f"{len(objects) + 2} 0 R")
        content = zlib.compress(_content(page))
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream"
            % (len(content), content)
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
    objects[1] = f"<< /Type /Pages /Count {_PAGES} /Kids [{' '.join(kids)}] >>".encode()
    return _file(objects)


_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def _content(page: int) -> bytes:
    rows = [f"BT /F1 10 Tf 72 800 Td (A manual, part {page // 20}) Tj ET"]
    rows.append(f"BT /F1 16 Tf 72 760 Td (Section {page + 1}) Tj ET")
    for line in range(_LINES):
        text = " ".join(_WORDS[(page + line + i) % len(_WORDS)] for i in range(16))
        rows.append(f"BT /F1 10 Tf 72 {730 - 15 * line} Td ({text}) Tj ET")
    rows.append(f"BT /F1 10 Tf 300 40 Td ({page + 1}) Tj ET")
    return "\n".join(rows).encode()


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
