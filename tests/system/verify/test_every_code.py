"""Every code of `findings.CODES`, produced on a real disk, told by `verify`, and mended if safe.

One table: a code, what brings it about in a store of three notes, and what must be said of it. A
code without a row fails.
"""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from filestore import Store
from filestore.config.layout import Places
from filestore.config.settings import Backend
from filestore.core.codes import CODES
from filestore.embed.cache import row_checksum, seed_of
from filestore.fs.disk import TEMPORARY_PREFIX
from filestore.fs.lock import writer_lock
from filestore.fulltext import Stamp
from filestore.repair.request import level_for
from filestore.sidecar import fulltext_file
from tests.system.embedding_server import EmbeddingServer, vectors
from tests.system.snapshots import snapshot

NOTES: Final = ("a.md", "b.md", "c.md")


class Scene:
    """A store of three notes in a git work tree, and what producers do to it."""

    def __init__(self, workspace: Any, stack: ExitStack) -> None:
        self.workspace = workspace
        self.folder: Path = workspace.folder
        self.store: Path = workspace.store
        self.chunked: Path = workspace.chunked
        self.sidecar: Path = workspace.sidecar
        self.stack = stack
        """Closed when the test ends: for what must last until then."""

    def fill(self) -> None:
        """Add the notes, one chunk file each."""
        for name in NOTES:
            self.workspace.write(name, f"# {name}\n\nWords of the note {name}.\n")
        self.workspace("add", *NOTES)

    def note(self, name: str = "a.md") -> Path:
        """The one chunk file of a note."""
        path: Path = self.chunked / self.workspace.chunks(name)[0]
        return path

    def shown(self, path: Path) -> str:
        """A path as findings have it."""
        return path.relative_to(self.store).as_posix()

    def in_catalog(self, statement: str, *values: object) -> list[Any]:
        """Run one statement on the catalog, behind the program's back."""
        found: list[Any] = self.workspace.in_catalog(statement, *values)
        return found

    def key_of(self, path: Path) -> bytes:
        """The embedding key of the body of a chunk file."""
        ((key,),) = self.in_catalog(
            "SELECT key FROM vectors JOIN parts ON vector = vectors.id"
            " JOIN files ON files.id = file WHERE part = 0 AND path = ?",
            path.relative_to(self.chunked).as_posix().encode(),
        )
        assert isinstance(key, bytes)
        return key

    def replace_embedding(self, path: Path, change: Callable[[Any], Any]) -> None:
        """Store another vector for a file, with a checksum that holds."""
        import numpy

        key, database = self.key_of(path), self.sidecar / "embeddings.sqlite"
        ((fingerprint, old),) = in_database(
            database,
            "SELECT fingerprint, vector FROM vectors JOIN models ON models.id = model"
            " WHERE key = ?",
            key,
        )
        raw = change(numpy.frombuffer(old, "<f4")).astype("<f4").tobytes()
        checksum = row_checksum(seed_of(fingerprint), key, raw)
        statement = "UPDATE vectors SET vector = ?, checksum = ? WHERE key = ?"
        in_database(database, statement, raw, checksum, key)

    def serve(self) -> EmbeddingServer:
        """Make the store anew, with a service on loopback as its model."""
        server = self.stack.enter_context(EmbeddingServer())
        shutil.rmtree(self.store)
        self.workspace("init", "--embedder", "openai:small", "--endpoint", server.endpoint)
        self.fill()
        return server

    def seal(self, stamp: Stamp) -> Stamp:
        """The stamp of a full-text index as this user writes it."""
        places = Places(root="", sidecar="", configuration=os.environ["XDG_CONFIG_HOME"])
        return fulltext_file.sealed(places, stamp)

    def set_embedder(self, name: str) -> None:
        """Name another model in the settings."""
        settings = self.store / "filestore.toml"
        lines = settings.read_text().splitlines()
        kept = [f'embedder = "{name}"' if line.startswith("embedder") else line for line in lines]
        settings.write_text("\n".join(kept) + "\n")


