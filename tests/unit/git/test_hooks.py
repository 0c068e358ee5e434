"""What a git hook of ours says: read back as it was written, and nothing else taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.git.hooks import (
    HOOKS,
    SHELL,
    Script,
    call_line,
    hook_script,
    lines_that_call,
)

PATHS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    | st.sampled_from("'\"$`\\ \n#;-\udce9"),
    min_size=1,
    max_size=20,
)
LINES = st.lists(st.sampled_from(["#!/bin/sh", "", "exit 0", "# é", 'lint "$@" || exit 1'])).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)
"""What others write into a hook."""


@given(name=st.sampled_from(HOOKS), stores=st.lists(PATHS, unique=True, max_size=4), python=PATHS)
def test_stores_are_read_back(name: str, stores: list[str], python: str) -> None:
    """Whatever stores and Python are called, a hook tells the stores that it was written for."""
    assert Script.of(hook_script(name, stores, python)).stores == tuple(reversed(stores))


@given(name=st.sampled_from(HOOKS), at=st.floats(0, 1, exclude_max=True), put=st.text(max_size=3))
def test_lines_that_were_changed_are_not_ours(name: str, at: float, put: str) -> None:
    """Lines in which a character was changed, put in or taken out are not ours any more."""
    script = hook_script(name, ["file_index", "my notes"], "/usr/bin/python3")
    ours = script.removeprefix(SHELL)
    place = int(len(ours) * at)
    changed = ours[:place] + put + ours[place + 1 :]
    is_whole = f"\n{ours}" in f"\n{changed}"
    assert (Script.of(SHELL + changed).stores is None) == (not is_whole)


@given(name=st.sampled_from(HOOKS), before=LINES, after=LINES, stores=st.lists(PATHS, max_size=3))
def test_lines_of_others_stay(name: str, before: str, after: str, stores: list[str]) -> None:
    """Whatever stands around ours, ours are found, changed and taken away, and nothing else is."""
    written = hook_script(name, ["a", "b"], "/usr/bin/python3").removeprefix(SHELL)
    script = Script.of(before + written + after)
    assert script.stores == ("b", "a")
    assert script.serving(name, [], "python") == before + after
    again = script.serving(name, ["c", *stores], "/opt/python")
    assert again.startswith(before)
    assert again.endswith(after)
    assert Script.of(again).stores == (*reversed(stores), "c")


@pytest.mark.parametrize("name", HOOKS)
def test_lines_that_call_are_known(name: str) -> None:
    """The line that is told, its words in other quotes, and our own lines that somebody changed."""
    for store in ("notes", "it's here", "a b"):
        line = call_line(name, [store])
        assert lines_that_call(f"#!/bin/sh\nlint\n{line}\n", name, store) == line
        assert lines_that_call(f"#!/bin/sh\n# {line}\n", name, store) == ""
        assert lines_that_call(line, name, f"{store}2") == ""
        changed = hook_script(name, [store], "python").replace("exit 0", "exit 3")
        assert Script.of(changed).stores is None
        assert "-m filestore git" in lines_that_call(changed, name, store)
    assert lines_that_call(f'filestore git "--in=notes" hook {name} "$@"', name, "notes")


def test_the_line_stands_alone() -> None:
    """What is to be added to a hook of others is one line, quoted, and fails only a commit."""
    line = call_line("post-merge", ["it's here"], "/opt/my python/bin/python")
    assert line == (
        "'/opt/my python/bin/python' -P -m filestore git "
        "'--in=it'\"'\"'s here' hook post-merge \"$@\" </dev/null || true"
    )
    assert call_line("pre-commit", ["."], "python").endswith("|| exit 1")
