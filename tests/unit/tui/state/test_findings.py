"""What the inspector knows of findings, and the list of them, against simpler ways to tell."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore import CODES, Finding, UsageError
from filestore.core.paths import DOCUMENTS
from tui.formatting import plain
from tui.formatting.findings import Coverage
from tui.state.findings import FindingIndex, Findings, by_stats, key_of
from tui.state.lists import MOST_OPEN, ORDERS, SEVERITIES, Filter, FindingRows

CODES_USED = ("modified", "missing", "hand-edited", "untracked", "vector-missing", "duplicate")
PATHS = (
    "chunked/guide.md/chunk1.md",
    "chunked/guide.md/chunk2.md",
    "chunked/guide.md/meta.json",
    "chunked/reports/2024.pdf/chunk1.md",
    "chunked/reports/2025.pdf/chunk1.md",
    "chunked/loose.md",
    "filestore.toml",
    "",
)
found = st.builds(
    Finding,
    code=st.sampled_from(CODES_USED),
    path=st.sampled_from(PATHS),
    detail=st.sampled_from(("", "Budget", "a draft")),
    other=st.sampled_from(("", "chunked/loose.md")),
)
several = st.lists(found, max_size=12)
FULL = Coverage(level="full", at="14:03")


def severities(findings):
    """How many of each severity, counted one by one."""
    return {letter: sum(one.severity == letter for one in findings) for letter in "EWI"}


def distinct(*lists):
    """Findings of several lists, each once, in the order in which they came."""
    return list({key_of(one): one for listed in lists for one in listed}.values())


def agree(known, expected):
    """Every way to ask tells the same as a plain list of findings."""
    assert sorted(known) == sorted(expected)
    assert len(known) == len(expected)
    assert known.index.severities == severities(expected)
    assert known.by_code() == {
        code: sum(one.code == code for one in expected) for code in {one.code for one in expected}
    }
    for path in PATHS:
        assert sorted(known.index.of_path(path)) == sorted(
            one for one in expected if one.path == path
        )
    for resource in ("guide.md", "reports", "reports/2024.pdf", "nothing"):
        below = [one for one in expected if one.path.startswith(f"chunked/{resource}/")]
        assert known.index.of_resource(resource) == severities(below)
    loose = [one for one in expected if one.path.rpartition("/")[0] == "chunked"]
    assert known.index.of_resource("") == severities(loose)


steps = st.one_of(
    st.tuples(st.just("add"), several),
    st.tuples(st.just("replace"), several),
    st.tuples(st.just("look"), several, st.sets(st.sampled_from(PATHS[:5]), max_size=3)),
)


@given(st.lists(steps, max_size=6))
def test_counts_and_paths_follow_every_change(changes):
    """Whatever comes and goes, counts by severity, code, file and resource are those of a list."""
    known, expected = Findings(), []
    for step in changes:
        before = known.version
        if step[0] == "add":
            known.add(step[1])
            expected = distinct(expected, step[1])
        elif step[0] == "replace":
            known.replace(step[1], FULL, clean=not step[1])
            expected = distinct(step[1])
        else:
            told = [one for one in step[1] if one.path in step[2]]
            known.replace_of(step[2], told)
            kept = [
                one
                for one in expected
                if one.path not in step[2] or one.code in ("vector-missing", "duplicate")
            ]
            expected = distinct(kept, told)
        assert known.version > before
        agree(known, expected)


@given(several, st.lists(several, max_size=3), several)
def test_a_run_keeps_what_was_known_until_it_ends(before, told, whole):
    """During a run old findings stay, quiet until told anew; at the end only the result stays."""
    known = Findings()
    known.add(before)
    known.begin("full")
    assert known.coverage.is_running
    for batch in told:
        known.add(batch)
    so_far = distinct(*told)
    assert sorted(known) == sorted(distinct(before, so_far))
    for one in known:
        assert known.is_from_before(key_of(one)) == (one not in so_far)
    known.replace(whole, FULL, clean=False)
    assert sorted(known) == sorted(distinct(whole))
    assert not any(known.is_from_before(key_of(one)) for one in known)


def test_a_stopped_run_keeps_everything_and_says_so():
    """Stopping loses nothing, old or new, and what is known is then not passed off as all."""
    known = Findings()
    known.add([Finding(code="missing", path=PATHS[0])])
    known.begin("deep")
    known.add([Finding(code="modified", path=PATHS[1])])
    known.stop(at="15:00", why="the rest")
    assert len(known) == 2
    assert known.coverage == Coverage(
        level="deep", at="15:00", not_checked=("the rest",), was_stopped=True
    )


@given(several, several)
def test_marks_stay_with_what_stays(before, after):
    """After a new truth exactly those are marked that were marked and are still there."""
    known = Findings()
    known.add(before)
    known.marked.update(map(key_of, before))
    known.replace(after, FULL, clean=False)
    assert known.marked == set(map(key_of, before)) & set(map(key_of, after))
    marked = known.marked_findings()
    assert sorted(marked) == sorted(distinct([one for one in before if one in after]))
    ranks = ["EWI".index(one.severity) for one in marked]
    assert ranks == sorted(ranks)


def test_two_findings_that_differ_in_their_detail_are_two():
    """Two dangling links of one file are two findings, not one."""
    known = Findings()
    known.add(
        [
            Finding(code="link-dangling", path=PATHS[0], detail="links to a"),
            Finding(code="link-dangling", path=PATHS[0], detail="links to b"),
        ]
    )
    assert len(known.index.of_path(PATHS[0])) == 2


def test_looking_at_a_folder_takes_back_what_was_found_below():
    """A folder that was looked at alone stands for every file below it, and for no other."""
    known = Findings()
    known.add(Finding(code="modified", path=path) for path in PATHS)
    known.replace_of(["chunked/reports"], [])
    assert {one.path for one in known} == {path for path in PATHS if "reports" not in path}


def test_a_verification_that_was_stopped_leaves_unknown_whether_all_is_clean():
    """Neither its end nor a later look at stats says clean of what was not looked at."""
    known = Findings()
    known.replace([], Coverage(level="status", at="1:00"), clean=True)
    known.begin("full")
    known.stop(at="2:00", why="the rest")
    assert known.clean is None
    known.replace_by_stats(by_stats(known, ()), Coverage(level="status", at="3:00"), clean=True)
    assert known.clean is None
    known.begin("full")
    known.replace([], Coverage(level="full", at="4:00"), clean=True)
    known.replace_by_stats(by_stats(known, ()), Coverage(level="status", at="5:00"), clean=True)
    assert known.clean


def test_files_that_were_looked_at_later_are_told_with_their_time():
    """The time of a look at some files stands beside that of the whole, until that is newer."""
    known = Findings()
    known.replace([], Coverage(level="fast", at="1:00"), clean=True)
    known.replace_of([PATHS[0]], [Finding(code="modified", path=PATHS[0])], at="2:00")
    assert (known.coverage.at, known.coverage.again) == ("1:00", "2:00")
    known.replace_by_stats(by_stats(known, ()), Coverage(level="status", at="3:00"), clean=True)
    assert (known.coverage.at, known.coverage.again) == ("3:00", "")
    known.replace([], Coverage(level="full", at="4:00"), clean=True)
    known.replace_by_stats(by_stats(known, ()), Coverage(level="status", at="5:00"), clean=True)
    # A look at stats is none at everything.
    assert (known.coverage.at, known.coverage.again) == ("4:00", "5:00")


def test_a_record_of_the_flat_layout_counts_for_its_resource():
    """There a record lies beside the chunks, and its name is the name of the resource."""
    known = Findings()
    known.add([Finding(code="record-invalid", path="chunked/guide.json")])
    assert known.index.of_resource("guide.json") == {"E": 1, "W": 0, "I": 0}


def test_findings_in_place_count_for_their_document_and_the_folders_above():
    """A document has its own name; that of a folder ends with a slash."""
    known = Findings()
    known.take_tree(DOCUMENTS)
    known.add(
        [
            Finding(code="modified", path="notes/2026/June.md"),
            Finding(code="untracked", path="notes/new.md"),
            Finding(code="catalog-damaged", path=".filestore/catalog.sqlite"),
        ]
    )
    assert known.index.of_resource("notes/") == {"E": 1, "W": 1, "I": 0}
    assert known.index.of_resource("notes/2026/") == {"E": 1, "W": 0, "I": 0}
    assert known.index.of_resource("notes/new.md") == {"E": 0, "W": 1, "I": 0}
    assert known.index.of_resource("notes/old.md") == {"E": 0, "W": 0, "I": 0}


# Rows

filters = st.builds(
    Filter,
    text=st.sampled_from(("", "!", "guide", "!GUIDE", "budget", "~chunk[12]", "!~^modified", "~")),
    severities=st.sampled_from(SEVERITIES),
    code=st.sampled_from(("", *CODES_USED)),
)


def fits(finding, shown):
    """Whether a finding passes a filter, told in the plainest way."""
    words = " ".join((finding.code, finding.path, finding.other, finding.detail)).lower()
    text = shown.text.removeprefix("!")
    pattern = text[1:] if text.startswith("~") else re.escape(text.lower())
    hit = re.search(pattern, words) is not None
    if text and hit == shown.text.startswith("!"):
        return False
    return finding.severity in shown.severities and shown.code in ("", finding.code)


def keys_of(rows):
    """The key of every row."""
    return [rows.key(index) for index in range(len(rows))]


def naive_keys(findings, shown, order, is_open):
    """What the rows have to be, made from scratch."""
    fitting = [one for one in findings if fits(one, shown)]
    if order == "path":
        return [key_of(one) for one in sorted(fitting, key=by_path)]
    if order == "severity":
        ranked = sorted(fitting, key=lambda one: ("EWI".index(one.severity), by_path(one)))
        return [key_of(one) for one in ranked]
    codes = sorted(
        {one.code for one in fitting},
        key=lambda code: ("EWI".index(CODES[code].severity), list(CODES).index(code)),
    )
    expected = []
    for code in codes:
        expected.append((code,))
        if is_open(code):
            members = [one for one in fitting if one.code == code]
            expected += [key_of(one) for one in sorted(members, key=by_path)]
    return expected


def by_path(finding):
    """The order of findings within a group."""
    return finding.path, finding.code, finding.other, finding.detail


@given(several, several, st.booleans(), filters, st.sampled_from(ORDERS))
def test_rows_worked_out_aside_are_the_same_as_those_made_at_once(
    before, after, is_replaced, shown, order
):
    """What came while rows were worked out is in them, too, at the latest after a refresh."""
    known = Findings()
    known.add(before)
    rows = FindingRows(known)
    rows.filter, rows.order = shown, order
    draft = rows.draft()
    if is_replaced:
        known.replace(FindingIndex.of(after), FULL, clean=False)
    else:
        known.add(after)
    rows.take_groups(draft())
    rows.refresh()
    expected = FindingRows(known)
    expected.filter, expected.order = shown, order
    expected.refresh()
    assert sorted(keys_of(rows)) == sorted(keys_of(expected))
    assert [rows.index_of(key) for key in keys_of(rows)] == list(range(len(rows)))
    assert rows.shown == expected.shown
    if is_replaced:
        assert keys_of(rows) == keys_of(expected)


@given(several, filters, st.sampled_from(ORDERS))
def test_a_draft_for_another_filter_or_order_is_left(listed, shown, order):
    """An answer to what is not asked any more changes nothing that is shown."""
    known = Findings()
    known.add(listed)
    rows = FindingRows(known)
    draft = rows.draft()
    rows.filter, rows.order = shown, order
    rows.refresh()
    before = keys_of(rows)
    rows.take_groups(draft())
    assert keys_of(rows) == before


def test_long_lists_are_sorted_as_short_ones_are():
    """A list that is sorted in several steps comes out in order, from whatever order it had."""
    numbers = [number * 7919 % 10_007 for number in range(10_007)]
    known = Findings()
    known.add(Finding(code="modified", path=f"chunked/{number:05}.md") for number in numbers)
    rows = FindingRows(known)
    rows.open(("modified",))
    paths = [rows.key(index)[1] for index in range(1, len(rows))]
    assert paths == sorted(paths)
    assert len(paths) == len(numbers)


@pytest.mark.parametrize(("code", "is_kept"), [("git-operation", 0), ("locked", 0), ("litter", 1)])
def test_what_went_on_before_is_not_kept(code, is_kept):
    """A merge that has ended is no finding any more; other notes stay until all is checked."""
    merged = by_stats([Finding(code=code, path="../.git")], [])
    assert len(merged.index.known) == is_kept


@pytest.mark.parametrize("order", ORDERS)
def test_a_finding_in_other_lines_is_found_by_its_file(order):
    """An edit moves the lines of a finding: the cursor stays on it, not on one of another file."""
    code = "conflict-markers"
    first, again, other = (
        Finding(code=code, path=f"chunked/{name}.md", detail=f"the markers are in line {line}")
        for name, line in (("b", 9), ("b", 21), ("c", 9))
    )
    known = Findings()
    known.add([other, again, Finding(code="modified", path="chunked/a.md")])
    rows = FindingRows(known)
    rows.order = order
    rows.refresh()
    assert rows.index_of(key_of(first)) == rows.index_of(key_of(again))
    assert rows.index_of(key_of(again)) is not None
    known.replace_of(["chunked/b.md"], [], at="")
    rows.refresh()
    assert rows.index_of(key_of(first)) is None


@given(several, filters, st.sampled_from(ORDERS), st.sets(st.sampled_from(CODES_USED)))
def test_rows_are_those_of_a_list_filtered_grouped_and_sorted(listed, shown, order, closed):
    """Rows, keys and places agree with filtering, grouping and sorting a plain list."""
    known = Findings()
    known.add(listed)
    rows = FindingRows(known)
    rows.filter, rows.order = shown, order
    rows.refresh()
    for code in closed:
        rows.close((code,))
    expected = naive_keys(known, shown, order, lambda code: code not in closed)
    assert keys_of(rows) == expected
    assert [rows.index_of(key) for key in expected] == list(range(len(expected)))
    assert rows.shown == sum(fits(one, shown) for one in known)
    for index in range(len(rows)):
        assert plain([rows.row(index)])


@given(several, st.lists(several, max_size=4), filters, st.sampled_from(ORDERS))
def test_rows_that_came_one_by_one_end_as_those_that_came_at_once(first, batches, shown, order):
    """While findings come no row changes its order; at the end they are as if made from scratch."""
    known = Findings()
    known.add(first)
    rows = FindingRows(known)
    rows.filter, rows.order = shown, order
    rows.refresh()
    known.begin("fast")
    for batch in batches:
        before = keys_of(rows)
        known.add(batch)
        rows.refresh()
        after = keys_of(rows)
        assert [key for key in after if key in set(before)] == before
        assert [rows.index_of(key) for key in after] == list(range(len(after)))
    whole = distinct(first, *batches)
    known.replace(whole, FULL, clean=False)
    rows.refresh()
    assert keys_of(rows) == naive_keys(whole, shown, order, lambda _: True)


def many(code, number):
    """Findings of one code."""
    return [Finding(code=code, path=f"chunked/a/chunk{one}.md") for one in range(number)]


def test_many_findings_begin_closed_but_nothing_closes_under_the_cursor():
    """Groups that come beyond the limit are closed; at the end all are but the one being read."""
    known = Findings()
    known.add([*many("modified", 5), *many("untracked", 5)])
    rows = FindingRows(known)
    assert len(rows) == 12
    rows.held = "untracked"
    known.begin("full")
    known.add(many("missing", MOST_OPEN))
    rows.refresh()
    assert len(rows) == 3 + 5 + 5
    assert not rows.is_open(("missing",))
    known.replace([*known], FULL, clean=False)
    rows.refresh()
    assert keys_of(rows)[:3] == [("modified",), ("missing",), ("untracked",)]
    assert len(rows) == 3 + 5
    rows.open(("missing",))
    assert len(rows) == 3 + 5 + MOST_OPEN


@given(several, st.sampled_from(ORDERS), st.sets(st.sampled_from(CODES_USED)), filters)
def test_a_group_stands_for_all_of_its_code_that_is_shown(listed, order, closed, shown):
    """A row stands for itself, a group for its findings that are shown, whether open or closed."""
    known = Findings()
    known.add(listed)
    rows = FindingRows(known)
    rows.order, rows.filter = order, shown
    rows.refresh()
    for code in closed:
        rows.close((code,))
    fitting = {key_of(one) for one in known if fits(one, shown)}
    for key in keys_of(rows):
        if len(key) == 1:
            assert set(rows.members(key)) == {one for one in fitting if one[0] == key[0]}
        else:
            assert list(rows.members(key)) == [key]
        assert key_of(rows.finding(key)) in rows.members(key)


def test_marks_are_counted_in_the_row_of_their_group():
    """The row of a group says how many of its findings are marked, also while it is closed."""
    known = Findings()
    known.add(many("modified", 3))
    rows = FindingRows(known)
    rows.close(("modified",))
    known.marked.update(rows.members(("modified",))[:2])
    rows.recount()
    assert "2 marked" in plain([rows.row(0)])
    assert rows.marked_codes() == ("modified",)


def test_half_an_expression_is_refused_in_words():
    """A regular expression that is none is an error that says so, not an empty list."""
    rows = FindingRows(Findings())
    rows.filter = Filter(text="~(")
    with pytest.raises(UsageError, match="invalid regular expression"):
        rows.refresh()


def test_a_finding_from_before_is_told_from_a_new_one():
    """What the run under way has not told is said to be from before, not shown by colour alone."""
    known = Findings()
    known.add(many("modified", 1))
    rows = FindingRows(known)
    assert "from before" not in plain([rows.row(1)])
    known.begin("full")
    assert "from before" in plain([rows.row(1)])
    known.add(many("modified", 1))
    assert "from before" not in plain([rows.row(1)])


def test_a_moved_file_counts_where_it_is_and_where_it_was() -> None:
    """Once in each of two resources, once where both places are in one; and not any more later."""
    moved = [
        Finding(code="moved", path=f"chunked/new/{name}", other=f"chunked/old/{name}")
        for name in ("chunk1.md", "chunk2.md")
    ]
    within = Finding(code="moved", path="chunked/one/b.md", other="chunked/one/a.md")
    known = Findings()
    known.add([*moved, within])
    assert [known.index.of_resource(name)["W"] for name in ("new", "old", "one")] == [2, 2, 1]
    assert known.index.severities["W"] == 3
    assert known.index.moved_to("chunked/old/chunk1.md") == "chunked/new/chunk1.md"
    assert known.index.moved_to("chunked/new/chunk1.md") == ""
    assert known.index.moved_to("chunked/old/") == "chunked/new"
    assert known.index.moved_to("chunked/new/") == ""
    assert known.index.moved_to("chunked/one/") == ""
    known.replace_of(["chunked/new/", "chunked/one/b.md"], [])
    assert [known.index.of_resource(name)["W"] for name in ("new", "old", "one")] == [0, 0, 0]


def test_numbers_in_names_sort_as_numbers():
    """chunk2 comes before chunk10 in its group, and by path."""
    paths = [f"chunked/a/chunk{number}.md" for number in (10, 2, 1, 100)]
    known = Findings()
    known.add(Finding(code="modified", path=path) for path in paths)
    rows = FindingRows(known)
    for order in ORDERS:
        rows.order = order
        rows.refresh()
        shown = [rows.key(index) for index in range(len(rows))]
        assert [key[1] for key in shown if len(key) > 1] == [paths[at] for at in (2, 1, 0, 3)]
