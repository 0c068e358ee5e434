"""What a page in a browser may send, and from where. Pure; knows no server."""

import json
import re
from typing import Any, Final

MOST_PAGES: Final = 16
"""Open at a time: each is a process of its own."""
_OWN_HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?")


def is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether a request comes from a page of this server, or from no page at all.

    A foreign page may open a socket to this machine from the user's browser; only the origin, which
    browsers send, keeps it out. A foreign host name may resolve to this machine; it is refused.
    """
    if host is None or not _OWN_HOST.fullmatch(host):
        return False
    # A tunnel may bring the page by https.
    return origin in (None, f"http://{host}", f"https://{host}")


def page_message(text: str) -> tuple[str, Any]:
    """A page's message: ``stdin`` with bytes, ``resize`` with width and height, ``ping``, or more.

    Raises:
        ValueError: No page of ours sends that.
    """
    try:
        message = json.loads(text)
    except RecursionError as error:
        raise ValueError("a page's message is nested too deep") from error
    match message:
        case ["stdin", str(keys), *_]:
            return "stdin", keys.encode("utf-8", "replace")
        case ["resize", {"width": int(width), "height": int(height)}, *_]:
            return "resize", (width, height)
        case ["stdin" | "resize", *_]:
            raise ValueError(f"{message[0]} without what belongs to it")
        case ["ping", value, *_]:
            return "ping", value
        case [str(kind), *_]:
            return kind, None
    raise ValueError("a page's message must be a list that begins with a string")