def in_database(path: Path, statement: str, *values: object) -> list[Any]:
    """Run one statement on a database."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a code is brought about, and what is said of it."""

    produce: Callable[[Scene], str]
    """Brings it about; returns the path of the finding."""
    says: tuple[str, ...] = ()
    """Words of the detail."""
    level: str = "fast"
    """The lowest level that shows it."""
    mended_by: tuple[str, ...] = ("sync",)
    """The command that mends it, where it is safe."""
    applied_as: str = ""
    """What sync says it repaired, where that is another code: the place is found to be lost, and
    then to be behind."""
    alone: bool = True
    """Whether it is the only finding of E or W: a cause hides its consequences."""


# Chunk files, sources, git, links


def edited(scene: Scene) -> str:
    path = scene.note()
    path.write_bytes(path.read_bytes() + b"More of it.\n")
    return scene.shown(path)


def edited_frontmatter(scene: Scene) -> str:
    path = scene.note()
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\ntags: green\n", 1))
    return scene.shown(path)


def written(scene: Scene, content: bytes, name: str = "own.md") -> str:
    path = scene.chunked / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return scene.shown(path)


def deleted(scene: Scene) -> str:
    path = scene.note()
    path.unlink()
    return scene.shown(path)


def renamed(scene: Scene) -> str:
    path = scene.note()
    path.rename(scene.chunked / "moved.md")
    return "chunked/moved.md"


def emptied(scene: Scene) -> str:
    shutil.rmtree(scene.chunked)
    scene.chunked.mkdir()
    return "chunked"


def deep(scene: Scene) -> str:
    """Nested too deep to be walked, which also root is told."""
    (scene.chunked / "/".join(["f"] * 70)).mkdir(parents=True)
    return "chunked/" + "/".join(["f"] * 65)


def wrong_record(scene: Scene) -> str:
    path = scene.note().parent / "meta.json"
    path.write_bytes(b'{\n  "format" 1\n}\n')
    return scene.shown(path)


def oversized(scene: Scene) -> str:
    path = scene.chunked / "large.md"
    with path.open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    return scene.shown(path)


def pipe(scene: Scene) -> str:
    os.mkfifo(scene.chunked / "pipe.md")
    return "chunked/pipe.md"


def linked(scene: Scene) -> str:
    (scene.chunked / "link.md").symlink_to(scene.folder / "a.md")
    return "chunked/link.md"


def alike(scene: Scene) -> str:
    written(scene, b"One text.\n", "Same.md")
    shown = written(scene, b"Another text.\n", "same.md")
    scene.workspace.sync(code=1)
    return shown


def told_otherwise(scene: Scene) -> str:
    old = "*.toml text eol=lf\nchunked/** text eol=lf\nsource/** -text\n"
    (scene.store / ".gitattributes").write_text(old)
    return ".gitattributes"


def unportable(scene: Scene) -> str:
    shown = written(scene, b"About devices.\n", "what?/aux.md")
    scene.workspace.sync(code=1)
    return shown


def duplicated(scene: Scene) -> str:
    shown = written(scene, b"The same words.\n", "first.md")
    written(scene, b"The same words.\n", "second.md")
    scene.workspace.sync()
    return shown


def source_changed(scene: Scene) -> str:
    scene.workspace.write("a.md", "# a.md\n\nOther words.\n")
    return "../a.md"


def source_gone(scene: Scene) -> str:
    (scene.folder / "a.md").unlink()
    return "../a.md"


def source_new(scene: Scene) -> str:
    scene.workspace.write("notes/one.md", "# One\n\nWords of one.\n")
    scene.workspace("add", "notes")
    scene.workspace.write("notes/two.md", "# Two\n\nWords of two.\n")
    return "../notes/two.md"


def says(scene: Scene, line: str) -> str:
    """A note of a person's own with a line of frontmatter, synced."""
    path = scene.chunked / "own.md"
    path.write_text(f"---\n{line}\n---\nMy own words.\n")
    scene.workspace.sync(code=None)
    return scene.shown(path)


