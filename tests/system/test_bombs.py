"""Documents that are made to do harm are read or refused by name, and nothing else happens."""

import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from filestore.extract.pool import Extraction, ReadingLimits
from tests.advice import advised
from tests.system.bombs import BOMBS, CANARY, Lure

LIMITS = ReadingLimits(timeout_s=4, memory_bytes=1 << 30)
"""Less than usual: a bomb that is only stopped by a limit is stopped by any."""

REFUSED = {
    "overlapping.docx": "overlaps another one",
    "quoted overlap.docx": "overlaps another one",
    "zip64 lies.docx": "unpacks to 8,796,093,022,208.0 MiB",
    "empty members.docx": "more than 10,000 parts",
    "up.docx": "leads out of the file",
    "absolute.docx": "leads out of the file",
    "backslash.docx": "leads out of the file",
    "nul.docx": "leads out of the file",
    "twice.docx": "two of its parts are called",
    "linked body.docx": "expected well-formed XML",
    "encrypted.docx": "encrypted with a password",
    "strongly encrypted.docx": "encrypted with a password",
    "method 14.docx": "compression method 14",
    "prepended.docx": "found other data",
    "kept small.docx": "times its size",
    "external.docx": "document type or entity definition",
    "external.pptx": "document type or entity definition",
    "parameter.docx": "document type or entity definition",
    "utf-16 entity.docx": "document type or entity definition",
    "laughs.docx": "document type or entity definition",
    "quadratic.docx": "document type or entity definition",
    "deep.docx": "Excessive depth",
    "circle.pdf": "expected at most 20,000",
    "deep page tree.pdf": "damaged or cut off",
    "deep.ipynb": "not JSON",
    "number.ipynb": "not JSON",
    "form in itself.pdf": "form in itself.pdf",  # out of time or out of stack
}
"""What is said of some of them, whatever the machine."""


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port on the loopback, and what was sent to it."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                heard.append(connection.recv(200))

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    yield server.getsockname()[1], heard
    # Closing alone would not wake the thread up.
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def files_outside(folder: Path) -> set[Path]:
    """What lies around a store."""
    return {path for path in folder.rglob("*") if "file_index" not in path.parts}


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_bombs(
    every: int,
    workspace: Any,
    tmp_path: Path,
    listener: tuple[int, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each ends in time, named with reason and remedy where it is refused; the rest goes on."""
    monkeypatch.setattr("filestore.ingest.add.Extraction", partial(Extraction, limits=LIMITS))
    port, heard = listener
    workspace.write("first.md", "# First\n\nWords that were there before.\n")
    workspace("add", "first.md")
    before = workspace.truth()
    canary = workspace.write("private/canary.txt", CANARY)
    lure = Lure(file=str(canary), address=f"http://127.0.0.1:{port}")
    bombs = list(BOMBS)[::every]
    for bomb in bombs:
        workspace.write(f"papers/{bomb.name}", bomb.make(lure))
    workspace.write("papers/good.md", "# Good\n\nGood words about zinc.\n")
    around = files_outside(tmp_path)

    done = workspace.json("add", "papers", code=5)

    assert [one["resource"] for one in done["added"]] == ["papers"]
    assert all(one["remedy"] or advised(one["error"]) for one in done["failed"])
    failed = {Path(one["source"]).name: one["error"] for one in done["failed"]}
    assert "good.md" not in failed
    (good,) = workspace.found("zinc")
    assert "Good words about zinc." in workspace("show", good).stdout
    assert all(name in error for name, error in failed.items())
    for name in REFUSED.keys() & {bomb.name for bomb in bombs}:
        said = failed.get(name, "read")
        # A machine that is very slow may give up on any of them.
        assert REFUSED[name] in said or "was not read within" in said, name
    assert heard == []
    assert files_outside(tmp_path) == around
    truth = workspace.truth()
    assert {path: truth[path] for path in before} == before
    assert not any(CANARY.encode() in data for data in truth.values())
    # What could not be read lies in an added folder, and is not in the store.
    checked = workspace.json("verify", "--level", "full", code=None)
    assert {one["code"] for one in checked["findings"] if one["severity"] != "I"} <= {
        "source-untracked"
    }
    again = workspace.sync(code=None)
    assert again["applied"] == []
    assert again["embedded"] == 0
