"""What commits did to one file, held against what git says itself."""

import random
import subprocess
from pathlib import Path

import pytest

from filestore.git.lineage import Step, lineage
from filestore.git.process import NoAnswerError
from tests.system.conftest import git_free


class Repository:
    """A git work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_700_000_000
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        """Run git; its output."""
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        self._clock += 60
        when = f"{self._clock} +0000"
        done = subprocess.run(
            ["git", *who, *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            env=git_free() | {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when},
        )
        return done.stdout.strip()

    def commit(self, message: str, **files: str | None) -> None:
        """Write some files, whose names have _ for a dot; None for one that goes."""
        for name, text in files.items():
            path = self.folder / name.replace("_", ".")
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def steps(self, path: str) -> list[Step]:
        """Those that did something."""
        found = lineage(str(self.folder), path)
        return [one for one in found if not any(side == one.after for side in one.before)]

    def subjects(self, path: str) -> list[str]:
        """What these are called."""
        return [one.commit.subject for one in self.steps(path)]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One without commits."""
    return Repository(tmp_path / "work")


TEXT = "".join(f"line {number}\n" for number in range(20))


def test_through_renames(repository: Repository) -> None:
    """A file is followed to its first name, and another file of that name later is not its own."""
    repository.commit("begin", a_md=TEXT)
    repository.commit("edit", a_md=TEXT + "more\n")
    repository.commit("rename", a_md=None, b_md=TEXT + "more\nand more\n")
    repository.commit("another", a_md="something else\n")
    repository.commit("rename back", b_md=None, c_md=TEXT + "more\nand more\n")
    assert repository.subjects("c.md") == ["rename back", "rename", "edit", "begin"]
    assert repository.subjects("a.md") == ["another", "rename", "edit", "begin"]
    (renamed,) = (one for one in repository.steps("c.md") if one.commit.subject == "rename")
    assert [side.path for side in renamed.before] == ["a.md"]
    assert repository.subjects("b.md") == ["rename back", "rename", "edit", "begin"]


def test_through_merges(repository: Repository) -> None:
    """Both branches are followed; a merge that only took them did nothing itself."""
    repository.commit("begin", a_md=TEXT)
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", a_md=TEXT + "side\n")
    repository.git("checkout", "-q", "main")
    repository.commit("main", a_md="main\n" + TEXT)
    repository.git("merge", "-q", "-m", "merge", "side")
    assert repository.subjects("a.md") == ["merge", "main", "side", "begin"]
    repository.git("checkout", "-q", "-b", "other")
    repository.commit("other", a_md="other\n" + TEXT)
    repository.git("checkout", "-q", "main")
    repository.commit("elsewhere", b_md="b")
    repository.git("merge", "-q", "-m", "second merge", "other")
    assert repository.subjects("a.md")[:2] == ["other", "merge"]


def test_a_file_that_is_gone(repository: Repository) -> None:
    """Its end is its first step; one that came back has both lives."""
    repository.commit("begin", a_md="words\n")
    repository.commit("gone", a_md=None)
    assert repository.subjects("a.md") == ["gone", "begin"]
    repository.commit("back", a_md="other words\n")
    assert repository.subjects("a.md") == ["back", "gone", "begin"]
    assert repository.subjects("nothing.md") == []
    assert repository.subjects(".") == []


def test_odd_names(repository: Repository) -> None:
    """Names with line ends, pathspec signs and bytes that are not UTF-8 are names like others."""
    for name in (":(top)a\nb", "*.md", "-x", " ", b"caf\xe9".decode("utf-8", "surrogateescape")):
        (repository.folder / name).write_text(f"of {name!r}")
        repository.commit(repr(name))
        assert repository.subjects(name) == [repr(name)]


def test_no_commit(repository: Repository) -> None:
    """Git says that there is none."""
    with pytest.raises(NoAnswerError):
        list(lineage(str(repository.folder), "a.md"))


@pytest.mark.parametrize("seed", range(3))
def test_as_git_says(repository: Repository, seed: int) -> None:
    """In a history without merges it is what `git log --follow` tells."""
    chosen = random.Random(seed)
    names = ["n0.md", "n1.md", "n2.md"]
    count = 3
    for name in names:
        (repository.folder / name).write_text(f"{name}\n{TEXT}")
    for number in range(25):
        at = chosen.randrange(len(names))
        path = repository.folder / names[at]
        if chosen.random() < 0.3:
            names[at], count = f"n{count}.md", count + 1
            path = path.rename(repository.folder / names[at])
        if chosen.random() < 0.7:
            path.write_text(path.read_text() + f"{number} {chosen.random()}\n")
        repository.commit(f"{number}")
    for name in names:
        told = repository.git("log", "--follow", "--format=%s", "--", name).split("\n")
        assert repository.subjects(name) == told
