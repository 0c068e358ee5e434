"""Records that came with a store lead nowhere that its user did not go."""

import os
import shutil
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import filestore
from filestore.chunks.chunk_file import record_stem
from filestore.config.user_config import distrust
from filestore.server.operations import COMMANDS

SECRET = "Marmalade is the word."
VICTIMS = (
    ".ssh/id_rsa", ".netrc", ".aws/credentials", ".bash_history", ".config/notes.md",
    "passwords", "keys.pem", "vault.kdbx", "diary.md", "Bücher/Übersicht.md", "Private/mail.txt",
)  # fmt: skip
CLOSED = VICTIMS[:8]
"""What is hidden, or whose name says no format: not opened, trusted or not."""
COMMANDS_TRIED = {
    "status": [["status"]],
    "sync": [["sync"], ["sync", "--full"]],
    "verify": [["verify", "--level", "full"]],
    "update": [["update", "--plan"], ["update"], ["update", "--remove-gone"], ["update", ".."]],
    "repair": [["repair", "--write-files", "--yes", "--level", "full"]],
    "search": [["search", "words", "--context", "3"]],
    "show": [["show", "chunked"]],
    "ls": [["ls"]],
    "about": [["about"]],
    "changes": [["changes"]],
    "links": [["links", "{source}"]],
    "mv": [["mv", "{source}", "moved.md", "--plan"], ["mv", "{source}", "moved.md"]],
    "similar": [["similar", "{source}:1"]],
    "log": [["log", "words"]],
    "open": [["open", "{source}:1", "--print"], ["open", "{source}:1", "--chunk", "--print"]],
    "reconstruct": [["reconstruct", "stranger0"]],
    "doctor": [["doctor"]],
    "config": [["config"]],
    "completion": [["completion", "bash"]],
    "duplicates": [["duplicates"]],
    "trust": [["trust", "--list"]],
    "export": [["export", "jsonl", "../out.jsonl"], ["export", "markdown", "../out"]],
    "enrich": [["enrich", "--questions", "1", "--yes", "--generator", "extractive"]],
    "add": [["add", "{own}"]],
    "rm": [["rm", "stranger0"]],
    "undo": [["undo"]],
    "redo": [["redo"]],
    "git": [["git", "status"]],
    "embeddings": [["embeddings", "info", "none"]],
    "backend": [["backend", "show"]],
    "embedder": [["embedder"]],
    "evaluate": [["evaluate", "none.jsonl"]],
    "compare": [["compare", "HEAD", "--queries", "none.jsonl"]],
    "import": [["import", "jsonl", "none.jsonl"]],
    "convert": [["convert", "none.ragmd", "none"]],
}
ELSEWHERE = {"init", "demo", "help", "tui", "serve", "mcp", "token", "watch"}
"""They make a store or open none, or go on until they are ended and do what `update` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A home folder with an archive unpacked in it: a store, and no git."""

    home: Path
    sources: tuple[str, ...]
    """What its records name."""
    run: Callable[..., Any]

    @property
    def store(self) -> Path:
        """The root."""
        return self.home / "kb"

    def words(self) -> bytes:
        """Everything the store holds."""
        found = [path for path in self.store.rglob("*") if path.is_file() and not path.is_symlink()]
        return b"".join(path.read_bytes() for path in found)


def spellings(home: Path, victim: str) -> Iterator[str]:
    """Ways in which a record may name a file."""
    yield f"../{victim}"
    yield str(home / victim)
    yield f"chunked/../../{victim}"
    yield f"source/../../kb/..//./{victim}"
    yield f"way/{victim}"
    yield f"../{quote(victim)}"
    yield f"../{victim.swapcase()}"
    yield f"../{unicodedata.normalize('NFD', victim)}"
    yield f"~/{victim}"


@pytest.fixture
def unpacked(either: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unpacked]:
    """Its records name files of the user in every spelling, and what is no file."""
    home = tmp_path / "home"
    for victim in VICTIMS:
        path = home / victim
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Mine\n\n{SECRET}\n")
    os.mkfifo(home / "pipe.md")
    either.write("mine.md", "# Own\n\nWords of its own.\n")
    either("add", "mine.md")
    shutil.copytree(either.store, home / "kb", ignore=shutil.ignore_patterns(".sidecar", ".undo"))
    (home / "kb/way").symlink_to("..")
    (home / "kb/keys").symlink_to("../.config")
    sources = [one for victim in VICTIMS for one in spellings(home, victim)]
    sources += [
        "keys/notes.md",
        "../pipe\\u0000.md",
        "../pipe.md",
        "/dev/zero",
        "/proc/self/environ",
        "../socket.md",
        "..",
        "../Private",
    ]
    plant(home / "kb/chunked", sources)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(home)
        listener.bind("socket.md")

        def run(*words: str, code: int | None = None) -> Any:
            return either(*words, cwd=home / "kb", code=code)

        yield Unpacked(home=home, sources=tuple(sources), run=run)


