"""A writer that is killed at any moment: the store opens, sync mends it, no file is lost.

The commands run in children of a process that has everything loaded, so that the kill falls into
their work and not into the start of Python.
"""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from filestore.catalog import CatalogWriter
from filestore.chunks import chunk_file
from filestore.core.hashing import content_hash, origin_hash

CHECKOUT = Path(__file__).resolve().parents[3]
KILLED = -9
CYCLES = 20

_HOST = """
import json, os, signal, sys, time
from filestore.cli import main
import filestore.ingest.add, filestore.extract.markdown
import filestore.sync.apply, filestore.sidecar.commit
import faiss, numpy, tantivy, semantic_text_splitter, markdown_it, frontmatter

for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(task["folder"])
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os._exit(main(task["words"]))
    deadline = time.monotonic() + task["delay_s"]
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.0005)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""

Kill = Callable[[Any, float, list[str]], int]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """Runs a command in a work tree and kills it after a while; its exit code, -9 if killed."""
    host = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _HOST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        text=True,
    )
    assert host.stdin is not None
    assert host.stdout is not None

    def run(workspace: Any, delay_s: float, words: list[str]) -> int:
        assert host.stdin is not None
        assert host.stdout is not None
        task = {"folder": str(workspace.folder), "delay_s": delay_s, "words": words}
        host.stdin.write(json.dumps(task) + "\n")
        host.stdin.flush()
        return int(host.stdout.readline())

    yield run
    host.stdin.close()
    host.wait(timeout=30)
    host.stdout.close()


def duration_s(kill: Kill, workspace: Any, words: list[str]) -> float:
    """How long a command takes that nobody kills."""
    started = time.monotonic()
    assert kill(workspace, 60, words) == 0
    return time.monotonic() - started


def assert_repaired(workspace: Any) -> None:
    """One sync makes the store sound, whatever was left behind; only a document waits for `add`."""
    for command in (["status"], ["search", "words"]):
        assert workspace(*command, code=None).code in (0, 1, 3)
    workspace.sync(code=None)
    assert set(workspace.drift()) <= {"leftovers", "source-modified"}
    checked = workspace.json("verify", "--level", "full", code=None)
    codes = {finding["code"] for finding in checked["findings"]}
    assert codes <= {"leftovers", "duplicate", "source-modified"}


def assert_whole(workspace: Any, before: dict[str, bytes], touched: str) -> None:
    """Files of other resources are as they were; those of this one are whole, old or new."""
    after = workspace.truth()
    for path, data in before.items():
        if not path.startswith(touched):
            assert after[path] == data, path
    for path, data in after.items():
        if path.endswith(".md"):
            assert not chunk_file.hand_edited(chunk_file.parse(data)), path
        elif path.endswith(".json"):
            assert isinstance(json.loads(data), dict)


def document(manual: Any, chance: random.Random) -> str:
    topics = [f"topic{number}" for number in range(9)]
    return str(manual(chance.sample(topics, chance.randrange(3, 8))))


def test_killed_while_adding(workspace: Any, manual: Any, kill: Kill) -> None:
    """However far an add came, sync makes the index sound and adding again completes it."""
    chance = random.Random(11)
    workspace.write("keep.md", manual(["kept", "words"]))
    longest_s = duration_s(kill, workspace, ["add", "keep.md"])
    killed = 0
    for cycle in range(CYCLES):
        name = f"n{cycle // 2}.md"
        before = workspace.truth()
        text = document(manual, chance)
        workspace.write(name, text)
        if kill(workspace, chance.uniform(0, longest_s), ["add", name]) == KILLED:
            killed += 1
        else:
            # It was measured while the machine was busier than now.
            longest_s /= 2
        assert_whole(workspace, before, f"{name}/")
        assert_repaired(workspace)
        workspace("add", name)
        assert workspace("reconstruct", name).stdout == text
    assert killed
    assert_repaired(workspace)


@pytest.mark.parametrize("synced", [False, True])
def test_adding_again_completes_what_was_cut(either: Any, manual: Any, synced: bool) -> None:
    """A resource that a kill left without its record and its last chunk is completed by add."""
    either.write("note.md", manual(["preface", "pears", "plums"]))
    either("add", "note.md")
    whole = either.truth()
    (record,) = either.chunked.rglob("*.json")
    record.unlink()
    (either.chunked / either.chunks("note.md")[-1]).unlink()
    if synced:
        either.sync()
    either("add", "note.md")
    assert either.truth() == whole
    either.sync()
    either.assert_settled()


def test_leftovers_are_collected(either: Any) -> None:
    """The temporary files of a dead writer are gone after the next sync."""
    (either.chunked / "note.md").write_text("A note.\n")
    leftover = either.chunked / ".filestore-tmp-0123456789abcdef"
    leftover.write_text("A no")
    assert either.json("status", code=None)["drift"]["leftovers"]
    either.json("sync")
    assert not leftover.exists()
    either.assert_settled()


def test_killed_while_syncing(workspace: Any, manual: Any, kill: Kill) -> None:
    """However far a sync came, the next one ends it; truth is never written."""
    chance = random.Random(12)
    workspace.write("base.md", manual([f"topic{number}" for number in range(8)]))
    workspace("add", "base.md")
    disturb(workspace, chance, 0)
    longest_s = duration_s(kill, workspace, ["sync"])
    killed = 0
    for cycle in range(1, CYCLES + 1):
        disturb(workspace, chance, cycle)
        before = workspace.truth()
        if kill(workspace, chance.uniform(0, longest_s), ["sync"]) == KILLED:
            killed += 1
        else:
            longest_s /= 2
        assert workspace.truth() == before
        assert_repaired(workspace)
    assert killed
    workspace.assert_settled()


def disturb(workspace: Any, chance: random.Random, cycle: int) -> None:
    """Give the next sync something to do."""
    for number in range(chance.randrange(1, 30)):
        (workspace.chunked / f"c{cycle}-{number}.md").write_text(f"Words {cycle} {number}.\n")
    files = sorted(workspace.chunked.glob("c*.md"))
    for path in chance.sample(files, min(3, len(files))):
        chance.choice([path.unlink, lambda path=path: path.write_text("Edited words.\n")])()
    if cycle % 5 == 4:
        (workspace.sidecar / "catalog.sqlite").unlink()


def test_killed_while_removing(workspace: Any, manual: Any, kill: Kill) -> None:
    """However far a removal came, each file is there or kept, and removing again completes it."""
    chance = random.Random(13)
    workspace.write("keep.md", manual(["kept", "words"]))
    workspace("add", "keep.md")
    workspace.write("first.md", document(manual, chance))
    workspace("add", "first.md")
    longest_s = duration_s(kill, workspace, ["rm", "first.md"])
    for _ in range(CYCLES // 3):
        workspace.write("gone.md", document(manual, chance))
        workspace("add", "gone.md")
        before = workspace.truth()
        kill(workspace, chance.uniform(0, longest_s), ["rm", "gone.md"])
        kept = {path.read_bytes() for path in workspace.store.glob(".undo/*/*") if path.is_file()}
        after = workspace.truth()
        for path, data in before.items():
            assert after.get(path, data) == data
            assert path in after or data in kept
        workspace("sync")
        if any(path.startswith("gone.md/") for path in workspace.truth()):
            workspace("rm", "gone.md")
        assert {path for path in before if path.startswith("keep.md/")} == set(workspace.truth())
        workspace.assert_settled()


def edited_by_hand(workspace: Any) -> tuple[Path, str]:
    """A chunk that a person edited, so that the text it was made from is only in the catalog."""
    workspace.write("note.md", "# Note\n\nThe words as they were made.\n")
    workspace("add", "note.md")
    path: Path = workspace.chunked / workspace.chunks("note.md")[0]
    generated = chunk_file.parse(path.read_bytes()).body
    path.write_bytes(path.read_bytes().replace(b"as they were made", b"of a person"))
    workspace.sync(code=None)
    return path, generated


def damage_header(path: Path) -> None:
    """No SQLite opens it any more."""
    data = bytearray(path.read_bytes())
    data[:16] = b"no database here"
    path.write_bytes(data)


def damage_page(path: Path) -> None:
    """A page is zeroed that SQLite needs for everything but the texts."""
    page_bytes = run_in(path, "PRAGMA page_size")[0][0]
    root = run_in(path, "SELECT rootpage FROM sqlite_master WHERE name = 'files_by_resource'")
    with path.open("r+b") as file:
        file.seek((root[0][0] - 1) * page_bytes)
        file.write(bytes(page_bytes))


def damage_schema(path: Path) -> None:
    """The type of a column is no text any more, which Python says without a code of SQLite's."""
    data = path.read_bytes()
    assert data.count(b"origin TEXT NOT NULL, source") == 1
    path.write_bytes(
        data.replace(b"origin TEXT NOT NULL, source", b"origin \xff\xe6XT NOT NULL, source")
    )


