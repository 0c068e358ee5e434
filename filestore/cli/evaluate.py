"""Measure how well questions with known answers are answered: by grep, keywords, vectors, both."""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from filestore.cli import _context, _diagnostics, _output
from filestore.evaluation import QueriesInvalid, parse_queries

if TYPE_CHECKING:
    from filestore.evaluation import Question
    from filestore.measuring import Comparison, Evaluation, QuestionResult

EXAMPLE = "filestore evaluate questions.jsonl -k 10 --json"
_QUERY_COLUMNS = 36


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "queries",
        metavar="QUERIES",
        help='JSON lines, "-" for standard input: {"query": "…", "relevant": ["leave.md"]}, where'
        " relevant names chunk files, sources or resources, or is an object of them to grades",
    )
    parser.add_argument(
        "-k", type=int, default=10, metavar="N", help="look at the first N places (default: 10)"
    )
    parser.add_argument("--per-query", action="store_true", help="say it for each question, too")


def run(options: Any) -> int:
    """Measure, and print the means."""
    questions = _questions(options.queries)
    with _context.open_store(options) as store, _diagnostics.ProgressBar() as on_progress:
        found = store.evaluate(questions, count=options.k, on_progress=on_progress)
    if options.json:
        _output.write_json(_json(found, per_query=options.per_query))
    else:
        _words(found, per_query=options.per_query)
    return 0


def _questions(path: str) -> "list[Question]":
    try:
        if path == "-":
            return parse_queries(sys.stdin.buffer.read(), name="standard input")
        with open(path, "rb") as file:
            return parse_queries(file.read(), name=path)
    except OSError as error:
        raise QueriesInvalid(
            f"cannot read {path}: {error.strerror or error}",
            remedy="name a file of JSON lines, or - for standard input",
        ) from error


def _json(found: "Evaluation", *, per_query: bool) -> dict[str, Any]:
    value: dict[str, Any] = {
        "queries": len(found.results),
        "k": found.count,
        "modes": {
            mode: None if scores is None else asdict(scores) for mode, scores in found.modes.items()
        },
        "hybrid": None if found.hybrid is None else _comparison(found.hybrid),
        "notes": list(found.notes),
    }
    if per_query:
        value["per_query"] = [_result(result) for result in found.results]
    return value


def _comparison(compared: "Comparison") -> dict[str, Any]:
    return {
        "measure": "ndcg",
        "against": compared.leg,
        "difference": compared.difference.mean,
        "interval_95": [compared.difference.low, compared.difference.high],
    }


def _result(result: "QuestionResult") -> dict[str, Any]:
    return {
        "id": result.question.id,
        "line": result.question.line,
        "query": result.question.query,
        "modes": {mode: asdict(scores) for mode, scores in result.scores.items()},
    }


def _words(found: "Evaluation", *, per_query: bool) -> None:
    for note in found.notes:
        _diagnostics.say(note)
    if per_query:
        _each(found)
    heads = "".join(f"{name:>14}" for name in _measures(found.count))
    _output.line(f"{'':9}{heads}", style="1")
    for mode, scores in found.modes.items():
        figures = ["–"] * 3 if scores is None else [f"{one:.4f}" for one in asdict(scores).values()]
        _output.line(f"{mode:9}" + "".join(f"{figure:>14}" for figure in figures))
    _output.line(f"means over {_output.count(len(found.results), 'question')}")
    if found.hybrid is not None:
        difference = found.hybrid.difference
        _output.line(
            f"hybrid against {found.hybrid.leg}, nDCG: {difference.mean:+.4f},"
            f" 95 % interval {difference.low:+.4f} to {difference.high:+.4f}"
        )


def _measures(count: int) -> tuple[str, ...]:
    return f"nDCG@{count}", f"recall@{count}", f"MRR@{count}"


def _each(found: "Evaluation") -> None:
    """A line for each question with its nDCG in each mode."""
    heads = "".join(f"{mode:>9}" for mode in found.modes)
    _output.line(f"{f'nDCG@{found.count}':{_QUERY_COLUMNS}}{heads}", style="1")
    for result in found.results:
        query = " ".join(result.question.query.split())
        shown = query if len(query) < _QUERY_COLUMNS else f"{query[: _QUERY_COLUMNS - 2]}…"
        scores = [result.scores.get(mode) for mode in found.modes]
        figures = ["–" if one is None else f"{one.ndcg:.4f}" for one in scores]
        _output.line(f"{shown:{_QUERY_COLUMNS}}" + "".join(f"{figure:>9}" for figure in figures))
    _output.line()
