"""What must hold of frontmatter: two readers that agree, and edits that touch nothing else."""

import json
import math

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from filestore.chunks import frontmatter
from filestore.chunks.frontmatter import (
    MAX_BLOCK_BYTES,
    MalformedFrontmatter,
    parse,
    parse_block,
    serialize,
    serialize_block,
    split,
    with_keys,
)

AWKWARD = "\x00\x07\t\r\n\x1f \"'\\/#:-[]{},&*!|>%@`~?<=\x7f\x80\x85\xa0é\u2028\u2029\ufeff\ufffe😀"
TEXTS = (
    st.text(st.sampled_from(AWKWARD) | st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(["no", "yes", "~", "null", "true", "010", "1e5", "2024-01-01", "<<", ".inf"])
    | st.text("ab", min_size=1, max_size=3).map(lambda text: text * 600)
)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = (
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
)
SMALL_KEYS = st.text(st.sampled_from(AWKWARD + "ab_1"), max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(SMALL_KEYS, inner, max_size=4),
    max_leaves=6,
)
SIMPLE_KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
KEYS = SIMPLE_KEYS | SMALL_KEYS | st.sampled_from(["no", "null", "true", "y", "<<", "=", "é"])
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=6)

BODIES = st.binary(max_size=40) | st.lists(
    st.sampled_from(
        [b"---", b"\n", b"\r\n", b"\xef\xbb\xbf", b" ", b"\t", b"a: 1", b"\r", b"\xff"]
    ),
    max_size=8,
).map(b"".join)


def depth_of(value) -> int:
    """How many lists and mappings stand within each other."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def exact(value) -> str:
    """A text in which 1, 1.0 and true, 0.0 and -0.0, and the order of keys differ."""
    return json.dumps(value)


# Splitting


@given(BODIES)
def test_a_split_loses_no_byte(data):
    """Head and body of any file are its bytes, whatever stands at its start."""
    try:
        parts = split(data)
    except MalformedFrontmatter:
        assert data.removeprefix(b"\xef\xbb\xbf").startswith(b"---")
    else:
        assert parts.head + parts.body == data


@pytest.mark.parametrize(
    ("data", "head", "block", "body"),
    [
        (b"---\na: 1\n---\nbody", b"---\na: 1\n---\n", b"a: 1\n", b"body"),
        (
            b"---\r\na: 1\r\n--- \t\r\n\r\nbody",
            b"---\r\na: 1\r\n--- \t\r\n",
            b"a: 1\r\n",
            b"\r\nbody",
        ),
        (b"\xef\xbb\xbf---\na: 1\n---", b"\xef\xbb\xbf---\na: 1\n---", b"a: 1\n", b""),
        (b"---  \n---\n---\n", b"---  \n---\n", b"", b"---\n"),
        (b"\xef\xbb\xbfbody", b"\xef\xbb\xbf", b"", b"body"),
        (b"----\nbody\n---\n", b"", b"", b"----\nbody\n---\n"),
        (b"\n---\na: 1\n---\n", b"", b"", b"\n---\na: 1\n---\n"),
        (b"--- a\n---\n", b"", b"", b"--- a\n---\n"),
        (
            b"---\na: 1\n ---\n----\n---\nb",
            b"---\na: 1\n ---\n----\n---\n",
            b"a: 1\n ---\n----\n",
            b"b",
        ),
        (b"", b"", b"", b""),
    ],
)
def test_where_frontmatter_ends(data, head, block, body):
    """Fences stand alone on their line; the body starts after the closing one's line end."""
    parts = split(data)
    assert (parts.head, parts.block, parts.body) == (head, block, body)
    assert parts.block_line == (2 if b"---" in head else 0)


@pytest.mark.parametrize("data", [b"---", b"---\n", b"---\na: 1\n", b"---\na: 1\n--- b\n"])
def test_an_open_fence_is_malformed(data):
    """Frontmatter that is never closed is reported on line 1 and not taken for text."""
    with pytest.raises(MalformedFrontmatter, match="closing") as caught:
        split(data)
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_too_large_a_block_is_malformed():
    """A block is read up to 64 KiB and refused with one byte more."""
    block = b"a: " + b"x" * (MAX_BLOCK_BYTES - 4) + b"\n"
    assert parse(b"---\n" + block + b"---\n")[0] == {"a": "x" * (MAX_BLOCK_BYTES - 4)}
    with pytest.raises(MalformedFrontmatter, match="at most 65,536"):
        parse(b"---\nx" + block + b"---\n")


