"""Work on tasks: first from what was made before, then by the generator, each result kept at once.

One rule: a result is in the cache before anybody uses it, and is paid for once. A task that fails
is named and keeps no other.
"""

import threading
from collections.abc import Sequence

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath
from filestore.core.progress import OnProgress, Progress
from filestore.generate import Generator, Made, Price, Task
from filestore.generate.cache import GeneratedCache, key_of


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
        """What it costs by the prices of the settings; None where nobody said."""
        if price is None:
            return None
        paid_in = self.tokens_in * price.per_million_in
        return (paid_in + self.tokens_out * price.per_million_out) / 1e6


class Workshop:
    """A generator with its cache and a budget."""

    def __init__(
        self,
        generator: Generator,
        cache: GeneratedCache,
        *,
        budget: int | None = None,
        stop: threading.Event,
        on_progress: OnProgress,
    ) -> None:
        self.generator = generator
        self.bill = Bill()
        self._cache = cache
        self._budget = budget
        self._stop = stop
        self._on_progress = on_progress
        self._ended: set[int] = set()

    def stop(self) -> None:
        """Let the generator begin nothing more."""
        self._stop.set()

    def known(self, task: Task) -> Made | None:
        """What was made of a task before."""
        return self._cache.get(key_of(self.generator.fingerprint, task))

    def work(self, jobs: Sequence[Job], results: dict[int, Made], *, stage: str) -> None:
        """Put the place of each job to its result, for those that have one.

        Raises:
            FilestoreError: The generator serves nobody; what was made before is kept.
        """
        todo: list[int] = []
        for place, job in enumerate(jobs):
            made = self.known(job.task)
            if made is not None:
                results[place] = made
                self.bill.from_cache += 1
            else:
                todo.append(place)
        todo = self._affordable(jobs, todo)
        try:
            self._generate(jobs, todo, results, stage)
        finally:
            self.bill.left += len(todo) - len(self._ended)

    def _affordable(self, jobs: Sequence[Job], todo: list[int]) -> list[int]:
        """The first tasks that the budget covers by their estimates."""
        if self._budget is None:
            return todo
        left = self._budget - self.bill.tokens_in - self.bill.tokens_out
        chosen: list[int] = []
        for place in todo:
            left -= sum(self.generator.estimate(jobs[place].task))
            if left < 0:
                break
            chosen.append(place)
        self.bill.left += len(todo) - len(chosen)
        return chosen

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
