"""`filestore repair` as a person meets it: what it prints, what it asks, how it exits."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def fill(workspace: Any) -> list[Path]:
    """A store of three notes; the paths of their chunk files."""
    names = ["amber.md", "basalt.md", "copper.md"]
    for name in names:
        workspace.write(name, f"# {name[:-3]}\n\nAll about {name[:-3]} here.\n")
    workspace("add", *names)
    return [workspace.chunked / workspace.chunks(name)[0] for name in names]


def edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"More words.\n")


def on_terminal(workspace: Any, *words: str, answer: bytes) -> tuple[int, str]:
    """Run one command on a terminal, where somebody answers; its exit code and what is seen."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "filestore", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    with subprocess.Popen(
        command,
        cwd=workspace.folder,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
    ) as process:
        os.close(follower)
        seen = b""
        while True:
            ready, _, _ = select.select([leader], [], [], 60)
            try:
                block = os.read(leader, 65536) if ready else b""
            except OSError:
                block = b""
            if not block:
                break
            seen += block
            if answer and b"[y/N]" in seen:
                os.write(leader, answer)
                answer = b""
        os.close(leader)
        return process.wait(), seen.decode()


def test_clean(workspace: Any) -> None:
    """On a clean store nothing is planned, asked or done."""
    fill(workspace)
    assert workspace("repair").stdout == "nothing to do\nclean\n"
    done = workspace.json("repair")
    assert done["plan"]["steps"] == done["plan"]["left"] == []
    assert done["applied"] == done["skipped"] == done["remaining"] == done["undo"] == []
    assert workspace.json("repair", "--plan")["plan"]["steps"] == []


def test_nobody_to_ask(workspace: Any) -> None:
    """Without a terminal and without ``--yes`` the plan is shown and nothing is done."""
    path = fill(workspace)[0]
    edit(path)
    done = workspace("repair", code=4)
    assert "re-index (1 file" in done.stdout
    assert "--yes" in done.stderr
    error = workspace.json("repair", code=4)
    assert "--yes" in error["error"]
    assert "modified" in workspace.drift()


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 4), (b"no\n", 4)])
def test_asked_on_a_terminal(workspace: Any, answer: bytes, code: int) -> None:
    """A person sees the plan first; only a yes applies it."""
    path = fill(workspace)[0]
    edit(path)
    found, seen = on_terminal(workspace, "repair", answer=answer)
    assert found == code
    assert "chunked/amber.md/chunk1.md" in seen
    assert "go on? [y/N]" in seen
    assert ("applied: re-index (1)" in seen) == (code == 0)
    assert ("modified" in workspace.drift()) == (code != 0)


def test_the_plan_in_words(workspace: Any) -> None:
    """Kinds with counts and bytes, what needs leave, the diff, the price, and what is left."""
    lost, edited, broken = fill(workspace)
    lost.unlink()
    edit(edited)
    broken.write_bytes(b"---\n[\n---\nWords.\n")
    done = workspace("repair", "--plan", "--write-files", code=1)
    lines = done.stdout.splitlines()
    assert any(line.startswith("restore (1 file, ") for line in lines)
    assert "    chunked/amber.md/chunk1.md  from the last seen text" in lines
    assert "      +All about amber here." in lines
    assert any(line.startswith("re-index (1 file, ") for line in lines)
    assert "builtin/1:384 has to embed 1 passage (0 from cache)" in lines
    assert "left for you:" in lines
    assert "    error malformed-frontmatter  chunked/copper.md/chunk1.md" in lines
    assert max(map(len, lines)) <= 100


def test_what_is_taken_in_again_in_words(workspace: Any) -> None:
    """A source that changed is planned with how many files it may touch, on narrow lines."""
    fill(workspace)
    workspace.write("amber.md", "# amber\n\nNothing but resin here.\n")
    words = workspace("repair", "--plan", "--write-files", code=1).stdout
    assert "up to 1 chunk file may change" in words
    assert "the number of passages is known only then" in " ".join(words.split())
    assert "embed 0 passages" not in words
    assert max(map(len, words.splitlines())) <= 80


