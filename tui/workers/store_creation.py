"""Making a store where there is none, or a copy of the example to look around in.

Takes some tenths of a second: for a thread, never for the screen's own.
"""

import os

from filestore import Store
from filestore.browse import copy_example


def make_store(folder: str, *, configuration: str, example: bool) -> str:
    """Make an empty store, or a copy of the example, in a folder.

    Args:
        folder: Where the store's own folder is made.
        configuration: The user's configuration folder.
        example: Whether it is to be a copy of the example.

    Returns:
        The root of the store.

    Raises:
        FilestoreError: It cannot be made there; nothing is overwritten.
    """
    root = os.path.join(os.path.abspath(folder), "example_index" if example else "file_index")
    if example:
        copy_example(root)
    else:
        Store.create(root, layout="tree", configuration=configuration).close()
    return root
