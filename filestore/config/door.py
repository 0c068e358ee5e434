"""What of a store is closed to programs, by path, tag or property; pure.

One rule: what is doubtful is closed. Names are compared without case and with letters composed, a
rule with a sign is a pattern of paths as well, and where several rules hold, each closes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from filestore.core.paths import folded_path

TAGS: Final = ("tags", "tag")
_TAG: Final = "tag:"


class Rules(Struct, frozen=True, kw_only=True):
    """Rules of one kind; see `settings.AgentOptions`."""

    matches: Callable[[str], bool]
    """Whether a pattern holds for a path, or for a folder on its way."""
    patterns: tuple[str, ...] = ()
    """All rules: one with a sign is a pattern of paths, too."""
    tags: frozenset[str] = frozenset()
    """Folded."""
    properties: frozenset[tuple[str, str]] = frozenset()
    """Folded key and value."""

    @classmethod
    def of(cls, rules: Sequence[str], matches: Callable[[str], bool]) -> "Rules":
        """Rules as settings have them, checked.

        Args:
            rules: The rules.
            matches: See the field.
        """
        tags, properties = set(), set()
        for rule in rules:
            if rule.startswith(_TAG):
                tags.add(_folded(rule.removeprefix(_TAG).lstrip("#")))
            elif "=" in rule:
                key, _, value = rule.partition("=")
                properties.add((_folded(key), _folded(value)))
        return cls(
            matches=matches,
            patterns=tuple(rules),
            tags=frozenset(tags),
            properties=frozenset(properties),
        )

    def hold(self, pairs: Iterable[tuple[str, str]]) -> bool:
        """Whether one holds for what a file says about itself, key by key."""
        return ((self.tags or self.properties) and any(self.holds(*one) for one in pairs)) or False

    def holds(self, key: str, value: str) -> bool:
        """Whether one holds for a key with this value; a tag is also below the ones above it."""
        key, value = _folded(key), _folded(value)
        if self.tags and key in TAGS:
            words = [one.lstrip("#") for one in (value, *value.replace(",", " ").split())]
            if any(f"{word}/".startswith(f"{tag}/") for word in words for tag in self.tags):
                return True
        return (key, value) in self.properties


class Door(Struct, frozen=True, kw_only=True):
    """What programs may see of a store, and change."""

    closed: Rules
    read_only: Rules
    conventions: str | None = None
    """The note that only a person changes, relative to the root."""


def _folded(text: str) -> str:
    return folded_path(text.strip())
