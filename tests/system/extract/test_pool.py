"""Extraction in child processes: what a file does to its reader, it does to nobody else."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filestore.extract.base import ExtractionError
from filestore.extract.pool import Extraction, ExtractionProcess, ReadingLimits
from filestore.ingest.sources import Original
from tests.advice import advised, all_words
from tests.tui.processes import children

ROOMY = ReadingLimits()


@pytest.fixture
def child() -> Iterator[ExtractionProcess]:
    process = ExtractionProcess(ROOMY)
    yield process
    process.kill()


def child_pids() -> list[int]:
    """The processes that this one started and that read documents."""
    readers = []
    for pid in children():
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"filestore.extract.pool" in command:
            readers.append(pid)
    return readers


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="the system has no /proc to find the child in"
)


def test_a_document_comes_back_whole(child: ExtractionProcess) -> None:
    """What the child reads is what is read here: text, metadata, outline."""
    from filestore.extract import for_name

    samples = {
        "note.md": b"---\ntitle: Moor\nrank: 3\n---\n# Heath\n\nPeat, \xc3\xa4.\n",
        "tool.py": b'"""Tell the tide."""\n\nclass Tide:\n    def high(self):\n        return 1\n',
    }
    for name, data in samples.items():
        here = for_name(name)
        assert here is not None
        assert child.extract(data, name=name) == here.extract(data, name=name)


def test_what_is_wrong_with_a_file_is_told_as_here(child: ExtractionProcess) -> None:
    """Message and remedy come through."""
    with pytest.raises(ExtractionError) as caught:
        child.extract(b"  ", name="empty.txt")
    assert "empty.txt" in caught.value.message
    assert advised(caught.value)


@needs_proc
def test_a_reader_that_dies_takes_one_file_along(child: ExtractionProcess) -> None:
    """The file is named, and the next one is read by a new child."""
    assert child.extract(b"One.\n", name="one.txt").text == "One.\n"
    (pid,) = child_pids()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ExtractionError, match=r"two\.txt") as caught:
        child.extract(b"Two.\n", name="two.txt")
    assert str(-signal.SIGKILL) in caught.value.detail
    assert child.extract(b"Three.\n", name="three.txt").text == "Three.\n"


@needs_proc
def test_a_file_that_takes_too_long_is_given_up() -> None:
    """The child is ended, and the file is named with what to do."""
    hasty = ExtractionProcess(ReadingLimits(timeout_s=0))
    with pytest.raises(ExtractionError, match=r"slow\.txt was not read within 0 seconds") as caught:
        hasty.extract(b"Slow.\n", name="slow.txt")
    assert "split it" in all_words(caught.value)
    assert child_pids() == []


def test_a_file_that_wants_too_much_memory_is_given_up() -> None:
    """The kernel refuses the child the memory; here nothing is felt of it."""
    tight = ExtractionProcess(ReadingLimits(memory_bytes=350 * 1024 * 1024))
    try:
        with pytest.raises(ExtractionError, match=r"huge\.txt"):
            tight.extract(b"words and words\n" * 8_000_000, name="huge.txt")
        assert tight.extract(b"Small.\n", name="small.txt").text == "Small.\n"
    finally:
        tight.kill()


@needs_proc
def test_children_end_with_their_work() -> None:
    """However many files were read, no child is left, also where some was still reading."""
    extraction = Extraction(workers=2)
    broken = b"%PDF-1.7 broken"
    originals = [Original(path=f"/{n}.pdf", hash="", held=broken, size_bytes=15) for n in range(6)]
    pending = [extraction.begin(original) for original in originals]
    with pytest.raises(ExtractionError, match=r"0\.pdf"):
        pending[0]()
    assert 1 <= len(child_pids()) <= 2
    extraction.close()
    assert child_pids() == []


def test_bad_files_do_not_keep_good_ones_out(workspace: Any) -> None:
    """Each that fails is listed with its reason and its remedy; the rest is added."""
    workspace.write("papers/good.md", "# Good\n\nGood words.\n")
    workspace.write("papers/broken.pdf", b"%PDF-1.7\nbroken")
    workspace.write("papers/broken.docx", b"PK\x03\x04broken")
    workspace.write("papers/broken.pptx", b"no archive")
    done = workspace.json("add", "papers", code=5)
    assert [entry["chunks"] for entry in done["added"]] == [1]
    failed = {Path(entry["source"]).name: entry for entry in done["failed"]}
    assert sorted(failed) == ["broken.docx", "broken.pdf", "broken.pptx"]
    assert all(entry["remedy"] or advised(entry["error"]) for entry in failed.values())
    assert workspace.found("good words") == ["papers/good.md/chunk1-good.md"]
    again = workspace.json("add", "papers", code=5)
    assert [entry["source"] for entry in again["unchanged"]] == ["../papers"]


def test_a_crash_of_the_second_reader_leaves_the_page_as_prose(
    child: ExtractionProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process dies with the file, which is read once more without it."""
    from tests.system.extract.test_pdf import inventory

    assert "| --- |" in child.extract(inventory(), name="stock.pdf").text
    child.kill()
    package = tmp_path / "liteparse.py"
    package.write_text("import os\nos.abort()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    text = child.extract(inventory(), name="stock.PDF").text
    assert "| --- |" not in text
    assert "289" in text
