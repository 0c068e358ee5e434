"""Kinds of steps and what applies them: each has one executor, in the module of its phase."""

import pytest

from filestore.repair import steps
from filestore.repair.plan import KINDS
from filestore.sync.actions import PART_ACTIONS

EXECUTORS = {
    "tree": steps.TREE_EXECUTORS,
    "sidecar": steps.SIDECAR_EXECUTORS,
    "source": ("reingest",),
}


@pytest.mark.parametrize("kind", sorted({*KINDS}.union(*EXECUTORS.values())))
def test_every_kind_has_one_executor(kind: str) -> None:
    """A step is applied by exactly one function, and no function is without a kind."""
    assert [phase for phase, known in EXECUTORS.items() if kind in known] == [KINDS[kind].phase]


def test_every_derived_part_is_repaired_by_sync() -> None:
    """What repairs a derived part in a repair does so in a sync, but for a catalog that is gone."""
    parts = {kind for kind, meant in KINDS.items() if meant.is_part}
    assert parts - {"rebuild-catalog"} == PART_ACTIONS.keys()
    assert all({*meant.also} <= PART_ACTIONS.keys() for meant in KINDS.values())
