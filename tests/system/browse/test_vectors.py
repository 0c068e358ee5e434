"""Neighbours, maps and distributions of a store on disk, also where a part of it is not there."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from filestore import FilestoreError
from filestore.browse import InspectedStore, NoVectorError
from filestore.catalog import CatalogMissingError
from filestore.embed.cache import EmbeddingsDamaged, EmbeddingsMissing
from tests.advice import all_words

TOPICS = ("bees", "granite", "sailing", "cheese")


@pytest.fixture
def opened(workspace: Any) -> Iterator[Callable[[], InspectedStore]]:
    """Opens the store; closed at the end."""
    stores: list[InspectedStore] = []

    def open_store() -> InspectedStore:
        stores.append(
            InspectedStore(os.fspath(workspace.store), configuration=os.environ["XDG_CONFIG_HOME"])
        )
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def write(workspace: Any, path: str, body: str, *keys: str) -> None:
    head = "".join(f"{key}\n" for key in keys)
    target = workspace.chunked / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"---\n{head}---\n{body}" if keys else body)


@pytest.fixture
def notes(workspace: Any) -> Any:
    """Own files on four topics, three a topic, the second of each like the first."""
    for topic in TOPICS:
        write(workspace, f"{topic}/one.md", f"All about {topic}: {topic} in the {topic} season.\n")
        write(
            workspace,
            f"{topic}/two.md",
            f"More about {topic}: {topic} in the {topic} season, and later.\n",
            'headings: ["Guide", "Seasons"]',
            "pages: [3, 4]",
        )
        write(workspace, f"{topic}/far.md", f"Unrelated words, {topic[::-1]} {topic[1:]}ly.\n")
    workspace.sync()
    return workspace


def names(found: Any) -> list[str]:
    return [one.path for one in found]


def cosine(store: InspectedStore, first: str, second: str) -> float:
    """The product of two bodies as the model embeds them, asked of the model alone."""
    embedder = store.embedder
    assert embedder is not None
    from filestore.chunks.chunk_file import parse, texts

    chunks = [parse(Path(store.root, path).read_bytes()) for path in (first, second)]
    vectors = embedder.embed_documents([texts(chunk)[0] for chunk in chunks])
    return float(vectors[0] @ vectors[1])


def test_neighbours_are_the_nearest_texts(notes: Any, opened: Callable[[], InspectedStore]) -> None:
    """The nearest file comes first, with its true cosine, where it stands, and never the file."""
    store = opened()
    found = store.explorer.neighbours("chunked/bees/one.md", 50)
    assert len(found) == 11
    assert "chunked/bees/one.md" not in names(found)
    first = found[0]
    assert first.path == "chunked/bees/two.md"
    assert first.resource == "bees"
    assert (first.headings, first.pages) == (("Guide", "Seasons"), (3, 4))
    for one in found:
        expected = cosine(store, "chunked/bees/one.md", one.path)
        assert one.cosine == pytest.approx(expected, abs=1e-5)
    order = [(-one.cosine, one.path) for one in found]
    assert order == sorted(order)
    assert store.explorer.neighbours("chunked/bees/one.md", 3) == found[:3]
    assert store.explorer.neighbours("chunked/bees/one.md", 0) == ()


def test_equally_near_files_come_by_path(notes: Any, opened: Callable[[], InspectedStore]) -> None:
    """Files with one text are equally near, and the first by path are given."""
    for number in (3, 1, 2):
        shutil.copy(notes.chunked / "bees/one.md", notes.chunked / f"copy{number}.md")
    notes.sync()
    found = opened().explorer.neighbours("chunked/bees/one.md", 2)
    assert names(found) == ["chunked/copy1.md", "chunked/copy2.md"]
    assert [one.cosine for one in found] == pytest.approx([1, 1], abs=1e-6)


def test_the_best_part_decides(notes: Any, opened: Callable[[], InspectedStore]) -> None:
    """A file with one question like the text is near, however far its other texts are."""
    near = "All about bees: bees in the bees season."
    for number in range(4):
        far = [f"What is the weight of part {number}{letter}?" for letter in "abcd"]
        questions = json.dumps([*far[:number], near, *far[number:]])
        write(notes, f"asked{number}.md", f"Nothing of kind {number}.\n", f"questions: {questions}")
    notes.sync()
    found = opened().explorer.neighbours("chunked/bees/one.md", 4)
    assert names(found) == [f"chunked/asked{number}.md" for number in range(4)]
    assert [one.cosine for one in found] == pytest.approx([1] * 4, abs=1e-6)
    back = opened().explorer.neighbours("chunked/asked0.md", 4)
    assert names(back)[:4] == [
        *(f"chunked/asked{number}.md" for number in (1, 2, 3)),
        "chunked/bees/one.md",
    ]


def test_neighbours_now_are_those_of_the_text_on_disk(
    notes: Any, opened: Callable[[], InspectedStore]
) -> None:
    """After an edit the stored vector still has its old neighbours, the text its new ones."""
    write(notes, "bees/one.md", "All about granite: granite in the granite season.\n")
    explorer = opened().explorer
    assert names(explorer.neighbours("chunked/bees/one.md", 1)) == ["chunked/bees/two.md"]
    (now,) = explorer.neighbours("chunked/bees/one.md", 1, now=True)
    assert now.path == "chunked/granite/one.md"
    assert now.cosine == pytest.approx(1, abs=1e-6)


def test_a_file_nobody_indexed_has_neighbours_now(
    notes: Any, opened: Callable[[], InspectedStore]
) -> None:
    """An untracked file is embedded for the asking, and has none by what is stored."""
    write(notes, "new.md", "More about cheese: cheese in the cheese season.\n")
    explorer = opened().explorer
    assert names(explorer.neighbours("chunked/new.md", 2, now=True)) == [
        "chunked/cheese/one.md",
        "chunked/cheese/two.md",
    ]
    with pytest.raises(NoVectorError, match=r"chunked/new\.md is not indexed") as caught:
        explorer.neighbours("chunked/new.md")
    assert "filestore sync" in all_words(caught.value)


def test_neighbours_follow_a_sync(notes: Any, opened: Callable[[], InspectedStore]) -> None:
    """The next answer is of what was indexed meanwhile, from the same explorer."""
    store = opened()
    explorer = store.explorer
    explorer.neighbours("chunked/bees/one.md", 1)
    write(notes, "bees/nearest.md", "All about bees: bees in the bees season!\n")
    store.sync()
    assert names(explorer.neighbours("chunked/bees/one.md", 1)) == ["chunked/bees/nearest.md"]
    write(notes, "bees/as-near.md", "All about bees: bees in the bees season?\n")
    notes.sync()
    assert names(explorer.neighbours("chunked/bees/one.md", 1)) == ["chunked/bees/as-near.md"]
    (notes.chunked / "bees/as-near.md").unlink()
    (notes.chunked / "bees/nearest.md").unlink()
    notes.sync()
    assert names(explorer.neighbours("chunked/bees/one.md", 1)) == ["chunked/bees/two.md"]


@pytest.mark.parametrize("content", [b"---\na: [\n---\nText.\n", b"\xff\xfe", b"", None])
def test_what_is_no_chunk_now_says_so(
    notes: Any, opened: Callable[[], InspectedStore], content: bytes | None
) -> None:
    """A malformed or missing file has no neighbours now; those of its vector are still there."""
    path = notes.chunked / "bees/one.md"
    path.unlink() if content is None else path.write_bytes(content)
    explorer = opened().explorer
    with pytest.raises(NoVectorError, match=r"chunked/bees/one\.md has no text") as caught:
        explorer.neighbours("chunked/bees/one.md", now=True)
    assert "; fix the file" in caught.value.message
    assert names(explorer.neighbours("chunked/bees/one.md", 1)) == ["chunked/bees/two.md"]


def test_a_withheld_file_has_no_neighbours(
    notes: Any, opened: Callable[[], InspectedStore]
) -> None:
    """What was left out of answers is no neighbour and has none."""
    write(notes, "bees/two.md", "---\na: [\n---\nText.\n")
    notes.sync(code=1)
    explorer = opened().explorer
    assert "chunked/bees/two.md" not in names(explorer.neighbours("chunked/bees/one.md", 50))
    with pytest.raises(NoVectorError):
        explorer.neighbours("chunked/bees/two.md")


def test_a_link_is_not_followed(
    notes: Any, opened: Callable[[], InspectedStore], tmp_path: Path
) -> None:
    """The text behind a link is not embedded, nor what lies outside the tree."""
    (tmp_path / "secret.md").write_text("A secret.\n")
    (notes.chunked / "link.md").symlink_to(tmp_path / "secret.md")
    explorer = opened().explorer
    for path in ("chunked/link.md", "chunked/../../secret.md", "../secret.md"):
        with pytest.raises(NoVectorError):
            explorer.neighbours(path, now=True)


def test_without_the_model_stored_vectors_answer(
    notes: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Neighbours and map need no model; a new text does, and says what to do."""
    before = opened().explorer
    expected = before.neighbours("chunked/bees/one.md", 5)
    points = before.vector_map()
    settings = notes.store / "filestore.toml"
    settings.write_text(settings.read_text().replace('"builtin"', '"onnx:not-here"'))
    write(notes, "new.md", "Words that nobody embedded yet.\n")
    explorer = opened().explorer
    assert explorer.neighbours("chunked/bees/one.md", 5) == expected
    assert explorer.neighbours("chunked/bees/one.md", 5, now=True) == expected
    assert explorer.vector_map() == points
    with pytest.raises(FilestoreError) as caught:
        explorer.neighbours("chunked/new.md", now=True)
    assert "not-here" in caught.value.message + caught.value.remedy


