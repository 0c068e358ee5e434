"""The words of a plan say what will happen, of a report what did, and are safe on a terminal."""

import shlex
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from filestore import Finding, Plan, Policy, RepairReport, Step
from filestore.browse import KINDS, Group, Left
from filestore.core.codes import codes_where
from filestore.core.safe_text import safe_text
from filestore.history.batch import Batch, ChangedFile, Version
from filestore.repair.plan import ABSENT
from filestore.repair.undo import UndoResult
from tui.formatting import Line, plain, progress_line, quoted
from tui.formatting.findings import diff_lines, facing, stacked_lines
from tui.formatting.plans import (
    commands,
    kind_lines,
    left_lines,
    plan_line,
    question_lines,
    removed_by,
    scope,
    step_line,
    step_lines,
    totals_line,
    written_by,
)
from tui.formatting.reports import (
    batch_line,
    batch_lines,
    file_changes,
    report_lines,
    undo_lines,
    undo_scope,
)
from tui.state.lists import PlanRows, Request, begin_with, chosen_of, prepared, request_for
from tui.state.rows import Marking
from tui.widgets.drawing import Wrapping, fitted, hanging

NASTY = st.text(
    st.sampled_from(
        ["\x1b", "\x9b", "\u202e", "\n", "\r", "\t", "[", "]", "'", "\\", "\udcff", "ä"]
    )
    | st.characters(),
    max_size=20,
)
"""What a name, a detail or a diff may hold."""


def step(kind: str = "reindex", path: str = "chunked/a.md", **more: Any) -> Step:
    more.setdefault("codes", ("modified",))
    return Step(kind=kind, path=path, **more)


def plan(*steps: Step, left: Iterable[Left] = (), **more: Any) -> Plan:
    more.setdefault("policy", Policy())
    more.setdefault("level", "fast")
    return Plan(identity="i", generation=3, steps=steps, left=tuple(left), texts=0, known=0, **more)


def words(lines: Iterable[Line]) -> str:
    return plain(tuple(lines))


STEPS = st.lists(
    st.builds(
        step,
        kind=st.sampled_from(sorted(KINDS)),
        path=NASTY.map(lambda name: f"chunked/{name}.md"),
        other=NASTY,
        detail=NASTY,
        diff=NASTY,
        place=st.sampled_from(["", "last seen", "git"]),
        hash=st.sampled_from(["", "ab"]),
        texts=st.none() | st.integers(0, 5),
        known=st.integers(0, 5),
    ),
    max_size=12,
    unique_by=lambda one: one.key,
)


# Counts and scope


def test_a_repair_of_the_sidecar_says_that_no_file_is_touched() -> None:
    """Who is asked to apply steps that write no file is told so."""
    said = scope(plan(step(), step("forget", "chunked/b.md")))
    assert said == "2 steps: no file of yours is touched"


def test_files_written_and_removed_are_counted_apart() -> None:
    """A removal is never counted as a file that is written."""
    steps = [
        step("restore", "chunked/a.md", write_bytes=10),
        step("relink", "chunked/b.md"),
        step("resolve-theirs", "chunked/c.md", hash=""),
        step("resolve-theirs", "chunked/d.md", hash="ab"),
        step("remove-duplicate", "chunked/e.md", other="chunked/f.md"),
    ]
    assert "3 files written, 2 removed" in scope(plan(*steps))


def test_removing_a_source_counts_its_chunk_files() -> None:
    """What was made of a source is removed file by file, and its record is written."""
    seen = dict.fromkeys(
        ["source/a.pdf", "chunked/a/1.md", "chunked/a/2.md", "chunked/a/meta.json"], ABSENT
    )
    kept = step("remove", "source/a.pdf", codes=("source-missing",), seen=seen, write_bytes=9)
    assert removed_by(kept) == ("chunked/a/1.md", "chunked/a/2.md")
    assert "1 file written, 2 removed" in scope(plan(kept))


