"""Results from any service with OpenAI's `/chat/completions`: Ollama, vLLM, llama.cpp, OpenAI.

Opening one sends nothing. One rule: texts and key go only where the user allowed this store to
reach, and every answer is checked before anything relies on it.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.core.errors import FilestoreError
from filestore.generate import (
    GENERATION,
    GenerationFailed,
    Generator,
    GeneratorChoice,
    Made,
    Price,
    Result,
    Task,
    UnknownGenerator,
)
from filestore.generate._checked import read_answer
from filestore.generate._prompts import (
    Prompts,
    Takes,
    body_of,
    data_of,
    instructions_for,
    most_tokens_of_answer,
    names_a_parameter,
    prompts_with,
    read_own,
)
from filestore.remote import EndpointError, EndpointUntrusted, EndpointUnusable
from filestore.remote.address import DEFAULT_ENDPOINT, Address, key_for, trusted_address
from filestore.remote.service import (
    Asked,
    Deadline,
    Pace,
    Service,
    ServiceAnswer,
    ServiceLimits,
    as_ended,
    fields_of,
    is_final,
    refusal,
    start_of,
)

VERSION: Final = 1
"""Raised whenever the same service would make other results through us."""
DEFAULT_WINDOW_TOKENS: Final = 2_300
"""With instructions and the longest answer it fits the 4,096 that small services give a request:
they cut what is longer, and do not say so."""
THREADS: Final = 4
LIMITS: Final = ServiceLimits(read_s=300.0, total_s=600.0, answer_bytes=1024 * 1024)
"""A model on a slow machine writes for minutes; it is asked for a page, not for more."""
FAILURES_IN_A_ROW: Final = 8
"""How many tasks without an answer, and the service counts as gone."""
_ATTEMPTS: Final = 2
_MOST_TURNS: Final = 16
"""Requests that one task may need, repetitions included."""
_TOKENS_AROUND: Final = 16
_LONGEST_LABEL: Final = 60
_REFUSED: Final = "refused"


class _Reply(Struct, frozen=True, kw_only=True):
    """What a model wrote."""

    text: str
    reason: Any
    """Why it stopped, as the service says: ``length`` where it may write no more."""
    tokens_in: int
    tokens_out: int


class OpenAIGenerator(Generator):
    """A model behind an address; safe between threads.

    Raises:
        UnknownGenerator: The choice names no model.
        EndpointError: The address is none.
        EndpointUntrusted: The user did not allow this store to reach it, or to use its prompts.
        PromptsUnusable: The store's own prompts cannot be read.
    """

    is_free = False

    def __init__(self, choice: GeneratorChoice, *, limits: ServiceLimits = LIMITS) -> None:
        if not choice.model:
            raise UnknownGenerator(choice.name, ("extractive", "openai:MODEL"))
        self.name = choice.name
        self._choice = choice
        if patience_s := choice.options.timeout_s:
            limits = replace(limits, read_s=patience_s, total_s=2 * patience_s)
        self._limits = limits
        pace = Pace(choice.options.requests_per_minute)
        self._longest_s = limits.total_s + limits.connect_s + pace.gap_s * THREADS * _MOST_TURNS
        self._service = Service(
            _address(choice),
            GENERATION,
            limits=limits,
            is_final=lambda answer: is_final(answer) or names_a_parameter(answer),
            pace=pace,
        )
        self._prompts = _prompts(choice)
        self._takes = Takes()
        self._proven: frozenset[Takes] = frozenset()

    @property
    def fingerprint(self) -> str:
        """``openai/<version>:<model>:<hash of the prompts>``.

        The address is no part of it: the same model served elsewhere makes as good results.
        """
        return f"openai/{VERSION}:{self._choice.model}:{self._prompts.digest}"

    @property
    def label(self) -> str:
        """``openai/<model>``, cut and cleaned for a file."""
        model = re.sub(r"[^\w.:/@+-]+", "-", self._choice.model)
        return f"openai/{model}"[:_LONGEST_LABEL]

    @property
    def price(self) -> Price | None:
        """As the settings say, where they say both."""
        options = self._choice.options
        if options.price_in is None or options.price_out is None:
            return None
        return Price(per_million_in=options.price_in, per_million_out=options.price_out)

    @property
    def window_tokens(self) -> int:
        """As set, else 2,300."""
        return self._choice.options.window_tokens or DEFAULT_WINDOW_TOKENS

    def estimate(self, task: Task) -> tuple[int, int]:
        """Tokens of instructions and texts, and what the answer is limited to; for one request."""
        sent = self.count_tokens(self._instructions(task)) + self.count_tokens(data_of(task))
        return sent + _TOKENS_AROUND, most_tokens_of_answer(task)

    def make(self, tasks: Sequence[Task], *, stop: threading.Event) -> Iterator[Result]:
        """Ask for each, several at once; see `Generator.make`.

        Where the service fails for all, what is on its way and may be paid for is still waited for.
        """
        key = key_for(self._service.address, self._choice.machine.environment)
        ended, failures = threading.Event(), _Failures()
        begun: set[int] = set()

        def work(place: int) -> Result | None:
            if failures.reason is not None:
                return None
            begun.add(place)
            until = Deadline(self._limits.total_s, ended)
            try:
                result = self._result(place, tasks[place], key, until)
            except EndpointUnusable as error:
                failures.end(error)
                return None
            failures.note(result.problem)
            return result

        finishing = as_ended(
            work,
            range(len(tasks)),
            threads=THREADS,
            limit_s=self._longest_s,
            ended=ended,
            stop=stop,
        )
        with contextlib.closing(finishing):
            yield from self._until_failure(finishing, begun, failures, len(tasks))

    def _until_failure(
        self,
        finishing: Iterator[tuple[int, Result | Exception | None]],
        begun: set[int],
        failures: _Failures,
        count: int,
    ) -> Iterator[Result]:
        """Each result, and what went wrong for all behind them.

        Args:
            finishing: What ends, and None for what was left out.
            begun: The tasks that were worked on; what is given on is removed.
            failures: What went wrong so far.
            count: How many tasks there are.

        Raises:
            EndpointError: The service answers no one, or too many tasks in a row.
        """
        waiting = count
        try:
            for place, result in finishing:
                waiting -= 1
                begun.discard(place)
                if isinstance(result, Exception):
                    raise result
                if result is not None:
                    yield result
        except TimeoutError:
            slow, stuck = self._service.too_slow(self._limits.total_s), list(begun)
            for place in stuck:
                yield Result(place=place, problem=slow)
            if waiting > len(stuck):
                failures.end(slow)
        if failures.reason is not None:
            raise failures.reason

    def _result(self, place: int, task: Task, key: str, until: Deadline) -> Result:
        """What came of one task: asked once more where the answer cannot be used.

        Raises:
            EndpointUnusable: No other task would fare better.
        """
        tokens = sum(map(self.count_tokens, task.texts))
        if tokens > self.window_tokens:
            too_long = GenerationFailed(
                f"the texts have {tokens:,} tokens, more than the {self.window_tokens:,} of a "
                f"request; they start {start_of(task.texts[0])}",
                remedy=f"if the model takes more, raise `window_tokens` {GENERATION.settings}",
            )
            return Result(place=place, problem=too_long)
        asked = Asked(
            use=GENERATION, address=str(self._service.address), model=self._choice.model, key=key
        )
        problem: FilestoreError
        hint, tokens_in, tokens_out = "", 0, 0
        for _ in range(_ATTEMPTS):
            system = self._instructions(task, hint)
            try:
                answer = self._answer(task, system, asked, until)
            except EndpointUnusable:
                raise
            except EndpointError as error:
                problem = error
                break
            try:
                reply = _reply(answer, asked)
                tokens_in, tokens_out = tokens_in + reply.tokens_in, tokens_out + reply.tokens_out
                made = _read(reply, task, system)
            except EndpointError as error:
                problem, hint = error, ""
            except GenerationFailed as error:
                hint = error.hint
                problem = GenerationFailed(
                    f"the answer of {self._choice.model!r} cannot be used: {error.message}"
                    "; run the command again, or name another model in "
                    f"`{GENERATION.model_key}` in filestore.toml",
                )
            else:
                made = replace(made, tokens_in=tokens_in, tokens_out=tokens_out)
                return Result(place=place, made=made)
        return Result(place=place, problem=problem, tokens_in=tokens_in, tokens_out=tokens_out)

    def _answer(self, task: Task, system: str, asked: Asked, until: Deadline) -> ServiceAnswer:
        """The answer of status 200, in the form of request that the service takes.

        Raises:
            EndpointError: There is none.
        """
        takes = self._takes
        while True:
            body = body_of(task, system, asked.model, takes)
            answer = self._service.post(body, asked.key, until)
            if answer.status == 200:
                # Remembered only now: another refusal may have been about this one text.
                self._takes = takes
                self._proven |= {takes}
                return answer
            other = takes.without(answer, proven=takes in self._proven)
            if other is None:
                raise refusal(answer, asked, ["\n".join(task.texts)])
            takes = other

    def _instructions(self, task: Task, hint: str = "") -> str:
        return instructions_for(self._prompts.text(task.kind, task.count), task, hint=hint)


class _Failures:
    """Failures in a row, counted by the threads that meet them.

    Anyone who reads the results may come late; by then more would be asked, and paid.
    """

    def __init__(self) -> None:
        self.reason: FilestoreError | None = None
        """Why no task is begun any more."""
        self._in_a_row = 0
        self._lock = threading.Lock()

    def note(self, problem: FilestoreError | None) -> None:
        """Count what one task came to."""
        with self._lock:
            self._in_a_row = self._in_a_row + 1 if isinstance(problem, EndpointError) else 0
            if self._in_a_row == FAILURES_IN_A_ROW:
                self.reason = self.reason or problem

    def end(self, reason: FilestoreError) -> None:
        """Begin no task any more."""
        with self._lock:
            self.reason = self.reason or reason


def _address(choice: GeneratorChoice) -> Address:
    """The address of a choice's service; see `OpenAIGenerator` for what is raised."""
    options, machine = choice.options, choice.machine
    endpoint = options.endpoint or DEFAULT_ENDPOINT
    try:
        return trusted_address(endpoint, GENERATION, machine=machine, root=choice.root)
    except EndpointUntrusted as error:
        if options.endpoint is not None or options.name.startswith(f"{choice.kind}:"):
            raise
        # `filestore trust` shows what the settings name, and they do not name this one.
        raise EndpointUntrusted(
            error.message,
            remedy=f'set `name = "{choice.name}"` {GENERATION.settings}, run `filestore trust`, '
            "then the command again",
        ) from error


