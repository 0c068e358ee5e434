"""What becomes of documents: PDFs, encodings and office files, in figures.

    python -m tests.bench.documents tables [--prose FOLDER]
    python -m tests.bench.documents headings [--prose FOLDER]
    python -m tests.bench.documents scripts
    python -m tests.bench.documents encodings --files chardet-5.2.0/tests
    python -m tests.bench.documents office [--no-others]
    python -m tests.bench.documents pages [--files FOLDER]
    python -m tests.bench.documents damaged [--count N]
    python -m tests.bench.documents frontmatter --files file_index/chunked
    python -m tests.bench.documents cost --files FOLDER [--before CHECKOUT]

Needs reportlab, which writes the PDFs. `before` is the first reader alone. To print the headings
of another checkout, run it with that checkout first on PYTHONPATH.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise
from statistics import mean
from unittest import mock

from filestore.chunks.frontmatter import split
from filestore.extract._html import HtmlExtractor
from filestore.extract._pdf import PdfExtractor, reading
from filestore.extract._pdf.lines import measure
from filestore.extract._pdf.tables import may_hold_table
from filestore.extract.base import ExtractionError, decode


def relations(table):
    """Neighbouring cells that are not empty, as in ICDAR 2013: to the right, and below."""
    found = Counter()
    for lines, way in ((table, "right"), (list(zip(*table, strict=True)), "down")):
        for line in lines:
            full = [re.sub(r"\s", "", cell) for cell in line]
            full = [cell for cell in full if cell]
            found.update((way, one, other) for one, other in pairwise(full))
    return found


def said_tables(text):
    """The tables of a Markdown text."""
    tables, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("| "):
            rows.append([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            tables.append([row for row in rows if set("".join(row)) - {"-"} or not any(row)])
            rows = []
    return tables


def score(gold, said):
    """F over neighbouring cells of a file."""
    wanted = sum((relations(table) for table in gold), Counter())
    found = sum((relations(table) for table in said), Counter())
    right = (wanted & found).total()
    return 2 * right / (wanted.total() + found.total()) if right else 0.0


def read(data, *, tables=True):
    """The text of a PDF and the CPU seconds it took."""
    start = time.process_time()
    if tables:
        text = PdfExtractor().extract(data, name="a.pdf").text
    else:
        with mock.patch("filestore.extract._pdf.table_reading._is_on", False):
            text = PdfExtractor().extract(data, name="a.pdf").text
    return text, time.process_time() - start


def suspicious(data):
    """How many pages the second reader is asked about, and how many there are."""
    with reading.opened(data, name="a.pdf") as document:
        pages = reading.read_pages(document, name="a.pdf")
    measures = measure(pages)
    return sum(may_hold_table(page, measures) for page in pages), len(pages)


def pdfs_below(folder):
    for path, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith(".pdf"):
                yield os.path.join(path, name)


def tables_section(options):
    """Prints F, wrong tables, share of pages, time, memory."""
    from tests.bench.table_gold import gold

    read(gold(variants=1)[0].data)  # loads what is loaded once
    files = gold()
    for half in ("tuning", "confirming"):
        chosen = [one for one in files if one.half == half and one.tables]
        before = mean(
            score(one.tables, said_tables(read(one.data, tables=False)[0])) for one in chosen
        )
        scores = {one.name: score(one.tables, said_tables(read(one.data)[0])) for one in chosen}
        print(f"{half}: {len(chosen)} files, mean F {before:.3f} -> {mean(scores.values()):.3f}")
        if half == "tuning":
            low = sorted(scores.items(), key=lambda item: item[1])[: options.worst]
            print("  lowest:", ", ".join(f"{name} {value:.2f}" for name, value in low))
    prose = [(one.name, one.data) for one in files if not one.tables]
    for path in pdfs_below(options.prose) if options.prose else ():
        with open(path, "rb") as file:
            prose.append((path, file.read()))
    pages = said = 0
    cost = Counter()
    for name, data in [*prose, *((one.name, one.data) for one in files if one.tables)]:
        try:
            asked, count = suspicious(data)
            text, after = read(data)
            _, before = read(data, tables=False)
        except Exception as error:
            print(f"  {name}: {error}")
            continue
        kind = "asked" if asked else "others"
        cost[kind, "after"] += after
        cost[kind, "before"] += before
        cost["pages"] += count
        cost["asked pages"] += asked
        if (name, data) in prose:
            pages += count
            tables = said_tables(text)
            said += len(tables)
            for table in tables:
                print(f"  table in {name}: {len(table)} rows, {table[:2]}"[:200])
    print(f"tables in {pages} pages of prose: {said} ({1000 * said / max(1, pages):.1f} in 1,000)")
    print(f"pages read twice: {cost['asked pages']} of {cost['pages']}")
    for kind in ("asked", "others"):
        before, after = cost[kind, "before"], cost[kind, "after"]
        print(
            f"CPU, {kind}: {before:.2f} s -> {after:.2f} s, {after / max(before, 1e-9):.2f} times"
        )
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


def said_headings(text):
    """The headings of a Markdown text as (level, text)."""
    found = re.findall(r"^(#{1,6}) (.*)$", without_fences(text), re.MULTILINE)
    return [(len(mark), " ".join(said.split())) for mark, said in found]


def without_fences(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def torn(text):
    """Line and paragraph ends before a word in lower case, but for items, rows and code."""
    found = re.findall(r"^(?![|#]).*[^\n.:!?]\n\n?(?=[a-z]+ )", without_fences(text), re.MULTILINE)
    return len(found)


def headings_section(options):
    """Prints recall, precision and order of headings, and lines torn inside sentences."""
    from tests.bench import heading_gold

    files = heading_gold.gold()
    texts = {one.name: read(one.data)[0] for one in files}
    for half in ("tuning", "confirming"):
        chosen = [one for one in files if one.half == half]
        by_look = [one for one in chosen if one.style in heading_gold.BY_LOOK]
        named = [one for one in chosen if one.style in heading_gold.NAMED]
        none = [one for one in chosen if one.style in heading_gold.NONE]
        right, wanted, found = headings_found(by_look, texts)
        print(
            f"{half}, {len(by_look)} files by look: "
            f"recall {right / wanted:.3f}, precision {right / max(1, found):.3f}"
        )
        exact = [one for one in named if said_headings(texts[one.name]) == one.headings]
        print(f"  tagged and outlined: {len(exact)} of {len(named)} exact, levels included")
        said = [one for one in none if said_headings(texts[one.name])]
        print(f"  without headings: {len(said)} of {len(none)} get one")
        prose = [one for one in chosen if one.style not in ("verse", "code", "form", "letter")]
        print(f"  torn lines: {sum(torn(texts[one.name]) for one in prose)} in {len(prose)} files")
        if half == "tuning" or options.all:
            for one in (*by_look, *named, *none):
                right, wanted, found = headings_found([one], texts)
                if not right == wanted == found:
                    print(f"    {one.name}: {right} of {wanted} found, {found - right} wrong")
            lines = {one.name: torn(texts[one.name]) for one in prose}
            print("    torn:", ", ".join(f"{name} {n}" for name, n in lines.items() if n))
    for path in pdfs_below(options.prose) if options.prose else ():
        with open(path, "rb") as file:
            data = file.read()
        try:
            text, _ = read(data)
        except Exception as error:
            print(f"  {path}: {error}")
            continue
        print(f"  {path}: {len(said_headings(text))} headings, {torn(text)} torn lines")


def scripts_section(_options):
    """Prints where words of Korean are parted, and what is read of lines of two directions."""
    from tests.bench import script_gold

    for half in ("tuning", "confirming"):
        wrong = whole = count = 0
        for data, paragraphs in script_gold.korean(half, 24):
            found = script_gold.ends_right(read(data)[0], paragraphs)
            wrong, whole, count = wrong + found[0], whole + found[1], count + len(paragraphs)
        print(f"{half}, Korean: {wrong} spaces wrong, {whole} of {count} paragraphs exact")
        for writer, data, sentences in script_gold.mixed(half):
            whole, share = script_gold.words_in_order(read(data)[0], sentences)
            print(f"  {writer}: {whole} of {len(sentences)} lines exact, words {share:.3f}")


def headings_found(files, texts):
    """How many headings are right, how many there are, and how many are said."""
    right = wanted = found = 0
    for one in files:
        gold = Counter(text for _, text in one.headings)
        said = Counter(text for _, text in said_headings(texts[one.name]))
        right += (gold & said).total()
        wanted += gold.total()
        found += said.total()
    return right, wanted, found


CODECS = {
    "big5": "big5hkscs",
    "gb2312": "gb18030",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "tis-620": "cp874",
    "iso-8859-1": "cp1252",
    "iso-8859-9": "cp1254",
    "maccyrillic": "mac_cyrillic",
}
"""What holds all that the encoding after which chardet names a folder does."""


def encodings_section(options):
    """Prints how many files of `tests` in chardet 5.2's source are read as what they are."""
    right, wrong, took = 0, [], 0.0
    for folder in sorted(os.scandir(options.files), key=lambda one: one.name):
        named = re.sub("-[a-z]{5,}$", "", folder.name.lower())  # a language
        codec = CODECS.get(named, named)
        for file in os.scandir(folder.path) if folder.is_dir() else ():
            with open(file.path, "rb") as opened:
                data = opened.read()
            start = time.process_time()
            try:
                text, found = decode(data, name=file.name)
            except ExtractionError as error:
                text, found = "", str(error)
            took += time.process_time() - start
            try:
                wanted = data.decode(codec, "ignore").removeprefix("\ufeff")
            except LookupError:
                wanted = None  # Python has no EUC-TW
            near = wanted and SequenceMatcher(None, wanted[:2000], text[:2000], False).ratio()
            right += bool(near and near > 0.99)
            wrong += [] if near and near > 0.99 else [f"{folder.name}/{file.name}: {found}"]
    print(f"encodings: {right} of {right + len(wrong)} files, CPU {took:.2f} s")
    print(*wrong[: options.worst], sep="\n")


