"""The right side of Browse: one chunk file, or one resource, in the way that was chosen.

What is under the cursor of the left side is shown after a moment; the newest wins. One rule: the
file is read, and its Markdown drawn, in the reading thread.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from filestore import FilestoreError
from filestore.browse import ChunkPath, InspectedStore
from tui.formatting import Line, cut
from tui.formatting import chunks as texts
from tui.formatting.findings import place_of
from tui.formatting.rows import neighbour_row
from tui.state.rows import Listed
from tui.views.browse_map import MapPane
from tui.views.browse_summaries import FamilyPane
from tui.views.context import (
    Jumped,
    Target,
    ViewContext,
    line_in_sight,
    line_of_passage,
    line_of_query,
)
from tui.widgets.drawing import in_ascii
from tui.widgets.rows import VirtualRows
from tui.widgets.text import Bar, Caption, Item, TextPane
from tui.workers.tasks import Handlers, Job

if TYPE_CHECKING:
    from filestore import Finding
    from filestore.browse import About, AboutResource, Links, Neighbour

SETTLED_S: Final = 0.03
"""How long the cursor rests before what it is on is read."""
RESTED_S: Final = 0.15
"""How long it rests before neighbours are asked for without a key."""
AT_ONCE: Final = 8 * 1024
"""Characters of a text that is shown only once it is drawn as Markdown; a longer one is shown as
plain text until then."""
NEIGHBOURS: Final = 20
NO_FILE: Final[tuple[str, int | None]] = ("", None)
"""What no neighbours are of."""
UNSEEN_WIDTH: Final = 76
"""The width for which a text is drawn while it is not in sight."""


class Prepared(Struct, frozen=True, kw_only=True):
    """A file made ready for the screen."""

    about: "About"
    part: int | None = None
    """The section that is shown; None for all of the file."""
    lines: Sequence[Line] = ()
    strips: Sequence[Strip] | None = None
    """Of its Markdown, where it was drawn."""


class Detail(Vertical):
    """Head, ways to look, and the way that was chosen."""

    SCOPED_CSS = False  # the width of the screen decides
    DEFAULT_CSS: ClassVar[str] = """
    Detail { width: 3fr; height: 1fr; }
    Detail #browse-sections { background: $panel; }
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

    def __init__(self, host: ViewContext, nothing: Callable[[], Sequence[Line]]) -> None:
        """Show nothing yet.

        Args:
            host: The frame.
            nothing: The lines shown while the cursor is on nothing.
        """
        super().__init__(id="browse-detail")
        self._host = host
        self.section = "text"
        self.find = ""
        """What is highlighted in the texts that are shown."""
        self.about: About | None = None
        """The file that is shown; None for a resource, and for nothing."""
        self.part: int | None = None
        """The section of it that is shown; None for all of it."""
        self._about_resource: AboutResource | None = None
        self._target: Target | None = None
        self._shown: Target | None = None
        """What `about` was read for."""
        self._asked = 0
        """Counts the requests, so that older answers can be dropped."""
        self._settling: Timer | None = None
        self._rested: Timer | None = None
        self._neighbours_of = NO_FILE
        self._links: tuple[str, Links | None] | None = None
        """Of which document they are, and these once they are known."""
        self._lines: Sequence[Line] = ()
        self._nothing = nothing
        self.reader = TextPane(id="browse-reader")
        """Shows text, raw file and facts."""
        self.map = MapPane(host)
        self.family = FamilyPane(host)
        self.neighbours = VirtualRows(id="browse-neighbours", marking=False)
        self._head = Caption(id="browse-head")
        self._sections = Bar(id="browse-sections")
        self._neighbours_title = Caption(id="browse-neighbours-title")
        # Before there is a screen: with one, every part would get its styles once more.
        self.add_class(f"-{self.section}", update=False)

    def compose(self) -> ComposeResult:
        """The head, and below it everything that can be chosen."""
        yield self._head
        yield self._sections
        with Horizontal():
            yield self.reader
            yield self.map
            yield self.family
            with Vertical(id="browse-near"):
                yield self._neighbours_title
                yield self.neighbours

    def on_mount(self) -> None:
        """Begin with the text."""
        self.draw_sections()

    @property
    def parts(self) -> Sequence[Widget]:
        """The visible parts that take keys, from left to right."""
        everything = (self.reader, self.map.plot, self.family.rows, self.neighbours)
        return [part for part in everything if part.is_on_screen and part.size.area]

    def take_focus(self) -> None:
        """Let the keys go to what is shown."""
        parts = {
            "map": self.map.plot,
            "family": self.family.rows,
            "neighbours": self.neighbours,
        }
        # At once: the next key may be here already.
        self.screen.set_focus(parts.get(self.section, self.reader))

    @property
    def first_line(self) -> int:
        """Of the section that is shown; 0 for all of a file, and where it is not known."""
        is_known = self.about is not None and self._target == self._shown
        section = self.about.section(self.part) if self.about is not None and is_known else None
        return section.line if section is not None else 0

    def line_to_edit(self, query: str = "", passage: str = "") -> int:
        """The line of the file that is read, or that was found; 0 for none.

        Args:
            query: What was searched for.
            passage: What was found in this file.
        """
        if self.about is None or self._target != self._shown:
            return 0
        section = self.about.section(self.part)
        if section is not None and self.section != "raw":
            text, line = _text_of(self.about, self.part), 0
            if not section.line:
                return 0
            if self.section != "facts" and (self.reader.has_focus or self.reader.match[0] > 1):
                row, share = self.reader.row_to_edit
                line = line_in_sight(text, row, share)
            elif query:
                line = self._target.line if self._target is not None else 0
                return line or section.line + max(line_of_query(text, query), 1) - 1
            return section.line + max(line, 1) - 1
        # The first match is where the text was scrolled to; the next ones were gone to.
        if self.reader.has_focus or self.reader.match[0] > 1:
            row, share = self.reader.row_to_edit
            return 0 if self.section == "facts" else line_in_sight(self.about.raw, row, share)
        found = line_of_passage(self.about.raw, passage)
        return found or (line_of_query(self.about.raw, query) if query else 0)

    # What is shown

    @property
    def path(self) -> str:
        """Of the file that is shown, or will be; "" where that is none, or not known yet."""
        target = self._target
        if target is None or target.resource is not None:
            return ""
        known = self.about is not None and target == self._shown
        return self.about.path if known and self.about is not None else target.path

    def follow(self, target: Target | None) -> None:
        """Show what the cursor came to, once it rests."""
        if target == self._target and self._asked:
            if target is None:
                self._draw_nothing()
            return
        self._target = target
        self._stop()
        self._settling = self.set_timer(SETTLED_S, self.read)

    def show(self, target: Target) -> None:
        """Show something at once."""
        self._target = target
        self._stop()
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

    def _stop(self) -> None:
        for timer in (self._settling, self._rested):
            if timer is not None:
                timer.stop()

    def draw_sections(self) -> None:
        """Draw the names of the sections, the current one in brackets."""
        found = texts.section_labels(self.section)
        # A section has the name of its action.
        items = [Item(line=line, press=f"browse.{name}") for name, line in found.items()]
        self._sections.show(items)

    # Reading

    def read(self) -> None:
        """Read what to show, as it is now."""
        self._asked += 1
        target, number = self._target, self._asked
        if target is None:
            self._clear()
            self._draw_nothing()
            self.map.select()
        elif target.resource is not None:
            name = target.resource

            def show_resource(about: "AboutResource") -> None:
                self._clear()
                self._about_resource = about
                self._draw_resource()
                self.map.select(resource=about.resource)

            self._host.task_manager.read(
                lambda store: store.about_resource(name),
                show_resource,
                group="preview",
                failed=self._show_error,
                urgent=True,
            )
        else:
            section, width, ascii_only = self._way, self._width, self.reader.is_ascii
            moved_to = self._host.findings.index.moved_to
            self._host.task_manager.read(
                lambda store: _prepared(
                    store, target, moved_to, section, width, ascii_only=ascii_only
                ),
                lambda prepared: self._show_file(prepared, target, number),
                group="preview",
                failed=self._show_error,
                urgent=True,
            )

    @property
    def _way(self) -> str:
        return self.section if self.section in ("raw", "facts") else "text"

    @property
    def _width(self) -> int:
        return self.reader.text_width or UNSEEN_WIDTH

    def _clear(self) -> None:
        """Show no file, and no resource."""
        self.about = self._about_resource = None
        self._head.show([])
        self._show_neighbours(NO_FILE, ())
        self.family.point_at("", is_seen=self.section == "family")
        self.post_message(self.Shown())

    def _draw_nothing(self) -> None:
        self.reader.show(self._nothing(), key="nothing")

    def _draw_resource(self) -> None:
        about = self._about_resource
        if about is not None:
            found = self._host.findings.index.of_resource(about.resource)
            if self._host.findings.tree.has_sections:
                lines = texts.folder_lines(about, found)
            else:
                below = self._host.findings.tree.store_path(ChunkPath(f"{about.resource}/"))
                moved = self._host.findings.index.moved_to(below) if found["W"] else ""
                lines = texts.resource_lines(about, found, moved_to=moved)
            self.reader.show(lines, key=f"resource {about.resource}")

    def _show_error(self, error: FilestoreError) -> None:
        self._clear()
        path = self._target.path if self._target is not None else ""
        found = self._host.findings.index.of_row(path) if path else ()
        self.reader.show(texts.error_lines(error, found), key=f"error {path}")

    def _show_file(self, prepared: Prepared, target: Target, number: int) -> None:
        about = self.about = prepared.about
        self.part = prepared.part
        self._about_resource = None
        self._shown = target
        self._lines = prepared.lines
        self._draw_file(prepared.strips)
        if self._way == "text" and prepared.strips is None and not about.problem:
            # Draw a long text; until then it is there as it is written.
            width, ascii_only = self._width, self.reader.is_ascii
            text = _text_of(about, prepared.part)
            self._host.task_manager.read(
                lambda _: _markdown(
                    text, width, lambda: number == self._asked, ascii_only=ascii_only
                ),
                lambda strips: self._take_markdown(strips, number),
                group="markdown",
            )
        self.map.select(about.path)
        self.family.point_at(about.path, is_seen=self.section == "family")
        if self.section == "neighbours":
            self._ask_neighbours()
        elif self.screen.has_class("-wide"):
            self._rested = self.set_timer(RESTED_S, self._ask_neighbours)
        self.post_message(self.Shown())

    def _draw_file(self, strips: Sequence[Strip] | None = None) -> None:
        about = self.about
        if about is None:
            return
        found = self._host.findings.index.of_row(about.path)
        self._head.show(self._head_lines(about, found))
        key = f"{self._way} {about.path} {self.part}"
        if strips is not None:
            self.reader.show_strips(strips, key=key)
        elif self._way == "facts":
            drift = [*texts.finding_lines(found), ()] if found else []
            self.reader.show([*drift, *self._link_lines(about), *self._lines], key=key)
        else:
            self.reader.show(self._lines, key=key)
        if self.find or self.section == "text":
            self.reader.find(self.find)

    def _link_lines(self, about: "About") -> list[Line]:
        """The links of a document in place, once they are known: every other one may have some."""
        if not self._host.findings.tree.has_sections or not about.indexed_hash:
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

    def _take_markdown(self, strips: Sequence[Strip] | None, number: int) -> None:
        if strips is not None and number == self._asked and self._way == "text":
            self._draw_file(strips)

    def findings_changed(self) -> None:
        """Draw the findings of what is shown again."""
        if self.about is not None:
            found = self._host.findings.index.of_row(self.about.path)
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
        self.map.findings_changed()

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
            text = "" if section is None or line else _text_of(self.about, self.part)
            self._target = Target(path=self.about.path, line=line, text=text)
        if self._target is not None:
            self.read()
        self.map.store_changed()

    @on(Resize)
    def _resized(self, event: Resize) -> None:
        if self.about is not None and self._way == "text":
            self._stop()
            self._settling = self.set_timer(RESTED_S, self.read)

    # Neighbours

    def _ask_neighbours(self) -> None:
        path, part = self.path, self.part
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
                title += texts.error_lines(error)
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
        state = "" if found or not of[0] else "none"
        self._neighbours_title.show([texts.neighbours_title(state)])
        tree = self._host.findings.tree
        rows = [((one.path, one.line), neighbour_row(one, tree)) for one in found]
        self.neighbours.show(Listed(rows))

    @on(VirtualRows.Highlighted)
    def _highlighted(self, event: VirtualRows.Highlighted) -> None:
        event.stop()

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        match event.key:
            case (str(path), int(line)):
                self.post_message(Jumped(path, line))


