"""What is known of the terminal: how wide it is, whether it shows colours, who can be asked.

Every command asks here. One rule: what a program reads through a pipe depends on none of it.
"""

import os
import re
import sys
from contextvars import ContextVar
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from filestore.core.caller import other_caller
from filestore.core.colors import DUMB, wanted_colors
from filestore.core.errors import FilestoreError
from filestore.server import wire
from filestore.server.operations import Typed, option

USUAL: Final = 80
"""Columns where no terminal says how many it has."""
_NARROWEST: Final = 20
_WIDEST: Final = 100
"""Prose in longer lines is hard to read."""


def columns() -> int:
    """The width of the terminal in columns; 0 where standard output is none."""
    caller = other_caller()
    return wire.columns() if caller is None else caller.columns


def room() -> int:
    """The columns of a line: those of the terminal, at least 20; 80 where there is none."""
    return max(columns() or USUAL, _NARROWEST)


def width() -> int:
    """The columns that prose is broken at."""
    return min(room(), _WIDEST)


def colours() -> bool:
    """Whether standard output gets colours."""
    wanted: str = wishes().color
    caller = other_caller()
    if wanted == "auto":
        wanted = wanted_colors() if caller is None else caller.colors
    if wanted == "auto":
        return sys.stdout.isatty() and preferred("color") != "never"
    return wanted == "always"


def preferred(name: str) -> str:
    """What a person wants in every store: see `defaults.default`.

    Settings that cannot be read have none: what opens a store, and `config`, says what is wrong.
    """
    from filestore.config import defaults
    from filestore.config.layout import configuration_folder
    from filestore.config.settings import UserDefaults

    known = _PREFERRED.get()
    if name not in known:
        folder = configuration_folder()
        try:
            own = defaults.own_defaults(folder)
        except FilestoreError:
            own = UserDefaults()
        # The variables of a server are not those of the person whom it answers.
        variables = os.environ if other_caller() is None else None
        for one in defaults.USUAL:
            known[one] = defaults.default(one, own, folder, variables).value
    return known[name]


def link(path: str, line: int | None) -> str:
    """The address that opens a file in a person's editor; "" where they want none, or in a pipe.

    Args:
        path: Absolute.
        line: From 1; None for the first one.
    """
    if not (sys.stdout.isatty() and colours()):
        return ""
    from urllib.parse import quote

    form = preferred("links")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+", form):
        return ""
    # Nothing of a name is left that could end the address.
    place = quote(os.fsencode(path), safe="/")
    return form.replace("{line}", str(line or 1)).replace("{path}", place)


def draws() -> bool:
    """Whether standard error is a terminal on which a line can be drawn anew."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in DUMB


def can_ask() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty() and not wishes().no_input


def is_terminal() -> bool:
    """Whether a person can be asked, and sees the question and what comes of it."""
    return can_ask() and sys.stdout.isatty() and sys.stderr.isatty()


def answer(question: str, *, unanswered: str) -> str:
    """The line that a person types after a question; "" at the end of the input.

    Raises:
        KeyboardInterrupt: The answer is Ctrl-C; its note says what is `unanswered` then.
    """
    typed = ""
    try:
        sys.stderr.write(question)
        sys.stderr.flush()
        typed = sys.stdin.readline()
    except KeyboardInterrupt as error:
        error.add_note(f"{unanswered}\nrun it again")
        raise
    finally:
        if not typed.endswith("\n"):
            # At the end of the input, and at Ctrl-C, the cursor is still behind the question.
            sys.stderr.write("\n")
    return typed


class Wishes(Struct, frozen=True, kw_only=True):
    """What every command takes besides its own options."""

    quiet: Annotated[bool, option(None, "-q", "--quiet", group="words")] = False
    """print results and errors, no notes and no progress"""
    verbose: Annotated[bool, option(None, "-v", "--verbose", group="words")] = False
    """report on standard error which store, model and server answer, and how long it takes"""
    color: Literal["auto", "always", "never"] = "auto"
    """colours: on a terminal as its variables say, always, or never"""
    no_input: bool = False
    """ask nothing: what would be asked is refused, or goes on as in a pipe"""
    no_pager: bool = False
    """print what is longer than the screen as it is, without a pager"""
    fields: Annotated[dict[str, Any], Typed(inner=True)] = {}
    """The keys of the JSON that are wanted: see `_fields.Tree`; none: all."""
    store: Annotated[str, Typed(inner=True)] = ""
    """What names the store, as it was typed; "" where no --store does, or several."""


_WISHES: ContextVar[Wishes] = ContextVar("wishes", default=Wishes())  # noqa: B039


def wishes() -> Wishes:
    """What the command that this thread runs was asked for."""
    return _WISHES.get()


def use(wishes: Wishes) -> None:
    """Let these hold from now on, in this thread."""
    _WISHES.set(wishes)
    _PREFERRED.set({})


_PREFERRED: ContextVar[dict[str, str]] = ContextVar("preferred", default={})  # noqa: B039
"""What was read of a person's defaults for this command: each line of output asks for colours."""
