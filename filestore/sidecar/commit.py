"""One commit: observed files into embeddings, catalog, FAISS file and full-text index.

Writes the sidecar only, and decides nothing about drift. One rule, the order in which it becomes
durable: embeddings, then a FAISS file if one is due, then one catalog transaction that names it,
then the full-text index. Dying between any two leaves the old generation, or the new one with a
derived index that is caught up later. Within the transaction a file's rows and vector ids come
before its embeddings.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from filestore.catalog import (
    CHUNKER,
    METRIC,
    CatalogWriter,
    Deleted,
    FileRow,
    Forgotten,
    in_batches,
    queries,
)
from filestore.chunks import chunk_file
from filestore.chunks.layout import Layout, resource_of
from filestore.chunks.links import own_links
from filestore.chunks.observation import DOCUMENT, INDEXED, RECORD, Observation
from filestore.config.layout import Places
from filestore.config.settings import KeyNames
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath, folder_of, is_made, made_of
from filestore.core.progress import OnShare, ignore_share
from filestore.embed.cache import EmbeddingCache
from filestore.fs.stats import StatEntries, pack_folder, stat_entry
from filestore.sidecar import commit_dates
from filestore.sidecar.embedding_feed import EmbeddingFeed, OtherFeed
from filestore.sidecar.file_rows import (
    Rewording,
    SeenTexts,
    entries,
    has_same_text,
    kept_texts,
    metadata_of,
    owner,
    row_of,
    texts_of_vectors,
)
from filestore.sidecar.fulltext_file import QUICK_TEXTS, FulltextFeed
from filestore.sidecar.models import EMBEDDINGS, lost_vectors, take_over
from filestore.sidecar.vector_file import collect
from filestore.sidecar.vector_home import StoredVectors, VectorHome

if TYPE_CHECKING:
    from filestore.embed import Embedder

_AT_ONCE: Final = 64


class CommitReport(Struct, frozen=True, kw_only=True):
    """What a commit did."""

    generation: int
    embedded: int
    """Texts sent to the store's models."""
    reused: int
    """Texts of new or changed files that were embedded before."""
    problem: FilestoreError | None
    """Why texts were left without embedding, where they were to be embedded."""
    unsent: FilestoreError | None = None
    """Why a backend did not get what it lacks, which then waits for the next writer."""


class Waiting(Struct, kw_only=True):
    """The texts that turns of embedding have before them."""

    ids: list[int] = field(default_factory=list)
    """Their vector ids, last first."""
    seen: SeenTexts = field(default_factory=dict)
    """What was read of their files; see `texts_of_vectors`."""


