"""When an error is shown, and when it is not shown again; how often running work is drawn."""

import asyncio
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from filestore.core.errors import FilestoreError
from tui.app import frame
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.workers.tasks import Task


@pytest.mark.parametrize(
    ("at_s", "shown"),
    [
        ((0.0, 1.0, 4.9), 1),
        ((0.0, 5.1), 2),
        # The first message has left the screen by then; the second was never on it.
        ((0.0, 4.9, 8.1), 2),
    ],
)
def test_an_error_is_shown_again_once_it_has_left_the_screen(tmp_path, monkeypatch, at_s, shown):
    """A key that is refused again and again is not answered by silence."""
    messages = []

    async def run():
        inspector = Inspector(
            Options(store=str(tmp_path), configuration=str(tmp_path), environment={})
        )
        async with inspector.run_test(size=(100, 30)):
            monkeypatch.setattr(inspector, "notify", lambda text, **_: messages.append(text))
            for at in at_s:
                monkeypatch.setattr(frame.time, "monotonic", lambda at=at: 1000.0 + at)
                inspector.fail(FilestoreError("the store is read-only"))
            monkeypatch.undo()

    asyncio.run(run())
    assert messages == ["the store is read-only"] * shown


def test_a_second_stop_is_answered(tmp_path, monkeypatch):
    """Who stops what is stopping already reads that it is."""
    messages = []

    async def run():
        inspector = Inspector(
            Options(store=str(tmp_path), configuration=str(tmp_path), environment={})
        )
        async with inspector.run_test(size=(100, 30)):
            monkeypatch.setattr(inspector, "notify", lambda text, **_: messages.append(text))
            task = Task(title="sync", state="stopping")
            manager = SimpleNamespace(stoppable=task, busy=task, end=lambda: None)
            monkeypatch.setattr(inspector, "task_manager", manager)
            inspector.do_stop()
            monkeypatch.undo()

    asyncio.run(run())
    assert messages == ["sync is already stopping"]


def test_changes_of_work_are_drawn_now_and_then(tmp_path, monkeypatch):
    """Many changes of running work are drawn few times, the last one among them."""
    drawn = []

    async def run():
        inspector = Inspector(
            Options(store=str(tmp_path), configuration=str(tmp_path), environment={})
        )
        async with inspector.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            monkeypatch.setattr(frame, "WORK_S", 0.05)
            monkeypatch.setattr(inspector, "draw", lambda: drawn.append(time.monotonic()))
            changed_last = 0.0
            for _ in range(100):
                changed_last = time.monotonic()
                inspector.work_changed()
                await asyncio.sleep(0.001)
            async with asyncio.timeout(30):
                while not drawn or drawn[-1] < changed_last:
                    await asyncio.sleep(0.01)

    asyncio.run(run())
    assert all(later - earlier > 0.04 for earlier, later in pairwise(drawn))


def test_what_was_below_a_message_is_painted_again(tmp_path, monkeypatch):
    """The whole screen is painted once the last message has expired, whatever Textual holds clean.

    Where a widget's place is asked for between the end of a message and the layout that follows,
    Textual finds no difference between the two layouts and would paint nothing.
    """
    painted = []

    async def run():
        inspector = Inspector(
            Options(store=str(tmp_path), configuration=str(tmp_path), environment={})
        )
        async with inspector.run_test(size=(100, 30)) as pilot:
            inspector.notify("the store is read-only", timeout=2.0)
            await pilot.pause()
            screen = inspector.screen
            update = screen._compositor.update_widgets

            def record(widgets):
                painted.extend(widgets)
                update(widgets)

            monkeypatch.setattr(screen._compositor, "update_widgets", record)
            deadline = time.monotonic() + 30
            while screen not in painted:
                assert time.monotonic() < deadline
                await pilot.pause(0.02)
            assert not len(inspector._notifications)

    asyncio.run(run())


def test_messages_do_not_pile_up(tmp_path):
    """One at a time: a new one takes the place of the last, and an error stays above it."""
    seen = []

    async def run():
        inspector = Inspector(
            Options(store=str(tmp_path), configuration=str(tmp_path), environment={})
        )
        async with inspector.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            for text, severity in (
                ("no file", "warning"),
                ("looked again", "information"),
                ("it failed", "error"),
                ("copied", "information"),
                ("saved", "information"),
            ):
                inspector.notify(text, severity=severity)
                await pilot.pause()
                seen.append([(one.message, one.severity) for one in inspector._notifications])

    asyncio.run(run())
    assert seen == [
        [("no file", "warning")],
        [("looked again", "information")],
        [("it failed", "error")],
        [("it failed\ncopied", "error")],
        [("it failed\nsaved", "error")],
    ]


def test_settings_that_nothing_reads_are_named(case, monkeypatch):
    """Once, as the store is opened, however many there are."""
    messages = []
    settings = case.root / "filestore.toml"
    others = "".join(f"key{number} = 1\n" for number in range(1_000))
    settings.write_text(f'vault = "x"\n{others}{settings.read_text()}')
    monkeypatch.setattr(Inspector, "notify", lambda _, text, **__: messages.append(text))

    async def act(session):
        await session.until(lambda: any("unknown key 'vault'" in one for one in messages))

    case.inspect(act, page="browse")
    (said,) = [one for one in messages if "unknown key" in one]
    assert said.endswith("and 998 more")
