"""The family of generators. One rule: an implementation is imported only when it is opened.

A new one is a module beside these, called by its kind, and an entry in `_REACHES_OUT`, which says
whether it sends texts to a service: then a store may use it only after its user allowed that one.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from filestore.config.settings import GeneratorOptions
from filestore.generate._prompts import OwnPrompts as OwnPrompts
from filestore.generate._prompts import PromptsUnusable as PromptsUnusable
from filestore.generate._prompts import read_own
from filestore.generate.base import GENERATION
from filestore.generate.base import GenerationFailed as GenerationFailed
from filestore.generate.base import Generator as Generator
from filestore.generate.base import GeneratorChoice as GeneratorChoice
from filestore.generate.base import Made as Made
from filestore.generate.base import Price as Price
from filestore.generate.base import Result as Result
from filestore.generate.base import Task as Task
from filestore.generate.base import UnknownGenerator as UnknownGenerator
from filestore.remote.address import DEFAULT_ENDPOINT, parse_address

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
