"""One suite for every backend that keeps vectors; the lines of JSON are the judge.

A new member is an entry in `MEMBERS`: what makes an empty place for one, and its options.
"""

import inspect
import os
import traceback
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from filestore.config.settings import BACKENDS
from filestore.core.errors import FilestoreError
from filestore.index import VectorIndex, open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendForeign,
    BackendKeysMissing,
    BackendSettingsWrong,
    BackendUnreachable,
    DocState,
    EmbedConfig,
    IndexBackend,
    Item,
    Plan,
    Stamp,
    State,
    WrongDimension,
    digest,
    plan,
    satisfies,
    whitelisted,
)
from tests.advice import advised, all_words
from tests.vectors import unit_rows

DIMENSION: Final = 24
EMBED: Final = EmbedConfig(fingerprint="a model/1", dimension=DIMENSION)
NUMBERS: Final = count()
SECRET: Final = "se'cr3t"


class Member(Struct, frozen=True, kw_only=True):
    """A place where one backend keeps its vectors."""

    kind: str
    folder: Path
    options: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    most: int = 1_003
    """Items that it is given at once; few where each is a transaction of its own."""

    def backend(self, **more: object) -> IndexBackend:
        """The backend there, not loaded."""
        choice = BackendChoice(
            kind=self.kind,
            options={**self.options, **more},
            folder=str(self.folder),
            environment=self.environment,
        )
        return open_backend(choice)

    def opened(self, **more: object) -> IndexBackend:
        """The backend there, loaded, for vectors of the usual length."""
        backend = self.backend(**more)
        backend.load()
        backend.set_embed_config(EMBED)
        return backend


def local_place(folder: Path, _: pytest.FixtureRequest) -> Member:
    return Member(kind="local", folder=folder)


def faiss_place(folder: Path, _: pytest.FixtureRequest) -> Member:
    return Member(kind="faiss", folder=folder, options={"path": "own/vectors.faiss"})


def pgvector_place(folder: Path, request: pytest.FixtureRequest) -> Member:
    table = f"t{next(NUMBERS)}"
    dsn = request.getfixturevalue("database").dsn
    return Member(kind="pgvector", folder=folder, options={"dsn": dsn, "table": table})


def folder_place(folder: Path, _: pytest.FixtureRequest) -> Member:
    return Member(kind="qdrant", folder=folder, options={"path": "rows"}, most=90)


QDRANT_URL: Final = os.environ.get("QDRANT_URL", "")
"""A server that may be written to: each test makes a collection and deletes it."""


def server_place(folder: Path, request: pytest.FixtureRequest) -> Member:
    if not QDRANT_URL:
        pytest.skip("QDRANT_URL names no server")
    name = f"filestore-test-{uuid4().hex}"
    key = os.environ.get("QDRANT_API_KEY", "")
    member = Member(
        kind="qdrant",
        folder=folder,
        options={"url": QDRANT_URL, "collection": name},
        environment={"QDRANT_API_KEY": key},
    )
    request.addfinalizer(member.backend().clear)
    return member


MEMBERS: Final[dict[str, Callable[[Path, pytest.FixtureRequest], Member]]] = {
    "local": local_place,
    "faiss": faiss_place,
    "pgvector": pgvector_place,
    "qdrant-folder": folder_place,
    "qdrant-server": server_place,
}
"""By the kind that is tested; the place is empty, and nobody else's."""

NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "local": (),
    "faiss": ("path",),
    "pgvector": ("dsn",),
    "qdrant": ("url", "path"),
}
"""The keys without which a kind cannot be opened."""

NOWHERE: Final[dict[str, dict[str, object]]] = {
    "local": {"path": "a file/index.jsonl"},
    "faiss": {"path": "a file/vectors.faiss"},
    "pgvector": {"dsn": f"postgresql://me:{SECRET}@127.0.0.1:1/db"},
    "qdrant": {"url": "http://127.0.0.1:1", "path": ""},
}
"""Options with which nothing can be reached, by kind."""


