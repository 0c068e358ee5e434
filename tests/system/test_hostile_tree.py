"""Trees from strangers: links, races, records that point out, hostile names and special files.

A canary lies outside of the work tree; its words must never get into the store, nor its bytes
change.
"""

import asyncio
import contextlib
import inspect
import json
import os
import re
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import filestore
from filestore.core.errors import FilestoreError
from filestore.search.metrics import Question
from filestore.server.operations import ROUTES
from filestore.server.stores import Access, Stores
from filestore.store.inspected import InspectedStore
from tests.advice import advised
from tests.system.server.conftest import AGENT, PERSON

WORDS = "canarywords from outside of the tree"
SWAPS = 2_000


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder outside of the work tree, proved untouched."""
    folder = tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    files = {
        folder / "chunk1.md": f"{WORDS}\n".encode(),
        folder / "meta.json": json.dumps({"note": WORDS}).encode(),
        folder / "sub" / "chunk1.md": f"{WORDS} below\n".encode(),
        folder / "source.md": f"# {WORDS}\n\n{WORDS}\n".encode(),
    }
    for path, data in files.items():
        path.write_bytes(data)
    yield folder
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files


def assert_unread(workspace: Any) -> None:
    """Nothing of the canary is in the sidecar, in the tree, or in what was kept for undo."""
    needle = WORDS.partition(" ")[0].encode()
    for folder in (workspace.sidecar, workspace.store / ".undo", workspace.store / "source"):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert needle not in path.read_bytes(), path
    assert workspace.found("canarywords") == []


def codes(workspace: Any, *words: str) -> set[str]:
    done = workspace.json("verify", *words, code=None)
    return {finding["code"] for finding in done["findings"]}


def test_links_are_not_followed(either: Any, outside: Path) -> None:
    """Linked files and folders, also in place of known ones, are told and never read."""
    either.write("file_index/chunked/known/a.md", "Known words.\n")
    either.write("file_index/chunked/b.md", "Known words, too.\n")
    either.sync()
    (either.chunked / "file.md").symlink_to(outside / "chunk1.md")
    (either.chunked / "folder").symlink_to(outside, target_is_directory=True)
    (either.chunked / "loop").symlink_to(either.chunked, target_is_directory=True)
    (either.chunked / "b.md").unlink()
    (either.chunked / "b.md").symlink_to(outside / "chunk1.md")
    (either.chunked / "known" / "a.md").unlink()
    (either.chunked / "known").rmdir()
    (either.chunked / "known").symlink_to(outside / "sub", target_is_directory=True)
    for level in ("fast", "full"):
        assert "symlink" in codes(either, "--level", level)
    either("sync", code=None)
    either("search", "known words", code=None)
    either("repair", "--write-files", "--yes", code=None)
    assert_unread(either)


def test_the_whole_tree_is_a_link(either: Any, outside: Path) -> None:
    """A tree that is itself a link out of the store is not walked, and nothing is forgotten."""
    either.write("file_index/chunked/a.md", "Known words.\n")
    either.sync()
    either.chunked.rename(either.folder / "away")
    either.chunked.symlink_to(outside, target_is_directory=True)
    for words in (["status"], ["verify", "--level", "full"], ["sync"]):
        assert either(*words, code=None).code in (1, 3, 4)
    either.write("new.md", "New words.\n")
    assert either("add", "new.md", code=None).code in (1, 3, 4)
    either.chunked.unlink()
    (either.folder / "away").rename(either.chunked)
    assert_unread(either)


@pytest.mark.parametrize(
    "source",
    ["/etc/hostname", "../../outside/source.md", "../link/source.md", "../li\0nk", "../link"],
)
def test_records_that_point_out(workspace: Any, outside: Path, source: str) -> None:
    """A record whose source leaves the work tree is never read from without trust."""
    (workspace.folder / "link").symlink_to(outside, target_is_directory=True)
    workspace.write("good.md", "Good words.\n")
    workspace("add", "good.md")
    (path,) = workspace.chunked.rglob("meta.json")
    record = json.loads(path.read_bytes())
    record["source"] = source
    for document in record.get("documents", [record]):
        document["source"] = source
    path.write_text(json.dumps(record))
    for words in (["sync"], ["status"], ["verify", "--level", "full"], ["sync"]):
        assert workspace(*words, code=None).code in (0, 1, 4)
    assert workspace("repair", "--write-files", "--yes", code=None).code in (0, 1, 3, 4)
    workspace("reconstruct", "good.md", code=None)
    assert_unread(workspace)


def test_a_linked_source_is_refused_or_read_as_named(workspace: Any, outside: Path) -> None:
    """A folder that is added is not left through the links in it."""
    workspace.write("folder/own.md", "Own words.\n")
    (workspace.folder / "folder" / "file.md").symlink_to(outside / "source.md")
    (workspace.folder / "folder" / "below").symlink_to(outside, target_is_directory=True)
    assert workspace("add", "folder", code=None).code in (0, 1)
    assert workspace.found("own words")
    assert_unread(workspace)


def test_swapped_while_it_is_read(workspace: Any, outside: Path) -> None:
    """Files and folders that turn into links and back meanwhile never lead out of the tree."""
    workspace.write("new.md", "New words.\n")
    for name in ("one", "two"):
        workspace.write(f"file_index/chunked/{name}/chunk1.md", f"Words of {name}.\n")
    stop = threading.Event()
    counts = [0]
    swapper = threading.Thread(target=_swap, args=(workspace.chunked, outside, stop, counts))
    swapper.start()
    try:
        rounds = 0
        while counts[0] < SWAPS or rounds < 2:
            rounds += 1
            for words in (["status"], ["verify", "--level", "full"], ["sync"], ["add", "new.md"]):
                assert workspace(*words, code=None).code in (0, 1, 3, 4), words
    finally:
        stop.set()
        swapper.join()
    workspace("sync", code=None)
    assert_unread(workspace)


def _swap(chunked: Path, outside: Path, stop: threading.Event, counts: list[int]) -> None:
    """Put links in the place of a file and of a folder, and take them away, again and again."""
    folder, file = chunked / "one", chunked / "two" / "chunk1.md"
    away, aside = chunked.parent / "away", chunked.parent / "aside"
    while not stop.is_set():
        folder.rename(away)
        folder.symlink_to(outside, target_is_directory=True)
        file.rename(aside)
        file.symlink_to(outside / "chunk1.md")
        counts[0] += 4
        stop.wait(0.0005)
        folder.unlink()
        away.rename(folder)
        file.unlink()
        aside.rename(file)
        stop.wait(0.0005)


NAMES = [
    b"line\nend.md",
    b"escape\x1b]0;x\x07.md",
    b"not\xffutf\xfe8.md",
    b"n" * 252 + b".md",
    b"CON.md",
    b"nul.md",
    b"trailing. .md",
    b"colon:pipe|.md",
    b" .md",
    b"-rf.md",
    "\u202egnp.md".encode(),
]


@pytest.mark.parametrize("below", [b"", b"fol\xffder/", b"new\nline/"])
def test_hostile_names(either: Any, below: bytes) -> None:
    """Whatever a file or its folder is called, it is indexed, found and forgotten again."""
    folder = os.fsencode(either.chunked) + b"/" + below
    os.makedirs(folder, exist_ok=True)
    for name in NAMES:
        with open(folder + name, "wb") as file:
            file.write(b"Hostile words.\n")
    either("sync", code=None)
    (hit,) = either.json("search", "hostile words", "--mode", "keyword")["hits"]
    assert len({hit["path"], *hit["copies"]}) == len(NAMES)
    assert codes(either, "--level", "full") <= {"unportable-name", "duplicate"}
    either("ls", code=0)
    for name in NAMES:
        os.unlink(folder + name)
    either("sync", "--forget-missing", code=None)
    assert either.found("hostile words") == []


def test_what_is_no_file(either: Any) -> None:
    """Pipes, sockets, devices and files of a terabyte are told and never opened."""
    os.mkfifo(either.chunked / "pipe.md")
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(either.chunked)
    listener.bind("socket.md")
    listener.close()
    with open(either.chunked / "sparse.md", "wb") as file:
        file.truncate(1 << 40)
    special = {"pipe.md", "socket.md"}
    if os.geteuid() == 0:
        os.mknod(either.chunked / "device.md", 0o600 | 0o020000, os.makedev(1, 5))
        special.add("device.md")
    for level in ("fast", "full"):
        done = either.json("verify", "--level", level, code=1)
        told = {finding["path"]: finding["code"] for finding in done["findings"]}
        assert {path for path, code in told.items() if code == "special-file"} == {
            f"chunked/{name}" for name in special
        }
        assert told["chunked/sparse.md"] == "oversized"
    either("sync", code=None)
    assert either.json("status", code=1)["drift"]["oversized"] == ["chunked/sparse.md"]


def _as_link(sidecar: Path) -> None:
    sidecar.rename(sidecar.with_name("elsewhere"))
    sidecar.symlink_to("elsewhere", target_is_directory=True)


def _as_everybody_s(sidecar: Path) -> None:
    sidecar.chmod(0o777)


def _as_another_s(sidecar: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(sidecar, 12_345, 12_345)


@pytest.mark.parametrize("planted", [_as_link, _as_everybody_s, _as_another_s])
def test_a_sidecar_that_could_be_planted(either: Any, planted: Callable[[Path], None]) -> None:
    """A sidecar that is a link, open to all, or another user's is told, and never opened."""
    either.write("file_index/chunked/a.md", "Words.\n")
    either.sync()
    planted(either.sidecar)
    assert codes(either) >= {"unsafe-sidecar"}
    for words in (["status"], ["sync"], ["search", "words"], ["ls"], ["show", "chunked/a.md"]):
        done = either(*words, code=4)
        assert "not safe to open" in done.stderr
        assert advised(done.stderr)


