"""Speed, as ratios against a baseline measured in the same run; never asserted by a test."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = (
    "journal",
    "memory",
    "opening",
    "starting",
    "looking_back",
    "cockpit",
    "screen",
    "model",
    "stopping",
    "approvals",
    "jail",
    "snapshot",
    "rewinding",
    "bdi",
    "breakpoints",
    "killing",
    "flipping",
    "storage",
    "judging",
    "code",
    "evolving",
    "fleet",
    "remote",
)


def run_all(name: str = "") -> list[dict[str, Any]]:
    """The rows of one benchmark, or of all."""
    return [row for one in NAMES if name in ("", one) for row in import_module(f"{__name__}.{one}").rows()]