@pytest.fixture(params=MEMBERS)
def member(request: pytest.FixtureRequest, tmp_path: Path) -> Member:
    return MEMBERS[request.param](tmp_path, request)


def items(many: int, seed: int = 0, *, first: int = 1, content: str = "h", **more: Any):
    """Some with ids in a row, each a document of its own."""
    return [
        Item(id=key, vector=row, doc_id=str(key), content_hash=f"{content}{key}", **more)
        for key, row in enumerate(unit_rows(many, seed), start=first)
    ]


def ids(*values: int):
    return np.array(values, dtype=np.int64)


def found(backend: IndexBackend, query: Any, top_k: int | None = None, **more: Any) -> list[int]:
    return [hit.id for hit in backend.query(query, top_k=top_k, **more)]


def assert_nearest(hits: Any, some: list[Item], query: Any) -> None:
    """Hits are the nearest of some items, in order, with the inner product as score."""
    scores = {one.id: float(one.vector @ query) for one in some}
    assert len(hits) == len({hit.id for hit in hits})
    assert [hit.score for hit in hits] == pytest.approx([scores[hit.id] for hit in hits], abs=1e-5)
    best = sorted(scores.values(), reverse=True)[: len(hits)]
    assert [hit.score for hit in hits] == pytest.approx(best, abs=1e-5)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))


def test_the_contract_keeps_its_names() -> None:
    """Methods and arguments of the contract are as programs that use a backend know them."""
    arguments = {
        "load": [],
        "save": ["owner", "generation"],
        "set_embed_config": ["embed"],
        "upsert": ["items", "skip_existing"],
        "delete": ["ids"],
        "query": ["vector", "top_k", "where", "allowed"],
    }
    found = {
        name: list(inspect.signature(getattr(IndexBackend, name)).parameters)[1:]
        for name in arguments
    }
    assert found == arguments
    assert inspect.signature(IndexBackend.upsert).parameters["skip_existing"].default is True
    assert inspect.signature(IndexBackend.query).parameters["top_k"].default is None
    assert all(isinstance(getattr(IndexBackend, name), property) for name in ("dim", "state"))
    assert set(State.__struct_fields__) >= {"docs"}
    assert set(DocState.__struct_fields__) >= {"content_hash", "chunk_ids"}
    assert set(BACKENDS) == {"local", "faiss", "qdrant", "pgvector"}


def test_a_new_place_is_empty(member: Member) -> None:
    """Nothing is held, found or stamped where nobody wrote yet."""
    with member.backend() as backend:
        backend.load()
        assert backend.dim is None
        assert backend.stamp() is None
        assert backend.state.docs == {}
        assert backend.digests() == {}
        assert backend.delete([1, 2]) == 0
        assert backend.query(unit_rows(1)[0], top_k=3) == []


def test_what_is_upserted_is_found(member: Member) -> None:
    """The nearest come first, with their inner product, text and metadata."""
    some = items(40, text="a body", metadata={"files": [{"tags": ["x"]}], "more": 1})
    query = unit_rows(1, seed=5)[0]
    with member.opened() as backend:
        assert backend.dim == DIMENSION
        assert backend.upsert(some) == 40
        hits = backend.query(query, top_k=7)
        assert len(hits) == 7
        assert_nearest(hits, some, query)
        assert hits[0].text == "a body"
        assert hits[0].metadata == {"files": [{"tags": ["x"]}], "more": 1}
        assert_nearest(backend.query(query), some, query)
        assert len(backend.query(query)) == len(backend.query(query, top_k=900)) == 40
        assert backend.query(query, top_k=0) == []


def test_an_upsert_counts_what_it_wrote(member: Member) -> None:
    """What is there with the same hash is left alone, unless that is not wanted."""
    some = items(10)
    changed = replace(some[3], content_hash="other", vector=unit_rows(1, seed=8)[0])
    with member.opened() as backend:
        assert backend.upsert(some) == 10
        assert backend.upsert(some) == 0
        assert backend.upsert([*some[:3], changed]) == 1
        assert found(backend, changed.vector, 1) == [4]
        assert backend.upsert(some[:5], skip_existing=False) == 5
        assert found(backend, some[3].vector, 1) == [4]
        assert backend.upsert([]) == 0
        assert len(backend.digests()) == 10