def test_a_record_that_goes_with_its_last_source_is_a_removal() -> None:
    """No file is said to be written where all of them go."""
    seen = dict.fromkeys(["source/a.pdf", "chunked/a/1.md", "chunked/a/meta.json"], ABSENT)
    gone = step("remove", "source/a.pdf", codes=("source-missing",), seen=seen)
    assert written_by(gone) == ()
    assert scope(plan(gone)) == "1 step: 2 files removed"
    said = words(question_lines([gone], most=9))
    assert "removes chunked/a/meta.json" in said
    assert "writes" not in said
    assert "removes … and 1 more" in words(question_lines([gone], most=1))


def test_what_is_taken_in_again_does_not_claim_to_write_its_source() -> None:
    """A source is read; what is written are the chunk files made from it."""
    again = step("reingest", "source/a.pdf", codes=("source-modified",))
    assert words(question_lines([again], most=9)) == ("writes  chunk files made from source/a.pdf")


def test_what_is_counted_only_later_is_said() -> None:
    """A source that is re-ingested names no number of texts that nobody knows."""
    again = step("reingest", "source/a.pdf", codes=("source-modified",), texts=None)
    said = scope(plan(again))
    assert "1 source re-ingested" in said
    assert "those of re-ingested sources embedded" in said


@given(STEPS)
def test_no_step_is_counted_twice_over_files(steps: list[Step]) -> None:
    """A file is written or removed, never both by the same step."""
    for one in steps:
        assert not (set(removed_by(one)) and one.path in written_by(one))


# On a narrow screen


def test_the_end_of_a_path_tells_steps_apart() -> None:
    """Of chunk files in one folder, the name is what shows where there is no room for both."""
    row = step_line(step("forget", f"chunked/{'guide/' * 9}chunk7.md"), is_chosen=True)
    assert words([fitted(row, 40, "…")]).endswith("/chunk7.md")


def test_the_head_of_a_plan_fits_eighty_columns() -> None:
    """What was planned, how much of it, and the key that changes it show whole."""
    finding = Finding(code="missing", path="chunked/a.md")
    made = plan(*[step()] * 123, left=[Left(finding=finding, reason="")] * 45)
    head = plan_line(made, about=Request(findings=None, policy=Policy()).about, stale="")
    assert len(words([head])) < 80


def test_a_long_path_that_came_back_begins_on_its_own_row() -> None:
    """No row is left blank before it, and what goes on is as far in."""
    path = f"chunked/{'guide/' * 9}chunk7.md"
    done = UndoResult(identifier="000001", what="rm", paths=(path,), brought_back=1)
    rows = Wrapping(undo_lines(done, side="before"), 40, hanging=hanging)
    rows.advance(20)
    assert plain([rows.row(2)]).startswith("  chunked/guide/")


# Safe on a terminal


@given(STEPS, NASTY)
def test_nothing_of_a_plan_moves_the_terminal(steps: list[Step], name: str) -> None:
    """Names, details and diffs are shown whole lines each, without a byte that steers."""
    finding = Finding(code="malformed-frontmatter", path=name, detail=name, other=name)
    made = plan(*steps, left=[Left(finding=finding, reason=name)], model=name)
    lines = [line for one in steps for line in step_lines(one, number=1, total=2, model=name)]
    lines += [step_line(one, is_chosen=True) for one in steps]
    lines += [totals_line(made), *left_lines(made.left[0])]
    lines += [line for one in steps for line in kind_lines(one.kind, steps, chosen=1)]
    for line in lines:
        for span in line:
            assert safe_text(span.text, keep_newlines=False) == span.text


@given(NASTY)
def test_a_quoted_name_is_safe_and_is_read_back(name: str) -> None:
    """A name in a command line moves no terminal, and a shell reads the name from it."""
    said = quoted(name)
    assert safe_text(said, keep_newlines=False) == said
    if not said.startswith("$'"):
        assert shlex.split(said) == [name]


def test_a_name_with_an_escape_sequence_is_written_for_a_shell() -> None:
    """Bytes that steer a terminal are named in the way bash reads."""
    assert quoted("a\x1b[31m'\udcff") == r"$'a\x1b[31m\'\xff'"