def edited_and_synced(scene: Scene) -> str:
    shown = edited(scene)
    scene.workspace.sync()
    return shown


def both_changed(scene: Scene) -> str:
    path = scene.note()
    path.write_bytes(path.read_bytes().replace(b"Words of", b"Edited words of"))
    scene.workspace.sync()
    scene.workspace.write("a.md", "# a.md\n\nChanged words of the note a.md.\n")
    scene.workspace("add", "a.md", code=None)
    return scene.shown(path)


def dangling(scene: Scene) -> str:
    written(scene, b"A text to link to.\n", "there.md")
    shown = written(scene, b"See [the other](there.md).\n", "own.md")
    scene.workspace.sync()
    (scene.chunked / "there.md").rename(scene.chunked / "elsewhere.md")
    scene.workspace.sync(code=1)
    return shown


def summarised_and_edited(scene: Scene) -> str:
    for number in range(3):
        written(scene, f"The harbour has {number} cranes.\n".encode(), f"port/crane{number}.md")
    scene.workspace("enrich", "--summaries")
    written(scene, b"The harbour has a railway.\n", "port/crane1.md")
    scene.workspace.sync(code=1)
    return "chunked/port/summary1.md"


def rotten(scene: Scene) -> str:
    path = scene.note()
    scene.workspace.rot(path, path.read_bytes().replace(b"Words", b"Wards"))
    return scene.shown(path)


def cut_otherwise(scene: Scene) -> str:
    settings = scene.store / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget = 240", "budget = 100"))
    return scene.shown(scene.note().parent / "meta.json")


def other_metric(scene: Scene) -> str:
    scene.in_catalog("UPDATE meta SET value = 'dot' WHERE key = 'metric'")
    return "filestore.toml"


def merging(scene: Scene) -> str:
    scene.workspace.git("add", "--all")
    scene.workspace.git("commit", "-qm", "all")
    scene.workspace.git("merge", "-q", "--no-ff", "--no-commit", "-s", "ours", "HEAD")
    head = scene.workspace.git("rev-parse", "HEAD")
    (scene.folder / ".git" / "MERGE_HEAD").write_text(head)
    return "../.git"


MARKS: Final = b"<<<<<<< ours\na: 1\n=======\na: 2\n>>>>>>> theirs\n"

