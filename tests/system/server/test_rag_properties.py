"""What users of one index a folder were promised, tried with made-up documents and histories."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

import filestore
from filestore import FilestoreError
from filestore.server.collection import SentDocument, documents_in
from filestore.server.collections import Collections

EXAMPLES = 25
TREES = ("oak", "elm", "ash", "fir", "yew")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
SCALAR = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT
METADATA = st.dictionaries(
    st.sampled_from(
        ["title", "source", "kind", "id", "document_id", "document_metadata", "a b", "é"]
    )
    | TEXT.filter(lambda key: len(key) < 40),
    SCALAR | st.lists(SCALAR, max_size=3) | st.dictionaries(TEXT, SCALAR, max_size=2),
    max_size=4,
)
DOCUMENT = st.fixed_dictionaries(
    {"text": TEXT.filter(str.strip), "metadata": METADATA}, optional={"id": TEXT}
)
DOCUMENTS = st.lists(DOCUMENT, min_size=1, max_size=6, unique_by=lambda one: one.get("id", id(one)))


def opened(path: Path | str) -> Collections:
    """A folder of collections that may be written."""
    return Collections(str(path), writes=True, embedder="builtin", readers=1)


def everything(collections: Collections, name: str, many: int) -> dict[str, Any]:
    """Id to text and metadata of all documents of a collection, as it is asked for them."""
    found = collections.query(name, "documents", k=max(many, 1), mode="vector")["results"]
    return {one["id"]: (one["text"], one["metadata"]) for one in found}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DOCUMENTS)
@example([{"text": "a", "metadata": {}}, {"text": "a", "metadata": {"title": "b"}}])
def test_what_was_indexed_is_there_after_a_restart(documents: list[dict[str, Any]]) -> None:
    """Save and load: the same ids, texts and metadata, the same answers, all files."""
    try:
        wanted = documents_in(documents)
    except FilestoreError:
        return  # An id that is the place of another document.
    with tempfile.TemporaryDirectory() as place:
        with opened(place) as collections:
            try:
                told = collections.index("kb", wanted)
            except filestore.UsageError:
                return  # Metadata that no frontmatter can hold.
            before = collections.query("kb", wanted[0].text, k=6)
        kb = Path(place, "kb")
        assert {one.name for one in kb.iterdir()} >= {
            "filestore.toml",
            "collection.json",
            "chunked",
            ".sidecar",
        }
        assert len(list((kb / "chunked" / "documents").iterdir())) == len(wanted)
        with opened(place) as collections:
            status = collections.status("kb")
            assert collections.query("kb", wanted[0].text, k=6) == before
            found = everything(collections, "kb", len(wanted))
            assert found == {one.id: (one.text, dict(one.metadata)) for one in wanted}
        assert status["has_index"]
        assert status["clean"]
        assert status["document_count"] == told["document_count"] == len(wanted)
        with filestore.open(kb) as store:
            assert store.verify(level="full").clean


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two collections, to be copied."""
    place = tmp_path_factory.mktemp("sound")
    with opened(place) as collections:
        for name in ("sound", "damaged"):
            collections.index(name, documents_in([f"{tree} in {name}" for tree in TREES]))
    return place


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.data())
def test_a_damaged_collection_is_skipped(sound: Path, data: st.DataObject) -> None:
    """Whatever of it is gone, cut off or written over: the other one loads, and it is repaired."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(sound, place, dirs_exist_ok=True)
        files = sorted(one for one in Path(place, "damaged").rglob("*") if one.is_file())
        for file in data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=3)):
            _damage(file, data)
        with opened(place) as collections:
            listed = collections.listed()["rags"]
            assert [one["rag_name"] for one in listed] in (["damaged", "sound"], ["sound"])
            assert listed[-1]["index_status"]["clean"]
            for name in ("sound", "damaged"):
                try:
                    found = everything(collections, name, len(TREES))
                except FilestoreError:
                    assert name == "damaged"
                else:
                    assert name == "damaged" or found["0"] == ("oak in sound", {})
            try:
                told = collections.index("damaged", documents_in(TREES), overwrite=True)
            except filestore.RefusedError:
                # Without its record, or its settings, it is not known as one of these.
                return
            assert told["document_count"] == len(TREES)
            assert everything(collections, "damaged", len(TREES))["0"] == ("oak", {})


def _damage(file: Path, data: st.DataObject) -> None:
    how = data.draw(st.sampled_from(["gone", "cut", "written over", "folder"]))
    content = file.read_bytes() if file.is_file() else b""
    if not file.is_file():
        return
    at = data.draw(st.integers(0, max(0, len(content) - 1)))
    if how in ("gone", "folder"):
        file.unlink()
        if how == "folder":
            file.mkdir()
    elif how == "cut":
        file.write_bytes(content[:at])
    else:
        file.write_bytes(content[:at] + data.draw(st.binary(max_size=50)) + content[at + 50 :])


class Histories(RuleBasedStateMachine):
    """Collections made, replaced, deleted, damaged, asked, served anew, against a plain table."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.mkdtemp()
        self.collections = opened(self.place)
        self.known: dict[str, list[SentDocument]] = {}
        self.damaged: set[str] = set()

    def teardown(self) -> None:
        """Leave nothing."""
        self.collections.close()
        shutil.rmtree(self.place)

    @rule(target=names, name=st.sampled_from(["a", "b", "Gebäude", "list", "index"]))
    def name(self, name: str) -> str:
        return name

    @rule(name=names, texts=st.lists(st.sampled_from(TREES), min_size=1))
    def index(self, name: str, texts: list[str]) -> None:
        documents = documents_in([f"{text} number {at}" for at, text in enumerate(texts)])
        told = self.collections.index(name, documents)
        assert told["document_count"] == len(documents)
        self.known[name] = documents
        self.damaged.discard(name)

    @rule(name=names, bad=st.sampled_from([" ", "x\ud800"]))
    def fail(self, name: str, bad: str) -> None:
        """A save that fails leaves what was there."""
        broken = [
            SentDocument(id="0", text="fine", metadata={}),
            SentDocument(id="1", text=bad, metadata={}),
        ]
        with pytest.raises(FilestoreError):
            self.collections.index(name, broken)

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name not in self.known:
            with pytest.raises(LookupError):
                self.collections.delete(name)
            return
        assert self.collections.delete(name)["deleted"]
        assert not Path(self.place, name).exists()
        del self.known[name]
        self.damaged.discard(name)

    @rule(name=names, part=st.sampled_from(["filestore.toml", ".sidecar/catalog.sqlite"]))
    def damage(self, name: str, part: str) -> None:
        if name in self.known and name not in self.damaged:
            self.collections.close()
            Path(self.place, name, part).write_bytes(b"\0no such thing")
            self.damaged.add(name)

    @rule()
    def restart(self) -> None:
        self.collections.close()
        self.collections = opened(self.place)

    @invariant()
    def each_is_as_it_was_left(self) -> None:
        """Those that are sound answer with their own documents; of a damaged one it is said."""
        assert [one for one in Path(self.place).iterdir() if one.name.startswith(".")] == []
        found = {one["rag_name"]: one["index_status"] for one in self.collections.listed()["rags"]}
        assert set(found) == set(self.known)
        for name, documents in self.known.items():
            if name in self.damaged:
                assert not found[name]["has_index"]
                assert found[name]["error"]
                continue
            assert found[name]["has_index"]
            assert found[name]["clean"]
            assert found[name]["document_count"] == len(documents)
            assert found[name]["total_size_bytes"] > 0
            wanted = {one.id: (one.text, {}) for one in documents}
            assert everything(self.collections, name, len(documents)) == wanted


Histories.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestHistories = Histories.TestCase
