"""Plants 200 terminal payloads wherever a store takes text, and runs every command on a terminal.

Payloads stand in bodies, keys, values, headings, questions, names of files, folders and sources,
branch names, settings, questions asked, and in what error messages quote. Each command runs on a
terminal of its own (a pty that controls it); nothing that could steer a terminal, turn text around
or hide in it may come out of it raw. The inspector steers the terminal itself: of it no payload
may come out as it was planted.

    python tests/system/terminal_payloads.py            every command
    python tests/system/terminal_payloads.py show add   only these
    python tests/system/terminal_payloads.py --every 2  every second way to run each
"""

import argparse
import base64
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

LIMIT_S: Final = 90.0
_OWN_STYLES: Final = re.compile(rb"\x1b\[(?:0|1|2|31|33|36)m")
"""The styles that the command line itself prints; no payload holds one of them."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_PLAIN: Final = frozenset("\n\t")


# Payloads


def payloads() -> list[bytes]:
    """The payloads, each with a tag of its own, in the bytes in which they are dangerous."""
    made = [shape.replace(b"TAG", b"q%03dz" % number) for number, shape in enumerate(_shapes())]
    assert len(made) == len(set(made)) == 200, len(made)
    return made


def _shapes() -> list[bytes]:
    shapes: list[bytes] = []
    for code in (
        b"0",
        b"1",
        b"2",
        b"4;1",
        b"7",
        b"8;",
        b"10",
        b"11",
        b"12",
        b"52;c",
        b"104",
        b"110",
    ):
        for end in (b"\x07", b"\x1b\\", b""):
            shapes.append(b"\x1b]" + code + b";TAG" + end)
    for code in (
        b"9",
        b"99",
        b"133;A",
        b"633;P",
        b"777;notify",
        b"1337;File=inline=1",
        b"8;;http://x",
    ):
        for end in (b"\x07", b"\x1b\\", b"\xc2\x9c", b""):
            shapes.append(b"\x1b]" + code + b";TAG" + end)
    for opening in (b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1bP+q", b"\x1bP$q", b"\x1b_Ga=T;"):
        for end in (b"\x1b\\", b"\x07", b""):
            shapes.append(opening + b"TAG" + end)
    csi = (
        *(b"2J", b"3J", b"H", b"1;1H", b"5;5H", b"1A", b"2K", b"?1049h", b"?25l", b"?1000h"),
        *(b"?2004h", b"6n", b"c", b">c", b"5n", b"21t", b"8;9;9t", b"35;5m", b"38;5;200m"),
        *(b"4l", b"20h", b"!p", b"1;5r", b"99P", b"99L", b"?6n", b"i", b"5i", b"0;59;'x'p"),
    )
    shapes += [b"\x1b[" + command + b"TAG" for command in csi]
    shapes += [b"\x1b" + one + b"TAG" for one in (b"c", b"7", b"8", b"D", b"M", b"Z", b"#8", b"(0")]
    for code in (0x84, 0x85, 0x88, 0x8D, 0x90, 0x98, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F):
        shapes += [chr(code).encode() + b"31mTAG", bytes([code]) + b"31mTAG"]
    shapes += [
        character.encode("utf-8", "surrogatepass") + b"TAG"
        for character in (
            *("\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068"),
            *("\u2069", "\u200e", "\u200f", "\u061c", "\u200b", "\u200c", "\u200d", "\u2060"),
            *("\ufeff", "\u00ad", "\u2028", "\u2029", "\u180e", "\U000e0041", "\U000e007f"),
            *("\u2061", "\ufff9", "\ud800", "\udcff", "\ufffe"),
        )
    ]
    shapes += [b"\x07TAG", b"\x08\x08TAG", b"\rTAG", b"\x0bTAG", b"\x0cTAG", b"\x0eTAG", b"\x0fTAG"]
    shapes += [
        b"\x05TAG",
        b"\x7fTAG",
        b"\x1aTAG",
        b"\x18TAG",
        b"TAG\x1b\x1b",
        b"TAG\x1b[",
        b"TAG\x1b]0;",
    ]
    markup = (
        *(
            b"[@click=app.bell]TAG[/]",
            b"[bold]TAG[/bold]",
            b"[link=file:///x]TAG[/link]",
            b"[/TAG]",
        ),
        *(b"[red]TAG", b"\\[TAG]", b"{TAG}", b"%sTAG%n", b"$(TAG)", b"`TAG`", b"<TAG>", b"&TAG;"),
    )
    shapes += markup
    more = iter(range(1, 100))
    while len(shapes) < 200:
        shapes.append(b"\x1b[%d;%dfTAG" % (next(more), 7))
    return shapes[:200]


def leaks(output: bytes) -> list[str]:
    """What in the output of a command could do something to a terminal, with what is around it."""
    plain = _OWN_STYLES.sub(b"", output).replace(b"\r\n", b"\n")
    text = plain.decode("utf-8", "surrogateescape")
    places = [
        place
        for place, character in enumerate(text)
        if character not in _PLAIN and unicodedata.category(character) in _HIDDEN
    ]
    return [repr(text[max(0, place - 30) : place + 30]) for place in places]


# The stores


class Planted:
    """Work trees whose stores hold the payloads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.store = self.work / "file_index"
        self.chunked = self.store / "chunked"
        self.all = payloads()
        self.text = [one.decode() for one in self.all if _is_text(one)]
        self.mixed = "  ".join(self.text)
        self.names = [_as_name(one) for one in self.all]

    def make(self) -> None:
        """Make them all."""
        self.work.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        assert self.run_quietly("init", "--embedder", "builtin") == 0
        self._sources()
        self._chunks()
        self._records()
        self._evil_settings()
        self._committed()
        (self.work / ".git" / "HEAD").write_bytes(b"ref: refs/heads/" + self.mixed.encode() + b"\n")
        (self.work / "questions.jsonl").write_bytes(
            b"".join(
                orjson.dumps({"query": one, "relevant": [f"chunked/{one}"]}) + b"\n"
                for one in self.text
            )
        )
        (self.work / "strange.jsonl").write_bytes(
            b"".join(
                orjson.dumps({"text": one, "id": one, "document": one, "metadata": {one: one}})
                + b"\n"
                for one in self.text
            )
            + b"\x1b]0;torn\x07\n"
        )
        (self.work / "strange.ragmd").write_bytes(self._index(self.text))
        (self.work / "torn.ragmd").write_bytes(self._index(self.text, known=False))
        hook = self.work / ".git" / "hooks" / "post-merge"
        hook.parent.mkdir(exist_ok=True)
        hook.write_bytes(b"#!/bin/sh\n# " + self.mixed.encode() + b"\n")

    def run_quietly(self, *words: str | bytes) -> int:
        """Run a command whose output does not matter."""
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            _become_command(self.work, [os.fsdecode(word) for word in words])
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    def _committed(self) -> None:
        """The same store with a history, by authors and of subjects that are payloads."""
        folder = self.folder / "committed"
        shutil.copytree(self.store, folder / "file_index", symlinks=True)
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        who = ["-c", f"user.name={self.mixed}", "-c", "user.email=a@example.org"]
        for number, path in enumerate((self.chunked / "many.md", self.chunked / "bad0.md")):
            target = folder / "file_index" / "chunked" / path.name
            target.write_bytes(path.read_bytes() + b"\nMore words.\n" * number)
            subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
            commit = ["git", *who, "commit", "-q", "-m", self.mixed]
            subprocess.run(commit, cwd=folder, check=True, capture_output=True)
        lines = (orjson.dumps({"query": one, "relevant": [one]}) for one in self.text)
        (folder / "questions.jsonl").write_bytes(b"\n".join(lines))

    def _index(self, names: Sequence[str], *, known: bool = True) -> bytes:
        """A `.ragmd` whose documents and chunks are called so; or are said to be of others."""
        chunks = [
            {"faiss_id": at, "document_id": one, "chunk_key": one if known else self.mixed}
            for at, one in enumerate(names)
        ]
        documents = {
            one: {
                "id": one,
                "source": one,
                "full_text": None,
                "content": {"title": one},
                "chunks": {one: {"i_start": 0, "i_end": 0, "faiss_id": at}},
            }
            for at, one in enumerate(names)
        }
        count = len(names)
        head = struct.pack("<4siqqq?iQ", b"IxFI", 1, count, 0, 0, True, 0, count)
        stated = (
            '---\nformat_version: "1.0"\nmodel_name: "m"\nembedding_dim: 1\n'
            f'vector_count: {count}\ndocument_count: {count}\nindex_type: "IndexFlatIP"\n'
            'created_at: "2026-01-31T12:00:00Z"\nupdated_at: "2026-01-31T12:00:00Z"\n---\n'
        )
        return b"".join(
            (
                stated.encode(),
                b"## Chunks\n```json\n" + orjson.dumps(chunks) + b"\n```\n",
                b"## Document Metadata\n```json\n" + orjson.dumps(documents) + b"\n```\n",
                b"## Vectors\n```base64\n" + base64.b64encode(head + bytes(4 * count)) + b"\n```\n",
            )
        )

    def _sources(self) -> None:
        """Originals whose names, titles and texts are payloads; half of them are added."""
        for name in self.names[::5]:
            path = os.fsencode(self.work) + b"/" + name + b".md"
            with open(path, "wb") as file:
                file.write(
                    b"---\ntitle: " + orjson.dumps(self.mixed) + b"\n---\n# " + name + b"\n\nx\n"
                )
        added = [b"./" + name + b".md" for name in self.names[::10]]
        self.run_quietly("add", *added)

    def _chunks(self) -> None:
        body = "\n".join(f"A line of words, {one}." for one in self.text)
        keys = "".join(f"{_quoted(one)}: {_quoted(one)}\n" for one in self.text)
        ours = f"headings: {_quoted_list(self.text)}\nsource: {_quoted(self.mixed)}\n"
        (self.chunked / "many.md").write_text(
            f"---\n{ours}questions: {_quoted_list(self.text[:9])}\n{keys}---\n{body}\n"
        )
        for number, name in enumerate(self.names):
            data = self.all[number] + b" words\n" if number % 2 else b"Plain words.\n"
            with open(os.fsencode(self.chunked) + b"/c" + name + b".md", "wb") as file:
                file.write(data)
        for number, one in enumerate(self.text):
            quoted = _quoted(one)
            bad = (
                f"---\nkind: {quoted}\n---\nx\n",
                f"---\n{quoted}: 1\n{quoted}: 2\n---\nx\n",
                f"---\na: [{one}\n---\nx\n",
                f"---\norder: [{quoted}]\n---\n<<<<<<< {one}\nx\n=======\ny\n>>>>>>> {one}\n",
            )
            (self.chunked / f"bad{number}.md").write_text(bad[number % 4])
        os.symlink(self.mixed[:200].encode(), os.fsencode(self.chunked) + b"/" + self.names[3])

    def _records(self) -> None:
        """Resources whose names and records are payloads."""
        for name in self.names[::9]:
            folder = os.path.join(os.fsencode(self.chunked), b"r" + name)
            os.makedirs(folder)
            document = {
                "source": self.mixed,
                "hash": self.mixed,
                "metadata": {self.mixed: self.mixed},
            }
            record = {"format": 1, "source": self.mixed, "documents": [document]}
            with open(os.path.join(folder, b"meta.json"), "wb") as file:
                file.write(orjson.dumps(record))
            with open(os.path.join(folder, b"chunk1.md"), "wb") as file:
                file.write(b"Some words.\n")

    def _evil_settings(self) -> None:
        """Stores whose settings hold payloads, or are none."""
        plain = (self.store / "filestore.toml").read_text()
        quoted = orjson.dumps(self.mixed.replace("\x7f", "")).decode()
        lines = {
            "embedder": re.sub(r"(?m)^embedder = .*$", lambda _: f"embedder = {quoted}", plain),
            "beside": f"{plain}\n[beside]\nembedder = {quoted}\n",
            "unknown": f"{quoted} = 1\n{plain}",
            "broken": f"{plain}\n{self.mixed}\n",
            "layout": re.sub(r"(?m)^layout = .*$", lambda _: f"layout = {quoted}", plain),
        }
        for name, text in lines.items():
            folder = self.folder / name / "file_index"
            (folder / "chunked").mkdir(parents=True)
            (folder / "filestore.toml").write_text(text)


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_name(payload: bytes) -> bytes:
    return b"n" + payload.replace(b"/", b"_").replace(b"\0", b"_")[:200]


