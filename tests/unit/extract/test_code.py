"""Source code comes out unchanged, with its functions and classes named where they start."""

import base64
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.extract import DRESSING_SUFFIXES, ExtractionError, for_name, language_of
from filestore.extract._code import CodeExtractor


def extract(source, name="a.py"):
    return CodeExtractor().extract(source.encode(), name=name)


def outline_of(source, name):
    """Level, title and first line of every section that has a name."""
    document = extract(source, name)
    return [
        (section.level, section.title, document.text[section.start :].split("\n", 1)[0].strip())
        for section in document.outline
        if section.title
    ]


OUTLINES = {
    "a.py": (
        """
import os

# Reads.
# Fast.
@decorated(1)
class Reader(Base):
    limit = 1  # trailing
    def open(self):
        def inner(): pass
        return inner

    @property
    async def name(self): return 1

def main():
    pass
""",
        [
            (1, "Reader", "# Reads."),
            (2, "Reader.open", "def open(self):"),
            (3, "Reader.open.inner", "def inner(): pass"),
            (2, "Reader.name", "@property"),
            (1, "main", "def main():"),
        ],
    ),
    "a.js": (
        """
/** Makes it. */
export const make = (a) => {
  return a;
};
class Box extends Base {
  get(i) { return i; }
}
Box.prototype.put = function (i) {
  return i;
};
function* all() { yield 1; }
""",
        [
            (1, "make", "/** Makes it. */"),
            (1, "Box", "class Box extends Base {"),
            (2, "Box.get", "get(i) { return i; }"),
            (1, "Box.prototype.put", "Box.prototype.put = function (i) {"),
            (1, "all", "function* all() { yield 1; }"),
        ],
    ),
    "a.tsx": (
        """
export interface Options { a: string }
@Component({})
export class View extends Base<Options> {
  // draws
  render(): JSX.Element {
    return <p>hi</p>;
  }
}
enum Colour { Red }
""",
        [
            (1, "Options", "export interface Options { a: string }"),
            (1, "View", "@Component({})"),
            (2, "View.render", "// draws"),
            (1, "Colour", "enum Colour { Red }"),
        ],
    ),
    "A.java": (
        """
package a;
/** A box. */
@Mark
public class Box<T> {
    private int x;
    /** Makes. */
    public Box() { }
    interface Lid { void shut(); }
}
""",
        [
            (1, "Box", "/** A box. */"),
            (2, "Box.Box", "/** Makes. */"),
            (2, "Box.Lid", "interface Lid { void shut(); }"),
        ],
    ),
    "a.c": (
        """
#include <stdio.h>
/* A point. */
struct point { int x; };
struct other;
typedef struct { int y; } Pair;
static char *(*find(void))(int) { return 0; }
// Runs.
int main(int argc, char **argv)
{
    return 0;
}
""",
        [
            (1, "point", "/* A point. */"),
            (1, "Pair", "typedef struct { int y; } Pair;"),
            (1, "find", "static char *(*find(void))(int) { return 0; }"),
            (1, "main", "// Runs."),
        ],
    ),
    "a.h": (
        """
namespace shop {
/// A box.
template <typename T>
class Box {
public:
  T *get(int i) const { return &items[i]; }
};
}
int shop::Box<int>::size() { return 0; }
""",
        [
            (1, "shop", "namespace shop {"),
            (2, "shop::Box", "/// A box."),
            (3, "shop::Box::get", "T *get(int i) const { return &items[i]; }"),
            (1, "shop::Box<int>::size", "int shop::Box<int>::size() { return 0; }"),
        ],
    ),
    "a.cs": (
        """
namespace Shop {
  [Serializable]
  public class Box<T> {
    public int Size { get; set; }
    public int Count() { return 1; }
  }
}
""",
        [
            (1, "Shop", "namespace Shop {"),
            (2, "Shop.Box", "[Serializable]"),
            (3, "Shop.Box.Count", "public int Count() { return 1; }"),
        ],
    ),
    "a.go": (
        """
package shape

// Reader reads.
type Reader struct {
	name string
}

func (r *Reader[T]) Open() error { return nil }
func main() {}
""",
        [
            (1, "Reader", "// Reader reads."),
            (1, "Reader.Open", "func (r *Reader[T]) Open() error { return nil }"),
            (1, "main", "func main() {}"),
        ],
    ),
    "a.rs": (
        """
/// A point.
#[derive(Debug)]
pub struct Point { x: i32 }
impl fmt::Display for Point {
    /// Writes.
    fn fmt(&self) -> R { 1 }
}
mod inner {
    pub trait Shape { fn area(&self) -> f64; }
}
""",
        [
            (1, "Point", "/// A point."),
            (1, "impl fmt::Display for Point", "impl fmt::Display for Point {"),
            (2, "Point::fmt", "/// Writes."),
            (1, "inner", "mod inner {"),
            (2, "inner::Shape", "pub trait Shape { fn area(&self) -> f64; }"),
        ],
    ),
    "a.rb": (
        """
module Shop
  # A box.
  class Box < Base
    def self.make; new; end
    def size
      1
    end
  end
end
""",
        [
            (1, "Shop", "module Shop"),
            (2, "Shop.Box", "# A box."),
            (3, "Shop.Box.make", "def self.make; new; end"),
            (3, "Shop.Box.size", "def size"),
        ],
    ),
    "a.php": (
        """<?php
namespace App;
/** A box. */
#[Entity]
final class Box extends Base {
    public function size(): int { return 1; }
}
function helper($a) { return $a; }
""",
        [
            (1, "Box", "/** A box. */"),
            (2, "Box::size", "public function size(): int { return 1; }"),
            (1, "helper", "function helper($a) { return $a; }"),
        ],
    ),
    "a.sh": (
        "#!/bin/sh\n\n# Greets.\nhi() {\n  echo hi\n}\nfunction bye { echo; }\nhi\n",
        [(1, "hi", "# Greets."), (1, "bye", "function bye { echo; }")],
    ),
    "pyproject.toml": (
        "# How it is built.\n[build-system]\nrequires = []\n\n[[tool.x]]\na = [1]\n",
        [(1, "build-system", "# How it is built."), (1, "tool.x", "[[tool.x]]")],
    ),
    "a.sql": (
        "-- All people.\nCREATE TABLE IF NOT EXISTS people (id int);\n"
        "create or replace function age() returns int as $$ select 1 $$;\n",
        [
            (1, "people", "-- All people."),
            (1, "age", "create or replace function age() returns int as $$ select 1 $$;"),
        ],
    ),
    "a.kt": (
        "// A box.\ndata class Box(val x: Int)\n\nfun String.shout() = uppercase()\n",
        [(1, "Box", "// A box."), (1, "String.shout", "fun String.shout() = uppercase()")],
    ),
}


