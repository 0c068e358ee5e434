"""The two versions between which a person has to choose, and what each choice would do.

Reads; chooses nothing. One rule: a choice is offered only with the command that makes it.
"""

import os
import shlex
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from filestore.browse import raw_file as present_files
from filestore.browse.raw_file import Present
from filestore.catalog import Catalog
from filestore.chunks.frontmatter import split
from filestore.core.errors import FilestoreError
from filestore.core.findings import Finding
from filestore.core.paths import NO_PATH, StorePath
from filestore.git import merge, repository
from filestore.repair.plan import Policy
from filestore.sidecar.session import Parts

ChoiceName: TypeAlias = Literal["ours", "theirs", "remove-this", "remove-other", "keep-both"]
_STAGES: Final = (":1", ":2", ":3")
"""What git's index holds of an unmerged file: base, ours, theirs."""


class NoSidesError(FilestoreError, LookupError):
    """There are not two versions to choose between."""


class Choice(Struct, frozen=True, kw_only=True):
    """One thing that a person can decide."""

    name: ChoiceName
    label: str
    policy: Policy | None = None
    """With which a plan does it; None where nothing is to be done, or not by this program."""
    command: str = ""
    """That does it in a shell, in the store's folder; "" where nothing is to be done."""


class Sides(Struct, frozen=True, kw_only=True):
    """Two versions beside each other."""

    code: str
    """The code of the finding."""
    path: StorePath
    other: StorePath = NO_PATH
    """The second file; "" where both versions are of one."""
    base: str | None = None
    """What both were made from, where that is known."""
    ours: str
    theirs: str | None
    """None where the source has no such text any more."""
    ours_label: str
    theirs_label: str
    choices: tuple[Choice, ...]


def sides(parts: Parts, finding: Finding) -> Sides:
    """The versions that a finding is about.

    Raises:
        NoSidesError: It is about no two versions, or they are no longer there.
        CatalogMissingError: There is no catalog, which keeps the new text of a source.
    """
    if finding.code == "ingest-conflict":
        with parts.reading() as catalog:
            return _of_ingest(parts, finding.path, catalog)
    if finding.code == "duplicate":
        return _of_copies(parts, finding)
    if finding.code == "conflict-markers":
        data = _present(parts, finding.path).data or b""
        marked = merge.conflicts(data)
        return _of_marks(parts, finding.path) if marked else _of_index(parts, finding.path)
    raise NoSidesError(f"{finding.code} is no choice between two versions")


def _of_ingest(parts: Parts, path: StorePath, catalog: Catalog) -> Sides:
    waiting = {parts.places.tree.store_path(one.path): one for one in catalog.conflicts()}
    conflict = waiting.get(path)
    if conflict is None:
        raise NoSidesError(f"{path}: no choice waits there any more", remedy="filestore status")
    base, seen = catalog.generated(conflict.base), _present(parts, path)
    try:
        ours = Present(data=split(seen.data or b"").body).text
    except FilestoreError:
        ours = seen.text
    return Sides(
        code="ingest-conflict",
        path=path,
        base=None if base is None else base.decode("utf-8", "backslashreplace"),
        ours=ours,
        theirs=conflict.theirs,
        ours_label="the file as it was edited",
        theirs_label=f"the new text of {conflict.source}"
        if conflict.theirs is not None
        else f"{conflict.source} has no such text any more",
        choices=(
            _ours(path, "keep the edit"),
            _theirs(path, "take the new text" if conflict.theirs is not None else "delete it"),
        ),
    )


def _of_copies(parts: Parts, finding: Finding) -> Sides:
    path, other = finding.path, finding.other
    if not other:
        raise NoSidesError(f"{path}: the finding names no second file", remedy="filestore verify")
    return Sides(
        code="duplicate",
        path=path,
        other=other,
        ours=_present(parts, path).text,
        theirs=_present(parts, other).text,
        ours_label=path,
        theirs_label=other,
        choices=(
            _removal("remove-other", other, kept=path),
            _removal("remove-this", path, kept=other),
            Choice(name="keep-both", label="keep both files"),
        ),
    )


