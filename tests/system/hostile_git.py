"""Work trees whose `.git` came from a stranger, and the mark that a program of his would leave."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.system.conftest import git_free

SETTINGS: Final = (
    "alias.status",
    "alias.rev-list",
    "alias.cat-file",
    "browser.evil.cmd",
    "browser.evil.path",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.hooksPath",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.evil.command",
    "diff.evil.textconv",
    "diff.external",
    "difftool.evil.cmd",
    "difftool.evil.path",
    "filter.evil.clean",
    "filter.evil.process",
    "filter.evil.smudge",
    "gpg.openpgp.program",
    "gpg.program",
    "gpg.ssh.defaultKeyCommand",
    "gpg.ssh.program",
    "gpg.x509.program",
    "guitool.evil.cmd",
    "hook.evil.command",
    "instaweb.browser",
    "instaweb.httpd",
    "interactive.diffFilter",
    "man.evil.cmd",
    "man.evil.path",
    "merge.evil.driver",
    "mergetool.evil.cmd",
    "mergetool.evil.path",
    "pager.diff",
    "pager.log",
    "pager.rev-list",
    "remote.origin.proxy",
    "remote.origin.receivepack",
    "remote.origin.uploadpack",
    "remote.origin.vcs",
    "sendemail.ccCmd",
    "sendemail.tocmd",
    "sequence.editor",
    "submodule.evil.update",
    "trailer.evil.cmd",
    "trailer.evil.command",
    "uploadpack.packObjectsHook",
    "web.browser",
)
"""Every setting of which git's manual says that a program is started by it."""

HOOKS: Final = (
    "fsmonitor-watchman",
    "post-checkout",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "reference-transaction",
    "update",
)

_HELP: Final = """
[extensions]
\tpartialClone = origin
[remote "origin"]
\tpromisor = true
\turl = file:///nowhere
\tfetch = +refs/heads/*:refs/remotes/origin/*
[log]
\tshowSignature = true
[diff]
\ttool = evil
\tguitool = evil
[merge]
\ttool = evil
[commit]
\tgpgSign = true
[hook "evil"]
\tevent = pre-commit
[core]
\trepositoryformatversion = 1
"""
"""What makes git come to the point at which it would start one of them."""


