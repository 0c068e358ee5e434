"""The README's pictures: the three pages over the example store, changed behind its back.

`python tests/tui/pictures.py` writes them into `pictures/`, and a test tells when they are stale.
"""

import html
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

if __name__ == "__main__":  # run as a program, it finds the checkout that it lies in
    sys.path[0] = str(Path(__file__).parents[2])

from tests.tui.looks import Onlooker, look, make_store

PICTURES: Final = Path(__file__).parent / "pictures"
SIZE: Final = (100, 30)
NAMES: Final = ("browse", "verify", "repair")
_FONTS: Final = "'DejaVu Sans Mono', Menlo, Consolas, monospace"


def draw(folder: Path) -> dict[str, str]:
    """Draw them all.

    Args:
        folder: Is empty; a store is made in it.
    """
    make_store(folder)
    drawn: dict[str, str] = {}

    async def act(onlooker: Onlooker) -> None:
        await onlooker.press(*"jjlj", words="Fifteen words")
        await onlooker.press("b", words="cosine, nearest first")
        drawn["browse"] = _drawn(onlooker)
        await onlooker.press("2", words="by code")
        await onlooker.press("g", "j", words="A note in passing")
        # What comes last stands below, and makes the scrollbar shorter.
        await onlooker.resize(SIZE[0], 60)
        await onlooker.read("now   cosine")
        await onlooker.resize(*SIZE)
        drawn["verify"] = _drawn(onlooker)
        await onlooker.press("3", words="no plan")
        await onlooker.press("p", words="filestore repair")
        await onlooker.press("t", words="restore")
        await onlooker.press("g", "j", words="+++")
        drawn["repair"] = _drawn(onlooker)

    look(folder, act, size=SIZE)
    return drawn


def _drawn(onlooker: Onlooker) -> str:
    """The screen as SVG that needs nothing from anywhere, and shows no time of day."""
    svg = onlooker.app.export_screenshot(title="filestore tui")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: (?:Fira Code, monospace|arial);", f"font-family: {_FONTS};", svg)
    svg = re.sub(r"terminal-\d+-", "terminal-", svg)
    svg = re.sub(r"\b\d\d:\d\d:\d\d\b", "12:00:00", svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip() + "\n"


def words_of(svg: str) -> list[str]:
    """What can be read in a picture, from top to bottom, each piece with its place."""
    pieces = re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', svg, re.DOTALL)
    return [f"{y} {x} {html.unescape(text)}" for x, y, text in pieces]


def main() -> None:
    """Write them all."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = draw(Path(folder))
    PICTURES.mkdir(exist_ok=True)
    for name, svg in drawn.items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"{PICTURES / name}.svg: {len(svg):,} bytes")


if __name__ == "__main__":
    main()
