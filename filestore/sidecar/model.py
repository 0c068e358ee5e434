"""The model of a store: what a person names, what the settings say, what can be opened here.

One rule: a store's model is opened or reported missing; no other one takes its place.
"""

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from filestore.config import user_config as machines
from filestore.config.settings import ModelOptions, Settings
from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError, UsageError
from filestore.core.paths import is_below
from filestore.embed import (
    Choice,
    Embedder,
    EndpointError,
    EndpointUnasked,
    EndpointUntrusted,
    ModelMissing,
    ModelUnusable,
    UnknownEmbedder,
    is_service,
    known_embedders,
    open_embedder,
    reaches_out,
)
from filestore.git.process import work_tree

if TYPE_CHECKING:
    from filestore.generate import Generator, OwnPrompts
    from filestore.rerank import Reranker

FOLDER_KINDS: Final = ("onnx", "sentence-transformers")
"""Kinds of embedders that run what a folder holds; the first starts fastest."""


class ModelChanged(FilestoreError):
    """The settings name another model than the vectors of the store come from."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the vectors of this store are of another model than {name}: embed again, or"
            " name the other one",
            remedy=f"filestore embedder set {shlex.quote(name)}",
        )


class Model(Struct, frozen=True, kw_only=True):
    """An embedder, or why there is none."""

    embedder: Embedder | None
    problem: FilestoreError | None = None

    @property
    def why_not(self) -> FilestoreError:
        """Why there is no embedder; asked where there is none."""
        assert self.problem is not None
        return self.problem


class StoreModel:
    """The model of one store, and what the store may reach for it.

    What only reads takes it as it is known here. What embeds calls `ask` before.
    """

    def __init__(
        self,
        root: str,
        chosen: Settings,
        configuration: str,
        *,
        recorded: Callable[[], Iterable[str]],
    ) -> None:
        """Take what the settings say; nothing is opened yet.

        Args:
            root: The store's, absolute.
            chosen: Its settings.
            configuration: The user's configuration folder.
            recorded: Gives the fingerprints of the store's vectors, where they can be read.
        """
        self._root = root
        self._settings = chosen
        self._configuration = configuration
        self._recorded = recorded
        self._rerankers: dict[str, Reranker] = {}

    @cached_property
    def _opened(self) -> Model:
        return open_model(self._choice())

    def _choice(self) -> Choice:
        return Choice(
            name=self._settings.embedder,
            options=self._settings.model,
            machine=self._machine(),
            root=self._root,
            recorded=self._recorded,
        )

    def ask(self) -> None:
        """Ask a service how long its vectors are, where that is known nowhere here."""
        if self.is_unasked:
            self._opened = ask_model(self._choice())

    @property
    def is_outdated(self) -> bool:
        """Whether it was opened, and what stood in its way then does so no longer."""
        problem = self.problem if "_opened" in vars(self) else None
        return problem is not None and str(open_model(self._choice()).problem) != str(problem)

    def tried(self) -> Model:
        """The model, opened once more and apart; the hash of its weights is kept nowhere."""
        choice = self._choice()
        return open_model(replace(choice, machine=replace(choice.machine, cache="")))

    def take_turns(self) -> None:
        """From now on threads may share the embedder: one at a time asks it."""
        from filestore.embed import OneAtATime

        opened = self._opened
        if opened.embedder is not None and not isinstance(opened.embedder, OneAtATime):
            self._opened = replace(opened, embedder=OneAtATime(opened.embedder))

    @property
    def is_unasked(self) -> bool:
        """Whether all that is missing is the service's word, which `ask` gets."""
        return isinstance(self._opened.problem, EndpointUnasked)

    def _machine(self) -> Machine:
        return machines.read_machine(self._configuration, os.environ)

    @property
    def name(self) -> str:
        """As the settings have it."""
        return self._settings.embedder

    @property
    def embedder(self) -> Embedder | None:
        """None where it cannot be used here."""
        return self._opened.embedder

    @property
    def problem(self) -> FilestoreError | None:
        """Why there is no embedder."""
        return self._opened.problem

    @property
    def why_not(self) -> FilestoreError:
        """Why its embedder cannot be used here; where it can, it is not the one of the vectors."""
        return self.problem or ModelChanged(self._settings.embedder)

    @property
    def reaches(self) -> str | None:
        """The service that the settings would send texts to."""
        return reaches_out(self._settings.embedder, self._settings.model)

    def generator(self, name: str | None = None) -> "Generator":
        """Open a generator, the store's own unless another is named; see `open_generator`."""
        from filestore.generate import GeneratorChoice, open_generator

        choice = GeneratorChoice(
            name=name or self._settings.generator.name,
            options=self._settings.generator,
            machine=self._machine(),
            root=self._root,
        )
        return open_generator(choice)

    @property
    def generator_reaches(self) -> str | None:
        """The service that the settings would have generate from texts."""
        from filestore.generate import reaches_out

        return reaches_out(self._settings.generator)

    @property
    def own_prompts(self) -> "OwnPrompts | None":
        """The store's own prompts, as they are now."""
        from filestore.generate import own_prompts

        return own_prompts(self._settings.generator, self._root)

    def reranker(self, name: str) -> "Reranker":
        """Open a reranker, once; see `open_reranker`, which says what is raised."""
        from filestore.rerank import open_reranker

        if name not in self._rerankers:
            self._rerankers[name] = open_reranker(name, machine=self._machine(), root=self._root)
        return self._rerankers[name]