def test_a_long_diff_is_cut(workspace: Any) -> None:
    """Forty lines of a file are shown, the rest is counted."""
    body = "\n".join(f"Line {number}." for number in range(200))
    path = workspace.chunked / "own.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(body)
    workspace.sync()
    path.unlink()
    done = workspace("repair", "--plan", "--write-files", code=1)
    shown = [line for line in done.stdout.splitlines() if line.startswith("      +Line")]
    assert len(shown) == 37
    assert "      … and 164 more lines" in done.stdout


def test_what_was_done_in_words(workspace: Any) -> None:
    """What was applied, how to take it back, and what remains."""
    lost, _, broken = fill(workspace)
    lost.unlink()
    broken.write_bytes(b"---\n[\n---\nWords.\n")
    done = workspace("repair", "--write-files", "--yes", code=1)
    lines = done.stdout.splitlines()
    assert "applied: restore (1), exclude from search (1)" in lines
    (undo,) = [line for line in lines if line.startswith("to undo it: ")]
    assert "remaining:" in lines
    assert lines[-1] == "not clean"
    workspace(*undo.removeprefix("to undo it: filestore ").split())
    assert not lost.exists()


def test_a_name_that_is_no_utf_8(workspace: Any) -> None:
    r"""A file whose name is not UTF-8 is shown with ``\xNN``, and repaired."""
    fill(workspace)
    path = os.path.join(os.fsencode(workspace.chunked), b"\xff.md")
    with open(path, "wb") as file:
        file.write(b"Words under a strange name.\n")
    assert "chunked/\\xff.md" in workspace("repair", "--plan", code=1).stdout
    done = workspace.json("repair", "--yes", code=None)
    assert [(step["kind"], step["path"]) for step in done["applied"]] == [
        ("index", "chunked/\\xff.md")
    ]
    assert workspace.json("search", "strange", "--mode", "keyword")["hits"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--only", "no-such-code"], 2, "no finding is called"),
        (["--path", "chunked/no/such.md"], 3, "no such file in the store, now or earlier"),
        (["--ours", "chunked/a.md", "--theirs", "chunked/a.md"], 2, "either --ours or --theirs"),
        (["--ours", "chunked/a.md"], 3, "no pending ingest conflict"),
        (["--level", "deeper"], 2, "--level"),
    ],
)
def test_wrong_calls(workspace: Any, words: list[str], code: int, said: str) -> None:
    """A call that cannot be meant says why, and changes nothing."""
    fill(workspace)
    committed = workspace.committed()
    done = workspace("repair", "--yes", *words, code=code)
    assert said in done.stderr
    assert workspace.committed() == committed


def test_without_a_store(workspace: Any, tmp_path: Path) -> None:
    """Where there is no store, that is said."""
    done = workspace("repair", cwd=tmp_path, code=3)
    assert "filestore init" in done.stderr


def test_an_accepted_warning_is_not_planned(workspace: Any) -> None:
    """What a person accepted is neither planned nor counted, unless it is named."""
    fill(workspace)
    workspace.write("amber.md", "# amber\n\nNothing but resin here.\n")
    settings = workspace.store / "filestore.toml"
    accepted = '\n[accepted]\nsource-modified = ["../amber.md"]\n'
    settings.write_text(settings.read_text() + accepted)
    assert workspace.json("repair", "--plan", "--write-files")["plan"]["steps"] == []
    planned = workspace.json(
        "repair", "--plan", "--write-files", "--only", "source-modified", code=1
    )["plan"]
    assert [step["kind"] for step in planned["steps"]] == ["reingest"]


def test_a_repeated_choice_adds_up(workspace: Any) -> None:
    """Two codes or paths, each behind an option of its own, are both mended."""
    for name in ("a.md", "b.md", "c.md", "kept.md"):
        workspace.write(name, f"The words of {name}.\n")
    workspace("add", "a.md", "b.md", "c.md", "kept.md")
    paths = [workspace.chunked / workspace.chunks(name)[0] for name in ("a.md", "b.md", "c.md")]
    before = workspace.truth()
    for path in paths:
        path.unlink()
    first, second, _ = (f"chunked/{path.relative_to(workspace.chunked)}" for path in paths)
    words = ("--path", first, "--path", second, "--only", "missing", "--only", "modified")
    done = workspace.json("repair", "--write-files", "--yes", *words, code=None)
    assert {step["path"] for step in done["applied"]} == {first, second}
    left = {path for path in before if not path.startswith("c.md/chunk")}
    assert set(workspace.truth()) == left
