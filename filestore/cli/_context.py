"""What every command needs of the surroundings: the store that is meant, the user's folders."""

import os
from typing import Any

from filestore.roots import find_root
from filestore.store import Store


def configuration_folder() -> str:
    """The user's configuration folder."""
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def open_store(options: Any) -> Store:
    """Open the store of --store, of FILESTORE, or the nearest one around the working folder."""
    explicit = options.store or os.environ.get("FILESTORE") or None
    root = find_root(os.getcwd(), explicit)
    # Two processes walk a large tree: this one has no threads yet, so it may fork.
    return Store(root, configuration=configuration_folder(), processes=os.cpu_count() or 1)
