"""From the top of the tree of summaries to the texts that they lead to. Pure.

One rule: a branch is entered because it is among the best of its level, never because of where it
lies; what was entered once is not entered again.
"""

from collections.abc import Callable, Sequence
from typing import Final

from filestore.core.paths import ChunkPath
from filestore.sidecar.summary_tree import SummaryTree

BEAM: Final = 16
"""So many summaries of a level are entered. Over XQuAD, in 48 trees of one level, 8 lose another
.04 of recall@10; the default search, which sees every text, finds .07 more than 16."""


def descend(
    tree: SummaryTree, best: Callable[[Sequence[ChunkPath]], Sequence[ChunkPath]], beam: int = BEAM
) -> dict[ChunkPath, tuple[ChunkPath, ...]]:
    """Enter the best summaries, level by level, down to what is no summary.

    Args:
        tree: Of all summaries.
        best: Orders nodes by how well they answer, best first; those that do not are left out.
        beam: How many of a level are entered; where fewer answer, the first of the others, too.

    Returns:
        Of each text that was reached the summaries that led to it, from the top.
    """
    ways: dict[ChunkPath, tuple[ChunkPath, ...]] = dict.fromkeys(tree.roots, ())
    level = list(tree.roots)
    texts: dict[ChunkPath, tuple[ChunkPath, ...]] = {}
    while level:
        ordered = list(dict.fromkeys([*best(level), *level]))
        level = []
        for summary in ordered[:beam]:
            way = (*ways[summary], summary)
            for child in tree.children(summary):
                if child.path in ways or child.state == "gone":
                    continue
                ways[child.path] = way
                if child.is_summary:
                    level.append(child.path)
                else:
                    texts[child.path] = way
    return texts
