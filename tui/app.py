"""The inspector's screen: widgets, keys, and the one thread that reads the store.

Words come from `present`. One rule: the store is read in its thread, whose answers arrive as
messages; only their handlers change widgets.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import (
    ContentSwitcher,
    Footer,
    Input,
    OptionList,
    Static,
    TabbedContent,
    TabPane,
    Tree,
)
from textual.widgets.option_list import Option
from textual.widgets.tree import TreeNode
from textual.worker import WorkType

from filestore import (
    Answer,
    FilestoreError,
    Filters,
    Finding,
    NoStoreError,
    Shown,
    Status,
    Store,
    find_root,
)
from tui import present

MAX_LEAVES: Final = 2_000
"""Chunks listed under one resource; the rest is counted."""
HITS: Final = 50
_STYLES: Final = {
    "text": "",
    "title": "bold",
    "quiet": "dim",
    "good": "green",
    "warning": "yellow",
    "error": "bold red",
}

Value = TypeVar("Value")
Part = TypeVar("Part", bound=Widget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a node of the tree stands for: a resource, or one chunk file of it."""

    item: dict[str, Any]
    resource: str
    path: str = ""
    """Relative to the store root; "" for a resource, and for what stands for unlisted chunks."""


def as_text(lines: Iterable[present.Line]) -> Text:
    """Lines as plain styled text, in which no markup is looked for."""
    text = Text()
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        text.append(line.text, style=_STYLES[line.role])
    return text


class Reading:
    """The store, opened and read in one thread of its own: its connections are bound to it."""

    def __init__(self, *, store: str | None, configuration: str) -> None:
        self._explicit = store
        self._configuration = configuration
        self._store: Store | None = None
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reading")

    async def ask(self, question: Callable[[Store], Value]) -> Value:
        """The store's answer. Cancelled before its turn, the question is never put.

        Raises:
            FilestoreError: The store cannot be opened, or not answer.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: question(self._open()))

    def let_go(self) -> None:
        """Have the store closed; the next question opens it again, as it is then."""
        self._executor.submit(self._close)

    async def end(self) -> None:
        """Close the store for good, once the question under way is answered."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
        self._executor.shutdown(wait=False)

    def _open(self) -> Store:
        if self._store is None:
            root = find_root(os.getcwd(), self._explicit)
            self._store = Store(root, configuration=self._configuration)
        return self._store

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


class Read(Message):
    """Something was read; `show` puts it on the screen."""

    def __init__(self, show: Callable[[], None]) -> None:
        super().__init__()
        self.show = show


