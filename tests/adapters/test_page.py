"""docs/adapters.md is true: each of its scripts prints what stands below it."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import filestore
from filestore.core.errors import PACKAGES, imported_name
from tests.test_docs import Block, blocks

SCRIPTS: Final = list(
    zip(blocks("docs/adapters.md", "python"), blocks("docs/adapters.md", "text"), strict=True)
)


@pytest.mark.parametrize(("script", "shown"), SCRIPTS, ids=lambda one: f"line {one.line}")
def test_a_script_prints_what_is_shown(tmp_path: Path, script: Block, shown: Block) -> None:
    """In a folder with a handbook, with the library of its framework."""
    for name in re.findall(r"filestore\.adapters\.(\w+)", script.content):
        for package in PACKAGES.get(name.replace("_", "-"), ()):
            if importlib.util.find_spec(imported_name(package)) is None:
                pytest.skip(f"{package} is not installed")
    (tmp_path / "handbook").mkdir()
    lease = "# The lease\n\nThe rent is paid on the third working day.\n"
    (tmp_path / "handbook" / "lease.md").write_text(lease)
    package = Path(filestore.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", script.content],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(package), "HAYSTACK_TELEMETRY_ENABLED": "False"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", shown.content)
