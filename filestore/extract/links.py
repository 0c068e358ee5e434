"""The links that are in a Markdown text, as they are written: `[[name]]` and `[label](path)`.

Pure, and in linear time whatever the text. One rule: what a link leads to is not asked here; that
depends on the other files, and so is decided by `chunks/links` when it is asked.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from filestore.extract.markdown_read import (
    DEFINITION,
    INLINE,
    SCHEME,
    percent_decoded,
    unescaped,
    without_any_code,
    without_brackets,
    without_remarks,
)

MOST_LINKS: Final = 20_000
"""Of one text; what a program wrote may have more, and a person reads none of them."""
MAX_TARGET: Final = 1_024
"""In characters; longer is the name of no file."""
MAX_LABEL: Final = 200
"""In characters; a longer label is cut."""

_TOKEN: Final = re.compile(
    r"\\.|!?\[\[(?P<wiki>[^\[\]\n]+)\]\]|(?P<open>!?\[)|(?P<close>\])|(?P<blank>\n[ \t]*(?=\n))"
)
_MOST_IN_REFERENCE: Final = 999  # characters, as CommonMark says
_LABEL_AFTER: Final = re.compile(rf"\[([^\[\]\\]{{0,{_MOST_IN_REFERENCE}}})\]")


class Link(Struct, frozen=True, kw_only=True):
    """One link to a file, as it is written."""

    kind: Literal["wiki", "markdown"]
    target: str
    """The name or path before the `#`; empty where the link stays in its own file. Of a Markdown
    link with its percent signs, without angle brackets, backslashes and entities."""
    heading: str
    """What is behind the `#`: a heading, its slug, or a block; empty without one."""
    label: str
    """What a reader sees in place of the target, on one line; empty without one."""
    line: int
    """Where it starts in the text, 1-based; 0 in the metadata above the text."""
    is_embed: bool = False
    """Whether the target is shown in place: `![[name]]`, a picture."""


def links(
    text: str, *, visible: str | None = None, wiki: bool = True, most: int = MOST_LINKS
) -> tuple[Link, ...]:
    """The links of a Markdown text to files, in order; what has a scheme or a host is none.

    A reference link is where it is used; a definition that is never used, where it is.

    Args:
        text: With LF line ends.
        visible: The text without its code, where that is known.
        wiki: Whether `[[name]]` is a link, as it is in notes.
        most: How many; those further down are left out.
    """
    if "[" not in text:
        return ()
    visible = without_remarks(without_any_code(text) if visible is None else visible)
    definitions: dict[str, _Target] = {}
    for key, target in _defined(visible):
        definitions.setdefault(key, target)
    unused, found = dict(definitions), []
    for at, target, label, key in _uses(visible, definitions, wiki=wiki):
        if key in definitions and _calls_alike(target, definitions[key]):
            unused.pop(key, None)
        found.append((at, target, text[label][: 2 * MAX_LABEL]))
    found += [(target.inner[0] - 1, target, key) for key, target in unused.items()]
    made, line, end = list[Link](), 1, 0
    for at, target, shown in sorted(found, key=lambda one: one[0])[:most]:
        line += text.count("\n", end, at)
        end = at
        made.append(
            Link(
                kind=target.kind,
                target=target.target,
                heading=target.heading,
                label=" ".join(shown.split())[:MAX_LABEL],
                line=line,
                is_embed=text[at] == "!",
            )
        )
    return tuple(made)


class WrittenLink(Struct, frozen=True, kw_only=True):
    """The place in a text that tells where links lead: of a reference its definition."""

    start: int
    """In characters: of `[[name#heading|label]]` the name, of `[label](path "title")` the path with
    its angle brackets and what is behind its `#`."""
    end: int
    link: Link
    """On no line and without label."""
    inner: tuple[int, int]
    """Start and end of what is between double brackets, or of the label of a definition."""
    defined: tuple[tuple[int, int], ...] = ()
    """The labels of definitions that read as what is between the double brackets, and that no
    reference needs: some tools write one for each name, so that others can follow it."""


def written_links(text: str, *, wiki: bool = True) -> tuple[WrittenLink, ...]:
    """Where in a Markdown text its links say where they lead, in order, each place once.

    Args:
        text: With LF line ends.
        wiki: Whether `[[name]]` is a link, as it is in notes.
    """
    if "[" not in text:
        return ()
    visible = without_remarks(without_any_code(text))
    labels: dict[str, list[tuple[int, int]]] = {}
    found: dict[int, tuple[_Target, str]] = {}
    definitions, referred = dict[str, _Target](), set[str]()
    # Of several of a label the first counts; the others get the same change.
    for key, target in _defined(visible):
        definitions.setdefault(key, target)
        labels.setdefault(key, []).append(target.inner)
        found[target.start] = target, ""
    for _, target, _, key in _uses(visible, definitions, wiki=wiki):
        found[target.start] = target, key if target.kind == "wiki" else ""
        referred |= {key} if target.kind == "markdown" else set()
    return tuple(
        WrittenLink(
            start=start,
            end=one.end,
            link=Link(kind=one.kind, target=one.target, heading=one.heading, label="", line=0),
            inner=one.inner,
            defined=() if key in referred else tuple(labels.get(key, ())),
        )
        for start, (one, key) in sorted(found.items())
    )


def is_external(target: str) -> bool:
    """Whether the destination of a Markdown link leads out: it has a scheme or a host."""
    return bool(SCHEME.match(target)) or target.startswith(("//", "\\"))


class _Target(Struct, frozen=True, kw_only=True):
    """Where a link leads, and where in the text that is written."""

    kind: Literal["wiki", "markdown"]
    target: str
    heading: str
    start: int
    end: int
    inner: tuple[int, int]


def _defined(visible: str) -> Iterator[tuple[str, _Target]]:
    """Each reference definition: its label as references are compared, and where it leads."""
    for match in DEFINITION.finditer(visible) if "]:" in visible else ():
        target = _markdown_target(match, 2, match.span(1))
        # A footnote looks like a definition, and is a text.
        if target is not None and not match[1].startswith("^"):
            yield _key(match[1]), target


def _calls_alike(link: _Target, definition: _Target) -> bool:
    """Whether a link says of its target what its definition does, which then adds nothing."""
    if link.kind == "markdown":
        return True
    names = (one.target.rpartition("/")[2].casefold() for one in (link, definition))
    name, defined = (percent_decoded(one) or one for one in names)
    return name.removesuffix(".md") == defined.removesuffix(".md")


def _key(label: str) -> str:
    """A label as references are compared."""
    return " ".join(label.casefold().split())


def _uses(
    visible: str, definitions: Mapping[str, _Target], *, wiki: bool
) -> Iterator[tuple[int, _Target, slice, str]]:
    """Each link: where it starts, where it leads, where its label is, its definition."""
    opened: list[int] = []
    is_innermost = False
    passed = 0
    for match in _TOKEN.finditer(visible):
        if match.start() < passed:
            continue
        if match["wiki"] is not None:
            passed, target, label = _double_bracketed(visible, match, wiki=wiki)
            if target is not None:
                # Some tools write a definition for each name, so that others can follow it.
                yield match.start(), target, label, _key(match["wiki"])
        elif match["open"]:
            opened.append(match.start())
            is_innermost = True
        elif match["blank"] is not None:
            opened.clear()
        elif match["close"] and opened:
            start = opened.pop()
            inner = slice(start + 1 + (visible[start] == "!"), match.start())
            passed, target, key = _closed(visible, inner, definitions if is_innermost else {})
            is_innermost = False
            if target is not None:
                yield start, target, inner, key


def _double_bracketed(
    visible: str, match: re.Match[str], *, wiki: bool
) -> tuple[int, _Target | None, slice]:
    """The end of `[[name|label]]`, where it leads, and where its label is."""
    # A label in brackets is one of a Markdown link if a destination follows: `[[1]](notes.md)`.
    inline = INLINE.match(visible, match.end() - 1)
    start, stop = match.span("wiki")
    if inline is not None:
        return inline.end(), _markdown_target(inline, 1), slice(start - 1, stop + 1)
    name, bar, _ = match["wiki"].partition("|")
    label = slice(start + len(name) + 1, stop) if bar else slice(0, 0)
    # In a table the bar has a backslash.
    name, _, heading = name.removesuffix("\\").partition("#")
    start += len(name) - len(name.lstrip())
    name, heading = name.strip(), heading.strip()
    if not wiki or not 0 < len(name) + len(heading) <= MAX_TARGET or "://" in name:
        return match.end(), None, label
    end = start + len(name)
    found = _Target(
        kind="wiki", target=name, heading=heading, start=start, end=end, inner=match.span("wiki")
    )
    return match.end(), found, label


def _closed(
    visible: str, inner: slice, definitions: Mapping[str, _Target]
) -> tuple[int, _Target | None, str]:
    """The end of what a closing bracket ends, where it leads, and the key of its definition."""
    at = inner.stop
    if visible.startswith("(", at + 1):
        inline = INLINE.match(visible, at)
        if inline is not None:
            return inline.end(), _markdown_target(inline, 1), ""
    if not definitions or at - inner.start > _MOST_IN_REFERENCE:
        return at, None, ""
    own = _key(visible[inner])
    following = _LABEL_AFTER.match(visible, at + 1)
    key = _key(following[1]) if following else ""
    if following and (key or own) in definitions:
        return following.end(), definitions[key or own], key or own
    begun = inner.start - 1
    start = max(begun - 3, visible.rfind("\n", max(0, begun - 4), begun) + 1)
    # A definition has only blanks and quote marks before it in its line.
    is_first = start == 0 or visible[start - 1] == "\n"
    is_definition = (
        visible.startswith(":", at + 1) and is_first and not visible[start:begun].strip(" >")
    )
    return at, None if is_definition else definitions.get(own), own


def _markdown_target(
    match: re.Match[str], group: int, inner: tuple[int, int] = (0, 0)
) -> _Target | None:
    """Where a destination leads; None for out of the files, for nowhere, and for no file's name."""
    destination = match[group]
    if len(destination) > 4 * MAX_TARGET:
        return None
    written = unescaped(without_brackets(destination))
    path, _, fragment = written.partition("#")
    path = path.partition("?")[0].strip()
    heading = percent_decoded(fragment) or ""
    if is_external(written) or not 0 < len(path) + len(heading) <= MAX_TARGET:
        return None
    start, end = match.span(group)
    return _Target(kind="markdown", target=path, heading=heading, start=start, end=end, inner=inner)
