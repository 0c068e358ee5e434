"""The page Verify as somebody at the keyboard sees it, on a store on disk."""

import asyncio
import os
import random
import shutil
import time

import pytest

from filestore import Finding, Store
from tui.app.frame import Options
from tui.app.inspector import Inspector
from tui.formatting import plain
from tui.formatting.findings import Coverage
from tui.state import lists
from tui.state.findings import key_of
from tui.views.verify import VerifyView

TEXTS = (
    "A renamed file keeps its vectors, because an identifier is made of text.",
    "The committee approved the budget of the coming year.",
    "Milk and bread are on the list.",
)
NAME = "chunk9-\x1b]0;x\x07[red].md"
WAIT_S = 60
SETTLED_S = 5


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store of one resource, made once."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "guide").mkdir()
    for number, text in enumerate(TEXTS):
        (folder / "guide" / f"{number}.md").write_text(f"# Part {number}\n\n{text}\n")
    root = str(folder / "file_index")
    with Store.create(root, layout="tree", embedder="builtin", configuration=root + "-c") as store:
        store.add(folder / "guide")
    return folder


@pytest.fixture
def root(template, tmp_path, monkeypatch):
    """A copy of that store, and a home of its own for what the inspector keeps."""
    shutil.copytree(template, tmp_path / "store")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return str(tmp_path / "store" / "file_index")


def damage(root):
    """Edit one chunk, spoil another, copy one, and put one with a bad name beside them."""
    folder = os.path.join(root, "chunked", "guide")
    first, second, third = (f"{at}.md/chunk{at + 1}-part-{at}.md" for at in range(len(TEXTS)))
    with open(os.path.join(folder, first), "a", encoding="utf-8") as file:
        file.write("\nOne more sentence about milk.\n")
    with open(os.path.join(folder, second), "w", encoding="utf-8") as file:
        file.write("---\nsource: [a\nfoo: }\n---\nNothing.\n")
    shutil.copy(os.path.join(folder, third), os.path.join(folder, "copy.md"))
    with open(os.path.join(folder, NAME), "w", encoding="utf-8") as file:
        file.write("Named badly, with \x1b[31mescapes\x1b[0m.\n")
    with Store(root, configuration=root + "-c") as store:
        store.sync()
    with open(os.path.join(folder, first), "a", encoding="utf-8") as file:
        file.write("And another one.\n")
    return f"chunked/guide/{first}", f"chunked/guide/{second}"


def inspect(root, act, size=(120, 40)):
    """Open the inspector on the page, wait until it has looked, and do something with it."""

    async def session():
        options = Options(store=root, configuration=root + "-c", page="verify")
        inspector = Inspector(options)
        began = time.monotonic()
        async with inspector.run_test(size=size) as pilot:
            await until(pilot, lambda: has_settled(inspector, began))
            await pilot.pause()
            await act(inspector, pilot)

    asyncio.run(session())


def has_settled(inspector, began):
    """Whether it has looked, and looked again once it was told of every change."""
    if not inspector.findings.coverage.level or inspector.task_manager.busy is not None:
        return False
    looks = sum(task.title == "status" for task in inspector.task_manager.tasks)
    return looks > 1 or time.monotonic() > began + SETTLED_S


async def until(pilot, holds):
    """Wait for what is going on somewhere else to show."""
    for _ in range(WAIT_S * 100):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"it never came to be:\n{screen(pilot.app)}")


def page(inspector):
    """The page."""
    return inspector.screen_stack[0].query_one(VerifyView)


def screen(inspector):
    """The words on the screen, line by line as they are drawn."""
    strips = inspector.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def head(inspector):
    """What stands above the list."""
    return plain(page(inspector).query_one("#verify-head")._lines)


def listed(inspector):
    """The keys of the rows."""
    rows = page(inspector).list.rows
    return [rows.key(index) for index in range(len(rows))]


async def go_to(inspector, pilot, code, path=None):
    """Put the cursor on a finding, or on a group."""
    wanted = next(
        key
        for key in listed(inspector)
        if key[0] == code and (len(key) == 1 if path is None else key[1:2] == (path,))
    )
    assert page(inspector).list.move_to(wanted)
    await pilot.pause()
    return wanted