class HostileGit:
    """The repository of a workspace in the hands of somebody else."""

    def __init__(self, workspace: Any) -> None:
        self.workspace = workspace
        self.git: Path = workspace.folder / ".git"
        self.mark: Path = workspace.folder.parent / "it-ran"
        self.program: Path = workspace.folder.parent / "evil.sh"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{self.mark}"\nexit 1\n')
        self.program.chmod(0o755)
        self.chunk = ""
        """The one chunk file of the note, below `chunked/`."""

    def fill(self) -> None:
        """A note with history, a signed HEAD, and an object that is missing."""
        workspace = self.workspace
        workspace.write("note.md", "# Note\n\nWords of basalt.\n")
        workspace("add", "note.md")
        workspace.git("add", "--all")
        workspace.git("commit", "-qm", "first")
        (self.chunk,) = workspace.chunks("note")
        path = workspace.chunked / self.chunk
        path.write_bytes(path.read_bytes() + b"\nMore of it.\n")
        lost = workspace.write("file_index/chunked/own.md", "Words of gneiss.\n")
        every = "* filter=evil diff=evil merge=evil\n"
        workspace.write(".gitattributes", every)
        workspace.write(".gitmodules", '[submodule "evil"]\n\tpath = sub\n\turl = ./nowhere\n')
        workspace.git("add", "--all")
        workspace.git("commit", "-qm", "second")
        blob = workspace.git("rev-parse", "HEAD:file_index/chunked/own.md").strip()
        (self.git / "objects" / blob[:2] / blob[2:]).unlink()
        self._sign_head()
        lost.unlink()
        path.write_bytes(path.read_bytes() + b"\nAn edit.\n")
        # Of a length that git knows and a time that it does not: it must read it, by its filter.
        os.utime(workspace.folder / "note.md", ns=(0, 0))

    def _sign_head(self) -> None:
        """Make HEAD one that carries a signature."""
        folder = self.workspace.folder
        head = self.workspace.git("cat-file", "commit", "HEAD")
        before, gap, message = head.partition("\n\n")
        armor = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n =x\n -----END PGP SIGNATURE-----"
        done = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
            input=f"{before}\n{armor}{gap}{message}".encode(),
            cwd=folder,
            env=git_free(),
            capture_output=True,
            check=True,
        )
        self.workspace.git("update-ref", "HEAD", done.stdout.decode().strip())

    def set(self, *names: str) -> None:
        """Give settings the program as their value, after all that leads to them."""
        lines = [self.config().rstrip("\n"), _HELP]
        for name in names:
            lines.append(setting(name, str(self.program)))
        (self.git / "config").write_text("\n".join(lines) + "\n")

    def config(self) -> str:
        """The settings that git made."""
        return "[core]\n\tbare = false\n\tlogallrefupdates = true\n"

    def plant_hooks(self) -> None:
        """Every hook is the program."""
        hooks = self.git / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in HOOKS:
            shutil.copy(self.program, hooks / name)

    def plain_git(self, *words: str) -> None:
        """What somebody who trusts the repository would run."""
        subprocess.run(
            ["git", *words],
            cwd=self.workspace.folder,
            env=git_free() | {"GIT_PAGER": "cat"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def assert_nothing_ran(self, why: object = "") -> None:
        """The program left no mark."""
        assert not self.mark.exists(), (why, self.mark.read_text())


def setting(name: str, value: str) -> str:
    """One setting as git writes it."""
    section, _, key = name.rpartition(".")
    head, dot, rest = section.partition(".")
    where = f'[{head} "{rest}"]' if dot else f"[{head}]"
    return f"{where}\n\t{key} = {value}"


COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("status",),
    ("verify",),
    ("verify", "--level", "full"),
    ("repair", "--plan"),
    ("repair", "--write-files", "--plan"),
    ("repair", "--write-files", "--plan", "--path", "chunked/own.md"),
    ("search", "basalt", "--mode", "keyword"),
    ("show", "chunked/note/chunk1.md"),
    ("ls", "note"),
    ("similar", "chunked/note/chunk1.md"),
    ("duplicates",),
    ("links", "chunked/note/chunk1.md"),
    ("reconstruct", "note"),
    ("git", "status"),
    ("git", "hook", "pre-commit", "--in=file_index"),
    ("add", "note.md"),
    ("sync",),
    ("repair", "--write-files", "--yes"),
    ("undo",),
    ("redo",),
    ("rm", "note"),
    ("undo", "--list"),
    ("sync", "--forget-missing"),
    ("git", "install"),
    ("git", "remove"),
)
"""What a person may run where he looks around; those that change something come last."""


LOOKING: Final = (
    ("status",),
    ("verify", "--level", "full"),
    ("repair", "--write-files", "--plan"),
    ("git", "hook", "pre-commit", "--in=file_index"),
    ("git", "status"),
    ("sync",),
)
"""Those of them that have most questions for git."""


def run_all(workspace: Any, commands: Sequence[tuple[str, ...]] = COMMANDS) -> None:
    """Every command once; whatever it answers, it answers."""
    for words in commands:
        workspace(*words, code=None)


# Made up

_VALUES: Final = ("true", "false", "1", "0", "-1", "", "\\", '"', "!{program}", "{program}", "*")
_ROUGH: Final = (
    "[include]\n\tpath = {other}",
    '[includeIf "gitdir:**"]\n\tpath = {other}',
    "[core]\n\tworktree = {outside}",
    "[core]\n\trepositoryformatversion = 7",
    "[core]\n\tbare = true",
    "[core]\n\tattributesFile = {other}\n\texcludesFile = {other}",
    "[core]\n\tsplitIndex = true\n\tuntrackedCache = true\n\tsparseCheckout = true",
    "[extensions]\n\tworktreeConfig = true",
    "[extensions]\n\tobjectFormat = sha256",
    "[extensions]\n\trefStorage = reftable",
    "[extensions]\n\tunheardOf = 1",
    "[safe]\n\tdirectory = *",
    '[remote "origin"]\n\turl = ext::{program}\n\tpartialclonefilter = blob:none',
    '[url "ext::{program} "]\n\tinsteadOf = file://',
    "[protocol]\n\tallow = always",
    "[uploadpack]\n\tallowFilter = true",
    "[core",
    "\x00\x01\x7f",
    "﻿[core]\n\teditor",
    "= nothing",
    "[a]\n" + "\tx = y\n" * 2000,
)


def made_up_config(random_: random.Random, hostile: HostileGit, outside: Path) -> str:
    """Settings that nobody would write, most of which name the program."""
    lines = [_HELP] if random_.random() < 0.7 else []
    for _ in range(random_.randrange(1, 25)):
        if random_.random() < 0.5:
            value = random_.choice(("{program}", "!{program}", random_.choice(_VALUES)))
            lines.append(setting(random_.choice(SETTINGS), value))
        else:
            lines.append(random_.choice(_ROUGH))
    random_.shuffle(lines)
    return (
        "\n".join(lines)
        .replace("{program}", str(hostile.program))
        .replace("{other}", str(hostile.git / "more"))
        .replace("{outside}", str(outside))
    )


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


DAMAGES: Final[dict[str, Callable[[HostileGit, Path], object]]] = {
    "nothing": lambda hostile, outside: None,
    "HEAD is garbage": lambda hostile, outside: (hostile.git / "HEAD").write_bytes(b"\xff\x00" * 9),
    "HEAD points out": lambda hostile, outside: (hostile.git / "HEAD").write_text(
        "ref: refs/../../../outside/secret\n"
    ),
    "HEAD is a pipe": lambda hostile, outside: _pipe(hostile.git / "HEAD"),
    "HEAD is a link out": lambda hostile, outside: (
        (hostile.git / "HEAD").unlink(),
        (hostile.git / "HEAD").symlink_to(outside / "secret.md"),
    ),
    "HEAD names a pipe": lambda hostile, outside: (
        _pipe(hostile.git / "refs" / "heads" / "pipe"),
        (hostile.git / "HEAD").write_text("ref: refs/heads/pipe\n"),
    ),
    "index is a pipe": lambda hostile, outside: _pipe(hostile.git / "index"),
    "index is a folder": lambda hostile, outside: _folder(hostile.git / "index"),
    "index is garbage": lambda hostile, outside: (hostile.git / "index").write_bytes(b"DIRC" * 99),
    "config is a pipe": lambda hostile, outside: _pipe(hostile.git / "config"),
    "packed-refs is a pipe": lambda hostile, outside: _pipe(hostile.git / "packed-refs"),
    "packed-refs is garbage": lambda hostile, outside: (hostile.git / "packed-refs").write_bytes(
        b"# pack-refs with: peeled fully-peeled sorted\n" + b"z" * 999
    ),
    "shallow is garbage": lambda hostile, outside: (hostile.git / "shallow").write_bytes(b"x\n"),
    "alternates point out": lambda hostile, outside: (
        hostile.git / "objects" / "info" / "alternates"
    ).write_text(f"{outside}\n../../../outside\n"),
    "commondir points out": lambda hostile, outside: (hostile.git / "commondir").write_text(
        f"{outside}\n"
    ),
    "objects are gone": lambda hostile, outside: shutil.rmtree(hostile.git / "objects"),
    ".git is a file": lambda hostile, outside: (
        hostile.git.rename(hostile.git.with_name("elsewhere")),
        hostile.git.write_text("gitdir: elsewhere\n"),
    ),
    ".git is a pipe": lambda hostile, outside: (
        hostile.git.rename(hostile.git.with_name("elsewhere")),
        os.mkfifo(hostile.git),
    ),
    ".git leads out": lambda hostile, outside: (
        hostile.git.rename(hostile.git.with_name("elsewhere")),
        hostile.git.write_text(f"gitdir: {outside}\n"),
    ),
}
"""What else may be wrong with a repository."""
