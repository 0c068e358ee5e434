"""The README's picture: a question that two commands answer, drawn as they print it.

`python tests/picture.py` writes it, and a test compares its text with what the commands print.
"""

import html
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

if __name__ == "__main__":  # run as a program, it finds the checkout that it lies in
    sys.path[0] = str(Path(__file__).parents[1])

from tests import world

PICTURE: Final = world.ROOT / "docs" / "search.svg"
COMMANDS: Final = (
    "filestore init --in-place notes > init.log",
    "filestore --store notes search how do I get out of the flat -k 1",
    "filestore --store notes search boiler pressure --format oneline",
)
_HIDDEN: Final = 1
"""How many of the commands, from the first, only prepare."""
_LINE, _WIDTH, _MARGIN = 22, 900, 24
_STYLE: Final = """\
svg { background: #fbfbfa } text { fill: #1d2021; \
font: 14px 'DejaVu Sans Mono', Menlo, Consolas, monospace; \
white-space: pre } .typed { font-weight: bold } .place { fill: #00548c } .why { fill: #6b6257 }
@media (prefers-color-scheme: dark) { svg { background: #16181a } text { fill: #e6e2da } \
.place { fill: #7fc4f5 } .why { fill: #a79d8f } }"""


def session(folder: Path) -> list[str]:
    """The lines of a terminal in which the commands were typed."""
    shell = world.Shell(world.make(folder / "work"), folder / "scratch")
    shown: list[str] = []
    for number, command in enumerate(COMMANDS):
        done = shell.run(command, stop=True)
        assert done.returncode == 0, done.stdout
        if number >= _HIDDEN:
            shown += [f"$ {command}", *done.stdout.splitlines(), ""]
    return shown[:-1]


def drawn(lines: list[str]) -> str:
    """The lines as SVG, which follows the reader's light or dark theme."""
    height = 2 * _MARGIN + _LINE * (len(lines) - 1)
    rows = []
    for number, line in enumerate(lines):
        kind = "typed" if line.startswith("$ ") else "why" if line.startswith("   (") else ""
        if re.match(r"\S+:\d+", line):
            kind = "place"
        y = _MARGIN + number * _LINE + 4
        mark = f' class="{kind}"' if kind else ""
        rows.append(f'<text x="{_MARGIN}" y="{y}"{mark}>{html.escape(line)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            "<title>Two searches in a terminal</title>",
            f"<style>{_STYLE}</style>",
            *rows,
            "</svg>\n",
        ]
    )


def words_of(svg: str) -> list[str]:
    """The lines that can be read in the picture."""
    return [html.unescape(line) for line in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PICTURE.write_text(drawn(session(Path(name))), "utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")
