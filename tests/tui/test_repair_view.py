"""Repair as somebody at the keyboard sees it: planned, seen, chosen, applied, taken back."""

import asyncio

import pytest
from textual.widgets import Input

from filestore import Finding
from filestore.server.operations import OPERATIONS
from filestore.server.stores import Access, Caller, Stores
from tui.views.dialogs import ConfirmScreen


def test_a_plan_is_seen_before_anything_is_written(case):
    """Steps stand under their kinds with totals and the command; until the yes nothing changes."""
    case.chunks()[0].write_text("Another text.\n")
    case.chunks()[1].unlink()

    async def act(session):
        await session.plan("p")
        seen = session.seen()
        # What is kept of a deleted file goes only where a person chose it.
        assert "remove from the index  0 of 1" in seen
        assert "re-index  1 of 1" in seen
        assert session.view.command() == f"filestore --store {case.root} repair --only modified"
        assert "filestore --store" in seen
        assert "1 step: no file of yours is touched, 1 passage embedded" in seen
        await session.press("A")
        assert "y confirms; enter or esc cancels" in session.seen()
        await session.press("escape")
        assert all("--plan" in command for _, command in session.app.commands_done)

    case.inspect(act)
    assert sorted(case.codes()) == ["missing", "modified"]


def test_applying_mends_what_is_chosen_and_tells_it(case):
    """After a yes the report says what was done, and the store is clean."""
    case.chunks()[0].write_text("Another text.\n")

    async def act(session):
        await session.plan("p")
        await session.press("A", "y")
        await session.read("applied 1 step")
        await session.read("nothing is left that needs you")
        commands = [line for _, line in session.app.commands_done]
        assert f"filestore --store {case.root} repair" in commands
        await session.until(lambda: session.app.findings.clean)

    case.inspect(act)
    assert case.codes() == []


@pytest.mark.parametrize("named", ["{}", "chunked/{}"])
def test_a_typed_repair_names_files_as_the_command_does(case, named):
    """A path below `chunked/` is found from the store's root and from `chunked/`."""
    first, second, *_ = case.chunks()
    first.write_text("Another text.\n")
    second.write_text("Yet another text.\n")

    async def act(session):
        await session.press(":")
        await session.read("a command, a vector id")
        below = second.relative_to(case.root / "chunked")
        session.app.screen.query_one(Input).value = f"repair --path {named.format(below)}"
        await session.press("enter")
        await session.read("1 step")
        assert session.app.view.action_context().paths == (str(second.relative_to(case.root)),)

    case.inspect(act)


def test_a_step_that_was_left_is_not_applied(case):
    """Space leaves a step; the command names what is still chosen, and only that is mended."""
    first, second, *_ = case.chunks()
    first.write_text("Another text.\n")
    second.write_text("Yet another text.\n")

    async def act(session):
        await session.plan("p")
        await session.press("space")
        assert "[-] re-index  1 of 2" in session.seen()
        path = str(second.relative_to(case.root))
        assert session.view.command().endswith(f" repair --only modified --path {path}")
        assert session.app.view.action_context().paths == (path,)
        await session.press("A", "y")
        await session.read("applied 1 step")

    case.inspect(act)
    assert case.codes() == ["modified"]


def test_a_plan_of_very_many_steps_is_worked_out_aside(case, monkeypatch):
    """What would keep a key waiting is counted aside; then the page says the same as ever."""
    monkeypatch.setattr("tui.views.repair.AT_ONCE", 0)
    for path in case.chunks()[:2]:
        path.write_text(f"Another text for {path.name}.\n")

    async def act(session):
        await session.press("p")
        await session.read("2 steps: no file of yours is touched, 2 passages embedded")
        await session.press("space")
        await session.read("1 step: no file of yours is touched, 1 passage embedded")
        await session.press("A", "y")
        await session.read("applied 1 step")

    case.inspect(act)
    assert case.codes() == ["modified"]


