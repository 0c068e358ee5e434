"""What `search` prints: documents first, with their place; formats, lists and groups for pipes."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.core.errors import UsageError
from tests.advice import advised
from tests.system.conftest import Workspace

NOTE = (
    "# File explorer\n\nIt lists every note.\n\n## Rename a note\n\n"
    "Press F2 on a note to rename it.\nLinks to it follow.\n\n"
    "## Colours\n\nA colour for every folder.\n"
)


@pytest.fixture
def vault(workspace: Workspace) -> Workspace:
    """A folder of notes."""
    workspace.write("Vault/Plugins/File explorer.md", NOTE)
    workspace.write("Vault/Daily.md", "# Daily\n\nA note for each day, which nobody renames.\n")
    workspace("add", "Vault")
    return workspace


def test_a_line_of_output_is_never_empty(workspace: Workspace) -> None:
    """A page of HTML has no line to name; links are their text; a picture is how it is written."""
    folder = workspace.folder / "pages"
    workspace.write("pages/page.html", "<h1>Harbour</h1><p>The <a href='q.html'>quay</a> is wide.")
    workspace.write("pages/map.md", "# Map of the quay\n\n![](quay.png)\n")
    workspace.write("pages/alone.md", "![](quay.png)\n")
    workspace.write("pages/note.md", 'See [the quay](quay.md "A. B") of [[Kiel|the town]].\n')
    workspace("init", "--in-place", str(folder), "--embedder", "builtin")
    found = workspace("--store", str(folder), "search", "quay", "--format", "oneline", cwd=folder)
    assert sorted(found.stdout.splitlines()) == [
        "alone.md:1: ![](quay.png)",
        "map.md:1: Map of the quay",
        "note.md:1: See the quay of the town.",
        "page.html: The quay is wide.",
    ]


def test_the_document_comes_first_then_the_place(vault: Workspace) -> None:
    """Relative to the folder the user is in, with line and headings, and the lines that match."""
    first, *rest = vault("search", "rename links", "-k", "1").stdout.splitlines()
    assert first.startswith("Vault/Plugins/File explorer.md:7  File explorer > Rename a note")
    day = vault.json("search", "rename links", "-k", "1")["hits"][0]["date"]
    assert rest == [
        f"   ({day}; 'rename' in the heading; 'links' in the text)",
        "   Press F2 on a note to rename it.",
        "   Links to it follow.",
    ]
    inside = vault("search", "rename links", "-k", "1", cwd=vault.folder / "Vault" / "Plugins")
    assert inside.stdout.startswith("File explorer.md:7  ")
    beside = vault("search", "rename links", "-k", "1", cwd=vault.chunked)
    assert beside.stdout.startswith("../../Vault/Plugins/File explorer.md:7  ")


def test_one_line_a_hit(vault: Workspace) -> None:
    """As grep prints it, for whatever reads grep's output."""
    done = vault("search", "rename links", "--format", "oneline", "-k", "2")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "Vault/Plugins/File explorer.md:7: Press F2 on a note to rename it. Links to it follow."
    )
    for line in lines:
        path, number, excerpt = line.split(":", 2)
        shown = (vault.folder / path).read_text().splitlines()[int(number) - 1]
        assert excerpt.strip().startswith(shown)


def test_templates_have_a_closed_set_of_fields(vault: Workspace) -> None:
    """Each has its value, what is not known is empty, and a wrong name lists the right ones."""
    from filestore.cli.search import FIELDS

    every = "|".join(f"{{{field}}}" for field in FIELDS)
    done = vault("search", "rename links", "-k", "1", "--format", every)
    values = dict(zip(FIELDS, done.stdout.removesuffix("\n").split("|"), strict=True))
    assert values["document"] == "Vault/Plugins/File explorer.md"
    assert (values["line"], values["end_line"], values["page"]) == ("7", "8", "")
    assert values["section"] == "File explorer > Rename a note"
    assert values["path"].startswith("file_index/chunked/Vault/")
    assert values["title"] == "File explorer"
    done = vault("search", "rename links", "-k", "1", "--format", r"{{{line}}}\t{{x}}\n")
    assert done.stdout == "{7}\t{x}\n\n"
    for wrong in ("", "{documant}", "{", "{document.x}", "{0}", "{}", "{line:>9}"):
        refused = vault("search", "x", "--format", wrong, code=2)
        assert (
            "{document}" in refused.stderr or "fields are document, place, line" in refused.stderr
        )


