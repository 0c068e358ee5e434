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


class Kept(Struct, frozen=True, kw_only=True):
    """A file that stays as it is, and why."""

    path: StorePath
    reason: str


class EnrichPlan(JsonObject, Struct, kw_only=True):
    """What enriching would take; nothing was made for it."""

    generator: str = ""
    lines: str = "questions"
    """What `questions` counts: questions, or the keys of the offline generator."""
    is_free: bool = True
    threshold: Threshold | None = None
    questions: int = 0
    """Texts that questions, or keys, are to be made for."""
    summaries: int = 0
    removed: int = 0
    from_cache: int = 0
    """Tasks among them whose result is there."""
    tokens_in: int = 0
    """An estimate: what a level says is known only when it is written."""
    tokens_out: int = 0
    price: Price | None = None
    failed: list[str] = field(default_factory=list)
    """Nothing is tried, so nothing fails."""
    kept: list[Kept] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def planned(self) -> int:
        """Tasks for the generator."""
        return self.questions + self.summaries - self.from_cache

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.tokens_in + self.tokens_out

    @property
    def cost(self) -> float | None:
        """By the prices of the settings; None where nobody said."""
        bill = Bill(tokens_in=self.tokens_in, tokens_out=self.tokens_out)
        return 0.0 if self.is_free else bill.cost(self.price)

    @property
    def seconds(self) -> float | None:
        """How long a service would take, at a guess; None for a generator that runs here."""
        if self.is_free:
            return None
        return self.planned * _SECONDS_PER_REQUEST / _REQUESTS_AT_ONCE


class EnrichReport(JsonObject, Struct, kw_only=True):
    """What enriching did."""

    generator: str = ""
    lines: str = "questions"
    """As in `EnrichPlan`."""
    threshold: Threshold | None = None
    questions: int = 0
    """Files that have new questions, or keys."""
    summaries: int = 0
    """Summaries that were written."""
    removed: int = 0
    bill: Bill = field(default_factory=Bill)
    failed: list[dict[str, str]] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    undo: str = ""
    embedded: int = 0
    reused: int = 0
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
        """As the service counted them, in and out."""
        return self.bill.tokens_in + self.bill.tokens_out
