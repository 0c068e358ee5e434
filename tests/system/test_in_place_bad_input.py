"""Folders that nobody would wish for, in place: named, the rest is found, and nothing is written.

Each is driven through every command that reads or follows a store. Before and after each of them
the folder is compared: names, bytes, times, modes and inodes of all but `.filestore`.
"""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.system.bombs import BOMBS, Lure
from tests.system.conftest import Workspace

CHECKOUT: Final = Path(__file__).resolve().parents[2]
CLEAN_OR_DRIFT: Final = (0, 1, 5)
"""What a command may end with that did its work."""
WORD: Final = "quartz"
"""In `Good.md` of each folder, and nowhere else."""
Seen = dict[bytes, tuple[object, ...]]


def look(folder: Path) -> Seen:
    """What can be seen of a folder, but for the sidecar and the time of its own last new name."""
    found: Seen = {}
    for parent, folders, files in os.walk(os.fsencode(folder)):
        if parent == os.fsencode(folder):
            folders[:] = [name for name in folders if name != b".filestore"]
        for name in [*folders, *files]:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            held = b""
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    held = hashlib.file_digest(file, "md5").digest()
            times = (status.st_mtime_ns, status.st_ctime_ns)
            found[path] = (status.st_mode, status.st_ino, *times, held)
    return found


