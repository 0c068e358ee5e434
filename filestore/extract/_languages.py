"""The languages of source files, by the end of a name or by the whole of it.

Holds tables only, so that choosing an extractor loads no parser. One rule: a name belongs to one
language; where two share a suffix (`.h`, `.m`), the text decides later.
"""

import os
from typing import Final

_SUFFIXES: Final = {
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

BY_SUFFIX: Final = {end: language for language, ends in _SUFFIXES.items() for end in ends.split()}
BY_NAME: Final = {name: language for language, names in _NAMES.items() for name in names.split()}


def language_of(name: str) -> str:
    """The language of a file by its name or path; empty where it is not known to be source code."""
    base = os.path.basename(name).lower()
    known = BY_NAME.get(base) or BY_SUFFIX.get(os.path.splitext(base)[1])
    if known:
        return known
    stem = base.partition(".")[0]
    return BY_NAME[stem] if stem in _STEMS else ""