@pytest.mark.parametrize("name", OUTLINES)
def test_definitions_are_named_where_they_start(name):
    """Functions and classes have qualified names and start with their comments and decorators."""
    source, expected = OUTLINES[name]
    assert outline_of(source, name) == expected


def test_text_after_a_definition_goes_back_to_what_is_around():
    """Statements after a function belong to the module, those after a method to its class."""
    source = "class A:\n    def f(self):\n        pass\n    x = 1\ny = 2\n"
    sections = [(part.level, part.title, source[part.start :]) for part in extract(source).outline]
    assert sections[2:] == [(2, "", "    x = 1\ny = 2\n"), (1, "", "y = 2\n")]


def test_a_closing_brace_belongs_to_what_it_closes():
    """The end of a class in a language with braces starts nothing."""
    document = extract("class A {\n  f() { return 1; }\n}\n", "a.js")
    assert [section.title for section in document.outline] == ["A", "A.f"]


def test_only_large_constants_are_named():
    """A long table of values has a name, a short one has none."""
    long = "TABLE = [\n" + "    1,\n" * 20 + "]\n"
    assert outline_of(f"SHORT = 1\n{long}", "a.py") == [(1, "TABLE", "TABLE = [")]


def test_offsets_count_characters():
    """Letters of several bytes above a function do not shift where it starts."""
    source = '# Zäune, 漢字, 🙂\nx = "é" * 9\n\ndef f():\n    pass\n'
    document = CodeExtractor().extract(source.encode("utf-16"), name="a.py")
    assert document.text == source
    assert source[document.outline[0].start :].startswith("def f")


