"""What a person picked for one file: a side of git's conflict, or that it goes as a copy.

Pure: what files hold comes in, a prepared change goes out.
"""

from collections.abc import Callable, Sequence
from typing import Final

from filestore.chunks.interpretation import fenced
from filestore.chunks.observation import INDEXED, RECORD, Observation
from filestore.core.hashing import content_hash
from filestore.core.paths import StorePath, Tree
from filestore.core.safe_text import shown_path
from filestore.git import conflict_markers
from filestore.git.conflict_markers import ConflictHunk, MarkersBrokenError, Side
from filestore.repair.plan import State
from filestore.repair.planner import Prepared
from filestore.repair.restore import difference

Interpreted = Callable[[StorePath, bytes], Observation]
"""What bytes would mean at a path."""

SIDES: Final[dict[str, Side]] = {"take-ours": "ours", "take-theirs": "theirs"}
"""Kind of step to the side that it takes."""


def one_side(
    path: StorePath,
    seen: Observation,
    side: Side,
    *,
    is_unmerged: bool,
    interpreted: Interpreted,
) -> Prepared:
    """A file with one side of all its conflicts.

    Args:
        path: Of the file.
        seen: The file as it is.
        side: Whose text stays.
        is_unmerged: Whether git has it as unmerged: then git needs `git add`, too.
        interpreted: Tells what the file would mean.
    """
    name = shown_path(path)
    if is_unmerged:
        # What git's index holds of a merge is not settled by what stands in the file.
        how = f"'git checkout --{side} -- {name}', then 'git add -- {name}'"
        return Prepared(seen={}, problem=f"git is merging it, so choose there: {how}")
    try:
        found = conflict_markers.conflicts(seen.data)
        made = conflict_markers.with_side(seen.data, side)
    except MarkersBrokenError as error:
        return Prepared(seen={}, problem=f"resolve it in an editor: {error.message}")
    if problem := _doubt(seen.data, found):
        return Prepared(seen={}, problem=f"resolve it in an editor: {problem}")
    then = interpreted(path, made)
    left_out = "" if then.state in (INDEXED, RECORD) else f"; then left out as {then.state}"
    where = ", ".join(f"{first}-{last}" for first, last in (one.lines for one in found))
    label = found[0].ours_label if side == "ours" else found[0].theirs_label
    whose = f"{side} ({label})" if label else side
    return Prepared(
        seen={path: _state(seen)},
        detail=f"{whose} in lines {where}{left_out}",
        read_bytes=len(seen.data),
        write_bytes=len(made),
        hash=content_hash(made).hex(),
        # Whoever gives a side up has to see all of it.
        diff=difference(path, seen.data, made, most=None),
        keys=then.keys,
    )


def _doubt(data: bytes, found: Sequence[ConflictHunk]) -> str:
    """Why only a person can tell which markers are meant; "" where that is plain."""
    if not found:
        return "it has no conflict markers"
    blocks = list(fenced(data, 0))
    shown = [
        one for one in found if any(first < one.start and one.end <= last for first, last in blocks)
    ]
    if shown and len(shown) < len(found):
        first, last = shown[0].lines
        return f"the markers in lines {first}-{last} are in a code block, others are not"
    return ""


def without(tree: Tree, path: StorePath, seen: Observation, twin: Observation | None) -> Prepared:
    """A file that goes, because another one has its text.

    Args:
        tree: Where they lie.
        path: Of the file.
        seen: The file as it is.
        twin: One that stays and has the same text; None where there is none.
    """
    if seen.state != INDEXED:
        return Prepared(seen={}, problem=f"it is excluded as {seen.state}: fix it first")
    if twin is None:
        return Prepared(seen={}, problem="no other file that stays has the same text")
    other = tree.store_path(twin.path)
    return Prepared(
        seen={path: _state(seen), other: _state(twin)},
        detail=f"its text stays in {other}",
        other=other,
        read_bytes=len(seen.data) + len(twin.data),
        # Keys and questions of its own go with it, and have to be seen.
        diff=difference(path, seen.data, b"", most=None),
    )


def _state(seen: Observation) -> State:
    return State(stat=seen.values, hash=seen.file_hash.hex())


def is_twin(seen: Observation, other: Observation) -> bool:
    """Whether another file has the text of a file, under the same headings."""
    if seen.chunk is None or other.chunk is None or other.state != INDEXED:
        return False
    mine, its = seen.chunk, other.chunk
    return seen.path != other.path and (mine.body, mine.headings) == (its.body, its.headings)
