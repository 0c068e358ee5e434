"""Every argument that names a file: none is waited for, and none that a person has is replaced.

The arguments come from the parsers of all commands, so that a new one has to find its row here.
"""

import argparse
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.cli._parser import command_parser
from filestore.core.errors import missing_packages
from filestore.exchange import base
from filestore.server.operations import COMMANDS
from tests.advice import advised

READ: Final = {
    "add paths": ("add", "PLACE"),
    "compare --queries": ("compare", "HEAD", "--queries", "PLACE"),
    "convert source": ("convert", "PLACE", "out.ragmd"),
    "embedder compare queries": ("embedder", "compare", "PLACE"),
    "embedder use folder": ("embedder", "use", "onnx:any", "PLACE"),
    "embeddings import pack": ("embeddings", "import", "PLACE"),
    "embeddings info pack": ("embeddings", "info", "PLACE"),
    "evaluate queries": ("evaluate", "PLACE"),
    "import source": ("import", "FORM", "PLACE"),
    "completion shell": (),  # one of three words
    "help about": (),  # a command, a page or a code
    "init folder": ("init", "PLACE"),
    "links path": ("links", "PLACE"),
    "mv path": ("mv", "PLACE", "pears.md"),
    "mcp stores": (),  # opened as those of serve, once an agent asks
    "open hit": ("open", "PLACE"),
    "reconstruct names": ("reconstruct", "PLACE", "--from", "ORIGIN"),
    "serve --collections": ("serve", "--collections", "PLACE"),
    "serve --documents": (),  # where documents of requests may lie; not looked at
    "serve stores": ("serve", "PLACE"),
    "show path": ("show", "PLACE"),
    "similar path": ("similar", "PLACE"),
    "tui place": ("tui", "PLACE"),
}
"""Arguments of what is read, to commands that name it; FORM and ORIGIN stand for each there is."""
WRITTEN: Final = {
    "convert target": ("convert", "kb.ragmd", "PLACE"),
    "embeddings export pack": ("embeddings", "export", "PLACE"),
    "export target": ("export", "FORM", "PLACE"),
    "mcp --to": ("mcp", "--install", "claude", "--yes", "--to", "PLACE"),
    "reconstruct -o": ("reconstruct", "note.md", "-o", "PLACE"),
}
"""Arguments of what is written."""
NO_FILE: Final = {
    *("--above", "--at", "--budget", "--by", "--context", "--depth", "--embedder", "--endpoint"),
    *("--format", "--from", "--generator", "--host", "--in", "--install", "--into", "--kind"),
    *("--layout", "--limit", "--lines", "--max", "--max-loss", "--min-overlap", "--most", "--name"),
    *("--only", "--ours", "--overlap", "--path", "--port", "--questions", "--recent", "--remove"),
    *(
        "--rerank",
        "--rewrite",
        "--sample",
        "--select",
        "--since",
        "--source",
        "--store",
        "--theirs",
        "--hunks",
    ),
    *(
        "--token",
        "--until",
        "--where",
        "-k",
        "-n",
        "action",
        "arguments",
        "asked",
        "embedder",
        "first",
    ),
    *("form", "id", "kind", "model", "name", "options", "resource", "resources"),
    *("second", "text", "to"),
}
"""What other arguments are called; those that name a file of the store are looked up in it."""
WORDS: Final = {"FORM": list(base.READ), "ORIGIN": ["folder", "jsonl"]}


