"""How near a text must be to a question to be an answer, and how near it is as a share. Pure.

One rule: it is told by the texts that are there now: a fixed question that none of them answers is
held against those with the smallest ids, which are hashes and so a fair choice.
"""

import math
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

SAMPLE: Final = 200
"""So many texts tell how near an unrelated question is."""
_MARGIN: Final = 2.3
"""Standard deviations beyond the nearest of as many unrelated texts as there are: sqrt(2 ln n) is
about where the greatest of n normal numbers lies."""
_LEAST_DEVIATION: Final = 0.03
"""A few texts, or texts that are alike, tell too little of how cosines vary."""


class Closeness(Struct, frozen=True):
    """The cosines of texts to a question that has nothing to do with them."""

    mean: float
    deviation: float
    least: float
    """A cosine below it is as an unrelated text has it."""
    cut: float
    """Where the best of all texts has less, it is no nearer than chance."""

    @classmethod
    def of(cls, cosines: "NDArray[float32]", count: int) -> "Closeness":
        """Of a sample.

        Args:
            cosines: Of the fixed question to some texts; at least one.
            count: How many texts there are.
        """
        mean = float(cosines.mean())
        deviation = max(_LEAST_DEVIATION, float(cosines.std()))
        beyond = _MARGIN + math.sqrt(2 * math.log(max(1, count)))
        # Of vectors that all lie close together the cut must leave room for an answer.
        least, cut = (min(mean + one * deviation, (1 + mean) / 2) for one in (_MARGIN, beyond))
        return cls(mean, deviation, least, cut)

    def meaning(self, cosine: float) -> float:
        """A cosine as a share: 0 for an unrelated text, 1 for the very question."""
        return min(1.0, max(0.0, (cosine - self.mean) / max(1e-9, 1 - self.mean)))