def test_more_than_a_batch_is_taken(member: Member) -> None:
    """An upsert takes any number, from anything that gives them."""
    many = min(member.backend().capabilities.batch + 3, member.most)
    with member.opened() as backend:
        assert backend.upsert(iter(items(many))) == many
        assert backend.delete(range(1, many)) == many - 1
        assert list(backend.digests()) == [many]


def test_a_delete_counts_what_was_held(member: Member) -> None:
    """Unknown ids are passed over, and so is a second time."""
    with member.opened() as backend:
        backend.upsert(items(10))
        assert backend.delete([2, 3, 77]) == 2
        assert backend.delete([2, 3, 77]) == 0
        assert backend.delete([]) == 0
        assert sorted(found(backend, unit_rows(1)[0])) == [1, 4, 5, 6, 7, 8, 9, 10]


def test_ids_have_64_bits_with_sign(member: Member) -> None:
    """The smallest and the largest id come back as they are."""
    keys = [-(2**63), -1, 0, 2**63 - 1]
    row = unit_rows(1)[0]
    with member.opened() as backend:
        backend.upsert([Item(id=key, vector=row, doc_id="d", content_hash="h") for key in keys])
        assert found(backend, row) == keys
        assert sorted(backend.digests()) == keys
        assert backend.delete(keys) == 4


def test_equal_scores_come_by_id(member: Member) -> None:
    """Among equal vectors the smaller id comes first, also where the limit cuts through them."""
    row = unit_rows(1)[0]
    same = [Item(id=key, vector=row, doc_id=str(key), content_hash="h") for key in range(90, 0, -1)]
    with member.opened() as backend:
        backend.upsert(same)
        assert found(backend, row, 5) == [1, 2, 3, 4, 5]
        assert found(backend, row) == list(range(1, 91))


def test_vectors_have_one_length(member: Member) -> None:
    """Another length is refused with both numbers, in items, queries and models."""
    with member.opened() as backend:
        backend.upsert(items(3))
        longer = unit_rows(1, dimension=DIMENSION + 1)[0]
        for attempt in (
            lambda: backend.upsert([Item(id=9, vector=longer, doc_id="9", content_hash="h")]),
            lambda: backend.query(longer, top_k=1),
            lambda: backend.set_embed_config(replace(EMBED, dimension=DIMENSION + 1)),
        ):
            with pytest.raises(WrongDimension, match=r"24.*25|25.*24"):
                attempt()


def test_what_is_saved_is_there_again(member: Member) -> None:
    """Vectors, what stands beside them, documents and the stamp, for whoever opens it next."""
    some = items(12, text="a body", metadata={"files": [{"tags": ["x"]}]})
    query = unit_rows(1, seed=5)[0]
    with member.opened() as backend:
        backend.upsert(some)
        backend.delete([2])
        backend.save(owner="me", generation=7)
        before = backend.query(query), backend.digests()
    with member.backend() as again:
        again.load()
        assert again.dim == DIMENSION
        assert again.stamp() == Stamp(owner="me", generation=7, embed=EMBED)
        assert (again.query(query), again.digests()) == before
        state = again.state
        assert state.stamp == again.stamp()
        assert state.docs["3"] == DocState(content_hash="h3", chunk_ids=(3,))
        assert sorted(state.docs) == sorted(str(one.id) for one in some if one.id != 2)


