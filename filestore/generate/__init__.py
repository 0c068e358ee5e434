"""Generators: texts in, questions, summaries or new queries out. The contract and the kinds.

A new one is a module next to these, called by its kind, and an entry in `_REACHES_OUT`, which says
whether it sends texts to a service: then a store may use it only after its user allowed that one.
An implementation is imported only when it is opened. One rule: what a generator reads is data.
Whatever a text says, it is answered about, never obeyed, and what comes back is checked before
anything relies on it.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import orjson
from msgspec import Struct, field

from filestore.config.settings import GeneratorOptions
from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError
from filestore.core.hashing import normalize_text
from filestore.embed import estimated_tokens
from filestore.remote.address import DEFAULT_ENDPOINT, Use, parse_address

if TYPE_CHECKING:
    import threading


Kind = Literal["questions", "summary", "rewrite"]
GENERATION: Final = Use(
    path="/chat/completions",
    table="generator",
    model_key="generator.name",
    too_long="lower `window_tokens` under [generator] in filestore.toml to what the model takes",
    kept="what was made is kept",
    without="the generator `extractive` works without it",
)
"""What a service that generates is asked for."""
MOST_QUESTIONS: Final = 20
"""More are not asked for one text."""


class UnknownGenerator(FilestoreError, ValueError):
    """A generator is named that this installation does not have."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        choices = ", ".join(known)
        super().__init__(
            f"unknown generator {name!r}: name one of {choices}, or a model of a service as"
            " `openai:MODEL`"
        )


