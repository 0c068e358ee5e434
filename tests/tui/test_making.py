"""A store made from within the inspector."""

from pathlib import Path

import pytest

from filestore import FilestoreError, Store
from tests.advice import advised
from tui.workers.task_manager import make_store


@pytest.mark.parametrize("kind", ["make", "example"])
def test_store_is_made_once(tmp_path: Path, kind: str) -> None:
    """What is made is a store that can be indexed; nothing that is there is overwritten."""
    root = make_store(str(tmp_path), configuration=str(tmp_path / "settings"), kind=kind)
    assert Path(root).parent == tmp_path
    assert not (Path(root) / ".undo").exists()
    with Store(root, configuration=str(tmp_path / "settings")) as store:
        store.sync()
        assert (len(store.resources()) > 0) is (kind == "example")
    kept = Path(root, "filestore.toml").read_bytes()
    with pytest.raises(FilestoreError) as refused:
        make_store(str(tmp_path), configuration=str(tmp_path / "settings"), kind=kind)
    assert advised(refused.value)
    assert Path(root, "filestore.toml").read_bytes() == kept
