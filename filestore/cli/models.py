"""The models, of the store and on this machine, and where its vectors are searched."""

import contextlib
import os
import re
import shlex
from collections.abc import Mapping
from textwrap import wrap
from typing import Annotated, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from filestore.cli import _context, _output, _progress
from filestore.config import user_config
from filestore.config.layout import NoStoreError, configuration_folder
from filestore.config.settings import BACKENDS, ModelOptions
from filestore.core.caller import absolute
from filestore.core.errors import (
    PACKAGES,
    FilestoreError,
    UsageError,
    install_line,
    missing_packages,
    way_out,
)
from filestore.core.safe_text import listed, shown_path
from filestore.core.schema import JsonObject
from filestore.embed import Choice, known_embedders
from filestore.embed.models import DEFAULT_MODEL, KINDS, MODELS, fetch_model, try_out
from filestore.server.operations import LIMIT, CommonOptions, argument, option
from filestore.sidecar.model import FOLDER_KINDS, full_name, open_model
from filestore.sync import switching

_SHOWN = 3
"""Results of each model named for a query."""
_SERVICE: Final = "openai:MODEL"
_WIDTH: Final = 100


class Embedder(JsonObject, Struct, frozen=True):
    """A kind of embedder, or the model of a store."""

    name: str
    """As `--embedder` takes it."""
    usable: bool
    """Whether it can be used here."""
    why: str
    """Why not, with what to do; else empty."""


class Embedders(JsonObject, Struct, frozen=True):
    """What `embedder list` prints."""

    SPARSE = "store beside"

    items: list[Embedder]
    """Kinds that have one model, models that a hub has, and models named with `embedder use`."""
    models: Mapping[str, str]
    """Names of models with their folders on this machine."""
    store: Embedder | None
    """What the store uses; only where there is one."""
    beside: Embedder | None
    """The second model; only where one is tried."""


class EmbedderSet(JsonObject, Struct, frozen=True):
    """What `embedder set` prints."""

    SPARSE = "beside"

    embedder: str
    """The new one."""
    beside: bool
    """Whether it is the second model, with `--beside`."""
    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Texts whose embedding came from the cache."""


class LocalModel(JsonObject, Struct, frozen=True):
    """What `embedder use` and `embedder fetch` print."""

    name: str
    """Of the model."""
    folder: str
    """Where it lies now."""


class ListModels(CommonOptions, frozen=True, kw_only=True):
    """List the models that can be named and whether they work here (the default).

    Example: filestore embedder list
    """


class SetModel(CommonOptions, frozen=True, kw_only=True):
    """Change the store's embedder and embed its passages again.

    Example: filestore embedder set minilm --yes
    """

    embedder: Annotated[str, argument("E")]
    """minilm, multilingual, builtin, a model's name or folder, or openai:MODEL: see 'filestore
    embedder'"""
    endpoint: Annotated[str | None, option("URL")] = None
    """the service of openai:MODEL"""
    beside: bool = False
    """keep the store's model, and make vectors of this one, too: see 'search --beside', 'embedder
    compare' and 'embedder switch'"""
    yes: bool = False
    """do not ask"""


class SwitchModels(CommonOptions, frozen=True, kw_only=True):
    """Swap the store's model and the second one; embeds nothing.

    Example: filestore embedder switch
    """


class DropModel(CommonOptions, frozen=True, kw_only=True):
    """Delete the second model, with its embeddings.

    Example: filestore embedder drop --yes
    """

    yes: bool = False
    """do not ask"""


class CompareModels(CommonOptions, frozen=True, kw_only=True):
    """Ask both models the same questions, and show where they differ.

    Example: filestore embedder compare
    """

    queries: Annotated[str | None, argument("QUERIES")] = None
    """as 'filestore evaluate' takes them (default: the store's own questions and titles; then only
    the overlap is printed)"""
    k: Annotated[int, option("N", *LIMIT)] = 10
    """look at the first N results"""
    mode: Literal["vector", "hybrid"] = "vector"
    """what ranks the results"""
    per_query: bool = False
    """show each query, not only the most different ones"""


