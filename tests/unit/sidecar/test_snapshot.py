"""What must hold of slices: together they are everything, apart they share nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.errors import UsageError
from filestore.core.findings import Finding
from filestore.sidecar.snapshot import Sample, VerificationReport
from tests.advice import all_words

COUNTS = st.integers(1, 40)


@given(of=COUNTS, path=st.text(), vector=st.integers(0, 2**63 - 1))
def test_everything_is_in_one_slice(of: int, path: str, vector: int) -> None:
    """Of however many slices, just one has a path, and just one a vector."""
    slices = [Sample(number=number, of=of) for number in range(1, of + 1)]
    assert sum(one.has_path(path.encode("utf-8", "ignore").decode()) for one in slices) == 1
    assert sum(one.has_vector(vector) for one in slices) == 1


def test_a_name_that_is_not_utf8_is_in_one_slice() -> None:
    """Files with any bytes as names are covered like all others."""
    path = b"caf\xe9.md".decode("utf-8", "surrogateescape")
    assert sum(Sample(number=number, of=3).has_path(path) for number in (1, 2, 3)) == 1


def test_slices_are_about_equal() -> None:
    """A tenth of many files is about a tenth."""
    taken = sum(Sample(number=3, of=10).has_path(f"a/chunk{number}.md") for number in range(9999))
    assert 800 < taken < 1200


@given(number=COUNTS, of=COUNTS)
def test_a_slice_is_written_as_it_is_read(number: int, of: int) -> None:
    """`2/10` is read back as what was written, if there is such a slice."""
    text = f"{number}/{of}"
    if number <= of:
        assert str(Sample.parse(text)) == text
    else:
        with pytest.raises(UsageError):
            Sample.parse(text)


@pytest.mark.parametrize(
    "text", ["", "1", "/", "0/3", "4/3", "1/0", "a/b", "-1/3", "1 / 3", "1/3/5"]
)
def test_what_is_no_slice(text: str) -> None:
    """Anything else is wrong usage, and an example is given."""
    with pytest.raises(UsageError) as caught:
        Sample.parse(text)
    assert "--sample 1/10" in all_words(caught.value)


def test_a_finding_is_said_once() -> None:
    """Two parts of a verification that find the same say it once."""
    report = VerificationReport()
    one, other = Finding(code="modified", path="a"), Finding(code="missing", path="b")
    report.add([one, other, one])
    report.add(iter([other]))
    assert report.findings == [one, other]
    assert report.codes() == {"modified", "missing"}
