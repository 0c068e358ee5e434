"""What the name of a file tells: which extractor reads it, its language, whether a tool left it.

An extractor is one private module and one line in `_FAMILY`; it is imported when a file needs it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from filestore.extract.base import Document as Document
    from filestore.extract.base import ExtractionError as ExtractionError
    from filestore.extract.base import Extractor as Extractor


FRONTMATTER_ERROR: Final = "frontmatter_error"
"""The metadata key under which a document has why its frontmatter cannot be read."""

WHOLE_PAGE: Final = (
    "read with what the site puts around it, which the extra 'web' of filestore leaves out"
)
"""The remark on a page that nothing says the extent of."""

_LANGUAGES: Final = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "java": ".java",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .tpp .inl .cu .cuh .ino",
    "csharp": ".cs .csx",
    "go": ".go",
    "rust": ".rs",
    "ruby": ".rb .rake .gemspec .ru",
    "php": ".php .phtml .php5",
    "bash": ".sh .bash .zsh .ksh .bats .ebuild",
    "ada": ".adb .ads",
    "assembly": ".asm .s",
    "awk": ".awk",
    "batch": ".bat .cmd",
    "clojure": ".clj .cljs .cljc .edn",
    "cmake": ".cmake",
    "cobol": ".cob .cbl",
    "coffeescript": ".coffee",
    "commonlisp": ".lisp .cl .lsp",
    "crystal": ".cr",
    "css": ".css .scss .sass .less .styl",
    "cython": ".pyx .pxd .pxi",
    "dart": ".dart",
    "delphi": ".pas .dpr",
    "diff": ".diff .patch",
    "dockerfile": ".dockerfile",
    "elisp": ".el",
    "elixir": ".ex .exs",
    "elm": ".elm",
    "erlang": ".erl .hrl",
    "fish": ".fish",
    "fortran": ".f .for .f77 .f90 .f95 .f03 .f08",
    "fsharp": ".fs .fsi .fsx",
    "gleam": ".gleam",
    "glsl": ".glsl .vert .frag .comp .hlsl .wgsl",
    "graphql": ".graphql .gql",
    "groovy": ".groovy .gradle",
    "haskell": ".hs .lhs",
    "hcl": ".tf .tfvars .hcl .nomad",
    "idl": ".idl .thrift .capnp .fbs",
    "ini": ".ini .cfg .conf .properties .desktop .service .editorconfig",
    "json": ".json .json5 .jsonc .webmanifest",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "make": ".mk .mak .make",
    "meson": ".meson",
    "nim": ".nim .nims",
    "nix": ".nix",
    "objective-c": ".m .mm",
    "ocaml": ".ml .mli .mll .mly",
    "perl": ".pl .pm .t",
    "powershell": ".ps1 .psm1 .psd1",
    "prisma": ".prisma",
    "prolog": ".pro .prolog",
    "protobuf": ".proto",
    "puppet": ".pp",
    "purescript": ".purs",
    "qml": ".qml",
    "r": ".r",
    "racket": ".rkt",
    "reason": ".re .rei",
    "scala": ".scala .sc .sbt",
    "scheme": ".scm .ss",
    "solidity": ".sol",
    "sql": ".sql .ddl .psql",
    "starlark": ".bzl .star",
    "svelte": ".svelte",
    "swift": ".swift",
    "tcl": ".tcl",
    "template": ".j2 .jinja .jinja2 .tmpl .tpl .mustache .hbs .erb .ejs",
    "toml": ".toml",
    "verilog": ".v .sv .svh",
    "vhdl": ".vhd .vhdl",
    "vim": ".vim",
    "visualbasic": ".vb .vbs .bas",
    "vue": ".vue",
    "yaml": ".yaml .yml",
    "zig": ".zig .zon",
}
_NAMES: Final = {
    "bash": ".bashrc .bash_profile .bash_aliases .profile .zshrc .zprofile configure.ac",
    "cmake": "cmakelists.txt",
    "dockerfile": "dockerfile containerfile",
    "groovy": "jenkinsfile",
    "ini": ".gitconfig .editorconfig .npmrc .pylintrc .flake8 .coveragerc",
    "just": "justfile",
    "make": "makefile gnumakefile makefile.am makefile.in",
    "meson": "meson.build meson_options.txt",
    "nginx": "nginx.conf",
    "ruby": "rakefile gemfile guardfile vagrantfile podfile fastfile brewfile capfile",
    "starlark": "build.bazel workspace.bazel module.bazel",
    "toml": "pipfile",
}
"""Well-known names, in lower case."""

_STEMS: Final = ("dockerfile", "containerfile", "makefile", "jenkinsfile")
"""What may be followed by a dot and the name of a variant, as in `Dockerfile.dev`."""

BY_SUFFIX: Final = {end: language for language, ends in _LANGUAGES.items() for end in ends.split()}
BY_NAME: Final = {name: language for language, names in _NAMES.items() for name in names.split()}


def language_of(name: str) -> str:
    """The language of a file by its name or path; empty where it is not known to be source code."""
    base = os.fsdecode(os.path.basename(name)).lower()
    known = BY_NAME.get(base) or BY_SUFFIX.get(os.path.splitext(base)[1])
    if known:
        return known
    stem = base.partition(".")[0]
    return BY_NAME[stem] if stem in _STEMS else ""


_CODE: Final = "_code:CodeExtractor"
_MARKDOWN: Final = "markdown:MarkdownExtractor"
_PROSE: Final = ".bib .log .po .textile .typ"
"""Read as plain text; what a person writes to be read, unlike settings and keys."""
_WORKBOOKS: Final = ".xlsx .xlsm .xltx .xls .ods .ots"
_ROWS: Final = ".csv .tsv .jsonl .ndjson"
_FAMILY: Final = (
    ("base:TextExtractor", ".txt .text"),
    (_MARKDOWN, ".md .markdown .mdown .mkd .qmd .rmd .mdx"),
    ("_html:HtmlExtractor", ".html .htm .xhtml"),
    ("_pdf:PdfExtractor", ".pdf"),
    ("_office.docx:DocxExtractor", ".docx .docm .dotx .dotm"),
    ("_office.pptx:PptxExtractor", ".pptx .pptm .ppsx .ppsm .potx"),
    (
        "_office.other:OtherExtractor",
        f"{_WORKBOOKS} .odt .ott .odp .otp .rtf .epub .doc .ppt .pps",
    ),
    ("_mail:MailExtractor", ".eml .mbox .mhtml .mht .msg"),
    (
        "_marked:MarkedExtractor",
        f".rst .rest .org .adoc .asciidoc .tex {_ROWS} .vtt .srt .xml .rss .atom .fb2",
    ),
    ("markdown:NotebookExtractor", ".ipynb"),
    (_CODE, " ".join(BY_SUFFIX)),
)
"""Class and suffixes of every extractor; the first also reads whatever name is not known."""

DRESSING_SUFFIXES: Final = frozenset({".css", ".scss", ".sass", ".less", ".js", ".mjs", ".cjs"})
"""Source code in a code tree; next to the pages of a web site, what makes them look and move."""

_UNREAD_DOCUMENT_SUFFIXES: Final = """
    .dot .xlsb .xlt .odg .wpd .wps .hwp .hwpx .pages .numbers .key
    .one .vsd .vsdx .pst .ps .dvi .djvu .djv .xps .oxps .mobi .azw .azw3 .chm
