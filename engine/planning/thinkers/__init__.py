"""Thinkers: who decides for an agent.

What may enter: a goal with the session and beliefs it is planned in (`engine.core.thinking`), the
plan library, and the port to a model. What leaves: proposals. A thinker never acts and never
changes state; the agent adopts, edits or rejects what it proposes.
"""

from __future__ import annotations

CLAUDE = "claude"
"""The thinker that asks a model, as an agent's configuration says it."""
PROCEDURAL = "procedural"
"""The thinker that plans by recipes."""