def test_a_word_that_was_typed_for_y_never_reaches_the_page(case, monkeypatch):
    """Who types yes where y is enough has the steps applied, and no editor opened by its e."""
    case.chunks()[0].write_text("Another text.\n")
    opened = []

    async def act(session):
        monkeypatch.setattr(type(session.app), "edit", lambda _, path: opened.append(path))
        await session.plan("p")
        await session.press("A", *"yes", "enter")
        await session.read("applied 1 step")

    case.inspect(act)
    assert opened == []
    assert case.codes() == []


def test_the_step_that_is_read_is_chosen_where_it_is_read(case):
    """After enter the head says where the keys go; space leaves the step and stays there."""
    for path in case.chunks()[:2]:
        path.write_text(f"Another text for {path.name}.\n")

    async def act(session):
        await session.plan("p")
        await session.press("enter")
        await session.read("reading the step: space chooses it, esc goes back")
        await session.press("space")
        await session.read("[-] re-index  1 of 2")
        assert "step 1 of 2" in session.seen()
        await session.press("escape")
        assert "reading the step" not in session.seen()

    case.inspect(act)


def test_what_a_repair_left_stays_known(case):
    """Damage that only a full verification tells is still listed after a repair of the rest."""
    first, second, third, _ = case.chunks()
    second.write_bytes(first.read_bytes())
    with case.store() as store:
        store.sync()
    third.write_text("Another text.\n")

    async def act(session):
        await session.press("2")
        session.app.page_of("verify").verify("full")
        await session.until(lambda: "duplicate" in session.app.findings.by_code())
        await session.idle()
        rotten = Finding(code="bit-rot", path=str(first.relative_to(case.root)))
        session.app.plan([*session.app.findings, rotten])
        await session.read("plan for 3 findings")
        await session.idle()
        await session.press("A", "y")
        await session.read("applied 1 step")
        await session.idle()
        await session.until(lambda: "duplicate" in session.app.findings.by_code())
        session.app.look_again()
        await session.idle()
        assert "duplicate" in session.app.findings.by_code()
        assert session.app.findings.coverage.level != "status"

    case.inspect(act)


def test_a_kind_is_chosen_and_left_as_a_whole(case):
    """Space on a heading leaves all its steps; without a step there is nothing to apply."""
    for path in case.chunks()[:2]:
        path.write_text(f"Another text for {path.name}.\n")

    async def act(session):
        await session.plan("p")
        await session.press("g", "space")
        assert "[ ] re-index  0 of 2" in session.seen()
        assert "no step is chosen" in session.seen()
        await session.press("A")
        assert not isinstance(session.app.screen, ConfirmScreen)
        await session.press("a")
        assert "[x] re-index  2 of 2" in session.seen()

    case.inspect(act)


def test_a_lost_file_is_brought_back_and_taken_back_again(case):
    """With t files may be written: the diff shows the text, undo and redo turn the file about."""
    lost = case.chunks()[2]
    text = lost.read_bytes()
    before = case.tree()
    lost.unlink()
    without = case.tree()

    async def act(session):
        await session.plan("p")
        assert "restore" not in session.seen()
        await session.plan("t")
        assert "restore" in session.seen()
        assert "+All about rivers." in session.seen() or "+All about" in session.seen()
        await session.press("A")
        assert "1 step: 1 file written" in session.seen()
        await session.press("y")
        await session.read("u undoes it")
        assert lost.read_bytes() == text
        assert case.tree() == before

        await session.press("u")
        await session.read("removes 1 file")
        await session.press("enter")
        assert isinstance(session.app.screen, ConfirmScreen)
        await session.press(*"yes", "enter")
        await session.read("undone")
        assert case.tree() == without

        await session.press("U")
        await session.read("restores")
        await session.press("y")
        await session.read("redone")
        assert case.tree() == before

    case.inspect(act)
    assert case.codes() == []