"""
"""Of what a person calls a document: office files, mail, print, books."""

_OTHER_SUFFIXES: Final = """
    .zip .gz .tgz .bz2 .xz .zst .lz4 .7z .rar .tar .jar .war .whl .egg .deb .rpm .apk .iso .dmg .cab
    .png .jpg .jpeg .gif .webp .avif .bmp .tif .tiff .ico .icns .heic .psd .xcf .svg .svgz .eps .ai
    .raw .mp3 .m4a .ogg .oga .opus .flac .wav .aac .wma .mp4 .m4v .mkv .avi .mov .webm .wmv
    .mpg .mpeg .ttf .otf .woff .woff2 .eot .map .inv .swf
    .pyc .pyo .pyd .so .o .a .la .lo .obj .lib .dll .dylib .exe .com .bin .elf .class .wasm .dex
    .db .sqlite .sqlite3 .mdb .faiss .npy .npz .h5 .hdf5 .parquet .feather .arrow .avro .orc .pkl
    .pickle .pt .pth .onnx .safetensors .gguf .joblib .mat .rdata .rds .dta .sav .mo .gmo .dat .idx
    .pack .p12 .pfx .der .jks .gpg .sig .swp .swo .bak .tmp .part .crdownload .lock
"""
"""Archives, pictures, sound, fonts, programs, data, and what tools write for themselves."""

_UNREAD_DOCUMENTS: Final = frozenset(_UNREAD_DOCUMENT_SUFFIXES.split())
_UNREAD: Final = _UNREAD_DOCUMENTS.union(_OTHER_SUFFIXES.split())
_GENERATED_NAMES: Final = frozenset(
    ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "packages.lock.json"]
)
_GENERATED_ENDS: Final = (".min.js", ".min.mjs", ".min.css", ".bundle.js")
_GENERATED_SUFFIXES: Final = frozenset(
    os.path.splitext(name)[1] for name in (*_GENERATED_NAMES, *_GENERATED_ENDS)
)
_BY_SUFFIX: Final = {suffix: target for target, ends in _FAMILY for suffix in ends.split()}

_PACKED_FAMILY: Final = ("_pdf", "_office", "_mail")
_NO_TEXT: Final = _UNREAD.union(
    suffix for suffix, target in _BY_SUFFIX.items() if target.startswith(_PACKED_FAMILY)
)


def __getattr__(name: str) -> Any:
    """Load what extractors share on first use: a search only asks what the name of a file tells."""
    if name in ("Document", "ExtractionError", "Extractor"):
        return getattr(import_module(f"{__name__}.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def for_name(name: str) -> "Extractor | None":
    """The extractor for a file, by its name in whatever case.

    Args:
        name: The name or path of the file.

    Returns:
        The extractor; the one for plain text, which refuses binary data, where the name is not
        known; None for a format that is binary or not read yet, and for what a tool generated:
        lock files, source maps, minified code.
    """
    if not is_read(name):
        return None
    base = os.fsdecode(os.path.basename(name)).lower()
    if language_of(base):
        return _load(_CODE)
    return _load(_BY_SUFFIX.get(os.path.splitext(base)[1], _FAMILY[0][0]))


def is_read(name: str) -> bool:
    """Whether there is an extractor for a file, by its name. Loads none."""
    base = os.fsdecode(os.path.basename(name)).lower()
    suffix = os.path.splitext(base)[1]
    return not (suffix in _UNREAD or base in _GENERATED_NAMES or base.endswith(_GENERATED_ENDS))


@lru_cache(maxsize=4096)
def suffix_is_read(suffix: str) -> bool | None:
    """Whether files with a suffix, in whatever case, are read; None where their names decide."""
    folded = suffix.lower()
    return None if folded in _GENERATED_SUFFIXES else folded not in _UNREAD


def is_text(name: str) -> bool:
    """Whether a file, by its name, is text that a person reads in an editor. Loads no extractor."""
    return os.path.splitext(name)[1].lower() not in _NO_TEXT


def is_markup(name: str) -> bool:
    """Whether a file, by its name, is text between tags: a person reads it without them."""
    return os.path.splitext(name)[1].lower() in _MARKUP


_MARKUP: Final = frozenset([".html", ".htm", ".xhtml", ".xml", ".rss", ".atom", ".fb2"])


def is_prose(name: str) -> bool:
    """Whether a file, by its name, reads as running text: no source code, and no rows."""
    return os.path.splitext(name)[1].lower() in _RUNNING


def is_markdown(name: str) -> bool:
    """Whether what is read of a file, by its name, is Markdown; of source code it is its lines."""
    return os.path.splitext(name)[1].lower() in _MADE_MARKDOWN


_MADE_MARKDOWN: Final = frozenset(_BY_SUFFIX).difference(BY_SUFFIX)
_RUNNING: Final = _MADE_MARKDOWN.difference(_WORKBOOKS.split(), _ROWS.split())


def is_note(name: str) -> bool:
    """Whether a file, by its name, may be a note: its suffix says so, or nothing else."""
    suffix = os.path.splitext(name)[1].lower()
    return _BY_SUFFIX.get(suffix) == _MARKDOWN or not (suffix in _UNREAD or is_known(name))


def is_known(name: str) -> bool:
    """Whether the name of a file says its format; any other is read as text. Loads no extractor."""
    return os.path.splitext(name)[1].lower() in _BY_SUFFIX or bool(language_of(name))


def names_document(name: str) -> bool:
    """Whether a name is that of a document: not hidden, and its suffix says a format of texts.

    What it does not hold for is read where a person names it, and never because a record does.
    """
    return not name.startswith(".") and (
        _suffix_names_document(os.path.splitext(name)[1]) or bool(language_of(name))
    )


@lru_cache(maxsize=4096)
def _suffix_names_document(suffix: str) -> bool:
    return suffix.lower() in _BY_SUFFIX or suffix.lower() in _PROSE.split()


def count_by_suffix(names: Iterable[str]) -> str:
    """How many files have which suffix, the most frequent first: `19 .xlsb, 3 .key, 1 other`."""
    suffixes = [os.path.splitext(name)[1].lower() for name in names]
    counts = Counter(suffix for suffix in suffixes if 0 < len(suffix) <= _LONGEST_SUFFIX)
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_SUFFIXES]
    others = len(suffixes) - sum(count for _, count in shown)
    words = [f"{count:,} {suffix}" for suffix, count in shown]
    return ", ".join([*words, f"{others:,} other"] if others else words)


_MOST_SUFFIXES: Final = 12
_LONGEST_SUFFIX: Final = 12


def is_code(name: str) -> bool:
    """Whether a file, by its name, is source code. Loads no extractor."""
    return bool(language_of(name))


def unread_document(name: str) -> str:
    """The suffix, in lower case, of what a person calls a document and no extractor reads.

    Args:
        name: The name or path of the file.

    Returns:
        `.xlsx`; empty for what is read, and for what is no document.
    """
    suffix = os.path.splitext(name)[1].lower()
    return suffix if suffix in _UNREAD_DOCUMENTS else ""


@cache
def _load(target: str) -> "Extractor":
    module, _, class_name = target.partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), class_name)
    return cast("Extractor", found())


LITTER_STARTS: Final = (
    *(".", "~$", "#", "genindex", "search", "py-modindex"),
    *("objects.inv", "Thumbs.db", "desktop.ini"),
)
"""Every name of a file that is litter begins with one of these, or ends with one of those."""
LITTER_ENDS: Final = ("~", ".swp", ".swo")
_FOLDERS: Final = frozenset(
    {"__pycache__", "node_modules", "_static", "_images", "_sources", "_downloads", "_modules"}
)
_FILES: Final = re.compile(
    r"\..*|.*~|~\$.*|#.*#|.*\.sw[op]|genindex(-.*)?\.html?|search\.html?|searchindex\.js"
    r"|py-modindex\.html?|objects\.inv|Thumbs\.db|desktop\.ini",
    re.DOTALL,
)


def is_litter(name: str, *, is_folder: bool) -> bool:
    """Whether a name is hidden, an editor's own, or one that a tool gives to what it makes."""
    if is_folder:
        return name in _FOLDERS or name.startswith(".") or name.endswith(".egg-info")
    return _FILES.fullmatch(name) is not None
