"""Fuzzes the frontmatter reader: grammar-made blocks, mutated chunk files, and bombs made by hand.

Every input must be read, or refused with one of our errors, within 20 ms, as a chunk file and as a
document; all readers must give the same values where they take a block; and an update of one of our
keys must keep every byte of the user's. It runs in a child, so that a crash of a library is seen.

    python tests/system/frontmatter_fuzz.py                  200,000 inputs
    python tests/system/frontmatter_fuzz.py --count 1000000
    python tests/system/frontmatter_fuzz.py --only 4711      one of them, told in full
"""

import argparse
import contextlib
import gc
import json
import math
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

SEED: Final = 4
COUNT: Final = 200_000
LIMIT_MS: Final = 20.0
ATTEMPTS: Final = 4
"""A reading that took too long is repeated: it counts only if it is never quick enough."""
_BLOCK: Final = 5_000

_KEYS: Final = (
    *("source", "kind", "level", "order", "headings", "pages", "overlap", "origin", "children"),
    *("questions", "tags", "title", "a", "b-c", "_x", "yes", "no", "null", "1", "<<", "?", "é"),
    *('"quoted"', "'single'", "two words", "a.b", "~", "!", "&a", "*a", "k" * 1023, "k" * 1100),
)
_SCALARS: Final = (
    *("true", "false", "null", "~", "yes", "no", "on", "off", "0", "-0", "1", "-1", "010", "0x10"),
    *("0o7", "1_000", "1e3", "1e999", "-1e999", "1e-999", ".5", "5.", "1.0", "nan", ".nan", ".inf"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 50, "9" * 5000),
    *("2024-01-01", "2024-01-01T00:00:00Z", "12:30:45", "190:20:30", "=", "text", "two words"),
    *('"text"', '"\\u0041"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\x41"', '"\\/"', '"a\\nb"', "''"),
    *("'it''s'", '"unclosed', "'unclosed", "[", "]", "{", "}", "[]", "{}", "[1, 2]", '["a", "b"]'),
    *('{"a": 1}', '{"a": 1, "a": 2}', "{a: 1}", "[a, [b, [c]]]", "- a", "? a", ": a", "a: b", "#c"),
    *("text # comment", "|", ">", "|-", ">+2", "|9", "&a x", "*a", "!x y", "!!python/object:os.x"),
    *("!!binary aGk=", "!!set {a}", "@x", "`x`", "%x", "\t", "x\ty", "\u202e", "\u200b", "\ufeff"),
    *("\x85", "\u2028", "\x00", "\x1b]0;x\x07", "\x7f", "\ud800", "\uffff", "\U0001f600", "é" * 40),
)
_LINE_ENDS: Final = ("\n", "\n", "\n", "\r\n", "\r", "\n\n", "\x0b", "\x85", "\u2028")
_BODIES: Final = (b"Body.\n", b"", b"---\n", b"\xff\xfe", b"\xef\xbb\xbfBody", b"Body\r\n---\r\nx")


