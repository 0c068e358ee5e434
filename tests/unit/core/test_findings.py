"""What must hold of findings: the severities of the contract, their order, and what clean means."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.codes import CODES
from filestore.core.findings import Finding, is_clean, worst_first

SEVERITIES = {
    "E": "format-newer unsafe-sidecar modified missing mass-missing unreadable "
    "malformed-frontmatter invalid-metadata record-invalid conflict-markers bad-encoding "
    "catalog-missing catalog-damaged index-damaged vector-missing vector-orphan vector-invalid "
    "vector-mismatch map-mismatch fulltext-damaged fulltext-mismatch bit-rot model-changed "
    "model-drift metric-mismatch index-away index-taken",
    "W": "metadata-modified untracked moved empty oversized special-file symlink name-collision "
    "unportable-name unsafe-attributes source-modified source-missing ingest-conflict "
    "extraction-failed frontmatter-ignored left-out "
    "source-untracked summary-stale link-dangling embeddings-damaged index-missing index-behind "
    "index-lost successor-missing "
    "fulltext-missing fulltext-behind model-missing chunker-changed beside-behind",
    "I": "litter not-read page-whole leftovers duplicate hand-edited index-foreign "
    "fulltext-foreign git-operation locked past-date superseded "
    "beside-unusable vector-pending",
}
SAFE = (
    "modified metadata-modified untracked missing moved leftovers catalog-missing catalog-damaged "
    "embeddings-damaged index-missing index-damaged index-behind index-foreign index-lost "
    "vector-missing vector-pending "
    "vector-orphan vector-invalid vector-mismatch map-mismatch fulltext-missing fulltext-damaged "
    "fulltext-behind fulltext-foreign fulltext-mismatch metric-mismatch left-out beside-behind"
)
FINDINGS = st.lists(
    st.builds(Finding, code=st.sampled_from(sorted(CODES)), path=st.sampled_from("abc")),
    max_size=12,
)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_severities_are_those_of_the_contract(severity):
    """Scripts rely on which codes are errors, warnings and notes."""
    expected = set(SEVERITIES[severity].split())
    assert {code for code, said in CODES.items() if said.severity == severity} == expected


def test_only_repairs_of_the_sidecar_are_safe():
    """What sync applies by itself never needs a truth file to be written."""
    assert {code for code, said in CODES.items() if said.safe} == set(SAFE.split())


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_finding_says_what_its_code_says(code):
    """Severity, repair and safety of a finding come from the one table, and there is advice."""
    found = Finding(code=code, path="a")
    said = CODES[code]
    assert (found.severity, found.repair, found.safe) == (said.severity, said.repair, said.safe)
    assert said.repair.strip()


@given(FINDINGS, st.randoms())
def test_the_worst_comes_first_whatever_the_order_was(findings, random):
    """Errors stand before warnings before notes, one code together, its paths in order."""
    shuffled = list(findings)
    random.shuffle(shuffled)
    ordered = worst_first(shuffled)
    assert ordered == worst_first(findings)
    assert sorted(ordered) == sorted(findings)
    severities = "".join(found.severity for found in ordered)
    assert severities == "".join(sorted(severities, key="EWI".index))
    groups = [code for code, _ in groupby(ordered, key=lambda found: found.code)]
    assert len(groups) == len(set(groups))
    for code in groups:
        paths = [found.path for found in ordered if found.code == code]
        assert paths == sorted(paths)


@given(FINDINGS)
def test_notes_never_spoil_clean_and_all_else_does(findings):
    """A store is clean if nothing but notes is found."""
    assert is_clean(findings) == all(found.severity == "I" for found in findings)


def test_an_accepted_warning_is_clean_for_its_path_only():
    """Accepting a warning for a file says nothing about another file or another code."""
    accepted = {"empty": ("chunked/a.md",)}
    assert is_clean([Finding(code="empty", path="chunked/a.md")], accepted)
    assert not is_clean([Finding(code="empty", path="chunked/b.md")], accepted)
    assert not is_clean([Finding(code="symlink", path="chunked/a.md")], accepted)


def test_an_error_cannot_be_accepted():
    """Accepting an error in the settings does not make a store clean."""
    finding = Finding(code="modified", path="chunked/a.md")
    assert not is_clean([finding], {"modified": ("chunked/a.md",)})
