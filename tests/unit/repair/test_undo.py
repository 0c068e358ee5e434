"""What must hold of the choice of a batch: undo goes back step by step, redo the same way again."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore.history.batch import Batch, ChangedFile, Group, Version
from filestore.repair.undo import UndoResult, choices


def batch(number, *, entries=(), **values):
    """A batch."""
    return Batch(identifier=f"{number:06d}", what="", made_s=0, entries=entries, **values)


@given(count=st.integers(1, 6), steps=st.lists(st.booleans(), max_size=30))
def test_undo_and_redo_walk_along_one_line(count, steps):
    """Any sequence of undo and redo leaves the newest batches undone, as many as it should."""
    batches = [batch(number) for number in range(1, count + 1)]
    undone = 0
    for sequence, back in enumerate(steps, 1):
        wanted = "before" if back else "after"
        found = choices(batches, wanted)
        expected = undone + (1 if back else -1)
        if not 0 <= expected <= count:
            assert found == []
            continue
        undone = expected
        turned = replace(found[0].batches[0], wanted=wanted, sequence=sequence)
        batches = [turned if one.identifier == turned.identifier else one for one in batches]
        states = [one.wanted for one in batches]
        assert states == ["after"] * (count - undone) + ["before"] * undone


def test_what_was_broken_off_is_completed_first():
    """An undo that died is gone on with before the next older batch is touched; redo likewise."""
    dead_undo = batch(2, wanted="before", sequence=4, underway=True)
    assert choices([batch(1), dead_undo, batch(3)], "before")[0].batches == (dead_undo,)
    dead_redo = batch(1, wanted="after", sequence=5, underway=True)
    waiting = batch(2, wanted="before", sequence=3)
    assert choices([dead_redo, waiting], "after")[0].batches == (dead_redo,)
    assert choices([dead_redo, waiting], "before") == [Group(batches=(dead_redo,))]


def test_a_damaged_record_is_passed_over():
    """A batch whose record cannot be used is neither undone nor redone by default."""
    assert choices([batch(1), batch(2, problem="damaged")], "before") == [
        Group(batches=(batch(1),))
    ]
    assert choices([batch(2, problem="damaged")], "after") == []


def test_one_command_is_one_choice():
    """What a command changed in several steps is undone and redone as one, also when half is."""
    parts = [batch(2), batch(3, group="000002"), batch(4, group="000002")]
    (newest, oldest) = choices([batch(1), *parts], "before")
    assert [one.identifier for one in newest.batches] == ["000002", "000003", "000004"]
    assert oldest.id == "000001"
    half = [*parts[:2], replace(parts[2], wanted="before", sequence=1, underway=True)]
    for wanted in ("before", "after"):
        assert choices(half, wanted)[0].batches == tuple(half)


def test_a_change_in_between_parts_a_command():
    """Where somebody else wrote a file between two steps, only the later step is undone first."""
    first, other, second = (Version(digest=bytes([number]) * 16) for number in (1, 2, 3))
    early = ChangedFile(path="chunked/a.md", before=None, after=first)
    late = ChangedFile(path="chunked/a.md", before=other, after=second)
    one, two = batch(1, entries=(early,)), batch(2, entries=(late,), group="000001")
    assert [group.batches for group in choices([one, two], "before")] == [(two,), (one,)]
    joined = replace(two, entries=(replace(late, before=first),))
    assert [group.batches for group in choices([one, joined], "before")] == [(one, joined)]


def test_the_files_of_a_change_are_undone_or_redone():
    """Each is an attribute in both cases; only `redo` has a key `redone`, also for nothing."""
    back = UndoResult(paths=("chunked/a.md",))
    again = replace(back, wanted="after")
    assert (back.undone, back.redone) == (again.redone, again.undone) == (back.paths, ())
    assert "redone" not in back.to_dict()
    assert again.to_dict()["redone"] == ["chunked/a.md"]
    assert UndoResult(wanted="after").to_dict()["redone"] == []
