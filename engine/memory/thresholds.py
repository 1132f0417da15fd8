"""When to reflect and when to consolidate: thresholds that follow how the work goes.

Pure functions of counters that the loop keeps. Source: spec master-loop-and-memory §3.5, with the band of
§3.16 W11 in which the threshold of consolidation does not move.
"""

from __future__ import annotations

import math

from engine.domain.metacognition import Bounds, MetaSettings

DAMPENING = 0.75
MOMENTUM = 0.2
"""By how much a rise is enlarged while nothing fails (the source's factor 1.2)."""
TARGET_FAILURE_RATE = 0.10
STABLE_FAILURE_RATE = 0.05
MINIMUM_CALLS = 5
"""Calls below which a failure rate says nothing."""
EPISODIC_BAND = (0.10, 0.30)
EPISODIC_MIDPOINT = 0.20


REFLECTION = MetaSettings().reflection
CONSOLIDATION = MetaSettings().consolidation


def adapted_reflection(
    threshold: int, calls: int, failures: int, consecutive_errors: int, bounds: Bounds = REFLECTION
) -> int:
    """The threshold of reflection after a look at how the agent's calls went.

    Args:
        threshold: the one in force.
        calls: calls of tools that are counted.
        failures: how many of them failed.
        consecutive_errors: errors since the last success.
        bounds: how far it may go.
    """
    if calls < MINIMUM_CALLS:
        return threshold
    rate = failures / calls
    # Rounded first: 0.2 - 0.1 is a little more than 0.1 in binary, and the ceiling would make a step of it.
    change = -math.ceil(round((rate - TARGET_FAILURE_RATE) * threshold * 3, 9))
    if rate < STABLE_FAILURE_RATE and not consecutive_errors and change >= 0:
        change += math.ceil(round(MOMENTUM * change, 9))
    return bounds.clamp(threshold + math.trunc(DAMPENING * change))


def adapted_consolidation(threshold: int, episodic: int, total: int, bounds: Bounds = CONSOLIDATION) -> int:
    """The threshold of consolidation after a look at how much of memory is episodic.

    Args:
        threshold: the one in force.
        episodic: episodic memories.
        total: memories of all levels; without any there is nothing to go by.
        bounds: how far it may go.
    """
    if not total:
        return threshold
    share = episodic / total
    if EPISODIC_BAND[0] <= share <= EPISODIC_BAND[1]:
        return threshold
    change = -math.ceil(round((share - EPISODIC_MIDPOINT) * threshold * 2, 9))
    return bounds.clamp(threshold + math.trunc(DAMPENING * change))


def consolidation_overdue(unconsolidated_episodic: int, threshold: int) -> bool:
    """Whether so many episodic memories wait that consolidation is due at once (§3.5, extra)."""
    return unconsolidated_episodic > 2 * threshold
