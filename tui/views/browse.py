"""The page on which a store is looked at: its actions."""

import os
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from textual import on
from textual.widget import Widget

from filestore import FilestoreError
from filestore.browse import InspectedStore, natural_key
from tui.formatting import MOST_NAMED, all_quoted, count, line, shortened
from tui.formatting.rows import COLUMNS, SORTS
from tui.views.browse_page import BrowsePage
from tui.views.browse_rows import marked_paths
from tui.views.context import Target
from tui.views.dialogs import Choice, ChoiceScreen, PromptScreen
from tui.widgets.rows import VirtualRows

_LETTERS: Final = dict(zip(SORTS, "ntsder", strict=True))
"""What sorts by each; the capital shows or hides its column."""


class BrowseView(BrowsePage):
    """The page on which a store is looked at."""

    def do_open(self) -> None:
        """Open the resource, or read the chunk."""
        if not self._is_on_the_left:
            return
        if self._is_searching or not self.outline.rows.open():
            self._reading()

    def do_close(self) -> None:
        """Return to the list; there, close the resource, or go up to it."""
        if not self._is_on_the_left:
            self._listing()
        elif not self._is_searching:
            self.outline.rows.close()

    def do_close_all(self) -> None:
        """Close every resource."""
        self.outline.close_all()

    def do_open_all(self) -> None:
        """Open every resource."""
        self.outline.open_all()

    def do_filter(self) -> None:
        """Show some names only; in the text, find words in it."""
        if not self._is_on_the_left:
            self.detail.begin_find()
            return
        self._leave_search()
        self._listing()
        self.outline.begin_filter()

    def do_columns(self) -> None:
        """Choose what the list is sorted by, and its columns."""
        tree, now, shown = self.outline, self.outline.order, self.outline.chosen_columns
        choices = [
            Choice(
                name=f"-{name}" if now == name else name,
                title=f"sort by {name}",
                about="the other order" if now == name else "",
                key=_LETTERS[name],
            )
            for name in SORTS
        ]
        choices += [
            Choice(
                f"column {name}",
                f"{'hide' if name in shown else 'show'} {name}",
                key=_LETTERS[name].upper(),
            )
            for name in COLUMNS
        ]

        def take(chosen: str | None) -> None:
            kind, _, name = (chosen or "").partition(" ")
            if name:
                tree.toggle_column(name)
            elif kind:
                tree.sort(kind)

        self.app.push_screen(ChoiceScreen("Order and columns", choices, at=now), take)

    def do_search(self) -> None:
        """Search the whole store."""
        self._listing()
        self._show_search()
        self.search.begin()
        self._mark_on_map()

    def search_for(self, query: str) -> None:
        """Search the whole store for what was typed elsewhere."""
        self.do_search()
        self.search.ask_for(query)

    def do_mode(self) -> None:
        """Search in another way."""
        if not self._is_searching:
            self.do_search()
        self.search.change_mode()

    def do_back(self) -> None:
        """Leave one level: the text, the search, the filter."""
        if self._is_searching and self.search.cancel():
            pass
        elif self.search.input.is_typing and self.search.path:
            self._listing()
        elif self.outline.input.is_typing:
            self.outline.show_all(back=True)
            self._listing()
        elif not self._is_on_the_left:
            if not self.detail.end_find():
                self._listing()
        elif self._leave_search():
            self._listing()
            self.detail.follow(self.outline.target)
        else:
            self.outline.show_all()
        self.host.context_changed()

    def do_text(self) -> None:
        """Read the passage; again, all of the document that it is in."""
        detail, about = self.detail, self.detail.about
        if detail.section != "text" or about is None:
            pass
        elif detail.part is not None:
            self._read_all(Target(path=about.path, top=detail.first_line))
        elif not self.host.findings.tree.has_sections:
            self.host.task_manager.read(
                lambda store: store.listing.place_of(about.path),
                lambda place: self._read_all(Target(resource=place[0])) if place else None,
                group="all of it",
            )
        self._look_at("text")

    def _read_all(self, target: Target) -> None:
        self._remember()
        self.detail.show(target)

    def do_raw(self) -> None:
        """Show the whole file; again, the text."""
        if piece := self.action_context().piece:
            self._read_all(Target(path=piece))
        self._look_at("text" if self.detail.section == "raw" else "raw")

    def do_original(self) -> None:
        """Open the document that the file was made from, at the line that is read."""
        path, line = self.detail.path or self._path or self.detail.piece, self.line_to_edit()
        place = f"{path}:{line}" if line else path
        own = path if self.host.findings.tree.is_written else ""
        self.host.open_hit(os.path.join(self.host.root, place), own=own)

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
        """Copy the paths of what is marked, else of the row, a line each, written in one way."""
        copy = self.host.copy_text
        self._read_marked(
            lambda paths: copy("\n".join(map(written, paths)), what=count(len(paths), "path")),
            or_row=True,
        )

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
            what = count(len(names), "document") if names else "all"

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
        own = f"nothing is removed, {own}"

        def copy(paths: Sequence[str]) -> None:
            command = f"rm -- {all_quoted(paths)} && filestore sync"
            host.copy_text(command, what=f"{own}; to remove it, {shortened(command)}")

        if marks:
            self._read_marked(copy)
        elif self._path or self.outline.resource:
            copy([self._path or self.outline.resource or ""])

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
            found = {*names, *(place[0] for place in places if place)}
            return sorted(found, key=natural_key)

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
        part, has_sections = self.detail.part, self.host.findings.tree.has_sections

        def go(found: tuple[str, int]) -> None:
            """Show the chunk, or the section, that was found."""
            self._steps = 0
            if found != (path, 0):
                self._open(Target(path=found[0]), found[1])
            else:
                what = "passage" if has_sections else "chunk"
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
            inside = self.host.findings.index.inside
            below = chain.from_iterable(map(inside, self._drifted))
            self.host.plan(known(path) if path else list(dict.fromkeys(below)))
            return

        def plan(paths: Sequence[str]) -> None:
            found = list(chain.from_iterable(map(known, paths)))
            if found:
                self.host.plan(found)
            else:
                of = f"{count(len(paths), 'file')} in {count(rows, 'marked row')}"
                self.host.notify(f"nothing to repair in {of}", severity="warning")

        self._read_marked(plan)

    def action_match(self, by: int) -> None:
        """Show another match of the text, or point of the map, also while the list has the keys."""
        if self.detail.section == "map":
            self.detail.map.step(by)
        else:
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