def test_a_deletion_takes_a_typed_yes(case):
    """What was made of a source that went is removed after yes was typed, and by no single key."""
    for path in (case.folder / "notes").iterdir():
        path.unlink()
    (case.folder / "notes").rmdir()
    before = case.tree()

    async def act(session):
        found = [one for one in session.app.findings if one.code == "source-missing"]
        assert found
        session.view.plan_for(found)
        await session.read("remove the chunks of")
        await session.idle()
        assert "removes" in session.seen()
        assert "no step is chosen" in session.seen()
        await session.press("A")
        await session.told("no step is chosen: space chooses one, a all")
        await session.press("a")
        for keys in (("y", "enter"), ("enter", "tab", "y", "enter")):
            await session.press("A")
            await session.read("type yes")
            await session.press(*keys)
            assert isinstance(session.app.screen, ConfirmScreen)
            assert case.tree() == before
            await session.press("escape")
        await session.press("A")
        await session.read("meta.json, or removes it with its")
        await session.press(*"yes", "enter")
        await session.read("applied")
        assert case.chunks() == []
        assert not (case.root / "chunked" / "notes" / "meta.json").exists()
        await session.press("u")
        await session.read("restores")
        await session.press("y")
        await session.read("undone")

    case.inspect(act)
    assert case.tree() == before


def test_a_read_only_session_applies_nothing_and_says_why(case):
    """The plan is shown; to apply it is refused with the reason."""
    case.chunks()[0].write_text("Another text.\n")

    async def act(session):
        await session.plan("p")
        await session.press("A")
        assert not isinstance(session.app.screen, ConfirmScreen)
        await session.told("opened to look only")
        session.view.do_apply()
        await session.idle()
        assert not isinstance(session.app.screen, ConfirmScreen)

    case.inspect(act, read_only="opened to look only")
    assert case.codes() == ["modified"]


def test_a_plan_that_the_store_left_behind_says_so_and_harms_nothing(case):
    """A file that changed again is skipped with the reason; r plans again."""
    edited = case.chunks()[0]
    edited.write_text("Another text.\n")

    async def act(session):
        await session.plan("p")
        edited.write_text("Edited while the plan was looked at.\n")
        changed = [Finding(code="empty", path=str(edited.relative_to(case.root)))]
        session.app.findings.replace_of([str(edited.relative_to(case.root))], changed)
        session.view.findings_changed()
        await session.read("out of date")
        await session.press("A")
        await session.read("skipped and reported")
        await session.press("y")
        await session.read("skipped 1 step")
        assert "it changed since the plan" in session.seen()

    case.inspect(act)
    assert edited.read_text() == "Edited while the plan was looked at.\n"


def test_undo_is_refused_where_a_file_was_edited_since(case):
    """The refusal names the file and what to do; the edit stays."""
    edited = case.chunks()[0]

    async def act(session):
        edited.write_text("Mine.\n")
        await session.press("u", *"yes", "enter")
        await session.read("cannot be undone, files were edited since")
        assert edited.name in session.seen()

    case.inspect(act)
    assert edited.read_text() == "Mine.\n"


def test_changes_are_listed_and_undone_after_a_restart(case):
    """The list names number, command and state; the change under the cursor is the one undone."""
    before = case.tree()
    other = case.folder / "other.md"
    other.write_text("# Other\n\nOf another day.\n")
    case.add(other)

    async def act(session):
        await session.press("b")
        await session.read("000002")
        assert "add other.md" in session.seen()
        assert "u undoes it" in session.seen()
        assert "by you" in session.seen()
        # What undoing it does.
        await session.read("+0,0 @@")
        await session.press("u", *"yes", "enter")
        await session.read("undone: 000002")
        await session.press("b")
        assert "changes: u undoes" not in session.seen()

    case.inspect(act)
    assert {path: data for path, data in case.tree().items() if "chunked" in path} == {
        path: data for path, data in before.items() if "chunked" in path
    }


def test_a_changed_original_is_marked_and_leads_to_its_finding(case):
    """The row of what was made from it has the mark, `p` plans it, `2` goes to the finding."""
    original = case.folder / "notes" / "lakes.md"
    original.write_text("# Anew\n\nWritten again.\n")

    async def act(session):
        await session.read("W1")
        await session.press("2")
        await session.read("source-modified")
        await session.until(lambda: session.app.view.action_context().codes == ("source-modified",))
        assert session.app.view.action_context().paths[0].endswith(original.name)
        await session.press("1", "p")
        await session.read("plan for 1 finding")

    case.inspect(act, page="browse")


