"""Recovery: what kind of failure it was, and what to do about it.

In: an error code or a failure kind, and what was tried. Out: one strategy, with its reason.
"""

from engine.recovery.classify import classify
from engine.recovery.strategy import Choice, choose

__all__ = ["Choice", "choose", "classify"]