TREE: Final[dict[str, Case]] = {
    "modified": Case(produce=edited, says=("text differs",)),
    "metadata-modified": Case(produce=edited_frontmatter, says=("frontmatter differs",)),
    "untracked": Case(produce=lambda scene: written(scene, b"My own text.\n"), says=("catalog",)),
    "missing": Case(produce=deleted, says=("gone",)),
    "moved": Case(produce=renamed, says=("it was chunked/a.md/chunk1.md",)),
    "mass-missing": Case(produce=emptied, says=("6 of 6 files are gone",)),
    "unreadable": Case(produce=deep, says=("deeper than 64",)),
    "malformed-frontmatter": Case(
        produce=lambda scene: written(scene, b'---\na: 1\nb: "open\n---\nText.\n'),
        says=("line 4, column 1",),
    ),
    "invalid-metadata": Case(
        produce=lambda scene: written(scene, b"---\na: 1\n  \npages: first\n---\nText.\n"),
        says=("line 4, column 1", "'pages'", "'first'"),
    ),
    "record-invalid": Case(produce=wrong_record, says=("line 2, column 12",)),
    "conflict-markers": Case(
        produce=lambda scene: written(scene, b"---\n" + MARKS + b"---\nText.\n"),
        says=("lines 2, 4 and 6",),
    ),
    "bad-encoding": Case(
        produce=lambda scene: written(scene, b"---\na: 1\n---\nText.\nna\xefve\n"),
        says=("line 5", "byte 21", "UTF-8"),
    ),
    "empty": Case(produce=lambda scene: written(scene, b"---\na: 1\n---\n \n"), says=("15 bytes",)),
    "oversized": Case(produce=oversized, says=("16,777,217 bytes", "smaller")),
    "special-file": Case(produce=pipe, says=("a named pipe", "never opened")),
    "symlink": Case(produce=linked, says=("a.md", "not followed")),
    "name-collision": Case(produce=alike, says=("chunked/Same.md", "only by case")),
    "unportable-name": Case(produce=unportable, says=("aux", "device")),
    "unsafe-attributes": Case(produce=told_otherwise, says=("line 2", "CRs")),
    "litter": Case(produce=lambda scene: written(scene, b"x", "notes.txt"), says=("1 bytes",)),
    "leftovers": Case(produce=lambda scene: written(scene, b"x", ".filestore-tmp-0123")),
    "duplicate": Case(produce=duplicated, says=("chunked/second.md",)),
    "source-modified": Case(produce=source_changed, says=("a.md", "expected", "found")),
    "source-missing": Case(produce=source_gone, says=("a.md was made from it",)),
    "source-untracked": Case(produce=source_new, says=("notes", "not in the store")),
    "hand-edited": Case(produce=edited_and_synced, says=("generated",)),
    "ingest-conflict": Case(produce=both_changed, alone=False),
    "summary-stale": Case(produce=summarised_and_edited, says=("1 passage changed", "tokens")),
    "past-date": Case(
        produce=lambda scene: says(scene, "stale_after: 2020-02-29"), says=("since 2020-02-29",)
    ),
    "superseded": Case(
        produce=lambda scene: says(scene, 'superseded_by: "[[b]]"'), says=("by", "b.md")
    ),
    "successor-missing": Case(
        produce=lambda scene: says(scene, "superseded_by: gone.md"), says=("'gone.md'", "not here")
    ),
    "link-dangling": Case(
        produce=dangling, says=("links to chunked/there.md", "moved to chunked/elsewhere.md")
    ),
    "bit-rot": Case(produce=rotten, level="full", says=("expected", "every stamp is equal")),
    "chunker-changed": Case(produce=cut_otherwise, says=("240", "100"), alone=False),
    "metric-mismatch": Case(produce=other_metric, says=("dot", "cosine")),
    "git-operation": Case(produce=merging, says=("merge",)),
}


# Catalog, vectors, full text, model, environment


def newer_format(scene: Scene) -> str:
    settings = scene.store / "filestore.toml"
    settings.write_text(settings.read_text().replace("format = 1", "format = 99"))
    return "filestore.toml"


def open_to_everybody(scene: Scene) -> str:
    scene.sidecar.chmod(0o777)
    return ".sidecar"


def no_catalog(scene: Scene) -> str:
    (scene.sidecar / "catalog.sqlite").unlink()
    return ".sidecar/catalog.sqlite"


def damaged_catalog(scene: Scene) -> str:
    path = scene.sidecar / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    data[:16] = b"no database here"
    path.write_bytes(data)
    return ".sidecar/catalog.sqlite"


def zeroed_embedding(scene: Scene) -> str:
    path = scene.note()
    in_database(
        scene.sidecar / "embeddings.sqlite",
        "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = ?",
        scene.key_of(path),
    )
    return scene.shown(path)


def longer_embedding(scene: Scene) -> str:
    path = scene.note()
    scene.replace_embedding(path, lambda vector: 2 * vector)
    return scene.shown(path)


def turned_embedding(scene: Scene) -> str:
    path = scene.note()
    scene.replace_embedding(path, lambda vector: vector[::-1])
    return scene.shown(path)


def faiss_file(scene: Scene) -> Path:
    (path,) = scene.sidecar.glob("vectors-*.faiss")
    return path


def no_index(scene: Scene) -> str:
    path = faiss_file(scene)
    path.unlink()
    return scene.shown(path)


def short_index(scene: Scene) -> str:
    path = faiss_file(scene)
    path.write_bytes(path.read_bytes()[:-1])
    return scene.shown(path)


def index_behind(scene: Scene) -> str:
    scene.in_catalog(
        "WITH RECURSIVE counted(number) AS"
        " (SELECT 1 UNION ALL SELECT number + 1 FROM counted LIMIT 201)"
        " INSERT INTO index_delta SELECT number, 0 FROM counted"
    )
    return scene.shown(faiss_file(scene))


