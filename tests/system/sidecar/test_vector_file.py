"""The FAISS file of a large store on a real disk: written, replayed, grown, trained, checked."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from msgspec.structs import replace

from filestore.catalog import Catalog, CatalogWriter, FileRow, _remembered
from filestore.chunks.layout import TREE
from filestore.chunks.observation import INDEXED, Observation
from filestore.config import user_config
from filestore.config.layout import Places
from filestore.core.hashing import content_hash, embedding_key, vector_id
from filestore.embed import Embedder
from filestore.embed.cache import EmbeddingCache
from filestore.fs.disk import file_hash
from filestore.index import Description, VectorIndex, read_index
from filestore.index.building import Limits
from filestore.index.faiss_index import FaissIndex
from filestore.sidecar import vector_file
from filestore.sidecar.snapshot import Sample, StoreSnapshot, VerificationReport
from filestore.sidecar.vector_file import OwnFile
from filestore.sidecar.vector_home import StoredVectors
from filestore.verify import _vectors

DIMENSION = 32
EXACT_UP_TO = 600
CENTRES = 20


class NumberEmbedder(Embedder):
    """Gives the text "n" a vector near one of some centres, always the same."""

    name = "numbers"
    fingerprint = "numbers/1"
    dimension = DIMENSION
    lexical = False

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        number = int(text)
        centre = np.random.default_rng(number % CENTRES).normal(size=DIMENSION)
        row = centre + 0.5 * np.random.default_rng(1000 + number).normal(size=DIMENSION)
        return (row / np.linalg.norm(row)).astype(np.float32)


EMBEDDER = NumberEmbedder()


def key_of(number: int) -> bytes:
    return embedding_key(str(number))


def id_of(number: int) -> int:
    return vector_id(key_of(number))


@dataclass
class Shelf:
    """A sidecar without files: texts that are numbers, their embeddings and their index."""

    places: Places
    catalog: CatalogWriter
    embeddings: EmbeddingCache
    limits: Limits = field(default_factory=lambda: Limits(exact_up_to=EXACT_UP_TO, work=math.inf))
    """As if lists always won: so few vectors are quicker compared one and all."""

    def change(
        self, *, add: Sequence[int] = (), remove: Sequence[int] = (), write: bool = True
    ) -> None:
        """One commit."""
        self.catalog.begin()
        self.catalog.set_meta("fingerprint", EMBEDDER.fingerprint)
        if add:
            vectors = EMBEDDER.embed_documents([str(number) for number in add])
            self.embeddings.put(EMBEDDER.fingerprint, [key_of(number) for number in add], vectors)
            rows = [self._row(number) for number in add]
            self.catalog.insert(rows)
            self.catalog.set_embedded([id_of(number) for number in add])
        known = self.catalog.files([f"{number}.md" for number in remove])
        self.catalog.delete([row.id for row in known.values()])
        if write:
            self.write()
        self.catalog.commit()

    def write(self) -> bool:
        return OwnFile(self.places).write(
            self.catalog, self.vectors(), wanted=True, limits=self.limits
        )

    def vectors(self) -> StoredVectors:
        return StoredVectors(self.catalog, self.embeddings, EMBEDDER)

    def _row(self, number: int) -> tuple[Observation, FileRow]:
        look = Observation(
            path=f"{number}.md",
            values=(0, 0, 0, 0, 0),
            state=INDEXED,
            data=str(number).encode(),
            texts=(str(number),),
            keys=(key_of(number),),
        )
        (identifier,) = self.catalog.new_ids(1)
        row = FileRow(
            identifier,
            look.path,
            INDEXED,
            "",
            content_hash(look.data),
            look.text_key,
            "chunk",
            "",
            None,
            None,
            None,
            False,
            self.catalog.next_generation,
        )
        return look, row

    def load(self) -> VectorIndex:
        return vector_file.loaded(self.places, self.vectors())

    def describe(self) -> Description:
        found = vector_file.describe(self.catalog)
        assert found is not None
        return found

    def codes(self) -> dict[str, str]:
        """What a full look at the vectors finds: code to detail."""
        subject = StoreSnapshot(
            places=self.places,
            layout=TREE,
            catalog=self.catalog,
            embeddings=self.embeddings,
            embedder=EMBEDDER,
            deleted=lambda paths: set(),
            home=OwnFile(self.places),
            today=date(2026, 5, 3),
        )
        said = VerificationReport()
        _vectors.check(subject, "full", Sample(), said)
        return {found.code: found.detail for found in said.findings}

    def file(self) -> str:
        named = self.catalog.index_file()
        assert named is not None
        return os.path.join(self.places.sidecar, named.name)

    def damage(self, changed: Any) -> None:
        """Replace the file by an index that holds something else, with its hash recorded."""
        path = self.file()
        changed.write(path)
        with self.catalog.connection:
            self.catalog.set_meta("index_size", os.path.getsize(path))
            self.catalog.set_meta("index_hash", file_hash(path).hex())
            self.mark(self.places.configuration)
            self.seal()

    def seal(self) -> None:
        """Put the checksum of the catalog that a commit would put."""
        _remembered.seal(self.catalog.connection, _remembered.COUNTED)

    def mark(self, configuration: str) -> None:
        """Mark the file as one that this user wrote."""
        named = self.catalog.index_file()
        assert named is not None
        data = f"{self.catalog.identity}\n{named.name}\n{named.hash}".encode()
        self.catalog.set_meta("index_seal", user_config.seal(configuration, data, make=True))

    def read(self) -> Any:
        """The index of the file, to be changed by hand."""
        return read_index(self.file(), DIMENSION, lambda ids: (np.empty((0, DIMENSION)), ids < 0))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    places = Places(
        root=str(tmp_path),
        sidecar=str(tmp_path / ".sidecar"),
        configuration=str(tmp_path / "configuration"),
    )
    os.makedirs(places.sidecar)
    catalog = CatalogWriter.open(places.catalog, create=True)
    embeddings = EmbeddingCache.open(places.embeddings)
    yield Shelf(places, catalog, embeddings)
    catalog.close()
    embeddings.close()


def assert_answers_like_exact(index: VectorIndex, numbers: Sequence[int]) -> None:
    """Ids are those of the numbers, and nearly all of the ten nearest are found, well scored."""
    assert index.ids().tolist() == sorted(id_of(number) for number in numbers)
    rows = EMBEDDER.embed_documents([str(number) for number in numbers])
    ids = np.array([id_of(number) for number in numbers])
    found = 0
    queries = range(100_000, 100_040)
    for query in map(EMBEDDER.embed_query, map(str, queries)):
        scores = dict(zip(ids.tolist(), (rows @ query).tolist(), strict=True))
        nearest = sorted(scores, key=lambda identifier: -scores[identifier])[:10]
        hits = index.search(query, 10)
        assert all(abs(scores[identifier] - score) < 1e-5 for identifier, score in hits)
        found += len({identifier for identifier, _ in hits} & set(nearest))
    assert found >= 0.98 * 10 * len(queries)


def test_a_store_grows_over_the_limit_and_shrinks_below(shelf: Shelf) -> None:
    """Crossing the limit either way changes the kind of index, which is said, and no answer."""
    shelf.change(add=range(600))
    assert shelf.describe() == Description(kind="exact", vectors=600)
    assert_answers_like_exact(shelf.load(), range(600))
    shelf.change(add=[600])
    described = shelf.describe()
    assert (described.kind, described.vectors, described.trained_on) == ("approximate", 601, 601)
    assert described.recall is not None
    assert described.recall >= 0.98
    assert_answers_like_exact(shelf.load(), range(601))
    shelf.change(remove=range(100, 110))
    assert shelf.describe() == Description(kind="exact", vectors=591)
    assert_answers_like_exact(shelf.load(), [*range(100), *range(110, 601)])


def test_what_came_since_is_replayed(shelf: Shelf) -> None:
    """Additions and removals after the file was written are in the answers, the file unchanged."""
    shelf.change(add=range(1000))
    before = Path(shelf.file()).read_bytes()
    shelf.change(add=range(1000, 1040), remove=range(50), write=False)
    assert Path(shelf.file()).read_bytes() == before
    assert_answers_like_exact(shelf.load(), range(50, 1040))
    assert shelf.codes() == {}
    shelf.change(add=range(20), remove=range(1000, 1010), write=False)
    assert_answers_like_exact(shelf.load(), [*range(20), *range(50, 1000), *range(1010, 1040)])
    assert shelf.codes() == {}


def test_a_rewrite_keeps_its_training_until_it_is_outgrown(shelf: Shelf) -> None:
    """A rewrite trains anew only where the number of vectors has doubled since."""
    shelf.change(add=range(1000))
    shelf.change(add=range(1000, 1500), remove=range(100))
    described = shelf.describe()
    assert (described.vectors, described.trained_on) == (1400, 1000)
    assert_answers_like_exact(shelf.load(), range(100, 1500))
    assert shelf.codes() == {}
    shelf.change(add=range(1500, 2200))
    described = shelf.describe()
    assert (described.vectors, described.trained_on) == (2100, 2100)
    assert_answers_like_exact(shelf.load(), range(100, 2200))
    assert shelf.codes() == {}


def test_where_lists_win_nothing_the_index_stays_exact(shelf: Shelf) -> None:
    """What was measured of lists is remembered, and lists are not tried at every writing."""
    shelf.limits = Limits(exact_up_to=EXACT_UP_TO)
    shelf.change(add=range(1000))
    first = shelf.describe()
    assert (first.kind, first.trained_on) == ("exact", 1000)
    assert first.work is not None
    assert first.work > shelf.limits.work
    shelf.change(add=range(1000, 1500))
    assert shelf.describe() == replace(first, vectors=1500)
    assert_answers_like_exact(shelf.load(), range(1500))
    shelf.catalog.begin()
    shelf.catalog.set_meta("index_fingerprint", "numbers/2")
    shelf.catalog.commit()
    shelf.change(add=[1500])
    assert shelf.describe().trained_on == 1501
    assert shelf.codes() == {}


def test_a_damaged_file_is_not_parsed(shelf: Shelf) -> None:
    """With a flipped byte the answers come from the embeddings, exactly, and a rewrite trains."""
    shelf.change(add=range(1000))
    path = Path(shelf.file())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert "index-damaged" in shelf.codes()
    index = shelf.load()
    assert isinstance(index, FaissIndex)
    assert_answers_like_exact(index, range(1000))
    shelf.change(add=[1000])
    assert shelf.describe().trained_on == 1001
    assert shelf.codes() == {}


def test_a_row_that_is_not_its_embedding_is_found(shelf: Shelf) -> None:
    """A row with another text's vector in a file of sound hash is a finding of the full look."""
    shelf.change(add=range(1000))
    index = shelf.read()
    index.add(np.array([id_of(7)]), EMBEDDER.embed_documents(["8"]))
    shelf.damage(index)
    assert list(shelf.codes()) == ["vector-mismatch"]


