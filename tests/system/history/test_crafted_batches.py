"""Originals that a stranger made up: `.undo/` may come with an archive, and must lead nowhere.

Each case plants a batch; whatever undo and redo then do, nothing changes but chunk files and copies
of sources, and nothing becomes a program.
"""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.core.hashing import content_hash
from filestore.git import attributes

PAYLOAD: Final = b"#!/bin/sh\necho taken over\n"
TERMINAL: Final = "\x1b]0;title\x07\x1b[2J\u202e"

Batch = dict[str, Any]
Plant = Callable[[Path, Batch], None]


def version(data: bytes = PAYLOAD, *, mode: Any = 0o644, number: int = 0) -> dict[str, Any]:
    """What a file held, kept as the `before` side."""
    return {"hash": content_hash(data).hex(), "mode": mode, "blob": f"{number}.before"}


def entry(path: Any, **values: Any) -> dict[str, Any]:
    """A file that undo would make."""
    raw = path.encode("utf-8", "surrogateescape").decode("latin-1")
    return {"path": raw, "before": version(**values), "after": None}


def batch(*entries: dict[str, Any], **values: Any) -> Batch:
    """A record of them."""
    usual = {"format": 2, "what": "rm notes", "made": 1, "wanted": "after", "sequence": 0}
    return {**usual, "files": list(entries), **values}


def to(path: str) -> Batch:
    """A batch that would write a file."""
    return batch(entry(path))


REFUSED: Final[dict[str, Batch]] = {
    "absolute": to("/tmp/taken"),
    "absolute below chunked": to("chunked//tmp/taken"),
    "out of the root": to("../taken"),
    "out of the root from chunked": to("chunked/../../taken"),
    "a null byte": to("chunked/a\0/b.md"),
    "the settings": to("filestore.toml"),
    "the settings of git": to("chunked/.gitattributes"),
    "a hook": to(".git/hooks/post-checkout"),
    "a hook of a store below": to("chunked/.git/hooks/post-checkout"),
    "a hook of git in capitals": to("source/.GIT/hooks/post-checkout"),
    "a hook, short name": to("source/GIT~1/hooks/post-checkout"),
    "a hook, with what is not seen": to("source/\u200c.g\u200dit/hooks/post-checkout"),
    "the sidecar": to(".sidecar/lock"),
    "its own folder": to(".undo/000002/batch.json"),
    "a hidden folder": to("chunked/.x/y.md"),
    "a hidden file": to("source/.bashrc"),
    "no name": to("chunked/"),
    "another case": to("Chunked/a.md"),
    "the same file twice": batch(entry("chunked/new.md"), entry("chunked/new.md", number=1)),
    "a negative mode": batch(entry("chunked/new.md", mode=-1)),
    "a mode as text": batch(entry("chunked/new.md", mode="0644")),
    "a mode without end": batch(entry("chunked/new.md", mode=1 << 40)),
    "a fraction of a mode": batch(entry("chunked/new.md", mode=0.5)),
    "a short hash": batch({**entry("chunked/new.md"), "after": {"hash": "00", "mode": None}}),
    "an endless sequence": batch(entry("chunked/new.md"), sequence=1e308),
    "a negative sequence": batch(entry("chunked/new.md"), sequence=-1),
    "an endless time": batch(entry("chunked/new.md"), made="9" * 5000),
    "a group that is a path": batch(entry("chunked/new.md"), group="../../x"),
    "files that are none": batch(files=3),
    "a path that is none": batch({"path": 7, "before": None, "after": None}),
    "another format": batch(entry("chunked/new.md"), format=99),
}
"""Records that are refused whole."""


def as_pipe(folder: Path, record: Batch) -> None:
    """The content is a pipe nobody writes to."""
    plant(folder, record)
    (folder / "0.before").unlink()
    os.mkfifo(folder / "0.before")


def as_link(folder: Path, record: Batch) -> None:
    """The content is a link to a file of the user's."""
    plant(folder, record)
    (folder / "0.before").unlink()
    (folder / "0.before").symlink_to(folder.parents[2] / "secret")


def as_huge(folder: Path, record: Batch) -> None:
    """The content claims a terabyte."""
    plant(folder, record)
    os.truncate(folder / "0.before", 1 << 40)


def as_huge_record(folder: Path, record: Batch) -> None:
    """The record claims a terabyte."""
    plant(folder, record)
    os.truncate(folder / "batch.json", 1 << 40)


def as_linked_record(folder: Path, record: Batch) -> None:
    """The record is a link."""
    plant(folder, record)
    (folder / "batch.json").rename(folder / "other.json")
    (folder / "batch.json").symlink_to("other.json")