def index_of_another_user(scene: Scene) -> str:
    secret = Path(os.environ["XDG_CONFIG_HOME"]) / "filestore" / "secret"
    secret.write_bytes(bytes(32))
    return scene.shown(faiss_file(scene))


def fulltext_of_another_user(scene: Scene) -> str:
    index_of_another_user(scene)
    return ".sidecar/fulltext"


def sent_outside(scene: Scene) -> Path:
    """Have the vectors searched in a file that is not the store's own."""
    path: Path = scene.folder.parent / "elsewhere.jsonl"
    scene.workspace("backend", "set", "local", f"path={path}", "--yes")
    return path


def backend_that_lost(scene: Scene) -> str:
    sent_outside(scene).unlink()
    return "filestore.toml"


def unreadable_backend(scene: Scene) -> str:
    sent_outside(scene).write_bytes(b"no lines of ours\n")
    return "filestore.toml"


def backend_of_another(scene: Scene) -> str:
    path = sent_outside(scene)
    other = Store.create(scene.folder.parent / "other", layout="tree", embedder="builtin")
    (scene.folder.parent / "other/chunked/mine.md").write_text("Mine alone.\n")
    other.sync()
    backend = Backend(kind="local", options={"path": str(path)})
    other.change_backend(other.plan_backend(backend, takes_over=True))
    other.close()
    return "filestore.toml"


def not_embedded(scene: Scene) -> str:
    path = scene.chunked / "new.md"
    path.write_text("Words that were never embedded.\n")
    scene.workspace("sync", "--no-embed")
    return scene.shown(scene.sidecar / "embeddings.sqlite")


def row_never_written(scene: Scene) -> str:
    path = scene.chunked / "new.md"
    path.write_text("Words that the index never had.\n")
    scene.workspace("sync")
    # As if nobody had noted that the index lacks its vector.
    scene.in_catalog("DELETE FROM index_delta")
    return scene.shown(path)


def orphaned_row(scene: Scene) -> str:
    scene.note().unlink()
    scene.workspace("sync")
    # As if nobody had noted that the file no longer has the vector.
    scene.in_catalog("DELETE FROM index_delta")
    return scene.shown(faiss_file(scene))


def another_row(scene: Scene) -> str:
    path = scene.note()
    below = path.relative_to(scene.chunked).as_posix().encode()
    scene.in_catalog("UPDATE files SET kind = 'summary' WHERE path = ?", below)
    return scene.shown(path)


def no_fulltext(scene: Scene) -> str:
    shutil.rmtree(scene.sidecar / "fulltext")
    return ".sidecar/fulltext"


def short_fulltext(scene: Scene) -> str:
    path = next((scene.sidecar / "fulltext").rglob("*.term"))
    path.write_bytes(path.read_bytes()[:-1])
    return ".sidecar/fulltext"


def fulltext_behind(scene: Scene) -> str:
    shutil.copytree(scene.sidecar / "fulltext", scene.folder / "before")
    (scene.chunked / "new.md").write_text("Words that came later.\n")
    scene.workspace("sync")
    shutil.rmtree(scene.sidecar / "fulltext")
    shutil.move(scene.folder / "before", scene.sidecar / "fulltext")
    return ".sidecar/fulltext"


def fulltext_of_other_words(scene: Scene) -> str:
    from filestore.fulltext import Entry, Writer, read_stamp

    folder = str(scene.sidecar / "fulltext")
    stamp = read_stamp(folder)
    assert stamp is not None
    rows = scene.in_catalog("SELECT id FROM files WHERE state = '' ORDER BY path")
    texts = ["Nothing of what it says.", "Words of the note b.md. b.md", "Words of the note c.md."]
    writer = Writer.open(folder)
    writer.add(
        Entry(id=identifier, title=f"{name}.md", text=text)
        for (identifier,), name, text in zip(rows, "abc", texts, strict=True)
    )
    writer.commit(stamp.generation, stamp.catalog, seal=scene.seal)
    return scene.shown(scene.note())


