"""Keeps in the catalog when documents were committed: git's log is read once for each new HEAD.

Only at a commit of the sidecar; before an answer, only what follows a commit that is known. One
rule: what git does not tell in time is remembered as unknown, with the reason, and is not asked
for again.
"""

import contextlib
import os
import posixpath
from collections.abc import Iterable, Iterator
from typing import Final

from filestore.catalog import CatalogWriter, ages
from filestore.catalog.ages import History, history
from filestore.config.layout import Places
from filestore.config.settings import KeyNames
from filestore.core.paths import around
from filestore.git import dates, process

_MOST_FOLDERS: Final = 200
"""Of more, the whole work tree is looked at."""
_OF_BEFORE: Final = "of an earlier commit only the dates are known that documents say"


def is_behind(places: Places, catalog: CatalogWriter) -> bool:
    """Whether HEAD is another commit than the last one that is known."""
    return dates.head(places.root) != history(catalog).head


def is_further(places: Places, catalog: CatalogWriter) -> bool:
    """Whether HEAD comes after the last commit that is known, so that little has to be read."""
    return dates.is_later(places.root, history(catalog).head, dates.head(places.root))


def note(places: Places, catalog: CatalogWriter, names: KeyNames, *, new_records: bool) -> None:
    """Read what git's log has and the catalog lacks.

    Args:
        places: Of the store.
        catalog: In the transaction of a commit.
        names: Which keys name sources.
        new_records: Whether records changed, and so where originals lie.
    """
    known = history(catalog)
    if places.fetch is not None:
        # The files of a view are written as they are looked at, and git's log is of today.
        catalog.note_committed({}, (), is_whole=True)
        catalog.note_history(History(problem=_OF_BEFORE))
        return
    head = dates.head(places.root)
    root = os.path.realpath(places.root)
    tree = process.work_tree(root) if head else None
    if tree is None:
        if known.head:
            catalog.note_committed({}, (), is_whole=True)
            catalog.note_history(History())
        return
    prefix = os.path.relpath(root, tree)
    if known.head == head and known.prefix == prefix and not new_records:
        return
    below = _smallest(
        posixpath.normpath(f"{prefix}/{one}") for one in _folders(places, catalog, names)
    )
    covers = known.prefix == prefix and _smallest((*below, *known.below)) == known.below
    if known.head == head and covers:
        # An original that was taken anew may have been edited, or put back.
        with contextlib.suppress(process.NoAnswerError, OSError):
            catalog.note_committed({}, dates.edited(tree, known.below, head), is_whole=False)
        return
    below = known.below if covers else below
    start, problem = "", ""
    try:
        if covers and known.head and dates.is_ancestor(tree, known.head, head):
            start, problem = known.head, known.problem
        found = _merged(catalog if start else None, dates.changes(tree, below, head, start))
        edited = dates.edited(tree, below, head)
    except (process.NoAnswerError, OSError) as error:
        start, found, edited = "", {}, []
        problem = f"dates of commits are not known, and those of files count: {error}"
    catalog.note_committed(found, edited, is_whole=not start)
    catalog.note_history(
        History(
            head=head,
            prefix=prefix,
            below=below,
            generation=catalog.next_generation,
            problem=problem,
        )
    )


def _folders(places: Places, catalog: CatalogWriter, names: KeyNames) -> Iterator[str]:
    """Where files lie whose dates count, relative to the store root."""
    yield places.tree.pathspec
    for _, _, source, _ in catalog.documents():
        yield posixpath.dirname(source) or "."
    for key in names.sources:
        for one in (key, f"{key}.path"):
            for document, named in ages.with_key(catalog, places.tree, one):
                # From the document, or from the root.
                for start in (posixpath.dirname(document) or ".", "."):
                    yield posixpath.dirname(f"{start}/{named}")


def _smallest(folders: Iterable[str]) -> tuple[str, ...]:
    """The folders of some that lie in no other one, without what leads out."""
    every = {one for one in folders if not f"{one}/".startswith(("../", "/")) and "\0" not in one}
    found = sorted(one for one in every if every.isdisjoint({*around(one)} - {one}))
    return (".",) if len(found) > _MOST_FOLDERS or "." in every else tuple(found)


def _merged(
    catalog: CatalogWriter | None, changes: Iterable[dates.Change]
) -> dict[bytes, tuple[int, int] | None]:
    """The first and the last commit of each file that was changed; None for what is gone."""
    changed = list(changes)
    found: dict[bytes, tuple[int, int] | None] = {}
    if catalog is not None:
        names = {name for one in changed for name in (one.path, one.before) if name}
        known = ages.committed(catalog, names)
        found |= {path: (first, last) for path, (first, last, _) in known.items()}
    was: dict[bytes, int] = {}
    """What was taken away on one branch may stay on another."""
    for one in changed:
        before = found.get(one.before or one.path)
        created = before[0] if before else was.get(one.before or one.path, one.at_s)
        if one.before:
            was[one.before], found[one.before] = created, None
        if one.is_gone:
            was[one.path], found[one.path] = created, None
        else:
            # Of two branches the later one counts, in whatever order git has them.
            last_s = before[1] if before and not one.before else 0
            found[one.path] = created, max(one.at_s, last_s)
    return found
