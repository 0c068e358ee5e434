"""List models, change the store's, try a second one beside it, or download one."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from filestore.cli import _context, _diagnostics, _output, _parser
from filestore.cli._given import read_questions
from filestore.config import user_config
from filestore.config.discovery import NoStoreError, configuration_folder
from filestore.config.settings import ModelOptions
from filestore.core.caller import absolute
from filestore.core.errors import FilestoreError
from filestore.core.safe_text import listed, shown_path
from filestore.core.schema import JsonObject
from filestore.embed import Choice, is_service, known_embedders
from filestore.embed.models import DEFAULT_MODEL, fetch_model, try_out
from filestore.sidecar.model import PREFERRED, open_model

if TYPE_CHECKING:
    from filestore.search.compare_models import ModelComparison, QueryOverlap
    from filestore.sidecar.model import StoreModel
    from filestore.sync.change_model import ModelChange

_COMPARE = "ask the store's model and the one beside the same, and say where they differ"
_SHOWN = 3
"""So many results of each model are named for a query."""
EXAMPLE = "filestore embedder set all-MiniLM-L6-v2"


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
    """The kinds of embedders."""
    models: Mapping[str, str]
    """Names of models with their folders on this machine."""
    store: Embedder | None
    """What the store uses; only where there is one."""
    beside: Embedder | None
    """The model beside it; only where one is tried."""


class EmbedderSet(JsonObject, Struct, frozen=True):
    """What `embedder set` prints."""

    SPARSE = "beside"

    embedder: str
    """The new one."""
    beside: bool
    """With `--beside`: it stands beside the store's own."""
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


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    common = _parser.shared_options()
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser(
        "list",
        parents=[common],
        help="list the kinds of embedders and whether they work here (the default)",
    )
    change = actions.add_parser(
        "set", parents=[common], help="change the store's embedder and embed its texts again"
    )
    change.add_argument("embedder", metavar="E", help="as 'filestore init --embedder' takes it")
    change.add_argument("--endpoint", metavar="URL", help="the service of openai:MODEL")
    change.add_argument(
        "--beside",
        action="store_true",
        help="keep the store's model, and make the vectors of this one beside: see "
        "'search --beside', 'embedder compare' and 'embedder switch'",
    )
    change.add_argument("--yes", action="store_true", help="do not ask")
    actions.add_parser(
        "switch",
        parents=[common],
        help="make the model beside the store's own, and the other way round; embeds nothing",
    )
    drop = actions.add_parser(
        "drop", parents=[common], help="delete the model beside, with its embeddings"
    )
    drop.add_argument("--yes", action="store_true", help="do not ask")
    _configure_compare(actions.add_parser("compare", parents=[common], help=_COMPARE))
    use = actions.add_parser("use", parents=[common], help="set where a model is on this machine")
    use.add_argument("name", metavar="NAME", help="as the settings of a store spell it")
    use.add_argument("folder", metavar="FOLDER", help="with its weights and tokenizer")
    fetch = actions.add_parser(
        "fetch", parents=[common], help="download a model from the Hugging Face hub"
    )
    fetch.add_argument("name", nargs="?", metavar="NAME", default=DEFAULT_MODEL)


def _configure_compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument(
        "queries",
        metavar="QUERIES",
        nargs="?",
        help="as 'filestore evaluate' takes them; without any, queries are taken from the store's "
        "own questions and titles, and only the overlap is told",
    )
    compare.add_argument(
        "-k", type=int, default=10, metavar="N", help="look at the first N results (default: 10)"
    )
    compare.add_argument(
        "--mode", choices=("vector", "hybrid"), default="vector", help="default: vector"
    )
    compare.add_argument(
        "--per-query", action="store_true", help="show each query, not only those that differ most"
    )


def run(options: Any) -> int:
    """Do what the action says."""
    return _ACTIONS[options.action or "list"](options)


def _list(options: Any) -> int:
    here = user_config.read_machine(configuration_folder(), os.environ)
    found = {}
    for kind in known_embedders():
        if not is_service(kind):
            name = f"{kind}:{DEFAULT_MODEL}" if kind in PREFERRED else kind
            model = open_model(Choice(name=name, machine=here))
            problem = model.problem
            found[name] = f"{problem.message}; {problem.remedy}" if problem else ""
    own, beside = _own(options)
    if options.json:
        items = [Embedder(name, not why, why) for name, why in found.items()]
        _output.write_json(Embedders(items, here.models, own, beside).to_dict())
        return 0
    for whose, one in (("this store", own), ("beside it", beside)):
        if one:
            _output.line(f"{whose}: {one.name}: {one.why or 'can be used'}")
    for name, why in found.items():
        _output.line(f"{name}: {why or 'can be used'}")
    _output.line("openai:MODEL: any OpenAI-compatible service, with --endpoint")
    for name, folder in here.models.items():
        _output.line(f"{name}: a model in {shown_path(folder)}")
    return 0


def _own(options: Any) -> "tuple[Embedder | None, Embedder | None]":
    """What the store that is meant uses, and what stands beside; None where there is none."""
    try:
        with _context.open_store(options) as store:
            own = _usable(store.settings.embedder, store.model)
            beside = store.settings.beside
            if beside is None or store.beside is None:
                return own, None
            return own, _usable(beside.embedder, store.beside)
    except NoStoreError:
        return None, None


