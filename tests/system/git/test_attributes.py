"""Git gives back every byte of what is no text, and a store that told it otherwise is mended."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import filestore
from tests.system.conftest import files_below, git_free

PNG: Final = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\r\nmore\r\n"
PDF: Final = b"%PDF-1.4\r\n1 0 obj\r\n<<>>\r\nendobj\r\n"
OLD: Final = b"*.toml text eol=lf\nchunked/** text eol=lf\nsource/** -text\n"
BINARIES: Final = {
    "chunked/cat.png": PNG,
    "chunked/Cat.PNG.bak": PNG,
    "chunked/r/deep/er/scan.PDF": PDF,
    "chunked/r/notes.MD.zip": PDF,
    "chunked/r/data.json.gz": PDF,
    "chunked/r/settings.toml": b"a = 1\r\n",
    "chunked/r/no-suffix": PDF,
    "chunked/r/.hidden": PDF,
    "chunked/r/x.md/inside.bin": PNG,
    "source/notes.md": b"# Notes\r\n\r\nWords.\r\n",
    "source/deep/table.json": b"{}\r\n",
    "source/settings.toml": b"a = 1\r\n",
}
AUTHORED: Final = b"# mine\n*.png  diff=exif\r\n"


def commit(workspace: Any, message: str = "all") -> None:
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", message)


def clone(workspace: Any, tmp_path: Path, name: str = "clone") -> dict[str, bytes]:
    """What a clone holds of the store."""
    target = tmp_path / name
    subprocess.run(
        ["git", "clone", "-q", str(workspace.folder), str(target)],
        env=git_free(),
        check=True,
        capture_output=True,
    )
    return files_below(target / "file_index")


def old_store(workspace: Any, attributes: bytes = OLD) -> None:
    """A store as it was made before, with a picture that git stripped when it was committed."""
    workspace.write("file_index/.gitattributes", attributes)
    workspace.write("file_index/chunked/own.md", "Words of basalt.\n")
    workspace.write("file_index/chunked/cat.png", PNG)
    workspace.write("file_index/chunked/scan.pdf", PDF)
    workspace.sync(code=None)
    commit(workspace)


def finding(workspace: Any, *words: str) -> dict[str, Any] | None:
    done = workspace.json("verify", *words, code=None)
    found = [one for one in done["findings"] if one["code"] == "unsafe-attributes"]
    return found[0] if found else None


@pytest.mark.parametrize("ignore_case", ["false", "true"])
def test_what_is_no_text_comes_back_whole(workspace: Any, tmp_path: Path, ignore_case: str) -> None:
    """Pictures, archives and originals with CRLF in them are the same bytes in a clone."""
    workspace.git("config", "core.ignoreCase", ignore_case)
    for path, data in BINARIES.items():
        workspace.write(f"file_index/{path}", data)
    workspace.write("file_index/chunked/r/own.md", b"Words.\r\n")
    commit(workspace)
    cloned = clone(workspace, tmp_path)
    assert {path: cloned[path] for path in BINARIES} == BINARIES
    assert cloned["chunked/r/own.md"] == b"Words.\n"
    for path in BINARIES:
        (workspace.store / path).unlink()
    workspace.git("checkout", "--", ".")
    assert {path: (workspace.store / path).read_bytes() for path in BINARIES} == BINARIES


def test_a_line_above_the_store_does_not_reach_in(workspace: Any, tmp_path: Path) -> None:
    """A repository that has all its files as text still gives a store's pictures back whole."""
    workspace.write(".gitattributes", b"* text eol=lf\n*.png text eol=crlf\n")
    for path, data in BINARIES.items():
        workspace.write(f"file_index/{path}", data)
    commit(workspace)
    cloned = clone(workspace, tmp_path)
    assert {path: cloned[path] for path in BINARIES} == BINARIES


def test_the_example_is_told_as_a_new_store_is(workspace: Any) -> None:
    """The example store has the lines that `init` writes."""
    example = Path(__file__).parents[3] / "example_index" / ".gitattributes"
    assert example.read_bytes() == (workspace.store / ".gitattributes").read_bytes()