def test_what_programs_changed_is_listed_alone(case):
    """`b` goes from all changes to those of programs, and to the plan."""
    program = Caller(name="agent", writes=True, person=False)
    note = next(one for one in OPERATIONS if "add_note" in (one.route, one.tool, one.name))
    with Stores.open([str(case.root)], Access(writes=True)) as stores:
        given = {"text": "A note.\n", "title": "Of a program", "folder": "ideas"}
        asyncio.run(stores.named(None).ask(note, given, program))

    async def act(session):
        await session.press("b")
        await session.read("by “agent”")
        assert "by you" in session.seen()
        await session.press("b")
        await session.read("changes of programs")
        await session.until(lambda: "by you" not in session.seen())
        await session.read("by “agent”")
        await session.press("b")
        assert "changes" not in session.seen().splitlines()[1]

    case.inspect(act)


def test_stopping_an_apply_leaves_a_store_that_goes_on(case):
    """x stops at once or too late; either way files are all there, and undo or sync work."""
    lost = case.chunks()[:3]
    before = case.tree()
    for path in lost:
        path.unlink()
    without = case.tree()

    async def act(session):
        await session.plan("t")
        await session.pilot.press("A")
        await session.until(lambda: isinstance(session.app.screen, ConfirmScreen))
        await session.pilot.press("y")
        await session.pilot.press("x")
        await session.idle()
        await session.until(lambda: not session.view._is_working())
        assert case.tree() in (before, without)

    case.inspect(act)
    with case.store() as store:
        store.sync()
    assert case.codes() == []
    assert case.tree() in (before, without)


def test_a_narrow_screen_shows_one_part_at_a_time(case):
    """Below 90 columns the steps have the screen; tab goes to what one does, and back."""
    case.chunks()[0].write_text("Another text.\n")

    async def act(session):
        await session.plan("p")
        assert "re-index  1 of 1" in session.seen()
        assert "step 1 of 1" not in session.seen()
        await session.press("tab")
        assert "step 1 of 1" in session.seen()
        assert "re-index  1 of 1" not in session.seen()
        await session.press("tab")
        assert "re-index  1 of 1" in session.seen()

    case.inspect(act, size=(60, 20))


def test_names_that_would_steer_the_terminal_are_shown_harmless(case):
    """A file whose name holds an escape sequence is planned, shown and named for a shell."""
    name = "evil\x1b]0;title\x07[bold]\u202e.md"
    (case.root / "chunked" / "notes" / name).write_text("A text.\n")

    async def act(session):
        await session.plan("p")
        seen = session.seen()
        assert "\x1b" not in seen
        assert "\u202e" not in seen
        assert r"evil\x1b]0;title\x07[bold]" in seen
        await session.press("space")
        await session.press("A")

    case.inspect(act)


def test_the_end_of_a_plan_that_another_replaced_ends_nothing_else(case):
    """A plan is asked for while another is made: the page waits for it and shows it alone."""
    case.chunks()[1].unlink()

    async def act(session):
        view = session.view
        view.do_plan_all()
        first = view._job
        view.do_truth()
        second = view._job
        await session.until(lambda: first.is_over)
        await session.pilot.pause()
        assert second.is_over or view._is_working()
        assert "stopped: nothing was changed" not in session.seen()
        await session.until(lambda: view._rows is not None)
        assert view._rows.plan.policy.truth
        assert "restore  1 of 1" in session.seen()

    case.inspect(act)


def test_a_large_plan_is_shown_also_where_a_step_is_chosen_meanwhile(case, monkeypatch):
    """What the chosen steps cost is computed beside the rows of a new plan, not in their place."""
    monkeypatch.setattr("tui.views.repair.AT_ONCE", 0)
    case.chunks()[1].unlink()

    async def act(session):
        await session.plan("p")
        view, shown = session.view, []
        view._prepare(view._request, view._rows.plan, shown.append)
        view._count()
        await session.until(lambda: shown)
        await session.until(lambda: view._chosen is not None)

    case.inspect(act)


