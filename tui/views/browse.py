"""Browse: resources and chunks, or what was searched, on the left; one of them on the right.

Puts the parts together and does their actions. One rule: what the cursor of the left side is on is
what the right side shows, unless a file was asked for that the catalog does not know.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus
from textual.widget import Widget

from filestore import FilestoreError
from filestore.browse import ChunkPath, InspectedStore
from tui.actions import ActionContext, Place
from tui.formatting import MOST_NAMED, Line, all_quoted, count, line
from tui.formatting.chunks import SECTIONS
from tui.formatting.rows import COLUMNS, SORTS, nothing_lines
from tui.formatting.search import KINDS, query_words
from tui.views.browse_detail import Detail
from tui.views.browse_rows import TreeList, marked_paths
from tui.views.browse_search import BrowseSearch
from tui.views.browse_summaries import BrowseSummaries
from tui.views.browse_tree import BrowseTree
from tui.views.context import Jumped, Target, View, ViewContext, Visit
from tui.views.dialogs import Choice, ChoiceScreen, PromptScreen
from tui.widgets.rows import VirtualRows
from tui.widgets.text import TextPane

MOST_VISITS: Final = 200
Stop = tuple[Visit, bool]
NOWHERE: Final = Target()
"""What no cursor is ever on."""


class BrowseView(View):
    """The page on which a store is looked at."""

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
        self.summaries = BrowseSummaries(host)
        """The tree of summaries, which `S` shows in place of the resources."""
        self.search = BrowseSearch(host)
        """Query and hits."""
        self.detail = Detail(host, self._nothing_lines)
        """What is shown of one of them."""
        self._is_searching = False
        self._is_on_summaries = False
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
        self._section = SECTIONS[0][0]
        # Before there is a screen: with one, every part would get its styles once more.
        self.add_class("-listing", update=False)

    def compose(self) -> ComposeResult:
        """Left and right."""
        with Horizontal():
            with Vertical(id="browse-left"):
                yield self.outline
                yield self.summaries
                yield self.search
            yield self.detail

    def on_mount(self) -> None:
        """Begin with the list."""
        self.detail.choose(self._section)

    @property
    def listed(self) -> VirtualRows:
        """The list on the left that is seen."""
        return self.search.hits if self._is_searching else self._tree.rows

    @property
    def _tree(self) -> BrowseTree | BrowseSummaries:
        """The list of the left that is no search: files, or summaries."""
        return self.summaries if self._is_on_summaries else self.outline

    # What the frame asks

    def action_context(self) -> ActionContext:
        """What is under the cursor, and what is known of it."""
        path = self.detail.path or self._path
        index = self.host.findings.index
        found = index.of_row(path) if path else ()
        below = self._drifted if not path else ""
        return ActionContext(
            place=self.place,
            path=index.moved_to(path) or path,
            line=self.detail.first_line,
            resource="" if self._is_searching else self._tree.resource or "",
            query=self.search.query_words if self._is_searching else "",
            mode=self.search.asked_mode,
            kind=self.search.asked_kind if self._is_searching else "",
            codes=tuple(dict.fromkeys(finding.code for finding in found)),
            paths=tuple(dict.fromkeys(one.path for one in found)) or tuple(filter(None, [below])),
            marked=len(self.listed.marks),
        )

    def line_to_edit(self) -> int:
        """The line that is read, or the one with the words that were searched."""
        return self.detail.line_to_edit()

    @property
    def _drifted(self) -> str:
        """The folder of the resource under the cursor, where it has findings; else ""."""
        findings, name = self.host.findings, self._tree.resource
        if self._is_searching or not name or not any(findings.index.of_resource(name).values()):
            return ""
        return findings.tree.store_path(ChunkPath(name)).rstrip("/")

    @property
    def _path(self) -> str:
        """Of the file under the cursor, before it is shown."""
        return self.search.path if self._is_searching else self._tree.path

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
        self._show_summaries(False)
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
            self._show_summaries(False)
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

        match event.leads_to:
            case (str(to), int(line)):
                self._jump(Target(path=to, top=line))
            case str(written):
                read = self.host.task_manager.read
                read(lambda store: store.followed(path, written), jump, group="link", urgent=True)

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
        choices = [
            Choice(name=str(line), title=f"{'  ' * (level - 1)}{title}")
            for level, title, line in found
        ]
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
            self.summaries.store_changed()
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
        if saved.get("section") in [name for name, _, _ in SECTIONS]:
            self._section = saved["section"]

    def _nothing_lines(self) -> Sequence[Line]:
        """The lines shown while the cursor is on nothing."""
        if self._is_searching:
            return nothing_lines(why="search") if self.search.query_words else ()
        if self._is_on_summaries and not self.summaries.filter:
            is_read = self.summaries.is_known and not self.summaries.problem
            return nothing_lines(why="summaries") if is_read else ()
        if self._is_on_summaries or self.outline.model.is_filtered:
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
        # A tree is also read again while the search hides it.
        if self._is_searching or (self._going_to and not self._is_on_summaries):
            return
        target = self._tree.target
        # A file that only the detail shows stays there until the cursor moves.
        if self._is_on_summaries:
            self.detail.follow(target)
        elif target != self._followed:
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
        if self._is_on_summaries and not self._is_searching:
            self._remember()
            self.detail.show(Target(path=event.path))
            self.summaries.open_path(event.path)
        else:
            self.open_path(event.path, event.line)
        self.detail.take_focus()

    # Actions

    def do_open(self) -> None:
        """Open the resource, or read the chunk."""
        if not self._is_on_the_left:
            return
        if self._is_searching or not self._tree.rows.open():
            self._reading()

    @property
    def _is_on_the_left(self) -> bool:
        focused = self.screen.focused
        return focused is None or self.detail not in focused.ancestors

    def do_close(self) -> None:
        """Return to the list; there, close the resource, or go up to it."""
        if not self._is_on_the_left:
            self._listing()
        elif not self._is_searching:
            self._tree.rows.close()

    def do_close_all(self) -> None:
        """Close every resource."""
        self._tree.close_all()

    def do_open_all(self) -> None:
        """Open every resource."""
        self._tree.open_all()

    def do_filter(self) -> None:
        """Show some names only; in the text, find words in it."""
        if not self._is_on_the_left:
            self.detail.begin_find()
            return
        self._leave_search()
        self._listing()
        self._tree.begin_filter()

    def do_columns(self) -> None:
        """Choose what the list is sorted by, and its columns."""
        tree, now, shown = self.outline, self.outline.order, self.outline.chosen_columns
        choices = [
            Choice(
                name=f"-{name}" if now == name else name,
                title=f"sort by {name}",
                about="the other way round" if now == name else "",
            )
            for name in SORTS
        ]
        choices += [
            Choice(name=f"column {name}", title=f"{'hide' if name in shown else 'show'} {name}")
            for name in COLUMNS
        ]

        def take(chosen: str | None) -> None:
            kind, _, name = (chosen or "").partition(" ")
            if name:
                tree.toggle_column(name)
            elif kind:
                tree.sort(kind)

        self.app.push_screen(ChoiceScreen("Order and columns", choices, at=now), take)

    def do_summaries(self) -> None:
        """Show the tree of summaries in place of the files, or the files again."""
        self._leave_search()
        path, name = self.detail.path or self._path, self._tree.resource
        if self._is_on_summaries and path:
            self.open_path(path)
        else:
            self._show_summaries(not self._is_on_summaries)
            if path:
                self.summaries.open_path(path, name)
            elif self._is_on_summaries and name is not None:
                self.summaries.open_resource(name)
            elif name is not None:
                self.outline.rows.move_to(self.outline.way(name))
            self.detail.follow(self._tree.target)
        self._listing()
        self.host.context_changed()

    def _show_summaries(self, wanted: bool) -> None:
        """Show the one tree, or the other."""
        if self._is_on_summaries == wanted:
            return
        self._is_on_summaries = wanted
        self.outline.display, self.summaries.display = not wanted, wanted
        if wanted:
            self.summaries.read()

    def do_search(self) -> None:
        """Search the whole store."""
        self._listing()
        self._show_search()
        self.search.begin(KINDS[0] if self._is_on_summaries else "")
        self._mark_on_map()

    def _show_search(self) -> None:
        """Show what was searched in place of the tree."""
        self._is_searching = True
        self.add_class("-searching")
        self._tree.display = False
        self.search.display = True

    def search_for(self, query: str) -> None:
        """Search the whole store for what was typed elsewhere."""
        self.do_search()
        self.search.ask_for(query)

    def do_mode(self) -> None:
        """Search in another way."""
        if not self._is_searching:
            self.do_search()
        self.search.change_mode()

    def _leave_search(self) -> bool:
        if not self._is_searching:
            return False
        self._is_searching = False
        self.remove_class("-searching")
        self.search.leave()
        self._tree.display = True
        self.detail.find = ()
        self._mark_on_map()
        return True

    def do_back(self) -> None:
        """Leave one level: the text, the search, the filter."""
        if self._is_searching and self.search.cancel():
            pass
        elif self.search.input.is_typing and self.search.path:
            self._listing()
        elif self._tree.input.is_typing:
            self._tree.show_all(back=True)
            self._listing()
        elif not self._is_on_the_left:
            if not self.detail.end_find():
                self._listing()
        elif self._leave_search():
            self._listing()
            self.detail.follow(self._tree.target)
        else:
            self._tree.show_all()
        self.host.context_changed()

    def do_text(self) -> None:
        """Read the chunk."""
        self._look_at("text")

    def do_raw(self) -> None:
        """Show the whole file; again, the text."""
        self._look_at("text" if self.detail.section == "raw" else "raw")

    def do_original(self) -> None:
        """Open the document that the file was made from, at the line that is read."""
        path, line = self.detail.path or self._path, self.line_to_edit()

        def open_it(found: tuple[str, int | None]) -> None:
            if found[0] == path and self.host.findings.tree.is_written:
                self.host.notify("its original is not known, or may not be looked at")
            else:
                self.host.edit(found[0], line=found[1] or 0)

        def locate(store: InspectedStore) -> tuple[str, int | None]:
            place = store.locate(os.path.join(store.root, f"{path}:{line}" if line else path))
            return place.document, place.line

        self.host.task_manager.read(locate, open_it, group="original", urgent=True)

    def do_facts(self) -> None:
        """Show the metadata; again, the text."""
        self._look_at("text" if self.detail.section == "facts" else "facts")

    def do_family(self) -> None:
        """Show the summaries above and the children below; again, the text."""
        self._look_at("text" if self.detail.section == "family" else "family")

    def _look_at(self, section: str) -> None:
        self.detail.choose(section)
        if self.screen.has_class("-narrow") or not self._is_on_the_left:
            self._reading()

    def copy_marked(self, written: Callable[[str], str] = str) -> None:
        """Copy the paths of the marked files, a line each, written in one way."""
        copy = self.host.copy_text
        self._read_marked(
            lambda paths: copy("\n".join(map(written, paths)), what=count(len(paths), "path"))
        )

    def _read_marked(self, then: Callable[[Sequence[str]], None]) -> None:
        marks = tuple(self.listed.marks)
        self.host.task_manager.read(lambda store: marked_paths(store, marks), then, group="marked")

    @on(VirtualRows.Marked)
    def _marks_changed(self) -> None:
        self.host.context_changed()
        self._mark_on_map()

    def do_neighbours(self) -> None:
        """Show the nearest texts, and let the keys go there."""
        self.detail.choose("neighbours")
        self._reading()

    def do_map(self) -> None:
        """Show the map of the vectors; again, the text."""
        self._look_at("text" if self.detail.section == "map" else "map")
        self._mark_on_map()

    def _mark_on_map(self) -> None:
        if self.detail.section == "map":
            self._read_marked(self.detail.map.mark)

    def do_move(self) -> None:
        """Move the file under the cursor, with the links to it."""
        path = self.action_context().path

        def move(to: str | None) -> None:
            if to:
                self.host.run_command(["mv", path, to])

        self.app.push_screen(PromptScreen(f"move {path} to ", hint="a new path, or a folder"), move)

    def do_enrich(self) -> None:
        """Make questions and summaries of what is marked, or of the resource under the cursor."""
        self._with_resources(lambda names: self.host.run_command(["enrich", *names]))

    def do_refresh(self) -> None:
        """Make again what is out of date of it."""
        self._with_resources(lambda names: self.host.run_command(["enrich", "--refresh", *names]))

    def do_reindex(self) -> None:
        """Read the originals of what is marked, or of the resource under the cursor, again."""
        if self.host.findings.tree.is_written:
            self._with_resources(lambda names: self.host.run_command(["update", *names]))
        else:
            self.app.action_do("everywhere", "sync")  # type: ignore[attr-defined]

    def do_export(self) -> None:
        """Write what is marked, or the resource under the cursor, in another form."""

        def ask(names: Sequence[str]) -> None:
            what = count(len(names), "resource") if names else "all"

            def export(typed: str | None) -> None:
                if typed and typed.strip():
                    self.host.run_command(["export", *typed.split(maxsplit=1), *names])

            hint = "form and target: markdown, jsonl, parquet, faiss-json or ragmd, then a path"
            prompt = PromptScreen(f"export {what} as ", hint=hint, value="markdown ")
            self.app.push_screen(prompt, export)

        self._with_resources(ask)

    def do_remove(self) -> None:
        """Remove what is marked, or the resource under the cursor; what is yours, the shell does.

        Only whole resources of a chunk store are removed here: other files are a person's own.
        """
        host, marks = self.host, tuple(self.listed.marks)
        is_own = marks and all(isinstance(key, tuple) for key in marks)
        if host.findings.tree.is_written and (is_own or not (marks or self._path)):

            def remove(names: Sequence[str]) -> None:
                kept = line("their chunks and vectors go; files are kept: u undoes it", "note")
                if names:
                    host.run_command(["rm", *names], [*map(line, names[:MOST_NAMED]), kept])

            self._with_resources(remove)
            return
        own = "a document is yours" if host.findings.tree.has_sections else "a file is yours"

        def copy(paths: Sequence[str]) -> None:
            host.copy_text(
                f"rm -- {all_quoted(paths)} && filestore sync", what=f"{own}: the command"
            )

        if marks:
            self._read_marked(copy)
        elif self._path or self._tree.resource:
            copy([self._path or self._tree.resource or ""])

    def _with_resources(self, then: Callable[[Sequence[str]], None]) -> None:
        """Give the resources of what is marked, else the one under the cursor; none for all."""
        marks = tuple(self.listed.marks)
        if not marks:
            name = self.action_context().resource
            then([name] if name else [])
            return
        names = [key[-1] for key in marks if isinstance(key, tuple) and isinstance(key[-1], str)]
        files = [key for key in marks if not isinstance(key, tuple)]

        def resources(store: InspectedStore) -> list[str]:
            places = map(store.listing.place_of, marked_paths(store, files))
            return list(dict.fromkeys([*names, *(place[0] for place in places if place)]))

        self.host.task_manager.read(resources, then, group="resources")

    def do_next_chunk(self) -> None:
        """Go to the next chunk in reading order."""
        self._go_by(1)

    def do_previous_chunk(self) -> None:
        """Go to the chunk before in reading order."""
        self._go_by(-1)

    def _go_by(self, by: int) -> None:
        # Keys pressed before the answer are counted for the next question.
        self._steps += by
        path, steps = self.detail.path or self._path, self._steps
        part, what = (
            self.detail.part,
            "section" if self.host.findings.tree.has_sections else "chunk",
        )

        def go(found: tuple[str, int]) -> None:
            """Show the chunk, or the section, that was found."""
            self._steps = 0
            if found != (path, 0):
                self._open(Target(path=found[0]), found[1])
            else:
                self.host.notify(f"this is the {'last' if steps > 0 else 'first'} {what}")

        def fail(error: FilestoreError) -> None:
            """Begin to count again."""
            self._steps = 0
            self.host.fail(error)

        self.host.task_manager.read(
            lambda store: store.listing.walk(path, part, steps),
            go,
            group="step",
            failed=fail,
            urgent=True,
        )

    def do_plan(self) -> None:
        """Show in Repair what would repair the marked files, or this one."""
        known, rows = self.host.findings.index.of_row, len(self.listed.marks)
        if not rows:
            path = self.detail.path or self._path
            below = self.host.findings.index.below
            self.host.plan(known(path) if path else below(self._drifted))
            return

        def plan(paths: Sequence[str]) -> None:
            found = list(chain.from_iterable(map(known, paths)))
            if found:
                self.host.plan(found)
            else:
                of = f"{count(len(paths), 'file')} in {count(rows, 'marked row')}"
                self.host.notify(f"nothing is found of {of}", severity="warning")

        self._read_marked(plan)

    def action_match(self, by: int) -> None:
        """Show another match of what was searched, also while the list has the keys."""
        self.detail.reader.action_match(by)

    def action_step(self, by: int) -> None:
        """Go on to the next part of the page, or back; also to the side there is no room for."""
        parts: list[Widget] = [self.listed, *self.detail.parts]
        focused = self.screen.focused
        at = parts.index(focused) if focused in parts else 0
        to = parts[(at + by) % len(parts)]
        if len(parts) == 1:
            # There is room for one side only, and this is the list.
            self._reading()
        elif to is self.listed:
            self._listing()
        else:
            self.screen.set_focus(to)
