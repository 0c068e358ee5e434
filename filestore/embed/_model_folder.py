"""What a folder with a model says of itself, and the fingerprint of its vector space.

Reads small JSON files only; loads no model. One rule: nothing in a folder is run. Modules are taken
from a list of known ones, because some versions of the libraries import any class a folder names,
and weights in pickles are refused. Another: no number is believed that is not of a likely size.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias, TypeGuard

import orjson
from msgspec import Meta, Struct

from filestore.config.settings import ModelOptions
from filestore.core.safe_text import brief, listed
from filestore.core.schema import UnfitError, converted, json_of
from filestore.embed import ModelUnusable
from filestore.fs import disk

_RECORD: Final = "filestore.json"
"""Lies next to an exported model: what it was made from, and the hash of what was made."""
TOKENIZER: Final = "tokenizer.json"
WEIGHTS: Final = "model.safetensors"
SHARDS: Final = "model.safetensors.index.json"
PICKLE: Final = "pytorch_model.bin"
POOLINGS: Final = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")

_JSON_LIMIT: Final = 16 * 1024 * 1024
_LENGTH: Final = 512
"""Where a folder does not say how many tokens its model takes."""
LARGEST: Final = 65_536
"""Numbers of a vector, or tokens of a window, that a folder may state; tokenizers without a limit
state one of 30 digits."""
_MOST_LAYERS: Final = 1_000
_LARGEST_TOKEN: Final = 2**31 - 1
_LAYERS: Final = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
_MODULES: Final = frozenset({"Transformer", "Pooling", "Dense", "Normalize"})
_POSITIONS_AFTER_PADDING: Final = frozenset(
    {"camembert", "data2vec-text", "longformer", "mpnet", "roberta", "xlm-roberta"}
)
"""Kinds of model whose first positions are taken by the padding."""
_ADAPTER: Final = "adapter_config.json"
_SHARD_ENDING: Final = ".safetensors"
Pooling: TypeAlias = Annotated[str, Meta(pattern=rf"^({'|'.join(POOLINGS)})\Z")]
Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_SHOWN: Final = 60
"""Characters of a text of the folder's, or of a name, that a message shows."""
_DOCUMENT_PROMPTS: Final = ("document", "passage", "corpus")
_POOLING_FLAGS: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


class Module(Struct, frozen=True, kw_only=True):
    """A part of a model, as its folder names it."""

    type: str
    path: str = ""


class ModelFolder(Struct, frozen=True, kw_only=True):
    """What a folder says."""

    path: str
    base: str
    """Where the transformer itself lies, relative to `path`; "" for the folder itself."""
    dimension: int
    pooling: tuple[str, ...]
    """How tokens become one vector; several are put side by side."""
    pools_prompt: bool
    """Whether a prefix counts when tokens are pooled."""
    dense: tuple[str, ...]
    """Folders of dense layers after pooling, relative to `path`."""
    length: int
    """The most tokens the model takes at once, special ones included."""
    limit: int | None
    """The most tokens of a text that the settings allow at once."""
    lower_case: bool
    """Whether texts are lower-cased before they are cut into tokens."""
    padding: int
    """The token that fills up a batch."""
    query_prefix: str
    document_prefix: str

    def file(self, *names: str) -> str:
        """The path of a file of the transformer."""
        return os.path.join(self.path, self.base, *names)


class Record(Struct, frozen=True, kw_only=True):
    """What an exported model was made from; it holds only for the very graph it names.

    It promises that the graph and its files of weights are the ones next to it when it was
    written: a graph that was changed or exchanged since has no record. It cannot prove that they
    were made from the weights it names: who can write a folder can write its record too, and claim
    any model. So a folder is worth as much as its sender; where a store has vectors of the
    model claimed, `check_canaries` notices a graph that gives other ones.
    """

    graph: Digest
    """`weights_digest` of ``model.onnx`` and the files with weights that it names: the SHA-256 of
    ``model.onnx`` itself where it names none."""
    weights: Digest
    """SHA-256 of the weights it was made from."""
    dimension: Annotated[int, Meta(ge=1, le=LARGEST)]
    pooling: Annotated[tuple[Pooling, ...], Meta(min_length=1, max_length=len(POOLINGS))]
    precision: Annotated[str, Meta(pattern=r"^(float32|int8)\Z")]


