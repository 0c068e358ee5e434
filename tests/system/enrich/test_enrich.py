"""Questions and summaries as files: made, corrected by hand, stale, refreshed, merged, undone."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from filestore.chunks import chunk_file
from filestore.chunks.chunk_file import Chunk

TOPICS = ("harbours", "bridges", "glaciers", "harbours", "bridges", "glaciers")
Write = Callable[[Iterable[str]], str]


def added(workspace: Any, topics: Iterable[str] = TOPICS, name: str = "town.md") -> None:
    """A document whose sections are about a few subjects, each in words of its own."""
    sections = [
        f"## Part {number}\n\n" + passage(topic, number) for number, topic in enumerate(topics, 1)
    ]
    workspace.write(name, "# The town\n\n" + "\n".join(sections))
    workspace("add", name, "--into", "town")


def passage(topic: str, number: int) -> str:
    """Some sentences that fill a chunk."""
    lines = [
        f"The {topic} of district {number} are described for year {year}, and {topic} cost money."
        f" Whoever builds {topic} there asks the {topic} office."
        for year in range(1900 + number, 1908 + number)
    ]
    return "\n".join(lines) + "\n"


def summaries(workspace: Any) -> dict[str, Chunk]:
    """Path below `chunked/` to every summary."""
    found = {path: data for path, data in workspace.truth().items() if path.endswith(".md")}
    parsed = {path: chunk_file.parse(data) for path, data in found.items()}
    return {path: chunk for path, chunk in parsed.items() if chunk_file.is_summary(path, chunk)}


def chunks(workspace: Any) -> dict[str, Chunk]:
    """Path below `chunked/` to every chunk file that is no summary."""
    found = {path: data for path, data in workspace.truth().items() if path.endswith(".md")}
    parsed = {path: chunk_file.parse(data) for path, data in found.items()}
    return {p: chunk for p, chunk in parsed.items() if not chunk_file.is_summary(p, chunk)}


def edit(workspace: Any, path: str, old: str, new: str) -> None:
    """Replace text in a chunk file."""
    file = workspace.chunked / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def root_of(found: dict[str, Chunk]) -> str:
    """The one summary that is no other's child."""
    below = {child.path for chunk in found.values() for child in chunk.children}
    (root,) = set(found) - below
    return root


def test_every_text_is_below_one_root_and_has_questions(either: Any) -> None:
    """The tree is whole, the store clean, and nothing is left to be done."""
    added(either)
    report = either.json("enrich")
    made = summaries(either)
    assert report["summaries"] == len(made) > 1
    assert report["questions"] == len(chunks(either))
    assert (report["failed"], report["kept"], report["tokens"]) == ([], [], 0)
    children = {child.path for chunk in made.values() for child in chunk.children}
    assert children | {root_of(made)} == set(chunks(either)) | set(made)
    for chunk in made.values():
        assert chunk.made_by is not None
        assert chunk.made_by.startswith("extractive/")
        assert not chunk_file.hand_edited(chunk)
        assert chunk.level == 1 + max(
            (made[c.path].level or 0) if c.path in made else 0 for c in chunk.children
        )
    assert all(1 <= len(chunk.questions) <= 3 for chunk in chunks(either).values())
    either.assert_settled()
    again = either.json("enrich")
    assert (again["questions"], again["summaries"], again["made"]) == (0, 0, 0)
    assert {item["resource"] for item in either.json("ls")["items"]} == {"town"}


def test_the_same_input_gives_the_same_bytes(new_workspace: Any) -> None:
    """Two people who enrich the same document write the same files."""
    truths = []
    for name in ("one", "other"):
        workspace = new_workspace(name)
        added(workspace)
        workspace("enrich")
        truths.append(workspace.truth())
    assert truths[0] == truths[1]


def test_a_plan_changes_nothing_and_says_what_it_takes(workspace: Any) -> None:
    """As many questions and summaries as are made then."""
    added(workspace)
    before = workspace.truth()
    plan = workspace.json("enrich", "--plan")
    assert workspace.truth() == before
    report = workspace.json("enrich")
    assert (plan["questions"], plan["summaries"]) == (report["questions"], report["summaries"])
    assert (plan["cost"], plan["tokens"], plan["planned"]) == (0.0, 0, report["made"])
    words = workspace("enrich", "--plan").stdout
    assert "costs nothing" in words
    assert "threshold" not in words
    told = workspace("enrich", "--plan", "-v").stderr
    assert re.search(r"threshold 0\.\d\d, chosen from", told)


