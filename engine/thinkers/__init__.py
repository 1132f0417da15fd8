"""Thinkers: who decides for an agent.

What may enter: a goal with the session and beliefs it is planned in (`engine.domain.thinking`), the
plan library, and the port to a model. What leaves: proposals. A thinker never acts and never
changes state; the agent adopts, edits or rejects what it proposes.
"""

from __future__ import annotations

from engine.thinkers.claude import ClaudeThinker
from engine.thinkers.procedural import ProceduralThinker

__all__ = ["ClaudeThinker", "ProceduralThinker"]
