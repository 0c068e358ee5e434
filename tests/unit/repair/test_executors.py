"""Kinds of steps and what applies them: each has one executor, in the module of its phase."""

from filestore.repair import apply
from filestore.repair.plan import KINDS
from filestore.sync.actions import PART_ACTIONS


def test_every_kind_that_writes_files_has_one_executor() -> None:
    """And no executor is without a kind."""
    assert {kind for kind, row in KINDS.items() if row.phase == "tree"} == {*apply.TREE_EXECUTORS}


def test_every_derived_part_is_repaired_by_sync() -> None:
    """What repairs a derived part in a repair does so in a sync, but for a catalog that is gone."""
    parts = {kind for kind, meant in KINDS.items() if meant.is_part}
    assert parts - {"rebuild-catalog"} == PART_ACTIONS.keys()
    assert all({*meant.also} <= PART_ACTIONS.keys() for meant in KINDS.values())
