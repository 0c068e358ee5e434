"""Submodules of a commit: their files belong to it where the submodule is checked out today.

A view remembers them in a file, because they are asked again for every file that is looked at.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from filestore.core.paths import has_plain_names
from filestore.fs import disk
from filestore.git.process import NoAnswerError
from filestore.git.revisions import FilesAt, files_at
from filestore.git.state import work_tree

_NAME: Final = "submodules.json"
_MOST_NESTED: Final = 8


class Submodule(Struct, frozen=True, kw_only=True):
    """A submodule of a commit."""

    path: str
    """Relative to the store root."""
    commit: str
    """That it was to be at."""
    is_here: bool
    """Whether its files could be read."""


def with_submodules(root: str, found: FilesAt, depth: int = 0) -> Iterator[Submodule]:
    """Add the files of submodules to those of a commit, and tell of each.

    Args:
        root: Of the store, or the folder of a submodule.
        found: What the commit has below it; what submodules have is added.
        depth: How many submodules lie around it.
    """
    for path, commit in found.submodules.items():
        folder = os.path.join(root, path)
        inner: FilesAt | None = None
        nested: list[Submodule] = []
        # Where nothing is checked out, git would tell of the repository around.
        if depth < _MOST_NESTED and work_tree(os.path.realpath(folder)) == folder:
            with contextlib.suppress(NoAnswerError):
                inner = files_at(folder, commit)
        if inner is not None:
            nested = list(with_submodules(folder, inner, depth + 1))
            found.files.update({f"{path}/{one}": name for one, name in inner.files.items()})
        yield Submodule(path=path, commit=commit, is_here=inner is not None)
        for one in nested:
            yield replace(one, path=f"{path}/{one.path}")


def save(folder: str, submodules: list[Submodule]) -> None:
    """Keep them in the folder of a view."""
    if submodules:
        said = [[os.fsencode(one.path).hex(), one.commit, one.is_here] for one in submodules]
        with open(os.path.join(folder, _NAME), "xb") as file:
            file.write(orjson.dumps(said))


def load(folder: str) -> list[Submodule]:
    """Those of a view."""
    try:
        said = orjson.loads(disk.read_path(os.path.join(folder, _NAME)))
    except (OSError, ValueError):
        return []
    return [
        Submodule(path=os.fsdecode(bytes.fromhex(path)), commit=commit, is_here=is_here)
        for path, commit, is_here in said
        if has_plain_names(os.fsdecode(bytes.fromhex(path)))
    ]
