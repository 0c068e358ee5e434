"""The family of generators. One rule: an implementation is imported only when it is opened.

A new one is a module beside these and one entry in `_MEMBERS`, which also says whether it sends
texts to a service: then a store may use it only after its user allowed that service.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from filestore.generate.base import (
    GenerationFailed,
    Generator,
    GeneratorChoice,
    Made,
    Price,
    Result,
    Task,
    UnknownGenerator,
)

__all__ = [
    "GenerationFailed",
    "Generator",
    "GeneratorChoice",
    "Made",
    "Price",
    "Result",
    "Task",
    "UnknownGenerator",
    "known_generators",
    "open_generator",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    module: str
    """Its ``open_choice`` opens the generator."""
    is_service: bool = False


_MEMBERS: Final = {
    "extractive": _Member(module="_extractive"),
    "openai": _Member(module="_openai", is_service=True),
}
"""By kind."""


def known_generators() -> tuple[str, ...]:
    """The kinds that `open_generator` understands, sorted."""
    return tuple(sorted(_MEMBERS))


def open_generator(choice: GeneratorChoice) -> Generator:
    """Open a generator as the settings or a command name it.

    Raises:
        UnknownGenerator: There is no such kind.
        EndpointUntrusted: It would reach a service, or use prompts, that this store may not.
    """
    member = _MEMBERS.get(choice.kind)
    if member is None:
        raise UnknownGenerator(choice.kind, known_generators())
    opener = import_module(f"{__name__}.{member.module}").open_choice
    return cast(Callable[[GeneratorChoice], Generator], opener)(choice)
