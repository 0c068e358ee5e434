r"""Text from files, names, keys and errors, made fit for a terminal.

Whatever could steer a terminal, turn text around or hide in it becomes a visible escape
(``\x1b``, ``\u202e``, ``\U000e0041``); all else stays as it is. What joins the letters of a word,
or the parts of an emoji, is text there, and a soft hyphen is nothing; in a name both are shown, so
that none is taken for another that looks like it. One rule: it is for showing only; what was
shown is read back only as one of several names, of which the disk has to know one, since a
backslash in the text is not escaped.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

# Everything of Unicode's category Cf, and what is zero-width besides.
_INVISIBLE: Final = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f"
)
_SOFT_HYPHEN: Final = "\u00ad"
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""They choose another form of the sign before them, and hide anywhere else."""
_EMOJI_FORM: Final = "\ufe0f"
_VARIED: Final = frozenset({"So", "Sm", "Sk", "Po", "Pd", "Nd", "Lo"})
_SHOWN: Final = 100
_SHOWN_BITS: Final = 256
_SEPARATORS: Final = "\u2028\u2029"
_SURROGATES: Final = "\ud800-\udfff"
_NONCHARACTERS: Final = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17)
)
_ABOVE_ASCII: Final = f"\x7f-\x9f{_INVISIBLE}{_SEPARATORS}{_SURROGATES}{_NONCHARACTERS}"
_UNSAFE: Final = f"[\x00-\x08\x0b-\x1f{_ABOVE_ASCII}{_SELECTORS}]"
_UNSAFE_IN_LINE: Final = f"[\x00-\x1f{_ABOVE_ASCII}{_SELECTORS}]"
_UNSAFE_ASCII: Final = "[\x00-\x08\x0b-\x1f\x7f]"
_SHOWN_ESCAPE: Final = r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})"
_UNDECODED: Final = range(0xDC80, 0xDD00)
"""Where Python puts bytes that are not UTF-8 (PEP 383)."""


class Unshown:
    """A value that holds secrets: its repr says only what it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def safe_text(text: str, *, keep_newlines: bool = True) -> str:
    """A text with control, bidirectional, invisible and undecodable characters made visible.

    What joins the letters of a word stays in scripts that join any, soft hyphens go; a name is for
    `shown_path`.

    Args:
        text: Anything, also with lone surrogates.
        keep_newlines: False for text on one line: line feeds and tabs are escaped too.
    """
    if text.isascii():
        if text.isprintable():
            return text
        if keep_newlines:
            return _pattern(_UNSAFE_ASCII).sub(_escape, text)
    return _pattern(_UNSAFE if keep_newlines else _UNSAFE_IN_LINE).sub(_in_text, text)


def safe_json(data: bytes) -> bytes:
    """JSON with whatever could steer a terminal as JSON escapes; the value is the same."""
    text = data.decode("utf-8")
    if text.isascii() and "\x7f" not in text:
        return data
    return _pattern(f"[{_ABOVE_ASCII}]").sub(_json_escape, text).encode("utf-8")


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    pairs = (units[start : start + 2] for start in range(0, len(units), 2))
    return "".join(f"\\u{int.from_bytes(pair, 'big'):04x}" for pair in pairs)


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    """Compiled on first use: that takes milliseconds, and plain text needs none of it."""
    return re.compile(expression)


def shown_path(path: bytes | str) -> str:
    r"""A path on one line, as it is printed and put in JSON: bytes that are not UTF-8 as ``\xNN``.

    Args:
        path: The bytes on disk, or the text that Python makes of them.
    """
    name = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
    if name.isascii() and name.isprintable():
        return name
    return _pattern(_UNSAFE_IN_LINE).sub(_in_name, name)


def shell_word(path: str) -> str:
    """A path as one word of a shell; bytes that are no UTF-8 as its quoting has them."""
    import shlex

    if path.isprintable() and not any("\ud800" <= sign <= "\udfff" for sign in path):
        return shlex.quote(path)
    raw = os.fsencode(path.replace("\\", "\\\\").replace("'", "\\'"))
    quoted = (f"\\x{byte:02x}" if byte < 32 or byte > 126 else chr(byte) for byte in raw)
    return f"$'{''.join(quoted)}'"


def inner_word(path: str) -> str:
    """The same for a command in single quotes: with a blank, in double ones."""
    is_plain, has_blanks = (re.fullmatch(rf"[\w~./{more}-]+", path) for more in ("", " "))
    return path if is_plain else f'"{path}"' if has_blanks else shell_word(path)


_LONG_PATH: Final = 600


def brief_path(path: str) -> str:
    """A path in a list of many: of one that would take very much room both ends, as printed."""
    shown = shown_path(path)
    return path if len(shown) <= _LONG_PATH else f"{shown[:500]}…{shown[-99:]}"


def paths_shown_so(shown: str) -> Iterator[str]:
    r"""What a path may be called that a person gives as it was printed; first the text itself.

    Only the disk can tell which one it is: a name may contain ``\x41``, too.
    """
    yield shown
    if "\\" not in shown:
        return
    as_bytes = _pattern(_SHOWN_ESCAPE).sub(lambda match: _unescape(match, undecoded=True), shown)
    as_signs = _pattern(_SHOWN_ESCAPE).sub(lambda match: _unescape(match, undecoded=False), shown)
    yield from (path for path in (as_bytes, as_signs) if path != shown and "\0" not in path)


def _unescape(match: re.Match[str], *, undecoded: bool) -> str:
    code = int(match[1] or match[2] or match[3], 16)
    if undecoded and code + 0xDC00 in _UNDECODED:
        return chr(code + 0xDC00)
    sign = chr(code) if code <= sys.maxunicode else ""
    # Nothing else is ever shown as an escape.
    return sign if sign and shown_path(sign) == match[0] else match[0]


def timestamp(seconds: int) -> str:
    """A moment in seconds since 1970, in UTC; a number that is none, as it is."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s"


