"""What a generator gives, before anybody relies on it: found in an answer, cleaned, or refused.

Pure. One rule: an answer is a stranger's text. It becomes lines, a title and prose of bounded
length, or a `GenerationFailed` that says what was wrong; nothing else of it goes on.

An answer in another language than its texts is refused, known by script, and among Latin scripts by
the commonest words. Only where both are sure are they called different; short texts, names and code
are never sure.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from filestore.embed.vocabulary import STOP_WORDS
from filestore.generate import GenerationFailed, Kind, Made, Task
from filestore.remote.service import start_of

LONGEST_ANSWER: Final = 20_000
LONGEST_LINE: Final = 300
LONGEST_TITLE: Final = 120
LONGEST_SUMMARY: Final = 4_000
LINES_KEY: Final[Mapping[Kind, str]] = {
    "questions": "questions",
    "summary": "questions",
    "rewrite": "queries",
}
"""Under which key an answer has its lines."""
_MOST_OPENINGS: Final = 50
"""Places in an answer where JSON is looked for."""
_DECODER: Final = json.JSONDecoder(strict=False)  # models put line ends into strings
_OPENING: Final = re.compile(r"[{\[]")
_THOUGHT: Final = ("<think>", "</think>")

_UNWANTED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that steer, hide or are none."""
_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_BULLET: Final = re.compile(r"(?:(?:[-*•]|\(?\d{1,2}[.)])\s+)+")
_HEADING: Final = re.compile(r"^ {0,3}(?:#{1,6}(?:[ \t]+|$))+", re.MULTILINE)
_RULE: Final = re.compile(r"^[ \t]*(?:=+|(?:-[ \t]*){2,}|(?:_[ \t]*){3,})$\n?", re.MULTILINE)
_FENCED: Final = re.compile(r"\A(`{3,}|~{3,})[^\n]*\n(.*?)\n?\1\s*\Z", re.DOTALL)
_FRONTMATTER: Final = re.compile(r"(?:---|\+\+\+|;;;)[ \t]*(?:\n|\Z)")
_CONFLICT: Final = re.compile(r"^(?:<{7}|>{7}|\|{7})(?:[ \t]|$)", re.MULTILINE)
_MOST_LAYERS: Final = 5
"""Fences, headings and rules around each other that are taken off a summary."""
_SENTENCE_END: Final = re.compile(r"[.!?\n]")
_LEAST_REPEATED: Final = 40
"""Characters of a sentence that no one writes by accident."""
_REFUSAL: Final = re.compile(
    r"(?:i['’]?m (?:\w+ )?sorry|i am (?:\w+ )?sorry|sorry[,.]|i apologi[sz]e"
    r"|i can(?:no|['’])t (?:\w+ )?(?:help|assist|comply|provide|answer|do|create|generate|write)"
    r"|i(?: am|['’]m) (?:unable|not able)|as an ai\b|i (?:do not|don['’]t) feel comfortable"
    r"|es tut mir leid|tut mir leid|leider kann ich|(?:je suis )?désolée?\b|lo siento\b"
    r"|mi dispiace\b|很?抱歉|对不起|申し訳)",
    re.IGNORECASE,
)

_LETTERS: Final = {
    script: re.compile(f"[{letters}]")
    for script, letters in {
        "Latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
        "Greek": "\u0370-\u03ff",
        "Cyrillic": "\u0400-\u052f",
        "Hebrew": "\u0590-\u05ff",
        "Arabic": "\u0600-\u06ff",
        "Devanagari": "\u0900-\u097f",
        "Thai": "\u0e00-\u0e7f",
        "Korean": "\uac00-\ud7a3",
        "Chinese": "\u3400-\u4dbf\u4e00-\u9fff",
        "Japanese": "\u3040-\u30ff",
    }.items()
}
_WEIGHT: Final = {"Korean": 2, "Chinese": 3, "Japanese": 3}
"""Letters of an alphabet that one sign is worth."""
_LEAST_IN_TEXTS: Final = 90
_LEAST_IN_ANSWER: Final = 30
_MOST: Final = 0.7
"""A script that has so much of the texts is theirs."""
_TRACE: Final = 0.1
"""An answer that has no more of it is in another."""

_NAMES: Final = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian",
    "pt": "Portuguese", "nl": "Dutch", "sv": "Swedish", "da": "Danish", "no": "Norwegian",
    "pl": "Polish", "fi": "Finnish", "tr": "Turkish",
}  # fmt: skip
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_LEAST_HITS: Final = 5
_LEAST_DIFFERENT: Final = 3
"""A name that is written again and again is no language."""
_LEAST_SHARE: Final = 0.15
"""Of the words of a text, the ones that are common in its language."""
_LEAD: Final = 2
"""How many times as many words a text must have of its own language as of the other one."""


