"""`.ragmd` as others read it and as others write it; what disagrees with itself is refused."""

import base64
import json
import re

import faiss
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from filestore.exchange import faiss_bytes, mapped, ragmd
from filestore.exchange.base import Chunk, Collection, FormDamaged, Resource
from tests.ragmd_files import INDEXES, KEYS, NOW, ROWS, Foreign, flat, other_index


def made(*resources, dimension=6, model="builtin/1:6"):
    """The bytes of a file of ours."""
    collection = Collection(resources=iter(resources), model=model, dimension=dimension)
    found = mapped.of_collection(collection, flat=faiss_bytes.INNER_PRODUCT, now=NOW)
    return b"".join(ragmd.serialize(found))


def read_by_others(data):
    """The frontmatter, the chunks, the documents and the index, by another reader."""
    front, rest = re.fullmatch(r"---\n(.*?)\n---\n(.*)", data.decode(), re.DOTALL).groups()
    headings = re.findall(r"^## (.*)$", rest, re.MULTILINE)
    blocks = re.findall(r"^```(\w+)\n(.*?)\n```$", rest, re.DOTALL | re.MULTILINE)
    assert headings == ["Documents", "Chunks", "Document Metadata", "Vectors"]
    assert [kind for kind, _ in blocks] == ["json", "json", "base64"]
    raw = np.frombuffer(base64.b64decode(blocks[2][1], validate=True), np.uint8)
    table = rest.split("\n## Chunks\n")[0]
    return (
        yaml.safe_load(front),
        table,
        json.loads(blocks[0][1]),
        json.loads(blocks[1][1]),
        faiss.deserialize_index(raw),
    )


LEASE = Resource(
    name="lease",
    chunks=(
        Chunk(
            path="lease/chunk1.md",
            text="```\n## Vectors\n```\n\u2028| a |",
            frontmatter={"questions": ["Why?", "Who?"]},
            vectors={0: ROWS[0], 1: ROWS[1], 2: ROWS[2]},
        ),
        Chunk(path="lease/chunk2.md", text="🜁 Zwei.\n", vectors={0: ROWS[3]}),
    ),
    record={
        "documents": [{"source": "docs/lease.md", "metadata": {"title": "A | B\n## Chunks\n```"}}]
    },
)


def test_another_reader_finds_all_of_it():
    """Frontmatter, sections in their order, counts, spans, and an index that FAISS loads."""
    front, table, chunks, documents, index = read_by_others(made(LEASE))
    assert list(front) == KEYS
    assert front == dict(
        zip(KEYS, ["1.0", "builtin/1:6", 6, 4, 1, "IndexFlatIP", NOW, NOW], strict=True)
    )
    assert [list(one) for one in chunks] == [["faiss_id", "document_id", "chunk_key"]] * 4
    assert [one["faiss_id"] for one in chunks] == [0, 1, 2, 3]
    assert [one["chunk_key"] for one in chunks] == ["chunk1", "chunk1#1", "chunk1#2", "chunk2"]
    lease = documents["lease"]
    assert list(lease) == ["id", "source", "full_text", "content", "chunks"]
    assert (lease["id"], lease["source"]) == ("lease", "docs/lease.md")
    assert lease["content"]["title"] == "A | B\n## Chunks\n```"
    texts = [
        lease["full_text"][span["i_start"] : span["i_end"]] for span in lease["chunks"].values()
    ]
    body = LEASE.chunks[0].text
    assert texts == [body, body, body, LEASE.chunks[1].text]
    assert np.array_equal(index.reconstruct_n(0, 4), ROWS)
    assert type(index) is faiss.IndexFlatIP
    assert len(re.findall(r"(?<!\\)\|", table.splitlines()[-1])) == 5


def test_a_chunk_that_repeats_the_end_of_the_one_before_overlaps_it():
    """The text of the document has it once; each chunk has it all the same."""
    chunks = (
        Chunk(path="a/chunk1.md", text="One two three.", vectors={0: ROWS[0]}),
        Chunk(
            path="a/chunk2.md",
            text="three. Four.",
            frontmatter={"overlap": 6},
            vectors={0: ROWS[1]},
        ),
    )
    data = made(Resource(name="a", chunks=chunks))
    _, _, _, documents, _ = read_by_others(data)
    assert documents["a"]["full_text"] == "One two three. Four."
    (resource,) = mapped.to_collection(ragmd.parse(data))
    assert [one.text for one in resource.chunks] == [one.text for one in chunks]