def open_model(choice: Choice) -> Model:
    """Open the model of a store, as far as that can be done without asking anybody."""
    opened = _open(choice)
    if opened.embedder is not None and not opened.embedder.is_known:
        problem = EndpointUnasked(
            f"{choice.name} was not asked yet how long its vectors are; the next sync asks",
            remedy="filestore sync",
        )
        return Model(embedder=None, problem=problem)
    return opened


def ask_model(choice: Choice) -> Model:
    """Open the model of a store, asking a service for the dimension if it is unknown."""
    opened = _open(choice)
    try:
        if opened.embedder is not None:
            opened.embedder.fingerprint  # noqa: B018 - asked for now, and remembered
    except (ModelUnusable, EndpointError) as error:
        return Model(embedder=None, problem=error)
    return opened


def _open(choice: Choice) -> Model:
    try:
        if choice.kind not in known_embedders():
            # A person who edits the settings may name a model as `init` lets them name it.
            folder, name = os.path.join(choice.root, choice.name), choice.name
            if os.path.isdir(folder):
                name = f"{_kind_of(folder)}:{name}"
            else:
                name = full_name(name, root=choice.root, machine=choice.machine)
            choice = replace(choice, name=name)
        embedder = open_embedder(choice)
        if embedder.is_known:
            embedder.fingerprint  # noqa: B018 - what cannot be named cannot be used
    except (
        UnknownEmbedder,
        ModelMissing,
        ModelUnusable,
        EndpointUntrusted,
        EndpointError,
    ) as error:
        return Model(embedder=None, problem=error)
    return Model(embedder=embedder)


def chosen_by(word: str, *, root: str, options: ModelOptions, machine: Machine) -> Choice:
    """The embedder that a person names; nothing is remembered before `remember` is called.

    A folder that is shared with the store is recorded relative to it; another one under its own
    name, and where it lies is the user's, because a store is shared.

    Args:
        word: A kind, ``kind:model``, a model's name, or a folder, relative to the working folder;
            one that is called as a known model is written ``./leaf``.
        root: The store's, absolute.
        options: How its model is to be used.
        machine: What is known here.

    Raises:
        UnknownEmbedder: It is none of these.
        ModelMissing: A model of that name is not here.
        ModelUnusable: Only torch could run it, which has to be asked for.
        UsageError: The folder's name is in use for another model, or an address is no service's.
    """
    from filestore.embed.models import DEFAULT_MODEL, MODELS, find_model, short_name

    kind, colon, model = word.partition(":")
    kind = kind.lower()
    if kind not in known_embedders():
        kind, model = "", word
    elif kind in FOLDER_KINDS:
        model = model if colon else DEFAULT_MODEL
    if options.endpoint and not is_service(kind):
        raise UsageError("--endpoint says where openai:MODEL is; name openai:MODEL as the embedder")
    choice = Choice(name=f"{kind}:{model}", options=options, machine=machine, root=root)
    if is_service(kind):
        return choice
    if kind and kind not in FOLDER_KINDS:
        if colon:
            raise UnknownEmbedder(word, known_embedders())
        return replace(choice, name=kind)
    place = os.path.expanduser(model)
    if model not in MODELS and os.path.isdir(place):
        folder = os.path.realpath(place)
        kind = kind or _light_kind(folder, word)
        model, machine = _recorded(folder, root, machine)
        return replace(choice, name=f"{kind}:{model}", machine=machine)
    if not kind:
        choice = replace(choice, name=full_name(word, root=root, machine=machine))
    elif short := short_name(model):
        choice = replace(choice, name=f"{kind}:{MODELS[short].hub}")
    known = short_name(choice.model)
    with contextlib.suppress(ModelMissing):
        if known:
            options = MODELS[known].completed(options, find_model(choice))
    return replace(choice, options=options)