def plant(chunked: Path, sources: list[str]) -> None:
    """Put a record and a chunk file beside those that are there for each source."""
    (record,) = chunked.rglob("*.json")
    (chunk,) = [path for path in chunked.rglob("*.md") if path.is_file()]
    for number, source in enumerate(sources):
        made = record.read_text().replace('"../mine.md"', f'"{source}"')
        made = made.replace('"mine.md"', f'"stranger{number}"')
        if record.parent == chunked:
            (chunked / f"{record_stem(source)}.json").write_text(made)
            text = chunk.read_text().replace('"../mine.md"', f'"{source}"')
            (chunked / f"stranger{number}.md").write_text(f"{text}\n{number}\n")
        else:
            folder = chunked / f"stranger{number}"
            folder.mkdir()
            (folder / "meta.json").write_text(made)
            (folder / "chunk1.md").write_text(f"Words of a stranger {number}.\n")


def test_no_command_reads_what_records_name_outside(
    unpacked: Unpacked, record_property: Callable[[str, object], None]
) -> None:
    """No command copies a file of the user, prints of it, calls it missing, or waits for a pipe."""
    assert COMMANDS_TRIED.keys() | ELSEWHERE == COMMANDS.keys()
    own = unpacked.home / "own/own.md"
    own.parent.mkdir()
    own.write_text("# Own\n\nNew words.\n")
    unpacked.run("sync")
    for words in (one for tried in COMMANDS_TRIED.values() for one in tried):
        sources = unpacked.sources if "{source}" in " ".join(words) else ("",)
        for source in sources[::7]:
            said = [word.replace("{source}", source).replace("{own}", str(own)) for word in words]
            done = unpacked.run(*said)
            assert SECRET not in done.stdout + done.stderr, said
            assert done.code in (0, 1, 2, 3, 4, 5), said
        assert SECRET.encode() not in unpacked.words(), words
    commands = sum(map(len, COMMANDS_TRIED.values()))
    record_property("tried", f"records: {commands} commands, {len(unpacked.sources)} sources")
    drift = unpacked.run("status", "--json").json["drift"]
    told = [path for code, paths in drift.items() if code.startswith("source-") for path in paths]
    # What a shell would take for the home folder is a name in the root.
    assert [path for path in told if not path.startswith("~/")] == []
    assert "not looked at: " in unpacked.run("status").stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_nothing_outside_is_asked_for(unpacked: Unpacked) -> None:
    """Not one system call of a command names a file of the user, not even to stat it."""
    unpacked.run("sync")
    trace = unpacked.home.parent / "trace"
    command = ["strace", "-f", "-e", "trace=%file", "-o", str(trace), sys.executable, "-P", "-m"]
    for words in ("status", "update", "repair --write-files --yes", "trust --list"):
        subprocess.run(
            [*command, "filestore", *words.split()],
            cwd=unpacked.store,
            capture_output=True,
            check=False,
            timeout=300,
        )
        lines = trace.read_text(errors="replace").splitlines()
        assert any("catalog.sqlite" in line for line in lines)
        calls = "".join(line for line in lines if "/home/kb/" not in line)
        for name in ("id_rsa", "netrc", "credentials", "diary", "mail.txt", "pipe.md", "keys.pem"):
            assert name not in calls, (words, name)


def test_trust_opens_documents_and_nothing_else(unpacked: Unpacked) -> None:
    """Trusted folders are read for documents; hidden files and names of no format stay closed."""
    unpacked.run("sync")
    unpacked.run("trust", "--yes", code=0)
    listed = unpacked.run("trust", "--list", "--json").json
    assert str(unpacked.home) in listed["allowed"]
    assert not any("/." in path.removeprefix(str(unpacked.home)) for path in listed["allowed"])
    assert {f"../{victim}" for victim in CLOSED} <= {*listed["closed"]}
    drift = unpacked.run("status", "--json").json["drift"]
    assert "../diary.md" in drift["source-modified"]
    assert not any(f"../{victim}" in paths for victim in CLOSED for paths in drift.values())
    for victim in CLOSED:
        (unpacked.home / victim).write_text("# Quince\n\nQuince is the word.\n")
    unpacked.run("update")
    assert SECRET.encode() in unpacked.words()
    assert b"Quince" not in unpacked.words()
    unpacked.run("trust", "--revoke", code=0)
    assert "source-modified" not in unpacked.run("status", "--json").json["drift"]