def test_missing_and_foreign_rows_are_found(shelf: Shelf) -> None:
    """Rows too few and too many in a file of sound hash are findings of the full look."""
    shelf.change(add=range(1000))
    index = shelf.read()
    index.remove(np.array([id_of(7), id_of(8)]))
    index.add(np.array([5]), EMBEDDER.embed_documents(["9"]))
    shelf.damage(index)
    assert set(shelf.codes()) == {"vector-missing", "vector-orphan"}


def test_a_row_that_is_there_twice_is_found(shelf: Shelf) -> None:
    """The same row twice, which no comparison of sets shows, is a finding of the full look."""
    shelf.change(add=range(1000))
    index = shelf.read()
    index._index.add_with_ids(EMBEDDER.embed_documents(["9"]), np.array([id_of(9)]))
    shelf.damage(index)
    assert list(shelf.codes()) == ["vector-orphan"]


def test_a_rewrite_mends_rows_that_differ(shelf: Shelf) -> None:
    """A rewrite without training replaces the rows whose embedding is another one now."""
    shelf.change(add=range(1000))
    index = shelf.read()
    index.add(np.array([id_of(7)]), EMBEDDER.embed_documents(["8"]))
    shelf.damage(index)
    shelf.change(add=[1000])
    assert shelf.describe().trained_on == 1000
    assert shelf.codes() == {}
    assert_answers_like_exact(shelf.load(), range(1001))


