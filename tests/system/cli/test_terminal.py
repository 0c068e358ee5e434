"""What every command knows of the terminal: its width, its colours, who answers a question."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.cli import main
from filestore.server import wire
from tests.pseudo_terminal import on_terminal

Run = Callable[..., Any]
TEXT: Final = (
    "The lease of the house by the lake runs until the end of June and renews by itself, unless"
    " one of the two says in writing by the end of March that it does not."
)


@pytest.fixture
def vault(run: Run, tmp_path: Path) -> Path:
    """Documents in place, one edited, one gone, two that begin like options."""
    folder = tmp_path / "vault"
    (folder / "contracts of the house").mkdir(parents=True)
    lease = folder / "contracts of the house" / "lease.md"
    lease.write_text(f"# Contracts of the house by the lake\n\n## Lease of the garden\n\n{TEXT}\n")
    for name in ("ferns.md", "roof.md", "-k.md", "--note.md"):
        (folder / name).write_text(f"# {name}\n\nWords of {name}.\n")
    run("init", "--in-place", str(folder), "--embedder", "builtin")
    (folder / "roof.md").write_text("# Roof\n\nChanged.\n")
    (folder / "ferns.md").unlink()
    return folder


def dense(text: str) -> str:
    """A text without its blanks and line ends."""
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["verify"],
        ["search", "lease", "--no-update"],
        ["similar", "contracts of the house/lease.md"],
    ],
    ids=lambda words: words[0],
)
def test_nothing_is_lost_where_the_terminal_is_narrow(
    vault: Path,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lines are broken between words: what 80 columns show, 40 and 20 show as well."""
    monkeypatch.chdir(vault)
    usual = ""
    for columns in (80, 40, 20):
        monkeypatch.setattr(wire, "columns", lambda columns=columns: columns)
        main(words)
        narrow = capsys.readouterr().out
        usual = usual or narrow
        assert dense(narrow) == dense(usual)
        long = [line for line in narrow.splitlines() if len(line) > columns]
        # Only a word that is longer than the line.
        assert not [line for line in long if " " in line.strip()]


def test_prose_is_no_wider_than_it_reads_well(vault: Path) -> None:
    """A terminal of 400 columns has no lines of 400."""
    shown = on_terminal(vault, "verify", size=(24, 400), NO_COLOR="1").text
    assert max(map(len, shown.splitlines())) <= 100


def test_a_terminal_without_a_width_has_that_of_columns(vault: Path) -> None:
    """As `script` in a timer and a serial line have it; else it has 80."""
    for columns, wide in (("", 80), ("50", 50)):
        shown = on_terminal(vault, "search", "lease", size=(0, 0), NO_COLOR="1", COLUMNS=columns)
        assert wide - 12 < max(map(len, shown.text.splitlines())) <= wide


def test_colours_are_as_the_variables_say(run: Run, vault: Path) -> None:
    """NO_COLOR before FORCE_COLOR, that before TERM, and that before where it is written to."""
    words = ("search", "lease", "--no-update")
    assert "\x1b[" in on_terminal(vault, *words).text
    assert "\x1b[" not in on_terminal(vault, *words, TERM="dumb").text
    assert "\x1b[" in on_terminal(vault, *words, TERM="dumb", FORCE_COLOR="1").text
    assert "\x1b[" not in on_terminal(vault, *words, NO_COLOR="1", FORCE_COLOR="1").text
    store = ("--store", str(vault))
    assert "\x1b[" not in run(*store, *words, env={"FORCE_COLOR": "0"}).stdout
    forced = {"FORCE_COLOR": "1", "NO_COLOR": ""}
    assert "\x1b[" in run(*store, *words, env=forced).stdout
    assert "\x1b[" not in run(*store, *words, "--json", env=forced).stdout


@pytest.mark.parametrize("keys", [b"\x04", b"\x03"], ids=["end", "stop"])
def test_what_follows_a_question_is_on_a_line_of_its_own(vault: Path, keys: bytes) -> None:
    """Also where the input ends there, or Ctrl-C ends it; nothing was done by then."""
    shown = on_terminal(vault, "repair", keys=[("[y/N] ", keys)])
    assert shown.code in (4, 130)
    assert "nothing was changed" in shown.text
    assert re.search(r"\[y/N\] (\^C)?\nfilestore: ", shown.text)


@pytest.mark.parametrize("name", ["-k.md", "--note.md"])
def test_a_name_that_begins_like_an_option_is_told_how_to_be_typed(
    run: Run, vault: Path, name: str
) -> None:
    """The command that is named shows it."""
    done = run("show", name, cwd=vault)
    assert done.code == 2
    assert f"try: filestore show -- {name}\n" in done.stderr
    assert f"Words of {name}." in run("show", "--", name, cwd=vault).stdout


