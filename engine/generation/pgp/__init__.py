"""The plan generation procedure of a BDI agent, without its embedding: pure functions and values.

In: a goal without plans, the agent as documented, and the words of a model. Out: prompts; plans that may
be installed, each refused one with its reason; what became of them since (spec BDI §2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.generation.pgp.asking import Answerer
    from engine.generation.pgp.recorded_answers import RecordedAnswers
else:
    __getattr__ = late(
        __name__,
        {
            "asking": ("Answerer",),
            "recorded_answers": ("RecordedAnswers",),
        },
    )

__all__ = ["Answerer", "RecordedAnswers"]