def _quoted(text: str) -> str:
    """As JSON that YAML reads, too."""
    escaped = orjson.dumps(text).decode()
    return "".join(
        f"\\u{ord(one):04x}" if ord(one) > 0x7E and ord(one) < 0x10000 else one for one in escaped
    )


def _quoted_list(texts: Sequence[str]) -> str:
    return "[" + ", ".join(map(_quoted, texts)) + "]"


# The commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One command as a person types it."""

    words: tuple[str, ...]
    store: str = "work"
    keys: bytes = b""
    """What is typed once it has run for a while."""
    ends_by: int = 0
    """The signal that ends a command that goes on."""
    runs_s: float = LIMIT_S
    steers: bool = False
    """Whether the command may steer the terminal itself."""


def scenes(planted: Planted) -> dict[str, list[Scene]]:
    """What is run of every command; a command without a scene fails."""
    some = [os.fsdecode(name) for name in planted.names]
    mixed = planted.mixed
    resource = f"r{some[9]}"
    found = {
        "init": [
            ("init", "--no-input"),
            ("init", "--embedder", mixed),
            ("init", f"{some[0]}", "--layout", mixed),
        ],
        "add": [
            ("add", *(f"./{name}.md" for name in some[::5])),
            ("add", mixed[:200], "--into", mixed),
            ("add", "--each", "."),
            ("add", f"./{some[5]}.md", "--json"),
        ],
        "update": [
            ("update", "--plan"),
            ("update", "--remove-gone"),
            ("update", mixed),
            ("update", "--plan", "--json"),
        ],
        "rm": [("rm", f"{some[0]}.md"), ("rm", mixed), ("rm", f"{some[10]}.md", "--json")],
        "mv": [
            ("mv", f"{some[1]}.md", mixed, "--plan"),
            ("mv", mixed, "moved.md"),
        ],
        "changes": [("changes",), ("changes", "--by", mixed), ("changes", "--json")],
        "token": [("token", "list"), ("token", "revoke", mixed), ("token", "add", mixed)],
        "ls": [("ls",), ("ls", resource), ("ls", mixed), ("ls", "--json")],
        "show": [
            ("show", "chunked/many.md"),
            ("show", f"chunked/c{some[1]}.md"),
            ("show", mixed),
            ("show", "chunked/many.md", "--json"),
            ("show", "chunked/bad1.md"),
        ],
        "status": [("status",), ("status", "--json")],
        "verify": [
            ("verify",),
            ("verify", "--level", "full"),
            ("verify", "--level", "full", "--json"),
            ("verify", "--level", mixed),
            ("verify", "--sample", mixed),
            ("verify", "--staged"),
        ],
        "sync": [("sync",), ("sync", "--json"), ("sync", "--full"), ("sync", mixed)],
        "repair": [
            ("repair", "--plan"),
            ("repair", "--plan", "--json"),
            ("repair", "--plan", "--write-files"),
            ("repair", "--path", mixed),
            ("repair", "--only", mixed),
            ("repair", "--ours", mixed),
            ("repair", "--write-files", "--yes"),
        ],
        "undo": [("undo", "--list"), ("undo", mixed), ("undo",), ("undo", "--list", "--json")],
        "redo": [("redo",), ("redo", mixed)],
        "git": [("git", "status"), ("git", "install"), ("git", mixed), ("git", "remove")],
        "similar": [("similar", "chunked/many.md"), ("similar", mixed), ("similar", f"{mixed}:1")],
        "enrich": [
            ("enrich", "--plan"),
            ("enrich", mixed),
            ("enrich", "--generator", mixed),
            ("enrich", "--questions", "1"),
            ("enrich", "--json"),
        ],
        "about": [("about",), ("about", mixed), ("about", "words"), ("about", "--json")],
        "duplicates": [("duplicates", "--above", "0.1"), ("duplicates", "--json")],
        "links": [("links", "chunked/many.md"), ("links", mixed), ("links", mixed, "--json")],
        "search": [
            ("search", "words"),
            ("search", mixed),
            ("search", f'"{mixed}', "-k", "50"),
            ("search", "words", "--where", f"{planted.text[0]}={planted.text[0]}"),
            ("search", "words", "--source", mixed),
            ("search", "words", "--mode", "keyword", "-k", "60", "--json"),
            ("search", "words", "--rerank", mixed),
            ("search", "words", "--format", "{title} {section} {document}:{place} {excerpt}"),
            ("search", "words", "--format", f"{{{mixed}}}"),
            ("search", "words", "-l", "-0"),
            ("search", "words", "--group", "document", "--context", "3"),
        ],
        "open": [
            ("open", "--print", "chunked/many.md:3"),
            ("open", "--print", f"chunked/c{some[1]}.md"),
            ("open", "--print", "--json", f"chunked/c{some[1]}.md"),
            ("open", "--print", f"./{some[5]}.md"),
            ("open", mixed),
        ],
        "evaluate": [
            ("evaluate", "questions.jsonl", "--per-query"),
            ("evaluate", mixed[:200]),
            ("evaluate", "questions.jsonl", "--json"),
        ],
        "embedder": [
            ("embedder",),
            ("embedder", "set", mixed),
            ("embedder", "set", mixed, "--beside"),
            ("embedder", "compare", mixed[:200]),
            ("embedder", "use", mixed, mixed[:200]),
            ("embedder", mixed),
        ],
        "backend": [
            ("backend",),
            ("backend", "list"),
            ("backend", "set", mixed),
            ("backend", "set", "local", f"path={mixed[:200]}", "--yes"),
            ("backend", "set", "pgvector", f"dsn={mixed[:200]}", f"table={mixed[:40]}", "--yes"),
            ("backend", "set", "qdrant", f"path=q/{some[0]}", f"collection={mixed}", "--yes"),
            ("backend", "set", "local", mixed),
            ("backend", mixed),
        ],
        "embeddings": [
            ("embeddings", "export", "some.fspack"),
            ("embeddings", "export", mixed[:200]),
            ("embeddings", "import", "some.fspack"),
            ("embeddings", "import", mixed[:200]),
            ("embeddings", "info", "some.fspack", "--json"),
            ("embeddings", mixed),
        ],
        "export": [
            ("export", "jsonl", "some.jsonl"),
            ("export", "jsonl", "some.jsonl", resource),
            ("export", "jsonl", mixed[:200], mixed),
            ("export", mixed, "some.jsonl"),
            ("export", "markdown", "pages"),
        ],
        "import": [
            ("import", "jsonl", "some.jsonl", "--plan"),
            ("import", "jsonl", "strange.jsonl", "--plan"),
            ("import", "jsonl", "strange.jsonl"),
            ("import", "jsonl", mixed[:200]),
            ("import", mixed, "some.jsonl"),
        ],
        "convert": [
            ("convert", "strange.ragmd", "strange"),
            ("convert", "strange.ragmd", f"vectors-{some[2]}.faiss"),
            ("convert", "torn.ragmd", "torn"),
            ("convert", mixed[:200], "torn"),
            ("convert", "strange.ragmd", f"{some[3]}.npy"),
        ],
        "trust": [("trust", "--list"), ("trust", "--yes"), ("trust", "--revoke"), ("trust", mixed)],
        "reconstruct": [
            ("reconstruct", resource),
            ("reconstruct", "many.md"),
            ("reconstruct", f"{some[5]}.md"),
            ("reconstruct", mixed),
            ("reconstruct", resource, "-o", f"out/{some[0]}"),
            ("reconstruct", "file_index/chunked", "--from", "folder", "-o", "rebuilt"),
            ("reconstruct", mixed[:200], "--from", "jsonl", "--only", mixed),
            ("reconstruct", "--from", mixed, "--endpoint", mixed, "--overlap", mixed),
        ],
        "demo": [("demo",)],
        "doctor": [("doctor",), ("doctor", "--json")],
        "config": [("config",), ("config", "--json")],
        "completion": [("completion", "fish"), ("completion", "\x1b[31m")],
        "help": [("help",), ("help", "ls"), ("help", "\x1b[31m"), ("help", "exit-codes")],
    }
    made = {command: [Scene(words=words) for words in ways] for command, ways in found.items()}
    made["watch"] = [
        Scene(words=("watch",), ends_by=signal.SIGINT, runs_s=4),
        Scene(words=("watch", "--json"), ends_by=signal.SIGTERM, runs_s=4),
    ]
    made["serve"] = [
        Scene(
            words=("serve", f"{mixed}=file_index", "--port", "0"), ends_by=signal.SIGINT, runs_s=4
        ),
        Scene(words=("serve", mixed)),
        Scene(words=("serve", "--host", mixed, "--insecure")),
        Scene(words=("serve", "--token", mixed)),
    ]
    made["mcp"] = [
        Scene(words=("mcp",), ends_by=signal.SIGINT, runs_s=4),
        Scene(words=("mcp", mixed)),
        Scene(words=("mcp", "--install", "claude", "--to", f"{mixed[:50]}.json")),
        Scene(words=("mcp", "--install", "vscode", "--yes", "--to", f"out/{some[0]}.json")),
        Scene(words=("mcp", f"{mixed}=file_index", mixed)),
    ]
    made |= _with_a_history(some, mixed)
    # It looks at the folder, and asks.
    made["init"].append(Scene(words=("init",), keys=b"2\n", runs_s=6))
    made["tui"] = [Scene(words=("tui",), keys=b"=\x11", runs_s=6, steers=True)]
    made[""] = [
        Scene(words=(mixed,)),
        Scene(words=("--store", mixed, "status")),
        Scene(words=("--store", "/nowhere/" + mixed, "status")),
        *(
            Scene(words=(command,), store=store)
            for store in ("embedder", "beside", "unknown", "broken", "layout")
            for command in ("status", "verify", "sync", "ls")
        ),
        Scene(words=("search", "words"), store="embedder"),
        Scene(words=("search", "words", "--beside"), store="beside"),
        Scene(words=("embedder", "compare"), store="beside"),
        Scene(words=("embedder", "switch"), store="beside"),
        Scene(words=("embedder", "drop", "--yes"), store="beside"),
        Scene(words=("trust", "--yes"), store="embedder"),
    ]
    return made


