"""Writing the index: every commit is a folder of its own, switched to by its stamp.

The files of tantivy never change once written, so that a commit starts from hard links to the files
of the one before. What is abandoned has touched nothing that a reader can see.
"""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final, Self

import orjson
from msgspec import Struct

from filestore.core.errors import on_error
from filestore.fs import disk, part
from filestore.fs.path_names import in_utf8
from filestore.fulltext._analysis import (
    COMPOUNDING,
    DEFAULT_LANGUAGE,
    MIN_COMPOUND_CHARACTERS,
    build_exact_analyzer,
    build_gram_analyzer,
    build_schema,
    build_stem_analyzer,
    clean,
    extra_words,
    grams_of,
    prepare,
)
from filestore.fulltext._languages import language_of, main_of
from filestore.fulltext._stamp import (
    Seal,
    Stamp,
    WritingGuard,
    describe_files,
    read_stamp,
    require_files,
    write_stamp,
)

if TYPE_CHECKING:
    import tantivy

_PART_PREFIX: Final = "part-"
_MANAGED: Final = ".managed.json"
_BULK: Final = {"heap_size": 128_000_000, "num_threads": 2}
_SMALL: Final = {"heap_size": 32_000_000, "num_threads": 1}
"""One thread leaves one segment behind, and few changes are not worth a second."""
_DELETE_BATCH: Final = 1_000
_SAMPLE: Final = 1_000
"""Characters of a text that tell its language; a longer one that does not is code, or a table."""
_MOST_WAITING: Final = 5_000
_TITLE_WEIGHT: Final = 3
"""A title is indexed as if it were three times in the text."""


class Entry(Struct, frozen=True, kw_only=True):
    """What is indexed of a chunk."""

    id: int
    title: str
    """The headings and the names of its document, joined; may be empty."""
    text: str
    """Body and questions."""
    description: str = ""
    """Of its document: path, tags, properties."""
    document: str = ""
    """All of the document, which tells the language of a part that does not; may be empty."""