def _prompts(choice: GeneratorChoice) -> Prompts:
    """The prompts of a choice; see `OpenAIGenerator` for what is raised."""
    if choice.options.prompts is None:
        return prompts_with(None)
    own = read_own(choice.root, choice.options.prompts)
    if not choice.machine.trusts(choice.root, own.reach):
        raise EndpointUntrusted(
            f"this store has prompts of its own ({', '.join(own.files)}), which you have"
            " not allowed as they are now",
            remedy="'filestore trust --list' shows them, 'filestore trust' allows them",
        )
    return prompts_with(own)


def _reply(answer: ServiceAnswer, asked: Asked) -> _Reply:
    """What the model wrote.

    Raises:
        EndpointError: The answer is none of a chat service.
    """
    fields = fields_of(answer.body, "choices", asked)
    choice = fields["choices"][0] if fields["choices"] else {}
    message, usage = choice.get("message"), fields.get("usage")
    content = message.get("content") if isinstance(message, Mapping) else None
    refused = message.get("refusal") if isinstance(message, Mapping) else None
    if isinstance(content, list):  # in parts, as some services send it
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(text for text in texts if isinstance(text, str))
    if not content and isinstance(refused, str) and refused:
        content, choice = refused, {"finish_reason": _REFUSED}
    return _Reply(
        text=content if isinstance(content, str) else "",
        reason=choice.get("finish_reason"),
        tokens_in=_count(usage, "prompt_tokens"),
        tokens_out=_count(usage, "completion_tokens"),
    )


def _read(reply: _Reply, task: Task, system: str) -> Made:
    """What a reply gives.

    Raises:
        GenerationFailed: Nothing usable.
    """
    try:
        return read_answer(reply.text, task, instructions=system)
    except GenerationFailed as error:
        if reply.reason == "length":
            most = most_tokens_of_answer(task)
            raise GenerationFailed(
                f"it was cut off at {most:,} tokens", hint="it was too long"
            ) from error
        if reply.reason == _REFUSED:
            start = start_of(reply.text)
            raise GenerationFailed(f"the model refuses: {start}", hint=error.hint) from error
        if reply.reason == "content_filter":
            raise GenerationFailed(
                "a filter of the service held it back", hint="a filter held it back"
            ) from error
        raise


def _count(usage: Any, key: str) -> int:
    found = usage.get(key) if isinstance(usage, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def open_choice(choice: GeneratorChoice) -> Generator:
    """Open the generator of a service; it is not contacted. See `OpenAIGenerator`."""
    return OpenAIGenerator(choice)
