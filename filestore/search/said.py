"""What is said of an answer: words left out, words nobody has, files no search can reach."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from filestore.catalog import Catalog, queries
from filestore.fulltext import Need, ParsedQuery, Respelling, Understood
from filestore.sidecar.vector_home import is_counted_on

if TYPE_CHECKING:
    from filestore.embed.base import Embedder
    from filestore.index.base import VectorIndex


def left_out(understood: Understood, words: int) -> list[str]:
    """What a person must know who meant to exclude nothing, or typed no word or very many."""
    asked = (understood.words, understood.phrases, understood.prefixes, understood.required)
    notes = [] if any(asked) else ["the query has no word to search for: type one"]
    if understood.excluded:
        named = " or ".join(understood.excluded)
        syntax = "the syntax 'plain' searches for all words as typed"
        notes.append(f"texts with {named} are left out; {syntax}")
    if words:
        kept = len(understood.words) + len(understood.phrases)
        notes.append(f"{words:,} words are not searched for: only the {kept:,} that tell the most")
    return notes


def on_phrases(query: ParsedQuery) -> list[str]:
    """Which phrases were given up, because nothing holds them beside what else is asked for."""
    phrases = " and ".join(clause.written() for clause in query.of_need(Need.EXPECTED))
    return [f"nothing holds {phrases}: searched for the words of it"]


def on_spelling(found: Sequence[Respelling]) -> list[str]:
    """Which words no document has, and what may have been meant."""
    return [
        f'no document has "{one.word}"; did you mean '
        + " or ".join(f'"{word}"' for word in one.meant)
        + "?"
        for one in found
    ]


def unresolved(catalog: Catalog) -> list[str]:
    """What a merge keeps out of every answer until a person resolves it."""
    number = queries.count_excluded(catalog, "conflict-markers")
    if not number:
        return []
    files = "1 file is" if number == 1 else f"{number:,} files are"
    return [f"{files} not searched while a merge conflict is open: 'filestore status' names them"]


def not_embedded(
    catalog: Catalog, index: "VectorIndex | None", embedder: "Embedder | None"
) -> list[str]:
    """How many texts have no vector of the model that was asked."""
    if index is None or embedder is None:
        return []
    counted = is_counted_on(catalog, embedder)
    lacking = catalog.waiting_count() if counted else catalog.count("vectors") - len(index)
    if not lacking:
        return []
    texts = "1 text has" if lacking == 1 else f"{lacking:,} texts have"
    return [f"{texts} no vector of {embedder.name} yet: run 'filestore sync'"]