def other_model(scene: Scene) -> str:
    scene.serve()
    scene.set_embedder("openai:large")
    return "filestore.toml"


def no_model(scene: Scene) -> str:
    scene.set_embedder("onnx:nobody/has-this")
    return "filestore.toml"


def drifted_model(scene: Scene) -> str:
    server = scene.serve()
    server.behave(vectors(lambda made: [vector[::-1] for vector in made]))
    return "filestore.toml"


def beside_dropped_and_wanted(scene: Scene) -> str:
    server = EmbeddingServer()
    scene.stack.enter_context(server)
    path = scene.store / "filestore.toml"
    words = ("set", "openai:small", "--endpoint", server.endpoint, "--beside", "--yes")
    scene.workspace("embedder", *words)
    wanted = path.read_text()
    scene.workspace("embedder", "drop", "--yes")
    path.write_text(wanted)
    return "filestore.toml"


def nobody_beside(scene: Scene) -> str:
    path = scene.store / "filestore.toml"
    path.write_text(path.read_text() + '\n[beside]\nembedder = "onnx:nobody/has-this"\n')
    return "filestore.toml"


def locked(scene: Scene) -> str:
    path = str(scene.sidecar / "lock")
    scene.stack.enter_context(writer_lock(path, command="filestore add"))
    return ".sidecar/lock"


def leftovers(scene: Scene) -> str:
    path = scene.chunked / f"{TEMPORARY_PREFIX}0123456789abcdef"
    path.write_text("Half a fi")
    return scene.shown(path)


SIDECAR: Final[dict[str, Case]] = {
    "format-newer": Case(produce=newer_format, says=("99", "1")),
    "unsafe-sidecar": Case(produce=open_to_everybody, says=("everyone may write",)),
    "catalog-missing": Case(produce=no_catalog),
    "catalog-damaged": Case(produce=damaged_catalog, says=("not a database",)),
    "embeddings-damaged": Case(
        produce=zeroed_embedding,
        level="full",
        mended_by=("sync", "--full"),
        says=("its checksum does not hold",),
    ),
    "index-missing": Case(produce=no_index, says=("expected",)),
    "index-damaged": Case(produce=short_index, says=("expected", "found")),
    "index-behind": Case(produce=index_behind, says=("201",)),
    "index-foreign": Case(produce=index_of_another_user, says=("shows that you made it",)),
    "index-away": Case(produce=unreadable_backend, level="full", says=("elsewhere.jsonl",)),
    "index-lost": Case(
        produce=backend_that_lost,
        level="full",
        says=("elsewhere.jsonl", "lost"),
        mended_by=("sync", "--full"),
        applied_as="index-behind",
    ),
    "index-taken": Case(produce=backend_of_another, level="full", says=("another store",)),
    "vector-pending": Case(produce=not_embedded, says=("vectors: 3 of 4",)),
    "vector-missing": Case(
        produce=row_never_written,
        level="full",
        mended_by=("sync", "--full"),
        says=("not in the index",),
    ),
    "vector-orphan": Case(
        produce=orphaned_row,
        level="full",
        mended_by=("sync", "--full"),
        says=("1 vectors", "belongs to no passage"),
    ),
    "vector-invalid": Case(
        produce=longer_embedding,
        level="full",
        mended_by=("sync", "--full"),
        says=("its length is 2, expected 1",),
    ),
    "vector-mismatch": Case(
        produce=turned_embedding,
        level="full",
        mended_by=("sync", "--full"),
        says=("its row differs from its embedding", "expected the same bits"),
    ),
    "map-mismatch": Case(
        produce=another_row, level="full", mended_by=("sync", "--full"), says=("checksum",)
    ),
    "fulltext-missing": Case(produce=no_fulltext, says=("no usable stamp",)),
    "fulltext-damaged": Case(produce=short_fulltext, says=("bytes where", "were written")),
    "fulltext-foreign": Case(produce=fulltext_of_another_user, says=("shows that you made it",)),
    "fulltext-behind": Case(produce=fulltext_behind, says=("generation 1", "at 2")),
    "fulltext-mismatch": Case(
        produce=fulltext_of_other_words,
        level="full",
        mended_by=("sync", "--full"),
        says=("its own words do not find it",),
    ),
    "bit-rot": Case(produce=rotten, level="full", says=("found hash", "expected")),
    "model-changed": Case(produce=other_model, says=("openai/1:small", "openai:large")),
    "model-missing": Case(produce=no_model, says=("nobody/has-this",)),
    "model-drift": Case(
        produce=drifted_model, level="deep", says=("has a cosine of", "expected at least 0.995")
    ),
    "beside-behind": Case(
        produce=beside_dropped_and_wanted, says=("no passage was embedded with openai:small",)
    ),
    "beside-unusable": Case(produce=nobody_beside, says=("nobody/has-this",)),
    "locked": Case(produce=locked, says=("'filestore add'", "process")),
    "leftovers": Case(produce=leftovers),
}

