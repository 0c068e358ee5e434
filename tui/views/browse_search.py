"""Searching the whole store from Browse: a box, and the answer in place of the tree.

One rule: the answer comes from the child process; no key waits for it, nor is any taken for more
of the question.
"""

import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from filestore import FilestoreError
from tui.backstage import Handlers, Job, Task
from tui.desk import Desk
from tui.model.listed import Listed
from tui.views.browse_detail import Target
from tui.widgets.caption import Caption
from tui.widgets.field import Entry
from tui.widgets.rows import VirtualRows
from tui.words import chunks as words

if TYPE_CHECKING:
    from filestore import Answer

HITS: Final = 50
ASKED_S: Final = 0.3
"""How long nobody wonders where an answer is; so often, too, is said how long it takes."""


class BrowseSearch(Vertical):
    """The box, how is searched, what was found."""

    DEFAULT_CSS: ClassVar[str] = """
    BrowseSearch { height: 1fr; display: none; }
    BrowseSearch #browse-query { height: 1; border: none; padding: 0 1; }
    BrowseSearch #browse-hits { height: 1fr; }
    """

    class Pointed(Message):
        """The cursor is on another hit."""

    class Chosen(Message):
        """A person wants to read the hit under the cursor."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="browse-left-search")
        self._desk = desk
        self.mode = words.MODES[0]
        """How is searched where the query does not say it itself."""
        self.asked_mode = self.mode
        """How was searched the last time."""
        self.query_words = ""
        """What was asked the last time, without what says how."""
        self._typed = ""
        self.hits = VirtualRows(id="browse-hits", marking=False)
        """What was found."""
        self._question: Task | None = None
        """The question, while it has no answer."""
        self._asked_at = 0.0
        self._waiting: Timer | None = None
        self._input = Entry(
            then=self.hits, placeholder='words, "a phrase", prefix*, -not', id="browse-query"
        )
        self._how = Caption(id="browse-mode")
        self._said = Caption(id="browse-answer", most=6)

    def compose(self) -> ComposeResult:
        """The box, the mode, what to know of the answer, the hits."""
        yield self._input
        yield self._how
        yield self._said
        yield self.hits

    def on_mount(self) -> None:
        """Nothing is found yet."""
        self.hits.show(Listed())
        self._say_mode()

    @property
    def target(self) -> Target | None:
        """What is to be shown for the hit under the cursor."""
        key = self.hits.cursor_key
        return Target(path=str(key)) if key is not None else None

    @property
    def path(self) -> str:
        """Of the hit under the cursor."""
        key = self.hits.cursor_key
        return str(key) if key is not None else ""

    @property
    def is_typing(self) -> bool:
        """Whether the box has the focus."""
        return self._input.is_typing

    @property
    def is_asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._question is not None

    def begin(self) -> None:
        """Let a query be typed; what was typed before is there to be changed."""
        self.display = True
        self.screen.set_focus(self._input)
        self._input.select_all()

    def ask_for(self, query: str) -> None:
        """Search for this, as if it had been typed here."""
        self._input.value = query
        self.screen.set_focus(self.hits)
        self._typed = query.strip()
        if self._typed:
            self._ask()

    def leave(self) -> None:
        """Go away."""
        self.display = False

    def change_mode(self) -> None:
        """Search in another way, at once where what is in the box was asked."""
        typed = self._input.value
        was_asked = bool(self._typed) and typed.strip() == self._typed
        other = words.other_mode(typed)
        if other:
            # What stands before the words decides, and so it is what has to be another.
            self._input.value = other
        else:
            self.mode = words.next_mode(self.mode)
        self._say_mode()
        if was_asked:
            self._typed = self._input.value.strip()
            self._ask()

    def _say_mode(self) -> None:
        _, mode = words.parse_query(self._input.value, self.mode)
        self._how.say(words.mode_lines(mode, is_typed=words.has_mode(self._input.value)))

    @on(Input.Changed, "#browse-query")
    def _changing(self, event: Input.Changed) -> None:
        event.stop()
        self._say_mode()

    @on(Input.Submitted, "#browse-query")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.ask_for(event.value)

    def _ask(self) -> None:
        asked, self.asked_mode = words.parse_query(self._typed, self.mode)
        query, source = words.parse_source(asked)
        self.query_words = query
        self.hits.show(Listed())
        arguments: dict[str, Any] = {
            "query": query,
            "mode": self.asked_mode,
            "count": HITS,
            "source": source,
        }
        self._end_waiting()
        self._question = self._desk.backstage.ask(
            Job(name="search", arguments=arguments),
            Handlers(then=self._show, failed=self._no_answer, stopped=self._given_up),
            group="search",
            title=words.search_title(query),
        )
        self._asked_at = time.monotonic()
        self._waiting = self.set_interval(ASKED_S, self._say_asking)
        self._say_asking()

    def _say_asking(self) -> None:
        if self._question is not None:
            seconds = time.monotonic() - self._asked_at
            self._said.say(words.asking_lines(self.query_words, seconds, shown_after_s=ASKED_S))

    def _end_waiting(self) -> None:
        self._question = None
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def give_up(self) -> bool:
        """Wait for the answer no more; False where none is awaited."""
        if self._question is None:
            return False
        self._desk.backstage.stop(self._question)
        self._given_up()
        return True

    def _given_up(self) -> None:
        self._end_waiting()
        self._said.say([words.given_up_line(self.query_words)])

    def _show(self, answer: "Answer") -> None:
        self._end_waiting()
        self._said.say(words.answer_lines(answer, limit=HITS))
        rows = [
            (hit.path, words.hit_row(number, hit))
            for number, hit in enumerate(answer.hits, start=1)
        ]
        self.hits.show(Listed(rows))
        self.post_message(self.Pointed())

    def _no_answer(self, error: FilestoreError) -> None:
        self._end_waiting()
        self._said.say(words.error_lines(error))
        self.hits.show(Listed())

    @on(VirtualRows.Highlighted)
    def _highlighted(self, event: VirtualRows.Highlighted) -> None:
        event.stop()
        self.post_message(self.Pointed())

    @on(VirtualRows.Chosen)
    def _chosen(self, event: VirtualRows.Chosen) -> None:
        event.stop()
        self.post_message(self.Chosen())
