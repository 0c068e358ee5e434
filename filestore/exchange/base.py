"""What a form is read into and written from: resources of chunks, with the vectors of a model.

Values, one contract, and the forms by name; reads no store. Two rules: a collection is passed
through once, a resource at a time, so that its size does not matter; and a form is imported only
when it is opened. A new one is a module here, and one entry in `FORMS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import orjson
from msgspec import Struct, field

from filestore.core.errors import UPGRADE, FilestoreError, UsageError
from filestore.core.limits import USUAL, Counter, Limits, Size
from filestore.core.safe_text import shown_path
from filestore.core.schema import JsonObject
from filestore.core.spelling import did_you_mean
from filestore.fs import disk
from filestore.fs.staged import TargetRefused as TargetRefused

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


class FormDamaged(FilestoreError, ValueError):
    """What was to be read is not what its form says; nothing of it was taken."""


def refuse(
    problem: str, remedy: str = "have it exported again by the program that it comes from"
) -> NoReturn:
    """Raise the error for what does not hold.

    Raises:
        FormDamaged: Always.
    """
    raise FormDamaged(problem, remedy=remedy)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Put the name of a file before what is wrong in it."""
    try:
        yield
    except FormDamaged as error:
        # Of the same class: some are answered for.
        raise type(error)(
            f"{shown_path(path)}: {error.message}", remedy=error.remedy, detail=error.detail
        ) from error


def opened(source: str) -> IO[bytes]:
    """A file that may be a stranger's, to be read.

    Raises:
        FormDamaged: It is no regular file.
        OSError: It cannot be read.
    """
    try:
        descriptor = disk.open_regular(source, follow_links=True)
    except disk.NotAFileError as error:
        raise FormDamaged(f"{error.message}; name a file") from error
    return open(descriptor, "rb", buffering=1024 * 1024)


def check_version(source: str, stamp: object, known: str) -> None:
    """Refuse what another version wrote.

    Raises:
        FormDamaged: The stamp is another one than this version's.
    """
    if stamp != known:
        refuse(
            f"{shown_path(source)} has the format {stamp!r:.60}, this version reads {known}",
            f"{UPGRADE}, or have it exported by this version",
        )


class LeftOut(list[str]):
    """What could not be taken, a sentence each; of very many the first, and how many there were."""

    MOST: ClassVar[int] = 1_000

    def __init__(self) -> None:
        super().__init__()
        self.more = 0
        """How many are not listed."""

    def add(self, sentence: str) -> None:
        """Take one more."""
        if len(self) < self.MOST:
            self.append(sentence)
        else:
            self.more += 1


def size_of(values: Mapping[str, Any] | None) -> int:
    """How many bytes some JSON takes; 0 for what cannot be written, and is left out."""
    try:
        return len(orjson.dumps(values)) if values else 0
    except TypeError:
        return 0


class Chunk(Struct, frozen=True, kw_only=True):
    """One chunk file, or one section of a document in place."""

    path: str
    """Relative to the store's tree; "" where a form has no such name."""
    text: str
    """The body."""
    frontmatter: Mapping[str, Any] = field(default_factory=dict)
    """Ours and the user's own keys, in their order; values are JSON."""
    vectors: Mapping[int, NDArray[float32]] = field(default_factory=dict)
    """By part: 0 of the body under its headings, n of question n; ``(dimension,) float32``."""

    @property
    def size_bytes(self) -> int:
        """About how much memory it needs."""
        vectors = sum(one.nbytes for one in self.vectors.values())
        return len(self.text.encode("utf-8", "replace")) + size_of(self.frontmatter) + vectors

    @property
    def source(self) -> str | None:
        """The document that it comes from, where it says so itself."""
        source = self.frontmatter.get("source")
        return source if isinstance(source, str) else None


class Resource(Struct, frozen=True, kw_only=True):
    """What was made from one source: its chunks in reading order, and its record."""

    name: str
    chunks: tuple[Chunk, ...]
    record: Mapping[str, Any] | None = None
    """As `meta.json` has it; None where there is none, as of chunks without a resource."""

    @property
    def documents(self) -> list[Mapping[str, Any]]:
        """What its record says of each document."""
        found = (self.record or {}).get("documents")
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


