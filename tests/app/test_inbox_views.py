"""The inbox as the cockpit shows it."""

from __future__ import annotations

from app.projection.steering_views import inbox
from engine.inquiry.inbox import Need, NeedKind


def test_an_approval_that_is_denied_by_itself_shows_the_time_left() -> None:
    since, now, until = (f"2026-01-01T00:0{minute}:00Z" for minute in (0, 4, 9))
    needs = [
        Need("pilot", NeedKind.APPROVAL, "a1", "write a.txt", since, until=until),
        Need("pilot", NeedKind.TURN, "s1", "your turn", since),
    ]
    tails = ["".join(piece.text for piece in row.tail) for row in inbox(needs, now).rows]
    assert tails == ["4m ✗ in 5m", "4m"]
