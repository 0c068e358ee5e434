"""What is shown of a hit is made when it is read, and is then like any other value."""

import copy
import pickle

from filestore.search.answer import Lazily, Shown


def test_it_is_made_once_and_when_it_is_asked_for() -> None:
    """Who reads paths alone pays for no passage."""
    made: list[int] = []

    def make() -> Shown:
        made.append(1)
        return Shown(excerpt="The boat.")

    shown = Lazily(make)
    assert made == []
    assert shown().excerpt == shown().excerpt == "The boat."
    assert made == [1]


def test_it_is_compared_copied_and_printed_as_what_it_is() -> None:
    """Two answers of the same are the same, in another process, too."""
    shown = Lazily(lambda: Shown(excerpt="The boat.", line=3))
    same = Lazily(lambda: Shown(excerpt="The boat.", line=3))
    assert shown == same == pickle.loads(pickle.dumps(shown)) == copy.deepcopy(shown)
    assert shown != Lazily(Shown)
    assert "The boat." in repr(shown)
