"""What is laid over the page: questions, panels, too small a terminal, why no store opens."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key, Resize, ScreenResume
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from filestore import FilestoreError
from tui.formatting import Line, error_lines, one_line, plain
from tui.widgets.drawing import PlainBar
from tui.widgets.text import Field, TextPane
from tui.widgets.upstream import Delay, Options, Steady


class Choice(Struct, frozen=True):
    """One thing that can be chosen."""

    name: str
    title: str
    about: str = ""
    why_not: str = ""
    """Why it cannot be chosen; "" where it can."""
    key: str = ""
    """The letter that chooses it; "" for none."""
    also: str = ""
    """What a filter finds it by, too."""


class ChoiceScreen(Steady, ModalScreen[str | None]):
    """Choices under a question; gives the name of the chosen one, or None."""

    hint: ClassVar[str] = "enter chooses, esc cancels"
    box: ClassVar[str] = "box"
    filters: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "leave"),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(
        self,
        question: str,
        choices: Sequence[Choice],
        *,
        at: str = "",
        tried: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the question.

        Args:
            question: Above the choices.
            choices: What can be chosen.
            at: The name of the choice to begin with.
            tried: Called with the name of each choice that the cursor comes to.
        """
        super().__init__()
        self._tried = tried
        self._head = Text(one_line(question), style="bold")
        self._choices = choices
        self._at = at

    def compose(self) -> ComposeResult:
        """The question, and what can be chosen."""
        with Vertical(classes=self.box):
            yield Static(self._head)
            yield Options(*map(self.row, self._choices))
            if self.filters:
                yield Field(placeholder="words of a line", compact=True)
            yield (hint := Static(Text(self.hint, style="dim"), classes="hint"))
            hint.visible = not self.is_seen_first

    def row(self, choice: Choice) -> Option:
        """How a choice is shown."""
        text = Text(f"{choice.key}  " if choice.key else "", style="bold")
        text.append(one_line(choice.title))
        for more in filter(None, (choice.about, choice.why_not)):
            text.append(f"  {one_line(more)}", style="dim not bold")
        return Option(text, id=choice.name, disabled=bool(choice.why_not))

    def begin(self) -> None:
        """Begin on the choice that holds now."""
        options = self.query_one(OptionList)
        names = [choice.name for choice in self._choices]
        first = next((n for n, one in enumerate(self._choices) if not one.why_not), None)
        options.highlighted = names.index(self._at) if self._at in names else first
        if getattr(self.app, "ascii", False):
            options.vertical_scrollbar.renderer = PlainBar  # type: ignore[misc] # as documented
        options.focus()

    def on_key(self, event: Key) -> None:
        """Choose by its letter."""
        for one in self._choices:
            if one.key and one.key == event.character and not one.why_not:
                event.stop()
                self.dismiss(one.name)

    @on(OptionList.OptionHighlighted)
    def _reached(self, event: OptionList.OptionHighlighted) -> None:
        self._tried(event.option_id or "")

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_down(self) -> None:
        """Go to the next one."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Go to the one before."""
        self.query_one(OptionList).action_cursor_up()


HELP_WIDTH: Final = 100
AROUND: Final = 8
"""Columns of a box that are none of a line's: borders, padding, the scroll bar."""


class HelpScreen(ChoiceScreen):
    """Every action on one line, filtered by what is typed behind a slash."""

    hint = "/ filters, enter does it, esc closes"
    filters = True
    box = "box help"
    DEFAULT_CSS = "HelpScreen OptionList { text-wrap: nowrap; text-overflow: ellipsis; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "filter", show=False)]

    def __init__(self, question: str, choices: Sequence[Choice], *, is_typing: bool) -> None:
        super().__init__(question, choices)
        self._is_typing = is_typing

    def row(self, choice: Choice) -> Option:
        """On one line, as much of it as fits."""
        text = Text(one_line(choice.title), style="bold")
        text.append(f"  {one_line(choice.about)}", style="dim not bold")
        room = min(self.app.size.width * 96 // 100, HELP_WIDTH) - AROUND
        # An ellipsis is no ASCII.
        text.truncate(room, overflow="crop" if getattr(self.app, "ascii", False) else "ellipsis")
        return Option(text, id=choice.name)

    def begin(self) -> None:
        """Begin with a filter where one is to be typed."""
        self.query_one(Field).display = False
        super().begin()
        if self._is_typing:
            self.action_filter()

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one(Field).display = True
        self.query_one(Field).focus()

    @on(Input.Changed)
    def _filtered(self, event: Input.Changed) -> None:
        words = event.value.lower().split()
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            self.row(one)
            for one in self._choices
            if all(word in f"{one.title} {one.about} {one.also}".lower() for word in words)
        )
        options.highlighted = 0 if options.option_count else None

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.query_one(OptionList).action_select()


