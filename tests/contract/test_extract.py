"""One suite for every extractor: whatever the bytes, a sound document or an `ExtractionError`."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.extract import _FAMILY, Document, ExtractionError, for_name
from tests.advice import advised

SAMPLES = {
    "note.txt": b"A note.\r\nIts second line.\rIts third.\n",
    "page.md": (
        b"---\ntitle: Moor\ndate: 2024-05-01\n---\n\n# Heath\n\n- one\n- two\n\n```\ncode\n```\n"
    ),
    "page.html": (
        b"<html><head><meta charset=utf-8><title>Moor</title></head><body><nav>Menu</nav><main>"
        b"<h1>Heath</h1><p>Peat <b>and</b> water.</p><pre class='language-c'>int a;\n\nint b;</pre>"
        b"<table><tr><th>A<th>B<tr><td>1<td>2</table><ol><li>x<ul><li>y</ul></ol>"
        b"<dl><dt>t<dd>d</dl></main><script>let x = '<p>'</script></body></html>"
    ),
}
SAMPLES |= {
    "module.py": (
        b'"""Reads."""\n\n# Heath.\nclass Moor:\n    def peat(self):\n        return "\xc3\xa9"\n'
    ),
    "page.tsx": b"export class Moor {\n  /* peat */\n  dig(): void {}\n}\nconst f = () => {\n};\n",
    "moor.hpp": (
        b"namespace heath {\ntemplate <class T>\nstruct Moor { int dig() { return 1; } };\n}\n"
    ),
    "query.sql": b"-- Peat.\nCREATE TABLE moor (id int);\n",
    "mail.eml": (
        b"Subject: =?utf-8?q?M=C3=B6we?=\nFrom: Ann <a@x>\nDate: Mon, 6 May 2024 10:00:00 +0200\n"
        b'Content-Type: multipart/mixed; boundary="b"\n\n--b\n\nPeat.\n> and\n--b\n'
        b'Content-Disposition: attachment; filename="a.md"\n\n# Heath\n--b--\n'
    ),
    "guide.rst": b"Moor\n====\n\nPeat::\n\n  dig()\n\n== ==\na  b\n== ==\nc  d\n== ==\n",
    "notes.org": b"#+TITLE: Moor\n* Heath :x:\n#+BEGIN_SRC sh\ndig\n#+END_SRC\n| a |\n|---|\n",
    "guide.adoc": b"= Moor\n\n== Heath\n\n[source]\n----\ndig\n----\n\n|===\n|a |b\n|===\n",
    "guide.tex": b"\\section{Moor}\n\\begin{tabular}{l}\na & b \\\\\n\\end{tabular}\n$x$\n",
    "data.csv": b'id;name\n1;"Moor\nHeath"\n2;"a ""b"" | c"\n',
    "data.jsonl": b'{"title": "Moor", "a": [1, {"b": "c"}]}\n{"x": "\\ud800\\u0000"}\n',
    "talk.vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Peat &amp; <i>water</i>\n",
    "feed.xml": b"<rss><channel><title>Moor</title><item><title>a</title></item></channel></rss>",
    "lesson.ipynb": (
        b'{"cells": [{"cell_type": "markdown", "source": ["# Moor\\n", "Peat."]}, {"cell_type":'
        b'"code", "source": "print(1)", "outputs": []}], "metadata": {"kernelspec": {"language":'
        b'"python"}}, "nbformat": 4}'
    ),
}
NAMES = sorted(SAMPLES)
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def extract_or_refuse(name, data):
    try:
        return for_name(name).extract(data, name=name)
    except ExtractionError as error:
        return error


def assert_sound(outcome, name):
    if isinstance(outcome, ExtractionError):
        assert name in outcome.message
        assert advised(outcome)
        return
    assert isinstance(outcome, Document)
    assert outcome.text.strip()
    assert "\r" not in outcome.text
    assert "\0" not in outcome.text
    assert not outcome.text.startswith("\ufeff")
    outcome.text.encode("utf-8")
    json.dumps(dict(outcome.metadata), allow_nan=False).encode("utf-8")
    assert len(outcome.title.splitlines()) <= 1
    for places in (outcome.outline, outcome.pages):
        starts = [place.start for place in places]
        assert starts == sorted(starts)
        assert all(0 <= start <= len(outcome.text) for start in starts)
    label, _, version = outcome.extractor.partition("/")
    assert label.isidentifier()
    assert version.partition("+")[0].isdigit()


@st.composite
def mutated_samples(draw):
    name = draw(st.sampled_from(NAMES))
    data = bytearray(SAMPLES[name])
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        data[start:end] = draw(
            st.binary(max_size=4)
            | st.sampled_from(
                [b"<", b">", b"</p>", b"<table>", b"<pre>", b"---\n", b"```", b"&#0;"]
            )
            | st.just(bytes(data[:40]))
        )
    return name, bytes(data)


@pytest.mark.parametrize("name", NAMES)
def test_sample_becomes_a_sound_document(name):
    """A well-formed file of each kind gives a document that keeps all promises."""
    outcome = extract_or_refuse(name, SAMPLES[name])
    assert isinstance(outcome, Document)
    assert_sound(outcome, name)


@RELAXED
@given(name=st.sampled_from(NAMES), data=st.binary(max_size=300))
def test_arbitrary_bytes_never_crash(name, data):
    """Random bytes give a sound document or an `ExtractionError`, nothing else."""
    assert_sound(extract_or_refuse(name, data), name)


@RELAXED
@given(sample=mutated_samples())
def test_mutated_documents_never_crash(sample):
    """Damaged real documents give a sound document or an `ExtractionError`, nothing else."""
    name, data = sample
    assert_sound(extract_or_refuse(name, data), name)


@RELAXED
@given(
    name=st.sampled_from(NAMES),
    text=st.text(max_size=200),
    codec=st.sampled_from(["utf-8", "utf-16", "utf-32", "gb18030", "utf-16-le"]),
)
def test_any_text_in_any_encoding_never_crashes(name, text, codec):
    """Any characters in any Unicode encoding give a sound document or an `ExtractionError`."""
    data = text.encode(codec, "replace")
    assert_sound(extract_or_refuse(name, data), name)


@RELAXED
@given(sample=mutated_samples())
def test_same_bytes_give_the_same_document(sample):
    """Extracting twice gives equal text and metadata, in equal order."""
    name, data = sample
    first, second = extract_or_refuse(name, data), extract_or_refuse(name, data)
    if isinstance(first, ExtractionError):
        assert first.message == second.message
    else:
        assert first == second
        assert list(first.metadata) == list(second.metadata)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"\xff\xfe \x00"])
def test_nothing_but_white_space_is_called_empty(name, data):
    """A file without text is refused, and the message says that it is empty."""
    with pytest.raises(ExtractionError, match="empty"):
        for_name(name).extract(data, name=name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0",
        bytes(range(256)) * 4,
        b"\x7fELF\x02\x01\x01" + b"\0" * 9,
    ],
)
def test_binary_data_is_refused(name, data):
    """Binary data under a text name is refused with words that say so."""
    with pytest.raises(ExtractionError, match=r"not text|mark promises"):
        for_name(name).extract(data, name=name)


@pytest.mark.parametrize(("target", "suffixes"), _FAMILY)
def test_every_suffix_chooses_its_extractor(target, suffixes):
    """The table says which extractor reads a suffix, and that one does."""
    for suffix in suffixes.split():
        assert type(for_name(f"file{suffix}")).__name__ == target.partition(":")[2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.MD", "markdown"),
        ("dir.pdf/b.HtMl", "html"),
        ("README", "text"),
        ("Makefile", "code"),
        ("a.TOML", "code"),
        ("lesson.ipynb", "notebook"),
        ("uv.lock", None),
        ("log.unknown", "text"),
        (".gitignore", "text"),
        ("a.tar.gz", None),
        ("scan.PDF", "pdf"),
        ("slides.key", None),
        ("logo.svg", None),
    ],
)
def test_choice_by_suffix(name, expected):
    """The suffix decides in whatever case; unknown ones are text, binary formats have no reader."""
    extractor = for_name(name)
    assert (extractor.name if extractor else None) == expected


def test_importing_loads_nothing_heavy():
    """Choosing an extractor imports no parser."""
    heavy = (
        "selectolax markdownify bs4 yaml frontmatter markdown_it chardet tree_sitter"
        " tree_sitter_python pypdfium2 liteparse mammoth anydoc"
    )
    code = (
        "import sys; from filestore.extract import for_name; "
        "[for_name('a' + s) for s in ('.md', '.html', '.txt', '.py')]; "
        f"print([name for name in {heavy!r}.split() if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "[]"