def read_folder(path: str, options: ModelOptions) -> ModelFolder:
    """Read what a folder says; options of the settings go before it.

    Raises:
        ModelUnusable: It lacks something, says something else than JSON, needs code of its own, or
            gives vectors of another dimension than the settings expect.
    """
    modules = _modules(path)
    base = modules[0][1]
    transformer = os.path.normpath(os.path.join(path, base))
    config = json_object(transformer, "config.json", needed=True)
    for key in _LAYERS:  # the library would build them for hours, weights or not
        value = config.get(key)
        if value is not None and not (type(value) is int and 0 <= value <= _MOST_LAYERS):
            raise unusable(path, f"says {key} is {brief(value)}, expected at most {_MOST_LAYERS:,}")
    if not os.path.isfile(os.path.join(path, base, TOKENIZER)):
        raise unusable(path, f"has no {os.path.join(base, TOKENIZER)}")
    stated = json_object(transformer, "sentence_bert_config.json")
    prompts = _prompts(json_object(path, "config_sentence_transformers.json"), path)
    pooling, pools_prompt = _pooling(path, modules)
    dense = tuple(place for kind, place in modules if kind == "Dense")
    query = prompts.get("query", prompts[""])
    document = next((prompts[key] for key in _DOCUMENT_PROMPTS if key in prompts), prompts[""])
    return ModelFolder(
        path=path,
        base=base,
        dimension=_dimension(path, config, pooling, dense),
        pooling=pooling,
        pools_prompt=pools_prompt,
        dense=dense,
        length=_length(config, stated, json_object(transformer, "tokenizer_config.json")),
        limit=options.max_tokens,
        lower_case=stated.get("do_lower_case") is True,
        padding=_padding(config),
        query_prefix=query if options.query_prefix is None else options.query_prefix,
        document_prefix=document if options.document_prefix is None else options.document_prefix,
    )


def weight_files(folder: ModelFolder) -> tuple[str, ...]:
    """The files with the weights, relative to the folder.

    Raises:
        ModelUnusable: There are none, they are pickles, or an adapter would change them.
    """
    if os.path.exists(folder.file(_ADAPTER)):
        raise unusable(folder.path, f"has an adapter ({_ADAPTER}), which is not supported")
    found = [_weights_in(folder.path, place) for place in (folder.base, *folder.dense)]
    return tuple(name for names in found for name in names)


def _weights_in(path: str, place: str) -> list[str]:
    names = [WEIGHTS]
    if not os.path.isfile(os.path.join(path, place, WEIGHTS)):
        index = json_object(os.path.join(path, place), SHARDS).get("weight_map")
        found = index.values() if isinstance(index, dict) else ()
        names = sorted({name if isinstance(name, str) else brief(name) for name in found})
    if not names and os.path.isfile(os.path.join(path, place, PICKLE)):
        raise ModelUnusable(
            f"{path} has its weights in {PICKLE}, a pickle, which can run code when it is loaded",
            remedy=f"convert them to {WEIGHTS}, or take a version of the model that has it",
        )
    if not names:
        raise unusable(path, f"has no weights: expected {os.path.join(place, WEIGHTS)}")
    for name in names:
        if not name.endswith(_SHARD_ENDING) or any(mark in name for mark in "/\\:\0"):
            raise unusable(path, f"names {clipped(name)!r} in {SHARDS}, expected a file of weights")
        if not os.path.isfile(os.path.join(path, place, name)):
            raise unusable(path, f"lacks {clipped(name)!r}, which {SHARDS} names")
    return [os.path.join(place, name) for name in names]