def full_name(word: str, *, root: str, machine: Machine) -> str:
    """Kind and model of what a person names without a kind, and is no folder.

    Raises:
        UnknownEmbedder: It may be no model's.
        ModelMissing: The model is not here.
        ModelUnusable: Only torch could run it, which has to be asked for.
    """
    from filestore.embed.models import (
        BUNDLED,
        BUNDLED_INSTEAD,
        MODELS,
        find_model,
        installed_model,
        is_bundled,
        longer_names,
        may_be_on_hub,
        short_name,
        spelled,
    )

    key, short = spelled(word, machine.models), short_name(word)
    if key is None and is_bundled(word):
        return BUNDLED
    if word.startswith((".", "/", "~")):
        raise ModelMissing(f"there is no folder {word}", remedy="filestore embedder list")
    if key is None and short is None and not may_be_on_hub(word):
        known = (*known_embedders(), *MODELS, *machine.models)
        raise UnknownEmbedder(word, known, longer_names())
    model = MODELS[short].hub if short else key or word
    if model.partition(":")[0] in known_embedders():
        return model
    choice = Choice(name=f"onnx:{model}", machine=machine, root=root)
    try:
        folder = find_model(choice)
    except ModelMissing:
        # What it needs and does not find is reported at once.
        folder = installed_model(choice, feature="onnx", otherwise=BUNDLED_INSTEAD)
    return f"{_light_kind(folder, model)}:{model}"


def _light_kind(folder: str, word: str) -> str:
    """The kind that runs what a folder holds, if it is light enough to be taken unasked."""
    if _kind_of(folder) != "onnx" and any(
        name.endswith(".safetensors") for name in os.listdir(folder)
    ):
        raise ModelUnusable(
            f"the model {word} has no model.onnx: only torch can run it, which takes some 10 s of"
            " each command",
            remedy=f"filestore embedder set {shlex.quote(f'sentence-transformers:{word}')}",
        )
    return "onnx"


def _kind_of(folder: str) -> str:
    """How a model named without a kind is run: by what its folder holds."""
    exported = ("model.onnx", os.path.join("onnx", "model.onnx"))
    has_graph = any(os.path.isfile(os.path.join(folder, name)) for name in exported)
    return "onnx" if has_graph else "sentence-transformers"


def remember(choice: Choice, root: str, configuration: str) -> None:
    """Keep on the user's side what a choice needs: where its folder lies, which service it reaches.

    Raises:
        WriteFailedError: The disk refused.
    """
    known = machines.read_machine(configuration, os.environ).models
    folder = choice.machine.models.get(choice.model)
    if folder is not None and folder != known.get(choice.model):
        machines.remember_model(configuration, choice.model, folder)
    service = reaches_out(choice.name, choice.options)
    if service is not None:
        machines.trust(configuration, root, service)


def _recorded(folder: str, root: str, machine: Machine) -> tuple[str, Machine]:
    """The name of a folder in the settings, and a machine that knows where it lies."""
    tree = os.path.realpath(work_tree(root) or root)
    inside = os.path.relpath(folder, tree).split(os.sep)
    shared = not any(part.startswith(".") or part == "site-packages" for part in inside)
    if folder != tree and is_below(folder, tree) and shared:
        return os.path.relpath(folder, os.path.realpath(root)), machine
    # What it is called, past names that say nothing.
    parts = [part for part in folder.split(os.sep) if part]
    cached = [part for part in parts if part.startswith("models--")]
    if cached:
        name = cached[-1].removeprefix("models--").replace("--", "/")
    else:
        telling = [part for part in parts if part.lower() not in ("model", "onnx", "models")]
        name = (telling or parts)[-1]
    known = machine.models.get(name, folder)
    if known != folder:
        raise UsageError(
            f"the name {name!r} already names the model in {known}: rename one of the folders, or"
            " give the name to this one",
            remedy=f"filestore embedder use {shlex.quote(name)} {shlex.quote(folder)}",
        )
    return name, replace(machine, models={**machine.models, name: folder})
