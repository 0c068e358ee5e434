"""`filestore reconstruct --from`: chunks that others made, put together again."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.advice import advised
from tests.system.embedding_server import cut_off, hangs_up, raw, status
from tests.system.vector_store_server import (
    StoredFile,
    VectorStoreServer,
    content,
    listing,
    only,
    well,
)

WORDS = [f"{a}{b}" for a in ("ash", "birch", "cedar", "dog", "elm") for b in ("wood", "leaf", "s")]


GAPS = (" ", " ", " ", ", ", "\n")


def prose(seed: int, count: int = 400) -> str:
    """A text of words that follow each other by chance."""
    chance = random.Random(seed)
    return "".join(f"{chance.choice(WORDS)}{chance.choice(GAPS)}" for _ in range(count))


def windows(text: str, size: int, overlap: int) -> list[str]:
    """The text in chunks of so many words."""
    words = re.findall(r"\S+\s*", text)
    starts = range(0, max(1, len(words) - overlap), size - overlap)
    return ["".join(words[start : start + size]) for start in starts]


def lay(folder: Path, documents: dict[str, list[str]], name: str = "{}_chunk_{}.txt") -> None:
    """Write chunks as files, in no order."""
    folder.mkdir(exist_ok=True)
    files = [
        (name.format(document, number), chunk)
        for document, chunks in documents.items()
        for number, chunk in enumerate(chunks, start=1)
    ]
    random.Random(5).shuffle(files)
    for path, chunk in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(chunk, newline="")


def text_of(folder: Path, name: str) -> str:
    """What was written for a document."""
    return (folder / f"{name}.reconstructed.md").read_bytes().decode()


@pytest.mark.parametrize("name", ["{}_chunk_{}.txt", "{}-{}.md", "{}/part {}.txt", "{} ({}).txt"])
def test_a_folder_of_text_files(workspace: Any, name: str) -> None:
    """Each document comes back, with 12 chunks in the order of their numbers."""
    texts = {one: prose(seed) for seed, one in enumerate(("lease", "letters", "annex b"))}
    cut = {one: windows(text, 40, 8) for one, text in texts.items()}
    assert len(cut["lease"]) > 10
    lay(workspace.folder / "chunks", cut, name)
    report = workspace.json("reconstruct", "chunks", "--from", "folder", "-o", "out")
    assert {one["name"] for one in report["files"]} == texts.keys()
    for one in report["files"]:
        assert text_of(workspace.folder / "out", one["name"]) == texts[one["name"]]
        assert one["chunks"] == len(cut[one["name"]])
        assert one["exact"] == one["chunks"] - 1
        assert one["bytes"] == (workspace.folder / one["path"]).stat().st_size
        assert one["overlaps"][0].keys() == {"overlap_chars", "confidence", "method"}
    assert report["chunks"] == sum(map(len, cut.values()))
    assert report["overlap"] == "8 words (calibrated)"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=200), data=st.data())
def test_any_text_comes_back(workspace: Any, tmp_path_factory: Any, text: str, data: Any) -> None:
    """Cut by any overlap of tokens, which is told; the files are in no order."""
    size = data.draw(st.integers(2, 30))
    overlap = data.draw(st.integers(0, size - 1))
    ends = max(1, len(text) - overlap)
    chunks = [text[start : start + size] for start in range(0, ends, size - overlap)]
    folder = tmp_path_factory.mktemp("chunks")
    for number, chunk in data.draw(st.permutations(list(enumerate(chunks)))):
        (folder / f"t-{number}.txt").write_bytes(chunk.encode())
    words = ("reconstruct", folder, "--from", "folder", "--overlap", overlap, "-o", folder / "out")
    if "\0" in text or text.startswith("\ufeff"):
        return
    report = workspace.json(*words)
    if not any("\ufeff" in chunk[:1] for chunk in chunks):
        name = report["files"][0]["name"]
        assert text_of(folder / "out", name) == text


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_our_own_chunk_files(layout: str, new_workspace: Any, manual: Any) -> None:
    """The resources of a store come back exactly, by what their chunk files record."""
    made = new_workspace(layout=layout)
    note = made.write("note.md", manual(["preface", "pears", "plums"]))
    other = made.write("other.md", manual(["ships", "sails"]))
    made("add", "note.md", "other.md")
    report = made.json("reconstruct", made.chunked, "--from", "folder", "-o", "out")
    for source, file in zip((note, other), report["files"], strict=True):
        assert file["name"] == source.name
        assert text_of(made.folder / "out", file["name"]) == source.read_text()
        assert {one["method"] for one in file["overlaps"]} == {"recorded"}


def test_json_lines(workspace: Any) -> None:
    """Documents by their names, chunks by their numbers, whatever the keys are called."""
    text = prose(1)
    chunks = list(enumerate(windows(text, 30, 6)))
    random.Random(2).shuffle(chunks)
    rows = [{"text": chunk, "filename": "a.pdf", "index": n} for n, chunk in chunks]
    rows += [
        {"page_content": chunk, "metadata": {"source": "b.pdf", "chunk_index": str(n)}}
        for n, chunk in chunks
    ]
    lines = [json.dumps(row) for row in rows]
    lines[3:3] = ["{broken", "[]", "", '{"nothing": 1}']
    workspace.write("rows.jsonl", "\n".join(lines))
    done = workspace("reconstruct", "rows.jsonl", "--from", "jsonl", code=5)
    for name in ("a.pdf", "b.pdf"):
        assert text_of(workspace.folder / "reconstructed", name) == text
    for number in (4, 5, 7):
        assert f"line {number}" in done.stderr
    assert "2 files" in done.stdout


def test_only_some(workspace: Any) -> None:
    """Other documents are left; a name that none has is said, with what may be meant."""
    lay(workspace.folder / "chunks", {"lease": ["a"], "letters": ["b"]})
    words = ("reconstruct", "chunks", "--from", "folder", "-o", "out", "--only", "lease", "leters")
    done = workspace(*words, code=5)
    assert "did you mean 'letters'" in done.stderr
    assert [path.name for path in (workspace.folder / "out").iterdir()] == [
        "lease.reconstructed.md"
    ]
    assert workspace(*words[:-2], "leters", code=3).stdout.startswith("0 files")


def test_few_chunks(workspace: Any) -> None:
    """None, one, and empty ones are no error."""
    (workspace.folder / "none").mkdir()
    report = workspace.json("reconstruct", "none", "--from", "folder")
    assert (report["files"], report["chunks"]) == ([], 0)
    lay(workspace.folder / "few", {"one": ["text"], "empty": [""], "some": ["", "text", ""]})
    report = workspace.json("reconstruct", "few", "--from", "folder")
    assert [(one["name"], one["chunks"], one["bytes"]) for one in report["files"]] == [
        ("empty", 1, 0),
        ("one", 1, 4),
        ("some", 3, 4),
    ]


def test_twice_in_the_same_folder(workspace: Any) -> None:
    """What was written is no chunk of the next time."""
    lay(workspace.folder / "chunks", {"note": ["one two three", "two three four"]})
    words = ("reconstruct", ".", "--from", "folder")
    first = workspace.json(*words, cwd=workspace.folder / "chunks")
    assert workspace.json(*words, cwd=workspace.folder / "chunks") == first
    assert len(first["files"]) == 1


def test_without_an_overlap(workspace: Any) -> None:
    """They are joined with a newline, which is said; an older file is replaced."""
    lay(workspace.folder / "chunks", {"note": ["Pears are green.", "Ships float."]})
    workspace.write("out/note.reconstructed.md", "older")
    done = workspace("reconstruct", "chunks", "--from", "folder", "-o", "out")
    assert text_of(workspace.folder / "out", "note") == "Pears are green.\nShips float."
    assert "1 of 1 pairs" in done.stderr
    told = workspace("reconstruct", "chunks", "--from", "folder", "-o", "out", "--overlap", "0")
    assert text_of(workspace.folder / "out", "note") == "Pears are green.Ships float."
    assert told.stderr == ""


def test_what_is_no_text_is_named(workspace: Any) -> None:
    """Pictures, bytes that are no text, links out of the folder: left out, the rest is taken."""
    lay(workspace.folder / "chunks", {"note": ["one two three", "two three four"]})
    workspace.write("chunks/note_chunk_3.txt", b"\xff\xfe")
    workspace.write("chunks/picture.png", b"\x89PNG")
    workspace.write("secret", "mine")
    (workspace.folder / "chunks/note_chunk_4.txt").symlink_to(workspace.folder / "secret")
    done = workspace("reconstruct", "chunks", "--from", "folder", code=5)
    assert text_of(workspace.folder / "reconstructed", "note") == "one two three four"
    for name in ("note_chunk_3.txt", "note_chunk_4.txt", "picture.png"):
        assert name in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("x",), 3, "filestore init"),
        ((), 2, "DOCUMENT"),
        (("a", "b"), 2, "'b'"),
        (("x", "--only", "y"), 2, "--from"),
        (("x", "--from", "foldr"), 2, "expected folder"),
        (("--from", "folder"), 2, "the folder"),
        (("nowhere", "--from", "folder"), 3, "no folder nowhere"),
        (("nowhere", "--from", "jsonl"), 3, "no file nowhere"),
        ((".", "--from", "jsonl"), 3, "JSON lines"),
        (("x", "--from", "openai:vs_1"), 2, "'x'"),
        (("--from", "openai:../files"), 2, "vs_"),
        (("--from", "openai:vs_1", "--endpoint", "http://me:secret@host/v1"), 3, "--endpoint"),
        (("x", "--from", "folder", "--overlap", "much"), 2, "50 words"),
    ],
)
def test_wrong_usage(tmp_path: Path, script: Any, words: Any, code: int, said: str) -> None:
    """Each says what was expected, and writes nothing; no store is needed."""
    program = "import sys; from filestore.cli import main; sys.exit(main(sys.argv[1:]))"
    done = script(program, "reconstruct", *words, cwd=tmp_path)
    assert done.code == code
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert list(tmp_path.iterdir()) == []


LEASE, LETTERS = prose(11), prose(12)


def stored() -> dict[str, StoredFile]:
    """Two files, one that failed, and one that the service knows no name of."""
    return {
        "file-1": StoredFile(name="lease.pdf", chunks=tuple(windows(LEASE, 40, 20))),
        "file-2": StoredFile(
            name="broken.pdf",
            fields={"status": "failed", "last_error": {"message": "unsupported \x1b[31m"}},
        ),
        "file-3": StoredFile(name="../../letters.pdf", chunks=tuple(windows(LETTERS, 40, 20))),
        "file-4": StoredFile(name=None, chunks=("only one",)),
        "file-5": StoredFile(name="empty.txt"),
    }


@pytest.fixture
def read(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command on a server."""
    monkeypatch.setenv("FILESTORE_API_KEY", "sk-secret")

    def run(server: VectorStoreServer, *words: object, code: int = 0, store: str = "vs_1") -> Any:
        given = ("reconstruct", "--from", f"openai:{store}", "--endpoint", server.endpoint)
        done = workspace(*given, "-o", "out", *words, code=code)
        assert "sk-secret" not in done.stdout + done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        return done

    return run


