"""A release is cut on a copy: heading, version, commit, tag; a refusal changes nothing."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from filestore._version import __version__
from tests.release import release

ROOT = Path(__file__).resolve().parent.parent
NEXT = "{}.{}.0".format(*(int(one) + n for n, one in enumerate(__version__.split(".")[:2])))


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that a release changes, with something unreleased, in a repository of their own."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    root = tmp_path / "copy"
    (root / "filestore").mkdir(parents=True)
    shutil.copy(ROOT / "filestore" / "_version.py", root / "filestore")
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if "\n## Unreleased\n" not in text:
        text = text.replace("\n## ", "\n## Unreleased\n\n- A change.\n\n## ", 1)
    (root / "CHANGELOG.md").write_text(text, "utf-8")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "All")
    return root


def test_a_release_has_heading_version_and_tag(copy: Path) -> None:
    """In one commit, which the tag names."""
    before = (copy / "CHANGELOG.md").read_text("utf-8")
    assert release(copy, NEXT) == f"v{NEXT}"
    text = (copy / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert headings == [NEXT, *re.findall(r"^## (\S+)", before, re.MULTILINE)[1:]]
    assert re.search(rf"^## {re.escape(NEXT)} - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)
    assert f'__version__ = "{NEXT}"' in (copy / "filestore" / "_version.py").read_text("utf-8")
    assert git(copy, "status", "--porcelain") == ""
    assert git(copy, "rev-parse", f"v{NEXT}^{{commit}}") == git(copy, "rev-parse", "HEAD")
    assert git(copy, "log", "-1", "--format=%s") == f"Release {NEXT}"
    with pytest.raises(SystemExit, match="not higher"):
        release(copy, NEXT)


@pytest.mark.parametrize(
    ("version", "words"), [("0.3", "no version"), (__version__, "not higher"), ("0.0.9", "higher")]
)
def test_a_wrong_version_is_refused(copy: Path, version: str, words: str) -> None:
    """And nothing is changed."""
    head = git(copy, "rev-parse", "HEAD")
    with pytest.raises(SystemExit, match=words):
        release(copy, version)
    assert (git(copy, "status", "--porcelain"), git(copy, "rev-parse", "HEAD")) == ("", head)
    assert git(copy, "tag") == ""


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.txt"])
def test_an_unclean_tree_is_refused(copy: Path, name: str) -> None:
    """Whether a file was edited or is new; it stays as it is."""
    with (copy / name).open("a") as file:
        file.write("mine\n")
    kept = (copy / name).read_bytes()
    with pytest.raises(SystemExit, match="not clean"):
        release(copy, NEXT)
    assert (copy / name).read_bytes() == kept
    assert git(copy, "tag") == ""


def test_nothing_unreleased_is_refused(copy: Path) -> None:
    """Without the heading, or with nothing below it."""
    path = copy / "CHANGELOG.md"
    text = path.read_text("utf-8")
    first, _, rest = text.partition("## Unreleased\n")
    empty = f"{first}## Unreleased\n\n## {rest.partition(chr(10) + '## ')[2]}"
    for one in (text.replace("## Unreleased", "## 9.9.9"), empty):
        path.write_text(one, "utf-8")
        git(copy, "commit", "-qam", "Change")
        with pytest.raises(SystemExit, match="nothing unreleased"):
            release(copy, NEXT)


def test_the_public_forge_runs_the_stages() -> None:
    """Its workflow runs `.ci/run` itself, with the programs that it would install as root."""
    workflow: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    lines = [step["run"] for step in job["steps"] if "run" in step]
    assert lines[-1] == ".ci/run"
    found = re.search(r"install -qy (.*) >", (ROOT / ".ci/run").read_text("utf-8"))
    assert found
    wanted = found[1].replace("chromium", "chromium-browser").split()
    assert set(wanted) <= set(lines[0].split())
    assert workflow["permissions"] == {"contents": "read"}
