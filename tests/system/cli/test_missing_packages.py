"""What is said where a package that runs a model is not installed: which model, which two ways out.

The packages are made to look absent, so that it is the same wherever the tests run.
"""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from filestore.config.user_config import Machine
from filestore.core.errors import (
    DISTRIBUTION,
    PACKAGES,
    extra_line,
    imported_name,
    install_line,
    missing_packages,
)
from filestore.embed import Choice, ModelMissing, open_embedder
from filestore.embed.models import fetch_model
from filestore.rerank import open_reranker
from filestore.server.http.app import AppParts, make_app
from filestore.server.stores import Stores
from filestore.sidecar.model import open_model
from tests.advice import all_words
from tests.system.conftest import Workspace

CHECKOUT = Path(__file__).resolve().parents[3]
RUNTIMES = ("onnx", "onnxruntime", "sentence_transformers", "tokenizers", "torch")


@pytest.fixture
def bare(without_packages: Any) -> None:
    """Nothing that runs a model is installed."""
    without_packages(*RUNTIMES, "huggingface_hub")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One that knows the folder of one model."""
    (tmp_path / "here").mkdir()
    return Machine(models={"here": str(tmp_path / "here")}, environment={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("onnx", "pip install onnxruntime tokenizers"),
        ("sentence-transformers", "pip install sentence-transformers tokenizers"),
    ],
)
@pytest.mark.usefixtures("bare")
def test_a_model_without_its_runtime_names_both_ways_out(
    machine: Machine, kind: str, line: str
) -> None:
    """The model is named, with the line that installs what runs it and the one that does without;
    where the model is not here either, what makes it so is said at once."""
    with pytest.raises(ModelMissing, match="'here' needs") as caught:
        open_embedder(Choice(name=f"{kind}:here", machine=machine))
    assert caught.value.remedy == (
        f"'{line}'; or take the model of the installation: `filestore embedder set minilm`"
    )
    with pytest.raises(ModelMissing, match="'some/model' needs") as caught:
        open_embedder(Choice(name=f"{kind}:some/model", machine=machine))
    line = line.replace("install", "install huggingface-hub")
    for words in (line, "filestore embedder fetch some/model", "embedder set minilm"):
        assert words in all_words(caught.value)


def test_only_what_lacks_is_installed(without_packages: Any, machine: Machine) -> None:
    """One package that is missing is named alone."""
    without_packages("onnxruntime", "tokenizers")
    assert missing_packages("onnx") == ("onnxruntime", "tokenizers")
    without_packages(*RUNTIMES)
    with pytest.raises(ModelMissing, match="needs sentence-transformers, which is not") as caught:
        open_reranker("cross-encoder:here", machine=machine, root="")
    assert "pip install sentence-transformers" in all_words(caught.value)
    assert "search without reranking" in all_words(caught.value)


@pytest.mark.usefixtures("bare")
def test_fetching_says_what_it_needs(tmp_path: Path) -> None:
    """It names the model and the line that installs what lacks."""
    with pytest.raises(ModelMissing, match=r"'some/model'.*huggingface-hub") as caught:
        fetch_model("some/model", environment={"HOME": str(tmp_path)})
    assert "pip install huggingface-hub && " in all_words(caught.value)
    assert "filestore embedder fetch some/model" in all_words(caught.value)


@pytest.mark.usefixtures("bare")
def test_a_store_names_its_model_also_without_the_runtime() -> None:
    """A store whose model cannot run here has no embedder, and why names the model."""
    model = open_model(Choice(name="onnx:nobody/has-this"))
    assert model.embedder is None
    assert "nobody/has-this" in model.why_not.message


def test_the_table_is_what_the_extras_install() -> None:
    """What is told to be installed is what the extras of a checkout install."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {
        name: {re.split("[<>=]", one)[0] for one in wanted}
        for name, wanted in project["optional-dependencies"].items()
    }
    assert extras["onnx"] == set(PACKAGES["onnx"])
    # With its version: another one has other weights.
    assert project["optional-dependencies"]["multilingual"] == [*PACKAGES["multilingual"]]
    assert extras["parquet"] == set(PACKAGES["parquet"])
    assert extras["server"] == set(PACKAGES["mcp"])
    assert extras["qdrant"] == set(PACKAGES["qdrant"])
    # torch and tokenizers come with sentence-transformers.
    comes_along = {"torch", "tokenizers"}
    assert extras["torch"] == set(PACKAGES["sentence-transformers"]) - comes_along