def _prepared(
    store: InspectedStore, target: Target, moved_to: Callable[[str], str], section: str,
    width: int, *, ascii_only: bool,
) -> Prepared:  # fmt: skip
    """A file as it is now, made ready for the screen; called in the reading thread."""
    path, part = target.path, None
    if not path:
        path, part = store.listing.file_of(target.file)
    now = moved_to(path)
    about = store.about_file(now, indexed_as=path) if now else store.about_file(path)
    if target.line or target.text:
        part = about.part_at(target.line, target.text)
    if section == "raw":
        return Prepared(about=about, part=part, lines=texts.raw_lines(about))
    if section == "facts":
        family = None
        # Without the catalog everything else is still worth telling.
        with suppress(FilestoreError):
            if not store.places.tree.has_sections:
                family = store.summaries.family(about.path)
        return Prepared(about=about, part=part, lines=texts.fact_lines(about, family))
    text = _text_of(about, part)
    if about.problem or len(text) > AT_ONCE:
        lines = [*texts.problem_lines(about), *texts.text_lines(text)]
        return Prepared(about=about, part=part, lines=lines)
    strips = _markdown(text, width, lambda: True, ascii_only=ascii_only)
    lines = texts.text_lines(text) if strips is None else []
    return Prepared(about=about, part=part, lines=lines, strips=strips)


def _text_of(about: "About", part: int | None) -> str:
    """The text that is shown: of a section alone, or of all of the file."""
    section = about.section(part)
    return about.body if section is None else about.body[section.start : section.end]


def _markdown(
    text: str, width: int, wanted: Callable[[], bool], *, ascii_only: bool
) -> list[Strip] | None:
    """The first part of a text as Markdown; None if not wanted any more, or not drawable."""
    from tui.views.rendered import rendered

    try:
        strips = rendered(texts.first_part(text), width, wanted=wanted, ascii_only=ascii_only)
    except ValueError:
        return None
    if strips is not None:
        more = texts.more_lines(text)
        more = [in_ascii(line) for line in more] if ascii_only else more
        strips += [Strip([Segment(span.text) for span in line]) for line in more]
    return strips
