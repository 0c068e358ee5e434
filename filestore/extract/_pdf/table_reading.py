"""Where a second reader of PDFs sees tables, for the few pages that may hold one.

One rule: what it cannot read, it has not seen; the page stays as the first reader has it. It takes
no word of the file to anywhere, recognises no picture, and is loaded only here.
"""

from collections.abc import Sequence
from typing import Any, Final

from filestore.extract._pdf.tables import Box, Grid

_MOST_PAGES: Final = 2_000
_is_on = True


def leave_out() -> None:
    """Read no table from now on: the process that did has crashed on this file."""
    global _is_on
    _is_on = False


def read_grids(data: bytes, pages: Sequence[int]) -> dict[int, list[Grid]]:
    """The tables of some pages.

    Args:
        data: The file.
        pages: From 0.
    """
    if not pages or not _is_on:
        return {}
    wanted = ",".join(str(page + 1) for page in pages[:_MOST_PAGES])
    try:
        from liteparse import LiteParse

        reader = LiteParse(
            ocr_enabled=False,
            keep_headers_footers=True,
            extract_blocks=True,
            extract_links=False,
            continue_on_page_error=True,
            target_pages=wanted,
            quiet=True,
        )
        read = reader.parse(data).pages
        return {page.page_num - 1: _grids(page) for page in read}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # what its Rust panics with is no Exception
        return {}


def _grids(page: Any) -> list[Grid]:
    grids: list[Grid] = []
    for block in page.blocks or ():
        if block.kind != "table" or block.bbox is None:
            continue
        rows = tuple(
            tuple(_box(cell.bbox, page.height) for cell in row)
            for row in (block.header or [], *(block.rows or []))
        )
        box = _box(block.bbox, page.height)
        if box is not None and any(rows):
            grids.append(Grid(box=box, rows=rows))
    return grids


def _box(box: Any, height: float) -> Box | None:
    if box is None:
        return None
    top = height - box.y
    return Box(left=box.x, bottom=top - box.height, right=box.x + box.width, top=top)
