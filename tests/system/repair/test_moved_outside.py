"""Files in place that were moved without filestore: the links to them, found and written anew."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import filestore
from filestore import Store
from filestore.repair.apply import TreeChanges
from filestore.repair.plan import KINDS, Step
from tests.system.conftest import files_below

NOTES = {
    "Home.md": "# Home\r\n\r\n[[rent]] and [the rent](flat/rent.md#when), ![p](flat/plan.png).\r\n",
    "flat/rent.md": "# Rent\n\nPaid. Up: [home](../Home.md). ![p](plan.png) [[./gas]]\n",
    "flat/gas.md": "---\nup: '[[flat/rent|the rent]]'\n---\n# Gas\n\n[r][]\n\n[r]: <rent.md> 'x'\n",
    "deep/er/far.md": "# Far\n\n[[Rent]], [gas](../../flat/gas.md)\n`[[rent]]` [[nothing]]\n",
    "other.md": "# Other\n\nNothing about it.\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Store]:
    """Notes in place, with a picture."""
    with made(tmp_path / "vault") as store:
        yield store


def made(root: Path) -> Store:
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "flat/plan.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    store = filestore.create(root, layout="in-place", embedder="builtin")
    store.sync()
    return store


def truth(store: Store) -> dict[str, bytes]:
    """What a person has in the folder."""
    found = files_below(Path(store.root)).items()
    return {path: data for path, (data) in found if not path.startswith(".")}


def moved(store: Store, old: str, new: str) -> None:
    """Move a file or folder as a shell does."""
    target = Path(store.root) / new
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(Path(store.root) / old, target)


MOVES = [
    ("flat/rent.md", "money/Rent of May.md"),
    ("flat/rent.md", "flat/lease.md"),
    ("flat/rent.md", "rent.md"),
    ("flat/rent.md", "flat/a (b) [c]?#%&é.md"),
    ("flat/gas.md", "deep/gas.md"),
    ("Home.md", "deep/er/Start.md"),
]


@pytest.mark.parametrize("is_synced", [False, True], ids=["found", "synced"])
@pytest.mark.parametrize(("old", "new"), MOVES)
def test_links_are_written_as_mv_writes_them(
    vault: Store, tmp_path: Path, old: str, new: str, is_synced: bool
) -> None:
    """The same bytes; planned first, undone and redone as one."""
    refused = False
    with made(tmp_path / "twin") as twin:
        try:
            twin.move(old, new)
        except filestore.FilestoreError:
            refused = True
        wanted = truth(twin)
    moved(vault, old, new)
    before = truth(vault)
    if is_synced:
        vault.sync()
    plan = vault.plan(truth=True)
    assert truth(vault) == before
    done = vault.apply(plan)
    if refused:
        assert truth(vault) == before
        return
    assert truth(vault) == wanted
    assert (done.skipped, vault.status().clean, vault.verify(level="full").clean) == (
        (),
        True,
        True,
    )
    assert {one.path for one in plan if one.kind == "relink"} == {
        path for path, data in wanted.items() if before[path] != data
    }
    assert len([one for one in vault.batches() if one.what == "repair"]) == 1
    vault.undo()
    assert truth(vault) == before
    vault.redo()
    assert truth(vault) == wanted
    assert vault.status().clean


def test_nothing_is_written_without_leave(vault: Store) -> None:
    """A plan shows the diff; without leave to write files it is not applied."""
    moved(vault, "flat/rent.md", "lease.md")
    before = truth(vault)
    plan = vault.plan()
    shown = {one.path: one.diff for one in plan if one.kind == "relink"}
    assert "+[[lease]] and [the rent](lease.md#when)" in shown["Home.md"]
    vault.apply(plan)
    vault.sync()
    assert truth(vault) == before
    assert "link-dangling" in vault.status().drift


def test_a_file_edited_meanwhile_stops_all_of_them(vault: Store) -> None:
    """Links are written in every file of the plan or in none; what was edited stays."""
    moved(vault, "flat/rent.md", "lease.md")
    plan = vault.plan(truth=True)
    home = Path(vault.root) / "Home.md"
    home.write_bytes(home.read_bytes() + b"An edit.\n")
    before = truth(vault)
    done = vault.apply(plan)
    assert truth(vault) == before
    assert {step.path for step, _ in done.skipped} >= {"Home.md", "flat/gas.md"}
    reasons = {step.path: why for step, why in done.skipped}
    assert "changed since the plan was made" in reasons["Home.md"]
    vault.apply(vault.plan(truth=True))
    assert vault.status().clean
    assert b"[[lease]]" in home.read_bytes()
    assert home.read_bytes().endswith(b"An edit.\n")


def test_a_name_that_one_file_has_is_offered_and_two_are_not(vault: Store) -> None:
    """Where no move was seen, the name decides, if only one file has it."""
    root = Path(vault.root)
    (root / "flat/rent.md").unlink()
    vault.sync(forget_missing=True)
    (root / "new").mkdir()
    (root / "new/rent.md").write_text("# Other words\n")
    vault.sync()
    (one,) = [one for one in vault.verify(level="full") if one.path == "flat/gas.md"]
    assert (one.code, one.other) == ("link-dangling", "new/rent.md")
    (root / "old").mkdir()
    (root / "old/rent.md").write_text("# Again other words\n")
    vault.sync()
    (one,) = [one for one in vault.verify(level="full") if one.path == "flat/gas.md"]
    assert one.detail.endswith("it may be new/rent.md or old/rent.md")
    plan = vault.plan(truth=True, level="full")
    assert "flat/gas.md" not in [step.path for step in plan]
    assert {left.finding.path for left in plan.left} >= {"flat/gas.md"}
    (root / "old/rent.md").unlink()
    vault.sync()
    vault.apply(vault.plan(truth=True, level="full"))
    assert "[r]: <../new/rent.md> 'x'" in (root / "flat/gas.md").read_text()
    assert vault.verify(level="full").clean


def test_a_folder_is_followed_with_its_pictures(vault: Store) -> None:
    """What came along, found by the name that it alone has."""
    moved(vault, "flat", "house/of/ours")
    vault.apply(vault.plan(truth=True, level="full"))
    assert vault.verify(level="full").clean
    text = (Path(vault.root) / "Home.md").read_bytes().decode()
    assert "[the rent](house/of/ours/rent.md#when), ![p](house/of/ours/plan.png)" in text


def test_what_is_read_only_or_no_markdown_stays(vault: Store) -> None:
    """It is reported, with the reason."""
    root = Path(vault.root)
    (root / "page.html").write_text('<p><a href="other.md">o</a></p>')
    (root / "Home.md").write_text("[o](other.md)\n")
    vault.sync()
    moved(vault, "other.md", "else.md")
    (root / "Home.md").chmod(0o444)
    before = truth(vault)
    plan = vault.plan(truth=True)
    reasons = {one.finding.path: one.reason for one in plan.left}
    assert "read-only" in reasons["Home.md"]
    vault.apply(plan)
    assert truth(vault) == before


def test_what_a_person_accepts_stays(vault: Store) -> None:
    """A link that a person wants to lead nowhere is not planned."""
    moved(vault, "flat/rent.md", "lease.md")
    settings = Path(vault.root) / "filestore.toml"
    settings.write_text(f'{settings.read_text()}\n[accepted]\nlink-dangling = ["Home.md"]\n')
    with Store(vault.root) as again:
        assert "Home.md" not in {one.path for one in again.plan(truth=True)}


@pytest.mark.parametrize("kind", sorted(kind for kind, one in KINDS.items() if one.truth))
def test_no_other_step_is_applied_to_documents(vault: Store, kind: str) -> None:
    """Also of a plan that somebody made by hand."""
    step = Step(kind=kind, path="other.md", codes=())  # type: ignore[arg-type]
    with vault._parts.reading() as catalog:
        reason = TreeChanges(vault._parts.snapshot(catalog, None)).take(step)
    assert reason
    assert (reason == "no command writes documents so") == (not KINDS[kind].of_documents)


def test_moves_in_a_row_are_followed_to_the_end(vault: Store) -> None:
    """Also where the index has seen only some of them, and back again."""
    moved(vault, "flat/rent.md", "a.md")
    vault.sync()
    moved(vault, "a.md", "b/c.md")
    vault.apply(vault.plan(truth=True))
    assert vault.verify(level="full").clean
    assert "[the rent](b/c.md#when)" in (Path(vault.root) / "Home.md").read_text()
    moved(vault, "b/c.md", "flat/rent.md")
    vault.sync()
    vault.apply(vault.plan(truth=True))
    assert vault.verify(level="full").clean
    assert "[the rent](flat/rent.md#when)" in (Path(vault.root) / "Home.md").read_text()


def test_another_file_at_the_old_path_is_what_links_mean(vault: Store) -> None:
    """A link that leads somewhere is never written otherwise."""
    moved(vault, "flat/rent.md", "lease.md")
    vault.sync()
    (Path(vault.root) / "flat/rent.md").write_text("# A new one\n")
    vault.sync()
    plan = vault.plan(truth=True)
    assert {one.path for one in plan if one.kind == "relink"} == {"lease.md"}


def test_names_of_strangers_are_shown_safely(vault: Store) -> None:
    """Line ends, escapes and bidi in names neither break the plan nor reach a screen."""
    name = "a\nb\x1b[31m\u202eé.md"
    moved(vault, "flat/gas.md", name)
    before = truth(vault)
    plan = vault.plan(truth=True)
    vault.apply(plan)
    for path, data in truth(vault).items():
        if path not in (name, "deep/er/far.md"):
            assert data == before[path]
    assert os.path.exists(os.path.join(vault.root, name))


ORIGINALS = {
    "home.md": "# Home\n\nThe [rent](docs/rent.md#when) and [[rent]].\n",
    "docs/rent.md": "# Rent\n\nPaid. [home](../home.md), [gas](gas.md)\n",
    "docs/gas.md": "# Gas\n\n[r](rent.md) `[r](rent.md)`\n",
    "docs/apart.md": "# Apart\n\nNothing of it.\n",
}


def originals(root: Path) -> Store:
    """A store of chunk files beside originals in a work tree."""
    for name, text in ORIGINALS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    store = filestore.create(root / "file_index", embedder="builtin")
    store.add(root / "home.md", root / "docs")
    return store


def held(store: Store) -> dict[str, bytes]:
    """Originals and chunk files."""
    root = Path(store.root).parent
    return {
        path: data
        for path, data in files_below(root).items()
        if path.endswith((".md", ".json")) and "/." not in f"/{path}"
    }


@pytest.mark.parametrize("new", ["docs/lease.md", "docs/deep/rent.md", "docs/a (b).md"])
def test_links_of_originals_follow_as_mv_writes_them(tmp_path: Path, new: str) -> None:
    """Originals and chunk files are as after a move; undone as one."""
    with originals(tmp_path / "twin") as twin:
        twin.move("../docs/rent.md", f"../{new}")
        wanted = held(twin)
    with originals(tmp_path / "tree") as store:
        root = Path(store.root).parent
        (root / new).parent.mkdir(exist_ok=True)
        (root / "docs/rent.md").rename(root / new)
        before = held(store)
        found = {one.path for one in store.verify() if one.code == "link-dangling"}
        assert found == {
            f"../{one}"
            for one, data in wanted.items()
            if data != before.get(one, data) and not one.startswith("file_index/")
        }
        assert held(store) == before
        done = store.apply(store.plan(truth=True))
        assert done.skipped == ()
        assert {k: v for k, v in held(store).items() if k.endswith(".md")} == {
            k: v for k, v in wanted.items() if k.endswith(".md")
        }
        assert store.verify(level="full").clean
        store.undo(done.undo)
        assert held(store) == before


def test_an_original_edited_meanwhile_stops_all(tmp_path: Path) -> None:
    """No link is written in any of them."""
    with originals(tmp_path) as store:
        (tmp_path / "docs/rent.md").rename(tmp_path / "docs/lease.md")
        plan = store.plan(truth=True)
        (tmp_path / "home.md").write_text("# Home\n\nNo [rent](docs/rent.md) any more.\n")
        before = held(store)
        done = store.apply(plan)
        assert {step.path for step, _ in done.skipped} == {"../home.md", "../docs/gas.md"}
        assert held(store) == before
