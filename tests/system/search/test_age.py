"""How old documents are and what they say of it, in every layout: filters, order, marks."""

import hashlib
import os
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import Store
from filestore.git import process
from filestore.sidecar import commit_dates, originals

LAYOUTS = ("in-place", "tree", "flat")
TODAY = date(2026, 6, 15)


class Notes:
    """Notes in a git work tree and a store of them, driven by the library."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.folder, self.layout = folder, layout
        self.root = folder if layout == "in-place" else folder / "kb"
        self.git("init", "--quiet")

    def git(self, *words: str, at: str = "2026-01-01T12:00:00Z") -> None:
        own = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        who = {
            f"GIT_{one}_{what}": "a@b"
            for one in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        subprocess.run(["git", *words], cwd=self.folder, env=os.environ | who | own, check=True)

    def commit(self, *names: str, at: str) -> None:
        """Commit files as they are, at a time."""
        self.git("add", "--", *names)
        self.git("commit", "--quiet", "-m", "Write", at=at)

    def write(self, name: str, text: str = "", **keys: str) -> None:
        """A note with lines of frontmatter."""
        head = "".join(f"{key}: {value}\n" for key, value in keys.items())
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\n{head}---\n# {path.stem}\n\nThe harbour of {path.stem}. {text}\n")

    def index(self) -> None:
        """Make the store, or bring it up to date."""
        if not (self.root / "filestore.toml").exists():
            Store.create(self.root, layout=self.layout, embedder="builtin").close()
        with self.open() as store:
            if self.layout != "in-place":
                for path in sorted(self.folder.glob("*.md")):
                    store.add(path)
            store.sync()

    def open(self) -> Store:
        return Store(self.root, today=lambda: TODAY)

    def generation(self) -> int:
        with self.open() as store:
            return store.status().generation

    def hits(self, query: str = "harbour", **options: Any) -> dict[str, Any]:
        """The hits of a query by the name of their document, in their order."""
        with self.open() as store:
            return {Path(hit.document).name: hit for hit in store.search(query, **options)}


@pytest.fixture(params=LAYOUTS)
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> Notes:
    """In each layout; the folder of the user's settings is one of its own."""
    return Notes(tmp_path, request.param)


def test_a_date_is_said_else_committed_else_stamped(notes: Notes) -> None:
    """The first key that is a date, then the last commit, if nothing was edited since."""
    notes.write("said.md", updated="no date", modified='"May 3, 2025"', date="2024-01-01")
    notes.write("committed.md", updated="0000-00-00")
    notes.write("edited.md")
    notes.commit("said.md", "committed.md", "edited.md", at="2026-02-02T12:00:00Z")
    notes.write("committed.md", "More.", updated="0000-00-00")
    notes.commit("committed.md", at="2026-03-03T23:30:00-01:00")
    notes.write("edited.md", "Not committed.")
    notes.write("loose.md")
    for name in ("edited.md", "loose.md"):
        os.utime(notes.folder / name, (1_746_230_400, 1_746_230_400))  # 2025-05-03
    notes.index()
    days = {name: hit.date for name, hit in notes.hits().items()}
    assert days == {
        "said.md": "2025-05-03",
        "committed.md": "2026-03-04",
        "edited.md": "2025-05-03",
        "loose.md": "2025-05-03",
    }


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_an_original_edited_since_its_commit_has_the_date_of_its_file(
    tmp_path: Path, layout: str
) -> None:
    """Also where HEAD is the same; put back as it was committed, it has that date again."""
    notes = Notes(tmp_path, layout)
    notes.write("a.md")
    notes.commit("a.md", at="2026-02-02T12:00:00Z")
    notes.index()
    committed = (notes.folder / "a.md").read_bytes()
    assert notes.hits()["a.md"].date == "2026-02-02"
    for data, day in ((committed + b"\nMore.\n", "2025-05-03"), (committed, "2026-02-02")):
        (notes.folder / "a.md").write_bytes(data)
        os.utime(notes.folder / "a.md", (1_746_230_400, 1_746_230_400))  # 2025-05-03
        with notes.open() as store:
            store.update()
        assert notes.hits()["a.md"].date == day


