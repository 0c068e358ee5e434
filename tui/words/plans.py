"""Words for a plan: its steps, what they do to files, what is left, the command that does it. Pure.

One rule: every number says what it counts, and a removal is never counted as a change.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from filestore import KINDS, Left, Plan, Step, shown_path
from tui.words.commands import all_quoted
from tui.words.diffs import diff_lines
from tui.words.lines import Line, Role, count, field, line, span

CHOICES: Final[Mapping[str, str]] = {
    "resolve-ours": "--ours",
    "take-ours": "--ours",
    "resolve-theirs": "--theirs",
    "take-theirs": "--theirs",
    "remove-duplicate": "--remove",
}
"""Kinds of steps that a person asks for by naming the file, with the option that names it."""
MOST_PATHS: Final = 500
"""Named in one command line."""
MOST_CHARACTERS: Final = 1_000_000
"""Of command lines: what is longer nobody pastes."""
NO_PLAN: Final = (
    "nothing is planned",
    "",
    "p plans a repair of everything that was found; in Verify, p plans one of what is marked.",
    "b shows the changes that were made, to undo and redo them.",
    "Nothing is written before A, and a yes to what it says.",
)


def removed_by(step: Step) -> tuple[str, ...]:
    """The files of the tree that a step removes, as far as that is known before."""
    if step.kind == "remove":
        return tuple(path for path in step.seen if _is_chunk(path) or _is_last_record(path, step))
    if step.kind == "remove-duplicate" or (step.kind == "resolve-theirs" and not step.hash):
        return (step.path,)
    return ()


def written_by(step: Step) -> tuple[str, ...]:
    """The files of the tree that a step writes or brings back, as far as that is known before."""
    if step.kind == "remove":
        return tuple(
            path for path in step.seen if _is_record(path) and not _is_last_record(path, step)
        )
    if not step.truth or step.kind == "reingest" or removed_by(step):
        return ()
    return (step.path,)


def _is_chunk(path: str) -> bool:
    return path.startswith("chunked/") and path.endswith(".md")


def _is_record(path: str) -> bool:
    return path.startswith("chunked/") and path.endswith(".json")


def _is_last_record(path: str, step: Step) -> bool:
    """Whether it is a record that names no other document, and goes with this one."""
    return _is_record(path) and not step.write_bytes


def is_removal(step: Step) -> bool:
    """Whether a step removes what nobody named: it waits for a person to choose it."""
    return step.kind == "remove" or (bool(removed_by(step)) and not KINDS[step.kind].named)


def question_lines(steps: Sequence[Step], *, most: int) -> list[Line]:
    """The files that steps remove and write, for the last question; none for the sidecar alone.

    Args:
        steps: Those that are chosen.
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
        *_named("writes", again, most, said="chunk files made from "),
    ]