def own_record(folder: ModelFolder, weights: str, precision: str) -> Record:
    """The record of a model that is run as its folder describes it."""
    return Record(
        graph="",
        weights=weights,
        dimension=folder.dimension,
        pooling=folder.pooling,
        precision=precision,
    )


def fingerprint(folder: ModelFolder, record: Record) -> str:
    """The identity of the vectors, whatever runs the model.

    Holds weights, dimension, pooling, normalisation, precision, how long a window is and how
    windows are combined, and prefixes.
    """
    narrower = folder.limit is not None and folder.limit < folder.length
    window = f"{folder.length}:{folder.limit}" if narrower else f"{folder.length}"
    parts = [f"sha256:{record.weights}", str(record.dimension), "+".join(record.pooling)]
    parts += ["unit", record.precision, f"windows-{window}-mean"]
    prefixes = (("query", folder.query_prefix), ("document", folder.document_prefix))
    sound = [(name, text.encode("utf-8", "replace").decode()) for name, text in prefixes]
    parts += [f"{name}={orjson.dumps(text).decode()}" for name, text in sound if text]
    return "/".join(parts)


def read_record(path: str) -> Record | None:
    """What is next to an exported model; None where there is nothing, or nothing of use."""
    try:
        place = os.path.join(path, _RECORD)
        return parse_record(disk.read_path(place, limit=_JSON_LIMIT, follow_links=True))
    except OSError:
        return None


def parse_record(data: bytes) -> Record | None:
    """A record from its JSON; None where any of it is not what an export wrote."""
    try:
        return converted(json_of(data), Record)
    except ValueError:
        return None


def check_dimension(path: str, dimension: int, options: ModelOptions) -> None:
    """Compare the dimension with what the settings expect.

    Raises:
        ModelUnusable: It is another one.
    """
    if options.dimension not in (None, dimension):
        raise ModelUnusable(
            f"{path} gives vectors of dimension {dimension}, the settings expect"
            f" {options.dimension}",
            remedy="fix `model.dimension` in filestore.toml, or name the model it was made for",
        )


def unusable(path: str, what: str, detail: str = "") -> ModelUnusable:
    """A folder that is no model, in one sentence."""
    return ModelUnusable(
        f"the model folder {path} {what}",
        remedy="'filestore embedder list' lists the models here; or fetch it again",
        detail=detail,
    )


def clipped(text: str) -> str:
    """The start of a text that may be of any length, for a message."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _within(value: Any) -> TypeGuard[int]:
    """Whether it is a number of tokens, or of a vector's numbers, that can be true."""
    return type(value) is int and 0 < value <= LARGEST


def _modules(path: str) -> list[tuple[str, str]]:
    """Kind and folder of each module, the transformer first."""
    stated = stated_modules(path)
    if stated is None:
        return [("Transformer", "")]
    found = [(one.type, one.path) for one in stated]
    for kind, place in found:
        known = kind.startswith("sentence_transformers.") and kind.rpartition(".")[2] in _MODULES
        if not known or os.path.isabs(place) or ".." in place.split("/"):
            raise ModelUnusable(
                f"the model folder {path} needs a module that is not supported:"
                f" {clipped(kind)}, {clipped(place)!r}",
                remedy="name another model: a transformer with pooling, dense layers, normalising",
            )
    kinds = [(kind.rpartition(".")[2], place) for kind, place in found]
    if not kinds or kinds[0][0] != "Transformer":
        raise unusable(path, "does not begin with a transformer in its modules.json")
    return kinds


def _pooling(path: str, modules: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], bool]:
    """The poolings, and whether prompts are pooled too."""
    places = [place for kind, place in modules if kind == "Pooling"]
    stated = json_object(os.path.join(path, places[0]), "config.json") if places else {}
    mode = stated.get("pooling_mode")
    if mode is None:
        mode = [name for flag, name in _POOLING_FLAGS.items() if stated.get(flag) is True]
    modes = (mode,) if isinstance(mode, str) else tuple(mode) if isinstance(mode, list) else ()
    modes = modes or ("mean",)
    if len(modes) > len(POOLINGS) or not all(name in POOLINGS for name in modes):
        raise unusable(path, f"pools in a way that is not supported: {listed(map(brief, modes))}")
    return modes, stated.get("include_prompt") is not False


