"""The instructions of a model: shipped, or in a folder of the store that its user allowed."""

import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from filestore.generate._prompts import (
    KINDS,
    MOST_BYTES,
    PromptsUnusable,
    prompts_with,
    read_own,
    shipped,
)
from tests.advice import advised

OWN = "version: 3\n\nAsk {count} things.\n"
REPOSITORY = Path(__file__).resolve().parents[3]

Writer = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Writer:
    """Writes prompts into a store: ``store(questions=OWN)`` returns its root."""

    def write(folder: str = "prompts", **texts: str | bytes) -> str:
        (tmp_path / folder).mkdir(exist_ok=True, parents=True)
        for kind, text in texts.items():
            data = text if isinstance(text, bytes) else text.encode()
            (tmp_path / folder / f"{kind}.md").write_bytes(data)
        return str(tmp_path)

    return write


def test_every_kind_has_a_shipped_prompt() -> None:
    """Each names its version, which the model does not see, and takes the number that is wanted."""
    prompts = prompts_with(None)
    for kind in KINDS:
        assert shipped()[kind].startswith("version: 1\n")
        assert not prompts.text(kind, 7).startswith("version")
        assert "{count}" not in prompts.text(kind, 7)
    assert "at most 7 questions" in prompts.text("questions", 7)


def test_an_installation_has_them() -> None:
    """What is no module is installed only where pyproject.toml names it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]
    for path in (REPOSITORY / "filestore/generate/prompts").iterdir():
        patterns = project["package-data"]["filestore.generate"]
        assert any(fnmatch(f"prompts/{path.name}", pattern) for pattern in patterns)


def test_own_prompts_stand_in_for_shipped_ones(store: Writer) -> None:
    """A store may change one and keep the others; line ends and nothing else are all the same."""
    own = read_own(store(questions=OWN), "prompts")
    prompts = prompts_with(own)
    assert own.files == ("prompts/questions.md",)
    assert prompts.text("questions", 2) == "Ask 2 things."
    assert prompts.text("summary", 2) == prompts_with(None).text("summary", 2)
    assert prompts.digest != prompts_with(None).digest
    windows = read_own(store(questions=OWN.replace("\n", "\r\n")), "./prompts/")
    assert prompts_with(windows).digest == prompts.digest


def test_a_changed_prompt_is_another_one_to_allow(store: Writer) -> None:
    """What was allowed is the text: any other byte, and any other file, is asked about anew."""
    seen = {read_own(store(questions=OWN), "prompts").reach}
    seen.add(read_own(store(questions=OWN + " "), "prompts").reach)
    seen.add(read_own(store(questions=OWN, summary=OWN), "prompts").reach)
    seen.add(read_own(store("other", summary=OWN), "other").reach)
    assert len(seen) == 4
    assert all(one.startswith("prompts sha256:") for one in seen)
    assert read_own(store("again", summary=OWN), "again").reach in seen


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"Ask things.\n", "version: 1"),
        (b"version: 1\n \n", "version: 1"),
        (b"version: one\nAsk.\n", "version: 1"),
        (b"", "version: 1"),
        (b"version: 1\n\xff\n", "UTF-8"),
        (b"version: 1\n" + b"x" * MOST_BYTES, "limit"),
    ],
)
def test_a_prompt_that_is_none_is_said(store: Writer, data: bytes, said: str) -> None:
    """A file that cannot be a prompt is named with what is wrong."""
    with pytest.raises(PromptsUnusable) as caught:
        read_own(store(rewrite=data), "prompts")
    assert "rewrite.md" in caught.value.message
    assert said in caught.value.message
    assert advised(caught.value) or "; fix that, or remove `prompts`" in caught.value.message


@pytest.mark.parametrize(
    "folder", ["", ".", "..", "../prompts", "/etc", "a/../..", "missing", "a\0b", "note.md"]
)
def test_prompts_lie_below_the_root(store: Writer, folder: str) -> None:
    """A store cannot have a file from outside it sent to a service."""
    root = store(questions=OWN)
    (Path(root) / "note.md").write_text("a note")
    with pytest.raises(PromptsUnusable):
        read_own(root, folder)


@pytest.mark.parametrize("linked", ["prompts", "prompts/questions.md"])
def test_no_link_leads_out(store: Writer, tmp_path: Path, linked: str) -> None:
    """A symbolic link is not followed, neither as the folder nor as the file."""
    root = tmp_path / "root"
    store("elsewhere", questions=OWN)
    (root / linked).parent.mkdir(parents=True)
    target = tmp_path / "elsewhere" / Path(linked).relative_to("prompts")
    (root / linked).symlink_to(target)
    with pytest.raises(PromptsUnusable):
        read_own(str(root), "prompts")