def test_another_model_than_the_vectors_is_not_asked(
    notes: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Two models are never mixed: a new text is not embedded by a model that is not the one."""
    notes.in_catalog("UPDATE meta SET value = 'other/1:384' WHERE key = 'fingerprint'")
    with pytest.raises(NoVectorError, match="are missing or damaged"):
        opened().explorer.neighbours("chunked/bees/one.md", now=True)


@pytest.mark.parametrize("ask", ["neighbours", "vector_map"])
def test_without_embeddings_it_says_what_to_do(
    notes: Any, opened: Callable[[], InspectedStore], ask: str
) -> None:
    """Embeddings that are gone or damaged are named with the remedy."""
    words = ("chunked/bees/one.md",) if ask == "neighbours" else ()
    path = notes.sidecar / "embeddings.sqlite"
    for damage, error in ((b"x" * 9_000, EmbeddingsDamaged), (None, EmbeddingsMissing)):
        for part in notes.sidecar.glob("embeddings.sqlite*"):
            part.unlink()
        if damage is not None:
            path.write_bytes(damage)
        explorer = opened().explorer
        with pytest.raises(error) as caught:
            getattr(explorer, ask)(*words)
        assert "filestore sync" in all_words(caught.value)


def test_without_a_catalog_it_says_what_to_do(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """A question names the command that makes the catalog."""
    shutil.rmtree(workspace.sidecar)
    with pytest.raises(CatalogMissingError) as caught:
        opened().explorer.vector_map()
    assert "filestore sync" in all_words(caught.value)


def test_an_empty_store_has_an_empty_map(
    workspace: Any, opened: Callable[[], InspectedStore]
) -> None:
    """Nothing to draw is drawn as nothing; nobody's neighbours are an error that says why."""
    explorer = opened().explorer
    points = explorer.vector_map()
    assert (points.paths, points.resources, len(points.xs), points.total) == ((), (), 0, 0)
    with pytest.raises(NoVectorError, match="nothing of this store is embedded"):
        explorer.neighbours("chunked/a.md")


def test_the_map_has_every_body_once(notes: Any, opened: Callable[[], InspectedStore]) -> None:
    """Every indexed file is a point with its resource, and like texts lie close together."""
    points = opened().explorer.vector_map()
    assert sorted(points.paths) == [
        f"chunked/{topic}/{name}.md" for topic in sorted(TOPICS) for name in ("far", "one", "two")
    ]
    assert list(points.resources) == [path.split("/")[1] for path in points.paths]
    assert points.total == len(points.xs) == len(points.ys) == 12
    assert 0 < points.explained[1] <= points.explained[0] < 1
    at = {
        path: numpy.array([x, y])
        for path, x, y in zip(points.paths, points.xs, points.ys, strict=True)
    }
    pairs = [
        numpy.linalg.norm(at[f"chunked/{topic}/one.md"] - at[f"chunked/{topic}/two.md"])
        for topic in TOPICS
    ]
    spread = numpy.linalg.norm(numpy.array([points.xs, points.ys]), axis=0).mean()
    assert numpy.mean(pairs) < spread


def test_the_choice_for_a_map_is_fixed(notes: Any, opened: Callable[[], InspectedStore]) -> None:
    """A smaller map has the first points of a larger one, whoever draws it, and the same total."""
    whole = opened().explorer.vector_map()
    few = opened().explorer.vector_map(5)
    assert few.paths == whole.paths[:5]
    assert few.total == 12
    assert opened().explorer.vector_map(5) == few
    write(notes, "more.md", "One more text.\n")
    notes.sync()
    later = opened().explorer.vector_map(5)
    assert len(set(later.paths) & set(few.paths)) >= 4
