"""Damages the sidecar of a small store in thousands of ways, and tells what became of it.

Every mutation is tried in a child of a process that has all libraries loaded: status, a full
verification and some searches, then `sync --full`, and the same again. It must be detected (a
finding, or an error of ours), or be harmless by proof (every answer is that of the untouched store,
and a full verification is clean); after the repair answers are those of the untouched store,
nothing is found, no truth file has changed, and no text was embedded again but where embeddings
were damaged. Nothing may crash, hang, or raise what is no error of ours.

    python tests/system/sidecar_mutations.py                  20,000 mutations
    python tests/system/sidecar_mutations.py --count 200000   the long run
    python tests/system/sidecar_mutations.py --only 4711      one of them, told in full
    python tests/system/sidecar_mutations.py --in-place       of a store that is a folder of notes
    python tests/system/sidecar_mutations.py --fitted         as a stranger would: hashes agree

In place nothing of the folder may change, its stamps neither, and a cache of documents is damaged
as well: half of the time with the catalog gone, so that everything is read from it.

Fitted damage is that of files which native libraries parse, with each size and hash made to agree:
the stamp of the full-text index, and what the catalog has of the FAISS file. Only the user's seal
cannot be made. A plain `sync`, which is the remedy that is told, must then mend it, and where the
stamp still reads, answers are those of the untouched store before.
"""

import argparse
import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import random
import resource
import select
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec.structs
from snapshots import Seen, snapshot

from filestore.catalog import _remembered
from filestore.core.hashing import content_hash

