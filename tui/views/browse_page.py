"""Browse: resources and chunks, or what was searched, on the left; one of them on the right.

Puts the parts together and does their actions. One rule: what the cursor of the left side is on is
what the right side shows, unless a file was asked for that the catalog does not know.
"""

from asyncio import Lock
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus

from filestore.browse import ChunkPath
from tui.actions import ActionContext, Place
from tui.formatting import Line
from tui.formatting.chunks import SECTIONS
from tui.formatting.rows import nothing_lines
from tui.formatting.search import query_words
from tui.views.browse_detail import Detail
from tui.views.browse_rows import TreeList, marked_paths
from tui.views.browse_search import BrowseSearch
from tui.views.browse_tree import BrowseTree
from tui.views.context import Jumped, Target, View, ViewContext, Visit
from tui.views.dialogs import Choice, ChoiceScreen
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane

MOST_VISITS: Final = 200
Stop = tuple[Visit, bool]
NOWHERE: Final = Target()
"""What no cursor is ever on."""


class BrowsePage(View):
    """What is on the page, and what follows the cursor."""

    place: ClassVar[Place] = "browse"
    SCOPED_CSS = False  # the width of the screen decides
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "step(1)", show=False),
        Binding("shift+tab", "step(-1)", show=False),
        Binding("n", "match(1)", show=False),
        Binding("N", "match(-1)", show=False),
        Binding("enter", "no_link", show=False),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    BrowseView { height: 1fr; }
    BrowseView #browse-left { width: 2fr; min-width: 24; border-right: solid $panel; }
    BrowseView.-searching #browse-left { width: 3fr; }
    .-ascii BrowseView #browse-left { border-right: ascii $panel; }
    .-narrow BrowseView #browse-left { width: 1fr; border-right: none; }
    .-narrow BrowseView #browse-detail { width: 1fr; }
    .-narrow BrowseView.-reading #browse-left { display: none; }
    .-narrow BrowseView.-listing #browse-detail { display: none; }
    """

    def __init__(self, host: ViewContext) -> None:
        super().__init__(host)
        # Held here: the session is saved when no screen has them any more.
        self.outline = BrowseTree(host)
        """Resources and chunks."""
        self.search = BrowseSearch(host)
        """Query and hits."""
        self.detail = Detail(host, self._nothing_lines)
        """What is shown of one of them."""
        self._is_searching = False
        self._followed: Target | None = NOWHERE
        """What the cursor of the tree was on when it last moved."""
        self._going_to = ""
        """The file that the cursor of the tree is on its way to."""
        self._visits: list[Stop] = []
        """Where a jump began, oldest first; and whether that was in the list of hits."""
        self._ahead: list[Stop] = []
        """What was come back from."""
        self._steps = 0
        """How many chunks to go forward (or back, below 0)."""
        self._section: str = SECTIONS[0]
        self._completing = Lock()
        # Before there is a screen: with one, every part would get its styles once more.
        self.add_class("-listing", update=False)

    def compose(self) -> ComposeResult:
        """Left and right."""
        with Horizontal():
            with Vertical(id="browse-left"):
                yield self.outline
            yield self.detail

    @property
    def is_complete(self) -> bool:
        """Whether it has its unseen parts, too."""
        return self.search.is_attached

    async def complete(self) -> None:
        """Mount search, map, family and neighbours: without them the list is seen sooner."""
        # A key waits here for the parts that are being mounted.
        async with self._completing:
            # One at most: none once the inspector ends.
            for left in self.query("#browse-left"):
                if not self.is_complete:
                    await left.mount(self.search)
                    await self.detail.complete()

    def on_mount(self) -> None:
        """Begin with the list."""
        self.detail.choose(self._section)
        if self._section in self.detail.columns:
            self.call_later(self.complete)

    @property
    def listed(self) -> VirtualRows:
        """The list on the left that is seen."""
        return self.search.hits if self._is_searching else self.outline.rows

    # What the frame asks

    def action_context(self) -> ActionContext:
        """What is under the cursor, and what is known of it."""
        path = self.detail.path or self._path
        index = self.host.findings.index
        found = index.of_row(path) if path else ()
        below = self._drifted if not path else ()
        return ActionContext(
            place=self.place,
            path=index.moved_to(path) or path,
            piece="" if path else self.detail.piece,
            line=self.detail.first_line,
            resource="" if self._is_searching else self.outline.resource or "",
            query=self.search.query_words if self._is_searching else "",
            mode=self.search.asked_mode,
            kind=self.search.asked_kind if self._is_searching else "",
            codes=tuple(dict.fromkeys(finding.code for finding in found)),
            paths=tuple(dict.fromkeys(one.path for one in found)) or tuple(below),
            marked=len(self.listed.marks),
        )

    def line_to_edit(self) -> int:
        """The line that is read, or the one with the words that were searched."""
        return self.detail.line_to_edit()

    @property
    def _drifted(self) -> Sequence[str]:
        """The folder of the resource under the cursor and its originals, where any has findings."""
        index, name = self.host.findings.index, self.outline.resource
        if self._is_searching or not name or not any(index.of_resource(name).values()):
            return ()
        folder = self.host.findings.tree.store_path(ChunkPath(name)).rstrip("/")
        return folder, *index.originals.get(name.rstrip("/"), ())

    @property
    def _path(self) -> str:
        """Of the file under the cursor, before it is shown."""
        return self.search.path if self._is_searching else self.outline.path

    def entered(self) -> None:
        """Give the focus to the list, unless something here has it."""
        focused = self.screen.focused
        if focused is None or self not in focused.ancestors:
            self._listing()

    def open_path(self, path: str, line: int = 0, section: int = 0) -> None:
        """Show a file, and put the cursor on it where the catalog knows it.

        Args:
            path: The file.
            line: Of a document in place: show the section with this line; 0 for all of it.
            section: The same by its id.
        """
        self._remember()
        self._open(Target(path=path, line=line), section)

    def _open(self, target: Target, section: int = 0) -> None:
        """Show a file, and put the cursor on it."""
        self._leave_search()
        self._going_to = target.path
        self.detail.show(Target(file=section) if section else target)
        self.outline.open_path(target.path, target.line, section)

    # Jumps, and the way back

    def _remember(self) -> None:
        """Keep what is shown, before a jump."""
        visit = self.detail.visit
        if visit is not None:
            self._visits = [*self._visits[-MOST_VISITS:], (visit, self._is_searching)]
            self._ahead = []

    def _travel(self, come_from: list[Stop], go_to: list[Stop], where: str) -> None:
        """Take one step of the history."""
        visit = self.detail.visit
        if not come_from:
            self.host.notify(f"nothing to go {where} to")
            return
        if visit is not None:
            go_to.append((visit, self._is_searching))
        was, was_searching = come_from.pop()
        name = was.target.resource
        if was_searching:
            self._show_search()
            self.detail.find = query_words(self.search.query_words)
        elif name is None:
            self._open(was.target)
        else:
            self._leave_search()
            self.outline.rows.move_to(self.outline.way(name))
        self.detail.come_back(was)

    def do_jump_back(self) -> None:
        """Go to what was shown before the last jump."""
        self._travel(self._visits, self._ahead, "back")

    def do_jump_forward(self) -> None:
        """Go on to what was come back from."""
        self._travel(self._ahead, self._visits, "forward")

    @on(TextPane.Followed)
    def _follow_link(self, event: TextPane.Followed) -> None:
        event.stop()
        path = self.detail.path

        def jump(found: tuple[str, str]) -> None:
            if found == (path, ""):
                self.host.notify("this link leads to the page that it is on")
            else:
                self._jump(Target(path=found[0], heading=found[1]))

        read = partial(self.host.task_manager.read, then=jump, group="link", urgent=True)
        match event.leads_to:
            case (str(to), int(line)) if line or self.host.findings.tree.has_sections:
                self._jump(Target(path=to, top=line))
            case (str(to), 0):
                # Of a chunk store a link of a person's leads to an original, too.
                read(lambda store: (store.named(to)[0], ""))
            case str(written):
                read(lambda store: store.followed(path, written))

    def action_no_link(self) -> None:
        """Say why enter does nothing in a text."""
        self.host.notify("no link is in sight")

    def _jump(self, target: Target) -> None:
        self._remember()
        self._open(target)
        self.detail.take_focus()

    def do_outline(self) -> None:
        """Choose a heading of the text, and go there."""
        found = self.detail.outline
        if not found:
            self.host.notify("this text has no headings")
            return
        choices = [Choice(str(at), f"{'  ' * (level - 1)}{title}") for level, title, at in found]
        here = [line for _, _, line in found if line <= self.detail.reader.begins[0]]
        question = ChoiceScreen("Outline", choices, at=str(here[-1]) if here else "")

        def go(line: str | None) -> None:
            if line:
                self._remember()
                self.detail.go_to(int(line))

        self.app.push_screen(question, go)

    def store_changed(self) -> None:
        """Read everything that is shown again."""
        if self.is_mounted:
            self.outline.store_changed()
            self.detail.store_changed()

    def findings_changed(self) -> None:
        """Draw the findings again."""
        if self.is_mounted:
            self.outline.findings_changed()
            self.search.findings_changed()
            self.detail.findings_changed()

    def saved(self) -> Mapping[str, Any]:
        """What is open, where the cursor is, the filter, the section."""
        kept = self.outline.saved()
        queries = list(self.search.input.earlier)
        return {**kept, "section": self.detail.section, "queries": queries}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the last session, before the page is mounted."""
        opened, path = saved.get("opened"), saved.get("path")
        names = opened if isinstance(opened, list) else []
        self.outline.restore(
            saved,
            opened=[name for name in names if isinstance(name, str)],
            path=path if isinstance(path, str) else "",
        )
        queries = saved.get("queries")
        if isinstance(queries, list):
            self.search.input.earlier = [one for one in queries if isinstance(one, str)]
        if saved.get("section") in SECTIONS:
            self._section = saved["section"]

    def _nothing_lines(self) -> Sequence[Line]:
        """The lines shown while the cursor is on nothing."""
        if self._is_searching:
            return nothing_lines(why="search") if self.search.query_words else ()
        if self.outline.model.is_filtered:
            return nothing_lines(why="filter")
        if self.outline.resources or not self.outline.is_known:
            return ()
        index = self.outline.index_lines()
        is_known = bool(index or self.host.findings.coverage.level)
        is_written = self.host.findings.tree.is_written
        why = "empty" if is_known else "looking"
        return nothing_lines(why=why, index=index, is_written=is_written)

    # The cursor moves

    @on(VirtualRows.Highlighted)
    @on(TreeList.Pointed)
    def _pointed_in_tree(self) -> None:
        if self.outline.is_known and not self.is_complete:
            self.call_after_refresh(self.complete)
        # A tree is also read again while the search hides it.
        if self._is_searching or self._going_to:
            return
        target = self.outline.target
        # A file that only the detail shows stays there until the cursor moves; so does what is
        # read while the list, which is read again, does not know its row.
        if target != self._followed and (target is not None or self.outline.key is None):
            self._followed = target
            self.detail.find = ()
            self.detail.follow(target)
        self.host.context_changed()

    @on(BrowseSearch.Pointed)
    def _pointed_in_hits(self) -> None:
        if self._is_searching and not self.search.is_asking:
            self.detail.find = query_words(self.search.query_words)
            self.detail.follow(self.search.target)
            self.host.context_changed()

    @on(BrowseTree.Arrived)
    def _arrived(self, event: BrowseTree.Arrived) -> None:
        if event.path == self._going_to:
            # It is shown already, and so it stays unless the cursor was moved meanwhile.
            self._going_to = ""
            self._followed = event.left_on
            self._pointed_in_tree()

    @on(Detail.Shown)
    def _shown(self) -> None:
        self.host.context_changed()

    @on(VirtualRows.Chosen)
    def _chosen(self) -> None:
        """Read it; a hit where it is in the tree, from which the way back leads to the hits."""
        target = self.search.target if self._is_searching else None
        if target is not None:
            self._remember()
            self._open(target)
            self.detail.find = query_words(self.search.query_words)
        self._reading()

    def _reading(self) -> None:
        """Go to the detail; show it alone where there is no room for both."""
        self._show_side(is_reading=True)
        self.detail.take_focus()

    def _listing(self) -> None:
        self._show_side(is_reading=False)
        # At once: the next key may be here already.
        self.screen.set_focus(self.listed)

    def _show_side(self, *, is_reading: bool) -> None:
        self.set_class(is_reading, "-reading")
        self.set_class(not is_reading, "-listing")

    @on(DescendantFocus)
    def _focus_moved(self) -> None:
        """On a narrow screen, show the side with the focus."""
        self._show_side(is_reading=not self._is_on_the_left)

    @on(Jumped)
    def _jumped(self, event: Jumped) -> None:
        self.open_path(event.path, event.line)
        self.detail.take_focus()

    @property
    def _is_on_the_left(self) -> bool:
        focused = self.screen.focused
        return focused is None or self.detail not in focused.ancestors

    def _show_search(self) -> None:
        """Show what was searched in place of the tree."""
        self._is_searching = True
        self.add_class("-searching")
        self.outline.display = False
        self.search.display = True

    def _leave_search(self) -> bool:
        if not self._is_searching:
            return False
        self._is_searching = False
        self.remove_class("-searching")
        self.search.display = False
        self.outline.display = True
        self.detail.find = ()
        self._mark_on_map()
        return True

    def _mark_on_map(self) -> None:
        if self.detail.section == "map":
            self._read_marked(self.detail.map.mark)

    def _read_marked(self, then: Callable[[Sequence[str]], None], *, or_row: bool = False) -> None:
        key, found = self.outline.key, self.listed.marks
        is_row = or_row and not found
        marks = sorted(self.outline.marked_with(key) if is_row and key else found, key=str)
        self.host.task_manager.read(lambda store: marked_paths(store, marks), then, group="marked")
