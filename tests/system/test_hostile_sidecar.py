"""Nothing outside of a store is changed by what stands in the place of a part of its sidecar."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import filestore
from filestore.config.layout import PARTS
from tests.advice import all_words
from tests.system import hostile_sidecar
from tests.system.hostile_sidecar import LAYOUTS, WORD, Home, git, quietly

PROGRAM = Path(hostile_sidecar.__file__)
MOVES = 200


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Home]:
    """Makes a store that has used everything, in a layout."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FILESTORE_SERVER", "off")
    return lambda layout: Home(tmp_path.resolve() / layout, layout)


@pytest.mark.parametrize(
    "some",
    [
        ["--every", "53"],
        *(
            pytest.param(["--layout", layout, "--every", "29"], marks=pytest.mark.exhaustive)
            for layout in LAYOUTS
        ),
    ],
    ids=["53", *LAYOUTS],
)
def test_no_command_reaches_through_a_part(some: list[str]) -> None:
    """Whatever stands in the place of a part: an answer or a refusal, and nothing outside moves."""
    command = [sys.executable, "-W", "ignore", PROGRAM, *some]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout


def test_every_entry_of_a_sidecar_is_in_the_table(homes: Callable[[str], Home]) -> None:
    """What a store makes as it is used has a row in `PARTS`, from which the others are tried."""
    home = homes("in-place")
    (home.work / "b.md").write_text("# B\n\nA second file.\n")
    made = {part.name for part, path in home.places() if os.path.lexists(path)}
    backend = ("backend", "set", "local", "--yes")
    for words in (("sync",), backend, ("sync",), ("search", WORD), ("undo",)):
        home.run(*words)
    environment = {**os.environ, "FILESTORE_SERVER": "on"}
    words = [sys.executable, "-m", "filestore", "serve", str(home.root), "--port", "0"]
    server = subprocess.Popen(
        words, cwd=home.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while not (home.sidecar / "server.sock").exists():
            assert server.poll() is None
            assert time.monotonic() < until, "the server makes no socket"
            time.sleep(0.05)
        assert home.strangers() == []
    finally:
        server.terminate()
        server.communicate()
    made |= {part.name for part, path in home.places() if os.path.lexists(path)}
    # Only as long as something is under way, or where a disk has it.
    passing = ("-wal", "-shm", "-journal", "building", "submodules.json", "server.sock")
    lacking = {part.name for part in PARTS} - made
    assert [name for name in sorted(lacking) if not name.endswith(passing)] == []


def test_a_clone_whose_past_is_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone brings the link along; what it leads to stays, and the question is answered."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    kb, precious = tmp_path / "kb", tmp_path / "home"
    (precious / "building").mkdir(parents=True)
    (precious / "building" / "x").write_text("precious\n")
    kb.mkdir()
    git(kb, "init", "-q")
    (kb / "a.md").write_text(f"# A {WORD}\n")
    assert quietly("init", "--in-place", "--embedder", "builtin", str(kb))[0] == 0
    (kb / ".filestore" / "past").symlink_to("../../home")
    git(kb, "add", "-f", "a.md", "filestore.toml", ".filestore/past")
    git(kb, "commit", "-q", "-m", "one")
    git(tmp_path, "clone", "-q", "kb", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    code, said = quietly("search", "--at", "HEAD", WORD)
    assert code == 0, said
    assert "a.md" in said
    assert [path.name for path in sorted(precious.rglob("*"))] == ["building", "x"]
    assert (precious / "building" / "x").read_text() == "precious\n"
    assert not (tmp_path / "clone" / ".filestore" / "past").is_symlink()


def test_a_backend_takes_no_part_for_its_folder(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that name a part of the sidecar as the place of vectors are refused."""
    home = homes("in-place")
    monkeypatch.chdir(home.work)
    settings = home.root / "filestore.toml"
    plain = settings.read_text()
    for name in sorted({part.name.partition("/")[0].replace("*", "9") for part in PARTS}):
        if name == "index.jsonl":
            continue
        settings.write_text(f'{plain}\nbackend = "local"\n[backend_config]\npath = "{name}"\n')
        _, said = quietly("sync")
        assert "part of the sidecar itself" in said, (name, said)


def test_vectors_in_a_folder_that_holds_links(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder of Qdrant's is opened only where nothing in it leads out; else it is made again."""
    home = homes("in-place")
    monkeypatch.chdir(home.work)
    folder, kept = home.sidecar / "qdrant", tmp_path / "qdrant"
    home.run("backend", "set", "qdrant", "path=qdrant", "--yes")
    shutil.copytree(folder, kept)
    shutil.copytree(folder, home.outside / "qdrant")
    before = home.seen_outside(stats=True)
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    for below in [path for path in paths if len(path.parts) < 3 or path == paths[-1]]:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        place = folder / below
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        place.symlink_to(home.outside / "qdrant" / below)
        for words in (("search", WORD), ("verify",), ("sync",), ("sync", "--full")):
            code, said = quietly(*words)
            assert code in hostile_sidecar.CODES, (below, said)
            assert "Traceback" not in said, (below, said)
            assert home.seen_outside(stats=True) == before, (below, words)
        code, said = quietly("search", WORD)
        assert (code, "a.md" in said) == (0, True), (below, said)


_SWAPPER = """
import contextlib, os, random, sys
place, target, aside, moves = *sys.argv[1:4], int(sys.argv[4])
for number in range(moves):
    held = os.path.join(aside, str(number))
    with contextlib.suppress(OSError):
        os.rename(place, held)
        os.symlink(target, place)
    for _ in range(random.randrange(60000)):
        pass
    with contextlib.suppress(OSError):
        if os.path.islink(place):
            os.unlink(place)
        # Unless the store put something there meanwhile.
        os.path.lexists(place) or os.rename(held, place)
    for _ in range(random.randrange(60000)):
        pass
"""
SWAPPED = (
    *("past", "past/building", "past/*", "past/*/tree", "fulltext", "quarantine", "undo"),
    *("catalog.sqlite", "embeddings.sqlite", "documents.sqlite", "lock", "clock"),
)


@pytest.mark.parametrize(
    "moves", [MOVES, pytest.param(3 * MOVES, marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
def test_a_part_that_becomes_a_link_while_it_is_open(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """Another process swaps a part for a link again and again: what the link leads to stays."""
    home = homes("in-place")
    monkeypatch.chdir(home.work)
    places = {part.name: path for part, path in home.places()}
    for name in SWAPPED:
        home.restore()
        target = home.outside
        if (alike := home.outside / "sidecar" / places[name].relative_to(home.sidecar)).is_file():
            target = alike
        before = home.seen_outside(stats=True)
        (aside := home.root.parent / f"aside-{len(name)}").mkdir(exist_ok=True)
        told = [str(places[name]), str(target), str(aside), str(moves)]
        swapper = subprocess.Popen([sys.executable, "-c", _SWAPPER, *told])
        number = 0
        while swapper.poll() is None:
            number += 1
            (home.work / "more.md").write_text(f"# More {number}\n")
            if name.startswith("past"):
                shutil.rmtree(places["past/*"], ignore_errors=True)
            elif name == "quarantine":
                (home.sidecar / "catalog.sqlite").write_bytes(b"garbage" * 1000)
            for words in (("sync",), ("search", "--at", "HEAD", WORD), ("undo", "--list")):
                code, said = quietly(*words)
                assert code in hostile_sidecar.CODES, said
                assert "Traceback" not in said
        assert home.seen_outside(stats=True) == before, name


def test_a_copy_by_second_names(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `cp -al` each of two sidecars goes its own way, and nothing is embedded again."""
    home = homes("in-place")
    monkeypatch.chdir(home.work)
    shutil.copytree(home.sidecar, home.outside / "copy", copy_function=os.link)
    before = {path: path.read_bytes() for path in home.outside.rglob("*") if path.is_file()}
    (home.work / "more.md").write_text("# More\n")
    with filestore.open(home.root) as store:
        assert store.sync().embedded == 1
        assert store.search(WORD).hits
    assert {path: path.read_bytes() for path in home.outside.rglob("*") if path.is_file()} == before


def test_a_part_on_another_file_system(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount below the sidecar is refused and named; the sidecar itself may be one."""
    home = homes("in-place")
    monkeypatch.chdir(home.work)
    for name in ("past", "fulltext", "quarantine", "undo", "catalog.sqlite", "lock"):
        place = home.sidecar / name
        is_file = place.is_file()
        other = Path("/dev/shm") / f"filestore-test-{os.getpid()}"
        other.touch() if is_file else other.mkdir()
        mounted = subprocess.run(
            ["mount", "--bind", other, place], capture_output=True, check=False
        )
        try:
            if mounted.returncode:
                pytest.skip("nothing can be mounted here")
            words = ("search", "--at", "HEAD", WORD) if name == "past" else ("sync",)
            code, said = quietly(*words)
            assert code == 4, (name, said)
            assert str(place) in said
            assert f"umount {place}" in said
        finally:
            if not mounted.returncode:
                subprocess.run(["umount", place], check=True)
            other.unlink() if is_file else other.rmdir()
    assert quietly("search", "--at", "HEAD", WORD)[0] == 0


def test_a_sidecar_that_is_a_mount_point(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sidecar on a disk of its own is used as any other."""
    home = homes("in-place")
    monkeypatch.chdir(home.work)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=0700", "none", home.sidecar],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert quietly("sync")[0] == 0
        assert quietly("search", "--at", "HEAD", WORD)[0] == 0
    finally:
        subprocess.run(["umount", "-l", home.sidecar], check=True)


def test_the_library_names_what_it_refuses(homes: Callable[[str], Home]) -> None:
    """A folder of another user is named with what removes it."""
    if os.geteuid():
        pytest.skip("only root can give files away")
    home = homes("tree")
    os.chown(home.sidecar / "past", 65534, 65534)
    with pytest.raises(filestore.FilestoreError, match=r"past is not safe.*user 65534") as caught:
        filestore.open(home.root)
    assert f"rm -r {home.sidecar / 'past'}" in all_words(caught.value)