@pytest.mark.parametrize("keys", ["p", "pt"])
def test_enter_alone_confirms_nothing(case, keys):
    """Enter cancels, and says so; a y, also a typed yes with enter, confirms."""
    case.chunks()[0].write_text("Another text.\n")
    case.chunks()[1].unlink()
    before = case.tree()

    async def act(session):
        await session.plan(*keys)
        await session.press("A")
        assert isinstance(session.app.screen, ConfirmScreen)
        await session.press("enter")
        assert not isinstance(session.app.screen, ConfirmScreen)
        await session.told("cancelled: nothing was written")
        assert case.tree() == before
        assert not [one for one in session.app.task_manager.tasks if one.writes]
        await session.press("A")
        await session.press(*"yes", "enter")
        # To forget a deleted file is not chosen by itself, to write it again is.
        await session.read("applied 2 steps" if "t" in keys else "applied 1 step")

    case.inspect(act)


def test_enter_alone_undoes_nothing(case):
    """The question before an undo or redo is answered by a y, never by enter."""
    text = case.chunks()[0].read_bytes()
    case.chunks()[0].unlink()

    async def act(session):
        await session.plan("p")
        await session.plan("t")
        await session.press("A", "y")
        await session.read("u undoes it")
        after = case.tree()
        await session.press("u", *"yes", "enter")
        await session.read("undone")
        await session.press("U")
        assert isinstance(session.app.screen, ConfirmScreen)
        await session.press("enter")
        await session.told("cancelled: nothing was written")
        assert text not in case.tree().values()
        await session.press("U", "y")
        await session.read("redone")
        assert case.tree() == after

    case.inspect(act)


def test_a_look_that_ended_with_a_repair_forgets_nothing_of_a_verification(case):
    """What the repair found is taken first; a look by stats is then merged into it."""
    first, second, *_ = case.chunks()
    second.write_bytes(first.read_bytes())
    with case.store() as store:
        store.sync()
        status = store.status()

    async def act(session):
        app = session.app
        app.page_of("verify").verify("full")
        await session.until(lambda: "duplicate" in app.findings.by_code())
        await session.idle()
        app._verified = -1  # as right after a commit
        app.verified(status.findings, "fast", status.not_checked)
        app._take_status(status)
        await session.until(lambda: app._verified == status.generation)
        await session.idle()
        assert "duplicate" in app.findings.by_code()

    case.inspect(act)


def test_h_and_l_close_and_open_groups_and_steps(case):
    """As in the other lists: l opens a group or the step, h leaves the step, goes up, closes."""
    case.chunks()[0].write_text("Another text.\n")
    case.chunks()[1].unlink()

    async def act(session):
        await session.plan("p")
        view = session.view
        name = case.chunks()[0].name
        await session.press("g", "l")
        at = session.view._pane.steps.cursor_key
        assert view._rows.is_open(at)
        await session.press("j")
        step = view._pane.steps.cursor_key
        assert step != at
        await session.press("l")
        assert view._pane.text.has_focus
        await session.press("h")
        assert view._pane.steps.has_focus
        assert view._pane.steps.cursor_key == step
        await session.press("h")
        assert view._pane.steps.cursor_key == at
        await session.press("left")
        assert not view._rows.is_open(at)
        await session.press("right")
        assert view._rows.is_open(at)
        assert name in session.seen()
        await session.press("b", "l")
        assert view._changes.text.has_focus
        await session.press("h")
        assert view._changes.list.has_focus

    case.inspect(act)


@pytest.mark.parametrize("level", ["fast", "full"])
def test_what_a_repair_did_not_check_is_told_as_the_command_tells_it(case, level):
    """Verify says behind a repair what the verification at its end left out, and not more."""
    case.chunks()[0].write_text("Another text.\n")

    async def act(session):
        await session.press("2")
        if level == "full":
            await session.press("V")
            await session.press("down", "enter")
            await session.until(lambda: session.app.findings.coverage.level == "full")
        await session.press("3")
        await session.plan("p")
        await session.press("A")
        await session.press("y")
        await session.read("applied 1 step")
        await session.idle()
        await session.press("2")
        await session.until(lambda: session.app.findings.clean)
        left = session.app.findings.coverage.not_checked
        with case.store() as store:
            assert left == store.verify(level=level).not_checked
        assert " ".join(session.seen().split()).count("everything was checked") == (not left)
        assert not left or left[0] in session.seen()

    case.inspect(act, size=(200, 36))