def _dimension(
    path: str, config: Mapping[str, Any], pooling: Sequence[str], dense: Sequence[str]
) -> int:
    if dense:
        stated = json_object(os.path.join(path, dense[-1]), "config.json", needed=True)
        activation = stated.get("activation_function", "torch.")
        if not isinstance(activation, str) or not activation.startswith("torch."):
            raise unusable(path, f"has an activation function of its own: {brief(activation)}")
        return _stated_dimension(path, stated, ("out_features",))
    return _stated_dimension(
        path, config, ("hidden_size", "d_model", "dim", "n_embd"), times=len(pooling)
    )


def _stated_dimension(
    path: str, stated: Mapping[str, Any], keys: Sequence[str], *, times: int = 1
) -> int:
    """The dimension that a description states, `times` as much."""
    key = next((key for key in keys if stated.get(key) is not None), None)
    if key is None:
        raise unusable(
            path, f"does not say how long its vectors are: no {keys[0]} in a config.json"
        )
    value = stated[key]
    if not (_within(value) and _within(value * times)):
        raise unusable(
            path,
            f"says {key} is {brief(value)}, expected vectors of 1 to {LARGEST:,} numbers",
        )
    return int(value * times)


def _length(
    config: Mapping[str, Any], stated: Mapping[str, Any], tokenizer: Mapping[str, Any]
) -> int:
    length, positions = stated.get("max_seq_length"), config.get("max_position_embeddings")
    if _within(length):
        return length
    if _within(positions) and config.get("model_type") in _POSITIONS_AFTER_PADDING:
        positions = positions - _padding(config) - 1
    limits = (positions, tokenizer.get("model_max_length"))
    return min((limit for limit in limits if _within(limit)), default=_LENGTH)


def _padding(config: Mapping[str, Any]) -> int:
    value = config.get("pad_token_id")
    return value if type(value) is int and 0 <= value <= _LARGEST_TOKEN else 0


def _prompts(stated: Mapping[str, Any], path: str) -> dict[str, str]:
    """Prompts by name; "" is the one where no other is named."""
    prompts = stated.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(one, str) for one in prompts.values()):
        raise unusable(path, "has prompts that are not texts in config_sentence_transformers.json")
    default = stated.get("default_prompt_name")
    return {"": prompts.get(default, "") if isinstance(default, str) else "", **prompts}


def stated_modules(
    folder: str, *, refusal: Callable[..., ModelUnusable] = unusable
) -> list[Module] | None:
    """The modules that a model says it is made of; None where it does not say.

    Raises:
        ModelUnusable: The file that names them cannot be read.
    """
    stated = _json_in(folder, "modules.json", refusal)
    try:
        return None if stated is None else converted(stated, list[Module])
    except UnfitError as error:
        problem = "has a modules.json that is not a list of modules"
        raise refusal(folder, problem, error.message) from error


def json_object(
    folder: str,
    name: str,
    *,
    needed: bool = False,
    refusal: Callable[..., ModelUnusable] = unusable,
) -> dict[str, Any]:
    """An object in a JSON file of a model; empty where there is no such file and none is needed.

    Raises:
        ModelUnusable: It is none, or it is needed and not there.
    """
    stated = _json_in(folder, name, refusal)
    if stated is None and needed:
        raise refusal(folder, f"has no {name}")
    if not isinstance(stated, dict | None):
        raise refusal(folder, f"has a {name} that is no JSON object")
    return stated or {}


def _json_in(folder: str, name: str, refusal: Callable[..., ModelUnusable]) -> Any:
    try:
        path = os.path.join(folder, name)
        return orjson.loads(disk.read_path(path, limit=_JSON_LIMIT, follow_links=True))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise refusal(folder, f"has a {name} that cannot be read", str(error)) from error