def test_offline_lines_are_keys_and_called_so(either: Any) -> None:
    """In the plan and the report, which say what gives questions; each a path, or rare terms."""
    added(either)
    plan = either.json("enrich", "--plan")
    words = either("enrich", "--plan").stdout
    report = either.json("enrich", "--questions", "2")
    assert plan["lines"] == report["lines"] == "keys"
    assert plan["notes"] == report["notes"]
    assert "--generator openai:MODEL" in plan["notes"][0]
    assert f"keys for {len(chunks(either))} passages" in words
    for chunk in chunks(either).values():
        path, terms = chunk.questions
        assert path == " > ".join(chunk.headings)
        assert {"district", "described"} <= set(terms.split(", "))
    assert either.json("enrich", "--summaries")["notes"] == []
    words = either("enrich", "--questions", "3")
    assert "keys in " in words.stdout
    assert "questions" in words.stderr


def test_what_earlier_versions_made_stays_until_a_generator_is_named(workspace: Any) -> None:
    """Their questions are searched and take keys behind them; their summaries are not stale."""
    added(workspace)
    workspace("enrich", "--questions", "1")
    workspace("enrich", "--summaries")
    path = workspace.chunked / workspace.chunks("town")[0]
    chunk = chunk_file.parse(path.read_bytes())
    asked = ["What is a quay?", "Who pays for moorings?"]
    assert chunk.questions_origin is not None
    origin = replace(chunk.questions_origin, made=tuple(map(chunk_file.text_mark, asked)))
    data = chunk_file.update(path.read_bytes(), questions=asked, questions_origin=origin)
    path.write_bytes(data)
    for name in summaries(workspace):
        file = workspace.chunked / name
        file.write_bytes(chunk_file.update(file.read_bytes(), made_by="extractive/1"))
    workspace.sync()
    before = {name: (one.body, one.made_by) for name, one in summaries(workspace).items()}
    assert workspace.drift() == {}
    assert workspace.json("search", "moorings")["hits"][0]["question"] == asked[1]
    workspace("enrich")
    assert {name: (one.body, one.made_by) for name, one in summaries(workspace).items()} == before
    after = chunk_file.parse(path.read_bytes()).questions
    assert after == (*asked, " > ".join(chunk.headings))
    workspace("enrich", "--generator", "extractive", "--questions", "4", "--summaries")
    assert not set(asked) & set(chunk_file.parse(path.read_bytes()).questions)
    assert {one.made_by for one in summaries(workspace).values()} == {"extractive/2"}
    workspace.assert_settled()


def test_only_what_is_asked_for(workspace: Any) -> None:
    """Questions alone, summaries alone, one resource alone."""
    added(workspace)
    workspace.write("other.md", "# Other\n\n" + passage("kites", 1))
    workspace("add", "other.md")
    workspace("enrich", "town", "--questions", "1")
    assert summaries(workspace) == {}
    assert {len(one.questions) for path, one in chunks(workspace).items() if "town" in path} == {1}
    assert all(not one.questions for path, one in chunks(workspace).items() if "other" in path)
    workspace("enrich", "town", "--summaries")
    assert all(not one.questions for one in summaries(workspace).values())
    workspace("enrich", "nowhere", code=3)
    for number in ("0", "21", "x"):
        workspace("enrich", "--questions", number, code=2)


def test_a_persons_questions_stay_and_deleted_ones_stay_away(workspace: Any) -> None:
    """Through a second run, an edit of the text, and a lost catalog."""
    added(workspace)
    path = workspace.chunks("town")[0]
    file = workspace.chunked / path
    file.write_bytes(chunk_file.update(file.read_bytes(), questions=["My own?"]))
    workspace("enrich", code=0)
    first = chunk_file.parse(file.read_bytes()).questions
    assert first[0] == "My own?"
    assert len(first) > 2
    kept = [first[0], first[1] + " Really?", *first[3:]]
    file.write_bytes(chunk_file.update(file.read_bytes(), questions=kept))
    workspace("sync", code=None)
    workspace("enrich")
    assert list(chunk_file.parse(file.read_bytes()).questions) == kept
    shutil.rmtree(workspace.sidecar)
    workspace("sync", code=None)
    workspace("enrich")
    assert list(chunk_file.parse(file.read_bytes()).questions) == kept
    edit(workspace, path, "district 1", "quarter 1")
    workspace("sync", code=None)
    workspace("enrich", "--refresh")
    after = chunk_file.parse(file.read_bytes()).questions
    assert after[:2] == ("My own?", first[1] + " Really?")
    assert first[1] not in after
    assert first[2] not in after


