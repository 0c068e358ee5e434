"""Public names of a package, listed once in its stub and loaded as they are first used.

So a command pays only for what it needs, and type checkers read the same list.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` takes longer to load than all the rest of a short command.
    from collections.abc import Callable
    from typing import Any


def lazy(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: Its name.
        file: Its `__init__.py`; the stub lies next to it.
    """

    @cache
    def homes() -> dict[str, str]:
        """Each name with its module."""
        import ast

        with open(f"{file.removesuffix('c')}i", encoding="utf-8") as stub:
            statements = ast.parse(stub.read()).body
        imports = [one for one in statements if isinstance(one, ast.ImportFrom)]
        return {alias.name: one.module or "" for one in imports for alias in one.names}

    def load(name: str) -> Any:
        """A name from its module."""
        if name == "__all__":
            return list(homes())
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    return load, lambda: list(homes())