YES: Final = "yes"
MOST_LINES: Final = 0.6
"""Of the screen's height, in sight at once; the rest is scrolled to."""
TYPING_S: Final = 0.4
"""How long after a y the rest of the word may come."""
WIDTH: Final = 56
"""Of a line, where the screen is not narrow."""


class ConfirmScreen(Steady, ModalScreen[bool]):
    """Shows what is about to happen; its result is whether the user confirmed."""

    is_seen_first = True
    DEFAULT_CSS = """
    ConfirmScreen .question { text-style: bold; height: auto; }
    ConfirmScreen TextPane { margin: 1 0; background: $surface; }
    ConfirmScreen .hint { height: auto; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "leave"),
        Binding("n,q", "answer(False)", show=False),
        Binding("enter", "enter", show=False),
        Binding("y", "letter('y')", show=False),
        Binding("e", "letter('e')", show=False),
        Binding("s", "letter('s')", show=False),
    ]

    def __init__(self, question: str, lines: Sequence[Line], *, removes: int = 0) -> None:
        """Prepare the question.

        Args:
            question: With counts and scope.
            lines: The details.
            removes: How many files are removed.
        """
        super().__init__()
        self._question = question
        self._lines = lines
        self._removes = removes
        self._letters = ""
        self._typing = Delay(self)

    def compose(self) -> ComposeResult:
        """The question, what it means, and how to answer."""
        with Vertical(classes="box"):
            yield Static(one_line(self._question), classes="question", markup=False)
            yield TextPane()
            if self._removes:
                yield Input(compact=True)
            hint = "y confirms; enter or esc cancels"
            if self._removes:
                files = "a file" if self._removes == 1 else f"{self._removes:,} files"
                hint = f"{files} will be removed: type {YES} and press enter; esc cancels"
            yield (line := Static(hint, classes="hint", markup=False))
            line.visible = False

    def begin(self) -> None:
        """Show what it means; begin where the answer is given."""
        pane = self.query_one(TextPane)
        widths = [sum(len(span.text) for span in line) for line in self._lines]
        most = int(self.app.size.height * MOST_LINES)
        pane.styles.height = min(sum(1 + width // WIDTH for width in widths) or 1, most)
        pane.show(self._lines)
        (self.query_one(Input) if self._removes else pane).focus()

    def ask(self) -> None:
        """Say how to answer."""
        for line in self.query(Input):
            line.placeholder = f"type {YES} to continue"
        self.query(".hint").set(visible=True)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if event.value.strip().lower() == YES:
            self.dismiss(True)
        else:
            hint = f"type {YES} to continue, or press esc to cancel"
            self.query_one(".hint", Static).update(hint)

    def action_letter(self, letter: str) -> None:
        """Take a y, or the whole word: its other letters must not reach the page as keys."""
        if self._removes:
            self.query_one(Input).focus()
        elif YES.startswith(self._letters + letter):
            self._letters += letter
            self._typing.begin(TYPING_S, lambda: self.action_answer(True))

    def action_enter(self) -> None:
        """Cancel, unless y was typed before; where yes is to be typed, go there."""
        if self._removes:
            self.query_one(Input).focus()
        else:
            self.action_answer(bool(self._letters))

    def action_answer(self, wanted: bool) -> None:
        """Take the answer of a key; a removal is not confirmed by one."""
        self._typing.stop()
        if self.is_current:
            self.dismiss(wanted)
            if not wanted:
                self.notify("cancelled: nothing was written")


class _Completer(Suggester):
    """Suggests the last line of those before that begins so, else what completes this one."""

    def __init__(self, earlier: Sequence[str], complete: Callable[[str], str | None]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._earlier = earlier
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The whole line; None for none."""
        before = (one for one in reversed(self._earlier) if one.startswith(value))
        return next(before, None) or self._complete(value)