CASES: Final = TREE | SIDECAR

IN_PLACE: Final = {"extraction-failed", "frontmatter-ignored", "left-out", "not-read", "page-whole"}
"""Codes of documents where they lie alone; `test_every_code_in_place` produces them."""


def test_every_code_has_a_producer() -> None:
    """No code of the contract is there in name only, and no row is for a code that is none."""
    assert set(CASES) | IN_PLACE == set(CODES)


@pytest.mark.parametrize("code", CASES)
def test_code(scene: Scene, code: str) -> None:
    """What is brought about is told with path and reason, and mended for good if that is safe."""
    case = CASES[code]
    path = case.produce(scene)
    before = snapshot(scene.folder)
    done = scene.workspace.json("verify", "--level", case.level, code=None)
    assert snapshot(scene.folder) == before
    (finding,) = [one for one in done["findings"] if (one["code"], one["path"]) == (code, path)]
    said = CODES[code]
    assert (finding["severity"], finding["repair"], finding["safe"]) == (
        said.severity,
        said.repair,
        said.safe,
    )
    for words in case.says:
        assert words in finding["detail"]
    serious = {one["code"] for one in done["findings"] if one["severity"] != "I"}
    assert done["clean"] is (not serious)
    if case.alone:
        assert serious <= {code}
    if said.safe:
        assert_mended(scene.workspace, case, code)
    elif not (said.refused or said.passing):
        assert_left(scene.workspace)


def flipped(path: Path) -> None:
    """Change one byte in the middle, and nothing that a stat tells but the time."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def turned_index(scene: Scene) -> None:
    flipped(faiss_file(scene))


def turned_fulltext(scene: Scene) -> None:
    flipped(max((scene.sidecar / "fulltext").rglob("*.store"), key=lambda one: one.stat().st_size))


def turned_page(scene: Scene) -> None:
    """A page of the catalog whose head makes no sense."""
    path = scene.sidecar / "catalog.sqlite"
    ((page,),) = scene.in_catalog("SELECT rootpage FROM sqlite_master WHERE name = 'contents'")
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4_096 : (page - 1) * 4_096 + 8] = b"\xff" * 8
    path.write_bytes(data)


def stashed(scene: Scene) -> None:
    """A stash that does not apply, seen by nothing but git's index once the file is clean."""
    path = scene.note()
    data = path.read_bytes()
    for words in (b"Committed.\n", b"Stashed.\n"):
        scene.workspace.git("add", "--all")
        scene.workspace.git("commit", "-qm", "words")
        path.write_bytes(data + words)
    scene.workspace.git("stash", "-q")
    path.write_bytes(data + b"Other words.\n")
    scene.workspace.git("commit", "-qam", "other words")
    with pytest.raises(subprocess.CalledProcessError):
        scene.workspace.git("stash", "pop", "-q")
    path.write_bytes(data)
    scene.workspace.sync(code=None)


HIDDEN: Final[dict[str, Callable[[Scene], None]]] = {
    "catalog-damaged": turned_page,
    "conflict-markers": stashed,
    "fulltext-damaged": turned_fulltext,
    "index-damaged": turned_index,
}
"""Damage that stats do not tell, of codes that they tell in other forms."""


