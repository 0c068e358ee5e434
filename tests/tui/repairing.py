"""A store on disk, and somebody at the inspector of it."""

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from filestore.browse import InspectedStore
from tui.app.frame import Options
from tui.app.inspector import Inspector

from .looks import heard

WAIT_S = 30.0
PARTS = ("Lakes", "Rivers", "Hills", "Woods")


class Case:
    """One store in a folder, with the inspector's ways to it."""

    def __init__(self, folder: Path, made: Path) -> None:
        """Copy what was made once: to make it takes longer than to look at it."""
        shutil.copytree(made, folder, dirs_exist_ok=True)
        self.folder = folder
        self.root = folder / "file_index"
        self.configuration = str(folder / "configuration")
        with self.store() as store:
            store.trust()

    @classmethod
    def make(cls, folder: Path) -> None:
        """Make a store of a few chunk files of one source folder."""
        notes = folder / "notes"
        notes.mkdir()
        for name in PARTS:
            (notes / f"{name.lower()}.md").write_text(f"# {name}\n\nAll about {name.lower()}.\n")
        root, configuration = str(folder / "file_index"), str(folder / "configuration")
        with InspectedStore.create(
            root, layout="tree", embedder="builtin", configuration=configuration
        ) as store:
            cls._add(store, notes)

    @staticmethod
    def _add(store: InspectedStore, path: Path) -> None:
        store.add(path)

    def add(self, path: Path) -> None:
        """Add a source from outside the inspector."""
        with self.store() as store:
            self._add(store, path)

    def store(self) -> InspectedStore:
        """The store, apart from the inspector."""
        return InspectedStore(str(self.root), configuration=self.configuration)

    def chunks(self) -> list[Path]:
        """The chunk files, by name."""
        return sorted(one for one in self.root.glob("chunked/**/*.md") if one.is_file())

    def tree(self) -> dict[str, bytes]:
        """Every truth file and its bytes."""
        return {
            os.fsdecode(os.fsencode(path.relative_to(self.root))): path.read_bytes()
            for top in ("chunked", "source")
            for path in (self.root / top).rglob("*")
            if path.is_file()
        }

    def codes(self) -> list[str]:
        """What is found now, apart from notes."""
        with self.store() as store:
            return [one.code for one in store.status().findings if one.severity != "I"]

    def inspect(
        self,
        act: Callable[["Session"], Awaitable[None]],
        *,
        page: str = "repair",
        size: tuple[int, int] = (120, 36),
        notifications: bool = False,
        **options: Any,
    ) -> None:
        """Do something on a page of the inspector, once it is looked at.

        Args:
            act: Presses keys and looks.
            page: The page to begin with.
            size: Of the screen.
            notifications: Whether they are drawn over the page.
            options: More of `Options`.
        """

        async def run() -> None:
            app = Inspector(
                Options(
                    store=str(self.root),
                    configuration=self.configuration,
                    page=page,
                    environment={"XDG_STATE_HOME": str(self.folder / "state"), "EDITOR": "none"},
                    **options,
                )
            )
            async with app.run_test(size=size, notifications=notifications) as pilot:
                session = Session(app, pilot)
                await session.until(lambda: app.is_seen and app.findings.coverage.level != "")
                await session.idle()
                await act(session)
            assert not app.fault

        asyncio.run(run())


class Session:
    """Somebody at the keyboard."""

    def __init__(self, app: Inspector, pilot: Any) -> None:
        self.app = app
        self.pilot = pilot
        self.said = heard(app)

    @property
    def view(self) -> Any:
        """The Repair page."""
        return next(view for view in self.app.views if view.place == "repair")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        until_s = time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            if holds():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"it never came to this:\n{self.seen()}")

    async def idle(self) -> None:
        """Wait until nothing is running any more."""
        await self.until(lambda: self.app.task_manager.busy is None)
        await self.pilot.pause(0.01)
        await self.until(lambda: self.app.task_manager.busy is None)
        await self.pilot.pause(0.02)

    async def press(self, *keys: str) -> None:
        """Press keys and wait for what comes of them."""
        self.said.clear()
        for key in keys:
            # What is to be seen first takes no key before.
            await self.until(lambda: self.app.is_seen)
            await self.pilot.press(key)
        await self.idle()

    async def read(self, words: str) -> None:
        """Wait until words are on the screen."""
        await self.until(lambda: words in self.seen())

    async def told(self, words: str) -> None:
        """Wait until words were said for a moment."""
        await self.until(lambda: any(words in one for one in self.said))

    def seen(self) -> str:
        """The words on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def plan(self, *keys: str) -> None:
        """Have a plan made by some keys."""
        await self.press(*keys)
        await self.until(lambda: self.view._rows is not None and not self.view._is_working())
        await self.idle()