class Writer(disk.Closing):
    """Adds and deletes documents, and commits once; left without a commit, it changes nothing.

    The caller holds the store's lock: there is one writer at a time.
    """

    def __init__(self, folder: str, name: str, previous: Stamp | None, language: str) -> None:
        self._folder = folder
        self._guard = WritingGuard(folder)
        self._part = name
        self._previous = previous
        self._stems: dict[str, tantivy.TextAnalyzer] = {}
        self._counts = Counter(dict(previous.languages if previous else ()))
        self.language = language or (main_of(self._counts) if previous else "")
        """In which short texts are taken to be that do not tell theirs; "" until it is known."""
        self._waiting: list[Entry] = []
        self._document = ("", "")
        self._index: tantivy.Index | None = None
        with self._guard:
            self._writer: tantivy.IndexWriter | None = self._open_tantivy()

    @classmethod
    def open(
        cls,
        folder: str,
        previous: Stamp | None = None,
        *,
        checked: bool = False,
        language: str = "",
    ) -> Self:
        """Open the index to change it, or to build it anew.

        Args:
            folder: The index folder; it is made where there is none.
            previous: The stamp of this user's whose index is changed; None starts empty.
            checked: Whether the files were held against it under the caller's lock: they are not
                read for it once more.
            language: That of most texts of an index that is built anew, if known.

        Raises:
            FulltextMissing: The index was made by another analysis: rebuild it.
            FulltextDamaged: The files are not what the stamp says: rebuild it.
        """
        name = f"{_PART_PREFIX}{os.urandom(8).hex()}"
        with part.own_folder(folder, make=True, replace=True) as handle:
            current = read_stamp(folder)
            _drop_leftovers(handle, keep=current.part() if current else "")
            if previous is not None and not checked:
                require_files(folder, previous)
            os.mkdir(name, 0o700, dir_fd=handle)
        with on_error(_drop, folder, name):
            if previous is not None:
                _link_files(folder, previous, name)
            return cls(folder, name, previous, language)

    def _open_tantivy(self) -> "tantivy.IndexWriter":
        import tantivy

        path = os.path.join(self._folder, self._part)
        with in_utf8(path) as spelled:
            self._index = tantivy.Index(build_schema(), spelled)
        self._index.register_tokenizer("exact", build_exact_analyzer())
        self._index.register_tokenizer("gram", build_gram_analyzer())
        self._index.register_tokenizer(DEFAULT_LANGUAGE, build_stem_analyzer(DEFAULT_LANGUAGE))
        return self._index.writer(**(_SMALL if self._previous else _BULK))

    def add(self, entries: Iterable[Entry]) -> None:
        """Add documents. An id that may be there already is deleted first by the caller."""
        self._live_writer()
        for entry in entries:
            title, text = clean(entry.title), clean(entry.text)
            language = language_of(f"{text[:_SAMPLE]} {title}", "")
            if not language:
                # That of its document, "" where that is not clear.
                if self._document[0] is not entry.document:
                    found = language_of(clean(entry.document[:_SAMPLE]), "")
                    self._document = entry.document, found
                language = self._document[1]
            if language:
                self._counts[language] += 1
            elif len(text) > _SAMPLE:
                language = DEFAULT_LANGUAGE
            elif self.language:
                language = self.language
            else:
                self._waiting.append(entry)
                if len(self._waiting) >= _MOST_WAITING:
                    self.settle()
                continue
            self._add(entry, title, text, language)

    @property
    def main_language(self) -> str:
        """That of most texts, which short ones are to be in that do not tell theirs."""
        return main_of(self._counts)

    def settle(self) -> None:
        """Assume that most texts are there, and add the ones that waited for what they are in."""
        self.language = self.language or self.main_language
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            self._add(entry, clean(entry.title), clean(entry.text), self.language)

    def _add(self, entry: Entry, title: str, text: str, language: str) -> None:
        writer = self._live_writer()
        with self._guard:
            import tantivy

            document = tantivy.Document()
            document.add_unsigned("id", entry.id)
            if title:
                self._add_piece(document, title, language, _TITLE_WEIGHT)
            self._add_piece(document, text, language, 1)
            if entry.description:
                self._add_piece(document, clean(entry.description), language, 1)
            writer.add_document(document)

    def delete(self, ids: Iterable[int]) -> None:
        """Delete the documents with these ids, as far as there are any."""
        import tantivy

        writer, schema = self._live_writer(), build_schema()
        gone = set(ids)
        self._waiting = [one for one in self._waiting if one.id not in gone]
        remaining = iter(gone)
        while batch := list(islice(remaining, _DELETE_BATCH)):
            with self._guard:
                # Deleting by term takes a number for a signed one and silently finds nothing.
                batch_query = tantivy.Query.term_set_query(schema, "id", batch)
                writer.delete_documents_by_query(batch_query)

    def commit(
        self, generation: int, catalog: str, *, seal: Seal = lambda unsealed: unsealed
    ) -> Stamp:
        """Make the changes durable and switch readers to them; the writer is then closed.

        Args:
            generation: The generation of the catalog that the index now reflects.
            catalog: The identity of the catalog whose file ids these are.
            seal: Marks the stamp as this user's.

        Returns:
            The stamp that was written.
        """
        self.settle()
        writer = self._live_writer()
        with self._guard:
            writer.commit()
            # Waiting consumes the writer, also when Ctrl-C ends the wait: nothing may use it again.
            self._writer = None
            # Merges replace files: the stamp names what is left when they are done.
            writer.wait_merging_threads()
        index = self._index
        assert index is not None
        with self._guard:
            index.reload()
            documents = index.searcher().num_docs
        files = self._previous.files if self._previous else ()
        # How many documents are deleted and still in one of the segments of a commit.
        segments = orjson.loads(
            disk.read_path(os.path.join(self._folder, self._part, "meta.json"))
        )["segments"]
        deletes = (segment["deletes"] for segment in segments)
        stamp = Stamp(
            generation=generation,
            catalog=catalog,
            documents=documents,
            deleted=sum(one["num_deleted_docs"] for one in deletes if one),
            languages=tuple(sorted(self._counts.items())),
            files=describe_files(
                self._folder,
                self._part,
                # tantivy's segment files alone never change.
                {
                    os.path.basename(name): (size_bytes, digest)
                    for name, size_bytes, digest in files
                    if not name.endswith(".json")
                },
            ),
        )
        stamp = seal(stamp)
        disk.sync_path(os.path.join(self._folder, self._part))
        write_stamp(self._folder, stamp)
        self._part = ""
        self._index = None
        return stamp

    def close(self) -> None:
        """Abandon what was not committed."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with self._guard:
                writer.rollback()
            # Dropping the writer ends its threads before their folder goes.
            del writer
        self._index = None
        if self._part:
            _drop(self._folder, self._part)
            self._part = ""

    def _live_writer(self) -> "tantivy.IndexWriter":
        if self._writer is None:
            raise ValueError("this full-text writer is closed: a writer commits once")
        return self._writer

    def _add_piece(
        self, document: "tantivy.Document", text: str, language: str, weight: int
    ) -> None:
        exact, stem = prepare(text)
        document.add_text("exact", exact)
        identifiers, compounds = extra_words(exact)
        if identifiers:
            document.add_text("whole", identifiers)
        if compounds:
            stem = f"{stem} {compounds}"
        # English is stemmed by tantivy's own threads; the rest, being rarer, here.
        if language != DEFAULT_LANGUAGE and language not in self._stems:
            self._stems[language] = build_stem_analyzer(language)
        for _ in range(weight):
            if language == DEFAULT_LANGUAGE:
                document.add_text("stem", stem)
            else:
                document.add_pre_tokenized_text("stem", self._stems[language].pre_tokenize(stem))
        if language in COMPOUNDING:
            grams = grams_of(text, shortest=MIN_COMPOUND_CHARACTERS)
            document.add_text("gram", " ".join(grams))


def _link_files(folder: str, previous: Stamp, new: str) -> None:
    for name, _, _ in previous.files:
        source = os.path.join(folder, name)
        target = os.path.join(folder, new, os.path.basename(name))
        if os.path.basename(name) == _MANAGED:
            # Made anew: what it lists tantivy deletes.
            with open(target, "wb") as file:
                file.write(orjson.dumps([one for one in previous.names() if one != _MANAGED]))
        elif name.endswith(".json"):
            shutil.copyfile(source, target)
        else:
            disk.link_or_copy(source, target)


def _drop(folder: str, name: str) -> None:
    """Remove the folder of a commit that is not to be."""
    with contextlib.suppress(OSError), part.own_folder(folder) as handle:
        part.remove(handle, name)


def _drop_leftovers(folder: int, *, keep: str) -> None:
    """Remove the commits before the current one and what dead writers left.

    The one before the current is kept until now for a reader that had its stamp but not its files.
    """
    for name in os.listdir(folder):
        if name != keep and name.startswith((_PART_PREFIX, disk.TEMPORARY_PREFIX)):
            with contextlib.suppress(OSError):
                part.remove(folder, name)
