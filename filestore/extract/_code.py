"""Source code: the file itself, with where its functions and classes start by its grammar.

One rule: whatever a parser makes of a file, its text comes out unchanged, and nothing takes longer
than in proportion to the text, however odd it is: rows, not bytes, lead from the tree to the text.
"""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from filestore.chunking import Symbol, without_data
from filestore.extract import language_of
from filestore.extract.base import (
    Document,
    ExtractionError,
    Extractor,
    decode,
    document_text,
    encoding_metadata,
    names_in,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Tree


class Grammar(Struct, frozen=True, kw_only=True):
    """Where a grammar is, and which nodes of it matter."""

    module: str
    definitions: frozenset[str]
    """Functions, classes and what else has a name and a body."""
    function: str = "language"
    separator: str = "."
    """Between a name and the one around it."""
    wrappers: frozenset[str] = frozenset()
    """What is around one definition and starts before it."""
    leads: frozenset[str] = frozenset({"comment"})
    """What is above a definition and belongs to it."""
    constants: frozenset[str] = frozenset()
    """Named values, which count where they are large."""


_SCRIPT_DEFINITIONS: Final = """
    function_declaration generator_function_declaration class_declaration method_definition
    variable_declarator assignment_expression pair field_definition
"""
_SCRIPT_WRAPPERS: Final = "export_statement lexical_declaration variable_declaration"
_TYPESCRIPT: Final = names_in(
    f"""{_SCRIPT_DEFINITIONS} abstract_class_declaration interface_declaration enum_declaration
    type_alias_declaration internal_module module function_signature public_field_definition
    abstract_method_signature"""
)
_SCRIPT_LEADS: Final = names_in("comment decorator")

GRAMMARS: Final = {
    "python": Grammar(
        module="tree_sitter_python",
        definitions=names_in("function_definition class_definition"),
        wrappers=names_in("decorated_definition"),
        constants=names_in("assignment"),
    ),
    "javascript": Grammar(
        module="tree_sitter_javascript",
        definitions=names_in(_SCRIPT_DEFINITIONS),
        wrappers=names_in(f"{_SCRIPT_WRAPPERS} expression_statement"),
        leads=_SCRIPT_LEADS,
        constants=names_in("variable_declarator"),
    ),
    "typescript": Grammar(
        module="tree_sitter_typescript",
        function="language_typescript",
        definitions=_TYPESCRIPT,
        wrappers=names_in(f"{_SCRIPT_WRAPPERS} expression_statement ambient_declaration"),
        leads=_SCRIPT_LEADS,
        constants=names_in("variable_declarator"),
    ),
    "tsx": Grammar(
        module="tree_sitter_typescript",
        function="language_tsx",
        definitions=_TYPESCRIPT,
        wrappers=names_in(f"{_SCRIPT_WRAPPERS} expression_statement ambient_declaration"),
        leads=_SCRIPT_LEADS,
        constants=names_in("variable_declarator"),
    ),
    "java": Grammar(
        module="tree_sitter_java",
        definitions=names_in(
            """class_declaration interface_declaration enum_declaration record_declaration
            annotation_type_declaration method_declaration constructor_declaration
            compact_constructor_declaration"""
        ),
        leads=names_in("line_comment block_comment"),
    ),
    "c": Grammar(
        module="tree_sitter_c",
        definitions=names_in(
            """function_definition struct_specifier union_specifier enum_specifier type_definition
            preproc_function_def"""
        ),
        constants=names_in("declaration"),
    ),
    "cpp": Grammar(
        module="tree_sitter_cpp",
        separator="::",
        definitions=names_in(
            """function_definition struct_specifier union_specifier enum_specifier type_definition
            preproc_function_def class_specifier namespace_definition concept_definition"""
        ),
        wrappers=names_in("template_declaration"),
        constants=names_in("declaration"),
    ),
    "csharp": Grammar(
        module="tree_sitter_c_sharp",
        definitions=names_in(
            """namespace_declaration class_declaration interface_declaration struct_declaration
            enum_declaration record_declaration record_struct_declaration delegate_declaration
            method_declaration constructor_declaration destructor_declaration property_declaration
            operator_declaration indexer_declaration local_function_statement"""
        ),
    ),
    "go": Grammar(
        module="tree_sitter_go",
        definitions=names_in("function_declaration method_declaration type_spec type_alias"),
        wrappers=names_in("type_declaration"),
        constants=names_in("const_declaration var_declaration"),
    ),
    "rust": Grammar(
        module="tree_sitter_rust",
        separator="::",
        definitions=names_in(
            """function_item function_signature_item struct_item enum_item union_item trait_item
            impl_item mod_item macro_definition"""
        ),
        leads=names_in("line_comment block_comment attribute_item"),
        constants=names_in("const_item static_item"),
    ),
    "ruby": Grammar(
        module="tree_sitter_ruby",
        definitions=names_in("module class method singleton_method"),
        constants=names_in("assignment"),
    ),
    "php": Grammar(
        module="tree_sitter_php",
        function="language_php",
        separator="::",
        definitions=names_in(
            """namespace_definition class_declaration interface_declaration trait_declaration
            enum_declaration function_definition method_declaration"""
        ),
        constants=names_in("const_declaration"),
    ),
    "bash": Grammar(
        module="tree_sitter_bash",
        definitions=names_in("function_definition"),
        constants=names_in("variable_assignment"),
    ),
}


_LIMIT_BYTES: Final = 16_000_000  # a larger file is data
_READ_BYTES: Final = 65_536
_STEPS: Final = 2_000  # of the parser, however short the text is …
_BYTES_PER_STEP: Final = 20  # … and as many more; sound code takes one for 200 bytes
_TREE_DEPTH: Final = 150
_MAX_LEVEL: Final = 8
_LARGE_ROWS: Final = 8  # a constant over as many lines is worth a name
_NAME_LIMIT: Final = 120

_DECLARATORS: Final = 8  # around the name of a C function: pointers, references, arrays
_VALUES: Final = names_in("arrow_function function_expression generator_function class function")
"""What makes a name in JavaScript that of a function or class."""
_ASSIGNED: Final = names_in(
    "variable_declarator assignment_expression pair field_definition public_field_definition"
)
_BODIES: Final = names_in(
    """struct_specifier union_specifier enum_specifier class_specifier namespace_definition
    mod_item"""
)
_LINE_END: Final = re.compile(r"\n")
_RECEIVER: Final = re.compile(r"([^\W\d]\w*)\s*(?:\[[^\]]*\])?\s*\)\s*$")
_CONTENT: Final = re.compile(
    r"^[ \t]*(?!(?:end|fi|done|esac|#endif|\?>)\b)[^\s)}\];,]", re.MULTILINE
)
"""A line that is more than the end of something."""


class Definition(Struct, frozen=True, kw_only=True):
    """A named part of the code, in rows."""

    first: int
    """From 0; what leads up to it included."""
    last: int
    level: int
    title: str


class _Frame(Struct, kw_only=True):
    """A node whose children are being looked at."""

    level: int
    """Of the definitions among them."""
    prefix: str
    """Of their names."""
    wrapped: int | None
    """First row of a wrapper around the first of them."""
    lead: int | None = None
    """First row of the comments above the next child."""
    lead_end: int = -1
    code_end: int = -1
    """Last row of the child before; a comment on it belongs to that."""


def parsed_outline(text: str, language: str) -> tuple[Symbol, ...]:
    """The outline of source code; empty where no grammar for it is installed or it finds nothing.

    Args:
        text: With LF line ends.
        language: As `language_of` names it.
    """
    grammar = GRAMMARS.get(language)
    data = text.encode(errors="replace") if grammar else b""
    if grammar is None or len(data) > _LIMIT_BYTES:
        return ()
    tree = _parse(data, grammar)
    return _sections(text, _definitions(tree, data, grammar)) if tree else ()


def _parse(data: bytes, grammar: Grammar) -> "Tree | None":
    try:
        from tree_sitter import Language, Parser

        parser = Parser(Language(getattr(import_module(grammar.module), grammar.function)()))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None  # not installed, or made for another version: the text is worth having alone
    steps = _STEPS + len(data) // _BYTES_PER_STEP

    def is_enough(_offset: int, _has_error: bool) -> bool:
        nonlocal steps
        steps -= 1
        return steps < 0

    try:
        return parser.parse(
            lambda offset, _point: data[offset : offset + _READ_BYTES], progress_callback=is_enough
        )
    except ValueError:
        return None


def _definitions(tree: "Tree", data: bytes, grammar: Grammar) -> Iterator[Definition]:
    """Walks the tree, past what is on one line and holds no definition.

    Not by a query: its cost grows with the square of the children of a node.
    """
    cursor = tree.walk()
    frames = [_Frame(level=1, prefix="", wrapped=None)]
    if not cursor.goto_first_child():
        return
    while True:
        node = cursor.node
        inner, found = _look(node, data, grammar, frames[-1]) if node else (None, None)
        if found:
            yield found
        if inner and len(frames) < _TREE_DEPTH and cursor.goto_first_child():
            frames.append(inner)
            continue
        while not cursor.goto_next_sibling():
            frames.pop()
            if not frames or not cursor.goto_parent():
                return


def _look(
    node: "Node", data: bytes, grammar: Grammar, frame: _Frame
) -> tuple[_Frame | None, Definition | None]:
    """What a node is: the frame for its children if they are worth a look, and its definition."""
    if not node.is_named:
        return None, None
    kind, first = node.type, node.start_point.row
    row, column = node.end_point
    # Some nodes end with the line end after their last character.
    last = row - 1 if column == 0 and row > first else row
    if kind in grammar.leads:
        if first != frame.code_end:
            if frame.lead is None or first - frame.lead_end > 1:
                frame.lead = first
            frame.lead_end = last
        return None, None
    lead = frame.lead if first - frame.lead_end <= 1 else None
    start = next((row for row in (frame.wrapped, lead) if row is not None), first)
    frame.lead, frame.code_end = None, last
    name = _name(node, data, grammar) if frame.level <= _MAX_LEVEL else ""
    if not name:
        wrapped = start if kind in grammar.wrappers else None
        is_open = last > first or wrapped is not None
        inner = _Frame(
            level=frame.level,
            prefix=frame.prefix,
            wrapped=wrapped,
            lead=lead,  # of a body that has no line of its own above its first child
            lead_end=frame.lead_end,
            code_end=first if lead is None else -1,
        )
        return (inner if is_open else None), None
    frame.wrapped = None
    title, prefix = _titles(node, data, name, frame.prefix)
    found = Definition(first=start, last=last, level=frame.level, title=title)
    inner = _Frame(
        level=frame.level + 1, prefix=prefix + grammar.separator, wrapped=None, code_end=first
    )
    return (inner if last > first else None), found


def _name(node: "Node", data: bytes, grammar: Grammar) -> str:
    """The name of a definition; empty where the node is none, or has none."""
    kind = node.type
    if kind in grammar.definitions and _is_defined(node, kind):
        named = _field(node, "name", "left", "key", "property", "operator") or _declared(node)
        if kind == "impl_item":
            named = _field(node, "type")
        if named:
            return _text(named, data)
    rows = node.end_point.row - node.start_point.row
    if kind in grammar.constants and rows >= _LARGE_ROWS:
        named = _field(node, "left", "name") or _declared(node)
        inner = node.named_child(0)
        if named is None and inner is not None:
            named = _field(inner, "name")
        return _text(named, data) if named else ""
    return ""


def _is_defined(node: "Node", kind: str) -> bool:
    """Whether the node is more than a mention or a declaration in advance."""
    if kind in _ASSIGNED:
        value = _field(node, "value", "right")
        return value is not None and value.type in _VALUES
    if kind == "type_definition":
        inner = _field(node, "type")
        is_nameless = inner is not None and _field(inner, "name") is None
        return is_nameless and inner is not None and _field(inner, "body") is not None
    if kind == "property_declaration":
        return node.end_point.row > node.start_point.row
    return kind not in _BODIES or _field(node, "body") is not None


def _field(node: "Node", *names: str) -> "Node | None":
    return next((child for name in names if (child := node.child_by_field_name(name))), None)


def _declared(node: "Node") -> "Node | None":
    """The name in the declarator of C, which may be a pointer to a function with the name in it."""
    inner = _field(node, "declarator")
    for _ in range(_DECLARATORS):
        if inner is None:
            return None
        is_bracketed = inner.type == "parenthesized_declarator"
        deeper = inner.named_child(0) if is_bracketed else _field(inner, "declarator")
        if deeper is None:
            return inner
        inner = deeper
    return inner


def _titles(node: "Node", data: bytes, name: str, prefix: str) -> tuple[str, str]:
    """What a definition is called, and what the names inside it begin with."""
    trait, receiver = _field(node, "trait"), _field(node, "receiver")
    if node.type == "impl_item":
        title = f"impl {_text(trait, data)} for {name}" if trait else f"impl {name}"
        return title, prefix + name.partition("<")[0]
    if receiver is not None:
        owner = _RECEIVER.search(_text(receiver, data))
        name = f"{owner[1]}.{name}" if owner else name
    return prefix + name, prefix + name


def _text(node: "Node", data: bytes) -> str:
    end = min(node.end_byte, node.start_byte + 4 * _NAME_LIMIT)
    words = data[node.start_byte : end].decode(errors="ignore").split()
    return " ".join(words)[:_NAME_LIMIT].strip("\"'")


def _sections(text: str, definitions: Iterable[Definition]) -> tuple[Symbol, ...]:
    """Definitions as sections, with one more wherever the text goes back to the part around."""
    rows = [0, *(line_end.end() for line_end in _LINE_END.finditer(text))]
    rows.append(len(text))
    found: list[Symbol] = []
    around: list[Definition] = []

    def close(until: int) -> None:
        """Leaves the definitions that end before a row."""
        while around and around[-1].last < until:
            closed = around.pop()
            limit = min(until, around[-1].last + 1) if around else until
            start, end = rows[closed.last + 1], rows[limit]
            if _CONTENT.search(text, start, end):
                found.append(Symbol(start=start, level=closed.level, title=""))

    last_row = len(rows) - 1
    for definition in definitions:
        close(definition.first)
        start = rows[definition.first]
        found.append(Symbol(start=start, level=definition.level, title=definition.title))
        around.append(definition)
    close(last_row)
    # In damaged code a part may end behind the one that it is in.
    return tuple(sorted(found, key=lambda section: section.start))


_LONG_LINE: Final = 5_000  # characters; a file mostly of such lines was not written by a person
_SUMMARY_LIMIT: Final = 300

_CPP: Final = re.compile(r"^[ \t]*(?:class|namespace|template)\b|^\s*(?:public|private):", re.M)
_DOCSTRING: Final = re.compile(r"(?:\s|#.*\n)*[rRuU]?(?:\"\"\"|''')\s*([^\n]*)")
_MARKED: Final = {
    "toml": r"\[\[?(?P<name>[^\[\]\n]+)\]",
    "ini": r"\[(?P<name>[^\[\]\n]+)\]",
    "sql": r"(?i:create)\s+(?:\w+\s+){0,4}?"
    r"(?i:table|view|function|procedure|trigger|index|type|schema)\s+(?i:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)",
    "protobuf": r"(?:message|service|enum)\s+(?P<name>\w+)",
    "graphql": r"(?:extend\s+)?(?:type|interface|input|enum|union|scalar|query|mutation|fragment)"
    r"\s+(?P<name>\w+)",
    "hcl": r"(?P<name>(?:resource|data|module|variable|output|provider)(?:\s+\"[^\"\n]+\"){1,2})",
    "dockerfile": r"(?i:from)\s+(?P<name>[^\n]+)",
    "make": r"(?P<name>[\w./%-]+(?:[ \t]+[\w./%-]+){0,4})[ \t]*::?(?!=)",
    "kotlin": r"(?:[a-z]+\s+){0,4}?(?:class|interface|object|fun)\s+(?:<[^>\n]*>\s*)?"
    r"(?P<name>[\w.]+)",
    "swift": r"(?:[a-z]+\s+){0,4}?(?:class|struct|enum|protocol|extension|actor|func)\s+"
    r"(?P<name>[\w.]+)",
    "scala": r"(?:[a-z]+\s+){0,4}?(?:class|object|trait|enum|def)\s+(?P<name>\w+)",
    "lua": r"(?:local\s+)?function\s+(?P<name>[\w.:]+)",
    "perl": r"(?:sub|package)\s+(?P<name>[\w:]+)",
    "r": r"(?P<name>[\w.]+)\s*(?:<-|=)\s*function\b",
    "julia": r"(?:function|(?:mutable\s+)?struct|module|macro)\s+(?P<name>[\w.!]+)",
    "elixir": r"(?:defmodule|defprotocol|defimpl)\s+(?P<name>[\w.]+)",
    "powershell": r"(?i:function|class)\s+(?P<name>[\w:-]+)",
    "dart": r"(?:abstract\s+)?(?:class|mixin|enum|extension)\s+(?P<name>\w+)",
    "clojure": r"\((?:defn-?|defmacro|defprotocol|defrecord|deftype|defmulti)\s+(?P<name>[^\s()]+)",
    "yaml": r"(?P<name>[\w.-]+)[ \t]*:(?=[ \t]*(?:\n|$))",
}
"""What starts a part of a language without a grammar, at the start of a line."""

_LEAD: Final = re.compile(r"(?:#|//|--|;|/\*|\*|@)")
"""A line above a part that belongs to it: a comment or an attribute."""


class CodeExtractor(Extractor):
    """Source code and configuration in whatever language."""

    name = "code"
    version = 2
    typed = True
    isolated = True

    def extract(self, data: bytes, *, name: str) -> Document:
        """Decodes the file and asks a parser for its outline; see `Extractor.extract`."""
        decoded, encoding = decode(data, name=name)
        text = document_text(decoded, name=name)
        written = without_data(text).split("\n")
        long = sum(len(line) for line in written if len(line) > _LONG_LINE)
        if long * 2 > len(text):
            raise ExtractionError(
                f"{name}: expected source code, found lines of more than {_LONG_LINE:,}"
                " characters, minified or generated",
                remedy="add the source it was made from, or leave it out",
            )
        language = language_of(name) or "text"
        if language == "c" and name.lower().endswith(".h") and _CPP.search(text):
            language = "cpp"
        metadata = {"language": "typescript" if language == "tsx" else language}
        docstring = _DOCSTRING.match(text) if language == "python" else None
        if docstring and (summary := docstring[1].strip(" \t\"'")):
            metadata["summary"] = summary[:_SUMMARY_LIMIT]
        return Document(
            text=text,
            syntax="code",
            metadata=metadata | encoding_metadata(encoding),
            extractor=self.label,
            title=" ".join(name.rpartition("/")[2].split()),
            outline=parsed_outline(text, language) or _marked_outline(text, language),
        )


def _marked_outline(text: str, language: str) -> tuple[Symbol, ...]:
    """The parts of a language without a grammar, as far as the starts of lines tell them."""
    if language not in _MARKED:
        return ()
    found: list[Symbol] = []
    floor = 0
    for mark in re.finditer(f"^{_MARKED[language]}", text, re.MULTILINE):
        start = mark.start()
        # The comment lines right above belong to the part.
        while start > floor:
            line_end = text.rfind("\n", floor, start - 1)
            line = line_end + 1
            if (line_end < 0 and floor) or not _LEAD.match(text, line, start):
                break
            start = line
        title = " ".join(mark["name"].split()).replace('"', "").strip("`[] ")
        found.append(Symbol(start=start, level=1, title=title))
        floor = mark.end()
    return tuple(found)
