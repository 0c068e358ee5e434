"""What this user's machine knows and allows: model folders by name, endpoints, originals.

Kept on the user's side, never in a store, because a store is shared and cloned. One rule: a file
that cannot be read allows nothing.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b, sha256
from typing import Final, TypedDict

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from filestore.config.settings import AgentOptions
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError
from filestore.core.safe_text import Unshown
from filestore.core.schema import converted, json_of
from filestore.fs import disk

NAME: Final = os.path.join("filestore", "machine.json")
CACHE: Final = "filestore"
SECRET: Final = os.path.join("filestore", "secret")
_MOST_BYTES: Final = 16 * 1024 * 1024
SECRET_BYTES: Final = 32
_SMALL_BYTES: Final = 4096


class MachineError(FilestoreError, ValueError):
    """The user's own file cannot be used."""


class Originals(Struct, frozen=True, kw_only=True):
    """Where a store may look for originals, outside its work tree. Absolute, without links."""

    given: frozenset[str] = frozenset()
    """Folders given to `add`, with all below them."""
    trusted: frozenset[str] = frozenset()
    """Folders that were trusted, with all below them."""
    near: frozenset[str] = frozenset()
    """Folders of files given to `add`: what lies in them, and nothing below."""
    files: frozenset[str] = frozenset()
    """Added files whose names alone would keep them closed: hidden, or of no known format."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Every folder, sorted; a slash at the end is for all below it."""
        return tuple(sorted({*self.near, *(f"{path}/" for path in self.given | self.trusted)}))

    def joined(self, other: "Originals") -> "Originals":
        """Both."""
        return Originals(**{key: getattr(self, key) | getattr(other, key) for key in _FIELDS})


_FIELDS: Final = {"given": "given", "trusted": "trusted", "near": "beside", "files": "files"}
"""Field to its key in the file."""


class Machine(Unshown, Struct, frozen=True, kw_only=True):
    """What is known and allowed here."""

    models: Mapping[str, str] = field(default_factory=dict)
    """Name of a model, as settings spell it, to the folder that holds it, absolute."""
    trusted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Store root to what its settings may reach, such as an endpoint; absolute."""
    originals: Mapping[str, Originals] = field(default_factory=dict)
    """Store root to where it may look for originals."""
    cache: str = ""
    """A folder for what can be made again, such as hashes of weights; "" for none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables of the process: where keys are, which is why they are never shown."""

    def trusts(self, root: str, reach: str) -> bool:
        """Whether a store may reach out so."""
        return reach in self.trusted.get(root, ())

    def originals_of(self, root: str) -> Originals:
        """Where a store may look for originals."""
        return self.originals.get(stored_path(root), Originals())

    def trusting(self, root: str, reach: str) -> "Machine":
        """The same, as if the user had allowed this store to reach out so."""
        allowed = {**self.trusted, root: (*self.trusted.get(root, ()), reach)}
        return replace(self, trusted=allowed)


def read_machine(configuration: str, environment: Mapping[str, str]) -> Machine:
    """What is known and allowed.

    Args:
        configuration: The user's configuration folder, such as ``~/.config``.
        environment: The variables of the process.

    Raises:
        MachineError: The file is there and cannot be read.
    """
    home = environment.get("HOME", "")
    default = os.path.join(home, ".cache") if home else ""
    caches = environment.get("XDG_CACHE_HOME") or default
    values = _read(os.path.join(configuration, NAME))
    return Machine(
        models=values["models"],
        trusted={root: tuple(reach) for root, reach in values["trusted"].items()},
        originals={
            root: Originals(**{one: frozenset(found.get(key, ())) for one, key in _FIELDS.items()})
            for root, found in values["originals"].items()
        },
        cache=os.path.join(caches, CACHE) if os.path.isabs(caches) else "",
        environment=environment,
    )


def remember_model(configuration: str, name: str, folder: str) -> None:
    """Remember where a model lies.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        values["models"][name] = absolute(folder)


