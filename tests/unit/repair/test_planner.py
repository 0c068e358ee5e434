"""Findings into steps: pure values, no store."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filestore.core.codes import CODES, codes_where
from filestore.core.findings import Finding
from filestore.core.paths import DOCUMENTS, StorePath, is_below
from filestore.repair.plan import (
    ABSENT,
    KINDS,
    Plan,
    Policy,
    State,
    Step,
    moved_on,
    selected,
    without,
)
from filestore.repair.planner import Inspection, Look, Restorable, make

PATH = "chunked/notes.md/chunk1.md"
HERE = State(stat=(9, 1, 1, 1, 33188), hash="aa")


def facts(**changes: Any) -> Inspection:
    return Inspection(identity="store", generation=3, **changes)


def planned(*findings: Finding, policy: Policy | None = None, **changes: Any) -> Plan:
    return make(findings, facts(**changes), policy or Policy(), level="fast")


def kinds(plan: Plan) -> list[str]:
    return [step.kind for step in plan.steps]


def restorable(**changes: Any) -> dict[str, Restorable]:
    held: dict[str, Any] = {
        "place": "git",
        "hash": "bb",
        "size_bytes": 5,
        "diff": "+words",
    } | changes
    return {PATH: Restorable(**held)}


def changed(kind: str, path: str = PATH, **what: Any) -> Step:
    return Step(kind=kind, path=StorePath(path), codes=(), **what)


SAFE = sorted(code for code, meant in CODES.items() if meant.safe)
UNSAFE = sorted(code for code, meant in CODES.items() if not meant.safe)


@pytest.mark.parametrize("code", SAFE)
def test_every_safe_finding_has_a_step(code: str) -> None:
    """What `sync` would mend is planned as a step that writes no file."""
    plan = planned(Finding(code=code, path=PATH))
    (step,) = plan.steps
    assert step.codes == (code,)
    assert not step.truth
    assert plan.left == ()
    assert plan.doable == plan.steps


@pytest.mark.parametrize("code", UNSAFE)
def test_every_other_finding_is_left_without_facts(code: str) -> None:
    """Where nothing is known that could help, a person is told, unless it is a mere note."""
    plan = planned(Finding(code=code, path=PATH), policy=Policy(truth=True))
    assert plan.steps == ()
    assert [left.finding.code for left in plan.left] == ([code] if _matters(code) else [])
    assert all(left.reason for left in plan.left)


def _matters(code: str) -> bool:
    return CODES[code].severity != "I"


def test_a_missing_file_is_forgotten_or_restored() -> None:
    """Without leave to write it is forgotten, with it restored, where it can be."""
    missing = Finding(code="missing", path=PATH)
    assert kinds(planned(missing, restorable=restorable())) == ["forget"]
    writing = Policy(truth=True)
    (step,) = planned(missing, policy=writing, restorable=restorable()).steps
    assert (step.kind, step.place, step.hash, step.diff) == ("restore", "git", "bb", "+words")
    assert step.seen == {PATH: ABSENT}
    (step,) = planned(missing, policy=writing).steps
    assert step.kind == "forget"
    assert "no copy of it is kept" in step.detail


def test_a_mass_comes_back_whole_or_not_at_all() -> None:
    """One file of a mass that cannot be restored leaves all of it to a person."""
    mass, other = Finding(code="mass-missing", path="chunked"), "chunked/other.md"
    writing = Policy(truth=True)
    plan = planned(mass, policy=writing, gone=(PATH,), restorable=restorable())
    assert kinds(plan) == ["restore"]
    plan = planned(mass, policy=writing, gone=(PATH, other), restorable=restorable())
    assert plan.steps == ()
    assert len(plan.left) == 1
    assert planned(mass, gone=(PATH,), restorable=restorable()).steps == ()


def test_rot_waits_for_leave_to_write() -> None:
    """The step is planned, and said to need leave; bytes that differ are said to."""
    rotten = Finding(code="bit-rot", path=PATH)
    plan = planned(rotten, restorable=restorable(differs=True), looks={PATH: Look(state=HERE)})
    (step,) = plan.steps
    assert plan.doable == ()
    assert step.seen == {PATH: HERE}
    assert "differs from what was recorded last" in step.detail
    assert planned(rotten, policy=Policy(truth=True), restorable=restorable()).doable


@pytest.mark.parametrize("code", sorted(codes_where(excluded=True)))
def test_a_file_is_excluded_once(code: str) -> None:
    """An unusable file that the catalog does not know as such yet is a step, and left as well."""
    finding = Finding(code=code, path=PATH)
    fresh = planned(finding, looks={PATH: Look(state=HERE)})
    assert kinds(fresh) == ["withhold"]
    known = planned(finding, looks={PATH: Look(state=HERE, recorded=True)})
    assert known.steps == ()
    expected = [code] if _matters(code) else []
    assert [left.finding.code for left in fresh.left] == expected
    assert [left.finding.code for left in known.left] == expected


def test_a_record_comes_back_instead_of_being_withheld() -> None:
    """With leave to write, a usable text of the record makes any other step needless."""
    finding = Finding(code="record-invalid", path=PATH)
    given_facts: dict[str, Any] = {
        "looks": {PATH: Look(state=HERE)},
        "restorable": restorable(),
    }
    assert kinds(planned(finding, **given_facts)) == ["restore", "withhold"]
    plan = planned(finding, policy=Policy(truth=True), **given_facts)
    assert kinds(plan) == ["restore"]
    assert plan.left == ()


@pytest.mark.parametrize(
    ("code", "kind"), [("source-missing", "remove"), ("chunker-changed", "reingest")]
)
def test_costly_repairs_are_asked_for_by_name(code: str, kind: str) -> None:
    """What removes, or cuts everything anew, is planned only where its code was named."""
    finding = Finding(code=code, path="../notes.md")
    prepared = {
        (kind, "../notes.md"): changed(
            kind, "../notes.md", seen={"../notes.md": ABSENT}, detail="3 files"
        )
    }
    assert planned(finding, policy=Policy(truth=True), prepared=prepared).steps == ()
    named = Policy(truth=True, only=frozenset({code}))
    (step,) = planned(finding, policy=named, prepared=prepared).steps
    assert (step.kind, step.detail) == (kind, "3 files")


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_choice_resolves_its_conflict_alone(choice: str) -> None:
    """A named file needs no more leave, and nothing else is planned beside it."""
    policy = Policy(ours=(PATH,)) if choice == "ours" else Policy(theirs=(PATH,))
    conflict = Finding(code="ingest-conflict", path=PATH)
    other = Finding(code="modified", path="chunked/other.md")
    prepared = {(f"resolve-{choice}", PATH): changed(f"resolve-{choice}", seen={PATH: HERE})}
    plan = planned(conflict, other, policy=policy, prepared=prepared)
    assert kinds(plan) == [f"resolve-{choice}"]
    assert plan.doable == plan.steps
    assert planned(conflict, prepared=prepared).steps == ()


@pytest.mark.parametrize("truth", [False, True])
def test_what_is_written_anew_is_not_indexed_twice(truth: bool) -> None:
    """A file that a step writes gets no step of the index beside it, unless it needs more leave."""
    look = Look(state=HERE, keys=(b"edit",))
    for code, kind in (("ingest-conflict", "resolve-theirs"), ("link-dangling", "relink")):
        found = [Finding(code="modified", path=PATH), Finding(code=code, path=PATH)]
        plan = planned(
            *found,
            policy=Policy(truth=truth, theirs=(PATH,)),
            looks={PATH: look},
            prepared={
                (kind, PATH): changed(
                    kind, seen={PATH: HERE}, wanted=frozenset([b"new"]), diff="-edit"
                )
            },
        )
        if kind == "relink" and not truth:
            assert kinds(plan) == ["relink", "reindex"]
            continue
        (step,) = plan.steps
        assert (step.kind, step.diff, plan.texts) == (kind, "-edit", 1)
        assert set(step.codes) == {"modified", code}


def test_a_change_that_broke_off_is_never_collected() -> None:
    """What `undo` goes on with is no litter of the sidecar."""
    assert planned(Finding(code="leftovers", path=".undo/000001")).steps == ()
    assert kinds(planned(Finding(code="leftovers", path="chunked/x"))) == ["collect"]


def test_a_reason_of_its_own_goes_before_that_of_the_code() -> None:
    """What is left is told with what is known of just this finding."""
    finding = Finding(code="model-changed", path="filestore.toml")
    plan = planned(finding, reasons={("model-changed", "filestore.toml"): "it embeds 3 texts"})
    assert [left.reason for left in plan.left] == ["it embeds 3 texts"]


def test_what_cannot_be_prepared_is_left_with_the_reason() -> None:
    """A link whose target went nobody knows where stays, and the reason is told."""
    prepared = {("relink", PATH): "nobody knows"}
    plan = planned(Finding(code="link-dangling", path=PATH), prepared=prepared)
    assert plan.steps == ()
    assert [left.reason for left in plan.left] == ["nobody knows"]


def test_findings_of_a_part_are_one_step() -> None:
    """Three hundred texts with a wrong vector are embedded in one go, each counted once."""
    found = [Finding(code="vector-invalid", path=f"chunked/{number}.md") for number in range(300)]
    keys = tuple(bytes([number]) for number in range(100))
    plan = planned(*found, unembedded=keys, embedded=frozenset(keys[:30]))
    (step,) = plan.steps
    assert (step.path, step.findings) == (".sidecar/embeddings.sqlite", 300)
    assert (plan.texts, plan.known) == (step.texts, step.known) == (70, 30)


def test_a_new_catalog_embeds_along() -> None:
    """Where all files are indexed anew, texts without a vector are no step of their own."""
    plan = planned(
        Finding(code="catalog-damaged", path=".sidecar/catalog.sqlite"),
        Finding(code="vector-pending", path=".sidecar/embeddings.sqlite"),
        all_keys=(b"a", b"b"),
        embedded=frozenset({b"a"}),
    )
    assert kinds(plan) == ["rebuild-catalog"]
    assert (plan.texts, plan.known) == (1, 1)


def test_texts_are_counted_once() -> None:
    """Two files with the same text cost one embedding."""
    looks = {
        path: Look(state=HERE, keys=(b"same", path.encode()))
        for path in ("chunked/a.md", "chunked/b.md")
    }
    found = [Finding(code="untracked", path=path) for path in looks]
    plan = planned(*found, looks=looks, embedded=frozenset({b"chunked/a.md"}))
    assert [step.texts for step in plan.steps] == [1, 2]
    assert (plan.texts, plan.known) == (2, 1)


def test_steps_come_in_the_order_of_their_kinds() -> None:
    """Files are written before the sidecar follows, and neighbours stand together."""
    found = [
        Finding(code="modified", path="chunked/b.md"),
        Finding(code="fulltext-missing", path=".sidecar/fulltext"),
        Finding(code="modified", path="chunked/a.md"),
        Finding(code="missing", path=PATH),
    ]
    plan = planned(*found, policy=Policy(truth=True), restorable=restorable())
    assert kinds(plan) == ["restore", "reindex", "reindex", "rebuild-fulltext"]
    assert [step.path for step in plan.steps[1:3]] == ["chunked/a.md", "chunked/b.md"]


CODE = st.sampled_from(sorted(CODES))
PLACE = st.sampled_from([PATH, "chunked/a.md", "chunked/b/c.md", ".sidecar", "../notes.md"])
FINDINGS = st.lists(st.builds(Finding, code=CODE, path=PLACE), max_size=8)
POLICY = st.builds(
    Policy,
    truth=st.booleans(),
    only=st.frozensets(CODE, max_size=3),
    paths=st.lists(PLACE, max_size=2).map(tuple),
)


@given(found=FINDINGS, policy=POLICY, has_bytes=st.booleans())
def test_every_finding_is_mended_or_left(
    found: list[Finding], policy: Policy, has_bytes: bool
) -> None:
    """Nothing that matters and was chosen drops out of a plan; nothing not chosen gets in."""
    rotten = {finding.path for finding in found if finding.code == "bit-rot"}
    # A file that is gone has no content that rots.
    found = [one for one in found if one.code != "missing" or one.path not in rotten]
    plan = planned(*found, policy=policy, restorable=restorable() if has_bytes else {})
    chosen = {finding.code for finding in found if policy.concerns(finding)}
    told = {code for step in plan.steps for code in step.codes}
    told |= {left.finding.code for left in plan.left}
    mattering = {code for code in chosen if _matters(code)}
    # A new catalog embeds what has no vector; of a mass, nothing may be below the paths that are
    # named (these facts know of no file that is gone).
    elsewhere = {"mass-missing"} if policy.paths else set()
    assert mattering - told <= {"vector-pending", "vector-invalid", "beside-behind"} | elsewhere
    assert told <= chosen
    keys = [step.key for step in plan.steps]
    assert len(keys) == len(set(keys))
    assert policy.truth or not any(step.truth for step in plan.doable)


KEYS = (b"a", b"b", b"c", b"d")
LOOKS = st.dictionaries(
    st.sampled_from([PATH, "chunked/a.md", "chunked/b/c.md"]),
    st.builds(Look, state=st.just(HERE), keys=st.lists(st.sampled_from(KEYS)).map(tuple)),
)
FACTS = st.fixed_dictionaries(
    {
        "looks": LOOKS,
        "unembedded": st.lists(st.sampled_from(KEYS), max_size=2).map(tuple),
        "all_keys": st.just(KEYS),
        "embedded": st.frozensets(st.sampled_from(KEYS)),
        "restorable": st.sampled_from([{}, restorable()]),
    }
)


def identity(plan: Plan) -> set[tuple[str, str, str]]:
    return {step.key for step in plan.steps}


@given(found=FINDINGS, policy=POLICY, known=FACTS)
def test_all_findings_select_the_plan(
    found: list[Finding], policy: Policy, known: dict[str, Any]
) -> None:
    """Whoever marks everything gets the whole plan; whoever marks nothing gets no step."""
    plan = planned(*found, policy=policy, **known)
    assert selected(plan, found) == plan
    nothing = selected(plan, [])
    assert (nothing.steps, nothing.left, nothing.texts, nothing.known) == ((), (), 0, 0)


@given(found=FINDINGS, policy=POLICY, known=FACTS, data=st.data())
def test_a_selection_is_what_would_be_planned_for_it(
    found: list[Finding], policy: Policy, known: dict[str, Any], data: st.DataObject
) -> None:
    """Part of a plan costs what its steps cost, and mends each chosen finding that all of it does.

    Two selections together are the selection of both.
    """
    plan = planned(*found, policy=policy, **known)
    some = data.draw(st.lists(st.sampled_from(found))) if found else []
    part = selected(plan, some)
    assert part.steps == tuple(step for step in plan.steps if step.key in identity(part))
    keys = frozenset[bytes]().union(*(step.wanted | step.had for step in part.steps))
    assert (part.texts, part.known) == (
        len(keys - known["embedded"]),
        len(keys & known["embedded"]),
    )
    mended = {(code, step.path) for step in plan.steps for code in step.codes if not step.part}
    for finding in some:
        if (finding.code, finding.path) in mended:
            assert (finding.code, finding.path) in {
                (code, step.path) for step in part.steps for code in step.codes
            }
    rest = selected(plan, [one for one in found if one not in some])
    assert identity(part) | identity(rest) == identity(plan)


@given(found=FINDINGS, policy=POLICY, known=FACTS, data=st.data())
def test_a_plan_without_steps(
    found: list[Finding], policy: Policy, known: dict[str, Any], data: st.DataObject
) -> None:
    """The steps that are dropped are gone and all others are there, in their order."""
    plan = planned(*found, policy=policy, **known)
    dropped = data.draw(
        st.frozensets(st.sampled_from([step.key for step in plan.steps] or [("", "", "")]))
    )
    part = without(plan, dropped)
    assert part.steps == tuple(step for step in plan.steps if step.key not in dropped)
    assert without(plan, []) == plan
    assert without(plan, identity(plan)).texts == 0
    assert without(part, dropped) == part


def test_without_a_catalog_every_step_needs_one() -> None:
    """Where the catalog is made anew, no file is followed without that."""
    found = [
        Finding(code="catalog-missing", path=".sidecar/catalog.sqlite"),
        Finding(code="empty", path=PATH),
    ]
    known = Inspection(identity="", generation=0, looks={PATH: Look(state=HERE)})
    plan = make(found, known, Policy(), level="fast")
    assert sorted(kinds(plan)) == ["rebuild-catalog", "withhold"]
    assert kinds(selected(plan, found[1:])) == kinds(plan)
    assert kinds(selected(plan, found[:1])) == ["rebuild-catalog"]
    assert without(plan, [("rebuild-catalog", ".sidecar/catalog.sqlite", "")]).steps == ()


def test_one_of_a_mass_selects_all_of_it() -> None:
    """What is one finding of many files is mended in all of them."""
    mass, other = (
        Finding(code="mass-missing", path="chunked"),
        Finding(code="empty", path="chunked/x"),
    )
    plan = planned(
        mass,
        other,
        policy=Policy(truth=True),
        gone=(PATH,),
        restorable=restorable(),
        looks={"chunked/x": Look(state=HERE)},
    )
    assert kinds(selected(plan, [mass])) == ["restore"]
    assert kinds(selected(plan, [other])) == ["withhold"]
    assert [left.finding for left in selected(plan, [other]).left] == [other]


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_side_is_taken_where_it_was_named(side: str) -> None:
    """A named file needs no more leave to take a side; what stands in the way is told."""
    policy = Policy(ours=(PATH,)) if side == "ours" else Policy(theirs=(PATH,))
    marked = Finding(code="conflict-markers", path=PATH)
    looks = {PATH: Look(state=HERE)}
    prepared = {
        (f"take-{side}", PATH): changed(f"take-{side}", seen={PATH: HERE}, wanted=frozenset([b"a"]))
    }
    plan = planned(marked, policy=policy, prepared=prepared, looks=looks)
    assert kinds(plan) == [f"take-{side}"]
    assert plan.doable == plan.steps
    assert plan.left == ()
    assert kinds(planned(marked, prepared=prepared, looks=looks)) == ["withhold"]
    broken = {(f"take-{side}", PATH): "a mark is missing"}
    plan = planned(marked, policy=policy, prepared=broken, looks=looks)
    assert kinds(plan) == ["withhold"]
    assert [left.reason for left in plan.left] == ["a mark is missing"]


def test_a_copy_goes_where_it_was_named() -> None:
    """A named copy is removed whether or not it is told of, and whatever else it has ends there."""
    policy, twin = Policy(remove=(PATH,)), "chunked/twin.md"
    prepared = {
        ("remove-duplicate", PATH): changed(
            "remove-duplicate", seen={PATH: HERE, twin: HERE}, other=twin, diff="-x"
        )
    }
    modified = Finding(code="modified", path=PATH)
    plan = planned(modified, policy=policy, prepared=prepared, looks={PATH: Look(state=HERE)})
    (step,) = plan.doable
    assert (step.kind, step.other, step.codes) == (
        "remove-duplicate",
        twin,
        ("duplicate", "modified"),
    )
    for told in ({"path": PATH, "other": twin}, {"path": twin, "other": PATH}):
        assert selected(plan, [Finding(code="duplicate", **told)]).steps == plan.steps
    refused = {("remove-duplicate", PATH): "no other file"}
    plan = planned(policy=policy, prepared=refused)
    assert plan.steps == ()
    assert [left.reason for left in plan.left] == ["no other file"]


STATE = st.builds(
    State,
    stat=st.none() | st.tuples(*[st.integers(0, 2**40)] * 5),
    hash=st.sampled_from(["", "aa", "bb"]),
)


def test_a_part_of_an_in_place_store_is_named_as_it_lies() -> None:
    """The plan of a derived part leads to `.filestore/`."""
    plan = planned(Finding(code="fulltext-missing", path=".filestore/fulltext"), tree=DOCUMENTS)
    assert [step.path for step in plan.steps] == [".filestore/fulltext"]


@pytest.mark.parametrize("code", sorted(CODES))
def test_no_step_writes_a_document_but_its_links(code: str) -> None:
    """Whatever is found in place, and whatever a person allows, nothing else is planned."""
    path = StorePath("notes/a.md")
    kinds_of_truth = {(kind, path): changed(kind, path) for kind, meant in KINDS.items()}
    kept = Restorable(place="git", hash="bb", size_bytes=5, diff="+words")
    policy = Policy(truth=True, only=frozenset([code]), lost=(path,), remove=(path,))
    changes: dict[str, Any] = {"prepared": kinds_of_truth, "restorable": {path: kept}}
    plan = planned(Finding(code=code, path=path), policy=policy, tree=DOCUMENTS, **changes)
    wanted = ["relink"] if code == "link-dangling" else []
    assert [step.kind for step in plan.steps if step.truth] == wanted


@pytest.mark.parametrize("code", ["mass-missing", "bit-rot"])
def test_what_only_a_person_repairs_in_place_is_said_so(code: str) -> None:
    """The way out names no command that would refuse."""
    policy = Policy(truth=True)
    (left,) = planned(Finding(code=code, path="a.md"), policy=policy, tree=DOCUMENTS).left
    assert "--write-files" not in left.reason
    assert "'filestore sync" in left.reason


@given(planned_on=STATE, now=STATE)
def test_a_state_holds_by_content_first(planned_on: State, now: State) -> None:
    """Equal bytes are the same file whatever their stamps; unread files go by stamps alone."""
    holds = planned_on.holds(now)
    if planned_on.hash or now.hash:
        assert holds == (planned_on.hash == now.hash)
    else:
        assert holds == (planned_on.stat == now.stat)
    if not holds:
        assert moved_on(PATH, planned_on, now)


def test_below() -> None:
    """A folder holds what is below it, and not what only begins like it."""
    assert is_below("chunked/a/b.md", "chunked/a")
    assert is_below("chunked/a", "chunked/a")
    assert not is_below("chunked/ab.md", "chunked/a")
