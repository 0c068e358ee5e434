"""Files that git stores otherwise than they lie in the work tree: filters, encodings, identities.

A view reads what git stores. A filter is a program that a repository names, and is never run; so a
file is taken from the work tree where git says that it has not changed since the commit.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from filestore.config.layout import MAX_SOURCE_BYTES, Places
from filestore.core.paths import ChunkPath
from filestore.fs import disk
from filestore.git.process import NoAnswerError
from filestore.git.revisions import Commit, changed_since
from filestore.past.checkout import Checkout

NOTE: Final = (
    "some files of the commit are read as git stores them: .gitattributes names a filter, an"
    " encoding or 'ident', which only a checkout applies"
)
_ATTRIBUTES: Final = ".gitattributes"
_CONVERTED: Final = re.compile(rb"[ \t](?:filter|working-tree-encoding)=|[ \t]ident\b")


def from_work_tree(
    places: Places, commit: Commit, paths: Sequence[ChunkPath]
) -> Iterator[tuple[ChunkPath, bytes]]:
    """Those of some files that git has as unchanged since a commit, with their bytes of today.

    Args:
        places: Of the store.
        commit: What they are compared with.
        paths: Files that the commit has, of which git may store other bytes.
    """
    if not paths:
        return
    names = [places.tree.store_path(path) for path in paths]
    try:
        changed = changed_since(places.root, commit.commit, names)
    except NoAnswerError:
        return
    for path, name in zip(paths, names, strict=True):
        if name not in changed:
            place = os.path.join(places.chunked, path)
            try:
                if not os.path.islink(place):
                    yield path, disk.read_path(place, limit=MAX_SOURCE_BYTES)
            except OSError as error:
                disk.pass_limits(error)


def are_named(checkout: Checkout, commit: Commit, root: str, files: Iterable[str]) -> bool:
    """Whether a commit converts files as they are checked out.

    Args:
        checkout: Reads what the commit has.
        commit: Its name is asked for.
        root: The way from the top of the work tree to the store's tree, "" for the top itself.
        files: What the commit has there.
    """
    folders = [root]
    while folders[-1]:
        folders.append(os.path.dirname(folders[-1]))
    names = [os.path.join(folder, _ATTRIBUTES) for folder in folders]
    names += [os.path.join(root, one) for one in files if one.endswith(f"/{_ATTRIBUTES}")]
    for name in names:
        try:
            data = checkout.read(f"{commit.commit}:{name}")
        except NoAnswerError:
            continue
        if _CONVERTED.search(data):
            return True
    return False
