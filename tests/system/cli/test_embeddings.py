"""`filestore embeddings`: a clone with a pack embeds nothing, and no bad pack gets in."""

import os
import random
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import filestore
from filestore.embed.cache import EmbeddingCache
from filestore.embed.pack import Pack, Source, write
from tests.system.conftest import files_below, git_free, prose
from tests.system.embedding_server import EmbeddingServer, status, vectors, well

BUILTIN = "builtin/1:384"
TOPICS = ("amber", "basalt", "copper", "diorite", "emerald")


def cached(workspace: Any) -> dict[str, dict[bytes, bytes]]:
    """All that is in the cache of a store, by fingerprint and key."""
    path = workspace.sidecar / "embeddings.sqlite"
    if not path.exists():
        return {}
    with EmbeddingCache.open(str(path), read_only=True) as cache:
        return {name: dict(cache.rows(name)) for name in cache.fingerprints()}


def pack_of(path: Path, models: dict[str, dict[bytes, bytes]]) -> Path:
    """Write a pack of raw vectors by fingerprint and key."""
    sources = [
        Source(
            fingerprint=name,
            dimension=len(next(iter(rows.values()))) // 4,
            batches=[(sorted(rows), [rows[key] for key in sorted(rows)])],
        )
        for name, rows in models.items()
    ]
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    write(descriptor, sources)
    os.close(descriptor)
    return path


def strange(count: int, dimension: int = 384) -> dict[bytes, bytes]:
    """Vectors of texts that nobody has."""
    found = numpy.random.default_rng(5).standard_normal((count, dimension)).astype("<f4")
    found /= numpy.linalg.norm(found, axis=1, keepdims=True)
    chance = random.Random(5)
    return {chance.randbytes(32): one.astype("<f4").tobytes() for one in found}


@pytest.fixture
def filled(workspace: Any) -> Any:
    """A committed store with some notes, one with questions, and a summary."""
    for topic in TOPICS:
        workspace.write(f"{topic}.md", f"# {topic}\n\n{prose(topic)}")
    workspace("add", *(f"{topic}.md" for topic in TOPICS))
    workspace("enrich", "amber.md", "--questions", "2")
    workspace.summarize(
        "sum.md", "Stones", "On stones.", ["amber.md/chunk1.md"], questions=["Why?"]
    )
    workspace("sync")
    workspace.git("add", "-A")
    workspace.git("commit", "-q", "-m", "Notes")
    return workspace


@pytest.fixture
def clone(filled: Any, new_workspace: Callable[..., Any]) -> Any:
    """A clone of it by git."""
    made = new_workspace("clone", init=False)
    shutil.rmtree(made.folder)
    command = ["git", "clone", "-q", str(filled.folder), str(made.folder)]
    subprocess.run(command, check=True, capture_output=True, env=git_free())
    assert not made.sidecar.exists()
    return made


@pytest.fixture
def pack(filled: Any) -> Path:
    """What the store exports."""
    filled("embeddings", "export", "../notes.fspack")
    return Path(filled.folder.parent / "notes.fspack")


def test_a_clone_with_a_pack_embeds_nothing(filled: Any, pack: Path, clone: Any) -> None:
    """Bodies, questions and summaries come from the pack; the answers are those of the first."""
    told = clone.json("embeddings", "import", pack)
    assert told["compared"] == len(cached(filled)[BUILTIN]) == told["added"]
    assert clone.sync()["embedded"] == 0
    clone.assert_settled()
    asked = ("search", "copper care", "--mode", "vector")
    paths = [[hit["path"] for hit in one.json(*asked)["hits"]] for one in (filled, clone)]
    assert paths[0] == paths[1]
    clone("embeddings", "export", "../again.fspack")
    assert (clone.folder.parent / "again.fspack").read_bytes() == pack.read_bytes()


