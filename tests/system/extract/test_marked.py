"""Texts with other markup, tables, records, subtitles and XML: as Markdown, with their lines."""

import random
import time
from functools import partial

import pytest

from filestore.extract import _FAMILY, ExtractionError, for_name
from filestore.extract._marked import _READERS
from filestore.extract._office import marks
from filestore.extract.pool import ExtractionProcess, ReadingLimits
from tests.system.extract.damage import changed, read_soundly

RST = """\
=============
Harbour guide
=============

:Author: Ann
:Date: 2024-05-06

.. contents::

.. _moor:

Mooring
-------

Use ``two`` lines, see :ref:`the rules <rules>`, `Costs`_ and `a map <https://x.org/m>`_::

    moor(2)

        deep()

.. note:: Only by day.

   Or with lamps.

.. code-block:: python
   :linenos:

   def moor():
       pass

.. function:: moor(lines)

   Moors a boat.

.. image:: boat.png
   :alt: A boat

>>> moor()
True

Night
~~~~~

#. check lamps
#. pay

Costs
-----

===== =====
Boat  Euro
===== =====
small 12
large
===== =====

+-------+------+
| Boat  | Euro |
+=======+======+
| small | 12   |
| craft |      |
+-------+------+

.. list-table:: Fares
   :header-rows: 1

   * - Boat
     - Euro
   * - small
     - 12

.. csv-table::
   :header: "Boat", "Euro"

   "small, old", 12

.. a comment
   of two lines
"""
ORG = """\
#+TITLE: Harbour notes
#+FILETAGS: :port:boats:
* Mooring :port:
:PROPERTIES:
:ID: 12
:END:
Use *two* ~lines~, [[https://x.org][a map]].
# a comment
** TODO Night
- [ ] check lamps
#+BEGIN_SRC sh
# no heading
moor
#+END_SRC
: literal
| Boat | Euro |
|------+------|
| small | 12 |
"""
ADOC = """\
= Harbour guide
Ann Writer <ann@example.org>
:toc:

== Mooring

Use *two* lines, see <<costs,the costs>> and https://x.org[a map].
// a comment

[source,sh]
----
# no heading
moor --night
----

=== Night

NOTE: Only with lamps.

.Fares
[cols="1,1"]
|===
|Boat |Euro

|small
|12
|large |30
|===

* one
** two
. first

Term:: what it is
"""
TEX = r"""
\documentclass{article}
\title{Harbour guide}
\author{Ann \"Oster} % a comment
\newcommand{\x}{y}
\begin{document}
\maketitle
\section{Mooring \& more}\label{sec:m}
Use \textbf{two} lines~of caf\'e, see \href{https://x.org}{a map}
and $a_1 \le b$.
\begin{lstlisting}[language=Python]
def moor():  # \textbf{kept}
    pass
\end{lstlisting}
\subsection{Night}
\begin{itemize}
  \item check lamps
  \item[Pay] at nine
\end{itemize}
\begin{tabular}{ll}
\hline
Boat & Euro \\
small & 12 \\ \hline
\end{tabular}
\begin{equation}
E = mc^2
\end{equation}
\input{/etc/passwd}
\end{document}
never read
"""
VTT = """\
WEBVTT

NOTE made by a tool

1
00:00:01.000 --> 00:00:04.000 align:start
<v Ann>The <i>tide</i> is high.

2
00:00:04.000 --> 00:00:08.000
The tide is high.
It falls.

3
00:01:02.000 --> 00:01:08.000
<v Ben>And rises.
"""
SRT = "1\n00:59:59,000 --> 01:00:01,000\n{\\an8}Above.\n\n2\n01:00:00,500 --> 01:00:09,000\nLate.\n"
CSV = 'id;name;note\n1;"Smith; Ann";"first\nsecond"\n2;Ben;"said ""yes"" | no"\n'
JSONL = (
    '{"title": "Mooring", "tags": ["a", "b"], "by": {"name": "Ann"}}\n\nnot json\n'
    '{"text": "one\\ntwo", "n": 3, "none": null}\n'
)
BOOK = """\
<?xml version="1.0"?><!DOCTYPE book PUBLIC "-//X" "http://x.invalid/x.dtd" [<!ENTITY co "Boats">]>
<book><title>Guide</title><chapter><title>Mooring</title><para>Use <b>two</b>&nbsp;lines, &co;.
</para><list><listitem><para>one</para></listitem><listitem><para>two</para></listitem></list>
<screen>moor
  now</screen><table><row><entry>Boat</entry><entry>Euro</entry></row><row><entry>small</entry>
<entry>12</entry></row></table></chapter><boats><boat><name>Ann</name><price>12</price></boat>
</boats></book>"""
RSS = """\
<rss xmlns:c="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title><item>
<title>A &amp;amp; B</title><link>https://x.org/1</link><description>short</description><c:encoded>
<![CDATA[<p>Hello <b>you</b></p><h2>More</h2>]]></c:encoded></item></channel></rss>"""
ATOM = """\
<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>One</title><author>
<name>Ann</name></author><updated>2024-05-06</updated><content type="xhtml"><div><p>In <i>it</i>
</p></div></content></entry></feed>"""
FB2 = """\
<FictionBook><description><title-info><book-title>Boats</book-title><author><first-name>Ann
</first-name><last-name>Writer</last-name></author><lang>en</lang></title-info></description><body>
<section><title><p>One</p></title><p>Words.</p><section><title><p>Two</p></title><poem><stanza>
<v>a</v><v>b</v></stanza></poem></section></section></body><binary>AAAA</binary></FictionBook>"""

