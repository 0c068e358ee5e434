"""Models on disk: where they are found, what is refused and how it is said, what is remembered."""

import json
import os
import shlex
import shutil
import sys
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from filestore.config.settings import ModelOptions
from filestore.config.user_config import Machine
from filestore.embed import Choice, Embedder, ModelMissing, ModelUnusable, open_embedder
from filestore.embed._builtin import BuiltinEmbedder
from filestore.embed.models import fetch_model, file_digest, find_model, try_out, weights_digest
from tests import tiny_model
from tests.advice import all_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

tiny_model.skip_without_runtimes()

pytestmark = pytest.mark.model

SNAPSHOT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that no test changes."""
    return tiny_model.write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def graph(original: Path) -> Path:
    """It, as a graph; no test changes it."""
    return tiny_model.write_graph(original, original.parent / "graph")


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    """A copy to be spoilt."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def opened(folder: Path, kind: str = "sentence-transformers", **options: str | int) -> Embedder:
    """A model by its folder."""
    return open_embedder(Choice(name=f"{kind}:{folder}", options=ModelOptions(**options)))


def cached(folder: Path, name: str, model: Path) -> Path:
    """A model as the hub's library leaves it in its cache."""
    place = folder / f"models--{name.replace('/', '--')}"
    shutil.copytree(model, place / "snapshots" / SNAPSHOT)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(SNAPSHOT)
    return place / "snapshots" / SNAPSHOT


def changed(path: Path, **values: object) -> None:
    """Write other values into a JSON file; 1e400 and the like become what JSON has for them."""
    said = json.loads(path.read_text()) | values
    path.write_text(json.dumps(said).replace("Infinity", "1e308"))


def external(graph: Path, folder: Path, name: str) -> Path:
    """A copy of a graph, without its record, whose weights are in a file of their own."""
    import onnx

    shutil.copytree(graph, folder)
    (folder / "filestore.json").unlink()
    model = onnx.load(folder / "model.onnx")
    (folder / "model.onnx").unlink()
    onnx.save_model(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=name,
        size_threshold=64,
    )
    return folder


def rename_weights(path: Path, place: str) -> None:
    """Let every tensor of a graph lie elsewhere."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = place
    path.write_bytes(model.SerializeToString())


def test_a_name_the_machine_knows_goes_first(tmp_path: Path) -> None:
    """A known name is found before a folder of that name; the runtime's own entry goes first."""
    known, other, beside = (tmp_path / name for name in ("known", "other", "tiny"))
    for folder in (known, other, beside):
        folder.mkdir()
    machine = Machine(models={"tiny": str(known), "onnx:tiny": str(other)})
    root = str(tmp_path)
    assert find_model(Choice(name="sentence-transformers:tiny", machine=machine, root=root)) == str(
        known
    )
    assert find_model(Choice(name="onnx:tiny", machine=machine, root=root)) == str(other)
    assert find_model(Choice(name="onnx:tiny", root=root)) == str(beside)
    assert find_model(Choice(name=f"onnx:{beside}")) == str(beside)


def test_a_known_name_whose_folder_went_is_told(tmp_path: Path) -> None:
    """A folder that is no longer there is named; nothing else is taken in its place."""
    (tmp_path / "tiny").mkdir()
    machine = Machine(models={"tiny": str(tmp_path / "gone")})
    with pytest.raises(ModelMissing, match="gone, where no folder is now"):
        find_model(Choice(name="onnx:tiny", machine=machine, root=str(tmp_path)))


@pytest.mark.parametrize(
    "variables",
    [
        {"HF_HUB_CACHE": "{}"},
        {"HF_HOME": "{}/..", "XDG_CACHE_HOME": "/nowhere"},
        {"XDG_CACHE_HOME": "{}/../.."},
        {"HOME": "{}/../../.."},
    ],
)
def test_the_hubs_cache_is_looked_into(
    original: Path, tmp_path: Path, variables: Mapping[str, str]
) -> None:
    """A model that was downloaded once is found, by its short name too, wherever the cache is."""
    hub = tmp_path / ".cache" / "huggingface" / "hub"
    snapshot = cached(hub, "sentence-transformers/all-MiniLM-L6-v2", original)
    environment = {name: value.format(hub) for name, value in variables.items()}
    machine = Machine(environment=environment)
    for name in ("onnx", "onnx:all-MiniLM-L6-v2", "onnx:sentence-transformers/all-MiniLM-L6-v2"):
        found = find_model(Choice(name=name, machine=machine))
        assert os.path.samefile(found, snapshot)