@pytest.mark.parametrize("code", HIDDEN)
def test_a_repair_of_one_code_looks_deep_enough(scene: Scene, code: str) -> None:
    """A repair that is asked for one code finds it, however it came about."""
    HIDDEN[code](scene)
    full = {
        one["code"] for one in scene.workspace.json("verify", "--level", "full", code=1)["findings"]
    }
    assert code in full
    planned = scene.workspace.json("repair", "--plan", "--only", code, code=1)["plan"]
    steps = {told for step in planned["steps"] for told in step["codes"]}
    assert code in steps | {one["code"] for one in planned["left"]}


def test_a_level_shows_every_code_it_is_chosen_for() -> None:
    """The level for a code is never below the lowest one that shows it."""
    levels = ["fast", "full", "deep"]
    for code, case in CASES.items():
        assert levels.index(level_for([code])) >= levels.index(case.level), code


def assert_mended(workspace: Any, case: Case, code: str) -> None:
    """The command that is said to help does, and then there is nothing left to do."""
    report = workspace.sync(*case.mended_by[1:], code=None)
    assert (case.applied_as or code) in {one["code"] for one in report["applied"]}
    checked = workspace.json("verify", "--level", case.level, code=None)
    assert code not in {one["code"] for one in checked["findings"]}
    again = workspace.sync(*case.mended_by[1:], code=None)
    assert (again["applied"], again["embedded"]) == ([], 0)


def assert_left(workspace: Any) -> None:
    """A sync says repaired only of what is gone afterwards; what it leaves has a command."""
    for words in ((), ("--full",)):
        done = workspace.sync(*words, code=None)
        drift = workspace.json("status", code=None)["drift"]
        left = told(done["remaining"]) | {(code, path) for code in drift for path in drift[code]}
        assert told(done["applied"]).isdisjoint(left), words
        again = workspace.sync(*words, code=None)
        assert again["applied"] == [], words
        stuck = [one for one in again["remaining"] if one["safe"]]
        assert not stuck or "filestore " in str(again["remaining"]), words


def told(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["code"], one["path"]) for one in found}


@pytest.mark.parametrize("part", ["vectors-*.faiss", "embeddings.sqlite*"])
@pytest.mark.parametrize("code", [code for code in CASES if CODES[code].about == "model"])
def test_without_its_model_no_part_is_repaired_for_ever(scene: Scene, code: str, part: str) -> None:
    """What cannot be made again is lost once, and then waits."""
    CASES[code].produce(scene)
    for path in scene.sidecar.glob(part):
        path.unlink()
    assert_left(scene.workspace)


def assert_excluded_as(scene: Scene, code: str, linked: str) -> None:
    """No command gives another reason why a file is excluded than the code that it has.

    Args:
        scene: Where the file was brought about.
        code: Of its finding.
        linked: The link to it from the second note.
    """
    work, note = scene.workspace, scene.note("b.md")
    note.write_bytes(note.read_bytes() + f"\nSee [it]({linked}).\n".encode())
    work.sync(code=None)
    here = scene.shown(note)
    asked = [["links", here], ["similar", here], ["search", "words"], ["duplicates"], ["about"]]
    for words in asked:
        notes = work.json(*words, code=None)["notes"]
        said = {word for one in notes for word in one.replace(")", " ").split() if word in CODES}
        assert said <= {code}, (words, notes)
    if linked.endswith((".md", ".pdf")):
        (found,) = (one for one in work.json("links", here)["notes"] if "excluded" in one)
        assert f"(1 {code})" in found


@pytest.mark.parametrize("code", [code for code in CASES if CODES[code].excluded])
def test_an_excluded_file_is_called_what_it_is(scene: Scene, code: str) -> None:
    """A note that links to it, and every other command, says the code that `status` says."""
    path = CASES[code].produce(scene)
    folder = os.path.dirname(scene.shown(scene.note("b.md")))
    assert_excluded_as(scene, code, os.path.relpath(path, folder))
