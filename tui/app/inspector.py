"""The inspector: opens a store, checks and watches it, and saves the session."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from filestore import FilestoreError, Finding, NoStoreError
from filestore.browse import CatalogNewerError, InspectedStore, find_root, listed, user_inspector
from tui.actions import Place
from tui.app.commands import Commands
from tui.app.frame import Options
from tui.formatting import quoted
from tui.formatting.findings import Coverage
from tui.formatting.reports import standing, store_name
from tui.state.findings import StatsFindings, by_stats
from tui.views.context import View
from tui.views.dialogs import Choice, ChoiceScreen, PromptScreen, StartScreen
from tui.widgets.drawing import MONO, first_theme
from tui.widgets.upstream import Delay
from tui.workers import session_file
from tui.workers.session_file import Saved
from tui.workers.task_manager import TaskManager, make_store
from tui.workers.tasks import Handlers, Job, Opening

if TYPE_CHECKING:
    from filestore import Status
    from tui.workers.file_watcher import FileWatcher, Notice

MOST_PROMPTS: Final = 50
PASSING_S: Final = 2.0
"""When to check again after a finding that goes away by itself, such as a lock."""
SETTLED_S: Final = 1.0
"""How long no file changes before the whole store is checked."""
LOOKS_S: Final = 1.0
"""How long a folder without a store is looked at before what can be done is offered."""
OTHER: Final = "other"
"""The choice of a store whose path is typed."""
AFTER_FIRST_S: Final = 0.3
"""How long what starts processes waits for the first drawing."""


class Inspector(Commands):
    """Three pages over one store."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._watching: FileWatcher | None = None
        self._following_git = Delay(self)
        self._git_stamp = 0
        """When git last wrote its state; see `InspectedStore.git_stamp`."""
        self._verified = -1
        """The generation that `findings` describes."""
        self._generation = 0
        """Of the catalog, when it was last checked."""
        self._until_first = ExitStack()
        """Holds back drawing until the first page is whole."""
        self._settling = Delay(self)
        self._sources: frozenset[str] = frozenset()
        """The originals with findings that it is known of what was made from them."""
        self._is_gone = False
        self._is_new = False
        """Whether the store was made here, of documents."""
        self._is_asked = False
        """Whether to report what the next look finds."""

    def make_page(self, place: Place) -> View:
        """Make a page; its module is loaded only now."""
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
        self.hold_keys()
        asyncio.get_running_loop().set_exception_handler(self._keep_lost)
        self.theme = first_theme(self.options.environment, "")
        self.set_interval(1.0, self.draw_head)
        self.call_later(self.open_store)

    def open_store(self) -> None:
        """Find the store and open it, or show why not and what to do."""
        self.hold_keys()
        # The one that was open stays the one: the working folder may be gone, or another one.
        named = self.options.store or self.root or None
        try:
            self.root = find_root(named or os.getcwd(), named)
        except FilestoreError as error:
            self.cannot_open(error)
            return
        self._is_gone = False
        self.task_manager = TaskManager(
            Opening(root=self.root, configuration=self.options.configuration),
            post=self.post,
            failed=self.fail,
            changed=self.work_changed,
        )
        path = session_file.path_of(self.root, self.options.environment)
        self.saved, problem = session_file.read(path)
        if problem:
            self.notify(f"could not restore the last session: {problem}")
        self._take_settings()
        self._until_first.enter_context(self.batch_update())
        made_early = tuple(self.views)
        # Before anything else is read, so that every row that is drawn knows it.
        self.task_manager.read(
            lambda store: store.places.tree,
            self.findings.take_tree,
            group="layout",
            failed=lambda _: None,
            urgent=True,
        )
        # Where what was asked for is seen; else the page that was left.
        left = "browse" if self.options.select else self.saved.page
        self.go(self.options.page or cast("Place", left))
        self.task_manager.read(
            lambda store: (_catalog_of(store), store.settings.unknown),
            partial(self._opened, made_early),
            group="open",
            failed=self.cannot_open,
            urgent=True,
        )

    def _take_settings(self) -> None:
        try:
            self.take_own(user_inspector(self.options.configuration))
        except FilestoreError as error:
            self.fail(error)
        chosen = self.own.theme or self.saved.theme
        self.theme = first_theme(self.options.environment, chosen)
        if self.own.theme and self.theme not in (self.own.theme, MONO):
            self.notify(f"inspector.theme: no theme is called {chosen}", severity="warning")

    def _opened(self, made_early: Sequence[View], found: tuple[str, Sequence[str]]) -> None:
        catalog, unknown = found
        if unknown:
            # One for all: a stranger's settings may have thousands.
            self.notify(listed(unknown, separator="\n"), severity="warning")

        def show_first() -> None:
            self._until_first.close()
            self.take_keys()

        self.view.call_after_refresh(show_first)
        for view in made_early:
            # They were made when the store could not be opened yet.
            view.store_changed()
        # A terminal that is killed leaves no time for it: this store is the last one from now on.
        where = session_file.path_of(self.root, self.options.environment)
        session_file.write(where, replace(self.saved, root=self.root))
        if self.options.select:
            self.open_named(self.options.select)
        if self._is_new:
            # It has no index.
            self._is_new = False
            self.do_sync()
        # These start processes, which would slow down the first drawing.
        self.set_timer(AFTER_FIRST_S, self._look)
        # Load the Markdown renderer before the first text needs it.
        load = partial(
            self.task_manager.read,
            lambda _: import_module("tui.views.rendered"),
            lambda _: None,
            group="make ready",
        )
        self.set_timer(AFTER_FIRST_S, load)
        self.set_timer(AFTER_FIRST_S, partial(self._begin_watching, catalog))

    def cannot_open(self, error: FilestoreError) -> None:
        """Show why there is nothing, and what to do."""
        if isinstance(error, NoStoreError) and self.root and not os.path.isdir(self.root):
            # One that was open: a new one in its place would hide it.
            message = f"{self.root} is gone: moved, deleted, or on a disk that is not mounted"
            error = NoStoreError(f"{message}; restore it, then try again")
        self._until_first.close()
        if self.task_manager is not None:
            self.task_manager.end()
        self.drop_keys()
        self.run_worker(partial(self._find_ways, error), thread=True, exclusive=True)

    def _find_ways(self, error: FilestoreError) -> None:
        """Look, in a thread, what can be done where no store can be opened."""
        ways = []
        if isinstance(error, NoStoreError) and not self.root:
            ways = [
                Choice("make", "make a chunk store here", "empty, to add to", key="n"),
                Choice("example", "open the example", "a copy of it, here", key="x"),
            ]
            # Its modules are not needed where there is a store.
            from filestore.browse import look_at_folder

            try:
                seen = look_at_folder(os.getcwd(), within_s=LOOKS_S)
            except FilestoreError:
                pass  # what cannot be listed is not offered
            else:
                # First where there is something to index.
                title = "index this folder where it is"
                index = Choice("index", title, seen.words(), key="i")
                ways.insert(0 if seen.documents else len(ways), index)
        ways += self._recent()

        def offer() -> None:
            self.push_screen(StartScreen(error, ways), partial(self._take_way, error))

        self.post(offer)

    def _recent(self) -> list[Choice]:
        """The stores that were opened before, without this one."""
        roots = session_file.recent(self.options.environment)
        return [Choice(one, f"open {store_name(one)}", one) for one in roots if one != self.root]

    def do_stores(self) -> None:
        """Leave, as by quitting, for a store that was opened before, or whose path is typed."""
        other = Choice(OTHER, "another one", "type its path")

        def leave(root: str | None) -> None:
            if root == OTHER:
                self.push_screen(PromptScreen("open ", hint="the folder of a store"), leave)
            elif root:
                folder = os.path.abspath(os.path.expanduser(root))
                try:
                    self.leave_for(find_root(folder, folder))
                except FilestoreError as error:
                    # It is not this store that is gone.
                    super(Inspector, self).fail(error)

        self.push_screen(ChoiceScreen("Stores", [*self._recent(), other]), leave)

    def _take_way(self, error: FilestoreError, way: str | None) -> None:
        """Go on from the screen that is shown where no store can be opened."""
        if way is None:
            self.exit(error.exit_code, return_code=error.exit_code)
        elif way == "retry":
            self.open_store()
        elif os.path.isabs(way):
            self.options, self.root = replace(self.options, store=way), ""
            self.open_store()
        else:
            self.drop_keys()
            self.run_worker(partial(self._make, way), thread=True, exclusive=True)

    def _make(self, kind: str) -> None:
        """Make a store, or a copy of the example, in a thread; then open it."""
        try:
            root = make_store(os.getcwd(), configuration=self.options.configuration, kind=kind)
        except FilestoreError as error:
            self.post(partial(self.cannot_open, error))
        else:
            self.post(partial(self._made, root, kind))

    def _made(self, root: str, kind: str) -> None:
        self.options = replace(self.options, store=root)
        self._is_new = kind != "make"
        if kind != "example":
            layout = "--in-place " if kind == "index" else ""
            self.note(f"filestore init {layout}{quoted(root)}")
        self.notify(f"the store is {root}")
        self.open_store()

    async def on_unmount(self) -> None:
        """Save the session and close the store."""
        self._stop_watching()
        if self.task_manager is None:
            return
        saved = Saved(
            root=self.root,
            page=cast("session_file.Page", self.page),
            # NO_COLOR is not a choice for the next session.
            theme=self.saved.theme if self.options.environment.get("NO_COLOR") else self.theme,
            views={view.place: view.saved() for view in self.views},
            prompts=tuple(self.prompts[-MOST_PROMPTS:]),
        )
        session_file.write(session_file.path_of(self.root, self.options.environment), saved)
        self.task_manager.end()

    # What views ask for: see `ViewContext`

    def plan(self, findings: Sequence[Finding]) -> None:
        """Plan a repair of these in Repair."""
        self.on_page("repair", lambda view: view.plan_for(findings))

    def choose_side(self, finding: Finding) -> None:
        """Show both sides of a conflict; the choice becomes a plan in Repair."""
        from tui.views.verify_panes import SidesScreen

        self.push_screen(
            SidesScreen(self, finding),
            lambda side: (
                self.on_page("repair", lambda view: view.take_side(side)) if side else None
            ),
        )

    def look_again(self) -> None:
        """The store may have changed: check everything again."""
        self._update_views()
        self._look()

    def _update_views(self) -> None:
        for view in self.views:
            view.store_changed()

    def findings_changed(self) -> None:
        """Update every page; learn what was made from the originals that have findings."""
        super().findings_changed()
        index = self.findings.index
        sources = frozenset(index.sources)
        if sources != self._sources:
            self._sources = sources

            def take(found: Mapping[str, Sequence[str]]) -> None:
                self.findings.index.originals = found
                super(Inspector, self).findings_changed()

            self.task_manager.read(
                lambda store: store.listing.made_from(sources), take, group="originals"
            )

    # Checking the store

    def verified(self, found: Sequence[Finding], level: str, not_checked: tuple[str, ...]) -> None:
        """Take what the verification after a repair found.

        After a check by stats alone, findings of a more thorough one stay.
        """
        is_all = level != "fast" or self.findings.coverage.level not in ("full", "deep")
        kept = () if is_all else tuple(self.findings)
        self.task_manager.read(
            lambda store: (_generation(store), by_stats(kept, found, store.places.tree)),
            partial(self._take_verified, Coverage(level=level, not_checked=not_checked), is_all),
            group="",
        )

    def _take_verified(
        self, coverage: Coverage, is_all: bool, whole: tuple[int, StatsFindings]
    ) -> None:
        self._verified, stats = whole
        is_clean = all(finding.severity == "I" for finding in stats.index.known.values())
        self._take_found(stats, coverage, is_all=is_all, clean=is_clean)

    def _take_found(
        self, found: StatsFindings, coverage: Coverage, *, is_all: bool, clean: bool
    ) -> None:
        coverage = replace(coverage, at=time.strftime("%H:%M:%S"))
        if is_all:
            self.findings.replace(found.index, coverage, clean=clean)
        else:
            self.findings.replace_by_stats(found, coverage, clean=clean)
        self.findings_changed()

    def fail(self, error: FilestoreError) -> None:
        """Show an error; a store that is gone gets a screen of its own."""
        if isinstance(error, NoStoreError) and self.views:
            if not self._is_gone:
                self._is_gone = True
                self.cannot_open(error)
            return
        super().fail(error)

    def _look(self) -> None:
        if any(one.title == "status" and one.state == "waiting" for one in self.task_manager.tasks):
            return
        self.task_manager.work(
            Job(name="status"), Handlers(then=self._take_status), title="status", writes=False
        )

        def take_next_undo(found: tuple[str, str]) -> None:
            self.next_undo_redo = found
            self.draw()

        self.task_manager.read(InspectedStore.next_undo_redo, take_next_undo, group="next undo")

        self.task_manager.read(
            InspectedStore.why_not_enriched,
            partial(setattr, self, "no_enrich"),
            group="no enrich",
            failed=lambda _: None,
        )
        note_generation = partial(setattr, self, "_generation")
        self.task_manager.read(_generation, note_generation, group="generation")

    def _take_status(self, status: "Status") -> None:
        # Behind what a repair that has just ended found: that may not have been taken yet.
        self.task_manager.read(
            lambda _: None,
            lambda _: self._merge_status(status),
            group="",
            failed=lambda _: self._merge_status(status),
        )

    def _merge_status(self, status: "Status") -> None:
        is_as_verified = bool(self.findings.coverage.level) and status.generation == self._verified
        kept = tuple(self.findings) if is_as_verified else ()
        self._verified = status.generation
        take = partial(self._take_stats, status, is_as_verified)
        self.task_manager.read(
            lambda store: by_stats(kept, status.findings, store.places.tree),
            take,
            group="",
            failed=lambda _: take(by_stats(kept, status.findings, self.findings.tree)),
        )

    def _take_stats(self, status: "Status", is_as_verified: bool, whole: StatsFindings) -> None:
        coverage = Coverage(level="status", not_checked=status.not_checked)
        self._take_found(whole, coverage, is_all=not is_as_verified, clean=status.clean)
        if self._is_asked:
            self._is_asked = False
            found = standing(self.findings.clean, self.findings.index.severities, running=False)
            self.notify(f"looked again: {found[0].text}")
        if any(finding.meaning.passing for finding in status.findings):
            # No event reports that a lock was released.
            self.set_timer(PASSING_S, self._look)
        if any(finding.meaning.of_git for finding in status.findings):
            self._follow_git()

    def _follow_git(self) -> None:
        """Look again once git wrote something: a conflict may end without a change of a file."""

        def take(stamp: int) -> None:
            known, self._git_stamp = self._git_stamp or stamp, stamp
            if known != stamp:
                self._look()
            else:
                self._following_git.begin(PASSING_S, self._follow_git)

        self.task_manager.read(
            lambda store: store.git_stamp(), take, group="git", failed=lambda _: None
        )

    def check(self, paths: Iterable[str], then: Callable[[Sequence[Finding]], None]) -> None:
        """Check some files alone, and show the findings."""
        # A file that was moved is known as such only together with its old path.
        known, named = self.findings.index.of_path, set(paths)
        moved = (one for path in named for one in known(path) if one.code == "moved")
        chosen = sorted(named.union(one.other for one in moved))
        self.task_manager.read(
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
        # One file alone does not show moves, mass changes and what is accepted.
        self._settling.begin(SETTLED_S, self._look)

    def _begin_watching(self, catalog: str) -> None:
        from tui.workers.file_watcher import FileWatcher

        self._stop_watching()
        self._watching = FileWatcher(
            self.root,
            catalog=catalog,
            tree=self.findings.tree,
            post=self.post,
            notify=self._take_notice,
        )

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.end()
            self._watching = None

    def _take_notice(self, notice: "Notice | FilestoreError") -> None:
        from tui.workers.file_watcher import CatalogChanged, Changed, Ready, Unavailable

        match notice:
            case Changed(paths=None):
                self.look_again()
            case Changed(paths=frozenset() as paths):
                self.check(paths, lambda _: self._update_views())
            case CatalogChanged():
                # By another program, or by our own work, which took note of the generation.
                self.task_manager.read(_generation, self._take_generation, group="generation")
            case Ready():
                # Changes between the first check and now were not reported.
                self._look()
            case Unavailable(reason=reason):
                self.notify(f"file watching is unavailable ({reason}); polling instead")
            case FilestoreError():
                self.fail(notice)

    def _take_generation(self, generation: int) -> None:
        known, self._generation = self._generation, generation
        if known != generation:
            self.look_again()

    # Actions

    def do_look_again(self) -> None:
        """Open the store again, as it is now."""
        self._is_asked = True
        self.task_manager.reopen()
        self.look_again()

    def do_undo(self) -> None:
        """Undo the last change."""
        self.on_page("repair", lambda view: view.undo_or_redo("before"))

    def do_redo(self) -> None:
        """Make the change again that was undone."""
        self.on_page("repair", lambda view: view.undo_or_redo("after"))


def _generation(store: InspectedStore) -> int:
    """The generation of the catalog as it is now."""
    return store.listing.generation


def _catalog_of(store: InspectedStore) -> str:
    """Where the catalog lies, once it is known that there is something to show.

    Raises:
        CatalogNewerError: A newer program wrote it.
    """
    try:
        store.listing.generation  # noqa: B018 # opens it
    except CatalogNewerError:
        raise
    except FilestoreError:
        pass  # one that is damaged or missing is rebuilt by sync
    return store.places.catalog
