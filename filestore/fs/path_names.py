"""Names as people type them, composed or as printed; and paths for libraries that take only text.

macOS and some programs write `é` as two signs where a keyboard gives one. One rule: what has the
very signs that were typed wins, else the one thing whose name is equal in NFC.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product

from filestore.core.errors import UsageError
from filestore.core.safe_text import paths_shown_so


class AmbiguousNameError(UsageError):
    """Several names look like the one that was typed, and none is it."""

    def __init__(self, typed: str, names: Sequence[str]) -> None:
        super().__init__(
            f"{typed!r} could be {' or '.join(map(ascii, names))}: type one of them as shown",
        )


def composed(name: str) -> str:
    """A name in NFC, in which names are compared."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def name_among(typed: str, known: Iterable[str]) -> str:
    """The known name that was typed; the text itself where none is like it.

    Raises:
        AmbiguousNameError: Several are like it.
    """
    if typed.isascii():
        return typed
    alike = sorted({name for name in known if composed(name) == composed(typed)})
    if typed in alike or not alike:
        return typed
    if len(alike) > 1:
        raise AmbiguousNameError(typed, alike)
    return alike[0]


def on_disk(path: str) -> str:
    """A whole path with each name as it is on the disk; the text itself where none is like it.

    Raises:
        AmbiguousNameError: Several names in a folder are like one of its names.
    """
    if path.isascii() or os.path.lexists(path):
        return path
    found = ""
    for name in path.split("/")[1:]:
        if not name.isascii() and not os.path.lexists(f"{found}/{name}"):
            try:
                names = os.listdir(found or "/")
            except (OSError, ValueError):
                return path
            name = name_among(name, names)
        found = f"{found}/{name}"
    return found if os.path.lexists(found) else path


def typed_paths(text: str, starts: Sequence[str]) -> Iterator[str]:
    """Where a path that a person typed may lie, best first; what is gone has no name on the disk.

    Args:
        text: A path, as it is or as it was printed.
        starts: The folders that it may start from.

    Raises:
        AmbiguousNameError: Several names are like one that was typed.
    """
    exact = [os.path.join(start, name) for name, start in product(paths_shown_so(text), starts)]
    yield from exact
    if not text.isascii():
        yield from (found for path in exact if (found := on_disk(path)) != path)
        for form in ("NFC", "NFD"):
            yield from (os.path.join(start, unicodedata.normalize(form, text)) for start in starts)


def is_utf8(path: str) -> bool:
    """Whether a path is text."""
    return path.encode("utf-8", "ignore").decode() == path


@contextmanager
def in_utf8(path: str) -> Iterator[str]:
    """A path to open something by, and only for that: a link where its own name is no text."""
    if is_utf8(path):
        yield path
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="filestore-") as folder:
        link = os.path.join(folder, "link")
        os.symlink(os.path.abspath(path), link)
        yield link
