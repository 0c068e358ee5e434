"""What programs write: never settings, hidden files or conventions, and no name that misleads."""

import asyncio
import contextlib
import itertools
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore.core.errors import FilestoreError
from filestore.core.hashing import revision_of
from filestore.server.http.app import Upload, take_uploads
from filestore.server.operations import OPERATIONS, Operation, fields_for
from filestore.server.stores import Access, Caller, Stores
from filestore.store import Store

AGENT = Caller(name="agent", writes=True, person=False)
LAYOUTS = ("in-place", "tree", "flat")
WRITING = [one for one in OPERATIONS if one.writes and (one.route or one.tool)]
KEPT = ("filestore.toml", ".gitattributes", ".gitignore", ".hidden/secret.md", "Our Cafe\u0301.md")
"""The last one has the conventions."""
WRONG_NAMES = (
    *("a\nb", "a\rb", "a\0b", "a\x1b[31mb", "a\u202eb", "a\u200bb", "a\x9bb", "a\u2028b", "\ud800"),
    *("x" * 10_000, "notes/" * 200, "d/" * 66 + "x", "../x", "a/../../x", "/tmp/x", ".git/x"),
    *("a/.b/c", "a\\b", "a /b.", "con", "..", ".", "~/.ssh/x", "a/.", ".filestore/x"),
)


def made(root: Path, layout: str) -> Path:
    """A store with a document of each kind, conventions, and files that programs leave alone."""
    root.mkdir()
    tree = root if layout == "in-place" else root / "chunked"
    for name in ("notes/one.md", *KEPT[2:]):
        place = tree if name.startswith("notes") and layout != "flat" else root
        path = place / (name if place is tree or "notes" not in name else "chunked/one.md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# One\n\nA text of a person.\n")
    (root / "filestore.toml").write_text(
        f'layout = "{layout}"\nembedder = "builtin"\n'
        '[agents]\nconventions = "Our Cafe\u0301.md"\nread_only = ["*.txt", "status=final"]\n'
    )
    (root / ".gitattributes").write_text("*.md text\n")
    with filestore.open(root) as store:
        store.sync()
    return root


