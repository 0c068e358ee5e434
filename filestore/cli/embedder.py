"""List models, change the store's model, download one, or export one to run without torch."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.config import user_config
from filestore.config.discovery import NoStoreError, configuration_folder
from filestore.config.settings import ModelOptions
from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.safe_text import shown_path
from filestore.core.schema import make
from filestore.embed import Choice, is_service, known_embedders
from filestore.embed.models import DEFAULT_MODEL, fetch_model, find_model, try_out
from filestore.sidecar.model import PREFERRED, open_model

if TYPE_CHECKING:
    from filestore.sync.change_model import ModelChange

EXAMPLE = "filestore embedder export all-MiniLM-L6-v2 minilm-onnx"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    # What may stand before the action may stand after it too.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--store", metavar="DIR", help="the store to use")
    common.add_argument("--json", action="store_true", help="print JSON on standard output")
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
    change.add_argument("--yes", action="store_true", help="do not ask")
    use = actions.add_parser("use", parents=[common], help="set where a model is on this machine")
    use.add_argument("name", metavar="NAME", help="as the settings of a store spell it")
    use.add_argument("folder", metavar="FOLDER", help="with its weights and tokenizer")
    fetch = actions.add_parser(
        "fetch", parents=[common], help="download a model from the Hugging Face hub"
    )
    fetch.add_argument("name", nargs="?", metavar="NAME", default=DEFAULT_MODEL)
    export = actions.add_parser(
        "export", parents=[common], help="export a model so that it runs without torch"
    )
    export.add_argument("model", metavar="MODEL", help="its name or its folder")
    export.add_argument("folder", metavar="FOLDER", help="new, or empty")
    export.add_argument("--int8", action="store_true", help="a quarter of the size, less exact")


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
    own = _own(options)
    if options.json:
        items = [{"name": name, "usable": not why, "why": why} for name, why in found.items()]
        value = {"items": items, "models": dict(here.models)}
        _output.write_json(make("embedder", value | ({"store": own} if own else {})))
        return 0
    if own:
        _output.line(f"this store: {own['name']}: {own['why'] or 'can be used'}")
    for name, why in found.items():
        _output.line(f"{name}: {why or 'can be used'}")
    _output.line("openai:MODEL: any OpenAI-compatible service, with --endpoint")
    for name, folder in here.models.items():
        _output.line(f"{name}: a model in {shown_path(folder)}")
    return 0


def _own(options: Any) -> dict[str, Any] | None:
    """What the store that is meant uses; None where there is none."""
    try:
        with _context.open_store(options) as store:
            problem = store.model.problem
            why = f"{problem.message}; {problem.remedy}" if problem else ""
            return {"name": store.settings.embedder, "usable": not why, "why": why}
    except NoStoreError:
        return None


def _set(options: Any) -> int:
    chosen = ModelOptions(endpoint=options.endpoint)
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        change = store.plan_model(options.embedder, chosen)
        if change.texts and not options.yes:
            _ask(change)
        report = store.change_model(change, on_progress=on_progress)
    if options.json:
        counts = {"embedded": report.embedded, "reused": report.reused}
        _output.write_json(make("embedder set", {"embedder": change.choice.name} | counts))
    else:
        texts = _output.embedded(report.embedded, report.reused)
        _output.line(f"embedder {change.choice.name}: {texts}")
    return _diagnostics.left_without(report.problem)


def _ask(change: "ModelChange") -> None:
    """Ask a person who can answer; anybody else has to say --yes."""
    texts = _output.count(change.texts, "text")
    price = f"{change.choice.name} has to embed {texts} ({change.known:,} from cache)"
    if not sys.stdin.isatty():
        raise RefusedError(price, remedy="add --yes")
    _diagnostics.say(price)
    _diagnostics.go_on()


def _use(options: Any) -> int:
    folder = os.path.abspath(options.folder)
    _check_model(folder)
    configuration = configuration_folder()
    before = user_config.read_machine(configuration, os.environ).models.get(options.name)
    user_config.remember_model(configuration, options.name, folder)
    was = f" (it was {before})" if before not in (None, folder) else ""
    words = f"{options.name}: {folder}{was}"
    return _said(options, {"name": options.name, "folder": folder}, words)


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
    return _said(options, {"name": options.name, "folder": folder}, f"{options.name}: {folder}")


def _export(options: Any) -> int:
    from filestore.embed.export import export_model

    here = user_config.read_machine(configuration_folder(), os.environ)
    folder = os.path.abspath(os.path.expanduser(options.model))
    name = folder if os.path.isdir(folder) else options.model
    source = find_model(Choice(name=f"sentence-transformers:{name}", machine=here))
    with _diagnostics.ProgressBar() as on_progress:
        made = export_model(source, options.folder, int8=options.int8, on_progress=on_progress)
    words = f"wrote {made}; next: filestore init --embedder onnx:{made}"
    return _said(options, {"folder": made, "int8": options.int8}, words)


def _said(options: Any, value: dict[str, Any], words: str) -> int:
    if options.json:
        _output.write_json(make(f"embedder {options.action}", value))
    else:
        _output.line(words)
    return 0


_ACTIONS = {"list": _list, "set": _set, "use": _use, "fetch": _fetch, "export": _export}
