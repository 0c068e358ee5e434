"""Numbers and labels of Word's lists and headings, counted as Word counts them.

Reads the definitions of lists and counts their paragraphs in order. What becomes of a label in the
text is not known here. One rule: a list that is not defined, or not soundly, has no labels.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from filestore.extract._office.docx_parts import WORD, is_on, value

_W: Final = f"{{{WORD}}}"
LEVELS: Final = 9

_PLACES: Final = {str(level): level for level in range(LEVELS)}
_COUNTED: Final = re.compile("%([1-9])")
_PLAIN: Final = re.compile(r"%[1-9]([.)]?)")
_NUMERALS: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST: Final = 780
"""Thirty times Z; numbers beyond it are written in digits."""


class Label(Struct, frozen=True, kw_only=True):
    """What Word shows before a paragraph."""

    text: str
    """With the space after it; empty for a bullet, and where nothing is shown."""
    level: int
    bullet: bool
    number: int | None
    """Where the label is a number alone, as Markdown has it too."""
    closing: str
    """What follows such a number: a full stop, a bracket or nothing."""


class _Level(Struct, frozen=True, kw_only=True):
    family: str
    """Lists of one family go on counting where another one stopped."""
    form: str
    text: str
    start: int
    restarts: bool
    """Whether its first item does not go on where another list stopped."""
    after: int
    """An item of a level below this one makes it start again."""
    legal: bool
    """Whether the numbers of higher levels are written in digits."""
    gap: str
    style: str
    """The paragraph style whose paragraphs are on this level."""


class Numbering:
    """The lists of a document, and how far each has come."""

    def __init__(self, root: Any, number_styles: dict[str, str]) -> None:
        """Prepare.

        Args:
            root: The root of `numbering.xml`; None without one.
            number_styles: The lists of the styles that define one, by the id of the style.
        """
        self._levels = {} if root is None else _levels(root, number_styles)
        self._linked = {
            (number, level.style): place for (number, place), level in self._levels.items()
        }
        self._counts: dict[str, list[int | None]] = {}
        self._begun: set[tuple[str, int]] = set()

    def label(
        self, number_id: str, level: str | None, usual: str | None, style_ids: Iterable[str]
    ) -> Label | None:
        """Count a paragraph.

        Args:
            number_id: Its list.
            level: Its level as the paragraph says; None where its style decides.
            usual: The level that its style says, for a list that is linked to no style.
            style_ids: Its style and what that is based on.

        Returns:
            What Word shows before it; None where it is in no list.
        """
        if level is None:
            links = (self._linked.get((number_id, style)) for style in style_ids)
            place = next((link for link in links if link is not None), _PLACES.get(usual or "", 0))
        else:
            place = _PLACES.get(level, 0)
        found = self._levels.get((number_id, place))
        if found is None:
            return None
        reached = self._counts.setdefault(found.family, [None] * LEVELS)
        before = reached[place]
        if found.restarts and (number_id, place) not in self._begun:
            before = None
        self._begun.add((number_id, place))
        reached[place] = found.start if before is None else before + 1
        for deeper in range(place + 1, LEVELS):
            below = self._levels.get((number_id, deeper))
            if below is None or place < below.after:
                reached[deeper] = None

        def written(match: re.Match[str]) -> str:
            shown = int(match[1]) - 1
            one = self._levels.get((number_id, shown))
            if one is None or shown > place:
                return ""
            count = reached[shown]
            form = "decimal" if found.legal else one.form
            return number_text(one.start if count is None else count, form)

        is_bullet = found.form == "bullet"
        text = "" if is_bullet else _COUNTED.sub(written, found.text).strip()
        plain = _PLAIN.fullmatch(found.text) if found.form == "decimal" else None
        return Label(
            text=text + found.gap if text else "",
            level=place,
            bullet=is_bullet,
            number=reached[place] if plain and text else None,
            closing=plain[1] if plain else "",
        )


def _levels(root: Any, number_styles: dict[str, str]) -> dict[tuple[str, int], _Level]:
    families = {one.get(f"{_W}abstractNumId", ""): one for one in root.iterfind(f"{_W}abstractNum")}
    numbers = {one.get(f"{_W}numId", ""): one for one in root.iterfind(f"{_W}num")}
    levels = {}
    for number_id, number in numbers.items():
        family = value(number, "abstractNumId") or ""
        definition = families.get(family)
        style = None if definition is None else value(definition, "numStyleLink")
        if style is not None:
            linked = numbers.get(number_styles.get(style, ""))
            family = "" if linked is None else value(linked, "abstractNumId") or ""
            definition = families.get(family)
        if definition is None:
            continue
        overrides = {one.get(f"{_W}ilvl", ""): one for one in number.iterfind(f"{_W}lvlOverride")}
        for usual in definition.iterfind(f"{_W}lvl"):
            place = usual.get(f"{_W}ilvl", "")
            override = overrides.get(place)
            own = None if override is None else override.find(f"{_W}lvl")
            start = None if override is None else value(override, "startOverride")
            if place in _PLACES:
                level = _level(usual if own is None else own, family, _PLACES[place], start)
                levels[number_id, _PLACES[place]] = level
    return levels


def _level(element: Any, family: str, place: int, start: str | None) -> _Level:
    first = start or value(element, "start") or "1"
    after = value(element, "lvlRestart") or ""
    form = value(element, "numFmt") or "decimal"
    text = value(element, "lvlText")
    if text is None:
        text = f"%{place + 1}."
    return _Level(
        family=family,
        form=form,
        text=text,
        start=int(first) if re.fullmatch("[0-9]{1,5}", first) else 1,
        restarts=start is not None,
        after=min(place, int(after)) if after in _PLACES else place,
        legal=is_on(element.find(f"{_W}isLgl")),
        gap="" if value(element, "suff") == "nothing" else " ",
        style=value(element, "pStyle") or "",
    )


# ---- numbers in words and letters ----------------------------------------------------------------


def _letters(alphabet: str) -> Callable[[int], str]:
    return lambda number: (
        alphabet[(number - 1) % len(alphabet)] * ((number - 1) // len(alphabet) + 1)
    )


def _roman(number: int) -> str:
    written = ""
    for worth, numeral in _NUMERALS:
        written += numeral * (number // worth)
        number %= worth
    return written


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 <= number % 100 <= 20 else ending}"


def _chinese(number: int) -> str:
    written = ""
    for worth, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, worth)
        if digit:
            written += ("" if worth == 10 and digit == 1 and not written else _HAN[digit]) + sign
        elif written and number and not written.endswith("零"):
            written += "零"
    return written


_HAN: Final = "零一二三四五六七八九"
_LATIN: Final = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC: Final = "абвгдежзиклмнопрстуфхцчшщыэюя"
_FORMS: Final[dict[str, Callable[[int], str]]] = {
    "none": lambda _: "",
    "decimalZero": lambda number: f"{number:02}",
    "lowerLetter": _letters(_LATIN),
    "upperLetter": _letters(_LATIN.upper()),
    "russianLower": _letters(_CYRILLIC),
    "russianUpper": _letters(_CYRILLIC.upper()),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "ordinal": _ordinal,
    "decimalEnclosedCircle": lambda number: chr(0x245F + number) if number <= 20 else str(number),
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "taiwaneseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
    "ideographTraditional": _letters("甲乙丙丁戊己庚辛壬癸"),
}


def number_text(number: int, form: str) -> str:
    """A number in the form of a level; the forms that are not known in digits."""
    known = form == "none" or (form in _FORMS and 0 < number <= _MOST)
    return _FORMS[form](number) if known else str(number)