class Collection(Struct, frozen=True, kw_only=True):
    """Resources, and whose vectors they have."""

    resources: Iterable[Resource]
    """Passed through once; it may raise `FormDamaged` on the way. What is read may have a resource
    in several parts of one name, in any order, so that none has to be held as a whole."""
    model: str = ""
    """The fingerprint of the vectors, or a foreign name of their model; "" without vectors."""
    dimension: int = 0
    """How many numbers a vector has; 0 without vectors."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """What could not be taken, a sentence each, known when all resources were passed through."""
    stated: Size = field(default_factory=Size)
    """How much there is at the most, where the source says so before it is read; 0 where not."""

    def __iter__(self) -> Iterator[Resource]:
        """The resources, once."""
        return iter(self.resources)

    def counted(self, counter: Counter) -> Iterator[Resource]:
        """The resources, held against limits on the way.

        Raises:
            LimitExceededError: There is more than is taken.
        """
        Counter(counter.limits, counter.name).add(self.stated)
        for resource in self.resources:
            has_record = resource.record is not None
            size_bytes = size_of(resource.record) + sum(one.size_bytes for one in resource.chunks)
            files = len(resource.chunks) + has_record
            counter.add(Size(rows=files, files=files, bytes=size_bytes))
            yield resource


class Form(ABC):
    """One form, written and read."""

    name: ClassVar[str]
    """As it is typed."""
    takes_parts: ClassVar[bool] = False
    """Whether what is written may have a resource in several parts, one after the other."""
    takes_vectors: ClassVar[bool] = True
    """Whether what is written has the vectors of the texts."""

    @abstractmethod
    def write(self, target: str, collection: Collection) -> tuple[str, ...]:
        """Write a collection; what was there is replaced whole, or stays as it was.

        Args:
            target: A file, or the folder of a form that is several files; absolute.
            collection: What is written, passed through once.

        Returns:
            The files, or the one folder, absolute.

        Raises:
            TargetRefused: Something of another kind is there.
            WriteFailedError: The disk refused; what was there is untouched.
        """

    @abstractmethod
    def read(self, source: str) -> Collection:
        """What a file or folder holds, read as the resources are passed through.

        Args:
            source: Absolute.

        Raises:
            FormDamaged: It is not of this form, or disagrees with itself.
            FileNotFoundError: There is nothing.
        """


FORMS: Final = {
    "faiss-json": "faiss_json:FaissJson",
    "jsonl": "rows:JsonLines",
    "markdown": "markdown:Markdown",
    "parquet": "parquet:ParquetForm",
    "ragmd": "ragmd:RagMd",
}
"""Name to module and class."""
READ: Final = tuple(name for name in FORMS if name != "markdown")
"""The forms that are read, too."""


class UnknownFormError(UsageError):
    """There is no such form."""


def open_form(name: str) -> Form:
    """The form of a name.

    Raises:
        UnknownFormError: There is none.
    """
    if name not in FORMS:
        raise UnknownFormError(
            f"no form {name!r}{did_you_mean(name, FORMS)}: name one of these: {', '.join(FORMS)}",
        )
    module, _, kind = FORMS[name].partition(":")
    made = getattr(import_module(f"filestore.exchange.{module}"), kind)()
    assert isinstance(made, Form)
    return made


class SourceMissingError(FilestoreError, FileNotFoundError):
    """There is nothing to read at a path."""


class ImportOptions(Struct, frozen=True, kw_only=True):
    """What an import is asked to do."""

    replace: bool = False
    """Whether resources that are there and differ are replaced."""
    unchecked: bool = False
    """Whether vectors are taken that cannot be checked here, because the model is not."""
    embed: bool = True
    """Whether texts without a vector are embedded now."""
    plan: bool = False
    """Whether nothing is written, only reported."""
    limits: Limits = USUAL
    """How much is taken."""


class ImportedResource(JsonObject, Struct, kw_only=True):
    """What became of one resource."""

    SPARSE = "reason"

    resource: str
    """Its name in the store; "" for chunks of none."""
    status: str = ""
    """`added`, `replaced`, `unchanged`, `refused`."""
    files: int = 0
    """How many files were written or removed."""
    reason: str = ""
    """Why it was refused."""


class Imported(JsonObject, Struct, frozen=True, kw_only=True, rename={"size_bytes": "bytes"}):
    """What was taken."""

    SPARSE = "no_vectors not_embedded"

    resources: tuple[ImportedResource, ...]
    """Every document that came; all refused: exit code 4, some of them or something left out: 5,
    none at all: 1."""
    planned: bool
    """Whether nothing was written, with `--plan`."""
    files: int
    """How many files were written or removed."""
    rows: int
    """Records and chunks that came."""
    size_bytes: int
    """Of their texts, metadata and vectors."""
    limits: Limits
    """How much is taken, unless `--limit` says more."""
    renamed: int
    """How many chunk files have another path than they had: one that no store has, or in the other
    layout."""
    vectors: int
    """How many vectors were taken."""
    compared: int
    """Texts that were embedded again, to check the vectors."""
    no_vectors: str
    """Why vectors that were there were not taken; "" where they were, or where there were none."""
    left_out: tuple[str, ...]
    """What was not taken, and why, a sentence each, at most 1,000."""
    more_left_out: int
    """How many more there are."""
    embedded: int
    """Texts that were sent to the model."""
    reused: int
    """Texts whose vector was there, or came along."""
    not_embedded: FilestoreError | None
    """Why texts were left without vectors."""
    undo: str | None
    """What `undo` takes; None where no file changed."""

    def of_status(self, status: str) -> list[ImportedResource]:
        """The resources of which this became."""
        return [one for one in self.resources if one.status == status]
