"""A line to type on, drawn without a terminal."""

import asyncio

from textual.app import App

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
