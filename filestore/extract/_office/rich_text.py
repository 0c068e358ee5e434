r"""Rich text (RTF) made ready for a reader that sees neither hidden text nor names of styles.

Styles that are called headings get the level that Word writes, hidden text goes, page headers and
footers become files of their own. One rule: what is not understood stays as it is.
"""

import re
from typing import Final

from msgspec import Struct, field

from filestore.extract._office.docx_parts import FIELD, is_changing

_TOKEN: Final = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'[0-9a-fA-F]{2}|\\.|[{}]|[^\\{}]+|\\\Z", re.DOTALL
)
_STYLE: Final = re.compile(
    rb"(\{\\s[0-9]{1,5})(?![0-9])([^{};]{0,2000}[ \n]heading ([1-9]);\})", re.IGNORECASE
)
_RUNNING: Final = {
    **dict.fromkeys((b"header", b"headerl", b"headerr", b"headerf"), "above"),
    **dict.fromkeys((b"footer", b"footerl", b"footerr", b"footerf"), "below"),
}
_MOST_RUNNING: Final = 20
_BEGINS: Final = frozenset({b"sectd", b"pard"})
_IN_FILE: Final = 2
"""Groups that are open where the text begins: the file is the second."""
_MOST_DEEP: Final = 200
_CHANGING: Final = frozenset({b"chpgn", b"sectnum", b"chdate", b"chtime", b"chdpl", b"chdpa"})
_INSTRUCTION: Final = re.compile(rb"\\fldinst[\s{}]*(?:\\[a-z0-9]+[\s{}]*)*([A-Z]+)")
_SIGN: Final = f"\\u{ord(FIELD) - 65_536}?".encode()


class RichText(Struct, kw_only=True):
    """A file as the reader is given it."""

    data: bytes = b""
    running: dict[str, list[bytes]] = field(default_factory=lambda: {"above": [], "below": []})
    """Page headers and footers, each a file; a field that changes is one sign."""


class _Group(Struct):
    out: list[bytes]
    """Where its contents go."""
    start: int
    """Where they begin there."""
    hidden: bool
    kind: str = ""
    """`ignorable`, `field`, `above` or `below`, where it is one of these."""


def prepared(data: bytes) -> RichText:
    """A file as its reader takes it, and what its pages repeat."""
    data = _STYLE.sub(_levelled, data)
    found = RichText()
    groups = [_Group(out=[], start=0, hidden=False)]
    head: list[bytes] = []
    place = 0
    while token := _TOKEN.match(data, place):
        place = token.end()
        group, word, written = groups[-1], token[1], token[0]
        if not head and word in _BEGINS and len(groups) == _IN_FILE:
            head = list(group.out)
        if written == b"{":
            group = _Group(out=group.out, start=len(group.out), hidden=group.hidden)
            groups.append(group)
            if len(groups) > _MOST_DEEP:
                return RichText(data=data)
        elif written == b"}" and len(groups) > 1:
            groups.pop()
            if group.kind in found.running:
                _keep_running(found.running[group.kind], [*head, *group.out])
                continue
            if group.kind == "field" and _runs(groups) and _changes(group):
                group.out[group.start :] = [b"{", _SIGN]
        elif word == b"bin":
            place += max(0, int(token[2] or 0))
            continue
        elif word in _RUNNING and not any(one.kind for one in groups):
            del group.out[group.start :]
            group.out, group.start, group.kind = [], 0, _RUNNING[word]
            continue
        elif _is_unseen(token, group):
            continue
        elif word in _CHANGING and _runs(groups):
            written = _SIGN
        group.out.append(written)
    found.data = b"".join(groups[0].out)
    return found


def _is_unseen(token: re.Match[bytes], group: _Group) -> bool:
    """Whether a token is hidden or hides; what else it says of its group is noted there."""
    word = token[1]
    if word == b"v":
        group.hidden = token[2] != b"0"
    elif word == b"plain":
        group.hidden = False
    elif word == b"field" or token[0] == b"\\*":
        group.kind = group.kind or ("field" if word else "ignorable")
    else:
        return group.hidden and (word == b"u" or not word)
    return word == b"v"


def _levelled(style: re.Match[bytes]) -> bytes:
    return style[1] + b"\\outlinelevel%d" % (int(style[3]) - 1) + style[2]


def _runs(groups: list[_Group]) -> bool:
    return any(group.kind in ("above", "below") for group in groups)


def _changes(group: _Group) -> bool:
    """Whether a field says something else on every page."""
    named = _INSTRUCTION.search(b"".join(group.out[group.start :]))
    return named is not None and is_changing(named[1].decode())


def _keep_running(kept: list[bytes], pieces: list[bytes]) -> None:
    """Keep a page header or footer as a file, once."""
    data = b"".join([*pieces, b"\\par}"])
    if len(kept) < _MOST_RUNNING and data not in kept:
        kept.append(data)
