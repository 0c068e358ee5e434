"""Markdown drawn for a width, away from the screen's thread.

Rich's Markdown makes lines; a text is drawn part by part, so that it can be
cancelled. One rule: whatever Markdown turns into characters is made safe after that too: an
entity is a control character only once it is parsed.
"""

import io
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import BlockQuote, ListItem, Markdown, TextElement
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme
from textual.strip import Strip

from filestore.browse import safe_text

if TYPE_CHECKING:
    from markdown_it.token import Token

PART: Final = 4 * 1024
"""Characters that are drawn at once, some tens of milliseconds' worth."""
NARROWEST: Final = 12
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_STYLES: Final = Theme(
    {
        # Shape alone, so that every theme of the screen fits, one without colours too.
        "markdown.h1": "bold underline",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "italic bold",
        "markdown.h6": "italic",
        "markdown.h7": "italic",
        "markdown.h1.border": "dim",
        "markdown.code": "bold",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.list": "none",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)


def rendered(
    text: str, width: int, *, wanted: Callable[[], bool], ascii_only: bool = False
) -> list[Strip] | None:
    """A Markdown text as lines of a width; None once it is not wanted any more.

    Args:
        text: As it is in the file.
        width: In cells.
        wanted: Asked before each part.
        ascii_only: Whether lists, quotes and tables are drawn in ASCII; the text stays as it is.

    Raises:
        ValueError: It cannot be drawn as Markdown.
    """
    console = Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding="ascii" if ascii_only else "utf-8"),
        width=max(width, NARROWEST),
        color_system="truecolor",
        force_terminal=True,
        legacy_windows=False,
        theme=_STYLES,
        markup=False,
        emoji=False,
        highlight=False,
    )
    strips: list[Strip] = []
    for part in parts(text.replace("\r\n", "\n")):
        if not wanted():
            return None
        if strips:
            strips.append(Strip.blank(0))
        try:
            lines = console.render_lines(_Safe(part, hyperlinks=False), pad=False)
        except (AssertionError, IndexError, KeyError, RecursionError) as error:
            # Rich fails on a few texts; they are shown as plain text.
            raise ValueError(f"cannot be drawn as Markdown: {error!r}") from error
        strips += [Strip(line) for line in lines]
    return strips


def parts(text: str) -> list[str]:
    """A text in parts of some size, cut at empty lines outside of fenced code.

    Joined by an empty line they are the text again.
    """
    found: list[str] = []
    lines: list[str] = []
    size, fence = 0, ""
    for line in text.split("\n"):
        if not line.strip() and size >= PART and not fence:
            found.append("\n".join(lines))
            lines, size = [], 0
            continue
        found_fence = _FENCE.match(line)
        run = found_fence[1] if found_fence else ""
        if run and not fence:
            fence = run
        elif run[:1] == fence[:1] and len(run) >= len(fence) and not line.strip().strip(run[:1]):
            fence = ""
        lines.append(line)
        size += len(line) + 1
    return [*found, "\n".join(lines)]


class _Code(TextElement):
    """Code without highlighting, which is slow for some texts."""

    style_name = "markdown.code_block"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("\n".join(f"  {line}" for line in str(self.text).rstrip().split("\n")))


class _Quote(BlockQuote):
    """A quotation behind a bar, one in ASCII where there is nothing else."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _redrawn(super().__rich_console__(console, options), options, {"\u258c ": "| "})


class _Item(ListItem):
    """A point of a list, with a sign in ASCII where there is nothing else."""

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _redrawn(super().render_bullet(console, options), options, {" \u2022 ": " * "})


def _redrawn(drawn: RenderResult, options: ConsoleOptions, signs: dict[str, str]) -> RenderResult:
    """What was drawn, with other signs where there is nothing but ASCII."""
    for part in drawn:
        if options.ascii_only and isinstance(part, Segment) and part.text in signs:
            yield Segment(signs[part.text], part.style)
        else:
            yield part


class _Safe(Markdown):
    """Markdown in which nothing is a control character, and nothing of the text is left out."""

    elements: ClassVar = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "blockquote_open": _Quote,
        "list_item_open": _Item,
    }

    def __init__(self, markup: str, *, hyperlinks: bool) -> None:
        super().__init__(markup, hyperlinks=hyperlinks)
        _make_safe(self.parsed)


def _make_safe(tokens: "Iterable[Token]") -> None:
    for token in tokens:
        if token.type == "image":
            token.type, token.tag = "text", ""
            token.content = f"[image: {token.content or token.attrs.get('src', '')}]"
            token.children = None
        elif token.type == "html_inline":
            token.type = "text"
        elif token.type == "html_block":
            token.type, token.tag = "code_block", "code"
        token.content = safe_text(token.content)
        token.attrs = {
            name: safe_text(value) if isinstance(value, str) else value
            for name, value in token.attrs.items()
        }
        _make_safe(token.children or ())