def make_outdated(path: Path) -> None:
    """As an older version wrote it."""
    run_in(path, "PRAGMA user_version = 1")


def damage_row(path: Path) -> None:
    """One row is not what was written."""
    run_in(path, "UPDATE files SET kind = 'summary' WHERE state = ''")


def run_in(path: Path, *statements: str) -> list[Any]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements][-1]
    finally:
        connection.close()


@pytest.mark.parametrize("damage", [damage_page, make_outdated, damage_row])
def test_what_proves_itself_outlives_its_catalog(
    either: Any, damage: Callable[[Path], None]
) -> None:
    """Generated texts, bytes of files that are gone, and where originals lie are carried over."""
    path, generated = edited_by_hand(either)
    (either.chunked / "gone.md").write_text("Words that nobody has elsewhere.\n")
    outside = either.folder.parent / "outside.md"
    outside.write_text("# Outside\n\nWords of another place.\n")
    either("add", outside)
    either.sync(code=None)
    (either.chunked / "gone.md").unlink()
    either.sync(code=None)
    (either.chunked / "late.md").write_text("Words that went with the catalog.\n")
    either.sync(code=None)
    (either.chunked / "late.md").unlink()
    catalog = either.sidecar / "catalog.sqlite"
    before = run_in(catalog, "SELECT key, value FROM meta WHERE key LIKE 'original:%'")
    assert before
    damage(catalog)
    report = either.sync("--full", code=None)
    assert report["embedded"] == 0
    texts = dict(run_in(catalog, "SELECT origin, body FROM generated"))
    assert texts[origin_hash(generated)] == generated.encode()
    kept = dict(run_in(catalog, "SELECT path, data FROM forgotten"))
    assert kept[b"gone.md"] == b"Words that nobody has elsewhere.\n"
    assert kept[b"late.md"] == b"Words that went with the catalog.\n"
    assert run_in(catalog, "SELECT key, value FROM meta WHERE key LIKE 'original:%'") == before
    assert path.name.encode() not in {name.rpartition(b"/")[2] for name in kept}
    assert either.json("verify", "--level", "full")["clean"] is True


