"""Parquet that others wrote: other types, nested ones, missing columns, files that lie."""

import datetime
import decimal

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def taken(workspace, columns, code=0, **options):
    """Write a table, and import it; what the command says."""
    pq.write_table(pa.table(columns), workspace.folder / "other.parquet", **options)
    return workspace.json("import", "parquet", "other.parquet", code=code)


def shown(workspace, resource):
    """Body and frontmatter of every chunk of a resource."""
    found = [workspace.json("show", path) for path in workspace.chunks(resource)]
    return [(one["body"], one["frontmatter"]) for one in found]


def test_a_strangers_table(workspace):
    """Texts by document; what other columns hold is metadata, and is searched by."""
    done = taken(
        workspace,
        {
            "page_content": ["On lamps.", "On sails.", "On ropes."],
            "document": ["one.md", "one.md", "docs/two.md"],
            "metadata": [
                {"topic": "lamp", "deep": {"n": 1}},
                {"topic": "sail", "deep": None},
                None,
            ],
            "id": [1, 2, 3],
            "url": ["https://a", None, "https://c"],
            "score": [0.5, float("nan"), None],
            "day": [datetime.date(2026, 1, 2), None, None],
            "embedding": [[0.1, 0.2], [0.3, 0.4], None],
        },
    )
    assert done["left_out"] == []
    assert [one["resource"] for one in done["resources"]] == ["one.md", "docs-two.md"]
    first, second = shown(workspace, "one.md")
    assert first[0] == "On lamps."
    assert first[1]["topic"] == "lamp"
    assert first[1]["deep"] == {"n": 1}
    assert (first[1]["id"], first[1]["url"], first[1]["score"]) == (1, "https://a", 0.5)
    assert first[1]["day"] == "2026-01-02"
    assert "score" not in second[1]
    assert done["embedded"] == 3
    assert workspace.found("sails", "--where", "topic=sail") == ["one.md/chunk2.md"]


def test_types_that_are_none(workspace):
    """A column that cannot be used is named, and the rest is taken."""
    done = taken(
        workspace,
        {
            "text": ["On lamps."],
            "price": [decimal.Decimal("1.50")],
            "raw": [b"\xff"],
            "metadata": [{"good": "yes", "bad": b"\xff"}],
            "vector": [["a", "b"]],
        },
        code=5,
    )
    assert [one.partition(":")[0] for one in done["left_out"]] == [
        "column 'price'",
        "column 'raw'",
        "column 'metadata.bad'",
        "column 'vector'",
    ]
    ((body, frontmatter),) = shown(workspace, "other")
    assert (body, frontmatter["good"]) == ("On lamps.", "yes")
    assert "bad" not in frontmatter


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"body": ["a"]}, "a column 'text' is missing; its columns are: body"),
        ({"text": [1, 2]}, "column 'text': its type is int64"),
        ({"text": [["a"]]}, "column 'text': its type is list"),
    ],
)
def test_without_texts(workspace, columns, reason):
    """There is nothing to be taken, and what is there is said."""
    assert reason in taken(workspace, columns, code=3)["error"]
    assert workspace.truth() == {}


def test_json_in_text_columns(workspace):
    """Metadata as JSON is read; what is none is named with its row."""
    done = taken(
        workspace,
        {"text": ["One.", "Two."], "metadata": ['{"a": [1, {"b": 2}]}', "{torn"]},
        code=5,
    )
    assert [one.partition(":")[0] for one in done["left_out"]] == ["row 2"]
    first, second = shown(workspace, "other")
    assert first[1]["a"] == [1, {"b": 2}]
    assert second[0] == "Two."


@pytest.mark.parametrize("cut", [4, 100, -1, -8])
def test_a_file_that_is_cut(workspace, cut):
    """One error that names the file, and nothing is written."""
    pq.write_table(pa.table({"text": ["One."] * 500}), workspace.folder / "whole.parquet")
    data = (workspace.folder / "whole.parquet").read_bytes()
    workspace.write("cut.parquet", data[:cut])
    assert "cut.parquet" in workspace.json("import", "parquet", "cut.parquet", code=3)["error"]
    assert workspace.truth() == {}


def test_bits_that_flipped(workspace):
    """Whatever a damaged file does, it ends with a message, or as rows."""
    path = workspace.folder / "whole.parquet"
    table = {"text": [f"Text {n}." for n in range(40)], "vector": [[0.5, 0.5]] * 40}
    pq.write_table(pa.table(table), path)
    data = bytearray(path.read_bytes())
    for at in range(4, len(data), len(data) // 6):
        torn = bytearray(data)
        torn[at] ^= 0xFF
        workspace.write("torn.parquet", bytes(torn))
        done = workspace("import", "parquet", "torn.parquet", "--plan", code=None)
        assert done.code in (0, 1, 3, 5)


def test_damage_behind_sound_rows(workspace):
    """It is found before anything is written."""
    path = workspace.folder / "torn.parquet"
    texts = [f"Text {n} of many, all of them different." for n in range(6_000)]
    names = [f"r{n // 100}" for n in range(6_000)]
    pq.write_table(pa.table({"document": names, "text": texts}), path, row_group_size=3_000)
    data = bytearray(path.read_bytes())
    page = pq.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    data[page : page + 2_000] = b"\xff" * 2_000
    path.write_bytes(data)
    done = workspace.json("import", "parquet", "torn.parquet", "--no-embed", code=3)
    assert "torn.parquet" in done["error"]
    assert workspace.truth() == {}


def test_a_text_that_is_repeated_is_held_once(workspace):
    """A small file whose texts would fill the memory: they are too long, each is named."""
    large = pa.array(["x" * (65 * 1024 * 1024)])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), large)
    done = taken(workspace, {"text": column}, code=1, compression="zstd")
    assert (workspace.folder / "other.parquet").stat().st_size < 1_000_000
    assert len(done["left_out"]) == 200
    assert done["resources"] == []


def test_without_the_package(workspace, without_packages):
    """What is missing is said, with the command that installs it."""
    without_packages("pyarrow")
    done = workspace("export", "parquet", "all.parquet", code=3)
    assert "pip install pyarrow" in done.stderr