def _with_a_history(some: Sequence[str], mixed: str) -> dict[str, list[Scene]]:
    """What is run where there are commits."""
    asked = ("--queries", "questions.jsonl")
    found: dict[str, list[tuple[str, ...]]] = {
        "compare": [
            ("compare", "HEAD~1", *asked),
            ("compare", "HEAD~1", "HEAD", *asked, "--json"),
            ("compare", "HEAD", "HEAD", "--queries", mixed[:200]),
            ("compare", mixed, *asked),
        ],
        "log": [
            ("log", f"chunked/c{some[1]}.md"),
            ("log", "words"),
            ("log", mixed, "--query"),
            ("log", "words", "--json"),
        ],
    }
    return {
        command: [Scene(words=words, store="committed") for words in ways]
        for command, ways in found.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A scene that was played."""

    output: bytes
    code: int
    leaks: list[str]


def play(planted: Planted, scene: Scene) -> Played:
    """Run a command on a terminal of its own, and look at what came out."""
    child, terminal = pty.fork()
    if child == 0:
        if scene.steers:
            _become_screen(planted.folder / scene.store, scene.words)
        _become_command(planted.folder / scene.store, list(scene.words))
    output = _read_all(child, terminal, scene)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    if scene.steers:
        raw = [repr(one) for one in planted.all if _is_steering(one) and one in output]
    else:
        # A terminal passes over the NUL that ends a record where that is asked for.
        raw = leaks(output.replace(b"\0", b"\n") if "-0" in scene.words else output)
    return Played(output=output, code=os.waitstatus_to_exitcode(status), leaks=raw)


def _is_steering(payload: bytes) -> bool:
    return bool(leaks(payload))


def _read_all(child: int, terminal: int, scene: Scene) -> bytes:
    blocks: list[bytes] = []
    deadline = time.monotonic() + scene.runs_s
    asked = False
    while True:
        left = deadline - time.monotonic()
        ready, _, _ = select.select([terminal], [], [], max(0.0, left))
        if not ready:
            if asked or not (scene.keys or scene.ends_by):
                os.kill(child, signal.SIGKILL)
            elif scene.keys:
                os.write(terminal, scene.keys)
            else:
                os.kill(child, scene.ends_by)
            asked = True
            deadline = time.monotonic() + LIMIT_S / 3
            continue
        try:
            block = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not block:
            break
        blocks.append(block)
    return b"".join(blocks)


def _become_screen(folder: Path, words: Sequence[str]) -> None:
    """Be a program of its own from here on, on a terminal that has a size and colours."""
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.chdir(folder)
    os.environ["TERM"] = "xterm-256color"
    os.execv(sys.executable, [sys.executable, "-m", "filestore", *words])


def _become_command(folder: Path, words: list[str]) -> None:
    """Be the command line from here on; never returns."""
    code = 70
    try:
        os.chdir(folder)
        from filestore.cli import main

        sys.argv = ["filestore", *words]
        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 71
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@contextlib.contextmanager
def planted_stores() -> Iterator[Planted]:
    """The stores, in a temporary folder, away from the user's own settings."""
    folder = Path(tempfile.mkdtemp(prefix="filestore-payloads-"))
    try:
        os.environ.update(
            HOME=str(folder / "home"),
            XDG_CONFIG_HOME=str(folder / "home" / "configuration"),
            XDG_CACHE_HOME=str(folder / "home" / "cache"),
            TERM="dumb",
            GIT_CONFIG_GLOBAL=os.devnull,
            GIT_CONFIG_NOSYSTEM="1",
        )
        for name in ("NO_COLOR", "FILESTORE"):
            os.environ.pop(name, None)
        (folder / "home").mkdir()
        planted = Planted(folder)
        planted.make()
        yield planted
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_crashed(played: Played) -> bool:
    killed = -signal.SIGKILL
    return b"Traceback" in played.output or played.code in (70, 71, killed)


def warm_up() -> None:
    """Load what most commands need, once."""
    import numpy
    import tantivy

    import filestore.cli._context
    import filestore.ingest.add
    import filestore.search.search
    import filestore.store
    import filestore.sync.apply
    import filestore.verify.run  # noqa: F401

    del numpy, tantivy


def main() -> int:
    """Run the program; 1 where a payload came out raw, or a command has no scene."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commands", nargs="*", help="only these; '' for what is no command")
    parser.add_argument("--every", type=int, default=1, help="of the ways to run a command")
    given = parser.parse_args()
    chosen = given.commands
    from filestore.server.operations import COMMANDS

    warm_up()
    failed = 0
    print("| command | runs | bytes | raw payload bytes |\n|---|---:|---:|---:|")
    with planted_stores() as planted:
        played = scenes(planted)
        for command in [*COMMANDS, ""]:
            if chosen and command not in chosen:
                continue
            chosen_scenes = played.get(command, [])[:: given.every]
            results = [play(planted, scene) for scene in chosen_scenes]
            raw = sum(len(one.leaks) for one in results)
            crashed = [one for one in results if _has_crashed(one)]
            size = sum(len(one.output) for one in results)
            print(f"| {command or 'no command'} | {len(results)} | {size:,} | {raw} |", flush=True)
            for scene, one in zip(chosen_scenes, results, strict=True):
                if one.leaks or one in crashed:
                    print(f"{scene.words!r:.200}: {one.leaks[:3]}", file=sys.stderr)
                if one in crashed:
                    print(one.output[-1500:].decode(errors="replace"), file=sys.stderr)
            failed += bool(raw or crashed or not results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
