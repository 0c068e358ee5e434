"""Command lines that are looked at: short, and still true."""

import pytest

from tui.formatting import MOST_NAMED, all_quoted, shortened

ODD = ("it's a name.md", "two words.md", "-dash.md", "a\x1b[31m.md", "\\ and ' both", "$HOME", "&&")


def test_very_many_names_are_counted():
    """The first names stand there, the number of the others, and every option behind them."""
    paths = [f"chunked/{number}.md" for number in range(1_400)]
    command = f"filestore repair --only modified --path {all_quoted(paths)} --write-files"
    shown = shortened(command)
    assert shown.startswith("filestore repair --only modified --path chunked/0.md chunked/1.md ")
    assert shown.endswith(" … and 1,390 more --write-files")
    assert len(shown) < 400


def test_command_lines_one_behind_the_other_stay_apart():
    """What runs next is no name of what runs before."""
    paths = all_quoted(f"{number}.md" for number in range(500))
    command = " && ".join([f"filestore repair --path {paths}"] * 3)
    assert shortened(command).count("… and 490 more && filestore repair --path 0.md") == 2
    assert shortened(command).endswith("… and 490 more")


@pytest.mark.parametrize("number", range(MOST_NAMED + 2))
def test_few_names_stay_as_they_are(number):
    """Nothing is left out for the sake of one name, and nothing is spelled in another way."""
    command = f"filestore  show {all_quoted((ODD * 2)[:number])}"
    assert shortened(command) == command


def test_odd_names_count_as_one_each():
    """A quoted name is one name, whatever signs it is made of."""
    names = [name for name in ODD if not name.startswith(("-", "&"))]
    command = f"filestore show {all_quoted(names * 20)}"
    assert shortened(command) == (
        f"filestore show {all_quoted((names * 20)[:8])} … and {20 * len(names) - 8:,} more"
    )
