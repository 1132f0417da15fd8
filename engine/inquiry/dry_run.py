"""How often breakpoints would have held an agent: its history folded once more with them in it.

What holds a live agent holds here, by the same functions; nothing is written. An agent that is held looks at
what has come before whatever would come next, so what came in one breath counts as one hold.
Source: spec steering §3 idea 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from engine.domain.breakpoints import BEFORE_ACTING, Breakpoint, BreakSpec
from engine.domain.state import AgentState
from engine.journal import break_fold
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.fold import apply, handled

STOPS_TOLD = 20
"""Holds of which event and time are told."""
_OF_BREAKPOINTS = {ev.BreakpointAdded.kind, ev.BreakpointChanged.kind, ev.BreakpointSet.kind}
_EFFECTS = {
    *(kind.kind for kind in break_fold.BEGINNINGS),
    *(ev.PlanAsked.kind, ev.ParametersAsked.kind, ev.GenerationAsked.kind, ev.ReasonerAdvanced.kind),
    *(ev.GoalEnded.kind, ev.CommandReceived.kind, ev.BreakpointHit.kind),
}
"""What an agent that is held does not do: before it, it would have stood."""


@dataclass(frozen=True, slots=True)
class DryStop:
    """A place where the agent would have been held."""

    event: str
    """The event by which the breakpoint came."""
    at: str
    """When, ISO 8601 UTC."""
    what: str


@dataclass(slots=True)
class DryResult:
    """What one breakpoint would have done."""

    spec: BreakSpec
    matched: int = 0
    """How often it came."""
    stopped: int = 0
    """How often it would have held the agent."""
    stops: list[DryStop] = field(default_factory=list)
    """The first of these."""


class DryRun:
    """Takes the events of one stream in their order and says what breakpoints would have done.

    Args:
        specs: what is watched for.
        state: the agent before the first event; it is changed.
    """

    def __init__(self, specs: Sequence[BreakSpec], state: AgentState | None = None) -> None:
        self.results = {f"b{number}": DryResult(spec) for number, spec in enumerate(specs, 1)}
        self.events = 0
        self._state = state if state is not None else AgentState()
        self._state.points, self._state.watched, self._state.reached = {}, {}, ()
        for ident, one in self.results.items():
            break_fold.put(self._state, Breakpoint(ident, one.spec))

    def take(self, events: Iterable[Event]) -> None:
        """Bring the run forward."""
        for event in events:
            self.events += 1
            if event.kind in _EFFECTS:
                self._state.reached = ()
            if event.kind not in _OF_BREAKPOINTS and handled(event.kind):
                self._take(event)

    def _take(self, event: Event) -> None:
        state, before = self._state, self._state.points
        said = ev.payload_of(event)
        if isinstance(said, ev.BreakpointHit) and said.breakpoint:
            return
        known, waits = state.reached, event.kind in state.watched
        place = (state.action.event if state.action is not None else "") or event.ref
        before = dict(before) if waits else before
        apply(state, event, said)
        if not waits:
            return
        for ident, one in list(state.points.items()):
            if one.matched == before[ident].matched:
                continue
            self.results[ident].matched = one.matched
            if one.spec.kind in BEFORE_ACTING and break_fold.fires(one.spec, one.matched):
                self._stop(ident, DryStop(place, event.at, "before it"))
                if one.spec.once:
                    break_fold.put(state, replace(one, enabled=False))
        for came in state.reached:
            if came not in known:
                self._stop(came.breakpoint, DryStop(came.event, event.at, came.what))

    def _stop(self, ident: str, stop: DryStop) -> None:
        result = self.results[ident]
        result.stopped += 1
        if len(result.stops) < STOPS_TOLD:
            result.stops.append(stop)