def installed_by(extra: str) -> set[str]:
    """The packages of an extra, and of the extras that it names."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    found = set()
    for wanted in project["optional-dependencies"][extra]:
        name = re.split("[<>=[]", wanted)[0]
        inner = re.findall(r"[\w-]+", wanted.partition("[")[2]) if name == DISTRIBUTION else ()
        found |= {name} if not inner else set().union(*map(installed_by, inner))
    return found


def test_what_is_told_to_be_installed_is_there_to_install() -> None:
    """Each extra that the program names exists, and each package that it names is in one.

    Both are taken from the code: calls that make lines, sentences, and the table of packages.
    """
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    named = set()
    for path in (one for room in ("filestore", "tui") for one in (CHECKOUT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name("extra_line") | ast.Attribute(attr="extra_line"),
                    args=[ast.Constant(value=str(extra))],
                ):
                    named.add(extra)
                case ast.Call(func=ast.Name("extra_line") | ast.Attribute(attr="extra_line")):
                    raise AssertionError(f"{path}: {ast.unparse(node)} names what no test sees")
                case ast.Constant(value=str(text)):
                    named.update(re.findall(r"\bthe extra '([\w-]+)'", text))
    assert {"server", "web"} <= named <= project["optional-dependencies"].keys()
    packages = {re.split("[<>=]", one)[0] for wanted in PACKAGES.values() for one in wanted}
    users = [one for one in project["optional-dependencies"] if not one.startswith("dev")]
    offered = set().union(*map(installed_by, users))
    offered |= {re.split("[<>=;]", one)[0].replace("_", "-") for one in project["dependencies"]}
    # It comes with psycopg[binary].
    assert packages - offered == {"psycopg-binary"}


def test_all_is_all_but_torch_and_frameworks() -> None:
    """And an old name installs what the new one does."""
    frameworks = {"langchain", "llama-index", "haystack"}
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    users = {one for one in project["optional-dependencies"] if not one.startswith("dev")}
    rest = users - frameworks - {"torch", "semantic", "all"}
    assert installed_by("all") == {"huggingface-hub"}.union(*map(installed_by, rest))
    assert installed_by("semantic") == installed_by("torch")
    assert installed_by("backends") == installed_by("pgvector") | installed_by("qdrant")


@pytest.mark.parametrize("feature", PACKAGES)
def test_every_feature_has_a_line_that_installs_it(without_packages: Any, feature: str) -> None:
    """The line names every package of it where none is installed."""
    without_packages(*map(imported_name, PACKAGES[feature]))
    assert install_line(feature).split() == ["pip", "install", *PACKAGES[feature]]


def test_without_the_sdk_agents_are_not_answered(
    without_packages: Any, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what installs it; `serve` goes on without them."""
    without_packages("mcp")
    monkeypatch.chdir(workspace.store)  # the line names the checkout as seen from here
    line = f"try: {extra_line('server')}\n"
    assert "[server]" in line
    assert line in workspace("mcp", code=3).stderr
    said = workspace("serve", "--port", "-1", code=3).stderr
    assert f"/mcp is off: agents need extra packages: {extra_line('server')}\n" in said
    assert "port -1 cannot be used" in said


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ("{}", "pip install 'filestore-index[server]'"),
        ('{"url": "file:///a/b.whl", "archive_info": {}}', "'filestore-index[server]'"),
        ('{"url": "file:///nowhere/a", "dir_info": {}}', "'filestore-index[server]'"),
        ('{"url": "file://PLACE", "dir_info": {"editable": true}}', "pip install 'PLACE[server]'"),
        ('{"url": "file://PLACE/a%20b", "dir_info": {}}', "pip install 'PLACE/a b[server]'"),
    ],
)
def test_an_extra_is_installed_from_where_the_rest_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str, line: str
) -> None:
    """From the checkout, by its path or as the current folder, or from the package index."""
    (tmp_path / "a b").mkdir()
    found = SimpleNamespace(read_text=lambda _: origin.replace("PLACE", str(tmp_path)))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: found)
    assert line.replace("PLACE", str(tmp_path)) in extra_line("server")
    monkeypatch.chdir(tmp_path)
    if line.endswith("PLACE[server]'"):
        assert extra_line("server") == "pip install '.[server]'"


def test_a_server_without_the_sdk_answers_all_else(without_packages: Any, tmp_path: Path) -> None:
    """HTTP and the page; agents are told what to install there."""
    without_packages("mcp")
    with Stores({}) as stores:
        app = make_app(AppParts(stores=stores, token=None, is_local=False))
        with TestClient(app) as client:
            assert client.get("/health").is_success
            assert client.get("/").is_success
            for path in ("/mcp", "/mcp/"):
                found = client.post(path, json={})
                assert (found.status_code, found.json()["remedy"]) == (501, extra_line("server"))


def test_what_serves_is_loaded_by_what_serves_alone(workspace: Workspace) -> None:
    """A search and a status pay for nothing of it."""
    packages = ("starlette", "uvicorn", "prometheus_client", "multipart", "mcp", "inotify_simple")
    script = (
        "import sys; from filestore.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        f"assert not [name for name in {packages} if name in sys.modules], sys.modules.keys()"
    )
    for words in (("search", "rent"), ("status",), ("--help",)):
        subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=workspace.store,
            check=True,
            stdout=subprocess.PIPE,
        )