# The diff


def test_a_diff_keeps_its_signs() -> None:
    """What was added or removed is told by its sign, and by more than colour."""
    diff = "--- indexed\n+++ on disk\n@@ -1,2 +1,2 @@\n same\n--- old\n+new\n"
    lines = diff_lines(diff)
    assert [line[0].role for line in lines] == [
        "title",
        "title",
        "hunk",
        "text",
        "removed",
        "added",
    ]
    assert words(lines) == diff.rstrip("\n")


@given(st.lists(st.sampled_from("abcd\t")), st.lists(st.sampled_from("abcd\t")))
def test_both_sides_are_whole_line_by_line(ours: list[str], theirs: list[str]) -> None:
    """Every line of both sides is shown once, in order; lines that differ are marked."""
    rows = facing("\n".join(ours), "\n".join(theirs))
    left = [row.left for row in rows if row.mark != ">"]
    right = [row.right for row in rows if row.mark != "<"]
    assert left == "\n".join(ours).splitlines()
    assert right == "\n".join(theirs).splitlines()
    assert all((row.left == row.right) == (row.mark == "") for row in rows if row.mark not in "<>")


def test_below_each_other_the_sides_of_a_change_stand_together() -> None:
    """Where there is no room beside, first the left lines of a change are shown, then the right."""
    rows = facing("same\nmine\nend", "same\nyours\nend")
    assert words(stacked_lines(rows)) == "  same\n< mine\n> yours\n  end"


# Rows and choice


def test_what_writes_files_is_chosen_only_where_it_was_asked_for() -> None:
    """A truth step waits for a person; one that mends a marked finding was asked for."""
    safe, asked, other = (
        step(),
        step("restore", "chunked/b.md", codes=("bit-rot",)),
        step("relink", "chunked/c.md", codes=("link-dangling",)),
    )
    marked = [Finding(code="bit-rot", path="chunked/b.md")]
    assert begin_with(plan(safe, asked, other), marked) == {safe.key, asked.key}
    allowed = plan(safe, asked, other, policy=Policy(truth=True))
    assert begin_with(allowed, ()) == {safe.key, asked.key, other.key}


@given(STEPS, st.data())
def test_rows_keys_and_places_agree(steps: list[Step], data: st.DataObject) -> None:
    """Whatever is open, each row has one key that leads back to it, and every step is there."""
    left = [Left(finding=Finding(code="modified", path="chunked/x.md"), reason="look")]
    rows = PlanRows(plan(*steps, left=left), ())
    for name in data.draw(st.lists(st.sampled_from(["left", *KINDS]))):
        (rows.close if rows.is_open((name,)) else rows.open)((name,))
    keys = [rows.key(index) for index in range(len(rows))]
    assert len(set(keys)) == len(keys)
    assert [rows.index_of(key) for key in keys] == list(range(len(rows)))
    shown = {key[1] for key in keys if len(key) == 2 and key[0] != "left"}
    assert shown == {one.key for one in steps if rows.is_open((one.kind,))}
    assert sorted(rows.number_of(one.key) for one in steps) == list(range(1, len(steps) + 1))
    assert all(rows.row(index) for index in range(len(rows)))


def test_a_kind_stands_for_all_its_steps() -> None:
    """To choose a heading is to choose the steps below it, also while they are not shown."""
    rows = PlanRows(plan(step(), step(path="chunked/b.md"), step("forget", "chunked/c.md")), ())
    rows.close(("reindex",))
    rows.chosen.update(rows.chosen_with(("reindex",)))
    rows.recount_by(rows.chosen, ())
    assert rows.chosen_of("reindex") == 2
    assert "[x] re-index  2 of 2" in words([rows.row(rows.index_of(("reindex",)) or 0)])
    assert rows.chosen_of("forget") == 0