class Folder:
    """A folder of notes, driven through commands that must leave it as it is."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.root = workspace.folder
        self.sidecar = self.root / ".filestore"
        self.write("Good.md", f"# A good note\n\nIt says {WORD} and [[Home]].\n")
        self.write("Home.md", "# Home\n\nTo [good](Good.md), #tagged.\n")

    def write(self, name: str | bytes, data: str | bytes) -> None:
        """Write a file of the folder."""
        path = os.path.join(os.fsencode(self.root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def __call__(self, *words: object, codes: tuple[int, ...] = CLEAN_OR_DRIFT) -> Any:
        """Run a command, which changes nothing in the folder."""
        before = look(self.root)
        done = self.workspace(*words, code=None)
        assert look(self.root) == before, words
        assert done.code in codes, (words, done)
        for sign in ("\x1b", "\x07", "\x9b"):
            assert sign not in done.stdout, (words, done.stdout)
        return done

    def init(self) -> None:
        """Make it a store, which adds two names."""
        before = look(self.root)
        done = self.workspace("init", "--in-place", "--embedder", "builtin", code=None)
        assert done.code in CLEAN_OR_DRIFT, done
        after = look(self.root)
        assert after.pop(os.fsencode(self.root / "filestore.toml"))
        assert after == before

    def codes(self, *words: object) -> dict[str, set[str]]:
        """What a command says about files: path to codes."""
        report = self(*words, "--json").json
        found: dict[str, set[str]] = {}
        for one in report.get("findings", report.get("remaining", ())):
            found.setdefault(one["path"], set()).add(one["code"])
        return found

    def through_every_command(self) -> dict[str, set[str]]:
        """Run all of them; what a full verification says. The good note is found throughout."""
        self.init()
        self("sync")
        self("status")
        found = self.codes("verify", "--level", "full")
        hits = self("search", WORD, "--mode", "keyword", "--json", codes=(0,)).json["hits"]
        assert [hit["path"] for hit in hits] == ["Good.md"]
        assert hits[0]["freshness"] == "fresh"
        for words in (
            ("search", WORD),
            ("search", WORD, "--format", "oneline"),
            ("ls",),
            ("ls", "--json"),
            ("show", "Good.md"),
            ("similar", "Good.md"),
            ("duplicates",),
            ("links", "Good.md"),
            ("repair", "--plan"),
            ("verify", "--level", "deep"),
            ("sync", "--full"),
            ("status", "--json"),
        ):
            self(*words)
        self.watched()
        return found

    def watched(self) -> None:
        """Start a watch, wait for its first word, and end it."""
        before = look(self.root)
        words = ("--store", str(self.root), "watch", "--json")
        with subprocess.Popen(
            [sys.executable, "-m", "filestore", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
        assert b"Traceback" not in first + rest
        assert process.returncode in (0, 1, 5, 130, 143), (process.returncode, first + rest)
        assert look(self.root) == before


@pytest.fixture
def folder(new_workspace: Callable[..., Workspace]) -> Folder:
    """A folder with two notes, in no work tree of git."""
    made = Folder(new_workspace(init=False))
    shutil.rmtree(made.root / ".git")
    return made


def test_names(folder: Folder) -> None:
    """Long names, twins in two normal forms, no UTF-8, line breaks, escape sequences."""
    names = [
        b"n" * 252 + b".md",
        b"d" * 255 + b"/" + b"e" * 255 + b"/note.md",
        "Ü\u0308ber.md".encode(),
        "e\u0301.md".encode(),
        "\u00e9.md".encode(),
        b"caf\xe9.md",
        b"line\nbreak.md",
        b"\x1b[31mred\x1b[0m.md",
        b"\xe2\x80\xaegnp.md",
        b"-rf.md",
        b" .md",
        b"a\\b.md",
        b"CON.md",
        b"q?*[x].md",
        b"filestore.toml.md",
        b".md",
        b"sub/filestore.toml.md",
    ]
    for number, name in enumerate(names):
        folder.write(name, f"# Note {number}\n\nIts word is w{number}w.\n")
    found = folder.through_every_command()
    for number, name in enumerate(names):
        hits = folder("search", f"w{number}w", "--mode", "keyword", "--json").json["hits"]
        # A file whose name begins with a dot is left out, as ever.
        assert len(hits) == (0 if name.startswith(b".") else 1), (name, hits)
    assert not [path for path, codes in found.items() if codes & {"unreadable"}]


def test_links_and_special_files(folder: Folder) -> None:
    """Links in circles, out of the folder and to nothing; pipes and sockets."""
    outside = folder.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Secret\n\nobsidianstone\n")
    (folder.root / "sub").mkdir()
    for name, target in {
        "circle.md": "circle.md",
        "sub/up": "..",
        "sub/here": ".",
        "out": str(outside),
        "secret.md": str(outside / "secret.md"),
        "gone.md": "nowhere.md",
        "to-good.md": "Good.md",
    }.items():
        (folder.root / name).symlink_to(target)
    os.mkfifo(folder.root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(folder.root)
        listener.bind("socket.md")
        found = folder.through_every_command()
        assert folder("search", "obsidianstone", "--mode", "keyword", codes=(1,)).code == 1
    for name in ("circle.md", "secret.md", "gone.md", "to-good.md"):
        assert found[name] == {"symlink"}
    for name in ("pipe.md", "socket.md"):
        assert found[name] == {"special-file"}


@pytest.mark.long
def test_bytes_that_are_no_notes(folder: Folder) -> None:
    """Binary, other encodings, broken frontmatter, brackets without end: each is named or found."""
    chance = bytes(range(256)) * 40
    texts: dict[str, bytes] = {
        "binary.md": b"\x00\x01\x02" + chance,
        "png.md": b"\x89PNG\r\n\x1a\n" + chance,
        "template.md": b"---\ntitle: {{title}}\ndate: {{date:YYYY}}\n---\n# T\n\ntemplateword\n",
        "tabs.md": b"---\n\tbad: [\n---\ntabword\n",
        "open.md": b"---\ntitle: never closed\n\nopenword\n",
        "crlf.md": b"---\r\ntitle: C\r\n---\r\n# H\r\n\r\ncrlfword\r\n",
        "bom.md": b"\xef\xbb\xbf---\ntitle: B\n---\n# H\n\nbomword\n",
        "utf16.md": "\ufeff# H\n\nsixteenword\n".encode("utf-16-le"),
        "latin1.md": "# H\n\nlatinword caf\xe9\n".encode("latin-1"),
        "empty.md": b"",
        "blank.md": b"\n \n",
        "head-only.md": b"---\ntitle: nothing below\n---\n",
        "brackets.md": b"bracketword\n\n" + b"[[" * 10_000 + b"]]" * 10_000,
        "nested.md": b"nestword\n\n" + b"> " * 20_000 + b"x\n" + b"[" * 20_000,
        "stars.md": b"starword\n\n" + b"*_" * 30_000 + b"\n" + b"`" * 30_001,
        "laughs.md": b"---\na: &a [x,x]\n"
        + b"".join(b"b%d: &b%d [*a,*a]\n" % (n, n) for n in range(300))
        + b"---\nlaughword\n",
        "deep.md": b"---\na: " + b"[" * 5_000 + b"]" * 5_000 + b"\n---\ndeepword\n",
        "many-keys.md": b"---\n"
        + b"".join(b"k%d: v\n" % n for n in range(20_000))
        + b"---\nkeyw\n",
        "conflict.md": b"# H\n\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n",
        "one-line.md": b"lineword " + b"a" * 3_000_000,
        "tags.md": b"tagword " + b"#t/" * 50_000 + b"\n" + b"#a " * 50_000,
        "headings.md": b"headword\n" + b"# h\n" * 20_000,
        "lone.md": b'---\ntitle: "\\ud800"\ntags: ["\\udfff"]\n---\nloneword \xed\xa0\x80\n',
        "lone.ipynb": b'{"cells": [{"cell_type": "markdown", "source": ["bookword \\ud800"]}],'
        b' "metadata": {"title": "\\ud800"}, "nbformat": 4, "nbformat_minor": 5}',
        "lone.html": b"<title>&#xD800; x</title><p>pageword &#xDFFF;</p>",
        "noise.csv": b'"' + b"a,b\n" * 5_000,
        "lying.pdf": b"%PDF-1.4\n" + chance,
        "lying.docx": b"PK\x03\x04" + chance,
    }
    for name, data in texts.items():
        folder.write(name, data)
    found = folder.through_every_command()
    for word, name in {
        "templateword": "template.md",
        "tabword": "tabs.md",
        "openword": "open.md",
        "crlfword": "crlf.md",
        "bomword": "bom.md",
        "sixteenword": "utf16.md",
        "bracketword": "brackets.md",
        "nestword": "nested.md",
        "starword": "stars.md",
        "laughword": "laughs.md",
        "deepword": "deep.md",
        "keyw": "many-keys.md",
        "lineword": "one-line.md",
        "tagword": "tags.md",
        "headword": "headings.md",
        "bookword": "lone.ipynb",
        "pageword": "lone.html",
    }.items():
        hits = folder("search", word, "--mode", "keyword", "--json").json["hits"]
        assert [hit["path"] for hit in hits] == [name], word
    for name in ("binary.md", "png.md"):
        assert found[name] & {"bad-encoding"}, found.get(name)
    for name in ("empty.md", "blank.md"):
        assert found[name] == {"empty"}
    assert found["conflict.md"] == {"conflict-markers"}
    for name in ("lying.pdf", "lying.docx"):
        assert found[name] == {"extraction-failed"}


@pytest.mark.long
def test_documents_made_to_hurt(folder: Folder) -> None:
    """Bombs of every format among the notes: each is text or a finding, and the rest is found."""
    lure = Lure(file="/nonexistent", address="http://127.0.0.1:9")
    for number, bomb in enumerate(BOMBS[::9]):
        folder.write(f"bombs/{number:03d}-{bomb.name}", bomb.make(lure))
    folder.through_every_command()


@pytest.mark.long
def test_a_large_note(folder: Folder) -> None:
    """50 MB of text are indexed to the end."""
    line = b"Rows of words about nothing much, again and again.\n"
    paragraph = line * 40 + b"\n"
    folder.write(
        "large.md", b"# Large\n\n" + paragraph * (50_000_000 // len(paragraph)) + b"zircon\n"
    )
    folder.init()
    folder("sync")
    hits = folder("search", "zircon", "--mode", "keyword", "--json").json["hits"]
    assert [hit["path"] for hit in hits] == ["large.md"]
    folder("status", codes=(0,))


def test_large_files_are_read_a_few_at_a_time(folder: Folder, script: Any) -> None:
    """A folder of 600 MB needs no such memory: what was read is indexed before more is."""
    for number in range(30):
        folder.write(f"zeros-{number}.md", b"")
        os.truncate(folder.root / f"zeros-{number}.md", 20_000_000)
    folder.init()
    shutil.rmtree(folder.sidecar)
    code = (
        "import sys, filestore\n"
        "with filestore.open(sys.argv[1]) as store:\n"
        "    print(len(store.sync().remaining))\n"
        # What the kernel keeps for getrusage may be the memory of the process before `exec`.
        "peak = next(one for one in open('/proc/self/status') if one.startswith('VmHWM'))\n"
        "print(int(peak.split()[1]) // 1024)\n"
    )
    remaining, peak_mib = map(int, script(code, str(folder.root)).stdout.split())
    assert remaining == 30
    assert peak_mib < 500


@pytest.mark.parametrize("kind", ["link", "file", "database", "catalog"])
def test_a_sidecar_from_a_stranger(folder: Folder, kind: str) -> None:
    """A `.filestore` that is a link or a file is refused; hostile databases in it are made anew."""
    folder.init()
    if kind in ("link", "file"):
        elsewhere = folder.root.parent / "elsewhere"
        os.rename(folder.sidecar, elsewhere)
        if kind == "link":
            folder.sidecar.symlink_to(elsewhere)
        else:
            folder.sidecar.write_bytes(b"not a folder")
        for words in (("sync",), ("status",), ("search", WORD), ("verify", "--level", "full")):
            folder(*words, codes=(1, 3, 4))
        return
    name = "documents.sqlite" if kind == "database" else "catalog.sqlite"
    path = folder.sidecar / name
    for data in (b"SQLite format 3\x00" + bytes(range(256)) * 64, b"", b"\xff" * 5000):
        path.write_bytes(data)
        folder("status", codes=(0, 1, 3))
        folder("sync", "--full")
        hits = folder("search", WORD, "--mode", "keyword", "--json", codes=(0,)).json["hits"]
        assert [hit["path"] for hit in hits] == ["Good.md"]
    path.unlink()
    path.symlink_to(folder.root / "Good.md")
    for words in (("status",), ("sync", "--full"), ("verify", "--level", "full")):
        folder(*words, codes=(0, 1, 3, 4))


def test_other_stores_inside(folder: Folder, new_workspace: Callable[..., Workspace]) -> None:
    """A store in the folder, and what looks like one: left out, and said."""
    inner = new_workspace("work/inner", init=False)
    inner("init", "--layout", "tree")
    inner.write("text.md", "# T\n\nobsidianstone\n")
    inner("add", "text.md")
    shutil.rmtree(folder.root / "inner" / ".git")
    folder.write("deep/file_index/filestore.toml", "not toml [[[")
    folder.write("deep/file_index/chunked/chunk1.md", "obsidianstone\n")
    folder.through_every_command()
    hits = folder("search", "obsidianstone", "--mode", "keyword", "--json").json["hits"]
    assert [hit["path"] for hit in hits] == ["inner/text.md"]


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_work_trees_of_other_repositories(
    folder: Folder, new_workspace: Callable[..., Workspace], kind: str
) -> None:
    """A linked work tree, and a submodule: `.git` is a file there."""
    main = new_workspace("main", init=False)
    main.write("Good.md", f"# A good note\n\nIt says {WORD}.\n")
    main.git("add", "-A")
    main.git("commit", "-qm", "one")
    shutil.rmtree(folder.root)
    if kind == "worktree":
        main.git("worktree", "add", "-q", str(folder.root))
    else:
        outer = new_workspace("outer", init=False)
        allowed = ("-c", "protocol.file.allow=always")
        outer.git(*allowed, "submodule", "add", "-q", str(main.folder), "notes")
        os.rename(outer.folder / "notes", folder.root)
        folder.root.joinpath(".git").write_text(
            f"gitdir: {outer.folder}/.git/modules/notes\n", "utf-8"
        )
        config = outer.folder / ".git/modules/notes/config"
        config.write_text(config.read_text().replace("../../../notes", str(folder.root)))
    assert (folder.root / ".git").is_file()
    folder.through_every_command()
    folder("git", "install")
    folder("git", "remove")


def test_notes_that_change_while_they_are_read(folder: Folder) -> None:
    """A writer in a loop: each sync ends as it should, and the last one has the last words."""
    import threading

    folder.init()
    is_over = threading.Event()
    path = folder.root / "busy.md"

    def write() -> None:
        number = 0
        while not is_over.is_set():
            path.write_text(f"# Busy\n\nturn t{number}t\n" + "more words\n" * (number % 500))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(8):
            for words in (("sync",), ("status",), ("search", "turn")):
                done = folder.workspace(*words, code=None)
                assert done.code in (0, 1, 5), done
    finally:
        is_over.set()
        writer.join()
    path.write_text("# Busy\n\nat last gabbro\n")
    folder("sync", codes=(0,))
    hits = folder("search", "gabbro", "--mode", "keyword", "--json", codes=(0,)).json["hits"]
    assert hits[0]["path"] == "busy.md"
    folder("verify", "--level", "full", codes=(0,))


def test_a_folder_on_a_disk_that_cannot_be_written(folder: Folder) -> None:
    """Answers and findings come as ever; what would write to the sidecar says why it cannot."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a folder read-only")
    folder.init()
    path = str(folder.root)
    done = subprocess.run(["mount", "--bind", path, path], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr!r}")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True, capture_output=True)
        hits = folder("search", WORD, "--mode", "keyword", "--json", codes=(0,)).json["hits"]
        assert [(hit["path"], hit["freshness"]) for hit in hits] == [("Good.md", "fresh")]
        for words in (("status",), ("verify", "--level", "full"), ("ls",), ("links", "Good.md")):
            folder(*words)
        folder("sync", codes=(0, 3, 4))
    finally:
        os.chdir("/")
        subprocess.run(["umount", "-l", path], check=True, capture_output=True)