def test_what_proves_nothing_is_left(either: Any) -> None:
    """A text that is not the one its hash names, or leads out of the tree, is not carried over."""
    edited_by_hand(either)
    catalog = either.sidecar / "catalog.sqlite"
    proof = content_hash(b"A").hex()
    run_in(
        catalog,
        "UPDATE generated SET body = 'other words'",
        "INSERT INTO generated VALUES ('sha256:00', 'words of nobody')",
        "INSERT INTO generated VALUES ('no hash', x'ff')",
        "INSERT INTO forgotten VALUES ('no bytes', 1, 'nor these', 'no time', 1)",
        f"INSERT INTO forgotten VALUES (CAST('gone.md' AS BLOB), x'{'00' * 16}', x'41', 0, 1)",
        f"INSERT INTO forgotten VALUES (CAST('../out.md' AS BLOB), x'{proof}', x'41', 0, 1)",
        f"INSERT INTO forgotten VALUES (CAST('a/../b.md' AS BLOB), x'{proof}', x'41', 0, 1)",
        "PRAGMA user_version = 1",
    )
    either.sync(code=None)
    assert run_in(catalog, "SELECT * FROM generated") == []
    assert run_in(catalog, "SELECT * FROM forgotten") == []


def test_a_kill_before_the_texts_were_carried_over(workspace: Any) -> None:
    """The catalog that was put aside is looked into by the next writer, too."""
    _, generated = edited_by_hand(workspace)
    aside = workspace.sidecar / "quarantine"
    aside.mkdir()
    shutil.move(workspace.sidecar / "catalog.sqlite", aside / "1-catalog.sqlite")
    (aside / "notes of a person.txt").write_text("Not ours.")
    workspace.sync(code=None)
    texts = dict(run_in(workspace.sidecar / "catalog.sqlite", "SELECT origin, body FROM generated"))
    assert texts[origin_hash(generated)] == generated.encode()


