"""Lines for a plan: its steps, what they do to files, what is left, its command. Pure.

One rule: every number comes with what it counts; a removal is never counted as a change.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from filestore import Plan, Step
from filestore.browse import CHUNKS, KINDS, Left, shown_path
from tui.formatting import Line, Role, Span, all_quoted, arrow, count, field, line, span
from tui.formatting.findings import SEVERITY, diff_lines

CHOICES: Final[Mapping[str, str]] = {
    "resolve-ours": "--ours",
    "take-ours": "--ours",
    "resolve-theirs": "--theirs",
    "take-theirs": "--theirs",
    "take-hunks": "--hunks",
    "remove-duplicate": "--remove",
}
"""Kinds of steps that a person asks for by naming the file, with the option that names it."""
MOST_PATHS: Final = 500
"""Named in one command line."""
MOST_CHARACTERS: Final = 1_000_000
"""Of command lines; none is offered beyond that."""
PLANNING: Final = (
    line("planning …", "title"),
    line("nothing is written by that; x stops it", "quiet"),
)
"""Shown while the first plan is made."""
NO_PLAN: Final = (
    line("nothing is planned", "title"),
    line(""),
    line("p plans a repair of everything found; in Verify, p plans one of what is marked."),
    line("Nothing is written before A and a confirmation."),
    line("b shows the changes that were made, to undo and redo them."),
)
"""Shown while nothing is planned."""


def removed_by(step: Step) -> tuple[str, ...]:
    """The files of the tree that a step removes, as far as that is known before."""
    if step.kind == "remove":
        # A record that names no other document goes with this one.
        return _chunked(step, ".md") + (() if step.write_bytes else _chunked(step, ".json"))
    if step.kind == "remove-duplicate" or (step.kind == "resolve-theirs" and not step.hash):
        return (step.path,)
    return ()


def written_by(step: Step) -> tuple[str, ...]:
    """The files of the tree that a step writes or restores, as far as that is known before."""
    if step.kind == "remove":
        return _chunked(step, ".json") if step.write_bytes else ()
    if not step.truth or step.kind == "reingest" or removed_by(step):
        return ()
    return (step.path,)


def _chunked(step: Step, suffix: str) -> tuple[str, ...]:
    # ".md" for chunks, ".json" for records.
    return tuple(path for path in step.seen if CHUNKS.holds(path) and path.endswith(suffix))


def is_removal(step: Step) -> bool:
    """Whether a step removes files that no policy names: a person has to choose it."""
    return step.kind == "remove" or (bool(removed_by(step)) and not KINDS[step.kind].named)


def question_lines(steps: Sequence[Step], *, most: int) -> list[Line]:
    """The files that steps remove and write, for the last question; none for the sidecar alone.

    Args:
        steps: The chosen ones.
        most: Files named of each sort.
    """
    removed = [path for step in steps for path in removed_by(step)]
    written = [path for step in steps for path in written_by(step)]
    again = [step.path for step in steps if step.kind == "reingest"]
    # Each of the steps alone leaves a document in the record; all of them may leave none.
    shared = [path for path, number in Counter(written).items() if number > 1]
    return [
        *_named("removes", removed, most, "error"),
        *_named("writes", [path for path in written if path not in shared], most),
        *_named("writes", shared, most, "error", end=", or removes it with its last source"),
        *_named("writes", again, most, source="chunk files made from "),
    ]


def _named(
    verb: str,
    paths: Sequence[str],
    most: int,
    role: Role = "text",
    *,
    source: str = "",
    end: str = "",
) -> list[Line]:
    found = [line(f"{verb:<8}{source}{shown_path(path)}{end}", role) for path in paths[:most]]
    more = len(paths) - most
    return [*found, line(f"{verb:<8}… and {more:,} more", role)] if more > 0 else found


def scope(plan: Plan) -> str:
    """What all steps of a plan do, in one sentence; `without` makes the plan of the chosen ones."""
    written = len({path for step in plan.steps for path in written_by(step)})
    removed = len({path for step in plan.steps for path in removed_by(step)})
    # Which files of a re-ingested source change, and their texts, show only then.
    again = sum(step.kind == "reingest" for step in plan.steps)
    parts = [] if written or removed or again else ["no file of yours is touched"]
    if written:
        parts.append(f"{count(written, 'file')} written")
    if removed:
        parts.append(f"{removed:,} removed" if parts else f"{count(removed, 'file')} removed")
    if again:
        parts.append(f"{count(again, 'source')} re-ingested")
    if plan.texts or again:
        more = " and those of re-ingested sources" if again else ""
        parts.append(f"{count(plan.texts, 'passage')}{more} embedded")
    elif plan.known:
        parts.append(f"{count(plan.known, 'passage')} from cache")
    return f"{count(len(plan.steps), 'step')}: {', '.join(parts)}"


def totals_line(plan: Plan) -> Line:
    """What the chosen steps do, with bytes."""
    if not plan.steps:
        return line("no step is chosen: space chooses one, a all", "quiet")
    words = [scope(plan)]
    if plan.known and plan.texts:
        words.append(f"{plan.known:,} from cache")
    words.append(f"{sum(step.read_bytes for step in plan.steps):,} bytes read")
    write_bytes = sum(step.write_bytes for step in plan.steps)
    if write_bytes:
        words.append(f"{write_bytes:,} written")
    return line(", ".join(words), "warning" if any(map(removed_by, plan.steps)) else "text")


def plan_line(plan: Plan, *, about: str, stale: str) -> Line:
    """What a plan is of, and whether it still fits the store.

    Args:
        plan: The plan.
        about: What it was made for.
        stale: Why it may not fit any more; "" where it does.
    """
    files = "leaves files alone" if plan.policy.truth else "lets it write files"
    found = [
        span(f"plan for {about}", "title"),
        span(f"  {count(len(plan.steps), 'step')}"),
        *((span(f"  {len(plan.left):,} left for you", "warning"),) if plan.left else ()),
        span(f"  t {files}", "quiet"),
    ]
    return (
        (span(f"out of date: {stale}; r plans again  ", "warning"), *found)
        if stale
        else tuple(found)
    )


# Rows of the list


def box(chosen: int, total: int) -> str:
    """Whether all, some or none are chosen."""
    if not chosen:
        return "[ ]"
    return "[x]" if chosen == total else "[-]"


def kind_line(kind: str, *, chosen: int, total: int, is_open: bool) -> Line:
    """The row above the steps of one kind."""
    texts = KINDS[kind]
    return (
        Span(arrow(is_open=is_open), "quiet"),
        span(f"{box(chosen, total)} ", "key"),
        span(texts.title, "title"),
        span(f"  {chosen:,} of {total:,}"),
        *((span("  writes files", "warning"),) if texts.truth else ()),
    )


def step_line(step: Step, *, is_chosen: bool) -> Line:
    """The row of one step."""
    and_other = "stays in" if step.kind == "remove-duplicate" else "from"
    return (
        span("    "),
        span(f"{box(int(is_chosen), 1)} ", "key"),
        span(shown_path(step.path), keeps_end=True),
        *((span(f"  {and_other} {shown_path(step.other)}", "quiet"),) if step.other else ()),
        *((span("  removes", "error"),) if removed_by(step) else ()),
        *((span(f"  {_embeds(step)}", "quiet"),) if step.texts != 0 else ()),
    )


def left_heading(total: int, *, is_open: bool) -> Line:
    """The row above what no step repairs."""
    sign = Span(arrow(is_open=is_open), "quiet")
    return (sign, span("left for you", "title"), span(f"  {total:,}"))


def left_line(left: Left) -> Line:
    """The row of a finding that no step repairs."""
    finding = left.finding
    return (
        span(
            f"    {SEVERITY[finding.severity][1]} ",
            "error" if finding.severity == "E" else "warning",
        ),
        span(f"{finding.code}  "),
        span(shown_path(finding.path), keeps_end=True),
    )


# What is under the cursor


def step_lines(step: Step, *, number: int, total: int, model: str = "") -> list[Line]:
    """Everything about a step: what it repairs, reads, writes and embeds, and the diff of it.

    Args:
        step: The step.
        number: Which one of the plan, from 1.
        total: How many there are.
        model: What embeds; "" where nothing can.
    """
    found = [
        line(f"{KINDS[step.kind].title} {shown_path(step.path)}", "title"),
        line(f"step {number:,} of {total:,}", "quiet"),
        field("repairs", ", ".join(step.codes) or "what was forgotten"),
    ]
    found += [field("why", shown_path(step.detail))] if step.detail else []
    other = "text stays" if step.kind == "remove-duplicate" else "was at"
    found += [field(other, shown_path(step.other))] if step.other else []
    removed, written = removed_by(step), written_by(step)
    touched = [field("removes", shown_path(path), "error") for path in removed]
    size = f", {step.write_bytes:,} bytes" if step.write_bytes else ""
    touched += [field("writes", f"{shown_path(path)}{size}") for path in written]
    if step.kind == "reingest":
        touched.append(field("writes", "what the new text requires; hand edits are merged"))
    found += touched or [field("writes", "the sidecar only, no file of yours")]
    found.append(field("reads", f"{step.read_bytes:,} bytes"))
    found.append(field("embeds", _embeds(step, model)))
    if step.place:
        # Where restored bytes come from, and what identifies them.
        text = f"the {step.place.removesuffix(' text')} text"
        found.append(field("bytes from", f"git, blob {step.blob[:12]}" if step.blob else text))
        found += [field("hash", step.hash)] if step.hash else []
    found.append(line(""))
    if step.diff:
        return [*found, *diff_lines(step.diff)]
    known = "it changes no file"
    if step.truth:
        known = "the changes are known only once it is applied; undo reverts them"
    return [*found, line(f"no diff: {known}", "quiet")]


def _embeds(step: Step, model: str = "") -> str:
    if step.texts is None:
        return "known only when it is done"
    if not (step.texts or step.known):
        return "nothing"
    who = f" by {model.partition('|')[0]}" if model and step.texts else ""
    known = f", {step.known:,} from cache" if step.known else ""
    return f"{count(step.texts, 'passage')}{who}{known}"


def kind_lines(kind: str, steps: Sequence[Step], *, chosen: int) -> list[Line]:
    """All steps of one kind, summed up."""
    texts = KINDS[kind]
    written = sum(len(written_by(step)) for step in steps)
    removed = sum(len(removed_by(step)) for step in steps)
    writes = "the sidecar only"
    if texts.truth:
        gone = f", {removed:,} removed" if removed else ""
        writes = f"{count(written, 'file')}{gone}"
        writes = writes if written or removed else "files, known only when it is done"
    return [
        line(texts.title, "title"),
        line(f"{chosen:,} of {count(len(steps), 'step')} chosen", "quiet"),
        field("writes", writes),
        field("reads", f"{sum(step.read_bytes for step in steps):,} bytes"),
        field("repairs", ", ".join(dict.fromkeys(code for step in steps for code in step.codes))),
        line(""),
        line("space chooses all of them, or none; enter opens or closes the group"),
    ]


def left_lines(left: Left) -> list[Line]:
    """Why something is left, and what a person can do."""
    finding = left.finding
    return [
        line(f"left for you: {finding.code}", "title"),
        field("file", shown_path(finding.path)),
        *([field("other", shown_path(finding.other))] if finding.other else []),
        *([field("found", shown_path(finding.detail))] if finding.detail else []),
        line(""),
        line(left.reason),
    ]


# The command line that does the same


def commands(
    plan: Plan,
    chosen: Collection[tuple[str, str, str]],
    *,
    is_whole: bool,
    whole: Collection[str] = (),
) -> list[str]:
    """The command lines that apply the chosen steps of a plan, without the program's name.

    Args:
        plan: The plan.
        chosen: Keys of its steps.
        is_whole: Whether it was made of everything that was found.
        whole: Codes of which it was made of everything that was found.

    Returns:
        To be run one after the other; none where they would have to name too many files.
    """
    steps = [step for step in plan.steps if step.key in chosen]
    others = [step for step in steps if step.kind not in CHOICES]
    named: dict[str, list[str]] = {}
    for step in steps:
        if step.kind in CHOICES:
            sides = f"{','.join(step.sides)}:" if step.kind == "take-hunks" else ""
            named.setdefault(CHOICES[step.kind], []).append(sides + step.path)
    options = "".join(f" {option} {all_quoted(paths)}" for option, paths in named.items())
    found = [f"repair{options}"] if named else []
    if (
        is_whole
        and not named
        and others
        and len(others) == len(plan.doable)
        and all(map(plan.allows, others))
    ):
        truth = " --write-files" if plan.policy.truth else ""
        return [f"repair{truth}{_level(plan)}"]
    groups: dict[tuple[str, ...], list[Step]] = {}
    for step in others:
        groups.setdefault(step.codes, []).append(step)
    left = [step for step in plan.steps if step.key not in chosen]
    for codes, group in groups.items():
        writes = any(step.truth for step in group)
        # A repair of these codes would apply none of the steps that are left out.
        is_all = (
            bool(codes)
            and (is_whole or set(codes) <= set(whole))
            and all(
                set(codes).isdisjoint(step.codes) or (step.truth and not writes) for step in left
            )
        )
        only = f" --only {all_quoted(codes)}" if codes else ""
        paths = [] if is_all else list(dict.fromkeys(one.path for one in group if not one.part))
        end = f"{' --write-files' if writes else ''}{_level(plan)}"
        # No shell takes more names at once.
        parts = [paths[start : start + MOST_PATHS] for start in range(0, len(paths), MOST_PATHS)]
        named_paths = [f" --path {all_quoted(part)}" for part in parts] or [""]
        found += [f"repair{only}{some}{end}" for some in named_paths]
    return found if sum(map(len, found)) <= MOST_CHARACTERS else []


def _level(plan: Plan) -> str:
    return "" if plan.level == "fast" else f" --level {plan.level}"
