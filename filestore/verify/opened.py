"""Reports without what is closed to programs: of what compares all files, and of what was done.

The catalog that programs read has nothing closed in it. One rule: what is made of all files passes
through here before a program has it.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from filestore.catalog import Catalog
from filestore.chunks.layout import look_at
from filestore.chunks.observation import Observation
from filestore.core.caller import absolute
from filestore.core.codes import CODES
from filestore.core.errors import RefusedError
from filestore.core.findings import Finding
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.safe_text import shown_path
from filestore.history.backup_store import BatchMissingError
from filestore.history.batch import Group
from filestore.history.changes import Change
from filestore.history.permission import require_name
from filestore.sidecar.door import is_shut_text
from filestore.sidecar.session import Parts

_LONGEST: Final = 4_096
"""Characters of a path."""
_SENTENCES: Final = frozenset(("detail", "error", "notes", "problem", "reason", "remedy", "what"))
"""Keys of sentences, which may name files."""
_OWN_WORDS: Final = frozenset(
    (
        *("aliases", "body", "diff", "document", "frontmatter", "headings", "metadata", "passage"),
        *("query", "tags", "text", "title", "why"),
    )
)
"""Keys under which answers have what a file says, which is open or not there at all."""
_OF_HIT: Final = ("hits", "notes")
"""Made of what is open: they name no more than the document itself does."""
_UNREAD: Final = ("index", "reindex", "update-record", "repoint")
"""Steps for files that say something else than the catalog knows."""
_OPEN_WORDS: Final = frozenset(code for code, row in CODES.items() if row.of_its_words)
"""Findings made anew of what is open: they name what the document itself does."""
_COUNTS: Final = re.compile(r"(?<![\w/])[0-9][0-9,]*(?: of [0-9][0-9,]*)? (?=[a-z])")


def without_counts(lines: Iterable[str]) -> tuple[str, ...]:
    """What was looked at, in words, but not of how many files and texts."""
    return tuple(_COUNTS.sub("", one) for one in lines)


def open_findings(parts: Parts, catalog: Catalog, findings: Iterable[Finding]) -> list[Finding]:
    """Those of some findings that name nothing closed.

    Args:
        parts: The store's, opened for programs.
        catalog: Inside a snapshot.
        findings: Of all files.
    """
    found = _as_open(parts, catalog, list(findings))
    names, tree = catalog.closed(), parts.places.tree
    unread = {tree.chunk_path(one.path) for one in found if CODES[one.code].step in _UNREAD}
    for seen in look_at(parts.places, sorted(unread), parts.layout) if unread else ():
        if isinstance(seen, Observation):
            parts.layout.settle(seen)
            if seen.chunk is not None and is_shut_text(parts.places, seen.chunk, seen.path):
                names.add(tree.store_path(seen.path))
    return [
        one
        for one in found
        if not any(_is_closed(parts, names, name) for name in (one.path, one.other) if name)
        and (one.code in _OPEN_WORDS or not any(name in one.detail for name in names))
    ]


def _as_open(parts: Parts, catalog: Catalog, findings: list[Finding]) -> list[Finding]:
    """The same, where a closed successor is none, and closed texts that wait are not counted."""
    from filestore.verify.recorded_state import pending, successions

    codes = {one.code for one in findings}
    kept = [one for one in findings if one.code not in {"vector-pending", *_OPEN_WORDS}]
    named = {one.path for one in findings if one.code in _OPEN_WORDS}
    if named:
        found = successions(parts.places, catalog, parts.settings.keys)
        kept += [one for one in found if one.path in named]
    return kept + (pending(parts.places, catalog) if "vector-pending" in codes else [])


def require_open_batch(
    parts: Parts, catalog: Catalog, groups: Sequence[Group], identifier: str | None
) -> None:
    """Let a program undo a change that touches nothing closed.

    Args:
        parts: The store's, opened for programs.
        catalog: Inside a snapshot.
        groups: All changes, oldest first.
        identifier: As it is named; None for the newest that is not undone.

    Raises:
        BatchMissingError: It touches something closed.
    """
    shut = _shut(parts, catalog, groups)
    newest = next((one for one in reversed(groups) if not one.is_all("before")), None)
    if identifier is None and newest in shut and newest is not None:
        raise BatchMissingError("the newest change is a person's: name another one")
    if identifier in {batch.identifier for group in shut for batch in group.batches}:
        raise BatchMissingError(
            f"no batch {identifier!r}", remedy="'filestore undo --list' shows what is there"
        )


def open_changes(parts: Parts, catalog: Catalog, changes: Iterable[Change]) -> tuple[Change, ...]:
    """Those of some changes that touch nothing closed; see `require_open_batch`."""
    found = list(changes)
    shut = {one.id for one in _shut(parts, catalog, [one.group for one in found])}
    return tuple(one for one in found if one.group.id not in shut)


def _shut(parts: Parts, catalog: Catalog, groups: Iterable[Group]) -> list[Group]:
    names = catalog.closed()
    return [one for one in groups if any(_is_closed(parts, names, path) for path in one.links())]


def require_open_originals(parts: Parts, paths: Sequence[str], into: str | None) -> None:
    """Let a program add documents.

    Args:
        parts: The store's, opened for programs.
        paths: As they are given.
        into: The name of the resource, if one is given.

    Raises:
        RefusedError: One lies where a rule closes, or its chunks would.
    """
    places, door = parts.places, parts.places.door
    if door is None:
        return
    for path in paths:
        for place in (os.path.normpath(absolute(path)), os.path.realpath(path)):
            name = os.path.relpath(place, os.path.realpath(places.root))
            if door.closed.matches(name) or door.closed.matches(place):
                raise RefusedError(
                    f"{shown_path(path)} is closed to programs: add it on the command line",
                )
        name = into or os.path.basename(os.path.normpath(path))
        require_name(places, door, places.tree.store_path(ChunkPath(name)))


def _is_closed(parts: Parts, names: set[str], name: str) -> bool:
    if name in names:
        return True
    is_path = len(name) <= _LONGEST and name.isprintable() and bool({"/", "."}.intersection(name))
    closed, chunk = parts.places.closed, parts.places.tree.chunk_path(StorePath(name))
    return is_path and closed is not None and (closed.matches(name) or closed.matches(chunk))


def open_answer(parts: Parts, catalog: Catalog, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as JSON without entries of lists that name what is closed.

    Args:
        parts: The store's, opened for programs.
        catalog: Inside a snapshot.
        answer: As `to_dict` gives it.
    """
    names = catalog.closed()
    telling = [one for one in names if {"/", "."}.intersection(one)]

    def is_closed(value: Any, key: str) -> bool:
        if isinstance(value, dict):
            return any(
                _is_closed(parts, names, inner) or is_closed(one, inner)
                for inner, one in value.items()
                if inner not in _OWN_WORDS and isinstance(one, str)
            )
        if not isinstance(value, str):
            return False
        is_telling = key in _SENTENCES and any(one in value for one in telling)
        return is_telling or _is_closed(parts, names, value)

    def opened(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {
                inner: one if inner in _OWN_WORDS or (key, inner) == _OF_HIT else opened(one, inner)
                for inner, one in value.items()
                if not _is_closed(parts, names, inner)
            }
        if isinstance(value, list | tuple):
            return [opened(one, key) for one in value if not is_closed(one, key)]
        return value

    made: dict[str, Any] = opened(answer, "")
    return made
