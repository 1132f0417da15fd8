"""How often a model may put right what it said, checked where it comes in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "repairs"
"""Where the number stands in an agent's configuration."""
REPAIRS = 2
"""The usual number (seed parameter processing; mindX spec §2.8)."""
REPAIRS_LIMIT = 10


class RepairsError(ValueError):
    """The number cannot be used; the message says what it must be."""


def read_repairs(meta: Mapping[str, Any], usual: int = REPAIRS) -> int:
    """How often the model of an agent may put an answer right before it counts as failed; 0 for never.

    Args:
        meta: the agent's configuration.
        usual: the number where the configuration has none, as the workspace's settings say.

    Raises:
        RepairsError: what stands there is no whole number, or out of range.
    """
    given = meta.get(KEY, usual)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= REPAIRS_LIMIT:
        most = f"a whole number from 0 to {REPAIRS_LIMIT}"
        raise RepairsError(f"{KEY}: it is {most}, not {str(given)[:40]!r}")
    return given
