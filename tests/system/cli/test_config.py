"""What a person wants in every store: `config` lists it, and no store sets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pseudo_terminal import on_terminal

Run = Callable[..., Any]


@pytest.fixture
def vault(run: Run, tmp_path: Path) -> Path:
    """Three documents in place; one has a name that must not end a link."""
    folder = tmp_path / "vault"
    folder.mkdir()
    for name in ("lease.md", "roof.md", "a \x1b\\ 'b\".md"):
        (folder / name).write_text(f"# {name[0]}\n\nThe harbour of this note.\n")
    run("init", "--in-place", str(folder), "--embedder", "builtin")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Writes the user's settings and gives the variables that lead to them."""

    def write(text: str) -> dict[str, str]:
        folder = tmp_path / "own" / "filestore"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.toml").write_text(text)
        return {"XDG_CONFIG_HOME": str(tmp_path / "own")}

    return write


def listed(run: Run, **variables: str) -> dict[str, tuple[str, str]]:
    """Each default with its origin."""
    found = json.loads(run("config", "--json", env=variables).stdout)
    return {one["name"]: (one["value"], one["origin"]) for one in found["defaults"]}


def test_each_value_is_listed_with_its_origin(run: Run, own: Any, tmp_path: Path) -> None:
    """Variables of filestore, then the user's settings, then variables of any program."""
    none = {"NO_COLOR": "", "TERM": "xterm", "PAGER": "more", "EDITOR": "ed", "VISUAL": ""}
    assert listed(run, **none) == {
        "limit": ("10", ""),
        "mode": ("hybrid", ""),
        "color": ("auto", ""),
        "pager": ("more", "PAGER"),
        "editor": ("ed", "EDITOR"),
        "links": ("", ""),
    }
    variables = own('[defaults]\nlimit = 3\npager = ""\neditor = "vim"\nlinks = "a:{path}"\n')
    file = str(tmp_path / "own" / "filestore" / "settings.toml")
    found = listed(run, **none, **variables)
    assert {name for name, (_, origin) in found.items() if origin == file} == {
        *("limit", "pager", "editor", "links")
    }
    found = listed(run, **variables, FILESTORE_PAGER="x", FILESTORE_EDITOR_URI="b:", NO_COLOR="1")
    assert found["pager"] == ("x", "FILESTORE_PAGER")
    assert found["links"] == ("b:", "FILESTORE_EDITOR_URI")
    assert found["color"] == ("never", "NO_COLOR")
    done = run("config", env={**none, **variables})
    assert f"limit   3  ({file})\n" in done.stdout
    assert f"your settings: {file}\n" in done.stderr


def test_limit_and_mode_hold_on_a_terminal_alone(run: Run, vault: Path, own: Any) -> None:
    """A script of two people prints the same for both; what is typed comes first."""
    variables = own('[defaults]\nlimit = 1\nmode = "keyword"\n')
    words = ("search", "harbour", "-l")
    assert len(on_terminal(vault, *words, **variables).text.splitlines()) == 1
    assert len(on_terminal(vault, *words, "-n", "2", **variables).text.splitlines()) == 2
    assert len(run(*words, cwd=vault, env=variables).stdout.splitlines()) == 3
    shown = on_terminal(vault, "search", "harbour", "--json=hits.path,mode", **variables).text
    found = json.loads(shown)
    assert (len(found["hits"]), found["mode"]) == (3, "hybrid")


def test_a_store_sets_none_of_it(run: Run, vault: Path) -> None:
    """A clone chooses no program and no address: its table is an unknown key."""
    with (vault / "filestore.toml").open("a") as settings:
        settings.write('\n[defaults]\npager = "touch owned"\nlinks = "evil:{path}"\nlimit = 1\n')
    shown = on_terminal(vault, "search", "harbour", "-l")
    assert shown.text.count(".md") == 3
    assert "defaults" in run("search", "harbour", cwd=vault).stderr
    assert "evil" not in on_terminal(vault, "search", "harbour").text
    on_terminal(vault, "show", "lease.md", size=(2, 80), PAGER="cat")
    assert not (vault / "owned").exists()


def test_hits_on_a_terminal_are_links(run: Run, vault: Path, own: Any) -> None:
    """Only there, and no name ends the address."""
    form = "vscode://file{path}:{line}"
    shown = on_terminal(vault, "search", "harbour", FILESTORE_EDITOR_URI=form).text
    assert f"\x1b]8;;vscode://file{vault}/lease.md:3\x1b\\" in shown
    assert "/a%20%1B%5C%20%27b%22.md:3\x1b\\" in shown
    words = ("search", "harbour")
    assert "\x1b]8" in on_terminal(vault, *words, **own(f'[defaults]\nlinks = "{form}"\n')).text
    for bad in ("", "no address", "\x1b]0;x:{path}", "x:\x07{path}"):
        assert "\x1b]8" not in on_terminal(vault, *words, FILESTORE_EDITOR_URI=bad).text
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b]8" not in on_terminal(vault, *words, FILESTORE_EDITOR_URI=form, **plain).text
    piped = run(*words, cwd=vault, env={"FILESTORE_EDITOR_URI": form, "FORCE_COLOR": "1"})
    assert "\x1b]8" not in piped.stdout


@pytest.mark.parametrize(
    "text",
    ["[defaults]\nlimit = 0\n", "[defaults]\nmode = 'best'\n", "[defaults", "defaults = 1\n"],
)
def test_settings_that_cannot_be_used_are_named(run: Run, vault: Path, own: Any, text: str) -> None:
    """A store opens without a preference, not without its settings; help needs neither."""
    variables = own(text) | {"PAGER": "cat"}
    shown = run("config", env=variables)
    assert (shown.code, "settings.toml" in shown.stderr) == (3, True)
    shown = on_terminal(vault, "search", "harbour", **variables)
    assert (shown.code, "settings.toml" in shown.text) == (3 if text == "[defaults" else 0, True)
    assert "Traceback" not in shown.text
    assert on_terminal(vault, "help", "search", **variables).code == 0


def test_an_unknown_key_is_named(run: Run, own: Any) -> None:
    """One that is spelled wrong would do nothing, without a word."""
    done = run("config", env=own("[defaults]\nlimits = 3\n"))
    assert (done.code, "limits" in done.stderr) == (0, True)


def test_what_is_wrong_names_its_file_once(run: Run, own: Any) -> None:
    """With the key, what it takes and what it has."""
    done = run("config", env=own('[defaults]\nlimit = "x"\n'))
    assert done.code == 3
    assert "defaults.limit must be a whole number, found 'x'" in done.stderr
    assert done.stderr.count("settings.toml") == 1