@pytest.mark.parametrize("words", ["status", "init", "help search", "completion bash", "doctor"])
def test_an_empty_store_is_wrong_usage(run: Run, tmp_path: Path, words: str) -> None:
    """Also of a command that needs no store; nothing is made."""
    done = run("--store", "", *words.split(), cwd=tmp_path)
    assert (done.code, "the name of the store is empty" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_new_store_is_not_named_by_an_option(run: Run, tmp_path: Path) -> None:
    """It would be made elsewhere than a person meant."""
    done = run("--store", "my notes", "init", "--in-place", cwd=tmp_path)
    assert done.code == 2
    assert "try: filestore init --in-place 'my notes'\n" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_blank_is_named_in_a_command(run: Run, tmp_path: Path) -> None:
    """What is to be tried can be pasted."""
    (tmp_path / "my notes").mkdir()
    (tmp_path / "my notes" / "lease.md").write_text("# Lease\n\nWords.\n")
    done = run("--store", "my notes", "search", "lease", cwd=tmp_path)
    assert 'try: filestore init --in-place "my notes"\n' in done.stderr


def test_options_may_end_before_the_command(run: Run, vault: Path) -> None:
    """`--` ends those of the front, as scripts have it that write it always."""
    listed = run("ls", cwd=vault).stdout
    assert run("--", "ls", cwd=vault).stdout == listed
    assert run("--store", str(vault), "--", "ls").stdout == listed
    assert "no command '-x'" in run("--", "-x", cwd=vault).stderr


def test_the_version_on_a_full_disk_is_an_error_like_any() -> None:
    """No traceback, and the exit code of an answer that cannot be written."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "filestore", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


def test_quiet_prints_results_and_errors_alone(run: Run, vault: Path) -> None:
    """A sync without a word is one that left nothing; what is wrong is said all the same."""
    assert run("search", "lease", "nowhere", "-q", cwd=vault).stderr == ""
    done = run("-q", "sync", cwd=vault)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    done = run("show", "nothing.md", "-q", cwd=vault)
    assert done.code == 3
    assert "nothing.md" in done.stderr


@pytest.mark.parametrize("place", ["before", "behind"])
def test_verbose_tells_who_answers_and_how_long_it_takes(run: Run, vault: Path, place: str) -> None:
    """On standard error: what is printed as a result stays as it is."""
    plain = run("search", "lease", "--no-update", cwd=vault)
    words = ["search", "lease", "--no-update"]
    told = run(*(["-v", *words] if place == "before" else [*words, "-v"]), cwd=vault)
    assert told.stdout == plain.stdout
    assert "server: none answered\n" in told.stderr
    assert f"store: {vault} is the nearest around the working folder\n" in told.stderr
    assert f"model: builtin, by {vault}/filestore.toml\n" in told.stderr
    assert re.search(r"^search: \d+\.\d{3} s$", told.stderr, re.MULTILINE)
    named = run("--store", str(vault), "ls", "-v")
    assert "is named by --store\n" in named.stderr
    assert "is named by FILESTORE\n" in run("ls", "-v", env={"FILESTORE": str(vault)}).stderr


def test_colours_are_as_the_option_says(run: Run, vault: Path) -> None:
    """It comes before every variable."""
    words = ("--store", str(vault), "search", "lease", "--no-update")
    assert "\x1b[" in run(*words, "--color", "always", env={"NO_COLOR": "1"}).stdout
    assert "\x1b[" in run("--color=always", *words, env={"TERM": "dumb"}).stdout
    assert "\x1b[" not in on_terminal(vault, *words, "--color=never", FORCE_COLOR="1").text
    assert "invalid choice: 'sometimes'" in run(*words, "--color", "sometimes").stderr


def test_no_input_asks_nothing(vault: Path) -> None:
    """On a terminal it is as in a pipe: refused, with the option that answers."""
    shown = on_terminal(vault, "repair", "--no-input")
    assert shown.code == 4
    assert "[y/N]" not in shown.text
    assert "--yes" in shown.text


def test_in_a_query_only_words_of_their_own_are_options(run: Run, vault: Path) -> None:
    """What begins like one is a word that the query leaves out, and is told so."""
    for word in ("-quartz", "-vault", "-nothing", "-n3x", "-qv"):
        done = run("search", "lease", word, cwd=vault)
        assert (done.code, f"try: filestore search -- lease {word}\n" in done.stderr) == (2, True)
    assert "-- lease -n words" in run("search", "lease", "-n", "words", cwd=vault).stderr
    for words in (["-n", "1"], ["-n1"], ["--limit", "1"], ["--limit=1"], ["-k", "1"]):
        found = json.loads(run("search", "words", *words, "--json", cwd=vault).stdout)
        assert len(found["hits"]) == 1
    assert "-k must be at least 1" in run("search", "words", "-n", "0", cwd=vault).stderr
