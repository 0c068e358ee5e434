"""What a store would reach outside itself, and letting it: services, prompts, originals.

Kept on the user's side, see `user_config`. One rule: only what the store names now is allowed.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filestore.catalog import Catalog
from filestore.config import user_config
from filestore.config.user_config import Originals
from filestore.generate import OwnPrompts

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
    folders: tuple[str, ...]
    """The folders that these lie in, absolute, as they are named."""
    allowed: tuple[str, ...]
    """Folders in which the store may look for originals by now: given to `add`, or trusted."""
    closed: tuple[str, ...]
    """Originals whose names are no documents' and that this user did not add: never looked at."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is allowed by these names."""
        prompts = self.prompts.reach if self.prompts is not None else None
        names = [self.service, self.beside, self.generator, self.backend, prompts]
        names += self.folders
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
    known: list[str] = []
    if catalog is not None:
        known = list(dict.fromkeys(document[2] for document in catalog.documents()))
    reachable = parts.reachable()
    sources = [source for source in known if reachable.is_outside(source)]
    if catalog is not None:
        sources += sorted(catalog.originals().values())
    documents = filter(reachable.is_document, sources)
    model, beside, rows = parts.model, parts.beside, parts.rows
    return Reaches(
        service=model.reaches,
        beside=beside.reaches if beside is not None else None,
        generator=model.generator_reaches,
        backend=rows.address() if rows is not None and rows.reaches_out else None,
        prompts=model.own_prompts,
        sources=tuple(sources),
        folders=tuple(sorted({os.path.dirname(path) for path in map(reachable.leads, documents)})),
        allowed=parts.originals().folders,
        closed=tuple(one for one in known if not reachable.is_document(one)),
    )


def trust(configuration: str, root: str, reach: Reaches) -> None:
    """Let a store reach what it names, from now on.

    Raises:
        MachineError: The user's own file cannot be read.
        WriteFailedError: The disk refused.
    """
    for name in reach.names:
        if name not in reach.folders:
            user_config.trust(configuration, root, name)
    if reach.folders:
        real = {os.path.realpath(folder) for folder in reach.folders}
        trusted = frozenset(map(user_config.stored_path, {*reach.folders, *real}))
        user_config.remember_originals(configuration, root, Originals(trusted=trusted))
