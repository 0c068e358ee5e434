"""Making a store where there is none, or a copy of the example to look around in.

Takes some tenths of a second: for a thread, never for the screen's own.
"""

import os
from typing import Final

from filestore import Store, copy_example

FOLDER: Final = "file_index"
EXAMPLE_FOLDER: Final = "example_index"


def make_store(folder: str, *, configuration: str, example: bool) -> str:
    """Make an empty store, or a copy of the example, in a folder.

    Args:
        folder: Where the store's own folder is made.
        configuration: The user's configuration folder.
        example: Whether it is to be a copy of the example.

    Returns:
        The root of the store.

    Raises:
        FilestoreError: It cannot be made there; nothing that is there is overwritten.
    """
    if example:
        root = os.path.join(os.path.abspath(folder), EXAMPLE_FOLDER)
        copy_example(root)
        return root
    root = os.path.join(os.path.abspath(folder), FOLDER)
    Store.init(root, layout="tree", configuration=configuration).close()
    return root
