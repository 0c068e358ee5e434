"""The full-text index on a real disk: what is found, what survives, what is noticed."""

import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filestore.fulltext import (
    Entry,
    FulltextDamaged,
    FulltextMissing,
    Reader,
    Writer,
    check_files,
    parse_query,
    read_stamp,
    respelled,
)

ENGLISH = "The {} of the house is on the left, and it was there before the war."
TEXTS = {
    1: "Connection pools keep database connections open for reuse.",
    2: "The quick brown fox jumps over the lazy dog.",
    3: "A brown dog and a quick fox.",
    4: "Call foo_bar() before os.path.join; foo_bar is defined in config.",
    5: "The foo and the bar: foo bar foo bar foo, path and join, os os os.",
    6: "std::vector<int> is a vector; C++ templates are hard.",
    7: "Run filestore sync --no-embed to skip the model. There is no embed step then.",
    8: "There is no embed, no embed, no embed at all in C, C and C.",
    9: "getUserName returns the name of the user.",
    10: "数据库连接池可以重用连接。",
    11: "データベースの接続プール",
    12: "데이터베이스 연결",
    13: "Le café à côté de la gare est fermé, mais les hôtels sont ouverts pour des clients.",
    14: "Die Hauptstädte und die Häuser der Länder sind nicht auf dem Land.",
    15: "ฐานข้อมูล",
    16: "get user name, user name get, name get user",
    17: "Released as v1.2.3 on 2024-01-05.",
    18: "Старые города России не такие большие, как города на юге, но они что надо.",
}


def build(folder, entries, *, generation=1, rebuild=True):
    with Writer.open(folder, None if rebuild else read_stamp(folder)) as writer:
        writer.add(entries)
        return writer.commit(generation, "a catalog")


def texts(mapping):
    return [Entry(id=number, title="", text=text) for number, text in mapping.items()]


def search(folder, query, limit=10):
    with Reader.open(folder, read_stamp(folder)) as reader:
        return [number for number, _ in reader.search(parse_query(query, "operators"), limit)]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("index"))
    with Reader.open(folder, build(folder, texts(TEXTS))) as opened:
        yield opened


def found(reader, query):
    asked = reader.settled(parse_query(query, "operators"))
    return [number for number, _ in reader.search(asked, 20)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("pooling connection", 1),
        ("jumping", 2),
        ("CAFE", 13),
        ("hôtel", 13),
        ("Haus", 14),
        ("Hauptstadt", 14),
        ("город", 18),
        ("cafe\u0301", 13),
    ],
)
def test_other_forms_of_a_word_are_found(reader, query, first):
    """Stemming in the language of the text, accents and case do not stand in the way."""
    assert found(reader, query)[:1] == [first]


def test_compound_is_found_by_a_part(reader):
    """A word inside a German compound finds it."""
    assert 14 in found(reader, "Städte")


def test_phrase_holds_its_order(reader):
    """A phrase is found where its words follow each other, in the form they were typed."""
    assert found(reader, '"quick brown fox"') == [2]
    assert found(reader, '"fox brown"') == []
    assert found(reader, '"brown dog" fox') == [3]


def test_phrase_beside_words_is_given_up_when_nothing_has_it(reader):
    """A phrase that occurs nowhere does not hide what the other words find."""
    assert found(reader, 'jumps "fox lazy dog brown"')[:1] == [2]
    assert found(reader, 'jumps +"fox lazy dog brown"') == []


@pytest.mark.parametrize(
    ("query", "expected"), [("templ*", {6}), ("foo_b*", {4}), ("数据*", {10}), ("nothing*", set())]
)
def test_prefix_finds_what_begins_so(reader, query, expected):
    """A prefix finds words and identifiers that begin with it."""
    assert set(found(reader, query)) == expected


def test_required_and_excluded(reader):
    """A required word is in every hit and an excluded one in none."""
    assert set(found(reader, "quick fox")) == {2, 3}
    assert found(reader, "quick fox -lazy") == [3]
    assert found(reader, "quick +jumping") == [2]
    assert found(reader, "fox AND lazy") == [2]
    assert found(reader, "fox NOT lazy") == [3]
    assert found(reader, "fox +nowhere") == []
    assert found(reader, "-fox") == []
    for word in ("jumping", "jumps", "jumped"):
        wanted, rest = found(reader, f"fox +{word}"), found(reader, f"fox -{word}")
        assert wanted
        assert sorted(wanted + rest) == sorted(found(reader, "fox"))


