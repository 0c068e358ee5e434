"""What must hold of settings: they come back as written, and a wrong value is named."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.errors import UsageError
from filestore.settings import (
    FORMAT_VERSION,
    MAX_BUDGET,
    ModelOptions,
    NewerFormatError,
    Settings,
    SettingsError,
    check_layout,
    parse,
    serialize,
    with_model,
)

NAMES = st.from_regex(r"[a-z][a-z0-9:/._-]{0,30}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
MODELS = st.builds(
    ModelOptions,
    endpoint=st.none() | TEXTS,
    dimension=st.none() | st.integers(1, 10_000),
    max_tokens=st.none() | st.integers(1, 10_000),
    query_prefix=st.none() | TEXTS,
    document_prefix=st.none() | TEXTS,
)
SETTINGS = st.builds(
    Settings,
    layout=st.sampled_from(["tree", "flat"]),
    embedder=NAMES,
    budget=st.integers(1, MAX_BUDGET),
    model=MODELS,
    ignore=st.lists(TEXTS, max_size=3).map(tuple),
)


@given(SETTINGS)
def test_settings_come_back_as_written(settings):
    """Parsing is the inverse of serialising a new store's settings."""
    assert parse(serialize(settings)) == settings
    assert serialize(parse(serialize(settings))) == serialize(settings)


def test_an_empty_file_means_the_defaults():
    """A folder becomes a store by an empty settings file."""
    assert parse(b"") == Settings()
    assert parse(b"") == parse(serialize(Settings()))


def test_comments_unknown_keys_and_windows_line_ends_are_fine():
    """What a person or a later version adds does not hurt."""
    data = b'# mine\r\nlayout = "flat"\r\nlater = [1, 2]\r\n\r\n[chunker]\r\nbudget = 99\r\n'
    assert parse(data) == Settings(layout="flat", budget=99)


def test_accepted_warnings_are_read():
    """A code and the paths it is accepted for come out as they stand."""
    data = '[accepted]\nempty = ["chunked/ä b.md"]\nsymlink = []\n'.encode()
    assert parse(data).accepted == {"empty": ("chunked/ä b.md",), "symlink": ()}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('format = "1"', "format"),
        ("format = true", "format"),
        ("format = 1.0", "format"),
        ('layout = "list"', "layout"),
        ("layout = 1", "layout"),
        ('layout = "Tree"', "layout"),
        ("embedder = 5", "embedder"),
        ("embedder = []", "embedder"),
        ('metric = "euclid"', "metric"),
        ("metric = false", "metric"),
        ('backend = "postgres"', "backend"),
        ("backend = {}", "backend"),
        ("chunker = 5", "chunker"),
        ("chunker.budget = 0", "budget"),
        ("chunker.budget = -1", "budget"),
        (f"chunker.budget = {MAX_BUDGET + 1}", "budget"),
        ('chunker.budget = "256"', "budget"),
        ("chunker.budget = true", "budget"),
        ("accepted = 1", "accepted"),
        ('accepted.empty = "chunked/a.md"', "accepted.empty"),
        ("accepted.empty = [1]", "accepted.empty"),
        ("model = 1", "model"),
        ("model.endpoint = 1", "endpoint"),
        ("model.dimension = 0", "model.dimension"),
        ('model.max_tokens = "many"', "max_tokens"),
        ('ignore = "*.tmp"', "ignore"),
        ("ignore = [1]", "ignore"),
    ],
)
def test_a_wrong_value_is_refused_by_name(text, key):
    """The message names the file and the key, and the remedy says to mend it."""
    with pytest.raises(SettingsError) as caught:
        parse(text.encode(), name="notes/filestore.toml")
    assert key in caught.value.message
    assert "notes/filestore.toml" in caught.value.message
    assert "mend" in caught.value.remedy


@pytest.mark.parametrize("data", [b"layout", b"\xff\xfe", b"a = 1\na = 2", b"\x00", b"<<<<<<< a"])
def test_what_is_no_toml_is_refused(data):
    """A broken or half-merged settings file is refused with advice."""
    with pytest.raises(SettingsError, match="cannot be read") as caught:
        parse(data)
    assert "git" in caught.value.remedy


def test_a_newer_format_is_refused_before_its_values_are_judged():
    """A store of a later version asks for an upgrade even where its values mean nothing to us."""
    data = f'format = {FORMAT_VERSION + 1}\nlayout = "spiral"'.encode()
    with pytest.raises(NewerFormatError) as caught:
        parse(data)
    assert "upgrade" in caught.value.remedy


@given(st.binary(max_size=100) | SETTINGS.map(serialize), st.data())
def test_damage_is_refused_or_harmless(data, draw):
    """A settings file with bytes cut out is read or refused, nothing else."""
    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    with suppress(SettingsError, NewerFormatError):
        assert parse(data[:start] + data[end:]).layout in ("tree", "flat")


@given(SETTINGS, NAMES, MODELS)
def test_another_model_changes_nothing_else(settings, name, model):
    """Naming another model keeps every other setting, whichever table it stands in."""
    data = serialize(settings) + b'\n[accepted]\nempty = ["a.md"]\n'
    changed = parse(with_model(data, name, model))
    kept = replace(settings, embedder=name, model=model, accepted={"empty": ("a.md",)})
    assert changed == kept


def test_another_model_keeps_what_a_person_wrote():
    """Comments, order and keys of others survive; an endpoint that is not asked for goes."""
    data = (
        b'# ours\nembedder = "openai:a"  # slow\nlayout = "flat"\n\n[model]\n'
        b'endpoint = "http://localhost/v1"\n\n[accepted]\nempty = []\n# the end\n'
    )
    changed = with_model(data, "builtin", ModelOptions())
    assert changed == (
        b'# ours\nlayout = "flat"\nembedder = "builtin"\n\n[accepted]\nempty = []\n# the end\n'
    )


def test_an_unknown_layout_is_wrong_usage():
    """A layout that is asked for and does not exist is refused with those that do."""
    assert (check_layout("tree"), check_layout("flat")) == ("tree", "flat")
    with pytest.raises(UsageError, match="heap") as caught:
        check_layout("heap")
    assert "tree, flat" in caught.value.remedy