def test_an_edit_marks_its_ancestors_and_no_other(either: Any) -> None:
    """And a refresh makes those again, for the price of what changed."""
    added(either)
    either("enrich")
    before = summaries(either)
    path = next(p for p, chunk in chunks(either).items() if "bridges" in chunk.body)
    edit(either, path, "bridges cost money", "bridges are free")
    either.sync(code=1)
    stale = {p.removeprefix("chunked/") for p in either.drift()["summary-stale"]}
    above = {p for p, one in before.items() if path in {child.path for child in one.children}}
    while (
        more := {p for p, one in before.items() if above & {c.path for c in one.children}} - above
    ):
        above |= more
    assert stale == above
    assert len(stale) < len(before)
    plan = either.json("enrich", "--refresh", "--plan")
    assert plan["summaries"] <= len(stale)
    report = either.json("enrich", "--refresh")
    assert report["summaries"] <= len(stale)
    either.assert_settled()
    after = summaries(either)
    assert {p for p in before if before[p] != after[p]} <= stale
    assert set(after) == set(before)


def test_a_hit_that_is_a_stale_summary_says_so(workspace: Any) -> None:
    """Nothing stale is passed off as current."""
    added(workspace)
    workspace("enrich", "--summaries")
    path = workspace.chunks("town")[0]
    edit(workspace, path, "cost money", "are free")
    workspace.sync(code=1)
    hits = workspace.json("search", "harbours", "--kind", "summary", "-k", "9")["hits"]
    stale = set(workspace.drift()["summary-stale"])
    assert {hit["path"] for hit in hits if hit["freshness"] == "outdated"} == stale & {
        hit["path"] for hit in hits
    }
    assert stale & {hit["path"] for hit in hits}


def test_a_new_a_moved_and_a_deleted_text(workspace: Any) -> None:
    """Each is followed by a refresh, with no summary of its own lost or doubled."""
    added(workspace)
    workspace("enrich")
    paths = workspace.chunks("town")
    folder = workspace.chunked / "town"
    (workspace.chunked / paths[0]).rename(folder / "renamed.md")
    (workspace.chunked / paths[2]).unlink()
    workspace.write("file_index/chunked/town/mine.md", passage("kites", 3))
    workspace.sync(code=1)
    assert workspace.drift()["summary-stale"]
    workspace("enrich", "--refresh")
    workspace.assert_settled()
    made = summaries(workspace)
    children = {child.path for chunk in made.values() for child in chunk.children}
    assert {"town/renamed.md", "town/mine.md"} <= children
    assert paths[2] not in children
    assert children | {root_of(made)} == set(chunks(workspace)) | set(made)


def test_an_edited_summary_is_kept_and_said(workspace: Any) -> None:
    """It is never written over, and what is above it is made from what the person wrote."""
    added(workspace)
    workspace("enrich", "--summaries")
    first = next(p for p, one in summaries(workspace).items() if one.level == 1)
    file = workspace.chunked / first
    file.write_text(file.read_text() + "A person's remark on whales.\n")
    workspace.sync(code=1)
    workspace("enrich")
    edited = file.read_bytes()
    child = summaries(workspace)[first].children[0].path
    edit(workspace, child, "cost money", "are free")
    workspace.sync(code=1)
    report = workspace.json("enrich", "--refresh")
    assert [one["path"] for one in report["kept"]] == [f"chunked/{first}"]
    assert chunk_file.parse(file.read_bytes()).body == chunk_file.parse(edited).body
    assert f"chunked/{first}" in workspace.drift()["summary-stale"]
    assert "kept" in workspace("enrich", "--refresh").stdout


def test_undo_takes_one_run_back_byte_for_byte(either: Any) -> None:
    """All levels and all questions, as one; redo brings them back."""
    added(either)
    before = either.truth()
    report = either.json("enrich")
    after = either.truth()
    either("undo", report["undo"])
    assert either.truth() == before
    either("redo")
    assert either.truth() == after
    either.assert_settled()


