"""Programs are started without the working folder, which may come from a stranger."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import filestore
from filestore.fs import programs
from tests.conftest import Script

PACKAGE = str(Path(filestore.__file__).parents[1])
SHOWS = "#!/bin/sh\necho $0\n"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with modules that leave a mark and programs that no one asked for."""
    folder = tmp_path / "hostile"
    (folder / "bin").mkdir(parents=True)
    mark = f"open({str(tmp_path / 'mark')!r}, 'a').write(__name__ + ' ')\n"
    for name in ("sitecustomize", "tempfile", "json", "multiprocessing", "lxml", "select"):
        (folder / f"{name}.py").write_text(mark)
    for place in (folder, folder / "bin"):
        program(place / "git")
    monkeypatch.chdir(folder)
    return folder


def program(path: Path, script: str = SHOWS) -> None:
    path.write_text(script)
    path.chmod(0o755)


def was_run(folder: Path) -> bool:
    return (folder.parent / "mark").exists()


@pytest.mark.parametrize("first", ["", ".", "bin", "./bin", ":.:", "~/bin"])
def test_programs_come_from_absolute_entries(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """A name is looked up in absolute entries of PATH alone; a name with a slash is a choice."""
    absolute = tmp_path / "programs"
    absolute.mkdir()
    monkeypatch.setenv("PATH", f"{first}:{absolute}")
    assert programs.find_program("git") is None
    with pytest.raises(FileNotFoundError, match="git"):
        programs.run_program(["git"])
    program(absolute / "git")
    assert programs.find_program("git") == str(absolute / "git")
    done = programs.run_program(["./git"], stdout=subprocess.PIPE)
    assert done.stdout == b"./git\n"


@pytest.mark.parametrize("path", ["", ".", ":"])
def test_an_empty_path_is_no_working_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Where PATH names no absolute folder, those of the system are searched."""
    monkeypatch.setenv("PATH", path)
    found = programs.find_program("git")
    assert found is None or not Path(found).is_relative_to(hostile)
    assert programs.safe_variables(os.environ)["PATH"] == os.defpath


def test_a_persons_program_has_their_environment(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What helpers of libraries inherit is neither an editor's, nor left behind."""
    given = {"PATH": f":.:{tmp_path}", "PYTHONPATH": f":{hostile}:{tmp_path}"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    program(tmp_path / "editor", "#!/bin/sh\nexport -p > seen\n")
    before = dict(os.environ)
    with programs.guarded(), programs.guarded():
        assert os.environ["PATH"] == os.environ["PYTHONPATH"] == str(tmp_path)
        assert os.environ["PYTHONSAFEPATH"] == "1"
        assert programs.run_program(["editor"]).returncode == 0
    assert dict(os.environ) == before
    seen = (hostile / "seen").read_text()
    assert "PYTHONSAFEPATH" not in seen
    for name, value in given.items():
        assert f"{name}='{value}'" in seen or f'{name}="{value}"' in seen


def test_helpers_of_libraries_are_guarded(hostile: Path, script: Script) -> None:
    """A resource tracker, which Python starts by itself, imports nothing of the folder."""
    code = (
        "import sys; sys.path[:] = [one for one in sys.path if one]\n"
        "from contextlib import nullcontext\n"
        "from filestore.fs.programs import guarded\n"
        "with guarded() if sys.argv[1] == 'guarded' else nullcontext():\n"
        "    from multiprocessing import resource_tracker\n"
        "    resource_tracker.ensure_running()\n"
        "    resource_tracker._resource_tracker._stop()\n"
    )
    assert script(code, "guarded", cwd=hostile).code == 0
    assert not was_run(hostile)
    script(code, "unguarded", cwd=hostile)
    assert was_run(hostile), "the trap holds nothing"


def test_importing_the_library_changes_no_environment(script: Script) -> None:
    """Neither variables nor the path of whoever imports it."""
    code = (
        "import os, sys; before = dict(os.environ), list(sys.path)\n"
        "import filestore, filestore.fs.programs, filestore.git.process; filestore.Store\n"
        "assert (dict(os.environ), sys.path) == before\n"
    )
    done = script(code)
    assert done.code == 0, done.stderr


EXTRACTS = """
from filestore.extract.pool import ExtractionProcess, ReadingLimits
process = ExtractionProcess(ReadingLimits())
print(process.extract(b"<h1>A</h1><p>zebra", name="a.html").text)
process.kill()
"""


@pytest.mark.parametrize("how", ["-c", "script", "folder", "input", "module", "PYTHONPATH"])
def test_an_embedding_program_in_the_folder(tmp_path: Path, how: str) -> None:
    """However a program of the folder is started, what reads documents for it imports nothing."""
    folder = tmp_path / "project"
    folder.mkdir()
    mark = f"open({str(tmp_path / 'mark')!r}, 'w')\n"
    for name in ("bs4", "lxml", "selectolax", "markdownify"):
        (folder / f"{name}.py").write_text(mark)
    for name in ("tool.py", "__main__.py"):
        (folder / name).write_text(EXTRACTS)
    command, cwd = {
        "-c": (["-c", EXTRACTS], folder),
        "script": ([str(folder / "tool.py")], tmp_path),
        "folder": ([str(folder)], tmp_path),
        "module": (["-m", "tool"], folder),
    }.get(how, (["-"], folder))
    path = f":.:{folder}:{PACKAGE}" if how == "PYTHONPATH" else PACKAGE
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path, "PWD": str(cwd)},
        input=EXTRACTS if command == ["-"] else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "zebra" in done.stdout, done.stderr
    assert not (tmp_path / "mark").exists()


def test_a_child_imports_what_we_import(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages below the working folder stay, and those of a program that embeds us."""
    kept = [str(hostile / ".venv" / "site-packages"), str(hostile.parent / "vendored"), PACKAGE]
    dropped = ["", ".", "bin", str(hostile), f"{hostile}/../hostile", f"{hostile}:bin"]
    for folder in kept:
        os.makedirs(folder, exist_ok=True)
    monkeypatch.setattr(sys, "path", [*dropped, *kept, *sys.path])
    with programs.start_python("site", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = process.stdout.read().decode().splitlines()
    found = [line.strip(" ',") for line in lines if line.startswith("    ")]
    assert [one for one in found if one in kept] == kept
    assert not {os.path.realpath(one) for one in found} & {str(hostile), str(hostile / "bin")}
    assert not was_run(hostile)


def test_the_library_in_the_working_folder(tmp_path: Path) -> None:
    """A copy of the package that is used from there, say a checkout, is what its children use."""
    (tmp_path / "filestore").symlink_to(Path(PACKAGE) / "filestore", target_is_directory=True)
    code = (
        "import sys, filestore.fs.programs as programs\n"
        f"assert programs._OWN == {str(tmp_path)!r}, programs._OWN\n" + EXTRACTS
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "zebra" in done.stdout, done.stderr