SEED: Final = 4
COUNT: Final = 20_000
HANG_S: Final = 20.0
"""A child that takes longer hangs: it needs a tenth of a second."""
MEMORY_BYTES: Final = 3 << 30
"""What a child may map beyond what its parent has."""
OUTCOMES: Final = ("detected", "harmless", "crashed", "hung", "noisy", "traceback", "wrong")
SOUND: Final = frozenset({"detected", "harmless"})
_HEADERS: Final = (
    ("catalog.sqlite", 100),
    ("embeddings.sqlite", 100),
    ("documents.sqlite", 100),
    ("catalog.sqlite-wal", 56),
    ("embeddings.sqlite-wal", 56),
    ("vectors-", 96),
    ("stamp.json", 1 << 16),
    ("meta.json", 1 << 16),
    (".managed.json", 1 << 16),
)
"""File and how many of its first bytes are changed, each of them."""
_TOLD: Final = frozenset({"hand-edited", "malformed-frontmatter", "frontmatter-ignored"})
"""What is found in the untouched store: people have been at its files."""
_TOPICS: Final = ("apples", "rivers", "engines", "lanterns", "bridges", "violins", "harbours")
_QUERIES: Final = ("care of engines", '"step 3" rivers', "violi* -bridges", "what floats")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One damage, the same in every store of the same making."""

    number: int
    kind: str
    target: str
    """The beginning or end of the name of the file; "" for several files."""
    logged: bool
    """Whether it is done to a sidecar whose SQLite files have write-ahead logs."""
    place: float
    """Where in the file, 0 to 1, or for header bytes the byte itself."""
    seed: int
    fitted: bool = False
    """Whether every hash that a stranger can make agrees with what was damaged."""


@dataclass(slots=True)
class Tally:
    """What became of the mutations of one kind of file."""

    counts: Counter[str] = field(default_factory=Counter)
    embedded: int = 0
    """Texts that were embedded again, in all."""


# The store


class Laboratory:
    """A small store with pristine copies of its sidecar, and the answers it gives untouched."""

    def __init__(self, folder: Path, *, in_place: bool) -> None:
        self.folder = folder
        self.in_place = in_place
        below = "." if in_place else "file_index"
        self.root = folder / "work" / below
        self.sidecar = self._sidecar_of(self.root)
        self.configuration = str(folder / "configuration")
        self.copies = {name: folder / name for name in ("closed", "logged", "old", "other")}
        self._make()
        self.truth = self.truth_now()
        self.contents = {name: _used_files(copy) for name, copy in self.copies.items()}

    def _make(self) -> None:
        other = self.folder / "other-work" / self.root.relative_to(self.folder / "work")
        self._in_child(lambda: self._new_store(other))
        shutil.copytree(self._sidecar_of(other), self.copies["other"])
        self._in_child(lambda: self._new_store(self.root))
        shutil.copytree(self.sidecar, self.copies["old"])
        self._in_child(self._second_generation)

    def _sidecar_of(self, root: Path) -> Path:
        return root / (".filestore" if self.in_place else ".sidecar")

    def _documents_of(self, root: Path) -> Path:
        return root if self.in_place else root.parent

    def _tree_of(self, root: Path) -> Path:
        return root if self.in_place else root / "chunked"

    def _new_store(self, root: Path) -> None:
        from filestore.store import Store

        self._documents_of(root).mkdir(parents=True)
        self._write_documents(root, _TOPICS[:2])
        layout = "in-place" if self.in_place else "tree"
        Store.create(str(root), layout=layout, embedder="builtin", configuration=self.configuration)
        self._add(root, _TOPICS[:2])
        if not self.in_place:
            chunk = root / "chunked" / "apples.md" / "chunk2.md"
            chunk.write_bytes(chunk.read_bytes() + b"A sentence by hand about engines.\n")
        self._write_notes(root, range(24))
        shutil.rmtree(self._sidecar_of(root) / "fulltext")
        with Store(str(root), configuration=self.configuration) as store:
            store.sync()

    def _write_documents(self, root: Path, topics: Sequence[str]) -> None:
        for topic in topics:
            number = _TOPICS.index(topic)
            path = self._documents_of(root) / f"{topic}.md"
            path.write_text(_document(topic, number, sections=3))

    def _write_notes(self, root: Path, numbers: Sequence[int]) -> None:
        folder = self._tree_of(root) / "notes"
        folder.mkdir(exist_ok=True)
        for number in numbers:
            topic = _TOPICS[number % len(_TOPICS)]
            (folder / f"n{number}.md").write_text(
                f'---\ncolour: "c{number % 4}"\nheadings: ["{topic}"]\n---\n'
                f"Note {number} on {topic}: care in step {number // 3}, kept apart.\n"
            )

    def _add(self, root: Path, topics: Sequence[str]) -> None:
        from filestore.store import Store

        with Store(str(root), configuration=self.configuration) as store:
            if self.in_place:
                store.sync()
            else:
                store.add(*(root.parent / f"{topic}.md" for topic in topics))

    def _second_generation(self) -> None:
        """More files, while readers keep the write-ahead logs alive.

        Nothing that was indexed changes: BM25 counts a deleted document until its segment is
        merged, and the scores of a full-text index that is built again would differ.
        """
        from filestore.store import Store

        readers = []
        for name in ("catalog.sqlite", "embeddings.sqlite"):
            reader = sqlite3.connect(self.sidecar / name)
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            readers.append(reader)
        self._write_documents(self.root, _TOPICS[2:3])
        self._add(self.root, _TOPICS[2:3])
        self._write_notes(self.root, range(24, 32))
        tree = self._tree_of(self.root)
        (tree / "note.md").write_text(
            "---\ntags: [fruit, hand]\nquestions: ['What floats on rivers?']\n---\nA raft floats.\n"
        )
        (tree / "broken.md").write_text("---\na: [\n---\nIt is withheld.\n")
        if self.in_place:
            (tree / "page.html").write_text("<h1>Page</h1><p>It links [[note]] and engines.</p>")
            (tree / "links.md").write_text("# Links\n\nSee [[note]] and [it](notes/n1.md).\n")
        with Store(str(self.root), configuration=self.configuration) as store:
            store.sync()
        with Store(str(self.root), configuration=self.configuration) as store:
            store.sync(full=True)
        shutil.copytree(self.sidecar, self.copies["logged"])
        for reader in readers:
            reader.close()
        shutil.copytree(self.sidecar, self.copies["closed"])

    def _in_child(self, work: Callable[[], object]) -> None:
        """Do something in a child: a library that has started threads cannot be forked again."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status != 0:
            raise RuntimeError("the store could not be made")

    def truth_now(self) -> Seen:
        """The truth files, with their stamps: nothing may write one, not even as it was."""
        seen = snapshot(self._tree_of(self.root))
        return {path: one for path, one in seen.items() if not path.startswith(".filestore")}

    def lay_out(self, mutation: Mutation | None, *, logged: bool = False) -> str:
        """Put a pristine sidecar in place and damage it; returns the name of what was damaged."""
        pristine = self.contents["logged" if logged else "closed"]
        shutil.rmtree(self.sidecar, ignore_errors=True)
        files = dict(pristine)
        target = ""
        if mutation is not None:
            target = _damage(mutation, files, self.contents)
        for name, data in files.items():
            path = os.path.join(self.sidecar, name)
            if "/" in name:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            else:
                os.makedirs(self.sidecar, mode=0o700, exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        os.makedirs(self.sidecar, mode=0o700, exist_ok=True)
        return target


def _used_files(sidecar: Path) -> dict[str, bytes]:
    """The files of a sidecar, without what is left of an earlier full-text index."""
    stamp = json.loads((sidecar / "fulltext" / "stamp.json").read_bytes())
    part = stamp["files"][0][0].partition("/")[0]
    paths = [path for path in sidecar.rglob("*") if path.is_file()]
    return {
        path.relative_to(sidecar).as_posix(): path.read_bytes()
        for path in paths
        if path.parent.parent.name != "fulltext" or path.parent.name == part
    }


def _document(topic: str, number: int, *, sections: int) -> str:
    parts = [f"---\ncolour: c{number}\n---\n# The book of {topic}\n"]
    for section in range(1, sections + 1):
        lines = [
            f"Sentence {line} about {topic} says that part {section} of {topic} needs step {line}."
            for line in range(1, 14)
        ]
        parts.append(f"## {topic.title()} part {section}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


# The mutations


def fitted_mutations(*, count: int, seed: int) -> list[Mutation]:
    """So many damages whose hashes agree."""
    chance = random.Random(seed)
    return [
        Mutation(
            number=number,
            kind=chance.choice(_FITTED_KINDS),
            target=chance.choice(_FITTED_TARGETS),
            logged=False,
            place=chance.random(),
            seed=chance.randrange(1 << 32),
            fitted=True,
        )
        for number in range(count)
    ]


def mutations(laboratory: Laboratory, *, count: int, seed: int) -> list[Mutation]:
    """So many damages: bytes of the headers first, random ones after.

    All header bytes are in it where that takes at most half of the count, else a sample of them.
    """
    chance = random.Random(seed)
    headers = list(_header_bytes(laboratory.contents["logged"]))
    if len(headers) > count // 2:
        headers = chance.sample(headers, count // 2)
    chosen = [
        Mutation(number=number, kind="header", target=name, logged=logged, place=at, seed=value)
        for number, (name, at, value, logged) in enumerate(headers)
    ]
    targets = _TARGETS + (_MORE_IN_PLACE if laboratory.in_place else ())
    for number in range(len(chosen), count):
        kind = chance.choice(_KINDS)
        chosen.append(
            Mutation(
                number=number,
                kind=kind,
                target=chance.choice(targets),
                logged=chance.random() < 0.4,
                place=chance.random(),
                seed=chance.randrange(1 << 32),
            )
        )
    return chosen


def chosen_of(laboratory: Laboratory, *, count: int, seed: int, fitted: bool) -> list[Mutation]:
    """The mutations of a run."""
    if fitted:
        return fitted_mutations(count=count, seed=seed)
    return mutations(laboratory, count=count, seed=seed)


def _header_bytes(files: dict[str, bytes]) -> Iterator[tuple[str, int, int, bool]]:
    for part, length in _HEADERS:
        # Of FAISS files the previous one stays beside the one that is used.
        name = max((name for name in files if _fits(name, part)), default="")
        if not name:
            continue
        logged = name.endswith("-wal")
        for at in range(min(length, len(files[name]))):
            for change in (0xFF, 0x01):
                yield part, at, change, logged


_KINDS: Final = (
    "flip",
    "flip",
    "flip",
    "bytes",
    "bytes",
    "page",
    "page",
    "zero",
    "truncate",
    "extend",
    "swap",
    "old",
    "other",
    "missing",
    "mixed",
)
_TARGETS: Final = (
    "catalog.sqlite",
    "catalog.sqlite",
    "catalog.sqlite",
    "catalog.sqlite-wal",
    "embeddings.sqlite",
    "embeddings.sqlite",
    "embeddings.sqlite-wal",
    "vectors-",
    "stamp.json",
    "fulltext/",
)
_MORE_IN_PLACE: Final = ("documents.sqlite", "documents.sqlite", "documents.sqlite")
_FITTED_KINDS: Final = (
    *("flip", "bytes", "ones", "ones", "zero", "truncate", "extend", "swap", "old", "other"),
)
_STAMPS: Final[dict[str, tuple[Any, ...]]] = {
    "generation": (0, 1, 1 << 62, -1),
    "documents": (0, 1, 1 << 40),
    "analysis": ("", "another"),
    "seal": ("", "00" * 32, "\u00e9"),
    "files": ([], [("part-0/../../../catalog.sqlite", 1, "00")]),
}
"""What a stranger writes into a stamp."""
_FITTED_TARGETS: Final = (
    *(".fast", ".fieldnorm", ".idx", ".pos", ".store", ".term"),
    *("meta.json", ".managed.json", "stamp.json", "vectors-"),
)


def _fits(name: str, part: str) -> bool:
    if name == part or name.endswith(f"/{part}") or (part[0] == "." and name.endswith(part)):
        return True
    return name.startswith(part) and part[-1] in "-/"


def _damage(
    mutation: Mutation, files: dict[str, bytes], contents: dict[str, dict[str, bytes]]
) -> str:
    """Change files as a mutation says; returns the name of what was changed."""
    chance = random.Random(mutation.seed)
    if mutation.kind == "mixed":
        return _mix(chance, files, contents)
    fitting = sorted(name for name in files if _fits(name, mutation.target) and files[name])
    if not fitting:
        # Without a log its database is meant.
        fitting = [mutation.target.removesuffix("-wal")]
    name = fitting[-1 if mutation.kind == "header" else chance.randrange(len(fitting))]
    # What a stamp says is changed as it is fitted.
    is_kept = mutation.fitted and name.endswith("/stamp.json")
    data = files[name] if is_kept else _damaged(mutation, chance, name, files, contents)
    if data is None:
        del files[name]
    else:
        files[name] = data
    if mutation.fitted:
        _fit(name, files, chance)
    if name == "documents.sqlite" and mutation.seed % 2:
        # What is kept of documents is read only where the catalog has nothing of them.
        for lost in ("catalog.sqlite", "catalog.sqlite-wal"):
            files.pop(lost, None)
    return name


def _fit(name: str, files: dict[str, bytes], chance: random.Random) -> None:
    """Have every size and hash agree with the files, as a stranger can."""
    if name.startswith("vectors-"):
        _fit_catalog(name, files)
        return
    below, path = "fulltext/", "fulltext/stamp.json"
    stamp = json.loads(files[path])
    part = stamp["files"][0][0].partition("/")[0]
    stamp["files"] = [
        (one.removeprefix(below), len(data), content_hash(data).hex())
        for one, data in sorted(files.items())
        if one.startswith(f"{below}{part}/") and not one.endswith(".lock")
    ]
    if name == path:
        key, values = chance.choice(sorted(_STAMPS.items()))
        stamp[key] = chance.choice(values)
    files[path] = json.dumps(stamp).encode()


def _fit_catalog(name: str, files: dict[str, bytes]) -> None:
    """Have the catalog agree with the FAISS file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "catalog.sqlite")
        Path(path).write_bytes(files["catalog.sqlite"])
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            said = {
                "index_name": name,
                "index_size": len(files[name]),
                "index_hash": content_hash(files[name]).hex(),
            }
            for key, value in said.items():
                connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
            made = _remembered.checksum(connection)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'checksum'", (made,))
        files["catalog.sqlite"] = Path(path).read_bytes()


def _damaged(
    mutation: Mutation,
    chance: random.Random,
    name: str,
    files: dict[str, bytes],
    contents: dict[str, dict[str, bytes]],
) -> bytes | None:
    data = bytearray(files[name])
    at = min(int(mutation.place * len(data)), len(data) - 1)
    match mutation.kind:
        case "header":
            data[int(mutation.place)] ^= mutation.seed
        case "flip":
            data[at] ^= 1 << chance.randrange(8)
        case "bytes":
            for offset in range(at, min(at + chance.randrange(1, 9), len(data))):
                data[offset] = chance.randrange(256)
        case "page":
            # The head of a page says where its cells are: nothing confuses SQLite more.
            page = 16_384 if name.startswith("embeddings") else 4_096
            data[min(at // page * page + chance.randrange(24), len(data) - 1)] = chance.randrange(
                256
            )
        case "zero" | "ones":
            length = chance.choice((1, 8, 16, 512, 4_096, 16_384))
            bit = b"\xff" if mutation.kind == "ones" else b"\0"
            data[at : at + length] = bit * len(data[at : at + length])
        case "truncate":
            del data[at:]
        case "extend":
            length = chance.choice((1, 16, 512, 4_096, 16_384))
            data += bytes(length) if chance.random() < 0.5 else chance.randbytes(length)
        case "swap":
            data = bytearray(files[chance.choice(sorted(files))])
        case "missing":
            return None
        case "old" | "other":
            data = bytearray(_counterpart(name, contents[mutation.kind], chance))
    return bytes(data)


def _counterpart(name: str, files: dict[str, bytes], chance: random.Random) -> bytes:
    """The file of the same part in another sidecar."""
    suffix = name.rpartition(".")[2]
    fitting = [other for other in sorted(files) if other == name]
    fitting = fitting or [other for other in sorted(files) if other.rpartition(".")[2] == suffix]
    return files[chance.choice(fitting or sorted(files))]


def _mix(
    chance: random.Random, files: dict[str, bytes], contents: dict[str, dict[str, bytes]]
) -> str:
    """Some parts from an older generation, or from another store."""
    donor = contents[chance.choice(("old", "old", "other"))]
    parts = ("catalog.sqlite", "embeddings.sqlite", "vectors-", "fulltext/", "documents.sqlite")
    chosen = [part for part in parts if chance.random() < 0.5] or ["catalog.sqlite"]
    for part in chosen:
        for name in [name for name in files if name.startswith(part)]:
            del files[name]
        files.update({name: data for name, data in donor.items() if name.startswith(part)})
    return "several"


# Trying one


def answers(root: str, configuration: str) -> str:
    """What a store says to some questions, as one text."""
    from filestore.sidecar import vector_file
    from filestore.store import Store

    # All searches through the FAISS file, though the store is small.
    vector_file.FEW_VECTORS = 0
    filters: list[tuple[str, Any, dict[str, Any]]] = [
        (_QUERIES[0], "hybrid", {}),
        (_QUERIES[0], "vector", {}),
        (_QUERIES[1], "hybrid", {"where": {"colour": "c1"}}),
        (_QUERIES[2], "keyword", {}),
        (_QUERIES[3], "vector", {"where": {"tags": "hand"}}),
        (_QUERIES[3], "hybrid", {"source": "*engines.md"}),
    ]
    said: list[Any] = []
    with Store(root, configuration=configuration) as store:
        for query, mode, chosen in filters:
            answer = store.search(query, k=5, mode=mode, **chosen)
            said.append((answer.mode, [hit.to_dict() for hit in answer.hits]))
        said += [store.resources(), store.chunks("apples.md")]
        if store.places.tree.has_sections:
            said.append(store.show("page.html").body)
            for one in (
                store.links("note.md"),
                store.similar("notes/n3.md:5", k=4),
                store.duplicates(above=0.9),
            ):
                said.append(msgspec.structs.replace(one, generation=0).to_dict())
    return json.dumps(said)


def codes_found(root: str, configuration: str) -> list[str]:
    """What a status and a full verification find."""
    from filestore.store import Store

    with Store(root, configuration=configuration) as store:
        found = {finding.code for finding in store.status().findings}
        found |= {finding.code for finding in store.verify(level="full").findings}
    return sorted(found)


def _attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """A value, or the name of the error of ours."""
    from filestore.core.errors import FilestoreError

    try:
        return work(), ""
    except FilestoreError as error:
        return None, f"{type(error).__name__}: {error.message}"


def examine(root: str, configuration: str, *, full: bool = True) -> dict[str, Any]:
    """Look at a damaged store, repair it, and look again."""
    from filestore.store import Store

    found, refused = _attempt(lambda: codes_found(root, configuration))
    said, unsaid = _attempt(lambda: answers(root, configuration))
    with Store(root, configuration=configuration) as store:
        report, unrepaired = _attempt(lambda: store.sync(full=full))
    if newer := _called_newer(unrepaired):
        # A version number that was hit is refused; the sentence says what to do, which is done.
        with Store(root, configuration=configuration) as store:
            os.unlink(os.path.join(store.places.sidecar, newer))
            report, unrepaired = _attempt(lambda: store.sync(full=True))
    is_unchanged = report is not None and not report.applied and not (refused or unsaid)
    if is_unchanged and set(found) <= _TOLD:
        # Nothing was there to mend: what was found and said stands.
        return _told(found, said, [], found, said, [], 0)
    after, unverified = _attempt(lambda: codes_found(root, configuration))
    again, unanswered = _attempt(lambda: answers(root, configuration))
    errors = [error for error in (refused, unsaid) if error]
    unrepaired = [error for error in (unrepaired, unverified, unanswered) if error]
    embedded = report.embedded if report is not None else 0
    return _told(found, said, errors, after, again, unrepaired, embedded)


def _called_newer(error: str) -> str:
    """The file that is taken for one of a newer filestore, "" for none."""
    names = {"CatalogNewerError": "catalog.sqlite", "EmbeddingsNewer": "embeddings.sqlite"}
    return names.get(error.partition(":")[0], "")


def _told(
    found: Any, said: Any, errors: Any, after: Any, again: Any, unrepaired: Any, embedded: int
) -> dict[str, Any]:
    return {
        "found": found or [],
        "errors": errors,
        "said": said,
        "after": after,
        "again": again,
        "unrepaired": unrepaired,
        "embedded": embedded,
    }


def in_child(work: Callable[[], Any], *, limited: bool = True) -> tuple[str, Any]:
    """What some work in a forked child gives, or how the child ended otherwise."""
    reader, writer = os.pipe()
    said = os.memfd_create("said")
    child = os.fork()
    if child == 0:
        _run_child(work, reader, writer, said, limited=limited)
    os.close(writer)
    blocks: list[bytes] = []
    deadline = time.monotonic() + HANG_S
    try:
        while True:
            ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                return "hung", None
            block = os.read(reader, 1 << 20)
            if not block:
                break
            blocks.append(block)
    finally:
        os.close(reader)
        _, status = os.waitpid(child, 0)
        noise = os.pread(said, 1 << 16, 0)
        os.close(said)
    code = os.waitstatus_to_exitcode(status)
    if code != 0 or not blocks:
        return "crashed", code
    kind, value = json.loads(b"".join(blocks))
    return ("noisy", noise.decode(errors="replace")) if b"panicked" in noise else (kind, value)


def _run_child(
    work: Callable[[], Any], reader: int, writer: int, said: int, *, limited: bool
) -> None:
    code = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(reader)
        if limited:
            os.dup2(said, 2)
            mapped = _mapped_bytes()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES, mapped + MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            result = ("done", work())
        except BaseException:
            result = ("traceback", traceback.format_exc())
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(result).encode())
        code = 0
    finally:
        os._exit(code)


def _mapped_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Judged:
    """What became of one mutation."""

    outcome: str
    group: str
    embedded: int = 0
    story: Any = None
    """What the child said, or how it ended."""


class Judge:
    """Tries mutations on one store."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        laboratory.lay_out(None)
        ended, value = self._look(limited=False)
        if ended != "done" or value["errors"] or not set(value["found"]) <= _TOLD:
            raise RuntimeError(f"the untouched store is not sound: {ended} {value}")
        if value["said"] != value["again"] or value["embedded"]:
            raise RuntimeError(f"sync changes an untouched store: {value}")
        self._said = value["said"]
        self._clean = value["found"]
        _load_all(in_child(lambda: self._modules_used(), limited=False)[1])

    def _modules_used(self) -> list[str]:
        laboratory = self._laboratory
        examine(str(laboratory.root), laboratory.configuration)
        return sorted(sys.modules)

    def _look(self, *, limited: bool = True, full: bool = True) -> tuple[str, Any]:
        laboratory = self._laboratory
        return in_child(
            lambda: examine(str(laboratory.root), laboratory.configuration, full=full),
            limited=limited,
        )

    def try_one(self, mutation: Mutation) -> Judged:
        """Damage, look, repair, look again."""
        name = self._laboratory.lay_out(mutation, logged=mutation.logged)
        group = _group(name)
        ended, value = self._look(full=not mutation.fitted)
        if ended != "done":
            return Judged(outcome=ended, group=group, story=value)
        story = {key: told for key, told in value.items() if key not in ("said", "again")}
        judged = Judged(outcome="wrong", group=group, embedded=value["embedded"], story=story)
        if self._laboratory.truth_now() != self._laboratory.truth:
            judged.story = "a truth file changed"
            raise RuntimeError(f"{mutation}: {judged.story}")
        mended = value["again"] == self._said and value["after"] == self._clean
        may_embed = group in ("several", "embeddings.sqlite", "embeddings.sqlite-wal")
        if mutation.fitted and mutation.target != "stamp.json" and value["said"] != self._said:
            return judged
        if value["unrepaired"] or not mended or (value["embedded"] and not may_embed):
            return judged
        if value["found"] != self._clean or value["errors"]:
            judged.outcome = "detected"
        elif value["said"] == self._said:
            judged.outcome = "harmless"
        return judged


def _group(name: str) -> str:
    if name.startswith("vectors-"):
        return "vectors-N.faiss"
    if name.startswith("fulltext/"):
        last = name.rpartition("/")[2]
        return f"fulltext/{last}" if last.endswith(".json") else "fulltext segments"
    return name


# The run


def warm_up() -> None:
    """Load what the children need, once; nothing is run that starts a thread."""
    import faiss
    import numpy
    import semantic_text_splitter
    import tantivy

    import filestore.extract.markdown
    import filestore.ingest.add
    import filestore.sidecar.create
    import filestore.store  # noqa: F401

    del faiss, numpy, semantic_text_splitter, tantivy


def _load_all(names: Sequence[str]) -> None:
    """Load what a child was seen to load."""
    for name in names:
        if name not in sys.modules and not name.startswith("__"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def laboratory(*, in_place: bool) -> Iterator[Laboratory]:
    """A store in memory where there is such a place, else in the temporary folder."""
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="filestore-mutations-", dir=place) as folder:
        yield Laboratory(Path(folder), in_place=in_place)


def work_through(
    count: int,
    seed: int,
    in_place: bool,
    fitted: bool,
    share: tuple[int, int],
    tell: Callable[[Mutation, Judged], None],
) -> None:
    """Try one worker's share of the mutations."""
    warm_up()
    with laboratory(in_place=in_place) as made:
        judge = Judge(made)
        number, of = share
        chosen = chosen_of(made, count=count, seed=seed, fitted=fitted)[number::of]
        # In any order, so that a run that is cut short has tried something of everything.
        random.Random(seed).shuffle(chosen)
        started_by = os.getppid()
        for mutation in chosen:
            if os.getppid() != started_by:
                # Whoever wanted to know is gone.
                return
            tell(mutation, judge.try_one(mutation))


def _worker(
    count: int, seed: int, in_place: bool, fitted: bool, share: tuple[int, int], results: Any
) -> None:
    # Ended by its parent, a worker still takes its store away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        work_through(count, seed, in_place, fitted, share, lambda *told: results.put(told))
        results.put(None)
    except SystemExit:
        pass
    except BaseException:
        results.put(traceback.format_exc())


def run(
    *,
    count: int,
    seed: int,
    in_place: bool,
    fitted: bool,
    workers: int,
    on_judged: Callable[[Mutation, Judged], None],
) -> dict[str, Tally]:
    """Try all mutations and count what became of them, by the file that was damaged."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.SimpleQueue()
    shares = [(number, workers) for number in range(workers)]
    processes = [
        context.Process(
            target=_worker, args=(count, seed, in_place, fitted, share, results), daemon=True
        )
        for share in shares
    ]
    for process in processes:
        process.start()
    tallies: dict[str, Tally] = {}
    running = workers
    while running:
        try:
            told = results.get()
        except KeyboardInterrupt:
            # What was tried so far is worth its table.
            return tallies
        if told is None:
            running -= 1
            continue
        if isinstance(told, str):
            raise RuntimeError(told)
        mutation, judged = told
        tally = tallies.setdefault(judged.group, Tally())
        tally.counts[judged.outcome] += 1
        tally.embedded += judged.embedded
        on_judged(mutation, judged)
    for process in processes:
        process.join()
    return tallies


def failures(tallies: dict[str, Tally]) -> int:
    """How many mutations were neither detected nor harmless."""
    return sum(
        number
        for tally in tallies.values()
        for outcome, number in tally.counts.items()
        if outcome not in SOUND
    )


def table(tallies: dict[str, Tally]) -> str:
    """What became of the mutations, as Markdown."""
    lines = [
        f"| mutated | count | {' | '.join(OUTCOMES)} | embedded again |",
        f"|---|{'---:|' * (len(OUTCOMES) + 2)}",
    ]
    total = Tally()
    for group, tally in sorted(tallies.items()):
        lines.append(_row(group, tally))
        total.counts.update(tally.counts)
        total.embedded += tally.embedded
    return "\n".join([*lines, _row("all", total)])


def _row(group: str, tally: Tally) -> str:
    cells = [tally.counts.total(), *(tally.counts[outcome] for outcome in OUTCOMES), tally.embedded]
    return f"| {group} | {' | '.join(f'{cell:,}' for cell in cells)} |"


class Reporter:
    """Tells what failed as it fails, and how far the run is."""

    def __init__(self, count: int, *, shown: int) -> None:
        self._count = count
        self._left = shown
        self._done = 0
        self._started = time.monotonic()

    def __call__(self, mutation: Mutation, judged: Judged) -> None:
        """Take note of one."""
        self._done += 1
        if judged.outcome not in SOUND and self._left > 0:
            self._left -= 1
            print(f"{judged.outcome}: {mutation}\n{judged.story}", file=sys.stderr)
        if self._done % 1000 == 0:
            rate = self._done / (time.monotonic() - self._started)
            print(f"{self._done:,} of {self._count:,}, {rate:.0f}/s", file=sys.stderr, flush=True)


def only(number: int, *, count: int, seed: int, in_place: bool, fitted: bool) -> None:
    """Try one mutation and tell all of it."""
    warm_up()
    with laboratory(in_place=in_place) as made:
        judge = Judge(made)
        mutation = chosen_of(made, count=count, seed=seed, fitted=fitted)[number]
        judged = judge.try_one(mutation)
        print(mutation, judged.group, judged.outcome)
        print(judged.story)


def main() -> int:
    """Run the program; 1 where a mutation was neither detected nor harmless."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, help=f"default: {COUNT:,}")
    parser.add_argument("--seed", type=int, default=SEED, help="another one, other mutations")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try one, and tell all of it")
    parser.add_argument("--in-place", action="store_true", help="the sidecar of a folder of notes")
    parser.add_argument("--fitted", action="store_true", help="every hash but the user's agrees")
    parser.add_argument("--shown", type=int, default=10, help="failures told in full")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.only is not None:
        only(
            options.only,
            count=options.count,
            seed=options.seed,
            in_place=options.in_place,
            fitted=options.fitted,
        )
        return 0
    # However it is cut short, the table of what was tried is printed.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    tallies = run(
        count=options.count,
        seed=options.seed,
        in_place=options.in_place,
        fitted=options.fitted,
        workers=options.workers,
        on_judged=Reporter(options.count, shown=options.shown),
    )
    print(table(tallies))
    tried = sum(tally.counts.total() for tally in tallies.values())
    elapsed = time.monotonic() - started
    print(f"\n{tried:,} of {options.count:,} mutations, seed {options.seed}, {elapsed:.0f} s")
    return 1 if failures(tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