def test_what_was_made_is_never_made_again(workspace: Any) -> None:
    """Not after undo, nor after the catalog was lost; a torn line costs that one result."""
    added(workspace)
    made = workspace.json("enrich")["made"]
    workspace("undo")
    assert workspace.json("enrich")["made"] == 0
    workspace("undo")
    (workspace.sidecar / "catalog.sqlite").unlink()
    workspace("sync")
    assert workspace.json("enrich")["made"] == 0
    workspace("undo")
    cache = workspace.sidecar / "generated.jsonl"
    lines = cache.read_bytes().splitlines(keepends=True)
    assert len(lines) == made
    damaged = lines[0].replace(b'"lines":[', b'"lines":["x",', 1)
    assert damaged != lines[0]
    cache.write_bytes(damaged + b"".join(lines[1:-1]) + lines[-1][:20])
    assert workspace.json("enrich")["made"] == 2
    assert all(map(json.loads, cache.read_bytes().splitlines()[-2:]))


def test_adding_the_source_again_leaves_summaries_alone(workspace: Any) -> None:
    """They are no chunks of it: only what changed is written, and the text comes back whole."""
    added(workspace)
    workspace("enrich")
    made = summaries(workspace)
    whole = workspace("reconstruct", "town").stdout
    assert "summar" not in whole
    source = workspace.folder / "town.md"
    source.write_text(source.read_text().replace("district 2", "quarter 2"))
    workspace("add", "town.md", "--into", "town")
    assert set(summaries(workspace)) == set(made)
    assert workspace.drift()["summary-stale"]
    workspace("enrich", "--refresh")
    workspace.assert_settled()
    workspace("rm", "town")
    assert workspace.truth() == {}


def test_a_group_that_is_no_more_loses_its_summary(workspace: Any) -> None:
    """Unless a person had a hand in it."""
    added(workspace)
    workspace("enrich")
    found = summaries(workspace)
    first, second = [p for p, one in found.items() if one.level == 1][:2]
    file = workspace.chunked / first
    file.write_bytes(chunk_file.update(file.read_bytes(), questions=["Mine?"]))
    for path in (first, second):
        for child in found[path].children:
            (workspace.chunked / child.path).unlink()
    workspace.sync("--forget-missing", code=1)
    report = workspace.json("enrich", "--refresh")
    assert not (workspace.chunked / second).exists()
    assert [one["path"] for one in report["kept"]] == [f"chunked/{first}"]


@pytest.mark.parametrize("bodies", [["One."], ["Word"] * 5, ["A.", "B.", "C.", "D."]])
def test_few_words_and_equal_texts(workspace: Any, bodies: list[str]) -> None:
    """Texts of one word, the same text in many files, texts with nothing in common."""
    for number, body in enumerate(bodies, 1):
        workspace.write(f"file_index/chunked/few/chunk{number}.md", body + "\n")
    workspace("sync")
    workspace("enrich")
    workspace.assert_settled()
    different = len(set(bodies))
    assert len(summaries(workspace)) == (1 if different > 1 else 0)


def test_many_equal_chunks_are_one_text(workspace: Any) -> None:
    """A thousand files with one text, and one with another: a summary of two."""
    folder = workspace.chunked / "same"
    folder.mkdir(parents=True)
    for number in range(1, 1_001):
        (folder / f"chunk{number}.md").write_text("The same text everywhere.\n")
    (folder / "chunk2000.md").write_text("The same text, nearly everywhere.\n")
    workspace("sync")
    workspace("enrich", "--summaries")
    (made,) = summaries(workspace).values()
    assert len(made.children) == 2
    workspace.assert_settled()