@dataclass(slots=True)
class Found:
    """What a run saw."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


# Inputs


def inputs(count: int, seed: int) -> Iterator[bytes]:
    """So many files, the same for the same seed."""
    for number in range(count):
        yield made_input(number, seed)


def made_input(number: int, seed: int) -> bytes:
    """One file."""
    chance = random.Random(seed * 1_000_003 + number)
    kind = chance.random()
    if kind < 0.5:
        return _by_grammar(chance)
    if kind < 0.9:
        return _mutated(chance, _real_file(chance))
    return _mutated(chance, _by_grammar(chance))


def _by_grammar(chance: random.Random) -> bytes:
    lines = [_entry(chance) for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 8, 40)))]
    newline = chance.choice(_LINE_ENDS)
    block = "".join(line + (newline if chance.random() < 0.97 else "") for line in lines)
    mark = "\ufeff" if chance.random() < 0.03 else ""
    opening = chance.choice(("---\n", "---\n", "---\n", "--- \t\n", "---\r\n", "---", "--- x\n"))
    closing = chance.choice(("---\n", "---\n", "---\n", "---\r\n", "---", "...\n", "", " ---\n"))
    text = f"{mark}{opening}{block}{closing}"
    return text.encode("utf-8", "surrogatepass") + chance.choice(_BODIES)


def _entry(chance: random.Random) -> str:
    key = chance.choice(_KEYS)
    indent = " " * chance.choice((0, 0, 0, 0, 0, 0, 1, 2))
    style = chance.randrange(10)
    if style < 5:
        return f"{indent}{key}: {_scalar(chance)}"
    if style == 5:
        items = (f"{indent}- {_scalar(chance)}" for _ in range(chance.choice((1, 2, 5, 200))))
        return f"{indent}{key}:\n" + "\n".join(items)
    if style == 6:
        return f"{indent}{key}: {_nested(chance, chance.choice((1, 3, 7, 8, 9, 60)))}"
    if style == 7:
        return f"{indent}{key}: {chance.choice('|>')}\n" + f"  {_scalar(chance)}\n" * 3
    if style == 8:
        return f"{indent}{key}:\n  " + "\n  ".join(_entry(chance) for _ in range(2))
    return chance.choice((key, f"# {key}", f"? {key}", f"{key} : x", "", "- a", f"{key}:x", "\t"))


def _scalar(chance: random.Random) -> str:
    return chance.choice(_SCALARS)


def _nested(chance: random.Random, depth: int) -> str:
    if chance.random() < 0.5:
        return "[" * depth + _scalar(chance) + "]" * depth
    return '{"a": ' * depth + _scalar(chance) + "}" * depth


def _real_file(chance: random.Random) -> bytes:
    """A file as the store writes it."""
    from filestore.chunks import chunk_file

    return chunk_file.generate(
        body="Some words.\n" * chance.randrange(1, 4),
        source=f"notes/{chance.randrange(100)}.md",
        order=chance.choice((None, "a0", "a1V")),
        headings=["Top", f"Part {chance.randrange(9)}"],
        pages=list(range(1, chance.randrange(1, 5))),
        overlap=chance.choice((0, 12)),
        questions=[f"What is {number}: a 'thing'?" for number in range(chance.randrange(5))],
    )


def _mutated(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                changed[at:at] = chance.choice((b"\n", b"\r", b"\t", b" ", b":", b"-", b'"', b"#"))
            case 2:
                del changed[at : at + chance.randrange(1, 6)]
            case 3:
                changed[at:at] = changed[max(0, at - 20) : at] * chance.choice((1, 2, 30))
            case 4:
                changed[at:at] = _scalar(chance).encode("utf-8", "surrogatepass")
            case _:
                changed[at:at] = f"\n{_entry(chance)}\n".encode("utf-8", "surrogatepass")
    return bytes(changed)


# Bombs


def bombs() -> dict[str, bytes]:
    """Files made by hand to break a reader, by what they try."""
    made = {f"value {number}": _file(f"a: {one}\n") for number, one in enumerate(_SCALARS)}
    deep = {
        f"{depth} nested lists": _file("a: " + "[" * depth + "]" * depth + "\n") for depth in _DEEP
    }
    maps = {
        f"{depth} nested maps": _file("a: " + '{"a": ' * depth + "1" + "}" * depth)
        for depth in _DEEP
    }
    sizes = {f"a block of {size:,} bytes": _file(_filled(size)) for size in _SIZES}
    return (
        made | deep | maps | sizes | {name: _file(block) for name, block in _BOMBS.items()} | _RAW
    )


def _file(block: str) -> bytes:
    return b"---\n" + block.encode("utf-8", "surrogatepass") + b"\n---\nBody.\n"


def _filled(size: int) -> str:
    return 'a: "' + "x" * (size - 6) + '"'


_DEEP: Final = (7, 8, 9, 100, 1_000, 10_000, 30_000)
_SIZES: Final = (64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 65 * 1024, 1024 * 1024)
_BOMBS: Final = {
    "indented without end": "".join(f"{' ' * number}a:\n" for number in range(300)),
    "aliases upon aliases": "a0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
    "an alias to itself": "a: &a [*a]",
    "merge keys upon merge keys": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9)),
    "a merge key alone": "<<: {a: 1}",
    "a merge key in quotes": '"<<": {a: 1}',
    "one key twice": "a: 1\na: 2",
    "one key twice, quoted": 'a: 1\n"a": 2',
    "one key twice, deep": 'a: {"b": 1, "b": 2}',
    "a second document": "a: 1\n--- \nb: 2\n...\n--- x",
    "a document end": "a: 1\n...\nb: 2",
    "a directive": "%YAML 1.1\n---\na: 1",
    "a Python object": "a: !!python/object/apply:os.system ['true']",
    "a Python name": "a: !!python/name:os.system",
    "a tag of its own": "a: !<tag:x,2000:y> 1",
    "a tag on a key": "!!str a: 1",
    "a complex key": "? [a, b]\n: 1",
    "a mapping as key": "? {a: b}\n: 1",
    "an empty key": ": 1",
    "a key of 64 KiB": "k" * 65_000 + ": 1",
    "a quoted key of 64 KiB": '"' + "k" * 65_000 + '": 1',
    "20,001 values": "a: [" + "1," * 20_001 + "]",
    "30,000 empty values": "a: [" + "[]," * 20_000 + "]",
    "10,000 keys": "".join(f"k{number}: \n" for number in range(8_000)),
    "10,000 quoted keys": "".join(f'"{number}": 1\n' for number in range(6_000)),
    "10,000 items": "a:\n" + "- 1\n" * 12_000,
    "10,000 lists of items": "- \n" * 12_000,
    "many dashes on a line": "- " * 30_000,
    "many question marks on a line": "? " * 30_000,
    "many colons": ":" * 60_000,
    "many colons apart": ": " * 30_000,
    "many hashes": "#" * 60_000,
    "many comments": "# x\n" * 12_000,
    "many quotes": "'" * 60_000,
    "many double quotes": '"' * 60_001,
    "many backslashes": 'a: "' + "\\" * 60_000 + '"',
    "many escapes": 'a: "' + "\\u0041" * 10_000 + '"',
    "many anchors": "&a " * 20_000 + "x",
    "many tags": "!a " * 20_000 + "x",
    "many exclamation marks": "!" * 60_000,
    "many percent signs in a tag": "!" + "%41" * 20_000 + " x",
    "many open braces": "{" * 60_000,
    "many open brackets on lines": "[\n" * 30_000,
    "many commas": "[" + "," * 60_000,
    "many spaces": "a:" + " " * 60_000 + "x",
    "many tabs": "a:" + "\t" * 60_000 + "x",
    "many line ends": "a: x" + "\n" * 60_000,
    "many folded lines": "a: >\n" + " x\n\n" * 12_000,
    "a block scalar that hangs out": "a: |\n" + "\n" * 100 + "     x\n  y\n",
    "block scalars of every indent": "".join(f"a{n}: |{n}\n{' ' * n}x\n" for n in range(1, 10)),
    "a plain scalar over many lines": "a: x\n" + " y\n" * 20_000,
    "a quoted scalar over many lines": 'a: "x\n' + " y\n" * 20_000 + '"',
    "digits without end": "a: " + "9" * 60_000,
    "a fraction without end": "a: 0." + "1" * 60_000,
    "an exponent without end": "a: 1e" + "9" * 60_000,
    "a JSON number without end": "a: [" + "1" * 19_000 + "]",
    "only carriage returns": "a: 1\rb: 2\rc: 3",
    "mixed line ends": "a: 1\r\nb: 2\rc: 3\nd: 4",
    "a lone surrogate in JSON": 'a: "\\ud800"',
    "a lone surrogate in a list": 'a: ["\\udc00", "\\ud800"]',
    "half an escape": 'a: "\\u12"',
    "an escape beyond Unicode": 'a: "\\Uffffffff"',
    "a byte-order mark within": "a: \ufeffx",
    "a byte-order mark before a key": "\ufeffa: 1",
    "a key that turns around": "\u202ea: 1",
    "a key of nothing to see": "\u200b: 1",
    "a line separator in a value": "a: x\u2028b: y",
    "a next line in a value": "a: x\x85b: y",
    "a form feed": "a: x\x0cb",
    "only a tab": "\t",
    "a tab for indent": "a:\n\tb: 1",
    "a tab before a dash": "a:\n\t- 1",
    "a closing fence in a value": "a: |\n  ---\nb: 1",
    "a fence with spaces": "a: 1\n--- ",
    "no mapping but a list": "- a\n- b",
    "no mapping but text": "text",
    "no mapping but a number": "1",
    "no mapping but null": "null",
    "only comments": "# a\n# b",
    "a flow mapping": "{a: 1, b: 2}",
    "a flow mapping left open": "{a: 1, b: 2",
    "a flow mapping closed twice": "{a: 1}}",
    "an anchor on a key": "&a b: 1",
    "an alias as key": "*a : 1",
    "our key of the wrong type": "questions: {}",
    "our key of deep lists": "questions: [[[1]]]",
    "pages beyond counting": "pages: [99999999999999999999]",
    "pages of booleans": "pages: [true]",
    "an order key that is none": "order: [1]",
    "an overlap below nothing": "overlap: -1",
    "children without a path": "children: [{}]",
    "a kind that is none": "kind: \x1b[31m",
}
_RAW: Final = {
    "nothing": b"",
    "only a fence": b"---",
    "only a fence and a line end": b"---\n",
    "a fence that is not closed": b"---\na: 1\n",
    "two fences": b"---\n---\n",
    "a megabyte without a second fence": b"---\n" + b"a: 1\n" * 200_000,
    "many fences": b"---\n" * 100_000,
    "bytes that are not UTF-8": b"---\na: \xff\xfe\n---\n",
    "a cut character": b"---\na: \xe2\x82\n---\n",
    "an overlong character": b"---\na: \xc0\xaf\n---\n",
    "a surrogate as bytes": b"---\na: \xed\xa0\x80\n---\n",
    "a character beyond Unicode": b"---\na: \xf4\x90\x80\x80\n---\n",
    "UTF-16": "---\na: 1\n---\n".encode("utf-16"),
    "NUL bytes": b"---\na: \x00\n---\n\x00",
    "two byte-order marks": b"\xef\xbb\xbf\xef\xbb\xbf---\na: 1\n---\n",
    "a body that is not UTF-8": b"---\na: 1\n---\n\xff",
    "control bytes as bytes": b"---\na: \x9b31m\n---\n",
}


# The check


def check(data: bytes) -> str:
    """Read a file, hold both readers against each other, update it; what became of it, in a word.

    Raises:
        AssertionError: The readers differ, or an update lost a byte of the user's.
    """
    from filestore.chunks import chunk_file
    from filestore.core.errors import FilestoreError

    try:
        chunk = chunk_file.parse(data)
    except FilestoreError as error:
        str(error)
        outcome = type(error).__name__
    else:
        outcome = "read"
        _check_update(data, chunk)
    _compare_readers(data)
    return outcome


def _compare_readers(data: bytes) -> None:
    from filestore.chunks import frontmatter
    from filestore.core.frontmatter_yaml import read_yaml

    try:
        block = frontmatter.split(data).block
    except frontmatter.MalformedFrontmatter:
        return
    quick = frontmatter._read_lines(block)
    if quick is not None:
        slow = read_yaml(block, 2).values
        assert _same(quick, slow), f"the readers differ: {quick!r:.300} and {slow!r:.300}"
    _compare_document(block)


def _compare_document(block: bytes) -> None:
    """Hold a document with this frontmatter against a chunk file with it."""
    from filestore.chunks import frontmatter
    from filestore.extract import FRONTMATTER_ERROR
    from filestore.extract.markdown import read_frontmatter

    if b"\r" in block or b"\n..." in block or block.startswith((b"...", b"---")):
        # Other line ends, and another fence, mean something else in a document.
        return
    said = read_frontmatter(f"---\n{block.decode(errors='replace')}---\nBody.\n")[0]
    try:
        values = frontmatter.parse_block(block, 2)
    except frontmatter.MalformedFrontmatter:
        return
    assert FRONTMATTER_ERROR not in said, f"a document is refused: {said!r:.300}"
    assert _same(said, values), f"a document says {said!r:.300}, not {values!r:.300}"


def _same(one: Any, other: Any) -> bool:
    """Equal, with equal types and the same order of keys, and 0.0 no -0.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and bool(one == other)


