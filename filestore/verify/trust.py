"""What a store would reach outside itself, and letting it: services, prompts, originals.

Kept on the user's side, see `user_config`. One rule: only what the store names now is allowed.
"""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.catalog import Catalog, queries
from filestore.config import user_config
from filestore.config.settings import AgentOptions
from filestore.config.user_config import Originals
from filestore.core.paths import is_below
from filestore.generate import OwnPrompts
from filestore.sidecar import door
from filestore.sidecar.door import Conventions

if TYPE_CHECKING:
    from filestore.sidecar.session import Parts

_FOLDER: Final = re.compile(rb'"kind":\s*"folder"')


class Reaches(Struct, frozen=True, kw_only=True):
    """What a store names outside itself."""

    services: tuple[str, ...]
    """Addresses that texts are sent to, to be embedded."""
    generator: str | None
    """An address that texts are sent to, for questions and summaries."""
    backend: str | None
    """Where its texts and vectors are kept, to be searched there."""
    prompts: OwnPrompts | None
    """The store's own, which instruct its generator."""
    sources: tuple[str, ...]
    """Originals outside the work tree, as records name them; of copies, where they lie."""
    folders: tuple[str, ...]
    """The folders that these lie in, absolute; a slash at the end is for all below it."""
    allowed: tuple[str, ...]
    """Folders in which the store may look for originals now, given to `add` or trusted."""
    closed: tuple[str, ...]
    """Originals whose names are no documents' and that this user did not add: never looked at."""
    conventions: Conventions | None = None
    """The store's own, for programs that write."""
    rules: AgentOptions = AgentOptions()
    """What the settings close to programs now."""
    opened: tuple[str, ...] = ()
    """Rules that closed something to programs here and that the settings have no more."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is allowed by these names."""
        prompts = self.prompts.reach if self.prompts is not None else None
        conventions = self.conventions.reach if self.conventions is not None else None
        names = [*self.services, self.generator, self.backend, prompts, conventions]
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
        ConventionsUnusable: Its conventions cannot be read.
    """
    documents = catalog.documents() if catalog is not None else ()
    known = list(dict.fromkeys(source for _, _, source, _ in documents))
    reachable = parts.reachable()
    sources = [source for source in known if reachable.is_outside(source)]
    trees = set[str]()
    if catalog is not None:
        copied = catalog.originals()
        sources += sorted(copied.values())
        records = queries.records(catalog)
        folders = [copied.get(one, one) for _, one, data in records if _FOLDER.search(data)]
        seen = [one for one in folders if reachable.is_document(os.path.join(one, "_.md"))]
        trees = {reachable.leads(one) for one in seen if reachable.is_outside(one)}
    lie = map(reachable.leads, filter(reachable.is_document, sources))
    near = {os.path.dirname(path) for path in lie if not any(is_below(path, t) for t in trees)}
    model, home = parts.model, parts.home
    return Reaches(
        services=parts.models.reaches,
        generator=model.generator_reaches,
        backend=home.address() if home.reaches_out else None,
        prompts=model.own_prompts,
        sources=tuple(sources),
        folders=tuple(sorted({*near, *(f"{tree}/" for tree in trees)})),
        allowed=parts.originals().folders,
        closed=tuple(one for one in known if not reachable.is_document(one)),
        conventions=door.read_conventions(parts.settings.agents, parts.places.root),
        rules=parts.settings.agents,
        opened=door.opened_since(parts.settings.agents, parts.places.root, parts.configuration),
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
    if reach.opened:
        user_config.remember_rules(configuration, root, reach.rules)
    if reach.folders:
        trees = [path for path in reach.folders if path.endswith("/")]
        single = [path for path in reach.folders if not path.endswith("/")]
        more = Originals(trusted=_led(trees), near=_led(single))
        user_config.remember_originals(configuration, root, more)


def _led(folders: Iterable[str]) -> frozenset[str]:
    """Folders by their words and by where these lead."""
    found = {os.path.normpath(path) for path in folders}
    return frozenset(map(user_config.stored_path, found | set(map(os.path.realpath, found))))
