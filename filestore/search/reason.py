"""Why a text is a hit, in one line for a person. Pure.

One rule: a word is named where it says most: in the title, else a heading, the file name, the text.
"""

from collections.abc import Sequence
from typing import Final

from filestore.fulltext import Mark, Marker, Named

_MOST_NAMED: Final = 3
"""So many words of one place are named; of more, how many they are."""
_MOST_CHARACTERS: Final = 40


def reason(
    marker: Marker,
    *,
    title: str,
    headings: Sequence[str],
    name: str,
    text: str,
    marks: Sequence[Mark],
    question: str | None,
    meaning: float | None,
) -> str:
    """Which words of a query a hit has and where, and how near it is in meaning.

    Args:
        marker: Of the query.
        title: Of the document.
        headings: Above the passage, from the outermost.
        name: Of the file, without its suffix.
        text: What the hit says.
        marks: Where the query matches in it.
        question: The one of the text that matched; None where none did.
        meaning: As a share; None where no vectors tell.
    """
    found = [*_found_above(marker, title, " ".join(headings), name), ("text", text, marks)]
    terms = [{mark.term for mark in marked} for _, _, marked in found]
    told: dict[str, list[str]] = {}
    for one in marker.named:
        having = [
            place for place, own in zip(found, terms, strict=True) if not own.isdisjoint(one.terms)
        ]
        whole = next((place for place in having if _is_whole(one, place[1], place[2])), None)
        if whole is not None:
            told.setdefault(whole[0], []).append(_called(one))
        elif having:
            told.setdefault(having[0][0], []).append(f"parts of {_called(one)}")
    said = [
        f"{_listed(words, len(marker.named))} in the {place}"
        for place, _, _ in found
        if (words := told.get(place))
    ]
    said += ["a question that it answers"] if question is not None else []
    said += [f"meaning {round(100 * meaning)} %"] if meaning is not None else []
    return "; ".join(said)


def _found_above(
    marker: Marker, title: str, heading: str, name: str
) -> list[tuple[str, str, Sequence[Mark]]]:
    """Where the query matches in what stands above a text: one look for all of it."""
    places = [("title", title), ("heading", heading), ("file name", name)]
    # Names of files are any bytes: one sign stands for each that is no UTF-8.
    lines = [
        (place, words.replace("\n", " ").encode("utf-8", "replace").decode("utf-8"))
        for place, words in places
    ]
    marks = marker.marks("\n".join(words for _, words in lines))
    found, start = list[tuple[str, str, Sequence[Mark]]](), 0
    for place, words in lines:
        end = start + len(words)
        own = [
            Mark(mark.start - start, mark.end - start, mark.term)
            for mark in marks
            if start <= mark.start and mark.end <= end
        ]
        found.append((place, words, own))
        start = end + 1
    return found


def _is_whole(one: Named, words: str, marks: Sequence[Mark]) -> bool:
    """Whether a place that has a part has just what was typed, in this form or another."""
    if one.is_phrase:
        own = (words[mark.start : mark.end] for mark in marks if mark.term in one.terms)
        return any(not text.isalnum() for text in own)
    return len(one.terms) == 1 or one.text.casefold() in words.casefold()


def _called(one: Named) -> str:
    text = one.text if len(one.text) <= _MOST_CHARACTERS else f"{one.text[:_MOST_CHARACTERS]}…"
    return f'the phrase "{text}"' if one.is_phrase else f"'{text}'"


def _listed(words: Sequence[str], count: int) -> str:
    if len(words) == count and count > 1:
        return "both words" if count == 2 else f"all {count} words"
    if len(words) > _MOST_NAMED:
        return f"{len(words)} of {count} words"
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last