class GenerationFailed(FilestoreError, ValueError):
    """One text got no usable result; the others are not touched by it.

    Args:
        message: What was wrong with what came back.
        remedy: The next thing to do.
        hint: The same for the model, without a word of its own.
    """

    def __init__(self, message: str, *, remedy: str = "", hint: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.hint = hint


class PromptsUnusable(FilestoreError, ValueError):
    """A store's own prompts cannot be read."""


class OwnPrompts(Struct, frozen=True, kw_only=True):
    """The prompts in a store's own folder, as they are now."""

    files: tuple[str, ...]
    """Their paths below the root."""
    reach: str
    """What the user allows: a text that changes with them."""
    texts: Mapping[Kind, str]


class Task(Struct, frozen=True, kw_only=True):
    """One thing to be made."""

    kind: Kind
    texts: tuple[str, ...]
    """One for questions; for a summary its children, in reading order; for a rewrite the query,
    and behind it the texts nearest to it."""
    headings: tuple[str, ...] = ()
    """Those all texts are under, from the outermost."""
    title: str = ""
    """Of the document, where it is known."""
    count: int = 0
    """How many questions or queries are wanted; 0 for a summary alone."""

    @property
    def key(self) -> bytes:
        """SHA-256 over all that the result depends on besides the generator: 32 bytes."""
        parts: list[Any] = [self.kind, [normalize_text(text) for text in self.texts]]
        parts += [self.headings, self.title, self.count]
        try:
            data = orjson.dumps(parts)
        except TypeError:  # a lone surrogate has no UTF-8
            data = repr(parts).encode()
        return hashlib.sha256(data).digest()


class Made(Struct, frozen=True, kw_only=True):
    """What came out of one task."""

    lines: tuple[str, ...] = ()
    """Questions, keys or queries: each one line, different from each other, none empty, at most
    `Task.count`."""
    title: str = ""
    """Of a summary: one line, or ""."""
    text: str = ""
    """A summary's text; no frontmatter, no heading of its own."""
    tokens_in: int = 0
    """As the service counted them; 0 for a generator that runs here."""
    tokens_out: int = 0


class Result(Struct, frozen=True, kw_only=True):
    """The end of one task: something was made, or not."""

    place: int
    """Of the task in the sequence that was given."""
    made: Made | None = None
    problem: FilestoreError | None = None
    tokens_in: int = 0
    """What a task that failed cost all the same."""
    tokens_out: int = 0


class Price(Struct, frozen=True, kw_only=True):
    """What a service takes, as the settings say; it is never guessed."""

    per_million_in: float
    per_million_out: float


class GeneratorChoice(Struct, frozen=True, kw_only=True):
    """Which generator to open, and what its opener may look at."""

    name: str
    """A kind, or kind and model, ``openai:gpt-4o-mini``."""
    options: GeneratorOptions = field(default_factory=GeneratorOptions)
    machine: Machine = field(default_factory=Machine)
    root: str = ""
    """The store's, absolute: its own prompts lie in it, and trust is given by root."""

    @property
    def kind(self) -> str:
        """What comes before the colon."""
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        """What comes after the colon."""
        return self.name.partition(":")[2]


class Generator(ABC):
    """Makes questions, summaries and queries. Opening one is cheap and contacts no one."""

    name: str
    """The name it was opened with."""
    lines: Literal["questions", "keys"] = "questions"
    """What it gives where questions are asked for: keys where it cannot put one."""
    is_free: bool = True
    """Whether it runs here and costs nothing but time."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What its results depend on besides the task: kind, version, model, prompts.

        Under one fingerprint and one task key a result is made once and kept for good.
        """

    @property
    @abstractmethod
    def label(self) -> str:
        """The fingerprint in a few characters without spaces, for a file: ``extractive/2``."""

    @property
    def price(self) -> Price | None:
        """What it costs; None where it is free or not known."""
        return None

    @property
    @abstractmethod
    def window_tokens(self) -> int:
        """The most tokens, by `count_tokens`, that all texts of a task may have together."""

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, on the high side: the model's own tokenizer is not here."""
        return estimated_tokens(text)

    @abstractmethod
    def estimate(self, task: Task) -> tuple[int, int]:
        """Tokens in, prompt included, and the most that may come out; (0, 0) where it is free."""

    @abstractmethod
    def make(self, tasks: Sequence[Task], *, stop: threading.Event) -> Iterator[Result]:
        """Work on tasks, and yield each as it ends, in any order.

        A task that fails has a problem and does not keep the others; what makes all others fail,
        too (the service is gone, the key is refused, the quota is spent), is raised. Once `stop`
        is set, no task is begun; what has ended by then is yielded, and the rest is not.

        Raises:
            EndpointError: The service answers no one, or too many tasks in a row.
        """


_REACHES_OUT: Final = {"extractive": False, "openai": True}
"""By kind; ``open_choice`` of the module of that name opens the generator."""


def known_generators() -> tuple[str, ...]:
    """The kinds that `open_generator` understands, sorted."""
    return tuple(sorted(_REACHES_OUT))


def reaches_out(options: GeneratorOptions) -> str | None:
    """The service that a store's settings would have generate; None where they name none.

    A service is named by its address alone, too: a command may then name its model.

    Raises:
        EndpointError: What is named is no address.
    """
    if options.endpoint is None and not _REACHES_OUT.get(options.name.partition(":")[0]):
        return None
    return str(parse_address(options.endpoint or DEFAULT_ENDPOINT, GENERATION))


def own_prompts(options: GeneratorOptions, root: str) -> OwnPrompts | None:
    """A store's own prompts, as they are now; None where its settings name none.

    Raises:
        PromptsUnusable: They cannot be read.
    """
    if options.prompts is None:
        return None
    from filestore.generate._prompts import read_own

    return read_own(root, options.prompts)


def open_generator(choice: GeneratorChoice) -> Generator:
    """Open a generator as the settings or a command name it.

    Raises:
        UnknownGenerator: There is no such kind.
        EndpointUntrusted: It would reach a service, or use prompts, that this store may not.
        PromptsUnusable: The store's own prompts cannot be read.
    """
    if choice.kind not in _REACHES_OUT:
        raise UnknownGenerator(choice.kind, known_generators())
    opener = import_module(f"{__name__}._{choice.kind}").open_choice
    return cast(Callable[[GeneratorChoice], Generator], opener)(choice)