def test_sources_of_one_resource_that_take_turns_keep_their_order():
    """Two documents, one order."""
    chunks = tuple(
        Chunk(
            path=f"a/chunk{at}.md",
            text=f"T{at}",
            frontmatter={"source": f"s{at % 2}"},
            vectors={0: ROWS[at]},
        )
        for at in range(4)
    )
    data = made(Resource(name="a", chunks=chunks))
    front, _, _, documents, _ = read_by_others(data)
    assert (front["document_count"], list(documents)) == (2, ["a/s0", "a/s1"])
    (resource,) = mapped.to_collection(ragmd.parse(data))
    assert [one.text for one in resource.chunks] == ["T0", "T1", "T2", "T3"]


def test_keys_that_look_like_those_of_questions_stay_apart():
    """A chunk file may be called as a question is."""
    chunks = (
        Chunk(path="a/x#1.md", text="own", vectors={0: ROWS[0]}),
        Chunk(path="a/x.md", text="has one", vectors={0: ROWS[1], 1: ROWS[2]}),
        Chunk(path="a/x-2.md", text="third", vectors={0: ROWS[3]}),
    )
    (resource,) = mapped.to_collection(ragmd.parse(made(Resource(name="a", chunks=chunks))))
    assert [(one.path, sorted(one.vectors)) for one in resource.chunks] == [
        ("a/x#1.md", [0]),
        ("a/x.md", [0, 1]),
        ("a/x-2.md", [0]),
    ]