class UseFolder(CommonOptions, frozen=True, kw_only=True):
    """Set where a model is on this machine.

    Example: filestore embedder use my-model models/my-model
    """

    name: Annotated[str, argument("NAME")]
    """as the settings of a store spell it"""
    folder: Annotated[str, argument("FOLDER")]
    """with its weights and tokenizer"""


class FetchModel(CommonOptions, frozen=True, kw_only=True):
    """Download a model from the Hugging Face hub.

    Example: filestore embedder fetch minilm
    """

    name: Annotated[str, argument("NAME")] = DEFAULT_MODEL
    """a short one of 'filestore embedder', or its name there"""


def run_embedder(options: ListModels) -> int:
    """List models, change the store's, try a second one, or download one.

    Example: filestore embedder set minilm --yes
    """
    here = user_config.read_machine(configuration_folder(), os.environ)
    about = {kind: text for kind, text in KINDS.items() if kind in known_embedders()}
    about |= {name: f"{one.about}; {one.hub}, {one.licence}" for name, one in MODELS.items()}
    about |= {name: f"in {shown_path(folder)}" for name, folder in here.models.items()}
    items = []
    for name in about:
        try:
            whole = name if name in known_embedders() else full_name(name, root="", machine=here)
        except FilestoreError as error:
            items.append(_usable(name, error))
        else:
            items.append(_usable(name, open_model(Choice(name=whole, machine=here)).problem))
    own = second = None
    with contextlib.suppress(NoStoreError), _context.open_store(options) as store:
        own, other = _usable(store.model.name, store.model.problem), store.beside
        second = _usable(other.name, other.problem) if other is not None else None
    if _context.printed_json(options, Embedders(items, here.models, own, second)):
        return 0
    for whose, model in (("this store", own), ("second model", second)):
        if model:
            _output.line(f"{whose}: {model.name}: {'can be used' if model.usable else 'see below'}")
            _listed_why(model)
    width = max(map(len, (*about, _SERVICE))) + 2
    for one in items:
        text, room = about[one.name], _WIDTH - width
        # By its end where it is too long: there a path says most.
        _output.line(f"{one.name:{width}}{text if len(text) <= room else f'…{text[1 - room :]}'}")
        _listed_why(one)
    _output.line(f"{_SERVICE:{width}}an OpenAI-compatible service, with --endpoint URL")
    return 0


embedder_list = run_embedder


def _listed_why(model: Embedder) -> None:
    """Print why a model cannot be used, or, where that names a command, only the command."""
    ends = [found.end() for found in re.finditer("; ", model.why)]
    commands = [command for end in ends if (command := way_out(model.why[end:])[0])]
    for line in commands[:1] or wrap(model.why, _WIDTH - 4):
        _output.line(f"    {line}")


def _usable(name: str, problem: FilestoreError | None) -> Embedder:
    why = "; ".join(filter(None, (problem.message, problem.remedy))) if problem else ""
    return Embedder(name, not why, why)


def embedder_set(options: SetModel) -> int:
    chosen = ModelOptions(endpoint=options.endpoint)
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        change = store.plan_model(options.embedder, chosen, beside=options.beside)
        if change.texts and not options.yes:
            texts = _output.count(change.texts, "passage")
            cached = f"({change.known:,} from cache)"
            _output.ask(f"{change.choice.name} has to embed {texts} {cached}")
        report = store.change_model(change, on_progress=on_progress)
    where = "beside " if change.is_second else ""
    texts = _output.embedded(report.embedded, report.reused)
    done = EmbedderSet(change.choice.name, change.is_second, report.embedded, report.reused)
    _print_done(options, done, f"embedder {where}{change.choice.name}: {texts}")
    return _output.left_without(report.problem)


def embedder_switch(options: SwitchModels) -> int:
    with _context.open_store(options) as store:
        done = store.switch_model()
    return _print_done(options, done, f"embedder {done.embedder}, second model {done.beside}")


