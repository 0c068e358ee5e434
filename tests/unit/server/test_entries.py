"""An entry put into a program's configuration and taken out again, as text."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filestore.server.agents import entries
from filestore.server.agents.install import PROGRAMS, _change, _undone

ENTRY = {"command": "/a b/filestore", "args": ["mcp", 'q"\\ü', "--write"], "env": {"A": "b"}}
NAME = "filestore-kb"
FORMS = sorted({(one.form, one.key) for one in PROGRAMS.values()})
TEXTS = st.text("aü\"\\/{}[],:*# '\n\t", max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.just(1.5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NOISE = st.sampled_from(["", " ", "\n", '// a } " { ,\n', "/* } , */", "\t/* *//**/ "])


@st.composite
def configurations(draw: Any, form: str, key: str) -> str:
    """What a person may have in such a file."""
    servers = draw(st.none() | st.dictionaries(st.sampled_from(["o", "p", NAME]), VALUES))
    others = draw(st.dictionaries(TEXTS.filter(lambda name: name != key), VALUES, max_size=3))
    values = {**others, **({} if servers is None else {key: servers})}
    if form == "toml":
        lines = ["# mine", 'model = "x" # mine, too', ""]
        for name in () if servers is None else sorted(servers):
            lines += [f"[{key}.{name}] # c", f'command = "{name}"', "args = [\n  'a', # b\n]", ""]
        lines += draw(st.sampled_from([[], ["[other]", "a = 1"], ["[[b]]", "[[b]]"]]))
        text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end"]))
    else:
        indent = draw(st.sampled_from([None, 2, 4, "\t"]))
        text = json.dumps(values, indent=indent, ensure_ascii=draw(st.booleans()))
        if form == "jsonc":
            words = [one[0] for one in entries._tokens(text)]
            text = "".join(
                draw(NOISE)
                + ("," if word in "}]" and last not in "{[," and draw(st.booleans()) else "")
                + word
                for last, word in zip(["{", *words], words, strict=False)
            )
            text += draw(NOISE)
        text = draw(st.sampled_from(["", "\n", " "])) + text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@pytest.mark.parametrize("form", ["json", "jsonc", "toml"])
@given(data=st.data())
@settings(max_examples=60)
def test_all_else_stays_and_comes_back(form: entries.Form, data: Any) -> None:
    """Whatever is there: read again it has the entry more, and undone it is what it was."""
    key = data.draw(st.sampled_from([key for one, key in FORMS if one == form]))
    text = data.draw(configurations(form, key))
    before = entries.parsed(text, form)
    after = entries.with_entry(text, form, key, NAME, ENTRY)
    expected = {**before, key: {**before.get(key, {}), NAME: ENTRY}}
    assert entries.parsed(after, form) == expected
    assert _undone(after, _change(text, after)) == text
    assert entries.with_entry(after, form, key, NAME, ENTRY).count(NAME) == after.count(NAME)
    left = entries.without_entry(after, form, key, NAME)
    expected[key].pop(NAME)
    found = entries.parsed(left, form)
    assert {key: {}} | found == {**expected, key: expected[key]}


@pytest.mark.parametrize(("form", "key"), FORMS)
@pytest.mark.parametrize("text", ["", " \n", "\r\n"])
def test_an_empty_file_is_filled_and_emptied(form: entries.Form, key: str, text: str) -> None:
    """It stays empty once the entry is taken out."""
    after = entries.with_entry(text, form, key, NAME, ENTRY)
    assert entries.parsed(after, form) == {key: {NAME: ENTRY}}
    assert _undone(after, _change(text, after)) == text
    assert _undone(after, _change(None, after)) is None
    assert entries.parsed(entries.snippet(form, key, NAME, ENTRY), form) == {key: {NAME: ENTRY}}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", "{} // mine"),
        ("json", '{"a": 1,}'),
        ("json", "{},"),
        ("jsonc", "{} x"),
        ("jsonc", "{},"),
        ("jsonc", '{"a": 1, /* }'),
        ("jsonc", '{"a": 1 "b": 2}'),
        ("jsonc", '{"a": 1, "a": 2}'),
        ("jsonc", "\ufeff{}"),
        ("jsonc", '{"mcpServers": [], "servers": 1, "context_servers": null}'),
        ("jsonc", "[" * 100_000),
        ("jsonc", "/*" * 100_000),
        ("toml", "mcp_servers = 1"),
        ("toml", "mcp_servers = { a = { command = 'b' } }"),
        ("toml", "[[mcp_servers]]"),
        ("toml", "a = 1\na = 2"),
        ("toml", "\ufeffa = 1"),
    ],
)
def test_what_has_no_place_for_it_is_refused(form: entries.Form, text: str) -> None:
    """With why."""
    for one, key in FORMS:
        if one == form:
            with pytest.raises(entries.UnfitEntryError, match=r"\w"):
                entries.with_entry(text, form, key, NAME, ENTRY)
