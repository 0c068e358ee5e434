"""Links that are followed, and the way back and forward, as somebody at the keyboard sees it."""

import pytest

from filestore import Store
from tui.app.inspector import Inspector
from tui.views.dialogs import ChoiceScreen

from .repairing import Case

HOME = """# Home

The [rent](flat/rent.md#when).

Far below:

{filler}

And [[Bikes]], too.
"""
NOTES = {
    "home.md": HOME.format(filler="\n\n".join(f"Line {number}." for number in range(80))),
    "flat/rent.md": "# Rent\n\nEvery month.\n\n## When\n\nOn the first. [Home](../home.md)\n",
    "bikes.md": "# Bikes\n\nTwo of them.\n",
    "odd.md": "# Odd\n\n[here](odd.md)\n",
    "none.md": "# None\n\n[none](gone.md)\n",
    "out.md": "# Out\n\n[out](https://example.org/a)\n",
    "away.md": "# Away\n\n[away](../../etc/hosts)\n",
}


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """Notes with links, once where they lie and once as chunks."""
    folder = tmp_path_factory.mktemp("linked")
    for layout, root in (("in-place", folder / "notes"), ("tree", folder / "file_index")):
        if layout == "in-place":
            for name, text in NOTES.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        configuration = str(folder / "configuration")
        with Store.create(
            str(root), layout=layout, embedder="builtin", configuration=configuration
        ) as store:
            if layout == "tree":
                store.add(folder / "notes")
            store.sync()
    return folder


@pytest.fixture(params=["notes", "file_index"])
def notes(request, tmp_path, linked):
    """A copy of them: the one store, or the other."""
    case = Case(tmp_path / "case", linked)
    case.root = case.folder / request.param
    return case


def place(case, name):
    """The file with the text of a note, relative to the store."""
    if case.root.name == "notes":
        return name
    title = NOTES[name].splitlines()[0]
    return next(
        str(one.relative_to(case.root)) for one in case.chunks() if title in one.read_text()
    )


async def read(session, case, name):
    """Read a note."""
    session.app.open_path(place(case, name))
    detail = session.app.page_of("browse").detail
    await session.until(lambda: detail.path == place(case, name) and detail.about is not None)
    await session.idle()
    session.app.screen.set_focus(detail.reader)
    return detail


def test_a_link_is_followed_and_come_back_from(notes):
    """Enter follows; ctrl+o comes back to the same line, and ctrl+] goes on again."""

    async def act(session):
        detail = await read(session, notes, "home.md")
        await session.press("enter")
        await session.until(lambda: detail.path == place(notes, "flat/rent.md"))
        await session.read("On the first.")
        await session.press("enter")
        await session.until(lambda: detail.path == place(notes, "home.md"))
        await session.press("ctrl+o")
        await session.until(lambda: detail.path == place(notes, "flat/rent.md"))
        await session.press("alt+left")
        await session.until(lambda: detail.path == place(notes, "home.md"))
        await session.press("ctrl+o", "ctrl+o")
        await session.told("nothing to go back to")
        await session.press("alt+right")
        await session.until(lambda: detail.path == place(notes, "home.md"))
        await session.press("ctrl+right_square_bracket")
        await session.until(lambda: detail.path == place(notes, "flat/rent.md"))

    notes.inspect(act, page="browse")


def test_the_way_back_leads_to_the_line(notes):
    """Where one read on before a jump, reading goes on there."""

    async def act(session):
        detail = await read(session, notes, "home.md")
        if "And [[Bikes]]" not in detail.about.body:
            pytest.skip("the end of the note is another chunk")
        await session.press("G")
        await session.read("And Bikes, too.")
        begins = detail.reader.begins
        assert begins[0] > 0
        await session.press("enter")
        await session.read("Two of them.")
        await session.press("ctrl+o")
        await session.read("And Bikes, too.")
        assert detail.reader.begins == begins

    notes.inspect(act, page="browse")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("odd.md", "leads to the page that it is on"),
        ("none.md", "gone.md"),
        ("out.md", "https://example.org/a leads out of the store"),
        ("away.md", "hosts"),
        ("bikes.md", "no link is in sight"),
    ],
)
def test_a_link_to_nowhere_says_so_and_leaves_the_text(notes, name, words):
    """To itself, to nothing, out of the store: one sentence, and nothing is gone to."""

    async def act(session):
        detail = await read(session, notes, name)
        await session.press("enter")
        await session.told(words)
        assert detail.path == place(notes, name)
        await session.press("ctrl+o")

    notes.inspect(act, page="browse")


def test_words_are_found_in_the_text_wherever_they_are(notes):
    """All words that are typed are marked, a phrase as one; n goes on, and says which one it is."""

    async def act(session):
        detail = await read(session, notes, "flat/rent.md")
        await session.press("slash", *"first month", "enter")
        await session.read("of 2")
        assert detail.find == ["first", "month"]
        before = detail.reader.match[0]
        await session.press("n")
        assert detail.reader.match[0] != before
        await session.press("slash", *'"the first"', "enter")
        await session.read("1 of 1")
        await session.press("escape")
        assert not detail.find

    notes.inspect(act, page="browse")


def test_a_heading_is_chosen_and_come_back_from(notes):
    """The outline goes to a heading of the text."""

    async def act(session):
        detail = await read(session, notes, "flat/rent.md")
        await session.press("number_sign")
        assert isinstance(session.app.screen, ChoiceScreen)
        await session.press("enter")
        assert session.app.focused is detail.reader

    notes.inspect(act, page="browse")


def test_the_original_of_a_chunk_is_opened(notes, monkeypatch):
    """One key opens the document itself, at the line that is read."""
    opened = []
    monkeypatch.setattr(Inspector, "edit", lambda _, path, line=0: opened.append((path, line)))

    async def act(session):
        await read(session, notes, "flat/rent.md")
        await session.press("O")
        await session.until(lambda: opened)

    notes.inspect(act, page="browse")
    ((path, line),) = opened
    assert (notes.root / path).resolve() == (notes.folder / "notes" / "flat" / "rent.md").resolve()
    assert line == 1


def test_one_key_reads_all_of_the_document(notes):
    """From a passage, with the place kept; the way back leads to the passage."""

    async def act(session):
        detail = await read(session, notes, "flat/rent.md")
        page, path = session.app.page_of("browse"), detail.path
        if notes.root.name == "notes":
            page.open_path(path, NOTES[path].splitlines().index("## When") + 1)
            await session.until(lambda: detail.part is not None)
        before = detail.part
        await session.press("t")
        await session.until(lambda: detail.visit.target.resource or detail.part != before)
        await session.read("── " if detail.about is None else "┃Every month.")
        await session.press("ctrl+o")
        await session.until(lambda: (detail.path, detail.part) == (path, before))

    notes.inspect(act, page="browse")


def test_a_typed_open_leads_to_the_original_at_its_line(notes, monkeypatch):
    """An editor takes the terminal: the line is not run as other commands are."""
    opened = []
    monkeypatch.setattr(Inspector, "edit", lambda _, path, line=0: opened.append((path, line)))

    async def act(session):
        chunk = (await read(session, notes, "flat/rent.md")).path
        for typed in (f"open {chunk}", f"open {chunk} --chunk"):
            session.app._typed(typed)
            await session.until(lambda wanted=typed: len(opened) == 1 + ("--chunk" in wanted))
        assert opened[1][0] == chunk

    notes.inspect(act, page="browse")
    original = notes.folder / "notes" / "flat" / "rent.md"
    assert (notes.root / opened[0][0]).resolve() == original.resolve()