def test_a_vector_store_page_by_page(workspace: Any, read: Any) -> None:
    """Every file of every page comes back, by its name, inside the folder."""
    with VectorStoreServer(stored(), page=2) as server:
        done = read(server, code=5)
        listed = [path for path in server.paths() if "/files?" in path]
        assert [path.partition("after=")[2] for path in listed] == ["", "file-2", "file-4"]
        assert {one.headers["Authorization"] for one in server.requests} == {"Bearer sk-secret"}
    out = workspace.folder / "out"
    assert text_of(out, "lease.pdf") == LEASE
    assert text_of(out, "letters.pdf") == LETTERS
    assert text_of(out, "file-4") == "only one"
    assert text_of(out, "empty.txt") == ""
    assert len(list(out.iterdir())) == 4
    assert "file-2: its status is failed: unsupported" in done.stderr


def test_some_files_of_a_vector_store(workspace: Any, read: Any) -> None:
    """By name or by id; the contents of others are not asked for."""
    with VectorStoreServer(stored()) as server:
        read(server, "--only", "lease.pdf", "file-4", code=5)
        assert sum("/content" in path for path in server.paths()) == 2
    assert sorted(path.name for path in (workspace.folder / "out").iterdir()) == [
        "file-4.reconstructed.md",
        "lease.pdf.reconstructed.md",
    ]


