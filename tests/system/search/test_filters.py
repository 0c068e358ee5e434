"""Filters that hold for no file say so, with what there is instead."""

from typing import Any

import pytest

import filestore
from filestore.extract import markdown
from filestore.sidecar import documents


@pytest.fixture
def filtered(workspace: Any) -> Any:
    """Two documents with metadata, and a file that a person wrote."""
    workspace.write(
        "lease.md", "---\nstatus: final\ntags: [contract, rent]\n---\n# Lease\n\nRent.\n"
    )
    workspace.write("note.md", "---\nstatus: draft\n---\n# Note\n\nThe rent is due.\n")
    workspace("add", "lease.md", "note.md")
    workspace.write("file_index/chunked/own.md", '---\nmood: "calm"\n---\nRent, as I see it.\n')
    workspace("sync")
    return workspace


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (["--where", "statsu=final"], "no file has the key 'statsu'; did you mean 'status'?"),
        (["--where", "x=1"], "no file has the key 'x'; keys there are: 'headings', 'mood', 'st"),
        (["--where", "tags=contrakt"], "no file has 'tags' = 'contrakt'; did you mean 'contract'?"),
        (["--where", "status=Final"], "no file has 'status' = 'Final'; did you mean 'final'?"),
        (["--where", "status=3"], "no file has 'status' = '3'; values there are: 'draft', 'final'"),
        (["--where", "kind=book"], "no file has 'kind' = 'book'; values there are: 'chunk'"),
        (["--kind", "sumary"], "no file is of kind 'sumary'; did you mean 'summary'?"),
        (["--source", "leese.md"], "no source matches 'leese.md'; did you mean 'lease.md'?"),
        (["--source", "zzz"], "no source matches 'zzz'"),
        (["--where", "a\x1b[2J=1"], "no file has the key 'a\\x1b[2J'"),
    ],
)
def test_a_filter_that_holds_for_no_file_says_so(
    filtered: Any, options: list[str], note: str
) -> None:
    """What was misspelt is named beside what there is; nothing found is exit code 1."""
    answer = filtered.json("search", "rent", *options, code=1)
    assert [one for one in answer["notes"] if note in one], answer["notes"]


def test_filters_that_hold_are_not_talked_about(filtered: Any) -> None:
    """Also where nothing satisfies all of them at once, each holds for some file."""
    for options in (["tags=rent"], ["status=final", "mood=calm"]):
        words = [word for pair in options for word in ("--where", pair)]
        answer = filtered.json("search", "rent", *words, code=None)
        assert not [note for note in answer["notes"] if "no file has" in note]


@pytest.mark.parametrize("tag", ["contract", "Contract", "#contract", "#CONTRACT"])
def test_a_tag_is_one_tag_in_any_case(filtered: Any, tag: str) -> None:
    """With its `#`, too, as it stands in the text of a note."""
    filtered.write("file_index/chunked/other.md", "---\ntags: [Contract]\n---\nRent again.\n")
    filtered("sync")
    hits = filtered.json("search", "rent", "--where", f"tags={tag}")["hits"]
    assert len(hits) > 1
    assert "chunked/other.md" in {hit["path"] for hit in hits}


def test_a_pasted_text_is_searched_to_its_end(workspace: Any) -> None:
    """Of very many words those count that few texts have, and how many do not is said."""
    workspace.write("fix.md", "# Fix\n\nWhen heron_total is missing, run the migration.\n")
    for number in range(12):
        workspace.write(f"note{number}.md", f"# Note {number}\n\nA line in a file about a call.\n")
    workspace("add", "fix.md", *(f"note{number}.md" for number in range(12)))
    frames = "\n".join(f'File "lib/part{n}.py", line {n}, in call{n}' for n in range(400))
    for mode in ("hybrid", "keyword"):
        answer = workspace.json("search", "--mode", mode, f"{frames}\nKeyError: heron_total")
        assert answer["hits"][0]["path"].startswith("chunked/fix.md/")
        assert "heron_total" in answer["hits"][0]["excerpt"]
        assert [note for note in answer["notes"] if "words are ignored" in note]
    assert not workspace.json("search", "the migration")["notes"]


@pytest.mark.parametrize("layout", ["tree", "in-place"])
def test_words_that_markup_parts_are_found(new_workspace: Any, layout: str) -> None:
    """By keyword, on their line, with their marks, in documents and chunk files."""
    text = (
        "# Notes\n\nOne line.\n\nWe met in the caf&#233; by the lake.\n\nIt was un**believ**able.\n"
    )
    work = new_workspace(init=layout == "tree")
    work.write("notes/n.md", text)
    work(*(["add", "notes"] if layout == "tree" else ["init", "--in-place", "notes"]))
    root = work.folder / ("" if layout == "tree" else "notes")
    for query, line in (("café", 5), ("unbelievable", 7), ('"unbelievable"', 7)):
        (hit,) = work.json("search", query, "--mode", "keyword", cwd=root)["hits"]
        assert hit["line"] == line
        assert len(hit["marks"]) == 1
    for phrase in ('"café unbelievable"', '"able café"'):
        found = work.json("search", phrase, "--mode", "keyword", cwd=root, code=None)
        assert found["hits"] == []
    assert work.json("verify", "--level", "full", cwd=root)["clean"]


