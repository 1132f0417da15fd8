"""Thinkers: who decides for an agent.

What may enter: a goal with the session and beliefs it is planned in (`engine.domain.thinking`), the
plan library, and the port to a model. What leaves: proposals. A thinker never acts and never
changes state; the agent adopts, edits or rejects what it proposes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.thinkers.answerer import ModelAnswerer
    from engine.thinkers.brief import brief_problem
    from engine.thinkers.by_spec import SpecThinker
    from engine.thinkers.claude import ClaudeThinker
    from engine.thinkers.procedural import ProceduralThinker
    from engine.thinkers.rubric_asking import RubricJudge
    from engine.thinkers.spec_asking import SpecAsker
else:
    __getattr__ = late(
        __name__,
        {
            "answerer": ("ModelAnswerer",),
            "brief": ("brief_problem",),
            "by_spec": ("SpecThinker",),
            "claude": ("ClaudeThinker",),
            "procedural": ("ProceduralThinker",),
            "rubric_asking": ("RubricJudge",),
            "spec_asking": ("SpecAsker",),
        },
    )

CLAUDE = "claude"
"""The thinker that asks a model, as an agent's configuration says it."""

__all__ = [
    "CLAUDE",
    "ClaudeThinker",
    "ModelAnswerer",
    "ProceduralThinker",
    "RubricJudge",
    "SpecAsker",
    "SpecThinker",
    "brief_problem",
]
