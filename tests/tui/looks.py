"""What the screen looks like, as text: kept in `looks/`, compared, and shown as a diff.

`UPDATE_LOOKS=1 pytest -m "" tests/tui/test_looks.py` writes the files anew. They hold for one
Textual only, the one that `pyproject.toml` names, since another draws its own way.
"""

import asyncio
import difflib
import os
import re
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
from textual.app import App

from filestore import Store
from filestore.config.layout import copy_example
from tui.app.frame import Options
from tui.app.inspector import Inspector

LOOKS: Final = Path(__file__).parent / "looks"
WAIT_S: Final = 30.0
_CALM: Final = 2
"""So many looks in a row have to be the same before the screen is at rest."""
_WRITTEN_S: Final = 1_767_268_800
"""When every file of the store was written: noon, the first of January 2026."""
_CHANGING: Final = (
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "hh:mm:ss"),
    (re.compile(r"\b20(?!26-01-01)\d\d-\d\d-\d\d\b"), "yyyy-mm-dd"),
    (re.compile(r"(?<=[ │])\d\d:\d\d(?= *(│|$))", re.MULTILINE), "hh:mm"),
)
"""What is another with every run; each word is as long as what it stands for."""
_MARKED: Final = """
<<<<<<< HEAD
Give away one key, keep the other.
=======
Give away both keys.
>>>>>>> branch
"""
_BEES: Final = "Beekeepers use a hive notebook, one line a visit.\n"


def pinned() -> str:
    """The Textual that the looks are of."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (found,) = (
        one.partition("==")[2]
        for one in project["project"]["optional-dependencies"]["dev"]
        if one.startswith("textual==")
    )
    return found


def check_textual() -> None:
    """Skip the test where another Textual draws."""
    if version("textual") != pinned():
        pytest.skip(f"drawn by Textual {version('textual')}, and kept from {pinned()}")


def seen(app: App[Any]) -> str:
    """The words on the screen. The only place that needs what Textual keeps to itself."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def check_look(name: str, text: str) -> None:
    """Compare with what is kept, or keep it.

    Raises:
        AssertionError: It looks otherwise; with the diff.
    """
    for changing, word in _CHANGING:
        text = changing.sub(word, text)
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    kept = LOOKS / f"{name}.txt"
    if os.environ.get("UPDATE_LOOKS"):
        kept.write_text(text, encoding="utf-8")
    before = kept.read_text(encoding="utf-8") if kept.exists() else ""
    lines = difflib.unified_diff(before.splitlines(), text.splitlines(), "kept", "now", lineterm="")
    assert before == text, "\n".join([f"{name} looks otherwise", *lines])


def make_store(folder: Path) -> None:
    """A copy of the example store, indexed, and then changed behind its back."""
    root = folder / "example_index"
    copy_example(str(root))
    stamp(root)
    with Store(str(root), configuration=str(folder / "configuration")) as store:
        store.sync()
    chunked = root / "chunked"
    glossary = chunked / "glossary.md"
    with (glossary / "chunk1.md").open("a") as file:
        file.write(f"\nA note in passing: {_BEES[0].lower()}{_BEES[1:]}")
    with (chunked / "handover.docx" / "chunk3.md").open("a") as file:
        file.write(_MARKED)
    (chunked / "bees.md").write_text(f"# Bees\n\n{_BEES}")
    (glossary / "chunk2.md").rename(glossary / "second.md")
    (chunked / "checklist.txt" / "chunk1.md").unlink()
    stamp(chunked)


def stamp(folder: Path) -> None:
    """Have every file written at the same time in every run."""
    for path in folder.rglob("*"):
        os.utime(path, (_WRITTEN_S, _WRITTEN_S))


@contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """The same for every picture: in the store, colours, no zone, no language."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("NO_COLOR", "TEXTUAL", "COLUMNS", "LINES", "LC_", "LANG")):
                patch.delenv(name)
        patch.setenv("LC_ALL", "C.UTF-8")
        patch.setenv("TZ", "UTC")
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.chdir(folder / "example_index" if (folder / "example_index").exists() else folder)
        time.tzset()
        yield
    time.tzset()


def heard(app: Inspector) -> list[str]:
    """What the inspector says from now on: on a slow machine a message is gone before one looks."""
    said: list[str] = []
    notify = app.notify

    def recorded(message: str, **named: Any) -> None:
        said.append(message)
        notify(message, **named)

    app.notify = recorded  # type: ignore[method-assign]
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlooker:
    """Somebody at the keyboard who waits until the screen is at rest."""

    app: Inspector
    pilot: Any
    said: list[str]
    """What was said since the last key; see `heard`."""

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        until_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < until_s, f"it never came to this:\n{seen(self.app)}"
            await self.pilot.pause(0.02)

    async def read(self, words: str) -> None:
        """Wait until words are on the screen."""
        await self.until(lambda: words in seen(self.app))

    async def told(self, words: str) -> None:
        """Wait until words are in a notification, of which none is drawn."""
        await self.until(lambda: any(words in one for one in self.said))

    async def press(self, *keys: str, words: str = "") -> None:
        """Press keys and wait until they had their effect."""
        self.said.clear()
        await self.pilot.press(*keys)
        if words:
            await self.read(words)
        await self.calm()

    async def calm(self) -> None:
        """Wait until nothing moves any more."""
        calm, last = 0, ""
        while calm < _CALM:
            # So long a preview waits for the cursor to stay.
            await self.pilot.pause(0.04)
            await self._answered()
            now = seen(self.app)
            is_busy = self.app.task_manager is not None and self.app.task_manager.busy is not None
            calm = 0 if now != last or is_busy else calm + 1
            last = now

    async def _answered(self) -> None:
        """Wait until what was asked of the store so far is answered."""
        answers: list[None] = []
        if self.app.task_manager is not None:
            self.app.task_manager.read(lambda _: None, answers.append, group="")
            await self.until(lambda: bool(answers))

    async def resize(self, columns: int, rows: int) -> None:
        """Give the screen another size."""
        await self.pilot.resize_terminal(columns, rows)
        await self.calm()

    def check(self, name: str) -> None:
        """Compare what is seen with what is kept."""
        check_look(name, seen(self.app))


def look(
    folder: Path,
    act: Callable[[Onlooker], Awaitable[None]],
    *,
    size: tuple[int, int] = (100, 30),
    **options: Any,
) -> None:
    """Do something in the inspector, which begins at rest.

    Args:
        folder: Holds `example_index`, or no store at all.
        act: What is done.
        size: Of the screen: columns and rows.
        options: How the inspector is started.
    """

    async def run() -> None:
        chosen = Options(
            configuration=str(folder / "configuration"),
            environment={"XDG_STATE_HOME": str(folder / "state")},
            **options,
        )
        app = Inspector(chosen)
        async with app.run_test(size=size) as pilot:
            onlooker = Onlooker(app=app, pilot=pilot, said=heard(app))
            if (folder / "example_index").exists():
                # The second look comes once the tree is watched; then nothing comes by itself.
                await onlooker.until(lambda: _looks(app) >= 2)
            await onlooker.calm()
            await act(onlooker)

    with surroundings(folder):
        asyncio.run(run())


def _looks(app: Inspector) -> int:
    return sum(task.is_over for task in app.task_manager.tasks) if app.task_manager else 0
