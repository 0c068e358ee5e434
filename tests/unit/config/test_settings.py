"""What must hold of settings: they come back as written, and a wrong value is named."""

import tomllib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from filestore.config.settings import (
    FORMAT_VERSION,
    LAYOUTS,
    MAX_BUDGET,
    AgentOptions,
    ModelOptions,
    NewerFormatError,
    SecondModel,
    Settings,
    SettingsError,
    check_layout,
    parse,
)
from filestore.config.written import serialize, with_models
from filestore.core.errors import UsageError
from tests.advice import all_words

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
    layout=st.sampled_from(["tree", "flat", "in-place"]),
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
    """What a person or a later version adds does not hurt; keys are named, as they may be wrong."""
    data = b'# mine\r\nlayout = "flat"\r\nlater = [1, 2]\r\n\r\n[chunker]\r\nbudget = 99\r\n'
    unknown = ("filestore.toml: unknown key 'later'",)
    assert parse(data) == Settings(layout="flat", budget=99, unknown=unknown)


def test_a_key_that_nothing_reads_is_named_with_the_one_that_may_be_meant():
    """In every table; what stands in a table of a person's own names is no key of ours."""
    data = (
        b'embeder = "builtin"\nfollow = {notes = true}\nbackend_config = {path = "x"}\n'
        b"accepted.empty = []\n[chunker]\nbudgets = 3\n[generator]\nprices = 1\n"
        b'[beside]\nembedder = "a"\nmax_token = 3\n[model]\nnothing.like = 1\n'
    )
    assert parse(data).unknown == (
        "filestore.toml: unknown key 'embeder'; did you mean 'embedder'?",
        "filestore.toml: unknown key 'chunker.budgets'; did you mean 'budget'?",
        "filestore.toml: unknown key 'generator.prices'",
        "filestore.toml: unknown key 'beside.max_token'; did you mean 'max_tokens'?",
        "filestore.toml: unknown key 'model.nothing'",
    )


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
    """The message names the file and the key, and the remedy says to fix it."""
    with pytest.raises(SettingsError) as caught:
        parse(text.encode(), name="notes/filestore.toml")
    assert key in caught.value.message
    assert "notes/filestore.toml" in caught.value.message
    assert "fix" in all_words(caught.value)


@pytest.mark.parametrize("data", [b"layout", b"\xff\xfe", b"a = 1\na = 2", b"\x00", b"<<<<<<< a"])
def test_what_is_no_toml_is_refused(data):
    """A broken or half-merged settings file is refused with advice."""
    with pytest.raises(SettingsError, match="cannot be read") as caught:
        parse(data)
    assert "git" in all_words(caught.value)


NINES = "9" * 6_000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"x = {NINES}", 1),
        (f"x = -{NINES}", 1),
        (f"x=+{NINES}", 1),
        (f"x = -{'_'.join(NINES)}", 1),
        (f"x = [1, -{NINES}]", 1),
        (f"x = {{a=-{NINES}}}", 1),
        (f"# {NINES}\ny = '{NINES}'\nx = [ # signed\n-{NINES},\n]", 4),
        (f'{NINES} = 1\n{NINES}8.y = 1.{NINES}\n"-{NINES}" = {"9" * 2_000}\nx = {NINES}', 4),
    ],
)
def test_a_number_beyond_all_use_is_told_with_its_line(text, line):
    """Whatever its sign, and however it is written; long texts, keys and fractions are none."""
    with pytest.raises(SettingsError) as caught:
        parse(text.encode())
    assert caught.value.message.endswith(f"a number of 6,000 digits (at line {line})")


@pytest.mark.parametrize(
    "value",
    [
        "0x" + "f" * 9_000,
        "0b" + "1" * 90_000,
        "1e999999",
        f"-1e-{NINES}",
        f"{NINES}.5",
        f"07:32:00.{NINES}",
    ],
)
def test_a_long_value_that_can_be_read_is_judged_by_its_kind(value):
    """Nobody's key may have it; of ours the message stays short."""
    unknown = ("filestore.toml: unknown key 'x'",)
    assert parse(f"x = {value}".encode()) == Settings(unknown=unknown)
    with pytest.raises(SettingsError, match=r"budget must be") as caught:
        parse(f"chunker.budget = {value}".encode())
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", ["2026-02-31", "0000-01-01", "9999-99-99T00:00:00Z", "24:61:00"])
def test_a_date_that_is_none_is_told_with_its_line(value):
    """The calendar ends somewhere."""
    with pytest.raises(SettingsError, match=r"cannot be read: .*line 2"):
        parse(f"format = 1\nx = {value}".encode())


def test_a_newer_format_is_refused_before_its_values_are_judged():
    """A store of a later version asks for an upgrade even where its values mean nothing to us."""
    data = f'format = {FORMAT_VERSION + 1}\nlayout = "spiral"'.encode()
    with pytest.raises(NewerFormatError) as caught:
        parse(data)
    assert "upgrade" in all_words(caught.value)


@given(st.binary(max_size=100) | SETTINGS.map(serialize), st.data())
def test_damage_is_refused_or_harmless(data, draw):
    """A settings file with bytes cut out is read or refused, nothing else."""
    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    with suppress(SettingsError, NewerFormatError):
        assert parse(data[:start] + data[end:]).layout in LAYOUTS