@pytest.mark.parametrize(
    ("query", "first", "also"),
    [
        ("foo_bar", 4, 5),
        ("os.path.join", 4, 5),
        ("std::vector", 6, 6),
        ("--no-embed", 7, 8),
        ("C++", 6, 8),
        ("getUserName", 9, 16),
        ("v1.2.3", 17, 17),
        ("2024-01-05", 17, 17),
    ],
)
def test_identifier_ranks_its_exact_occurrence_first(reader, query, first, also):
    """The identifier itself comes before texts that merely have its parts, which are found too."""
    hits = found(reader, query)
    assert hits[0] == first
    assert also in hits


@pytest.mark.parametrize(
    ("query", "expected"),
    [("bar", 4), ("vector", 6), ("embed", 7), ("user", 9), ("getusername", 9), ("join", 4)],
)
def test_part_of_an_identifier_finds_it(reader, query, expected):
    """One word of an identifier is enough to find it."""
    assert expected in found(reader, query)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("数据库", 10),
        ("连接池", 10),
        ("什么是连接池？", 10),
        ("池", 10),
        ("接続プール", 11),
        ("데이터베이스", 12),
        ("ข้อมูล", 15),
        ("ข้", 15),
        ("ล", 15),
        ("+มู", 15),
        ('"ข้อมูล"', 15),
        ('"重用连接"', 10),
        ("+连接池", 10),
    ],
)
def test_scripts_without_spaces_are_searched_inside(reader, query, first):
    """Words of Chinese, Japanese, Korean and Thai are found within a sentence."""
    assert found(reader, query)[:1] == [first]


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    query=st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(['"', "fox", "+", "-", "*", "AND", "foo_b*", "数据", "(", "\\"])
        ).map("".join),
        st.lists(st.sampled_from(['"fox', 'dog"', "+C++", "-数据", "NOT", "a.b*", "#", "x_*"])).map(
            " ".join
        ),
    )
)
def test_any_query_is_answered(reader, query):
    """No text raises; hits are known ids, best first, at most as many as asked for."""
    hits = reader.search(parse_query(query), 5)
    assert len(hits) <= 5
    assert {number for number, _ in hits} <= set(TEXTS)
    assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.parametrize(
    "query", ["fox " * 5_000, "f" * 100_000, '"' + "a b " * 25_000 + '"', "*" * 999]
)
def test_huge_queries_are_answered(reader, query):
    """A query far too long is cut, not refused."""
    assert len(reader.search(parse_query(query), 3)) <= 3


@pytest.mark.parametrize("query", ["", "???", '"', "+", "(:)"])
def test_empty_query_has_no_hits(reader, query):
    """Punctuation alone finds nothing."""
    assert reader.search(parse_query(query), 5) == []


def test_limit_is_respected(reader):
    """As many hits as asked for, and none for zero."""
    assert len(reader.search(parse_query("the fox"), 1)) == 1
    assert reader.search(parse_query("the fox"), 0) == []


def test_ties_are_not_cut(tmp_path):
    """Of a hundred equal texts none is left out: whoever asked orders them."""
    folder = str(tmp_path)
    equal = [Entry(id=number, title="", text="same words") for number in range(100, 0, -1)]
    build(folder, [*equal, Entry(id=101, title="", text="words that are longer")])
    assert sorted(search(folder, "words", 7)) == list(range(1, 101))


def test_title_counts_more_than_text(tmp_path):
    """A word in the headings outweighs the same word in the text, and is searchable."""
    folder = str(tmp_path)
    entries = [
        Entry(id=1, title="Introduction here", text="The backup runs nightly on the servers."),
        Entry(id=2, title="Backup runs", text="The introduction here is about nightly servers."),
    ]
    build(folder, entries)
    assert search(folder, "backup") == [2, 1]


def test_rare_language_is_not_starved(tmp_path):
    """One German text among many English ones ranks first for its own words."""
    folder = str(tmp_path)
    crowd = [Entry(id=n, title="", text=ENGLISH.format(f"part {n}")) for n in range(2, 60)]
    german = "Die Verordnungen sind nicht für das Haus und der Hafen ist mit dem Schiff nah."
    build(folder, [Entry(id=1, title="", text=german), *crowd])
    assert search(folder, "Verordnung Hafen")[0] == 1


