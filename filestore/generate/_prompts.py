"""The instructions that a model gets: files with a version, shipped or a store's own.

One rule: a store's own are used as they were when the user allowed them; changed ones are asked
about anew.
"""

from __future__ import annotations

import functools
import hashlib
import posixpath
import re
from collections.abc import Mapping
from typing import Final, cast, get_args

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.core.hashing import normalize_text
from filestore.fs import disk
from filestore.generate.base import Kind

MOST_BYTES: Final = 64 * 1024
KINDS: Final = cast(tuple[Kind, ...], get_args(Kind))
_COUNT: Final = "{count}"
_VERSION: Final = re.compile(r"version: *([0-9]{1,9}) *\n")
_SHOWN: Final = 16
"""Digits of a hash that stand for it in a fingerprint."""


class PromptsUnusable(FilestoreError, ValueError):
    """A store's own prompts cannot be read."""


class Prompts(Struct, frozen=True, kw_only=True):
    """The instructions for each kind of task."""

    by_kind: Mapping[Kind, str]
    """Without the line that says the version."""
    digest: str
    """What results hang on: versions and texts, as a few hexadecimal digits."""

    def text(self, kind: Kind, count: int) -> str:
        """The instructions for one task."""
        return self.by_kind[kind].replace(_COUNT, str(count))


class OwnPrompts(Struct, frozen=True, kw_only=True):
    """The prompts in a store's own folder, as they are now."""

    files: tuple[str, ...]
    """Their paths below the root."""
    reach: str
    """What the user allows: a text that changes with them."""
    texts: Mapping[Kind, str]


@functools.cache
def shipped() -> Mapping[Kind, str]:
    """The prompts that come with filestore."""
    from importlib import resources

    folder = resources.files("filestore.generate").joinpath("prompts")
    return {kind: folder.joinpath(f"{kind}.md").read_text("utf-8") for kind in KINDS}


def prompts_with(own: OwnPrompts | None) -> Prompts:
    """A store's own prompts, and the shipped ones for what it has none for."""
    texts = {**shipped(), **(own.texts if own is not None else {})}
    joined = "\0".join(normalize_text(texts[kind]) for kind in KINDS)
    return Prompts(
        by_kind={kind: _VERSION.sub("", text, count=1).strip() for kind, text in texts.items()},
        digest=hashlib.sha256(joined.encode()).hexdigest()[:_SHOWN],
    )


def read_own(root: str, folder: str) -> OwnPrompts:
    """Read the prompts in a folder of a store.

    Args:
        root: The store's, absolute.
        folder: As the settings name it: relative to the root, and below it.

    Raises:
        PromptsUnusable: There are none there, or they are no such files.
    """
    path = posixpath.normpath(folder)
    if posixpath.isabs(folder) or path.split("/")[0] in (".", "..") or "\0" in folder:
        raise _unusable(folder, "is no folder below the store's root")
    found: dict[Kind, bytes] = {}
    for kind in KINDS:
        data = _read(root, f"{path}/{kind}.md")
        if data is not None:
            found[kind] = data
    if not found:
        raise _unusable(folder, f"holds none of {', '.join(f'{kind}.md' for kind in KINDS)}")
    digest = hashlib.sha256()
    for kind, data in found.items():
        digest.update(f"{kind} {len(data)} ".encode() + data)
    return OwnPrompts(
        files=tuple(f"{path}/{kind}.md" for kind in found),
        reach=f"prompts sha256:{digest.hexdigest()}",
        texts={kind: _checked(f"{path}/{kind}.md", data) for kind, data in found.items()},
    )


def _read(root: str, path: str) -> bytes | None:
    """The bytes of a file, or None where there is none; no symbolic link is followed."""
    try:
        with disk.folder_at(root) as handle:
            return disk.read_below(handle, path, most=MOST_BYTES)[0]
    except FileNotFoundError:
        return None
    except FilestoreError as error:
        raise PromptsUnusable(error.message, remedy=error.remedy) from error
    except OSError as error:
        disk.pass_limits(error)
        raise _unusable(path, f"cannot be read: {error.strerror or error}") from error


def _checked(path: str, data: bytes) -> str:
    try:
        text = normalize_text(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _unusable(path, "is not UTF-8") from error
    version = _VERSION.match(text)
    if version is None or not text[version.end() :].strip():
        raise _unusable(path, "must begin with a line such as `version: 1`, and go on with a text")
    return text


def _unusable(path: str, what: str) -> PromptsUnusable:
    return PromptsUnusable(
        f"the prompts of the store: {path!r} {what}",
        remedy="fix that, or remove `prompts` under [generator] in filestore.toml",
    )