def _of_marks(parts: Parts, path: StorePath) -> Sides:
    """Both sides of all conflicts of a file, each as the whole file would be."""
    data = _present(parts, path).data or b""
    marked = merge.conflicts(data)
    if not marked:
        raise NoSidesError(f"{path}: it has no conflict markers", remedy="filestore status")
    # While git is in the middle of something it decides what the files are to be.
    is_gits = repository.operation(parts.places.root)
    return Sides(
        code="conflict-markers",
        path=path,
        ours=Present(data=merge.with_side(data, "ours")).text,
        theirs=Present(data=merge.with_side(data, "theirs")).text,
        ours_label=marked[0].ours_label or "ours",
        theirs_label=marked[0].theirs_label or "theirs",
        choices=_by_git(path, has_ours=True, has_theirs=True)
        if is_gits
        else (_ours(path, "take our side"), _theirs(path, "take their side")),
    )


def _of_index(parts: Parts, path: StorePath) -> Sides:
    """What git holds of a file that it has as unmerged."""
    base, ours, theirs = (repository.blob(parts.places.root, path, stage) for stage in _STAGES)
    if ours is None and theirs is None:
        raise NoSidesError(f"{path}: git does not have it as unmerged", remedy="git status")
    return Sides(
        code="conflict-markers",
        path=path,
        base=None if base is None else Present(data=base).text,
        ours=Present(data=ours).text,
        theirs=None if theirs is None else Present(data=theirs).text,
        ours_label="ours, as git has it" if ours is not None else "ours: deleted",
        theirs_label="theirs, as git has it" if theirs is not None else "theirs: deleted",
        choices=_by_git(path, has_ours=ours is not None, has_theirs=theirs is not None),
    )


def _by_git(path: StorePath, *, has_ours: bool, has_theirs: bool) -> tuple[Choice, ...]:
    return (
        _git_choice("ours", "our side", path, has_ours),
        _git_choice("theirs", "their side", path, has_theirs),
    )


def _git_choice(
    name: Literal["ours", "theirs"], side: str, path: StorePath, is_there: bool
) -> Choice:
    word = _word(path)
    if is_there:
        command = f"git checkout --{name} -- {word} && git add -- {word}"
        return Choice(name=name, label=f"take {side}, with git", command=command)
    command = f"git rm --quiet -- {word}"
    return Choice(name=name, label=f"delete it as {side} did, with git", command=command)


def _ours(path: StorePath, label: str) -> Choice:
    command = f"filestore repair --ours {_word(path)}"
    return Choice(name="ours", label=label, policy=Policy(ours=(path,)), command=command)


def _theirs(path: StorePath, label: str) -> Choice:
    command = f"filestore repair --theirs {_word(path)}"
    return Choice(name="theirs", label=label, policy=Policy(theirs=(path,)), command=command)


def _removal(
    name: Literal["remove-this", "remove-other"], path: StorePath, *, kept: StorePath
) -> Choice:
    return Choice(
        name=name,
        label=f"keep {kept}, remove {path}",
        policy=Policy(remove=(path,)),
        command=f"filestore repair --remove {_word(path)}",
    )


def _word(path: StorePath) -> str:
    """A path as one word of a shell; bytes that are no UTF-8 as its quoting has them."""
    if path.isprintable() and not any("\ud800" <= sign <= "\udfff" for sign in path):
        return shlex.quote(path)
    raw = os.fsencode(path.replace("\\", "\\\\").replace("'", "\\'"))
    quoted = (f"\\x{byte:02x}" if byte < 32 or byte > 126 else chr(byte) for byte in raw)
    return f"$'{''.join(quoted)}'"


def _present(parts: Parts, path: StorePath) -> Present:
    is_of_tree = parts.places.tree.holds(path)
    seen = present_files.look(parts.places.root, path) if is_of_tree else present_files.GONE
    if seen.data is None:
        raise NoSidesError(f"{path}: {seen.problem}", remedy="filestore status")
    return seen