def trust(configuration: str, root: str, reach: str) -> None:
    """Let a store reach out, from now on.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        allowed = values["trusted"].setdefault(root, [])
        if reach not in allowed:
            allowed.append(reach)


def remember_originals(configuration: str, root: str, more: Originals) -> None:
    """Let a store look for originals in more places, from now on.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        kept = values["originals"].setdefault(stored_path(root), {})
        for name, key in _FIELDS.items():
            kept[key] = sorted({*kept.get(key, ()), *getattr(more, name)})


def stored_path(path: str) -> str:
    """A path as the user's file has it, which holds UTF-8 only."""
    return path.encode("utf-8", "backslashreplace").decode()


def remembered_rules(configuration: str, root: str) -> AgentOptions:
    """What the settings of a store closed to programs when the user last agreed.

    Raises:
        MachineError: The file is there and cannot be read.
    """
    if not configuration:
        return AgentOptions()
    found = _read(os.path.join(configuration, NAME))["closed"].get(stored_path(root), {})
    rules = {key: tuple(found.get(key, ())) for key in _RULES}
    return AgentOptions(closed=rules["closed"], read_only=rules["read_only"])


def remember_rules(configuration: str, root: str, rules: AgentOptions) -> None:
    """Remember what the settings of a store close to programs; others hold no longer.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        values["closed"][stored_path(root)] = {key: list(getattr(rules, key)) for key in _RULES}


def distrust(configuration: str, root: str) -> None:
    """Take back whatever a store was allowed.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        values["trusted"].pop(root, None)
        values["originals"].pop(stored_path(root), None)


class Change(TypedDict):
    """What was changed in a file of another program's: enough to undo it."""

    after: str
    """The hash of the text then."""
    place: int
    """Characters before what differs."""
    length: int
    """Of what took the place of what was cut."""
    cut: str | None
    """That; None where there was no file."""


def changes_of_programs(configuration: str, file: str) -> dict[str, Change]:
    """What was changed in a program's configuration and not undone, by the entry's name."""
    found = _read(os.path.join(configuration, NAME))["programs"]
    return found.get(stored_path(file), {})


def remember_change(configuration: str, file: str, name: str, change: Change | None) -> None:
    """Remember a change of a program's configuration, or that it was undone.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        known = values["programs"].setdefault(stored_path(file), {})
        known.pop(name, None)
        if change is not None:
            known[name] = change
        if not known:
            del values["programs"][stored_path(file)]


class Token(TypedDict):
    """What a client may do that has a token; the token itself is kept nowhere."""

    hash: str
    """SHA-256 of it, hexadecimal: of 256 random bits, so that no salt is needed."""
    writes: bool
    """Whether it may change stores that are served to be changed."""
    person: bool
    """Whether a person has it, who sees what is closed to programs."""


def tokens(configuration: str) -> dict[str, Token]:
    """The tokens of clients, by the client's name.

    Raises:
        MachineError: The file that is there cannot be read.
    """
    return _read(os.path.join(configuration, NAME))["tokens"]


def add_token(configuration: str, name: str, *, writes: bool, person: bool) -> str | None:
    """Make a client's token; None where it has one already.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    import secrets

    made = secrets.token_urlsafe(SECRET_BYTES)
    path = os.path.join(configuration, NAME)
    if not os.path.exists(path):
        make_private(path, b"{}", bool)
    with _changing(configuration) as values:
        if name in values["tokens"]:
            return None
        values["tokens"][name] = Token(hash=token_hash(made), writes=writes, person=person)
    with disk.disk_errors(path):
        os.chmod(path, 0o600)
    return made