class Commit:
    """Changes of one generation, applied together on `finish` or not at all."""

    words: FulltextFeed
    """Takes texts to be found by words; there while the commit is open."""

    def __init__(
        self,
        *,
        places: Places,
        layout: Layout,
        catalog: CatalogWriter,
        embeddings: EmbeddingCache,
        embedder: "Embedder | None",
        home: VectorHome,
        keys: KeyNames,
        embed: bool = True,
        no_embedder: FilestoreError | None = None,
        metric: str = "cosine",
        others: Sequence[OtherFeed] = (),
    ) -> None:
        self.catalog = catalog
        """In the transaction of the commit."""
        self._embedding_feed = EmbeddingFeed(
            catalog=catalog,
            embeddings=embeddings,
            embedder=embedder,
            embed=embed,
            no_embedder=no_embedder,
        )
        self._others, self._keys = others, keys
        self._rewording = Rewording(catalog, layout)
        self._stats: dict[ChunkPath, dict[str, bytes | None]] = {}
        self._records_changed = False
        self._layout = layout
        self._places = places
        self._home = home
        self._metric = metric
        self._embeddings = embeddings
        self.embedder = embedder
        """The one that the store's vectors are from; None where it is not here."""
        self._compares_rows = False
        self._index_wanted = False
        self.all_cut_again = False
        """Whether every document is cut as it is cut today."""
        self._is_quick = False
        self.has_taken_over = False
        """Whether the catalog counted on another model before."""

    def __enter__(self) -> Self:
        self.catalog.begin()
        self.words = FulltextFeed(self._places, self.catalog)
        self._previous = self.catalog.index_file()
        self.has_taken_over = take_over(self.catalog, self._embeddings, self.embedder)
        if self.has_taken_over:
            self.want_index()
        known = self.catalog.meta(EMBEDDINGS)
        self._lost_some = self.embedder is not None and known not in (
            None,
            self._embeddings.count(self.embedder.fingerprint),
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.words.abandon()
        self.catalog.rollback()

    def put(self, seen: Sequence[Observation], read_from_ns: int) -> None:
        """Record files that are new, changed, or now excluded.

        Args:
            seen: Observations, at most some thousand at once.
            read_from_ns: A reading of the file system's clock from before they were read.
        """
        self._layout.complete(seen)
        known = self.catalog.files([look.path for look in seen])
        fresh: list[Observation] = []
        replaced: list[FileRow] = []
        for look in seen:
            row = known.get(look.path)
            if row is not None and has_same_text(row, look):
                self._rewording.note_words(row, look)
                self._update(row, look)
            else:
                fresh.append(look)
                if row is not None:
                    replaced.append(row)
        kept = self._before_replacing(replaced)
        self._delete(replaced)
        self._insert(fresh, {row.path: row.resource for row in replaced})
        self.catalog.no_longer_forgotten(look.path for look in fresh)
        sound = (INDEXED, RECORD)
        excluded = [look.path for look in fresh if look.state not in sound and look.path in kept]
        for path, row in self.catalog.files(excluded).items():
            self.catalog.put_content(row.id, kept[path])
        self.refresh(seen, read_from_ns)

    def _before_replacing(self, rows: Iterable[FileRow]) -> dict[ChunkPath, bytes]:
        """The last good bytes by path; a generated body is kept before an edit hides it."""
        kept: dict[ChunkPath, bytes] = {}
        for row in rows:
            data = self.catalog.content(row.id)
            if row.state == RECORD:
                data = self.catalog.record_data(row.path)
            if data is None:
                continue
            kept[row.path] = data
            if row.origin is not None and not row.edited:
                body = chunk_file.parse(data).body
                self.catalog.keep_generated(row.origin, body.encode())
        return kept

    def _update(self, row: FileRow, look: Observation) -> None:
        """The file differs, no embedded text does: same id, new record."""
        if look.state == RECORD:
            self._put_record(look)
        made = row_of(look, row.id, layout=self._layout, generation=row.generation)
        is_as_read = row.kind != DOCUMENT or self.catalog.content(row.id) == look.data
        if row.file_hash == look.file_hash and row.detail == look.detail and is_as_read:
            return
        self.catalog.update(replace(made, resource=self._layout.resource(look.path, row.resource)))
        if look.state == INDEXED:
            self.catalog.put_content(row.id, look.data)
            self.catalog.replace_metadata(row.id, metadata_of(look, row.id))
            self._put_links(look, row.id)

    def _insert(self, fresh: Sequence[Observation], resources: Mapping[str, str]) -> None:
        ids = self.catalog.new_ids(len(fresh))
        rows = []
        for look, identifier in zip(fresh, ids, strict=True):
            row = row_of(
                look, identifier, layout=self._layout, generation=self.catalog.next_generation
            )
            if not row.resource and look.chunk is None and resources.get(look.path):
                # In the flat layout a file that cannot be read tells no resource.
                row = replace(row, resource=resources[look.path])
            rows.append((look, row))
        self.catalog.insert(rows)
        indexed = [(look, row) for look, row in rows if look.chunk is not None]
        self.catalog.insert_metadata(
            pair for look, row in indexed for pair in metadata_of(look, row.id)
        )
        for look, row in indexed:
            self._put_links(look, row.id)
        for look in fresh:
            if look.state == RECORD:
                self._put_record(look)
        texts: dict[bytes, str] = {}
        for look, _ in indexed:
            texts |= zip(look.keys, look.texts, strict=True)
        self._embedding_feed.take(texts)
        for other in self._others:
            other.take(texts)
        if indexed:
            named = self._rewording.named([row for _, row in indexed])
            self.words.add(
                one
                for (look, row), document in zip(indexed, named, strict=True)
                if look.chunk
                for one in entries(row.id, look.path, look.chunk, document)
            )

    def _put_links(self, look: Observation, identifier: int) -> None:
        """Remember where a person's own links lead; those of the source are not ours to judge."""
        chunk = look.chunk
        if chunk is None:
            return
        children = [(child.path or made_of(look.path), child.key) for child in chunk.children]
        self.catalog.replace_children(identifier, children)
        if is_made(look.path):
            # What links of documents call their targets is kept there; a summary calls none.
            return
        targets = [child.path for child in chunk.children]
        if chunk.kind == DOCUMENT:
            # Which file a name means changes with the names of all files.
            targets = [ChunkPath(key) for key in chunk.link_keys]
        elif chunk.origin is None:
            targets += own_links(look.path, chunk.body, None)
        elif chunk_file.hand_edited(chunk):
            generated = self.catalog.generated(chunk.origin)
            if generated is not None:
                targets += own_links(look.path, chunk.body, generated.decode())
        self.catalog.replace_links(identifier, targets)

    def _put_record(self, look: Observation) -> None:
        record = look.record
        if record is None:
            return
        self._records_changed = True
        resource = record.resource or resource_of(look.path)
        now = {one.source: sorted(one.pairs()) for one in record.documents}
        self._rewording.note_record(look.path, resource, record.source, now)
        self.catalog.put_record(look.path, resource, record, look.data)

    def _delete_record(self, path: ChunkPath) -> None:
        self._records_changed = True
        self._rewording.note_record(path, "", "", {})
        self.catalog.delete_record(path)

    def forget(self, paths: Sequence[ChunkPath], *, by_hand: bool = False) -> None:
        """Forget files that are gone.

        Args:
            paths: Below `chunked/`.
            by_hand: A person deleted them: what their records still describe is to stay deleted.
        """
        stats = StatEntries(self.catalog.folders())
        for batch in in_batches(paths):
            rows = list(self.catalog.files(batch).values())
            for row in rows if by_hand else ():
                version = self.catalog.record_version(row) if row.origin else None
                if version is not None:
                    gone = Deleted(path=row.path, origin=row.origin or "", source=row.source)
                    self.catalog.note_deleted(version, [gone])
            kept = self._before_replacing(rows)
            self.catalog.remember_forgotten(
                Forgotten(
                    path=path,
                    file_hash=content_hash(data),
                    data=data,
                    mtime_ns=stats.mtime_ns(path),
                    generation=self.catalog.next_generation,
                )
                for path, data in kept.items()
            )
            self.catalog.delete_conflicts(batch)
            self._delete(rows)
            for path in batch:
                self._note_stat(path, None)

    def stay_deleted(self, record_path: ChunkPath, deleted: Iterable[Deleted]) -> None:
        """Remember what a person deleted for the record that was put just now, too."""
        data = self.catalog.record_data(record_path)
        if data is not None:
            self.catalog.note_deleted(content_hash(data), deleted)

    def _delete(self, rows: Sequence[FileRow]) -> None:
        for row in rows:
            if row.state == RECORD:
                self._delete_record(row.path)
        indexed = [row.id for row in rows if row.state == INDEXED]
        texts = queries.texts_of_files(self.catalog, indexed)
        self.catalog.delete([row.id for row in rows])
        self.words.delete(texts)

    def move(self, moves: Sequence[tuple[ChunkPath, Observation]], read_from_ns: int) -> None:
        """Point files to new names: old path, and the observation at the new one."""
        known = self.catalog.files([old for old, _ in moves])
        self._layout.complete(look for _, look in moves)
        # A document may be cut otherwise now than when it was indexed.
        cut = [(old, look) for old, look in moves if not has_same_text(known[old], look)]
        self.repoint([(old, look.path) for old, look in cut])
        self.put([look for _, look in cut], read_from_ns)
        moves = [(old, look) for old, look in moves if has_same_text(known[old], look)]
        self.catalog.delete_rows([known[old].id for old, _ in moves])
        for old, look in moves:
            row = known[old]
            made = row_of(look, row.id, layout=self._layout, generation=row.generation)
            resource = self._layout.resource(look.path, row.resource)
            self.catalog.update(replace(made, resource=resource))
            if row.state == RECORD:
                self._delete_record(old)
                self._put_record(look)
            self._rewording.note_path(old, look.path)
            self._put_links(look, row.id)
            self._note_stat(old, None)
        self.catalog.note_moves((old, look.path) for old, look in moves)
        self.refresh([look for _, look in moves], read_from_ns)

    def repoint(self, moves: Sequence[tuple[ChunkPath, ChunkPath]]) -> None:
        """Point files to new names, and leave what they held for `put`: they were edited, too.

        Args:
            moves: Old path and new path.
        """
        known = self.catalog.files([old for old, _ in moves])
        self.catalog.delete_rows([row.id for row in known.values()])
        for old, new in moves:
            resource = self._layout.resource(new, known[old].resource)
            self.catalog.update(replace(known[old], path=new, resource=resource))
            self._rewording.note_path(old, new)
            self._note_stat(old, None)
        self.catalog.note_moves(moves)

    def refresh(self, seen: Iterable[Observation], read_from_ns: int) -> None:
        """Record the stats of files that were read and are as the catalog knows them."""
        for look in seen:
            self._note_stat(look.path, stat_entry(look.values, read_from_ns))

    def _note_stat(self, path: ChunkPath, packed: bytes | None) -> None:
        self._stats.setdefault(folder_of(path), {})[path.rpartition("/")[2]] = packed

    def _settle_files(self) -> None:
        """Put what hangs on all changes together: words of renamed documents, stats, resources."""
        for gone, entries_now in self._rewording.renewed():
            self.words.delete(gone)
            self.words.add(entries_now)
        known = self.catalog.folders() if self._stats else {}
        changed = []
        for folder, notes in self._stats.items():
            held = known[folder].entries() if folder in known else {}
            for name, packed in notes.items():
                if packed is None:
                    held.pop(name, None)
                else:
                    held[name] = packed
            changed.append((folder, pack_folder(held)))
        self.catalog.put_folders(changed)
        if self._layout.shares_folder:
            # The record whose source holds a chunk's source is its resource.
            owners = self.catalog.sources_of_resources()
            rows = self.catalog.all_files() if self._records_changed else self.catalog.files_of("")
            for row in list(rows):
                resource = owner(row.source, owners) if row.source else ""
                if row.state == INDEXED and resource != row.resource:
                    self.catalog.update(replace(row, resource=resource))
        if self._records_changed:
            self.catalog.drop_unused_source_stats()

    def change_model(self, on_share: OnShare) -> None:
        """Take every vector from the model of this commit, whatever they came from."""
        every = (vector for vector, _ in self.catalog.vector_keys())
        self.catalog.set_embedded(every, embedded=False)
        self.embed_all(on_share)
        self.want_index()

    def take_missing(self) -> None:
        """Take the texts without vector: known ones get it now, others as texts of new files do."""
        self._embedding_feed.take(self._without_vectors(), sound=True)

    def embed_all(self, on_share: OnShare = ignore_share) -> None:
        """Embed every text without vector in this commit, however many."""
        self._embedding_feed.embed(self._without_vectors(), on_share=on_share)
        self.embed_others(on_share)

    def _without_vectors(self) -> dict[bytes, str]:
        texts = dict(kept_texts(self.catalog, self.catalog.paths_without_vectors()))
        wanted = {key for _, key in self.catalog.vector_keys(embedded=False)}
        return {key: text for key, text in texts.items() if key in wanted}

    def embed_waiting(self, waiting: Waiting, until_s: float) -> None:
        """Embed texts that wait for their vector, until a moment of the monotonic clock.

        The first passage of each document comes first, so that early answers are broad.

        Args:
            waiting: What an earlier commit left; what is done goes. Without ids it is filled with
                all that wait: they are sorted once for many commits.
            until_s: That moment.
        """
        ordered = waiting.ids
        if not ordered:
            ordered += reversed(queries.waiting_vectors(self.catalog))
        while ordered:
            for some, texts in texts_of_vectors(
                self.catalog, ordered[-_AT_ONCE:][::-1], waiting.seen
            ):
                keys = self.catalog.keys_of_vectors(some)
                taken = {keys[one]: text for one, text in zip(some, texts, strict=True)}
                if not self._embedding_feed.embed(taken, until_s=until_s):
                    return
            # Before the end of the turn: reading a large file may take all of it.
            del ordered[-_AT_ONCE:]
            if time.monotonic() >= until_s:
                return
        self.embed_others(until_s=until_s, seen=waiting.seen)

    def embed_others(
        self,
        on_share: OnShare = ignore_share,
        until_s: float | None = None,
        seen: SeenTexts | None = None,
    ) -> None:
        """Embed the texts that have no vector of other models than the store's own."""
        for other in self._others:
            other.embed_missing(on_share, until_s, seen)

    @property
    def embeds(self) -> bool:
        """Whether texts without embedding are embedded in this commit."""
        return self._embedding_feed.embeds

    @property
    def problem(self) -> FilestoreError | None:
        """Why embedding was given up in this commit, by the store's own model or another."""
        others = (one.problem for one in self._others if one.problem is not None)
        return self._embedding_feed.problem or next(others, None)

    def want_index(self, *, whole: bool = True) -> None:
        """Write the FAISS file on `finish`, due or not; or compare what a backend holds.

        Args:
            whole: Whether what a backend holds is compared; else it gets what it lacks.
        """
        self._index_wanted = True
        self._compares_rows = self._compares_rows or whole

    def finish(self) -> CommitReport:
        """Commit.

        Raises:
            WriteFailedError: The disk refused; the old generation stays.
        """
        self._embedding_feed.settle()
        self._settle_files()
        cut_by = self._layout.cut_by
        if cut_by and (self.all_cut_again or self.catalog.meta(CHUNKER) is None):
            # As long as some are cut otherwise, the label is theirs.
            self.catalog.set_meta(CHUNKER, cut_by)
        if self.embedder is not None:
            self.catalog.set_meta("fingerprint", self.embedder.fingerprint)
            self.catalog.set_meta(METRIC, self._metric)
        if self._lost_some:
            # Some other command than a sync: what went is not to be forgotten by a new count.
            lost = lost_vectors(self.catalog, self._embeddings)
            self.catalog.set_embedded(lost, embedded=False)
        if self.embedder is not None:
            made_from = (self.catalog, self._embeddings, self.embedder)
            # The vectors are not kept longer: of a million the keys alone are 100 MB.
            has_lost = self._home.write(
                self.catalog, StoredVectors(*made_from), wanted=self._index_wanted
            )
            if has_lost and self.embeds:
                # Damaged rows came to light: what they held is embedded again before the file is.
                self.take_missing()
                self._embedding_feed.settle()
                self._home.write(self.catalog, StoredVectors(*made_from), wanted=True)
            count = self._embeddings.count(self.embedder.fingerprint)
            self.catalog.set_meta(EMBEDDINGS, count)
        for other in self._others:
            other.finish()
        self.words.catch_up()
        self.catalog.forget_dead(self.words.seen_generation)
        if not self._is_quick or commit_dates.is_further(self._places, self.catalog):
            commit_dates.note(
                self._places, self.catalog, self._keys, new_records=self._records_changed
            )
        generation = self.catalog.commit()
        collect(self._places, self.catalog, self._previous)
        self.words.commit(generation)
        self._layout.drop_unused(self.catalog.file_hashes)
        unsent = None
        if self.embedder is not None and not self._is_quick:
            vectors = StoredVectors(self.catalog, self._embeddings, self.embedder)
            unsent = self._home.catch_up(self.catalog, vectors, whole=self._compares_rows)
        return CommitReport(
            generation=generation,
            embedded=self._embedding_feed.embedded + sum(one.embedded for one in self._others),
            reused=self._embedding_feed.reused,
            problem=self.problem,
            unsent=unsent,
        )

    def be_quick(self) -> None:
        """Leave to the next sync what takes long, or a service: somebody waits for an answer."""
        self._is_quick = True
        self.words.exact_texts = QUICK_TEXTS
