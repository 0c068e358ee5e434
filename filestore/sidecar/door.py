"""The door of a store: its rules, the user's, and the ones since taken out of its settings.

One rule: a pull opens nothing. What the settings once closed to programs stays closed until the
user trusts the settings as they are now.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.config import user_config
from filestore.config.door import Door, Rules
from filestore.config.layout import Places
from filestore.config.settings import AgentOptions, user_agents
from filestore.core.caller import leads
from filestore.core.errors import FilestoreError
from filestore.core.paths import ChunkPath, folded_path, has_plain_names
from filestore.core.safe_text import shown_path
from filestore.fs import disk

if TYPE_CHECKING:
    from filestore.chunks.chunk_file import Chunk


def door_of(own: AgentOptions, root: str, configuration: str) -> Door:
    """What programs may see of a store, and change.

    Args:
        own: As the store's settings have it.
        root: The store's.
        configuration: The user's configuration folder; "" for none.

    Raises:
        FilestoreError: Rules cannot be followed, or the user's own file cannot be read.
    """
    known = user_config.remembered_rules(configuration, root)
    kept = own.joined(known)
    if configuration and rules_of(kept) != rules_of(known):
        # A folder that cannot be written remembers nothing, and closes what the settings name.
        with contextlib.suppress(FilestoreError):
            user_config.remember_rules(configuration, root, kept)
    every = kept.joined(user_agents(configuration) if configuration else AgentOptions())
    return Door(
        closed=Rules.of(every.closed, matcher(every.closed)),
        read_only=Rules.of(every.read_only, matcher(every.read_only)),
        conventions=own.conventions,
    )


def opened_since(own: AgentOptions, root: str, configuration: str) -> tuple[str, ...]:
    """The rules that closed something here and that the settings have no more."""
    known = user_config.remembered_rules(configuration, root)
    return tuple(
        rule
        for kind in ("closed", "read_only")
        for rule in getattr(known, kind)
        if rule not in getattr(own, kind)
    )


def rules_of(options: AgentOptions) -> tuple[set[str], set[str]]:
    """What they close, in no order."""
    return set(options.closed), set(options.read_only)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a pattern holds for a path, or for a folder on its way.

    Raises:
        IgnoreRulesError: They are more than can be followed.
    """
    if not patterns:
        return lambda _: False
    from filestore.extract.ignore import parse

    rules = parse("\n".join(map(folded_path, patterns)).encode("utf-8", "surrogateescape"))

    def matches(path: str) -> bool:
        data = folded_path(path).encode("utf-8", "surrogateescape").strip(b"/")
        at = data.find(b"/")
        while at >= 0:
            if rules.leaves_out(data[:at], is_folder=True):
                return True
            at = data.find(b"/", at + 1)
        return bool(
            rules.leaves_out(data, is_folder=False) or rules.leaves_out(data, is_folder=True)
        )

    return matches


class ConventionsUnusable(FilestoreError, ValueError):
    """The note with a store's conventions is not there, or is none."""


class Conventions(Struct, frozen=True, kw_only=True):
    """How notes are written in a store, in the words of who made it."""

    path: str
    """Relative to the root."""
    text: str
    reach: str
    """What is allowed: its very text."""


MOST_CONVENTIONS: Final = 2_048
"""Bytes."""


def read_conventions(options: AgentOptions, root: str) -> Conventions | None:
    """The conventions that settings name; None where they name none.

    Raises:
        ConventionsUnusable: They cannot be read, or are longer than a program is given.
    """
    if options.conventions is None:
        return None
    path = options.conventions
    problem = "is not a visible file of the store"
    if has_plain_names(path) and not any(one.startswith(".") for one in path.split("/")):
        try:
            with disk.folder_at(root) as handle:
                data, _ = disk.read_below(handle, path, most=MOST_CONVENTIONS)
            text = data.decode()
            digest = hashlib.sha256(f"{path} {len(data)} ".encode() + data).hexdigest()
            return Conventions(path=path, text=text, reach=f"conventions sha256:{digest}")
        except disk.FileTooLargeError:
            problem = f"has more than {MOST_CONVENTIONS:,} bytes"
        except (OSError, ValueError, FilestoreError) as error:
            problem = f"cannot be read: {error}"
    raise ConventionsUnusable(
        f"the conventions {shown_path(path)}: {problem}"
        "; fix the file, or agents.conventions in filestore.toml",
    )


def trusted_conventions(options: AgentOptions, root: str, configuration: str) -> str:
    """The conventions that the user allowed as they are now; "" for none."""
    try:
        found = read_conventions(options, root)
    except ConventionsUnusable:
        return ""
    if found is None or not user_config.read_machine(configuration, {}).trusts(root, found.reach):
        return ""
    return found.text


def is_shut(places: Places, path: ChunkPath) -> bool:
    """Whether a path, or where it leads, is closed to who asks."""
    if places.closed is None:
        return False
    leading = os.path.relpath(leads(os.path.join(places.chunked, path)), places.chunked)
    every = (path, leading, places.tree.store_path(path))
    return any(map(places.closed.matches, every))


def is_shut_text(places: Places, chunk: "Chunk", path: ChunkPath) -> bool:
    """Whether what a file says now closes it to who asks, whatever the catalog knows of it."""
    if places.closed is None:
        return False
    from filestore.chunks.kept import pairs_of

    source = chunk.source is not None and places.closed.matches(chunk.source)
    return source or places.closed.hold(pairs_of(chunk, path))
