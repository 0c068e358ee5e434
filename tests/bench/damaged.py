"""Damaged files of every format that is read, added as one folder beside sound ones.

Counts files that are neither read nor refused in a sentence, and sound files that are not there. A
parent that dies or hangs ends the run.
"""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile

from filestore import extract
from tests.bench.office_gold import converted, deck, word, workbook
from tests.bench.table_gold import gold
from tests.system.extract.mail_files import compound, outlook
from tests.system.extract.office_files import RICH_TEXT, book, open_document, packed, slide, table

MAIL = (
    b"From: Ann <ann@example.org>\nTo: Bo <bo@example.org>\nSubject: Boats\n"
    b"Date: Mon, 1 Jul 2024 10:00:00 +0000\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\n'
    b"The boat leaves.\n--b\nContent-Type: text/csv\nContent-Disposition: attachment;"
    b' filename="a.csv"\nContent-Transfer-Encoding: base64\n\nYSxiCjEsMgo=\n--b--\n'
)
PAGE = (
    b"<html><head><title>Boats</title></head><body><h1>Boats</h1><p>Two lines hold.</p>"
    b"<table><tr><td>1</td><td>2</td></tr></table></body></html>"
)
NOTE = (
    b"---\ntitle: Boats\ntags: [a, b]\n---\n# Boats\n\nTwo lines hold.\n\n| a | b |\n"
    b"| --- | --- |\n| 1 | 2 |\n\n```python\nx = 1\n```\n"
)
SAVED = (
    b"From: <Saved by a browser>\nSnapshot-Content-Location: https://example.org/boats\n"
    b'Subject: Boats\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary="b"\n\n'
    b"--b\nContent-Type: text/html\n\n" + PAGE + b"\n--b--\n"
)
MARKED = {
    "rst": b".. _top:\n\nBoats\n=====\n\nTwo *lines* hold.\n\nAt night\n--------\n\n"
    b".. code-block:: python\n\n   x = 1\n\n+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n"
    b"+---+---+\n",
    "org": b"#+TITLE: Boats\n* Mooring :dock:\n:PROPERTIES:\n:ID: 1\n:END:\nTwo lines hold.\n"
    b"** At night\n| a | b |\n|---+---|\n| 1 | 2 |\n#+BEGIN_SRC python\nx = 1\n#+END_SRC\n",
    "adoc": b"= Boats\nAnn\n:toc:\n\n== Mooring\n\nTwo lines hold.\n\n|===\n|a |b\n\n|1 |2\n"
    b"|===\n\n"
    b"[source,python]\n----\nx = 1\n----\n",
    "tex": b"\\documentclass{article}\\title{Boats}\\begin{document}\n\\maketitle\n"
    b"\\section{Mooring}\n"
    b"Two \\emph{lines} hold $a^2$.\n\\begin{tabular}{ll}\na & b \\\\\n1 & 2\n\\end{tabular}\n"
    b"\\end{document}\n",
    "csv": b'id;name;note\n1;"Smith; Ann";"first\nsecond"\n2;Bo;\n3;Cy;x\n',
    "tsv": b"id\tname\n1\tAnn\n2\tBo\n",
    "jsonl": b'{"title": "Boats", "tags": ["a", {"b": null}]}\n{"title": "Oars", "n": 1e9}\n',
    "vtt": b"WEBVTT\n\nNOTE x\n\n1\n00:00:01.000 --> 00:00:03.000 align:start\n"
    b"<v Ann>Two lines hold.\n",
    "srt": b"1\n00:00:01,000 --> 00:00:03,000\n<i>Two lines.</i>\n\n"
    b"2\n00:01:01,000 --> 00:01:03,000\nAt night.\n",
    "xml": b'<?xml version="1.0" encoding="UTF-8"?><book><title>Boats</title><section>'
    b"<title>Mooring</title><para>Two lines hold &amp; more.</para></section></book>",
    "rss": b'<rss version="2.0"><channel><title>Boats</title><item><title>Mooring</title>'
    b"<description>&lt;p&gt;Two lines&lt;/p&gt;</description></item></channel></rss>",
    "atom": b'<feed xmlns="http://www.w3.org/2005/Atom"><title>Boats</title><entry><title>Mooring'
    b'</title><content type="html">&lt;p&gt;Two lines&lt;/p&gt;</content></entry></feed>',
    "fb2": b'<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><description><title-info>'
    b"<book-title>Boats</book-title></title-info></description><body><section><title><p>One</p>"
    b"</title>"
    b"<p>Two lines hold.</p></section></body></FictionBook>",
}
CODE = b"def boats(lines):\n    return lines * 2\n"
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Boats\n"]},
            {"cell_type": "code", "metadata": {}, "source": ["x = 1\n"], "outputs": []},
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
).encode()


