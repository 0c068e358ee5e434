"""The table of actions: whole, without clashes, and in step with the program's own command line."""

import shlex

import pytest

from filestore.cli import _parser
from tui import actions
from tui.actions import ACTIONS, ActionContext

PAGES = ("browse", "verify", "repair")
FULL = ActionContext(
    path="chunked/a b/chunk1.md",
    resource="a b",
    code="duplicate",
    query="the moon's phases",
    mode="keyword",
    level="full",
    codes=("modified", "missing"),
    paths=("chunked/a b/chunk1.md", "chunked/-x.md"),
    steps=2,
    truth=True,
    can_undo="000003",
    can_redo="000002",
    store="/stores/it's here",
)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.place}-{action.name}")
def test_every_action_has_a_command_line_or_says_why_not(action):
    """An action names the command that does the same, or one reason why there is none."""
    assert action.same
    assert action.help
    assert not action.help.endswith(".")
    assert len(action.title) <= 15


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.place}-{action.name}")
@pytest.mark.parametrize("now", [FULL, ActionContext()], ids=["full", "empty"])
def test_every_command_line_is_one_of_the_program(action, now):
    """Whatever is under the cursor, the command line of an action parses, with names unchanged."""
    line = actions.command_line(action, now)
    if not line or line.endswith("--help"):
        return
    program, *words = shlex.split(line)
    assert program == "filestore"
    _, options = _parser.parse(words)
    stores = options.store if isinstance(options.store, tuple) else (options.store,)
    assert [one for one in stores if one] == [one for one in [now.store] if one]
    if getattr(options, "path", None) and now is FULL:
        chosen = options.path if isinstance(options.path, list) else [options.path]
        assert set(chosen) <= {FULL.path, *FULL.paths}


@pytest.mark.parametrize("page", PAGES)
def test_no_key_means_two_things(page):
    """On a page, each key does one thing, whether the page, the frame or its lists bind it."""
    keys = [key for action in actions.available(page) for key in action.keys]
    keys += [key for action in actions.of_place("lists") for key in action.keys]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize("page", PAGES)
def test_the_foot_has_room_for_seven_keys(page):
    """At 80 columns the seven keys of the foot fit, two columns apart."""
    shown = sorted((one for one in actions.available(page) if one.footer), key=lambda a: -a.footer)
    words = [f"{actions.key_label(one.keys[0])} {one.title}" for one in shown[:7]]
    assert len("  ".join(words)) <= 80


@pytest.mark.parametrize("action", [one for one in ACTIONS if one.writes], ids=lambda one: one.name)
def test_what_writes_is_refused_in_a_read_only_session(action):
    """Every action that writes is refused with the session's own reason."""
    now = ActionContext(read_only="started to read", steps=1, can_undo="1", can_redo="1")
    assert actions.refusal(action, now) == "started to read"


def test_what_writes_is_refused_while_something_is_under_way():
    """Nothing is written while a verification or another write is running; its keys are named."""
    now = ActionContext(busy="verify (full)", steps=1, can_undo="1", can_redo="1")
    for action in ACTIONS:
        if action.writes:
            assert "verify (full) is running" in actions.refusal(action, now)


def test_names_that_would_steer_a_terminal_are_written_out():
    r"""A hostile name stands in a command line as \xNN, which a shell reads back."""
    show = actions.find("browse", "open")
    line = actions.command_line(show, ActionContext(path="chunked/\x1b]0;x\x07.md"))
    assert "\x1b" not in line
    assert "\\x1b]0;x\\x07" in line