@pytest.mark.parametrize("revision", ["", "../../../else", "\x00", "ü", "f" * 400])
def test_a_damaged_cache_holds_no_model(original: Path, tmp_path: Path, revision: str) -> None:
    """A reference that is no revision leads nowhere."""
    snapshot = cached(tmp_path, "one/model", original)
    (snapshot.parent.parent / "refs" / "main").write_text(revision, "utf-8")
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    with pytest.raises(ModelMissing):
        find_model(Choice(name="onnx:one/model", machine=machine))


@pytest.mark.parametrize("kind", ["onnx", "sentence-transformers"])
def test_a_missing_model_says_what_to_do(tmp_path: Path, kind: str) -> None:
    """The message names the model; the remedy gives both ways to get it."""
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    with pytest.raises(ModelMissing, match="someone/else") as caught:
        open_embedder(Choice(name=f"{kind}:someone/else", machine=machine))
    assert "filestore embedder use someone/else FOLDER" in all_words(caught.value)
    assert "filestore embedder fetch someone/else" in all_words(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("name", "is_offered"),
    [
        ("someone/else", True),
        ("all-MiniLM-L6-v2", True),
        ("sentence-transformers/all-MiniLM-L6-v2", True),
        ("minilm-onnx", False),
        ("one/two/three", False),
        ("./graph", False),
        ("~/graph", False),
        ("models/", False),
        ("a b/c", False),
    ],
)
def test_only_what_a_hub_may_have_is_offered_for_download(
    tmp_path: Path, name: str, is_offered: bool
) -> None:
    """Fetching is suggested for names as on the hub and for the default model, for nothing else."""
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    with pytest.raises(ModelMissing) as caught:
        find_model(Choice(name=f"onnx:{name}", machine=machine, root=str(tmp_path)))
    assert f"embedder use {shlex.quote(name)} FOLDER" in all_words(caught.value)
    assert ("embedder fetch" in all_words(caught.value)) is is_offered


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_looked_for(tmp_path: Path, name: str) -> None:
    """Nothing to download is said as such, with an example."""
    with pytest.raises(ModelMissing, match="no model is named") as caught:
        fetch_model(name, environment={"HF_HUB_CACHE": str(tmp_path)})
    assert "filestore embedder fetch sentence-transformers/" in all_words(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_name_of_any_length_makes_a_short_message(tmp_path: Path, model: Path) -> None:
    """Names and prefixes are shown by their start."""
    name = "x" * 4000
    environment = {"HF_HUB_CACHE": str(tmp_path)}
    with pytest.raises(ModelMissing, match=r"x{50}") as missing:
        find_model(Choice(name=f"onnx:{name}", machine=Machine(environment=environment)))
    with pytest.raises(ModelMissing, match=r"x{50}") as refused:
        fetch_model(f"{name}/{name}", environment=environment)
    with pytest.raises(ModelUnusable, match="the the") as full:
        opened(model, document_prefix="the " * 1000).embed_query("lock")
    for caught in (missing, refused, full):
        assert len(caught.value.message) + len(caught.value.remedy) < 800
    assert "the " * 20 not in full.value.message


def test_a_download_that_fails_says_why(tmp_path: Path) -> None:
    """A name the hub cannot have is refused, with the ways that remain."""
    with pytest.raises(ModelMissing, match="cannot be downloaded") as caught:
        fetch_model("no such/model name/at all", environment={"HF_HUB_CACHE": str(tmp_path)})
    assert "filestore embedder use" in all_words(caught.value)


def test_weights_must_be_there_and_no_pickle(model: Path) -> None:
    """A folder without weights, or with pickled ones, is refused when it is opened."""
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(ModelUnusable, match="a pickle") as caught:
        opened(model)
    assert "convert" in all_words(caught.value)
    (model / "pytorch_model.bin").unlink()
    with pytest.raises(ModelUnusable, match=r"has no weights: expected model\.safetensors"):
        opened(model)


def test_a_graph_must_be_there(original: Path) -> None:
    """A model without a graph is no ONNX model; the remedy makes one."""
    with pytest.raises(ModelUnusable, match=r"has no model\.onnx") as caught:
        opened(original, "onnx")
    assert 'backend="onnx").save_pretrained' in all_words(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("config.json", None, "has no config.json"),
        ("config.json", "{", "has a config.json that cannot be read"),
        ("config.json", "[]", "has a config.json that is no JSON object"),
        ("config.json", "{}", "does not say how long its vectors are"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("modules.json", "[]", "does not begin with a transformer"),
        ("modules.json", "{}", "not a list of modules"),
        ("modules.json", "[1]", "not a list of modules"),
        ("1_Pooling/config.json", '{"pooling_mode": "magic"}', "not supported"),
        ("config_sentence_transformers.json", '{"prompts": {"query": 1}}', "not texts"),
    ],
)
def test_a_damaged_description_is_told_when_opened(
    model: Path, name: str, content: str | None, expected: str
) -> None:
    """What is wrong with a small file is said in one sentence that names the folder."""
    (model / name).unlink()
    if content is not None:
        (model / name).write_text(content)
    with pytest.raises(ModelUnusable, match=expected) as caught:
        opened(model)
    assert str(model) in caught.value.message


@pytest.mark.parametrize("value", [384_000_000_000_000, 65_537, 10**30, 1e400, 0, -5, True, "64"])
@pytest.mark.parametrize("kind", ["onnx", "sentence-transformers"])
def test_a_dimension_that_cannot_be_is_refused_when_opened(
    original: Path, graph: Path, tmp_path: Path, kind: str, value: object
) -> None:
    """A folder that claims vectors of no likely length is told so, before anything is made."""
    folder = Path(shutil.copytree(graph if kind == "onnx" else original, tmp_path / "liar"))
    changed(folder / "config.json", hidden_size=value)
    with pytest.raises(ModelUnusable, match=r"hidden_size|how long its vectors are") as caught:
        opened(folder, kind)
    assert len(caught.value.message) < 200 + len(str(folder))


@pytest.mark.parametrize("length", [-1, 0, 65_537, 10**18, 10**30, True, "many"])
def test_a_length_that_cannot_be_counts_as_unsaid(model: Path, length: object) -> None:
    """A window of no likely length is not believed; the model's positions say how long it is."""
    changed(model / "sentence_bert_config.json", max_seq_length=length)
    assert opened(model).fingerprint.endswith("/windows-64-mean")


@pytest.mark.parametrize("layers", [1001, 10**9, -1, "two"])
def test_a_model_of_endless_layers_is_refused_when_opened(model: Path, layers: object) -> None:
    """Layers without weights would be made all the same; far too many are refused."""
    changed(model / "config.json", num_hidden_layers=layers)
    with pytest.raises(ModelUnusable, match="num_hidden_layers"):
        opened(model)


@pytest.mark.parametrize("dimension", [-5, 0, 10**9, 10**18, "64", None])
def test_a_record_with_no_likely_dimension_counts_as_none(
    graph: Path, tmp_path: Path, dimension: object
) -> None:
    """A graph whose record is damaged is a model of its own, of the dimension that it has."""
    folder = Path(shutil.copytree(graph, tmp_path / "graph"))
    changed(folder / "filestore.json", dimension=dimension)
    embedder = opened(folder, "onnx")
    assert embedder.dimension == 64
    assert embedder.fingerprint != opened(graph, "onnx").fingerprint
    try_out(embedder)


def test_no_room_is_made_for_what_a_folder_claims(graph: Path, tmp_path: Path) -> None:
    """A folder that claims 65,536 numbers a vector and gives 64 is refused without the memory."""
    folder = Path(shutil.copytree(graph, tmp_path / "liar"))
    changed(folder / "filestore.json", dimension=65_536)
    changed(folder / "config.json", hidden_size=65_536)
    embedder = opened(folder, "onnx")
    texts = ["lock", ""] * 2000
    tracemalloc.start()
    try:
        with pytest.raises(ModelUnusable, match=r"gives \(1, 64\).*\(1, 65536\)"):
            embedder.embed_documents(texts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000_000


@pytest.mark.parametrize("padding", [10**9, 10**18, 10**30])
def test_a_token_that_cannot_be_is_told(model: Path, padding: int) -> None:
    """A filling token out of the vocabulary ends in a sentence that names the folder."""
    changed(model / "config.json", pad_token_id=padding)
    with pytest.raises(ModelUnusable, match=str(model)):
        opened(model).embed_documents(["lock", "the lock file"])


@pytest.mark.parametrize("padding", [10**9, 10**18, 10**30, -1])
def test_a_graph_s_filling_is_told_or_not_believed(
    graph: Path, tmp_path: Path, padding: int
) -> None:
    """A graph fails on a token it does not have, and is never given one that is no token."""
    folder = Path(shutil.copytree(graph, tmp_path / "graph"))
    changed(folder / "config.json", pad_token_id=padding)
    embedder = opened(folder, "onnx")
    if padding == 10**9:
        with pytest.raises(ModelUnusable, match="cannot be run"):
            embedder.embed_documents(["lock", "the lock file"])
        return
    expected = opened(graph, "onnx").embed_documents(["lock", "the lock file"])
    found = embedder.embed_documents(["lock", "the lock file"])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["../other.safetensors", "/etc/passwd", "shard.bin", "gone"])
def test_a_shard_lies_beside_the_others(model: Path, name: str) -> None:
    """Weights in parts are files of weights in the folder itself."""
    (model / "model.safetensors").rename(model / "shard.bin")
    tiny_model.write_json(model / "model.safetensors.index.json", {"weight_map": {"a": name}})
    with pytest.raises(ModelUnusable, match=r"model\.safetensors\.index\.json"):
        opened(model)


def test_an_adapter_is_refused(model: Path) -> None:
    """Weights that a library would change while loading are not what was hashed."""
    tiny_model.write_json(model / "adapter_config.json", {})
    with pytest.raises(ModelUnusable, match="adapter"):
        opened(model)


def test_other_weights_beside_a_graph_are_another_model(graph: Path, tmp_path: Path) -> None:
    """Whatever the file with a graph's weights is called, it is part of the fingerprint."""
    folder = external(graph, tmp_path / "graph", "weights.bin")
    before = opened(folder, "onnx")
    try_out(before)
    path = folder / "weights.bin"
    path.write_bytes(path.read_bytes()[::-1])
    assert opened(folder, "onnx").fingerprint != before.fingerprint
    path.unlink()
    with pytest.raises(ModelUnusable, match=r"lacks 'weights\.bin'"):
        opened(folder, "onnx")


def test_a_record_vouches_for_the_weights_beside_the_graph_too(graph: Path, tmp_path: Path) -> None:
    """A record holds while graph and weights are the files that it names, and no longer."""
    folder = external(graph, tmp_path / "graph", "weights.bin")
    shutil.copyfile(graph / "filestore.json", folder / "filestore.json")
    only_graph = file_digest(str(folder / "model.onnx"), "")
    changed(folder / "filestore.json", graph=only_graph)
    exported = opened(graph, "onnx").fingerprint
    assert opened(folder, "onnx").fingerprint != exported
    whole = weights_digest(str(folder), ["model.onnx", "weights.bin"], "")
    changed(folder / "filestore.json", graph=whole)
    assert opened(folder, "onnx").fingerprint == exported
    path = folder / "weights.bin"
    path.write_bytes(path.read_bytes()[::-1])
    assert opened(folder, "onnx").fingerprint != exported


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "../weights.bin", "sub/weights.bin", "C:weights.bin", "..", "*/_ORT/*"]
)
def test_weights_elsewhere_are_refused(graph: Path, tmp_path: Path, place: str) -> None:
    """A graph may only name files beside it."""
    folder = external(graph, tmp_path / "graph", "weights.bin")
    shutil.copyfile(folder / "weights.bin", tmp_path / "weights.bin")
    rename_weights(folder / "model.onnx", place)
    with pytest.raises(ModelUnusable, match="next to it") as caught:
        opened(folder, "onnx")
    assert place in caught.value.message


