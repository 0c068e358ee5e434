"""Agents: chunks and documents under addresses, listed in pages; no address leads elsewhere."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

import filestore
from filestore.server.agents import tools
from filestore.server.stores import Access, Stores
from tests.system.server.conftest import RENT
from tests.system.server.test_agents import with_client

SECRET = "nobody is to read this"


def read(stores: Stores, uri: str) -> Any:
    """What an address stands for."""
    return with_client(stores, lambda client: client.read_resource(uri)).contents[0]


def listed(stores: Stores) -> list[str]:
    """Every address, page after page."""

    async def all_pages(client: Any) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            found += [one.uri for one in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                return found
            assert len(page.resources) == tools.PAGE

    return with_client(stores, all_pages)


def test_a_hit_is_read_by_its_path(stores: Stores) -> None:
    """As the template says."""
    (chunk, document) = with_client(
        stores, lambda client: client.list_resource_templates()
    ).resource_templates
    found = read(stores, chunk.uri_template.replace("{+path}", "chunked/notes/rent.md"))
    assert (found.text, found.mime_type) == (RENT, "text/markdown")
    assert found.meta == {"path": "chunked/notes/rent.md", "freshness": "fresh"}
    whole = read(stores, document.uri_template.replace("{+path}", "notes"))
    assert RENT.strip() in whole.text
    assert whole.meta["chunks"] == 2


def test_documents_are_listed_in_pages(tmp_path: Path) -> None:
    """Each once, whatever its name; each can be read."""
    names = [f"n{number:03}" for number in range(230)] + ["Ü ä%2f?#", "日本 語", "a&b=c"]
    with filestore.create(tmp_path / "a", embedder="builtin") as store:
        for name in names:
            folder = Path(store.root, "chunked", name)
            folder.mkdir(parents=True)
            (folder / "chunk1.md").write_text(f"Text of {name}.\n")
        store.sync()
    vault = tmp_path / "Ünd b"
    vault.mkdir()
    for name in ["eins", "zwei"]:
        (vault / f"{name} ß.md").write_text(f"# {name}\n\nText of {name}.\n")
    with filestore.create(vault, layout="in-place", embedder="builtin") as store:
        store.sync()
    with Stores.open([str(tmp_path / "a"), str(vault)], Access()) as stores:
        found = listed(stores)
        assert len(found) == len(set(found)) == len(names) + 2
        for name in names[-3:]:
            assert f"Text of {name}." in read(stores, tools.address_of("a", "document", name)).text
        assert "Text of eins." in read(stores, found[-2]).text
        section = tools.address_of("Ünd b", "chunk", "eins ß.md:3")
        assert "Text of eins." in read(stores, section).text


HOSTILE = [
    "filestore://kb/chunk/../../secret.md",
    "filestore://kb/chunk/%2e%2e/%2e%2e/secret.md",
    "filestore://kb/chunk/..%2f..%2fsecret.md",
    "filestore://kb/chunk/%252e%252e/secret.md",
    "filestore://kb/chunk//etc/passwd",
    "filestore://kb/chunk/%2fetc%2fpasswd",
    "filestore://kb/chunk/chunked/link.md",
    "filestore://kb/chunk/chunked/notes/%00",
    "filestore://kb/chunk/filestore.toml",
    "filestore://kb/chunk/",
    "filestore://kb/document/..",
    "filestore://kb/document/../../secret.md",
    "filestore://kb/other/notes",
    "filestore://other/chunk/chunked/notes/rent.md",
    "filestore://kb",
    "file:///etc/passwd",
    "",
    "filestore://kb/chunk/" + "a/" * 9_000,
]


@pytest.mark.parametrize("uri", HOSTILE)
def test_no_address_leaves_the_store(stores: Stores, place: Path, uri: str) -> None:
    """Neither by dots nor escapes nor links."""
    (place.parent / "secret.md").write_text(SECRET)
    (place / "chunked" / "link.md").symlink_to(place.parent / "secret.md")

    async def ask(client: Any) -> str:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
        return refused.value.message

    said = with_client(stores, ask)
    assert SECRET not in said
    assert "Traceback" not in said


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.text(max_size=60), cursor=st.text(max_size=60))
def test_anything_is_answered_or_refused(stores: Stores, path: str, cursor: str) -> None:
    """In words of the protocol."""

    errors: list[MCPError] = []

    async def ask(client: Any) -> None:
        for question in (
            lambda: client.read_resource(f"filestore://kb/chunk/{path}"),
            lambda: client.read_resource(f"filestore://kb/document/{path}"),
            lambda: client.list_resources(cursor=cursor),
        ):
            try:
                await question()
            except MCPError as error:
                errors.append(error)

    with_client(stores, ask)
    assert not [one for one in errors if "Error" in one.message or "Traceback" in one.message]
