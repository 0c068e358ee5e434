"""What can be wrong with what a store is given, or where it lies.

In each case: a sentence with a way out, the code of the contract, no traceback, nothing
half-written and the rest done.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from filestore.server.operations import COMMANDS
from tests.advice import advised, all_words
from tests.system.conftest import Workspace
from tests.system.server.serving import serving

CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that ended."""

    code: int
    stdout: str
    stderr: str


def assert_said(done: Any, code: int, *words: str) -> None:
    """A sentence with its remedy on stderr, the right code, and no traceback."""
    assert done.code == code, done
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert advised(done.stderr)


def no_leftovers(folder: Path) -> bool:
    return not [path for path in folder.rglob("*") if "filestore-tmp" in path.name]


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def good_neighbour(workspace: Any) -> str:
    """A document that is added beside a bad one, to see that the rest is done."""
    workspace.write("good.md", "Good words.\n")
    return "good.md"


# Sources that cannot be used


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: None, "no such file or folder"),
        (lambda folder: (folder / "bad.md").symlink_to("nowhere"), "bad.md"),
        (lambda folder: (folder / "bad.md").write_bytes(b""), "empty"),
        (lambda folder: (folder / "bad.md").write_bytes(b" \n\t\n"), "empty"),
        (lambda folder: (folder / "bad.md").write_bytes(bytes(range(256)) * 20), "bad.md"),
        (lambda folder: (folder / "bad.md").write_bytes(b"words\x00\x01\x02\x03" * 99), "bad.md"),
        (lambda folder: os.mkfifo(folder / "bad.md"), "not a regular file"),
        (lambda folder: (folder / "bad.md").mkdir(), "no readable document"),
    ],
    ids=["missing", "dangling", "empty", "blank", "binary", "zeros", "pipe", "empty folder"],
)
def test_a_source_that_cannot_be_used(either: Any, make: Callable[[Path], None], says: str) -> None:
    """It is named with the reason, nothing of it is in the store, and its neighbour is added."""
    good = good_neighbour(either)
    make(either.folder)
    done = either("add", "bad.md", good, code=5)
    assert_said(done, 5, "bad.md", says)
    assert "added good.md" in done.stdout
    report = either.json("add", "bad.md", good, code=5)
    assert [entry["error"] != "" for entry in report["failed"]] == [True]
    assert [item["resource"] for item in either.json("ls")["items"]] == ["good.md"]
    assert no_leftovers(either.store)
    either.assert_settled()


def test_broken_frontmatter_of_a_document(either: Any) -> None:
    """A document whose own frontmatter cannot be read is added with its text or refused, whole."""
    good = good_neighbour(either)
    either.write("odd.md", "---\ntitle: [never closed\n---\n# Odd\n\nWords.\n")
    done = either("add", "odd.md", good, code=None)
    assert done.code in (0, 5)
    assert either.found("good") != []
    either.assert_settled()


def test_a_path_through_a_file(workspace: Any) -> None:
    """A path whose folder is a file does not exist."""
    workspace.write("file", "Words.\n")
    assert_said(workspace("add", "file/inner.md", code=3), 3, "file/inner.md")


def test_formats_that_are_not_read(workspace: Any) -> None:
    """A format without an extractor is named, with what can be read."""
    workspace.write("sheet.odg", b"PK")
    assert_said(workspace("add", "sheet.odg", code=3), 3, "sheet.odg", "Markdown")


def test_bad_documents_in_a_folder(either: Any) -> None:
    """A folder is added without the documents that cannot be read, which are listed."""
    either.write("mixed/good.md", "Good words.\n")
    either.write("mixed/empty.md", b"")
    either.write("mixed/binary.txt", bytes(range(256)) * 20)
    (either.folder / "mixed" / "link.md").symlink_to("good.md")
    done = either("add", "mixed", code=None)
    assert "added mixed (1 chunk)" in done.stdout
    for name in ("empty.md", "binary.txt", "link.md"):
        assert f"left out {name}" in done.stderr or f"mixed/{name}" in done.stderr
    assert "Traceback" not in done.stderr
    failed = ["../mixed/binary.txt", "../mixed/empty.md"]
    assert either.drift() == {"source-untracked": failed}
    again = either.json("update", code=5)
    assert [one["source"] for one in again["failed"]] == failed
    assert again["undo"] is None
    either.write("mixed/.filestoreignore", "empty.md\nbinary.txt\n")
    either.assert_settled()


