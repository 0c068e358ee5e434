"""`.ragmd` as a file: written whole, replaced only by its like, read up to a size."""

import os
import resource
import sys

import pytest

from filestore.exchange.base import Chunk, Collection, FormDamaged, Resource, TargetRefused
from filestore.exchange.ragmd import RagMd
from filestore.fs.disk import WriteFailedError
from tests.advice import all_words
from tests.system.conftest import files_below
from tests.vectors import unit_rows

ROWS = unit_rows(3, dimension=8)
MIB = 1024 * 1024


def collection(text="Text", dimension=8, rows=ROWS):
    """One resource."""
    chunks = tuple(
        Chunk(path=f"a/chunk{at}.md", text=f"{text} {at}", vectors={0: row})
        for at, row in enumerate(rows, 1)
    )
    return Collection(
        resources=[Resource(name="a", chunks=chunks)], model="builtin/1:8", dimension=dimension
    )


def texts(path):
    """What is read of a file."""
    return [chunk.text for one in RagMd().read(str(path)) for chunk in one.chunks]


@pytest.mark.parametrize("name", ["kb.ragmd", "kb.md", "kb"])
def test_the_frontmatter_says_what_it_is(name, tmp_path):
    """Whatever the file is called; it is replaced by its like."""
    path = tmp_path / name
    RagMd().write(str(path), collection("Old"))
    RagMd().write(str(path), collection("New"))
    assert texts(path) == ["New 1", "New 2", "New 3"]
    assert os.listdir(tmp_path) == [name]


def test_folders_are_made_where_they_are_missing(tmp_path):
    """As of the other forms."""
    RagMd().write(str(tmp_path / "deep" / "er" / "kb.ragmd"), collection())
    assert texts(tmp_path / "deep" / "er" / "kb.ragmd")


@pytest.mark.parametrize(
    "text", ["A person's own.\n", "---\ntitle: mine\n---\nText\n", "---\nnever: ended\n", "\0\xff"]
)
def test_no_other_file_is_replaced(text, tmp_path):
    """A note of the same name stays."""
    path = tmp_path / "kb.md"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(TargetRefused, match=r"kb\.md is not overwritten: it is no \.ragmd"):
        RagMd().write(str(path), collection())
    assert path.read_text(encoding="latin-1") == text


def test_links_and_folders_are_not_replaced(tmp_path):
    """What they lead to stays."""
    RagMd().write(str(tmp_path / "kb.ragmd"), collection())
    (tmp_path / "link").symlink_to("kb.ragmd")
    (tmp_path / "folder").mkdir()
    before = files_below(tmp_path)
    for name in ("link", "folder"):
        with pytest.raises(TargetRefused):
            RagMd().write(str(tmp_path / name), collection("New"))
    assert files_below(tmp_path) == before
    assert texts(tmp_path / "link")


def test_a_save_that_fails_leaves_the_file_that_was(small_disk):
    """A full disk is named, with what to do."""
    path = small_disk / "kb.ragmd"
    RagMd().write(str(path), collection())
    before = files_below(small_disk)
    with pytest.raises(WriteFailedError, match="No space left"):
        RagMd().write(str(path), collection("x" * MIB))
    assert files_below(small_disk) == before


def test_a_file_of_ten_gigabytes_is_not_read(tmp_path):
    """By its size alone: a sparse file costs its maker nothing."""
    path = tmp_path / "kb.ragmd"
    RagMd().write(str(path), collection())
    os.truncate(path, 10 * 1024**3)
    with pytest.raises(
        FormDamaged, match="10,737,418,240 bytes, at most 1,073,741,824 are read"
    ) as caught:
        RagMd().read(str(path))
    assert "jsonl or parquet" in all_words(caught.value)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_said(make, tmp_path):
    """Nothing hangs."""
    make(tmp_path / "kb.ragmd")
    with pytest.raises(FormDamaged, match="it is not a regular file"):
        RagMd().read(str(tmp_path / "kb.ragmd"))


HOSTILE = """
import resource, sys
from filestore.exchange.ragmd import RagMd
from filestore.exchange.base import FormDamaged
RagMd  # loaded before the limit
import numpy, orjson, yaml, filestore.exchange.mapped, filestore.chunks.frontmatter
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    list(RagMd().read(sys.argv[1]))
except FormDamaged as error:
    print(error.message.partition(": ")[2])
"""
HEAD = (
    '---\nformat_version: "1.0"\nmodel_name: m\nembedding_dim: 8\nvector_count: 3\n'
    "document_count: 1\nindex_type: IndexFlatIP\ncreated_at: 2026-01-31T12:00:00Z\n"
    "updated_at: 2026-01-31T12:00:00Z\n---\n"
)
BOMBS = {
    "lists": "[" + "[]," * (4 * MIB) + "[]]",
    "objects": "[" + '{"":1},' * (2 * MIB) + "{}]",
    "depth": "[" * (8 * MIB),
    "a long number": "1" * (8 * MIB),
}


@pytest.mark.skipif(sys.platform != "linux", reason="it reads its own size from /proc")
@pytest.mark.parametrize("case", BOMBS)
def test_a_small_file_cannot_fill_the_memory(case, script, tmp_path):
    """Some megabytes of JSON, with not much more memory than that to be read in."""
    path = tmp_path / "bomb.ragmd"
    blocks = f"## Chunks\n```json\n{BOMBS[case]}\n```\n## Document Metadata\n```json\n{{}}\n```\n"
    path.write_text(f"{HEAD}{blocks}## Vectors\n```base64\nAAAA\n```\n")
    done = script(HOSTILE, str(path), str(6 * path.stat().st_size))
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("the list of chunks"), done.stdout


def test_a_peak_of_memory_is_a_few_times_the_file(tmp_path):
    """What is read is held once as bytes, and once as vectors."""
    rows = unit_rows(4_000, dimension=768)
    path = tmp_path / "kb.ragmd"
    RagMd().write(str(path), collection(dimension=768, rows=rows))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    list(RagMd().read(str(path)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 4 * path.stat().st_size
