"""What a store would reach outside itself, and letting it: services, prompts, originals.

Kept on the user's side, see `machine`. One rule: only what the store names now is allowed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filestore.catalog import Catalog
from filestore.config import user_config
from filestore.generate import OwnPrompts
from filestore.sidecar.reachable import Reachable

if TYPE_CHECKING:
    from filestore.sidecar.session import Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaches:
    """What a store names outside itself."""

    service: str | None
    """An address that texts are sent to, to be embedded."""
    beside: str | None
    """The same of the model beside."""
    generator: str | None
    """An address that texts are sent to, for questions and summaries."""
    backend: str | None
    """Where its texts and vectors are kept, to be searched there."""
    prompts: OwnPrompts | None
    """The store's own, which instruct its generator."""
    sources: tuple[str, ...]
    """Originals outside the work tree, as records name them; of copies, where they lie."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is allowed by these names."""
        prompts = self.prompts.reach if self.prompts is not None else None
        names = [self.service, self.beside, self.generator, self.backend, prompts]
        names += [user_config.SOURCES] if self.sources else []
        return tuple(dict.fromkeys(name for name in names if name is not None))


def reaches(parts: "Parts", catalog: Catalog | None) -> Reaches:
    """What a store would reach; nothing is opened for it.

    Args:
        parts: The store's.
        catalog: Its catalog; None where there is none yet.

    Raises:
        EndpointError: What its settings name is no address.
        BackendError: The backend that they name is none, or its package is not installed.
        PromptsUnusable: Its own prompts cannot be read.
    """
    sources: Sequence[str] = ()
    if catalog is not None:
        known = dict.fromkeys(document[2] for document in catalog.documents())
        reachable = Reachable(parts.places, everywhere=False)
        sources = [source for source in known if reachable.is_outside(source)]
        sources += sorted(catalog.originals().values())
    model, beside, rows = parts.model, parts.beside, parts.rows
    return Reaches(
        service=model.reaches,
        beside=beside.reaches if beside is not None else None,
        generator=model.generator_reaches,
        backend=rows.address() if rows is not None and rows.reaches_out else None,
        prompts=model.own_prompts,
        sources=tuple(sources),
    )


def trust(configuration: str, root: str, reach: Reaches) -> None:
    """Let a store reach what it names, from now on.

    Raises:
        MachineError: The user's own file cannot be read.
        WriteFailedError: The disk refused.
    """
    for name in reach.names:
        user_config.trust(configuration, root, name)