def test_documents_in_place(workspace: Any, tmp_path: Path) -> None:
    """Sections, and what was made of them, are texts, too; nothing is written among documents."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for topic in TOPICS:
        (notes / f"{topic}.md").write_text(
            f"# {topic}\n\n{prose(topic)}\n## More\n\n{prose(topic.upper(), sentences=9)}"
        )
    made = workspace("init", "--in-place", notes, "--embedder", "builtin", "--json").json
    assert made["sync"]["embedded"] == 10
    made = workspace.json("enrich", "--store", notes, "--questions", "1", "--summaries")
    texts = 10 + made["embedded"]
    assert made["embedded"] > 0
    workspace("embeddings", "export", tmp_path / "notes.fspack", "--store", notes)
    refused = workspace("embeddings", "export", notes / "some.fspack", "--store", notes, code=4)
    assert "name a file outside it" in refused.stderr
    shutil.rmtree(notes / ".filestore")
    before = files_below(notes)
    told = workspace.json("embeddings", "import", tmp_path / "notes.fspack", "--store", notes)
    assert (told["added"], told["compared"]) == (texts, 16)
    assert workspace.json("sync", "--store", notes)["embedded"] == 0
    after = files_below(notes)
    assert {path: after[path] for path in after if not path.startswith(".filestore/")} == before


def test_the_order_in_which_texts_came_does_not_show(new_workspace: Callable[..., Any]) -> None:
    """Two stores that embedded the same texts at other times write the same bytes."""
    found = []
    for name, topics in (("one", TOPICS), ("other", TOPICS[::-1])):
        made = new_workspace(name)
        for topic in topics:
            made.write(f"{topic}.md", f"# {topic}\n\n{prose(topic)}")
            made("add", f"{topic}.md")
        made("embeddings", "export", "some.fspack")
        found.append((made.folder / "some.fspack").read_bytes())
    assert found[0] == found[1]


def test_a_pack_lies_where_the_system_finds_its_name(filled: Any, tmp_path: Path) -> None:
    """`..` behind a link is the folder around the one that it leads to."""
    (tmp_path / "far/inner").mkdir(parents=True)
    (filled.folder / "link").symlink_to(tmp_path / "far/inner")
    filled("embeddings", "export", "link/../carried.fspack")
    assert (tmp_path / "far/carried.fspack").is_file()
    assert not (filled.folder / "carried.fspack").exists()


def test_what_the_files_need_or_everything(filled: Any) -> None:
    """A text that is gone is left out, and comes along with --all, as do other models."""
    (filled.chunked / "copper.md" / "chunk1.md").unlink()
    filled("sync")
    with EmbeddingCache.open(str(filled.sidecar / "embeddings.sqlite")) as cache:
        cache.put("other/1:8", [b"k" * 32], numpy.eye(1, 8, dtype=numpy.float32))
    every = cached(filled)
    needed = filled.json("embeddings", "export", "needed.fspack")
    assert [(one["fingerprint"], one["vectors"]) for one in needed["models"]] == [
        (BUILTIN, len(every[BUILTIN]) - 1)
    ]
    everything = filled.json("embeddings", "export", "all.fspack", "--all")
    assert {one["fingerprint"]: one["vectors"] for one in everything["models"]} == {
        name: len(rows) for name, rows in every.items()
    }


def test_packs_are_joined(filled: Any, new_workspace: Callable[..., Any]) -> None:
    """Imported one after another, in either order, two packs are one; an own vector stays."""
    rows = dict(sorted(cached(filled)[BUILTIN].items()))
    keys = list(rows)
    parts = [
        pack_of(filled.folder / f"{name}.fspack", {BUILTIN: {key: rows[key] for key in some}})
        for name, some in (("one", keys[:5]), ("other", keys[3:]))
    ]
    joined = []
    for name, order in (("first", parts), ("second", parts[::-1])):
        made = new_workspace(name)
        shutil.copytree(filled.chunked, made.chunked, dirs_exist_ok=True)
        told = [made.json("embeddings", "import", path) for path in order]
        assert sum(one["added"] for one in told) == len(rows)
        assert [one["known"] for one in told] == [0, 2]
        assert cached(made) == {BUILTIN: rows}
        made("embeddings", "export", "--all", "joined.fspack")
        joined.append((made.folder / "joined.fspack").read_bytes())
    assert joined[0] == joined[1]
    # A vector within the tolerance, yet another one: what is here stays.
    turned = {key: numpy.frombuffer(rows[key], "<f4") * numpy.float32(1.0002) for key in keys}
    near = {key: vector.tobytes() for key, vector in turned.items()}
    told = filled.json(
        "embeddings", "import", pack_of(filled.folder / "near.fspack", {BUILTIN: near})
    )
    assert (told["added"], told["known"]) == (0, len(rows))
    assert cached(filled) == {BUILTIN: rows}


def test_nothing_is_taken_of_a_damaged_pack(pack: Path, clone: Any) -> None:
    """Flipped bits, cuts and zeros anywhere: refused in a sentence, and no vector is kept."""
    whole = pack.read_bytes()
    chance = random.Random(3)
    ways = []
    for _ in range(12):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        ways += [bytes(flipped), whole[: chance.randrange(len(whole))]]
    for data in (*ways, whole + b"\0", b"", bytes(len(whole)), whole[:8] + bytes(len(whole) - 8)):
        pack.write_bytes(data)
        done = clone("embeddings", "import", pack, code=3)
        assert "notes.fspack" in done.stderr
        assert clone("embeddings", "info", pack, code=3).stderr == done.stderr
        assert not any(cached(clone).values())
    pack.write_bytes(whole)
    assert clone("embeddings", "info", pack).stdout.endswith("it is whole\n")


@pytest.mark.parametrize("unchecked", [(), ("--unchecked",)])
def test_vectors_that_the_model_does_not_give_are_refused(
    filled: Any, pack: Path, clone: Any, unchecked: tuple[str, ...]
) -> None:
    """A pack whose checksums hold and whose vectors lie: named with the file, and not forced."""
    rows = cached(filled)[BUILTIN]
    lying = dict(zip(sorted(rows), sorted(rows.values()), strict=True))
    lying |= strange(50)
    done = clone("embeddings", "import", pack_of(pack, {BUILTIN: lying}), *unchecked, code=4)
    assert "has another vector for chunked/" in done.stderr
    assert "expected at least 0.995" in done.stderr
    assert not any(cached(clone).values())
    assert clone.sync()["embedded"] == len(rows)


def test_what_cannot_be_checked_is_not_taken_unasked(filled: Any, clone: Any) -> None:
    """Texts that nobody here has, and models that are not the store's: refused, or said."""
    rows, others = cached(filled)[BUILTIN], {"other/1:8": strange(3, 8)}
    unknown = pack_of(clone.folder / "unknown.fspack", {BUILTIN: strange(7)})
    done = clone("embeddings", "import", unknown, code=4)
    assert "files of the store has a text that is among them" in done.stderr
    assert "filestore sync --no-embed" in done.stderr
    assert "--unchecked" in done.stderr
    foreign = pack_of(clone.folder / "foreign.fspack", others)
    done = clone("embeddings", "import", foreign, code=4)
    assert f"they come from other/1:8, the model of the store is {BUILTIN}" in done.stderr
    both = pack_of(clone.folder / "both.fspack", {BUILTIN: rows} | others)
    told = clone.json("embeddings", "import", both)
    assert [one["fingerprint"] for one in told["left_out"]] == ["other/1:8"]
    assert cached(clone) == {BUILTIN: rows}
    told = clone.json("embeddings", "import", both, "--unchecked")
    assert (told["added"], told["unchecked"]) == (3, "other/1:8: not the model of the store")
    told = clone.json("embeddings", "import", unknown, "--unchecked")
    assert (told["added"], told["compared"]) == (7, 0)
    assert "has a text that is among them" in told["unchecked"]
    assert cached(clone) == {BUILTIN: rows | strange(7)} | others


