"""Commands and options of earlier versions, and what to use instead."""

from collections.abc import Sequence
from typing import Final

from filestore.core.errors import UsageError

REMOVED: Final = {
    "repair --apply": "look with 'filestore repair --plan', then 'filestore repair --yes' with the"
    " same --only and --path",
    "tui --serve": "'filestore serve' has a page for browsers, behind a token",
}
"""A command, or a command and a word behind it: an option, its value, the name of an action."""


def refuse_removed(command: str, words: Sequence[str]) -> None:
    """Name what a call uses that is gone.

    Raises:
        UsageError: The command, or a word behind it, was removed.
    """
    own = words[: words.index("--")] if "--" in words else words
    named = [command, *(f"{command} {word}" for word in own)]
    named += [f"{command} {word.partition('=')[0]}" for word in own if word.startswith("--")]
    for key in named:
        if key in REMOVED:
            raise UsageError(f"'{key}' was removed", remedy=REMOVED[key])