def test_adding_and_deleting_is_seen_after_reopening(tmp_path):
    """A commit changes what is found, and its stamp tells generation, last id and documents."""
    folder = str(tmp_path / "fulltext")
    first = build(folder, texts(TEXTS))
    with Writer.open(folder, read_stamp(folder)) as writer:
        writer.delete([2, 999])
        writer.add([Entry(id=50, title="", text="A purple fox.")])
        second = writer.commit(2, "a catalog")
    assert (first.generation, first.documents) == (1, len(TEXTS))
    assert (second.generation, second.catalog, second.documents) == (2, "a catalog", len(TEXTS))
    assert read_stamp(folder) == second
    assert check_files(folder, second, hashes=True) == []
    assert set(search(folder, "fox")) == {3, 50}
    with Reader.open(folder, second) as reader:
        assert reader.ids() == (set(TEXTS) - {2}) | {50}


def test_replaying_a_commit_changes_nothing(tmp_path):
    """Deleting and adding the same ids again leaves each of them once."""
    folder = str(tmp_path)
    build(folder, texts(TEXTS))
    for generation in range(2, 14):
        with Writer.open(folder, read_stamp(folder)) as writer:
            writer.delete(TEXTS)
            writer.add(texts(TEXTS))
            stamp = writer.commit(generation, "a catalog")
    assert stamp.documents == len(TEXTS)
    assert search(folder, "jumping") == [2]


def test_abandoned_writer_leaves_the_previous_state(tmp_path):
    """Without a commit nothing changed, and nothing is left behind."""
    folder = str(tmp_path)
    stamp = build(folder, texts(TEXTS))
    before = sorted(os.listdir(folder))
    for rebuild in (False, True):
        with Writer.open(folder, None if rebuild else stamp) as writer:
            writer.delete([2])
            writer.add([Entry(id=60, title="", text="fox")])
    assert sorted(os.listdir(folder)) == before
    assert read_stamp(folder) == stamp
    assert set(search(folder, "fox")) == {2, 3}


def test_failing_writer_leaves_the_previous_state(tmp_path):
    """An exception while adding abandons the changes and comes through as it is."""
    folder = str(tmp_path)
    build(folder, texts(TEXTS))

    def entries():
        yield Entry(id=61, title="", text="fox")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"), Writer.open(folder) as writer:
        writer.add(entries())
    assert set(search(folder, "fox")) == {2, 3}


def test_writer_commits_once(tmp_path):
    """A writer is done after its commit and says so."""
    writer = Writer.open(str(tmp_path))
    writer.commit(1, "a catalog")
    with pytest.raises(ValueError, match="closed"):
        writer.add([])
    writer.close()


def test_a_commit_stopped_while_it_waits_for_merges_closes(tmp_path):
    """Ctrl-C in the wait that ends a commit: the writer is used up, and closing it is no error."""

    class Stopped:
        """The writer, with a person who presses Ctrl-C while it waits."""

        def __init__(self, real):
            self._real = real

        def __getattr__(self, name):
            return getattr(self._real, name)

        def wait_merging_threads(self):
            self._real.wait_merging_threads()
            raise KeyboardInterrupt

    writer = Writer.open(str(tmp_path), build(str(tmp_path), texts({1: "one"})))
    writer.add(texts({2: "two"}))
    writer._writer = Stopped(writer._writer)
    with pytest.raises(KeyboardInterrupt), writer:
        writer.commit(2, "a catalog")
    assert search(str(tmp_path), "one") == [1]


def test_open_reader_survives_a_rebuild_and_commits(tmp_path):
    """A reader goes on answering from its own generation, whatever is written."""
    folder = str(tmp_path)
    with Reader.open(folder, build(folder, texts(TEXTS))) as reader:
        build(folder, [Entry(id=70, title="", text="fox")], generation=2)
        for generation in (3, 4):
            build(folder, [], generation=generation, rebuild=False)
        assert set(found(reader, "fox")) == {2, 3}
        assert reader.ids() == set(TEXTS)
    assert search(folder, "fox") == [70]


def test_reader_with_the_stamp_before_the_last_still_opens(tmp_path):
    """Between reading the stamp and the files, one commit may pass."""
    folder = str(tmp_path)
    old = build(folder, texts(TEXTS))
    build(folder, [], generation=2, rebuild=False)
    with Reader.open(folder, old) as reader:
        assert reader.ids() == set(TEXTS)


