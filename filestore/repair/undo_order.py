"""Which of the kept changes an undo or a redo means. Pure, but for what a name is looked up in."""

from collections.abc import Iterable

from filestore.history.backup_store import Originals
from filestore.history.batch import Batch, Group, State, grouped


def choices(batches: Iterable[Batch], wanted: State) -> list[Group]:
    """What may be undone or redone, the command that is meant first; pure.

    First what a writer that died was at, then the newest that is not undone, or what was undone
    last.
    """
    groups = grouped(batch for batch in batches if not batch.problem)
    broken_off = [group for group in groups if _is_broken_off(group, wanted)]
    others = [
        group for group in groups if not group.is_all(wanted) and not _is_broken_off(group, wanted)
    ]
    key = by_number if wanted == "before" else _by_sequence
    return [
        *sorted(broken_off, key=_by_sequence, reverse=True),
        *sorted(others, key=key, reverse=True),
    ]


def next_undo_redo(batches: Iterable[Batch]) -> tuple[str, str]:
    """The changes that undo and redo would take; "" for none. Pure."""
    kept = list(batches)
    undo, redo = choices(kept, "before"), choices(kept, "after")
    return undo[0].id if undo else "", redo[0].id if redo else ""


def _is_broken_off(group: Group, wanted: State) -> bool:
    return any(one.underway and one.wanted == wanted and one.sequence for one in group.batches)


def by_number(group: Group) -> int:
    """Which change was made first."""
    return int(group.id)


def _by_sequence(group: Group) -> int:
    return group.sequence


def named(originals: Originals, identifier: str) -> Group:
    """What a batch belongs to."""
    batch = originals.batch(identifier)
    for group in grouped(one for one in originals.batches() if not one.problem):
        if any(one.identifier == identifier for one in group.batches):
            return group
    return Group(batches=(batch,))