LIES = {
    "itself": '[{"path": "town/summary1.md", "hash": "sha256:00"}]',
    "nothing": '[{"path": "../../etc/passwd", "hash": "x"}, {"path": "", "hash": ""}]',
    "a circle": '[{"path": "town/summary2.md", "hash": "sha256:00"}]',
    "none": "[]",
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_children(workspace: Any, lie: str) -> None:
    """A summary that names itself, nothing, or one that names it is told, and set right."""
    added(workspace)
    workspace("enrich", "--summaries")
    for name in ("summary1.md", "summary2.md"):
        file = workspace.chunked / "town" / name
        text = file.read_text()
        assert "children:\n" in text
        told = LIES[lie] if name == "summary1.md" else LIES["a circle"].replace("2.md", "1.md")
        file.write_text(re.sub(r"children:\n(- .*\n)+", f"children: {told}\n", text))
    workspace("sync", code=None)
    workspace("status", code=None)
    workspace("about", code=None)
    workspace("enrich")
    made = summaries(workspace)
    children = [child.path for chunk in made.values() for child in chunk.children]
    assert set(chunks(workspace)) <= set(children)
    workspace.assert_settled()


def test_copied_and_renamed_summaries(workspace: Any) -> None:
    """A copy is superfluous; a renamed one is the one that it was."""
    added(workspace)
    workspace("enrich", "--summaries")
    found = summaries(workspace)
    first, second = [p for p, one in found.items() if one.level == 1][:2]
    shutil.copy(workspace.chunked / first, workspace.chunked / "town" / "summary77.md")
    (workspace.chunked / second).rename(workspace.chunked / "town" / "summary88.md")
    workspace("sync", code=None)
    workspace("enrich")
    after = summaries(workspace)
    assert "town/summary88.md" in after
    assert "town/summary77.md" not in after
    workspace.assert_settled()


def test_two_branches_that_enriched(workspace: Any) -> None:
    """Each edited another text and enriched; merged, nothing that a person wrote is lost."""
    added(workspace)
    workspace("enrich")
    workspace.git("add", ".")
    workspace.git("commit", "-qm", "base")
    start = workspace.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    paths = workspace.chunks("town")
    own = {"one": paths[0], "other": paths[-1]}
    for branch, path in own.items():
        workspace.git("switch", "-q", "-c", branch, start)
        workspace("sync", code=None)
        edit(workspace, path, "cost money", f"are free, says {branch}")
        file = workspace.chunked / path
        questions = [*chunk_file.parse(file.read_bytes()).questions, f"Who is {branch}?"]
        file.write_bytes(chunk_file.update(file.read_bytes(), questions=questions))
        workspace("sync", code=None)
        workspace("enrich", "--refresh")
        workspace.git("add", ".")
        workspace.git("commit", "-qm", branch)
    merged = merge(workspace, "one")
    for path in merged:
        # Both made the same summary again: which is kept does not matter, it is made anew.
        assert "summary" in path
        workspace.git("checkout", "--ours", "--", path)
        workspace.git("add", path)
    if merged:
        workspace.git("commit", "-qm", "merged")
    workspace("sync", code=None)
    workspace("enrich", "--refresh")
    workspace.assert_settled()
    for branch, path in own.items():
        chunk = chunk_file.parse((workspace.chunked / path).read_bytes())
        assert f"says {branch}" in chunk.body
        assert f"Who is {branch}?" in chunk.questions


def merge(workspace: Any, branch: str) -> list[str]:
    """Merge a branch; the paths with conflicts."""
    import subprocess

    try:
        workspace.git("merge", "-q", "-m", "merged", branch)
    except subprocess.CalledProcessError:
        return str(workspace.git("diff", "--name-only", "--diff-filter=U")).split()
    return []


def test_a_file_that_is_edited_meanwhile_is_left(workspace: Any) -> None:
    """What differs from what was indexed when it is to be written stays, and is said."""
    from filestore.store import Store

    added(workspace)
    path = workspace.chunked / workspace.chunks("town")[0]
    edited = path.read_bytes() + b"\nA late remark.\n"

    def write_late(progress: Any) -> None:
        if progress.stage == "making keys" and path.read_bytes() != edited:
            path.write_bytes(edited)

    with Store.open(workspace.store) as store:
        report = store.enrich(questions=2, summaries=False, on_progress=write_late)
    assert path.read_bytes() == edited
    assert [one["path"] for one in report.failed] == [os.path.relpath(path, workspace.store)]
    assert report.questions == len(chunks(workspace)) - 1


def test_in_the_middle_of_a_merge_nothing_is_written(workspace: Any) -> None:
    """Git decides first what the files are."""
    added(workspace)
    workspace.git("add", ".")
    workspace.git("commit", "-qm", "base")
    (workspace.folder / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")
    before = workspace.truth()
    done = workspace("enrich", code=4)
    assert "merge" in done.stderr
    assert workspace.truth() == before


def test_without_the_model_nothing_is_removed(workspace: Any) -> None:
    """Texts that no vector is there for tell nothing about their groups."""
    added(workspace)
    workspace("enrich", "--summaries")
    before = workspace.truth()
    settings = workspace.store / "filestore.toml"
    settings.write_text(
        re.sub("^embedder = .*$", 'embedder = "onnx:nowhere"', settings.read_text(), flags=re.M)
    )
    for words in (("--summaries",), ("--refresh",), ("--plan", "--summaries"), ()):
        assert "nowhere" in workspace("enrich", *words, code=3).stderr
        assert workspace.truth() == before


def test_texts_without_vectors_keep_their_summaries(workspace: Any) -> None:
    """Where only some are missing, what stands over them stays as it is, and that is said."""
    added(workspace)
    workspace("enrich", "--summaries")
    before = summaries(workspace)
    from filestore.embed.cache import EmbeddingCache

    with EmbeddingCache.open(str(workspace.sidecar / "embeddings.sqlite")) as cache:
        (fingerprint,) = cache.fingerprints()
        cache.discard(fingerprint, [key for key, _ in cache.rows(fingerprint)])
    plan = workspace.json("enrich", "--plan", "--summaries")
    assert (plan["summaries"], plan["removed"]) == (0, 0)
    assert "without a vector" in plan["notes"][0]
    workspace("enrich", "--summaries")
    assert summaries(workspace) == before


def test_a_text_that_is_excluded_for_a_while_keeps_its_summaries(workspace: Any) -> None:
    """Frontmatter that a person has not finished is no reason to remove what was made."""
    added(workspace, TOPICS[:4])
    workspace("enrich", "--summaries")
    found = summaries(workspace)
    first = next(one for one in found.values() if one.level == 1)
    whole = {child.path: (workspace.chunked / child.path).read_bytes() for child in first.children}
    for path in list(whole)[1:]:
        (workspace.chunked / path).write_bytes(b"---\ntags: [\n---\n" + whole[path])
    workspace("sync", code=None)
    report = workspace.json("enrich", "--summaries", code=None)
    assert report["removed"] == 0
    assert summaries_as_files(workspace) == set(found)
    assert any("excluded" in one["reason"] for one in report["kept"])
    for path, data in whole.items():
        (workspace.chunked / path).write_bytes(data)
    workspace("sync", code=None)
    workspace("enrich", "--summaries")
    workspace.assert_settled()


def summaries_as_files(workspace: Any) -> set[str]:
    """The names of all summaries, whatever is in them."""
    return {path for path in workspace.truth() if "/summary" in path}


def test_one_tree_over_the_store(workspace: Any) -> None:
    """On wish what resources have on top is summarised, too; a refresh keeps it up to date."""
    added(workspace)
    workspace.write(
        "play.md", "# Play\n\n" + passage("kites", 1) + "\n## Two\n\n" + passage("drums", 2)
    )
    workspace("add", "play.md", "--into", "play")
    workspace.write("small.md", "# Small\n\nOne short text about lanterns.\n")
    workspace("add", "small.md")
    workspace("enrich", "--summaries", "--across")
    made = summaries(workspace)
    over = {path: one for path, one in made.items() if path.startswith("_store/")}
    children = {child.path for one in over.values() for child in one.children}
    assert any(path.startswith("small.md/") for path in children)
    assert any(path.startswith("town/") for path in children)
    assert len(over.keys() - children) == 1
    edit(workspace, workspace.chunks("town")[0], "cost money", "are free")
    workspace.sync(code=1)
    workspace("enrich", "--refresh")
    workspace.assert_settled()


def test_an_interrupted_run_keeps_what_it_made(workspace: Any) -> None:
    """Ctrl-C ends it soon; what was made is written, and is not made again."""
    import signal
    import threading

    from filestore.store import Store

    added(workspace, TOPICS * 3)
    asked = threading.Event()

    def interrupt(progress: Any) -> None:
        if progress.stage == "making keys" and progress.done == 5 and not asked.is_set():
            asked.set()
            signal.raise_signal(signal.SIGINT)

    with Store.open(workspace.store) as store, pytest.raises(KeyboardInterrupt):
        store.enrich(on_progress=interrupt)
    made = len((workspace.sidecar / "generated.jsonl").read_bytes().splitlines())
    assert made >= 5
    assert sum(bool(one.questions) for one in chunks(workspace).values()) >= 5
    report = workspace.json("enrich")
    assert report["from_cache"] + report["made"] >= made
    lines = (workspace.sidecar / "generated.jsonl").read_bytes().splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == len(lines)
    workspace.assert_settled()