def read_answer(answer: str, task: Task, *, instructions: str = "") -> Made:
    """What a model's answer gives for a task.

    Args:
        answer: What the model wrote.
        task: What it was asked for.
        instructions: Of the request; it must not repeat them.

    Raises:
        GenerationFailed: Nothing usable.
    """
    text = _UNWANTED.sub("", _LINE_ENDS.sub("\n", answer)).strip()
    if text.startswith(_THOUGHT[0]):
        text = text.partition(_THOUGHT[1])[2].strip()
    if not text:
        raise _failed("an empty answer")
    if len(text) > LONGEST_ANSWER:
        raise _failed(
            f"an answer of {len(text):,} characters, more than {LONGEST_ANSWER:,}",
            hint="it was far too long",
        )
    values = _values(text, task.kind)
    if values is None:
        if _REFUSAL.match(text):
            raise _failed("the model refuses", shown=text, hint="it was no JSON object")
        is_cut = text[0] in "{[`"
        without = "an answer without the JSON that was asked for"
        raise _failed("cut or broken JSON" if is_cut else without, shown=text)
    lines = values.get(LINES_KEY[task.kind], [])
    title, summary = values.get("title", ""), values.get("summary", "")
    if not (isinstance(lines, list) and all(isinstance(line, str) for line in lines)):
        raise _failed(f"`{LINES_KEY[task.kind]}` is not a list of texts")
    if not (isinstance(title, str) and isinstance(summary, str)):
        raise _failed("`title` and `summary` are not both texts")
    return checked(
        Made(lines=tuple(lines), title=title, text=summary), task, instructions=instructions
    )


def checked(made: Made, task: Task, *, instructions: str = "") -> Made:
    """What a model made, in the form that `Made` promises, and about the texts.

    Args:
        made: By a model.
        task: What it was made for.
        instructions: Of the request; the model must not repeat them.

    Raises:
        GenerationFailed: Nothing usable is left of it.
    """
    found = well_formed(made, task)
    _refuse_other_matter(
        "\n".join((found.title, found.text, *found.lines)).strip(), task, instructions
    )
    return found


def well_formed(made: Made, task: Task) -> Made:
    """What was made, by whatever generator, in the form that `Made` promises.

    No lines at all is a result: there are texts that answer no question.

    Raises:
        GenerationFailed: Nothing usable is left of it.
    """
    is_summary = task.kind == "summary"
    title, text = _title_and_text(made) if is_summary else ("", "")
    query = task.texts[0] if task.kind == "rewrite" and task.texts else ""
    lines, dropped = _kept_lines(made.lines, task.count, query)
    if is_summary and not text:
        raise _failed("an empty summary")
    if made.lines and not lines and not is_summary:
        named = "questions" if task.kind == "questions" else "queries"
        reasons = ", ".join(f"{number} {reason}" for reason, number in dropped.items())
        raise _failed(f"no usable {named}: {reasons}")
    return replace(made, lines=lines, title=title, text=text)


def _failed(what: str, *, shown: str = "", hint: str = "") -> GenerationFailed:
    """The error for something unusable; what the model wrote is shown, and not in the hint."""
    start = f"; it starts {start_of(shown)}" if shown else ""
    return GenerationFailed(f"{what}{start}", hint=hint or what)


def _values(text: str, kind: Kind) -> Mapping[str, Any] | None:
    """The JSON object with the keys of an answer, wherever it is; lines alone are one, too."""
    key = "summary" if kind == "summary" else LINES_KEY[kind]
    bare: list[Any] | None = None
    for found in _json_in(text):
        if isinstance(found, dict) and key in found:
            return found
        if bare is None and isinstance(found, list) and found and isinstance(found[0], str):
            bare = found
    return {key: bare} if bare is not None and kind != "summary" else None


def _json_in(text: str) -> Iterator[Any]:
    """Every value of JSON in a text, those in lists, too; looked for at the first few places."""
    place = 0
    for _ in range(_MOST_OPENINGS):
        opening = _OPENING.search(text, place)
        if opening is None:
            return
        try:
            value, place = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            place = opening.end()
        else:
            yield from _with_parts(value)