OF_READER = {
    "read_rst": RST,
    "read_org": ORG,
    "read_adoc": ADOC,
    "read_tex": TEX,
    "read_table": CSV,
    "read_records": JSONL,
    "read_subtitles": VTT,
    "read_xml": BOOK,
}
SAMPLES = {suffix: OF_READER[target.partition(":")[2]] for suffix, target in _READERS.items()} | {
    "srt": SRT,
    "rss": RSS,
    "atom": ATOM,
    "fb2": FB2,
    "tsv": CSV.replace(";", "\t"),
}
HEADINGS = ("rst", "org", "adoc", "tex")


def read(text, name):
    extractor = for_name(name)
    assert extractor.isolated
    return extractor.extract(text if isinstance(text, bytes) else text.encode(), name=name)


def headings(text):
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("suffix", HEADINGS)
def test_sections_are_headings_and_listings_are_fenced(suffix):
    found = read(SAMPLES[suffix], f"guide.{suffix}")
    assert found.syntax == "markdown"
    assert found.title.startswith("Harbour ")
    shown = headings(found.text)
    titles = ["# Mooring", "## TODO Night"] if suffix == "org" else ["Mooring", "Night"]
    assert all(any(title in line for line in shown) for title in titles)
    assert found.text.count("```") == found.text.count("\n```") + found.text.startswith("```")
    assert found.text.count("```") % 2 == 0
    assert "a comment" not in found.text


@pytest.mark.parametrize("suffix", HEADINGS)
def test_every_line_is_of_the_line_that_it_was_made_of(suffix):
    source = SAMPLES[suffix].split("\n")
    found = read(SAMPLES[suffix], f"guide.{suffix}")
    lines = found.text.removesuffix("\n").split("\n")
    assert len(found.lines) == len(lines)
    for wanted in ("Mooring", "moor", "Night", "lamps"):
        at = [n for n, line in enumerate(lines) if wanted in line]
        assert at
        assert all(wanted in source[found.lines[n] - 1] for n in at)


def test_restructured_text():
    found = read(RST, "guide.rst")
    assert found.metadata == {"title": "Harbour guide", "author": "Ann", "date": "2024-05-06"}
    assert headings(found.text) == ["# Harbour guide", "## Mooring", "### Night", "## Costs"]
    for wanted in (
        "Use `two` lines, see the rules, Costs and [a map](https://x.org/m):\n\n```\nmoor(2)\n\n"
        "    deep()\n```\n",
        "**Note:** Only by day.\nOr with lamps.\n",
        "\n```python\ndef moor():\n    pass\n```\n",
        "`moor(lines)`\n\nMoors a boat.\n",
        "[Image: A boat]",
        "```python\n>>> moor()\nTrue\n```",
        "1. check lamps\n1. pay\n",
        "| Boat | Euro |\n| --- | --- |\n| small | 12 |\n| large |  |\n",
        "| Boat | Euro |\n| --- | --- |\n| small craft | 12 |\n",
        "**Fares**\n\n| Boat | Euro |\n| --- | --- |\n| small | 12 |\n",
        "| Boat | Euro |\n| --- | --- |\n| small, old | 12 |\n",
    ):
        assert wanted in found.text


def test_org():
    found = read(ORG, "notes.org")
    assert found.metadata == {"title": "Harbour notes", "tags": ["port", "boats"]}
    assert found.text == (
        "# Mooring\n\nUse **two** `lines`, [a map](https://x.org).\n\n## TODO Night\n\n"
        "- [ ] check lamps\n\n```sh\n# no heading\nmoor\n```\n\n```\nliteral\n```\n\n"
        "| Boat | Euro |\n| --- | --- |\n| small | 12 |\n\n"
    )