def samples():
    """A sound file for every suffix that is read: the bytes by suffix."""
    made = {"docx": word("a.docx", "contract", True), "pptx": deck("a.pptx")}
    made["xlsx"] = workbook("a.xlsx")
    data = {kind: one.data for kind, one in made.items()}
    data |= {one.name.rpartition(".")[2]: one.data for one in converted(list(made.values()))}
    data |= {
        "odt": packed(open_document("text", "<text:h>Boats</text:h><text:p>words</text:p>")),
        "ods": packed(open_document("spreadsheet", table("S", ["a", "b"], ["1", "2"]))),
        "odp": packed(open_document("presentation", slide("point", title="First"))),
        "epub": packed(book("<h1>One</h1><p>words</p>", "<p>Two</p>")),
        "rtf": RICH_TEXT,
        "pdf": next(iter(gold(variants=1))).data,
        "html": PAGE,
        "ipynb": NOTEBOOK,
        "eml": MAIL,
        "mbox": b"From ann Mon Jul  1 10:00:00 2024\n" + MAIL,
        "mhtml": SAVED,
        "msg": compound(
            outlook(subject="Boats", body="Two lines.", attachments=[("a.csv", b"a,b\n1,2\n")])
        ),
        **MARKED,
    }
    alike = {"docm": "docx", "dotx": "docx", "dotm": "docx", "xlsm": "xlsx", "xltx": "xlsx"}
    alike |= dict.fromkeys(("pptm", "ppsx", "ppsm", "potx"), "pptx")
    alike |= {"ots": "ods", "ott": "odt", "otp": "odp", "pps": "ppt", "htm": "html"}
    alike |= {"xhtml": "html", "mht": "mhtml", "rest": "rst"}
    alike |= {"asciidoc": "adoc", "ndjson": "jsonl"}
    languages = {language: suffix for suffix, language in reversed(extract.BY_SUFFIX.items())}
    documents = sorted(set(extract._BY_SUFFIX) - set(extract.BY_SUFFIX))
    for suffix in (*documents, *languages.values()):
        kind = suffix[1:]
        found = data.get(kind) or data.get(alike.get(kind, ""))
        if found or not suffix.startswith((".doc", ".xls", ".ppt", ".pps", ".msg")):
            yield suffix, found or (CODE if suffix in languages.values() else NOTE)


def damage(chance, content):
    """Some bytes cut off, flipped, exchanged or zeroed, also within a part of a zip."""
    if content.startswith(b"PK") and chance.random() < 0.5:
        with zipfile.ZipFile(io.BytesIO(content)) as container:
            parts = {name: container.read(name) for name in container.namelist()}
        part = chance.choice(sorted(parts))
        return packed(parts | {part: _damaged_bytes(chance, parts[part])})
    return _damaged_bytes(chance, content)


def _damaged_bytes(chance, content):
    found = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        place, other = chance.randrange(len(found) + 1), chance.randrange(len(found) + 1)
        length = chance.randint(1, 64)
        kind = chance.choice(("cut", "flip", "swap", "zero"))
        if kind == "cut" and len(found) > 1:
            del found[max(1, place) :]
        elif kind == "flip" and place < len(found):
            found[place] ^= 1 << chance.randrange(8)
        elif kind == "swap":
            one, two = found[place : place + length], found[other : other + length]
            found[place : place + length], found[other : other + length] = two, one
        else:
            found[place : place + length] = bytes(min(length, len(found) - place))
    return bytes(found)


def damaged_lines(count, seed=1):
    """Adds the folder, and says what became of it."""
    chance = random.Random(seed)
    sound = list(samples())
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "docs")
        os.mkdir(folder)
        for number, (suffix, content) in enumerate(sound):
            _write(folder, f"sound{number}{suffix}", content)
        names = []
        for number in range(count):
            suffix, content = sound[number % len(sound)]
            names.append(f"damaged{number}{suffix}")
            _write(folder, names[-1], damage(chance, content))
        program = [sys.executable, "-m", "filestore"]
        subprocess.run([*program, "init"], cwd=root, check=True, capture_output=True)
        start = time.monotonic()
        done = subprocess.run(
            [*program, "add", "docs", "--json"], cwd=root, capture_output=True, check=False
        )
        took = time.monotonic() - start
        failed = json.loads(done.stdout)["failed"]
        records = ""
        for path, _, found in os.walk(os.path.join(root, "file_index")):
            for name in found:
                if name.endswith(".json"):
                    with open(os.path.join(path, name), encoding="utf-8") as file:
                        records += file.read()
        refused = {one["source"].rpartition("/")[2]: one["error"] for one in failed}
        lost = [name for name in names if name not in refused and f'/{name}"' not in records]
        missing = [
            name
            for name in (f"sound{number}{suffix}" for number, (suffix, _) in enumerate(sound))
            if f'/{name}"' not in records
        ]
        yield f"{count} damaged files of {len(sound)} suffixes in {took:.0f} s"
        yield f"exit code {done.returncode}, tracebacks {done.stderr.count(b'Traceback')}"
        yield f"read {count - len(refused) - len(lost)}, refused {len(refused)}, lost {lost}"
        yield f"of more than one line: {sum(chr(10) in error for error in refused.values())}"
        yield f"sound files that are not in: {missing}"
        words = ("ended", "memory", "seconds")
        ended = [error for error in refused.values() if any(word in error for word in words)]
        yield f"ended by a limit: {len(ended)} {ended[:5]}"


def _write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