def test_evidence_follows_the_cursor(root):
    """The finding under the cursor is shown with its difference, its place and its neighbours."""
    edited, malformed = damage(root)

    async def act(inspector, pilot):
        assert "E x error 2" in head(inspector)
        await go_to(inspector, pilot, "modified", edited)
        await until(pilot, lambda: "+And another one." in screen(inspector))
        assert edited in screen(inspector)
        assert "changed since it was indexed" in screen(inspector)
        await pilot.press("l", "G")
        await until(pilot, lambda: "then    now" in screen(inspector))
        assert inspector.focused is page(inspector).evidence
        await until(pilot, lambda: "guide/copy.md" in screen(inspector))
        await pilot.press("escape")
        await go_to(inspector, pilot, "malformed-frontmatter", malformed)
        await until(pilot, lambda: "3 | foo: }" in screen(inspector))
        assert "line 3, column 4" in screen(inspector)
        text = screen(inspector).splitlines()
        place = next(number for number, line in enumerate(text) if "3 | foo: }" in line)
        assert text[place + 1].index("^") == text[place].index("}") - 2
        await pilot.press("o")
        await until(pilot, lambda: inspector.page == "browse")

    inspect(root, act)


def test_names_and_details_are_shown_safely(root):
    """An escape in a name or a text reaches the list and the evidence spelt out."""
    damage(root)

    async def act(inspector, pilot):
        path = f"chunked/guide/{NAME}"
        await go_to(inspector, pilot, "unportable-name", path)
        await until(pilot, lambda: "on disk" in screen(inspector))
        assert "chunk9-\\x1b]0;x" in screen(inspector)
        assert "[red].md" in screen(inspector)
        assert not {"\x1b", "\x07"} & set(screen(inspector))

    inspect(root, act)


def test_verifying_says_what_was_looked_at_and_what_was_not(root):
    """A key verifies fast, a menu offers the levels; what was not checked stands there."""
    damage(root)

    async def act(inspector, pilot):
        assert "compared by size and time stamp" in head(inspector)
        await pilot.press("r")
        await until(pilot, lambda: inspector.findings.coverage.level == "fast")
        await until(pilot, lambda: not inspector.findings.coverage.is_running)
        assert "verified fast" in head(inspector)
        assert "not checked: " in head(inspector)
        assert "contents of files with unchanged stats" in head(inspector)
        await pilot.press("V")
        await until(pilot, lambda: "a fresh embedding of" in screen(inspector))
        await pilot.press("j", "enter")
        await until(pilot, lambda: "verified in full" in head(inspector))
        assert ("duplicate",) in listed(inspector)
        commands = [command for _, command in inspector.commands_done]
        assert commands[-1] == f"filestore --store {root} verify --level full"
        await go_to(inspector, pilot, "modified", damaged_path(inspector))
        await pilot.press("t")
        await pilot.pause()
        assert inspector.screen is inspector.screen_stack[0]
        await until(pilot, lambda: inspector.task_manager.busy is None)
        page(inspector).verify("deep")
        tasks = inspector.task_manager.tasks
        inspector.task_manager.stop(next(one for one in tasks if one.title == "verify (deep)"))
        await until(pilot, lambda: "stopped" in head(inspector))
        assert "incomplete" in head(inspector)
        assert inspector.findings.clean is None
        assert "duplicate" in inspector.findings.by_code()

    inspect(root, act)


def damaged_path(inspector):
    """The file that was edited."""
    return next(one.path for one in inspector.findings if one.code == "modified")


def found(code, number):
    """A finding of a file that sorts among others of its kind."""
    return Finding(code=code, path=f"chunked/guide/made{number:04}.md", detail="made up")