ROWS = st.lists(st.sampled_from(range(6)), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(("toggle", "extend", "end", "drop", "kind")), ROWS)))
def test_counts_follow_every_choice(choices: list[tuple[str, list[int]]]) -> None:
    """However steps are chosen and left, the number beside their kind is how many are chosen."""
    steps = [step(path=f"chunked/{number}.md") for number in range(4)]
    steps += [step("forget", f"chunked/{number}.md") for number in range(2)]
    rows, marking = PlanRows(plan(*steps), [steps[0].key]), Marking()
    marking.keys = rows.chosen
    for choice, numbers in choices:
        keys = [steps[number].key for number in numbers]
        if choice == "toggle":
            marking.toggle(keys)
        elif choice == "extend":
            marking.extend(keys)
        elif choice == "kind":
            marking.toggle(rows.chosen_with(("forget",)))
        elif choice == "end":
            marking.end()
        else:
            marking.drop()
        rows.recount_by(*marking.changes())
        for kind in ("reindex", "forget"):
            assert rows.chosen_of(kind) == sum(key[0] == kind for key in rows.chosen)


def test_what_removes_files_waits_for_a_person() -> None:
    """No removal is chosen beforehand, neither by marking its finding nor with leave to write."""
    gone = step("remove", "source/a.pdf", codes=("source-missing",))
    marked = [Finding(code="source-missing", path="source/a.pdf")]
    for truth in (False, True):
        assert begin_with(plan(gone, policy=Policy(truth=truth)), marked) == set()
    named = step("remove-duplicate", "chunked/d.md", codes=("duplicate",))
    assert begin_with(plan(named), ()) == {named.key}


def test_a_plan_made_again_keeps_what_a_person_chose_and_left() -> None:
    """New steps come as they would; those that were left stay left, those chosen stay chosen."""
    old, left, new = (step(path=f"chunked/{name}.md") for name in "acd")
    chosen = step("forget", "chunked/b.md", codes=("missing",))
    request = request_for(None, None)
    before, begun = prepared(plan(old, chosen, left), request, None, set())
    assert begun == {old.key, left.key}
    before.chosen ^= {chosen.key, left.key}
    rows, _ = prepared(plan(old, chosen, left, new), request, before, begun)
    assert rows.chosen == {old.key, chosen.key, new.key}


# The command line


def test_all_of_everything_is_a_repair_without_options() -> None:
    """The shortest command that does the same is the one that is shown."""
    made = plan(step(), step("forget", "chunked/b.md", codes=("missing",)))
    keys = {one.key for one in made.steps}
    assert commands(made, keys, is_whole=True) == ["repair"]
    assert commands(plan(*made.steps, level="full"), keys, is_whole=True) == ["repair --level full"]


def test_a_part_of_a_plan_is_named_by_code_and_path() -> None:
    """What is left out of a kind has the others named, each for a shell."""
    one, other = step(path="chunked/a b.md"), step(path="chunked/c.md")
    made = plan(one, other)
    assert commands(made, {one.key}, is_whole=True) == [
        "repair --only modified --path 'chunked/a b.md'"
    ]
    assert commands(made, {one.key, other.key}, is_whole=False) == [
        "repair --only modified --path 'chunked/a b.md' chunked/c.md"
    ]
    assert commands(made, (), is_whole=True) == []


def test_a_whole_code_is_named_by_it_however_many_files_it_has() -> None:
    """Whoever marked all findings of a code gets a command with the code, not with every name."""
    steps = [step(path=f"chunked/{number}.md") for number in range(2_000)]
    made = plan(*steps, step("forget", "chunked/x.md", codes=("missing",)))
    keys = {one.key for one in steps}
    found = commands(made, keys, is_whole=False, whole=["modified"])
    assert found == ["repair --only modified"]
    mixed = plan(*steps, step("index", "chunked/x.md", codes=("modified", "untracked")))
    assert commands(mixed, keys, is_whole=True) != ["repair --only modified"]


