"""Small programs run to their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import _whole
from engine.bdi.printer import plan_text, quoted, text_of
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.syntax import Body, DocKind, Program, Rule
from engine.bdi.system import DONE, ActionResult, System
from engine.bdi.terms import Struct
from engine.bdi.trace import TraceEvent


@dataclass(slots=True)
class Actions:
    """An environment made of Python functions: nothing is perceived, each action is a function's call."""

    known: dict[str, Callable[[str, Struct], ActionResult]] = field(default_factory=dict)
    counts: dict[str, frozenset[int]] = field(default_factory=dict)

    @property
    def actions(self) -> Mapping[str, frozenset[int]]:
        """What was registered."""
        return self.counts

    def action(self, name: str, *counts: int) -> Callable[[_Act], _Act]:
        """Register a function of agent and action under a name with these numbers of arguments."""

        def declare(act: _Act) -> _Act:
            self.known[name] = act
            self.counts[name] = frozenset(counts)
            return act

        return declare

    def percepts(self, agent: str) -> Iterable[Struct] | None:
        """Nothing."""
        return None

    def act(self, agent: str, action: Struct) -> ActionResult:
        """Call the function."""
        return self.known[action.functor](agent, action)


_Act = Callable[[str, Struct], ActionResult]


ROUNDS = 50_000
"""More than any program here needs."""


def program_text(program: Program) -> str:
    """A whole program: includes, documentation, beliefs, rules, goals, plans."""
    lines = [f"{{ include({quoted(include.path)}) }}" for include in program.includes]
    for doc in program.docs:
        if doc.kind is DocKind.REMARK or doc.literal is None:
            lines.append(f"//@ remark {quoted(doc.text)}")
        else:
            subject = f"{doc.subject} " if doc.subject else ""
            lines.append(f"//@ {doc.kind} {subject}{text_of(doc.literal)}: {quoted(doc.text)}")
    for item in program.knowledge:
        if isinstance(item, Rule):
            lines.append(f"{text_of(item.head)} :- {text_of(item.body)}.")
        else:
            lines.append(f"{text_of(item.literal)}.")
    lines += [f"{goal.kind}{text_of(goal.literal)}." for goal in program.goals]
    return "\n".join([*lines, *map(plan_text, program.plans)]) + "\n"


def parse_body(text: str) -> Body:
    """The steps of a body."""
    return _whole(text, "", lambda parser: parser.body())


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
        files = {f"{name}.asl": text for name, text in {"ag": program, **others}.items()}
        self.system = System(
            read=files.__getitem__,
            listed=lambda folder, pattern: (),
            environment=self._world(),
            semantics=semantics,
            limits=limits,
            seed=seed,
            say=self._say,
            tracer=self.trace.append if traced else None,
        )
        for name in ("ag", *others):
            self.system.add(name, self.system.program(f"{name}.asl"))

    def _world(self) -> Actions:
        """`act(…)` is noted and succeeds, `break(Why)` fails, `draw(X)` binds X to 7."""
        world = Actions()

        @world.action("act", 0, 1, 2)
        def act(agent: str, action: Struct) -> ActionResult:
            self.done.append(text_of(action))
            return DONE

        @world.action("break", 1)
        def fail(agent: str, action: Struct) -> ActionResult:
            return ActionResult(False, text_of(action.args[0]))

        @world.action("draw", 1)
        def draw(agent: str, action: Struct) -> ActionResult:
            return ActionResult(True, answer=Struct("draw", (7,)))

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
