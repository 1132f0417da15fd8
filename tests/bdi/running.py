"""Small programs run to their end."""

from __future__ import annotations

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_program
from engine.bdi.printing import text_of
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.system import DONE, Actions, Outcome, System
from engine.bdi.terms import Struct
from engine.bdi.trace import TraceEvent

ROUNDS = 50_000
"""More than any program here needs."""


class Run:
    """Agents with their programs, what they said and what was traced."""

    def __init__(
        self,
        program: str,
        *,
        semantics: Semantics | None = None,
        limits: Limits | None = None,
        seed: int = 0,
        traced: bool = False,
        **others: str,
    ) -> None:
        self.said: list[str] = []
        self.by_agent: list[tuple[str, str]] = []
        self.done: list[str] = []
        self.trace: list[TraceEvent] = []
        self.system = System(
            environment=self._world(),
            semantics=semantics,
            limits=limits,
            seed=seed,
            say=self._say,
            tracer=self.trace.append if traced else None,
        )
        for name, text in {"ag": program, **others}.items():
            self.system.add(name, parse_program(text, f"{name}.asl"))

    def _world(self) -> Actions:
        """`act(…)` is noted and succeeds, `break(Why)` fails, `draw(X)` binds X to 7."""
        world = Actions()

        @world.action("act", 0, 1, 2)
        def act(agent: str, action: Struct) -> Outcome:
            self.done.append(text_of(action))
            return DONE

        @world.action("break", 1)
        def fail(agent: str, action: Struct) -> Outcome:
            return Outcome(False, text_of(action.args[0]))

        @world.action("draw", 1)
        def draw(agent: str, action: Struct) -> Outcome:
            return Outcome(True, answer=Struct("draw", (7,)))

        return world

    def _say(self, agent: str, text: str) -> None:
        self.said.append(text)
        self.by_agent.append((agent, text))

    @property
    def agent(self) -> BdiAgent:
        return self.system.agents["ag"]

    def of(self, kind: type[TraceEvent]) -> list[TraceEvent]:
        return [one for one in self.trace if isinstance(one, kind)]

    def end(self, rounds: int = ROUNDS) -> Run:
        assert self.system.run(rounds) < ROUNDS, "the program does not come to its end"
        return self


def said(program: str, **options: object) -> list[str]:
    """What a program prints until nothing is left to do."""
    return Run(program, **options).end().said  # type: ignore[arg-type]


def beliefs(agent: BdiAgent) -> list[str]:
    """Beliefs with their annotations, oldest first."""
    return [text_of(fact.literal) for fact in agent.beliefs]