def test_many_files_are_named_in_commands_that_a_shell_runs() -> None:
    """What one command line cannot hold is in several, and every word of them is an argument."""
    steps = [step(path=f"chunked/{number}.md") for number in range(1_200)]
    found = commands(plan(*steps), {one.key for one in steps[1:]}, is_whole=True)
    named = [word for one in found for word in shlex.split(one.partition("--path ")[2])]
    assert named == [one.path for one in steps[1:]]
    assert all(one.startswith("repair --only modified --path ") for one in found)


def test_more_files_than_anybody_pastes_have_no_command_line() -> None:
    """A command line is right, or there is none."""
    steps = [step(path=f"chunked/{number:099}.md") for number in range(12_000)]
    assert commands(plan(*steps), {one.key for one in steps[1:]}, is_whole=True) == []


def test_what_writes_files_says_so_in_the_command() -> None:
    """A command that writes files has --write-files; a side is chosen by its own option."""
    bad = step("restore", "chunked/b.md", codes=("bit-rot",))
    side = step("resolve-theirs", "chunked/c.md", codes=("ingest-conflict",))
    copy = step("remove-duplicate", "chunked/d.md", codes=("duplicate",))
    made = plan(bad, side, copy, level="full")
    assert commands(made, {one.key for one in made.steps}, is_whole=True) == [
        "repair --theirs chunked/c.md --remove chunked/d.md",
        "repair --only bit-rot --write-files --level full",
    ]


def test_what_is_applied_has_leave_only_where_a_file_is_written() -> None:
    """The chosen part of a plan may write files only if one of its steps does."""
    safe, truth = step(), step("relink", "chunked/c.md", codes=("link-dangling",))
    made = plan(safe, truth)
    assert chosen_of(made, {safe.key}).plan.policy.truth is False
    both = chosen_of(made, {safe.key, truth.key})
    assert both.plan.policy.truth is True
    assert both.plan.doable == (safe, truth)


def test_marked_findings_are_planned_by_their_codes() -> None:
    """What is mended only where it is named is named by marking it."""
    marked = [Finding(code="source-missing", path="source/a.pdf")]
    request = request_for(marked, None)
    assert request.policy.only == {"source-missing"}
    assert not request.is_whole
    assert request.about == "1 finding"
    assert request_for(None, None).is_whole
    assert request_for(None, Policy(ours=("chunked/a.md",))).about == "chunked/a.md"


# What was done


def report(**more: Any) -> RepairReport:
    fields: dict[str, Any] = {"applied": (), "skipped": (), "remaining": (), "undo": ""} | more
    fields |= {"not_checked": ()}
    return RepairReport(plan=plan(), **fields)


def test_a_report_tells_what_was_skipped_and_why() -> None:
    """A step that moved on is named with its reason, and nothing is told twice."""
    one = step()
    said = words(
        report_lines(
            report(
                applied=(one,),
                skipped=((one, "chunked/a.md: it changed since"), (one, "nothing to do")),
                undo="000007",
                embedded=2,
            )
        )
    )
    assert "applied 1 step" in said
    assert "  chunked/a.md: it changed since" in said
    assert "  chunked/a.md: nothing to do" in said
    assert "filestore undo 000007" in said
    assert "embedded 2 passages" in said
    assert "nothing is left that needs you" in said


def test_a_report_names_the_command_of_git_that_follows() -> None:
    """Of each file whose side was taken; a plain step has none."""
    sided = step(detail="ours (main) in lines 2-6; then: git add chunked/a.md")
    said = words(report_lines(report(applied=(sided, step()))))
    assert "next:\n  git add chunked/a.md\n" in f"{said}\n"
    assert "next:" not in words(report_lines(report(applied=(step(),))))


def test_what_remains_is_counted_by_code() -> None:
    """Notes are no matter; everything else is counted with what helps."""
    remaining = [
        Finding(code=code, path=f"chunked/{code}.md") for code in sorted(codes_where(excluded=True))
    ]
    said = words(report_lines(report(remaining=tuple(remaining))))
    matters = [one for one in remaining if one.severity != "I"]
    assert f"{len(matters)} findings left" in said
    assert "error malformed-frontmatter: 1" in said
    assert all(one in matters or one.code not in said for one in remaining)