def test_a_view_in_a_planted_catalog_calls_nothing(workspace: Any) -> None:
    """A catalog that brings tables, views or triggers of its own is put aside."""
    workspace.write("file_index/chunked/a.md", "Words.\n")
    workspace.sync()
    connection = sqlite3.connect(workspace.sidecar / "catalog.sqlite")
    connection.execute("CREATE TRIGGER planted AFTER DELETE ON files BEGIN SELECT 1; END")
    connection.commit()
    connection.close()
    assert "catalog-damaged" in codes(workspace)
    workspace.sync()
    workspace.assert_settled()


# Names that lead out, given to whatever takes a text

OF_THE_CALLER: Final = {
    ("add", "paths"): "reads what a person names",
    ("plan_add", "paths"): "reads what a person names",
    ("import_from", "source"): "reads what a person names",
    ("import_embeddings", "path"): "reads what a person names",
    ("export", "target"): "writes where a person says",
    ("export_embeddings", "path"): "writes where a person says",
}
"""A file that a person names wherever it is: what no reader of a store names."""
PATHS_OF_REPAIR: Final = ("paths", "ours", "theirs", "remove")
OWN: Final = "chunked/own.md"
_IS_TEXT: Final = re.compile(r"\bstr\b")


def _lures(root: Path, outside: Path) -> list[str]:
    """Names of a file outside of the store, as strangers write them."""
    for folder in (root, root / "chunked"):
        (folder / "way.md").symlink_to(outside / "source.md")
        (folder / "way").symlink_to(outside, target_is_directory=True)
    here = os.path.relpath(outside, root)
    return [
        *(f"{start}{here}/source.md" for start in ("", "chunked/../", "./", "source/../")),
        *(f"{start}{outside}/source.md" for start in ("", "file://", "chunked/")),
        *(f"chunked/../{here}/sub/chunk1.md:1", f"../{here}/source.md"),
        *("way.md", "chunked/way.md", "way/source.md", "chunked/way/source.md", "way"),
        *("..", "../..", "chunked/../..", here, str(outside)),
    ]


