"""A terminal that shows nothing but ASCII: no page, panel or question shows anything else."""

import pytest

from tui.views.verify_panes import SidesScreen

LAST = "~"
LONG = "\n\n".join(f"- point {number}\n- another\n\n> said {number}\n\n---" for number in range(40))


@pytest.fixture
def drifted(case):
    """A store with a conflict, an edited file, a copy, and a text of lists and quotations."""
    chunks = case.chunks()
    chunks[0].write_text(chunks[0].read_text().replace("All about", "My words about"))
    (case.folder / "notes" / "hills.md").write_text("# Hills\n\nTheir words about hills.\n")
    case.add(case.folder / "notes")
    chunks[1].write_text(chunks[1].read_text() + LONG)
    chunks[2].with_name("copy.md").write_text(chunks[2].read_text())
    with case.store() as store:
        store.sync()
    chunks[3].write_text("---\nsource: [a\nfoo: }\n---\nBroken, in words.\n")
    return case


def plain(session, where):
    """Nothing on the screen is beyond ASCII."""
    assert session.seen().strip()
    beyond = {one for one in session.seen() if one > LAST}
    assert not beyond, f"{where}: {beyond}\n{session.seen()}"


BROWSE = ("o", "f", "b", "m", "s", "escape", "slash", "escape")
OVER = ("question_mark", "w", "at", "E", "y", "T", "colon", "ctrl+p")


async def press(session, where, *keys):
    """Press keys one by one, and look each time."""
    for key in keys:
        await session.press(key)
        await session.pilot.pause()
        plain(session, f"{where}: {key}")


@pytest.mark.parametrize(
    "size",
    [
        pytest.param((60, 20), marks=pytest.mark.long),
        (100, 24),
        pytest.param((150, 40), marks=pytest.mark.long),
    ],
)
def test_nothing_but_ascii_is_shown(drifted, size):
    """With ``--ascii`` pages, map, panels, questions and messages are all in ASCII."""
    path = str(drifted.chunks()[1].relative_to(drifted.root))

    async def act(session):
        plain(session, "begun")
        session.app.open_path(path)
        await session.read("chunk2-lakes.md")
        await press(session, "browse", "t")
        await session.read("another")
        await press(session, "browse", *BROWSE)
        session.app.notify("something was done", severity="warning")
        await press(session, "over browse", *(key for one in OVER for key in (one, "escape")))
        await press(session, "verify", "2", "r", "down", "l", "S", "c", "escape", "V", "escape")
        conflict = next(one for one in session.app.findings if one.code == "ingest-conflict")
        session.app.choose_side(conflict)
        await session.until(lambda: isinstance(session.app.screen, SidesScreen))
        await session.read("leave it as it is")
        await press(session, "sides", "b", "b", "escape")
        await press(session, "repair", "3", "p")
        await session.until(lambda: session.view._rows is not None)
        await press(session, "plan", "t", "b", "b", "A", "escape")

    drifted.inspect(act, page="browse", size=size, ascii=True, notifications=True)