def test_every_flipped_byte_is_noticed(tmp_path):
    """A changed, cut or missing file is damage before anything is parsed."""
    folder = str(tmp_path / "fulltext")
    stamp = build(folder, texts(TEXTS))
    for name, size_bytes, _ in stamp.files:
        path = os.path.join(folder, name)
        sound = get(path)
        for damaged in (flip(sound, size_bytes // 2), sound[:-1], None):
            put(path, damaged)
            assert check_files(folder, stamp, hashes=True)
            with pytest.raises(FulltextDamaged):
                Reader.open(folder, stamp)
            with pytest.raises(FulltextDamaged):
                Writer.open(folder, stamp)
        put(path, sound)
    assert search(folder, "jumping") == [2]


def flip(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] if data else b"x"


def get(path):
    with open(path, "rb") as stream:
        return stream.read()


def put(path, data):
    # A new file each time: the files of two commits may be hard links to one.
    if os.path.exists(path):
        os.unlink(path)
    if data is not None:
        with open(path, "wb") as stream:
            stream.write(data)


def test_sizes_alone_show_a_cut_file(tmp_path):
    """The quick check reads no content and still sees what is missing or cut."""
    folder = str(tmp_path)
    stamp = build(folder, texts(TEXTS))
    first, second = (os.path.join(folder, name) for name, _, _ in stamp.files[:2])
    os.unlink(first)
    os.truncate(second, 1)
    assert len(check_files(folder, stamp, hashes=False)) == 2


def test_rebuild_heals_damage(tmp_path):
    """A damaged index is replaced by a rebuild."""
    folder = str(tmp_path)
    stamp = build(folder, texts(TEXTS))
    os.truncate(os.path.join(folder, stamp.files[0][0]), 1)
    build(folder, texts(TEXTS), generation=2)
    assert search(folder, "jumping") == [2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_index_is_searched(tmp_path):
    """An index in a folder without write permission is searched all the same."""
    folder = str(tmp_path)
    stamp = build(folder, texts(TEXTS))
    part = os.path.join(folder, stamp.part())
    os.unlink(os.path.join(part, ".tantivy-meta.lock"))
    os.chmod(part, 0o500)
    try:
        assert search(folder, "jumping") == [2]
    finally:
        os.chmod(part, 0o700)


def test_missing_index_says_so(tmp_path):
    """No stamp, a damaged stamp, a vanished commit: none of them is an index."""
    folder = str(tmp_path / "fulltext")
    assert read_stamp(folder) is None
    stamp = build(folder, texts(TEXTS))
    shutil.rmtree(os.path.join(folder, stamp.part()))
    with pytest.raises(FulltextMissing):
        Reader.open(folder, stamp)
    put(os.path.join(folder, "stamp.json"), b"{")
    assert read_stamp(folder) is None


def test_leftovers_of_a_dead_writer_are_removed(tmp_path):
    """The next writer clears away what a killed one left."""
    folder = str(tmp_path)
    build(folder, texts(TEXTS))
    os.mkdir(os.path.join(folder, "part-dead"))
    build(folder, [], generation=2, rebuild=False)
    assert "part-dead" not in os.listdir(folder)


def test_import_loads_no_tantivy():
    """Importing the package is cheap: tantivy comes with the first index that is opened."""
    code = "import sys, filestore.fulltext; sys.exit('tantivy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_known_of_a_question_is_told(tmp_path):
    """Words that documents have count by their rarity; words that none has make the rest small."""
    notes = {
        1: "The bread rests in a bowl.",
        2: "The boat in the harbour.",
        3: "A car, the brakes.",
    }
    folder = str(tmp_path / "index")
    with Reader.open(folder, build(folder, texts(notes))) as reader:
        assert reader.known_share(parse_query("boats in harbours")) == 1.0
        assert reader.known_share(parse_query("repairing a lighthouse")) < 0.3
        assert reader.known_share(parse_query("lighthouse")) == 0.0
        told = reader.known_share(parse_query("the boat of the lighthouse"))
        assert told > reader.known_share(parse_query("the lighthouse"))
        assert reader.known_share(parse_query("!?")) == 1.0
        for known in ("harb*", "br*", "+boats", '"the boat"', "bo* harb*"):
            assert reader.known_share(parse_query(known)) == 1.0, known
        assert reader.known_share(parse_query("light*")) == 0.0
        assert 0.0 < reader.known_share(parse_query("harb* lighthouse")) < 1.0


def test_a_word_of_several_is_known_by_its_parts(tmp_path):
    """What finds a text by the parts of a camelCase word is no unknown word."""
    folder = str(tmp_path / "index")
    with Reader.open(folder, build(folder, texts({1: "Parse the headers."}))) as reader:
        asked = parse_query("parseHeaders")
        assert reader.search(asked, 1)
        assert reader.known_share(asked) == 1.0


def test_words_of_grammar_find_nothing_by_themselves(tmp_path):
    """Beside a word that no text has; alone, and in a phrase, they are searched for."""
    notes = {
        1: "How do I do this? How do I do that?",
        2: "Telemetry is switched off in the settings.",
        3: "To be, or not to be.",
        4: "The Who play.",
    }
    folder = str(tmp_path / "index")
    with Reader.open(folder, build(folder, texts(notes))) as reader:
        assert found(reader, "how do I switch telemetry off?")[0] == 2
        for absent in ("how do I xyzzyplugh", "the/xyzzy", "a-zygomorphic", "what is a xyzzy"):
            assert found(reader, absent) == [], absent
            assert reader.known_share(parse_query(absent)) == 0.0, absent
            assert not reader.respell(parse_query(absent)), absent
        assert found(reader, "to be or not to be")[0] == 3
        assert found(reader, "The Who")[0] == 4
        assert found(reader, '"how do I do"') == [1]


def test_a_misspelt_word_with_an_accent_is_known_by_the_one_that_was_meant(tmp_path):
    """The index has words without accents, and so has what is looked up in it."""
    folder = str(tmp_path / "index")
    with Reader.open(folder, build(folder, texts({1: "Herr Müller wohnt in Köln."}))) as reader:
        for typed in ("Kohln", "Köhln", "Mülller"):
            asked = parse_query(typed)
            meant = respelled(asked, reader.respell(asked))
            assert meant.respellings, typed
            assert reader.known_share(meant) == 1.0, typed


GERMAN = "Das ist eine Notiz über die {}, und sie ist nicht von mir."
LISTS = {1: "Häuser", 2: "Gläser und Kinder"}


def test_a_list_is_in_the_language_of_its_document_or_of_most_texts(tmp_path):
    """What tells no language is not taken for English among texts that tell another."""
    folder, plain = str(tmp_path / "index"), texts(LISTS)
    others = [Entry(id=n, title="", text=GERMAN.format(f"Pumpe {n}")) for n in range(3, 6)]
    build(folder, [*plain, *others])
    assert search(folder, "Haus") == [1]
    assert search(folder, "Kind") == [2]
    assert read_stamp(folder).languages == (("german", 3),)
    build(folder, [Entry(id=1, title="", text="- Häuser", document=GERMAN.format("Stadt"))])
    assert search(folder, "Haus") == [1]
    english = [Entry(id=n, title="", text=ENGLISH.format(f"pump {n}")) for n in range(6, 10)]
    with Writer.open(folder) as writer:
        writer.add([*plain, *others, *english])
        writer.commit(1, "a catalog")
        assert (writer.language, writer.main_language) == ("english", "english")
    assert search(folder, "Haus") == []


def test_how_many_texts_wait_does_not_matter(tmp_path, monkeypatch):
    """Where more wait for the language of most than are held, the writer says that it guessed."""
    monkeypatch.setattr("filestore.fulltext._writer._MOST_WAITING", 1)
    german = [Entry(id=3, title="", text=GERMAN.format("Pumpe"))]
    with Writer.open(str(tmp_path / "index")) as writer:
        writer.add([*texts(LISTS), *german])
        assert writer.language != writer.main_language
    with Writer.open(str(tmp_path / "index"), language="german") as writer:
        writer.add([*texts(LISTS), *german])
        assert writer.language == writer.main_language


def test_what_waits_for_its_language_can_be_deleted(tmp_path):
    """In the same commit: it was not written yet."""
    folder = str(tmp_path)
    with Writer.open(folder) as writer:
        writer.add(texts({1: "Pumpe", 2: "Pumpe"}))
        writer.delete([1])
        assert writer.commit(1, "a catalog").documents == 1
    assert search(folder, "Pumpe") == [2]


def test_a_question_of_several_words_in_thai_finds_its_text(tmp_path):
    """Tones do not make an identifier of it, whose parts would be no other way to write it."""
    notes = {1: "น้ำท่วมที่เชียงใหม่เมื่อวานนี้", 2: "ข้าวผัดกุ้งอร่อยมาก"}
    folder = str(tmp_path / "index")
    with Reader.open(folder, build(folder, texts(notes))) as reader:
        assert found(reader, "เชียงใหม่น้ำท่วมหรือไม่")[:1] == [1]
        assert found(reader, "กุ้งผัดข้าว")[:1] == [2]