def test_each_with_bad_children(either: Any) -> None:
    """With --each one bad child costs only itself."""
    either.write("shelf/good.md", "Good words.\n")
    either.write("shelf/bad.md", b"")
    report = either.json("add", "shelf", "--each", code=5)
    assert [entry["resource"] for entry in report["added"]] == ["good.md"]
    assert [entry["resource"] for entry in report["failed"]] == ["bad.md"]
    assert either.drift() == {"source-untracked": ["../shelf/bad.md"]}
    either.write("shelf/bad.md", "Better words.\n")
    assert [entry["resource"] for entry in either.json("update")["added"]] == ["bad.md"]
    either.assert_settled()


def test_a_source_that_turned_bad(either: Any) -> None:
    """A source that cannot be read any more keeps the chunks it had."""
    either.write("note.md", "Words of the note.\n")
    either("add", "note.md")
    before = either.truth()
    either.write("note.md", b"")
    assert_said(either("add", "note.md", code=3), 3, "note.md")
    assert either.truth() == before
    assert either.drift() == {"source-modified": ["../note.md"]}


@pytest.mark.parametrize("name", ["a/b", "..", ".", ".hidden", "", "n" * 256])
def test_names_that_cannot_be(either: Any, name: str) -> None:
    """A resource name that cannot be a folder is refused, and writes nothing."""
    good = good_neighbour(either)
    done = either("add", good, "--into", name, code=3)
    assert_said(done, 3, "cannot name a document", "--into")
    assert either.truth() == {}


def test_names_that_collide_by_case(either: Any) -> None:
    """A name some file systems could not tell from one that is there is refused."""
    either.write("a/Notes.md", "First words.\n")
    either.write("b/notes.md", "Second words.\n")
    either.write("c/caf\u00e9.md", "Third words.\n")
    either.write("d/cafe\u0301.md", "Fourth words.\n")
    either("add", "a/Notes.md", "c/caf\u00e9.md")
    before = either.truth()
    done = either("add", "b/notes.md", "d/cafe\u0301.md", code=4)
    assert_said(done, 4, "differs only by case or composition", "--into")
    assert either.truth() == before
    assert len(either.json("add", "b/notes.md", code=4)["failed"]) == 1
    either("add", "b/notes.md", "--into", "other notes.md")
    either.assert_settled()


# Stores in the wrong place


def test_a_store_inside_a_store(either: Any) -> None:
    """A store is not made in a store, and the outer one is left as it is."""
    before = either.committed()
    for folder in (either.chunked / "inner", either.store / "inner", either.store / "source"):
        done = either("init", folder, code=4)
        assert_said(done, 4, "store inside a store")
        assert not folder.exists()
    assert either.committed() == before


def test_a_folder_that_contains_the_store(either: Any) -> None:
    """The store itself is left out of what is added around it."""
    either.write("one.md", "First words.\n")
    either.write("two/deep.md", "Second words.\n")
    either("add", ".", "--into", "all")
    assert either.json("ls")["items"] == [{"resource": "all", "source": "..", "chunks": 2}]
    again = either.json("add", ".", "--into", "all")
    assert [entry["resource"] for entry in again["unchanged"]] == ["all"]
    either.assert_settled()


def test_each_beside_the_store(either: Any) -> None:
    """With --each the store is no child of the folder it lies in."""
    either.write("one.md", "First words.\n")
    report = either.json("add", ".", "--each")
    assert [entry["resource"] for entry in report["added"]] == ["one.md"]
    assert report["failed"] == []


@pytest.mark.parametrize("part", ["", "chunked", "chunked/note.md", ".sidecar", ".undo"])
def test_adding_the_store_to_itself(either: Any, part: str) -> None:
    """The store and what it made are refused as sources."""
    either.write("note.md", "Words of the note.\n")
    either("add", "note.md")
    (either.store / ".undo").mkdir(exist_ok=True)
    (either.chunked / "note.md").mkdir(exist_ok=True)
    before = either.truth()
    assert_said(either("add", either.store / part, code=3), 3, "store")
    assert either.truth() == before


# Disks that do not take it


