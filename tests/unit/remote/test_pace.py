"""No more requests a minute than a person allows."""

from filestore.remote.service import Pace


def test_turns_are_spread_over_the_minute() -> None:
    """The first goes at once, each other a gap after the one before it; time that passed counts."""
    clock = [1_000.0]
    pace = Pace(30, now=lambda: clock[0])
    assert [pace.turn_s() for _ in range(3)] == [0.0, 2.0, 4.0]
    clock[0] += 5
    assert pace.turn_s() == 1.0
    clock[0] += 60
    assert [pace.turn_s() for _ in range(2)] == [0.0, 2.0]


def test_without_a_limit_nobody_waits() -> None:
    """None is as many as the service takes."""
    pace = Pace(now=lambda: 0.0)
    assert [pace.turn_s() for _ in range(9)] == [0.0] * 9