def test_asciidoc():
    found = read(ADOC, "guide.adoc")
    assert found.metadata == {"title": "Harbour guide", "author": "Ann Writer"}
    assert found.text == (
        "## Mooring\n\nUse **two** lines, see the costs and [a map](https://x.org).\n\n"
        "```sh\n# no heading\nmoor --night\n```\n\n### Night\n\nNOTE: Only with lamps.\n\n"
        "**Fares**\n\n"
        "| Boat | Euro |\n| --- | --- |\n| small | 12 |\n| large | 30 |\n\n"
        "- one\n   - two\n1. first\n\n**Term:** what it is\n\n"
    )


def test_latex():
    found = read(TEX, "guide.tex")
    assert found.metadata == {"title": "Harbour guide", "author": "Ann Öster"}
    assert found.text.strip() == (
        "# Mooring & more\n\nUse **two** lines of café, see [a map](https://x.org)\n"
        "and $a_1 \\le b$.\n\n```python\ndef moor():  # \\textbf{kept}\n    pass\n```\n\n"
        "## Night\n\n- check lamps\n- **Pay** at nine\n\n"
        "| Boat | Euro |\n| --- | --- |\n| small | 12 |\n\n"
        "$$\nE = mc^2\n$$"
    )


def test_subtitles_are_a_section_a_minute():
    assert read(VTT, "talk.vtt").text == (
        "## 0:00:00\n\nAnn: The tide is high.\nIt falls.\n\n## 0:01:00\n\nBen: And rises.\n"
    )
    assert read(SRT, "talk.srt").text == "## 0:59:00\n\nAbove.\n\n## 1:00:00\n\nLate.\n"


def test_values_are_a_table_with_their_lines():
    found = read(CSV, "a.csv")
    assert found.text == (
        "| id | name | note |\n| --- | --- | --- |\n| 1 | Smith; Ann | first<br>second |\n"
        '| 2 | Ben | said "yes" \\| no |\n'
    )
    assert found.lines == (1, 1, 2, 4)


@pytest.mark.parametrize(
    ("data", "name", "first"),
    [
        ("a\tb\n1,5\t2\n3\t4\n", "a.csv", "| a | b |"),
        ("a,b\n1,2\n", "a.tsv", "| a | b |"),
        ("sep=|\na|b\n1|2\n", "a.csv", "| a | b |"),
        ("date,n\n2024-01-01,1\n", "a.csv", "| date | n |"),
        ("1,2\n3,4\n", "a.csv", "|  |  |"),
        ("A report\n\nid,n\n1,2\n", "a.csv", "A report"),
        ('a,b\n1,"never closed\n2,x\n3,y\n', "a.csv", "| a | b |"),
        ("words alone\nand more\n", "a.csv", "words alone"),
    ],
)
def test_the_dialect_is_guessed(data, name, first):
    assert read(data, name).text.partition("\n")[0] == first


def test_what_is_beyond_the_most_of_a_table_is_counted(monkeypatch):
    monkeypatch.setattr("filestore.extract._marked.rows.MAX_ROWS", 50)
    wide = ",".join(map(str, range(marks.MAX_COLUMNS + 3)))
    found = read("a,b\n" + wide + "\n" + "1,2\n" * 300, "a.csv")
    assert found.text.endswith("[Left out of this table, rows: 252, cells far right: 3]\n")


def test_a_quote_that_is_never_closed_costs_no_rows():
    rows = "".join(f'{n},x"y\n' for n in range(3_000))
    assert '| 2999 | x"y |' in read('a,b\n0,"never\n' + rows, "a.csv").text


def test_records_are_a_section_each():
    found = read(JSONL, "a.jsonl")
    assert found.text == (
        "## Mooring\n\ntitle: Mooring\ntags: a, b\nby.name: Ann\n\nnot json\n\n## Record 4\n\n"
        "text:\n\none\ntwo\n\nn: 3\n"
    )
    assert set(found.lines) == {1, 3, 4}


def test_any_xml_is_its_titles_items_and_leaves():
    found = read(BOOK, "a.xml")
    assert found.title == "Guide"
    assert found.text == (
        "# Guide\n\n## Mooring\n\nUse two lines, &co;.\n\n- one\n- two\n\n```\nmoor\n  now\n```\n\n"
        "| Boat | Euro |\n| --- | --- |\n| small | 12 |\n\n## Ann\n\nprice: 12\n"
    )


