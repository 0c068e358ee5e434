"""Answers while files are edited, gone, conflicted or broken: nothing stale passes for current."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filestore.chunks import chunk_file
from filestore.index import ExactIndex
from filestore.search import Mode
from filestore.store import Store

MARKS = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"


def hives(workspace: Any, number: int = 6) -> list[Path]:
    """A store of own files that all answer one question, the first ones best."""
    paths = []
    for index in range(number):
        path = workspace.chunked / f"hive{index:02}.md"
        path.write_text(f"{'Honey. ' * (number - index)}Words of hive{index:02}.\n")
        paths.append(path)
    workspace.sync()
    return paths


def asked(workspace: Any, *words: str, code: int = 0) -> Any:
    return workspace.json("search", "honey", *words, code=code)


def shown(hits: list[Any]) -> list[tuple[str, str]]:
    return [(Path(hit["path"]).name, hit["freshness"]) for hit in hits]


def test_one_gone_file_is_no_answer(workspace: Any) -> None:
    """The best hit is gone: it is counted and said, and the exit code is that of nothing found."""
    path, other = hives(workspace, 2)
    path.unlink()
    other.write_text("Wax.\n")
    done = asked(workspace, "--mode", "keyword", code=1)
    assert done["hits"] == []
    assert done["behind"] == {"new": 0, "edited": 0, "gone": 1, "unembedded": 0}
    assert done["notes"] == ["1 indexed file is gone: run 'filestore sync'"]
    done = asked(workspace, "--mode", "keyword", "--no-update", code=1)
    assert done["behind"]["gone"] is None
    gone, not_looked = done["notes"]
    assert gone == "1 file that would answer is gone: run 'filestore sync'"
    assert not_looked.startswith("the files were not looked at")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often vectors are searched and frontmatter is parsed."""
    times: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        call = getattr(owner, name)

        def counting(*words: Any, **named: Any) -> Any:
            times[what] += 1
            return call(*words, **named)

        monkeypatch.setattr(owner, name, counting)

    count(ExactIndex, "search", "searched")
    count(chunk_file, "parse_block", "parsed")
    return times


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_an_answer_searches_once_and_parses_nothing(
    workspace: Any, counted: Counter[str], mode: Mode
) -> None:
    """A file that is as indexed was parsed then; where files have many texts, once finds enough."""
    for number in range(60):
        asked = "".join(f"  - honey {number} {part}\n" for part in range(number % 9))
        head = f"---\nheadings: [Bees, Hive]\npages: [{number + 1}]\nquestions:\n{asked}---\n"
        (workspace.chunked / f"hive{number:02}.md").write_text(f"{head}Honey of {number}.\n")
    workspace.sync()
    with Store(str(workspace.store)) as store:
        counted.clear()
        answer = store.search("honey", mode=mode)
        assert len(answer.hits) == 10
        assert counted == {"searched": 1}
        for hit in answer.hits:
            number = int(Path(hit.path).stem.removeprefix("hive"))
            assert (hit.freshness, hit.headings, hit.pages) == (
                "fresh",
                ("Bees", "Hive"),
                (number + 1,),
            )
            assert hit.text == f"Honey of {number}.\n"
        best = Path(store.root, answer.hits[0].path)
        best.write_text("---\nheadings: [Wasps]\n---\nHoney, edited.\n")
        counted.clear()
        hits = store.search("honey", mode=mode, update=False).hits
        (edited,) = [hit for hit in hits if hit.freshness == "edited"]
        assert (edited.headings, edited.text) == (("Wasps",), "Honey, edited.\n")
        assert counted == {"searched": 1, "parsed": 1}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_gone_files_take_no_place(workspace: Any, mode: str) -> None:
    """The best that are there fill the answer, and those alone."""
    paths = hives(workspace)
    before = [name for name, _ in shown(asked(workspace, "--mode", mode)["hits"])]
    for path in paths[:3]:
        path.unlink()
    left = [name for name in before if name not in {path.name for path in paths[:3]}]
    hits = shown(asked(workspace, "-k", "2", "--mode", mode)["hits"])
    assert hits[:2] == [(name, "fresh") for name in left[:2]]
    assert len(hits) == 2
    everything = shown(asked(workspace, "--mode", mode)["hits"])
    assert everything == [(name, "fresh") for name in left]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_the_next_best_are_looked_for_far_down(workspace: Any, mode: str) -> None:
    """Though the first fifty are gone, what is left is found."""
    paths = hives(workspace, 55)
    for path in paths[:50]:
        path.unlink()
    hits = shown(asked(workspace, "-k", "3", "--mode", mode)["hits"])
    assert [freshness for _, freshness in hits] == ["fresh"] * 3
    assert {name for name, freshness in hits if freshness == "fresh"} <= {
        path.name for path in paths[50:]
    }


def marked(path: Path) -> None:
    path.write_text(path.read_text() + MARKS)


def garbled(path: Path) -> None:
    path.write_text("---\na: [\n---\nHoney.\n")


def wrong_bytes(path: Path) -> None:
    path.write_bytes(b"Honey \xff.\n")


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def led_away(path: Path) -> None:
    outside = path.parents[2] / "outside.md"
    outside.write_text("Honey of a stranger.\n")
    path.unlink()
    path.symlink_to(outside)


