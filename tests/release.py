"""Cut a release: the changelog's heading, the version, a commit and its tag; nothing is pushed.

    python tests/release.py VERSION

The newest section of the changelog must be called Unreleased, the version be higher than the one
before, and the work tree be clean.
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_UNRELEASED: Final = "## Unreleased\n"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return done.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise SystemExit(f"{version!r} is no version: write MAJOR.MINOR.PATCH")
    return tuple(map(int, found.groups()))


def release(root: Path, version: str) -> str:
    """Cut it.

    Args:
        root: The checkout.
        version: As 0.3.0.

    Returns:
        The name of the tag.

    Raises:
        SystemExit: Something is not as it must be. Nothing was changed.
    """
    changelog, code = root / "CHANGELOG.md", root / "filestore" / "_version.py"
    text, source = changelog.read_text("utf-8"), code.read_text("utf-8")
    found = re.search(r'__version__ = "(.*)"', source)
    assert found
    if _git(root, "status", "--porcelain"):
        raise SystemExit("the work tree is not clean: commit or stash first")
    if _numbers(version) <= _numbers(found[1]):
        raise SystemExit(f"{version} is not higher than {found[1]}")
    first, _, rest = text.partition(_UNRELEASED)
    if "\n## " in first or "\n- " not in rest.partition("\n## ")[0]:
        raise SystemExit("the changelog has nothing unreleased")
    if _git(root, "tag", "--list", tag := f"v{version}"):
        raise SystemExit(f"the tag {tag} is there already")
    changelog.write_text(f"{first}## {version} - {datetime.now(UTC):%Y-%m-%d}\n{rest}", "utf-8")
    code.write_text(source.replace(found[0], f'__version__ = "{version}"'), "utf-8")
    _git(root, "add", str(changelog), str(code))
    _git(root, "commit", "--quiet", "--message", f"Release {version}")
    _git(root, "tag", "--annotate", tag, "--message", version)
    return tag


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    name = release(Path(__file__).resolve().parent.parent, sys.argv[1])
    print(f"{name}: look with 'git show {name}', then push the branch and the tag")