def with_model(data, name, model):
    """The same settings with another model of the store's own."""
    return with_models(data, replace(parse(data), embedder=name, model=model))


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
        b'# ours\nembedder = "builtin"  # slow\nlayout = "flat"\n\n'
        b"[accepted]\nempty = []\n# the end\n"
    )


def test_a_backend_that_is_written_down_stays():
    """A store that still names the only backend there is opens, and keeps the line."""
    data = b'backend = "faiss"\nembedder = "a"\n'
    assert parse(data).embedder == "a"
    assert with_model(data, "b", ModelOptions()) == b'backend = "faiss"\nembedder = "b"\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[chunker]\r\nbudget = 3\r\n",
        "model.endpoint = 'x'\nformat = 1\n[chunker]\nbudget = 3",
        "model = {endpoint = 'x'} # mine\n[chunker]\nbudget = 3",
        "'embedder' = 'a'\n[model]\n[z]\n[model.more]\nx = 1\n[y]\n",
        "[a]\nb.c = [1, # one\n 2]\n[[d]]\n[model]\nquery_prefix = 'x'\n[[d]]\n",
    ],
)
def test_another_model_however_the_file_is_written(text):
    """Whatever TOML allows, the new model is read back and every other value stays."""
    changed = with_model(text.encode(), "b", ModelOptions(dimension=4)).decode()
    others = {key: value for key, value in tomllib.loads(text).items() if key != "model"}
    assert tomllib.loads(changed) == others | {"embedder": "b", "model": {"dimension": 4}}


def switched(settings):
    """Settings in which the two models have changed places."""
    other = SecondModel(embedder=settings.embedder, **asdict(settings.model))
    own, model = settings.second.embedder, settings.second.model
    return replace(settings, embedder=own, model=model, second=other)


@given(SETTINGS, MODELS)
def test_two_switches_are_none(settings, model):
    """A switch names each model in the other's place; two give back the same bytes."""
    both = replace(settings, second=SecondModel(embedder="openai:x", **asdict(model)))
    data = with_models(serialize(settings), both)
    assert parse(data) == both
    other = with_models(data, switched(both))
    assert parse(other) == switched(both)
    assert switched(switched(both)) == both
    assert parse(with_models(other, both)) == both
    assert with_models(data, settings) == serialize(settings)


def test_a_switch_keeps_what_a_person_wrote():
    """Comments stay where they are, and the way back leads to the same bytes."""
    data = (
        b'# Ours.\nembedder = "a" # the old one\n\n[beside] # to be tried\n'
        b'embedder = "b" # since May\n\n[chunker]\nbudget = 3\n'
    )
    other = with_models(data, switched(parse(data)))
    assert other == data.replace(b'"a"', b'"x"').replace(b'"b"', b'"a"').replace(b'"x"', b'"b"')
    assert with_models(other, parse(data)) == data


def test_an_unknown_layout_is_wrong_usage():
    """A layout that is asked for and does not exist is refused with those that do."""
    assert [check_layout(name) for name in LAYOUTS] == ["tree", "flat", "in-place"]
    with pytest.raises(UsageError, match="heap") as caught:
        check_layout("heap")
    assert "tree, flat" in all_words(caught.value)


def test_only_documents_in_place_are_the_tree_themselves():
    """The other layouts have their files below `chunked/`."""
    assert [tree.folder for tree in LAYOUTS.values()] == ["chunked", "chunked", ""]
    assert [tree.sidecar for tree in LAYOUTS.values()] == [".sidecar", ".sidecar", ".filestore"]


def test_what_is_closed_to_programs_is_read():
    """Rules are patterns of paths, tags and properties; the user's own come from another file."""
    found = parse(
        b'[agents]\nclosed = ["private/", "tag:me", "status=draft"]\nread_only = ["*.txt"]\n'
        b'conventions = "How we write.md"\nsign = true\n'
    ).agents
    assert found.closed == ("private/", "tag:me", "status=draft")
    assert (found.read_only, found.conventions, found.sign) == (
        ("*.txt",),
        "How we write.md",
        True,
    )
    joined = found.joined(AgentOptions(closed=("private/", "diary"), read_only=("b",)))
    assert joined.closed == (*found.closed, "diary")
    assert joined.read_only == ("*.txt", "b")
    assert joined.sign


@pytest.mark.parametrize(
    "rules",
    [
        'closed = ["tag:"]',
        'closed = ["=x"]',
        'closed = ["x="]',
        'closed = [""]',
        'closed = ["/"]',
        'closed = ["!open.md"]',
        'closed = ["# a remark"]',
        'closed = [" private"]',
        'closed = ["a\\nb"]',
        'closed = "private"',
        "closed = [1]",
        'read_only = ["tag:"]',
        'close = ["private"]',
        'closed = ["' + "x" * 1_001 + '"]',
        "closed = [" + '"x",' * 1_001 + "]",
        'sign = "yes"',
    ],
)
def test_a_rule_that_would_close_nothing_is_refused(rules):
    """A misspelt rule discloses: it is an error, in the store's file and in the user's."""
    with pytest.raises(SettingsError, match="agents"):
        parse(f"[agents]\n{rules}\n".encode())
