"""A set asked of a store: made and indexed by the command line, asked by the public search.

One rule: nothing is embedded twice with one model. The vectors of all texts lie in one file of the
product's own, laid into each new store; those of the questions beside it.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import filestore
from filestore.search import Query
from filestore.search.evaluate import MODES
from filestore.search.metrics import ndcg, recall
from tests.bench.retrieval.sets import Asked, Built, Half

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PLACES: Final = 10
RECALL_PLACES: Final = 3
_BUILT: Final = ".built"
"""Which set a store was made from; hidden, so that it is no document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question, in every mode."""

    set: str
    query: str
    half: Half
    rankings: Mapping[str, list[str]]
    """Mode to files, best first."""
    ndcg: Mapping[str, float]
    recall: Mapping[str, float]
    """At three places."""

    @property
    def loss(self) -> float:
        """What hybrid search loses against the better of the two it is made of; 0 or below."""
        return min(0.0, self.ndcg["hybrid"] - max(self.ndcg["keyword"], self.ndcg["vector"]))

    def line(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where stores and vectors of one embedder lie."""

    work: Path
    embedder: str
    """As ``filestore init --embedder`` takes it."""

    def store(self, name: str) -> Path:
        """The store of a set."""
        return self.work / "stores" / _slug(self.embedder) / _slug(name)

    @property
    def embeddings(self) -> Path:
        """The vectors of the texts of every set."""
        return self.work / "embeddings" / f"{_slug(self.embedder)}.sqlite"

    def questions(self, fingerprint: str) -> Path:
        """The vectors of questions."""
        named = hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
        return self.work / "embeddings" / f"questions-{named}.npz"


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", os.path.basename(name.rstrip("/"))).strip("-")


def ask(name: str, built: Built, place: Place, *, reuse: bool = False) -> tuple[list[Answer], str]:
    """Every question of a set in every mode, and the fingerprint of the vectors.

    Args:
        name: Of the set.
        built: Its files and questions.
        place: Where the store lies, and with which embedder.
        reuse: Ask the store that an earlier run left, if it holds the same files.
    """
    root = place.store(name)
    mark = root / _BUILT
    if not (reuse and mark.is_file() and mark.read_text() == built.digest):
        _make(root, built, place)
        mark.write_text(built.digest)
    with filestore.open(root) as store:
        if store.embedder is None:
            raise SystemExit(f"{name}: the embedder {place.embedder} cannot be used here")
        fingerprint = store.embedder.fingerprint
        remembered = _Questions(store.embedder, place.questions(fingerprint))
        answers = [_answer(store, name, one) for one in built.questions]
        remembered.keep()
        return answers, fingerprint


def _make(root: Path, built: Built, place: Place) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    _run("init", str(root), "--layout", "in-place", "--embedder", place.embedder)
    for name, text in built.documents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "replace")
    with filestore.open(root) as store:
        embeddings = store.places.embeddings
    if place.embeddings.is_file():
        shutil.copyfile(place.embeddings, embeddings)
    _run("--store", str(root), "sync")
    place.embeddings.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(embeddings, place.embeddings)


def _run(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "filestore", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"filestore {' '.join(words)} gave {done.returncode}: {done.stderr}")


def _answer(store: filestore.Store, name: str, asked: Asked) -> Answer:
    rankings = {mode: _ranking(store, asked.query, mode) for mode in MODES}
    grades = dict.fromkeys(asked.relevant, 1.0)
    return Answer(
        set=name,
        query=asked.query,
        half=asked.half,
        rankings=rankings,
        ndcg={mode: ndcg(found, grades, PLACES) for mode, found in rankings.items()},
        recall={mode: recall(found, grades, RECALL_PLACES) for mode, found in rankings.items()},
    )


def _ranking(store: filestore.Store, query: str, mode: Any) -> list[str]:
    """The first files; more hits are asked for where several are of one file."""
    wanted = PLACES
    while True:
        answer = store.search(Query(text=query, k=wanted, mode=mode))
        if answer.mode != mode:
            raise SystemExit(f"asked by {mode}, answered by {answer.mode}: {answer.notes}")
        files = list(dict.fromkeys(hit.source or hit.path for hit in answer.hits))
        if len(files) >= PLACES or len(answer.hits) < wanted:
            return files[:PLACES]
        wanted *= 4


class _Questions:
    """The vectors of questions, each embedded once: the embedder is asked only for new ones."""

    def __init__(self, embedder: Any, path: Path) -> None:
        import numpy

        self._path = path
        self._known: dict[str, NDArray[np.float32]] = {}
        if path.is_file():
            with numpy.load(path, allow_pickle=False) as kept:
                self._known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))
        self._count = len(self._known)
        self._embed = embedder.embed_query
        embedder.embed_query = self.embed

    def embed(self, text: str) -> "NDArray[np.float32]":
        """In the place of the embedder's own method."""
        if text not in self._known:
            self._known[text] = self._embed(text)
        return self._known[text]

    def keep(self) -> None:
        """Write them, if any is new."""
        import numpy

        if len(self._known) > self._count:
            vectors = numpy.stack(list(self._known.values()))
            numpy.savez(self._path, texts=numpy.array(list(self._known)), vectors=vectors)
