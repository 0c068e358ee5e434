"""How long the vectors of a service were when it was last asked, in the user's cache folder.

So that nothing but embedding needs the service: its fingerprint holds that number. One rule: this
is a convenience; a file that is missing, damaged or cannot be written is as good as none.
"""

import contextlib
import os
from typing import Any, Final

import orjson

from filestore.core.errors import FilestoreError
from filestore.fs import disk

_NAME: Final = "endpoint.json"
_LARGEST: Final = 65_536


def read_dimension(cache: str, address: str, model: str) -> int | None:
    """What is known, if anything; `cache` is a folder, or "" for none."""
    known = _read(cache).get(address)
    dimension = known.get(model) if isinstance(known, dict) else None
    is_sound = type(dimension) is int and 0 < dimension <= _LARGEST
    return dimension if is_sound else None


def write_dimension(cache: str, address: str, model: str, dimension: int) -> None:
    """Remember it, where there is a place for it."""
    if not cache:
        return
    known = _read(cache)
    models = known.get(address)
    known[address] = {**(models if isinstance(models, dict) else {}), model: dimension}
    with contextlib.suppress(OSError, FilestoreError):
        os.makedirs(cache, mode=0o700, exist_ok=True)
        data = orjson.dumps(known, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        disk.write_own(os.path.join(cache, _NAME), data)


def forget_dimension(cache: str, address: str, model: str) -> None:
    """Let the service be asked again."""
    known = _read(cache)
    if isinstance(known.get(address), dict) and known[address].pop(model, None) is not None:
        with contextlib.suppress(OSError, FilestoreError):
            disk.write_own(os.path.join(cache, _NAME), orjson.dumps(known))


def _read(cache: str) -> dict[str, Any]:
    if not cache:
        return {}
    try:
        known = orjson.loads(disk.read_path(os.path.join(cache, _NAME), follow_links=True))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
