"""A disk under a recorded command: what it may hold when the power goes.

`Recording` takes what strace saw, call by call, and `crash_states` gives disk contents that two
kinds of file systems allow at a point of it. Pure, but for reading the work tree at the start.

What persists, besides what was there before:

- fsync and fdatasync of a file make its pages and its length durable as they were when the call
  began. Of everything else each page of 4 KiB holds what it held at any time since, and the length
  is any length since; a page that never came to the disk is zeros.
- *journalled* (ext4 with delayed allocation, XFS): names are made, moved and removed in the order
  of the calls, up to any of them; a sync of a file or folder includes all names up to the last one
  that concerns it. A renamed file that was not synced may be empty.
- *weak* (ALICE's default): each name is there or not, whatever the order, until its folder is
  synced. A sync of a file says nothing of its name, a rename is both its names or none.

Thanumalayan Sankaranarayana Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014;
Jayashree Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing",
OSDI 2018.
"""

import codecs
import os
import random
import re
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from typing import Literal, TypeVar

PAGE = 4096
MODELS: tuple["Model", ...] = ("journalled", "weak")
_CHOSEN_ONE_BY_ONE = 5
"""Up to so many units every combination is a state."""
_UNUSED = re.compile(r"(-shm|/lock|/clock|\.lock)$")
"""Shared memory, which SQLite makes anew, and files whose bytes say nothing."""
_LINE = re.compile(r"^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$", re.DOTALL)
_STRING = r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'
_TOKEN = re.compile(rf'{_STRING}|[\w-]+<[^>]*>|\[[^\]]*\]|[^\s,()"][^,()"]*')
_BASE = re.compile(rf"iov_base=({_STRING})")
_RESULT = re.compile(r"\) += (-?\d+|\?)")

Model = Literal["journalled", "weak"]
T = TypeVar("T")
Unit = tuple[str, int, int]
"""("page", inode, number) or ("size", inode, 0)."""


class UnmodelledError(Exception):
    """A call that this model does not know."""


@dataclass(frozen=True, slots=True)
class Call:
    """One system call as strace tells it."""

    name: str
    arguments: list[str]
    result: int
    path: str
    """Of the descriptor that it returned."""
    started: int
    ended: int
    """At which line; two threads' calls overlap."""


def parse_calls(lines: Iterable[str]) -> list[Call]:
    """The calls of all threads that succeeded, in the order in which they ended."""
    begun: dict[tuple[str, str], tuple[int, str]] = {}
    calls = []
    for number, line in enumerate(lines):
        if not (found := _LINE.match(line)):
            continue
        thread, resumed, name, rest = found.groups()
        started = number
        if resumed:
            name = resumed
            started, earlier = begun.pop((thread, name), (number, ""))
            rest = earlier + rest
        elif rest.endswith("<unfinished ...>"):
            begun[thread, name] = number, rest.removesuffix("<unfinished ...>")
            continue
        if (call := _parse_call(name, rest, started, number)) is not None:
            calls.append(call)
    return calls


def _parse_call(name: str, text: str, started: int, ended: int) -> Call | None:
    results = list(_RESULT.finditer(text))
    if not results or results[-1][1] in ("?", "-1"):
        return None
    last = results[-1]
    arguments = _TOKEN.findall(text[: last.start()])
    path = re.match(r"<([^>]*)>", text[last.end() :])
    return Call(
        name,
        arguments,
        int(last[1]),
        path[1] if path else "",
        started,
        ended,
    )


def _string(token: str) -> bytes:
    if token.endswith("..."):
        raise UnmodelledError("strace cut some bytes off")
    return codecs.escape_decode(token[1:-1].encode("latin-1"))[0]  # type: ignore[attr-defined,no-any-return]


