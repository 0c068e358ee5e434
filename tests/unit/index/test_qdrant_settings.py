"""What the settings of Qdrant may say, and how what they may not say is refused."""

import re

import pytest

from filestore.index import open_backend
from filestore.index.backend import BackendChoice, BackendKeysMissing, BackendSettingsWrong
from tests.advice import advised, all_words

SECRET = "s3cr3t"


def opened(environment=None, **options):
    return open_backend(
        BackendChoice(kind="qdrant", options=options, folder="/side", environment=environment or {})
    )


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"path": "rows"}, "/side/rows (collection filestore)"),
        ({"path": "/far", "collection": "a-B_1"}, "/far (collection a-B_1)"),
        ({"path": "rows", "engine": "client"}, "/side/rows (collection filestore)"),
        ({"url": "http://localhost"}, "Qdrant at http://localhost:6333 (collection filestore)"),
        ({"url": "http://h:80"}, "Qdrant at http://h:80 (collection filestore)"),
        ({"url": "https://q.example.org:443/p/", "shards": 3, "replication": 2, "timeout_s": 5},
         "Qdrant at https://q.example.org:443/p (collection filestore)"),
    ],
)  # fmt: skip
def test_what_may_be_said(options, address) -> None:
    """Nothing is connected; the address says where it would be."""
    assert opened(**options).address() == address


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://h", "path": "rows"}, "both url and path"),
        ({"path": "rows", "shards": 2}, "`shards` belongs to a server"),
        ({"path": "rows", "replication": 2}, "`replication` belongs to a server"),
        ({"path": "rows", "timeout_s": 2}, "`timeout_s` belongs to a server"),
        ({"path": "rows", "engine": "edge"}, "backend set qdrant path=rows-client"),
        ({"path": "a b", "engine": "edge", "collection": "c"}, "'path=a b-client' collection=c"),
        ({"path": "rows\0"}, "holds a NUL"),
        ({"path": "rows", "metadata_whitelist": [1]}, "list of texts"),
        ({"url": "http://h", "timeout_s": 0}, "from 1 to 3,600"),
        ({"url": "http://h", "shards": 10**9}, "from 1 to 4,096"),
        ({"url": "http://h", "shards": True}, "whole number"),
        ({"url": "ftp://h"}, "not an address"),
        ({"url": "h:6333"}, "not an address"),
        ({"url": "http://h:6333//evil.example:99/x"}, "not an address"),
        ({"url": "http://h/a/../b"}, "not an address"),
        ({"url": "http://h:99999"}, "not an address"),
        ({"url": f"http://me:{SECRET}@h"}, "not an address"),
        ({"url": f"http://h/?api-key={SECRET}"}, "not an address"),
        ({"url": f"http://h/\n{SECRET}"}, "not an address"),
        ({"url": "http://h", "api_key": SECRET}, "hold a key"),
        ({"path": "rows", "colection": "x"}, "collection"),
    ],
)
def test_what_may_not_be_said_is_refused_plainly(options, words) -> None:
    """With what to change; a secret is never repeated."""
    with pytest.raises(BackendSettingsWrong) as caught:
        opened(**options)
    told = f"{caught.value.message} {caught.value.remedy}"
    assert words in told
    assert advised(caught.value) or re.search(": (change it|its keys are) ", told)
    assert SECRET not in told


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "../up", "a\\b", "a.b", "a b", "a\0b", "a\n", "-a", "ä", "x" * 300,
     "a?b", "a%2Fb", "\u202ea"],
)  # fmt: skip
def test_names_with_tricks_are_no_collections(name) -> None:
    """Before anything is made or asked, and the message is fit for a terminal."""
    for place in ({"path": "rows"}, {"url": "http://h"}):
        with pytest.raises(BackendSettingsWrong, match="collection") as caught:
            opened(collection=name, **place)
        assert caught.value.message.isprintable()
        assert len(caught.value.message) < 400


def test_neither_server_nor_folder_names_both_ways() -> None:
    """With commands that set one."""
    with pytest.raises(BackendKeysMissing, match=r"url.*path") as caught:
        opened(collection="x")
    assert "url=http" in all_words(caught.value)
    assert "path=" in all_words(caught.value)


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        ("http://q.example.org", SECRET, "not sent to http://q.example.org:6333"),
        ("https://q.example.org", f"{SECRET} x", "a character that no key has"),
        ("https://q.example.org", f"{SECRET}ä", "a character that no key has"),
    ],
)
def test_a_key_that_would_leak_or_is_none_is_not_sent(url, key, words) -> None:
    """The key comes from the environment alone, and stands in no message."""
    with pytest.raises(BackendSettingsWrong, match=words) as caught:
        opened({"QDRANT_API_KEY": key}, url=url)
    assert SECRET not in f"{caught.value.message} {caught.value.remedy}"
