"""The command line of the screen: what was typed, into what is meant. Pure."""

import shlex
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from filestore.browse import did_you_mean


class Typed(Struct, frozen=True, kw_only=True):
    """A command that was typed."""

    name: str
    """The command; "vector" for a number, "path" for a file, "unknown" for what the screen cannot
    do, "" for nothing."""
    words: tuple[str, ...] = ()
    """What follows, without options."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Options, without dashes, each with the words behind it."""
    problem: str = ""
    """Why it cannot be used; "" where it can."""

    def values(self, option: str) -> tuple[str, ...]:
        """The words behind an option; none where it is not there."""
        return self.options.get(option, ())


MANY: Final = frozenset({"only", "path", "ours", "theirs", "remove"})
"""Options of `repair` that take words until the next option."""
OPTIONS: Final[dict[str, frozenset[str]]] = {
    "verify": frozenset({"level"}),
    "sync": frozenset({"full", "forget-missing"}),
    "search": frozenset(),
    "show": frozenset(),
    "ls": frozenset(),
    "status": frozenset(),
    "repair": frozenset({"write-files", "plan", "yes", *MANY}),
    "undo": frozenset({"list"}),
    "redo": frozenset({"list"}),
    "add": frozenset(),
    "help": frozenset(),
    "quit": frozenset(),
}
"""What the screen does itself, and the options that it takes there."""
ELSEWHERE: Final = frozenset(
    [
        "about", "backend", "compare", "convert", "demo", "duplicates", "embedder", "embeddings",
        "enrich", "evaluate", "export", "git", "import", "init", "links", "log", "mcp", "open",
        "reconstruct", "rm", "serve", "similar", "trust", "tui", "update", "watch",
    ]
)  # fmt: skip
"""Commands of the program that need a terminal of their own."""
COMPLETIONS: Final = (
    "verify", "verify --level full", "verify --level deep", "sync", "sync --full",
    "sync --forget-missing", "search ", "show ", "ls ", "status", "repair", "repair --write-files",
    "undo", "undo --list", "redo", "add ", "help", "quit",
)  # fmt: skip
_SHORT: Final = {"q": "quit", "wq": "quit", "h": "help"}


def parse(text: str) -> Typed:
    """What is meant by a line that was typed, with or without the program's name in front."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        first, _, query = text.strip().removeprefix("filestore ").partition(" ")
        if first == "search":
            # Words of a language have apostrophes.
            return Typed(name="search", words=(query.strip(),))
        return Typed(name="unknown", problem=str(error).lower())
    if words[:1] == ["filestore"]:
        words = words[1:]
    if not words:
        return Typed(name="")
    first, rest = _SHORT.get(words[0], words[0]), words[1:]
    if first.isdecimal() and first.isascii() and not rest:
        return Typed(name="vector", words=(first,))
    if first in OPTIONS:
        return _command(first, rest)
    if first in ELSEWHERE:
        return Typed(name="unknown", problem=f"'filestore {first}' runs in a terminal, not here")
    if not rest and "/" in first:
        return Typed(name="path", words=(first,))
    meant = did_you_mean(first, [*OPTIONS, *sorted(ELSEWHERE)]) or "; ? shows the keys"
    return Typed(name="unknown", problem=f"no command is called {first}{meant}")


def _command(name: str, rest: list[str]) -> Typed:
    if name == "search":
        # A query may well begin with a dash.
        return Typed(name=name, words=(" ".join(rest),) if rest else ())
    words: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    last = ""
    for word in rest:
        if word.startswith("--"):
            last, _, value = word[2:].partition("=")
            last = "write-files" if last == "truth" else last
            options[last] = (*options.get(last, ()), *([value] if value else ()))
        elif last in MANY or last == "level":
            options[last] = (*options[last], word)
        else:
            words.append(word)
    unknown = [option for option in options if option not in OPTIONS[name]]
    if unknown:
        meant = did_you_mean(unknown[0], [f"--{one}" for one in sorted(OPTIONS[name])])
        return Typed(name=name, problem=f"{name} has no --{unknown[0]} here{meant}")
    words += options.get("level", ())
    return Typed(name=name, words=tuple(words), options=options)