@dataclass(slots=True)
class Inode:
    """A file's bytes or a folder, with all it was since the recording began."""

    number: int
    mode: int
    stamps: tuple[int, int, int] | None = None
    """mtime_ns, ctime_ns and number of the file on the real disk, at the end of its time."""
    pages: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    """Page number to what it held from which moment on."""
    sizes: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0)])
    truncated: list[int] = field(default_factory=list)
    """When it was cut: what is written afterwards lies behind that."""
    synced: list[tuple[int, int]] = field(default_factory=list)
    """When a sync ended, and when it had begun."""

    def write(self, moment: int, offset: int, data: bytes) -> None:
        """Put bytes at an offset."""
        done = 0
        while done < len(data):
            number, start = divmod(offset + done, PAGE)
            piece = data[done : done + PAGE - start]
            held = self.page(number, moment)
            whole = held[:start] + piece + held[start + len(piece) :]
            self.pages.setdefault(number, [(-1, bytes(PAGE))]).append((moment, whole))
            done += len(piece)
        if offset + len(data) > self.sizes[-1][1]:
            self.sizes.append((moment, offset + len(data)))

    def truncate(self, moment: int, size: int) -> None:
        """Cut or lengthen it."""
        if size < self.sizes[-1][1]:
            self.truncated.append(moment)
        for number, versions in self.pages.items():
            kept = min(max(size - number * PAGE, 0), PAGE)
            if any(versions[-1][1][kept:]):
                versions.append((moment, versions[-1][1][:kept] + bytes(PAGE - kept)))
        self.sizes.append((moment, size))

    def page(self, number: int, before: int) -> bytes:
        """What a page held before a moment."""
        return _at(self.pages.get(number, [(-1, bytes(PAGE))]), before)

    def durable(self, before: int) -> int:
        """The moment before which all is durable at a moment."""
        return max((begun for ended, begun in self.synced if ended < before), default=0)

    def pending(self, before: int) -> Iterator[tuple[Unit, list[int]]]:
        """What may or may not be on the disk, each with the moments that tell its versions."""
        least = self.durable(before)
        for number, versions in self.pages.items():
            if bounds := _bounds(versions, least, before):
                yield ("page", self.number, number), bounds
        if bounds := _bounds(self.sizes, least, before):
            yield ("size", self.number, 0), bounds

    def content(self, picks: "dict[Unit, int]", before: int) -> bytes:
        """Its bytes, of each unit the version before a moment."""
        size_before = picks.get(("size", self.number, 0), before)
        chosen = {n: picks.get(("page", self.number, n), before) for n in self.pages}
        latest = max((_moment(self.pages[n], b) for n, b in chosen.items()), default=-1)
        for moment in self.truncated:
            if moment <= latest:
                size_before = max(size_before, moment + 1)
        size = _at(self.sizes, size_before)
        data = bytearray(size)
        for number, bound in chosen.items():
            start = number * PAGE
            if start < size:
                data[start : start + PAGE] = self.page(number, bound)[: size - start]
        return bytes(data)


def _at(versions: list[tuple[int, T]], before: int) -> T:
    return versions[bisect_left(versions, before, key=lambda one: one[0]) - 1][1]


def _moment(versions: list[tuple[int, bytes]], before: int) -> int:
    return versions[bisect_left(versions, before, key=lambda one: one[0]) - 1][0]


def _bounds(versions: Sequence[tuple[int, object]], least: int, before: int) -> list[int]:
    """Moments that tell the versions apart which the disk may hold; none if it is only one."""
    later = [moment + 1 for moment, _ in versions if least <= moment < before]
    return [least, *later] if later else []


@dataclass(frozen=True, slots=True)
class Naming:
    """A change of names: what they lead to afterwards, None for nothing."""

    moment: int
    names: dict[tuple[int, bytes], int | None]
    """Number of the folder and name, to the number of what has it."""
    about: frozenset[int]
    """Folders and files whose sync includes it where names are journalled."""


@dataclass(slots=True)
class State:
    """What the disk holds: these changes of names, and of each unit the version before a moment."""

    names: frozenset[int]
    picks: dict[Unit, int]


