"""Steering: how the operator holds, releases and directs agents.

In: an agent's state. Out: whether an action may start, and if not, why.
"""

from engine.steering.gate import Hold, hold

__all__ = ["Hold", "hold"]
