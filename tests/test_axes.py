"""Choices that are made once, as a store is opened: no other module asks which one was made."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Final

import pytest
from msgspec import Struct

from filestore.past.views import PastStore
from filestore.store.reading import ReadableStore
from tests.test_architecture import MODULES, parsed


class Axis(Struct, frozen=True, kw_only=True):
    """A choice among members of one contract."""

    known_in: tuple[str, ...]
    """How the names of the modules begin that may know its members."""
    named: str
    """A pattern of the identifiers that speak of it."""
    most_lines: int
    """So many lines elsewhere may have such an identifier."""
    members: frozenset[str]
    """Classes, and what settings or a command line call them: compared nowhere else."""


AXES: Final = {
    "layout": Axis(
        known_in=(
            "filestore/core/paths",  # the trees: where files lie, what a path means
            "filestore/config/settings",  # names of layouts, each with its tree
            "filestore/config/layout",
            "filestore/chunks/layout",
            "filestore/sidecar/documents",
            "filestore/cli/setup",  # the command that chooses
        ),
        named=r"(?i)in_?place|MadeFiles",
        most_lines=0,
        members=frozenset(
            [
                "CHUNKS",
                "DOCUMENTS",
                "ChunkFiles",
                "Documents",
                "MadeFiles",
                "TREE",
                "FLAT",
                "MADE",
                "in-place",
            ]
        ),
    ),
    "home of the vectors": Axis(
        known_in=(
            "filestore/index/",
            "filestore/config/settings",  # the table of kinds, and its two keys
            "filestore/config/written",
            "filestore/sidecar/vector_",
            "filestore/sync/switching",  # from one home to another
            "filestore/cli/models",  # the command that chooses
        ),
        named=r"(?i)backend|qdrant|pgvector|\bOwnFile|VectorRows|FaissRows|LocalRows",
        most_lines=30,
        members=frozenset(
            [
                "OwnFile",
                "VectorRows",
                "FaissRows",
                "LocalRows",
                "QdrantRows",
                "PgvectorRows",
                "faiss",
                "local",
                "qdrant",
                "pgvector",
            ]
        ),
    ),
    "time": Axis(
        known_in=("filestore/past/",),
        named=r"\bPast[A-Z]|^filestore\.past\.views?$",
        most_lines=3,  # a store opens one
        members=frozenset(["PastStore", "PastParts"]),
    ),
}


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_members_are_compared_in_their_own_modules_alone(axis: Axis) -> None:
    """Elsewhere a method or a property of the contract answers."""
    found = {
        f"{module}.py:{node.lineno}"
        for module in _elsewhere(axis)
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Compare | ast.MatchValue | ast.MatchClass | ast.Call)
        for one in _compared(node)
        if one in axis.members
    }
    assert not found


def test_no_tree_is_told_by_its_folder() -> None:
    """What differs has a name, `is_written` or `has_sections`: a path is no answer."""
    found = {
        f"{module}.py:{node.lineno}"
        for module in _elsewhere(AXES["layout"])
        for node in ast.walk(parsed(module))
        for test in _asked(node)
        if isinstance(test, ast.Attribute) and ast.unparse(test).endswith("tree.folder")
    }
    assert not found


def _asked(node: ast.AST) -> list[ast.expr]:
    """What a node takes for true or false."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return [test]
        case ast.UnaryOp(op=ast.Not(), operand=test):
            return [test]
        case ast.BoolOp(values=values):
            return values
    return []


def test_a_store_is_asked_alike_at_any_time() -> None:
    """Whatever the store at a commit is asked, the store of now is asked in the same words."""
    asked = {name: value for name, value in vars(PastStore).items() if inspect.isfunction(value)}
    assert asked.keys() >= {"search", "close"}
    for name in asked.keys() & vars(ReadableStore).keys() - {"__init__"}:
        now = inspect.signature(getattr(ReadableStore, name)).parameters
        then = inspect.signature(asked[name]).parameters
        assert [(one.name, one.kind) for one in now.values()] == [
            (one.name, one.kind) for one in then.values()
        ]


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_few_lines_elsewhere_know_an_axis(axis: Axis) -> None:
    """Counted are lines with an identifier that speaks of it; a lower count is written down."""
    pattern = re.compile(axis.named)
    lines = {
        (module, node.lineno)
        for module in _elsewhere(axis)
        for node in ast.walk(parsed(module))
        for name in _identifiers(node)
        if pattern.search(name)
    }
    assert len(lines) == axis.most_lines, sorted(lines)


def _elsewhere(axis: Axis) -> list[str]:
    return [module for module in MODULES if not module.startswith(axis.known_in)]


def _compared(node: ast.AST) -> Iterator[str]:
    """The names and texts that a node compares something with."""
    if isinstance(node, ast.Call):
        is_test = isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
        parts = node.args[1:] if is_test else []
    elif isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    else:
        parts = [node]
    for part in parts:
        for one in ast.walk(part):
            yield from _identifiers(one)
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value


def _identifiers(node: ast.AST) -> list[str]:
    """The names that one node of a syntax tree brings in or uses."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return [name]
        case ast.keyword(arg=str(name)):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ImportFrom(module=module, names=names):
            return [module or "", *(alias.name for alias in names)]
        case ast.Import(names=names):
            return [alias.name for alias in names]
    return []
