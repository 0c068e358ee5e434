"""A plane through vectors, to look at. Pure.

One rule: the same vectors give the same plane, point for point.
"""

from array import array
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from numpy import float32, float64
    from numpy.typing import NDArray

_COLUMNS: Final = 10
"""Directions that are followed for the sake of the first two, which then settle sooner."""
_ROUNDS: Final = 30
_SETTLED: Final = 1e-6
"""The share of the variance by which a round of a plane that is good enough still gains."""
_NO_SPREAD: Final = 1e-10
_SEED: Final = 2011


class Plane(Struct, frozen=True, kw_only=True):
    """Points in two dimensions, and how much of what there was to see they show."""

    xs: "array[float]"
    """float32"""
    ys: "array[float]"
    """float32"""
    explained: tuple[float, float]
    """The shares, 0 to 1, of all variance that lie along x and along y."""


def principal_plane(vectors: "NDArray[float32]") -> Plane:
    """The plane through vectors on which they lie furthest apart: principal component analysis.

    Found by orthogonal iteration from a fixed start, which never forms a matrix of dimension by
    dimension (N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", SIAM
    Review 53, 2011, algorithm 4.4). The sign of an axis means nothing: it is the one with which
    the entry of the axis that is largest in size is positive.

    Args:
        vectors: (n, dimension) float32.
    """
    import numpy

    if not vectors.size:
        return _plane(numpy.zeros((len(vectors), 2)), (0.0, 0.0))
    centred = vectors - vectors.mean(axis=0, dtype=numpy.float64).astype(numpy.float32)
    variance = float(numpy.einsum("ij,ij->", centred, centred, dtype=numpy.float64))
    if variance <= _NO_SPREAD * len(vectors):
        return _plane(numpy.zeros((len(vectors), 2)), (0.0, 0.0))
    axes, along = _leading_axes(centred, variance)
    points = numpy.zeros((len(vectors), 2))
    points[:, : axes.shape[1]] = centred @ axes.astype(numpy.float32)
    shares = [*(along / variance).tolist(), 0.0][:2]
    return _plane(points, (shares[0], shares[1]))


def _leading_axes(
    centred: "NDArray[float32]", variance: float
) -> "tuple[NDArray[float64], NDArray[float64]]":
    """The first axes, (dimension, up to 2), and the squares along each: (up to 2,)."""
    import numpy

    columns = min(_COLUMNS, *centred.shape)
    # The legacy generator is the one whose numbers are promised never to change.
    start = numpy.random.RandomState(_SEED).standard_normal((centred.shape[1], columns))
    basis, _ = numpy.linalg.qr(start)
    before = 0.0
    for _ in range(_ROUNDS):
        seen = centred @ basis.astype(numpy.float32)
        squares, turns = numpy.linalg.eigh(seen.T.astype(numpy.float64) @ seen)
        captured = float(squares[-2:].sum())
        if captured - before <= _SETTLED * variance:
            break
        before = captured
        basis, _ = numpy.linalg.qr((centred.T @ seen).astype(numpy.float64))
    axes = (basis @ turns)[:, ::-1][:, :2]
    largest = axes[numpy.abs(axes).argmax(axis=0), numpy.arange(axes.shape[1])]
    return axes * numpy.where(largest < 0, -1.0, 1.0), squares[::-1][:2]


def _plane(points: "NDArray[float64]", explained: tuple[float, float]) -> Plane:
    xs, ys = array("f", points[:, 0].tolist()), array("f", points[:, 1].tolist())
    return Plane(xs=xs, ys=ys, explained=explained)