def test_rows_that_come_never_move_the_cursor(root):
    """While findings stream in, the cursor stays on its finding and on its line of the screen."""
    codes = ("missing", "untracked", "modified", "bit-rot", "hand-edited", "litter")
    chance = random.Random(4)

    async def act(inspector, pilot):
        numbers = list(range(400))
        chance.shuffle(numbers)
        inspector.findings.add([found("untracked", 1000), found("untracked", 1001)])
        # So many below it that there is something to scroll.
        inspector.findings.add(found("hand-edited", 2000 + number) for number in range(60))
        inspector.findings.begin("full")
        inspector.findings_changed()
        await pilot.pause()
        key = await go_to(inspector, pilot, "untracked", found("untracked", 1000).path)
        rows = page(inspector).list
        line = rows._cursor - rows.scroll_offset.y
        while numbers:
            batch, numbers = numbers[:20], numbers[20:]
            inspector.findings.add(found(chance.choice(codes), number) for number in batch)
            inspector.findings_changed()
            await pilot.pause()
            assert rows.cursor_key == key
            assert rows._cursor - rows.scroll_offset.y == line
        whole = [*inspector.findings]
        chance.shuffle(whole)
        kept = [one for one in whole if key_of(one) == key or chance.random() < 0.5]
        inspector.findings.replace(kept, Coverage(level="full", at="1:00"), clean=False)
        inspector.findings_changed()
        await pilot.pause()
        assert rows.cursor_key == key
        notes = sum(one.severity == "I" for one in kept)
        assert f"{len(kept) - notes:,} findings, {notes:,} notes" in head(inspector)

    inspect(root, act)


def test_filters_narrow_the_list_and_escape_widens_it(root):
    """Words, left-out words, expressions, severities and codes each leave only what fits."""
    damage(root)

    async def act(inspector, pilot):
        everything = listed(inspector)

        async def typed(*keys):
            await pilot.press("slash", *keys)
            await pilot.pause(0.2)
            return {key[0] for key in listed(inspector)}

        assert await typed(*"mod") == {"modified"}
        assert "/mod" in head(inspector)
        await pilot.press("escape")
        assert listed(inspector) == everything
        assert "modified" not in await typed("exclamation_mark", *"mod")
        await pilot.press("escape")
        assert await typed("tilde", *"m.lf") == {"malformed-frontmatter"}
        await pilot.press("left_parenthesis")
        await pilot.pause(0.2)
        assert "invalid regular expression" in head(inspector)
        assert {key[0] for key in listed(inspector)} == {"malformed-frontmatter"}
        await pilot.press("escape", "f")
        assert "errors" in head(inspector)
        assert {key[0] for key in listed(inspector)} == {"modified", "malformed-frontmatter"}
        await pilot.press("escape")
        assert listed(inspector) == everything
        await pilot.press("c")
        await until(pilot, lambda: "Show which code?" in screen(inspector))
        await pilot.press("j", "enter")
        await pilot.pause()
        assert {key[0] for key in listed(inspector)} == {everything[0][0]}
        await pilot.press("S")
        assert all(len(key) > 1 for key in listed(inspector))
        kept = page(inspector).saved()
        assert kept == {"order": "path", "text": "", "severities": "EWI", "code": everything[0][0]}
        await pilot.press("escape", "S", "S")
        assert listed(inspector) == everything
        page(inspector).restore({**kept, "severities": "X", "text": 4})
        assert page(inspector).saved() == kept
        page(inspector).restore({**kept, "order": {}, "severities": [], "code": []})
        assert page(inspector).saved() == {**kept, "code": ""}

    inspect(root, act)


def test_a_marked_group_is_planned_as_a_whole(root):
    """Space on a group marks every finding in it, open or closed; p asks to have them mended."""
    damage(root)

    async def act(inspector, pilot):
        inspector.findings.add(found("missing", number) for number in range(3))
        inspector.findings_changed()
        await go_to(inspector, pilot, "missing")
        await pilot.press("enter")
        assert len([key for key in listed(inspector) if key[0] == "missing"]) == 1
        await pilot.press("space")
        assert {key[1] for key in inspector.findings.marked} == {
            found("missing", number).path for number in range(3)
        }
        assert "3 marked" in head(inspector)
        assert inspector.action_context().codes == ("missing",)
        assert inspector.action_context().paths == ()
        await go_to(inspector, pilot, "missing")
        await pilot.press("l")
        await go_to(inspector, pilot, "missing", found("missing", 1).path)
        await pilot.press("space")
        assert len(inspector.findings.marked) == 2
        assert inspector.action_context().paths == (
            found("missing", 0).path,
            found("missing", 2).path,
        )
        await pilot.press("escape")
        assert not inspector.findings.marked
        await go_to(inspector, pilot, "modified", damaged_path(inspector))
        await pilot.press("p")
        await until(pilot, lambda: inspector.page == "repair")
        await until(pilot, lambda: "re-index" in screen(inspector))

    inspect(root, act)


