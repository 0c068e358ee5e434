"""Sections of e-books that style sheets alone give their look: hidden text, headings.

What a book's navigation names is a heading where the section has none of its own, and what looks
like it is one below. One rule: pages are changed by their tags alone, for many are not sound XML.
"""

import html
import re
from typing import Any, Final

from filestore.extract._office.archive import Archive
from filestore.extract._office.package import local_name, xml_root
from filestore.extract.base import ExtractionError

_RULE: Final = re.compile(r"([^{}]{1,500})\{[^{}]{0,2000}\bdisplay\s*:\s*none\b")
_CLASS: Final = re.compile(r"\w*\.([\w-]+)")
_LEAF: Final = re.compile(r"""(<(\w+)\b[^<>]*\bclass=["']([^"'<>]+)["'][^<>]*>)[^<]+(?=</\2>)""")
_HEADING: Final = re.compile(r"<h[1-6]\b", re.I)
_PARAGRAPH: Final = re.compile(r"<p\b[^<>]*>((?:[^<]|<(?!/?p\b))*)</p>", re.I)
_TAG: Final = re.compile("<[^<>]*>")
_CLASSES: Final = re.compile(r"""\bclass=["']([^"'<>]+)["']""")
_DEEPEST: Final = 6
_LEAST_TEXT: Final = 2  # half of the paragraphs at least look otherwise


def hidden_classes(archive: Archive) -> set[str]:
    """The classes whose text no reader of the book sees."""
    found: set[str] = set()
    for part in archive.parts:
        if part.lower().endswith(".css"):
            for rule in _RULE.finditer(archive.read(part).decode("utf-8", "replace")):
                for selector in rule[1].split(","):
                    if named := _CLASS.fullmatch(selector.strip()):
                        found.add(named[1])
    return found


def navigation(archive: Archive, part: str) -> list[tuple[str, int, str]]:
    """What a navigation names, in order: the target as written, its level from 1, and its words."""
    if part not in archive.parts:
        return []
    try:
        root = xml_root(archive, part)
    except ExtractionError:
        return []
    found = []
    for element in root.iter():
        target = element.get("src", "") if local_name(element) == "content" else ""
        if local_name(element) == "a" and _lists(element):
            target = element.get("href", "")
            words = " ".join("".join(element.itertext()).split())
        elif target:
            around = element.getparent()
            label = next((each for each in around if local_name(each) == "navLabel"), ())
            words = " ".join(" ".join(each.text or "" for each in label).split())
        if target and words:
            found.append((target, min(_DEEPEST, _lists(element)), words))
    return found


def _lists(element: Any) -> int:
    return sum(local_name(each) in ("ol", "navPoint") for each in element.iterancestors())


def shown(content: bytes, hidden: set[str], labels: list[tuple[int, str]]) -> bytes:
    """A section without hidden text, and with the headings that the navigation names."""
    text = content.decode("utf-8", "surrogateescape")
    if hidden:
        text = _LEAF.sub(lambda at: at[1] if hidden.intersection(at[3].split()) else at[0], text)
    levels = {words: level for level, words in reversed(labels)}
    if levels and not _HEADING.search(text):
        found = [(_look(at), levels.get(_words(at), 0)) for at in _PARAGRAPH.finditer(text)]
        looks = {look: level for look, level in reversed(found) if level}
        if sum(look in looks for look, _ in found) * _LEAST_TEXT > len(found):
            looks = {}  # they look like the text

        def heading(at: re.Match[str]) -> str:
            level = levels.get(_words(at), 0) or looks.get(_look(at), _DEEPEST) + 1
            is_one = level <= _DEEPEST and _words(at)
            return f"<h{level}>{at[1]}</h{level}>" if is_one else at[0]

        text = _PARAGRAPH.sub(heading, text)
    return text.encode("utf-8", "surrogateescape")


def _words(paragraph: re.Match[str]) -> str:
    return " ".join(html.unescape(_TAG.sub("", paragraph[1])).split())


def _look(paragraph: re.Match[str]) -> tuple[str, ...]:
    """The classes of a paragraph and of what is in it."""
    return tuple(dict.fromkeys(_CLASSES.findall(paragraph[0])))