def _takers(owner: type) -> Iterator[tuple[str, str]]:
    """Each public method with each parameter of it that takes texts."""
    for name, method in inspect.getmembers(owner, inspect.isfunction):
        for parameter in inspect.signature(method).parameters.values():
            is_own = name.startswith("_") or parameter.annotation is inspect.Parameter.empty
            if not is_own and _IS_TEXT.search(str(parameter.annotation)):
                yield name, parameter.name


def _lured(method: Callable[..., Any], chosen: str, lure: str, others: dict[str, Any]) -> Any:
    """Call it with a name for one of its parameters, and good values for what else it needs."""
    leading, named = list[Any](), dict[str, Any]()
    parameters = inspect.signature(method).parameters.values()
    is_variadic = any(one.kind is one.VAR_POSITIONAL and one.name == chosen for one in parameters)
    for one in parameters:
        if one.name == chosen:
            value: Any = [lure] if "Sequence[str]" in str(one.annotation) else lure
        elif one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            value = others[one.name]
        else:
            continue
        if one.kind is one.VAR_KEYWORD:
            named |= dict.fromkeys(PATHS_OF_REPAIR, value)
        elif one.kind is one.VAR_POSITIONAL or (is_variadic and one.kind is not one.KEYWORD_ONLY):
            leading.append(value)
        else:
            named[one.name] = value
    return method(*leading, **named)


