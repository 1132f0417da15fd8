"""The cockpit: the full-screen application in which an operator steers agents.

In: keys, clicks, command lines, and the engine's event stream. Out: commands to the engine.
One class a concern: layout, run keys, plan keys, turn keys, agent keys, command line, leaving.
"""

from __future__ import annotations

from app.cockpit.app import Cockpit, fly

__all__ = ["Cockpit", "fly"]