def test_a_lost_embedding_is_said_and_left_out(shelf: Shelf) -> None:
    """An embedding that is gone is no row of the file written next, and noted as never embedded."""
    shelf.change(add=range(1000))
    connection = shelf.embeddings._connection
    connection.execute("DELETE FROM vectors WHERE key = ?", (key_of(7),))
    shelf.catalog.begin()
    assert shelf.write() is True
    shelf.catalog.commit()
    assert shelf.catalog.paths_without_vectors() == ["7.md"]
    assert id_of(7) not in shelf.load().ids()
    assert shelf.describe().vectors == 999
    shelf.catalog.begin()
    shelf.embeddings.put(EMBEDDER.fingerprint, [key_of(7)], EMBEDDER.embed_documents(["7"]))
    shelf.catalog.set_embedded([id_of(7)])
    shelf.catalog.commit()
    assert_answers_like_exact(shelf.load(), range(1000))
    assert shelf.codes() == {}


def test_answers_go_on_where_embeddings_are_lost(shelf: Shelf) -> None:
    """With its embeddings gone an approximate index answers from what it holds, nearly as well."""
    shelf.change(add=range(1000))
    index = shelf.load()
    query = EMBEDDER.embed_query("7")
    exact = index.search(query, 5)
    shelf.embeddings._connection.execute("DELETE FROM vectors")
    estimated = index.search(query, 5)
    assert exact[0][0] == estimated[0][0] == id_of(7)
    assert all(abs(one[1] - other[1]) < 0.02 for one, other in zip(exact, estimated, strict=True))


