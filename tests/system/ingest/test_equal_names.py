"""Sources of one name in one command: the first has it, the others their folder's before it."""

from pathlib import Path
from typing import Any

import pytest

NAMES = ("invoice.md", "2025-invoice.md", "old-2025-invoice.md")
FOLDERS = ("2024", "2025", "old/2025")


def written(folder: Path) -> list[str]:
    """Three documents that are called alike."""
    paths = []
    for number, name in enumerate(FOLDERS):
        path = folder / name / "invoice.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Invoice\n\nPaid in month {number}.\n")
        paths.append(str(path))
    return paths


def resources(workspace: Any) -> list[str]:
    """Their names in the store."""
    return [one["resource"] for one in workspace.json("ls")["items"]]


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_each_is_added_once(either: Any, where: str, tmp_path: Path) -> None:
    """Whether the store refers to the documents or copies them, and however often they are added.

    Each keeps its name when it is added again, with the others in another order, or alone.
    """
    paths = written(either.folder if where == "inside" else tmp_path / "elsewhere")
    done = either.json("add", *paths)
    assert [one["resource"] for one in done["added"]] == list(NAMES)
    assert "note" not in done["added"][0]
    for one in done["added"][1:]:
        assert one["note"] == f"named by its folder: invoice.md is the name of {paths[0]}"
    assert sorted(resources(either)) == sorted(NAMES)
    before = either.truth()
    for again in (paths, paths[::-1], [*paths, *paths], *([path] for path in paths)):
        done = either.json("add", *again)
        assert len(done["unchanged"]) == len(again)
        assert not any("note" in one for one in done["unchanged"])
    assert either.truth() == before
    Path(paths[1]).write_text("# Invoice\n\nPaid in June.\n")
    assert [one["resource"] for one in either.json("add", paths[1])["updated"]] == [NAMES[1]]
    assert either.drift() == {}


def test_it_is_said(either: Any) -> None:
    """Below the line of the resource that is called otherwise than its file."""
    first, second, _ = written(either.folder)
    assert either("add", first, second).stdout.splitlines()[:3] == [
        "added invoice.md (1 chunk)",
        "added 2025-invoice.md (1 chunk)",
        f"    named by its folder: invoice.md is the name of {first}",
    ]


def test_one_that_is_there_keeps_its_name(either: Any) -> None:
    """Whatever is named before it, and a name that is in use is none to choose."""
    first, second, third = written(either.folder)
    either("add", second)
    either.write("taken.md", "# Taken\n")
    either("add", "taken.md", "--into", "2025-invoice.md")
    done = either.json("add", first, third, second)
    assert [one["resource"] for one in done["unchanged"]] == ["invoice.md"]
    names = ["2024-invoice.md", "old-2025-invoice.md"]
    assert [one["resource"] for one in done["added"]] == names


def test_children_of_two_folders(either: Any) -> None:
    """With --each, too; names that differ by case alone are alike on some disks."""
    either.write("here/a.md", "# Here\n")
    either.write("there/A.md", "# There\n")
    either.write("there/b.md", "# B\n")
    done = either.json("add", "--each", "here", "there")
    assert [one["resource"] for one in done["added"]] == ["a.md", "there-A.md", "b.md"]


def test_one_document_by_two_paths(either: Any) -> None:
    """Is one source."""
    either.write("docs/a.md", "# A\n")
    (either.folder / "link").symlink_to("docs")
    done = either.json("add", "docs/a.md", "./docs/../docs/a.md", "link/a.md")
    assert resources(either) == ["a.md"]
    assert len(done["unchanged"]) == 2


def test_a_name_in_use_is_refused(either: Any) -> None:
    """Where another command gave it, and where a person chooses it."""
    first, second, third = written(either.folder)
    either("add", first)
    refused = either("add", second, code=4).stderr
    assert refused.startswith(f"failed {second}: its name is in use; ")
    assert f"try: filestore add {second} --into 2025-invoice.md" in refused
    assert "in use" in either("add", second, "--into", "invoice.md", code=4).stderr
    assert resources(either) == ["invoice.md"]
    # The first of two new ones asks for the name as ever.
    done = either.json("add", second, third, code=5)
    assert [one["resource"] for one in done["added"]] == ["2025-invoice.md"]
    # The remedy names one that is free.
    assert f"add {second} --into work-2025-invoice.md" in either("add", second, code=4).stderr