def test_a_model_that_runs_passes_its_trial(original: Path, graph: Path) -> None:
    """Embedders that work are told nothing."""
    for embedder in (BuiltinEmbedder(), opened(original), opened(graph, "onnx")):
        assert try_out(embedder) is None


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "{}",
        "[]",
        '{"model": {"type": "WordPiece", "vocab": {"b": 0}, "unk_token": "[UNK]",'
        ' "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}}',
        '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},'
        ' "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}',
        '{"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}}',
    ],
)
@pytest.mark.parametrize("kind", ["onnx", "sentence-transformers"])
def test_a_tokenizer_that_cannot_work_fails_the_trial(
    original: Path, graph: Path, tmp_path: Path, kind: str, content: str
) -> None:
    """A damaged tokenizer is found by trying, also where its library panics."""
    folder = Path(shutil.copytree(graph if kind == "onnx" else original, tmp_path / "broken"))
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelUnusable, match=str(folder)):
        try_out(opened(folder, kind))


@pytest.mark.parametrize(
    "said", [{"num_attention_heads": 0}, {"pad_token_id": 5000}, {"hidden_act": "magic"}]
)
def test_a_model_that_contradicts_itself_fails_the_trial(
    model: Path, said: dict[str, object]
) -> None:
    """Whatever the library ends with, it is a sentence that names the folder."""
    changed(model / "config.json", **said)
    with pytest.raises(ModelUnusable, match=str(model)):
        try_out(opened(model))