def _with_parts(value: Any) -> Iterator[Any]:
    """A value, and what lists in it hold, however deep."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, list):
            waiting.extend(reversed(one))


def _cleaned(text: str) -> str:
    """Without what steers or hides, with plain line ends; a lone surrogate is taken out."""
    return _UNWANTED.sub("", _LINE_ENDS.sub("\n", text)).strip()


def _kept_lines(
    lines: tuple[str, ...], count: int, query: str
) -> tuple[tuple[str, ...], Counter[str]]:
    """The usable lines, at most this many, and why how many others are not."""
    kept: dict[str, str] = {}
    dropped: Counter[str] = Counter()
    known = _compared(query)
    for written in lines:
        line = _BULLET.sub("", _cleaned(written), count=1).strip()
        same = _compared(line)
        if not same:
            dropped["empty"] += 1
        elif "\n" in line:
            dropped["of several lines"] += 1
        elif len(line) > LONGEST_LINE:
            dropped[f"of more than {LONGEST_LINE} characters"] += 1
        elif same in kept or same == known:
            dropped["asked before"] += 1
        else:
            kept[same] = line.replace("\t", " ")
    return tuple(kept.values())[:count], dropped


def _compared(line: str) -> str:
    """A line as it is compared with others: letters, digits and signs, in one case."""
    return " ".join(re.findall(r"\w+", line.casefold()))


def _title_and_text(made: Made) -> tuple[str, str]:
    """A title of one line, and prose without headings and rules of its own.

    Raises:
        GenerationFailed: It could be taken for something else than prose where it is written.
    """
    text = _cleaned(made.text)
    title = _HEADING.sub("", _cleaned(made.title)).partition("\n")[0].strip().replace("\t", " ")
    for _ in range(_MOST_LAYERS):
        if _FRONTMATTER.match(text):
            raise _failed("a summary that begins with a frontmatter fence")
        if _CONFLICT.search(text):
            raise _failed("a summary with conflict markers")
        fenced = _FENCED.match(text)
        plain = fenced[2].strip() if fenced else text
        first, _, rest = plain.partition("\n")
        if _HEADING.match(first) and rest.strip():
            title, plain = title or _HEADING.sub("", first).strip(), rest
        plain = _RULE.sub("", _HEADING.sub("", plain)).strip()
        if plain == text:
            break
        text = plain
    else:
        raise _failed("a summary that is not plain prose")
    if len(text) > LONGEST_SUMMARY:
        raise _failed(f"a summary of {len(text):,} characters, more than {LONGEST_SUMMARY:,}")
    if len(title) > LONGEST_TITLE:
        title = title[:LONGEST_TITLE].rpartition(" ")[0] or title[:LONGEST_TITLE]
    return title, text


def _refuse_other_matter(written: str, task: Task, instructions: str) -> None:
    """Refuse what is about the request, not the texts.

    Raises:
        GenerationFailed: A refusal, the instructions once more, or another language.
    """
    texts = "\n".join((task.title, *task.headings, *task.texts))
    refused = next(filter(None, map(_REFUSAL.match, written.split("\n"))), None)
    if refused and refused[0].casefold() not in texts.casefold():
        raise _failed("the model refuses", shown=written, hint="it was about yourself")
    answer, given = _spaced(written), _spaced(texts)
    for sentence in _SENTENCE_END.split(instructions):
        part = _spaced(sentence)
        if len(part) >= _LEAST_REPEATED and part in answer and part not in given:
            raise _failed("it repeats its instructions", shown=written)
    about = task.texts[0] if task.kind == "rewrite" and task.texts else texts
    if differs := in_another_language(written, about):
        found, wanted = differs
        raise _failed(f"it is in {found}, the texts are in {wanted}")


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


def in_another_language(answer: str, texts: str) -> tuple[str, str] | None:
    """What the answer is in and what the texts are in, where these surely differ."""
    of_texts, of_answer = _scripts(texts), _scripts(answer)
    wanted, found = _main(of_texts, _LEAST_IN_TEXTS), _main(of_answer, _LEAST_IN_ANSWER)
    if wanted is None or found is None:
        return None
    if wanted != found:
        return (found, wanted) if _share(of_answer, wanted) <= _TRACE else None
    if wanted != "Latin":
        return None
    of_answer = _hits(answer)
    of_texts = _hits(texts)
    if not (of_answer and of_texts):
        return None
    found, wanted = (max(hits, key=lambda one: hits[one]) for hits in (of_answer, of_texts))
    is_sure = of_answer[found] >= _LEAD * of_answer.get(wanted, 0) and of_texts[
        wanted
    ] >= _LEAD * of_texts.get(found, 0)
    return (_NAMES.get(found, found), _NAMES.get(wanted, wanted)) if is_sure else None


def _scripts(text: str) -> dict[str, int]:
    """How much of a text is in each script."""
    found = {
        script: len(letters.findall(text)) * _WEIGHT.get(script, 1)
        for script, letters in _LETTERS.items()
    }
    if found["Japanese"] > _TRACE * found["Chinese"]:
        found["Japanese"] += found.pop("Chinese")
    return found


def _share(scripts: Mapping[str, int], script: str) -> float:
    return scripts.get(script, 0) / max(1, sum(scripts.values()))


def _main(scripts: Mapping[str, int], least: int) -> str | None:
    """The script of nearly all of a text, if it is long enough to tell."""
    script = max(scripts, key=lambda one: scripts[one])
    enough = scripts[script] >= least and _share(scripts, script) >= _MOST
    return script if enough else None


def _hits(text: str) -> dict[str, int]:
    """How many words of a text are common in each language; none where that is too few to tell."""
    words = [word.lower() for word in _WORD.findall(text)]
    different = set(words)
    hits = {
        language: sum(word in common for word in words)
        for language, common in STOP_WORDS.items()
        if len(common & different) >= _LEAST_DIFFERENT
    }
    least = max(_LEAST_HITS, _LEAST_SHARE * len(words))
    return hits if max(hits.values(), default=0) >= least else {}
