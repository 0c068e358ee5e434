"""The commands that lead out of git's conflict: a side for each file, `git add`, and on with it.

Reads, changes nothing. One rule: no command is named that would be refused where it is read.
"""

import os
from collections.abc import Collection, Sequence

from msgspec import Struct

from filestore.browse.evidence_notes import look
from filestore.config.layout import Places
from filestore.core.caller import working_folder
from filestore.core.findings import Finding
from filestore.core.paths import StorePath
from filestore.core.safe_text import shell_word
from filestore.git import merge, process, repository, stopped
from filestore.git.merge import Staged
from filestore.git.stopped import SideNames
from filestore.history.batch import may_change
from filestore.repair.request import named


class WayOut(Struct, frozen=True, kw_only=True):
    """What is still to be done about a conflict of git."""

    names: SideNames
    choose: tuple[StorePath, ...] = ()
    """Files of which a side can be taken."""
    deleted: tuple[tuple[StorePath, str], ...] = ()
    """The ones of them that a side deleted, and which."""
    edit: tuple[StorePath, ...] = ()
    """Files whose markers are incomplete."""
    by_git: tuple[tuple[str, str], ...] = ()
    """The commands of git that take our and their side of files that no command of ours writes:
    documents that are no notes, and what lies outside the store."""
    commands: tuple[str, ...] = ()
    """Of git, in their order."""

    def command(self, places: Places, side: str) -> str:
        """The words of the command that takes a side of every file."""
        words = (shell_word(_typed(places, path)) for path in self.choose)
        return " ".join((f"repair --{side}", *words))


def way_out(
    places: Places, findings: Sequence[Finding], chosen: Collection[StorePath] = ()
) -> WayOut | None:
    """What leads out of a conflict; None where git waits for nothing.

    Args:
        places: Where the store lies.
        findings: Of a verification.
        chosen: Files in which a side was chosen just now.
    """
    root = os.path.realpath(places.root)
    marked = {one.path for one in findings if one.code == "conflict-markers"}
    if not marked and not repository.is_stopped(root):
        return None
    top = process.work_tree(root)
    whole = [] if top is None else [os.path.join(top, one) for one in stopped.all_unmerged(root)]
    waiting = {StorePath(os.path.relpath(one, root)) for one in whole}
    inside = {one for one in waiting if _is_written(places, one)}
    choose, edit, resolved = list[StorePath](), list[StorePath](), dict[StorePath, bytes | None]()
    deleted = list[tuple[StorePath, str]]()
    for path in sorted(inside | {one for one in marked if _is_written(places, one)}):
        data, held = look(root, path).data, repository.staged(root, path)
        group = _group(data, held, path in chosen)
        if group == "choose":
            choose.append(path)
            if held is not None and None in held:
                deleted.append((path, "ours" if held[0] is None else "theirs"))
        elif group == "edit":
            edit.append(path)
        elif path in inside:
            resolved[path] = data
    commands = list[str]()
    if resolved and (chosen or not choose):
        paths = [os.path.join(root, path) for path in resolved]
        commands.append(stopped.add_command(paths, working_folder()))
    if top is not None and not (choose or edit or waiting - inside):
        added = {os.path.relpath(os.path.join(root, one), top): resolved[one] for one in resolved}
        commands += filter(None, [stopped.ending(root, added)])
    return WayOut(
        names=stopped.side_names(root, next(iter((*choose, *waiting)), "")),
        choose=tuple(choose),
        deleted=tuple(deleted),
        edit=tuple(edit),
        by_git=tuple(
            (stopped.side_command(root, path, "ours"), stopped.side_command(root, path, "theirs"))
            for path in sorted(waiting - inside)
        ),
        commands=tuple(commands),
    )


def _group(data: bytes | None, held: Staged | None, is_chosen: bool) -> str:
    """What is to be done about a file in conflict."""
    try:
        if merge.conflicts(data or b""):
            return "choose"
    except merge.MarkersBrokenError:
        return "edit"
    # Without markers it may be as one side left it, and only a person knows which is wanted.
    is_side = held is not None and data in held and held != (None, None)
    return "choose" if is_side and not is_chosen else "add"


def _is_written(places: Places, path: StorePath) -> bool:
    """Whether a command of ours writes a file; what lies around the store is left to git."""
    return places.tree.holds(path) and may_change(path, places.tree)


def _typed(places: Places, path: StorePath) -> str:
    """A path as a person may type it where they are, so that it names this file."""
    whole = os.path.join(places.root, path)
    for name in (path, os.path.relpath(whole, working_folder())):
        typed = f"./{name}" if name.startswith("-") else name
        if named(places, typed) == path:
            return typed
    return whole