def _everything(outside: Path, root: Path) -> dict[str, bytes]:
    """What lies around the store."""
    return {
        str(path): path.read_bytes()
        for path in outside.parent.rglob("*")
        if path.is_file() and not path.is_relative_to(root)
    }


def _own_store(root: Path, outside: Path, layout: Any) -> list[str]:
    """A store of one document, with links that lead out; returns the names that do."""
    (root / "chunked").mkdir(parents=True)
    (root / OWN).write_text("# Own\n\nOwn words.\n")
    lures = _lures(root, outside)
    with filestore.create(root, embedder="builtin", layout=layout) as store:
        store.sync()
    return lures


@pytest.mark.long
@pytest.mark.parametrize("layout", ["tree", "in-place"])
def test_no_name_leads_out_of_a_store(tmp_path: Path, outside: Path, layout: Any) -> None:
    """Whatever public function takes it: nothing outside is told, and nothing written there."""
    root = tmp_path / "kb"
    lures = _own_store(root, outside, layout)
    before, answered = _everything(outside, root), set[str]()
    others: dict[str, Any] = {
        "path": OWN,
        "to": "chunked/new.md",
        "text": "x",
        "texts": "x",
        "into": "new",
    }
    others |= {"form": "jsonl", "target": str(root / "out"), "written": "own.md", "most": 9}
    others |= {"questions": [Question(id="1", line=1, query="own", relevant={OWN: 1})]}
    others |= {"mode": "keyword", "truth": False, "only": [], "query": "own", "new": "x"}
    with InspectedStore(root) as store:
        for owner in (store, store.listing, store.summaries, store.explorer):
            for name, parameter in _takers(type(owner)):
                if (name, parameter) in OF_THE_CALLER:
                    continue
                for lure in (OWN, *lures):
                    with contextlib.suppress(FilestoreError, KeyError, ValueError):
                        said = repr(_lured(getattr(owner, name), parameter, lure, others))
                        assert WORDS not in said, (name, parameter, lure)
                        answered.add(name)
    # The good name is answered, as long as nothing moved that document.
    assert answered >= {"about_file", "check", "document", "links"}
    assert _everything(outside, root) == before


@pytest.mark.long
@pytest.mark.parametrize("caller", [PERSON, AGENT], ids=["person", "agent"])
def test_no_name_leads_out_of_a_served_store(tmp_path: Path, outside: Path, caller: Any) -> None:
    """Whatever request takes it, and in whatever value; nor does a document that is added."""
    root = tmp_path / "kb"
    lures = _own_store(root, outside, "tree")
    before, answered = _everything(outside, root), set[str]()
    needed: dict[str, Any] = {
        "query": "own",
        "path": OWN,
        "to": "chunked/new.md",
        "resources": ["own.md"],
    }
    needed |= {"paths": ["own.md"], "questions": [{"query": "own", "relevant": [OWN]}]}
    with Stores.open([str(root)], Access(writes=True)) as stores:
        for name, operation in ROUTES.items():
            known = operation.schema["properties"]
            values = {key: needed[key] for key in operation.schema["required"]}
            for key in known.keys() - {"store"}:
                for lure in (OWN, *lures):
                    given = values | {key: [lure] if known[key].get("type") == "array" else lure}
                    with contextlib.suppress(FilestoreError, KeyError, ValueError):
                        said = asyncio.run(stores.named(None).ask(operation, given, caller))
                        assert WORDS not in json.dumps(said), (name, key, lure)
                        answered.add(name)
    assert answered >= {"show", "document", "links", "similar", "search"}
    assert _everything(outside, root) == before