def test_vectors_of_another_model_are_not_read(shelf: Shelf) -> None:
    """A file written for another model is passed over, however sound: two models never mix."""
    shelf.change(add=range(1000))
    shelf.catalog.begin()
    shelf.catalog.set_meta("index_fingerprint", "numbers/2")
    shelf.catalog.commit()
    assert isinstance(shelf.load(), FaissIndex)
    assert_answers_like_exact(shelf.load(), range(1000))


def test_an_index_from_before_there_were_kinds_is_exact(shelf: Shelf) -> None:
    """A catalog that says nothing about the kind of its index has an exact one."""
    assert vector_file.describe(shelf.catalog) is None
    shelf.change(add=range(10))
    with shelf.catalog.connection:
        shelf.catalog.connection.execute(
            "DELETE FROM meta WHERE key IN ('index_description', 'index_fingerprint')"
        )
    assert shelf.describe() == Description(kind="exact", vectors=10)
    assert_answers_like_exact(shelf.load(), range(10))


@pytest.mark.skipif(not os.environ.get("FILESTORE_LARGE"), reason="FILESTORE_LARGE is not set")
def test_a_real_store_above_the_limit(workspace: Any) -> None:
    """Of more than 50,000 texts it is measured, and said, what lists would win; answers hold."""
    folder = workspace.chunked / "questions"
    folder.mkdir()
    for number in range(51):
        questions = "".join(f"  - q{number} {part}\n" for part in range(1000))
        (folder / f"chunk{number + 1}.md").write_text(
            f"---\nquestions:\n{questions}---\nThe answer of amber{number}.\n"
        )
    report = workspace.sync()
    assert report["embedded"] == 51 * 1001
    with_index = Catalog.open(str(workspace.sidecar / "catalog.sqlite"))
    described = vector_file.describe(with_index)
    with_index.close()
    assert described is not None
    # Texts are embedded in turns: a slow machine has more than one above the limit.
    assert described.vectors == 51 * 1001
    assert 50_000 < described.trained_on <= 51 * 1001
    assert described.work is not None
    assert described.kind == ("approximate" if described.work <= 0.5 else "exact")
    assert workspace.json("status")["index"]["work"] == described.work
    (hit, *_) = workspace.json("search", "answer amber42", "--mode", "vector")["hits"]
    assert hit["path"] == "chunked/questions/chunk43.md"
    (folder / "chunk43.md").unlink()
    (folder / "new.md").write_text("The answer of garnet.\n")
    workspace.sync()
    hits = workspace.json("search", "the answer of garnet", "--mode", "vector")["hits"]
    assert hits[0]["path"] == "chunked/questions/new.md"
    assert all(hit["path"] != "chunked/questions/chunk43.md" for hit in hits)
    workspace.assert_settled()