def test_the_service_says_how_much_overlaps(workspace: Any, read: Any) -> None:
    """Where it says that nothing does, nothing is taken away and nothing put between."""
    static = {"chunking_strategy": {"type": "static", "static": {"chunk_overlap_tokens": 0}}}
    chunks = ("one two three", "three two one")
    with VectorStoreServer({"f": StoredFile(name="a", chunks=chunks, fields=static)}) as server:
        read(server)
    assert text_of(workspace.folder / "out", "a") == "one two threethree two one"


def test_an_unknown_vector_store(read: Any) -> None:
    """It is named, with what to look at."""
    with VectorStoreServer(stored()) as server:
        done = read(server, store="vs_2", code=3)
    assert "knows no vector store 'vs_2'" in done.stderr
    assert "check the id" in done.stderr


def test_a_busy_service_is_asked_again(workspace: Any, read: Any) -> None:
    """After as long as it asks for; also one that fails for a moment, or cuts the line."""
    limited = status(429, Retry_After="1")
    with VectorStoreServer(stored()) as server:
        server.behave(limited, well, status(500), well, hangs_up, well)
        read(server, code=5)
        assert len(server.requests) == 1 + 2 * 4 + 3
    assert text_of(workspace.folder / "out", "lease.pdf") == LEASE


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (status(404), "knows no content of 'file-1'"),
        (status(400, {"error": {"message": "no \x1b[2J sk-secret"}}), "400"),
        (raw(b"<html>"), "HTML"),
        (raw(b'{"data": [1, 2]}'), "data"),
        (raw(b'{"data": "text"}'), "data"),
        (raw(b'{"data": [], "has_more": true}'), "holds back"),
        (raw(b'{"data": [], "has_more": true, "next_page": "p"}'), "holds back"),
        (cut_off, "without a whole answer"),
    ],
)
def test_one_file_that_cannot_be_had(workspace: Any, read: Any, behaviour: Any, said: str) -> None:
    """It is named with the reason, and the others are written."""
    with VectorStoreServer(stored()) as server:
        server.behave(only("file-1/content", behaviour))
        done = read(server, code=5)
    assert said in done.stderr
    assert "failed: lease.pdf: " in done.stderr
    assert text_of(workspace.folder / "out", "letters.pdf") == LETTERS


