"""Plan generation: from a thinker's or an operator's text to steps that are known to be runnable.

In: text or proposed steps. Out: plan steps, or every reason why they are refused.
"""

from engine.generation.notation import PlanSyntaxError, parse_plan
from engine.generation.validation import problems_of

__all__ = ["PlanSyntaxError", "parse_plan", "problems_of"]