# Changes


def version(digest: str) -> Version:
    return Version(digest=digest.encode(), mode=0o644)


def batch(identifier: str, *entries: ChangedFile, **more: Any) -> Batch:
    return Batch(identifier=identifier, what="repair", made_s=0, entries=entries, **more)


CAME = ChangedFile(path="chunked/came.md", before=None, after=version("new"))
WENT = ChangedFile(path="chunked/went.md", before=version("old"), after=None)
CHANGED = ChangedFile(path="chunked/changed.md", before=version("old"), after=version("new"))


def test_undo_says_what_becomes_of_each_file() -> None:
    """What a change made goes, what it removed comes back, what it wrote is as before."""
    group = Group(batches=(batch("000001", CAME, WENT, CHANGED),))
    assert file_changes(group, "before") == [
        ("chunked/came.md", "goes"),
        ("chunked/changed.md", "changes"),
        ("chunked/went.md", "comes back"),
    ]
    assert [fate for _, fate in file_changes(group, "after")].count("goes") == 1
    assert undo_scope(group, "before") == (
        "undo 000001: changes 1 file back, restores 1 file, removes 1 file"
    )
    assert undo_scope(group, "after").startswith("redo 000001: changes 1 file again, ")
    broken = Group(batches=(replace(batch("000001", CAME, CHANGED), underway=True),))
    assert undo_scope(broken, "before") == (
        "undo 000001: changes up to 1 file back, removes up to 1 file"
    )


def test_what_an_undo_did_is_counted_by_kind() -> None:
    """Files that were removed are not said to be put back, and what is to be done next is said."""
    done = UndoResult(
        identifier="000001",
        what="repair",
        paths=("chunked/a.md", "chunked/b.md"),
        embedded=0,
        reused=0,
        problem=None,
        removed=2,
        differing=("chunked/a.md", "chunked/b.md"),
    )
    said = words(undo_lines(done, side="before"))
    assert "2 files removed" in said
    assert "back" not in said.replace("changed back", "")
    assert "restored 2 files as before the repair: Verify shows what to do" in said
    again = replace(done, removed=0, changed=1, brought_back=1, differing=())
    assert "1 file changed again, 1 file restored" in words(undo_lines(again, side="after"))


def test_the_list_of_changes_says_where_each_stands() -> None:
    """Number, command, files and state are on the row; the files below."""
    undone = Group(batches=(batch("000002", CHANGED, wanted="before"),))
    assert undone.state == "undone"
    assert "000002" in words([batch_line(undone)])
    assert "undone" in words([batch_line(undone)])
    assert "U redoes it" in words(batch_lines(undone))
    assert "by you " in words([batch_line(undone)])
    program = replace(undone.batches[0], by="cursor\n000003  by you")
    shown = words([batch_line(Group(batches=(program,)))])
    assert "by “cursor\\x0a000003  by you”" in shown
    assert "+new" in words(batch_lines(undone, "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new"))
    damaged = Group(batches=(batch("000003", problem="no JSON"),))
    assert "no JSON" in words(batch_lines(damaged))


# Progress


@pytest.mark.parametrize(
    ("done", "total", "bar"), [(0, 4, "[....]"), (2, 4, "[##..]"), (9, 4, "[####]")]
)
def test_a_bar_is_as_full_as_the_work_is_done(done: int, total: int, bar: str) -> None:
    """Half of the work is half of the bar; more than all is all of it."""
    drawn = progress_line("", done=done, total=total, elapsed_s=0, width=4)
    assert words([drawn]).startswith(bar)


def test_progress_says_rate_and_time_left() -> None:
    """Who waits sees how fast it goes and how long it takes; not before that is known."""
    said = words([progress_line("indexing", done=30, total=90, elapsed_s=10)])
    assert said.endswith("indexing  30/90  3/s  20 s left")
    assert "left" not in words([progress_line("indexing", done=1, total=90, elapsed_s=0.1)])
    assert words([progress_line("", done=0, total=None, elapsed_s=5)]) == "beginning"