def test_since_until_and_sort(notes: Notes) -> None:
    """A month counts to its end; order by date only where it is asked for, also without a word."""
    for name, day in (("a", "2025-12-31"), ("b", "2026-05"), ("c", "2026-05-31"), ("d", "9999")):
        notes.write(f"{name}.md", updated=day)
    notes.index()
    assert list(notes.hits(since="2026")) == [*notes.hits(since="2026-01-01")]
    assert {*notes.hits(since="2026-05", until="2026-05")} == {"b.md", "c.md"}
    assert {*notes.hits(until="2025-12-31T23:59Z")} == {"a.md"}
    assert list(notes.hits(sort="date")) == ["d.md", "c.md", "b.md", "a.md"]
    assert list(notes.hits("", since="0001", sort="date", k=2)) == ["d.md", "c.md"]
    with notes.open() as store:
        answer = store.search("harbour", since="2026-06", until="2026-07")
        assert not answer.hits
        assert any("2025-12-31 to 9999" in note for note in answer.notes), answer.notes


def test_a_superseded_note_is_behind_its_successor(notes: Notes) -> None:
    """However well it answers; alone it keeps its place, and is marked."""
    notes.write("old.md", "harbour " * 5, superseded_by='"[[new]]"', status="deprecated")
    notes.write("older.md", "harbour " * 9, superseded_by="old.md")
    notes.write("new.md", "Of this and that, at length, with many other words.")
    notes.write("else.md", superseded_by="https://example.org/x")
    notes.index()
    hits = notes.hits()
    order = [name for name in hits if name != "else.md"]
    assert order == ["new.md", "old.md", "older.md"]
    assert hits["old.md"].status == "deprecated"
    assert hits["old.md"].notes[0].endswith("new.md")
    assert "deprecated" in hits["old.md"].notes
    assert hits["else.md"].notes == ("superseded by https://example.org/x",)
    assert list(notes.hits(k=1)) != []
    with notes.open() as store:
        codes = {(one.code, Path(one.path).name) for one in store.status().findings}
    assert {
        ("superseded", "old.md"),
        ("superseded", "older.md"),
        ("superseded", "else.md"),
    } <= codes


def test_marks_by_the_day(notes: Notes) -> None:
    """What is stale depends on the day that is given; nothing of it spoils clean."""
    notes.write("stale.md", stale_after="2026-06-14", verified="[2026-01-01, 2026-02-03]")
    notes.write("today.md", stale_after="2026-06-15", status="Draft")
    notes.write("month.md", stale_after="2026-06")
    notes.write("list.md", stale_after="[2026-06-14, 2030-01-01]")
    notes.write("odd.md", stale_after="[never, 0000-01-01]", verified="true", status="[]")
    notes.index()
    marks = {name: hit.notes for name, hit in notes.hits().items()}
    assert marks["stale.md"] == ("stale since 2026-06-14", "verified 2026-02-03")
    assert marks["today.md"] == ("draft",)
    assert marks["month.md"] == marks["odd.md"] == ()
    with notes.open() as store:
        found = [one for one in store.verify().findings if one.code == "past-date"]
        assert {(Path(one.path).name, one.severity) for one in found} == {
            *(("stale.md", "I"), ("list.md", "I"))
        }
        assert store.status().clean