def arguments(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """All that takes a word, as ``evaluate queries`` and ``reconstruct -o``."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from arguments(inner, f"{name} {word}")
        elif action.nargs != 0 and (not action.choices or not action.option_strings):
            yield f"{name} {(action.option_strings or [action.dest])[0]}"


def test_every_argument_has_its_row() -> None:
    """An argument of a new name says here whether it names a file."""
    found = {one for name in COMMANDS for one in arguments(command_parser(name), name)}
    rows = READ.keys() | WRITTEN.keys()
    assert rows <= found
    assert not {one for one in found - rows if one.rpartition(" ")[2] not in NO_FILE}


def each(words: tuple[str, ...], place: str) -> Iterator[list[str]]:
    """A command with its place, once for each form."""
    slot = next((one for one in WORDS if one in words), "")
    for value in WORDS.get(slot, [""]):
        yield [{"PLACE": place, slot: value}.get(word, word) for word in words]


@pytest.fixture
def impatient() -> Iterator[None]:
    """Ends a test that waits for a pipe."""

    def end(*_: object) -> None:
        raise TimeoutError("a command waits")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def stocked(workspace: Any) -> Any:
    """A store with a note, and an index to convert."""
    workspace.write("note.md", "# Pears\n\nThe pears are ripe.\n")
    workspace("add", "note.md")
    workspace("export", "ragmd", "kb.ragmd")
    return workspace


def special(folder: Path, kind: str) -> Path:
    """Something that is no file."""
    path = folder / f"{kind}.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "linked-pipe":
        os.mkfifo(folder / "the-pipe")
        path.symlink_to("the-pipe")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    return path


@pytest.mark.safety
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["pipe", "linked-pipe", "device", "folder"])
def test_what_is_no_file_is_said_and_not_waited_for(stocked: Any, kind: str) -> None:
    """A pipe that nobody writes into ends the command with its name."""
    place = special(stocked.folder, kind)
    for argument, words in READ.items():
        if kind == "folder" and argument in ("init folder", "serve --collections", "add paths"):
            continue  # is what they take
        if argument == "serve stores" and (kind == "folder" or missing_packages("mcp")):
            continue
        for command in each(words, place.name) if words else ():
            if kind == "folder" and "folder" in command:
                continue
            done = stocked(*command, code=None)
            assert done.code in (2, 3, 4, 5), (command, done)
            if not argument.startswith(("embedder", "tui")):  # those want a package, a terminal
                assert place.name in done.stderr, (command, done)
            if argument == "evaluate queries":
                assert "is a " in done.stderr or kind == "folder", (command, done)


@pytest.mark.safety
@pytest.mark.usefixtures("impatient")
def test_what_a_person_has_is_not_replaced(stocked: Any) -> None:
    """A file of anybody else, a link to one, a pipe: refused with code 4, and all is as it was."""
    folder, kept = stocked.folder, b"a person's own words\n"
    (folder / "model").mkdir()
    for argument, words in WRITTEN.items():
        if argument == "mcp --to" and missing_packages("mcp"):
            continue
        for number, command in enumerate(each(words, "PLACE")):
            for kind in ("file", "link", "dangling", "pipe"):
                inner = folder / f"{argument.replace(' ', '')}{number}{kind}"
                inner.mkdir()
                ending = ".faiss" if "faiss-json" in command else ""
                place, other = inner / f"vectors-x{ending}", inner / "other"
                if kind in ("file", "link"):
                    (place if kind == "file" else other).write_bytes(kept)
                if kind in ("link", "dangling"):
                    place.symlink_to("other")
                if kind == "pipe":
                    os.mkfifo(place)
                before = sorted(os.listdir(inner))
                done = stocked(*(place if one == "PLACE" else one for one in command), code=None)
                if argument == "mcp --to" and kind in ("dangling", "pipe"):
                    continue  # the configuration of a program may be a link of its owner's
                assert done.code == 4, (command, kind, done)
                assert advised(done.stderr)
                assert sorted(os.listdir(inner)) == before, (command, kind)
                if kind in ("file", "link"):
                    assert (place if kind == "file" else other).read_bytes() == kept


def test_force_replaces_a_file_and_nothing_else(stocked: Any) -> None:
    """`reconstruct -o` names the option; a link stays one, and what it leads to as it was."""
    (stocked.folder / "out.txt").write_text("older")
    done = stocked("reconstruct", "note.md", "-o", "out.txt", code=4)
    assert "out.txt is not overwritten" in done.stderr
    assert "--force" in done.stderr
    stocked("reconstruct", "note.md", "-o", "out.txt", "--force")
    assert (stocked.folder / "out.txt").read_text() == "# Pears\n\nThe pears are ripe.\n"
    (stocked.folder / "link").symlink_to("kb.ragmd")
    stocked("reconstruct", "note.md", "-o", "link", "--force", code=4)
    assert (stocked.folder / "link").is_symlink()


def test_a_shell_may_hand_over_what_a_command_writes(stocked: Any) -> None:
    """The path of a descriptor, as `<(…)` gives it, is read like a file."""
    readable, writable = os.pipe()
    os.write(writable, b'{"query": "ripe pears", "relevant": ["note.md"]}\n')
    os.close(writable)
    try:
        found = stocked.json("evaluate", f"/dev/fd/{readable}")
    finally:
        os.close(readable)
    assert found["queries"] == 1
