"""What leads to a text: its questions, the summaries above it, and the tree of these from the top.

One rule: what leads never stands above what it leads to. In place a question stands in a file of
its own; what it was made from is told by its hash, and where that text is gone, it finds nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

from filestore.catalog import Catalog, file_of_text, part_of_text, summaries, text_id
from filestore.chunks import kept, questions_file
from filestore.chunks.observation import DOCUMENT
from filestore.core.paths import SUMMARIES, ChunkPath, is_made, made_of

if TYPE_CHECKING:
    from filestore.search.ranking import Ranked, Why
    from filestore.sidecar.summary_tree import SummaryTree

_Scored = tuple[int, float, int]


def questions_of(catalog: Catalog, files: Collection[int]) -> set[int]:
    """The files of questions that lead to some documents in place."""
    paths = catalog.indexed_paths(list(files)).values()
    there = catalog.files(
        [
            ChunkPath(f"{SUMMARIES}/{path}/{questions_file.NAME}")
            for path in paths
            if not is_made(path)
        ]
    )
    return {row.id for row in there.values()}


class Leading:
    """Leads from texts of a store in place to those that are shown; of one generation."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._has_made = catalog.has_below(ChunkPath(SUMMARIES))
        self._sections: dict[int, list[int | None]] = {}

    def led(self, scored: Sequence[_Scored]) -> list[_Scored]:
        """What is shown for some texts, best first: text id, score, and number of the question.

        Args:
            scored: The same of what was found; of documents and summaries the last is the part.
        """
        if not self._has_made:
            return [(text, score, 0) for text, score, _ in scored]
        files = dict.fromkeys(file_of_text(text) for text, _, _ in scored)
        paths = self._catalog.indexed_paths(list(files))
        led: list[_Scored] = []
        for text, score, part in scored:
            path = paths.get(file_of_text(text))
            shown = None if path is None else self._shown(text, path)
            if path is not None and shown is not None:
                is_section = not is_made(path)
                number = 1 + part if path.endswith(f"/{questions_file.NAME}") else part
                led.append((shown, score, 0 if is_section else number))
        return led

    def _shown(self, text: int, path: ChunkPath) -> int | None:
        if not is_made(path):
            return text
        file, part = file_of_text(text), part_of_text(text)
        if not path.endswith(f"/{questions_file.NAME}"):
            return file
        if file not in self._sections:
            self._sections[file] = self._read(file, path)
        sections = self._sections[file]
        return sections[part] if part < len(sections) else None

    def _read(self, file: int, path: ChunkPath) -> list[int | None]:
        """What each question of a file leads to."""
        chunk = kept.read(self._catalog.content(file) or b"")
        if chunk.kind != questions_file.KIND:
            return [file for _ in range(1 + len(chunk.questions))]
        document = made_of(path)
        row = self._catalog.files([document]).get(document)
        if row is None or row.kind != DOCUMENT:
            return []
        parts: dict[bytes, int] = {}
        for part, key in enumerate(summaries.section_keys(self._catalog, row.id)):
            parts.setdefault(key, text_id(row.id, part))
        return [parts.get(key) for key in questions_file.keys_of(chunk.body)]


def collapse(
    ranked: "Sequence[Ranked]",
    summaries: Set[ChunkPath],
    above: Mapping[ChunkPath, Collection[ChunkPath]],
) -> "tuple[list[Ranked], dict[ChunkPath, ChunkPath]]":
    """A ranking in which the best text below a summary stands where that one stood.

    A summary is left out where that text stands before it.

    Args:
        ranked: Texts and summaries, best first.
        summaries: Those of them that are summaries.
        above: Of each file the summaries, near and far, that it went into.

    Returns:
        The ranking, and of each text that was lifted the summary whose place it has.
    """
    heirs: dict[ChunkPath, Ranked] = {}
    for one in ranked:
        if one[0][0] not in summaries:
            for summary in above.get(one[0][0], ()):
                heirs.setdefault(summary, one)
    found: list[Ranked] = []
    behind: list[Ranked] = []
    placed = set[ChunkPath]()
    lifted: dict[ChunkPath, ChunkPath] = {}
    for rank, one in enumerate(ranked, start=1):
        (path, _), score, _ = one
        if path in summaries:
            heir = heirs.get(path)
            if heir is None:
                behind.append(one)
                continue
            if heir[0][0] in placed:
                continue
            lifted[heir[0][0]] = path
            one = _lifted(heir, rank, score)
        elif path in lifted:
            continue
        found.append(one)
        placed.add(one[0][0])
    return [*found, *behind], lifted


def _lifted(one: "Ranked", rank: int, score: float) -> "Ranked":
    """A text in the place of its summary, with that one's score, and what says so."""
    text, _, why = one

    def told() -> "Why":
        return {**why(), "summary": {"rank": rank, "score": score}}

    return text, score, told


BEAM: Final = 16
"""So many summaries of a level are entered. Over XQuAD, in 48 trees of one level, 8 lose another
.04 of recall@10; the default search, which sees every text, finds .07 more than 16."""


def descend(
    tree: "SummaryTree",
    best: Callable[[Sequence[ChunkPath]], Sequence[ChunkPath]],
    beam: int = BEAM,
) -> dict[ChunkPath, tuple[ChunkPath, ...]]:
    """Enter the best summaries, level by level, down to what is no summary.

    Args:
        tree: Of all summaries.
        best: Orders nodes by how well they answer, best first; those that do not are left out.
        beam: How many of a level are entered; where fewer answer, the first of the others, too.

    Returns:
        Of each text that was reached the summaries that led to it, from the top.
    """
    ways: dict[ChunkPath, tuple[ChunkPath, ...]] = dict.fromkeys(tree.roots, ())
    level = list(tree.roots)
    texts: dict[ChunkPath, tuple[ChunkPath, ...]] = {}
    while level:
        ordered = list(dict.fromkeys([*best(level), *level]))
        level = []
        for summary in ordered[:beam]:
            way = (*ways[summary], summary)
            for child in tree.children(summary):
                if child.path in ways or child.state == "gone":
                    continue
                ways[child.path] = way
                if child.is_summary:
                    level.append(child.path)
                else:
                    texts[child.path] = way
    return texts
