"""What a git hook of ours says: read back as it was written, and nothing else taken for it."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.git.hooks import HOOKS, call_line, hook_script, stores_of

PATHS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    | st.sampled_from("'\"$`\\ \n#;-\udce9"),
    min_size=1,
    max_size=20,
)


@given(name=st.sampled_from(HOOKS), stores=st.lists(PATHS, unique=True, max_size=4), python=PATHS)
def test_stores_are_read_back(name: str, stores: list[str], python: str) -> None:
    """Whatever stores and Python are called, a hook tells the stores that it was written for."""
    assert stores_of(hook_script(name, stores, python)) == list(reversed(stores))


@given(name=st.sampled_from(HOOKS), at=st.floats(0, 1, exclude_max=True), put=st.text(max_size=3))
def test_a_changed_hook_is_not_ours(name: str, at: float, put: str) -> None:
    """A hook in which a character was changed, put in or taken out is not ours any more."""
    script = hook_script(name, ["file_index", "my notes"], "/usr/bin/python3")
    place = int(len(script) * at)
    changed = script[:place] + put + script[place + 1 :]
    assert (stores_of(changed) is None) == (changed != script)


def test_the_line_stands_alone() -> None:
    """What is to be added to a hook of others is one line, quoted, and fails only a commit."""
    line = call_line("post-merge", ["it's here"], "/opt/my python/bin/python")
    assert line == (
        "'/opt/my python/bin/python' -P -m filestore git "
        "'--in=it'\"'\"'s here' hook post-merge \"$@\" || true"
    )
    assert call_line("pre-commit", ["."], "python").endswith("|| exit 1")