def fill_up(path: Path) -> None:
    """Write until the disk is full."""
    with open(path, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk(small_disk: Path, run: Any) -> None:
    """What does not fit is refused, nothing is half-written, and it works once there is space."""
    assert run("init", cwd=small_disk).code == 0
    root = small_disk / "file_index"
    outside = small_disk.parent / "note.md"
    outside.write_text("# Note\n\nWords that fit.\n")
    assert run("add", str(outside), cwd=small_disk).code == 0
    truth = files_of(root / "chunked")
    large = small_disk.parent / "large.txt"
    large.write_text("".join(f"Line {n} of a text that is too long.\n" for n in range(40_000)))
    done = run("add", str(large), cwd=small_disk)
    assert_said(done, 3, "No space left on device", "free some space")
    assert files_of(root / "chunked") == truth
    assert no_leftovers(root)
    assert run("verify", "--level", "full", cwd=small_disk).code == 0
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        fill_up(filler)
    assert "Traceback" not in run("sync", cwd=small_disk).stderr
    assert run("search", "words", cwd=small_disk).code == 0
    filler.unlink()
    (root / "chunked" / "new.md").write_text("New words.\n")
    assert run("sync", cwd=small_disk).code == 0
    assert run("verify", "--level", "full", cwd=small_disk).code == 0


@pytest.fixture
def read_only(small_disk: Path, run: Any) -> Iterator[Path]:
    """A work tree with a store and one note, on a file system that was mounted read-only."""
    (small_disk / "note.md").write_text("# Note\n\nWords of the note.\n")
    assert run("init", cwd=small_disk).code == 0
    assert run("add", "note.md", cwd=small_disk).code == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    yield small_disk
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_reading_in_a_read_only_folder(read_only: Path, run: Any, tmp_path: Path) -> None:
    """A store that cannot be written is read as ever, its embeddings into a file elsewhere."""
    for words in (
        ["status"],
        ["verify", "--level", "full"],
        ["ls"],
        ["show", "note.md/chunk1.md"],
        ["reconstruct", "note.md"],
        *(["search", "words", "--mode", mode] for mode in ("hybrid", "vector", "keyword")),
        ["embeddings", "export", str(tmp_path / "note.fspack")],
    ):
        done = run(*words, cwd=read_only)
        assert done.code == 0, (words, done)
        assert done.stderr == "" or words[0] == "search"


def test_writing_in_a_read_only_folder(read_only: Path, run: Any, tmp_path: Path) -> None:
    """What would write a store that cannot be written says so, and what to do."""
    pack = str(tmp_path / "note.fspack")
    assert run("embeddings", "export", pack, cwd=read_only).code == 0
    for words in (
        ["sync"],
        ["add", "note.md"],
        ["rm", "note.md"],
        ["embeddings", "export", "note.fspack"],
        ["embeddings", "import", pack],
    ):
        assert_said(run(*words, cwd=read_only), 3, "Read-only", "writable")
    answer = run("sync", "--json", cwd=read_only)
    assert set(answer.json) == {"error", "detail", "remedy"}


def test_init_in_a_read_only_folder(read_only: Path, run: Any) -> None:
    """A store cannot be made there, which is said."""
    assert_said(run("init", "other", cwd=read_only), 3, "Read-only", "writable")


_WITHOUT_RIGHTS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, dropped from the next exec on
    assert libc.prctl(24, capability, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "filestore", *sys.argv[1:]])
