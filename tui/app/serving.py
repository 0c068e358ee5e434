"""The inspector in a browser: a process of it for every page that is opened, by textual-serve.

One rule: only this machine, and only pages that this server gave, may connect; and the page
needs nothing from anywhere else.
"""

import shlex
import sys
from collections.abc import Sequence

from filestore import FilestoreError
from filestore.browse import install_line


class ServerMissingError(FilestoreError, ImportError):
    """What serves the inspector is not installed."""


def serve(arguments: Sequence[str], *, port: int, title: str) -> int:
    """Serve the inspector until it is interrupted.

    Args:
        arguments: Of `filestore tui`, for every page that is opened.
        port: On the loopback device; no other machine reaches it.
        title: Of the page.

    Raises:
        ServerMissingError: textual-serve is not installed.
        FilestoreError: The port is taken.
    """
    command = shlex.join([sys.executable, "-m", "tui", *arguments])
    try:
        from tui.app.local_server import LocalServer
    except ImportError as error:
        raise ServerMissingError(
            "the inspector cannot be served: textual-serve is not installed",
            remedy=install_line("tui --serve"),
        ) from error
    server = LocalServer(command, port=port, title=title)
    try:
        server.serve()
    except (OSError, OverflowError) as error:
        raise FilestoreError(
            f"port {port} cannot be used: {getattr(error, 'strerror', '') or error}",
            remedy="filestore tui --serve --port NUMBER",
        ) from error
    return 0
