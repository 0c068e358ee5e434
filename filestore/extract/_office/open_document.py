"""What the reader of OpenDocument files does not see or sees wrongly, written so that it does.

Hidden text goes, numbers of headings, charts, page headers and footers become text. One rule: the
tree of elements stays one that an office program could have written.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, Final

from msgspec import Struct

from filestore.extract._office.archive import Archive
from filestore.extract._office.docx_parts import FIELD, running_line
from filestore.extract._office.numbering import number_text
from filestore.extract._office.package import local_name, xml_root

OPEN: Final = "urn:oasis:names:tc:opendocument:xmlns:"
TABLE: Final = f"{{{OPEN}table:1.0}}"
DRAW: Final = f"{{{OPEN}drawing:1.0}}"
TEXT: Final = f"{{{OPEN}text:1.0}}"
SLIDES: Final = f"{{{OPEN}presentation:1.0}}"
STYLE: Final = f"{{{OPEN}style:1.0}}"
NUMBER: Final = f"{TEXT}page-number"
_CHARTS: Final = f"{{{OPEN}chart:1.0}}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"

_CHANGING: Final = frozenset({"page-number", "page-count", "date", "time", "chapter"})
_FORMS: Final = {
    "1": "decimal",
    "a": "lowerLetter",
    "A": "upperLetter",
    "i": "lowerRoman",
    "I": "upperRoman",
}


class _Level(Struct, frozen=True, kw_only=True):
    form: str
    before: str
    after: str
    shown: int
    """How many levels are in a number, from this one up."""
    start: int


def drop_hidden(root: Any) -> None:
    """Takes out text that a style hides."""
    hidden = {
        style.get(f"{STYLE}name")
        for style in root.iter(f"{STYLE}style")
        if any(each.get(f"{TEXT}display") == "none" for each in style)
    }
    for element in list(root.iter(f"{TEXT}span", f"{TEXT}p", f"{TEXT}h")) if hidden else ():
        if element.get(f"{TEXT}style-name") in hidden:
            tail, element.tail = element.tail, None
            for child in list(element):
                element.remove(child)
            element.text, element.tail = None, tail


def lift_headings(root: Any, styles: Any) -> None:
    """Numbers headings in lists and takes them out, lest the reader make them items.

    Args:
        root: Of the contents; changed in place.
        styles: The root of the styles; None without one.
    """
    levels = dict(_numbers([root] if styles is None else [root, styles]))
    counts: dict[str, list[int]] = {}
    for heading in list(root.iter(f"{TEXT}h")):
        lists = list(heading.iterancestors(f"{TEXT}list"))
        if not lists:
            continue
        if local_name(heading.getparent()) != "list-header":
            named = next(filter(None, (each.get(f"{TEXT}style-name") for each in lists)), "")
            label = _label(levels, counts.setdefault(named, []), named, len(lists))
            heading.text = label + (heading.text or "")
        lists[-1].addprevious(heading)
        if not "".join(lists[-1].itertext()).strip():
            lists[-1].getparent().remove(lists[-1])


def _numbers(roots: Iterable[Any]) -> Iterator[tuple[tuple[str, int], _Level]]:
    """The levels that have numbers, by the name of their list and their place."""
    for root in roots:
        for style in root.iter(f"{TEXT}list-style"):
            name = style.get(f"{STYLE}name", "")
            for level in style.iter(f"{TEXT}list-level-style-number"):
                form = _FORMS.get(level.get(f"{STYLE}num-format", ""))
                given = [
                    level.get(f"{TEXT}{key}", "1")
                    for key in ("level", "display-levels", "start-value")
                ]
                if form and all(each.isdecimal() and len(each) < 5 for each in given):
                    place, shown, start = map(int, given)
                    found = _Level(
                        form=form,
                        before=level.get(f"{STYLE}num-prefix", ""),
                        after=level.get(f"{STYLE}num-suffix", ""),
                        shown=shown,
                        start=start,
                    )
                    yield (name, place), found


def _label(levels: dict[tuple[str, int], _Level], counts: list[int], name: str, place: int) -> str:
    """Count a heading: what a program shows before it, with a space; empty without a number."""
    del counts[place:]
    while len(counts) < place:
        above = levels.get((name, len(counts) + 1))
        counts.append((above.start if above else 1) - (len(counts) + 1 == place))
    counts[-1] += 1
    level = levels.get((name, place))
    if level is None:
        return ""
    shown = range(max(1, place - level.shown + 1), place + 1)
    numbers = [
        number_text(counts[each - 1], levels[name, each].form)
        for each in shown
        if (name, each) in levels
    ]
    return f"{level.before}{'.'.join(numbers)}{level.after} "


def write_charts(root: Any, archive: Archive) -> None:
    """Puts the title and the figures of each chart where it is, as a text and a table."""
    for element in list(root.iter(f"{DRAW}object")):
        title, figures = chart_of(element, archive)
        if not title and not figures:
            continue
        frame = element.getparent()
        paragraph = next(frame.iterancestors(f"{TEXT}p"), None)
        words = root.makeelement(f"{TEXT}p")
        words.text = title
        if paragraph is not None:
            for each in [*reversed(figures), words]:
                paragraph.addnext(each)
            continue
        box = frame.makeelement(frame.tag)
        box.append(box.makeelement(f"{DRAW}text-box"))
        box[0].append(words)
        frame.addprevious(box)
        for child in list(frame):
            frame.remove(child)
        frame.extend(figures)


def chart_of(element: Any, archive: Archive) -> tuple[str, list[Any]]:
    """The title in words and the tables of figures of an object that is a chart; else nothing."""
    part = element.get(_HREF, "").removeprefix("./") + "/content.xml"
    chart = xml_root(archive, part).find(f".//{_CHARTS}chart") if part in archive.parts else None
    if chart is None:
        return "", []
    named = chart.find(f"{_CHARTS}title")
    title = "" if named is None else " ".join(" ".join(named.itertext()).split())
    figures = [deepcopy(each) for each in chart.iterchildren(f"{TABLE}table")]
    return f"[Chart: {title}]" if title else "", figures


def add_running(root: Any, styles: Any) -> None:
    """Puts what pages show above and below their text around it, each line once."""
    body = next(root.iter(f"{{{OPEN}office:1.0}}text"), None)
    if body is None or styles is None:
        return
    seen = {
        " ".join("".join(each.itertext()).split()) for each in body.iter(f"{TEXT}p", f"{TEXT}h")
    }
    for end, place in (("header", 0), ("footer", len(body))):
        for running in styles.iter(*(f"{STYLE}{end}{kind}" for kind in ("", "-left", "-first"))):
            for field in [each for each in running.iter() if local_name(each) in _CHANGING]:
                field.text = FIELD
                for child in list(field):
                    field.remove(child)
            for paragraph in running.iter(f"{TEXT}p", f"{TEXT}h"):
                line = running_line(" ".join("".join(paragraph.itertext()).split()))
                if line and line not in seen:
                    seen.add(line)
                    added = body.makeelement(f"{TEXT}p")
                    added.text = line
                    body.insert(place, added)
                    place += 1
