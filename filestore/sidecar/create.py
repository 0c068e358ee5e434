"""Making a new store: its settings, the files that git reads, an empty tree."""

import errno
import os
from typing import Final

from msgspec.structs import replace

from filestore.config import settings, user_config, written
from filestore.config.layout import SETTINGS, Places, ancestors, why_no_folder
from filestore.core.errors import RefusedError, UsageError
from filestore.embed import reaches_out
from filestore.embed.models import BUNDLED, KINDS, try_out
from filestore.fs import disk, part
from filestore.git import attributes
from filestore.git.attributes import attributes_in
from filestore.sidecar.model import ask_model, chosen_by, remember
from filestore.sidecar.recover import make_sidecar
from filestore.sidecar.refusals import check_sidecar

_IGNORED: Final = b".sidecar/\n.undo/\n.filestore-tmp-*\n"


def check_place(root: str) -> None:
    """Refuse a folder that no store can be made in; absolute.

    Raises:
        RefusedError: There is a store already, or the folder lies inside one.
        UsageError: It is no folder.
    """
    if reason := why_no_folder(root):
        raise UsageError(f"{root} {reason}: name the folder that is to be the store")
    for folder in ancestors(root):
        if os.path.exists(os.path.join(folder, SETTINGS)):
            inside = "" if folder == root else "; a store inside a store is not followed"
            raise RefusedError(
                f"{folder} is a store already{inside}"
                ": use it with --store, or choose a folder outside it",
            )


def check_writable(root: str) -> None:
    """Refuse a folder that can be written by none of ours; absolute. Nothing is written.

    Raises:
        WriteFailedError: It, or the folder it would be made in, is of others or read-only.
    """
    there = next(folder for folder in ancestors(root) if os.path.isdir(folder))
    if error := part.unwritable(there):
        # Named by a file in it: of a folder, that around it would be to blame.
        name = os.path.join(there, SETTINGS)
        raise disk.write_failed(name, OSError(error.errno, error.strerror))


def make(
    root: str,
    *,
    layout: str,
    embedder: str | None,
    options: settings.ModelOptions,
    configuration: str,
) -> None:
    """Write the first files of a store into a new folder, or one that has no store yet.

    Args:
        root: Absolute.
        layout: How chunk files are named.
        embedder: What a person named; None for the model of the installation, wherever it is made.
        options: How its model is to be used. Naming a service allows the store to reach it.
        configuration: The user's configuration folder.

    Raises:
        RefusedError: There is a store already, or the folder lies inside one.
        UnsafeSidecarError: What is there as its sidecar is not ours.
        FilestoreError: The embedder that was named is unknown, not here, or of no use.
        WriteFailedError: The folder cannot be written.
    """
    chosen_layout = settings.check_layout(layout)
    check_place(root)
    tree = settings.LAYOUTS[chosen_layout]
    sidecar = settings.sidecar_folder(root, configuration, tree)
    places = Places(root=root, sidecar=sidecar, tree=tree)
    check_sidecar(places)
    here = user_config.read_machine(configuration, os.environ)
    choice = chosen_by(embedder or BUNDLED, root=root, options=options, machine=here)
    service = reaches_out(choice.name, choice.options)
    if service is not None:
        # Naming a service allows it; remembered once it has answered.
        choice = replace(choice, machine=choice.machine.trusting(root, service))
    opened = ask_model(choice)
    if opened.embedder is None:
        raise opened.why_not
    if choice.kind not in KINDS:
        # What opens may still not run, which is better reported now than when documents are added.
        try_out(opened.embedder)
    _write_first_files(
        places, settings.Settings(layout=chosen_layout, embedder=choice.name, model=choice.options)
    )
    remember(choice, root, configuration)


def _write_first_files(places: Places, chosen: settings.Settings) -> None:
    root = places.root
    if not places.tree.is_written:
        with disk.disk_errors(root):
            disk.make_folders(root)
            _write_settings_alone(places, written.serialize(chosen))
        return
    files = {
        ".gitignore": _IGNORED,
        attributes.NAME: attributes.FILE,
        SETTINGS: written.serialize(chosen),
    }
    with disk.disk_errors(root):
        disk.make_folders(os.path.join(root, "chunked"))
        for name, data in files.items():
            path = os.path.join(root, name)
            if not os.path.exists(path):
                disk.write_path(path, data)
        # Our lines are added to an attributes file; the others stay.
        found = attributes_in(root)
        if found is not None and attributes.corrected(found) != found:
            disk.write_path(os.path.join(root, attributes.NAME), attributes.corrected(found))


def _write_settings_alone(places: Places, data: bytes) -> None:
    """Write the settings so that a death on the way leaves nothing among documents.

    Nothing else is ours there: the sidecar is ignored by a rule in it, and cleared by each writer.
    """
    try:
        make_sidecar(places)
    except disk.WriteFailedError as error:
        if isinstance(error.__cause__, OSError) and not os.access(places.root, os.W_OK):
            # A sidecar elsewhere would not help: the settings lie here.
            raise disk.write_failed(places.root, error.__cause__) from error.__cause__
        raise
    staged = os.path.join(places.sidecar, f"{disk.TEMPORARY_PREFIX}{SETTINGS}")
    disk.write_path(staged, data)
    try:
        os.rename(staged, places.settings)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # A sidecar on another disk.
        os.unlink(staged)
        disk.write_path(places.settings, data)
    disk.sync_path(places.root)
