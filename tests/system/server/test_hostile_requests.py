"""A server among strangers: it goes on, shows nothing of others, and keeps its memory."""

from pathlib import Path

import pytest

from tests.system.server.hostile_requests import SECRET, attack
from tests.system.server.serving import Served, serving


def memory_of(server: Served) -> int:
    """Bytes of the process that are in memory now."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def files_of(server: Served) -> int:
    """How many files it has open."""
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def under_attack(place: Path, folder: Path, times: int, seed: int) -> None:
    """The same questions before and after, and nothing else that changed."""
    (folder / "secret.txt").write_text(SECRET)
    (place / "source").mkdir()
    (place / "source" / "link.md").symlink_to(folder / "secret.txt")
    (place / "chunked" / "link.md").symlink_to(folder / "secret.txt")
    outside = {path: path.read_bytes() for path in folder.glob("*") if path.is_file()}
    with serving(folder, place, "--write", "--collections", folder / "rags") as server:
        before = server.ask("search", query="rent", k=1)["hits"][0]["text"]
        # Until every kind came in every thread.
        attack(server.port, server.token, max(times // 4, 240), seed=seed)
        memory, files = memory_of(server), files_of(server)
        found = attack(server.port, server.token, times, seed=seed + 1_000)
        assert found.wrong == [], found.wrong[:5]
        assert sum(found.asked.values()) >= times * 0.99 - 8
        # Most are answered, not only dropped.
        assert found.replies["closed"] < times * 0.4, found.replies
        assert server.ask("search", query="rent", k=1)["hits"][0]["text"] == before
        assert files_of(server) <= files + 20
        # How many of the largest requests are at work at once is chance; 15 kB each would show.
        assert memory_of(server) <= memory * 1.2 + 60_000_000
    assert {path: path.read_bytes() for path in outside} == outside
    assert server.errors == [], "".join(server.errors)[-3_000:]


def test_hostile_requests(place: Path, tmp_path: Path) -> None:
    """Some; the exhaustive run sends four thousand."""
    under_attack(place, tmp_path, 240, 1)


@pytest.mark.exhaustive
def test_many_hostile_requests(place: Path, tmp_path: Path) -> None:
    """Four thousand."""
    under_attack(place, tmp_path, 4_000, 2)
