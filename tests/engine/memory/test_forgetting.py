"""Upkeep forgets records of what was done, and not what later questions need."""

from __future__ import annotations

from tests.benchmarks.forgetting import month


async def test_upkeep_takes_nothing_away_that_is_asked_for_later() -> None:
    """A month of 600 actions: each maintenance, promotion and consolidation as often as by default."""
    before = await month(600, upkeep=False)
    after = await month(600, upkeep=True)
    assert after.asked == before.asked > 20
    assert after.found >= before.found * 0.95
    assert after.found_late >= before.found_late * 0.9 > 0