VARIANTS = {
    "as it is": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "a byte-order mark": lambda text: "\ufeff" + text,
    "trailing blanks": lambda text: re.sub(r"(?m)^(---|```.*|## .*)$", r"\1  \t", text),
    "more words behind a fence": lambda text: text.replace("```json", "```json list"),
    "an empty block before": lambda text: text.replace("## Chunks\n", "```\n```\n## Chunks\n"),
    "no last line end": lambda text: text.rstrip(),
    "text after the vectors": lambda text: text + "\n## Notes\n\nMine.\n\n```json\n[]\n```\n",
    "no table": lambda text: text.replace(Foreign().table, ""),
    "a line between heading and block": lambda text: text.replace(
        "## Chunks\n", "## Chunks\n\nAll of them:\n"
    ),
    "an example in a longer fence": lambda text: text.replace(
        "## Chunks\n", "````md\n## Chunks\n```json\n[]\n```\n````\n\n## Chunks\n", 1
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "layout", [{}, {"fence": "`````"}, {"fence": "~~~"}, {"indent": 2}, {"width": 76}, {"width": 4}]
)
def test_what_others_write_is_read(variant, layout):
    """However they break lines, and whatever stands around."""
    found = ragmd.parse(VARIANTS[variant](Foreign().changed(**layout).text()).encode())
    collection = mapped.to_collection(found)
    assert (collection.model, collection.dimension) == ("theirs/model", 6)
    assert [one.name for one in collection] == ["a", "b"]
    texts = [chunk.text for one in collection for chunk in one.chunks]
    assert texts[:2] == ["First of a.", "Second, 🜁 of a."]
    rows = np.stack([chunk.vectors[0] for one in collection for chunk in one.chunks])
    assert rows.tobytes() == ROWS.tobytes()
    chunk = next(iter(collection)).chunks[0]
    assert dict(chunk.frontmatter) == {
        "source": "papers/a.pdf",
        "title": "On a",
        "authors": ["Å", "B"],
    }


CELLS = {
    "a pipe": "| a | b | 2 | one | two |\n",
    "a line end": "| a | b | 2 | one\n## Chunks\ntwo |\n",
    "a fence": "| a | b | 2 | one\n```\ncode\n```\n|\n",
    "nothing of a table": "Two documents.\n",
}


@pytest.mark.parametrize("case", CELLS)
def test_the_table_is_for_people(case):
    """Whatever a careless program left in its cells, the rest is read."""
    assert len(ragmd.parse(Foreign().changed(table=CELLS[case]).data()).rows) == 4


def test_ids_in_another_order_are_followed():
    """The list may name the vectors in any order, each once."""
    foreign = Foreign()
    foreign.chunks.reverse()
    assert ragmd.parse(foreign.data()).places[0] == ("a", "c0")


def test_a_document_without_its_text_is_named():
    """Its chunks have vectors, and nothing to read; the others are taken."""
    foreign = Foreign()
    del foreign.documents["a"]["full_text"]
    collection = mapped.to_collection(ragmd.parse(foreign.data()))
    assert [one.name for one in collection] == ["b"]
    assert list(collection.left_out) == [
        "document 'a': without full_text its 2 chunks have no text"
    ]


def test_metadata_of_others_goes_along_as_far_as_it_fits():
    """What is long, deep or means something else is named; the rest, nested as well, is kept."""
    deep = {"a": [[[[[[[1]]]]]]]}
    foreign = Foreign()
    foreign.documents["a"]["content"] = {
        "title": "T",
        "venue": {"name": "V", "pages": [1, 2]},
        "order": 7,
        "abstract": "x" * 5_000,
        "deep": deep,
        "k" * 4_097: 1,
        "year": 2020,
    }
    foreign.documents["a"] |= {"title": "Beside", "pages": 9, "lang": "de"}
    found = mapped.to_collection(ragmd.parse(foreign.data()))
    assert dict(next(iter(found)).chunks[0].frontmatter) == {
        "source": "papers/a.pdf",
        "title": "T",
        "lang": "de",
        "venue": {"name": "V", "pages": [1, 2]},
        "year": 2020,
    }
    assert [one.split("'")[3][:8] for one in found.left_out] == [
        "pages",
        "order",
        "abstract",
        "deep",
        "kkkkkkkk",
    ]


@pytest.mark.parametrize("description", INDEXES)
def test_indexes_that_keep_whole_vectors_are_read(description):
    """By their vectors; FAISS is not asked."""
    is_lists = description == "IVF2,Flat"
    name = "IndexIVFFlat" if is_lists else f"Index{description.partition(',')[0]}"
    foreign = Foreign().changed(index=INDEXES[description])
    foreign.front["index_type"] = name
    found = ragmd.parse(foreign.data())
    assert (found.kind, found.flat) == (name, "IndexFlatL2")
    assert np.array_equal(found.rows, ROWS)


def front(**values):
    """A change of the frontmatter."""
    return lambda one: one.front.update(values)


def drop(key):
    """A key less."""
    return lambda one: one.front.pop(key)


def span(**values):
    """A change of the first chunk of the first document."""
    return lambda one: one.documents["a"]["chunks"]["c0"].update(values)


def listed(**values):
    """A change of the first entry of the list."""
    return lambda one: one.chunks[0].update(values)


def nan_row():
    """The index with a number that is none."""
    rows = ROWS.copy()
    rows[2, 3] = np.nan
    return flat(rows)


DISAGREE = {
    "no model": (drop("model_name"), "frontmatter lacks model_name"),
    "nothing stated": (lambda one: one.front.clear(), "lacks format_version, model_name"),
    "a later version": (
        front(format_version="2.0"),
        "format_version '2.0', this version reads 1.0",
    ),
    "a model that is no text": (front(model_name=["x"]), "model_name must be text"),
    "a time that is none": (front(created_at="yesterday"), "created_at must be a time"),
    "vectors": (front(vector_count=5), "vector_count is 5, there are 4 vectors"),
    "vectors in words": (front(vector_count="4"), "vector_count is '4'"),
    "vectors, negative": (front(vector_count=-4), "vector_count is -4"),
    "documents": (front(document_count=3), "document_count is 3, there are 2"),
    "dimension": (front(embedding_dim=7), "embedding_dim is 7, there are 6"),
    "class": (
        front(index_type="IndexFlatL2"),
        "index_type is 'IndexFlatL2', the vectors are in an IndexFlatIP",
    ),
    "class, nested": (front(index_type=["IndexFlatIP"]), "index_type is a list"),
    "aliases": (
        lambda one: setattr(one, "front", {"a": one.front, "b": one.front}),
        "aliases|anchors",
    ),
    "a list that is none": (
        lambda one: setattr(one, "chunks", {"a": 1}),
        "list of chunks must be a list",
    ),
    "an entry that is none": (
        lambda one: one.chunks.__setitem__(0, 7),
        r"the list of chunks\[0\] must be an object, found 7",
    ),
    "an entry less": (lambda one: one.chunks.pop(), "has 3 entries, there are 4"),
    "an id twice": (listed(faiss_id=1), "faiss_id 1 is twice"),
    "an id beyond": (listed(faiss_id=4), "faiss_id 4; expected 0 to 3"),
    "an id of a million digits": (
        listed(faiss_id=10**30),
        "faiss_id must be a whole number, found 1e",
    ),
    "an id that is a truth": (
        listed(faiss_id=False),
        "faiss_id must be a whole number, found False",
    ),
    "a name that is none": (listed(document_id=7), "document_id must be a text, found 7"),
    "another document": (
        listed(document_id="b"),
        "has the faiss_id 0, which is of 'c0' of document 'b'",
    ),
    "documents in a list": (
        lambda one: setattr(one, "documents", []),
        "map of documents must be an object, found a list",
    ),
    "a document that is none": (lambda one: one.documents.update(a=[]), "'a' must be an object"),
    "a document without chunks": (
        lambda one: one.documents["a"].pop("chunks"),
        "document 'a' lacks 'chunks'",
    ),
    "a document of another id": (
        lambda one: one.documents["a"].update(id="z"),
        "says of itself that it is 'z'",
    ),
    "a document too many": (
        lambda one: one.documents.update(c={"chunks": {}}),
        "document_count is 2, there are 3",
    ),
    "a document less": (lambda one: one.documents.pop("b"), "have 2 chunks, there are 4 vectors"),
    "a text that is none": (
        lambda one: one.documents["a"].update(full_text=3),
        "document 'a': full_text must be a text, found 3",
    ),
    "a span of words": (span(i_end="x"), "i_end must be a whole number, found 'x'"),
    "a span backwards": (span(i_start=9, i_end=3), "is 9 to 3"),
    "a span below": (span(i_start=-1), "is -1 to 11"),
    "a span beyond": (span(i_end=4000), "is 0 to 4000 of a text of 27 characters"),
    "a span without id": (
        lambda one: one.documents["a"]["chunks"]["c0"].pop("faiss_id"),
        "chunk 'c0' of document 'a' lacks 'faiss_id'",
    ),
    "another id": (span(faiss_id=3), "has the faiss_id 3, which is of 'c1' of document 'b'"),
    "an id of nothing": (span(faiss_id=99), "no such vector"),
    "a vector that is none": (
        lambda one: setattr(one, "index", nan_row()),
        "vector 2 has nan at place 3",
    ),
    "an index of codes": (
        lambda one: setattr(one, "index", other_index("SQ8")),
        "IndexScalarQuantizer|class",
    ),
    "a graph": (
        lambda one: setattr(one, "index", other_index("HNSW4,Flat")),
        "an IndexHNSWFlat, which is not read",
    ),
    "a cut index": (lambda one: setattr(one, "index", one.index[:-5]), "it states"),
    "a long index": (lambda one: setattr(one, "index", one.index + b"x"), "1 bytes follow"),
    "no index": (lambda one: setattr(one, "index", b""), "states 4 bytes where there are 0"),
    "a section less": (
        lambda one: one.order.remove("Chunks"),
        "no section '## Chunks'|before '## Chunks'",
    ),
    "no vectors": (lambda one: one.order.remove("Vectors"), "no section '## Vectors'"),
    "another order": (lambda one: one.order.reverse(), "comes before"),
    "a section twice": (lambda one: one.order.insert(1, "Chunks"), "appears twice"),
}


@pytest.mark.parametrize("case", DISAGREE)
def test_what_disagrees_is_refused(case):
    """With what is stated and what is there; nothing of it is taken."""
    foreign = Foreign()
    change, expected = DISAGREE[case]
    change(foreign)
    with pytest.raises(FormDamaged, match=expected):
        ragmd.parse(foreign.data())


BROKEN = {
    "Base64 without its end": (
        lambda text: re.sub(r".{41}\n```\s*$", "\n```\n", text),
        "not complete Base64|it states",
    ),
    "wrong padding": (lambda text: re.sub(r"=*\n```\s*$", "=\n```\n", text), "not complete Base64"),
    "other letters": (lambda text: text.replace("base64\n", "base64\n*"), "not complete Base64"),
    "a fence that never closes": (lambda text: text.rstrip()[:-3], "no section '## Vectors'"),
    "JSON that is none": (
        lambda text: text.replace('[{"faiss_id"', '[["faiss_id"'),
        "list of chunks is no JSON",
    ),
    "JSON without end": (lambda text: text.replace("json\n", "json\n" + "[" * 5000, 1), "no JSON"),
    "a number that is none": (
        lambda text: text.replace('"i_start": 12', '"i_start": NaN', 1),
        "no JSON",
    ),
    "no frontmatter": (lambda text: text.partition("---\n\n")[2], "does not begin with"),
    "frontmatter without end": (lambda text: text.replace("\n---\n", "\n", 1), "closing '---'"),
    "a tag": (
        lambda text: text.replace("embedding_dim: 6", "embedding_dim: !!python/name:os.system 6"),
        "tags",
    ),
    "an alias": (
        lambda text: text.replace("embedding_dim: 6", "embedding_dim: &a 6\nx: *a"),
        "anchors",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_refused(case):
    """Whatever broke it."""
    change, expected = BROKEN[case]
    with pytest.raises(FormDamaged, match=expected):
        ragmd.parse(change(Foreign().text()).encode())


def test_json_made_to_fill_the_memory_is_not_read():
    """Its brackets are counted before it is parsed."""
    text = Foreign().text().replace("```json\n", "```json\n[" + "[]," * 400_000 + "[]]\n", 1)
    with pytest.raises(FormDamaged, match="brackets in"):
        ragmd.parse(text.encode())


@pytest.mark.parametrize("line", ["## x\n", "```\n```\n", "~~~x\n```\n"])
def test_a_file_of_nothing_but_marks_is_given_up(line):
    """Long before its end."""
    text = Foreign().text().replace("## Chunks\n", line * 50_000 + "## Chunks\n", 1)
    with pytest.raises(FormDamaged, match=r"more than 10,000 headings|no section"):
        ragmd.parse(text.encode())


def ours(data, **changes):
    """A file of ours in which others changed what only we know."""
    found = ragmd.parse(data)
    document = json.loads(json.dumps(found.documents["lease"]))
    document["content"]["filestore"] |= changes
    return found, document


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"resource": 3},
        {"record": "x"},
        {"chunks": []},
        {"chunks": {"chunk1": 3, "chunk2": {}}},
        {"chunks": {"chunk2": {}}},
        {"chunks": {"chunk1": {"frontmatter": []}, "chunk2": {}}},
        {"chunks": {"chunk1": {"path": 1}, "chunk2": {}}},
        {"chunks": {"chunk1": {}, "chunk2": {}, "more": {}}},
        {"chunks": {"chunk1": {}, "chunk2": {}, "more": {"span": [0, 10**9]}}},
        {"at": [0]},
        {"at": ["x", "y"]},
    ],
)
def test_what_only_we_know_is_checked_as_well(changes):
    """Whoever can write a file can write that, too."""
    from msgspec.structs import replace

    found, document = ours(made(LEASE), **changes)
    with pytest.raises(FormDamaged, match="what filestore wrote of it was changed"):
        mapped.to_collection(replace(found, documents={"lease": document}))


BYTES = Foreign().data(), made(LEASE)


@given(st.data())
def test_damage_gives_an_error_or_whole_documents(data):
    """Bytes flipped, cut or repeated anywhere: nothing else comes of it."""
    raw = bytearray(data.draw(st.sampled_from(BYTES)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "repeat"])):
            case "flip":
                raw[at] ^= data.draw(st.integers(1, 255))
            case "cut":
                del raw[at : at + data.draw(st.integers(1, 200))]
            case "repeat":
                raw[at:at] = raw[at : at + 200]
    try:
        found = mapped.to_collection(ragmd.parse(bytes(raw)))
    except FormDamaged:
        return
    for resource in found:
        for chunk in resource.chunks:
            assert isinstance(chunk.text, str)
            assert all(np.isfinite(one).all() for one in chunk.vectors.values())
