"""Another model gives other vectors and changes no text: nothing is cut again or stale."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from filestore import embed
from filestore.embed._builtin import BuiltinEmbedder
from tests.system.conftest import Workspace, files_below, prose

LAYOUTS = ("tree", "flat", "in-place")
NOTES = {
    "notes/long.md": "# Long\n\n" + "".join(f"## {one}\n\n{prose(one)}\n" for one in "abcd"),
    "notes/灯塔.md": "# 灯塔\n\n" + "守望者每晚点亮灯塔，并记下船只的名字。" * 40 + "\n",
    "notes/tools.py": "".join(f"def tool_{n}():\n    return {n}\n\n\n" for n in range(90)),
}


class Opposite(BuiltinEmbedder):
    """Vectors of a space of their own."""

    name = "opposite"
    fingerprint = "opposite/1:384"
    lexical = False

    def embed_documents(self, texts: Any) -> Any:
        """The builtin one's, turned round."""
        return np.negative(super().embed_documents(texts))


@pytest.fixture(params=LAYOUTS)
def store(
    request: pytest.FixtureRequest,
    new_workspace: Callable[..., Workspace],
    monkeypatch: pytest.MonkeyPatch,
) -> Workspace:
    """A work tree with notes and no store yet, where a second kind of model is known."""
    module = ModuleType("filestore.embed._opposite")
    module.open_choice = lambda _: Opposite()  # type: ignore[attr-defined]
    monkeypatch.setitem(embed._REACHES_OUT, "opposite", False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = new_workspace(init=False)
    for path, text in NOTES.items():
        made.write(path, text)
    made.layout = request.param  # type: ignore[attr-defined]
    return made


def create(store: Workspace) -> None:
    """Make the store, and index the notes."""
    layout = store.layout  # type: ignore[attr-defined]
    if layout == "in-place":
        store("init", "--in-place", "--embedder", "builtin")
    else:
        store("init", "--layout", layout, "--embedder", "builtin")
        store("add", "notes")


def in_place(store: Workspace) -> bool:
    """Whether its documents are indexed where they lie."""
    return store.layout == "in-place"  # type: ignore[attr-defined]


def vectors(store: Workspace) -> int:
    """How many texts have one."""
    count: int = store.json("status")["index"]["vectors"]
    return count


def truth(store: Workspace) -> dict[str, bytes]:
    """Every file that is not derived and not the settings: path to bytes."""
    derived = (".sidecar", ".filestore/", ".undo", ".git/")
    return {
        path: data
        for path, data in files_below(store.folder).items()
        if not any(one in f"{path}" for one in derived) and not path.endswith("filestore.toml")
    }


def test_setting_another_model_changes_no_text(store: Workspace) -> None:
    """No file is written, no summary is stale, and the way back costs nothing."""
    create(store)
    store("enrich", "--summaries", "--questions", "1", "--yes")
    assert store("status").code == 0
    before = truth(store)
    for name, embeds in (("opposite", True), ("builtin", False)):
        done = store.json("embedder", "set", name, "--yes")
        assert (done["embedded"] > 0) is embeds
        assert store.json("status")["drift"] == {}
        assert truth(store) == before
        assert store.json("sync")["applied"] == []
    assert truth(store) == before