def test_what_is_not_saved_is_gone(member: Member) -> None:
    """Or harmless: whoever opens it next sees the stamp of before, and no half of a change."""
    with member.opened() as backend:
        backend.upsert(items(5))
        backend.save(owner="me", generation=1)
    with member.opened() as backend:
        backend.delete([1])
        backend.upsert(items(5, first=6))
    with member.opened() as again:
        assert again.stamp() == Stamp(owner="me", generation=1, embed=EMBED)
        if again.capabilities.atomic:
            assert sorted(again.digests()) == [1, 2, 3, 4, 5]


def test_a_push_that_is_repeated_changes_nothing(member: Member) -> None:
    """Deletes, upserts and stamp, once more after a kill in between: the same as once."""
    with member.opened() as backend:
        backend.upsert(items(5))
        backend.save(owner="me", generation=1)
    states = []
    for _ in range(2):
        with member.opened() as backend:
            backend.delete([1, 2])
            backend.upsert(items(2, seed=3, first=20))
            backend.save(owner="me", generation=2)
            states.append((backend.state, dict(backend.digests())))
    assert states[0] == states[1]


def test_state_groups_chunks_by_document(member: Member) -> None:
    """A document has its chunks in order; one whose chunks disagree has no hash."""
    some = items(5)
    parts = [replace(one, doc_id="a", content_hash="h") for one in some[:3]]
    torn = [replace(some[3], doc_id="b"), replace(some[4], doc_id="b")]
    with member.opened() as backend:
        backend.upsert([*reversed(parts), *torn])
        docs = backend.state.docs
        assert docs["a"] == DocState(content_hash="h", chunk_ids=(1, 2, 3))
        assert docs["b"] == DocState(content_hash="", chunk_ids=(4, 5))


def test_a_plan_brings_it_up_to_date(member: Member) -> None:
    """Gone and changed documents lose their chunks, changed and new ones are sent, others stay."""
    with member.opened() as backend:
        backend.upsert(items(6))
        wanted = {"1": "h1", "2": "h2", "3": "new", "9": "h9"}
        planned = plan(backend.state.docs, wanted)
        assert planned == Plan(delete=(3, 4, 5, 6), upsert=("3", "9"), kept=2)
        assert backend.delete(planned.delete) == 4
        fresh = {one.doc_id: one for one in items(9, seed=2)}
        backend.upsert([replace(fresh[name], content_hash=wanted[name]) for name in planned.upsert])
        assert plan(backend.state.docs, wanted) == Plan(delete=(), upsert=(), kept=4)


def test_digests_are_those_of_the_vectors(member: Member) -> None:
    """Of all or of some, for what is held; a vector that is not as it was sent shows."""
    some = items(30)
    expected = {one.id: digest(one.vector.reshape(1, -1))[0] for one in some}
    with member.opened() as backend:
        backend.upsert(some)
        assert backend.digests() == expected
        assert backend.digests(ids(3, 8, 999)) == {3: expected[3], 8: expected[8]}
        assert backend.digests(ids()) == {}


def test_it_is_read_as_any_index(member: Member) -> None:
    """What searches and verifies a store asks it as it asks an index in memory."""
    some, query = items(12), unit_rows(1, seed=4)[0]
    with member.opened() as backend:
        backend.upsert(some)
        backend.save(owner="me", generation=1)
        index: VectorIndex = backend
        assert len(index) == 12
        assert index.ids().tolist() == list(range(1, 13))
        vectors = np.array([one.vector for one in some])
        vectors[3] = -vectors[3]
        assert index.holds(index.ids(), vectors).tolist() == [key != 3 for key in range(12)]
        nearest = [(hit.id, hit.score) for hit in backend.query(query, top_k=5)]
        assert index.search(query, 5) == nearest
        assert index.search(query, 5, allowed=ids(2, 7)) == [
            one for one in index.search(query, 12) if one[0] in (2, 7)
        ]
        assert index.search(query, 0) == index.search(query, 5, allowed=ids()) == []
        assert index.takes_conditions == backend.capabilities.filters