def test_sources_by_git_else_by_hash_else_not(notes: Notes) -> None:
    """A later commit of the source counts; then another hash; what is known of neither is as is."""
    digest = hashlib.sha256(b"a,b\n").hexdigest()
    for name in ("same.csv", "later.csv", "hashed.csv", "other.csv", "plain.csv"):
        (notes.folder / name).write_text("a,b\n")
    notes.write("same.md", sources="[same.csv]")
    notes.write("later.md", sources="[same.csv, later.csv]")
    notes.commit("same.md", "later.md", "same.csv", "later.csv", at="2026-02-01T00:00:00Z")
    (notes.folder / "later.csv").write_text("1,2\n")
    notes.commit("later.csv", at="2026-02-02T00:00:00Z")
    notes.write("hashed.md", sources=f"[{{path: hashed.csv, sha256: {digest}}}]")
    notes.write("other.md", sources=f"[{{path: other.csv, sha256: {'0' * 64}}}]")
    notes.write("plain.md", sources="[plain.csv, https://example.org, '../../../etc/passwd']")
    notes.write("gone.md", sources="no-such-file.csv")
    notes.index()
    hits = notes.hits()
    assert {name for name, hit in hits.items() if hit.freshness == "outdated"} == {
        *("later.md", "other.md", "gone.md")
    }
    assert hits["later.md"].notes == ("later.csv changed since",)
    assert hits["gone.md"].notes == ("no-such-file.csv is gone",)
    (notes.folder / "hashed.csv").write_text("1,2\n")
    assert notes.hits()["hashed.md"].freshness == "outdated"


def test_a_commit_counts_in_the_next_answer(notes: Notes) -> None:
    """Without a sync; one on another branch does with the next."""
    (notes.folder / "a.csv").write_text("a,b\n")
    notes.write("a.md", sources="[a.csv]")
    notes.commit("a.md", "a.csv", at="2026-02-01T00:00:00Z")
    notes.index()
    with notes.open() as store:
        assert [one.freshness for one in store.search("harbour")] == ["fresh"]
        notes.git("checkout", "--quiet", "-b", "other")
        (notes.folder / "a.csv").write_text("1,2\n")
        notes.commit("a.csv", at="2026-02-02T00:00:00Z")
    hit = notes.hits()["a.md"]
    assert (hit.freshness, hit.notes) == ("outdated", ("a.csv changed since",))
    before = notes.generation()
    assert notes.hits()["a.md"].freshness == "outdated"
    assert notes.generation() == before
    notes.git("checkout", "--quiet", "-")
    notes.index()
    assert notes.hits()["a.md"].freshness == "fresh"


def test_what_is_not_judged_is_reported(notes: Notes) -> None:
    """By `show` of the note and by a full verification; a hash is kept with the stat at sync."""
    (notes.folder / "plain.csv").write_text("a,b\n")
    (notes.folder / "big.csv").write_text("1,2\n")
    digest = hashlib.sha256(b"1,2\n").hexdigest()
    named = f"[plain.csv, 'https://example.org/x', {{path: big.csv, sha256: {digest}}}]"
    notes.write("a.md", sources=named, created="2020-02-02", status="draft")
    notes.index()
    with notes.open() as store:
        record = store.show(notes.hits()["a.md"].path).record
        assert (record["created"], record["status"], record["notes"]) == (
            *("2020-02-02", "draft"),
            ["draft"],
        )
        assert [one.partition(": ")[0] for one in record["not_checked"]] == [
            *("plain.csv", "https://example.org/x"),
        ]
        told = store.verify(level="full").not_checked
        assert any("plain.csv: it is not committed" in one for one in told), told
        assert record["freshness"] == "fresh"


