"""Looking for better thresholds: the values around the present ones, one at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from engine.parameters.settings import KEY as PROCESSING
from engine.parameters.thresholds import Thresholds
from engine.recovery.settings import KEY as RECOVERY

DEFAULTS: Thresholds = {
    RECOVERY: {"max_consecutive_errors": 3},
    PROCESSING: {"enable_path_correction": True, "fallback_to_defaults": True},
}
"""What holds where the file says nothing, of what is searched."""
RANGES = {
    (RECOVERY, "max_consecutive_errors"): (1, 8, 1),
}
"""Lowest and highest value that is tried, and how far apart neighbours are."""
UNSEARCHED = (
    "metacognition's numbers, as no sealed task tells one value from another: without a model nothing of it "
    "touches an agent's turn, and with one a small task is over before anything of it falls due"
)
"""What of the file is the operator's alone, and why."""
_HEAD = "# Numbers by which agents' loops decide; an agent's own configuration counts before them.\n"

Change = tuple[str, Thresholds]
"""What was changed, in words, and all of the values."""


def written(tables: Thresholds) -> str:
    """Thresholds as a file; values are numbers, words and switches."""
    parts = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    ]
    return "\n".join([_HEAD, *parts])


DEFAULT_TEXT = written(DEFAULTS)


def neighbours(tables: Thresholds, rng: random.Random) -> Iterator[Change]:
    """Every set of values with one of them changed, in an order drawn by the generator.

    What holds by default counts as present. Values of one that lies outside of its range move into it.
    """
    found: list[Change] = []
    for (table, name), (low, high, step) in RANGES.items():
        now = _value(tables, table, name)
        near = {now - step, now + step, now - 2 * step, now + 2 * step}
        for value in sorted(min(high, max(low, one)) for one in near):
            if value != now:
                found.append(_changed(tables, table, name, value, now))
    for name in DEFAULTS[PROCESSING]:
        now = bool(_value(tables, PROCESSING, name))
        found.append(_changed(tables, PROCESSING, name, not now, now))
    different = {written(change[1]): change for change in found}
    order = list(different.values())
    rng.shuffle(order)
    yield from order


def _value(tables: Thresholds, table: str, name: str) -> int:
    value = tables.get(table, {}).get(name, DEFAULTS[table][name])
    return int(value) if isinstance(value, int) else int(DEFAULTS[table][name])


def _changed(tables: Thresholds, table: str, name: str, value: int | bool, now: int | bool) -> Change:
    after = {key: dict(of) for key, of in tables.items()}
    after.setdefault(table, {})[name] = value
    return f"{table}.{name} {json.dumps(now)} → {json.dumps(value)}", after