def revoke_token(configuration: str, name: str) -> bool:
    """Forget a client's token; whether there was one.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    with _changing(configuration) as values:
        return values["tokens"].pop(name, None) is not None


def token_hash(token: str | bytes) -> str:
    """What is kept of a token."""
    return sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def seal(configuration: str, data: bytes, *, make: bool = False) -> str | None:
    """A keyed hash of some data that only this user can make: a forged one is recognised.

    Args:
        configuration: The user's configuration folder; "" for none.
        data: What is marked.
        make: Whether the secret behind it is made where there is none yet.

    Returns:
        The hash, hexadecimal; None where there is no secret.
    """
    path = os.path.join(configuration, SECRET) if configuration else ""
    secret = _secret(path)
    if secret is None and make and path:
        secret = make_private(path, os.urandom(SECRET_BYTES), _is_secret)
    return None if secret is None else blake2b(data, key=secret, digest_size=32).hexdigest()


def is_sealed(configuration: str, data: bytes, mark: str | None) -> bool:
    """Whether a keyed hash of some data is this user's."""
    expected = seal(configuration, data)
    return expected is not None and mark == expected


def can_seal(configuration: str) -> bool:
    """Whether there is a secret, or a place for one."""
    path = os.path.join(configuration, SECRET) if configuration else ""
    if _secret(path) is not None:
        return True
    # A file takes the place of anything but a folder.
    folder = os.path.dirname(path) if os.path.islink(path) or not os.path.isdir(path) else ""
    while folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _secret(path: str) -> bytes | None:
    """The secret; None where there is none, or none that others could not have put there."""
    return read_private(path, _is_secret) if path else None


def _is_secret(data: bytes) -> bool:
    return len(data) == SECRET_BYTES


class _File(TypedDict, total=False):
    """The user's file."""

    models: dict[str, str]
    trusted: dict[str, list[str]]
    originals: dict[str, dict[str, list[str]]]
    closed: dict[str, dict[str, list[str]]]
    programs: dict[str, dict[str, Change]]
    tokens: dict[str, Token]


_RULES: Final = ("closed", "read_only")


def _read(path: str) -> _File:
    found = _File()
    try:
        data = disk.read_path(path, limit=_MOST_BYTES, follow_links=True)
        found = converted(json_of(data), _File)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        disk.pass_limits(error)
        raise MachineError(f"{path} cannot be used: {error}; fix or remove {path}") from error
    known = _File(models={}, trusted={}, originals={}, closed={}, programs={}, tokens={})
    return known | found


@contextlib.contextmanager
def _changing(configuration: str) -> Iterator[_File]:
    """The values of the user's file, written back if they changed; no other process loses its own.

    Raises:
        MachineError: The file that is there cannot be read.
        WriteFailedError: The disk refused.
    """
    path = os.path.join(configuration, NAME)
    with disk.disk_errors(path), contextlib.ExitStack() as stack:
        disk.make_folders(os.path.dirname(path), 0o700)
        # The folder itself is locked: where it cannot be, as on some networks, no process waits.
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, folder)
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        values = _read(path)
        before = orjson.dumps(values)
        yield values
        if orjson.dumps(values) != before:
            disk.write_own(path, orjson.dumps(values, option=orjson.OPT_INDENT_2))


Usable = Callable[[bytes], bool]


def read_private(path: str, usable: Usable) -> bytes | None:
    """What a small file holds that its user alone reads.

    Args:
        path: Of the file.
        usable: Whether what it holds is what it should be.

    Returns:
        None where there is none, or none that others could not have put there.
    """
    try:
        descriptor = disk.open_regular(path)
    except OSError as error:
        disk.pass_limits(error)
        return None
    with open(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        is_private = seen.st_uid == os.geteuid() and not seen.st_mode & 0o077
        data = file.read(_SMALL_BYTES) if is_private else b""
    return data if usable(data) else None


def make_private(path: str, data: bytes, usable: Usable) -> bytes | None:
    """Make such a file; of two processes that make it one is kept.

    Returns:
        What it holds then; None where nothing can be written.
    """
    folder, name = os.path.split(path)
    try:
        disk.make_folders(folder, 0o700)
        with disk.folder_at(folder) as handle:
            temporary = disk.stage(handle, data, 0o600)
            try:
                os.link(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
            except FileExistsError:
                if read_private(path, usable) is None:
                    os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
            except OSError:
                # Some file systems have no hard links: of two that make it the last one wins.
                os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=handle)
            os.fsync(handle)
    except OSError:
        return None
    return read_private(path, usable)