"""


@pytest.fixture
def bound(tmp_path: Path) -> Callable[..., Any]:
    """Runs commands that are bound by the modes of files, even where root runs the tests."""

    def command(*words: str) -> Any:
        start = ["-m", "filestore"] if os.geteuid() else ["-c", _WITHOUT_RIGHTS]
        done = subprocess.run(
            [sys.executable, *start, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        if "prctl" in done.stderr:
            pytest.skip("the rights of root cannot be dropped here")
        return Ended(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    return command


def test_unreadable_sources(tmp_path: Path, bound: Any) -> None:
    """A file, or one in a folder, that may not be read is named, and the rest is added."""
    assert bound("init", "--embedder", "builtin").code == 0
    for name in ("good.md", "secret.md", "mixed/open.md", "mixed/shut.md", "closed/in.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"Words of {name}.\n")
    shut = [tmp_path / name for name in ("secret.md", "mixed/shut.md", "closed")]
    for path in shut:
        path.chmod(0)
    done = bound("add", "secret.md", "mixed", "closed", "good.md")
    shut[2].chmod(0o700)
    assert_said(done, 5, "secret.md", "Permission denied", "closed")
    assert "added good.md" in done.stdout
    assert "added mixed (1 chunk)" in done.stdout
    assert "failed mixed/shut.md" in done.stderr
    done = bound("verify", "--level", "full", "--json")
    found = json.loads(done.stdout)["findings"]
    assert {one["path"] for one in found if one["code"] == "source-untracked"} == {
        "../mixed/shut.md"
    }
    assert {one["code"] for one in found if one["severity"] != "I"} == {"source-untracked"}


def test_unreadable_chunks_are_not_missing(tmp_path: Path, bound: Any) -> None:
    """What may not be read is unreadable; it is not forgotten, nor is anything below it."""
    assert bound("init", "--embedder", "builtin").code == 0
    for number in range(3):
        (tmp_path / f"n{number}.md").write_text(f"Words of number{number}.\n")
    assert bound("add", "n0.md", "n1.md", "n2.md").code == 0
    chunked = tmp_path / "file_index" / "chunked"
    (chunked / "n0.md").chmod(0)
    (chunked / "n1.md" / "chunk1.md").write_text("Other words.\n")
    (chunked / "n1.md" / "chunk1.md").chmod(0)
    for command in ("status", "sync"):
        done = bound(command)
        assert done.code == 1
        assert "unreadable (2)" in done.stdout
        assert "missing" not in done.stdout
        assert "Traceback" not in done.stderr
    (chunked / "n0.md").chmod(0o755)
    (chunked / "n1.md" / "chunk1.md").chmod(0o644)
    assert "embedded 1 passage" in bound("sync").stdout
    assert bound("status").code == 0


def test_a_folder_that_may_not_be_written(tmp_path: Path, bound: Any) -> None:
    """A store is not made, and a resource not written, where there is no right to."""
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o555)
    assert_said(bound("init", "shut/store", "--embedder", "builtin"), 3, "cannot write", "chmod")
    assert bound("init", "--embedder", "builtin").code == 0
    (tmp_path / "note.md").write_text("Words.\n")
    chunked = tmp_path / "file_index" / "chunked"
    chunked.chmod(0o555)
    done = bound("add", "note.md")
    chunked.chmod(0o755)
    assert_said(done, 3, "writable")
    assert list(chunked.iterdir()) == []
    assert bound("add", "note.md").code == 0


# Settings and other people's stores


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('layout = "tree"', "layout = [never closed", "cannot be read"),
        ('layout = "tree"', 'layout = "heap"', "layout must be flat or in-place or tree"),
        ('embedder = "builtin"', "embedder = 5", "embedder must be"),
        ("budget = 240", "budget = 0", "budget must be"),
        ("budget = 240", "budget = true", "budget must be"),
        ("format = 1", 'format = "one"', "format must be"),
        ("format = 1", "format = 99", "upgrade filestore"),
        ("[chunker]", "accepted = 3\n[chunker]", "accepted must be"),
        ("[chunker]", "\x00[chunker]", "cannot be read"),
    ],
)
def test_settings_that_cannot_be_used(workspace: Any, old: str, new: str, says: str) -> None:
    """Every command stops with 3, naming the file, what is wrong and what to do."""
    workspace.write("note.md", "Words.\n")
    settings = workspace.store / "filestore.toml"
    settings.write_text(settings.read_text().replace(old, new))
    before = workspace.committed()
    for words in (["status"], ["sync"], ["search", "x"], ["add", "note.md"], ["ls"]):
        assert_said(workspace(*words, code=3), 3, "filestore.toml", says)
    assert workspace.committed() == before


@pytest.fixture
def odd(workspace: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    """A key that is spelled wrong, in the store's file and in the user's."""
    workspace.write("note.md", "Words.\n")
    workspace("add", "note.md")
    settings = workspace.store / "filestore.toml"
    settings.write_text(settings.read_text().replace("budget", "budgets"))
    own = tmp_path / "own" / "filestore" / "settings.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[side]\n"/kb" = "/away"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return workspace


def assert_named_once(said: str, tmp_path: Path, words: object) -> None:
    """Each of them."""
    own = tmp_path / "own" / "filestore" / "settings.toml"
    assert said.count("unknown key 'chunker.budgets'; did you mean 'budget'?") == 1, (words, said)
    assert said.count(f"{own}: unknown key 'side'") == 1, (words, said)


def test_settings_that_nothing_reads_are_named(odd: Workspace, tmp_path: Path) -> None:
    """Once, by each command."""
    odd.write("q.jsonl", '{"query": "words", "relevant": ["note.md"]}\n')
    file = "chunked/note.md/chunk1.md"
    given = {
        **dict.fromkeys(("add", "reconstruct", "rm"), ("note.md",)),
        **dict.fromkeys(("show", "similar", "links"), (file,)),
        **dict.fromkeys(("search", "about", "log"), ("words",)),
        "open": (file, "--print"),
        "git": ("status",),
        "mv": ("note.md", "moved.md", "--plan"),
        "evaluate": ("q.jsonl",),
        "compare": ("HEAD", "--queries", "q.jsonl"),
        "embeddings": ("prune",),
        "export": ("jsonl", "all.jsonl"),
        "import": ("jsonl", "all.jsonl"),
    }
    # These open no store, wait for somebody, or draw.
    others = {
        *("init", "completion", "config", "convert", "demo", "doctor"),
        *("help", "mcp", "serve", "token", "watch", "tui"),
    }
    for name in sorted(COMMANDS.keys() - others):
        words = [name, *given.get(name, ())]
        assert_named_once(odd(*words, code=None).stderr, tmp_path, words)


def test_settings_that_nothing_reads_are_named_by_servers(odd: Workspace, tmp_path: Path) -> None:
    """Once, on standard error."""
    command = [sys.executable, "-m", "filestore", "mcp"]
    ended = subprocess.run(
        command,
        cwd=odd.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert_named_once(ended.stderr, tmp_path, command)
    with serving(tmp_path / "own", odd.store) as server:
        pass
    assert_named_once("".join(server.errors), tmp_path, ["serve"])


def test_of_many_settings_that_nothing_reads_the_first_are_named(workspace: Any) -> None:
    """And how many more there are."""
    settings = workspace.store / "filestore.toml"
    others = "".join(f"key{number} = 1\n" for number in range(500))
    settings.write_text(others + settings.read_text())
    said = workspace("status", code=None).stderr.splitlines()
    assert len(said) == 20
    assert said[-1].endswith("unknown key 'key19' and 480 more")


def test_settings_that_are_not_text(workspace: Any) -> None:
    """A settings file of bytes that are no UTF-8 is said to be so."""
    (workspace.store / "filestore.toml").write_bytes(b"\xff\xfe\x00\x01")
    assert_said(workspace("status", code=3), 3, "filestore.toml", "cannot be read")


def test_unknown_embedder_at_init(workspace: Any) -> None:
    """A store is not made for an embedder that there is not; those that are there are named."""
    done = workspace("init", "elsewhere", "--embedder", "oracle", code=None)
    assert done.code in (2, 3)
    assert_said(done, done.code, "oracle", "builtin")
    assert not (workspace.folder / "elsewhere").exists()


def test_unknown_embedder_in_the_settings(either: Any) -> None:
    """Files are still followed and found by word, vectors wait, and every answer says so."""
    either.write("note.md", "Words of the note.\n")
    either("add", "note.md")
    settings = either.store / "filestore.toml"
    good = settings.read_text()
    settings.write_text(good.replace('"builtin"', '"oracle"'))
    assert list(either.drift()) == ["model-missing"]
    (either.chunked / "new.md").write_text("Words of a new file.\n")
    done = either("sync", code=1)
    assert "model-missing" in done.stdout
    done = either("search", "new")
    assert "keyword only" in done.stderr
    assert "new.md" in done.stdout
    settings.write_text(good)
    assert either.sync()["embedded"] == 1
    either.assert_settled()


def test_a_newer_catalog(workspace: Any) -> None:
    """A catalog of a later version is refused and left as it is, not taken for damaged."""
    import sqlite3

    workspace.write("note.md", "Words.\n")
    workspace("add", "note.md")
    path = workspace.sidecar / "catalog.sqlite"
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version + 1000}")
    connection.close()
    for words in (["status"], ["sync"], ["search", "x"]):
        assert_said(workspace(*words, code=3), 3, "schema", "upgrade filestore")
    (finding,) = workspace.json("verify", code=1)["findings"]
    assert (finding["code"], finding["path"]) == ("format-newer", ".sidecar/catalog.sqlite")
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (version + 1000,)
    connection.close()


@pytest.mark.parametrize("harm", ["link", "open to all", "file"])
def test_an_unsafe_sidecar(workspace: Any, harm: str) -> None:
    """A sidecar that somebody else could have planted is not opened."""
    workspace.write("note.md", "Words.\n")
    workspace("add", "note.md")
    elsewhere = workspace.folder / "elsewhere"
    if harm == "open to all":
        workspace.sidecar.chmod(0o777)
    else:
        workspace.sidecar.rename(elsewhere)
        workspace.sidecar.symlink_to(elsewhere) if harm == "link" else workspace.sidecar.touch()
    for words in (["status"], ["sync"], ["search", "x"], ["add", "note.md"]):
        assert_said(workspace(*words, code=4), 4, "not safe")
    (finding,) = workspace.json("verify", code=1)["findings"]
    assert (finding["code"], finding["path"]) == ("unsafe-sidecar", ".sidecar")


def test_a_second_writer(workspace: Any, tmp_path: Path) -> None:
    """A writer that finds another waits, then says who it is; readers do not mind."""
    from filestore.fs.lock import LockedError
    from filestore.store import Store

    source = workspace.write("note.md", "Words.\n")
    workspace("add", "note.md")
    script = (
        "import sys, time; from filestore.fs.lock import writer_lock\n"
        "with writer_lock(sys.argv[1], command='filestore enrich'):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(workspace.sidecar / "lock")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    ) as held:
        try:
            assert held.stdout is not None
            assert held.stdout.readline() == b"held\n"
            with Store(str(workspace.store), configuration=str(tmp_path)) as store:
                for write in (
                    lambda: store.sync(wait_s=0.1),
                    lambda: store.add(source, wait_s=0.1),
                    lambda: store.remove("note.md", wait_s=0.1),
                ):
                    with pytest.raises(LockedError, match="another writer") as refused:
                        write()
                    assert "filestore enrich" in refused.value.message
                    assert str(held.pid) in refused.value.message
                    assert "wait for it" in all_words(refused.value)
                    assert refused.value.exit_code == 3
            assert workspace("status").code == 0
            assert workspace("search", "words").code == 0
        finally:
            held.kill()
    workspace("sync")
    workspace.assert_settled()


def test_writers_take_turns(workspace: Any) -> None:
    """Several adds at once all succeed, one after the other, and lose nothing."""
    for number in range(4):
        workspace.write(f"n{number}.md", f"Words of number{number}.\n")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "filestore", "add", f"n{number}.md"],
            cwd=workspace.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for number in range(4)
    ]
    outcomes = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
    assert [code for _, code in outcomes] == [0] * 4
    said = {line for words, _ in outcomes for line in words.decode().splitlines()}
    assert all("filestore add" in line for line in said), said
    assert len(workspace.json("ls")["items"]) == 4
    workspace.assert_settled()


def test_the_lock_file_stays(workspace: Any) -> None:
    """The lock is an open file, so that it goes with its process and its file need not."""
    lock = workspace.sidecar / "lock"
    inode = lock.stat().st_ino
    workspace.write("note.md", "Words.\n")
    workspace("add", "note.md")
    assert lock.stat().st_ino == inode
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


# Names that a stranger chose

HOSTILE = (
    b"line\nbreak.md",
    b"escape\x1b[31mred.md",
    b"title\x1b]0;owned\x07.md",
    b"c1\xc2\x9b2J.md",
    b"not\xff\xfeutf8.md",
    "turned\u202edm.exe.md".encode(),
    b"tab\tand\rreturn.md",
    b"[bold]markup[red].md",
)


def raw(text: str) -> list[str]:
    """What a terminal could act on: control characters, and those that turn text round."""
    return [
        character
        for character in text
        if (character < " " and character != "\n")
        or "\x7f" <= character < "\xa0"
        or character in "\u202e\u2066"
        or "\udc80" <= character <= "\udcff"
    ]


def write_hostile(folder: Path) -> None:
    for number, name in enumerate(HOSTILE):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"Hostile words number%d.\n" % number)


def test_hostile_names(run: Any, store_folder: Path) -> None:
    """Whatever a file is called, nothing raw reaches the terminal, and the file is indexed."""
    write_hostile(store_folder / "chunked")
    stranger = os.fsdecode(b"no\x1b[31m\xff.md")
    for words in (
        ["status"],
        ["sync"],
        ["search", "hostile", "-k", "20"],
        ["verify", "--level", "full"],
        *(["show", os.fsdecode(name)] for name in HOSTILE),
        ["show", stranger],
        ["rm", stranger],
        ["add", stranger],
        [stranger],
        ["--store", stranger, "status"],
    ):
        done = run(*words, cwd=store_folder)
        assert "Traceback" not in done.stderr, (words, done)
        assert done.code in (0, 1, 2, 3), words
        assert raw(done.stdout + done.stderr) == [], words
    done = run("status", "--json", cwd=store_folder)
    # All are indexed; that other file systems cannot hold some of them is what is left to say.
    assert (done.code, set(done.json["drift"])) == (1, {"unportable-name"})


def test_hostile_names_in_json(run: Any, store_folder: Path) -> None:
    r"""Every file has its path, with ``\xNN`` for bytes that are no text."""
    write_hostile(store_folder / "chunked")
    assert len(run("status", "--json", cwd=store_folder).json["drift"]["untracked"]) == 8
    run("sync", cwd=store_folder)
    words = ["search", "hostile", "--mode", "keyword", "-k", "20", "--json"]
    done = run(*words, cwd=store_folder)
    assert len(done.json["hits"]) == len(HOSTILE)
    assert r"chunked/not\xff\xfeutf8.md" in {hit["path"] for hit in done.json["hits"]}


def test_json_is_safe_for_a_terminal(run: Any, store_folder: Path) -> None:
    """JSON writes control characters as escapes, so that it can be looked at too."""
    write_hostile(store_folder / "chunked")
    assert raw(run("status", "--json", cwd=store_folder).stdout) == []


def test_hostile_sources(run: Any, store_folder: Path) -> None:
    """A source with such a name is added under it, or refused in one safe line."""
    write_hostile(store_folder.parent)
    names = [os.fsdecode(name) for name in HOSTILE]
    done = run("add", *names, cwd=store_folder.parent)
    assert done.code == 5
    assert "valid UTF-8" in done.stderr
    assert "Traceback" not in done.stderr
    assert raw(done.stdout + done.stderr) == []
    assert len(run("ls", "--json", cwd=store_folder).json["items"]) == len(HOSTILE) - 1
    assert raw(run("ls", cwd=store_folder).stdout) == []
    checked = run("verify", "--level", "full", cwd=store_folder)
    assert raw(checked.stdout) == []
    found = run("verify", "--level", "full", "--json", cwd=store_folder).json["findings"]
    assert {one["code"] for one in found if one["severity"] != "I"} == {"unportable-name"}


def test_hostile_frontmatter(workspace: Any) -> None:
    """Bombs, deep nesting and tags are refused within limits, one file at a time."""
    bombs = {
        "anchors.md": "---\na: &a [x]\nb: [*a, *a, *a]\n---\nWords.\n",
        "deep.md": "---\na: " + "[" * 5000 + "]" * 5000 + "\n---\nWords.\n",
        "large.md": "---\na: " + "x" * 100_000 + "\n---\nWords.\n",
        "tag.md": "---\na: !!python/object/apply:os.system ['true']\n---\nWords.\n",
        "merge.md": "---\na: {b: 1}\n<<: {c: 2}\n---\nWords.\n",
        "two.md": "---\na: 1\na: 2\n---\nWords.\n",
        "many.md": "---\n" + "".join(f"k{n}: [{n}]\n" for n in range(50_000)) + "---\nWords.\n",
    }
    for name, text in bombs.items():
        (workspace.chunked / name).write_text(text)
    (workspace.chunked / "good.md").write_text("Good words.\n")
    drift = workspace.drift()
    assert drift["malformed-frontmatter"] == sorted(f"chunked/{name}" for name in bombs)
    workspace.sync(code=1)
    assert workspace.found("words") == ["good.md"]
