"""Speed, as ratios against a baseline measured in the same run; never asserted by a test."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

NAMES = (
    "journal",
    "memory",
    "forgetting",
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
    "other_agents",
    "steering",
)


def run_all(name: str = "") -> Iterator[dict[str, Any]]:
    """The rows of one benchmark, or of all but `steering`, which collects those of others, as they come."""
    for one in NAMES:
        if name == one or (not name and one != "steering"):
            yield from import_module(f"{__name__}.{one}").rows()