class Recording:
    """A work tree, and what calls did to it."""

    def __init__(self, folder: str) -> None:
        """Read a work tree, all of which is taken to be durable."""
        self._folder = folder
        self.inodes: list[Inode] = []
        self.namings: list[Naming] = []
        self._entries: dict[tuple[int, bytes], int] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._real: dict[int, int] = {}
        self._at = 0
        self._contents: dict[tuple[int, tuple[tuple[Unit, int], ...]], bytes] = {}
        """At that point."""
        self.end = 0
        """The moment after the last call."""
        self.points: list[int] = []
        """Before each sync, and the end of each command: what can be lost is most there."""
        self._read(folder, self._new(os.lstat(folder)))
        self._base = dict(self._entries)

    def _read(self, folder: str, number: int) -> None:
        with os.scandir(folder) as found:
            for entry in found:
                status = entry.stat(follow_symlinks=False)
                known = self._real.get(status.st_ino)
                child = self._new(status) if known is None else known
                self._entries[number, os.fsencode(entry.name)] = child
                if entry.is_dir(follow_symlinks=False):
                    self._read(entry.path, child)
                elif known is None:
                    self._fill(self.inodes[child], entry.path)

    def _new(self, status: os.stat_result) -> int:
        stamps = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        number = len(self.inodes)
        self.inodes.append(Inode(number, status.st_mode, stamps))
        self._real[status.st_ino] = number
        return number

    def _fill(self, inode: Inode, path: str) -> None:
        with open(path, "rb") as file:
            data = file.read()
        inode.sizes = [(-1, len(data))]
        for start in range(0, len(data), PAGE):
            piece = data[start : start + PAGE]
            inode.pages[start // PAGE] = [(-1, piece + bytes(PAGE - len(piece)))]

    # Calls

    def follow(self, calls: Iterable[Call]) -> None:
        """Do what the calls of one command did, after all earlier ones."""
        first = self.end
        for call in calls:
            moment = first + call.ended + 1
            if work := getattr(self, f"_do_{call.name}", None):
                work(call, moment, first + call.started + 1)
            elif any(self._folder in argument for argument in call.arguments):
                raise UnmodelledError(f"{call.name}({', '.join(call.arguments)})")
            self.end = moment + 1
        self.points.append(self.end)

    def note_stamps(self) -> None:
        """Remember the stamps of what is there now on the real disk."""
        for path, number in self._walk(self._entries):
            status = os.lstat(os.path.join(os.fsencode(self._folder), path))
            stamps = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            self.inodes[number].stamps = stamps

    def _find(self, path: str) -> int | None:
        """The file or folder that has a path now; None for one outside the work tree."""
        place = self._place(path)
        if place is None:
            return 0 if path == self._folder else None
        return self._entries.get(place)

    def _place(self, path: str) -> tuple[int, bytes] | None:
        if not path.startswith(f"{self._folder}/"):
            return None
        *folders, name = os.fsencode(path[len(self._folder) + 1 :]).split(b"/")
        number: int | None = 0
        for one in folders:
            number = self._entries.get((number, one)) if number is not None else None
        return None if number is None else (number, name)

    @staticmethod
    def _joined(folder: str, name: str) -> str:
        return os.path.normpath(os.path.join(_path(folder), os.fsdecode(_string(name))))

    def _named(self, moment: int, names: dict[tuple[int, bytes], int | None]) -> None:
        about = {folder for folder, _ in names} | {one for one in names.values() if one is not None}
        self.namings.append(Naming(moment, names, frozenset(about)))
        for place, number in names.items():
            self._entries.pop(place, None)
            if number is not None:
                self._entries[place] = number

    def _made(self, moment: int, place: tuple[int, bytes] | None, mode: int) -> int | None:
        if place is None:
            return None
        self.inodes.append(Inode(len(self.inodes), mode))
        self._named(moment, {place: len(self.inodes) - 1})
        return len(self.inodes) - 1

    def _do_openat(self, call: Call, moment: int, _: int) -> None:
        place = self._place(call.path)
        flags = call.arguments[2]
        number = self._find(call.path)
        if number is None and "O_CREAT" in flags:
            number = self._made(moment, place, stat.S_IFREG | int(call.arguments[3], 8))
        if number is None:
            return
        if "O_TRUNC" in flags:
            self.inodes[number].truncate(moment, 0)
        if "O_APPEND" in flags:
            raise UnmodelledError(f"{call.path} is appended to")
        self._offsets[str(call.result), number] = 0

    def _do_mkdir(self, call: Call, moment: int, _: int) -> None:
        path = os.fsdecode(_string(call.arguments[0]))
        self._made(moment, self._place(path), stat.S_IFDIR | int(call.arguments[1], 8) & ~0o022)

    def _do_mkdirat(self, call: Call, moment: int, _: int) -> None:
        path = self._joined(*call.arguments[:2])
        self._made(moment, self._place(path), stat.S_IFDIR | int(call.arguments[2], 8) & ~0o022)

    def _write(self, call: Call, moment: int, data: bytes, offset: int | None) -> None:
        number = self._find(_path(call.arguments[0]))
        if number is None:
            return
        data = data[: call.result]
        if offset is None:
            key = _descriptor(call.arguments[0]), number
            offset = self._offsets[key]
            self._offsets[key] = offset + len(data)
        self.inodes[number].write(moment, offset, data)

    def _do_write(self, call: Call, moment: int, _: int) -> None:
        if self._find(_path(call.arguments[0])) is not None:
            self._write(call, moment, _string(call.arguments[1]), None)

    def _do_pwrite64(self, call: Call, moment: int, _: int) -> None:
        if self._find(_path(call.arguments[0])) is not None:
            self._write(call, moment, _string(call.arguments[1]), int(call.arguments[3]))

    def _do_writev(self, call: Call, moment: int, _: int) -> None:
        if self._find(_path(call.arguments[0])) is not None:
            data = b"".join(_string(one) for one in _BASE.findall(call.arguments[1]))
            self._write(call, moment, data, None)

    def _do_lseek(self, call: Call, _: int, __: int) -> None:
        number = self._find(_path(call.arguments[0]))
        if number is not None:
            self._offsets[_descriptor(call.arguments[0]), number] = call.result

    def _do_sendfile(self, call: Call, moment: int, _: int) -> None:
        target, source = (self._find(_path(one)) for one in call.arguments[:2])
        if target is None:
            return
        if source is None:
            raise UnmodelledError(f"sendfile({', '.join(call.arguments)})")
        content = self.inodes[source].content({}, moment)
        if place := re.match(r"\[(\d+)", call.arguments[2]):
            start = int(place[1])
        else:
            key = _descriptor(call.arguments[1]), source
            start = self._offsets[key]
            self._offsets[key] += call.result
        data = content[start : start + call.result]
        self._write(call, moment, data, None)

    def _do_ftruncate(self, call: Call, moment: int, _: int) -> None:
        number = self._find(_path(call.arguments[0]))
        if number is not None:
            self.inodes[number].truncate(moment, int(call.arguments[1]))

    def _do_fchmod(self, call: Call, _: int, __: int) -> None:
        number = self._find(_path(call.arguments[0]))
        if number is not None:
            kind = stat.S_IFMT(self.inodes[number].mode)
            self.inodes[number].mode = kind | int(call.arguments[1], 8)

    def _do_fsync(self, call: Call, moment: int, started: int) -> None:
        number = self._find(_path(call.arguments[0]))
        if number is not None:
            self.points.append(started)
            self.inodes[number].synced.append((moment, started))

    _do_fdatasync = _do_fsync

    def _do_renameat(self, call: Call, moment: int, _: int) -> None:
        source, target = (self._place(self._joined(*call.arguments[at : at + 2])) for at in (0, 2))
        if source is not None and target is not None:
            self._named(moment, {source: None, target: self._entries[source]})

    def _do_rename(self, call: Call, moment: int, _: int) -> None:
        source, target = (self._place(os.fsdecode(_string(one))) for one in call.arguments[:2])
        if source is not None and target is not None:
            self._named(moment, {source: None, target: self._entries[source]})

    def _do_link(self, call: Call, moment: int, _: int) -> None:
        source, target = (self._place(os.fsdecode(_string(one))) for one in call.arguments[:2])
        if source is not None and target is not None:
            self._named(moment, {target: self._entries[source]})

    def _do_linkat(self, call: Call, moment: int, _: int) -> None:
        source, target = (self._place(self._joined(*call.arguments[at : at + 2])) for at in (0, 2))
        if source is not None and target is not None:
            self._named(moment, {target: self._entries[source]})

    def _removed(self, moment: int, path: str) -> None:
        place = self._place(path)
        if place is not None and place in self._entries:
            # Journalled names come in order; which sync reaches this one is the folder's.
            self._named(moment, {place: None})

    def _do_unlink(self, call: Call, moment: int, _: int) -> None:
        self._removed(moment, os.fsdecode(_string(call.arguments[0])))

    _do_rmdir = _do_unlink

    def _do_unlinkat(self, call: Call, moment: int, _: int) -> None:
        self._removed(moment, self._joined(*call.arguments[:2]))

    # States

    def all_since(self, model: Model, point: int) -> tuple[frozenset[int], list[int]]:
        """The changes of names that are durable at a point, and those that may be."""
        before = [place for place, one in enumerate(self.namings) if one.moment < point]
        durable = {place for place in before if self._is_named(self.namings[place], model, point)}
        if model == "journalled" and durable:
            durable = set(range(max(durable) + 1))
        return frozenset(durable), [place for place in before if place not in durable]

    def _is_named(self, one: Naming, model: Model, point: int) -> bool:
        numbers = {folder for folder, _ in one.names} if model == "weak" else one.about
        return any(self.inodes[number].durable(point) > one.moment for number in numbers)

    def pending(self, point: int) -> dict[Unit, list[int]]:
        """The pages and lengths that may or may not be on the disk at a point."""
        unused = {number for number, path in self.paths().items() if _UNUSED.search(path)}
        return {
            unit: bounds
            for inode in self.inodes
            if stat.S_ISREG(inode.mode) and inode.number not in unused
            for unit, bounds in inode.pending(point)
        }

    def tree(self, state: State, point: int) -> dict[bytes, tuple[Inode, bytes]]:
        """What the disk holds: paths to files with their bytes, and to folders."""
        entries: dict[tuple[int, bytes], int] = dict(self._base)
        for place, one in enumerate(self.namings):
            if place not in state.names:
                continue
            for name, number in one.names.items():
                entries.pop(name, None)
                if number is not None:
                    entries[name] = number
        picked: dict[int, list[tuple[Unit, int]]] = {}
        for one in state.picks.items():
            picked.setdefault(one[0][1], []).append(one)
        return {
            path: (self.inodes[number], self._content(number, point, picked.get(number, ())))
            for path, number in self._walk(entries)
        }

    def _content(self, number: int, point: int, picked: Sequence[tuple[Unit, int]]) -> bytes:
        """What a file holds; most are the same in most states of a point."""
        if point != self._at:
            self._at = point
            self._contents.clear()
        key = number, tuple(sorted(picked))
        if key not in self._contents:
            self._contents[key] = self.inodes[number].content(dict(picked), point)
        return self._contents[key]

    def whole(self, point: int) -> State:
        """Where all came to the disk."""
        names = (place for place, one in enumerate(self.namings) if one.moment < point)
        return State(frozenset(names), {})

    def paths(self) -> dict[int, str]:
        """What each file was called last."""
        ends = {number: os.fsdecode(path) for path, number in self._walk(self._entries)}
        gone = (
            (n, os.fsdecode(name)) for one in self.namings for (_, name), n in one.names.items()
        )
        return {**{number: name for number, name in gone if number is not None}, **ends}

    def _walk(self, entries: dict[tuple[int, bytes], int]) -> Iterator[tuple[bytes, int]]:
        """Every path below the folder, a folder before what is in it."""
        inside: dict[int, list[tuple[bytes, int]]] = {}
        for (folder, name), number in entries.items():
            inside.setdefault(folder, []).append((name, number))
        open_folders = [(b"", 0)]
        while open_folders:
            path, number = open_folders.pop()
            for name, child in sorted(inside.get(number, [])):
                below = path + b"/" + name if path else name
                yield below, child
                if stat.S_ISDIR(self.inodes[child].mode):
                    open_folders.append((below, child))


def _path(token: str) -> str:
    return token.partition("<")[2].removesuffix(">")


def _descriptor(token: str) -> str:
    return token.partition("<")[0]


def crash_states(
    recording: Recording, model: Model, point: int, chance: random.Random, most: int
) -> Iterator[State]:
    """What the disk may hold when the power goes at a point: all of it if few, else a choice.

    The choice: everything, nothing, what came first, each file alone or lost, each file longer than
    what is in it and the other way about, each unit alone or lost, and mixtures.
    """
    pending = recording.pending(point)
    durable, loose = recording.all_since(model, point)
    states = _Choice(recording, model, point, chance, pending, durable, loose)
    yield recording.whole(point)
    if not pending and not loose:
        return
    yield states.until(0)
    if len(pending) + len(loose) <= _CHOSEN_ONE_BY_ONE:
        yield from states.every()
        return
    made = [*states.files(), *states.prefixes(), *states.single()]
    kept = made if len(made) <= most // 2 else chance.sample(made, most // 2)
    yield from kept
    yield from (states.mixed() for _ in range(most - len(kept)))


@dataclass(frozen=True)
class _Choice:
    recording: Recording
    model: Model
    point: int
    chance: random.Random
    pending: dict[Unit, list[int]]
    durable: frozenset[int]
    loose: list[int]

    def _state(self, names: Iterable[int], picks: dict[Unit, int]) -> State:
        return State(self.durable | frozenset(names), picks)

    def _old(self) -> dict[Unit, int]:
        return {unit: bounds[0] for unit, bounds in self.pending.items()}

    def until(self, moment: int) -> State:
        """What was done before a moment, and no more."""
        names = [one for one in self.loose if self.recording.namings[one].moment < moment]
        picks = {unit: max(bounds[0], moment) for unit, bounds in self.pending.items()}
        return self._state(names, picks)

    def every(self) -> Iterator[State]:
        """Each combination of old and new."""
        for sides in product((0, -1), repeat=len(self.pending)):
            picks = {u: b[side] for (u, b), side in zip(self.pending.items(), sides, strict=True)}
            for names in self._name_sets():
                yield self._state(names, picks)

    def _name_sets(self) -> list[list[int]]:
        if self.model == "journalled":
            return [self.loose[:count] for count in range(len(self.loose) + 1)]
        return [
            [one for one, is_in in zip(self.loose, chosen, strict=True) if is_in]
            for chosen in product((False, True), repeat=len(self.loose))
        ]

    def prefixes(self) -> Iterator[State]:
        """What came first."""
        moments = {bound for bounds in self.pending.values() for bound in bounds[1:]}
        moments |= {self.recording.namings[one].moment + 1 for one in self.loose}
        yield from map(self.until, sorted(moments))

    def files(self) -> Iterator[State]:
        """Each file's bytes alone or lost, longer than what is in it, and the other way about."""
        old = self._old()
        for number in {unit[1] for unit in self.pending}:
            mine = {unit for unit in self.pending if unit[1] == number}
            sizes = {unit for unit in mine if unit[0] == "size"}
            for kept in (mine, self.pending.keys() - mine):
                picks = {unit: old[unit] for unit in self.pending.keys() - kept}
                yield self._state(self.loose, picks)
                yield self._state(self._some_names(), picks)
            for lost in (sizes, mine - sizes):
                yield self._state(self.loose, {unit: old[unit] for unit in lost})
        yield self._state(self.loose, old)
        yield self._state([], {})

    def single(self) -> Iterator[State]:
        """Each unit, and each change of a name, alone or lost."""
        old = self._old()
        for unit in self.pending:
            yield self._state(self.loose, {unit: old[unit]})
            yield self._state(self.loose, {u: b for u, b in old.items() if u != unit})
        for place, one in enumerate(self.loose):
            if self.model == "journalled":
                yield self._state(self.loose[:place], {})
                yield self._state(self.loose[:place], old)
            else:
                yield self._state([one], {})
                yield self._state([n for n in self.loose if n != one], {})
                yield self._state([n for n in self.loose if n != one], old)

    def mixed(self) -> State:
        """Any version of each."""
        share = self.chance.random()
        picks = {
            unit: self.chance.choice(bounds[:-1])
            for unit, bounds in self.pending.items()
            if self.chance.random() < share
        }
        return self._state(self._some_names(), picks)

    def _some_names(self) -> list[int]:
        if self.model == "journalled":
            return self.loose[: self.chance.randint(0, len(self.loose))]
        share = self.chance.random()
        return [one for one in self.loose if self.chance.random() < share]


def fingerprint(tree: dict[bytes, tuple[Inode, bytes]]) -> bytes:
    """The same for disks that hold the same."""
    digest = sha256()
    for path, (inode, data) in sorted(tree.items(), key=lambda one: one[0]):
        if not _UNUSED.search(os.fsdecode(path)):
            digest.update(b"%s\0%o\0%d\0" % (path, inode.mode, len(data)))
            digest.update(data)
    return digest.digest()


def put(tree: dict[bytes, tuple[Inode, bytes]], folder: str) -> dict[int, tuple[int, ...]]:
    """Make a disk's content below an empty folder.

    Returns:
        Real inode numbers with the real ctime, and with the stamps that the recorded file had.
    """
    stamps = {}
    for path, (inode, data) in tree.items():
        if os.fsdecode(path).endswith("-shm"):
            continue
        real = os.path.join(os.fsencode(folder), path)
        if stat.S_ISDIR(inode.mode):
            os.mkdir(real, stat.S_IMODE(inode.mode))
            continue
        with open(real, "wb") as file:
            file.write(data)
        os.chmod(real, stat.S_IMODE(inode.mode))
        if inode.stamps is not None:
            os.utime(real, ns=(inode.stamps[0], inode.stamps[0]))
            status = os.lstat(real)
            stamps[status.st_ino] = (status.st_ctime_ns, *inode.stamps)
    return stamps