class Fixed(BuiltinEmbedder):
    """Gives the same answer to whatever is asked."""

    def __init__(self, answer: "NDArray[np.float32]") -> None:
        super().__init__()
        self._answer = answer

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """What it was given."""
        return self._answer


@pytest.mark.parametrize(
    "answer", [np.ones((1, 3)), np.zeros((1, 384)), np.ones((1, 384)), np.full((1, 384), np.nan)]
)
def test_vectors_of_another_shape_or_length_fail_the_trial(answer: "NDArray[np.float32]") -> None:
    """What breaks the contract of embedders is found by one text."""
    with pytest.raises(ModelUnusable, match="builtin gives"):
        try_out(Fixed(answer))


@pytest.mark.parametrize(
    "kind", ["my_code.Pooling", "os.Transformer", "sentence_transformers.Boom"]
)
def test_no_code_of_a_model_is_run(model: Path, kind: str) -> None:
    """A module that is not a known one is refused before anything is imported."""
    (model / "my_code.py").write_text("raise SystemExit('was run')")
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["type"] = kind
    (model / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelUnusable, match="not supported"):
        opened(model)
    assert "my_code" not in sys.modules


def test_a_damaged_tokenizer_is_told_when_used(model: Path) -> None:
    """A tokenizer that the library refuses is a sentence, not a traceback."""
    (model / "tokenizer.json").write_text('{"version": "1.0"}')
    embedder = opened(model)
    with pytest.raises(ModelUnusable, match=r"tokenizer\.json that cannot be used"):
        embedder.embed_query("a text")


