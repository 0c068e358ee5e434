"""What runs found: means in the ledger, each answer in the work folder; two runs compared."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from filestore.search.evaluate import MODES
from filestore.search.metrics import Difference, paired_difference
from tests.bench.retrieval.asking import Answer
from tests.bench.retrieval.sets import HALVES, Half

HERE: Final = Path(__file__).parent
ROWS: Final = HERE / "ledger.jsonl"
TABLES: Final = HERE / "LEDGER.md"


class NoSuchRunError(Exception):
    """What was named is no run, or several; its text says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One program that asked all sets, or some."""

    name: str
    date: str
    commit: str
    """The last one that changed the program, with a + where files of it differ."""
    embedder: str
    fingerprint: str
    sets: Mapping[str, Mapping[str, Any]]
    """Name to digest and number of documents."""
    skipped: Mapping[str, str]
    """Name to the reason."""
    answers: Sequence[Answer]


def mean_of_sets(answers: Sequence[Answer], measure: Callable[[Answer], float]) -> Difference:
    """The mean of the means of the sets, each set with the same say; drawn over questions.

    A question counts as much less as its set has more of them, so one bootstrap does for all.
    """
    sizes: dict[str, int] = {}
    for one in answers:
        sizes[one.set] = sizes.get(one.set, 0) + 1
    weights = [len(answers) / (len(sizes) * sizes[one.set]) for one in answers]
    values = [weight * measure(one) for weight, one in zip(weights, answers, strict=True)]
    return paired_difference(values, [0.0] * len(values))


def _of(answers: Iterable[Answer], half: Half, name: str | None = None) -> list[Answer]:
    return [one for one in answers if one.half == half and name in (None, one.set)]


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else float("nan")


def row(run: Run) -> dict[str, Any]:
    """The line of a run: means of every set, half and mode, their means, and what hybrid loses."""
    means: dict[str, Any] = {}
    losses: dict[str, Any] = {}
    for half in HALVES:
        answers = _of(run.answers, half)
        found = {mode: mean_of_sets(answers, lambda one, m=mode: one.ndcg[m]) for mode in MODES}
        means[half] = {
            mode: [round(value, 4) for value in (one.mean, *one.interval_95)]
            for mode, one in found.items()
        }
        lost = [one.loss for one in answers]
        losses[half] = {"sum": round(sum(lost), 2), "mean": round(_mean(lost), 4)}
    sets = {
        name: {**said, **{half: _scores(_of(run.answers, half, name)) for half in HALVES}}
        for name, said in run.sets.items()
    }
    said = {key: getattr(run, key) for key in ("name", "date", "commit", "embedder", "fingerprint")}
    return {**said, "means": means, "losses": losses, "sets": sets, "skipped": run.skipped}


def _scores(answers: Sequence[Answer]) -> dict[str, Any]:
    return {
        "questions": len(answers),
        "ndcg": {mode: round(_mean(one.ndcg[mode] for one in answers), 4) for mode in MODES},
        "recall": {mode: round(_mean(one.recall[mode] for one in answers), 4) for mode in MODES},
    }


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """A row of the ledger as Markdown."""
    yield f"## {found['name']}\n"
    yield f"{found['date']}, commit {found['commit']}, vectors of {found['embedder']}"
    yield f"(`{found['fingerprint']}`).\n"
    yield "| half | keyword | vector | hybrid | lost to the better leg: sum, mean |"
    yield "|---|---|---|---|---|"
    for half in HALVES:
        cells = ["{:.4f} [{:.4f}, {:.4f}]".format(*found["means"][half][mode]) for mode in MODES]
        lost = found["losses"][half]
        yield f"| {half} | {' | '.join(cells)} | {lost['sum']:.2f}, {lost['mean']:.4f} |"
    yield "\n| set | files | asked | tuning: nDCG@10 | recall@3 | confirming: nDCG@10 | recall@3 |"
    yield "|---|--:|--:|---|---|---|---|"
    for name, said in found["sets"].items():
        halves = [said[half] for half in HALVES]
        asked = " + ".join(str(half["questions"]) for half in halves)
        cells = [
            " / ".join(f"{half[measure][mode]:.3f}" for mode in MODES)
            for half in halves
            for measure in ("ndcg", "recall")
        ]
        yield f"| {name} | {said['documents']} | {asked} | {' | '.join(cells)} |"
    if found["skipped"]:
        yield "\nNot asked: " + "; ".join(found["skipped"]) + "."
    yield ""


def append(run: Run, *, rows: Path = ROWS, tables: Path = TABLES) -> None:
    """Add a run to the ledger."""
    found = row(run)
    with rows.open("a", encoding="utf-8") as file:
        file.write(json.dumps(found, ensure_ascii=False) + "\n")
    with tables.open("a", encoding="utf-8") as file:
        file.write("\n" + "\n".join(table(found)))


def keep(run: Run, folder: Path) -> None:
    """Write each answer of a run, under its name."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {key: getattr(run, key) for key in ("name", "date", "commit", "embedder", "fingerprint")}
    head = json.dumps({**said, "sets": run.sets, "skipped": run.skipped}, ensure_ascii=False)
    lines = [head, *(one.line() for one in run.answers)]
    (folder / f"{run.name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def kept(folder: Path, named: str, embedder: str | None = None) -> Run:
    """The latest run whose name begins so, or has such a commit in it; a try is found by name.

    Args:
        folder: Where runs lie.
        named: The beginning of a name, or of a commit.
        embedder: A run with this one is taken before a later one with another.

    Raises:
        NoSuchRunError: There is none.
    """
    found = []
    for path in folder.glob("*.jsonl"):
        head, *lines = path.read_text("utf-8").splitlines()
        said = json.loads(head)
        if said["name"].startswith(named) or f"-{named}" in said["name"]:
            found.append((said["embedder"] == embedder, said["date"], said, lines))
    if not found:
        raise NoSuchRunError(f"no run in {folder} is named {named!r}")
    *_, said, lines = max(found, key=lambda one: one[:2])
    return Run(**said, answers=[Answer(**json.loads(line)) for line in lines])


def compared(before: Run, after: Run, most: int) -> Iterator[str]:
    """What changed, question by question, in the sets that both asked and that are the same.

    Args:
        before: One run.
        after: The other.
        most: How many of the questions that changed are shown.
    """
    same = {
        name for name, said in after.sets.items()
        if name in before.sets and before.sets[name]["digest"] == said["digest"]
    }  # fmt: skip
    others = sorted((before.sets.keys() | after.sets.keys()) - same)
    old = {(one.set, one.query): one for one in before.answers}
    pairs = [(old[one.set, one.query], one) for one in after.answers if one.set in same]
    yield f"{before.name} → {after.name}: nDCG@10, differences with 95 %"
    if others:
        yield f"left out, asked or made differently: {'; '.join(others)}"
    for half in HALVES:
        yield from _compared_half(half, [pair for pair in pairs if pair[1].half == half])
    changed = [pair for pair in pairs if pair[0].ndcg["hybrid"] != pair[1].ndcg["hybrid"]]
    changed.sort(key=lambda pair: pair[1].ndcg["hybrid"] - pair[0].ndcg["hybrid"])
    yield f"\n{len(changed)} of {len(pairs)} questions changed in hybrid; most of all:"
    shown = (
        changed
        if len(changed) <= most
        else [*changed[: most // 2], *changed[len(changed) - most // 2 :]]
    )
    for a, b in shown:
        scores = ", ".join(f"{mode} {a.ndcg[mode]:.2f} → {b.ndcg[mode]:.2f}" for mode in MODES)
        yield f"  {b.half}, {b.set}: {b.query[:80]!r}: {scores}"


def _compared_half(half: Half, pairs: Sequence[tuple[Answer, Answer]]) -> Iterator[str]:
    before, after = zip(*pairs, strict=True) if pairs else ((), ())
    yield f"\n{half}: {len(pairs)} questions"
    if not pairs:
        return
    old = {id(b): a for a, b in pairs}
    for mode in MODES:
        gained = mean_of_sets(after, lambda b, m=mode: b.ndcg[m] - old[id(b)].ndcg[m])
        yield f"  {mode:8} mean of sets {_shown(gained)}"
    sums = [sum(one.loss for one in some) for some in (before, after)]
    means = [total / len(pairs) for total in sums]
    lost = paired_difference([one.loss for one in after], [one.loss for one in before])
    yield (
        f"  lost to the better leg: sum {sums[0]:.2f} → {sums[1]:.2f},"
        f" mean {means[0]:.4f} → {means[1]:.4f}, {_shown(lost)}"
    )
    for name in dict.fromkeys(one.set for one in after):
        some = [(a.ndcg, b.ndcg) for a, b in pairs if b.set == name]
        cells = [
            f"{m} {_shown(paired_difference([b[m] for _, b in some], [a[m] for a, _ in some]))}"
            for m in MODES
            if any(a[m] != b[m] for a, b in some)
        ]
        if cells:
            yield f"  {name} ({len(some)}): {'; '.join(cells)}"


def _shown(found: Difference) -> str:
    return f"{found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
