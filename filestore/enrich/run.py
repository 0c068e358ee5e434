"""Enriching a store: a plan of what is wanted, then questions and summaries, level by level.

The generator works without the lock of the store; files are written under it, a level at a time,
each held against what was indexed. Two rules: one run at a time, since two would pay for the same
results; and what is made stays, whatever happens next: results lie in the cache, levels that are
written are whole, and all of one run is undone together.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from filestore.catalog import UnknownResourceError
from filestore.chunks import chunk_file
from filestore.config.layout import ENRICH_LOCK, GENERATED
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import ChunkPath, StorePath, inside
from filestore.core.progress import OnProgress, ignore
from filestore.enrich import writing
from filestore.enrich.material import (
    ChunkFile,
    SectionText,
    Text,
)
from filestore.enrich.plan import (
    EnrichPlan,
    EnrichReport,
    FailedTask,
    Job,
    KeptFile,
    PlannedResource,
    Resources,
    Wish,
    WishOptions,
    Workshop,
    cut_to_window,
    question_task,
)
from filestore.enrich.tree import (
    SUMMARY_TOKENS,
    Leaf,
    Member,
    PlannedSummary,
)
from filestore.enrich.writing import Writer
from filestore.fs import disk
from filestore.fs.lock import writer_lock
from filestore.generate import MOST_QUESTIONS, Generator, Made, Task
from filestore.generate.cache import GeneratedCache
from filestore.git import repository
from filestore.sidecar import recover
from filestore.sync import apply as syncing

if TYPE_CHECKING:
    from filestore.generate import Generator
    from filestore.sidecar.session import Parts


def wish(parts: Parts, resources: Sequence[str], wanted: WishOptions) -> Wish:
    """What is asked for, the resources by their exact names, or all below a folder.

    Raises:
        UnknownResourceError: There is no such resource.
    """
    from filestore.browse.named import resource_named, resources_below

    if not resources:
        return Wish(**wanted)
    names: list[str] = []
    with parts.reading() as catalog:
        for name in resources:
            try:
                names.append(resource_named(catalog, name, parts.places))
            except UnknownResourceError:
                below = resources_below(catalog, name, parts.places) if name else []
                if not below:
                    raise
                names += below
    return Wish(tuple(dict.fromkeys(names)), **wanted)


def plan(
    parts: Parts, wish: Wish, *, generator: str | None = None, on_progress: OnProgress = ignore
) -> EnrichPlan:
    """What enriching would take; changes nothing, and asks no service.

    Raises:
        UnknownGenerator: There is no such generator.
        UnknownResourceError: There is no such resource.
        EndpointUntrusted: The generator would reach what this store may not.
    """
    _check(parts, wish)
    opened = _opened(parts, generator)
    asked = replace(wish, replace=generator is not None)
    with GeneratedCache.open(_cache(parts)) as cache:
        return Enriching(parts, opened, asked, on_progress=on_progress).plan(cache)


def enrich(
    parts: Parts,
    wish: Wish,
    *,
    generator: str | None = None,
    stop: threading.Event | None = None,
    on_progress: OnProgress = ignore,
) -> EnrichReport:
    """Sync, then make and write what is wanted. What fails is in the report, the rest goes on.

    Args:
        parts: Of the store.
        wish: What is asked for.
        generator: Another one than the store's.
        stop: Set when no more is to be begun.
        on_progress: Called with the progress.

    Raises:
        As `plan`, and:
        GitBusyError: A merge, rebase or the like is under way.
        LockedError: Another writer holds the store, or another run is under way.
        WriteFailedError: The disk refused; what was written before stays.
    """
    _check(parts, wish)
    repository.refuse_during_operation(parts.places.root)
    parts.model.ask()
    opened = _opened(parts, generator)
    syncing.catch_up(parts, syncing.SyncRequest(), on_progress)
    asked = replace(wish, replace=generator is not None)
    recover.make_sidecar(parts.places)
    lock = os.path.join(parts.places.sidecar, ENRICH_LOCK)
    with (
        disk.disk_errors(parts.places.sidecar),
        writer_lock(lock, command="filestore enrich", on_wait=parts.on_wait),
        GeneratedCache.open(_cache(parts)) as cache,
    ):
        return Enriching(parts, opened, asked, stop=stop, on_progress=on_progress).run(cache)


def _opened(parts: Parts, name: str | None) -> Generator:
    """The generator.

    Raises:
        ModelMissing: What it makes could not be embedded, and making it costs nothing later either.
    """
    opened = parts.model.generator(name)
    if opened.is_free and parts.model.embedder is None:
        raise parts.model.why_not
    return opened


def _check(parts: Parts, wish: Wish) -> None:
    if wish.questions is not None and not 1 <= wish.questions <= MOST_QUESTIONS:
        raise UsageError(f"--questions must be 1 to {MOST_QUESTIONS}, found {wish.questions}")
    if wish.across and not parts.layout.has_folders:
        raise UsageError(
            "--across needs the tree layout: elsewhere a summary belongs to one source",
            remedy="'filestore enrich' without --across",
        )
    if wish.budget is not None and wish.budget < 0:
        raise UsageError(f"--budget must not be negative, found {wish.budget}")


def _cache(parts: Parts) -> str:
    return os.path.join(parts.places.sidecar, GENERATED)


_KEYS: Final = (
    "the generator {} writes keys, a heading path and rare terms, in place of questions:"
    " name a chat service for questions, --generator openai:MODEL"
)


class Enriching:
    """One run over the resources of a store."""

    def __init__(
        self,
        parts: Parts,
        generator: Generator,
        wish: Wish,
        *,
        stop: threading.Event | None = None,
        on_progress: OnProgress = ignore,
    ) -> None:
        self._parts = parts
        self._generator = generator
        self._wish = wish
        self._stop = stop or threading.Event()
        self._on_progress = on_progress
        self._asked: set[ChunkPath] = set()
        self._written: set[ChunkPath] = set()
        self._removed: set[ChunkPath] = set()
        self.kept: dict[ChunkPath, KeptFile] = {}
        self.notes: list[str] = []
        self._resources = Resources(
            parts,
            wish,
            window=generator.window_tokens,
            notes=self.notes,
            on_progress=on_progress,
        )
        if wish.questions is not None and generator.lines == "keys":
            self.notes.append(_KEYS.format(generator.name))

    # The plan

    def plan(self, cache: GeneratedCache) -> EnrichPlan:
        """What it would take; changes nothing, and asks no service."""
        found = EnrichPlan(
            generator=self._generator.name,
            lines=self._generator.lines,
            is_free=self._generator.is_free,
            price=self._generator.price,
        )
        workshop = self._workshop(cache)
        for wave in self._resources.waves():
            jobs = [job for one in wave for _, job in self._question_jobs(one)]
            found.questions += len(jobs)
            self._estimate(found, workshop, [job.task for job in jobs])
            for resource in wave:
                self._estimate_summaries(found, workshop, resource)
        found.threshold = self._resources.threshold
        found.kept, found.notes = list(self.kept.values()), self.notes
        return found

    def _estimate(self, found: EnrichPlan, workshop: Workshop, tasks: Sequence[Task]) -> None:
        fresh = [task for task in tasks if workshop.known(task) is None]
        found.from_cache += len(tasks) - len(fresh)
        for tokens_in, tokens_out in map(self._generator.estimate, fresh):
            found.tokens_in += tokens_in
            found.tokens_out += tokens_out

    def _estimate_summaries(
        self, found: EnrichPlan, workshop: Workshop, resource: PlannedResource
    ) -> None:
        found.removed += len(self._removable(resource))
        for wanted in resource.tree.summaries:
            job = self._summary_job(resource, wanted)
            if isinstance(job, ChunkFile):
                resource.files[id(wanted)] = job
                continue
            found.summaries += 1
            if job is None:
                # What it is made from is not written yet.
                tokens = sum(
                    member.tokens if isinstance(member, Leaf) else SUMMARY_TOKENS
                    for member in wanted.members
                )
                found.tokens_in += 0 if self._generator.is_free else tokens
                found.tokens_out += 0 if self._generator.is_free else SUMMARY_TOKENS
                continue
            made = workshop.known(job.task)
            if made is None:
                self._estimate(found, workshop, [job.task])
            else:
                found.from_cache += 1
                self._take(resource, wanted, made)

    # The work

    def run(self, cache: GeneratedCache) -> EnrichReport:
        """Make what is wanted, and write it."""
        report = EnrichReport(generator=self._generator.name, lines=self._generator.lines)
        workshop = self._workshop(cache)
        writer = Writer(_parts=self._parts, _on_progress=self._on_progress)
        report.bill = workshop.bill
        try:
            self._follow(writer)
            for wave in self._resources.waves(writer.flush):
                self._questions(wave, workshop, writer)
                self._summaries(wave, workshop, writer)
                if self._stop.is_set():
                    break
        except FilestoreError as error:
            report.problem = error
        finally:
            # What was made is written, whatever ends the work.
            try:
                writer.flush()
            except FilestoreError as error:
                report.problem = report.problem or error
        report.questions = len(self._asked & writer.done)
        report.summaries = len(self._written & writer.done)
        report.removed = len(self._removed & writer.done)
        report.threshold = self._resources.threshold
        report.kept, report.notes = list(self.kept.values()), self.notes
        report.failed = [
            FailedTask(path=self._shown(one.path), kind=one.kind, error=one.error.message)
            for one in workshop.bill.failed
        ] + [
            FailedTask(path=self._shown(path), kind="write", error=reason)
            for path, reason in writer.left
        ]
        report.undo = writer.group
        report.embedded, report.reused = writer.embedded, writer.reused
        report.not_embedded = writer.problem
        return report

    def _follow(self, writer: Writer) -> None:
        """Take along what was made of documents in place that were moved."""
        if not self._parts.places.tree.has_sections:
            return
        with self._parts.looking(sound=True) as (snapshot, _):
            found = writing.moves(snapshot.catalog)
        for one in found:
            if not self._wish.resources or one.new in self._wish.resources:
                for path, data in one.changes.items():
                    writer.put(path, data, one.before.get(path))
                self.notes.append(f"what was made of {one.old} is with {one.new} now")
        # What is made next is read from the index.
        writer.flush()

    def _questions(
        self,
        wave: Sequence[PlannedResource],
        workshop: Workshop,
        writer: Writer,
    ) -> None:
        asked = [(one, *pair) for one in wave for pair in self._question_jobs(one)]
        jobs = [job for _, _, job in asked]
        with _kept_on_error(workshop, jobs, f"making {self._generator.lines}") as results:
            answered: dict[int, dict[bytes, Sequence[str]]] = {}
            for place, made in results.items():
                resource, file, job = asked[place]
                lines = list(made.lines)
                is_same = not (self._wish.replace or writing.are_stale(file.chunk, file.text))
                if self._generator.lines != "questions" and is_same:
                    # Keys come behind what was made of the same text by another generator.
                    own = chunk_file.own_questions(file.chunk)
                    there = [line for line in file.chunk.questions if line not in own]
                    lines = list(dict.fromkeys([*there, *lines]))
                lines = lines[: job.task.count]
                if isinstance(file, SectionText):
                    answered.setdefault(id(resource), {})[file.key] = lines
                    continue
                try:
                    data = writing.with_questions(file, lines)
                except (FilestoreError, ValueError) as error:
                    writer.leave(file.path, str(error))
                    continue
                if data != file.data:
                    writer.put(file.path, data, file.data)
                    file.take(data)
                    self._asked.add(file.path)
            for one in wave:
                # The file of a document's questions, if it is to be another.
                questions = one.material.questions
                if questions is None or self._wish.questions is None:
                    continue
                of_texts = answered.get(id(one), {})
                changed, has_loose = writing.with_document_questions(one.material, of_texts)
                if has_loose:
                    self._keep(questions.path, "a person wrote a question; its text is gone")
                if changed != questions.data:
                    writer.put(questions.path, changed, questions.data)
                    (self._removed if changed is None else self._asked).add(questions.path)

    def _summaries(
        self,
        wave: Sequence[PlannedResource],
        workshop: Workshop,
        writer: Writer,
    ) -> None:
        if not self._wish.summaries:
            return
        levels = sorted({one.level for resource in wave for one in resource.tree.summaries})
        for level in levels:
            self._level(level, wave, workshop, writer)
            if self._stop.is_set():
                return
        for resource in wave:
            for file in self._removable(resource):
                writer.put(file.path, None, file.data)
                self._removed.add(file.path)

    def _level(
        self,
        level: int,
        wave: Sequence[PlannedResource],
        workshop: Workshop,
        writer: Writer,
    ) -> None:
        jobs: list[Job] = []
        owners: list[tuple[PlannedResource, PlannedSummary]] = []
        for resource in wave:
            for wanted in resource.tree.summaries:
                if wanted.level != level:
                    continue
                job = self._summary_job(resource, wanted)
                if isinstance(job, ChunkFile):
                    resource.files[id(wanted)] = job
                elif job is not None:
                    jobs.append(job)
                    owners.append((resource, wanted))
        with _kept_on_error(workshop, jobs, f"summarising, level {level}") as results:
            for place in sorted(results):
                resource, wanted = owners[place]
                there = resource.material.summaries.get(wanted.path) if wanted.path else None
                try:
                    file = self._take(resource, wanted, results[place])
                except (FilestoreError, ValueError) as error:
                    writer.leave(jobs[place].path, str(error))
                    continue
                if there is None or there.data != file.data:
                    writer.put(file.path, file.data, there.data if there else None)
                    self._written.add(file.path)

    def _take(self, resource: PlannedResource, wanted: PlannedSummary, made: Made) -> ChunkFile:
        """The file of a summary, from what was made."""
        material = resource.material
        texts = self._texts(resource, wanted.members)
        assert texts is not None
        there = material.summaries.get(wanted.path) if wanted.path else None
        children = [writing.child_of(one.path, one.text) for one in texts]
        data = writing.summary(
            there,
            made,
            children,
            level=wanted.level,
            label=self._generator.label,
            source=material.source,
            asked=self._wish.questions is not None,
        )
        path = wanted.path
        if path is None:
            paths = [one.path for one in texts]
            if not resource.taken:
                with contextlib.suppress(FileNotFoundError):
                    folder = os.path.join(self._parts.places.chunked, material.folder)
                    resource.taken.update(os.listdir(folder))
            if self._parts.layout.shares_folder:
                text = "\n".join(sorted(paths))
                name = chunk_file.flat_name(f"summary of {material.resource}", text, resource.taken)
            else:
                number = 1 + resource.tree.summaries.index(wanted)
                name = chunk_file.summary_name(number, paths, resource.taken)
            resource.taken.add(name)
            path = wanted.path = inside(material.folder, name)
        file = ChunkFile(path=path, data=data, chunk=chunk_file.parse(data))
        resource.files[id(wanted)] = file
        return file

    # What is wanted

    def _question_jobs(self, resource: PlannedResource) -> Iterator[tuple[ChunkFile, Job]]:
        """Texts that have no questions yet, or those of another text."""
        material = resource.material
        for path in material.unread:
            self._keep(path, "it cannot be read: 'filestore status' says why")
        for file in (*material.chunks.values(), *material.sections):
            count = self._wanted_count(file)
            if count:
                yield file, Job(path=file.path, task=question_task(file, material.title, count))
        for file in material.summaries.values():
            count = self._wanted_count(file)
            # A generated one gets them with its text, unless that stays.
            if count and (writing.is_a_persons(file.chunk) or file.chunk.questions_origin is None):
                yield file, Job(path=file.path, task=question_task(file, material.title, count))

    def _wanted_count(self, file: ChunkFile) -> int:
        count = self._wish.questions
        if count is None or not file.chunk.body.strip():
            return 0
        if writing.are_stale(file.chunk, file.text):
            return max(count, writing.count_made(file.chunk)) if self._wish.refresh else count
        if self._wish.refresh:
            return 0
        origin = file.chunk.questions_origin
        is_done = origin is not None and len(origin.made) >= count
        return 0 if is_done else count

    def _summary_job(
        self, resource: PlannedResource, wanted: PlannedSummary
    ) -> Job | ChunkFile | None:
        """A task; the file that is there where it stays; None where a child is not written."""
        texts = self._texts(resource, wanted.members)
        there = resource.material.summaries.get(wanted.path) if wanted.path else None
        if there is not None and writing.is_a_persons(there.chunk):
            if texts is None or not writing.is_made_from(there, texts):
                self._keep(there.path, "edited by hand; its passages changed")
            return there
        if texts is None:
            return None
        is_wanted_anew = self._wish.replace and (
            there is not None and there.chunk.made_by != self._generator.label
        )
        if there is not None and writing.is_made_from(there, texts) and not is_wanted_anew:
            return there
        count = self._wish.questions or 0
        if there is not None and self._wish.refresh:
            made = writing.count_made(there.chunk)
            count = max(count, made) if made else 0
        cut = cut_to_window(texts, self._generator)
        task = Task(kind="summary", texts=cut, title=resource.material.title, count=count)
        return Job(path=wanted.path or texts[0].path, task=task)

    def _texts(self, resource: PlannedResource, members: Sequence[Member]) -> list[Text] | None:
        """What a summary is made from; None where a part of it is not there."""
        found: list[Text] = []
        for member in members:
            if isinstance(member, Leaf):
                text = resource.material.texts[member.key]
                found.append(Text(path=member.path, text=text))
            elif id(member) in resource.files:
                file = resource.files[id(member)]
                found.append(Text(path=file.path, text=file.text))
            else:
                return None
        return found

    def _removable(self, resource: PlannedResource) -> list[ChunkFile]:
        """Summaries of nothing that is there, which no person had a hand in."""
        if not self._wish.summaries:
            return []
        material = resource.material
        found = []
        held = set(material.excluded)
        files = [material.summaries[path] for path in resource.tree.superfluous]
        for file in sorted(files, key=lambda one: one.chunk.level or 0):
            chunk = file.chunk
            if held.intersection(child.path for child in chunk.children):
                held.add(file.path)
                self._keep(file.path, "a passage of it is excluded from search for now")
            elif writing.is_a_persons(chunk) or chunk.user or chunk_file.own_questions(chunk):
                self._keep(file.path, "a person wrote in it; its group is gone")
            else:
                found.append(file)
        return found

    def _keep(self, path: ChunkPath, reason: str) -> None:
        self.kept.setdefault(path, KeptFile(path=self._shown(path), reason=reason))

    def _shown(self, path: ChunkPath) -> StorePath:
        return self._parts.places.tree.store_path(path)

    # What there is

    def _workshop(self, cache: GeneratedCache) -> Workshop:
        return Workshop(
            generator=self._generator,
            _cache=cache,
            _budget=self._wish.budget,
            _stop=self._stop,
            _on_progress=self._on_progress,
        )


@contextlib.contextmanager
def _kept_on_error(
    workshop: Workshop, jobs: Sequence[Job], stage: str
) -> Iterator[dict[int, Made]]:
    """What was made of some jobs, also where the service goes or a person interrupts."""
    results: dict[int, Made] = {}
    ended: BaseException | None = None
    try:
        workshop.work(jobs, results, stage=stage)
    except (FilestoreError, KeyboardInterrupt) as error:
        ended = error
        workshop.stop()
    yield results
    if ended is not None:
        raise ended