def pages_section(options):
    """Prints the words of web pages that are right, by half and kind, and trafilatura's own."""
    from trafilatura import extract

    from tests.bench.page_gold import counts, gold, read_folder

    ways = {
        "ours": lambda source: HtmlExtractor().extract(source.encode(), name="a.html").text,
        "trafilatura": lambda source: extract(source, include_comments=False) or "",
    }
    files = list(read_folder(options.files) if options.files else gold())
    found = {
        (way, one.name): counts(one.text, read_page(one.source))
        for way, read_page in ways.items()
        for one in files
    }
    groups = {}
    for one in files:
        for group in ((one.half, "all"), (one.half, one.kind)):
            groups.setdefault(group, []).append(one.name)
    for (half, kind), names in groups.items():
        for way in ways:
            right, wanted, said = map(sum, zip(*(found[way, name] for name in names), strict=True))
            recall, precision = right / max(1, wanted), right / max(1, said)
            harmonic = 2 * recall * precision / max(1e-9, recall + precision)
            print(
                f"{half}, {kind}, {len(names)} pages, {way}: "
                f"recall {recall:.3f}, precision {precision:.3f}, F {harmonic:.3f}"
            )
    lowest = sorted(files, key=lambda one: found["ours", one.name][0] / found["ours", one.name][1])
    print("lowest recall:", ", ".join(one.name for one in lowest[: options.worst]))