def test_one_text_among_many_is_found(workspace: Any) -> None:
    """A pack that has a text of one file in two thousand is checked with that one."""
    for number in range(2_200):
        (workspace.chunked / f"note{number}.md").write_text(f"Word{number} and its meaning.\n")
    workspace("sync")
    rows = cached(workspace)[BUILTIN]
    one = min(rows)
    pack = pack_of(workspace.folder / "one.fspack", {BUILTIN: {one: rows[one]} | strange(9)})
    told = workspace.json("embeddings", "import", pack)
    assert (told["added"], told["known"], told["compared"]) == (9, 1, 1)


def test_a_model_that_is_not_here(pack: Path, clone: Any) -> None:
    """Nobody can tell whether its vectors are right: said with the way out; taken when allowed."""
    settings = clone.store / "filestore.toml"
    settings.write_text(settings.read_text().replace('"builtin"', '"onnx:nowhere"'))
    done = clone("embeddings", "import", pack, code=4)
    assert "cannot be checked: " in done.stderr
    assert "nowhere" in done.stderr
    assert "--unchecked" in done.stderr
    assert not any(cached(clone).values())
    told = clone.json("embeddings", "import", pack, "--unchecked")
    assert told["added"] > 0
    assert "nowhere" in told["unchecked"]


def test_another_dimension_is_refused(clone: Any) -> None:
    """A pack that gives the model's name to vectors of another length, forced or not."""
    short = pack_of(clone.folder / "short.fspack", {BUILTIN: strange(3, 8)})
    for words in ((), ("--unchecked",)):
        done = clone("embeddings", "import", short, *words, code=3)
        assert "have 8 numbers, here they have 384" in done.stderr
    assert not any(cached(clone).values())
    with EmbeddingCache.open(str(clone.sidecar / "embeddings.sqlite")) as cache:
        cache.put("other/1:8", [b"k" * 32], numpy.eye(1, 8, dtype=numpy.float32))
    other = pack_of(clone.folder / "other.fspack", {"other/1:8": strange(3, 4)})
    done = clone("embeddings", "import", other, "--unchecked", code=3)
    assert "have 4 numbers, here they have 8" in done.stderr


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.mark.usefixtures("without_pauses")
def test_a_service_is_asked_whether_a_pack_is_its_own(
    workspace: Any, server: EmbeddingServer, tmp_path: Path
) -> None:
    """Its fixed texts come along and are compared, too; one that changed is found by them."""
    shutil.rmtree(workspace.store)
    workspace("init", "--embedder", "openai:small", "--endpoint", server.endpoint)
    workspace.write("ferry.md", "# Ferry\n\nThe winter ferry leaves at seven.\n")
    workspace("add", "ferry.md")
    pack = tmp_path / "some.fspack"
    told = workspace.json("embeddings", "export", pack)
    assert told["models"][0]["vectors"] == 4
    shutil.rmtree(workspace.sidecar)
    server.behave(vectors(lambda rows: [row[::-1] for row in rows]))
    done = workspace("embeddings", "import", pack, code=4)
    assert "has another vector for a fixed text than openai:small gives" in done.stderr
    server.behave(status(500))
    done = workspace("embeddings", "import", pack, code=4)
    assert "cannot be checked" in done.stderr
    assert server.endpoint in done.stderr
    server.behave(well)
    told = workspace.json("embeddings", "import", pack)
    assert (told["added"], told["compared"]) == (4, 4)
    server.requests.clear()
    assert workspace.json("sync")["embedded"] == 0
    assert not server.requests
    workspace("trust", "--revoke")
    done = workspace("embeddings", "import", pack, code=4)
    assert "filestore trust" in done.stderr
    assert not server.requests


