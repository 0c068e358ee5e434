"""The text that is found by another: in place a question stands in a file of its own.

One rule: what a question was made from is told by its hash; where that text is not there any more,
it finds nothing.
"""

from collections.abc import Collection, Sequence

from filestore.catalog import Catalog, file_of_text, part_of_text, summaries, text_id
from filestore.chunks import kept, questions_file
from filestore.chunks.observation import DOCUMENT
from filestore.core.paths import SUMMARIES, ChunkPath, is_made, made_of

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
