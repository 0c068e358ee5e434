"""Every key of a page has one meaning there."""

from collections import defaultdict

import pytest

from tui import actions
from tui.widgets.text import TextPane


@pytest.mark.parametrize("place", ["browse", "verify", "repair"])
def test_no_key_has_two_meanings_on_a_page(place):
    """Of all that can be pressed on a page, in its lists too, no two actions share a key; those of
    a text are among them."""
    named = defaultdict(set)
    for action in [*actions.available(place), *actions.of_place("lists")]:
        for key in action.keys:
            named[key].add(action.name)
    assert {key: names for key, names in named.items() if len(names) > 1} == {}
    of_text = {key for keys, *_ in TextPane.BINDINGS for key in keys.split(",")}
    assert of_text <= {key for action in actions.of_place("lists") for key in action.keys}