def test_texts_without_a_vector_are_said(filled: Any) -> None:
    """A pack that would leave a clone something to embed says so, and gives 1."""
    (filled.chunked / "new.md").write_text("A new note.\n")
    filled("sync", "--no-embed", code=None)
    done = filled("embeddings", "export", "some.fspack", code=1)
    assert "1 passage without a sound vector: run 'filestore sync'" in done.stderr
    with sqlite3.connect(filled.sidecar / "embeddings.sqlite") as cache:
        cache.execute("UPDATE vectors SET checksum = x'00' WHERE id = 1")
    assert filled.json("embeddings", "export", "some.fspack", code=1)["lacking"] == 2
    assert filled.json("embeddings", "export", "some.fspack", "--all", code=1)["lacking"] == 1
    filled("sync", "--full", code=None)
    assert filled.json("embeddings", "export", "some.fspack")["lacking"] == 0


def test_what_is_there_is_not_overwritten(filled: Any, pack: Path) -> None:
    """Another file, a folder, a link, a pipe, a device, the store's own folders: each as it was."""
    folder = filled.folder
    (folder / "own.txt").write_text("Mine.\n")
    (folder / "link.fspack").symlink_to(pack)
    os.mkfifo(folder / "pipe")
    words = ("embeddings", "export")
    for name in ("own.txt", "link.fspack", "pipe", ".", "file_index/filestore.toml", "/dev/full"):
        done = filled(*words, name, code=4)
        assert f"{name} is not overwritten" in done.stderr
    (filled.store / "way").symlink_to("chunked")
    for name in (
        "chunked/some.fspack",
        "way/some.fspack",
        ".sidecar/embeddings.sqlite",
        ".undo/a",
        "source/b.fspack",
    ):
        done = filled(*words, f"file_index/{name}", code=4)
        assert "holds files of the store" in done.stderr
    for name in ("", "new/"):
        assert f"'{name}' names no file" in filled(*words, name, code=4).stderr
    done = filled(*words, "nowhere/some.fspack", code=3)
    assert "nowhere/some.fspack: No such file or directory" in done.stderr
    assert (folder / "own.txt").read_text() == "Mine.\n"
    assert (folder / "link.fspack").is_symlink()
    # An earlier pack is replaced, and keeps its mode.
    pack.write_bytes(pack.read_bytes()[:100])
    pack.chmod(0o604)
    filled(*words, pack)
    assert stat.S_IMODE(pack.stat().st_mode) == 0o604
    filled("embeddings", "info", folder / "link.fspack")
    assert not [path for path in pack.parent.iterdir() if path.name.startswith(".filestore-tmp")]