def test_an_old_store_is_told_and_mended(workspace: Any, tmp_path: Path) -> None:
    """The old line is a finding; its repair is planned, shown, applied, undone and redone."""
    old_store(workspace, OLD + AUTHORED)
    found = finding(workspace)
    assert found is not None
    assert (found["severity"], found["path"], found["safe"]) == ("W", ".gitattributes", False)
    assert "line 2" in found["detail"]
    assert workspace.drift()["unsafe-attributes"] == [".gitattributes"]
    assert clone(workspace, tmp_path, "before")["chunked/cat.png"] != PNG

    shown = workspace("repair", "--write-files", "--plan", code=1).stdout
    assert "-chunked/** text eol=lf" in shown
    assert "+chunked/** -text" in shown
    words = " ".join(shown.split())
    assert "git's copy of chunked/cat.png, chunked/scan.pdf lost line ends" in words
    attributes = workspace.store / ".gitattributes"
    assert attributes.read_bytes() == OLD + AUTHORED

    generation = workspace.json("status", code=None)["generation"]
    done = workspace.json("repair", "--write-files", "--yes")
    assert [step["kind"] for step in done["applied"]] == ["rewrite-attributes"]
    mended = attributes.read_bytes()
    lines = b"chunked/** -text\nchunked/**/*.md text eol=lf\nchunked/**/*.json text eol=lf"
    assert mended == (OLD + AUTHORED).replace(b"chunked/** text eol=lf", lines)
    assert workspace.json("status")["generation"] == generation
    assert workspace.json("verify", "--level", "full")["clean"] is True

    workspace("undo")
    assert attributes.read_bytes() == OLD + AUTHORED
    assert finding(workspace) is not None
    workspace("redo")
    assert attributes.read_bytes() == mended
    assert finding(workspace) is None

    workspace.git("add", "--renormalize", ".")
    commit(workspace, "whole")
    cloned = clone(workspace, tmp_path, "after")
    assert (cloned["chunked/cat.png"], cloned["chunked/scan.pdf"]) == (PNG, PDF)


def test_what_was_lost_here_too_is_said(workspace: Any) -> None:
    """A picture that was checked out stripped cannot be mended; what may be whole is not judged."""
    old_store(workspace)
    for name in ("cat.png", "scan.pdf"):
        (workspace.chunked / name).unlink()
    workspace.git("checkout", "--", ".")
    assert (workspace.chunked / "cat.png").read_bytes() != PNG
    plan = workspace.json("repair", "--write-files", "--plan", code=1)["plan"]
    (step,) = [one for one in plan["steps"] if one["kind"] == "rewrite-attributes"]
    assert "chunked/cat.png lost line ends here, too" in step["detail"]
    assert "1 committed file that git took for text: a loss is neither seen" in step["detail"]


def test_it_is_mended_only_where_the_tree_may_be_written(workspace: Any) -> None:
    """Without --write-files the line stays, and sync leaves it and ends as status does."""
    old_store(workspace)
    assert workspace.json("sync", code=1)["remaining"][0]["code"] == "unsafe-attributes"
    workspace.json("repair", "--yes", code=1)
    assert (workspace.store / ".gitattributes").read_bytes() == OLD


def test_an_edit_after_the_plan_stops_it(workspace: Any) -> None:
    """A file that a person changed since the plan was shown is left as it is."""
    old_store(workspace)
    with filestore.open(workspace.store) as store:
        plan = store.plan(truth=True)
        workspace.write("file_index/.gitattributes", OLD + AUTHORED)
        report = store.apply(plan)
    assert report.applied == ()
    assert "changed since the plan was made" in report.skipped[0][1]
    assert (workspace.store / ".gitattributes").read_bytes() == OLD + AUTHORED


TELLING: Final = {
    "text for all": b"* text=auto eol=lf\n",
    "rooted": b"/chunked/** text eol=lf\n",
    "another order": b"*.toml text eol=lf\nchunked/** eol=lf text\nsource/** -text\n",
    "no line end": b"chunked/** text",
    "any letters": b'chunked/**/"*".pdf text\n*.p[a-f]? text eol=lf\n',
    "after ours": b"chunked/** -text\nsource/** -text\n*.pdf text\n",
}


