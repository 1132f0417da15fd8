"""Streams of events made by hand, folded as they come, for breakpoints."""

from __future__ import annotations

from typing import Any

from engine.agent.steering.gate import hold
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, Reversibility
from engine.core.breakpoints import read_break
from engine.core.fold import apply
from engine.core.journal import Event
from engine.core.plan import PlanStep, StepStatus
from engine.core.state import AgentState


class Watched:
    """A stream and its state; what reaches a breakpoint is recorded as an agent would."""

    def __init__(self, *lines: str) -> None:
        self.state = AgentState()
        self.events: list[Event] = []
        self.held: list[tuple[str, str]] = []
        """Breakpoint and what came, in order."""
        self.add(ev.AgentResumed())
        for number, line in enumerate(lines, 1):
            self.add(ev.BreakpointAdded(breakpoint=f"b{number}", spec=read_break(line)), actor="operator:ann")

    def add(self, said: ev.Payload, actor: str = "agent") -> str:
        version = len(self.events) + 1
        time = f"2026-01-01T00:{version // 60 % 60:02}:{version % 60:02}.000Z"
        event = Event("pilot", version, time, version, actor, (), said.kind, said.body(), "h", seq=version)
        self.events.append(event)
        apply(self.state, event)
        return event.ref

    def look(self, step: str = "") -> bool:
        """Stand at the gate or between two steps, as the agent's cycle does; True when it is held."""
        stand = hold(self.state, step=step or "-")
        if stand is None or stand.breakpoint is None:
            return False
        for one in stand.breakpoint.came:
            self.held.append((one.breakpoint, one.what))
            self.add(
                ev.BreakpointHit(
                    breakpoint=one.breakpoint, what=one.what, came=one.event, at=stand.breakpoint.at
                )
            )
        self.add(ev.AgentPaused(reason=stand.reason))
        self.add(ev.AgentResumed(), "operator:ann")
        return True

    def plan(self, *steps: PlanStep, goal: str = "g1", text: str = "build it") -> None:
        self.add(ev.GoalAdopted(goal=goal, text=text), "operator:ann")
        self.add(ev.GoalSelected(goal=goal))
        self.add(ev.PlanAdopted(plan=f"p{goal[1:]}", goal=goal, steps=steps))
        self.look()

    def act(
        self,
        number: int,
        command: str = "write",
        *,
        beliefs: dict[str, Any] | None = None,
        code: ErrorCode | None = None,
        step: str = "",
        **args: Any,
    ) -> bool:
        """One action from request to end; False when a breakpoint held it before its start."""
        action, step = f"a{number}", step or f"s{number}"
        self.add(
            ev.ActionRequested(
                action=action, step=step, goal="g1", tool="simple_coder", command=command, args=args
            )
        )
        held = self.look(step)
        assert not self.look(step), "what has held once lets go"
        self.add(ev.ActionStarted(action=action, undo=Reversibility.WORKSPACE, mutates=True))
        result = {"return_code": 1 if code else 0, "stdout": f"{command} {action}\nall done"}
        status = ResultStatus.FAILURE if code else ResultStatus.SUCCESS
        self.add(
            ev.ActionFinished(action=action, status=status, code=code, result=result, summary=f"did {action}")
        )
        for key, value in (beliefs or {}).items():
            self.believe(key, value)
        ended = StepStatus.FAILED if code else StepStatus.COMPLETED
        self.add(ev.StepEnded(goal="g1", step=step, status=ended))
        self.look()
        return not held

    def believe(self, key: str, value: Any) -> None:
        held = self.state.beliefs.get(key)
        if value is None:
            self.add(ev.BeliefRemoved(key=key))
        elif held is None or held.value != value:
            self.add(ev.BeliefAdded(key=key, value=value))


def steps(count: int) -> tuple[PlanStep, ...]:
    return tuple(
        PlanStep(f"s{n}", f"do thing {n}", tool="simple_coder", command="write") for n in range(1, count + 1)
    )