def emptied(path: Path) -> None:
    path.write_text("")


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (marked, "conflict-markers"),
        (garbled, "malformed-frontmatter"),
        (wrong_bytes, "bad-encoding"),
        (piped, "special-file"),
        (led_away, "symlink"),
        (emptied, "empty"),
    ],
)
def test_what_could_not_be_indexed_is_withheld(
    workspace: Any, harm: Callable[[Path], None], code: str
) -> None:
    """A file that broke since is not shown, its place is filled, and how many there are is said."""
    paths = hives(workspace)
    harm(paths[0])
    done = asked(workspace, "-k", "2")
    assert shown(done["hits"]) == [("hive01.md", "fresh"), ("hive02.md", "fresh")]
    assert done["notes"] == [f"1 file is excluded (1 {code}): 'filestore status' says more"]
    for path in paths[1:]:
        path.unlink()
    assert asked(workspace, "-k", "9", "--no-update", code=1)["hits"] == []


def test_unreadable_is_not_gone(workspace: Any) -> None:
    """A folder that may not be entered withholds its files; nobody says that they are gone."""
    hives(workspace, 2)
    closed = workspace.chunked / "closed"
    closed.mkdir()
    (closed / "own.md").write_text("Honey behind a door.\n")
    workspace.sync()
    closed.chmod(0)
    try:
        done = without_powers("search", "honey", "--json", cwd=workspace.folder)
    finally:
        closed.chmod(0o755)
    assert done.returncode == 0
    assert '"freshness": "gone"' not in done.stdout
    assert "closed/own.md" not in done.stdout
    assert "1 unreadable" in done.stdout


def without_powers(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command as somebody whom modes hold back, which they do not root."""
    command = [sys.executable, "-m", "filestore", *words]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root reads everything, and cannot give that up here")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def two_sides(workspace: Any, *, ours: str | None, theirs: str) -> Path:
    """Two branches that say another thing in one file; the path of that file."""
    hives(workspace, 3)
    path: Path = workspace.chunked / "hive00.md"
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "Base")
    workspace.git("checkout", "-qb", "other")
    path.write_text(theirs)
    workspace.git("commit", "-qam", "Theirs")
    workspace.git("checkout", "-q", "-")
    path.unlink() if ours is None else path.write_text(ours)
    workspace.git("commit", "-qam", "Ours")
    workspace("sync", code=None)
    return path


def test_a_merge_conflict_is_no_answer(workspace: Any) -> None:
    """Between the merge and the next sync, neither side's marks are shown as an answer."""
    path = two_sides(workspace, ours="Honey of ours.\n", theirs="Honey of theirs.\n")
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("merge", "-q", "other")
    assert "<<<<<<<" in path.read_text()
    done = asked(workspace)
    assert sorted(shown(done["hits"])) == [("hive01.md", "fresh"), ("hive02.md", "fresh")]
    assert "1 conflict-markers" in done["notes"][0]


def test_an_unmerged_file_without_marks_is_no_answer(workspace: Any) -> None:
    """Also where one side was taken as a whole, which git still has as unmerged."""
    path = two_sides(workspace, ours="Honey of ours.\n", theirs="Honey of theirs.\n")
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("merge", "-q", "other")
    path.write_text("Honey of ours.\n")
    done = asked(workspace)
    assert ("hive00.md", "fresh") not in shown(done["hits"])
    assert "1 conflict-markers" in done["notes"][0]
    workspace.git("add", "--all")
    assert ("hive00.md", "fresh") in shown(asked(workspace)["hits"])


def test_rm_keeps_its_hands_off_what_is_unmerged(workspace: Any) -> None:
    """After a stash pop nothing is under way, but the file is still git's to be resolved."""
    workspace.write("notes.md", "# Notes\n\nHoney in the notes.\n")
    workspace("add", "notes.md")
    path = workspace.chunked / workspace.chunks("notes.md")[0]
    workspace.git("add", "--all")
    workspace.git("commit", "-qm", "Base")
    text = path.read_text()
    path.write_text(text.replace("Honey", "Stashed honey"))
    workspace.git("stash", "-q")
    path.write_text(text.replace("Honey", "Committed honey"))
    workspace.git("commit", "-qam", "Ours")
    with pytest.raises(subprocess.CalledProcessError):
        workspace.git("stash", "pop", "-q")
    before = workspace.truth()
    done = workspace("rm", "notes.md", code=4)
    assert "unmerged" in done.stderr
    assert "git add" in done.stderr
    assert workspace.truth() == before
    path.write_text(text)
    workspace.git("add", "--all")
    workspace("rm", "notes.md")
    assert not path.exists()


def test_every_answer_says_that_the_full_text_is_of_another_time(tmp_path: Path) -> None:
    """Not the first one alone, where the store stays open."""
    with Store.create(tmp_path / "kb", embedder="builtin") as store:
        store.put(["Honey.\n"], into="notes")
    catalog = tmp_path / "kb" / ".sidecar" / "catalog.sqlite"
    shutil.copy(catalog, tmp_path)
    with Store(tmp_path / "kb") as store:
        store.put(["More honey.\n"], into="notes")
    os.replace(tmp_path / catalog.name, catalog)
    with Store(tmp_path / "kb") as store:
        first, second = (store.search("honey") for _ in range(2))
    assert "the full-text index is ahead: run 'filestore sync'" in first.notes
    assert second.notes == first.notes
