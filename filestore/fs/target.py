"""A place that a person names for a file, judged before anything is written there.

One rule: what this program did not write is not replaced, and no link is followed.
"""

import errno
import os
from collections.abc import Callable
from typing import Final

from filestore.core.errors import RefusedError
from filestore.core.safe_text import shown_path
from filestore.fs import disk

HEAD_BYTES: Final = 65 * 1024
"""Of what is there; no form needs more to be told."""
ANOTHER: Final = "name another file, or remove that one"


class TargetRefused(RefusedError):
    """Something would be written where other things have their place."""


def check_target(
    path: str, is_own: Callable[[bytes], bool], *, found: str, remedy: str = ANOTHER
) -> None:
    """Let no file be replaced that a person may want to keep; nothing there is fine.

    Args:
        path: As it was named.
        is_own: Whether a file that begins so may be replaced.
        found: What any other file is, as "it is no pack".
        remedy: What to do then.

    Raises:
        TargetRefused: It may not, or is no regular file.
    """
    try:
        descriptor = disk.open_regular(path)
        with open(descriptor, "rb", buffering=0) as file:
            if is_own(file.read(HEAD_BYTES)):
                return
    except FileNotFoundError:
        return
    except disk.NotAFileError as error:
        found = error.message.removeprefix(f"{path} ")
    except OSError as error:
        disk.pass_limits(error)
        is_link = error.errno == errno.ELOOP and os.path.islink(path)
        found = "it is a symbolic link" if is_link else error.strerror or str(error)
    raise TargetRefused(f"{shown_path(path)} is not overwritten: {found}", remedy=remedy)
