"""The right side of Browse: one chunk file, or one resource, in the way that was chosen.

What is under the cursor of the left side is shown after a moment; the newest wins. One rule: the
file is read, and its Markdown drawn, in the reading thread.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from filestore import FilestoreError
from filestore.browse import ChunkPath, InspectedStore
from tui.actions import find, key_label
from tui.formatting import Line, cut, error_lines, line
from tui.formatting import chunks as texts
from tui.formatting.findings import place_of
from tui.formatting.rows import neighbour_place, neighbour_row
from tui.state.rows import Listed
from tui.views.browse_family import FamilyPane
from tui.views.browse_map import MapPane
from tui.views.context import Jumped, Target, ViewContext, Visit
from tui.views.prepared import Prepared, prepared_file, prepared_resource, text_of
from tui.widgets.bars import Bar, Caption, Item
from tui.widgets.rows import VirtualRows
from tui.widgets.text import LineField, TextPane
from tui.widgets.upstream import Delay
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore import Finding
    from filestore.browse import About, Links, Neighbour

SETTLED_S: Final = 0.03
"""How long the cursor rests before what it is on is read."""
RESTED_S: Final = 0.15
"""How long it rests before neighbours are asked for without a key."""
NEIGHBOURS: Final = 20
NO_FILE: Final[tuple[str, int | None]] = ("", None)
"""What no neighbours are of."""
_WORDS: Final = re.compile(r'"([^"]+)"|(\S+)')
"""A phrase, or a word."""
UNSEEN_WIDTH: Final = 76
"""The width for which a text is drawn while it is not in sight."""


class Detail(Vertical):
    """Head, ways to look, and the way that was chosen."""

    SCOPED_CSS = False  # the width of the screen decides
    DEFAULT_CSS: ClassVar[str] = """
    Detail { width: 3fr; height: 1fr; }
    Detail #browse-sections { background: $panel; }
    Detail #browse-find { display: none; height: 1; border: none; padding: 0 1; }
    Detail #browse-find.-open { display: block; }
    Detail #browse-reader, Detail #browse-map, Detail #browse-near,
    Detail #browse-family { display: none; }
    Detail #browse-reader { width: 3fr; border-left: blank; padding-right: 1; }
    Detail #browse-reader:focus { border-left: heavy $primary; }
    .-ascii Detail #browse-reader:focus { border-left: ascii $primary; }
    Detail #browse-map, Detail #browse-family { width: 3fr; padding: 0 1; }
    Detail #browse-near { width: 1fr; }
    Detail.-text #browse-reader, Detail.-raw #browse-reader, Detail.-facts #browse-reader,
    Detail.-map #browse-map, Detail.-family #browse-family,
    Detail.-neighbours #browse-near { display: block; }
    .-wide Detail #browse-near { display: block; width: 2fr; border-left: solid $panel; }
    .-ascii .-wide Detail #browse-near { border-left: ascii $panel; }
    .-wide Detail.-neighbours #browse-reader { display: block; }
    """

    class Shown(Message):
        """Something else is shown than before."""

    _target: Target | None = None
    """What to show."""
    _shown: Target | None = None
    """What `about` was read for."""

    def __init__(self, host: ViewContext, nothing: Callable[[], Sequence[Line]]) -> None:
        """Show nothing yet.

        Args:
            host: The frame.
            nothing: The lines shown while the cursor is on nothing.
        """
        super().__init__(id="browse-detail")
        self._host = host
        self.section = "text"
        self.find: Sequence[str] = ()
        """The words that are marked in the texts that are shown."""
        self.about: About | None = None
        """The file that is shown; None for a resource, and for nothing."""
        self.part: int | None = None
        """The section of it that is shown; None for all of it."""
        self._asked = 0
        """Counts the requests, so that older answers can be dropped."""
        self._settling, self._rested = Delay(self), Delay(self)
        self._neighbours_of = NO_FILE
        self._links: tuple[str, Links | None] | None = None
        """Of which document they are, and these once they are known."""
        self._prepared: Prepared | None = None
        """What is shown."""
        self._at: tuple[int, int] | None = None
        """Where what is read next begins, on the way back to it."""
        self._key = ""
        self._arrived: Target | None = None
        """The request whose first line was gone to."""
        self._nothing = nothing
        self.reader = TextPane(id="browse-reader")
        """Shows text, raw file and facts."""
        self.input = LineField(
            then=self.reader, placeholder="words to find in this text", id="browse-find"
        )
        """Where is typed what is looked for in the text."""
        self.map = MapPane(host)
        self.family = FamilyPane(host)
        self.neighbours = VirtualRows(id="browse-neighbours", marking=False)
        self._head = Caption(id="browse-head")
        self._sections = Bar(id="browse-sections")
        self._neighbours_title = Caption(id="browse-neighbours-title")
        self.columns = {
            "map": self.map,
            "family": self.family,
            "neighbours": Vertical(self._neighbours_title, self.neighbours, id="browse-near"),
        }
        """What can share the screen with the text, by section."""
        # Before there is a screen: with one, every part would get its styles once more.
        self.add_class(f"-{self.section}", update=False)

    def compose(self) -> ComposeResult:
        """The head, and below it everything that can be chosen."""
        yield self._head
        yield self._sections
        yield self.input
        with Horizontal(id="browse-parts"):
            yield self.reader
            if self.screen.has_class("-wide"):
                yield self.columns["neighbours"]

    async def complete(self) -> None:
        """Mount the columns that are not seen at first."""
        unseen = [part for part in self.columns.values() if not part.is_attached]
        for parts in self.query("#browse-parts"):
            await parts.mount(*unseen)

    def on_mount(self) -> None:
        """Begin with the text."""
        self.draw_sections()

    @property
    def parts(self) -> Sequence[Widget]:
        """The visible parts that take keys, from left to right."""
        everything = (self.reader, self.map, self.family.rows, self.neighbours)
        return [part for part in everything if part.is_on_screen and part.size.area]

    def take_focus(self) -> None:
        """Let the keys go to what is shown."""
        parts = {"map": self.map, "family": self.family.rows, "neighbours": self.neighbours}
        # At once: the next key may be here already.
        self.screen.set_focus(parts.get(self.section, self.reader))

    @property
    def first_line(self) -> int:
        """Of the section that is shown; 0 for all of a file, and where it is not known."""
        is_known = self.about is not None and self._target == self._shown
        section = self.about.section(self.part) if self.about is not None and is_known else None
        return section.line if section is not None else 0

    def line_to_edit(self) -> int:
        """The line of the file that is read, or that was found; 0 for none."""
        if self.section == "facts" or self._target != self._shown:
            return 0
        if self.reader.has_focus or self.reader.match[0] or self.piece:
            return self.reader.line_of_file(self.reader.place)
        return self.first_line

    # Finding

    def begin_find(self) -> None:
        """Let words be typed that are looked for in the text."""
        self.input.add_class("-open")
        self.input.value = ""
        self.screen.set_focus(self.input)

    def end_find(self) -> bool:
        """Forget what was typed; False where nothing was."""
        if not self.input.has_class("-open"):
            return False
        self.input.remove_class("-open")
        self.find = ()
        self.reader.find(())
        self.draw_sections()
        self.screen.set_focus(self.reader)
        return True

    @on(Input.Changed, "#browse-find")
    def _finding(self, event: Input.Changed) -> None:
        self.find = [phrase or word for phrase, word in _WORDS.findall(event.value)]
        self.reader.find(self.find)
        self.draw_sections()

    # What is shown

    @property
    def path(self) -> str:
        """Of the file that is shown, or will be; "" where that is none, or not known yet."""
        target = self._target
        if target is None:
            return ""
        if target.resource is not None:
            return self.piece if self.reader.has_focus else ""
        known = self.about is not None and target == self._shown
        return self.about.path if known and self.about is not None else target.path

    @property
    def piece(self) -> str:
        """The chunk that is read of a whole resource; "" of a file."""
        is_known = self._prepared is not None and self._target == self._shown
        pieces = self._prepared.pieces if self._prepared is not None and is_known else ()
        line = self.reader.place[0]
        found = (path for first, path in reversed(pieces) if first <= line)
        return next(found, pieces[0][1] if pieces else "")

    @property
    def outline(self) -> Sequence[tuple[int, str, int]]:
        """Level, words and line of each heading of the text that is read."""
        return self._prepared.outline if self._prepared is not None else ()

    def go_to(self, line: int) -> None:
        """Go to a line of the text that is read."""
        self.reader.go_to(line, 0)
        self.screen.set_focus(self.reader)

    @property
    def visit(self) -> Visit | None:
        """What is shown and where, to come back to; None for nothing."""
        if self._target is None:
            return None
        target = self._target
        if target.resource is None and self.path:
            target = Target(path=self.path, line=self.first_line)
        return Visit(target, self.section, self.reader.begins)

    def come_back(self, visit: Visit) -> None:
        """Show it again, where it was left."""
        self._at = visit.at
        self.choose(visit.section)
        self.show(visit.target)

    def follow(self, target: Target | None) -> None:
        """Show what the cursor came to, once it rests."""
        if target == self._target and self._asked:
            if target is None:
                self._draw_nothing()
            return
        self._target = target
        self._rested.stop()
        self._settling.begin(SETTLED_S, self.read)

    def show(self, target: Target) -> None:
        """Show something at once."""
        self._target = target
        self._settling.stop()
        self._rested.stop()
        self.read()

    def choose(self, section: str) -> None:
        """Choose a section."""
        if section == self.section:
            if section == "neighbours":
                self._ask_neighbours()
            return
        self.remove_class(f"-{self.section}")
        self.section = section
        self.add_class(f"-{section}")
        self.draw_sections()
        if section == "map":
            self.map.show()
        if section == "family":
            self.family.show()
        if section == "neighbours":
            self._ask_neighbours()
        else:
            self.call_after_refresh(self.read)

    @on(TextPane.Moved)
    def draw_sections(self) -> None:
        """Draw the names of the sections, the current one in brackets."""
        actions = {name: find("browse", name) for name in texts.SECTIONS}
        keys = {name: key_label(self._host.keys_of(one)[0]) for name, one in actions.items()}
        found = texts.section_labels(self.section, keys)
        current, many = self.reader.match
        # A section has the name of its action.
        # The last ones give way to what was found; the current one stays.
        items = [
            Item(line, f"browse.{name}", gives_way=(name != self.section) * number)
            for number, (name, line) in enumerate(found.items())
        ]
        words = f"{current} of {many}" if many else "no match"
        self._sections.show(items, line(words, "match") if self.find else ())

    # Reading

    def read(self) -> None:
        """Read what to show, as it is now."""
        self._asked += 1
        target = self._target
        if target is None:
            self._clear()
            self._draw_nothing()
            self.map.select()
        else:
            section, width = self._way, self.reader.text_width or UNSEEN_WIDTH
            moved_to = self._host.findings.index.moved_to
            last = self.about.path if self.about is not None else ""

            def prepare(store: InspectedStore) -> Prepared:
                if target.resource is None:
                    return prepared_file(store, target, moved_to, section, width)
                made = prepared_resource(store, target.resource, section, width, last)
                if made.pieces and section == "raw":
                    first = Target(path=made.pieces[0][1])
                    file = prepared_file(store, first, moved_to, section, width)
                    return replace(file, pieces=made.pieces)
                return made

            self._host.task_manager.read(
                prepare,
                lambda prepared: self._show_prepared(prepared, target),
                group="preview",
                failed=self._show_error,
                urgent=True,
            )

    @property
    def _way(self) -> str:
        return self.section if self.section in ("raw", "facts") else "text"

    def _clear(self) -> None:
        """Show no file, and no resource."""
        self.about = self._prepared = None
        self._head.show([])
        self._show_neighbours(NO_FILE, ())
        self.family.point_at("", is_seen=self.section == "family")
        self.post_message(self.Shown())

    def _draw_nothing(self) -> None:
        self.reader.show(self._nothing(), key="nothing")

    def _draw_resource(self) -> None:
        prepared = self._prepared
        about = prepared.resource if prepared is not None else None
        if about is not None and prepared is not None:
            found = self._host.findings.index.of_resource(about.resource)
            lines, what, moved = prepared.lines, "chunk", ""
            if self._host.findings.tree.has_sections:
                what = "document"
            else:
                below = self._host.findings.tree.store_path(ChunkPath(f"{about.resource}/"))
                moved = self._host.findings.index.moved_to(below) if found["W"] else ""
                lines = lines or texts.resource_lines(about, found)
            self._head.show(texts.resource_head(about, found, what, moved_to=moved))
            self._show_lines(lines, f"document {about.resource} {bool(prepared.lines)}")

    def _show_error(self, error: FilestoreError) -> None:
        self._clear()
        path = self._target.path if self._target is not None else ""
        found = self._host.findings.index.of_row(path) if path else ()
        lines = [*error_lines(error), *texts.moved_lines(found)]
        lines += [(), *texts.finding_lines(found)] if found else []
        self.reader.show(lines, key=f"error {path}")

    def _show_prepared(self, prepared: Prepared, target: Target) -> None:
        self._shown = target
        about = self.about = prepared.about
        if about is None:
            self._clear()
            self._prepared = prepared
            self._draw_resource()
            self.map.select(resource=target.resource)
            self.family.point_at(self.piece, is_seen=self.section == "family")
            if self.section == "neighbours":
                self._ask_neighbours()
            return
        self._prepared, self.part = prepared, prepared.part
        self._draw_file()
        self.map.select(about.path)
        self.family.point_at(about.path, is_seen=self.section == "family")
        if self.section == "neighbours":
            self._ask_neighbours()
        elif self.screen.has_class("-wide"):
            self._rested.begin(RESTED_S, self._ask_neighbours)
        self.post_message(self.Shown())

    def _draw_file(self) -> None:
        about = self.about
        if about is None or self._prepared is None:
            return
        found = self._host.findings.index.of_row(about.path)
        self._head.show(self._head_lines(about, found))
        lines: Sequence[Line] = self._prepared.lines
        if self._way == "facts":
            drift = [*texts.finding_lines(found), ()] if found else []
            lines = [*drift, *self._link_lines(about), *lines]
        self._show_lines(lines, f"{self._way} {about.path} {self.part}")

    def _show_lines(self, lines: Sequence[Line], key: str) -> None:
        """Show lines, from the place that was asked for."""
        top = self._prepared.top if self._prepared is not None else 0
        is_new = key != self._key or self._target is not self._arrived
        at = self._at or ((top, 0) if top and is_new else None)
        self._key, self._arrived, self._at = key, self._target, None
        self.reader.show(lines, key=key, at=at)
        if self.find or self.section == "text":
            self.reader.find(self.find, stays=at is not None)
        self.draw_sections()

    def _link_lines(self, about: "About") -> list[Line]:
        """The links of a file, once they are known: every other one may have some to it."""
        if not about.indexed_hash:
            return []
        if self._links is not None and self._links[0] == about.path:
            found = self._links[1]
            return texts.link_lines(found) if found is not None else []
        self._links = (about.path, None)
        self._host.task_manager.ask(
            Job(name="links", arguments={"path": about.path}),
            Handlers(then=lambda found: self._take_links(about.path, found), failed=lambda _: None),
            group="links",
            title=f"links of {cut(about.path, 40)}",
        )
        return []

    def _take_links(self, path: str, found: "Links") -> None:
        if self._links is not None and self._links[0] == path:
            self._links = (path, found)
        if self.about is not None and self.about.path == path and self._way == "facts":
            self._draw_file()

    def _head_lines(self, about: "About", found: "Sequence[Finding]") -> list[Line]:
        place = texts.place_line(about, self.part)
        lines = [*texts.head_lines(about, found), *texts.moved_lines(found, about.path)]
        return lines if place is None else [lines[0], place, *lines[1:]]

    def findings_changed(self) -> None:
        """Draw the findings of what is shown again."""
        if self.about is not None:
            found = self._host.findings.index.of_row(self.about.path)
            if self.about.freshness == "gone" and texts.moved_lines(found, self.about.path):
                # It was read before it was known where it is now.
                self.read()
                return
            self._head.show(self._head_lines(self.about, found))
            if self._way == "facts":
                self._draw_file()
        elif self._target is None:
            self._draw_nothing()
        elif self._target.resource is None:
            # What could not be read may have been moved, which is known now.
            self.read()
        else:
            self._draw_resource()
        self.map.forget_drawn()

    def store_changed(self) -> None:
        """Read everything again."""
        self._neighbours_of = NO_FILE
        self.family.store_changed()
        self._links = None
        if self.about is not None and self._target is not None and self._target == self._shown:
            # A rebuilt catalog may give the same number to another file.
            section = self.about.section(self.part)
            # The line of a hit stays: its search may have changed the store.
            line = self._target.line or (section.line if section is not None else 0)
            text = "" if section is None else text_of(self.about, self.part)
            self._target = Target(path=self.about.path, line=line, text=text)
        if self._target is not None:
            self.read()
        self.map.store_changed()

    @on(Resize)
    def _resized(self, event: Resize) -> None:
        if self._target is not None and self._way == "text":
            self._rested.stop()
            self._settling.begin(RESTED_S, self.read)

    # Neighbours

    def _ask_neighbours(self) -> None:
        path, part = self.path or self.piece, self.part
        if not path or (path, part) == self._neighbours_of:
            return
        self._neighbours_title.show([texts.neighbours_title("asking")])
        self._neighbours_of = (path, part)
        arguments = {"path": path, "count": NEIGHBOURS, "now": False, "part": part}

        def none_came(error: FilestoreError | None = None) -> None:
            # The same key asks again.
            self._neighbours_of = NO_FILE
            title = [texts.neighbours_title("cancelled" if error is None else "none")]
            if error is not None:
                self.neighbours.show(Listed())
                title += error_lines(error)
            self._neighbours_title.show(title)

        self._host.task_manager.ask(
            Job(name="neighbours", arguments=arguments),
            Handlers(
                then=lambda found: self._show_neighbours((path, part), found),
                failed=none_came,
                stopped=none_came,
            ),
            group="neighbours",
            title=f"neighbours of {cut(place_of(path, self._host.findings.tree), 40)}",
        )

    def _show_neighbours(self, of: tuple[str, int | None], found: "Sequence[Neighbour]") -> None:
        self._neighbours_of = of
        state = "" if found else "none" if of[0] else "of a text: go to one in the list"
        self._neighbours_title.show([texts.neighbours_title(state)])
        tree, near = self._host.findings.tree, {(one.path, one.line): one for one in found}
        rows = [(key, neighbour_row(one)) for key, one in near.items()]
        self.neighbours.show(
            Listed(rows, columns=lambda key, room: neighbour_place(near[key], tree, room))
        )

    @on(VirtualRows.Highlighted)
    def _highlighted(self, event: VirtualRows.Highlighted) -> None:
        event.stop()

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        match event.key:
            case (str(path), int(line)):
                self.post_message(Jumped(path, line))
