"""Options as values: how their fields are typed on a command line, and what explains them.

A name, a type and a default say nearly all of it: `depth: int = 2` is ``--depth``, and of a flag
that is True ``--no-…`` is typed. What they do not say stands in a `Typed` beside the type, and the
sentence for people in the docstring under the field.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

if TYPE_CHECKING:
    from filestore.server.stores import ServedStore
    from filestore.store import Store


class Typed(Struct, frozen=True, kw_only=True):
    """How a field is typed, where its name and type do not say it."""

    metavar: str | None = None
    names: tuple[str, ...] = ()
    """Of the option, instead of one like the field's name."""
    argument: bool = False
    """Whether it stands without a name."""
    joined: bool = False
    """Whether several words make one text."""
    many: bool = False
    """Whether a list takes several words at once."""
    one_of: Sequence[str] = ()
    """Words that its help lists, and that the command itself checks."""
    group: str = ""
    """Of options that exclude each other."""
    needs: str = ""
    """The field without which it means nothing."""
    hidden: bool = False
    """Whether the help leaves it out."""
    local: bool = False
    """Whether only the command line takes it, and no server."""
    inner: bool = False
    """Whether neither does, but programs that use the library."""


def option(metavar: str | None = None, *names: str, **more: Any) -> Typed:
    """How an option is typed."""
    return Typed(metavar=metavar, names=names, **more)


def argument(metavar: str, **more: Any) -> Typed:
    """How something is typed that stands without a name."""
    return Typed(metavar=metavar, argument=True, **more)


MOST_HITS: Final = 1_000
LONGEST_QUERY: Final = 10_000
"""Characters."""
LONGEST_PATH: Final = 4_096
Text = Annotated[str, Meta(max_length=LONGEST_PATH)]
# The length of a list is checked first: a million texts are refused at once.
Texts = Annotated[list[Text], Meta(max_length=1_000)]
Count = Annotated[int, Meta(ge=1, le=MOST_HITS), option("N")]
Scalar = Annotated[str, Meta(max_length=10_000)] | int | float | bool
Values = Scalar | Annotated[list[Scalar], Meta(max_length=100)]
Where = Annotated[dict[str, Values], Meta(max_length=100), option("K=V")]


class Request:
    """What may be asked of a store."""

    __slots__ = ()

    def answer(self, store: "Store") -> Any:
        """What the store answers."""
        raise NotImplementedError

    def allowed(self, store: "ServedStore") -> Self:
        """The same with nothing in it that leads out of the store.

        Raises:
            RefusedError: Something does.
        """
        return self


class CommonOptions(Struct, frozen=True, kw_only=True):
    """What every command takes."""

    store: Annotated[str | None, option("DIR", local=True)] = None
    """the store, or a folder with file_index/"""
    json: Annotated[bool, option(local=True)] = False
    """print JSON on standard output"""


class Field(Struct, frozen=True, kw_only=True):
    """One field of options."""

    name: str
    key: str
    """Its name in JSON."""
    kind: Any
    """`str`, `int`, `float`, `bool` or `dict`; of a list, that of its items."""
    hint: Any
    """As it is annotated."""
    typed: Typed
    default: Any
    required: bool
    several: bool
    choices: tuple[str, ...] | None

    @property
    def names(self) -> tuple[str, ...]:
        """What stands before its value on a command line."""
        if self.typed.argument:
            return ()
        if len(self.name) == 1:
            return (f"-{self.name}",)
        no = "no-" if self.default is True else ""
        return self.typed.names or (f"--{no}{self.name.replace('_', '-')}",)


def fields_of(kind: type[Struct]) -> tuple[Field, ...]:
    """The fields of options, in the order of their help."""
    found = []
    for one in fields(kind):
        hint, typed = _plain(one.type)
        if typed.inner:
            continue
        several = isinstance(origin := get_origin(hint), type) and issubclass(origin, Sequence)
        if several:
            hint, _ = _plain(get_args(hint)[0])
        if get_origin(hint) in (Union, UnionType):
            # Of the forms that a value may have the first is the plain one.
            hint, _ = _plain(get_args(hint)[0])
        choices = get_args(hint) if get_origin(hint) is Literal else None
        made = one.default if one.default_factory is NODEFAULT else one.default_factory()
        found.append(
            Field(
                name=one.name,
                key=one.encode_name,
                kind=str if choices else get_origin(hint) or hint,
                hint=one.type,
                typed=typed,
                default=None if one.required else made,
                required=one.required,
                several=several,
                choices=choices,
            )
        )
    return tuple(found)


def _plain(hint: Any) -> tuple[Any, Typed]:
    """A type without None and without what annotates it, and how its field is typed."""
    typed = Typed()
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            typed = next((one for one in more if isinstance(one, Typed)), typed)
            continue
        is_union = get_origin(hint) in (Union, UnionType)
        kinds = [one for one in get_args(hint) if one is not NoneType] if is_union else []
        if len(kinds) != 1:
            return hint, typed
        (hint,) = kinds


def sentences(kind: type[Struct]) -> Mapping[str, str]:
    """What the docstrings under the fields of a class say, and of those that it is made from."""
    import ast
    import inspect

    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one in (object, Struct) or not issubclass(one, Struct):
            continue
        (node,) = ast.parse(inspect.getsource(one)).body
        for field, text in pairwise(getattr(node, "body", ())):
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(field, ast.AnnAssign) and isinstance(value, ast.Constant):
                found[ast.unparse(field.target)] = " ".join(str(value.value).split())
    return found
