"""What happens at a time: a goal fails (`hard_deadline`), an event is raised (`.at`) (spec §1.6, §1.8).

A goal's deadline runs from the moment the goal is posted until it is achieved, fails or is dropped; the plan
that handles its failure is no longer under it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, TypeAlias

from engine.bdi import failures, waiting
from engine.bdi import trace as record
from engine.bdi.arithmetic import number
from engine.bdi.printing import number_text, text_of
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.terms import Struct

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent
    from engine.bdi.intentions import Event, Intention


class Alarm:
    """Something that happens at a time unless it is over before."""

    __slots__ = ("number", "over")

    def __init__(self, number: int) -> None:
        self.number = number
        self.over = False

    def ring(self, agent: BdiAgent) -> None:
        """Do it."""
        raise NotImplementedError


Alarms: TypeAlias = list[tuple[float, int, Alarm]]
"""A heap of logical times, numbers and what happens then."""


class Appointment(Alarm):
    """Raises its event."""

    __slots__ = ("event",)

    def __init__(self, number: int, event: Event) -> None:
        super().__init__(number)
        self.event = event

    def ring(self, agent: BdiAgent) -> None:
        """Post the event; where too many wait already, it is traced as dropped."""
        try:
            agent.post(self.event)
        except EvaluationError as error:
            if agent.tracer is not None:
                agent.tracer(record.EventDropped(agent.name, agent.cycles, self.event.text, str(error)))


class Deadline(Alarm):
    """Lets a goal fail: its event while no plan has taken it up, later the frame that pursues it."""

    __slots__ = ("event", "intention", "limit")

    def __init__(self, number: int, limit: float) -> None:
        super().__init__(number)
        self.event: Event | None = None
        """The goal's."""
        self.intention: Intention | None = None
        """The one that has a plan for the goal."""
        self.limit = limit
        """Milliseconds."""

    def ring(self, agent: BdiAgent) -> None:
        """Let the goal fail, with everything that was begun for it."""
        intention, event = self.intention, self.event
        if intention is not None:
            frames = intention.frames
            place = next(at for at, frame in enumerate(frames) if frame.deadline is self)
            waiting.call_off(agent, intention)
            message = self._message(frames[place].literal)
            failures.fail_goal(agent, intention, place, ErrorId.DEADLINE_REACHED, message)
        elif event is not None:
            if event.intention is not None:
                waiting.call_off(agent, event.intention)
            elif event in agent.events:
                agent.events.remove(event)
            else:
                return  # the host took the event away
            failures.fail_event(agent, event, ErrorId.DEADLINE_REACHED, self._message(event.literal))

    def _message(self, goal: Struct) -> str:
        return f"{text_of(goal.with_annotations(()))} was not achieved within {number_text(self.limit)} ms"


def deadline(agent: BdiAgent, event: Event) -> None:
    """Set the alarm that a goal's `hard_deadline(milliseconds)` asks for.

    Raises:
        EvaluationError: the annotation holds no number, or too many alarms are set.
    """
    for note in event.literal.annotations:
        if isinstance(note, Struct) and note.indicator == "hard_deadline/1":
            limit = float(number(note.args[0]))
            event.deadline = Deadline(agent.number(), limit)
            event.deadline.event = event
            set_alarm(agent, agent.now + limit, event.deadline)
            return


def set_alarm(agent: BdiAgent, due: float, alarm: Alarm) -> None:
    """Let something happen at a time.

    Raises:
        EvaluationError: too many alarms are set.
    """
    size = len(agent.alarms)
    if size >= _SPARE and not size & (size - 1):
        # Those that are over leave their places behind; at each power of two they are cleared away.
        agent.alarms[:] = sorted(one for one in agent.alarms if not one[2].over)
    if size >= agent.limits.events:
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{size} deadlines and appointments are waiting")
    heapq.heappush(agent.alarms, (due, alarm.number, alarm))


_SPARE = 64


def soonest(alarms: Alarms) -> float | None:
    """The time of the next alarm that is not over, None when there is none."""
    while alarms and alarms[0][2].over:
        heapq.heappop(alarms)
    return alarms[0][0] if alarms else None


def fire(agent: BdiAgent) -> bool:
    """Let happen what is due; True when something was."""
    fired = False
    while (due := soonest(agent.alarms)) is not None and due <= agent.now:
        alarm = heapq.heappop(agent.alarms)[2]
        alarm.over = fired = True
        alarm.ring(agent)
    return fired


def appointments(agent: BdiAgent) -> list[Appointment]:
    """Events that are to be raised, soonest first."""
    return [one for _, _, one in sorted(agent.alarms) if isinstance(one, Appointment) and not one.over]
