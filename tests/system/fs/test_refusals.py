"""A disk that refuses: what is said names the cause, and the remedy fits it.

A file system without locks, links or shared memory is played by a few lines of C that stand between
the program and the system, as nobody may mount one for a test.
"""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from filestore.config.layout import PARTS
from filestore.fs import disk, part

CHECKOUT: Final = Path(__file__).resolve().parents[3]
SHIM: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static int below(const char *path) {
    const char *top = getenv("TOP");
    return top && !strncmp(path, top, strlen(top));
}
static int lacks(const char *what, int fd) {
    char link[64], path[4096];
    const char *lacking = getenv("LACKS");
    if (!lacking || strcmp(lacking, what)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}
#define REAL(type, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, __func__))
#define MMAP(name) void *name(void *at, size_t n, int p, int flags, int fd, off_t o) { \
    if (fd >= 0 && (flags & 3) == MAP_SHARED && lacks("maps", fd)) { \
        errno = ENODEV; return MAP_FAILED; } \
    return REAL(void *, void *, size_t, int, int, int, off_t)(at, n, p, flags, fd, o); }
MMAP(mmap)
MMAP(mmap64)
#define FCNTL(name) int name(int fd, int command, ...) { \
    va_list rest; va_start(rest, command); void *more = va_arg(rest, void *); va_end(rest); \
    if ((command == F_SETLK || command == F_SETLKW) && lacks("locks", fd)) { \
        errno = ENOLCK; return -1; } \
    return REAL(int, int, int, void *)(fd, command, more); }
FCNTL(fcntl)
FCNTL(fcntl64)
int flock(int fd, int operation) {
    if (lacks("flock", fd)) { errno = EOPNOTSUPP; return -1; }
    return REAL(int, int, int)(fd, operation);
}
ssize_t write(int fd, const void *data, size_t size) {
    if (lacks("quota", fd)) { errno = EDQUOT; return -1; }
    return REAL(ssize_t, int, const void *, size_t)(fd, data, size);
}
#define PWRITE(name) ssize_t name(int fd, const void *data, size_t size, off_t at) { \
    if (lacks("quota", fd)) { errno = EDQUOT; return -1; } \
    return REAL(ssize_t, int, const void *, size_t, off_t)(fd, data, size, at); }
PWRITE(pwrite)
PWRITE(pwrite64)
int link(const char *from, const char *to) {
    const char *lacking = getenv("LACKS");
    if (lacking && !strcmp(lacking, "links") && below(to)) { errno = EPERM; return -1; }
    return REAL(int, const char *, const char *)(from, to);
}
int linkat(int from_in, const char *from, int to_in, const char *to, int flags) {
    const char *lacking = getenv("LACKS");
    if (lacks("links", to_in) || (lacking && !strcmp(lacking, "links") && below(to))) {
        errno = EPERM; return -1; }
    return REAL(int, int, const char *, int, const char *, int)(from_in, from, to_in, to, flags);
}
"""
SIDECAR: Final = "under [sidecar] in filestore/settings.toml"
LACKING: Final = {
    "maps": ("does not support shared memory", SIDECAR),
    "locks": ("does not lock files", SIDECAR),
    "flock": ("does not lock files", SIDECAR),
    "quota": (os.strerror(errno.EDQUOT), "quota"),
    "links": (),
}
"""What a file system lacks, to what is said of it; nothing where it can be done without."""
COMMANDS: Final = ("sync", "search words", "status")


@pytest.fixture
def notes(workspace: Any) -> Any:
    """A store of two notes, with the index of an earlier sync."""
    for name in ("one", "own"):
        workspace.write(f"file_index/chunked/{name}.md", f"Own words of {name}.\n")
    workspace("sync")
    return workspace


def run(notes: Any, words: str, *before: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own."""
    return subprocess.run(
        [*before, sys.executable, "-m", "filestore", "--store", str(notes.store), *words.split()],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **more},
    )


@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler")
@pytest.mark.parametrize("lacking", LACKING)
def test_what_a_file_system_lacks_is_said(notes: Any, tmp_path: Path, lacking: str) -> None:
    """The cause is named with the way out of it, and what can be done without it is done."""
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    place = {"LD_PRELOAD": str(shim), "TOP": str(notes.store), "LACKS": lacking}
    if lacking == "links":
        # The secret of a user has a second name for a moment, too.
        place |= {"TOP": "/", "XDG_CONFIG_HOME": str(tmp_path / "configuration")}
        assert run(notes, "sync", **place).returncode == 0
        assert "foreign" not in run(notes, "status", **place).stdout
    refused = 0
    # Without locks of the kind that SQLite wants, it waits ten seconds before it only reads.
    for words in COMMANDS[: 1 if lacking == "locks" else None]:
        notes.write("file_index/chunked/own.md", f"Own words before {words}.\n")
        done = run(notes, words, **place)
        assert "Traceback" not in done.stderr, done
        assert done.returncode in (0, 1, 3), (words, done)
        if done.returncode == 3:
            refused += 1
            for expected in LACKING[lacking]:
                assert expected in done.stderr, (words, done)
        assert "check the disk" not in done.stderr + done.stdout, (words, done)
    assert bool(refused) is bool(LACKING[lacking])
    notes("sync")
    notes.assert_settled()