def _named(
    verb: str,
    paths: Sequence[str],
    most: int,
    role: Role = "text",
    *,
    said: str = "",
    end: str = "",
) -> list[Line]:
    found = [line(f"{verb:<8}{said}{shown_path(path)}{end}", role) for path in paths[:most]]
    more = len(paths) - most
    return [*found, line(f"{verb:<8}… and {more:,} more", role)] if more > 0 else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What the steps of a plan do, counted."""

    steps: int
    written: int
    """Files of the tree."""
    removed: int
    again: int
    """Sources taken in again: which of their files change shows only then."""
    texts: int
    """To be embedded, each once."""
    known: int
    read_bytes: int
    write_bytes: int

    @property
    def is_sidecar_only(self) -> bool:
        """Whether no file of the tree is touched."""
        return not (self.written or self.removed or self.again)


def effects(plan: Plan) -> Effects:
    """What all steps of a plan do; `without` makes the plan of those that are chosen."""
    return Effects(
        steps=len(plan.steps),
        written=len({path for step in plan.steps for path in written_by(step)}),
        removed=len({path for step in plan.steps for path in removed_by(step)}),
        again=sum(step.kind == "reingest" for step in plan.steps),
        texts=plan.texts,
        known=plan.known,
        read_bytes=sum(step.read_bytes for step in plan.steps),
        write_bytes=sum(step.write_bytes for step in plan.steps),
    )


def scope(done: Effects) -> str:
    """What steps do, in one sentence: counts and where they end."""
    parts = []
    if done.is_sidecar_only:
        parts.append("no file of yours is touched")
    if done.written:
        parts.append(f"{count(done.written, 'file')} written")
    if done.removed:
        parts.append(
            f"{done.removed:,} removed" if parts else f"{count(done.removed, 'file')} removed"
        )
    if done.again:
        parts.append(f"{count(done.again, 'source')} taken in again")
    parts += _texts(done)
    return f"{count(done.steps, 'step')}: {', '.join(parts)}"


def _texts(done: Effects) -> list[str]:
    """What is embedded; texts of what is taken in again are counted only then."""
    more = " and those of what is taken in again" if done.again else ""
    if done.texts or more:
        return [f"{count(done.texts, 'text')}{more} embedded"]
    return [f"{count(done.known, 'text')} known already"] if done.known else []


def totals_line(plan: Plan) -> Line:
    """What the chosen steps do, with bytes."""
    done = effects(plan)
    if not done.steps:
        return line("no step is chosen: space chooses one, a all", "quiet")
    words = [scope(done)]
    if done.known and done.texts:
        words.append(f"{done.known:,} known already")
    words.append(f"{done.read_bytes:,} bytes read")
    if done.write_bytes:
        words.append(f"{done.write_bytes:,} written")
    return line(", ".join(words), "warning" if done.removed else "text")


def scope_of(plan: Plan) -> str:
    """What all steps of a plan do, in one sentence."""
    return scope(effects(plan))


def plan_line(plan: Plan, *, about: str, stale: str) -> Line:
    """What a plan is of, and whether it still fits the store."""
    found = [
        span(f"plan for {about}", "title"),
        span(f"  {count(len(plan.steps), 'step')}"),
        *((span(f"  {len(plan.left):,} left for you", "warning"),) if plan.left else ()),
        span(f"  looked {plan.level}, generation {plan.generation:,}", "quiet"),
        span(
            "  t leaves files alone" if plan.policy.truth else "  t adds what writes files",
            "quiet",
        ),
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
    said = KINDS[kind]
    numbers = f"{chosen:,} of {total:,}"
    return (
        span(f"{'v' if is_open else '>'} ", "quiet"),
        span(f"{box(chosen, total)} ", "key"),
        span(said.title, "title"),
        span(f"  {numbers}"),
        *((span("  writes files", "warning"),) if said.truth else ()),
    )


def step_line(step: Step, *, is_chosen: bool) -> Line:
    """The row of one step."""
    return (
        span("  "),
        span(f"{box(int(is_chosen), 1)} ", "key"),
        span(shown_path(step.path)),
        *((span(f"  {_beside(step)}", "quiet"),) if step.other else ()),
        *((span("  removes", "error"),) if removed_by(step) else ()),
        *((span(f"  {_embeds(step)}", "quiet"),) if step.texts != 0 else ()),
    )


def _beside(step: Step) -> str:
    word = "stays in" if step.kind == "remove-duplicate" else "from"
    return f"{word} {shown_path(step.other)}"


def left_heading(total: int, *, is_open: bool) -> Line:
    """The row above what no step mends."""
    mark = "v" if is_open else ">"
    return (span(f"{mark} ", "quiet"), span("left for you", "title"), span(f"  {total:,}"))


def left_line(left: Left) -> Line:
    """The row of something that no step mends."""
    finding = left.finding
    return (
        span(f"  {finding.severity} ", "error" if finding.severity == "E" else "warning"),
        span(f"{finding.code}  "),
        span(shown_path(finding.path)),
    )


# What is under the cursor


def step_lines(step: Step, *, number: int, total: int, model: str = "") -> list[Line]:
    """Everything about a step: what it mends, reads, writes and embeds, and the diff of it.

    Args:
        step: The step.
        number: Which one of the plan, from 1.
        total: How many there are.
        model: What embeds; "" where nothing can.
    """
    found = [
        line(f"{KINDS[step.kind].title} {shown_path(step.path)}", "title"),
        line(f"step {number:,} of {total:,}", "quiet"),
        field("mends", ", ".join(step.codes) or "what was forgotten"),
    ]
    found += [field("why", step.detail)] if step.detail else []
    found += [field(_role_of_other(step), shown_path(step.other))] if step.other else []
    found += _touched(step)
    found.append(field("reads", f"{step.read_bytes:,} bytes"))
    found.append(field("embeds", _embeds(step, model)))
    found += _origin(step)
    return [*found, line(""), *_diff(step)]


def _role_of_other(step: Step) -> str:
    return "text stays" if step.kind == "remove-duplicate" else "was at"


def _touched(step: Step) -> list[Line]:
    """Which files of the tree a step writes or removes."""
    removed, written = removed_by(step), written_by(step)
    found = [field("removes", shown_path(path), "error") for path in removed]
    found += [field("writes", _written(path, step)) for path in written]
    if step.kind == "reingest":
        found.append(field("writes", "what its new text asks for; hand edits are merged"))
    return found or [field("writes", "the sidecar only, no file of yours")]


def _written(path: str, step: Step) -> str:
    size = f", {step.write_bytes:,} bytes" if step.write_bytes else ""
    return f"{shown_path(path)}{size}"


def _origin(step: Step) -> list[Line]:
    """Where restored bytes come from, and what identifies them."""
    if not step.place:
        return []
    place = (
        f"git, blob {step.blob[:12]}"
        if step.blob
        else f"the {step.place.removesuffix(' text')} text"
    )
    return [field("bytes from", place), *([field("hash", step.hash)] if step.hash else [])]


def _embeds(step: Step, model: str = "") -> str:
    if step.texts is None:
        return "what shows only when it is done"
    if not (step.texts or step.known):
        return "nothing"
    who = f" by {model.partition('|')[0]}" if model and step.texts else ""
    known = f", {step.known:,} known already" if step.known else ""
    return f"{count(step.texts, 'text')}{who}{known}"


def _diff(step: Step) -> list[Line]:
    if step.diff:
        return diff_lines(step.diff)
    if step.truth:
        return [
            line("no diff: what changes shows only when it is done; undo takes it back", "quiet")
        ]
    return [line("no diff: it changes no file", "quiet")]


def kind_lines(kind: str, steps: Sequence[Step], *, chosen: int) -> list[Line]:
    """What is said of all steps of one kind."""
    said = KINDS[kind]
    written = sum(len(written_by(step)) for step in steps)
    removed = sum(len(removed_by(step)) for step in steps)
    found = [
        line(said.title, "title"),
        line(f"{chosen:,} of {count(len(steps), 'step')} chosen", "quiet"),
        field("writes", _written_in_all(written, removed) if said.truth else "the sidecar only"),
        field("reads", f"{sum(step.read_bytes for step in steps):,} bytes"),
        field("mends", ", ".join(dict.fromkeys(code for step in steps for code in step.codes))),
    ]
    return [*found, line(""), line("space chooses all of them, or none; enter closes the group")]


def _written_in_all(written: int, removed: int) -> str:
    if not (written or removed):
        return "files, which ones shows only when it is done"
    gone = f", {removed:,} removed" if removed else ""
    return f"{count(written, 'file')}{gone}"


def left_lines(left: Left) -> list[Line]:
    """Why something is left, and what a person can do."""
    finding = left.finding
    return [
        line(f"left for you: {finding.code}", "title"),
        field("file", shown_path(finding.path)),
        *([field("other", shown_path(finding.other))] if finding.other else []),
        *([field("found", finding.detail)] if finding.detail else []),
        line(""),
        line(left.reason),
    ]


def planning_lines() -> list[Line]:
    """What is said while the first plan is made."""
    return [line("planning …", "title"), line("nothing is written by that; x stops it", "quiet")]


def no_plan_lines() -> list[Line]:
    """What there is to do while nothing is planned."""
    return [line(text, "title" if not number else "text") for number, text in enumerate(NO_PLAN)]


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
    named = [step for step in steps if step.kind in CHOICES]
    others = [step for step in steps if step.kind not in CHOICES]
    found = [f"repair{_choices(named)}"] if named else []
    if is_whole and not named and _is_all(plan, others):
        truth = " --truth" if plan.policy.truth else ""
        return [f"repair{truth}{_level(plan)}"]
    groups: dict[tuple[str, ...], list[Step]] = {}
    for step in others:
        groups.setdefault(step.codes, []).append(step)
    left = [step for step in plan.steps if step.key not in chosen]
    for codes, group in groups.items():
        is_all = bool(codes) and (is_whole or set(codes) <= set(whole)) and _is_free(group, left)
        found += _of_group(plan, codes, group, is_all=is_all)
    return found if sum(map(len, found)) <= MOST_CHARACTERS else []


def _is_free(steps: Sequence[Step], left: Iterable[Step]) -> bool:
    """Whether a repair of the codes of these steps would apply none of those that were left."""
    codes = set(steps[0].codes)
    truth = any(step.truth for step in steps)
    return all(codes.isdisjoint(step.codes) or (step.truth and not truth) for step in left)


def _is_all(plan: Plan, steps: Sequence[Step]) -> bool:
    """Whether a repair of everything would apply just these steps."""
    return bool(steps) and len(steps) == len(plan.doable) and all(map(plan.allows, steps))


def _of_group(
    plan: Plan, codes: tuple[str, ...], steps: Sequence[Step], *, is_all: bool
) -> list[str]:
    """What applies steps that mend the same codes; paths only where others are left out."""
    only = f" --only {all_quoted(codes)}" if codes else ""
    paths = list(dict.fromkeys(step.path for step in steps if not step.part))
    end = f"{' --truth' if any(step.truth for step in steps) else ''}{_level(plan)}"
    if is_all or not paths:
        return [f"repair{only}{end}"]
    # No shell takes more names at once.
    parts = [paths[start : start + MOST_PATHS] for start in range(0, len(paths), MOST_PATHS)]
    return [f"repair{only} --path {all_quoted(part)}{end}" for part in parts]


def _choices(steps: Iterable[Step]) -> str:
    paths: dict[str, list[str]] = {}
    for step in steps:
        paths.setdefault(CHOICES[step.kind], []).append(step.path)
    return "".join(f" {option} {all_quoted(found)}" for option, found in paths.items())


def _level(plan: Plan) -> str:
    return "" if plan.level == "fast" else f" --level {plan.level}"
