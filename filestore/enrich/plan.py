"""What is asked for, of which resources, what it would take, the work on it, and what was done.

Two rules: a result is in the cache before anybody uses it, and is paid for once; and resources that
are read together are of one generation. A task that fails is named and keeps no other.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypedDict

from msgspec import Struct, field

from filestore.catalog import summaries as summary_rows
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, StorePath
from filestore.core.progress import OnProgress, Progress
from filestore.core.schema import JsonObject
from filestore.enrich.material import (
    STORE_TREE,
    ChunkFile,
    Material,
    Text,
    gather,
    gather_across,
    gather_document,
)
from filestore.enrich.tree import (
    SAMPLE,
    Threshold,
    TreeLimits,
    TreePlan,
    TreePlanning,
    choose_threshold,
    find_root,
)
from filestore.generate import Generator, Made, Price, Task
from filestore.generate.cache import GeneratedCache, key_of
from filestore.sidecar.snapshot import StoreSnapshot
from filestore.sidecar.summary_tree import SummaryTree

if TYPE_CHECKING:
    from filestore.sidecar.session import Parts


class Job(Struct, frozen=True, kw_only=True):
    """One task, and the file it is for."""

    path: ChunkPath
    """For a summary that is not there yet: of its first child."""
    task: Task


class Failure(Struct, frozen=True, kw_only=True):
    """A task that gave nothing usable."""

    path: ChunkPath
    kind: str
    error: FilestoreError


class Bill(Struct, kw_only=True):
    """What was made, and what it took."""

    made: int = 0
    """Results of the generator."""
    from_cache: int = 0
    """Results that were made before."""
    tokens_in: int = 0
    """Sent."""
    tokens_out: int = 0
    """Received."""
    failed: list[Failure] = field(default_factory=list)
    left: int = 0
    """Tasks that were not begun: the budget, an interruption, a service that is gone."""

    def cost(self, price: Price | None) -> float | None:
        """What it costs by the prices of the settings; None where none is set."""
        if price is None:
            return None
        paid_in = self.tokens_in * price.per_million_in
        return (paid_in + self.tokens_out * price.per_million_out) / 1e6


class Workshop(Struct, kw_only=True):
    """A generator with its cache and a budget."""

    generator: Generator
    bill: Bill = field(default_factory=Bill)
    _cache: GeneratedCache
    _budget: int | None
    _stop: threading.Event
    _on_progress: OnProgress
    _ended: set[int] = field(default_factory=set)

    def stop(self) -> None:
        """Let the generator begin nothing more."""
        self._stop.set()

    def known(self, task: Task) -> Made | None:
        """What was made of a task before."""
        return self._cache.get(key_of(self.generator.fingerprint, task))

    def work(self, jobs: Sequence[Job], results: dict[int, Made], *, stage: str) -> None:
        """Put the place of each job to its result, where it has one.

        Raises:
            FilestoreError: The generator is of no use here; what was made before is kept.
        """
        todo: list[int] = []
        for place, job in enumerate(jobs):
            made = self.known(job.task)
            if made is not None:
                results[place] = made
                self.bill.from_cache += 1
            else:
                todo.append(place)
        if self._budget is not None:
            # The first tasks that it covers by their estimates.
            left = self._budget - self.bill.tokens_in - self.bill.tokens_out
            for number, place in enumerate(todo):
                left -= sum(self.generator.estimate(jobs[place].task))
                if left < 0:
                    self.bill.left += len(todo) - number
                    todo = todo[:number]
                    break
        try:
            self._generate(jobs, todo, results, stage)
        finally:
            self.bill.left += len(todo) - len(self._ended)

    def _generate(
        self, jobs: Sequence[Job], todo: Sequence[int], results: dict[int, Made], stage: str
    ) -> None:
        self._ended = set()
        same: dict[str, list[int]] = {}
        for place in todo:
            same.setdefault(key_of(self.generator.fingerprint, jobs[place].task), []).append(place)
        firsts = [places[0] for places in same.values()]
        keys = list(same)
        tasks = [jobs[place].task for place in firsts]
        if not tasks:
            return
        for done, result in enumerate(self.generator.make(tasks, stop=self._stop), 1):
            places = same[keys[result.place]]
            self._ended.update(places)
            if result.made is not None:
                self._cache.put(keys[result.place], result.made)
                self.bill.made += 1
                self.bill.tokens_in += result.made.tokens_in
                self.bill.tokens_out += result.made.tokens_out
                results.update(dict.fromkeys(places, result.made))
            elif result.problem is not None:
                self.bill.tokens_in += result.tokens_in
                self.bill.tokens_out += result.tokens_out
                self.bill.failed += [
                    Failure(path=jobs[place].path, kind=jobs[place].task.kind, error=result.problem)
                    for place in places
                ]
            self._on_progress(Progress(stage=stage, done=done, total=len(tasks)))


def question_task(file: ChunkFile, title: str, count: int) -> Task:
    """What a generator is asked for the questions of a file."""
    return Task(
        kind="questions",
        texts=(file.chunk.body,),
        headings=file.chunk.headings,
        title=title,
        count=count,
    )


def cut_to_window(texts: Sequence[Text], generator: Generator) -> tuple[str, ...]:
    """Texts that fit the window together: else the beginning of each."""
    window = generator.window_tokens
    sizes = [generator.count_tokens(one.text) for one in texts]
    if sum(sizes) <= window:
        return tuple(one.text for one in texts)
    share = max(1, window // len(texts))
    found = []
    for one, size in zip(texts, sizes, strict=True):
        text = one.text
        while size > share and len(text) > 1:
            text = text[: max(1, len(text) * share // size)]
            size = generator.count_tokens(text)
        found.append(text)
    return tuple(found)


DEFAULT_QUESTIONS: Final = 3
_SECONDS_PER_REQUEST: Final = 3.0
_REQUESTS_AT_ONCE: Final = 4


class WishOptions(TypedDict, total=False):
    """`Wish` as keywords."""

    questions: int | None
    summaries: bool
    refresh: bool
    budget: int | None
    across: bool


class Wish(Struct, frozen=True):
    """What is asked for."""

    resources: tuple[str, ...] = ()
    """Their names; none for all."""
    questions: int | None = DEFAULT_QUESTIONS
    """How many for each text; None for none."""
    summaries: bool = True
    refresh: bool = False
    """Whether only what is out of date is made again."""
    replace: bool = False
    """Whether summaries that another generator made are made anew."""
    budget: int | None = None
    """Tokens."""
    across: bool = False
    """Whether what resources have on top gets summaries, too: one tree over the store."""


class KeptFile(JsonObject, Struct, frozen=True, kw_only=True):
    """A file that stays as it is, and why."""

    path: StorePath
    """The summary, relative to the root."""
    reason: str
    """Why it stays."""


class FailedTask(TypedDict):
    """A task that gave nothing usable, or a file that could not be written."""

    path: StorePath
    """The chunk file or summary; of a new summary its first child."""
    kind: str
    """`questions`, `summary` or `write`."""
    error: str
    """What went wrong."""


class EnrichPlan(JsonObject, Struct, kw_only=True):
    """What enriching would take; nothing was made for it."""

    KEYS = (
        "planned questions summaries removed tokens tokens_in tokens_out from_cache cost seconds "
        "failed kept generator lines threshold notes"
    )
    SPARSE = "threshold"

    generator: str = ""
    """What would make them."""
    lines: str = "questions"
    """What `questions` counts: questions, or the keys of the offline generator."""
    is_free: bool = True
    threshold: Threshold | None = None
    questions: int = 0
    """Texts that questions, or keys, are to be made for."""
    summaries: int = 0
    """Summaries that are to be written."""
    removed: int = 0
    """Summaries that are to be removed."""
    from_cache: int = 0
    """Tasks among them whose result is there."""
    tokens_in: int = 0
    """An estimate: what a level says is known only when it is written."""
    tokens_out: int = 0
    """Tokens that come back, at most."""
    price: Price | None = None
    failed: list[str] = field(default_factory=list)
    """Nothing is tried, so nothing fails."""
    kept: list[KeptFile] = field(default_factory=list)
    """Summaries that would stay as a person left them."""
    notes: list[str] = field(default_factory=list)
    """What else to know."""

    @property
    def planned(self) -> int:
        """Tasks for the generator."""
        return self.questions + self.summaries - self.from_cache

    @property
    def tokens(self) -> int:
        """An estimate, in and out; 0 for a generator that runs here."""
        return self.tokens_in + self.tokens_out

    @property
    def cost(self) -> float | None:
        """By the prices in filestore.toml; None where none is set."""
        bill = Bill(tokens_in=self.tokens_in, tokens_out=self.tokens_out)
        return 0.0 if self.is_free else bill.cost(self.price)

    @property
    def seconds(self) -> float | None:
        """How long a service would take, at a guess; None for a generator that runs here."""
        if self.is_free:
            return None
        return self.planned * _SECONDS_PER_REQUEST / _REQUESTS_AT_ONCE

    @property
    def json_threshold(self) -> float | None:
        """The least mean cosine of texts under one summary."""
        return self.threshold.value if self.threshold else None


class EnrichReport(JsonObject, Struct, kw_only=True):
    """What enriching did."""

    KEYS = (
        "planned questions summaries removed tokens bill.tokens_in bill.tokens_out bill.made "
        "bill.from_cache bill.left failed kept generator lines threshold notes undo embedded "
        "reused problem not_embedded"
    )
    SPARSE = "threshold problem not_embedded"

    generator: str = ""
    """What made them."""
    lines: str = "questions"
    """As in `EnrichPlan`."""
    threshold: Threshold | None = None
    questions: int = 0
    """Files that have new questions, or keys."""
    summaries: int = 0
    """Summaries that were written."""
    removed: int = 0
    """Summaries that were removed, because their group is no more."""
    bill: Bill = field(default_factory=Bill)
    failed: list[FailedTask] = field(default_factory=list)
    """Tasks that gave nothing usable, files that could not be written."""
    kept: list[KeptFile] = field(default_factory=list)
    """Summaries that stay as a person left them although their texts changed."""
    notes: list[str] = field(default_factory=list)
    """What else to know."""
    undo: str = ""
    """Takes all of it back: `filestore undo ID`; empty where no file changed."""
    embedded: int = 0
    """Texts that the model embedded."""
    reused: int = 0
    """Texts whose embedding came from the cache."""
    problem: FilestoreError | None = None
    """Why it ended early."""
    not_embedded: FilestoreError | None = None
    """Why new texts were left without vectors."""

    @property
    def planned(self) -> int:
        """Tasks that the generator was given, or would have been."""
        return self.bill.made + len(self.bill.failed) + self.bill.left

    @property
    def tokens(self) -> int:
        """In and out, as the service counted them; 0 for a generator that runs here."""
        return self.bill.tokens_in + self.bill.tokens_out

    @property
    def json_threshold(self) -> float | None:
        """The least mean cosine of texts under one summary."""
        return self.threshold.value if self.threshold else None


WAVE: Final = 5_000
"""Chunks after which no more resources are taken together."""


class PlannedResource(Struct, eq=False):
    """A resource, and the summaries that it is to have."""

    material: Material
    tree: TreePlan
    files: dict[int, ChunkFile] = field(default_factory=dict)
    """By identity of the wanted summary: as it is, or as it was just made."""
    taken: set[str] = field(default_factory=set)


class Resources:
    """The resources of one run."""

    def __init__(
        self,
        parts: "Parts",
        wish: Wish,
        *,
        window: int,
        notes: list[str],
        on_progress: OnProgress,
    ) -> None:
        """Read nothing yet.

        Args:
            parts: Of the store.
            wish: What is asked for.
            window: How many tokens the generator reads at once.
            notes: Takes what a person should know.
            on_progress: Called with the number of chunks that were read.
        """
        self._parts, self._wish, self._window = parts, wish, window
        self._notes, self._on_progress = notes, on_progress
        self.threshold: Threshold | None = None
        self._tree: tuple[int, SummaryTree] | None = None

    def waves(self, flush: Callable[[], None] | None = None) -> Iterator[list[PlannedResource]]:
        """The resources, some at a time, each batch of one generation.

        Args:
            flush: Writes what waits: what resources have on top is read from the index.
        """
        with self._parts.looking(sound=True) as (snapshot, _):
            names = self._names(snapshot)
            chosen = snapshot.settings.generator.threshold
            if chosen is not None:
                self.threshold = Threshold(value=chosen, texts=0, is_set=True)
            elif self._wish.summaries:
                import numpy as np

                vectors = np.zeros((0, 1), dtype=np.float32)
                if snapshot.embedder is not None and snapshot.embeddings is not None:
                    keys = summary_rows.sample_of_keys(snapshot.catalog, SAMPLE)
                    fingerprint = snapshot.embedder.fingerprint
                    every, sampled = snapshot.embeddings.get(fingerprint, keys)
                    vectors = every[sampled]
                self.threshold = choose_threshold(vectors)
            value = self.threshold.value if self.threshold else 1.0
            limits = TreeLimits(threshold=value, window=self._window)
        while names:
            wave: list[PlannedResource] = []
            size = 0
            with self._parts.looking(sound=True) as (snapshot, _):
                tree = self._tree_of(snapshot)
                while names and size < WAVE:
                    take = gather_document if snapshot.layout.has_sections else gather
                    found = take(snapshot, tree, names.pop(0))
                    size += max(len(found.chunks), len(found.leaves))
                    wave.append(self._planned(found, limits))
                    self._on_progress(Progress(stage="reading", done=size, total=None))
            yield wave
        if not self._wish.summaries or not self._parts.layout.has_folders:
            return
        with self._parts.looking(sound=True) as (snapshot, _):
            is_there = bool(snapshot.catalog.files_of(STORE_TREE))
        # A tree over the store is asked for, or is there and may be out of date.
        if self._wish.across or (is_there and not self._wish.resources):
            if flush is not None:
                flush()
            with self._parts.looking(sound=True) as (snapshot, _):
                tree = self._tree_of(snapshot)
                material = gather_across(snapshot, tree)
            yield [self._planned(material, limits)]

    def _tree_of(self, snapshot: StoreSnapshot) -> SummaryTree:
        """The summaries that are there, read once a generation."""
        generation = snapshot.catalog.generation
        if self._tree is None or self._tree[0] != generation:
            self._tree = generation, SummaryTree(summary_rows.all_children(snapshot.catalog))
        return self._tree[1]

    def _names(self, snapshot: StoreSnapshot) -> list[str]:
        catalog = snapshot.catalog
        names = [name for name, _, n in catalog.resources() if n and name != STORE_TREE]
        if self._wish.resources:
            names = list(self._wish.resources)
        if not self._wish.refresh:
            return names
        tree = self._tree_of(snapshot)
        loose = [path for path, _ in summary_rows.questions_out_of_step(catalog)]
        stale = summary_rows.resources_of(catalog, [*tree.stale_paths(), *loose])
        stale |= summary_rows.with_stale_questions(catalog)
        stale |= summary_rows.texts_in_none(catalog).keys()
        return [name for name in names if name in stale]

    def _planned(self, material: Material, limits: TreeLimits) -> PlannedResource:
        if material.without_vector:
            texts = (
                "1 passage"
                if material.without_vector == 1
                else f"{material.without_vector:,} passages"
            )
            self._notes.append(
                f"{material.resource or 'the top folder'}: {texts} without a vector, so its"
                " summaries stay as they are; 'filestore sync' embeds them"
            )
        is_wanted = self._wish.summaries and (material.present or not self._wish.refresh)
        tree = TreePlan()
        # Which texts belong together is known only of all of them.
        if is_wanted and not material.without_vector:
            root = find_root(material.present)
            tree = TreePlanning(
                material.leaves, material.vectors, material.present, limits, root=root
            ).plan()
        return PlannedResource(material, tree)
