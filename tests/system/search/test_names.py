"""A document is found by its names and by what is said of it, in every layout."""

from typing import Any

import orjson
import pytest

NOTES = {
    "Clients/Fabrikam/invoice.md": "Paid in June.\n",
    "Clients/Contoso/invoice.md": "Paid in May.\n",
    "meeting_notes-2024Q3.md": "We agreed on the colour.\n",
    "titled.md": "---\ntitle: Quarterly zeppelin report\n---\nNumbers went up.\n",
    "alias.md": "---\naliases: [Lord Kelvin]\n---\nA physicist.\n",
    "tagged.md": "---\ntags: [craft/xylography]\nauthor: Anna Blixen\n---\nWood blocks.\n",
    "parts.md": "Words before.\n\n## Kestrel\n\nWords below.\n",
    "linking.md": "See [[Quarterly zeppelin report]] for all of it.\n",
}


@pytest.fixture(params=["tree", "flat", "in-place"])
def named(request: pytest.FixtureRequest, new_workspace: Any) -> Any:
    """A store of notes, in each layout."""
    work = new_workspace(init=False)
    for name, text in NOTES.items():
        work.write(name, text)
    if request.param == "in-place":
        work("init", "--in-place", ".")
    else:
        work("init", ".", "--layout", request.param)
        work("add", "Clients", *(name for name in NOTES if "/" not in name))
    return work


def _first(work: Any, query: str) -> str:
    hits = work.json("search", query, "--mode", "keyword", code=None)["hits"]
    return str(hits[0]["source"]) if hits else ""


def test_names_and_properties_find_a_document(named: Any) -> None:
    """A note of a name comes before those that only mention it."""
    for query, wanted in (
        ("fabrikam invoice", "Clients/Fabrikam/invoice.md"),
        ("Clients/Contoso/invoice.md", "Clients/Contoso/invoice.md"),
        ("meeting notes 2024Q3", "meeting_notes-2024Q3.md"),
        ("quarterly zeppelin report", "titled.md"),
        ("zeppelin", "titled.md"),
        ("Lord Kelvin", "alias.md"),
        ("xylography", "tagged.md"),
        ("craft", "tagged.md"),
        ("Anna Blixen", "tagged.md"),
        ("author", "tagged.md"),
    ):
        assert _first(named, query) == wanted, query
    hit = named.json("search", "kestrel", "--mode", "keyword")["hits"][0]
    assert hit["title"] == "parts"
    named.assert_settled()


@pytest.mark.parametrize("embedder", ["builtin", "minilm"])
def test_a_note_comes_before_those_that_mention_it(new_workspace: Any, embedder: str) -> None:
    """By the name of its file, however often and near they mention it, however many are wanted."""
    work = new_workspace(init=False)
    work.write("Zanzibar trip.md", "We fly in May.\n\n## Costs\n\nAbout 900 each.\n")
    work.write("Other note.md", "See [[Zanzibar trip]]. Zanzibar is warm, Zanzibar is far.\n")
    work.write("costs/Zanzibar trip costs.md", "Flights and a room.\n")
    work.write("note.md", "Call `app.note.create` with a title.\n")
    work.write("api.md", "# Commands\n\n`app.note.create` makes one.\n")
    work("init", "--in-place", "--embedder", embedder)
    for mode in ("hybrid", "keyword"):
        for query, first in (
            ("Zanzibar trip", ["Zanzibar trip.md", "costs/Zanzibar trip costs.md"]),
            ("zanzibar", ["Zanzibar trip.md", "costs/Zanzibar trip costs.md"]),
            ("the trip to Zanzibar", []),
        ):
            hits = work.json("search", query, "--mode", mode)["hits"]
            paths = [hit["path"] for hit in hits]
            assert paths[: len(first)] == first, (mode, query)
            assert "Other note.md" in paths
            alone = work.json("search", query, "--mode", mode, "-k", "1")["hits"]
            assert alone[0]["path"] == paths[0]
        # A part of an identifier is no name.
        hits = work.json("search", "app.note.create", "--mode", mode)["hits"]
        assert {hit["path"] for hit in hits[:2]} == {"note.md", "api.md"}


def test_what_is_said_now_is_what_finds(named: Any) -> None:
    """A changed property or name is followed, and nothing is embedded again."""
    if "in-place" in (named.folder / "filestore.toml").read_text():
        named.write("tagged.md", NOTES["tagged.md"].replace("Blixen", "Karenina"))
        (named.folder / "alias.md").rename(named.folder / "walrus.md")
        assert named.sync()["embedded"] == 0
        assert _first(named, "walrus") == "walrus.md"
    else:
        for record in (named.folder / "chunked").rglob("*.json"):
            said = orjson.loads(record.read_bytes())
            if said["source"] == "tagged.md":
                said["documents"][0]["metadata"]["author"] = "Anna Karenina"
                record.write_bytes(orjson.dumps(said))
        assert named.sync()["embedded"] == 0
    assert _first(named, "Blixen") == ""
    assert _first(named, "Karenina") == "tagged.md"
    named.assert_settled()
    asked = ("Karenina", "paid invoice", "zeppelin report", "words")
    before = [named.json("search", one, "--mode", "keyword", code=None)["hits"] for one in asked]
    # The same tree gives the same answers, whatever it was before.
    for sidecar in (".sidecar", ".filestore"):
        for path in (named.folder / sidecar).glob("catalog.sqlite*"):
            path.unlink()
    named.sync()
    for one, hits in zip(asked, before, strict=True):
        now = named.json("search", one, "--mode", "keyword", code=None)["hits"]
        assert [(hit["path"], hit["score"]) for hit in now] == [
            (hit["path"], hit["score"]) for hit in hits
        ]


def test_a_record_that_goes_takes_its_names_along(workspace: Any) -> None:
    """Whichever of record and chunk file is seen first."""
    workspace.write("tagged.md", NOTES["tagged.md"])
    workspace("add", "tagged.md")
    record = workspace.chunked / "tagged.md" / "meta.json"
    kept = record.read_bytes()
    record.unlink()
    workspace("sync", code=None)
    assert _first(workspace, "Blixen") == ""
    record.write_bytes(kept)
    workspace.sync()
    assert _first(workspace, "Blixen").endswith("tagged.md")
    own = workspace.chunked / "tagged.md" / "chunk1.md"
    own.write_text(own.read_text().replace("---\norigin", "---\nplace: Reykjavik\norigin"))
    assert workspace.sync()["embedded"] == 0
    assert _first(workspace, "Reykjavik").endswith("tagged.md")
    workspace.assert_settled()
