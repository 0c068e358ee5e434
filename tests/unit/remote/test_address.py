"""What an address is remembered as: one text for one address, and another for any other."""

import pytest

from filestore.config.user_config import Machine
from filestore.embed._openai import EMBEDDING
from filestore.generate import GENERATION
from filestore.remote import EndpointError, EndpointUntrusted
from filestore.remote.address import Use, check_trusted, parse_address, trusted_address
from tests.advice import all_words

ROOT = "/a/store"


def trusts(allowed: str, endpoint: str, use: Use = EMBEDDING) -> bool:
    machine = Machine(trusted={ROOT: (allowed,)})
    try:
        trusted_address(endpoint, use, machine=machine, root=ROOT)
    except EndpointUntrusted:
        return False
    return True


@pytest.mark.parametrize(
    ("endpoint", "remembered"),
    [
        ("http://h:80/v1", "http://h/v1"),
        ("https://h:443/v1", "https://h/v1"),
        ("https://h:80/v1", "https://h:80/v1"),
        ("http://h:443", "http://h:443"),
        ("HTTP://H:0080/v1//", "http://h/v1"),
        ("http://h/v1/embeddings", "http://h/v1"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]"),
        ("http://h./v1", "http://h./v1"),
        ("http://h/V1/%76", "http://h/V1/%76"),
    ],
)
def test_an_address_is_remembered_as_what_is_connected_to(endpoint: str, remembered: str) -> None:
    """Whatever the spelling: what was allowed in one is allowed in the other."""
    address = parse_address(endpoint, EMBEDDING)
    assert str(address) == remembered
    assert trusts(remembered, endpoint)
    assert address.url.startswith(f"{address.scheme}://{address.host}:{address.port}")
    if not endpoint.endswith(EMBEDDING.path):
        assert trusts(endpoint, remembered)


@pytest.mark.parametrize(
    ("allowed", "endpoint"),
    [
        ("http://h/v1", "http://h:8080/v1"),
        ("http://h/v1", "https://h/v1"),
        ("http://h:443/v1", "https://h/v1"),
        ("http://h/v1", "http://h./v1"),
        ("http://h/v1", "http://h/%761"),
        ("http://[::1]/v1", "http://[0:0::1]/v1"),
        # The path that is asked for is left out once: with it twice, it is another address.
        ("http://h/embeddings", "http://h/embeddings"),
        ("sources", "http://sources"),
    ],
)
def test_another_address_is_not_allowed_with_it(allowed: str, endpoint: str) -> None:
    """Where it is not sure to be the same, it is asked about."""
    assert not trusts(allowed, endpoint)


def test_an_address_is_the_same_for_every_use() -> None:
    """One service may embed and write; it is allowed once."""
    assert trusts("http://h/v1", "http://h/v1/chat/completions", GENERATION)


@pytest.mark.parametrize(
    "path", ["//evil.example", "//evil.example:1/v1", "/v1//more", "/./v1", "/v1/..", "/../v1"]
)
def test_a_path_that_may_lead_elsewhere_is_no_path(path: str) -> None:
    """To some clients it names another host, or another path than it shows."""
    with pytest.raises(EndpointError, match="not an address"):
        parse_address(f"http://h{path}", EMBEDDING)


def test_what_is_no_endpoint_is_allowed_letter_by_letter() -> None:
    """As the address of a database is, whatever else this store is allowed."""
    machine = Machine(trusted={ROOT: ("http://h", "Database at h"), "/another": ("Database at i",)})
    check_trusted("Database at h", machine=machine, root=ROOT, would="ask")
    for other in ("Database at h ", "database at h", "Database at i"):
        with pytest.raises(EndpointUntrusted, match=f"would ask {other}, which") as caught:
            check_trusted(other, machine=machine, root=ROOT, would="ask")
        assert "filestore trust" in all_words(caught.value)