@pytest.fixture(params=LAYOUTS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store of each layout, in a folder of its own."""
    (tmp_path / request.param).mkdir()
    return made(tmp_path / request.param / "kb", request.param)


def spellings(name: str, root: Path) -> list[str]:
    """A path as it may be written to get past a check."""
    folder, _, last = name.rpartition("/")
    inner = f"{folder}/" if folder else ""
    return [
        *(name, f"./{name}", f"notes/../{name}", f"chunked/../{name}", f"{inner}./{last}"),
        *(name.upper(), name.title(), f"{name}.", f"{name} ", f" {name}", name.replace("/", "\\")),
        *(unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)),
        *(str(root / name), f"../{root.name}/{name}", f"notes\\..\\{name}", f"link/{name}"),
        *(f"{name}:1", name.removesuffix(".md"), f"{name}\u200b"),
    ]


def asked(operation: Operation, path: str, value: str) -> Iterator[dict[str, Any]]:
    """An operation with a value in each of its texts, the others being usual."""
    fields = fields_for(operation.kind)
    usual: dict[str, Any] = {"text": "# One\n\nNew.\n", "path": path, "old": "text", "new": "word"}
    usual |= {"resources": ["notes"], "paths": ["notes/one.md"], "to": "notes/two.md"}
    # A revision is that of the file, so that nothing is refused for another one.
    fixed = ("text", "old", "new", "revision")
    for name, field in fields.items():
        if field.kind is str and not field.choices and name not in fixed:
            needed = {key: usual.get(key, value) for key, one in fields.items() if one.required}
            more = {key: usual[key] for key in ("old", "new") if key in fields}
            yield needed | more | {name: [value] if field.several else value}


def _ask(stores: Stores, operation: Operation, given: dict[str, Any]) -> str:
    """What is answered, in words; of a file that is there the revision is known."""
    if "revision" in fields_for(operation.kind):
        root = Path(stores.named(None).root)
        with contextlib.suppress(OSError, ValueError):
            data = (root / given["path"]).read_bytes()
            name = str((root / given["path"]).resolve().relative_to(root.resolve()))
            given = given | {"revision": revision_of(name, data)}
    try:
        return json.dumps(asyncio.run(stores.named(None).ask(operation, given, AGENT)))
    except FilestoreError as error:
        return f"{error.message} {error.remedy}"


def _files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not {".sidecar", ".filestore", ".undo"}.intersection(path.parts)
    }


def test_no_operation_writes_what_is_for_people(place: Path) -> None:
    """Settings, hidden files and the conventions stay as they are, however they are named."""
    (place / "link").symlink_to(".")
    (place / "notes-link.md").symlink_to(KEPT[-1])
    path = "notes/one.md" if (place / "notes/one.md").exists() else "chunked/notes/one.md"
    before = _files(place)
    # Each spelling of one of them.
    each = [spellings(name, place) for name in KEPT]
    names = [every[at] for at, every in zip(range(len(each[0])), itertools.cycle(each))]
    names += [*KEPT, "notes-link.md", "link/.gitattributes", ".filestore/x.md"]
    with Stores.open([str(place)], Access(writes=True)) as stores:
        for operation in WRITING:
            for name in names[:: 1 if "in-place" in str(place) else 3]:
                for given in asked(operation, path, name):
                    _ask(stores, operation, given)
            after = _files(place)
            assert {kept: after.get(kept) for kept in KEPT} == {
                kept: before[kept] for kept in KEPT
            }, operation.name
    hidden = [one for one in _files(place) if any(p[0] == "." for p in one.split("/"))]
    assert sorted(hidden) == sorted(one for one in KEPT if one.startswith("."))


def test_no_name_from_a_program_misleads(place: Path) -> None:
    """A wrong folder or title is refused with a reason, or cleaned; nothing is written outside."""
    outside = _files(place.parent).keys() - {f"kb/{one}" for one in _files(place)}
    path = "notes/one.md" if (place / "notes/one.md").exists() else "chunked/notes/one.md"
    with Stores.open([str(place)], Access(writes=True)) as stores:
        for operation in WRITING:
            for name in WRONG_NAMES[:: 1 if "in-place" in str(place) else 2]:
                for given in asked(operation, path, name):
                    answer = _ask(stores, operation, given)
                    assert answer.replace("\n", "").isprintable(), (operation.name, given, answer)
                    assert len(answer) < 15_000
    found = _files(place.parent)
    assert {one for one in found if not one.startswith("kb/")} == outside
    for one in found:
        assert one.isprintable(), one
        assert one.count("/") < 64
        assert all(part not in ("", ".", "..") and len(part) <= 255 for part in one.split("/"))
    with filestore.open(place) as store:
        codes = {finding.code for finding in store.verify(level="full").findings}
    assert codes.isdisjoint({"unportable-name", "name-collision", "unreadable", "untracked"})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_read_only_to_programs_is_read(layout: str, tmp_path: Path) -> None:
    """By path, tag or property; also where an edit of the program would make it so."""
    root = made(tmp_path / "kb", layout)
    path = next(one for one in _files(root) if one.endswith("one.md"))
    (root / path).write_text("---\nstatus: final\n---\n\nA text of a person.\n")
    with Store.open(root, for_programs=True) as store:
        assert "person" in store.show(path).body
        with pytest.raises(FilestoreError, match="read-only for programs"):
            store.edit_note(path, old="person", new="program")
        (root / path).write_text("A text of a person.\n")
        with pytest.raises(FilestoreError, match="read-only for programs"):
            store.add_note("A text.", metadata={"status": "Final"})
        store.edit_note(path, old="person", new="program")
    with Store.open(root) as store:
        (root / path).write_text("---\nstatus: final\n---\n\nA text of a person.\n")
        store.edit_note(path, old="person", new="reader")


def test_a_document_that_is_uploaded_replaces_nothing_closed(tmp_path: Path) -> None:
    """Its name is judged as any other."""
    root = made(tmp_path / "kb", "tree")
    with (root / "filestore.toml").open("a") as file:
        file.write('closed = ["source/own.md", "secret/"]\n')
    with Store.open(root, for_programs=True) as store:
        for name, into in (("own.md", ""), ("OWN.md", ""), ("x.md", "secret"), ("a.txt", "")):
            with pytest.raises(FilestoreError, match="programs"):
                take_uploads(store, [Upload(name=name, data=b"# x\n")], into=into, replace=True)
        take_uploads(store, [Upload(name="free.md", data=b"# x\n")], into="", replace=False)
    assert [one.name for one in (root / "source").iterdir()] == ["free.md"]
