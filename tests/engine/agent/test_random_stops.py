"""The benchmark's stops, a few of them: nothing happens after a receipt, and it lists all that lived."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.stopping import LIMITS_MS, measure


async def test_receipts_of_random_stops_are_true_and_nothing_happens_after_them(tmp_path: Path) -> None:
    measured = await measure(tmp_path, 12, seed=3)
    assert measured.stops == 12
    assert measured.untrue == []
    assert measured.listed == measured.alive > 0
    assert (measured.files_changed, measured.actions_started) == (0, 0)
    assert all(measured.times_ms[name] for name in LIMITS_MS)
