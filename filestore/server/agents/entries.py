"""One entry in a program's configuration, put in and taken out as text: JSON, with comments, TOML.

Pure. One rule: all else in the text stays as it is, with its order, comments and line ends, and
what was changed is checked by reading it: exactly the entry is more, or less.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from filestore.core.errors import FilestoreError
from filestore.core.schema import each_once

Form = Literal["json", "jsonc", "toml"]
"""`jsonc` is JSON with comments and commas behind the last member."""
_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+"|//[^\n]*+|/\*.*?(?:\*/|\Z)|[{}\[\],:]|[^\s"/{}\[\],:]++|\s++|.', re.DOTALL
)
_COMMENT: Final = ("//", "/*")


class UnfitEntryError(FilestoreError, ValueError):
    """The text is not of its form, or the entry has no place in it; says why."""


def parsed(text: str, form: Form) -> dict[str, Any]:
    """The values of a configuration.

    Raises:
        UnfitEntryError: It is not of its form.
    """
    if not text.strip():
        return {}
    try:
        if form == "toml":
            return tomllib.loads(text)
        values = json.loads(
            _plain(text) if form == "jsonc" else text,
            object_pairs_hook=each_once,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError) as error:
        reasons = {"toml": "it is no TOML", "jsonc": "it is no JSON"}
        raise UnfitEntryError(reasons.get(form, "it is not plain JSON, or has comments")) from error
    if not isinstance(values, dict):
        raise UnfitEntryError("it is no JSON object")
    return values


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def snippet(form: Form, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """A configuration with an entry alone."""
    if form == "toml":
        return _table(key, name, entry)
    return json.dumps({key: {name: entry}}, ensure_ascii=False, indent=2)


def with_entry(text: str, form: Form, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """A configuration with an entry, which takes the place of one of the same name.

    Raises:
        UnfitEntryError: It cannot be added; the reason is for a person.
    """
    text = without_entry(text, form, key, name)
    values = parsed(text, form)
    if not isinstance(values.setdefault(key, {}), dict):
        raise UnfitEntryError(f"its {key!r} is no {'table' if form == 'toml' else 'object'}")
    line_end = "\r\n" if "\r\n" in text else "\n"
    if form == "toml":
        gap = "" if not text or text.endswith("\n") else line_end
        blank = line_end if text.strip() else ""
        found = text + gap + blank + _table(key, name, entry).replace("\n", line_end)
    else:
        found = _with_member(text, key, name, dict(entry), line_end)
    values[key][name] = entry
    return _checked(found, form, values)


def without_entry(text: str, form: Form, key: str, name: str) -> str:
    """A configuration without an entry; as it is where it has none.

    Raises:
        UnfitEntryError: It cannot be taken out.
    """
    values = parsed(text, form)
    if not isinstance(section := values.get(key), dict) or name not in section:
        return text
    if form == "toml":
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        try:
            document: Any = tomlkit.parse(text)
            del document[key][name]
            found = tomlkit.dumps(document)
        except (TOMLKitError, KeyError) as error:
            raise UnfitEntryError("its entry cannot be removed") from error
        del section[name]
        if not section and key not in tomllib.loads(found):
            del values[key]
        return _checked(found, form, values)
    del section[name]
    top = _Object.at(text, _brace(text))
    inner = _Object.at(text, next(one.start for one in top.members if one.key == key))
    return _checked(_without_member(text, inner, name), form, values)


def _checked(text: str, form: Form, expected: Mapping[str, Any]) -> str:
    if parsed(text, form) != expected:
        raise UnfitEntryError("the entry has no place in it")
    return text


def _table(key: str, name: str, entry: Mapping[str, Any]) -> str:
    import tomlkit

    lines = [f"[{key}.{name}]"]
    for word, value in entry.items():
        table = tomlkit.inline_table()
        shown = tomlkit.item(value)
        if isinstance(value, Mapping):
            table.update(value)
            shown = table
        lines.append(f"{word} = {shown.as_string()}")
    return "\n".join(lines) + "\n"


def _tokens(text: str, begin: int = 0) -> Iterator[re.Match[str]]:
    """Every token but blanks, with comments."""
    return (one for one in _TOKEN.finditer(text, begin) if not one[0].isspace())


def _brace(text: str) -> int:
    """Where the object of a text begins, which was read well."""
    return next(one.start() for one in _tokens(text) if one[0] == "{")


def _plain(text: str) -> str:
    """JSON without comments and commas behind the last member."""
    words = [one[0] for one in _tokens(text) if not one[0].startswith(_COMMENT)]
    ends = [*words[1:], "."]
    return " ".join(
        word for word, after in zip(words, ends, strict=True) if word != "," or after not in "}]"
    )


class _Member(Struct, frozen=True):
    """One member of an object, by its places in the text."""

    key: str
    begin: int
    """Of the key."""
    start: int
    """Of the value."""
    end: int
    """Behind the value."""


class _Object(Struct, frozen=True):
    """An object by its places in the text."""

    begin: int
    """Of its brace."""
    end: int
    """Of the other one."""
    members: list[_Member]

    @classmethod
    def at(cls, text: str, begin: int) -> "_Object":
        """The object whose brace is at a place of a text that was read well."""
        members: list[_Member] = []
        depth, key, first, start, end = 0, "", 0, 0, 0
        for token in _tokens(text, begin):
            word = token[0]
            if word.startswith(_COMMENT):
                continue
            closes = word in "}]"
            if (depth == 1 and word == ",") or (depth == 1 and closes):
                if start:
                    members.append(_Member(key, first, start, end))
                key, start = "", 0
            elif depth == 1 and not key and not start and word != ":":
                key, first = json.loads(word), token.start()
                start = -1
            elif depth >= 1 and start == -1 and word != ":":
                start = token.start()
            depth += (word in "{[") - closes
            if depth == 0:
                return cls(begin, token.start(), members)
            end = token.end()
        raise UnfitEntryError("it is no JSON")


def _with_member(text: str, key: str, name: str, entry: dict[str, Any], line_end: str) -> str:
    """JSON with an entry under a key, which is made where it is missing."""
    found = re.search(r"\n([ \t]+)\S", text)
    unit = "\t" if found and "\t" in found[1] else found[1] if found else "  "
    if not text.strip():
        return json.dumps({key: {name: entry}}, ensure_ascii=False, indent=2) + "\n"
    place, value, word, depth = _Object.at(text, _brace(text)), entry, name, 1
    for member in place.members:
        if member.key == key:
            place, depth = _Object.at(text, member.start), 2
    if depth == 1:
        word, value = key, {name: entry}
    outer = _indent_at(text, place.begin) or unit * (depth - 1)
    last = place.members[-1] if place.members else None
    indent = (_indent_at(text, last.begin) if last else "") or outer + unit
    shown = json.dumps({word: value}, ensure_ascii=not _is_utf8(value), indent=unit)
    lines = shown.splitlines()[1:-1]
    block = "".join(f"{line_end}{indent}{line.removeprefix(unit)}" for line in lines)
    if last is None:
        rest = text[place.begin + 1 : place.end]
        return _inserted(text, place.begin + 1, block + ("" if "\n" in rest else line_end + outer))
    rest = text[last.end : place.end]
    if any(mark in rest for mark in _COMMENT):
        # A comment behind the last member stays behind it.
        return _inserted(text, place.begin + 1, f"{block},")
    return _inserted(text, last.end, f",{block}" + ("" if "\n" in rest else line_end + outer))


def _inserted(text: str, place: int, more: str) -> str:
    return text[:place] + more + text[place:]


def _indent_at(text: str, place: int) -> str:
    """The blanks that the line of a place begins with."""
    found = re.compile(r"[ \t]*").match(text, text.rfind("\n", 0, place) + 1)
    return found[0] if found else ""


def _is_utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_member(text: str, place: _Object, name: str) -> str:
    """JSON without a member of an object, and without the comma that parted it from another."""
    number = next(at for at, one in enumerate(place.members) if one.key == name)
    member = place.members[number]
    before = place.members[number - 1].end if number else place.begin
    # The end of a line also ends a comment.
    is_free = "//" not in text[before : member.begin]
    begin = len(text[: member.begin].rstrip()) if is_free else member.begin
    behind = next(one for one in _tokens(text, member.end) if not one[0].startswith(_COMMENT))
    if behind[0] == ",":
        return text[:begin] + text[member.end : behind.start()] + text[behind.end() :]
    if number == 0:
        return text[:begin] + text[member.end :]
    comma = next(one for one in _tokens(text, before) if one[0] == ",")
    return text[: comma.start()] + text[comma.end() : max(comma.end(), begin)] + text[member.end :]
