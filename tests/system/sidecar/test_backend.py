"""A store whose vectors are searched in a backend: the same answers, and nothing lost or stale.

Each test runs with lines of JSON outside the store, with a real PostgreSQL and with a folder of
qdrant-client; a new kind is an entry in `PLACES`.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from filestore import Store
from filestore.catalog import CatalogWriter
from filestore.index import open_backend
from filestore.index.backend import BackendChoice, IndexBackend
from tests.postgres_server import PASSWORD, Server, new_database, new_server

WORDS: Final = ("harbour", "lantern", "orchard", "granite", "violin", "glacier")
NOTES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a backend keeps its vectors, and how that goes away and comes back."""

    kind: str
    options: tuple[str, ...]
    away: Callable[[], Any]
    """A context in which it cannot be reached."""
    rows: Callable[[], int]
    """How many vectors lie there."""


def local_place(request: pytest.FixtureRequest, folder: Path) -> Place:
    folder.mkdir()
    path = folder / "vectors.jsonl"

    @contextmanager
    def away() -> Iterator[None]:
        """A folder stands where the file belongs."""
        os.rename(path, folder / "hidden")
        path.mkdir()
        yield
        path.rmdir()
        os.rename(folder / "hidden", path)

    def rows() -> int:
        return len(path.read_text().splitlines()) - 1

    return Place(kind="local", options=(f"path={path}",), away=away, rows=rows)


def pgvector_place(request: pytest.FixtureRequest, folder: Path) -> Place:
    shared: Server = request.getfixturevalue("postgres_server")
    server = new_server(shared.folder.parent, f"own{os.getpid()}-{id(folder)}")
    request.addfinalizer(server.stop)
    database = new_database(server, "knowledge")
    request.getfixturevalue("monkeypatch").setenv("PGPASSWORD", PASSWORD)
    dsn = f"postgresql://postgres@127.0.0.1:{server.port}/knowledge"

    @contextmanager
    def away() -> Iterator[None]:
        """Its first process is killed."""
        server.kill()
        yield
        server.start()

    def rows() -> int:
        ((count,),) = database.run("SELECT count(*) FROM filestore_vectors")
        return int(count)

    return Place(kind="pgvector", options=(f"dsn={dsn}",), away=away, rows=rows)


def qdrant_place(request: pytest.FixtureRequest, folder: Path) -> Place:
    pytest.importorskip("qdrant_client")
    folder.mkdir()
    path = folder / "rows"

    def opened() -> IndexBackend:
        options = {"path": str(path)}
        choice = BackendChoice(kind="qdrant", options=options, folder=str(folder), environment={})
        backend = open_backend(choice)
        backend.load()
        return backend

    @contextmanager
    def away() -> Iterator[None]:
        """A file stands where the folder belongs."""
        os.rename(path, folder / "hidden")
        path.write_text("not a folder")
        yield
        path.unlink()
        os.rename(folder / "hidden", path)

    def rows() -> int:
        with opened() as backend:
            return len(backend.state.docs)

    return Place(kind="qdrant", options=(f"path={path}",), away=away, rows=rows)


