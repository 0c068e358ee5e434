"""Where a graph keeps its weights, found in messages written out byte by byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.embed._onnx import locations

PATHS = [
    (7, 5, 13),  # an initializer
    (7, 15, 1, 13),  # a sparse one, its values
    (7, 15, 2, 13),  # and its places
    (7, 1, 5, 5, 13),  # the constant of a node
    (7, 1, 5, 10, 13),  # one of several
    (7, 1, 5, 22, 1, 13),
    (7, 1, 5, 23, 2, 13),
    (7, 1, 5, 6, 5, 13),  # the branch of a condition
    (7, 1, 5, 11, 1, 5, 5, 13),
    (20, 1, 5, 13),  # what is for training
    (20, 2, 5, 13),
    (25, 7, 5, 5, 13),  # a function
    (25, 11, 5, 13),
]
"""From the model to an entry of a tensor, by the numbers of the fields."""


def number(value: int) -> bytes:
    """A number of 7 bits a byte."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + number(value >> 7)


def field(place: int, content: bytes) -> bytes:
    """A field that holds text or a message."""
    return number(place << 3 | 2) + number(len(content)) + content


def entry(key: bytes, value: bytes) -> bytes:
    """What a tensor says of where it is."""
    return field(1, key) + field(2, value)


def graph(path: tuple[int, ...], content: bytes, *, beside: bytes = b"") -> bytes:
    """A model with some content far inside, and something beside it on every level."""
    for place in reversed(path):
        content = beside + field(place, content) + beside
    return content


@pytest.mark.parametrize("path", PATHS)
def test_weights_are_found_wherever_a_tensor_may_be(path: tuple[int, ...]) -> None:
    """A name in any part of a graph is seen, and other entries are no names."""
    version = number(1 << 3) + number(2**40) + number(30 << 3 | 1) + bytes(8)
    beside = version + number(31 << 3 | 5) + bytes(4) + field(29, b"\xff\xff")
    data = graph(path, entry(b"location", b"weights.bin"), beside=beside)
    assert locations(data) == {b"weights.bin"}
    assert locations(graph(path, entry(b"offset", b"weights.bin"), beside=beside)) == set()


@given(names=st.lists(st.binary(max_size=300)))
def test_every_name_is_found(names: list[bytes]) -> None:
    """However many tensors a graph has, each of their places is found, also one without a name."""
    tensors = [field(5, field(13, entry(b"location", name))) for name in names]
    assert locations(field(7, b"".join(tensors))) == set(names)
    assert locations(field(7, field(5, field(13, field(1, b"location"))))) == {b""}


def test_a_name_said_twice_is_two_names() -> None:
    """Readers take the last of two values, or of two keys; both are seen."""
    twice = field(2, b"one") + field(1, b"offset") + field(1, b"location") + field(2, b"two")
    assert locations(graph(PATHS[0], twice)) == {b"one", b"two"}


def test_a_graph_within_graphs_is_no_matter_of_depth() -> None:
    """A branch inside thousands of branches is gone into."""
    path = (7, *(1, 5, 6) * 3000, 5, 13)
    content = entry(b"location", b"deep")
    parts = [content]
    for place in reversed(path):
        size = sum(map(len, parts))
        parts.append(number(place << 3 | 2) + number(size))
    assert locations(b"".join(reversed(parts))) == {b"deep"}


@pytest.mark.parametrize(
    "data",
    [
        field(7, b"abc")[:-1],
        number(7 << 3 | 3),  # a group, which nothing writes
        number(7 << 3 | 7),
        number((7 + 2**29) << 3 | 2) + b"\x00",  # a field that some readers take for the graph
        b"\xff" * 11,
        b"\x80",
        number(1 << 3 | 1) + bytes(7),
    ],
)
def test_what_is_not_understood_is_refused(data: bytes) -> None:
    """What is cut off, or could be read in two ways, is no graph."""
    with pytest.raises(ValueError, match=r"byte \d"):
        locations(data)


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Garbage ends in names or in a ValueError, alone and inside a graph."""
    for message in (data, graph((7, 5), data)):
        try:
            found = locations(message)
        except ValueError:
            continue
        assert all(isinstance(name, bytes) for name in found)