def test_allowed_ids_bound_the_answer(member: Member) -> None:
    """Only allowed ids are found, however far away they are."""
    with member.opened() as backend:
        backend.upsert(items(50))
        query = unit_rows(1, seed=3)[0]
        assert sorted(found(backend, query, 10, allowed=ids(4, 9, 1000))) == [4, 9]
        assert found(backend, query, 10, allowed=ids()) == []
        assert len(found(backend, query, 3, allowed=ids(*range(1, 20)))) == 3


def test_only_the_whitelist_leaves(member: Member) -> None:
    """Facts that are not on it are nowhere, and a filter by one is refused; all else is kept."""
    metadata = {"files": [{"tags": ["x"], "private": ["y"]}], "more": 1}
    with member.opened(metadata_whitelist=["tags"]) as backend:
        backend.upsert(items(1, metadata=metadata))
        (hit,) = backend.query(unit_rows(1)[0], top_k=1)
        assert hit.metadata == {"files": [{"tags": ["x"]}], "more": 1}
        if backend.capabilities.filters:
            assert found(backend, unit_rows(1)[0], where=(("tags", ("x",)),)) == [1]
            with pytest.raises(BackendSettingsWrong, match="private"):
                backend.query(unit_rows(1)[0], top_k=1, where=(("private", ("y",)),))


WORDS: Final = st.sampled_from(
    ["a", "b", "ä", "", "a b", "'", '"', "\\", "%s", "{}", "$1", "\u2028"]
)
FILES: Final = st.lists(
    st.dictionaries(WORDS, st.lists(WORDS, unique=True, max_size=3), max_size=3), max_size=3
)
CONDITIONS: Final = st.lists(
    st.tuples(WORDS, st.lists(WORDS, unique=True, max_size=3).map(tuple)), max_size=3
).map(tuple)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    facts=st.lists(FILES, min_size=1, max_size=8),
    conditions=st.lists(CONDITIONS, min_size=1, max_size=6),
    bound=st.none() | st.sets(st.integers(1, 9)),
)
def test_filters_find_what_satisfies_them(
    member: Member, facts: Any, conditions: Any, bound: Any
) -> None:
    """All conditions hold in one file of a hit, and no item that satisfies them is left out."""
    some = [
        replace(one, metadata={"files": files})
        for one, files in zip(items(len(facts)), facts, strict=True)
    ]
    allowed = None if bound is None else ids(*sorted(bound))
    with member.opened() as backend:
        if not backend.capabilities.filters:
            return
        backend.clear()
        backend.set_embed_config(EMBED)
        backend.upsert(some)
        for where in conditions:
            expected = {one.id for one in some if satisfies(one.metadata, where)}
            expected &= expected if bound is None else bound
            hits = backend.query(some[0].vector, where=where, allowed=allowed)
            assert {hit.id for hit in hits} == expected
            assert found(backend, some[0].vector, 2, where=where, allowed=allowed) == [
                hit.id for hit in hits[:2]
            ]


def test_it_says_what_it_can_do(member: Member) -> None:
    """The capabilities are of the class, and truthful as far as all the other tests can see."""
    capable = member.backend().capabilities
    assert capable is type(member.backend()).capabilities
    assert capable.batch > 0
    assert type(member.backend()).kind == member.kind


def test_an_answer_is_never_somebody_elses(member: Member) -> None:
    """Another store's stamp, and one from an older backup, are errors; a later one is ours, too."""
    with member.opened() as backend:
        backend.upsert(items(3))
        backend.save(owner="me", generation=2)
        backend.expect("me", 2)
        assert len(found(backend, unit_rows(1)[0])) == 3
        with member.opened() as other:
            other.save(owner="me", generation=3)
        assert len(found(backend, unit_rows(1)[0])) == 3
        with member.opened() as other:
            other.save(owner="me", generation=1)
        with pytest.raises(BackendForeign, match="older vectors"):
            backend.query(unit_rows(1)[0], top_k=1)
        with member.opened() as other:
            other.save(owner="you", generation=1)
        with pytest.raises(BackendForeign, match="another store"):
            backend.query(unit_rows(1)[0], top_k=1)


