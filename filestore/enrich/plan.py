"""What is asked for, what it would take, and what was done. Values."""

from typing import Final, TypedDict

from msgspec import Struct, field

from filestore.core.errors import FilestoreError
from filestore.core.paths import StorePath
from filestore.core.schema import JsonObject
from filestore.enrich.grouping import Threshold
from filestore.enrich.jobs import Bill
from filestore.generate import Price

DEFAULT_QUESTIONS: Final = 3
_SECONDS_PER_REQUEST: Final = 3.0
_REQUESTS_AT_ONCE: Final = 4


class Wanted(TypedDict, total=False):
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
    """At most so many come back."""
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