def test_a_file_of_a_stranger_is_never_parsed(shelf: Shelf, tmp_path: Path) -> None:
    """A FAISS file without this user's mark is left alone, told as foreign, and written again."""
    shelf.change(add=range(10))
    for mark in (None, "", "00" * 32, "\u00e9", b"\xff"):
        with shelf.catalog.connection:
            shelf.catalog.set_meta("index_seal", mark)
        # To parse this would be an error that is told: its hash is the one that stands recorded.
        with open(shelf.file(), "wb") as file:
            file.write(b"IxFInot what it says")
        with shelf.catalog.connection:
            shelf.catalog.set_meta("index_size", os.path.getsize(shelf.file()))
            shelf.catalog.set_meta("index_hash", file_hash(shelf.file()).hex())
            shelf.seal()
        found = OwnFile(shelf.places).findings(shelf.catalog, hashes=True)
        assert [finding.code for finding in found] == ["index-foreign"]
        seen = OwnFile(shelf.places).inspect(shelf.vectors())
        assert [finding.code for finding in seen.findings] == ["index-foreign"]
        assert seen.index is None
        assert "index-foreign" in seen.unread or "writer is unknown" in seen.unread
        assert_answers_like_exact(shelf.load(), range(10))
    shelf.change()
    assert OwnFile(shelf.places).findings(shelf.catalog, hashes=True) == []


def test_the_mark_of_another_user_is_a_stranger_s(shelf: Shelf, tmp_path: Path) -> None:
    """The same file under a mark made with another secret is foreign."""
    shelf.change(add=range(10))
    with shelf.catalog.connection:
        shelf.mark(str(tmp_path / "another"))
    found = OwnFile(shelf.places).findings(shelf.catalog, hashes=True)
    assert [finding.code for finding in found] == ["index-foreign"]


def _folder_that_leads_away(path: Path) -> None:
    path.symlink_to(path.parent)


IN_THE_WAY: Final[dict[str, tuple[str, Callable[[Path], Any]]]] = {
    "nothing": ("filestore/other", Path.touch),
    "a folder": ("filestore/secret", Path.mkdir),
    "a link to a folder": ("filestore/secret", _folder_that_leads_away),
    "a link to nothing": ("filestore/secret", lambda path: path.symlink_to("nowhere")),
    "a pipe": ("filestore/secret", os.mkfifo),
    "a short file": ("filestore/secret", lambda path: path.write_bytes(b"short")),
    "a file for the folder": ("filestore", Path.touch),
    "a link for the folder": ("filestore", _folder_that_leads_away),
    "a link to nothing for the folder": ("filestore", lambda path: path.symlink_to("nowhere")),
    "a file that can be run": ("filestore", lambda path: path.touch(0o755)),
}


@pytest.mark.parametrize("obstacle", IN_THE_WAY)
def test_who_can_make_a_mark_is_known_before(tmp_path: Path, obstacle: str) -> None:
    """Where a sync could not mark its files, they are not told as foreign after each."""
    name, put = IN_THE_WAY[obstacle]
    path = tmp_path / "configuration" / name
    path.parent.mkdir(parents=True)
    put(path)
    said = user_config.can_seal(str(tmp_path / "configuration"))
    made = user_config.seal(str(tmp_path / "configuration"), b"data", make=True)
    assert said == (made is not None)


def test_the_secret_is_the_user_s_alone(tmp_path: Path) -> None:
    """The secret is 32 bytes that only its owner reads; one that others could read is not used."""
    configuration = str(tmp_path / "configuration")
    assert user_config.seal(configuration, b"data") is None
    assert user_config.can_seal(configuration)
    mark = user_config.seal(configuration, b"data", make=True)
    assert mark is not None
    assert user_config.seal(configuration, b"data") == mark
    assert user_config.seal(configuration, b"other") != mark
    path = tmp_path / "configuration" / "filestore" / "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == 32
    path.chmod(0o644)
    assert user_config.seal(configuration, b"data") is None
    assert user_config.seal(configuration, b"data", make=True) not in (None, mark)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret"]


def test_without_a_place_for_a_secret_nothing_is_parsed(shelf: Shelf, tmp_path: Path) -> None:
    """Where no secret can be kept vectors come from the embeddings, and nothing asks for more."""
    (tmp_path / "configuration").write_text("no folder")
    shelf.change(add=range(10))
    assert shelf.catalog.meta("index_seal") is None
    assert OwnFile(shelf.places).findings(shelf.catalog, hashes=True) == []
    assert_answers_like_exact(shelf.load(), range(10))
