"""The example store is what its sources make of it, and what the demonstration needs."""

import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "example_index"
DERIVED = (".sidecar", ".undo")
RESOURCES = (
    *("field-guide", "glossary.md", "checklist.txt", "migration-log.html"),
    *("handover.docx", "workshop.pptx", "paper-archive.pdf", "rename_report.py"),
)


def committed_files(root):
    """Every file that belongs into git, by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not any(part in DERIVED for part in path.relative_to(root).parts)
    }


@pytest.fixture
def example(tmp_path):
    """A copy of the example store without derived data."""
    root = tmp_path / "example_index"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(*DERIVED))
    return root


def test_rebuilding_gives_the_same_bytes(run, tmp_path):
    """The store that is checked in is byte for byte what init and add make of its sources."""
    root = tmp_path / "elsewhere" / "example_index"
    shutil.copytree(EXAMPLE / "source", root / "source")
    assert run("init", str(root), "--embedder", "builtin", cwd=tmp_path).code == 0
    added = run("add", *(f"source/{name}" for name in RESOURCES), cwd=root)
    assert added.code == 0, added.stderr
    assert committed_files(root) == committed_files(EXAMPLE)


def test_a_clone_becomes_searchable_by_sync(run, example):
    """A fresh copy says that its catalog is missing, sync builds it, and then it is clean."""
    before = run("status", "--json", cwd=example)
    assert before.code == 1
    assert list(before.json["drift"]) == ["catalog-missing"]
    assert run("sync", cwd=example).code == 0
    assert run("verify", "--level", "full", "--json", cwd=example).json["findings"] == []
    hits = run("search", "history of a renamed file", "--json", cwd=example).json["hits"]
    assert hits[0]["source"] == "source/field-guide/keeping/when-files-move.md"


def test_every_resource_reconstructs_to_its_extracted_text(run, example):
    """What reconstruct prints of a text source is the source itself."""
    run("sync", cwd=example)
    for name in ("glossary.md", "checklist.txt", "rename_report.py"):
        done = run("reconstruct", name, "--json", cwd=example)
        assert done.json["text"] == (EXAMPLE / "source" / name).read_text(encoding="utf-8")
        assert done.json["warnings"] == []


def test_the_demonstration_ends_clean(run, tmp_path):
    """`filestore demo` needs no terminal and ends with a store that verifies clean."""
    done = run("demo", cwd=tmp_path)
    assert done.code == 0, done.stdout + done.stderr
    assert "clean at level full" in done.stdout
    assert "chunked/bees.md:" in done.stdout
    assert "1 indexed file is gone" in done.stderr
