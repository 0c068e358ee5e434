"""Vectors as points: right, the same each time, and never without an answer."""

from array import array

import numpy
import pytest

from filestore.browse.vectors import principal_plane


def cloud(
    count: int, dimension: int, seed: int
) -> "numpy.ndarray[tuple[int, int], numpy.dtype[numpy.float32]]":
    """Points that spread less from axis to axis, turned at random."""
    random = numpy.random.default_rng(seed)
    turn, _ = numpy.linalg.qr(random.standard_normal((dimension, dimension)))
    spread = 3.0 / (1 + numpy.arange(dimension)) ** 1.5
    points = (random.standard_normal((count, dimension)) * spread) @ turn + 5
    return points.astype(numpy.float32)


@pytest.mark.parametrize(("count", "dimension"), [(200, 12), (400, 64), (30, 100), (5, 2), (9, 1)])
def test_the_plane_is_that_of_the_singular_values(count: int, dimension: int) -> None:
    """Shares and distances are those of a full decomposition, which is slower and the judge."""
    points = cloud(count, dimension, seed=count)
    plane = principal_plane(points)
    centred = points - points.mean(axis=0)
    left, values, _ = numpy.linalg.svd(centred.astype(numpy.float64), full_matrices=False)
    shares = [*(values**2 / (values**2).sum()), 0.0][:2]
    assert plane.explained == pytest.approx(shares, abs=2e-3)
    expected = numpy.zeros((count, 2))
    expected[:, : min(2, len(values))] = (left * values)[:, :2]
    if dimension <= 12:
        found = numpy.stack([plane.xs, plane.ys], axis=1)
        assert numpy.abs(found) == pytest.approx(numpy.abs(expected), abs=0.05 * values[0])


def test_the_same_vectors_give_the_same_points() -> None:
    """A map looks the same when it is opened again; order of the rows and their offset apart."""
    points = cloud(300, 16, seed=1)
    first, again = principal_plane(points), principal_plane(points.copy())
    assert (first.xs, first.ys, first.explained) == (again.xs, again.ys, again.explained)
    moved = principal_plane(points[::-1] + 1)
    assert list(moved.xs)[::-1] == pytest.approx(list(first.xs), abs=0.01)


def test_the_sign_is_fixed() -> None:
    """The direction in which an axis points most is to the right, whatever the order of rows."""
    points = numpy.zeros((4, 3), numpy.float32)
    points[:, 1] = [-2, -1, 1, 2]
    points[:, 2] = [0.1, -0.1, -0.1, 0.1]
    plane = principal_plane(points)
    assert list(plane.xs) == pytest.approx([-2, -1, 1, 2], abs=1e-4)
    assert list(plane.ys) == pytest.approx([0.1, -0.1, -0.1, 0.1], abs=1e-4)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_without_spread_all_points_are_one(count: int) -> None:
    """Nothing, one text, or equal vectors: points in the middle, nothing explained."""
    plane = principal_plane(numpy.full((count, 7), 0.5, numpy.float32))
    assert plane.xs == plane.ys == array("f", [0.0] * count)
    assert plane.explained == (0.0, 0.0)
