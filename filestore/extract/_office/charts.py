"""Charts of Office documents: their title and figures, and the text of whatever is drawn."""

import re
from typing import Any, Final

DRAWING: Final = "http://schemas.openxmlformats.org/drawingml/2006"
CHART: Final = f"{{{DRAWING}/chart}}"
BREAK_CODE: Final = re.compile("_x000[ABDabd]_")
_A: Final = f"{{{DRAWING}/main}}"
_MOST_ROWS: Final = 200


def chart(root: Any) -> tuple[str, list[list[str]], str]:
    """What a chart shows.

    Args:
        root: The root of its part.

    Returns:
        Its title in words, empty without one; a row of names and one a category, a column a series,
        none without figures; and how many rows more there are, empty where these are all.
    """
    title = root.find(f"{CHART}chart/{CHART}title")
    name = "" if title is None else drawing_text(title) or _values(title)
    series = list(root.iter(f"{CHART}ser"))
    labels: dict[int, str] = {}
    for each in series:
        labels = _points(each, "cat", "xVal") | labels
    columns = [_points(each, "val", "yVal") for each in series]
    indexes = sorted({index for points in (labels, *columns) for index in points})
    names = [each.find(f"{CHART}tx") for each in series]
    rows = [["", *("" if one is None else _values(one) for one in names)]] if indexes else []
    for index in indexes[:_MOST_ROWS]:
        rows.append([labels.get(index, ""), *(points.get(index, "") for points in columns)])
    more = len(indexes) - _MOST_ROWS
    return (
        f"[Chart: {name}]" if name else "",
        rows,
        f"[{more} more points]" if more > 0 else "",
    )


def drawing_text(element: Any) -> str:
    """The text in an element of a drawing, on one line."""
    words = []
    for part in element.iter():
        if part.tag == f"{_A}t":
            words.append(part.text or "")
        elif part.tag in {f"{_A}br", f"{_A}p"}:
            words.append(" ")
    return " ".join(BREAK_CODE.sub(" ", "".join(words)).split())


def _values(element: Any) -> str:
    return " ".join(" ".join(value.text or "" for value in element.iter(f"{CHART}v")).split())


def _points(series: Any, *names: str) -> dict[int, str]:
    """The cached values of a series by their place; of nested categories the innermost."""
    points: dict[int, str] = {}
    for name in names:
        for point in series.iterfind(f"{CHART}{name}//{CHART}pt"):
            place = point.get("idx", "")
            if re.fullmatch("[0-9]{1,6}", place):
                figure = _values(point)
                # Without the tail that binary arithmetic leaves.
                if re.fullmatch(r"-?\d+\.\d{6,}(?:[eE][+-]?\d{1,3})?", figure):
                    figure = f"{float(figure):.10g}"
                points.setdefault(int(place), figure)
    return points
