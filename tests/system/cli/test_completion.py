"""Completion in three shells, driven with keys, and the manual page as groff reads it."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.cli import _help
from tests import helped, pseudo_terminal, shell_files

Run = Callable[..., Any]
_FAKE: Final = """\
#!/bin/sh
printf '<%s>' "$@" >> "$CALLS"
echo >> "$CALLS"
echo "call $(wc -l < "$CALLS" | tr -d ' ') is done"
"""
"""Stands for the command: it notes how it was called, so that a run at TAB is seen, too."""
_TYPED: Final = {
    "ver": "<verify>",
    "embeddings pru": "<embeddings><prune>",
    "search --rewr": "<search><--rewrite>",
    "search --mode key": "<search><--mode><keyword>",
    "changes --verb": "<changes><--verbose>",
    "show boi": "<show><boiler.md>",
    "show garden/tu": "<show><garden/tulips.md>",
    "show lea": "<show><lease of the flat.md>",
    "--store gar": "<--store><garden>",
    "rm boi": "<rm><boiler.md>",
    "add boiler.md lea": "<add><boiler.md><lease of the flat.md>",
    "search tulip bulb --mode key": "<search><tulip><bulb><--mode><keyword>",
    "show --lines 1-2 boi": "<show><--lines><1-2><boiler.md>",
    "--store garden embeddings inf": "<--store><garden><embeddings><info>",
    "completion fi": "<completion><fish>",
    "help recons": "<help><reconstruct>",
}
"""What is typed before TAB and Enter, with the words that the command then gets."""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of documents, and `filestore` beside it."""
    made = tmp_path / "notes"
    (made / "garden").mkdir(parents=True)
    for name in ("boiler.md", "garden/tulips.md", "lease of the flat.md"):
        (made / name).write_text("# A note\n")
    fake = tmp_path / "bin" / "filestore"
    fake.parent.mkdir()
    fake.write_text(_FAKE)
    fake.chmod(0o755)
    return made


def _bash(folder: Path, text: str) -> list[str]:
    (folder / "rc").write_text(f"PS1='ready> '\n{text}")
    return ["--noprofile", "--rcfile", str(folder / "rc"), "-i"]


def _zsh(folder: Path, text: str) -> list[str]:
    (folder / "_filestore").write_text(text)
    rc = "fpath=($ZDOTDIR $fpath)\nautoload -U compinit\ncompinit -u -D\nPS1='ready> '\n"
    (folder / ".zshrc").write_text(rc)
    return ["-i"]


def _fish(folder: Path, text: str) -> list[str]:
    (folder / "fish" / "completions").mkdir(parents=True)
    (folder / "fish" / "completions" / "filestore.fish").write_text(text)
    (folder / "fish" / "config.fish").write_text(
        "set fish_greeting\nfunction fish_prompt\n echo 'ready> '\nend\n"
    )
    return ["-i"]


@pytest.mark.parametrize("shell", [_bash, _zsh, _fish])
def test_tab_completes(shell: Callable[[Path, str], list[str]], notes: Path, run: Run) -> None:
    """Commands, actions, options, their values and paths; nothing of filestore runs for that."""
    name = shell.__name__.removeprefix("_")
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not here")
    home = notes.parent / "home"
    home.mkdir()
    words = shell(home, run("completion", name).stdout)
    lines = [f"filestore {typed}\t\r".encode() for typed in _TYPED] + [b"exit\r"]
    awaited = ["ready> ", *(f"call {n} is done" for n in range(1, len(_TYPED) + 1))]
    calls = notes.parent / "calls"
    pseudo_terminal.on_terminal(
        notes,
        *words,
        program=[program],
        within_s=40.0,
        keys=[*zip(awaited, lines, strict=True)],
        PATH=f"{notes.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
        CALLS=str(calls),
        HOME=str(home),
        ZDOTDIR=str(home),
        XDG_CONFIG_HOME=str(home),
        XDG_DATA_HOME=str(home),
    )
    # In zsh the slash behind a folder goes with Enter.
    got = calls.read_text().replace("garden/>", "garden>").splitlines()
    assert dict(zip(_TYPED, got, strict=True)) == _TYPED


@pytest.mark.parametrize("shell", shell_files.SHELLS)
def test_every_word_is_offered(shell: str, run: Run) -> None:
    """Each command, action and option of the help; the notice of what is not ours is kept."""
    text = run("completion", shell).stdout
    assert "Mozilla\n# Public License, v. 2.0." in text
    for words in helped.words():
        assert re.search(rf"\b{words[-1]}\b", text)
    for name, one in _help.records().items():
        for form, _ in one["options"]:
            option = re.split("[, ]", form)[0]
            if shell == "fish":
                option = f"-l {option[2:]}" if option[:2] == "--" else f"-s {option[1:]}"
            assert f"{option} " in text or f"{option}[" in text or f"{option}," in text, name


def test_groff_reads_the_manual_page() -> None:
    """Without a warning, and nothing of any command is lost."""
    program = shutil.which("groff")
    if program is None:
        pytest.skip("groff is not here")
    words = [program, "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=1000n", shell_files.MANUAL]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    said = " ".join(done.stdout.split())
    for name, one in _help.records().items():
        assert f"usage: filestore {name} {one['usage']}".replace("…", "...") in said
        for text in (*one["about"], *one["examples"], *(text for _, text in one["arguments"])):
            assert " ".join(text.split()) in said, name
