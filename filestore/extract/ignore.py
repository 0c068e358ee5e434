"""What ignore rules say of a path: the patterns of ``.gitignore``, as git itself reads them.

Touches no disk; names are bytes, as they are for git. One rule: the time a path takes grows with
the length of the rules, never faster. So the patterns are translated here, into
expressions that do not go back over what a ``*`` once matched, and a file of rules has limits. What
is beyond them is refused as a whole: rules that hold in part let in what they are to keep out.
"""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from filestore.core.errors import FilestoreError

MAX_BYTES: Final = 64 * 1024
MAX_RULES: Final = 1_000
MAX_PATTERN_BYTES: Final = 4_096
"""As long as the longest path."""

_NOTHING: Final = b"(?!)"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WILDCARDS: Final = re.compile(rb"[*?\[\\]")
_CLASS: Final = re.compile(rb"\[:([^\]]*):\]")
_SLASH: Final = ord("/")


class IgnoreRulesError(FilestoreError, ValueError):
    """Ignore rules cannot be followed; to go on without them would add what they keep out."""


class Rule(Struct, frozen=True):
    """One rule."""

    place: int
    """In its list."""
    pattern: bytes
    """As it is written, without its "!" and the slash at its end."""
    leaves_out: bool
    """False for a rule that takes back what an earlier one set."""
    expression: bytes
    """Matches whole paths; those of folders end with a slash."""