def _usable(name: str, model: "StoreModel") -> Embedder:
    problem = model.problem
    why = f"{problem.message}; {problem.remedy}" if problem else ""
    return Embedder(name, not why, why)


def _set(options: Any) -> int:
    chosen = ModelOptions(endpoint=options.endpoint)
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        change = store.plan_model(options.embedder, chosen, beside=options.beside)
        if change.texts and not options.yes:
            _ask_price(change)
        report = store.change_model(change, on_progress=on_progress)
    if options.json:
        done = EmbedderSet(change.choice.name, change.beside, report.embedded, report.reused)
        _output.write_json(done.to_dict())
    else:
        texts = _output.embedded(report.embedded, report.reused)
        where = "beside " if change.beside else ""
        _output.line(f"embedder {where}{change.choice.name}: {texts}")
    return _diagnostics.left_without(report.problem)


def _switch(options: Any) -> int:
    with _context.open_store(options) as store:
        done = store.switch_model()
    if options.json:
        _output.write_json(done.to_dict())
    else:
        _output.line(f"embedder {done.embedder}, beside it {done.beside}")
    return 0


def _drop(options: Any) -> int:
    with _context.open_store(options) as store:
        planned = store.plan_drop()
        number = _output.count(planned.embeddings, "embedding")
        if not options.yes:
            again = _output.count(planned.texts, "text")
            _diagnostics.ask(
                f"{planned.embedder} and its {number} are deleted; to have it again costs {again}"
            )
        store.drop_model(planned)
    if options.json:
        _output.write_json(planned.to_dict())
    else:
        _output.line(f"dropped {planned.embedder} and its {number}")
    return 0


def _compare(options: Any) -> int:
    questions = read_questions(options.queries) if options.queries else None
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        found = store.compare_models(
            questions, k=options.k, mode=options.mode, on_progress=on_progress
        )
    if options.json:
        each = found.overlaps if options.per_query else ()
        _output.write_json(replace(found, per_query=each).to_dict())
        return 0
    for note in found.notes:
        _diagnostics.say(note)
    _compared(found, found.overlaps if options.per_query else found.worst)
    return 0


def _compared(found: "ModelComparison", shown: "Sequence[QueryOverlap]") -> None:
    names = [f"{one.model} {one.name}" for one in found.models]
    width = max(map(len, names)) + 2
    if found.against_own is not None:
        heads = "".join(f"{name}@{found.count}".rjust(12) for name in ("nDCG", "recall", "MRR"))
        _output.line(f"{'':{width}}{heads}", style="1")
        for name, model in zip(names, found.models, strict=True):
            figures = asdict(model.scores).values() if model.scores else ()
            _output.line(f"{name:{width}}" + "".join(f"{score:12.4f}" for score in figures))
        low, high = found.against_own.low, found.against_own.high
        _output.line(
            f"beside against own, nDCG: {found.against_own.mean:+.4f},"
            f" 95 % interval {low:+.4f} to {high:+.4f}"
        )
    number = _output.count(found.queries, "query", "queries")
    _output.line(f"overlap@{found.count}: {found.overlap:.4f} over {number}, {found.mode}")
    for one in shown:
        _output.line(f"{one.overlap:.2f} {' '.join(one.query.split())}", style="1")
        for name, paths in (("own", one.own), ("beside", one.beside)):
            _output.line(f"  {name:7}{listed(map(shown_path, paths), _SHOWN) or 'nothing'}")


def _ask_price(change: "ModelChange") -> None:
    texts = _output.count(change.texts, "text")
    _diagnostics.ask(f"{change.choice.name} has to embed {texts} ({change.known:,} from cache)")


def _use(options: Any) -> int:
    folder = absolute(options.folder)
    _check_model(folder)
    configuration = configuration_folder()
    before = user_config.read_machine(configuration, os.environ).models.get(options.name)
    user_config.remember_model(configuration, options.name, folder)
    was = f" (it was {before})" if before not in (None, folder) else ""
    words = f"{options.name}: {folder}{was}"
    return _said(options, LocalModel(options.name, folder), words)


def _check_model(folder: str) -> None:
    """A folder without a model is refused now, not when the store needs it."""
    problems: list[FilestoreError] = []
    for kind in PREFERRED:
        try:
            model = open_model(Choice(name=f"{kind}:{folder}"))
            if model.embedder is None:
                raise model.why_not
            try_out(model.embedder)
        except FilestoreError as error:
            problems.append(error)
        else:
            return
    # The last kind is the more telling one: it wants weights, the first a graph.
    raise problems[-1]


def _fetch(options: Any) -> int:
    folder = fetch_model(options.name, environment=os.environ)
    return _said(options, LocalModel(options.name, folder), f"{options.name}: {folder}")


def _said(options: Any, value: JsonObject, words: str) -> int:
    if options.json:
        _output.write_json(value.to_dict())
    else:
        _output.line(words)
    return 0


_ACTIONS = {
    "list": _list,
    "set": _set,
    "switch": _switch,
    "drop": _drop,
    "compare": _compare,
    "use": _use,
    "fetch": _fetch,
}
