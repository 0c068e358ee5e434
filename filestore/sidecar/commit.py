"""One commit: observed files into embeddings, catalog, FAISS file and full-text index.

Writes the sidecar only. One rule, the order in which it becomes durable: embeddings, then a FAISS
file if one is due, then one catalog transaction that names it, then the full-text index. Dying
between any two leaves the old generation, or the new one with a derived index that is caught up
later. Within the transaction a file's rows and vector ids come before its embeddings.
"""

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from filestore.catalog import (
    AWAITED,
    CHUNKER,
    METRIC,
    Catalog,
    CatalogWriter,
    Conflict,
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
from filestore.core.errors import FilestoreError
from filestore.core.hashing import content_hash
from filestore.core.paths import ChunkPath, folder_of, is_made, made_of
from filestore.core.progress import OnShare, ignore_share
from filestore.embed.cache import EmbeddingCache
from filestore.fs.stats import pack_folder, stat_entry
from filestore.sidecar.embedding_feed import EmbeddingFeed
from filestore.sidecar.file_rows import (
    StatEntries,
    has_same_text,
    kept_texts,
    metadata_of,
    owner,
    row_of,
    texts_of,
    texts_of_vectors,
)
from filestore.sidecar.fulltext_file import QUICK_TEXTS, FulltextFeed
from filestore.sidecar.models import OtherFeed, take_over
from filestore.sidecar.names import Rewording, entries
from filestore.sidecar.vector_file import collect
from filestore.sidecar.vector_home import StoredVectors, VectorHome

if TYPE_CHECKING:
    from filestore.embed.base import Embedder

BATCH: Final = 1000
_AT_ONCE: Final = 192
_EMBEDDINGS: Final = "embeddings"
"""In the catalog, how many embeddings there were: any other number is looked into."""


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


class Commit:
    """Changes of one generation, applied together on `finish` or not at all."""

    def __init__(
        self,
        *,
        places: Places,
        layout: Layout,
        catalog: CatalogWriter,
        embeddings: EmbeddingCache,
        embedder: "Embedder | None",
        home: VectorHome,
        embed: bool = True,
        no_embedder: FilestoreError | None = None,
        metric: str = "cosine",
        others: Sequence[OtherFeed] = (),
    ) -> None:
        self._places = places
        self._home = home
        self._compares_rows = False
        self._others = others
        self._metric = metric
        self._layout = layout
        self._catalog = catalog
        self._embeddings = embeddings
        self.embedder = embedder
        """The one that the store's vectors are from; None where it is not here."""
        self._embedding_feed = EmbeddingFeed(
            catalog=catalog,
            embeddings=embeddings,
            embedder=embedder,
            embed=embed,
            no_embedder=no_embedder,
        )
        self._stats: dict[ChunkPath, dict[str, bytes | None]] = {}
        self._records_changed = False
        self._rewording = Rewording(catalog, layout)
        self._index_wanted = False
        self._all_cut_again = False
        self._is_quick = False
        self.has_taken_over = False
        """Whether the catalog counted on another model before."""

    def __enter__(self) -> Self:
        self._catalog.begin()
        self._fulltext_feed = FulltextFeed(self._places, self._catalog)
        self._previous = self._catalog.index_file()
        self.has_taken_over = take_over(self._catalog, self._embeddings, self.embedder)
        if self.has_taken_over:
            self.want_index()
        known = self._catalog.meta(_EMBEDDINGS)
        self._lost_some = self.embedder is not None and known not in (
            None,
            self._embeddings.count(self.embedder.fingerprint),
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._fulltext_feed.abandon()
        self._catalog.rollback()

    def put(self, seen: Sequence[Observation], read_from_ns: int) -> None:
        """Record files that are new, changed, or now excluded.

        Args:
            seen: Observations, at most some thousand at once.
            read_from_ns: A reading of the file system's clock from before they were read.
        """
        self._layout.complete(seen)
        known = self._catalog.files([look.path for look in seen])
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
        self._catalog.no_longer_forgotten(look.path for look in fresh)
        sound = (INDEXED, RECORD)
        excluded = [look.path for look in fresh if look.state not in sound and look.path in kept]
        for path, row in self._catalog.files(excluded).items():
            self._catalog.put_content(row.id, kept[path])
        self.refresh(seen, read_from_ns)

    def _before_replacing(self, rows: Iterable[FileRow]) -> dict[ChunkPath, bytes]:
        """The last good bytes by path; a generated body is kept before an edit hides it."""
        kept: dict[ChunkPath, bytes] = {}
        for row in rows:
            data = self._catalog.content(row.id)
            if row.state == RECORD:
                data = self._catalog.record_data(row.path)
            if data is None:
                continue
            kept[row.path] = data
            if row.origin is not None and not row.edited:
                body = chunk_file.parse(data).body
                self._catalog.keep_generated(row.origin, body.encode())
        return kept

    def _update(self, row: FileRow, look: Observation) -> None:
        """The file differs, no embedded text does: same id, new record."""
        if look.state == RECORD:
            self._put_record(look)
        made = row_of(look, row.id, layout=self._layout, generation=row.generation)
        is_as_read = row.kind != DOCUMENT or self._catalog.content(row.id) == look.data
        if row.file_hash == look.file_hash and row.detail == look.detail and is_as_read:
            return
        self._catalog.update(replace(made, resource=self._layout.resource(look.path, row.resource)))
        if look.state == INDEXED:
            self._catalog.put_content(row.id, look.data)
            self._catalog.replace_metadata(row.id, metadata_of(look, row.id))
            self._put_links(look, row.id)

    def _insert(self, fresh: Sequence[Observation], resources: Mapping[str, str]) -> None:
        ids = self._catalog.new_ids(len(fresh))
        rows = []
        for look, identifier in zip(fresh, ids, strict=True):
            row = row_of(
                look, identifier, layout=self._layout, generation=self._catalog.next_generation
            )
            if not row.resource and look.chunk is None and resources.get(look.path):
                # In the flat layout a file that cannot be read tells no resource.
                row = replace(row, resource=resources[look.path])
            rows.append((look, row))
        self._catalog.insert(rows)
        indexed = [(look, row) for look, row in rows if look.chunk is not None]
        self._catalog.insert_metadata(
            pair for look, row in indexed for pair in metadata_of(look, row.id)
        )
        for look, row in indexed:
            self._put_links(look, row.id)
        for look in fresh:
            if look.state == RECORD:
                self._put_record(look)
        texts = {key: text for look, _ in indexed for key, text in texts_of(look)}
        self._embedding_feed.take(texts)
        for other in self._others:
            other.take(texts)
        if indexed:
            named = self._rewording.named([row for _, row in indexed])
            self._fulltext_feed.add(
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
        self._catalog.replace_children(identifier, children)
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
            generated = self._catalog.generated(chunk.origin)
            if generated is not None:
                targets += own_links(look.path, chunk.body, generated.decode())
        self._catalog.replace_links(identifier, targets)

    def _put_record(self, look: Observation) -> None:
        record = look.record
        if record is None:
            return
        self._records_changed = True
        resource = record.resource or resource_of(look.path)
        now = {one.source: sorted(one.pairs()) for one in record.documents}
        self._rewording.note_record(look.path, resource, record.source, now)
        self._catalog.put_record(look.path, resource, record, look.data)

    def _delete_record(self, path: ChunkPath) -> None:
        self._records_changed = True
        self._rewording.note_record(path, "", "", {})
        self._catalog.delete_record(path)

    def change_model(self, on_share: OnShare) -> None:
        """Take every vector from the model of this commit, whatever they came from."""
        self.lack(vector for vector, _ in self._catalog.vector_keys())
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
        texts = dict(kept_texts(self._catalog, self._catalog.paths_without_vectors()))
        wanted = {key for _, key in self._catalog.vector_keys(embedded=False)}
        return {key: text for key, text in texts.items() if key in wanted}

    def embed_waiting(self, ordered: list[int], until_s: float) -> None:
        """Embed texts that wait for their vector, until a moment of the monotonic clock.

        The first passage of each document comes first, so that early answers are broad.

        Args:
            ordered: Vector ids, last first, that an earlier commit left; those that are done go.
                An empty one is filled with all that wait: they are sorted once for many commits.
            until_s: That moment.
        """
        if not ordered:
            ordered += reversed(queries.waiting_vectors(self._catalog))
        while ordered:
            for some, texts in texts_of_vectors(self._catalog, ordered[-_AT_ONCE:][::-1]):
                keys = self._catalog.keys_of_vectors(some)
                taken = {keys[one]: text for one, text in zip(some, texts, strict=True)}
                self._embedding_feed.embed(taken, until_s=until_s)
                if not self._embedding_feed.embeds or time.monotonic() >= until_s:
                    return
            del ordered[-_AT_ONCE:]
        self.embed_others(until_s=until_s)

    def embed_others(self, on_share: OnShare = ignore_share, until_s: float | None = None) -> None:
        """Embed the texts that have no vector of other models than the store's own."""
        for other in self._others:
            other.embed_missing(on_share, until_s)

    def note_all_cut_again(self) -> None:
        """Remember that every document is cut as it is cut today."""
        self._all_cut_again = True

    def lack(self, vectors: Iterable[int]) -> None:
        """Note that vectors have no embedding, whatever the catalog has of them."""
        self._catalog.set_embedded(vectors, embedded=False)

    def forget(self, paths: Sequence[ChunkPath], *, by_hand: bool = False) -> None:
        """Forget files that are gone.

        Args:
            paths: Below `chunked/`.
            by_hand: A person deleted them: what their records still describe is to stay deleted.
        """
        entries = StatEntries(self._catalog)
        for batch in in_batches(paths):
            rows = list(self._catalog.files(batch).values())
            for row in rows if by_hand else ():
                version = self._catalog.record_version(row) if row.origin else None
                if version is not None:
                    gone = Deleted(path=row.path, origin=row.origin or "", source=row.source)
                    self._catalog.note_deleted(version, [gone])
            kept = self._before_replacing(rows)
            self._catalog.remember_forgotten(
                Forgotten(
                    path=path,
                    file_hash=content_hash(data),
                    data=data,
                    mtime_ns=entries.mtime_ns(path),
                    generation=self._catalog.next_generation,
                )
                for path, data in kept.items()
            )
            self._catalog.delete_conflicts(batch)
            self._delete(rows)
            for path in batch:
                self._note_stat(path, None)

    def stay_deleted(self, record_path: ChunkPath, deleted: Iterable[Deleted]) -> None:
        """Remember what a person deleted for the record that was put just now, too."""
        data = self._catalog.record_data(record_path)
        if data is not None:
            self._catalog.note_deleted(content_hash(data), deleted)

    def _delete(self, rows: Sequence[FileRow]) -> None:
        for row in rows:
            if row.state == RECORD:
                self._delete_record(row.path)
        indexed = [row.id for row in rows if row.state == INDEXED]
        texts = queries.texts_of_files(self._catalog, indexed)
        self._catalog.delete([row.id for row in rows])
        self._fulltext_feed.delete(texts)

    def move(self, moves: Sequence[tuple[ChunkPath, Observation]], read_from_ns: int) -> None:
        """Point files to new names: old path, and the observation at the new one."""
        known = self._catalog.files([old for old, _ in moves])
        self._layout.complete(look for _, look in moves)
        # A document may be cut otherwise by now than it was when it was indexed.
        cut = [(old, look) for old, look in moves if not has_same_text(known[old], look)]
        self.repoint([(old, look.path) for old, look in cut])
        self.put([look for _, look in cut], read_from_ns)
        moves = [(old, look) for old, look in moves if has_same_text(known[old], look)]
        self._catalog.delete_rows([known[old].id for old, _ in moves])
        for old, look in moves:
            row = known[old]
            made = row_of(look, row.id, layout=self._layout, generation=row.generation)
            resource = self._layout.resource(look.path, row.resource)
            self._catalog.update(replace(made, resource=resource))
            if row.state == RECORD:
                self._delete_record(old)
                self._put_record(look)
            self._rewording.note_path(old, look.path)
            self._put_links(look, row.id)
            self._note_stat(old, None)
        self._catalog.note_moves((old, look.path) for old, look in moves)
        self.refresh([look for _, look in moves], read_from_ns)

    def repoint(self, moves: Sequence[tuple[ChunkPath, ChunkPath]]) -> None:
        """Point files to new names, and leave what they held for `put`: they were edited, too.

        Args:
            moves: Old path and new path.
        """
        known = self._catalog.files([old for old, _ in moves])
        self._catalog.delete_rows([row.id for row in known.values()])
        for old, new in moves:
            resource = self._layout.resource(new, known[old].resource)
            self._catalog.update(replace(known[old], path=new, resource=resource))
            self._rewording.note_path(old, new)
            self._note_stat(old, None)
        self._catalog.note_moves(moves)

    def note_sources(self, seen: Iterable[tuple[str, str, bytes]]) -> None:
        """Record the (source, hash, stat entry) of originals that were read."""
        self._catalog.put_source_stats(seen)

    def refresh(self, seen: Iterable[Observation], read_from_ns: int) -> None:
        """Record the stats of files that were read and are as the catalog knows them."""
        for look in seen:
            self._note_stat(look.path, stat_entry(look.values, read_from_ns))

    def _note_stat(self, path: ChunkPath, packed: bytes | None) -> None:
        self._stats.setdefault(folder_of(path), {})[path.rpartition("/")[2]] = packed

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

    def _write_index(self) -> None:
        if self.embedder is None:
            return
        made_from = (self._catalog, self._embeddings, self.embedder)
        vectors = StoredVectors(*made_from)
        if self._home.write(self._catalog, vectors, wanted=self._index_wanted) and self.embeds:
            # Damaged rows came to light: what they held is embedded again before the file is.
            self.take_missing()
            self._embedding_feed.settle()
            self._home.write(self._catalog, StoredVectors(*made_from), wanted=True)

    def finish(self) -> CommitReport:
        """Commit.

        Raises:
            WriteFailedError: The disk refused; the old generation stays.
        """
        self._embedding_feed.settle()
        for gone, entries_now in self._rewording.renewed():
            self._fulltext_feed.delete(gone)
            self._fulltext_feed.add(entries_now)
        self._put_stats()
        cut_by = self._layout.cut_by
        if cut_by and (self._all_cut_again or self._catalog.meta(CHUNKER) is None):
            # As long as some are cut otherwise, the label is theirs.
            self._catalog.set_meta(CHUNKER, cut_by)
        if self._layout.shares_folder:
            self._assign_resources()
        if self.embedder is not None:
            self._catalog.set_meta("fingerprint", self.embedder.fingerprint)
            self._catalog.set_meta(METRIC, self._metric)
        if self._records_changed:
            self._catalog.drop_unused_source_stats()
        if self._lost_some:
            # Some other command than a sync: what went is not to be forgotten by a new count.
            self.lack(lost_vectors(self._catalog, self._embeddings))
        self._write_index()
        if self.embedder is not None:
            count = self._embeddings.count(self.embedder.fingerprint)
            self._catalog.set_meta(_EMBEDDINGS, count)
        for other in self._others:
            other.finish()
        self._fulltext_feed.catch_up()
        self._catalog.forget_dead(self._fulltext_feed.seen_generation)
        generation = self._catalog.commit()
        collect(self._places, self._catalog, self._previous)
        self._fulltext_feed.commit(generation)
        self._layout.drop_unused(self._catalog.file_hashes)
        unsent = None
        if self.embedder is not None and not self._is_quick:
            vectors = StoredVectors(self._catalog, self._embeddings, self.embedder)
            unsent = self._home.catch_up(self._catalog, vectors, whole=self._compares_rows)
        return CommitReport(
            generation=generation,
            embedded=self._embedding_feed.embedded + sum(one.embedded for one in self._others),
            reused=self._embedding_feed.reused,
            problem=self.problem,
            unsent=unsent,
        )

    def await_rest(self, *, is_awaited: bool) -> None:
        """Remember whether files of a mass that went are still to come back or to be let go."""
        self._catalog.set_meta(AWAITED, int(is_awaited))

    def keep_generated(self, origin: str, body: str) -> None:
        """Keep a generated text that a hand-edited file hides."""
        self._catalog.keep_generated(origin, body.encode())

    def settle_conflicts(self, settled: Iterable[ChunkPath], waiting: Iterable[Conflict]) -> None:
        """Forget the conflicts of some files, and keep those that wait for a person."""
        self._catalog.delete_conflicts(settled)
        for conflict in waiting:
            self._catalog.put_conflict(conflict)

    def keep_resolved(self, batch: str, conflicts: Iterable[Conflict]) -> None:
        """Keep conflicts that a person resolved, until `reopen_conflicts` undoes that."""
        self._catalog.keep_resolved(batch, conflicts)

    def reopen_conflicts(self, batches: Container[str]) -> None:
        """Let a person choose again in what was resolved with these batches."""
        self._catalog.reopen_conflicts(batches)

    def note_original(self, source: str, path: str) -> None:
        """Remember where the original of a copy lies."""
        self._catalog.set_meta(f"original:{source}", path)

    def trust_fulltext(self) -> None:
        """Read the full-text index no more to check it: under this lock that was done."""
        self._fulltext_feed.trust()

    def want_fulltext(self) -> None:
        """Build the full-text index again on `finish`."""
        self._fulltext_feed.rebuild()

    def be_quick(self) -> None:
        """Leave to the next sync what takes long, or a service: somebody waits for an answer."""
        self._is_quick = True
        self._fulltext_feed.exact_texts = QUICK_TEXTS

    def leave_out_deleted(self, *, always: bool) -> int:
        """Let deleted texts count in keyword scores no longer; how many did.

        Args:
            always: Also where they are so few of so many that they may.
        """
        if not always and not self._fulltext_feed.counts_too_many:
            return 0
        return self._fulltext_feed.leave_out_deleted()

    def _put_stats(self) -> None:
        known = self._catalog.folders() if self._stats else {}
        changed = []
        for folder, notes in self._stats.items():
            entries = known[folder].entries() if folder in known else {}
            for name, packed in notes.items():
                if packed is None:
                    entries.pop(name, None)
                else:
                    entries[name] = packed
            changed.append((folder, pack_folder(entries)))
        self._catalog.put_folders(changed)

    def _assign_resources(self) -> None:
        """In the flat layout the record whose source holds a chunk's source is its resource."""
        owners = self._catalog.sources_of_resources()
        rows = self._catalog.all_files() if self._records_changed else self._catalog.files_of("")
        for row in list(rows):
            resource = owner(row.source, owners) if row.source else ""
            if row.state == INDEXED and resource != row.resource:
                self._catalog.update(replace(row, resource=resource))


def lost_vectors(catalog: Catalog, embeddings: EmbeddingCache | None) -> list[int]:
    """The vector ids whose embedding is gone, though the catalog counts on it.

    Whether the model is here or not: else a sync would repair the same loss for ever.
    """
    fingerprint = catalog.meta("fingerprint")
    if fingerprint is None or embeddings is None:
        return []
    if embeddings.count(fingerprint) == catalog.meta(_EMBEDDINGS):
        return []
    keys = dict(catalog.vector_keys())
    had = embeddings.has(fingerprint, list(keys.values()))
    return [vector for vector, key in keys.items() if key not in had]
