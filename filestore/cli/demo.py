"""A tour in a temporary folder: search a small store, edit its files, see drift, sync."""

import contextlib
import os
import shlex
import sys
import tempfile

from msgspec import Struct

from filestore.cli import _output, main
from filestore.core.example import FOLDER, copy_example
from filestore.core.schema import JsonObject
from filestore.server.options import CommonOptions as Options
from filestore.store import Store

EXAMPLE = "filestore demo"
_QUESTION = "history of a renamed file"
_SENTENCE = "Beekeepers use a hive notebook, one line a visit."


class Toured(JsonObject, Struct, frozen=True):
    """What `demo` prints."""

    root: str
    """Where the copy of the example lies."""
    clean: bool
    """Whether the last verification was clean."""


def run(options: Options) -> int:
    """Walk through the store's life once, with the real commands."""
    root = os.path.join(tempfile.mkdtemp(prefix="filestore-demo-"), FOLDER)
    if not options.json:
        return _walk(root)
    with contextlib.redirect_stdout(sys.stderr):
        code = _walk(root)
    _output.write_json(Toured(root, code == 0).to_dict())
    return code


def _walk(root: str) -> int:
    copy_example(root)
    tour = _Tour(root)
    tour.say(f"A copy of the example store is in {root}.")
    tour.say("The index is not in git, so it is built first:")
    tour.command("sync")
    tour.command("search", _QUESTION, "-k", "2")
    tour.say("Now edit its files: one changed, one new, one renamed, one deleted.")
    _edit(root)
    tour.command("status")
    tour.say("A search indexes what is new, edited or renamed, and says what is gone:")
    tour.command("search", "hive notebook", "-k", "2", "--mode", "keyword")
    tour.say("What was deleted is forgotten by a sync:")
    tour.command("sync")
    tour.command("verify", "--level", "full")
    tour.say("That is all. To go on:")
    _output.line(f"  cd {root}")
    _output.line("  filestore ls                     what is in it")
    _output.line("  filestore show PATH              one chunk with its record")
    _output.line("  filestore tui                    the inspector")
    _output.line("and for your own documents, in any folder:")
    _output.line("  filestore init && filestore add PATH…")
    return 0 if tour.codes[-1] == 0 else 1


class _Tour:
    """Says what happens and runs commands on one store."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.codes: list[int] = []

    def say(self, text: str) -> None:
        _output.line()
        _output.line(text, style="1")

    def command(self, *words: str) -> None:
        _output.line()
        _output.line(f"$ filestore {shlex.join(words)}", style="36")
        self.codes.append(main(["--store", self._root, *words]))


def _edit(root: str) -> None:
    chunked = os.path.join(root, "chunked")
    glossary = os.path.join(chunked, "glossary.md")
    with Store(root) as store:
        (best,) = store.search(_QUESTION, k=1).hits
    with open(os.path.join(root, best.path), "a", encoding="utf-8") as file:
        file.write(f"\nA note in passing: {_SENTENCE[0].lower()}{_SENTENCE[1:]}\n")
    with open(os.path.join(chunked, "bees.md"), "w", encoding="utf-8") as file:
        file.write(f"# Bees\n\n{_SENTENCE}\n")
    os.rename(os.path.join(glossary, "chunk2.md"), os.path.join(glossary, "second.md"))
    os.remove(os.path.join(chunked, "checklist.txt", "chunk1.md"))