def as_linked_folder(folder: Path, record: Batch) -> None:
    """The batch lies elsewhere."""
    elsewhere = folder.parents[2] / "elsewhere"
    plant(elsewhere, record)
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(elsewhere)


def behind_link(folder: Path, record: Batch) -> None:
    """The folder that is written to is a link out of the store."""
    plant(folder, record)
    outside = folder.parents[2] / "outside"
    outside.mkdir()
    (folder.parents[1] / "chunked" / "link").symlink_to(outside)


def over_link(folder: Path, record: Batch) -> None:
    """The file that is written to is a link to a file of the user's."""
    plant(folder, record)
    (folder.parents[1] / "chunked" / "new.md").symlink_to(folder.parents[2] / "secret")


PLANTED: Final[dict[str, tuple[Plant, Batch]]] = {
    "a pipe as content": (as_pipe, to("chunked/new.md")),
    "a link as content": (as_link, to("chunked/new.md")),
    "content without end": (as_huge, to("chunked/new.md")),
    "a record without end": (as_huge_record, to("chunked/new.md")),
    "a link as record": (as_linked_record, to("chunked/new.md")),
    "a link as folder": (as_linked_folder, to("chunked/new.md")),
    "a link as target folder": (behind_link, to("chunked/link/new.md")),
    "a link as target": (over_link, to("chunked/new.md")),
    "content of another hash": (
        lambda folder, record: plant(folder, record, b"Other bytes.\n"),
        to("chunked/new.md"),
    ),
}
"""Records that are sound, and what else lies there is not."""


def plant(folder: Path, record: Batch, data: bytes = PAYLOAD) -> None:
    """Put a batch where the store looks for it."""
    folder.mkdir(parents=True)
    (folder / "batch.json").write_text(json.dumps(record))
    for number in range(len(record["files"]) if isinstance(record["files"], list) else 0):
        (folder / f"{number}.before").write_bytes(data)


@pytest.fixture
def visited(workspace: Any) -> Any:
    """A store with a note, beside a file of the user's."""
    workspace.write("note.md", "Words of the note.\n")
    workspace.write("secret", "Mine.\n")
    workspace("add", "note.md")
    for path in (workspace.store / ".undo" / "000001").iterdir():
        path.unlink()
    (workspace.store / ".undo" / "000001").rmdir()
    return workspace


def everything(workspace: Any) -> dict[str, tuple[int, bytes]]:
    """Every file of the work tree but derived ones: its type and permissions, its bytes."""
    found = {}
    for path in sorted(workspace.folder.parent.rglob("*")):
        name = path.relative_to(workspace.folder.parent).as_posix()
        if "/.sidecar/" in f"/{name}/" or "/.undo/" in f"/{name}/" or "/.git/" in f"/{name}/":
            continue
        mode = path.lstat().st_mode
        found[name] = mode, path.read_bytes() if stat.S_ISREG(mode) else b""
    hooks = workspace.folder / ".git" / "hooks"
    return found | {path.name: (0, path.read_bytes()) for path in hooks.iterdir()}


def tried(workspace: Any) -> None:
    """Whatever a person might do with it."""
    for words in (["undo", "--list"], ["undo"], ["undo", "000001"], ["redo"], ["redo", "000001"]):
        for done in (workspace(*words, code=None), workspace(*words, "--json", code=None)):
            assert done.code in (0, 1, 3, 4), done
            assert "\x1b" not in done.stdout + done.stderr
    workspace("status", code=None)
    workspace("sync", code=None)


@pytest.mark.parametrize("name", REFUSED)
def test_a_made_up_record_is_refused(visited: Any, name: str) -> None:
    """Nothing is written anywhere, and the list says that the record is damaged."""
    plant(visited.store / ".undo" / "000001", REFUSED[name])
    before = everything(visited)
    (listed,) = visited.json("undo", "--list")["batches"]
    assert listed["state"] == "damaged"
    tried(visited)
    assert everything(visited) == before


ALIKE: Final = (
    ("chunked/new.md", "chunked/NEW.md"),
    ("chunked/caf\u00e9.md", "chunked/cafe\u0301.md"),
)
"""Two names of which some file systems make one."""