def test_values_are_read_again_when_everything_is_cut_again(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that an earlier version made has the values of this one after a sync."""
    workspace.write("notes/n.md", "---\nzip: 01234\n---\nA walrus.\n")
    with monkeypatch.context() as earlier:
        earlier.setattr(documents, "SECTIONS", "sections/0")
        earlier.setattr(markdown.MarkdownExtractor, "version", 0)
        earlier.setattr(markdown, "read_frontmatter", lambda text: ({"zip": 668}, 19))
        workspace("init", "--in-place", "notes", code=None)
    root = workspace.folder / "notes"
    assert workspace("sync", cwd=root)
    assert workspace.json("search", "walrus", "--where", "zip=01234", cwd=root)["hits"]


def test_a_kind_is_one_of_those_that_the_store_has(workspace: Any) -> None:
    """In place a text is a document."""
    workspace.write("notes/n.md", "A walrus.\n")
    workspace("init", "--in-place", "notes")
    found = workspace.json("search", "walrus", "--kind", "document", "--store", "notes")
    assert [hit["kind"] for hit in found["hits"]] == ["document"]


@pytest.fixture(params=["tree", "flat", "in-place"])
def dated(request: pytest.FixtureRequest, new_workspace: Any) -> Any:
    """Asks of notes with dates, numbers, nested keys and tags in two folders, in each layout."""
    in_place = request.param == "in-place"
    work = new_workspace(init=False)
    for month in (1, 5, 6):
        work.write(
            f"docs/2024/n{month}.md",
            f"---\ncreated: 2024-0{month}-10\nrank: {month}\nauthor: {{name: Ann}}\n"
            f"tags: [Work/m{month}]\naliases: Old {month}, Past {month}\n---\n"
            f"pangolin #in/x {month}\n",
        )
    work.write("docs/2025/z.md", "---\ncreated: 2025-02-03T10:00:00Z\nrank: 10\n---\npangolin\n")
    work.write("docs/plain.md", "pangolin without properties\n")
    if in_place:
        work("init", "--in-place", ".")
    else:
        work("init", ".", "--layout", request.param)
        work("add", "docs", "--each")

    def asked(*words: str, code: int | None = 0) -> list[str]:
        hits = work.json("search", *words, code=code)["hits"]
        return [hit["source"].rpartition("/")[2].removesuffix(".md") for hit in hits]

    asked.work = work  # type: ignore[attr-defined]
    return asked


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (["created>=2024-05-01"], "n5 n6 z"),
        (["created>=2024-05-01", "created<2025"], "n5 n6"),
        (["created=2024-05"], "n5"),
        (["created=2025-02-03"], "z"),
        (["created<=2024-01-10"], "n1"),
        (["rank>5"], "n6 z"),
        (["rank=1|10"], "n1 z"),
        (["rank!=1"], "n5 n6 plain z"),
        (["tags=work"], "n1 n5 n6"),
        (["tags=in"], "n1 n5 n6"),
        (["tags!=work"], "plain z"),
        (["aliases=Past 5"], "n5"),
        (["author.name=Ann", "rank<=5"], "n1 n5"),
    ],
)
def test_conditions_are_typed_as_people_write_them(
    dated: Any, conditions: list[str], found: str
) -> None:
    """Of what words find, and without a word the files by path."""
    words = [word for one in conditions for word in ("--where", one)]
    assert sorted(dated("pangolin", *words)) == found.split()
    assert sorted(dated(*words)) == found.split()


def test_a_folder_holds_what_lies_below_it(dated: Any) -> None:
    """As its documents lie; one that has none is named beside the nearest."""
    assert sorted(dated("pangolin", "--in", "docs/2024")) == ["n1", "n5", "n6"]
    assert sorted(dated("--in", "./docs/2025/", "--in", "docs/2024", "--where", "rank>5")) == [
        "n6",
        "z",
    ]
    assert dated("pangolin", "--in", "docs/20", code=1) == []
    (note,) = dated.work.json("search", "--in", "docs/2026", code=1)["notes"]
    assert note.startswith("no file is in 'docs/2026'; did you mean 'docs/202")


def test_what_makes_no_sense_is_wrong_usage(dated: Any) -> None:
    """And an unknown key is none: the nearest is named."""
    for condition in ("created>2024-02-30", "created>soon", "created"):
        dated.work("search", "pangolin", "--where", condition, code=2)
    dated.work("search", code=2)
    assert dated("--where", "creatd>2024", code=1) == []


def test_an_operator_is_a_field_of_its_own_in_the_library(dated: Any) -> None:
    """A value of the plain form has no operator, whatever signs it begins with."""
    with filestore.open(dated.work.folder) as store:
        where: Any = [{"key": "rank", "op": ">", "value": 5}]
        assert len(store.search("pangolin", where=where)) == 2
        assert len(store.search("pangolin", where={"rank": 5})) == 1
        assert len(store.search("pangolin", where={"rank": ">5"})) == 0
        assert len(store.search("", within="docs/2024")) == 3