def test_weights_cut_short_are_told_when_used(model: Path) -> None:
    """Weights of which the end is missing are refused when they are loaded."""
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ModelUnusable, match="cannot be loaded"):
        opened(model).embed_query("lock")


@pytest.mark.parametrize("kept", [0, 100, 20_000])
def test_a_graph_cut_short_is_told_when_used(graph: Path, tmp_path: Path, kept: int) -> None:
    """A graph of which the end is missing is refused when it is loaded."""
    folder = Path(shutil.copytree(graph, tmp_path / "cut"))
    path = folder / "model.onnx"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelUnusable, match=r"model\.onnx that cannot be loaded|gives \[\]"):
        opened(folder, "onnx").embed_query("lock")


def test_weights_that_are_no_numbers_name_the_text(model: Path) -> None:
    """A model that gives NaN is refused, with the start of the text."""
    from safetensors.torch import load_file, save_file

    weights = load_file(model / "model.safetensors")
    weights["embeddings.LayerNorm.weight"][:] = float("nan")
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelUnusable, match=r"NaN.*begins 'The lighthouse"):
        opened(model).embed_documents(["The lighthouse was built of granite."])


def test_another_dimension_than_expected_is_refused(model: Path) -> None:
    """The settings' dimension is compared with the model's."""
    assert opened(model, dimension=64).dimension == 64
    with pytest.raises(ModelUnusable, match="dimension 64, the settings expect 384"):
        opened(model, dimension=384)