@pytest.mark.parametrize("names", ALIKE, ids=["case", "composition"])
def test_two_names_of_one_file_are_refused(visited: Any, names: tuple[str, str]) -> None:
    """Where the file system takes them for one, one of the two would be written over the other."""
    folder = visited.store / ".undo" / "000001"
    plant(folder, batch(*(entry(name, number=number) for number, name in enumerate(names))))
    if not (folder / "BATCH.JSON").exists():
        # What such a file system would say of the record under its other name.
        os.link(folder / "batch.json", folder / "BATCH.JSON")
    before = everything(visited)
    assert visited.json("undo", "--list")["batches"][0]["state"] == "damaged"
    tried(visited)
    assert everything(visited) == before


def test_a_file_that_got_another_case_is_no_second_one(visited: Any) -> None:
    """One name before and the other one after: that change can be undone everywhere."""
    folder = visited.store / ".undo" / "000001"
    new = {"path": "chunked/NEW.md", "before": None, "after": version()}
    plant(folder, batch(entry("chunked/new.md"), new))
    if not (folder / "BATCH.JSON").exists():
        os.link(folder / "batch.json", folder / "BATCH.JSON")
    assert visited.json("undo", "--list")["batches"][0]["state"] != "damaged"


@pytest.mark.parametrize("name", PLANTED)
def test_what_lies_beside_a_record_is_not_trusted(visited: Any, name: str) -> None:
    """No link is followed, no pipe opened, nothing read that cannot be what was kept."""
    make, record = PLANTED[name]
    make(visited.store / ".undo" / "000001", record)
    before = everything(visited)
    tried(visited)
    assert everything(visited) == before


@pytest.mark.parametrize("mode", [0o4777, 0o2755, 0o1777, 0o7777, 0o777, 0o755, 0o111])
def test_nothing_becomes_a_program(visited: Any, mode: int) -> None:
    """Undo and redo set no bit that runs a file, whoever it would run as."""
    plant(visited.store / ".undo" / "000001", batch(entry("chunked/new.md", mode=mode)))
    visited("undo", code=None)
    assert (visited.chunked / "new.md").lstat().st_mode & 0o7777 == mode & 0o666


def test_names_that_are_not_utf8_are_files_like_others(visited: Any) -> None:
    """A name of any bytes is put where it belongs, and shown without its bytes."""
    plant(visited.store / ".undo" / "000001", to("chunked/n\udcff\x1b[2J.md"))
    done = visited("undo", code=None)
    assert "\x1b" not in done.stdout + done.stderr
    assert os.path.exists(os.fsencode(visited.chunked) + b"/n\xff\x1b[2J.md")


@pytest.mark.parametrize("what", [TERMINAL, "a" * 1_000_000, {"deep": ["er"]}])
def test_what_a_record_says_is_only_shown(visited: Any, what: Any) -> None:
    """The name of the command steers no terminal, and does not flood it."""
    plant(visited.store / ".undo" / "000001", batch(entry("chunked/new.md"), what=what))
    for words in (["undo", "--list"], ["undo"], ["redo"], ["status"]):
        done = visited(*words, code=None)
        assert len(done.stdout + done.stderr) < 5_000
        assert not set(TERMINAL) & {"\x1b", "\x07", "\u202e"} & set(done.stdout + done.stderr)


OURS: Final = attributes.FILE
ATTRIBUTES: Final = {
    "a filter": (OURS, b"* filter=lfs\n"),
    "a line more": (OURS, OURS + b"* text\n"),
    "a line less": (OURS, OURS.partition(b"\n")[2]),
    "none, over a person's": (b"*.png diff=exif\n" + OURS, None),
    "others, where there are none": (None, b"* working-tree-encoding=UTF-16\n"),
    "others, over an old store's": (attributes.OLD + b"\n", b"* text\n"),
}
"""What git is told now, and what a record would have it told."""


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("wanted", ["before", "after"])
def test_git_is_told_nothing_but_what_a_repair_tells_it(
    visited: Any, name: str, wanted: str
) -> None:
    """Any other lines are refused, in both directions, together with all that is beside them."""
    now, then = ATTRIBUTES[name]
    path = visited.store / ".gitattributes"
    path.unlink()
    if now is not None:
        path.write_bytes(now)
    folder = visited.store / ".undo" / "000001"
    other = "after" if wanted == "before" else "before"
    held = {wanted: then, other: now}
    sides = {side: None if data is None else version(data) for side, data in held.items()}
    files = {"path": ".gitattributes", **sides}, entry("chunked/new.md", number=1)
    plant(folder, batch(*files, wanted=other, sequence=int(wanted == "after")))
    for side, data in held.items():
        (folder / f"0.{side}").write_bytes(data or b"")
    before = everything(visited)
    done = visited("undo" if wanted == "before" else "redo", code=None)
    assert done.code in (3, 4)
    assert everything(visited) == before