def test_what_is_cleared_is_gone_at_once(member: Member) -> None:
    """Nothing is left, and vectors of another length may come."""
    with member.opened() as backend:
        backend.upsert(items(3))
        backend.save(owner="me", generation=1)
        backend.clear()
        assert backend.dim is None
        assert backend.stamp() is None
        assert backend.state.docs == {}
        backend.clear()
    with member.backend() as again:
        again.load()
        assert (again.dim, again.stamp(), again.digests()) == (None, None, {})
        again.set_embed_config(replace(EMBED, dimension=3))
        row = unit_rows(1, dimension=3)[0]
        again.upsert([Item(id=1, vector=row, doc_id="1", content_hash="h")])
        again.save(owner="me", generation=2)
        assert found(again, row) == [1]


def test_an_empty_index_can_be_finished(member: Member) -> None:
    """A store without a text has an index, too: stamped, of its length, and empty."""
    with member.opened() as backend:
        backend.save(owner="me", generation=1)
    with member.backend() as again:
        again.load()
        assert again.stamp() == Stamp(owner="me", generation=1, embed=EMBED)
        assert again.dim == DIMENSION
        assert again.state.docs == {}
        assert again.query(unit_rows(1)[0], top_k=3) == []
        again.set_embed_config(EMBED)
        assert again.upsert(items(2)) == 2


def test_what_cannot_be_reached_is_named(member: Member, tmp_path: Path) -> None:
    """With its address and what to do, and never with the password."""
    (tmp_path / "a file").touch()
    kept = {key: value for key, value in member.options.items() if key != "engine"}
    backend = replace(member, options=kept).backend(**NOWHERE[member.kind])
    with pytest.raises(BackendUnreachable) as caught:
        backend.load()
    assert isinstance(caught.value, ConnectionError)
    assert backend.address().split(" (")[0] in caught.value.message
    assert advised(caught.value)
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.detail
    assert SECRET not in shown + caught.value.remedy


def test_all_missing_keys_are_named(member: Member, tmp_path: Path) -> None:
    """Before anything is connected, together, with the command that sets them."""
    needed = NEEDED[member.kind]
    empty = replace(member, options={})
    if not needed:
        assert empty.backend().kind == member.kind
        return
    with pytest.raises(BackendKeysMissing) as caught:
        empty.backend()
    assert isinstance(caught.value, ValueError)
    assert all(key in caught.value.message for key in needed)
    assert f"filestore backend set {member.kind}" in all_words(caught.value)


def test_an_unknown_key_is_refused(member: Member) -> None:
    """With the keys that there are; so is a value of another type."""
    with pytest.raises(BackendSettingsWrong, match="metadata_whitelis"):
        member.backend(metadata_whitelis=["a"])
    with pytest.raises(BackendSettingsWrong, match="a list"):
        member.backend(metadata_whitelist="tags")


def test_its_address_is_for_people(member: Member) -> None:
    """It says where, and never a password; nor does what is printed of a choice."""
    choice = BackendChoice(
        kind=member.kind,
        options=member.options,
        folder=str(member.folder),
        environment={"PGPASSWORD": SECRET, "QDRANT_API_KEY": SECRET},
    )
    assert open_backend(choice).address()
    assert SECRET not in repr(choice) + repr(open_backend(choice))


def test_an_unknown_backend_is_named_with_the_known_ones() -> None:
    """With a guess at what was meant."""
    with pytest.raises(BackendSettingsWrong, match="pgvector") as caught:
        Member(kind="pgvectr", folder=Path()).backend()
    assert "local" in caught.value.message
    assert isinstance(caught.value, FilestoreError)


def test_the_whitelist_limits_the_keys_of_files_alone() -> None:
    """An empty one lets everything through."""
    metadata = {"files": [{"a": ["1"], "b": ["2"]}], "c": 3}
    assert whitelisted(metadata, []) == metadata
    assert whitelisted(metadata, ["b"]) == {"files": [{"b": ["2"]}], "c": 3}