def brief(value: object) -> str:
    """A value from a file in a message: short, and neither nested nor endless."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length():,} bits"
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    # As `shown_path` spells a byte that is no text.
    text = _pattern(r"\\udc([89a-f][0-9a-f])").sub(r"\\x\1", text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def encodable(value: Any) -> Any:
    """JSON whose texts have no half characters, as in names that are no UTF-8."""
    return with_texts(value, lambda text: text.encode("utf-8", "replace").decode())


def with_texts(value: Any, changed: Callable[[str], str]) -> Any:
    """JSON with other texts and keys."""
    if isinstance(value, str):
        return changed(value)
    if isinstance(value, Mapping):
        return {changed(key): with_texts(one, changed) for key, one in value.items()}
    return [with_texts(one, changed) for one in value] if isinstance(value, list | tuple) else value


def listed(names: Iterable[object], most: int = 3, *, separator: str = ", ") -> str:
    """The first of some names, as they are, and how many more there are."""
    words = list(map(str, names))
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return separator.join(words[:most]) + more


def offered(paths: Sequence[str]) -> str:
    """The end of a sentence about an unknown path, with the ones that may be wanted, if any."""
    *others, last = [f"'{shown_path(one)}'" for one in paths] or [""]
    return f"; did you mean {' or '.join(filter(None, (', '.join(others), last)))}?" if last else ""


def _in_text(match: re.Match[str]) -> str:
    if match[0] == _SOFT_HYPHEN:
        return ""
    return match[0] if match[0] in _JOINERS and _joins(match) else _in_name(match)


def _in_name(match: re.Match[str]) -> str:
    return match[0] if _varies(match) else _escape(match)


def _joins(match: re.Match[str]) -> bool:
    """Whether a joiner is between the letters of a word, or the parts of an emoji."""
    text, at = match.string, match.start()
    before = at - 2 if text[at - 1 : at] == _EMOJI_FORM else at - 1
    after = text[match.end() : match.end() + 1]
    if before < 0 or not after:
        return False
    if match[0] == "\u200d" and _is_emoji(text[before]) and _is_emoji(after):
        return True
    return before == at - 1 and _is_of_word(text[before], "LMN") and _is_of_word(after, "LM")


def _varies(match: re.Match[str]) -> bool:
    """Whether a variation selector follows a sign that has more than one form."""
    before = match.string[match.start() - 1] if match.start() else ""
    if not before or not _pattern(f"[{_SELECTORS}]").fullmatch(match[0]) or _is_hidden(before):
        return False
    return _is_emoji(before) or before == "\u2139" or _category(before) in _VARIED


def _is_of_word(sign: str, kinds: str) -> bool:
    # Scripts with capitals, as Latin, join no letters: what is between two of them only hides.
    has_case = sign.lower() != sign.upper()
    return _category(sign)[0] in kinds and not (has_case or _is_hidden(sign))


def _is_emoji(sign: str) -> bool:
    is_symbol = sign > "\u2000" and _category(sign) in ("So", "Sm")
    return is_symbol or "\U0001f000" <= sign <= "\U0001faff"


def _category(sign: str) -> str:
    import unicodedata

    return unicodedata.category(sign)


def _is_hidden(sign: str) -> bool:
    return _pattern(_UNSAFE_IN_LINE).fullmatch(sign) is not None


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code in _UNDECODED:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def without_name(path: str, reason: str) -> str:
    """A reason that begins with the name of its file, where the name stands before it already."""
    for name in (path, path.rpartition("/")[2]):
        if name and reason.startswith(f"{name}: "):
            return reason[len(name) + 2 :]
        if name and reason.startswith(f"{name} is "):
            return f"it{reason[len(name) :]}"
    return reason
