"""The session file: in the user's state folder, one for each store, never in the store."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping

from tui.state.state import MOST_BYTES, Saved, parse, serialize


def path_of(root: str, environment: Mapping[str, str]) -> str:
    """The file for a store; its name is a hash of the store's path."""
    state = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    name = hashlib.blake2b(os.fsencode(os.path.realpath(root)), digest_size=12).hexdigest()
    return os.path.join(state, "filestore", f"inspector-{name}.json")


def read(path: str) -> tuple[Saved, str]:
    """The saved session, and why it cannot be used; "" where it can, or where there is none."""
    try:
        # O_NONBLOCK: the file may have been replaced by a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return parse(file.read(MOST_BYTES + 1))
    except FileNotFoundError:
        return Saved(), ""
    except OSError as error:
        return Saved(), error.strerror or str(error)


def write(path: str, saved: Saved) -> str:
    """Write it atomically; returns why it could not be written, or "".

    That is no error for the user: the next session starts with the defaults.
    """
    text = serialize(saved)
    if len(text) > MOST_BYTES:
        text = serialize(Saved(page=saved.page, theme=saved.theme))
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".inspector-")
        try:
            with open(handle, "wb") as file:
                file.write(text)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        return error.strerror or str(error)
    return ""
