"""What a single key must not do, tried with every key of the table: lose what can be restored."""

import asyncio

import pytest

from tests.tui.repairing import Case, Session
from tui.actions.table import ACTIONS
from tui.app.frame import Options
from tui.app.inspector import Inspector

ENDING = {"q", "ctrl+q"}
PAGES = {"browse": "1", "verify": "2", "repair": "3"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store that is made once."""
    folder = tmp_path_factory.mktemp("made")
    Case.make(folder)
    return folder


@pytest.fixture
def case(made, tmp_path):
    """A copy of it, with a file that was deleted and one that was edited."""
    case = Case(tmp_path / "case", made)
    gone, edited, *_ = case.chunks()
    gone.unlink()
    edited.write_text("Another text.\n")
    return case


def restorable(case):
    """The files that a repair would bring back."""
    with case.store() as store:
        return [step.path for step in store.plan(truth=True).steps if step.kind == "restore"]


def inspect(case, page, act):
    """Do something on a page of the inspector."""

    async def run():
        options = Options(
            store=str(case.root),
            configuration=case.configuration,
            page=page,
            environment={"XDG_STATE_HOME": str(case.folder / "state"), "EDITOR": "not-there"},
        )
        app = Inspector(options)
        async with app.run_test(size=(120, 36)) as pilot:
            session = Session(app, pilot)
            await session.until(lambda: app.is_seen and app.findings.coverage.level)
            await session.idle()
            await act(session)
        assert not app.fault

    asyncio.run(run())


def try_keys(case, page, which):
    """Press, on a page, each key of some actions alone; the deleted file is still known."""
    keys = [
        key for action in ACTIONS
        if action.place in (page, "everywhere", "lists") and which(action)
        for key in action.keys if key not in ENDING
    ]  # fmt: skip
    assert keys

    async def act(session):
        for key in keys:
            if session.app.page != page:
                await session.press(PAGES[page])
            await session.press(key)
            while len(session.app.screen_stack) > 1:
                await session.press("escape")
            assert session.app.return_value is None, key
        await session.until(lambda: session.app.findings.by_code().get("missing"))

    (lost,) = restorable(case)
    inspect(case, page, act)
    assert restorable(case) == [lost]


@pytest.mark.parametrize("page", PAGES)
def test_no_key_that_writes_loses_alone_what_can_be_restored(case, page):
    """Whatever it opens, and without an answer to that, the deleted file can be brought back."""
    try_keys(case, page, lambda action: action.writes or action.place == page == "repair")


@pytest.mark.long  # the whole of what the one before tries a part of
@pytest.mark.parametrize("page", PAGES)
def test_no_key_alone_loses_what_can_be_restored(case, page):
    """The same of every key that a page has."""
    try_keys(case, page, lambda _: True)


@pytest.mark.parametrize(("keys", "left"), [(("enter",), True), (("down", "enter"), False)])
def test_a_sync_asks_before_it_forgets_the_text_of_a_deleted_file(case, keys, left):
    """Enter alone keeps it, and the rest is synced; who says so has it removed from the index."""

    async def act(session):
        await session.press("i")
        await session.read("1 file deleted: chunked/notes/chunk1.md")
        await session.press(*keys)
        await session.told("1 left for you" if left else "2 findings repaired")
        done = [line.partition(f"{case.root} ")[2] for _, line in session.app.commands_done]
        assert ("repair --only modified" if left else "sync") in done

    inspect(case, "browse", act)
    assert case.codes() == ["missing"] * left
    assert bool(restorable(case)) == left


def test_a_file_that_went_just_now_is_not_forgotten(case):
    """Nobody was asked about what was deleted since the last look."""
    with case.store() as store:
        store.sync()

    async def act(session):
        case.chunks()[0].unlink()
        session.app.do_sync()
        await session.told("1 left for you")

    inspect(case, "browse", act)
    assert case.codes() == ["missing"]
    assert restorable(case)