def test_the_filter_is_marked_in_the_evidence(root):
    """`n` goes through what the filter looks for in the evidence; without a filter to nothing."""
    edited, _ = damage(root)

    async def act(inspector, pilot):
        await pilot.press("slash", *"guide", "enter")
        await until(pilot, lambda: "/guide" in head(inspector))
        await go_to(inspector, pilot, "modified", edited)
        evidence = page(inspector).evidence
        await until(pilot, lambda: "+And another one." in screen(inspector))
        await until(pilot, lambda: evidence.match[1] > 0)
        await pilot.press("n")
        await until(pilot, lambda: evidence.match[0] > 0)
        await pilot.press("escape")
        await until(pilot, lambda: evidence.match == (0, 0))

    inspect(root, act)


def test_very_many_findings_are_grouped_aside(root, monkeypatch):
    """Lists too long to be made while a key waits come a moment later, and are the same ones."""
    damage(root)
    monkeypatch.setattr(lists, "AT_ONCE", 1)

    async def act(inspector, pilot):
        await until(pilot, lambda: "modified" in screen(inspector))
        known, rows = inspector.findings, page(inspector)._rows
        await pilot.press("S")
        await until(pilot, lambda: not rows.is_much)
        paths = [rows.key(index)[1] for index in range(len(rows))]
        assert paths == sorted(finding.path for finding in known)
        await pilot.press("slash", *"guide", "enter")
        wanted = sum("guide" in f"{one.path} {one.detail}" for one in known)
        await until(pilot, lambda: rows.shown == wanted and f"{wanted} shown" in screen(inspector))
        await pilot.press("r")
        await until(pilot, lambda: known.coverage.level == "fast" and not known.coverage.is_running)
        await until(pilot, lambda: not rows.is_much)
        assert rows.shown == sum("guide" in f"{one.path} {one.detail}" for one in known)

    inspect(root, act)


def test_a_narrow_screen_shows_one_part_at_a_time(root):
    """Below 90 columns the list has the screen, and tab goes to the evidence and back."""
    edited, _ = damage(root)

    async def act(inspector, pilot):
        await go_to(inspector, pilot, "modified", edited)
        assert not page(inspector).evidence.display
        await pilot.press("tab")
        await until(pilot, lambda: "+And another one." in screen(inspector))
        assert not page(inspector).list.display
        await pilot.press("tab")
        await until(pilot, lambda: page(inspector).list.has_focus)
        assert not page(inspector).evidence.display

    inspect(root, act, size=(60, 24))


def test_the_key_that_closes_a_group_goes_up_to_it_first(root):
    """On a finding `h` goes to its code, and closes that when it is pressed again."""
    edited, _ = damage(root)

    async def act(inspector, pilot):
        rows = page(inspector).list
        finding = await go_to(inspector, pilot, "modified", edited)
        await pilot.press("h")
        await until(pilot, lambda: rows.cursor_key == ("modified",))
        assert finding in listed(inspector)
        await pilot.press("left")
        await until(pilot, lambda: finding not in listed(inspector))
        assert rows.cursor_key == ("modified",)

    inspect(root, act)


def test_the_page_that_was_left_is_seen_first(root):
    """Unless another one is asked for, or a file."""

    def page_of(**options):
        async def session():
            app = Inspector(Options(store=root, configuration=root + "-c", **options))
            async with app.run_test() as pilot:
                await until(pilot, lambda: app.is_seen)
                return app.page

        return asyncio.run(session())

    assert page_of() == "browse"
    assert page_of(page="repair") == "repair"
    assert page_of() == "repair"
    assert page_of(select="chunked/guide/chunk1.md") == "browse"


def test_the_log_shortens_a_long_command_line_and_copies_it_whole(root):
    """Of 1,400 names it shows the first ones and how many more; y copies all of them."""
    names = [f"chunked/{number}.md" for number in range(1_400)]
    command = f"filestore repair --path {' '.join(names)} --write-files"

    async def act(inspector, pilot):
        copied = []
        inspector.copy_text = lambda text, *, what: copied.append(text)
        inspector.note(command)
        await pilot.press("at")
        await until(pilot, lambda: "more --write-files" in screen(inspector))
        assert "chunked/1399.md" not in screen(inspector)
        await pilot.press("y")
        await until(pilot, lambda: copied)
        assert copied[0].endswith(f"  {command}")

    inspect(root, act)