PLACES: Final[dict[str, Callable[[pytest.FixtureRequest, Path], Place]]] = {
    "local": local_place,
    "pgvector": pgvector_place,
    "qdrant": qdrant_place,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return PLACES[request.param](request, tmp_path / "elsewhere")


@pytest.fixture
def filled(workspace: Any) -> Any:
    """A store of some notes with tags, indexed."""
    for number in range(NOTES):
        word, other = WORDS[number % len(WORDS)], WORDS[number * 5 % len(WORDS)]
        head = f"---\ntags: [{word[0]}, all]\nrating: {number % 3}\n---\n"
        body = f"# Note {number}\n\nThe {word} stands near the {other}, {number} paces away.\n"
        workspace.write(f"file_index/chunked/note{number}.md", head + body)
    workspace("sync")
    return workspace


def set_backend(workspace: Any, place: Place, *more: str, code: int = 0) -> Any:
    return workspace.json("backend", "set", place.kind, *place.options, "--yes", *more, code=code)


def answers(workspace: Any, *more: str) -> list[list[tuple[str, float]]]:
    """Paths and cosines of what is found by vectors alone, for some queries."""
    found = []
    for query in ("harbour lantern", "granite", "a violin near the glacier"):
        done = workspace.json("search", query, "--mode", "vector", "-k", "6", *more, code=None)
        assert done["mode"] == "vector", done
        found.append([(hit["path"], round(hit["score"], 4)) for hit in done["hits"]])
    return found


def notes_of(workspace: Any, *more: str) -> str:
    return " ".join(workspace.json("search", "harbour", *more, code=None)["notes"])


def codes(workspace: Any, *level: str) -> set[str]:
    done = workspace.json("verify", *(level or ("--level", "full")), code=None)
    return {one["code"] for one in done["findings"]}


def test_a_switch_embeds_nothing_and_changes_no_answer(filled: Any, place: Place) -> None:
    """There and back, every query finds the same with the same scores, filtered or not."""
    filters = ([], ["--where", "tags=h"], ["--where", "rating=1", "--where", "tags=all"])
    filters = (*filters, ["--kind", "chunk"], ["--where", "tags=H", "--kind", "chunk"])
    before = [answers(filled, *one) for one in filters]
    done = set_backend(filled, place)
    assert (done["sent"], done["embedded"]) == (NOTES, 0)
    assert place.rows() == NOTES
    assert not list(filled.sidecar.glob("vectors-*.faiss"))
    assert filled.json("status")["index"] is None
    assert [answers(filled, *one) for one in filters] == before
    assert codes(filled) == set()
    again = set_backend(filled, place)
    assert (again["sent"], again["kept"]) == (0, NOTES)
    back = filled.json("backend", "set", "faiss", "--yes", "--clear")
    assert (back["embedded"], back["cleared"]) == (0, True)
    assert [answers(filled, *one) for one in filters] == before
    assert codes(filled) == set()


def test_a_whitelist_that_changes_changes_what_is_there(filled: Any, place: Place) -> None:
    """What it keeps back goes from there, and a filter finds the same with it and without."""
    wanted = (["--where", "tags=h"], ["--where", "rating=1"], ["--kind", "chunk"])
    before = [answers(filled, *one) for one in wanted]
    set_backend(filled, place)
    narrow = replace(place, options=(*place.options, "metadata_whitelist=tags"))
    assert set_backend(filled, narrow)["sent"] == NOTES
    assert [answers(filled, *one) for one in wanted] == before
    settings = filled.folder / "file_index/filestore.toml"
    settings.write_text(settings.read_text().replace('metadata_whitelist = ["tags"]\n', ""))
    assert [answers(filled, *one) for one in wanted] == before
    assert set_backend(filled, place)["sent"] == NOTES
    assert [answers(filled, *one) for one in wanted] == before
    assert codes(filled) == set()


def test_a_place_that_is_kept_is_not_cleared(filled: Any, place: Place) -> None:
    """Other settings of the same place leave nothing: `--clear` deletes no vector of the store."""
    narrow = replace(place, options=(*place.options, "metadata_whitelist=tags"))
    set_backend(filled, narrow)
    assert set_backend(filled, place, "--clear")["cleared"] is False
    assert place.rows() == NOTES
    assert codes(filled) == set()


def test_what_changes_is_sent_and_nothing_else(filled: Any, place: Place) -> None:
    """Files that are edited, new, moved, deleted or tagged anew: rows follow, and so do filters."""
    set_backend(filled, place)
    filled.write("file_index/chunked/note0.md", "# Note\n\nA quarry of marble.\n")
    filled.write(
        "file_index/chunked/new.md", "---\ntags: [fresh]\n---\nThe marble of the quarry.\n"
    )
    (filled.chunked / "note1.md").rename(filled.chunked / "moved.md")
    (filled.chunked / "note2.md").unlink()
    tagged = filled.chunked / "note3.md"
    tagged.write_text(tagged.read_text().replace("tags: [", "tags: [quartz, "))
    filled("sync", code=None)
    assert place.rows() == NOTES
    assert filled.json("backend", "show")["waiting"] == 0
    found = filled.json("search", "marble quarry", "--mode", "vector", "-k", "2")
    assert {hit["path"] for hit in found["hits"]} == {"chunked/note0.md", "chunked/new.md"}
    for tag, path in (("quartz", "note3.md"), ("fresh", "new.md")):
        hits = filled.json("search", "stands quarry", "--mode", "vector", "--where", f"tags={tag}")[
            "hits"
        ]
        assert [hit["path"] for hit in hits] == [f"chunked/{path}"]
    assert codes(filled) == set()


def test_while_it_is_away_nothing_is_lost_or_stale(filled: Any, place: Place) -> None:
    """Search answers by keyword and says so; what changed waits, and is sent later."""
    set_backend(filled, place)
    with place.away():
        assert "answered by keyword only" in notes_of(filled)
        assert "index-away" in codes(filled)
        filled.write("file_index/chunked/later.md", "The marble of the quarry.\n")
        done = filled.json("sync", code=None)
        assert "index-behind" in {one["code"] for one in done["remaining"]}
        assert "index-behind" not in {one["code"] for one in done["applied"]}
        assert filled.json("search", "marble")["hits"][0]["path"] == "chunked/later.md"
        assert filled.json("backend", "show", code=1)["waiting"] == 1
    assert filled.json("status", code=None)["drift"]["index-behind"]
    # What it lacks is laid over what it has.
    hits = filled.json("search", "marble quarry", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/later.md"
    assert place.rows() == NOTES
    filled("sync")
    assert place.rows() == NOTES + 1
    assert codes(filled) == set()


def test_a_place_of_another_store_is_left_alone(
    filled: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither written nor answered from, unless a person takes it over."""
    set_backend(filled, place)
    other = Store.create(tmp_path / "other", layout="tree", embedder="builtin")
    (tmp_path / "other/chunked/mine.md").write_text("Mine alone.\n")
    other.sync()
    other.close()
    args = ("--store", str(tmp_path / "other"))
    done = filled.json("backend", "set", place.kind, *place.options, "--yes", *args, code=3)
    assert "another store" in done["error"]
    assert place.rows() == NOTES
    taken = ("backend", "set", place.kind, *place.options, "--yes", "--take-over", *args)
    assert filled.json(*taken)["sent"] == 1
    assert place.rows() == 1
    assert "another store" in notes_of(filled)
    assert "index-taken" in codes(filled)
    filled("sync", code=None)
    filled("sync", "--full", code=None)
    assert place.rows() == 1
    assert set_backend(filled, place, "--take-over")["sent"] == NOTES
    assert codes(filled) == set()


def test_a_lost_catalog_takes_its_place_over_by_hand(filled: Any, place: Place) -> None:
    """Whose vectors lie there nobody knows any more: a person says so, and nothing is embedded."""
    set_backend(filled, place)
    (filled.sidecar / "catalog.sqlite").unlink()
    filled("sync", code=None)
    assert "of a catalog of this one that was lost" in notes_of(filled)
    assert "index-taken" in codes(filled)
    done = set_backend(filled, place, "--take-over")
    assert (done["sent"], done["kept"], done["embedded"]) == (0, NOTES, 0)
    assert codes(filled) == set()


def test_a_clone_reaches_out_only_where_it_was_allowed(
    filled: Any, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Settings that came with a clone send nothing anywhere."""
    set_backend(filled, place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody"))
    assert "not allowed" in notes_of(filled)
    filled.write("file_index/chunked/later.md", "The marble of the quarry.\n")
    filled("sync", code=None)
    assert place.rows() == NOTES
    filled("trust", "--yes")
    filled("sync")
    assert place.rows() == NOTES + 1


@pytest.mark.parametrize("kind", ["local", "faiss", "qdrant"])
@pytest.mark.parametrize("path", ["../../../outside", "link/outside"])
def test_no_path_of_a_clone_leads_out_of_the_sidecar(filled: Any, kind: str, path: str) -> None:
    """By a climb or by a symbolic link that came along: neither is in the sidecar."""
    (filled.sidecar / "link").symlink_to(filled.folder.parent)
    settings = filled.store / "filestore.toml"
    words = f'backend = "{kind}"\n'
    table = f'\n[backend_config]\npath = "{path}"\n'
    settings.write_text(words + settings.read_text() + table)
    filled.write("file_index/chunked/later.md", "The marble of the quarry.\n")
    filled("sync", code=None)
    assert not list(filled.folder.parent.glob("outside*"))
    assert "not allowed" in notes_of(filled)
    filled("trust", "--yes")
    filled("sync", code=None)
    assert list(filled.folder.parent.glob("outside*"))


@pytest.mark.parametrize("kind", ["local", "faiss", "qdrant"])
def test_a_path_that_is_none_is_said_and_stops_nothing(filled: Any, kind: str) -> None:
    """No disk takes a NUL in a name; every command says so, and keywords answer."""
    settings = filled.store / "filestore.toml"
    table = '\n[backend_config]\npath = "a\\u0000b"\n'
    settings.write_text(f'backend = "{kind}"\n{settings.read_text()}{table}')
    filled.write("file_index/chunked/later.md", "The marble of the quarry.\n")
    filled("sync", code=None)
    assert "NUL" in notes_of(filled)
    for words in (("backend", "show"), ("verify", "--level", "full")):
        assert "NUL" in filled(*words, code=1).stdout
    filled("trust", "--list", code=None)


def test_a_place_under_another_name_is_not_left(filled: Any, tmp_path: Path) -> None:
    """Other options, or another way there: --clear deletes nothing that is searched."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    rows = f"path={folder}/rows.jsonl"
    filled("backend", "set", "local", rows, "--yes")
    before = answers(filled)
    other = f"path={tmp_path}/link/rows.jsonl"
    for words in ((rows, "metadata_whitelist=tags"), (rows,), (other,), (rows,)):
        done = filled.json("backend", "set", "local", *words, "--yes", "--clear")
        assert done["embedded"] == 0
        assert answers(filled) == before
        assert codes(filled) == set()


def test_a_store_that_is_open_follows_a_switch_when_it_writes(filled: Any, place: Place) -> None:
    """It sends nothing to the place that another process left, and leaves the new one whole."""
    set_backend(filled, place)
    with Store.open(filled.store) as before:
        before.search("harbour", mode="vector")
        rows = f"path={filled.folder / 'rows.jsonl'}"
        filled("backend", "set", "local", rows, "--yes", "--clear")
        filled.write("file_index/chunked/later.md", "The marble of the quarry.\n")
        before.sync()
        assert before.search("marble quarry", mode="vector").mode == "vector"
    hits = filled.json("search", "marble quarry", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/later.md"
    assert codes(filled) == set()
    # Nothing lies in the place that was left.
    assert set_backend(filled, place)["kept"] == 0


def test_settings_by_hand_are_followed_by_the_next_sync(filled: Any, place: Place) -> None:
    """Until then no vector is searched, and that is said."""
    set_backend(filled, place)
    settings = filled.store / "filestore.toml"
    chosen = settings.read_bytes()
    filled("backend", "set", "faiss", "--yes")
    settings.write_bytes(chosen)
    assert "not sent" in notes_of(filled)
    filled("sync")
    assert "sent" not in notes_of(filled)
    assert codes(filled) == set()
    # Readers of the generation before may have had it open.
    filled.write("file_index/chunked/later.md", "The marble of the quarry.\n")
    filled("sync")
    assert not list(filled.sidecar.glob("vectors-*.faiss"))


def test_a_switch_that_dies_leaves_the_store_as_it_was(
    filled: Any, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the vectors were sent, before the settings, and before the catalog knows."""
    before = answers(filled)

    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    for name in ("filestore.config.written.with_backend", None):
        with monkeypatch.context() as patched:
            if name is not None:
                patched.setattr(name, die)
            else:
                patched.setattr(CatalogWriter, "note_sent", die)
            with pytest.raises(Died):
                set_backend(filled, place)
        if name is not None:
            assert answers(filled) == before
            assert codes(filled) == set()
    filled("sync")
    assert answers(filled) == before
    assert codes(filled) == set()


def test_another_model_takes_the_place_of_the_vectors(filled: Any, place: Place) -> None:
    """Vectors of two models never lie beside each other."""
    set_backend(filled, place)
    shutil.copy(filled.store / "filestore.toml", filled.folder / "kept")
    settings = filled.store / "filestore.toml"
    assert 'embedder = "builtin"' in settings.read_text()
    done = filled.json("embedder", "set", "builtin", "--yes")
    assert done["embedded"] == 0
    assert place.rows() == NOTES
    assert codes(filled) == set()


def test_a_password_is_neither_written_nor_shown(filled: Any) -> None:
    """Settings are committed; where a person wrote one by hand, no message has it."""
    dsn = "postgresql://me:s3cr3t-word@127.0.0.1:1/knowledge"
    for given in (f"dsn={dsn}", "dsn=host=127.0.0.1 password=s3cr3t-word", dsn):
        done = filled("backend", "set", "pgvector", given, "--yes", code=2)
        assert "s3cr3t" not in done.stdout + done.stderr
    settings = filled.store / "filestore.toml"
    text = settings.read_text().replace(
        'metric = "cosine"', 'metric = "cosine"\nbackend = "pgvector"'
    )
    settings.write_text(f'{text}\n[backend_config]\ndsn = "{dsn}"\n')
    every = (
        ("backend", "show"),
        ("trust", "--list"),
        ("status",),
        ("search", "harbour"),
        ("verify", "--level", "full"),
        ("trust", "--yes"),
        ("search", "harbour"),
        ("sync",),
        ("verify", "--level", "full"),
        ("backend", "show", "--json"),
        ("backend", "set", "faiss", "--yes", "--clear"),
    )
    for words in every:
        done = filled(*words, code=None)
        assert "s3cr3t" not in done.stdout + done.stderr, words


def test_vectors_that_are_gone_are_told_with_what_brings_them_back(
    filled: Any, tmp_path: Path
) -> None:
    """By `backend show` and `verify`; the command they name does it."""
    path = tmp_path / "vectors.jsonl"
    filled("backend", "set", "local", f"path={path}", "--yes")
    path.unlink()
    shown = filled("backend", "show", code=1)
    assert "has lost the vectors that were sent to it (try: filestore sync --full)" in shown.stdout
    found = filled("verify", "--level", "full", code=1)
    assert "'filestore sync --full' repairs 1 of 1" in found.stdout
    filled("sync", "--full")
    assert filled("backend", "show").stdout == f"local: {path}\n{NOTES} vectors\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("faisss",), "did you mean 'faiss'"),
        (("local", "pth=x"), "did you mean 'path'"),
        (("local", "path="), "'path' has no value"),
        (("local", "path=a", "path=b"), "'path' is given twice"),
        (("local", "path"), "KEY=VALUE"),
        (("pgvector",), "needs dsn"),
        (("qdrant", "url=nowhere"), "is not an address"),
    ],
)
def test_wrong_words_are_wrong_usage(filled: Any, words: tuple[str, ...], says: str) -> None:
    """They cost nothing, and the message says what to type."""
    if words[0] == "qdrant":
        pytest.importorskip("qdrant_client")
    done = filled.json("backend", "set", *words, "--yes", code=2)
    assert says in done["error"] + done["remedy"]
    assert filled.json("backend", "show")["kind"] == "faiss"


def test_the_file_of_the_sidecar_is_sent_nothing(filled: Any) -> None:
    """What changed since it was written is searched all the same, and said to be."""
    filled.write("file_index/chunked/note0.md", "Another harbour.\n")
    filled("sync")
    shown = filled("backend").stdout
    assert f"{NOTES} vectors; 2 changes since the file was written, searched all the same" in shown


@pytest.mark.parametrize(
    "path", ["embeddings.sqlite", "catalog.sqlite-wal", "./vectors-7.faiss", "fulltext/x", "."]
)
def test_no_part_of_the_sidecar_is_a_place(filled: Any, path: str) -> None:
    """It is refused before anything is opened there, and what is there stays."""
    kept = {one.name: one.read_bytes() for one in filled.sidecar.glob("*.sqlite")}
    done = filled.json("backend", "set", "local", f"path={path}", "--yes", code=None)
    assert "part of the sidecar" in done["error"]
    assert {one.name: one.read_bytes() for one in filled.sidecar.glob("*.sqlite")} == kept
    assert codes(filled) == set()


def test_lines_in_the_sidecar_need_no_leave(
    filled: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing leaves the store: whoever opens it may ask them."""
    filled("backend", "set", "local", "--yes")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody"))
    assert "not allowed" not in notes_of(filled)


@pytest.mark.parametrize("engine", ["", 'engine = "edge"\n'])
def test_a_store_of_the_edge_engine_is_given_another_folder(filled: Any, engine: str) -> None:
    """Words are found before; the command that is named brings the vectors, and embeds nothing."""
    pytest.importorskip("qdrant_client")
    before = answers(filled)
    folder = filled.sidecar / "rows"
    (folder / "edge" / "mine").mkdir(parents=True)
    settings = filled.folder / "file_index" / "filestore.toml"
    text = settings.read_text()
    options = f'[backend_config]\npath = "rows"\ncollection = "mine"\n{engine}'
    settings.write_text(f'backend = "qdrant"\n{text}\n{options}')
    assert filled.json("search", "harbour")["hits"]
    assert (folder / "edge" / "mine").is_dir()
    told = notes_of(filled)
    command = "backend set qdrant path=rows-client collection=mine"
    assert f"try: filestore {command}" in told
    assert "edge" in told
    assert filled.json(*command.split(), "--yes")["embedded"] == 0
    assert answers(filled) == before
    assert codes(filled) == set()
