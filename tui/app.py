"""The inspector: opens a store, looks at it, watches it, and keeps what is to be found again."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from filestore import FilestoreError, Finding, NoStoreError, Store, find_root
from tui.backstage import Backstage, Handlers, Job, Opening, heartbeat, making, memory
from tui.desk import View
from tui.frame import Options
from tui.menus import Menus
from tui.model.findings import ByStats, Looked, Told, by_stats
from tui.model.prompt import Typed
from tui.model.state import Saved
from tui.situations import Place
from tui.widgets.themes import first_theme
from tui.words.commands import all_quoted, quoted
from tui.words.frame import add_errors, add_words
from tui.words.lines import count, one_line

if TYPE_CHECKING:
    from textual.timer import Timer

    from filestore import AddReport, Status
    from tui.backstage.watching import Watching

MOST_PROMPTS: Final = 50
PASSING: Final = frozenset({"locked", "fulltext-behind"})
"""Codes of what passes by itself when another process is done."""
PASSING_S: Final = 2.0
SETTLED_S: Final = 1.0
"""After so long without another change of files the whole store is looked at."""
AFTER_FIRST_S: Final = 0.3
"""How long what needs processes of its own waits for the first picture."""


class Inspector(Menus):
    """Three pages over one store."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._watching: Watching | None = None
        self._verified = -1
        """The generation of what `findings` tells."""
        self._generation = 0
        """Of the catalog, when it was looked at the last time."""
        self._until_first = ExitStack()
        """Draws nothing: a picture of a page that is half there would be one more to make."""
        self._settling: Timer | None = None
        self._is_gone = False
        self._is_new_example = False
        self._heartbeat = heartbeat.of(options.environment)

    def make_page(self, place: Place) -> View:
        """Make a page. Its module is loaded then: what is not looked at costs nothing."""
        if place == "browse":
            from tui.views.browse import BrowseView

            return BrowseView(self)
        if place == "verify":
            from tui.views.verify import VerifyView

            return VerifyView(self)
        from tui.views.repair import RepairView

        return RepairView(self)

    def on_mount(self) -> None:
        """Open the store, and show the page that was left."""
        self.theme = first_theme(self.options.environment, "")
        self.set_interval(1.0, self.draw_head)
        self._heartbeat.start()
        self.call_later(self.open_store)

    def open_store(self) -> None:
        """Find the store and open it, or say why not and what can be done."""
        try:
            root = find_root(os.getcwd(), self.options.store)
        except FilestoreError as error:
            self.cannot_open(error)
            return
        self.root = root
        self._is_gone = False
        self.backstage = Backstage(
            Opening(root=root, configuration=self.options.configuration),
            post=self.post,
            failed=self.fail,
            changed=self.work_changed,
        )
        self._recall()
        self._until_first.enter_context(self.batch_update())
        in_vain = tuple(self.views)
        self.go(self.options.page or cast(Place, self.saved.page))
        self.backstage.read(
            _catalog_of,
            partial(self._opened, in_vain),
            group="open",
            failed=self.cannot_open,
            urgent=True,
        )

    def _recall(self) -> None:
        path = memory.path_of(self.root, self.options.environment)
        self.saved, problem = memory.read(path)
        if problem:
            self.say(f"what was kept of the last session is not used: {problem}")
        self.theme = first_theme(self.options.environment, self.saved.theme)

    def _opened(self, in_vain: Sequence[View], catalog: str) -> None:
        self.when_ready(self.view, self._until_first.close)
        for view in in_vain:
            # It was made when the store could not be opened yet.
            view.store_changed()
        if self.options.select:
            self.open_path(self.options.select)
        if self._is_new_example:
            # Its index is derived, and not in what was copied.
            self._is_new_example = False
            self.do_sync()
        # Both start processes, which would take their share of the machine from the first picture.
        self.set_timer(AFTER_FIRST_S, self._look)
        self.set_timer(AFTER_FIRST_S, self._make_ready)
        self.set_timer(AFTER_FIRST_S, partial(self._begin_watching, catalog))

    def _make_ready(self) -> None:
        """Load what the first text that is read is drawn with, before somebody waits for it."""

        def load(_: Store) -> None:
            import tui.views.rendered  # noqa: F401

        self.backstage.read(load, lambda _: None, group="make ready")

    def cannot_open(self, error: FilestoreError) -> None:
        """Say why there is nothing to show, and what can be done."""
        from tui.modals.start import StartScreen

        self._until_first.close()
        if self.backstage is not None:
            self.backstage.end()
        absent = isinstance(error, NoStoreError)
        self.push_screen(StartScreen(error, absent=absent), partial(self._take_way, error))

    def _take_way(self, error: FilestoreError, way: str | None) -> None:
        """Go on from the screen that stood where no store could be opened."""
        if way == "quit" or way is None:
            self.exit(error.exit_code, return_code=error.exit_code)
        elif way == "retry":
            self.open_store()
        else:
            self._make(example=way == "example")

    def _make(self, *, example: bool) -> None:
        """Make a store, or a copy of the example, and open it."""

        def make() -> None:
            try:
                root = making.make_store(
                    os.getcwd(), configuration=self.options.configuration, example=example
                )
            except FilestoreError as error:
                self.post(partial(self.cannot_open, error))
            else:
                self.post(partial(self._made, root, example))

        self.run_worker(make, thread=True, exclusive=True)

    def _made(self, root: str, example: bool) -> None:
        self.options = replace(self.options, store=root)
        self._is_new_example = example
        if not example:
            self.note(f"filestore init {quoted(root)}")
        self.say(f"the store is {root}")
        self.open_store()

    async def on_unmount(self) -> None:
        """Keep what is to be found again; let go of the store."""
        self._heartbeat.end()
        self._stop_watching()
        if self.backstage is None:
            return
        views: dict[str, Mapping[str, Any]] = {view.place: view.saved() for view in self.views}
        saved = Saved(
            page=self.page,
            # What the environment asks for is not a choice for the next time.
            theme=self.saved.theme if self.options.environment.get("NO_COLOR") else self.theme,
            views=views,
            prompts=tuple(self.prompts[-MOST_PROMPTS:]),
        )
        memory.write(memory.path_of(self.root, self.options.environment), saved)
        self.backstage.end()

    # What views ask for: see `Desk`

    def open_path(self, path: str) -> None:
        """Show a file in Browse."""
        self._on("browse", lambda view: view.open_path(path))

    def plan(self, findings: Sequence[Finding]) -> None:
        """Show in Repair what would mend these."""
        self._on("repair", lambda view: view.plan_for(findings))

    def choose_side(self, finding: Finding) -> None:
        """Show both sides of a conflict; the choice becomes a plan in Repair."""
        from tui.modals.sides import SidesScreen

        self.push_screen(
            SidesScreen(self, finding),
            lambda side: self._on("repair", lambda view: view.take_side(side)) if side else None,
        )

    def _on(self, place: Place, function: Callable[[Any], None]) -> None:
        """Show a page and have it do something."""
        self.go(place)
        view = self.page_of(place)
        self.when_ready(view, partial(function, view))

    def look_again(self) -> None:
        """The store may have changed: look at everything again."""
        self._tell_views()
        self._look()

    def _tell_views(self) -> None:
        for view in self.views:
            view.store_changed()

    # Looking at the store

    def verified(self, found: Sequence[Finding], level: str) -> None:
        """Take what the verification after a repair found.

        Where that looked by stats alone, what only a more thorough one told before stays.
        """
        is_all = level != "fast" or self.findings.looked.level not in ("full", "deep")
        kept = () if is_all else tuple(self.findings)
        self.backstage.read(
            lambda store: (_generation(store), by_stats(kept, found)),
            partial(self._take_verified, level, is_all),
            group="",
        )

    def _take_verified(self, level: str, is_all: bool, whole: tuple[int, ByStats]) -> None:
        self._verified, stats = whole
        is_clean = all(finding.severity == "I" for finding in stats.told.known.values())
        looked = Looked(level=level, at=time.strftime("%H:%M:%S"))
        if is_all:
            self.findings.replace(stats.told, looked, clean=is_clean)
        else:
            self.findings.replace_by_stats(stats, looked, clean=is_clean)
        self.findings_changed()

    def fail(self, error: FilestoreError) -> None:
        """Say what went wrong; a store that went away is a screen of its own."""
        if isinstance(error, NoStoreError) and self.views:
            if not self._is_gone:
                self._is_gone = True
                self.cannot_open(error)
            return
        super().fail(error)

    def _look(self) -> None:
        if any(one.title == "status" and one.state == "waiting" for one in self.backstage.tasks):
            return
        if self.options.findings is not None:
            found = self.options.findings
            self.backstage.read(
                lambda _: Told.of(found),
                self._take_earlier,
                group="",
                failed=lambda _: self._take_earlier(Told.of(found)),
            )
        else:
            self.backstage.work(
                Job(name="status"),
                Handlers(then=self._take_status),
                title="status",
                command="filestore status",
                writes=False,
            )
        self.backstage.read(Store.turnable, self._take_turnable, group="turnable")
        self.backstage.read(_generation, self._note_generation, group="generation")

    def _note_generation(self, generation: int) -> None:
        self._generation = generation

    def _take_earlier(self, told: Told) -> None:
        self.findings.replace(told, Looked(level="earlier"), clean=False)
        self.findings_changed()

    def _take_status(self, status: "Status") -> None:
        is_as_verified = bool(self.findings.looked.level) and status.generation == self._verified
        kept = tuple(self.findings) if is_as_verified else ()
        self._verified = status.generation
        take = partial(self._take_stats, status, is_as_verified)
        self.backstage.read(
            lambda _: by_stats(kept, status.findings),
            take,
            group="",
            failed=lambda _: take(by_stats(kept, status.findings)),
        )

    def _take_stats(self, status: "Status", is_as_verified: bool, whole: ByStats) -> None:
        looked = Looked(level="status", at=time.strftime("%H:%M:%S"))
        if is_as_verified:
            self.findings.replace_by_stats(whole, looked, clean=status.clean)
        else:
            self.findings.replace(whole.told, looked, clean=status.clean)
        self.findings_changed()
        if any(finding.code in PASSING for finding in status.findings):
            # Nobody tells when a lock is let go of.
            self.set_timer(PASSING_S, self._look)

    def _take_turnable(self, found: tuple[str, str]) -> None:
        self.turnable = found
        self.draw()

    def check(self, paths: Iterable[str], then: Callable[[Sequence[Finding]], None]) -> None:
        """Look at some files alone, and show what is found."""
        chosen = sorted(paths)
        self.backstage.read(
            lambda store: store.check(chosen),
            partial(self._checked, chosen, then),
            group="",
            failed=lambda _: self.look_again(),
        )

    def _checked(
        self,
        paths: Sequence[str],
        then: Callable[[Sequence[Finding]], None],
        found: Sequence[Finding],
    ) -> None:
        self.findings.replace_of(paths, found, at=time.strftime("%H:%M:%S"))
        self.findings_changed()
        then(found)
        # A file alone does not tell of moves, of masses, and of what is accepted.
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLED_S, self._look)

    def _begin_watching(self, catalog: str) -> None:
        from tui.backstage.watching import Watching

        self._stop_watching()
        self._watching = Watching(
            self.root,
            post=self.post,
            changed=self._files_changed,
            store_changed=self._store_changed,
            catalog=catalog,
            # What happened between the first look and now was told by nobody.
            ready=self._look,
            blind=lambda reason: self.say(f"changes are noticed late: {reason}"),
        )

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.end()
            self._watching = None

    def _files_changed(self, paths: frozenset[str] | None) -> None:
        if paths is None:
            self.look_again()
        else:
            self.check(paths, lambda _: self._tell_views())

    def _store_changed(self) -> None:
        """The catalog has other content: somebody else wrote, or we did and know it already."""
        self.backstage.read(_generation, self._take_generation, group="generation")

    def _take_generation(self, generation: int) -> None:
        known, self._generation = self._generation, generation
        if known != generation:
            self.look_again()

    # Actions

    def obey(self, typed: Typed) -> None:
        """Do what was typed on the command line."""
        first = typed.words[0] if typed.words else ""
        doing: dict[str, Callable[[], None]] = {
            "vector": lambda: self._open_vector(int(first)),
            "path": lambda: self.open_path(first),
            "show": lambda: self.open_path(first) if first else self.do_browse(),
            "ls": self.do_browse,
            "search": lambda: self._search(first),
            "status": self.do_look_again,
            "verify": lambda: self._verify(first or "fast"),
            "sync": lambda: self._sync(typed),
            "repair": lambda: self._repair(typed),
            "undo": lambda: self._turn("do_undo", "list" in typed.options),
            "redo": lambda: self._turn("do_redo", "list" in typed.options),
            "add": lambda: self._add(typed.words),
            "help": self.do_help,
            "quit": self.do_quit,
        }
        doing[typed.name]()

    def _open_vector(self, vector: int) -> None:
        def take(path: str | None) -> None:
            if path is None:
                self.say(f"no file has the vector {vector}", severity="warning")
            else:
                self.open_path(path)

        self.backstage.read(
            lambda store: store.listing().path_of_vector(vector), take, group="vector"
        )

    def _search(self, query: str) -> None:
        self._on("browse", lambda view: view.search_for(query))

    def _verify(self, level: str) -> None:
        self._on("verify", lambda view: view.verify(level))

    def _sync(self, typed: Typed) -> None:
        if self.read_only:
            self.say(self.read_only, severity="warning")
        else:
            self.sync(
                full="full" in typed.options, forget_missing="forget-missing" in typed.options
            )

    def _repair(self, typed: Typed) -> None:
        from filestore import Policy

        policy = Policy(
            truth="truth" in typed.options,
            only=frozenset(typed.values("only")),
            paths=typed.values("path"),
            ours=typed.values("ours"),
            theirs=typed.values("theirs"),
            remove=typed.values("remove"),
        )
        self._on("repair", lambda view: view.plan_for(None, policy))

    def _turn(self, action: str, listed: bool) -> None:
        if listed:
            self._on("repair", lambda view: view.do_batches())
        else:
            self.action_do("everywhere", action.removeprefix("do_"))

    def _add(self, paths: Sequence[str]) -> None:
        if self.read_only or not paths:
            self.say(self.read_only or "add needs a path", severity="warning")
            return
        chosen = [os.path.abspath(os.path.expanduser(path)) for path in paths]
        command = f"filestore {self.store_option}add {all_quoted(chosen)}"
        self.note(command)
        self.backstage.work(
            Job(name="add", arguments={"paths": chosen}),
            Handlers(then=self._added, stopped=self.look_again),
            title="add",
            command=command,
            writes=True,
        )

    def _added(self, report: "AddReport") -> None:
        self.say(add_words(report))
        failed = add_errors(report)
        for source, error in failed:
            self.errors.append((time.time(), _of_source(source, error)))
        if failed:
            said = "E tells why" if len(failed) > 1 else one_line(failed[0][1].message)
            self.say(f"{count(len(failed), 'document')} failed: {said}", severity="error")
        self.look_again()

    def do_look_again(self) -> None:
        """Open the store again, as it is now."""
        self.backstage.reopen()
        self.look_again()

    def do_undo(self) -> None:
        """Undo the last change."""
        self._on("repair", lambda view: view.do_undo())

    def do_redo(self) -> None:
        """Make the change again that was undone."""
        self._on("repair", lambda view: view.do_redo())


def _generation(store: Store) -> int:
    """The generation of the catalog as it is now."""
    return store.listing().generation


def _catalog_of(store: Store) -> str:
    """Where the catalog lies, once it is known that there is something to show.

    Raises:
        CatalogNewerError: A newer program wrote it.
    """
    from filestore import CatalogNewerError

    try:
        store.listing().generation  # noqa: B018 # opens it
    except CatalogNewerError:
        raise
    except FilestoreError:
        pass  # one that is damaged or was not made yet is made anew by sync
    return store.places.catalog


def _of_source(source: str, error: FilestoreError) -> FilestoreError:
    """An error with the document that it is about."""
    return FilestoreError(f"{source}: {error.message}", remedy=error.remedy, detail=error.detail)