def embedder_drop(options: DropModel) -> int:
    with _context.open_store(options) as store:
        planned = store.plan_drop()
        number = _output.count(planned.embeddings, "embedding")
        if not options.yes:
            again = _output.count(planned.texts, "passage")
            _output.ask(
                f"{planned.embedder} and its {number} are deleted; to have it again costs {again}"
            )
        store.drop_model(planned)
    return _print_done(options, planned, f"dropped {planned.embedder} and its {number}")


def embedder_compare(options: CompareModels) -> int:
    questions = _context.read_questions(options.queries) if options.queries else None
    with _context.open_store(options) as store, _progress.progress_bar() as on_progress:
        found = store.compare_models(
            questions, k=options.k, mode=options.mode, on_progress=on_progress
        )
    found = replace(found, per_query=found.overlaps if options.per_query else ())
    if not _context.printed_json(options, found):
        if found.against_own is not None:
            rows = [(f"{one.model} {one.name}", one.scores) for one in found.models]
            width = max(len(name) for name, _ in rows) + 2
            _output.score_table(found.count, rows, names=width)
            difference = _output.interval(found.against_own)
            _output.line(f"second model against own, nDCG: {difference}")
        number = _output.count(found.queries, "query", "queries")
        _output.line(f"overlap@{found.count}: {found.overlap:.4f} over {number}, {found.mode}")
        for one in found.per_query or found.worst:
            _output.line(f"{one.overlap:.2f} {' '.join(one.query.split())}", style="1")
            for name, paths in (("own", one.own), ("beside", one.beside)):
                _output.line(f"  {name:7}{listed(map(shown_path, paths), _SHOWN) or 'nothing'}")
    return 0


def embedder_use(options: UseFolder) -> int:
    if options.name.lower() in known_embedders():
        raise UsageError(
            f"{options.name} is a kind of embedder, and no name for a folder",
            remedy=f"filestore embedder use my-model {shlex.quote(options.folder)}",
        )
    folder = absolute(options.folder)
    # A folder without a model is refused now, not when it is needed.
    for kind in FOLDER_KINDS:
        try:
            model = open_model(Choice(name=f"{kind}:{folder}"))
            if model.embedder is None:
                raise model.why_not
            try_out(model.embedder)
            break
        except FilestoreError:
            # The last kind is the more telling one: it wants weights, the first a graph.
            if kind == FOLDER_KINDS[-1]:
                raise
    light = kind == FOLDER_KINDS[0]
    configuration = configuration_folder()
    before = user_config.read_machine(configuration, os.environ).models.get(options.name)
    user_config.remember_model(configuration, options.name, folder)
    was = f" (it was {before})" if before not in (None, folder) else ""
    typed = options.name if light else f"{FOLDER_KINDS[1]}:{options.name.rpartition(':')[2]}"
    following = _output.command(f"embedder set {shlex.quote(typed)}")
    words = f"{options.name}: {folder}{was}\nnext: {following}"
    return _print_done(options, LocalModel(options.name, folder), words)


def embedder_fetch(options: FetchModel) -> int:
    if options.name.lower() in KINDS:
        raise UsageError(
            f"{options.name} is not a model of a hub: it comes with what is installed",
            remedy=f"filestore embedder set {options.name.lower()}",
        )
    folder = fetch_model(options.name, environment=os.environ)
    following = _output.command(f"embedder set {shlex.quote(options.name)}")
    words = f"{options.name}: {folder}\nnext: {following}"
    return _print_done(options, LocalModel(options.name, folder), words)


def _print_done(options: CommonOptions, value: JsonObject, words: str) -> int:
    if not _context.printed_json(options, value):
        _output.line(words)
    return 0


class Backend(JsonObject, Struct, frozen=True):
    """A kind of backend."""

    kind: str
    """As the settings name it."""
    usable: bool
    """Whether its package is installed."""
    why: str
    """Why not, with what to do; else empty."""
    keys: str
    """What it takes, in words."""


class Backends(JsonObject, Struct, frozen=True):
    """What `backend list` prints."""

    items: list[Backend]
    """The kinds of backends."""


