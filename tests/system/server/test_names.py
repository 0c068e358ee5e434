"""Names that programs give to folders and documents: one judge, whichever the door."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import filestore
from filestore import FilestoreError, Store
from filestore.server.collection import check_name
from filestore.server.http import app
from filestore.server.operations import ROUTES, TOOLS, Operation
from tests.advice import advised
from tests.system.conftest import files_below
from tests.system.server.conftest import GAS

WRONG = [
    *(
        "..",
        ".",
        ".hidden",
        "a/b",
        "../a",
        "/a",
        "a\0b",
        "a\nb",
        "a\rb",
        "a\tb",
        "a\x1bb",
        "a\x7fb",
    ),
    *("a\u0085b", "a\u202eb", "a\u2066b", "a\u2028b", "\ufeffa", "a\U000e0041b", "a\udcffb"),
    *("x" * 256, "é" * 128, "con", "LPT1", "nul.x", "a:b", "a\\b", 'a"b', "a*", "a?", "a|b", "a."),
]
RIGHT = ["notes 2024", "Gebäude", "知識", "👩\u200d💻", "می\u200cخواهم", "console", "a..b"]
NAMING = ("into", "folder")
"""What operations call the name of a folder that is to be made."""


def asked(operation: Operation, parameter: str) -> Callable[[Store, str], Any]:
    """An operation that is given a name."""

    def ask(store: Store, name: str) -> Any:
        document = Path(store.root, "docs", f"{len(name)}-{ord(name[0])}.md")
        document.parent.mkdir(exist_ok=True)
        document.write_text(GAS)
        given = {"text": GAS, "paths": [str(document)]}
        needed = {key: given[key] for key in operation.schema["required"]}
        done = operation.checked(needed | {parameter: name}).answer(store).to_dict()
        for failed in done.get("failed", ()):
            raise FilestoreError(failed["error"], remedy="a report tells of each document")
        return done

    return ask


def uploaded(store: Store, name: str, into: str = "") -> Any:
    """A document that is sent."""
    sent = [app.Upload(name=name, data=GAS.encode())]
    return app.take_uploads(store, sent, into=into, replace=True)


DOORS: dict[str, Callable[[Store, str], Any]] = {
    **{
        f"{one.name} {parameter}": asked(one, parameter)
        for one in {**ROUTES, **TOOLS}.values()
        for parameter in NAMING
        if one.writes and parameter in one.schema["properties"]
    },
    "put": lambda store, name: store.put(GAS, into=name),
    "put names": lambda store, name: store.put(GAS, into="notes", names=name),
    "upload": lambda store, name: uploaded(store, f"{name}.md" if name in RIGHT else name),
    "upload into": lambda store, name: uploaded(store, "gas.md", name),
    "collection": lambda _, name: check_name(name),
}
ANY_SYSTEM = ("con", "LPT1", "nul.x", "a:b", "a\\b", 'a"b', "a*", "a?", "a|b", "a.")
OF_OTHERS = ("put names", "collection")
"""Where names are ids and addresses of other programs, some systems may not hold them."""


@pytest.mark.parametrize("door", DOORS)
def test_a_name_is_judged_the_same_at_every_door(tmp_path: Path, door: str) -> None:
    """Refused in words with what helps, and nothing is written; or taken as it is."""
    with filestore.create(tmp_path / "kb", embedder="builtin") as store:
        before = files_below(tmp_path)
        for name in WRONG:
            if door in OF_OTHERS and name in ANY_SYSTEM:
                continue
            with pytest.raises(FilestoreError) as refused:
                DOORS[door](store, name)
            assert advised(refused.value), name
            assert "\n" not in refused.value.message
            written = files_below(tmp_path).keys() - before.keys()
            assert not [path for path in written if "/." not in path and "/docs/" not in path], name
        for name in RIGHT:
            DOORS[door](store, name)
        assert "unportable-name" not in {one.code for one in store.verify().findings}
