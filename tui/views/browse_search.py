"""Searching the whole store from Browse: a box, and the answer in place of the tree.

One rule: the answer comes from the child process; no key waits for it, and once it has answered,
what is typed is searched for without enter.
"""

import time
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from filestore import FilestoreError
from tui.formatting import cut, error_lines
from tui.formatting import search as texts
from tui.state.rows import Listed
from tui.views.browse_rows import marked_line
from tui.views.context import Target, ViewContext
from tui.widgets.bars import Caption
from tui.widgets.rows import VirtualRows
from tui.widgets.text import LineField
from tui.widgets.upstream import Delay
from tui.workers.tasks import Handlers, Job, Task

if TYPE_CHECKING:
    from filestore import Answer, Hit

HITS: Final = 50
HITS_TYPED: Final = 20
"""While it is typed."""
LEAST_TYPED: Final = 2
MOST_EARLIER: Final = 50
ASKED_S: Final = 0.3
"""How long until the caption shows how long an answer takes; and how often after that."""


class BrowseSearch(Vertical):
    """The box, the mode, the hits."""

    class Pointed(Message):
        """The cursor is on another hit, or on none."""

    DEFAULT_CSS: ClassVar[str] = """
    BrowseSearch { height: 1fr; display: none; }
    BrowseSearch #browse-query { height: 1; border: none; padding: 0 1; }
    BrowseSearch #browse-hits { height: 1fr; }
    """

    def __init__(self, host: ViewContext) -> None:
        super().__init__(id="browse-left-search")
        self._host = host
        self.mode = texts.MODES[0]
        """The search mode of a query without a prefix."""
        self.asked_mode = self.mode
        """The mode of the last search."""
        self.query_words = ""
        """The last query, without prefix and options."""
        self.asked_kind = ""
        """The kind of file that the last search kept to; "" for all."""
        self._shown_words = ""
        """The query whose hits are shown."""
        self._typed = ""
        self._is_warm = False
        """Whether the process that searches has its store open."""
        self.hits = VirtualRows(id="browse-hits")
        """What was found."""
        self._question: Task | None = None
        """The question, while it has no answer."""
        self._asked_at = 0.0
        self._waiting = Delay(self)
        self.input = LineField(
            then=self.hits, placeholder='words, "a phrase", prefix*, -not', id="browse-query"
        )
        """Where a query is typed."""
        # What is selected is chosen in `begin`; the focus comes later, after a key perhaps.
        self.input.select_on_focus = False
        self._how = Caption(id="browse-mode")
        self._answer_caption = Caption(id="browse-answer", most=6)
        self._hit_caption = Caption(id="browse-hit", most=6)
        self._found: dict[str, Hit] = {}
        self._known_of: dict[str, frozenset[str]] = {}
        """The codes of the findings of each hit when it came."""
        self._changed: set[str] = set()
        """Hits whose files were found to differ since, until it is asked again."""

    def compose(self) -> ComposeResult:
        """The box, the mode, what to know of the answer, the hits, more of one of them."""
        yield self.input
        yield self._how
        yield self._answer_caption
        yield self.hits
        yield self._hit_caption

    def on_mount(self) -> None:
        """Nothing is found yet."""
        self.hits.show(Listed())
        self._show_mode()

    @property
    def target(self) -> Target | None:
        """What to show for the hit under the cursor."""
        hit = self.hit
        if hit is None:
            return None
        if self._host.findings.tree.is_written:
            return Target(path=hit.path)
        # The section that was found, named by its line, and by its text where that does not do.
        return Target(path=hit.path, line=hit.line or 0, text=hit.text)

    @property
    def hit(self) -> "Hit | None":
        """The one under the cursor."""
        return self._found.get(str(self.hits.cursor_key))

    @property
    def path(self) -> str:
        """Of the hit under the cursor."""
        key = self.hits.cursor_key
        return str(key) if key is not None else ""

    @property
    def is_asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._question is not None

    def begin(self) -> None:
        """Let a query be typed; what was typed before is there to be changed."""
        self.display = True
        self.screen.set_focus(self.input)
        self.input.select_all()

    def ask_for(self, query: str) -> None:
        """Search for this, as if it had been typed here."""
        self.input.value = query
        self.screen.set_focus(self.hits)
        self._typed = query.strip()
        if self._typed:
            earlier = [one for one in self.input.earlier if one != self._typed]
            self.input.earlier = [*earlier, self._typed][-MOST_EARLIER:]
            self._ask()

    def change_mode(self) -> None:
        """Change the mode, and search again if the box holds the last query."""
        typed = self.input.value
        was_asked = bool(self._typed) and typed.strip() == self._typed
        other = texts.other_mode(typed)
        if other:
            # The prefix decides, so it is what has to change.
            self.input.value = other
        else:
            self.mode = texts.next_mode(self.mode)
        self._show_mode()
        if was_asked:
            self._typed = self.input.value.strip()
            self._ask()

    def _show_mode(self) -> None:
        _, mode = texts.parse_query(self.input.value, self.mode)
        marked = [marked_line(len(self.hits.marks))] if self.hits.marks else []
        how = texts.mode_lines(mode, is_typed=texts.has_mode(self.input.value))
        # With hits every line is one hit less.
        self._how.show([*(how[:1] if self._found else how), *marked])

    @on(Input.Changed, "#browse-query")
    def _changing(self, event: Input.Changed) -> None:
        self._show_mode()
        typed = event.value.strip()
        if self._is_warm and self.input.is_typing and typed != self._typed:
            self._typed = typed
            if len(texts.parse_query(typed, self.mode)[0]) >= LEAST_TYPED:
                self._ask(is_typing=True)

    @on(Input.Submitted, "#browse-query")
    def _submitted(self, event: Input.Submitted) -> None:
        self.ask_for(event.value)

    def _ask(self, *, is_typing: bool = False) -> None:
        asked, self.asked_mode = texts.parse_query(self._typed, self.mode)
        asked, syntax = texts.parse_named(asked, texts.SYNTAXES.__contains__)
        asked, self.asked_kind = texts.parse_named(asked, texts.KINDS.__contains__)
        query, source = texts.parse_named(asked, texts.is_source)
        if is_typing and not query:
            return
        is_shown = query == self._shown_words
        self.query_words = query
        self.hits.marks = set()
        arguments = {"query": query, "k": HITS, "mode": self.asked_mode, "syntax": syntax or "auto"}
        if is_typing:
            # It loads the words of the query language, which the first picture does not need.
            from filestore.browse import as_begun

            arguments |= {"query": as_begun(query), "k": HITS_TYPED}
        else:
            # A search may index what was edited.
            arguments["update"] = not self._host.read_only
            if not is_shown:  # what was found while it was typed can be gone to meanwhile
                self._empty()
        self._end_waiting()

        def no_answer(error: FilestoreError) -> None:
            self._end_waiting()
            self._empty()
            self._answer_caption.show(error_lines(error))

        self._question = self._host.task_manager.ask(
            Job(
                name="search_typed" if is_typing else "search",
                arguments={**arguments, "source": source or (), "kind": self.asked_kind or ()},
            ),
            Handlers(then=self._show, failed=no_answer, stopped=self._cancelled),
            group="search",
            title=f"search for {cut(query, 40)}",
        )
        self._asked_at = time.monotonic()
        self._waiting.begin(ASKED_S, self._show_asking)
        if not is_typing:
            self._show_asking()

    def _empty(self) -> None:
        self._found, self._known_of, self._shown_words = {}, {}, ""
        self.hits.show(Listed())
        self._hit_caption.show([])

    def _show_asking(self) -> None:
        if self._question is not None:
            self._waiting.begin(ASKED_S, self._show_asking)
            seconds = time.monotonic() - self._asked_at
            self._answer_caption.show(
                texts.asking_lines(self.query_words, seconds, shown_after_s=ASKED_S)
            )

    def _end_waiting(self) -> None:
        self._question = None
        self._waiting.stop()

    def cancel(self) -> bool:
        """Cancel the search; False where none is running."""
        if self._question is None:
            return False
        self._host.task_manager.stop(self._question)
        self._cancelled()
        return True

    def _cancelled(self) -> None:
        self._end_waiting()
        self._is_warm = False
        self._answer_caption.show([texts.cancelled_line(self.query_words)])

    def _show(self, answer: "Answer") -> None:
        self._end_waiting()
        self._is_warm = True
        self._answer_caption.show(texts.answer_lines(answer, limit=HITS))
        self._shown_words = self.query_words
        self._found = {hit.path: hit for hit in answer.hits or answer.nearest}
        self._known_of = {path: self._codes(path) for path in self._found}
        self._changed = set()
        self._show_mode()
        self.hits.show(self._rows())
        self._hit_caption.show(texts.hit_lines(self.hit))
        # Also where nothing was found, and the cursor is on nothing as before.
        self.post_message(self.Pointed())

    def _codes(self, path: str) -> frozenset[str]:
        return frozenset(finding.code for finding in self._host.findings.index.of_row(path))

    def _rows(self) -> Listed:
        hits = enumerate(self._found.values(), start=1)
        changed = self._changed
        return Listed(
            [(hit.path, texts.hit_row(n, hit, is_changed=hit.path in changed)) for n, hit in hits],
            columns=lambda key, room: texts.hit_columns(self._found[key], room),
        )

    def findings_changed(self) -> None:
        """Mark the hits whose files changed, or went, since they were found."""
        now = {path for path, codes in self._known_of.items() if self._codes(path) - codes}
        if not now <= self._changed:
            self._changed |= now
            self.hits.show(self._rows(), at=self.hits.cursor_key)

    @on(VirtualRows.Marked)
    def _marked(self) -> None:
        self._show_mode()

    @on(VirtualRows.Highlighted)
    def _highlighted(self, event: VirtualRows.Highlighted) -> None:
        event.stop()
        self._hit_caption.show(texts.hit_lines(self.hit))
        self.post_message(self.Pointed())
