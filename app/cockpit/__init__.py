"""The cockpit: the full-screen application in which an operator steers agents.

In: keys, clicks, command lines, and the engine's event stream. Out: commands to the engine.
One class a concern: layout, run keys, plan keys, turn keys, agent keys, command line, leaving.
"""

from __future__ import annotations

import os

# Textual reads on import how often it may paint. At its 60 times a second, what a key changed would wait for
# up to 33 ms behind any other paint. The cockpit's frames come no more often for it.
os.environ.setdefault("TEXTUAL_FPS", "200")

from app.cockpit.app import Cockpit, fly

__all__ = ["Cockpit", "fly"]