def test_a_source_is_hashed_at_sync_and_not_at_search(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stat tells that it is the same file."""
    (notes.folder / "big.csv").write_text("1,2\n")
    notes.write("a.md", sources=f"[{{path: big.csv, sha256: {'0' * 64}}}]")
    notes.index()

    def refused(path: str) -> None:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(originals, "read", refused)
    assert notes.hits()["a.md"].freshness == "outdated"


def test_a_closed_source_is_not_judged_for_programs(notes: Notes) -> None:
    """Neither its hash nor its commits are told through a note that names it."""
    (notes.folder / "secret").mkdir()
    (notes.folder / "secret" / "x.csv").write_text("1\n")
    notes.write("a.md", sources=f"[{{path: secret/x.csv, sha256: {'0' * 64}}}]")
    notes.index()
    with (notes.root / "filestore.toml").open("a") as file:
        file.write('\n[agents]\nclosed = ["**/secret/**", "secret/**"]\n')
    assert notes.hits()["a.md"].freshness == "outdated"
    with Store(notes.root, for_programs=True) as store:
        (hit,) = (one for one in store.search("harbour") if "a.md" in one.document)
        assert (hit.freshness, hit.notes) == ("fresh", ())
        assert hit.date is not None


def test_an_earlier_commit_has_the_dates_that_documents_say(notes: Notes) -> None:
    """Its files are made as they are looked at: their stamps say nothing."""
    notes.write("said.md", updated="2020-02-02")
    notes.write("silent.md")
    notes.index()
    notes.commit(".", at="2026-01-01T00:00:00Z")
    notes.index()
    with notes.open() as store, store.at("HEAD", embed=True) as past:
        days = {Path(hit.document).name: hit.date for hit in past.search("harbour")}
        assert days == {"said.md": "2020-02-02", "silent.md": None}
        answer = past.search("harbour", since="2020")
        assert [Path(hit.document).name for hit in answer] == ["said.md"]
        assert any("earlier commit" in note for note in answer.notes)


def test_names_of_keys_are_settable(notes: Notes) -> None:
    """Own names take the place of ours."""
    notes.write("a.md", changed="2020-02-02", updated="2021-01-01", state="draft")
    notes.index()
    with (notes.root / "filestore.toml").open("a") as file:
        file.write('\n[keys]\nupdated = ["changed"]\nstatus = ["state"]\n')
    hit = notes.hits()["a.md"]
    assert (hit.date, hit.status, hit.notes) == ("2020-02-02", "draft", ("draft",))


def test_commits_after_the_first_sync_are_read(notes: Notes) -> None:
    """Only what is new, through renames, also of names that git would quote; nothing at search."""
    odd = 'we"ird\nnämé.md'
    notes.write(odd)
    notes.write("b.md")
    notes.commit(odd, "b.md", at="2026-01-01T00:00:00Z")
    notes.index()
    assert {hit.date for hit in notes.hits().values()} == {"2026-01-01"}
    notes.git("mv", odd, "c.md")
    notes.git("commit", "--quiet", "-m", "Rename", at="2026-02-02T00:00:00Z")
    notes.index()
    hits = notes.hits()
    assert (hits["c.md"].date, hits["b.md"].date) == ("2026-02-02", "2026-01-01")
    notes.git("commit", "--quiet", "--amend", "-m", "Rename", at="2026-02-03T00:00:00Z")
    notes.index()
    assert notes.hits()["c.md"].date == "2026-02-03"


def test_no_process_is_started_at_search(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates, filters and sources come from the catalog."""
    notes.write("a.md", sources="[b.csv]")
    (notes.folder / "b.csv").write_text("1\n")
    notes.commit("a.md", "b.csv", at="2026-01-01T00:00:00Z")
    notes.index()

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("git was started")

    monkeypatch.setattr(process, "_started", refused)
    assert notes.hits(since="2025", sort="date")["a.md"].date == "2026-01-01"


def test_git_that_takes_too_long_is_said(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then files tell, and the commits that follow."""
    notes.write("a.md")
    notes.commit("a.md", at="2026-01-01T00:00:00Z")
    with monkeypatch.context() as slow:
        slow.setattr(process, "TIMEOUT_S", 0.0)
        notes.index()
    assert notes.hits()["a.md"].date != "2026-01-01"
    with notes.open() as store:
        answer = store.search("harbour", since="2020")
    assert any("took longer" in note for note in answer.notes), answer.notes
    notes.write("a.md", "More.")
    notes.commit("a.md", at="2026-02-02T00:00:00Z")
    notes.index()
    assert notes.hits()["a.md"].date == "2026-02-02"


HOSTILE = (
    *("a.md", "./a.md", "[[a]]", "b.md", "../../../etc/passwd", "/etc/passwd", "x" * 10_000, ""),
    *(
        "a\\nb",
        "\\e[31mred",
        "\\u202egnp.md",
        "[[",
        "[](",
        "[[b|c]]#d",
        "null",
        "\\0",
        "%00",
        "..%2f",
    ),
)


def test_hostile_successors_and_sources(notes: Notes) -> None:
    """Itself, a circle, out of the store, line ends, escapes: marked or not, and never raw."""
    for number, value in enumerate(HOSTILE):
        notes.write(f"n{number}.md", superseded_by=f'"{value}"', sources=f'["{value}"]')
    notes.write("a.md", superseded_by="b.md", status='"\\e[31m\\u202e"')
    notes.write("b.md", superseded_by="c.md")
    notes.write("c.md", superseded_by="a")
    notes.write("me.md", superseded_by="me.md")
    notes.index()
    hits = notes.hits(k=50)
    assert len(hits) == len(HOSTILE) + 4
    for hit in hits.values():
        for text in (*hit.notes, hit.status):
            assert text.isprintable()
            assert len(text) < 500
    for name in ("a.md", "b.md", "c.md", "me.md"):
        assert any(note.endswith("in a circle") for note in hits[name].notes), name
    with notes.open() as store:
        findings = [one for one in store.status().findings if one.code == "successor-missing"]
    assert {"a.md", "me.md"} <= {Path(one.path).name for one in findings}


class _Hit:
    def __init__(self, name: str) -> None:
        self.source, self.path = name, name


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12),
    st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef"))),
)
def test_any_succession_orders_all_hits(names: list[str], ways: dict[str, set[str]]) -> None:
    """No hit is lost, and one without a successor never changes places with another such one."""
    from filestore.search.authority import Authority

    class Known:
        def behind(self, document: str) -> set[str]:
            return ways.get(document, set())

    authority = Authority(None, None, None)  # type: ignore[arg-type]
    authority._known_successors = Known  # type: ignore[method-assign, assignment]
    hits = [_Hit(name) for name in names]
    placed: list[Any] = list(authority.behind_successors(hits))  # type: ignore[arg-type]
    assert sorted(map(id, placed)) == sorted(map(id, hits))
    free = [hit for hit in hits if not ways.get(hit.source)]
    assert [hit for hit in placed if hit in free] == free


def test_folders_that_git_is_asked_about() -> None:
    """None that lies in another, none outside, and of very many the whole work tree."""
    smallest = commit_dates._smallest
    assert smallest(["a/b", "a", "../x", "c", "a/b/c", "/x", ".."]) == ("a", "c")
    assert smallest(["a", "."]) == (".",)
    assert smallest(f"f{number}" for number in range(500)) == (".",)


def test_looking_around_has_the_dates_of_hits(notes: Notes) -> None:
    """Where all files have one stamp, as in a fresh clone: what a note says, or its last commit."""
    for number, keys in enumerate(({"updated": "2026-03-03"}, {}, {})):
        notes.write(f"{number}.md", **keys)
        notes.commit(f"{number}.md", at=f"2025-0{3 - number}-10T12:00:00Z")
        os.utime(notes.folder / f"{number}.md", (1_700_000_000,) * 2)
    notes.index()
    with notes.open() as store:
        recent = store.contents(recent=3).items
        newest = store.contents().newest
    dates = {Path(one.path).name: one.date for one in recent}
    assert list(dates.items()) == [
        ("0.md", "2026-03-03"),
        ("1.md", "2025-02-10"),
        ("2.md", "2025-01-10"),
    ]
    assert newest == recent
    assert dates == {name: hit.date for name, hit in notes.hits().items()}
