"""`filestore trust`: what a store would reach is shown first, and allowed only then."""

import json
import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from filestore.config import settings
from filestore.config.user_config import Originals, read_machine, remember_originals
from filestore.core.errors import RefusedError
from filestore.generate import GeneratorChoice, open_generator


@pytest.fixture
def strange(workspace: Any) -> Any:
    """A store with a record that names an original outside the work tree."""
    workspace.write("note.md", "Words of the note.\n")
    workspace("add", "note.md")
    (path,) = workspace.chunked.glob("*/meta.json")
    record = json.loads(path.read_bytes())
    outside = str(workspace.folder.parent / "diary.md")
    record["source"] = outside
    for document in record["documents"]:
        document["source"] = outside
    path.write_text(json.dumps(record))
    workspace.sync(code=None)
    return workspace


def on_terminal(workspace: Any, *words: str, answer: bytes) -> tuple[int, str]:
    """Run one command with a terminal as its input, and an answer typed ahead."""
    leader, follower = pty.openpty()
    os.write(leader, answer)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(
        [sys.executable, "-m", "filestore", *words],
        cwd=workspace.folder,
        env=environment,
        stdin=follower,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(follower)
    os.close(leader)
    return done.returncode, done.stdout + done.stderr


def test_a_list_allows_nothing(strange: Any) -> None:
    """What would be allowed is shown as often as one likes, and stays forbidden."""
    for _ in range(2):
        assert "for 1 original outside" in strange("trust", "--list").stdout
        listed = strange.json("trust", "--list")
        folder = str(strange.folder.parent)
        assert (listed["reaches"], "trusted" in listed) == ([folder], False)
        assert (listed["folders"], listed["allowed"]) == ([folder], [])
    assert "source-missing" not in strange.drift()
    assert strange.json("trust")["trusted"] is True
    assert "source-missing" in strange.drift()


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 4)])
def test_a_person_is_asked(strange: Any, answer: bytes, code: int) -> None:
    """On a terminal the folders are named before the question, and only a yes allows them."""
    found, seen = on_terminal(strange, "trust", answer=answer)
    assert found == code
    assert f"    {strange.folder.parent}" in seen.split("allow it?")[0].splitlines()
    assert "allow it? [y/N]" in seen
    assert ("source-missing" in strange.drift()) == (code == 0)


def test_yes_is_not_asked(strange: Any) -> None:
    """Who said yes beforehand is not asked on a terminal either."""
    found, seen = on_terminal(strange, "trust", "--yes", answer=b"")
    assert found == 0
    assert "[y/N]" not in seen
    assert "source-missing" in strange.drift()


SERVICE = "http://127.0.0.1:9/v1"


@pytest.fixture
def generating(workspace: Any) -> Any:
    """A store whose settings name a service that generates, and prompts for it."""
    with open(workspace.store / "filestore.toml", "a") as file:
        file.write(
            f'\n[generator]\nname = "openai:small"\nendpoint = "{SERVICE}"\nprompts = "prompts"\n'
        )
    (workspace.store / "prompts").mkdir()
    (workspace.store / "prompts" / "summary.md").write_text("version: 1\nIn rhymes.\n")
    return workspace


def open_as_settings_say(workspace: Any) -> str:
    """Open the store's generator as a command would; returns its fingerprint."""
    machine = read_machine(os.environ["XDG_CONFIG_HOME"], os.environ)
    root = str(workspace.store)
    options = settings.parse(settings.read(f"{root}/filestore.toml")).generator
    choice = GeneratorChoice(name=options.name, options=options, machine=machine, root=root)
    return open_generator(choice).fingerprint


def test_a_generator_is_shown_and_allowed(generating: Any) -> None:
    """Its service and the files that instruct it are named; before they are allowed it is none."""
    with pytest.raises(RefusedError, match=r"127\.0\.0\.1"):
        open_as_settings_say(generating)
    shown = generating("trust", "--list").stdout
    assert f"may be made by {SERVICE}" in shown
    assert "    prompts/summary.md\n" in shown
    allowed = generating.json("trust")
    service, prompts = allowed["reaches"]
    assert service == SERVICE
    assert prompts.startswith("prompts sha256:")
    assert allowed["prompts"] == ["prompts/summary.md"]
    assert "openai/" in open_as_settings_say(generating)
    generating("trust", "--revoke")
    with pytest.raises(RefusedError):
        open_as_settings_say(generating)


def test_a_changed_prompt_is_asked_about_anew(generating: Any) -> None:
    """What a pull brings is not what was allowed; it is used once that is allowed, too."""
    generating("trust")
    before = open_as_settings_say(generating)
    (generating.store / "prompts" / "summary.md").write_text("version: 1\nName every person.\n")
    with pytest.raises(RefusedError, match=r"prompts/summary\.md"):
        open_as_settings_say(generating)
    generating("trust")
    assert open_as_settings_say(generating) != before


def test_a_service_for_both_is_allowed_once(generating: Any) -> None:
    """One address for vectors and for questions is listed once."""
    path = generating.store / "filestore.toml"
    text = path.read_text().replace('embedder = "builtin"', 'embedder = "openai:tiny"')
    path.write_text(text + f'\n[model]\nendpoint = "{SERVICE}"\n')
    assert generating.json("trust", "--list")["reaches"].count(SERVICE) == 1


def test_prompts_that_cannot_be_read_are_named(generating: Any) -> None:
    """Nothing is allowed unseen: what stands in the way is said."""
    (generating.store / "prompts" / "summary.md").write_bytes(b"\xff")
    told = generating("trust", code=3)
    assert "summary.md" in told.stderr


def test_what_is_allowed_at_once_is_all_remembered(tmp_path: Path) -> None:
    """Stores that add documents at the same time do not lose what the others may look at."""

    def add(number: int) -> None:
        given = Originals(given=frozenset([f"/documents/{number}"]))
        remember_originals(str(tmp_path), f"/stores/{number % 3}", given)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(90)))
    machine = read_machine(str(tmp_path), {})
    found = [path for one in range(3) for path in machine.originals_of(f"/stores/{one}").given]
    assert sorted(found) == sorted(f"/documents/{number}" for number in range(90))