class BackendSet(JsonObject, Struct, frozen=True, kw_only=True):
    """What `backend set` prints."""

    backend: str
    """The kind."""
    address: str
    """Where the vectors are now."""
    sent: int
    """Vectors that were sent."""
    deleted: int
    """Vectors that were deleted there."""
    kept: int
    """Vectors that were there."""
    embedded: int = 0
    """0: a switch embeds nothing."""
    cleared: bool
    """Whether the vectors in the place that was left are deleted."""


class ShowBackend(CommonOptions, frozen=True, kw_only=True):
    """Show where the vectors are and in what state (the default).

    Example: filestore backend show
    """


class ListBackends(CommonOptions, frozen=True, kw_only=True):
    """List where vectors may be and whether that works here.

    Example: filestore backend list
    """


class SetBackend(CommonOptions, frozen=True, kw_only=True):
    """Send the vectors to another place; nothing is embedded.

    Example: filestore backend set faiss --yes
    """

    kind: Annotated[str, argument("KIND")]
    """faiss, local, qdrant or pgvector"""
    options: Annotated[list[str], argument("KEY=VALUE")] = []
    """see 'backend list'"""
    yes: bool = False
    """do not ask"""
    take_over: bool = False
    """replace what another store has there"""
    clear: bool = False
    """delete the vectors in the place that is left"""


def run_backend(options: ShowBackend) -> int:
    """List where vectors may be searched, show where they are, and choose another place.

    Example: filestore backend set pgvector dsn=postgresql://localhost/knowledge
    """
    with _context.open_store(options) as store:
        shown = store.backend()
    if not _context.printed_json(options, shown):
        _output.line(f"{shown.kind}: {shown.address or 'cannot be opened here'}")
        vectors = _output.count(shown.vectors, "vector")
        waiting = f", {shown.waiting:,} wait to be sent" if shown.waiting else ""
        if shown.waiting and shown.approximate is None and not shown.problem:
            changes = _output.count(shown.waiting, "change")
            waiting = f"; {changes} since the file was written, searched all the same"
        _output.line(f"{vectors}{waiting}")
        if shown.problem:
            _output.line(f"cannot be asked: {shown.problem}")
    return 1 if shown.problem else 0


backend_show = run_backend


def backend_list(options: ListBackends) -> int:
    items = []
    for name, kind in BACKENDS.items():
        lacking = missing_packages(name) if name in PACKAGES else ()
        why = f"{' and '.join(lacking)} missing; {install_line(name)}" if lacking else ""
        items.append(Backend(name, not why, why, kind.keys))
    if _context.printed_json(options, Backends(items)):
        return 0
    for one in items:
        _output.line(f"{one.kind}: {one.why or 'can be used'}; {one.keys}")
    return 0


def backend_set(options: SetBackend) -> int:
    backend = switching.options_of(options.kind, options.options)
    with _context.open_store(options) as store:
        before = store.vector_home()
        change = store.plan_backend(backend, takes_over=options.take_over)
        if not options.yes:
            would = change.would
            vectors = _output.count(would.written, "vector")
            there = f"{vectors} ({would.kept:,} are there); 0 passages are embedded"
            gone = f"; {_output.count(would.deleted, 'vector')} there go" if would.deleted else ""
            _output.ask(f"{change.address} gets {there}{gone}")
        sent = store.change_backend(change)
        is_left = switching.is_left(before, change)
        cleared = options.clear and is_left and store.clear_backend(before)
    done = BackendSet(
        backend=backend.kind,
        address=change.address,
        sent=sent.written,
        deleted=sent.deleted,
        kept=sent.kept,
        cleared=cleared,
    )
    if _context.printed_json(options, done):
        return 0
    vectors = _output.count(sent.written, "vector")
    _output.line(f"backend {backend.kind}: {vectors} sent, {sent.kept:,} were there; 0 embedded")
    if cleared:
        _output.line("the vectors in the place that was left are deleted")
    elif is_left:
        _output.line(f"{before.where} still has this store's vectors: delete them there")
        _output.line("the next time, --clear does that")
    return 0