def test_a_module_says_what_it_is():
    """Title, language and the first line of the docstring come with a Python file."""
    document = extract('#!/usr/bin/env python\n"""Reads boxes.\n\nSlowly.\n"""\n', "src/box.py")
    assert document.title == "box.py"
    assert document.syntax == "code"
    assert document.metadata == {"language": "python", "summary": "Reads boxes."}


@pytest.mark.parametrize(
    "source", ["def f(:\n  x = = 1\nclass", "}}}}((((", "def f(\n" * 3_000, "class A:\n" * 3_000]
)
@pytest.mark.parametrize("name", ["a.py", "a.js", "a.rs", "a.cpp", "a.go"])
def test_code_that_does_not_parse_comes_out(source, name):
    """A file with errors keeps its text, whatever is recognised in it."""
    assert extract(source, name).text == source


@pytest.mark.parametrize("missing", ["tree_sitter", "tree_sitter_python"])
def test_without_a_grammar_the_text_comes_out(missing, monkeypatch):
    """A parser that is not installed costs the outline, not the document."""
    monkeypatch.setitem(sys.modules, missing, None)
    document = extract("def f():\n    pass\n")
    assert document.text == "def f():\n    pass\n"
    assert document.outline == ()


@settings(deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(
            [
                "def f():",
                "  class A {",
                "}",
                "# é",
                "/* c",
                "*/",
                "@x",
                "impl A for B {",
                "",
                "🙂",
                ")",
            ]
        ),
        min_size=1,
        max_size=40,
    ),
    name=st.sampled_from(sorted(OUTLINES)),
)
def test_sections_start_at_lines_in_order(lines, name):
    """Whatever the code, sections ascend and each starts where a line does."""
    source = "x\n" + "\n".join(lines)
    starts = [section.start for section in extract(source, name).outline]
    assert starts == sorted(starts)
    assert all(start == 0 or source[start - 1] == "\n" for start in starts)
    assert all(start < len(source) for start in starts)


def test_minified_code_is_refused():
    """A file that is mostly one endless line is left out, and the message says why."""
    with pytest.raises(ExtractionError, match=r"found lines of more than 5,000 characters"):
        extract("// licence\n" + "a=1;" * 5_000, "a.js")


@pytest.mark.parametrize(
    "name", ["package-lock.json", "poetry.lock", "a.js.map", "jquery.min.js", "GO.SUM"]
)
def test_generated_files_are_left_out(name):
    """Lock files, source maps and minified code have no reader."""
    assert for_name(name) is None


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("src/Makefile", "make"),
        ("Dockerfile.dev", "dockerfile"),
        ("CMakeLists.txt", "cmake"),
        ("Gemfile", "ruby"),
        ("Main.KT", "kotlin"),
        ("README", ""),
        ("notes.txt", ""),
        ("LICENSE", ""),
    ],
)
def test_language_by_name(name, language):
    """A well-known name says the language even without a suffix, or with another's."""
    assert language_of(name) == language
    assert for_name(name).name == ("code" if language else "text")


def test_what_dresses_pages_is_code_elsewhere():
    """What a web site leaves out is read where it is the work itself."""
    assert {for_name("a" + suffix).name for suffix in DRESSING_SUFFIXES} == {"code"}


def test_sections_of_damaged_code_are_in_order():
    """A class that is cut off within another one does not lead back in the text."""
    whole = "export class Moor {\n  /* peat */\n  dig(): void {}\n}"
    text = f"{whole}export class Moor {{\n  /* peat */\n  dig()\nconst f = () => {{\n}};\n"
    starts = [
        section.start for section in CodeExtractor().extract(text.encode(), name="a.tsx").outline
    ]
    assert len(starts) > 3
    assert starts == sorted(starts)


def test_a_file_with_a_picture_in_it_is_code():
    """Data as text makes no line one that a generator wrote."""
    picture = base64.b64encode(bytes(range(256)) * 40).decode()
    text = f'"""Icons."""\n\nICON = "{picture}"\n\n\ndef icon():\n    return ICON\n'
    assert for_name("icons.py").extract(text.encode(), name="icons.py").text == text