def test_a_given_folder_is_no_way_to_what_add_left_out(workspace: Any, tmp_path: Path) -> None:
    """What a pulled record names in a folder that was added is read if it is a document there."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "one.md").write_text("# One\n\nWords.\n")
    workspace("add", "--no-copy", notes)
    for name in (".secret", ".hidden.md", "passwords"):
        (notes / name).write_text(f"# Mine\n\n{SECRET}\n")
    (notes / "two.md").write_text("# Two\n\nOther words.\n")
    (tmp_path / "three.md").write_text(f"# Three\n\n{SECRET}\n")
    record = workspace.chunked / "notes/meta.json"
    made = record.read_text().replace('"kind": "folder"', '"kind": "file"')
    for number, name in enumerate(
        ["notes/.secret", "notes/.hidden.md", "notes/two.md", "three.md"]
    ):
        folder = workspace.chunked / f"s{number}"
        folder.mkdir()
        text = made.replace("../../notes/one.md", f"../../{name}")
        (folder / "meta.json").write_text(text.replace('"../../notes"', f'"../../{name}"'))
        (folder / "chunk1.md").write_text(f"Words {number}.\n")
    workspace.sync(code=None)
    assert workspace.drift()["source-modified"] == ["../../notes/two.md"]


def test_what_this_user_added_is_followed(either: Any, tmp_path: Path) -> None:
    """A hidden file, a name without suffix and a folder with such files are followed as before."""
    (tmp_path / ".profile").write_text("Words of a profile.\n")
    either.write("LICENSE", "Words of a licence.\n")
    either.write("docs/AUTHORS", "Words of authors.\n")
    either.write("docs/guide.rst", "Guide\n=====\n\nWords.\n")
    either("add", "--no-copy", "--into", "profile", tmp_path / ".profile")
    either("add", "LICENSE", "docs")
    assert either.drift() == {}
    for path in ("../.profile", "LICENSE", "docs/AUTHORS", "docs/guide.rst"):
        (either.folder / path).write_text("Changed words.\n")
    either.write("docs/NEWS", "Words of news.\n")
    drift = either.drift()
    changed = {"../../.profile", "../LICENSE", "../docs/AUTHORS", "../docs/guide.rst"}
    assert set(drift["source-modified"]) == changed
    assert drift["source-untracked"] == ["../docs/NEWS"]
    either("update")
    either.assert_settled()
    assert "../docs/NEWS" not in either.json("trust", "--list")["closed"]


def test_a_catalog_does_not_say_where_originals_of_copies_lie(either: Any, tmp_path: Path) -> None:
    """A sidecar that came along may name any file as the original of a copy; none is looked at."""
    far = tmp_path / "far.md"
    far.write_text("# Far\n\nWords from afar.\n")
    either("add", far)
    secret = tmp_path / "private" / "diary.md"
    secret.parent.mkdir()
    secret.write_text(f"# Mine\n\n{SECRET}\n")
    either.in_catalog(
        "UPDATE meta SET value = ? WHERE key = ?", str(secret), "original:source/far.md"
    )
    assert either.drift() == {}
    either("update")
    assert "not looked at" in either("status").stderr
    assert SECRET.encode() not in b"".join(either.committed().values())


def test_an_original_of_a_copy_is_the_one_that_was_judged(either: Any, tmp_path: Path) -> None:
    """A catalog that names a bait for the document does not lead to another file by its folder."""
    far = tmp_path / "far"
    far.mkdir()
    (far / "a.md").write_text("# A\n\nWords.\n")
    either("add", far)
    either("trust", "--revoke")
    secret = tmp_path / "diary.md"
    secret.write_text(f"# Mine\n\n{SECRET}\n")
    (either.store / "bait.md").write_text("# Bait\n\nOther words.\n")
    either.in_catalog("UPDATE meta SET value = ? WHERE key = ?", str(secret), "original:source/far")
    either.in_catalog(
        "INSERT INTO meta(key, value) VALUES(?, ?)",
        "original:source/far/a.md",
        str(either.store / "bait.md"),
    )
    shutil.rmtree(either.store / "source")
    either("update", code=None)
    either("repair", "--write-files", "--yes", code=None)
    assert SECRET.encode() not in b"".join(either.committed().values())
    assert either.json("trust", "--list")["allowed"] == []


def test_a_repair_keeps_what_may_not_be_looked_at(either: Any) -> None:
    """In a clone, the chunks of a document that only its author's `add` opened stay."""
    either.write("d/AUTHORS", "Words of authors.\n")
    either.write("d/a.md", "# A\n\nWords.\n")
    either("add", "d")
    either("trust", "--revoke")
    before = {path: data for path, data in either.truth().items() if b"authors" in data}
    either.write("d/a.md", "# A\n\nOther words.\n")
    either("repair", "--write-files", "--yes", code=None)
    after = either.truth()
    assert [path for path, data in before.items() if path not in after] == []
    assert b"Other words" in b"".join(after.values())
    either("update", "--remove-gone", code=None)
    assert b"authors" in b"".join(either.truth().values())


