"""An agent with the reactive procedure, answered by hand."""

from __future__ import annotations

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_program
from engine.bdi.terms import Struct
from engine.planning.pgp.answer_parser import parse_answer
from engine.planning.pgp.documentation import ActionSpec
from engine.planning.pgp.generated_plans import Provenance
from engine.planning.pgp.plan_comparison import event_key
from engine.planning.pgp.procedure import ReactiveProcedure
from engine.planning.pgp.validation import DEFAULT_LIMITS, GenerationLimits, review

ACTIONS = (
    ActionSpec("print", ("text",), internal=True),
    ActionSpec("fail", internal=True),
    ActionSpec("wait", ("ms",), internal=True),
)


class Flight:
    """An agent with the procedure, and what it has said."""

    def __init__(self, program: str, limits: GenerationLimits = DEFAULT_LIMITS) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.agent = BdiAgent("a", parse_program(program), say=self.said.append, warn=self.warned.append)
        self.procedure = ReactiveProcedure(self.agent, limits)

    def until_idle(self, cycles: int = 200) -> None:
        for _ in range(cycles):
            self.agent.cycle()
            if self.agent.idle:
                return
        raise AssertionError(f"still busy after {cycles} cycles")

    def asked_for(self) -> list[str]:
        return [event_key(one.goal) for one in self.procedure.questions]

    def answer(self, *plans: str) -> None:
        """Settle the oldest question with plans `goal: operation; operation`."""
        question = self.procedure.questions[0]
        text = "\n---\n".join(
            f"EVENT: achieve {goal}\nOPERATIONS:\n" + "\n".join(f"- {step}" for step in steps.split("; "))
            for goal, steps in (one.split(": ") for one in plans)
        )
        judged = review(parse_answer(text, ACTIONS), question.goal, ACTIONS)
        key = event_key(question.goal)
        self.procedure.settle(question, judged, Provenance(key, "recorded", "p", "t", depth=question.depth))


def say(word: str) -> str:
    return f'execute print("{word}")'


def fact(text: str) -> Struct:
    return parse_program(f"{text}.").beliefs[0].literal