def test_parts_of_the_wrong_type(workspace: Any, read: Any) -> None:
    """They are named, and the texts beside them taken."""
    parts = content(("one two three", "two three four"))
    parts["data"][1:1] = [{"type": "image", "url": "x"}, {"type": "text", "text": 5}]
    with VectorStoreServer(stored()) as server:
        server.behave(only("file-1/content", raw(json.dumps(parts).encode())))
        done = read(server, code=5)
    assert "file-1: part 2 is not text but image" in done.stderr
    assert text_of(workspace.folder / "out", "lease.pdf") == "one two three four"


@pytest.mark.parametrize(
    "lie",
    [
        {"has_more": True},
        {"has_more": True, "last_id": "../../files"},
        {"has_more": True, "last_id": 7},
        {"has_more": True, "data": []},
    ],
)
def test_a_list_that_never_ends(workspace: Any, read: Any, lie: dict[str, Any]) -> None:
    """A page that is the same again and again is noticed, and nowhere else is asked."""

    def repeats(handler: Any, request: Any) -> None:
        handler.reply_json(listing(handler.server.owner, {}) | lie)

    with VectorStoreServer(stored()) as server:
        server.behave(only("/files?", repeats))
        done = read(server, code=3)
        assert len([path for path in server.paths() if "/files?" in path]) <= 2
        assert not any(".." in path for path in server.paths())
    assert "more files" in done.stderr


@pytest.mark.parametrize("identifier", ["../../admin", "a/b", "", 5, None, "x" * 300, "a?b"])
def test_an_id_that_leads_elsewhere(read: Any, identifier: Any) -> None:
    """It is named and never asked for."""
    with VectorStoreServer({}) as server:
        server.behave(only("/files?", raw(json.dumps({"data": [{"id": identifier}]}).encode())))
        done = read(server, code=5)
        assert len(server.requests) == 1
    assert "no usable id" in done.stderr


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (status(401), "refused the key"),
        (status(429, Retry_After="1000"), "takes no more requests"),
        (status(302, Location="http://elsewhere.example/v1"), "not followed"),
        (raw(b"no JSON"), "no JSON"),
        (status(400), "400"),
    ],
)
def test_a_service_that_gives_nothing(workspace: Any, read: Any, behaviour: Any, said: str) -> None:
    """One line that says why, one that says what to do; nothing is written."""
    with VectorStoreServer(stored()) as server:
        server.behave(behaviour)
        done = read(server, code=3)
    assert said in done.stderr
    assert advised(done.stderr)
    assert not (workspace.folder / "out").exists()


def test_a_key_is_not_sent_in_the_clear(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over plain http to another machine it would be read on the way."""
    monkeypatch.setenv("FILESTORE_API_KEY", "sk-secret")
    words = ("reconstruct", "--from", "openai:vs_1", "--endpoint", "http://192.0.2.1/v1")
    assert "is not sent" in workspace(*words, code=3).stderr
