"""The state that is found again: round trips, and whatever a file may hold."""

import json
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from tui.workers.session_file import FORMAT, Page, Saved, parse, serialize

PAGES = get_args(Page)
NAMES = st.text(st.characters(exclude_categories=[]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
VIEWS = st.dictionaries(st.sampled_from(PAGES), st.dictionaries(NAMES, JSON, max_size=3))


@given(st.sampled_from(PAGES), NAMES, VIEWS, st.lists(NAMES, max_size=3))
def test_what_is_saved_is_found_again(page, theme, views, prompts):
    """Serialise and parse give the same state, also with names that are not UTF-8."""
    saved = Saved(page=page, theme=theme, views=views, prompts=tuple(prompts))
    assert parse(serialize(saved)) == (saved, "")


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_give_a_usable_state(text):
    """A damaged file is told in words, and the state is a new one."""
    saved, problem = parse(text)
    assert saved == Saved()
    assert problem


@given(st.fixed_dictionaries({"page": JSON, "theme": JSON, "views": JSON, "prompts": JSON}))
def test_wrong_types_are_left_out(values):
    """Values of a wrong type count as absent; the others are used."""
    saved, problem = parse(json.dumps({"format": FORMAT, **values}).encode())
    assert problem == ""
    assert saved.page in PAGES
    assert isinstance(saved.theme, str)