def places_of(notes: Any, names: tuple[str, ...]) -> list[Path]:
    """What stands in the sidecar, of all that may; by name, or all but what each writer makes."""
    found = sorted({path for one in PARTS for path in notes.sidecar.glob(one.name)})
    return [path for path in found if not names or path.name in names]


@pytest.mark.parametrize(
    "names", [("catalog.sqlite", "stamp.json"), pytest.param((), marks=pytest.mark.long)]
)
@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may do all")
def test_a_part_that_this_user_may_not_open_is_named(notes: Any, names: tuple[str, ...]) -> None:
    """As `sudo` leaves it: what refuses says which file it is, whose, and how to get it back."""
    dropped = "-dac_override,-dac_read_search"
    rights = ("setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}")
    before = rights if os.geteuid() == 0 else ()
    refused = set()
    for path in places_of(notes, names):
        for words in ("sync", "search words --mode keyword", "show chunked/own.md"):
            notes.write("file_index/chunked/own.md", f"Own words before {words} of {path.name}.\n")
            if not path.exists():
                continue
            mode = path.stat().st_mode & 0o777
            path.chmod(0)
            try:
                done = run(notes, words, *before)
            finally:
                # A commit may have put another in its place.
                if path.exists():
                    path.chmod(mode)
            assert done.returncode in (0, 1, 3), (path, words, done)
            if done.returncode == 3:
                refused.add(path.name)
                assert f"{path}: Permission denied (it belongs to" in done.stderr, (words, done)
                assert f"try: chmod u+rw{'x' * path.is_dir()} {path}" in done.stderr, (words, done)
    assert refused >= set(names or ("catalog.sqlite", "embeddings.sqlite", "lock", "fulltext"))
    notes("sync")
    notes.assert_settled()


@pytest.mark.parametrize("number", part.REMEDIES)
def test_every_number_of_the_table_has_its_own_remedy(tmp_path: Path, number: int) -> None:
    """However the system's refusal comes to us, its remedy is that of the table."""
    reason = OSError(number, os.strerror(number))
    failed = disk.write_failed(str(tmp_path / "a.md"), reason)
    assert failed.remedy == part.REMEDIES[number]
    assert os.strerror(number) in failed.message
    with pytest.raises(disk.WriteFailedError) as told, disk.disk_errors(str(tmp_path)):
        raise reason
    assert told.value.remedy == failed.remedy


def test_no_file_is_tried_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor made where the folder became a link in between: what it leads to keeps its time."""
    monkeypatch.setattr(tempfile, "_O_TMPFILE_WORKS", False)
    (outside := tmp_path / "outside").mkdir()
    (link := tmp_path / "link").symlink_to(outside)
    before = outside.stat().st_mtime_ns
    assert (part.tried(str(link)), part.no_locks(str(link))) == (None, None)
    assert (outside.stat().st_mtime_ns, list(outside.iterdir())) == (before, [])
    folder, unlink = tmp_path / "folder", os.unlink
    folder.mkdir()

    def swap(path: Any, **given: Any) -> None:
        folder.rename(tmp_path / "aside")
        folder.symlink_to(outside)
        unlink(path, **given)

    monkeypatch.setattr(os, "unlink", swap)
    assert part.tried(str(folder)) is None
    assert (outside.stat().st_mtime_ns, list(outside.iterdir())) == (before, [])
    assert list((tmp_path / "aside").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_user_s_file_is_not_ours_to_open() -> None:
    """Its owner is named, and what gives it back is to be done by somebody who may."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 23456, 23456)
        path = Path(folder, "a.sqlite")
        path.touch()
        os.chown(path, 12345, 12345)
        path.chmod(0o600)
        child = os.fork()
        if child == 0:
            os.setresuid(23456, 23456, 23456)
            os._exit(_says_whose(path))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _says_whose(path: Path) -> int:
    reason = part.of_sqlite(str(path), sqlite3.OperationalError("unable to open"))
    place, said, remedy = part.explained(str(path), reason)
    as_expected = "belongs to user 12345, mode 600" in said and "sudo chown" in remedy
    return 0 if as_expected and place == str(path) else 1