class StartScreen(ModalScreen[None]):
    """Stands where no store can be opened, and says what to do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "app.retry", "try again"),
        Binding("q", "give_up", "quit"),
    ]

    def __init__(self, error: FilestoreError) -> None:
        super().__init__()
        self._error = error

    def compose(self) -> ComposeResult:
        """The error, its remedy, and how to make a store."""
        lines = present.start_lines(self._error, absent=isinstance(self._error, NoStoreError))
        yield Static(as_text(lines), id="start", classes="box")

    def action_give_up(self) -> None:
        """Quit with the exit code of what went wrong."""
        self.app.exit(return_code=self._error.exit_code)


class HelpScreen(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "close"),
    ]

    def compose(self) -> ComposeResult:
        """The keys and what they do."""
        yield Static(as_text(present.help_lines()), id="help", classes="box")


class Inspector(App[None]):
    """Resources and chunks on the left, the chunk or the drift on the right."""

    CSS_PATH = "tui.tcss"
    TITLE = "filestore"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", key_display="/"),
        Binding("escape", "leave_search", "back", show=False),
        Binding("ctrl+t", "mode", "mode", show=False),
        Binding("d", "drift", "drift"),
        Binding("r", "refresh", "refresh"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, *, store: str | None, configuration: str) -> None:
        super().__init__()
        self._reading = Reading(store=store, configuration=configuration)
        self._root = ""
        self._mode: Literal["hybrid", "keyword"] = "hybrid"
        self._asked = ""
        self._resources: dict[str, TreeNode[Entry]] = {}
        self._return_to = ""
        self._findings: dict[str, list[Finding]] = {}
        self._hits: list[str] = []

    # Putting the screen together

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield Static(id="summary")
        with Horizontal():
            with Vertical(id="left"):
                with Vertical(id="search"):
                    yield Input(placeholder='words, "a phrase", prefix*, -not', id="query")
                    yield Static(id="mode")
                with ContentSwitcher(initial="resources", id="lists"):
                    yield self._new_tree()
                    with Vertical(id="found"):
                        yield Static(id="answer")
                        yield OptionList(id="hits")
            with TabbedContent(id="right"):
                with TabPane("Chunk", id="chunk-tab"), VerticalScroll():
                    yield Static(id="chunk")
                with TabPane("Drift", id="drift-tab"), VerticalScroll():
                    yield Static(id="drift")
        yield Static(id="message")
        yield Footer()

    @staticmethod
    def _new_tree() -> Tree[Entry]:
        tree: Tree[Entry] = Tree("", id="resources")
        tree.show_root = False
        tree.guide_depth = 2
        return tree

    def on_mount(self) -> None:
        """Open the store."""
        self._tree.focus()
        self._put("mode", present.mode_line(self._mode))
        self._look()

    async def on_unmount(self) -> None:
        """Close the store, in its thread."""
        await self._reading.end()

    @property
    def _tree(self) -> Tree[Entry]:
        return self._part("resources", Tree)

    def _part(self, place: str, kind: type[Part]) -> Part:
        """A part of the inspector, also while another screen lies over it."""
        return self.query_one(f"#{place}", kind)

    def _put(self, place: str, lines: Iterable[present.Line]) -> None:
        self._part(place, Static).update(as_text(lines))

    # Asking the store

    def _ask(
        self,
        question: Callable[[Store], Value],
        then: Callable[[Value], None],
        *,
        group: str,
        failed: Callable[[FilestoreError], None] | None = None,
    ) -> None:
        """Put a question to the store; a newer one of the same group replaces it."""
        on_error = failed or self._say

        async def work() -> None:
            try:
                answer = await self._reading.ask(question)
            except FilestoreError as error:
                self.post_message(Read(partial(on_error, error)))
            except Exception as error:  # the top of a worker: a screen must outlive a fault
                self.post_message(Read(partial(on_error, _unexpected(error))))
            else:
                self.post_message(Read(partial(then, answer)))

        # Handed over as a function: a question replaced before its turn then never begins.
        task: WorkType[None] = work
        self.run_worker(task, group=group, exclusive=True)

    def on_read(self, message: Read) -> None:
        """Show what was read."""
        message.show()

    def _say(self, error: FilestoreError) -> None:
        """Say at the foot of the screen what went wrong."""
        self._put("message", present.error_lines(error))
        self._part("message", Static).add_class("open")

    def _look(self) -> None:
        """Look at the store as it is now."""
        self._part("message", Static).remove_class("open")
        self._put("summary", present.summary(None, root=self._root or "store", checked_at=""))
        self._put("drift", present.drift_lines(None))
        self._ask(lambda store: store.root, self._opened, group="open", failed=self._unusable)

    def _opened(self, root: str) -> None:
        self._root = root
        self._ask(lambda store: store.resources(), self._show_resources, group="resources")
        self._ask(lambda store: store.status(), self._show_status, group="status")
        self._search()

    def _unusable(self, error: FilestoreError) -> None:
        self._put("summary", ())
        self._put("drift", ())
        self.push_screen(StartScreen(error))

    # Showing what it answered

    def _show_status(self, status: Status) -> None:
        self._findings = {}
        for finding in status.findings:
            self._findings.setdefault(finding.path, []).append(finding)
        now = time.strftime("%H:%M:%S")
        self._put("summary", present.summary(status, root=self._root, checked_at=now))
        self._put("drift", present.drift_lines(status))
        tab = self._part("right", TabbedContent).get_tab("drift-tab")
        tab.label = f"Drift ({len(status.findings):,})" if status.findings else "Drift"
        for parent in self._resources.values():
            for node in parent.children:
                if node.data is not None and node.data.path:
                    node.set_label(self._chunk_label(node.data))
        self._preview_again()

    def _show_resources(self, items: list[dict[str, Any]]) -> None:
        opened = {name for name, node in self._resources.items() if node.is_expanded}
        at = self._tree.cursor_node
        wanted = at.data if at is not None else None
        self._return_to = wanted.path if wanted is not None else ""
        self._tree.clear()
        self._resources = {}
        for item in items:
            name = item["resource"]
            entry = Entry(item=item, resource=name)
            node = self._tree.root.add(Text(present.resource_label(item)), data=entry)
            self._resources[name] = node
            if name in opened:
                node.expand()
        if not items:
            nothing = "nothing in this store yet: filestore add PATH…"
            self._put("chunk", [present.Line(text=nothing)])
        elif wanted is None or not wanted.path:
            start = self._resources.get(wanted.resource if wanted is not None else "")
            self._go_to(start or self._tree.root.children[0])

    def _go_to(self, node: TreeNode[Entry]) -> None:
        # A node has no line before the tree was laid out.
        self.call_after_refresh(self._tree.move_cursor, node)

    @on(Tree.NodeExpanded, "#resources")
    def _expanded(self, event: Tree.NodeExpanded[Entry]) -> None:
        entry = event.node.data
        if entry is not None and not event.node.children:
            self._ask(
                lambda store: store.chunks(entry.resource),
                partial(self._show_chunks, entry.resource),
                group=f"chunks of {entry.resource}",
            )

    def _show_chunks(self, resource: str, items: list[dict[str, Any]]) -> None:
        parent = self._resources.get(resource)
        if parent is None or parent.data is None or parent.children:
            return
        for item in items[:MAX_LEAVES]:
            entry = Entry(item=item, resource=resource, path=item["path"])
            node = parent.add_leaf(self._chunk_label(entry), data=entry)
            if entry.path == self._return_to:
                self._go_to(node)
        if len(items) > MAX_LEAVES:
            label = present.more_label(len(items) - MAX_LEAVES, resource)
            parent.add_leaf(Text(label), data=Entry(item=parent.data.item, resource=resource))

    def _chunk_label(self, entry: Entry) -> Text:
        found = self._findings.get(entry.path, ())
        return Text(present.chunk_label(entry.item, entry.resource, found))

    @on(Tree.NodeHighlighted, "#resources")
    def _highlighted(self, event: Tree.NodeHighlighted[Entry]) -> None:
        if not self._searching and event.node.data is not None:
            self._preview_entry(event.node.data)

    @on(Tree.NodeSelected, "#resources")
    def _selected(self, event: Tree.NodeSelected[Entry]) -> None:
        if event.node.data is not None and event.node.data.path:
            self._show_tab("chunk-tab")

    @property
    def _searching(self) -> bool:
        return self._part("lists", ContentSwitcher).current == "found"

    def _preview_again(self) -> None:
        """Preview what the cursor is on, in the list that is to be seen."""
        node, hit = self._tree.cursor_node, self._part("hits", OptionList).highlighted
        if self._searching and hit is not None:
            self._preview(self._hits[hit])
        elif not self._searching and node is not None and node.data is not None:
            self._preview_entry(node.data)

    def _preview_entry(self, entry: Entry) -> None:
        if entry.path:
            self._preview(entry.path)
        else:
            self.workers.cancel_group(self, "preview")
            self._put("chunk", present.resource_lines(entry.item))

    def _preview(self, path: str) -> None:
        self._ask(
            lambda store: store.show(path),
            self._show_chunk,
            group="preview",
            failed=partial(self._no_chunk, path),
        )

    def _show_chunk(self, shown: Shown) -> None:
        found = self._findings.get(shown.path, ())
        self._put("chunk", present.chunk_lines(shown, found))

    def _no_chunk(self, path: str, error: FilestoreError) -> None:
        self._put("chunk", present.error_lines(error, self._findings.get(path, ())))

    # Searching

    @on(Input.Submitted, "#query")
    def _submitted(self, event: Input.Submitted) -> None:
        self._asked = event.value.strip()
        self._search()

    def _search(self) -> None:
        if self._asked:
            query, mode = self._asked, self._mode
            self._ask(
                lambda store: store.search(query, count=HITS, mode=mode, filters=Filters()),
                self._show_answer,
                group="search",
            )

    def _show_answer(self, answer: Answer) -> None:
        self._part("message", Static).remove_class("open")
        self._put("answer", present.answer_lines(answer, limit=HITS))
        hits = self._part("hits", OptionList)
        # The answer's paths, and no others, can be highlighted: the list holds them in its order.
        self._hits = [hit.path for hit in answer.hits]
        hits.set_options(
            Option(as_text(present.hit_lines(number, hit)))
            for number, hit in enumerate(answer.hits, start=1)
        )
        self._part("lists", ContentSwitcher).current = "found"
        if answer.hits:
            hits.focus()
            hits.highlighted = 0

    @on(OptionList.OptionHighlighted, "#hits")
    def _hit_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index < len(self._hits):
            self._preview(self._hits[event.option_index])

    @on(OptionList.OptionSelected, "#hits")
    def _hit_selected(self) -> None:
        self._show_tab("chunk-tab")

    # Keys

    def _show_tab(self, tab: str) -> None:
        self._part("right", TabbedContent).active = tab

    def action_search(self) -> None:
        """Open the search box."""
        self._part("search", Vertical).add_class("open")
        self._part("query", Input).focus()

    def action_leave_search(self) -> None:
        """Return from the search to the resources."""
        self.workers.cancel_group(self, "search")
        self._asked = ""
        self._part("search", Vertical).remove_class("open")
        self._part("query", Input).clear()
        self._part("lists", ContentSwitcher).current = "resources"
        self._tree.focus()
        self._preview_again()

    def action_mode(self) -> None:
        """Change how is searched, and search again."""
        self._mode = "keyword" if self._mode == "hybrid" else "hybrid"
        self._put("mode", present.mode_line(self._mode))
        self._search()

    def action_drift(self) -> None:
        """Show the drift, or the chunk again."""
        active = self._part("right", TabbedContent).active
        self._show_tab("chunk-tab" if active == "drift-tab" else "drift-tab")

    def action_refresh(self) -> None:
        """Look at the store again, also where its index was made anew."""
        self._reading.let_go()
        self._look()

    def action_retry(self) -> None:
        """Leave the start screen and try to open the store again."""
        with contextlib.suppress(IndexError):
            self.pop_screen()
        self._look()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())


def _unexpected(error: Exception) -> FilestoreError:
    return FilestoreError(
        f"unexpected: {type(error).__name__}: {error}",
        remedy="'filestore verify' tells whether the store is damaged; else please report this",
    )