def test_xml_that_is_data_or_is_no_xml_stays_as_it_is():
    data = '<c><item key="first" value="of all"/><item key="second" value="one"/></c>'
    assert read(data, "a.xml").text == f"```xml\n{data}\n```\n"
    assert read("<a><b>no end", "a.xml").text == "<a><b>no end\n"


def test_a_feed_is_a_section_an_item():
    assert read(RSS, "a.rss").text == (
        "# News\n\n## A & B\n\nhttps://x.org/1\n\nHello **you**\n\n### More\n"
    )
    assert read(ATOM, "a.atom").text == "# News\n\n## One\n\n2024-05-06\nAnn\n\nIn *it*\n"


def test_a_book_of_fiction():
    found = read(FB2, "a.fb2")
    assert found.metadata == {"title": "Boats", "author": "Ann Writer", "language": "en"}
    assert found.text.strip() == "# One\n\nWords.\n\n## Two\n\na\nb"


def test_every_suffix_of_the_family_has_a_reader():
    suffixes = next(ends for target, ends in _FAMILY if target.startswith("_marked"))
    assert {end.removeprefix(".") for end in suffixes.split()} == set(_READERS)


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_damaged_files_are_read_or_refused(suffix):
    generator = random.Random(suffix)
    data = SAMPLES[suffix].encode()
    name = f"a.{suffix}"
    assert read_soundly(for_name(name), data, name)
    for _ in range(60):
        found = read_soundly(for_name(name), changed(generator, data), name)
        assert found is None or not found.lines or len(found.lines) == found.text.count("\n")


# ---- too much, or made to do harm ----------------------------------------------------------------

LAUGHS = '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><a>&b;</a>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><a>&a;</a>'


def test_entities_are_never_expanded(tmp_path):
    for text in (LAUGHS, OUTSIDE, LAUGHS.replace("<!ENTITY a", "<!ENTITY % a")):
        for suffix in ("xml", "rss", "fb2"):
            with pytest.raises(ExtractionError, match=r"^a\.\w+ is refused: it defines entities"):
                read(text, f"a.{suffix}")


NOTES = ".. note::\n" + "   .. note::\n" * 3_000
CUES = "00:00:00.000 --> 00:00:01.000\n<v " * 5_000
ENDLESS = {
    "rst": ("*" * 20_000 + "\n", "`" * 9_000, NOTES, "=\n" * 9_000, "+--+\n" * 9_000),
    "org": ("* " * 20_000, "[[" * 20_000, "|" * 50_000, "#+BEGIN_SRC\n" * 3_000),
    "adoc": ("<<" * 20_000, "|===\n" + "|" * 50_000, "----\n====\n" * 3_000, "[" * 50_000),
    "tex": (r"\textbf{" * 5_000, "$" * 20_000, "\\begin{tabular}\n" * 3_000, "\\section{" * 9_000),
    "csv": ('"' * 100_000, "," * 200_000, "a\n" * 100_000, '"a\n' * 50_000),
    "jsonl": ("[" * 100_000, '{"a":' * 50_000, '{"a": 1}\n' * 20_000),
    "vtt": ("00:00:00.000 --> " * 10_000, "<" * 50_000, CUES),
    "xml": ("<a>" * 100_000, "<a " * 50_000, "&" * 100_000, "<a b='" + "x" * 9_000_000 + "'/>"),
}


@pytest.mark.parametrize("suffix", ENDLESS)
def test_no_repeated_sign_takes_long(suffix):
    for text in ENDLESS[suffix]:
        begun = time.process_time()
        read_soundly(for_name(f"a.{suffix}"), text.encode(), f"a.{suffix}")
        assert time.process_time() - begun < 20


EXHAUSTIVE = pytest.mark.exhaustive


@pytest.mark.parametrize(
    "suffix",
    [
        "csv",
        "jsonl",
        "xml",
        *(pytest.param(one, marks=EXHAUSTIVE) for one in ("tsv", "rst", "eml")),
    ],
)
def test_one_line_of_100_megabytes(suffix):
    """It is read or refused within what a child may take, and the next file is read."""
    line = {"csv": b"12345,", "tsv": b"12345\t"}.get(suffix, b"12345 ") * 16_700_000
    process = ExtractionProcess(ReadingLimits(timeout_s=60))
    attempt = partial(process.extract, line, name=f"a.{suffix}")
    try:
        if suffix in ("csv", "tsv"):
            with pytest.raises(ExtractionError, match=r"^a\.\w+ is refused: a line of it has more"):
                attempt()
        else:
            assert attempt().text.startswith("12345 12345")
        assert process.extract(b"a,b\n1,2\n", name="b.csv").text.startswith("| a | b |")
    finally:
        process.kill()
