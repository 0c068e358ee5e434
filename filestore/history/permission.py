"""What a program may change: the one look at every file before a change is carried out.

One rule: what is doubtful is refused, whatever the operation, the way and the spelling.
"""

from collections.abc import Iterable, Iterator, Sequence

from filestore.chunks.frontmatter import metadata_pairs
from filestore.config.door import Door
from filestore.config.layout import Places
from filestore.core.errors import RefusedError
from filestore.core.paths import StorePath, folded_path
from filestore.core.safe_text import shown_path
from filestore.extract.about import about_pairs
from filestore.extract.markdown import read_frontmatter
from filestore.fs.transaction import Replacement
from filestore.history.batch import is_plain


def require_permitted(places: Places, door: Door, changes: Sequence[Replacement]) -> None:
    """Let a program change files.

    Raises:
        RefusedError: One of them is closed to programs, or for people to change.
    """
    for one in changes:
        require_name(places, door, one.path)
        for side in (one.before, one.after):
            _require_open(door, one.path, pairs=tuple(entries(side.read())) if side else ())


def require_name(places: Places, door: Door, path: str) -> None:
    """Let a program write at a path relative to the root, whether anything is there or not.

    Raises:
        RefusedError: It is outside, of the settings, hidden, the conventions, or closed by a rule.
    """
    if path.startswith("../"):
        raise RefusedError(
            f"{shown_path(path)} lies outside of the store, where only people change files"
            ": ask the person whose store it is",
        )
    own = folded_path(door.conventions or "").strip("/")
    if not all(map(is_plain, path.split("/"))) or folded_path(path) in (own, "filestore.toml"):
        raise RefusedError(
            f"{shown_path(path)} is changed by people only"
            "; choose another: it is hidden, a setting, or a convention",
        )
    names = path, places.tree.chunk_path(StorePath(path))
    _require_open(door, path, names=names)


def _require_open(
    door: Door, path: str, *, names: Iterable[str] = (), pairs: Sequence[tuple[str, str]] = ()
) -> None:
    for rules, what in ((door.closed, "closed to"), (door.read_only, "read-only for")):
        if any(map(rules.matches, names)) or rules.hold(pairs):
            raise RefusedError(
                f"{shown_path(path)} is {what} programs"
                ": choose another file, or ask the person whose store it is",
            )


def entries(data: bytes) -> Iterator[tuple[str, str]]:
    """What a Markdown file says about itself: its metadata, and the tags in its text."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
    values, start = read_frontmatter(text)
    yield from metadata_pairs(values)
    yield from about_pairs(values, text[start:])
