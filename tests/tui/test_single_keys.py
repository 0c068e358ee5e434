"""What a single key must not do, tried with every key of the table: lose what can be restored."""

import pytest

from tui.actions import ACTIONS

ENDING = {"q", "ctrl+q"}
PAGES = {"browse": "1", "verify": "2", "repair": "3"}


@pytest.fixture
def case(case):
    """A store with a file that was deleted and one that was edited."""
    gone, edited, *_ = case.chunks()
    gone.unlink()
    edited.write_text("Another text.\n")
    return case


def restorable(case):
    """The files that a repair would bring back."""
    with case.store() as store:
        return [step.path for step in store.plan(truth=True).steps if step.kind == "restore"]


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
    case.inspect(act, page=page)
    assert restorable(case) == [lost]


@pytest.mark.parametrize("page", PAGES)
def test_no_key_that_writes_loses_alone_what_can_be_restored(case, page):
    """Whatever it opens, and without an answer to that, the deleted file can be brought back."""
    try_keys(case, page, lambda action: action.writes or action.place == page == "repair")


@pytest.mark.exhaustive  # the whole of what the one before tries a part of
@pytest.mark.parametrize("page", PAGES)
def test_no_key_alone_loses_what_can_be_restored(case, page):
    """The same of every key that a page has."""
    try_keys(case, page, lambda _: True)


@pytest.mark.parametrize(("keys", "left"), [(("enter",), True), (("down", "enter"), False)])
def test_a_sync_asks_before_it_forgets_the_text_of_a_deleted_file(case, keys, left):
    """Enter alone keeps it, and the rest is synced; who says so has it removed from the index."""

    async def act(session):
        await session.press("i")
        await session.read("1 file deleted: chunked/notes/hills.md/chunk1-hills.md")
        await session.press(*keys)
        await session.told("1 left for you" if left else "2 findings repaired")
        done = [line.partition(f"{case.root} ")[2] for _, line in session.app.commands_done]
        assert ("repair --only modified" if left else "sync") in done

    case.inspect(act, page="browse")
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

    case.inspect(act, page="browse")
    assert case.codes() == ["missing"]
    assert restorable(case)