def test_a_store_and_a_folder_behind_links(vault: Workspace) -> None:
    """The path that is printed opens from where the user is, the one in JSON from the root."""
    deep = vault.folder / "far" / "away"
    deep.mkdir(parents=True)
    (deep / "store").symlink_to(vault.store)
    (vault.folder / "linked").symlink_to(vault.folder / "Vault" / "Plugins")
    for cwd, store in ((deep, "store"), (vault.folder / "linked", str(vault.store))):
        done = vault("--store", store, "search", "rename links", "-k", "1", "-l", cwd=cwd)
        assert (cwd.resolve() / done.stdout.removesuffix("\n")).resolve().read_text() == NOTE
        told = vault("--store", store, "--json", "search", "rename links", "-k", "1", cwd=cwd).json
        assert os.path.isabs(told["root"])
        path = os.path.normpath(os.path.join(told["root"], told["hits"][0]["document"]))
        assert Path(path).read_text() == NOTE


def test_only_documents_each_once(vault: Workspace) -> None:
    """For what opens or counts them; NUL keeps every name whole."""
    listed = vault("search", "note", "-l").stdout.splitlines()
    assert sorted(listed) == ["Vault/Daily.md", "Vault/Plugins/File explorer.md"]
    records = vault("search", "note", "-l", "-0").stdout.split("\0")
    assert records.pop() == ""
    assert set(records) == {"Vault/Daily.md", "Vault/Plugins/File explorer.md"}
    formatted = vault("search", "rename links", "-k", "1", "-0", "--format", "{line}").stdout
    assert formatted == "7\0"


def test_options_that_exclude_each_other(vault: Workspace) -> None:
    """Nobody wonders which of them held."""
    for words in (
        ("-l", "--json"),
        ("-l", "--format", "oneline"),
        ("-0",),
        ("--json", "--format", "x"),
    ):
        done = vault("search", "note", *words, code=2)
        assert ("exclude each other" in done.stdout + done.stderr) is (words != ("-0",))
    assert "-k" in vault("search", "note", "-k", "0", "--group", "document", code=2).stderr
    assert "context" in vault("search", "note", "--context", "-1", code=2).stderr


def test_one_hit_a_document(vault: Workspace) -> None:
    """The best one, with how many others there are; -k counts documents."""
    filler = "".join(f"Sentence {n} about ballast and its weight in a boat.\n" for n in range(120))
    vault.write("long.md", f"# Long\n\n{filler}")
    vault("add", "long.md")
    plain = vault.json("search", "ballast note", "-k", "50")["hits"]
    done = vault.json("search", "ballast note", "--group", "document", "-k", "3")["hits"]
    assert len(done) == 3
    assert len({hit["source"] for hit in done}) == 3
    for hit in done:
        same = [one for one in plain if one["source"] == hit["source"]]
        assert hit["path"] == same[0]["path"]
        assert hit.get("others", 0) == len(same) - 1
    assert max(hit.get("others", 0) for hit in done) > 1
    assert "more)" in vault("search", "ballast", "--group", "document").stdout


def test_lines_around(vault: Workspace) -> None:
    """Of the document, as many as there are; in JSON beside the excerpt."""
    (hit,) = vault.json("search", "rename links", "-k", "1", "--context", "2")["hits"]
    assert hit["before"] == ["## Rename a note", ""]
    assert hit["after"] == ["", "## Colours"]
    (hit,) = vault.json("search", "rename links", "-k", "1", "--context", "100")["hits"]
    lines = [*hit["before"], *hit["excerpt"].split("\n"), *hit["after"]]
    assert "\n".join(lines) + "\n" == NOTE
    shown = vault("search", "rename links", "-k", "1", "--context", "1").stdout.splitlines()
    assert shown[2:] == [
        "   6-",
        "   7: Press F2 on a note to rename it.",
        "    : Links to it follow.",
        "   9-",
    ]
    wide = vault("search", "rename links", "-k", "1", "--context", "3").stdout.splitlines()
    assert (wide[2], wide[-1]) == ("    4-", "   11-")


def test_lines_around_what_has_no_lines_have_no_number(workspace: Workspace) -> None:
    """They are marked all the same; a long one is cut, the excerpt is not."""
    folder = workspace.folder / "pages"
    long = "The quay is wide and long, " * 6
    workspace.write("pages/page.html", f"<p>Kiel.</p><p>{long}</p><p>{'Boats ' * 40}</p>")
    workspace("init", "--in-place", str(folder))
    done = workspace("--store", str(folder), "search", "quay", "--context", "2").stdout
    lines = done.splitlines()
    assert [line[:5] for line in lines[2:]] == ["   - ", "   -", *["   : "] * 3, "   -", "   - "]
    assert all(len(line) <= 80 for line in lines)
    assert lines[-1].endswith("…")


