"""A line to type on, and a caption, drawn without a terminal."""

import asyncio

from textual.app import App

from tui.formatting import line
from tui.widgets.bars import Caption
from tui.widgets.text import Field


def test_nothing_in_a_field_steers_the_terminal():
    """What is given, set or pasted is shown with its control characters spelt out."""

    async def session():
        async with App().run_test() as pilot:
            field = Field("\x1b[31mred\u202e")
            await pilot.app.mount(field)
            assert field.value == r"\x1b[31mred\u202e"
            field.value = "one\ntwo\x9b"  # as a paste does
            await pilot.pause()
            shown = "".join(
                segment.text
                for line in pilot.app.screen._compositor.render_strips()
                for segment in line
            )
            assert "\x9b" not in shown
            assert "\n" not in field.value

    asyncio.run(session())


def test_a_caption_wraps_and_only_beyond_its_limit_is_cut():
    """A sum is read whole where it needs two rows; the ellipsis comes on the last row alone."""
    total = "40 steps: no file of yours is touched, 23 passages embedded, 14,434 bytes read"

    async def session():
        async with App().run_test(size=(40, 12)) as pilot:
            caption = Caption(most=3)
            await pilot.app.mount(caption)
            for lines, rows, is_cut in (([total], 2, False), ([total, total], 3, True)):
                caption.show([line(one) for one in lines])
                await pilot.pause()
                drawn = caption.render_lines(caption.size.region)
                shown = " ".join(strip.text.strip() for strip in drawn)
                assert len(drawn) == rows
                assert total in shown
                assert shown.endswith("…") == is_cut

    asyncio.run(session())
