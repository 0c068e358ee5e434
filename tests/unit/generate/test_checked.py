"""What a model answers: found, cleaned, or refused with a name for what is wrong."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filestore.core.safe_text import safe_text
from filestore.generate import GenerationFailed, Made, Task
from filestore.generate._checked import LONGEST_LINE, LONGEST_SUMMARY, checked, read_answer

QUESTIONS = Task(
    kind="questions", texts=("The lock file names the writer that holds it.",), count=3
)
SUMMARY = Task(kind="summary", texts=("The lock is a file.", "A writer holds it."), count=2)
REWRITE = Task(kind="rewrite", texts=("who holds the lock",), count=2)
GOOD = json.dumps({"questions": ["Who holds the lock?", "What is in the lock file?"]})
LINES = ("Who holds the lock?", "What is in the lock file?")


def questions(*lines: Any) -> str:
    return json.dumps({"questions": lines})


def summary(text: Any, title: Any = "Locks", **more: Any) -> str:
    return json.dumps({"title": title, "summary": text, **more})


def problem(answer: str, task: Task = QUESTIONS, instructions: str = "") -> str:
    with pytest.raises(GenerationFailed) as caught:
        read_answer(answer, task, instructions=instructions)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"Here you are:\n\n{GOOD}\n\nAnything else?",
        f"```json\n{GOOD}\n```",
        f"The form is {{...}} or {{}}, so: ```\n{GOOD}\n``` as asked [1].",
        f"<think>They want {{questions}}. [hm]</think>\n{GOOD}",
        f"\ufeff {GOOD}",
        json.dumps(LINES),
        questions("1. Who holds the lock?", "- What is in the lock file?\n"),
        '{"questions": ["Who holds\x07 the lock?", "What is in the lock file?"], "more": 1}',
        questions(*LINES, "who  holds the lock", "", "?!", "two\nlines", "x" * 400),
    ],
)
def test_the_lines_are_found(answer: str) -> None:
    """JSON in prose, in a fence, behind thoughts, or bare, gives the same lines."""
    assert read_answer(answer, QUESTIONS).lines == LINES


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "an empty answer"),
        (" \n\x00\u200b", "an empty answer"),
        ("<think>" + "so, " * 99, "an empty answer"),
        ("x" * 102_400, "102,400 characters"),
        (GOOD[:-20], "cut or broken JSON"),
        ("```json\n" + GOOD[:-20], "cut or broken JSON"),
        ("[" * 9_999, "cut or broken JSON"),
        ('{"a":' * 2_000, "cut or broken JSON"),
        ("Who holds the lock?", "without the JSON"),
        ("I'm sorry, but I can't assist with that.", "the model refuses"),
        ("很抱歉，我无法回答。", "the model refuses"),
        (questions("I cannot help with this request."), "the model refuses"),
        ('{"questions": "Who holds the lock?"}', "not a list of texts"),
        ('{"questions": [1, 2]}', "not a list of texts"),
        ('{"questions": {"1": "Who?"}}', "not a list of texts"),
        ('{"questions": null}', "not a list of texts"),
        ('{"answers": ["Who?"]}', "cut or broken JSON"),
        (questions("", "x" * 400), "1 empty, 1 of more than 300 characters"),
    ],
)
def test_what_is_unusable_is_named(answer: str, said: str) -> None:
    """No answer is taken that is not of the wanted form, and the problem says which it is not."""
    assert said in problem(answer)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (summary(""), "an empty summary"),
        (summary(["a", "b"]), "not both texts"),
        (summary("Fine.", title=7), "not both texts"),
        (summary("---\nkind: chunk\n---\nText."), "frontmatter fence"),
        (summary("+++"), "frontmatter fence"),
        (summary("One.\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> b\n"), "conflict markers"),
        (summary("=\n+++\na: 1\n+++"), "frontmatter fence"),
        (summary("One.\n# <<<<<<< HEAD\na"), "conflict markers"),
        (summary("```\n" * 20 + "a" + "\n```" * 20), "not plain prose"),
        (summary("word " * 2_000), "characters, more than"),
        (summary("I'm sorry, but I can't help with that."), "the model refuses"),
    ],
)
def test_a_summary_that_would_do_harm_is_refused(answer: str, said: str) -> None:
    """What would be read as frontmatter or a conflict where it is written does not get there."""
    assert said in problem(answer, SUMMARY)


@pytest.mark.parametrize(
    ("answer", "title", "text"),
    [
        (summary("A lock.\r\nIt is held."), "Locks", "A lock.\nIt is held."),
        (summary("# On locks\n\nA lock.", title=""), "On locks", "A lock."),
        (summary("# On locks\n\nA lock."), "Locks", "A lock."),
        (
            summary("A lock.\n\n## More\n\nHeld.", title="## Locks\n"),
            "Locks",
            "A lock.\n\nMore\n\nHeld.",
        ),
        (summary("Locks\n=====\nA lock.\n\n---\n\nHeld."), "Locks", "Locks\nA lock.\n\n\nHeld."),
        (summary("```markdown\nA lock.\n```"), "Locks", "A lock."),
        (summary("A \x1b[31mlock\u202e.\ud800"), "Locks", "A [31mlock."),
        (summary("A lock.", title="word " * 60), ("word " * 24).strip(), "A lock."),
    ],
)
def test_a_summary_is_plain_prose(answer: str, title: str, text: str) -> None:
    """Headings, rules, fences around it and characters that steer are taken out."""
    made = read_answer(answer, SUMMARY)
    assert (made.title, made.text) == (title, text)


def test_no_more_lines_than_wanted() -> None:
    """A model that writes more is cut, also at none."""
    answer = summary("A lock.", questions=["Who?", "What?", "When?"])
    assert read_answer(answer, SUMMARY).lines == ("Who?", "What?")
    alone = Task(kind="summary", texts=SUMMARY.texts)
    assert read_answer(answer, alone).lines == ()


def test_no_question_is_an_answer() -> None:
    """A text that answers nothing is not asked about again and again."""
    assert read_answer(questions(), QUESTIONS).lines == ()
    assert read_answer('{"queries": []}', REWRITE).lines == ()


def test_a_query_is_not_its_own_rewriting() -> None:
    """Queries that only repeat the query are not counted."""
    answer = json.dumps({"queries": ["Who holds the lock?", "which process owns the lock"]})
    assert read_answer(answer, REWRITE).lines == ("which process owns the lock",)
    assert "1 asked before" in problem(json.dumps({"queries": ["WHO HOLDS THE LOCK"]}), REWRITE)


def test_instructions_are_not_a_result() -> None:
    """An answer that repeats what the model was told is refused, unless the texts say it, too."""
    told = "Write in the language of the passage. Each question asks for something else entirely."
    copied = questions("Each question  asks for SOMETHING else entirely", "Who holds the lock?")
    assert "repeats its instructions" in problem(copied, instructions=told)
    said = Task(kind="questions", texts=(told,), count=3)
    assert read_answer(copied, said, instructions=told).lines


def test_sorry_in_the_texts_is_no_refusal() -> None:
    """Texts about apologies have questions and summaries, too."""
    task = Task(kind="summary", texts=("Sorry, the shop is closed.",))
    assert read_answer(summary("Sorry, closed."), task).text == "Sorry, closed."


GERMAN = (
    "Die Sperre ist eine Datei, die von dem Prozess gehalten wird, der gerade in den Speicher "
    "schreibt. Sie wird nicht gelöscht, auch wenn der Prozess endet, und das Betriebssystem gibt "
    "sie von selbst frei. Für jeden Leser ist der Stand zu sehen, der bei Beginn des Lesens galt."
)
ENGLISH = ["Which process is holding the lock of the store?", "What is the lock file for?"]


@pytest.mark.parametrize(
    ("texts", "lines", "said"),
    [
        (GERMAN, ENGLISH, "it is in English, the texts are in German"),
        (
            "The lock is a file that is held by the process which writes to the store. It is not "
            "removed when the process ends, and the system frees it on its own.",
            ["Welche Datei ist die Sperre und wer hält sie?", "Was wird mit der Datei gemacht?"],
            "it is in German, the texts are in English",
        ),
        (
            "锁是由写入存储的进程持有的文件。进程结束时不会删除该文件，操作系统会自动释放它。" * 2,
            ENGLISH,
            "Chinese",
        ),
        (GERMAN, ["哪个进程持有存储的锁文件？", "锁文件什么时候被释放？"], "it is in Chinese"),
        (
            "ロックは書き込み中のプロセスが保持するファイルです。終了しても削除されません。" * 2,
            ["哪个进程持有存储的锁文件并在何时释放"],
            "Japanese",
        ),
    ],
)
def test_another_language_is_refused(texts: str, lines: list[str], said: str) -> None:
    """Questions that nobody would type who looks for the text are none."""
    assert said in problem(questions(*lines), Task(kind="questions", texts=(texts,), count=3))


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (GERMAN, ["Wer hält die Sperre?", "Wann wird sie gelöscht?"]),
        (GERMAN, ["SQLite WAL checkpoint fsync?"]),
        ("def lock(path):\n    return open(path, 'x')  # fails where there is one\n" * 5, ENGLISH),
        (
            "锁是由写入存储的进程持有的文件。" * 6,
            ["SQLite 的 WAL 文件 checkpoint 何时写入 database？"],
        ),
        ("Kurz.", ENGLISH),
        ("man io man io dos para " * 9 + ENGLISH[0] * 3, ENGLISH),
    ],
)
def test_an_unsure_language_is_none(texts: str, lines: list[str]) -> None:
    """Code, names and short texts are refused for no language."""
    task = Task(kind="questions", texts=(texts,), count=3)
    assert read_answer(questions(*lines), task).lines == tuple(lines)


@given(
    answer=st.text(st.characters(), max_size=300),
    task=st.sampled_from([QUESTIONS, SUMMARY, REWRITE]),
)
@example(answer=summary("\ud800", questions=["\ud800a"]), task=SUMMARY)
@example(answer="- - a", task=QUESTIONS)
def test_whatever_comes_is_made_or_refused(answer: str, task: Task) -> None:
    """No answer ends in another error, and what is made is what `Made` promises."""
    for written in (answer, f"{GOOD[:9]}{answer}", questions(answer, "Who?"), summary(answer)):
        outcome = made_or_not(written, task)
        if isinstance(outcome, GenerationFailed):
            assert safe_text(outcome.message, keep_newlines=False) == outcome.message
        else:
            holds_promise(outcome, task)
            assert checked(outcome, task) == outcome


@given(
    lines=st.lists(st.text(st.sampled_from("ab1. \t-*"), min_size=1, max_size=9), max_size=3),
    before=st.text(st.sampled_from('a {[}]"`\n'), max_size=30),
    after=st.text(max_size=30),
)
def test_what_stands_around_an_answer_changes_nothing(
    lines: list[str], before: str, after: str
) -> None:
    """The same lines come out of JSON alone and of JSON with words around it."""
    alone = made_or_not(questions(*lines), QUESTIONS)
    if isinstance(alone, Made):
        assert (
            made_or_not(f"{before.rstrip('{[')}\n{questions(*lines)}\n{after}", QUESTIONS) == alone
        )


def made_or_not(answer: str, task: Task) -> Made | GenerationFailed:
    try:
        return read_answer(answer, task)
    except GenerationFailed as error:
        return error


def holds_promise(made: Made, task: Task) -> None:
    assert len(made.lines) == len({line.casefold() for line in made.lines}) <= task.count
    for line in (*made.lines, made.title):
        assert len(line.splitlines()) <= 1
        assert len(line) <= LONGEST_LINE
        line.encode()
    assert all(line.strip() for line in made.lines)
    assert not re.match(r"(---|\+\+\+)\s*$|#{1,6}\s", made.text, re.MULTILINE)
    assert len(made.text) <= LONGEST_SUMMARY
    made.text.encode()
