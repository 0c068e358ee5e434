"""One file under two names."""

import os
import shutil


def link_or_copy(source: str, target: str) -> None:
    """Give a file that is never written again a second name, or copy it where that cannot be.

    Raises:
        OSError: It is gone, or there is no room for a copy.
    """
    try:
        os.link(source, target)
    except OSError:
        # Some file systems have no hard links, and none lead to another one.
        shutil.copyfile(source, target)
