"""How often breakpoints would have held an agent: its history folded once more with them in it.

What holds a live agent holds here, by the same functions; nothing is written. An agent that is held looks at
what has come before whatever would come next, so what came in one breath counts as one hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.core import events as ev
from engine.core.breakpoints import Breakpoint, BreakSpec, Reached
from engine.core.fold import apply, handled
from engine.core.folds import breakpoints as break_fold
from engine.core.journal import Event
from engine.core.offload import in_thread
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.streams import StreamHistory
from engine.value import dataclass, field, replace

PAGE = 1_000
"""Events folded at a time."""
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


@dataclass(frozen=True, slots=True)
class DryAnswer:
    """What breakpoints would have done."""

    agent: str
    events: int
    """Events that were looked at."""
    results: tuple[DryResult, ...]


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
        self._state.points, self._state.came, self._state.watched, self._state.reached = {}, {}, {}, ()
        for ident, result in self.results.items():
            break_fold.put_breakpoint(self._state, Breakpoint(ident, result.spec))

    def take(self, events: Iterable[Event]) -> None:
        """Bring the run forward."""
        for event in events:
            self.events += 1
            if event.kind in _EFFECTS:
                self._state.reached = ()
            if event.kind not in _OF_BREAKPOINTS and handled(event.kind):
                self._take(event)

    def _take(self, event: Event) -> None:
        state, waits = self._state, event.kind in self._state.watched
        payload = ev.payload_of(event)
        if isinstance(payload, ev.BreakpointHit) and payload.breakpoint:
            return
        known = state.reached
        before = break_fold.due(state, break_fold.step_begun(state, payload)) if waits else ()
        apply(state, event, payload)
        for came in (*before, *(reached for reached in state.reached if reached not in known)):
            self._stop(came, event)

    def _stop(self, came: Reached, event: Event) -> None:
        result, point = self.results[came.breakpoint], self._state.points[came.breakpoint]
        result.stopped += 1
        if len(result.stops) < STOPS_TOLD:
            result.stops.append(DryStop(came.event, event.at, came.what))
        if point.spec.once and point.enabled:
            break_fold.put_breakpoint(self._state, replace(point, enabled=False))

    def told(self) -> tuple[DryResult, ...]:
        """What each breakpoint would have done so far, in the order given."""
        for ident, came in self._state.came.items():
            self.results[ident].matched = came
        return tuple(self.results.values())


async def dry_run_of(
    store: JournalStore, stream: str, specs: Sequence[BreakSpec], *, last: int | None = None
) -> DryAnswer:
    """What breakpoints would have done over an agent's durable events; folded off the loop.

    Args:
        store: the journal; reading it is all that is done to it.
        stream: the agent.
        specs: what is watched for.
        last: how many of the newest events count; None for all.

    Raises:
        JournalError: the events cannot be read.
    """
    head = (await store.head(stream)).version
    before = max(0, head - last) if last is not None else 0
    run = DryRun(specs, await StreamHistory(store, stream).state(before) if before else None)
    for first in range(before + 1, head + 1, PAGE):
        page = await store.read(stream, first, min(first + PAGE - 1, head))
        await in_thread(run.take, page)
    return DryAnswer(stream, run.events, run.told())
