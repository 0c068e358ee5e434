"""The saved session of the inspector, for one store. Pure; `workers.session_file` keeps it.

One rule: whatever the text is, something usable comes of it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

FORMAT: Final = 1
MOST_BYTES: Final = 1 << 20
"""A longer text is not ours."""
PAGES: Final = ("browse", "verify", "repair")


class Saved(Struct, frozen=True, kw_only=True):
    """The state of the screen when it was left."""

    page: str = "browse"
    theme: str = ""
    """"" for the one that fits the terminal."""
    views: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each page gave; each looks itself at what it takes up."""
    prompts: tuple[str, ...] = ()
    """Command lines that were typed, oldest first."""


def parse(text: bytes) -> tuple[Saved, str]:
    """The state that was saved, and why not all of it could be used; "" where it could."""
    try:
        found = json.loads(text) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return Saved(), "it is damaged"
    if found.get("format") != FORMAT:
        return Saved(), f"its format is not {FORMAT}"
    page, theme = found.get("page"), found.get("theme")
    views, prompts = found.get("views"), found.get("prompts")
    return Saved(
        page=page if page in PAGES else PAGES[0],
        theme=theme if isinstance(theme, str) else "",
        views={
            name: views[name]
            for name in PAGES
            if isinstance(views, dict) and isinstance(views.get(name), dict)
        },
        prompts=tuple(
            one for one in (prompts if isinstance(prompts, list) else ()) if isinstance(one, str)
        ),
    ), ""


def serialize(saved: Saved) -> bytes:
    """The state as text."""
    values = {
        "format": FORMAT,
        "page": saved.page,
        "theme": saved.theme,
        "views": {name: dict(view) for name, view in saved.views.items()},
        "prompts": list(saved.prompts),
    }
    # Names that are not UTF-8 come as lone surrogates: JSON holds them only escaped.
    return json.dumps(values, ensure_ascii=True, indent=1).encode("ascii")
