"""Backends in files: what a kill, damage and strangers leave of them."""

import os
from pathlib import Path
from typing import Any, Final

import faiss
import pytest

from filestore.core.hashing import content_hash
from filestore.fs import disk
from filestore.index import _file_rows, open_backend
from filestore.index.backend import (
    BackendChoice,
    BackendSettingsWrong,
    BackendUnreachable,
    BackendUnusable,
    EmbedConfig,
    IndexBackend,
    Item,
    WrongDimension,
)
from tests.advice import all_words
from tests.vectors import unit_rows

EMBED: Final = EmbedConfig(fingerprint="a model/1", dimension=24)
KINDS: Final[dict[str, dict[str, object]]] = {"local": {}, "faiss": {"path": "vectors.faiss"}}
FILES: Final = {"local": ("index.jsonl",), "faiss": ("vectors.faiss.jsonl", "vectors.faiss")}


def opened(kind: str, folder: Path, **more: object) -> IndexBackend:
    options = {**KINDS[kind], **more}
    choice = BackendChoice(kind=kind, options=options, folder=str(folder), environment={})
    backend = open_backend(choice)
    backend.load()
    backend.set_embed_config(EMBED)
    return backend


def saved(kind: str, folder: Path, count: int, generation: int = 1) -> None:
    """Hold items up to a number, and save."""
    with opened(kind, folder) as backend:
        backend.upsert(
            Item(id=key, vector=row, doc_id=str(key), content_hash="h", text="a body")
            for key, row in enumerate(unit_rows(count), start=1)
        )
        backend.save(owner="me", generation=generation)


def held(kind: str, folder: Path) -> tuple[int, int]:
    """The generation, and how many are found."""
    with opened(kind, folder) as backend:
        stamp = backend.stamp()
        assert stamp
        return stamp.generation, len(backend.query(unit_rows(1)[0]))


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FILES for name in FILES[kind]])
def test_no_damage_is_passed_over(kind: str, name: str, tmp_path: Path) -> None:
    """Any byte changed, any cut and anything added is said, with the file and what to do."""
    saved(kind, tmp_path, 4)
    path = tmp_path / name
    whole = path.read_bytes()
    damaged = [whole[:at] for at in range(0, len(whole), 37)]
    damaged += [whole + b"x", whole + whole, b""]
    for at in range(0, len(whole), 23):
        changed = bytearray(whole)
        changed[at] ^= 1
        damaged.append(bytes(changed))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(BackendUnusable, match=name) as caught:
            opened(kind, tmp_path)
        assert "move" in all_words(caught.value)
    path.write_bytes(whole)
    assert held(kind, tmp_path) == (1, 4)


def test_damaged_lines_are_numbered(tmp_path: Path) -> None:
    """A person sees which lines of how many."""
    saved("local", tmp_path, 9)
    path = tmp_path / "index.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2], lines[6] = lines[2].replace(b"a body", b"a b0dy"), lines[6][:-9] + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(BackendUnusable, match="2 of 9 lines are damaged: 3, 7"):
        opened("local", tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_leaves_one_whole_index(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each file that is put into place: all of before, or all of the new."""

    class Killed(BaseException):
        pass

    states, after = set(), 0
    for allowed in range(12):
        folder = tmp_path / str(allowed)
        saved(kind, folder, 3)
        left = iter(range(allowed))

        def dying(real: Any, left: Any = left) -> Any:
            def call(*words: Any, **options: Any) -> Any:
                if next(left, None) is None:
                    raise Killed
                return real(*words, **options)

            return call

        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "fsync"):
                patch.setattr(os, name, dying(getattr(os, name)))
            try:
                saved(kind, folder, 5, generation=2)
                after += 1
            except Killed:
                pass
        states.add(held(kind, folder))
        saved(kind, folder, 6, generation=3)
        assert held(kind, folder) == (3, 6)
    assert states == {(1, 3), (2, 5)}
    assert after


@pytest.mark.parametrize("kind", KINDS)
def test_a_strangers_file_is_neither_read_nor_lost(kind: str, tmp_path: Path) -> None:
    """What stands at the path and is not ours stays as it is, whatever is asked."""
    note = tmp_path / "note.md"
    note.write_text("mine\n")
    choice = BackendChoice(
        kind=kind, options={"path": "note.md"}, folder=str(tmp_path), environment={}
    )
    backend = open_backend(choice)
    with pytest.raises(BackendUnusable, match=r"note\.md"):
        backend.load()
    if kind == "local":
        backend.set_embed_config(EMBED)
        for attempt in (lambda: backend.save(owner="me", generation=1), backend.clear):
            with pytest.raises(BackendUnusable, match=r"note\.md"):
                attempt()
    backend.clear() if kind == "faiss" else None
    assert note.read_text() == "mine\n"


@pytest.mark.parametrize("kind", KINDS)
def test_no_pipe_is_waited_for(kind: str, tmp_path: Path) -> None:
    """A pipe, a folder or a link in the place of a file is an error at once."""
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        saved(kind, folder, 2)
        path = folder / FILES[kind][-1]
        path.unlink()
        make(str(path))
        with pytest.raises(BackendUnreachable, match=path.name):
            opened(kind, folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_what_was_there(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says so, and the index of before is whole."""
    saved(kind, tmp_path, 3)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(disk.WriteFailedError, match="No space left"):
            saved(kind, tmp_path, 5, generation=2)
    assert held(kind, tmp_path) == (1, 3)


def test_faiss_never_reads_what_a_stranger_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file and a hash that agree may both be a stranger's: any size in it is checked first."""
    saved("faiss", tmp_path, 4)
    whole = (tmp_path / "vectors.faiss").read_bytes()

    def harmed(*_: object) -> None:
        raise AssertionError("FAISS was given a stranger's bytes")

    for name in ("read_index", "deserialize_index"):
        monkeypatch.setattr(faiss, name, harmed)
    assert held("faiss", tmp_path) == (1, 4)
    lines = tmp_path / "vectors.faiss.jsonl"
    head, rows = _file_rows._read_lines(str(lines))
    evil = [whole[:at] for at in (0, 3, 80, 200, len(whole) - 1)] + [whole + b"x"]
    for at in range(0, 37 * 2 + 8, 1):
        for byte in (whole[at] ^ 1, 0xFF, 0x80):
            evil.append(whole[:at] + bytes([byte]) + whole[at + 1 :])
    refused = 0
    for data in evil:
        (tmp_path / "vectors.faiss").write_bytes(data)
        more = {"faiss": content_hash(data).hex()}
        lines.write_bytes(_file_rows.written(head.stamp, rows, more))
        try:
            assert held("faiss", tmp_path) == (1, 4)
        except BackendUnusable:
            refused += 1
    assert refused > len(evil) / 3


def test_faiss_says_which_metrics_and_lengths_it_takes(tmp_path: Path) -> None:
    """Both metrics rank vectors of length 1 alike; another length than `dim` is refused."""
    with pytest.raises(BackendSettingsWrong, match="cosine or l2"):
        opened("faiss", tmp_path, metric="hamming")
    with pytest.raises(WrongDimension, match="25"):
        opened("faiss", tmp_path, dim=25)
    saved("faiss", tmp_path, 9)
    answers = []
    for metric in ("cosine", "l2"):
        with opened("faiss", tmp_path, metric=metric) as backend:
            answers.append(backend.query(unit_rows(1, seed=3)[0], top_k=4))
    assert answers[0] == answers[1] != []