def test_a_shorter_limit_cuts_texts_into_more_windows(model: Path) -> None:
    """A limit below the model's own is the length of windows, and gives a space of its own."""
    whole, cut = opened(model), opened(model, max_tokens=10)
    assert opened(model, max_tokens=1000).fingerprint == whole.fingerprint != cut.fingerprint
    text = "apples " * 20
    assert float(whole.embed_query(text) @ cut.embed_query(text)) < 0.99999
    assert float(whole.embed_query("apples") @ cut.embed_query("apples")) > 0.99999


def test_a_prefix_takes_its_room(model: Path) -> None:
    """A prefix that leaves a window no room for text is refused."""
    with pytest.raises(ModelUnusable, match="takes 40 tokens"):
        opened(model, document_prefix="the " * 40).embed_documents(["lock"])


def test_what_the_tokenizers_file_bakes_in_is_undone(original: Path) -> None:
    """Cutting and filling asked for by the file does not change vectors."""
    embedder = opened(original)
    start = "the lock " * 9
    vectors = embedder.embed_documents([start, f"{start} bananas"])
    assert float(vectors[0] @ vectors[1]) < 1 - 1e-4


def test_vectors_are_those_of_the_library(original: Path) -> None:
    """A text that fits gets the vector that sentence-transformers itself gives it."""
    from sentence_transformers import SentenceTransformer

    from filestore.embed.models import quiet_libraries

    texts = ["The writer holds the lock.", "bananas, apples; and files", "目录从文件重建。", "x"]
    with quiet_libraries():
        library = SentenceTransformer(str(original), device="cpu", local_files_only=True)
    expected = library.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(opened(original).embed_documents(texts), expected, atol=1e-5)


def test_a_long_text_is_the_mean_of_its_windows(original: Path) -> None:
    """A text of two windows lies between them; nothing of it is left out."""
    embedder = opened(original)
    first, second = "lock " * 38, "apples " * 38
    whole = embedder.embed_documents([first + second])[0]
    parts = embedder.embed_documents([first, second])
    mean = parts.sum(axis=0) / np.linalg.norm(parts.sum(axis=0))
    np.testing.assert_allclose(whole, mean, atol=1e-5)


def test_nothing_is_said_on_the_terminal(original: Path, script) -> None:
    """Loading and embedding write neither bars nor warnings."""
    program = (
        "import sys; from filestore.embed import *\n"
        "open_embedder(Choice(name='sentence-transformers:' + sys.argv[1])).embed_query('lock')"
    )
    done = script(program, original)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")


def test_hashes_are_remembered_until_a_file_changes(tmp_path: Path) -> None:
    """A hash comes from the cache as long as the file is the same, and not after it changed."""
    path, cache = tmp_path / "weights", tmp_path / "cache"
    path.write_bytes(b"one")
    os.utime(path, ns=(1, 1))
    first = file_digest(str(path), str(cache))
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert file_digest(str(path), str(cache)) != first


def test_a_hash_of_a_settled_file_is_read_from_the_cache(original: Path, tmp_path: Path) -> None:
    """What is remembered is used: an entry for the file as it is answers for it."""
    path = os.path.realpath(original / "model.safetensors")
    status = os.stat(path)
    stamps = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    entry = {path: {"stamps": stamps, "sha256": "5" * 64}}
    (tmp_path / "weights.json").write_text(json.dumps(entry))
    assert file_digest(path, str(tmp_path)) == "5" * 64


@pytest.mark.parametrize("content", ["", "[]", '{"x": 1}', "\x00"])
def test_a_cache_that_cannot_be_used_is_no_error(tmp_path: Path, content: str) -> None:
    """A damaged or unwritable cache of hashes changes nothing but time."""
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    (tmp_path / "weights.json").write_text(content)
    expected = file_digest(str(path), "")
    assert file_digest(str(path), str(tmp_path)) == expected
    assert file_digest(str(path), str(path)) == expected
