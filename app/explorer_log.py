"""A run of the explorer as log lines (spec BDI §2.10)."""

from __future__ import annotations

from collections.abc import Callable

from engine.bdi.terms import Struct
from engine.bdi.trace import TraceEvent
from engine.generation.pgp import log_events as log
from engine.generation.pgp.run_log import RunLog
from engine.worlds.explorer import ExplorerState, Feedback, FeedbackKind
from engine.worlds.explorer_run import ACTIONS, NAME, ExplorerRun

_ACTIVITIES: dict[str, log.ActivityChanged] = {
    "sleep": log.ActivityChanged(activity="sleep"),
    "pause": log.ActivityChanged(activity="pause"),
    "stop": log.ActivityChanged(activity="stop"),
}


class ExplorerLog:
    """Follows one run.

    Args:
        system: names the run.
        write: gets each line.
    """

    def __init__(self, system: str, write: Callable[[log.LogLine], None]) -> None:
        self._log = RunLog(system, NAME, ACTIONS, write)
        self._log.note(log.EnvironmentChanged(change="agent_spawned", text=NAME))

    def trace(self, record: TraceEvent) -> None:
        """The agent reports a change."""
        self._log.trace(record)

    def note(self, event: log.LogEvent, generation: str) -> None:
        """A generation reports a change."""
        self._log.note(event, generation)

    def acted(self, action: Struct, feedback: Feedback | None, state: ExplorerState) -> None:
        """An action was run; the world names its success."""
        if action.functor in _ACTIVITIES:
            self._log.note(_ACTIVITIES[action.functor])
        if feedback is None or not feedback.success:
            return
        if action.functor == "move":
            place = f"{NAME} at ({state.robot.x}, {state.robot.y})"
            self._log.note(log.EnvironmentChanged(change="data_updated", text=place))
        if feedback.kind is FeedbackKind.REACHED:
            self._log.succeeding(feedback.kind, object=feedback.value)
        elif feedback.kind is FeedbackKind.DIRECTION:
            self._log.succeeding(feedback.kind, direction=feedback.value)
        else:
            self._log.succeeding(feedback.kind, old=list(feedback.old), new=list(feedback.new))

    def ended(self, run: ExplorerRun) -> None:
        """The run is over, and the agent with it."""
        facts = {"seed": run.seed, "ending": run.ending, "cycles": run.cycles, "moves": run.moves}
        self._log.note(log.WorldEvent(name="RunEnded", data={**facts}))
        self._log.note(_ACTIVITIES["stop"])
        self._log.note(log.EnvironmentChanged(change="agent_removed", text=NAME))
