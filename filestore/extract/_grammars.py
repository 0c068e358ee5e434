"""What the definitions of a language are called in its grammar.

Holds tables only; `_code_outline` reads them. One rule: a language that is not here has no outline
from a parser.
"""

from typing import Final

from msgspec import Struct


class Grammar(Struct, frozen=True, kw_only=True):
    """Where a grammar is, and which nodes of it matter."""

    module: str
    definitions: frozenset[str]
    """Functions, classes and what else has a name and a body."""
    function: str = "language"
    separator: str = "."
    """Between a name and the one around it."""
    wrappers: frozenset[str] = frozenset()
    """What stands around one definition and starts before it."""
    leads: frozenset[str] = frozenset({"comment"})
    """What stands above a definition and belongs to it."""
    constants: frozenset[str] = frozenset()
    """Named values, which count where they are large."""


def names_in(text: str) -> frozenset[str]:
    """The names that a text lists, with blanks between."""
    return frozenset(text.split())


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