def test_a_folder_of_a_stranger_lists_only_documents(workspace: Any, tmp_path: Path) -> None:
    """A record below a folder that was added does not open what that folder's rules leave out."""
    notes = tmp_path / "notes"
    (notes / "private").mkdir(parents=True)
    (notes / "one.md").write_text("# One\n\nWords.\n")
    (notes / ".filestoreignore").write_text("private/\n")
    (notes / "private/passwords").write_text(f"{SECRET}\n")
    workspace("add", "--no-copy", notes)
    folder = workspace.chunked / "s"
    folder.mkdir()
    record = (workspace.chunked / "notes/meta.json").read_text()
    record = record.replace("../../notes/one.md", "../../notes/private/zz.md")
    (folder / "meta.json").write_text(record.replace('"../../notes"', '"../../notes/private"'))
    (folder / "chunk1.md").write_text("Words of a stranger.\n")
    workspace("update", code=None)
    assert SECRET.encode() not in b"".join(workspace.committed().values())


def test_a_renamed_file_of_an_added_folder_is_followed(either: Any) -> None:
    """Also one whose name says no format."""
    either.write("d/AUTHORS", "Some authors.\n")
    either.write("d/a.md", "# A\n\nWords.\n")
    either("add", "d")
    (either.folder / "d/AUTHORS").rename(either.folder / "d/WRITERS")
    (change,) = either.json("update", "--plan", code=1)["plan"]["changes"]
    assert change["renamed"] == {"../d/AUTHORS": "../d/WRITERS"}
    either("update")
    assert either.drift() == {}


@pytest.mark.parametrize("kind", ["empty file", "text", "a name", "empty folder", "pipe"])
def test_what_is_only_called_git_is_no_work_tree(unpacked: Unpacked, kind: str) -> None:
    """An archive may put a file of that name beside the store; git takes it for none either."""
    place = unpacked.home / ".git"
    if kind == "empty folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        words = {"empty file": "", "text": "gitdir?\n", "a name": "gitdir: nowhere\n"}
        place.write_text(words[kind])
    unpacked.run("sync")
    unpacked.run("update")
    assert SECRET.encode() not in unpacked.words()
    assert str(unpacked.home) in unpacked.run("trust", "--list", "--json").json["folders"]


def test_revoking_while_adding_holds(either: Any, tmp_path: Path) -> None:
    """What was revoked while an `add` ran is not written back by it."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far/f.md").write_text("# F\n\nWords.\n")
    either("add", "--no-copy", tmp_path / "far")
    either.write("LICENSE", "Words of a licence.\n")

    def revoke(_path: str, _outcome: Any) -> None:
        distrust(os.environ["XDG_CONFIG_HOME"], str(either.store))

    (tmp_path / "copied.md").write_text("# C\n\nWords.\n")
    with filestore.open(either.store) as store:
        store.add(tmp_path / "copied.md", on_copy=revoke)
    assert str(tmp_path / "far") + "/" not in either.json("trust", "--list")["allowed"]


def test_a_failed_add_allows_nothing(either: Any, tmp_path: Path) -> None:
    """What could not be added is no folder that the store may look into."""
    (tmp_path / "priv").mkdir()
    (tmp_path / "priv/z.bin").write_bytes(b"\0\1")
    (tmp_path / "empty").mkdir()
    either("add", tmp_path / "priv/z.bin", tmp_path / "empty", code=None)
    assert either.json("trust", "--list")["allowed"] == []