def test_gone_files_are_named_in_words_alone(vault: Workspace) -> None:
    """A list of documents to be opened holds none that is not there."""
    for path in vault.chunked.rglob("chunk*.md"):
        path.unlink()
    assert "[gone]" in vault("search", "rename", code=1).stdout
    assert vault("search", "rename", "-l", code=1).stdout == ""
    assert vault("search", "rename", "--format", "oneline", code=1).stdout == ""


def on_a_terminal(folder: Path, *words: str, **variables: str) -> str:
    """What a command prints on a terminal of 80 columns."""
    import fcntl
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "filestore", *words],
        cwd=folder,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[3]), **variables},
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65_536)
        except OSError:
            break
        if not data:
            break
        shown += data
    process.wait(timeout=60)
    os.close(leader)
    return shown.decode()


def test_matches_are_marked_on_a_terminal_alone(vault: Workspace) -> None:
    """In colour, unless the user wants none; a pipe gets plain text."""
    shown = on_a_terminal(vault.folder, "search", "rename links", "-k", "1")
    assert "\x1b[31mrename\x1b[0m" in shown
    assert "\x1b[31mLinks\x1b[0m" in shown
    assert "\x1b" not in on_a_terminal(vault.folder, "search", "rename", NO_COLOR="1")
    for dumb in ("", "dumb"):
        assert "\x1b" not in on_a_terminal(vault.folder, "search", "rename", TERM=dumb)
    assert "\x1b" not in vault("search", "rename").stdout


def test_no_line_is_wider_than_the_terminal(vault: Workspace) -> None:
    """Also of scripts that take two columns a sign, and of words without end."""
    vault.write(
        "wide.md", "# Wide\n\n" + "東京は日本の首都です" * 12 + "。\n\n" + "harbour" * 40 + "\n"
    )
    vault("add", "wide.md")
    for query in ("首都", "harbour*"):
        shown = re.sub(
            r"\x1b\[[\d;]*m", "", on_a_terminal(vault.folder, "search", query, "-k", "1")
        )
        for line in shown.splitlines()[1:]:
            assert sum(2 if ord(sign) > 0x2000 else 1 for sign in line) <= 80


def test_what_is_in_files_steers_no_terminal(vault: Workspace) -> None:
    """Neither in words nor in a format, not even as a record of bytes on a terminal."""
    vault.write("evil.md", "# Evil \x1b]0;owned\x07\n\nThe \x1b[2J trap \u202e is here.\n")
    vault("add", "evil.md")
    for words in (
        (),
        ("--format", "{title} {section} {excerpt}"),
        ("--format", "{excerpt}", "-0"),
    ):
        done = vault("search", "trap", "-k", "1", *words)
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
        assert r"\x1b" in done.stdout


def test_names_that_are_not_utf8(vault: Workspace) -> None:
    """Shown with their bytes; as bytes where the record ends with NUL."""
    path = os.fsencode(vault.chunked) + b"/note\xff.md"
    with open(path, "wb") as file:
        file.write(b"The capstan turns.\n")
    vault.sync(code=1)
    assert vault("search", "capstan", "-l").stdout == "file_index/chunked/note\\xff.md\n"
    done = subprocess.run(
        [sys.executable, "-m", "filestore", "search", "capstan", "-l", "-0"],
        cwd=vault.folder,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.stdout == b"file_index/chunked/note\xff.md\0"


def test_a_pipe_that_closes_is_no_error(vault: Workspace) -> None:
    """As of `| head`."""
    filler = "".join(f"# Part {n}\n\nBallast number {n}.\n\n" for n in range(2_000))
    vault.write("long.md", filler)
    vault("add", "long.md")
    command = f"{sys.executable} -m filestore search ballast -k 2000 --format oneline | head -n 1"
    done: Any = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=vault.folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_context_has_a_place_in_a_template(vault: Workspace) -> None:
    """Lines around are fields of a template; one that has no place for them is refused."""
    asked = ("search", "rename links", "-k", "1", "--context", "2")
    done = vault(*asked, "--format", "{before}|{line}|{after}")
    assert done.stdout == "## Rename a note|7|## Colours\n"
    for records in (("--format", "oneline"), ("-l",)):
        assert "no place" in vault(*asked, *records, code=2).stderr


@pytest.mark.parametrize("query", ["", "  ", "\t\n"])
def test_a_question_without_a_word_is_wrong_usage(vault: Workspace, query: str) -> None:
    """In every command that takes one, and in the library."""
    for command in ("search", "similar", "links", "show", "log"):
        assert advised(vault(command, query, code=2).stderr)
    with filestore.open(vault.store) as store, pytest.raises(UsageError, match="nothing is asked"):
        store.search(query)