class PromptScreen(Steady, ModalScreen[str | None]):
    """Gives what was typed, or None. Up and down go through what was typed before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave"),
        Binding("up", "earlier(-1)", "earlier", show=False),
        Binding("down", "earlier(1)", "later", show=False),
        Binding("tab", "complete", "complete", show=False),
    ]

    def __init__(
        self,
        sign: str,
        *,
        hint: str = "",
        value: str = "",
        earlier: Sequence[str] = (),
        complete: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """Type nothing yet; `value` is there to be changed, `complete` ends a line if it can."""
        super().__init__()
        self._sign = sign
        self._earlier = [*earlier, ""]
        self._at = len(earlier)
        # Held here: a key may come as the inspector ends, which then makes no more widgets.
        self._line = Field(
            value=value,
            placeholder=hint,
            suggester=_Completer(earlier, complete),
            compact=True,
            # Selected, what was typed ahead would be replaced by the next letter.
            select_on_focus=False,
        )

    def compose(self) -> ComposeResult:
        """The sign, and the line."""
        with Vertical(id="prompt"):
            yield Static(self._sign, markup=False, id="prompt-sign")
            yield self._line

    def begin(self) -> None:
        """Begin to type."""
        self._line.focus()

    def on_key(self, event: Key) -> None:
        """Take what is typed before the line has the focus."""
        line = self._line
        if line.has_focus:
            return
        if event.key == "enter":
            event.stop()
            self._give(line.value)
        elif event.character is not None and event.is_printable:
            event.stop()
            line.insert_text_at_cursor(event.character)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self._give(event.value)

    def _give(self, text: str) -> None:
        # A key may still arrive while the line goes away.
        if self.is_current:
            self.dismiss(text)

    def action_complete(self) -> None:
        """Take what is suggested."""
        self._line.action_cursor_right()

    def action_earlier(self, step: int) -> None:
        """Take up a line that was typed before, or a later one."""
        self._at = min(max(self._at + step, 0), len(self._earlier) - 1)
        self._line.value = self._earlier[self._at]
        self._line.cursor_position = len(self._line.value)


# What is only read

REFRESH_S = 0.25


class Panel(Steady, ModalScreen[None]):
    """Lines to read, refreshed while they are visible."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "close"),
        Binding("y", "copy", "copy"),
        Binding("x", "app.do('everywhere', 'stop')", "stop", show=False),
    ]

    def __init__(
        self,
        title: str,
        lines: Callable[[], Sequence[Line]],
        *,
        live: bool = False,
        whole: Callable[[], str] | None = None,
    ) -> None:
        """Prepare the panel.

        Args:
            title: Above the lines.
            lines: Makes them; called repeatedly if they are live.
            live: Whether they change while they are shown.
            whole: What is copied where the lines are shortened; None for the lines.
        """
        super().__init__()
        self._title = title
        self._lines = lines
        self.live = live
        self._whole = whole or (lambda: plain(lines()))

    def compose(self) -> ComposeResult:
        """The title, the lines, and how to leave."""
        with Vertical(classes="box wide"):
            yield Static(self._title, classes="panel-title", markup=False)
            yield TextPane()
            yield Static("esc closes, y copies it all", classes="panel-foot", markup=False)

    def begin(self) -> None:
        """Show the lines, and refresh them if they are live."""
        self._show()
        self.query_one(TextPane).focus()
        if self.live:
            self.set_interval(REFRESH_S, self._show)

    def _show(self) -> None:
        self.query_one(TextPane).show(self._lines(), key=self._title)

    def action_copy(self) -> None:
        """Copy all of it."""
        self.app.copy_text(self._whole(), what=self._title)  # type: ignore[attr-defined]


LEAST: Final = Size(60, 16)


class SmallScreen(Steady, ModalScreen[None]):
    """Shows the size needed, and closes once the terminal has it; keys do nothing meanwhile."""

    DEFAULT_CSS = """
    SmallScreen { align: center middle; background: $background; overflow: hidden; }
    SmallScreen Static { width: auto; max-width: 100%; text-align: center; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c,ctrl+q", "app.do('everywhere', 'quit')", show=False, priority=True)
    ]

    def __init__(self) -> None:
        super().__init__()
        # Held here: a size may come as the inspector ends, which then makes no more widgets.
        self._shown = Static(markup=False)

    def compose(self) -> ComposeResult:
        """How much room there is, and how much is needed."""
        self._shown.update(self._words())
        yield self._shown

    def _words(self) -> str:
        now, least = self.app.size, LEAST
        return (
            f"{now.width} by {now.height} is too small\n"
            f"{least.width} by {least.height} is needed\nq quits"
        )

    @on(Resize)
    @on(ScreenResume)
    def _check_size(self) -> None:
        # Also where the terminal grew while another screen lay over this one.
        if is_too_small(self.app.size):
            self._shown.update(self._words())
        elif self.app.screen is self:
            size = self.app.size
            self.dismiss(None)
            # Screens below another one got no resize.
            for screen in self.app.screen_stack:
                screen.post_message(Resize(size, size))


def is_too_small(size: Size) -> bool:
    """Whether the pages have no room."""
    return size.width < LEAST.width or size.height < LEAST.height


class StartScreen(ChoiceScreen):
    """Why there is no store, and what to do: gives the name of the way, or None to quit."""

    is_seen_first = True
    hint = "enter chooses, q quits"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "dismiss", show=False)]

    def __init__(self, error: FilestoreError, ways: Sequence[Choice]) -> None:
        choices = [*ways, Choice("retry", "try again", key="r")]
        # Those without a letter are as far in as the others.
        super().__init__(
            "", [one if one.key else replace(one, title=f"   {one.title}") for one in choices]
        )
        self._head = Text(plain(error_lines(error)))

    def ask(self) -> None:
        """Say that it is answered from now on."""
        self.query(".hint").set(visible=True)