# Reading


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b'a: "x"\nb: [1, 2.5, "y"]\n', {"a": "x", "b": [1, 2.5, "y"]}),
        (b'c: null\nd: {"e": true}\n', {"c": None, "d": {"e": True}}),
        (b'a:\n- "x"\n- 1\nb: 2\n', {"a": ["x", 1], "b": 2}),
        (b"a: no\nb: 010\nc: 12:30\n", {"a": "no", "b": "010", "c": "12:30"}),
        (b"a: 2024-01-01\nb: .inf\nc: ~\n", {"a": "2024-01-01", "b": ".inf", "c": "~"}),
        (b"a:\nb: true\nc: 2.50\nd: -0\n", {"a": None, "b": True, "c": "2.50", "d": 0}),
        (b"a: 1.0\nb: [1.10, {\"c\": 1e5}]\n", {"a": 1.0, "b": ["1.10", {"c": "1e5"}]}),
        (b"e: +1\nf: 1.\ng: True\n", {"e": "+1", "f": "1.", "g": "True"}),
        (b"a: 'true'\nb: \"1\"\nc: 1 # c\n", {"a": "true", "b": "1", "c": 1}),
        (b"a: 9223372036854775807\n", {"a": 2**63 - 1}),
        (b"a: 9223372036854775808\n", {"a": "9223372036854775808"}),
        (b"a: 1e400\nb: [18446744073709551616]\n", {"a": "1e400", "b": ["18446744073709551616"]}),
        (b"# c\n\na: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
        (b"null: 1\n2: b\n? c\n: d\n", {"null": 1, "2": "b", "c": "d"}),
        (b"a:\r\n- 1\r\nb: x\r\n", {"a": [1], "b": "x"}),
        (b"", {}),
        (b"# only a comment\n", {}),
    ],
)  # fmt: skip
def test_values_follow_the_rules_of_json(block, expected):
    """Quoted is text; unquoted is what it is in JSON, or text as written."""
    assert exact(parse_block(block, 2)) == exact(expected)


