"""What headings are worth in the vector of a section: ``python tests/bench/headings.py DIR``.

DIR holds Markdown notes. Each is cut as a store cuts it, and every piece embedded twice: with the
path of its headings, and by its own words alone. Looked for is the note of a heading, by the
heading alone and with the title of the note before it. The score is the mean reciprocal rank of the
note (Voorhees, TREC-8, 1999).
"""

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np

from filestore.chunks.chunk_file import embed_text
from filestore.embed import Choice, Embedder, open_embedder
from filestore.extract import for_name
from filestore.extract.about import about
from filestore.extract.base import EmptyDocumentError
from filestore.sidecar.cutting import Chunker

BUDGET = 256
QUERIES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A section, and where it stands."""

    note: str
    title: str
    headings: tuple[str, ...]
    body: str


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notes", metavar="DIR", type=Path)
    parser.add_argument("--embedder", metavar="SPEC", default="builtin")
    given = parser.parse_args()
    embedder = open_embedder(Choice(name=given.embedder))
    pieces = pieces_of(given.notes, Chunker(budget=BUDGET))
    headed = [piece for piece in pieces if len(piece.headings) > 1]
    asked = random.Random(3).sample(headed, min(QUERIES, len(headed)))
    with_path = embedder.embed_documents([embed_text(one.headings, one.body) for one in pieces])
    alone = embedder.embed_documents([one.body for one in pieces])
    rows = []
    for words, query in (
        ("a heading", lambda one: one.headings[-1]),
        ("title and heading", lambda one: f"{one.title} {one.headings[-1]}"),
    ):
        questions = [(query(one), one.note) for one in asked]
        ours = reciprocal_rank(embedder, with_path, pieces, questions)
        theirs = reciprocal_rank(embedder, alone, pieces, questions)
        rows.append(
            measure.Row(
                figure=f"the note of {words}",
                ours=f"with headings {ours:.4f}",
                yardstick=f"without {theirs:.4f}",
                compared=f"{ours - theirs:+.4f}",
            )
        )
    title = f"{len(asked)} headings among {len(pieces):,} sections, {given.embedder}"
    print(measure.table(f"Headings in a section's vector, mean reciprocal rank, {title}", rows))


def pieces_of(folder: Path, chunker: Chunker) -> list[Piece]:
    """The sections of all notes of a folder."""
    pieces = []
    for path in sorted(folder.rglob("*.md")):
        extractor = for_name(path.name)
        if extractor is None or any(part.startswith(".") for part in path.parts):
            continue
        try:
            document = extractor.extract(path.read_bytes(), name=path.name)
        except EmptyDocumentError:
            continue
        title = about(document, name=path.name).title
        pieces += [
            Piece(
                note=str(path),
                title=title,
                headings=piece.headings,
                body=document.text[piece.start : piece.end],
            )
            for piece in chunker.pieces(document)
        ]
    return pieces


def reciprocal_rank(
    embedder: Embedder,
    vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    pieces: list[Piece],
    questions: list[tuple[str, str]],
) -> float:
    """The mean of one over the place at which the right note stands first."""
    total = 0.0
    for query, note in questions:
        order = np.argsort(-(vectors @ embedder.embed_query(query)), kind="stable")
        notes = list(dict.fromkeys(pieces[place].note for place in order))
        total += 1 / (notes.index(note) + 1)
    return total / len(questions)


if __name__ == "__main__":
    main()
