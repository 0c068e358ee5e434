"""Which file of one time is which of another."""

from hypothesis import given
from hypothesis import strategies as st

from filestore.core.paths import StorePath
from filestore.past.moment import matched, paired

_STORES = st.dictionaries(
    st.sampled_from("abcdef").map(StorePath), st.sampled_from([b"1", b"2", b"3"])
)


def store(**texts: str) -> dict[StorePath, bytes]:
    """Files with a hash of their texts."""
    return {StorePath(path): text.encode() for path, text in texts.items()}


def test_a_renamed_file_is_the_same() -> None:
    """Its text tells, and where a new file has its name, that one is new."""
    pairs = paired(store(a="1", c="3"), store(b="1", a="2", c="3"), {})
    assert pairs.old == {"b": "a", "c": "c"}


def test_an_edited_file_is_the_same() -> None:
    """A path stands for a file whatever is in it."""
    assert paired(store(a="1"), store(a="2"), {}).old == {"a": "a"}


def test_a_copy_is_new() -> None:
    """The file itself is still there."""
    assert paired(store(a="1"), store(a="1", b="1"), {}).old == {"a": "a"}


def test_git_tells_of_a_file_that_was_renamed_and_edited() -> None:
    """What it says of files that are not there is passed over."""
    renames = {StorePath("b"): StorePath("a"), StorePath("x"): StorePath("y")}
    assert paired(store(a="1"), store(b="2"), renames).old == {"b": "a"}


@given(_STORES, _STORES, st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")))
def test_no_file_is_two(first, second, renames):
    """Each file of a time is at most one of the other; nothing is paired that is not there."""
    pairs = paired(first, second, renames)
    assert {new: old for old, new in pairs.new.items()} == dict(pairs.old)
    assert pairs.old.keys() <= second.keys()
    assert pairs.new.keys() <= first.keys()
    assert all(path in pairs.old for path, text in second.items() if first.get(path) == text)


def test_answers_beside_each_other() -> None:
    """One is the same under another name, one was edited, one is new, one was lost."""
    first = store(a="1", b="2", c="3", d="4")
    second = store(a2="1", b="9", d="4", e="5")
    pairs = paired(first, second, {})
    answers = matched(
        [StorePath(one) for one in "abcd"],
        [StorePath(one) for one in ("b", "a2", "e")],
        pairs,
        first,
        second,
    )
    told = [(one.path, one.was, one.old, one.new, one.edited, one.there) for one in answers]
    assert told == [
        ("b", None, 2, 1, True, True),
        ("a2", "a", 1, 2, False, True),
        ("e", None, None, 3, False, False),
        ("c", None, 3, None, False, False),
        ("d", None, 4, None, False, True),
    ]
