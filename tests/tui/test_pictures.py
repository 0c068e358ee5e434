"""The README's pictures are what the inspector shows, and need nothing from anywhere."""

import re

from tests.tui.looks import check_textual
from tests.tui.pictures import NAMES, PICTURES, draw, words_of


def test_pictures_are_what_the_inspector_shows(tmp_path):
    """Drawn again, the same words stand in the same places."""
    check_textual()
    drawn = draw(tmp_path)
    assert tuple(drawn) == NAMES
    for name, svg in drawn.items():
        kept = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
        assert words_of(kept) == words_of(svg), f"python {PICTURES.parent / 'pictures.py'}"
        assert len(words_of(svg)) > 50


def test_pictures_need_nothing_from_anywhere():
    """No address but the name of the format, no code; small enough for a page."""
    for name in NAMES:
        kept = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
        assert set(re.findall(r"\w+://[^\"')\s]+", kept)) == {"http://www.w3.org/2000/svg"}
        assert "<script" not in kept
        assert "@import" not in kept
        assert len(kept) < 120_000
        assert "monospace" in kept