class Rules(Struct, frozen=True):
    """One list of rules; the last one that matches a path decides."""

    count: int
    by_name: tuple[Rule, ...]
    """Matched against the last part of a path; the last rule first."""
    by_path: tuple[Rule, ...]
    """Matched against the whole path below the list's folder; the last rule first."""
    some_name: re.Pattern[bytes] | None
    """Whether any rule of `by_name` matches: most paths need no other look."""
    some_path: re.Pattern[bytes] | None

    def leaves_out(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Whether a path is left out; None where no rule says anything.

        Args:
            path: Relative to the folder of the list, forward slashes. That the folders on the way
                are not left out is the caller's to know.
            is_folder: Whether it is a folder, and no link to one.
        """
        if is_folder:
            path += b"/"
        name = path[path.rfind(b"/", 0, -1) + 1 :]
        deciding = _deciding(self.some_name, self.by_name, name)
        other = _deciding(self.some_path, self.by_path, path)
        if deciding is None or (other is not None and other.place > deciding.place):
            deciding = other
        return None if deciding is None else deciding.leaves_out


def _deciding(some: re.Pattern[bytes] | None, rules: tuple[Rule, ...], text: bytes) -> Rule | None:
    if some is None or some.fullmatch(text) is None:
        return None
    return next((rule for rule in rules if _compiled(rule.expression).fullmatch(text)), None)


@lru_cache(maxsize=4 * MAX_RULES)
def _compiled(expression: bytes) -> re.Pattern[bytes]:
    return re.compile(expression, re.DOTALL)


@lru_cache(maxsize=256)
def parse(data: bytes) -> Rules:
    """The rules of a file in the syntax of ``.gitignore``; within the limits every file is valid.

    Raises:
        IgnoreRulesError: It is larger, or has more or longer rules, than can be followed.
    """
    if len(data) > MAX_BYTES:
        raise _too_long(f"it has more bytes than the limit of {MAX_BYTES:,}")
    by_name: list[Rule] = []
    by_path: list[Rule] = []
    for place, line in enumerate(data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")):
        line = line.removesuffix(b"\r").partition(b"\0")[0]
        kept = line.rstrip(b" ")
        backslashes = len(kept) - len(kept.rstrip(b"\\"))
        pattern = kept + b" " if backslashes % 2 and len(kept) < len(line) else kept
        if not pattern or pattern.startswith(b"#"):
            continue
        if len(pattern) > MAX_PATTERN_BYTES:
            size = f"{len(pattern):,} bytes; the limit is {MAX_PATTERN_BYTES:,}"
            raise _too_long(f"the rule in line {place + 1:,} has {size}")
        leaves_out = not pattern.startswith(b"!")
        pattern = pattern.removeprefix(b"!")
        is_anchored = b"/" in pattern.removesuffix(b"/")
        rule = Rule(place, pattern.removesuffix(b"/"), leaves_out, _translated(pattern))
        (by_path if is_anchored else by_name).append(rule)
    count = len(by_name) + len(by_path)
    if count > MAX_RULES:
        raise _too_long(f"it has {count:,} rules; the limit is {MAX_RULES:,}")
    return Rules(
        count, tuple(by_name[::-1]), tuple(by_path[::-1]), _any_of(by_name), _any_of(by_path)
    )


def _any_of(rules: list[Rule]) -> re.Pattern[bytes] | None:
    if not rules:
        return None
    return re.compile(b"|".join(b"(?:%s)" % rule.expression for rule in rules), re.DOTALL)


def _too_long(reason: str) -> IgnoreRulesError:
    return IgnoreRulesError(
        f"a list of ignore rules is too long: {reason}"
        "; shorten it, or move rules into the folders they are about",
    )


def _translated(pattern: bytes) -> bytes:
    """The expression for a pattern; it matches paths of folders with a slash at their end."""
    end = b"/" if pattern.endswith(b"/") else b"/?"
    pattern = pattern.removesuffix(b"/")
    if b"/" not in pattern:
        # Within one name two asterisks are one.
        pattern = re.sub(rb"(?<!\\)((?:\\\\)*)\*{2,}", rb"\1*", pattern)
    pattern = pattern.removeprefix(b"/")
    if not pattern:
        return _NOTHING
    if _WILDCARDS.search(pattern) is None:
        return re.escape(pattern) + end
    tokens = _tokens(pattern)
    if tokens is None:
        return _NOTHING
    # Only the last jump or asterisk can be tried again. What is between two jumps spans a fixed
    # number of folders, and what is between two asterisks a fixed number of bytes: where it fits
    # first, it leaves the most to what follows.
    parts: list[bytes] = []
    start = 0
    jumps = [place for place, token in enumerate(tokens) if token in _JUMPS]
    for number, place in enumerate(jumps):
        parts.append(_within(tokens[start:place]))
        following = jumps[number + 1] if number + 1 < len(jumps) else len(tokens)
        between = _within(tokens[place + 1 : following])
        folders = b"(?:[^/]++/)" + (b"*?" if tokens[place] == _FOLDERS else b"+?")
        if tokens[place] == _EVERYTHING:
            parts.append(b".+")
        elif following == len(tokens):
            parts.append(folders + between)
        else:
            parts.append(b"(?>%s%s)" % (folders, between))
        start = following
    return b"".join(parts if jumps else [_within(tokens)]) + end


# A pattern is read into tokens: the expression of one byte, or one of these. The two that cross
# slashes are what git makes of "**/" and of "**" at the end.
_STAR: Final = b"*"
_FOLDERS: Final = b"**/"
_FOLDERS_BETWEEN: Final = b"**\\/"
_EVERYTHING: Final = b"**"
_JUMPS: Final = frozenset({_FOLDERS, _FOLDERS_BETWEEN, _EVERYTHING})


def _tokens(pattern: bytes) -> list[bytes] | None:
    """The parts of a pattern; None for one that can match nothing."""
    tokens: list[bytes] = []
    place = 0
    while place < len(pattern):
        sign = pattern[place : place + 1]
        if sign == b"*":
            token, place = _stars(pattern, place)
        elif sign == b"?":
            token, place = b"[^/]", place + 1
        elif sign == b"[":
            token, place = _bracket(pattern, place + 1)
        elif sign == b"\\":
            token, place = re.escape(pattern[place + 1 : place + 2]), place + 2
        else:
            token, place = re.escape(sign), place + 1
        if not token:
            return None
        tokens.append(token)
    return tokens


def _stars(pattern: bytes, start: int) -> tuple[bytes, int]:
    """The token of a run of asterisks, and the place after it."""
    rest = pattern[start:].lstrip(b"*")
    after = len(pattern) - len(rest)
    is_alone = start == 0 or pattern[start - 1] == _SLASH
    if after - start == 1 or not is_alone:
        return _STAR, after
    if not rest:
        return _EVERYTHING, after
    if rest.startswith(b"/"):
        return _FOLDERS, after + 1
    return (_FOLDERS_BETWEEN, after + 2) if rest.startswith(b"\\/") else (_STAR, after)


def _within(tokens: list[bytes]) -> bytes:
    """Tokens without jumps."""
    runs: list[list[bytes]] = [[]]
    for token in tokens:
        if token == _STAR:
            runs.append([])
        else:
            runs[-1].append(token)
    fixed = [b"".join(run) for run in runs]
    if len(fixed) == 1:
        return fixed[0]
    tried_once = b"".join(b"(?>[^/]*?%s)" % run for run in fixed[1:-1])
    return fixed[0] + tried_once + b"[^/]*" + fixed[-1]


# Bracket expressions


def _bracket(pattern: bytes, place: int) -> tuple[bytes, int]:
    """The expression of a bracket and the place after it; an empty one where it is not closed."""
    is_negated = pattern[place : place + 1] in (b"!", b"^")
    start = place = place + is_negated
    members: set[int] = set()
    before: int | None = None
    while place < len(pattern) and (pattern[place : place + 1] != b"]" or place == start):
        named = _CLASS.match(pattern, place)
        if named is not None:
            known = _CLASSES.get(named[1])
            if known is None:
                return b"", place
            members, before, place = members | known, None, named.end()
            continue
        byte, following = _member(pattern, place)
        is_range = before is not None and pattern[place : place + 1] == b"-"
        if is_range and pattern[place + 1 : place + 2] not in (b"", b"]"):
            last, following = _member(pattern, place + 1)
            members |= set(range(before or 0, last + 1))
            before = None
        else:
            members.add(byte)
            before = byte
        place = following
    if place >= len(pattern):
        return b"", place
    chosen = (set(range(256)) - members if is_negated else members) - {_SLASH}
    if not chosen:
        return _NOTHING, place + 1
    # In ranges, because the cost of compiling a set grows with what is written in it.
    starts = sorted(byte for byte in chosen if byte - 1 not in chosen)
    ends = sorted(byte for byte in chosen if byte + 1 not in chosen)
    ranges = zip(starts, ends, strict=True)
    return b"[%s]" % b"".join(b"\\x%02x-\\x%02x" % pair for pair in ranges), place + 1


def _member(pattern: bytes, place: int) -> tuple[int, int]:
    """A byte in brackets, taken out of its escape, and the place after it."""
    if pattern[place : place + 1] == b"\\":
        place += 1
    # A backslash at the very end closes nothing, so what is returned here is never used.
    return pattern[min(place, len(pattern) - 1)], place + 1


def _bytes_that(test: str) -> frozenset[int]:
    return frozenset(code for code in range(128) if getattr(chr(code), test)())


_PRINTED: Final = frozenset(range(33, 127))
_CLASSES: Final = {
    b"alnum": _bytes_that("isalnum"),
    b"alpha": _bytes_that("isalpha"),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(32)) | {127},
    b"digit": _bytes_that("isdigit"),
    b"graph": _PRINTED,
    b"lower": _bytes_that("islower"),
    b"print": _PRINTED | {32},
    b"punct": _PRINTED - _bytes_that("isalnum"),
    b"space": frozenset(b" \t\n\v\f\r"),
    b"upper": _bytes_that("isupper"),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}