@pytest.mark.parametrize("damage", [damage_header, damage_schema])
def test_garbage_is_put_aside(workspace: Any, damage: Callable[[Path], None]) -> None:
    """Of a catalog that SQLite cannot open nothing is kept, and the store is made again."""
    edited_by_hand(workspace)
    damage(workspace.sidecar / "catalog.sqlite")
    report = workspace.sync(code=None)
    assert "catalog-damaged" in {finding["code"] for finding in report["applied"]}
    assert report["embedded"] == 0
    assert workspace.json("verify", "--level", "full")["clean"] is True


@pytest.mark.parametrize("table", ["files", "vectors", "meta"])
def test_an_interruption_inside_sqlite_is_one(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """SQLite asks us which table a statement changes: Ctrl-C in the answer is no damage."""
    workspace.write("file_index/chunked/note.md", "Words of basalt.\n")
    workspace("sync")
    workspace.write("file_index/chunked/note.md", "Words of gneiss.\n")
    note_table = CatalogWriter._note_table

    def interrupted(writer: CatalogWriter, action: int, name: str | None, *more: object) -> int:
        if name == table:
            raise KeyboardInterrupt
        return note_table(writer, action, name, *more)

    with monkeypatch.context() as patch:
        patch.setattr(CatalogWriter, "_note_table", interrupted)
        workspace("sync", code=130)
    assert not list(workspace.store.glob(".sidecar/quarantine/*"))
    assert workspace.drift() == {"modified": ["chunked/note.md"]}
    workspace("sync")
    workspace.assert_settled()


def test_lost_embeddings_are_not_forgotten_by_another_command(workspace: Any) -> None:
    """What removes a resource makes a new file of embeddings; the next sync still sees the loss."""
    for name in ("ferry.md", "bees.md"):
        workspace.write(name, f"# {name}\n\nWords of {name}.\n")
    workspace("add", "ferry.md", "bees.md")
    for path in workspace.sidecar.glob("embeddings.sqlite*"):
        path.unlink()
    workspace("rm", "ferry.md")
    assert workspace.drift() == {"vector-pending": [".sidecar/embeddings.sqlite"]}
    assert workspace.sync()["embedded"] == 1
    workspace.assert_settled()


def test_what_a_dead_writer_staged_beside_the_words_is_cleared(workspace: Any) -> None:
    """By the next commit, whatever it is about."""
    workspace.write("file_index/chunked/one.md", "Words.\n")
    workspace("sync", code=None)
    staged = workspace.sidecar / "fulltext" / ".filestore-tmp-0123456789abcdef"
    staged.write_bytes(b"half a stamp")
    workspace.write("file_index/chunked/two.md", "Other words.\n")
    workspace.sync()
    assert not staged.exists()
