"""A store made from within the inspector, and the measurement of its loop."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import FilestoreError, Store
from tui.backstage import heartbeat
from tui.backstage.heartbeat import lag_of
from tui.backstage.making import make_store


@pytest.mark.parametrize("example", [False, True])
def test_store_is_made_once(tmp_path: Path, example: bool) -> None:
    """What is made is a store that can be indexed; nothing that is there is overwritten."""
    root = make_store(str(tmp_path), configuration=str(tmp_path / "settings"), example=example)
    assert Path(root).parent == tmp_path
    assert not (Path(root) / ".undo").exists()
    with Store(root, configuration=str(tmp_path / "settings")) as store:
        store.sync()
        assert (len(store.resources()) > 0) is example
    kept = Path(root, "filestore.toml").read_bytes()
    with pytest.raises(FilestoreError) as refused:
        make_store(str(tmp_path), configuration=str(tmp_path / "settings"), example=example)
    assert refused.value.remedy
    assert Path(root, "filestore.toml").read_bytes() == kept


@given(st.lists(st.floats(0, 10), min_size=1))
def test_percentiles_are_values_that_were_measured(late_s: list[float]) -> None:
    """Half of the values are at most the median, and so on up to the greatest one."""
    lag = lag_of(late_s)
    for share, value in ((50, lag.p50_ms), (95, lag.p95_ms), (99, lag.p99_ms), (100, lag.max_ms)):
        values = [round(1000 * one, 3) for one in late_s]
        assert value in values
        assert sum(one <= value for one in values) >= len(values) * share / 100
    assert lag.beats == len(late_s)


def test_heartbeat_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    """A loop that is held up shows in the one line that is written; without a file nothing is."""
    path = tmp_path / "lag.jsonl"

    async def session(found: heartbeat.Heartbeat) -> None:
        found.start()
        await asyncio.sleep(0.05)
        deadline = asyncio.get_running_loop().time() + 0.1
        while asyncio.get_running_loop().time() < deadline:
            pass
        await asyncio.sleep(0.05)
        found.end()

    asyncio.run(session(heartbeat.of({})))
    assert not path.exists()
    asyncio.run(session(heartbeat.of({heartbeat.VARIABLE: str(path)})))
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["max_ms"] > 50
    assert json.loads(line)["beats"] > 2