def test_a_store_without_embeddings_says_what_to_do(workspace: Any, clone: Any) -> None:
    """Nothing was embedded yet, or nothing is known of the texts: `sync` is named."""
    for words in ((), ("--all",)):
        assert "filestore sync" in clone("embeddings", "export", "a.fspack", *words, code=3).stderr
    clone("sync")
    (clone.sidecar / "catalog.sqlite").unlink()
    assert "filestore sync" in clone("embeddings", "export", "a.fspack", code=3).stderr
    assert clone.json("embeddings", "export", "a.fspack", "--all")["lacking"] == 0


def test_a_damaged_cache_is_left_to_sync(pack: Path, clone: Any) -> None:
    """An import into a cache that is no database says which command saves it."""
    clone("sync")
    (clone.sidecar / "embeddings.sqlite").write_bytes(b"no database" * 1_000)
    assert "filestore sync --full" in clone("embeddings", "import", pack, code=3).stderr
    assert "filestore sync --full" in clone("embeddings", "export", "a.fspack", code=3).stderr


def test_a_full_disk_leaves_the_earlier_pack(filled: Any, pack: Path, small_disk: Path) -> None:
    """The pack that is there stays whole, nothing is left behind, and the remedy is said."""
    there = shutil.copy(pack, small_disk / "some.fspack")
    with EmbeddingCache.open(str(filled.sidecar / "embeddings.sqlite")) as cache:
        rows = strange(1_000)
        matrix = numpy.array([numpy.frombuffer(one, "<f4") for one in rows.values()])
        cache.put(BUILTIN, list(rows), matrix)
    done = filled("embeddings", "export", "--all", there, code=3)
    assert "No space left" in done.stderr
    assert "free some space" in done.stderr
    assert Path(there).read_bytes() == pack.read_bytes()
    assert os.listdir(small_disk) == ["some.fspack"]


def test_no_file_of_the_user_is_written(filled: Any, pack: Path, clone: Any) -> None:
    """An import changes the cache alone: no truth file, nothing to be undone."""
    before = clone.committed()
    clone("embeddings", "import", pack)
    assert clone.committed() == before
    assert clone.git("status", "--porcelain") == ""
    assert clone.json("undo", "--list", code=1)["batches"] == []
    assert sorted(path.name for path in clone.sidecar.iterdir()) == ["embeddings.sqlite", "lock"]


def test_the_library_does_the_same(filled: Any, clone: Any) -> None:
    """`Store.export_embeddings` and `import_embeddings`, with their progress."""
    seen = []
    with filestore.open(filled.store) as store:
        made = store.export_embeddings(filled.folder / "a.fspack", on_progress=seen.append)
    with filestore.open(clone.store) as store:
        taken = store.import_embeddings(filled.folder / "a.fspack", on_progress=seen.append)
        assert taken.added == sum(model.vectors for model in made.models)
        assert store.sync().embedded == 0
    assert {one.stage for one in seen} == {"exporting", "checking", "importing"}
    with Pack.open(str(filled.folder / "a.fspack")) as pack:
        assert pack.info.digest == made.digest
