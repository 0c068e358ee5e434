"""Repair, undo, redo, undo: after each step files and findings are what they were on that side.

One table of what repairs truth files; what brings it about is shared with `test_every_code`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.system.repair.test_undo import snapshot
from tests.system.verify import test_every_code as codes
from tests.system.verify.test_every_code import Scene

Found = set[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A damage, and the words of the repair that changes files for it."""

    produce: Callable[[Scene], object]
    words: Callable[[Scene], tuple[str, ...]] = lambda _: ()
    level: str = "fast"
    told_after: str = ""
    """What the finding is called once its file was written anew; "" for as before."""


def gone_record(scene: Scene) -> None:
    (scene.note().parent / "meta.json").unlink()


def conflicted(scene: Scene) -> None:
    """A merge that left both sides in a note, and git done with it; the index knows."""
    path = scene.note()
    marks = b"<<<<<<< ours\nOur words.\n=======\nTheir words.\n>>>>>>> theirs\n"
    path.write_bytes(path.read_bytes() + marks)
    scene.workspace.sync(code=1)


def several(scene: Scene) -> None:
    """Damage of three kinds at once."""
    scene.note("c.md").unlink()
    codes.dangling(scene)
    codes.source_changed(scene)


def path_of(option: str, name: str = "a.md") -> Callable[[Scene], tuple[str, ...]]:
    """An option with the note it is about."""
    return lambda scene: (option, scene.shown(scene.note(name)))


def said(*words: str) -> Callable[[Scene], tuple[str, ...]]:
    """The same words for every store."""
    return lambda _: words


CASES: Final[dict[str, Case]] = {
    "missing": Case(produce=codes.deleted),
    "missing, all": Case(produce=codes.emptied),
    "missing record": Case(produce=gone_record),
    "bit-rot": Case(produce=codes.rotten, level="full", told_after="modified"),
    "record-invalid": Case(produce=codes.wrong_record),
    "conflict-markers, ours": Case(produce=conflicted, words=path_of("--ours")),
    "conflict-markers, theirs": Case(produce=conflicted, words=path_of("--theirs")),
    "ingest-conflict, ours": Case(produce=codes.both_changed, words=path_of("--ours")),
    "ingest-conflict, theirs": Case(produce=codes.both_changed, words=path_of("--theirs")),
    "duplicate": Case(produce=codes.duplicated, words=said("--remove", "chunked/second.md")),
    "link-dangling": Case(produce=codes.dangling),
    "source-modified": Case(produce=codes.source_changed),
    "source-missing": Case(produce=codes.source_gone, words=said("--only", "source-missing")),
    "chunker-changed": Case(produce=codes.cut_otherwise, words=said("--only", "chunker-changed")),
    "several": Case(produce=several),
}


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every truth file with bytes and permissions; an empty folder is none."""
    return {path: held for path, held in snapshot(root).items() if held[1] & 0o170000 == 0o100000}


def findings(scene: Scene, case: Case) -> Found:
    """What a verification tells."""
    done = scene.workspace.json("verify", "--level", case.level, code=None)
    return {(one["code"], one["path"], one["detail"]) for one in done["findings"]}


@pytest.mark.parametrize("name", CASES)
def test_repair_undo_redo_undo(scene: Scene, name: str) -> None:
    """Each step gives the bytes and the findings of its side, as often as one likes."""
    case = CASES[name]
    case.produce(scene)
    damaged, told = files(scene.store), findings(scene, case)
    words = ("--write-files", "--yes", "--level", case.level, *case.words(scene))
    done = scene.workspace.json("repair", *words, code=None)
    (batch,) = done["undo"]
    repaired, left = files(scene.store), findings(scene, case)
    assert repaired != damaged
    assert left != told
    for turn in range(2):
        scene.workspace("undo", batch)
        assert files(scene.store) == damaged
        assert renamed(findings(scene, case)) == renamed(told, case.told_after)
        if turn == 0:
            scene.workspace("redo", batch)
            assert files(scene.store) == repaired
            assert findings(scene, case) == left


def renamed(found: Found, code: str = "") -> set[tuple[str, str]]:
    """Findings by code and path, those of rotten bytes under another code."""
    return {(code or one if one == "bit-rot" else one, path) for one, path, _ in found}


@pytest.mark.parametrize("side", ["--ours", "--theirs"])
def test_a_choice_that_was_undone_is_made_anew(scene: Scene, side: str) -> None:
    """The other side can be taken after all, and nothing of the first choice stays."""
    codes.both_changed(scene)
    other = {"--ours": "--theirs", "--theirs": "--ours"}[side]
    path = scene.shown(scene.note())
    for option in (side, other, other):
        done = scene.workspace.json("repair", "--write-files", "--yes", option, path, code=None)
        assert any(step["kind"] == f"resolve-{option[2:]}" for step in done["applied"])
        mine = b"Edited words" in (scene.store / path).read_bytes()
        assert mine is (option == "--ours")
        scene.workspace("undo")
