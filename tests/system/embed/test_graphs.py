"""A graph of a model: the same vectors, and their name as long as its record holds."""

import shutil
import warnings
from pathlib import Path

import pytest

from filestore.config.settings import ModelOptions
from filestore.embed import Choice, Embedder, ModelUnusable, open_embedder
from tests import tiny_model

tiny_model.skip_without_runtimes()

pytestmark = pytest.mark.model

TEXTS = [
    "The writer holds the lock.",
    "",
    "Bananas ripen next to apples. " * 30,
    "目录从文件重建。",
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with what a graph must take in: two poolings, a dense layer, prompts."""
    folder = tmp_path_factory.mktemp("source") / "model"
    prompts = {"query": "who is ", "document": "files of "}
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    return tiny_model.write_tiny_model(folder, prompts=prompts, **modes)


@pytest.fixture(scope="module")
def exported(source: Path) -> Path:
    """It, as a graph."""
    return tiny_model.write_graph(source, source.parent / "graph")


def opened(kind: str, folder: Path, **options: str | int) -> Embedder:
    """A model by its folder."""
    return open_embedder(Choice(name=f"{kind}:{folder}", options=ModelOptions(**options)))


def same(one: Embedder, other: Embedder) -> bool:
    """Whether two embedders give the same vectors to texts and to questions."""
    rows = [embedder.embed_documents(TEXTS) for embedder in (one, other)]
    questions = [embedder.embed_query("lock file") for embedder in (one, other)]
    near = (rows[0] * rows[1]).sum(axis=1).min() > 0.9999
    return bool(near and float(questions[0] @ questions[1]) > 0.9999)


def test_a_graph_is_the_model_by_another_runtime(source: Path, exported: Path) -> None:
    """Vectors, questions, fingerprint and dimension are those of the model."""
    graph, original = opened("onnx", exported), opened("sentence-transformers", source)
    assert graph.fingerprint == original.fingerprint
    assert graph.dimension == original.dimension == 128
    assert same(graph, original)


def test_prefixes_of_the_settings_go_before_the_models(source: Path, exported: Path) -> None:
    """Both runtimes put the same prefix before texts, and it is part of the fingerprint."""
    chosen = {"query_prefix": "", "document_prefix": "the "}
    graph, original = (
        opened(kind, folder, **chosen)
        for kind, folder in (("onnx", exported), ("sentence-transformers", source))
    )
    assert graph.fingerprint == original.fingerprint != opened("onnx", exported).fingerprint
    assert same(graph, original)
    assert not same(graph, opened("onnx", exported))


def test_a_dense_layer_goes_into_the_graph(tmp_path: Path) -> None:
    """A graph that pools shortens vectors as its model does, recorded or not.

    One that lacks the layer is refused: it gives tokens, or vectors of another length.
    """
    import onnx

    source = tiny_model.write_tiny_model(tmp_path / "model", dense=12)
    folder = tiny_model.write_graph(source, tmp_path / "graph")
    graph = opened("onnx", folder)
    original = opened("sentence-transformers", source)
    assert graph.fingerprint == original.fingerprint
    assert graph.dimension == 12
    assert same(graph, original)
    shutil.copyfile(folder / "model.onnx", source / "model.onnx")
    unrecorded = opened("onnx", source)
    assert unrecorded.fingerprint != original.fingerprint
    assert same(unrecorded, original)
    model = onnx.load(source / "model.onnx")
    (output,) = model.graph.output
    for node in model.graph.node:
        node.output[:] = ["last_hidden_state" if one == output.name else one for one in node.output]
    output.name = "last_hidden_state"
    onnx.save(model, source / "model.onnx")
    with pytest.raises(ModelUnusable, match="a dense layer") as caught:
        opened("onnx", source).embed_query("lock")
    assert f"sentence-transformers:{source}" in caught.value.message
    plain = tiny_model.write_graph(
        tiny_model.write_tiny_model(tmp_path / "plain"), tmp_path / "plain-graph"
    )
    shutil.copyfile(plain / "model.onnx", source / "model.onnx")
    with pytest.raises(ModelUnusable, match=r"where .* was expected"):
        opened("onnx", source).embed_query("lock")


def test_a_changed_graph_claims_nothing(source: Path, exported: Path, tmp_path: Path) -> None:
    """A graph that is not the one written has a fingerprint of its own."""
    pooled = tiny_model.write_tiny_model(tmp_path / "other", pooling_mode="max")
    other = tiny_model.write_graph(pooled, tmp_path / "other-graph")
    folder = Path(shutil.copytree(exported, tmp_path / "changed"))
    shutil.copyfile(other / "model.onnx", folder / "model.onnx")
    known = {opened("onnx", exported).fingerprint, opened("onnx", other).fingerprint}
    said = tiny_model
    said.write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": ["cls", "mean"]})
    module = {"path": "", "type": "sentence_transformers.models.Transformer"}
    pooling = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    said.write_json(folder / "modules.json", [module, pooling])
    assert opened("onnx", folder).fingerprint not in known


def test_pooling_outside_the_graph_gives_the_same(source: Path, tmp_path: Path) -> None:
    """A graph that gives tokens, as hubs have them, is pooled as the folder says."""
    import torch
    from transformers import BertModel

    folder = Path(shutil.copytree(source, tmp_path / "tokens"))
    model = BertModel.from_pretrained(folder).eval()
    numbers = torch.tensor([[1, 2, 3], [1, 2, 0]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    names = ["input_ids", "attention_mask"]

    class Tokens(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, given: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=given, attention_mask=mask).last_hidden_state

    (folder / "onnx").mkdir()
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            Tokens().eval(),
            (numbers, mask),
            folder / "onnx" / "model.onnx",
            input_names=names,
            output_names=["last_hidden_state"],
            dynamic_axes={name: {0: "n", 1: "length"} for name in (*names, "last_hidden_state")},
            dynamo=False,
        )
    graph, original = opened("onnx", folder), opened("sentence-transformers", folder)
    assert graph.fingerprint != original.fingerprint
    assert same(graph, original)