def office_section(options):
    """Prints what is found of office files of known content, beside what anydoc alone finds."""
    from tests.bench.office_gold import office_lines

    for line in office_lines(others=not options.no_others):
        print(line)


def damaged_section(options):
    """Prints what becomes of a folder of damaged files."""
    from tests.bench.damaged import damaged_lines

    for line in damaged_lines(options.count):
        print(line)


def frontmatter_section(options):
    """Prints how many of the bytes of chunk files are frontmatter, and how many each key takes."""
    taken, every = Counter(), 0
    for path in pathlib.Path(options.files).rglob("chunk*.md"):
        parts = split(path.read_bytes())
        every += len(parts.head) + len(parts.body)
        taken["fences"] += len(parts.head) - len(parts.block)
        # A value of several lines belongs to the key above it.
        for entry in re.split(rb"^(?=\w+:)", parts.block, flags=re.MULTILINE)[1:]:
            taken[entry.partition(b":")[0].decode()] += len(entry)
    print(f"frontmatter: {taken.total():,} of {every:,} bytes, {taken.total() / every:.1%}")
    for key, size in taken.most_common():
        print(f"    {key}: {size:,}, {size / every:.1%}")


_READ = """
import json, resource, sys, time
from filestore.extract import ExtractionError, for_name
files, read = [open(path, "rb").read() for path in sys.argv[1:]], 0
took = []
for turn in range(3):
    start = time.process_time()
    for path, data in zip(sys.argv[1:], files):
        extractor = for_name(path)
        try:
            found = extractor is not None and bool(extractor.extract(data, name=path).text)
            read += found and not turn
        except ExtractionError:
            pass
    took.append(time.process_time() - start)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps([read, min(took[1:]), memory]))
"""
"""Reads files three times in one process; the first time also loads what is loaded once."""


def cost_section(options):
    """Prints CPU seconds and memory of reading the files of a folder, by suffix."""
    by_suffix = {}
    for path, _, names in os.walk(options.files):
        for name in sorted(names):
            by_suffix.setdefault(os.path.splitext(name)[1], []).append(os.path.join(path, name))
    checkouts = [one for one in (options.before, os.getcwd()) if one]
    heads = ("before", "after")[2 - len(checkouts) :]
    print(f"{'':10}{'files':>6}" + "".join(f"{f'{one}: read, CPU s, MB':>32}" for one in heads))
    for suffix, paths in sorted(by_suffix.items()):
        row = f"{suffix:10}{len(paths):6}"
        for checkout in checkouts:
            done = subprocess.run(
                [sys.executable, "-c", _READ, *paths],
                env={**os.environ, "PYTHONPATH": checkout},
                cwd=checkout,
                capture_output=True,
                check=True,
            )
            read, took, memory = json.loads(done.stdout)
            row += f"{read:14}{took:10.3f}{memory:8}"
        print(row, flush=True)


SECTIONS = {
    "frontmatter": frontmatter_section,
    "cost": cost_section,
    "damaged": damaged_section,
    "office": office_section,
    "pages": pages_section,
    "tables": tables_section,
    "headings": headings_section,
    "scripts": scripts_section,
    "encodings": encodings_section,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--prose", default="", help="a folder of PDFs without tables")
    parser.add_argument("--before", default="", help="a checkout to compare with")
    parser.add_argument("--files", default="", help="the folder that a section is about")
    parser.add_argument("--worst", type=int, default=12)
    parser.add_argument("--all", action="store_true", help="name files of both halves")
    parser.add_argument("--count", type=int, default=2_500, help="damaged files")
    parser.add_argument("--no-others", action="store_true", help="only docx, pptx and xlsx")
    options = parser.parse_args()
    SECTIONS[options.section](options)


if __name__ == "__main__":
    main()