def _check_update(data: bytes, chunk: Any) -> None:
    """Setting one of our keys keeps the user's keys, lines and body."""
    from filestore.chunks import chunk_file, frontmatter

    try:
        changed = chunk_file.update(data, origin="0" * 64)
    except (frontmatter.MalformedFrontmatter, ValueError) as error:
        reason = str(error)
        if not any(words in reason for words in ("edited in place", "at most 65,536")):
            raise
        return
    after = chunk_file.parse(changed)
    assert after.body == chunk.body, "the update changed the body"
    assert _same(dict(after.user), dict(chunk.user)), "the update changed a key of the user's"
    assert after.origin == "0" * 64, "the update did not take"
    if "origin" not in chunk.frontmatter:
        head = frontmatter.split(data)
        kept = head.block.removesuffix(b"\n").removesuffix(b"\r")
        assert kept in changed, "the update changed bytes of the user's"


def measured(data: bytes, limit_s: float) -> float:
    """Seconds that reading takes at its best in some attempts."""
    from filestore.chunks import chunk_file
    from filestore.core.errors import FilestoreError
    from filestore.extract.markdown import read_frontmatter

    text = data.decode(errors="replace")
    best = math.inf
    for _ in range(ATTEMPTS):
        started = time.thread_time()
        with contextlib.suppress(FilestoreError):
            chunk_file.parse(data)
        of_chunk_s = time.thread_time() - started
        started = time.thread_time()
        read_frontmatter(text)
        best = min(best, max(of_chunk_s, time.thread_time() - started))
        if best <= limit_s:
            break
    return best


