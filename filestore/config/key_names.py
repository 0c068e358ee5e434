"""Which keys of frontmatter say how old a document is, and what else holds of it. Pure."""

from msgspec import Struct


class KeyNames(Struct, frozen=True, kw_only=True):
    """Which keys of frontmatter say how old a document is and what holds of it: ``[keys]``."""

    created: tuple[str, ...] = ("created", "date")
    """The first that is a date counts, here and below."""
    updated: tuple[str, ...] = ("updated", "modified", "date", "timestamp")
    status: tuple[str, ...] = ("status",)
    superseded_by: tuple[str, ...] = ("superseded_by",)
    stale_after: tuple[str, ...] = ("stale_after",)
    verified: tuple[str, ...] = ("verified",)
    sources: tuple[str, ...] = ("sources",)
