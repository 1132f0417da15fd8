"""A role's reply is looked at before it is shown (ontology spec §1.12, §5 larry)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.agents.clarity import ProblemClarity
from engine.agents.criteria import count_words, question_count
from engine.agents.kinds import Check
from engine.agents.result import GateOutcome
from engine.agents.spec import RoleRules
from engine.agents.values import Value

QUESTIONS_BEFORE_ASKING = 10
"""Questions without readiness after which the operator is asked how to go on."""
_LIST = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.M)
_RECOMMENDS = re.compile(
    r"\b(i|we)('d| would)? (recommend|suggest|advise|propose)\b|"
    r"\byou (should|ought to|could try|need to|might want to)\b|"
    r"\bmy (recommendation|advice|suggestion)\b|\bthe (best|right) (solution|approach|way) (is|would be)\b|"
    r"\b(try|consider|start by) \w+ing\b",
    re.IGNORECASE,
)


class RoleState(Value):
    """Where a role stands in its conversation."""

    clarity: ProblemClarity = ProblemClarity()
    questions: int = 0
    """How many it has asked."""
    parked: tuple[str, ...] = ()
    """Ideas that waited when it spoke last."""
    turns: int = 0
    flagged: int = 0
    """Replies that were shown although they broke a rule."""

    @property
    def ready(self) -> bool:
        """Whether the problem is ready for analysis."""
        return self.clarity.is_ready_for_analysis

    @property
    def asks_how_to_go_on(self) -> bool:
        """Whether so much was asked without readiness that the operator decides."""
        return not self.ready and self.questions >= QUESTIONS_BEFORE_ASKING


def lint(reply: str, *, ready: bool, rules: RoleRules | None = None) -> tuple[GateOutcome, ...]:
    """Everything that a reply is looked at for.

    Args:
        reply: what the role wants to say.
        ready: whether the problem is ready for analysis; before that nothing is recommended.
        rules: what this role is held to; a clarifier's rules by default.
    """
    said = rules or RoleRules()
    most, wanted = said.max_words, said.questions
    words, questions, said_something = count_words(reply), question_count(reply), bool(reply.strip())
    found = [
        _gate(Check.NON_EMPTY, said_something, "something", "nothing", "say something"),
        _gate(Check.MAX_WORDS, words <= most, f"at most {most} words", f"{words} words", f"use {most} words"),
    ]
    if wanted is not None:
        asks = "one question" if wanted == 1 else f"{wanted} questions"
        message = f"ask exactly {asks}; there are {questions}"
        found.append(
            _gate(Check.QUESTION_COUNT, questions == wanted, asks, f"{questions} questions", message)
        )
    if not said.lists:
        listed = _LIST.search(reply)
        found.append(_gate(Check.REGEX, not listed, "no list", "a list", "say it without a list"))
    if not ready and not said.recommends:
        given = _RECOMMENDS.search(reply)
        message = "recommend nothing before the problem is clear"
        found.append(
            _gate(Check.REGEX, given is None, "no recommendation", given.group() if given else "", message)
        )
    return tuple(found)


def _gate(check: Check, passed: bool, wanted: str, measured: str, message: str) -> GateOutcome:
    measured, message = ("", "") if passed else (measured, message)
    return GateOutcome(check=check, passed=passed, wanted=wanted, measured=measured, message=message)


def replied(state: RoleState, reply: str, *, flagged: bool) -> RoleState:
    """The state after a reply was shown."""
    return state.model_copy(
        update={
            "questions": state.questions + question_count(reply),
            "turns": state.turns + 1,
            "flagged": state.flagged + flagged,
        }
    )


def parked(state: RoleState, ideas: Sequence[str]) -> RoleState:
    """The state with the ideas that wait now; the operator takes them up, or drops them, meanwhile."""
    return state.model_copy(update={"parked": tuple(ideas)})