def try_input(name: str, data: bytes, found: Found, limit_s: float) -> None:
    """Check one input and take note of what it came to."""
    try:
        elapsed_s = measured(data, limit_s)
        found.slowest_s = max(found.slowest_s, elapsed_s)
        if elapsed_s > limit_s:
            found.failures.append(f"{name}: {elapsed_s * 1e3:.0f} ms for {len(data):,} bytes")
        found.outcomes[check(data)] += 1
    except Exception:
        found.outcomes["failed"] += 1
        found.failures.append(f"{name}: {data[:2000]!r}\n{traceback.format_exc()}")


# The run


def run(first: int, last: int, seed: int, limit_s: float) -> Found:
    """Try a stretch of the inputs, in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            found = Found()
            for number in range(first, last):
                try_input(str(number), made_input(number, seed), found, limit_s)
            _send(writer, found)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        sent = stream.read()
    _, status = os.waitpid(child, 0)
    if status != 0 or not sent:
        crashed = f"a child ended with {os.waitstatus_to_exitcode(status)} in {first} to {last}"
        return Found(outcomes=Counter(crashed=1), failures=[crashed])
    value = json.loads(sent)
    return Found(
        outcomes=Counter(value["outcomes"]),
        failures=value["failures"],
        slowest_s=value["slowest_s"],
    )


def _send(writer: int, found: Found) -> None:
    value = {
        "outcomes": dict(found.outcomes),
        "failures": found.failures[:20],
        "slowest_s": found.slowest_s,
    }
    with os.fdopen(writer, "wb") as stream:
        stream.write(json.dumps(value).encode())


def try_bombs(limit_s: float) -> Found:
    """Try all bombs."""
    found = Found()
    for name, data in bombs().items():
        try_input(name, data, found, limit_s)
    return found


def run_all(count: int, seed: int, limit_s: float) -> Found:
    """Try so many inputs, a child for each stretch of them."""
    total = Found()
    for first in range(0, count, _BLOCK):
        part = run(first, min(first + _BLOCK, count), seed, limit_s)
        total.outcomes += part.outcomes
        total.failures += part.failures
        total.slowest_s = max(total.slowest_s, part.slowest_s)
        if sys.stderr.isatty():
            print(f"\r{first + _BLOCK:,} of {count:,}", end="", file=sys.stderr)
    return total


def table(found: Found) -> str:
    """What became of the inputs, as Markdown."""
    rows = [f"| {name} | {number:,} |" for name, number in found.outcomes.most_common()]
    return "\n".join(["| outcome | inputs |", "|---|---:|", *rows])


def main() -> int:
    """Run the program; 1 where an input failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, help=f"default: {COUNT:,}")
    parser.add_argument("--seed", type=int, default=SEED, help="another one, other inputs")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try one, and tell all of it")
    parser.add_argument("--limit-ms", type=float, default=LIMIT_MS, help=f"default: {LIMIT_MS:.0f}")
    options = parser.parse_args()
    limit_s = options.limit_ms / 1e3
    import yaml

    from filestore.chunks import chunk_file

    chunk_file.parse(b"---\na: [1\n---\n"[:0])
    del yaml
    gc.freeze()
    if options.only is not None:
        data = made_input(options.only, options.seed)
        found = Found()
        try_input(str(options.only), data, found, limit_s)
        print(repr(data), found, sep="\n")
        return 0
    started = time.monotonic()
    by_hand = try_bombs(limit_s)
    found = run_all(options.count, options.seed, limit_s)
    print(table(found))
    for failure in [*by_hand.failures, *found.failures][:20]:
        print(failure, file=sys.stderr)
    elapsed = time.monotonic() - started
    print(
        f"\n{options.count:,} inputs, seed {options.seed}, {elapsed:.0f} s; slowest"
        f" {found.slowest_s * 1e3:.1f} ms; {by_hand.outcomes.total()} bombs,"
        f" slowest {by_hand.slowest_s * 1e3:.1f} ms"
    )
    return 1 if found.failures or by_hand.failures else 0


if __name__ == "__main__":
    sys.exit(main())
