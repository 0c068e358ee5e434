"""Every code that a store in place can have, produced on a real disk, told, and mended if safe.

The same as `test_every_code`, of three notes where they lie. After every command all names, bytes,
times and modes outside the sidecar are what they were before.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.core.codes import CODES
from filestore.extract import WHOLE_PAGE
from filestore.repair.request import level_for
from tests.system.conftest import Done, Workspace
from tests.system.embedding_server import EmbeddingServer
from tests.system.snapshots import Seen, snapshot
from tests.system.verify import test_every_code as chunks
from tests.system.verify.test_every_code import CASES, NOTES, Case, Scene

ELSEWHERE: Final = {
    "malformed-frontmatter": "a note is found by its text all the same: frontmatter-ignored",
    "invalid-metadata": "no key of a note is ours",
    "record-invalid": "there are no records",
    "unsafe-attributes": "git's attributes are the user's own",
    "leftovers": "no writer of ours leaves a file among notes, and theirs may be called so",
    "source-modified": "a note is its own original",
    "source-missing": "a note is its own original",
    "source-untracked": "a note is its own original",
    "hand-edited": "nothing was generated",
    "ingest-conflict": "nothing was generated",
    "summary-stale": "nothing was generated",
}
"""Codes that no store in place has, and why."""


def documents(folder: Path) -> Seen:
    """All that is not ours in a folder; of what git keeps for itself nothing."""
    return {
        path: seen
        for path, seen in snapshot(folder).items()
        if path.split(os.sep)[0] not in (".filestore", ".git")
    }


class Notes(Workspace):
    """A folder of notes with a store in place; no command may change anything but the sidecar."""

    def __init__(self, made: Workspace) -> None:
        super().__init__(made.folder, made._monkeypatch, made._capture)
        self.store = self.chunked = self.folder
        self.sidecar = self.folder / ".filestore"

    def __call__(self, *words: object, cwd: Path | None = None, code: int | None = 0) -> Done:
        """Run one command, which leaves the notes as they are."""
        before = documents(self.folder)
        done = super().__call__(*words, cwd=cwd, code=code)
        after = documents(self.folder)
        if words[0] in ("init", "embedder", "backend"):
            for seen in (before, after):
                seen.pop("filestore.toml", None)
        assert after == before, words
        return done

    def truth(self) -> dict[str, bytes]:
        """Every note."""
        return {path: seen[-1] for path, seen in documents(self.folder).items()}


class NotesScene(Scene):
    """Three notes where they lie."""

    def fill(self) -> None:
        """Write and index the notes."""
        for name in NOTES:
            self.workspace.write(name, f"---\nkey: 1\n---\n# {name}\n\nWords of the note {name}.\n")
        self.workspace("sync")

    def note(self, name: str = "a.md") -> Path:
        """A note."""
        return self.folder / name

    def serve(self) -> EmbeddingServer:
        """Make the store anew, with a service on loopback as its model."""
        server = self.stack.enter_context(EmbeddingServer())
        shutil.rmtree(self.sidecar)
        (self.store / "filestore.toml").unlink()
        model = ("--embedder", "openai:small", "--endpoint", server.endpoint)
        self.workspace("init", "--in-place", *model)
        self.fill()
        return server


@pytest.fixture
def scene(new_workspace: Callable[..., Workspace]) -> Iterator[Scene]:
    """The store of three notes."""
    notes = Notes(new_workspace(init=False))
    notes("init", "--in-place", "--embedder", "builtin")
    with ExitStack() as stack:
        made = NotesScene(notes, stack)
        made.fill()
        yield made


def written(content: bytes, name: str = "own.md") -> Callable[[Scene], str]:
    """What writes a note that was not there."""
    return lambda scene: chunks.written(scene, content, name)


def pointing_nowhere(scene: Scene) -> str:
    """Of what a note links to one file is gone; pictures are there, names wait to be written."""
    (scene.chunked / "picture.png").write_bytes(b"no picture")
    text = (
        b"See [a](a.md), ![](picture.png), [[Nobody yet]],\n[w](https://x.org/y.md)\n"
        b"and [it](sub/gone.md#part).\n\n`[code](no.md)`\n"
    )
    chunks.written(scene, text, "own.md")
    scene.workspace("sync")
    return "own.md"


def emptied(scene: Scene) -> str:
    for name in NOTES:
        scene.note(name).unlink()
    return "."


def deep(scene: Scene) -> str:
    (scene.chunked / "/".join(["f"] * 70)).mkdir(parents=True)
    return "/".join(["f"] * 65)


def edited_frontmatter(scene: Scene) -> str:
    path = scene.note()
    path.write_bytes(path.read_bytes().replace(b"key: 1", b"key: 2"))
    return "a.md"


def fulltext_behind(scene: Scene) -> str:
    before = scene.folder.parent / "before"
    shutil.copytree(scene.sidecar / "fulltext", before)
    (scene.chunked / "new.md").write_text("Words that came later.\n")
    scene.workspace("sync")
    shutil.rmtree(scene.sidecar / "fulltext")
    shutil.move(before, scene.sidecar / "fulltext")
    return ".filestore/fulltext"


def oversized(scene: Scene) -> str:
    with (scene.chunked / "large.md").open("wb") as file:
        file.truncate(256 * 1024 * 1024 + 1)
    return "large.md"


def said_wrong(scene: Scene) -> str:
    scene.workspace.write("own.md", '---\na: 1\nb: "open\n---\nText of its own.\n')
    scene.workspace.sync(code=1)
    assert scene.workspace.found("own") == ["own.md"]
    return "own.md"


def not_readable(scene: Scene) -> str:
    scene.workspace.write("paper.pdf", b"%PDF-1.4\nnothing of a paper\n")
    scene.workspace.sync(code=1)
    return "paper.pdf"


def not_utf8(scene: Scene) -> str:
    scene.workspace.write("own.md", b"---\na: 1\n---\nText.\n\xff\xfe\x00binary\x00\n")
    scene.workspace.sync(code=1)
    return "own.md"


def unportable(scene: Scene) -> str:
    written(b"About devices.\n", "what?/aux.txt")(scene)
    scene.workspace.sync(code=1)
    return "what?/aux.txt"


def collected(scene: Scene) -> str:
    """A document of a format without reader."""
    scene.workspace.write("talk.key", b"PK\x03\x04")
    return "talk.key"


def whole_page(scene: Scene) -> str:
    """A note with the remark of a page."""
    scene.workspace.write("page.md", f"---\nremarks:\n- {WHOLE_PAGE}\n---\nA page.\n")
    scene.workspace("sync")
    return "page.md"


def inner_store(scene: Scene) -> str:
    scene.workspace.write("inner/filestore.toml", "")
    return "inner"


def left_out(scene: Scene) -> str:
    scene.workspace.write(".gitignore", "a.md\n")
    return "a.md"


def cut_otherwise(scene: Scene) -> str:
    settings = scene.store / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 100"))
    return "filestore.toml"


def fulltext_of_other_words(scene: Scene) -> str:
    from filestore.catalog import text_id
    from filestore.fulltext import Entry, Writer, read_stamp

    folder = str(scene.sidecar / "fulltext")
    stamp = read_stamp(folder)
    assert stamp is not None
    rows = scene.in_catalog("SELECT id FROM files WHERE state = '' ORDER BY path")
    writer = Writer.open(folder)
    writer.add(
        Entry(id=text_id(identifier, 0), title="", text=f"Nothing of {number}.")
        for number, (identifier,) in enumerate(rows)
    )
    writer.commit(stamp.generation, stamp.catalog, seal=scene.seal)
    return "a.md"


def merging(scene: Scene) -> str:
    chunks.merging(scene)
    return ".git"


def here(produce: Callable[[Scene], str]) -> Callable[[Scene], str]:
    """A producer that names its path in the sidecar of a chunk store."""
    return lambda scene: produce(scene).replace(".sidecar", ".filestore")


def sidecar_case(code: str, **changes: Any) -> Case:
    """The row of a code in the table of chunk stores."""
    from dataclasses import replace

    case = chunks.SIDECAR[code]
    return replace(case, produce=changes.pop("produce", here(case.produce)), **changes)


ROWS: Final[dict[str, Case]] = (
    {
        "modified": Case(produce=chunks.edited, says=("text differs",)),
        "metadata-modified": Case(produce=edited_frontmatter, says=("frontmatter differs",)),
        "untracked": Case(produce=written(b"My own text.\n"), says=("catalog",)),
        "missing": Case(produce=chunks.deleted, says=("gone",)),
        "left-out": Case(produce=left_out, says=("rules",)),
        "moved": Case(
            produce=lambda scene: str(scene.note().rename(scene.folder / "moved.md").name),
            says=("it was a.md",),
        ),
        "mass-missing": Case(produce=emptied, says=("3 of 3 files are gone",)),
        "unreadable": Case(produce=deep, says=("deeper than 64",)),
        "conflict-markers": Case(
            produce=written(b"# One\n\n" + chunks.MARKS + b"\nText.\n"), says=("lines 3, 5 and 7",)
        ),
        "bad-encoding": Case(produce=not_utf8, says=("own.md",)),
        "extraction-failed": Case(produce=not_readable, says=("paper.pdf",)),
        "frontmatter-ignored": Case(produce=said_wrong, says=("line 3",)),
        "empty": Case(produce=written(b" \n"), says=("2 bytes",)),
        "oversized": Case(produce=oversized, says=("268,435,457 bytes", "smaller")),
        "special-file": Case(
            produce=lambda scene: str(os.mkfifo(scene.folder / "pipe.md") or "pipe.md"),
            says=("a named pipe", "never opened"),
        ),
        "symlink": Case(
            produce=lambda scene: str((scene.folder / "link.md").symlink_to("a.md") or "link.md"),
            says=("a.md", "not followed"),
        ),
        "name-collision": Case(produce=chunks.alike, says=("Same.md", "only by case")),
        "unportable-name": Case(produce=unportable, says=("aux", "device")),
        "litter": Case(produce=inner_store, says=("store",)),
        "not-read": Case(produce=collected, says=("key",)),
        "page-whole": Case(produce=whole_page),
        "duplicate": Case(produce=chunks.duplicated, says=("second.md",)),
        "bit-rot": Case(
            produce=chunks.rotten, level="full", says=("expected", "every stamp is equal")
        ),
        "metric-mismatch": Case(produce=chunks.other_metric, says=("dot", "cosine")),
        "chunker-changed": Case(produce=cut_otherwise, says=("240", "100")),
        **{code: chunks.TREE[code] for code in ("past-date", "superseded", "successor-missing")},
        "link-dangling": Case(
            produce=pointing_nowhere, level="full", says=("line 3", "sub/gone.md")
        ),
        "git-operation": Case(produce=merging, says=("merge",)),
    }
    | {
        code: sidecar_case(code)
        for code in chunks.SIDECAR
        if code not in ("bit-rot", "fulltext-mismatch", "fulltext-behind", "leftovers")
    }
    | {
        "fulltext-mismatch": sidecar_case("fulltext-mismatch", produce=fulltext_of_other_words),
        "fulltext-behind": sidecar_case("fulltext-behind", produce=fulltext_behind),
    }
)


def test_every_code_is_told_of() -> None:
    """Each code can occur in place, or there is a reason why not."""
    assert set(ROWS) | set(ELSEWHERE) == set(CODES)
    assert not set(ROWS) & set(ELSEWHERE)
    assert set(CASES) | set(ROWS) == set(CODES)


@pytest.mark.parametrize("code", ROWS)
def test_code(scene: Scene, code: str) -> None:
    """What is brought about is told with path and reason, and mended for good if that is safe."""
    case = ROWS[code]
    path = case.produce(scene)
    before = snapshot(scene.folder)
    done = scene.workspace.json("verify", "--level", case.level, code=None)
    assert snapshot(scene.folder) == before
    told = [(one["code"], one["path"]) for one in done["findings"]]
    assert (code, path) in told, done["findings"]
    (finding,) = [one for one in done["findings"] if (one["code"], one["path"]) == (code, path)]
    said = CODES[code]
    assert finding["severity"] == said.severity
    assert finding["repair"] == (said.repair_of_documents or said.repair)
    for words in case.says:
        assert words in finding["detail"]
    serious = {one["code"] for one in done["findings"] if one["severity"] != "I"}
    assert done["clean"] is (not serious)
    if case.alone:
        assert serious <= {code}
    if finding["safe"]:
        chunks.assert_mended(scene.workspace, case, code)
    elif not (said.refused or said.passing):
        chunks.assert_left(scene.workspace)


def test_a_level_shows_every_code_it_is_chosen_for() -> None:
    """The level for a code is never below the lowest one that shows it."""
    levels = ["fast", "full", "deep"]
    for code, case in ROWS.items():
        if code == "link-dangling":
            # Links between chunk files are looked up; those of notes take reading.
            continue
        assert levels.index(level_for([code])) >= levels.index(case.level), code


@pytest.mark.parametrize("code", [code for code in ROWS if CODES[code].excluded])
def test_an_excluded_file_is_called_what_it_is(scene: Scene, code: str) -> None:
    """A note that links to it, and every other command, says the code that `status` says."""
    chunks.assert_excluded_as(scene, code, ROWS[code].produce(scene))