@pytest.mark.parametrize(
    ("block", "line", "column", "message"),
    [
        (b"a: 1\nb: &x 1\n", 3, 4, "anchors"),
        (b"a: *x\n", 2, 4, "aliases"),
        (b"a: !!int 3\n", 2, 4, "tags"),
        (b"a: 1\n<<: {b: 1}\n", 3, 1, "merge keys"),
        (b"a: 1\nb: 2\na: 3\n", 4, 1, "appears twice"),
        (b'a: {"b": 1, "b": 2}\n', 2, 13, "appears twice"),
        (b"a: 1\n--- b\n", 3, 1, "second document"),
        (b"a: 1\n...\n", 3, 1, "second document"),
        (b"[a]: 1\n", 2, 1, "key must be text"),
        (b"just text\n", 2, 1, "key: value"),
        (b"- 1\n", 2, 1, "key: value"),
        (b"a: b: c\n", 2, 5, "not allowed"),
        (b"a: 1\nb: 'x\n", 4, 1, "end of stream"),
        (b"a: 1\n\xc3\xa4: \xff\n", 3, 4, "UTF-8"),
        (b"\xc3\xa4: \x07\n", 2, 4, "U\\+0007"),
        (b"a: x\xe2\x80\xa8y\n", 2, 5, "U\\+2028"),
        (b'a: "\\ud83d\\ude00"\n', 2, 7, "escape"),
        (b"a: [[[[[[[[1]]]]]]]]\n", 2, 11, "8 deep"),
        (b"a: [" + b"1," * 25_000 + b"]\n", 2, 7_995, "4,000"),
    ],
)
def test_what_is_refused_is_pointed_at(block, line, column, message):
    """Whatever is outside the safe part of YAML is refused with its place in the file."""
    with pytest.raises(MalformedFrontmatter, match=message) as caught:
        parse_block(block, 2)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "piece", [b"[", b"{", b"- ", b"? ", b"a: ", b"!", b"&a ", b"'", b"{a: ", b"*a"]
)
def test_hostile_blocks_end_in_an_error(piece):
    """Nesting, open quotes and the like, 60 KB of them, end in a message and nothing else."""
    with pytest.raises(MalformedFrontmatter):
        parse_block(piece * (60_000 // len(piece)), 2)


@given(
    st.binary(max_size=60)
    | st.text("ab:-? \t\r\n[]{},\"'\\u0|>&*!#%.1<=\x85é", max_size=60).map(str.encode)
)
def test_any_bytes_are_read_or_refused(block):
    """No block whatever makes the reader fail in another way than its own error."""
    try:
        values = parse_block(block, 2)
    except MalformedFrontmatter as error:
        place = (error.line, error.column)
    else:
        place = (2, 1)
        assert exact(json.loads(exact(values))) == exact(values)
    assert place >= (2, 1)


# Two readers


def json_lines(mapping, ascii_only, spaces) -> bytes:
    """A mapping as anybody's JSON library writes it, a key a line, lists by turns."""
    separators = (", ", ": ") if spaces else (",", ":")
    lines = []
    for index, (key, value) in enumerate(mapping.items()):
        items = value if isinstance(value, list) and value and index % 2 else [value]
        texts = [json.dumps(item, ensure_ascii=ascii_only, separators=separators) for item in items]
        lines += (
            [f"{key}:", *(f"- {text}" for text in texts)]
            if items is value
            else [f"{key}: {texts[0]}"]
        )
    return "".join(line + "\n" for line in lines).encode()


def assert_readers_agree(block) -> None:
    """Whatever the line reader takes, the YAML reader reads as the same values."""
    values = frontmatter._read_lines(block)
    if values is not None:
        assert exact(values) == exact(frontmatter.read_yaml(block, 2).values)


@given(st.dictionaries(SIMPLE_KEYS, VALUES, max_size=4), st.booleans(), st.booleans())
def test_both_readers_agree_on_json_lines(mapping, ascii_only, spaces):
    """JSON lines in any dialect give the same values by either reader."""
    assert_readers_agree(json_lines(mapping, ascii_only, spaces))


PIECES = [
    *("a", "b", "key", ":", ": ", "- ", "-", " ", "  ", "\n", "\n", "\r\n", "\r", "\t", '"', '"x"'),
    *("[", "]", "{", "}", ",", "[1, 2]", '{"a":1}', '{"a" : [-1]}', "true", "null", "nul", "-0"),
    *(
        "1",
        "-1",
        "01",
        "1.5",
        "1e5",
        "1E400",
        "-0.0",
        "9" * 19,
        "9" * 20,
        "0." + "1" * 25,
        "#",
        "'",
    ),
    *(
        "\\",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\/",
        "\\n",
        "\x85",
        "\u2028",
        "\ufeff",
        "\x7f",
    ),
    *(
        "é",
        "😀",
        "---",
        "...",
        "<<",
        "a: 1\n",
        'b: "x"\n',
        "c:\n- 1\n",
        "? ",
        "&a ",
        "*a",
        "!t ",
        "%",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example('a: "x\\/\\u00e9\\\\ud83d"\n')
@example("a: 18446744073709551615\n")
@example('a: [1, {"b": 1, "b": 2}]\n')
@example("a: [[[[[[[]]]]]]]\n")
@example("a:\n- [[[[[[]]]]]]\n")
@example("a:\n- [[[[[[[]]]]]]]\n")
@example('a: {"' + "k" * 2000 + '": 1}\n')
def test_both_readers_agree_on_near_misses(text):
    """Blocks that are almost JSON lines are read alike or left to the YAML reader."""
    assert_readers_agree(text.encode())


@given(MAPPINGS)
def test_without_libyaml_the_values_are_the_same(mapping):
    """The reader in pure Python gives what the one in C gives."""
    if depth_of(mapping) > 8:
        return
    block = b"# for the YAML reader\n" + serialize_block(mapping)
    values = parse_block(block, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        assert exact(parse_block(block, 2)) == exact(values)


@pytest.mark.parametrize("escape", ["\\ud83d\\ude00", "\\ud800", "\\UFFFFFFFF"])
def test_without_libyaml_bad_characters_are_refused_too(escape, monkeypatch):
    """Half a surrogate pair and a number that is no character are refused by either reader."""
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    with pytest.raises(MalformedFrontmatter):
        parse_block(f'a: "{escape}"\n'.encode(), 2)


# Writing


@given(MAPPINGS.filter(lambda mapping: depth_of(mapping) <= 8), BODIES)
@example({}, b"---\n---\n")
@example({}, b"---")
@example({}, b"\xef\xbb\xbftext")
@example({"a": 1}, b"\xef\xbb\xbf---\n")
def test_what_is_written_is_read_back(mapping, body):
    """Any mapping and any body survive a file, to the byte."""
    values, read_body = parse(serialize(mapping, body))
    assert exact(values) == exact(mapping)
    assert read_body == body


@pytest.mark.parametrize("loader", [yaml.CSafeLoader, yaml.SafeLoader])
@given(mapping=MAPPINGS.filter(lambda mapping: depth_of(mapping) <= 8))
def test_other_readers_of_yaml_understand_it(loader, mapping):
    """PyYAML reads the same keys and values from what we write."""
    assert (yaml.load(serialize_block(mapping), Loader=loader) or {}) == mapping


@given(st.dictionaries(SIMPLE_KEYS, TEXTS | st.lists(TEXTS, min_size=1, max_size=6), max_size=6))
def test_our_own_form_is_read_line_by_line(mapping):
    """Texts and lists of texts never need the slow reader, except a few words as keys."""
    reserved = {"yes", "no", "true", "false", "on", "off", "null", "y", "n"}
    if not any(key.lower() in reserved for key in mapping):
        assert frontmatter._read_lines(serialize_block(mapping)) == mapping


def test_the_form_of_what_is_written():
    """One key a line, long lists one item a line, words kept as they are."""
    mapping = {"title": "Über", "pages": [1, 2], "no": 1e16, "questions": ["a?", "b?", "c?", "d?"]}
    assert serialize_block(mapping).decode() == (
        'title: "Über"\npages: [1, 2]\n"no": 1.0e+16\nquestions:\n- "a?"\n- "b?"\n- "c?"\n- "d?"\n'
    )


def test_a_long_list_is_written_an_item_a_line():
    """Two items that do not fit a line get one each."""
    assert serialize_block({"a": ["x" * 50, "y" * 50]}).count(b"\n- ") == 2


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        2**63,
        -(2**63) - 1,
        "\ud800",
        b"x",
        {1: 2},
        [[[[[[[[1]]]]]]]],
        "x" * 70_000,
    ],
)
def test_what_cannot_be_read_back_is_not_written(value):
    """A value that no reader would give back is refused."""
    with pytest.raises(ValueError, match="frontmatter"):
        serialize_block({"a": value})


# Editing in place

STYLES = [
    "{key}: plain text\n",
    "{key}: 'quoted' # why\n",
    '"{key}" : "x"\n',
    "{key}:\n  - a\n  - b # last\n",
    "{key}:\n- a\n-\n",
    "{key}: |\n  one\n\n  two\n",
    "{key}: |+\n  one\n\n",
    "{key}: >-\n    one\n    two\n",
    "{key}:\n  inner: 1\n  # about the list\n  list:\n  - 2\n",
    "{key}: [1,\n  2]\n",
    "{key}: {{a: 1, b: [é]}}\n",
    "{key}:\n",
    "{key}: # nothing yet\n",
    "{key}: one\n  two\n",
    '{key}: "one\n  two"\n',
    "{key}: 12\n",
    '{key}: ["a", "b"]\n',
    "{key}:   \t \n",
]
COMMENTS = ["# a comment: with a colon\n", "#\n\n", "# é 😀\n"]


@st.composite
def blocks(draw: st.DrawFn) -> tuple[list[tuple[str | None, str]], str]:
    """A block as a person writes it: its pieces, each with its key (None: a comment)."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    indent = draw(st.sampled_from(["", "", "  "]))
    pieces: list[tuple[str | None, str]] = []
    for key in draw(st.lists(SIMPLE_KEYS, unique=True, max_size=5)):
        pieces.append((key, draw(st.sampled_from(STYLES)).format(key=key)))
        if draw(st.booleans()):
            pieces.append((None, draw(st.sampled_from(COMMENTS))))
    lines = [
        (key, "".join(indent + line if line.strip() else line for line in piece.splitlines(True)))
        for key, piece in pieces
    ]
    return [(key, piece.replace("\n", newline)) for key, piece in lines], newline


def file_of(pieces, newline, body) -> bytes:
    """The file that holds a block of pieces."""
    block = "".join(piece for _, piece in pieces)
    return f"---{newline}{block}---{newline}".encode() + body


@given(blocks(), st.data(), BODIES)
def test_an_edit_sets_what_it_says(written, data, body):
    """After an edit the mapping is the old one with the changes, and the body is the same."""
    pieces, newline = written
    file = file_of(pieces, newline, body)
    before, _ = parse(file)
    changed = st.sampled_from(sorted(before)) | KEYS if before else KEYS
    values = VALUES.filter(lambda value: depth_of(value) <= 7)
    changes = data.draw(st.dictionaries(changed, values, max_size=4))
    edited = with_keys(file, changes)
    after, after_body = parse(edited)
    kept = {key: value for key, value in before.items() if key not in changes}
    assert after == kept | {key: value for key, value in changes.items() if value is not None}
    assert after_body == body
    touched = {key for key in changes if changes[key] is not None or key in before}
    position = 0
    for key, piece in pieces:
        if key not in touched:
            position = edited.index(piece.encode(), position) + len(piece.encode())
    if newline == "\r\n":
        assert b"\n" not in split(edited).block.replace(b"\r\n", b"")


@given(blocks(), st.data(), BODIES)
def test_a_removal_takes_the_lines_of_the_key_and_no_other(written, data, body):
    """What is left of a file is exactly its other pieces."""
    pieces, newline = written
    keys = [key for key, _ in pieces if key is not None]
    gone = data.draw(st.sets(st.sampled_from(keys))) if keys else set()
    left = [(key, piece) for key, piece in pieces if key not in gone]
    edited = with_keys(file_of(pieces, newline, body), dict.fromkeys(gone))
    assert edited == file_of(left, newline, body)


@given(blocks(), BODIES)
def test_removing_nothing_changes_nothing(written, body):
    """Removing keys that are absent gives the same bytes, with frontmatter or without."""
    file = file_of(*written, body)
    assert with_keys(file, {"not there": None}) == file


@pytest.mark.parametrize(
    ("data", "changes", "expected"),
    [
        (b"text\n", {"a": 1}, b"---\na: 1\n---\ntext\n"),
        (b"\xef\xbb\xbftext\r\n", {"a": 1}, b"\xef\xbb\xbf---\r\na: 1\r\n---\r\ntext\r\n"),
        (b"text", {"a": None}, b"text"),
        (b"---\n---\ntext", {"a": 1}, b"---\na: 1\n---\ntext"),
        (b"---\na: 1 # why\n---\n", {"a": 2}, b"---\na: 2 # why\n---\n"),
        (
            b"---\n'a': x # why\n---",
            {"a": [1, 2, 3, 4]},
            b"---\n'a': # why\n- 1\n- 2\n- 3\n- 4\n---",
        ),
        (b"---\na: 1\n# end\n---\n", {"b": 2}, b"---\na: 1\n# end\nb: 2\n---\n"),
    ],
)
def test_the_form_of_an_edit(data, changes, expected):
    """Comments and quoting stay, new keys come last, line ends are the file's own."""
    assert with_keys(data, changes) == expected


@pytest.mark.parametrize(
    "data", [b"---\n{a: 1}\n---\n", b"---\n? a\n: 1\n---\n", b"---\na: &x 1\n---\n"]
)
def test_what_cannot_be_edited_in_place_is_refused(data):
    """Braces round everything, explicit keys and malformed blocks are left alone."""
    with pytest.raises(MalformedFrontmatter):
        with_keys(data, {"a": 2})


def test_an_edit_may_not_outgrow_the_limit():
    """A block that would be too large to read is not written."""
    data = b"---\na: " + b"x" * 60_000 + b"\n---\n"
    with pytest.raises(ValueError, match="65,536"):
        with_keys(data, {"b": "y" * 6_000})