@pytest.mark.parametrize("name", TELLING)
def test_a_file_that_was_there_keeps_its_lines_and_gets_ours(
    new_workspace: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    """A store made in a folder with lines of a person's gives every byte back."""
    workspace = new_workspace("lines", init=False)
    workspace.write("file_index/.gitattributes", TELLING[name])
    workspace("init", "file_index")
    assert (workspace.store / ".gitattributes").read_bytes().startswith(TELLING[name].rstrip())
    assert finding(workspace) is None
    workspace.write("file_index/chunked/r/d.pdf", PDF)
    workspace.write("file_index/source/r/d.pdf", PDF)
    commit(workspace)
    cloned = clone(workspace, tmp_path)
    assert (cloned["chunked/r/d.pdf"], cloned["source/r/d.pdf"]) == (PDF, PDF)


@pytest.mark.parametrize("above", [False, True], ids=["its own", "above"])
@pytest.mark.parametrize("name", TELLING)
def test_any_line_that_harms_is_told_and_mended(
    workspace: Any, tmp_path: Path, name: str, above: bool
) -> None:
    """It counts what git does, not how it is written; the repair can be undone and redone."""
    own = b"# mine\n*.gif -text\n" if above else TELLING[name]
    attributes = workspace.store / ".gitattributes"
    attributes.write_bytes(own)
    if above:
        lines = TELLING[name].replace(b"chunked/", b"file_index/chunked/")
        workspace.write(".gitattributes", lines)
    workspace.write("file_index/chunked/r/d.pdf", PDF)
    commit(workspace)
    assert clone(workspace, tmp_path, "before")["chunked/r/d.pdf"] != PDF
    found = finding(workspace)
    assert found is not None
    assert ("../.gitattributes" in found["detail"]) == above
    assert "unsafe-attributes" in workspace.drift()
    workspace.json("repair", "--write-files", "--yes")
    mended = attributes.read_bytes()
    assert finding(workspace) is None
    workspace("undo")
    assert attributes.read_bytes() == own
    workspace("redo")
    assert attributes.read_bytes() == mended
    workspace.git("add", "--renormalize", ".")
    commit(workspace, "whole")
    assert clone(workspace, tmp_path, "after")["chunked/r/d.pdf"] == PDF


def test_a_file_that_is_not_there_is_written(workspace: Any) -> None:
    """Where a line above harms and the store tells nothing, its file is made, and taken back."""
    attributes = workspace.store / ".gitattributes"
    attributes.unlink()
    assert finding(workspace) is None
    workspace.write(".gitattributes", b"* text=auto\n")
    assert finding(workspace) is not None
    workspace.json("repair", "--write-files", "--yes")
    assert finding(workspace) is None
    workspace("undo")
    assert not attributes.exists()
    workspace("redo")
    assert finding(workspace) is None


def test_without_git_only_our_old_line_is_told(
    new_workspace: Callable[..., Any],
) -> None:
    """Nobody reads the others there."""
    workspace = new_workspace()
    shutil.rmtree(workspace.folder / ".git")
    for lines, is_told in ((b"* text\n", False), (OLD, True)):
        (workspace.store / ".gitattributes").write_bytes(lines)
        assert (finding(workspace) is not None) == is_told


@pytest.mark.parametrize("make", ["link", "folder", "none"])
def test_what_is_no_file_is_left_alone(workspace: Any, tmp_path: Path, make: str) -> None:
    """A `.gitattributes` that is a link or a folder is neither read nor written."""
    path = workspace.store / ".gitattributes"
    path.unlink()
    (tmp_path / "else").write_bytes(OLD)
    if make == "link":
        path.symlink_to(tmp_path / "else")
    elif make == "folder":
        path.mkdir()
    assert finding(workspace) is None
    workspace("repair", "--write-files", "--yes", code=None)
    assert (tmp_path / "else").read_bytes() == OLD
