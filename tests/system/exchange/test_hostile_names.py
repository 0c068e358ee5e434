"""What a form calls a resource or a chunk: judged as `add` judges names, whatever the form."""

from typing import Any, Final

import pytest

import filestore
from filestore.exchange.base import READ, Chunk, Collection, Resource, open_form
from filestore.ingest.sources import check_name
from filestore.verify.names import why_unportable

PACKAGE: Final = {"parquet": "pyarrow"}
NAMES: Final = (
    *("", ".", "..", "...", " ", "~", "/", "a/b", "../up", "/etc", "a\\b", "a\nb", "a\rb", "a\0b"),
    *("meta.json", "META.json", "chunk1.md", "Chunk1.MD", ".git", ".hidden", "con", "NUL.md"),
    *("trailing ", "trailing.", "x" * 255, "X" * 255, "x" * 300, "é", "e\u0301", "\u00c9", "a:b"),
    *("\u202ename", "\ufeffname", "r", "R", "r-", "resource-", "🜁" * 80, "-o", "a" * 251 + ".md"),
)
CHUNKS: Final = ("chunk1.md", "a.md", "a.md/b.md", "meta.json/c.md", "../d.md", "sub/e.md", "x")


@pytest.fixture(params=READ)
def form(request: pytest.FixtureRequest) -> str:
    """Each form by its name; one whose package is missing is skipped."""
    name = str(request.param)
    if name in PACKAGE:
        pytest.importorskip(PACKAGE[name])
    return name


def resource(name: str, *, with_record: bool) -> Resource:
    """One with chunks of every kind of path, and its record."""
    chunks = (
        Chunk(path=f"{name}/{path}" if name else path, text=f"Text of {name!r} in {path}.\n")
        for path in CHUNKS
    )
    record = {"format": 1, "kind": "file", "source": "../x.md", "documents": []}
    return Resource(name=name, chunks=tuple(chunks), record=record if with_record else None)


def taken(workspace: Any, form: str, names: list[str], *, records: bool) -> None:
    """Import some resources twice: all there is comes in under sound names, and stays."""
    made = Collection(resources=[resource(name, with_record=records) for name in names])
    target = workspace.folder / f"all.{form}"
    open_form(form).write(str(target), made)
    with filestore.Store.open(workspace.store) as store:
        done = store.import_from(form, target, embed=False)
        assert not done.of_status("refused"), done
        there = workspace.truth()
        assert store.import_from(form, target, embed=False).files == 0
    assert workspace.truth() == there
    for folder in {path.partition("/")[0] for path in there if "/" in path}:
        check_name(folder)
        assert why_unportable(folder) == ""
    assert "meta.json" not in there
    said = b"\n".join(there.values()).decode()
    for one in made.resources:
        assert all(f"Text of {one.name!r} in {path}." in said for path in CHUNKS), one.name
    names_found = {finding["code"] for finding in workspace.json("verify", code=None)["findings"]}
    assert not names_found & {"name-collision", "unportable-name", "unreadable", "not-a-file"}


@pytest.mark.safety
@pytest.mark.parametrize("layout", ["tree", "flat"])
@pytest.mark.parametrize("records", [False, True])
def test_hostile_names_become_sound_ones(
    new_workspace: Any, form: str, layout: str, records: bool
) -> None:
    """Nothing is lost, nothing lies where a record belongs, and a second import changes nothing."""
    taken(new_workspace(layout=layout), form, list(NAMES), records=records)
