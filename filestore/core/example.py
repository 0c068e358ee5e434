"""The example store that comes with the program, and copies of it to look around in."""

import os
import shutil
from typing import Final

from filestore.core.errors import FilestoreError, RefusedError
from filestore.core.paths import SIDECAR

FOLDER: Final = "example_index"
_SETTINGS: Final = "filestore.toml"


def example_folder() -> str:
    """The example store, next to the package.

    Raises:
        FilestoreError: It was not installed.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.path.join(os.path.dirname(package), FOLDER)
    if os.path.isfile(os.path.join(folder, _SETTINGS)):
        return folder
    raise FilestoreError("the example store was not installed", remedy="install filestore again")


def copy_example(target: str) -> None:
    """Copy the files of the example store, not its index, into a new folder.

    Raises:
        RefusedError: There is something of that name already.
        FilestoreError: It was not installed, or cannot be written there.
    """
    if os.path.lexists(target):
        raise RefusedError(f"{target} already exists", remedy="run it in another directory")
    derived = shutil.ignore_patterns(SIDECAR, ".undo", "__pycache__")
    try:
        shutil.copytree(example_folder(), target, ignore=derived)
    except (OSError, shutil.Error) as error:
        raise FilestoreError(
            f"the example cannot be copied to {target}: {error}",
            remedy="go to a folder that can be written, and where there is room",
        ) from error
