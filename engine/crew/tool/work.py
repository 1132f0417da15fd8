"""One call of the tool `crew`: who calls, for which handoff, what it believes; and how it is answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.agents.kinds import ErrorCode, HandoffState
from engine.agents.result import HandoffResult
from engine.crew.parts import Desk, HandoffError, Running
from engine.domain import action
from engine.domain.action import ResultStatus, ToolResult
from engine.domain.ports import CallContext
from engine.domain.running import REPAIRS, RETURNED
from engine.journal.event import canonical
from engine.thinkers.brief import Brief

NOT_TAKEN = action.ErrorCode.BAD_ARGUMENTS
"""What a model is told and answers by another try; nothing is repeated by itself."""


@dataclass(frozen=True, slots=True)
class Work:
    """A call of a run."""

    desk: Desk
    run: str
    handoff: Running
    command: str
    args: Mapping[str, Any]
    context: CallContext

    @property
    def brief(self) -> Brief:
        """What the run was made for, with how far the handoff is."""
        return Brief(self.handoff.spec, self.handoff.context, self.handoff.progress)

    @property
    def beliefs(self) -> Mapping[str, Any]:
        """What the run believes."""
        return self.context.beliefs

    @property
    def key(self) -> str:
        """The same for a call that is made again after the program's end."""
        said = canonical([self.command, dict(self.args)])
        return f"{self.run}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    @property
    def repairs(self) -> int:
        """How often what it wants to say was sent back."""
        found = self.beliefs.get(REPAIRS)
        return int(found.get("times", 0)) if isinstance(found, Mapping) else 0

    def sent_back(self, wrong: Sequence[str], draft: Mapping[str, Any]) -> ToolResult:
        """Send it back with exactly what is wrong."""
        held = {"times": self.repairs + 1, "what": list(wrong), "draft": dict(draft)}
        return refused("; ".join(wrong), beliefs={REPAIRS: held}, failed=list(wrong))

    @property
    def steps(self) -> bool:
        """Whether the operator wants to be asked after each checkpoint or round, as things stand now."""
        return (self.desk.handoff_of(self.run) or self.handoff).steps

    async def keep(self, what: str, progress: Mapping[str, Any], note: str = "") -> None:
        """Have the manager record how far the run is."""
        now = self.desk.handoff_of(self.run)
        before = now.progress if now is not None else self.handoff.progress
        await self.desk.keep(self.run, what, {**before, **progress}, note)

    async def give(self, result: HandoffResult, **beliefs: Any) -> ToolResult:
        """Hand the result to the manager; where the handoff has ended meanwhile, the run is over as well."""
        try:
            await self.desk.accept(self.run, result)
        except HandoffError as error:
            return done(f"too late: {error.message}", beliefs={RETURNED: "over", REPAIRS: None, **beliefs})
        message = "returned" if result.success else f"ended as {result.error_code}: {result.error}"
        held = {RETURNED: result.state.value, REPAIRS: None, **beliefs}
        return done(message, beliefs=held, state=result.state.value, warnings=list(result.warnings))

    def failing(self, code: ErrorCode, error: str, **said: Any) -> HandoffResult:
        """A result that says why there is none."""
        context = self.handoff.context
        return HandoffResult(
            handoff_id=context.handoff_id,
            from_agent=context.to_agent,
            to_agent=context.return_to,
            success=False,
            error=error,
            error_code=code,
            state=HandoffState.FAILED,
            attempt=context.attempt,
            **said,
        )


def done(message: str, *, beliefs: Mapping[str, Any] | None = None, **data: Any) -> ToolResult:
    """A call that went well."""
    return ToolResult(ResultStatus.SUCCESS, {"message": message, **data}, beliefs=dict(beliefs or {}))


def refused(message: str, *, beliefs: Mapping[str, Any] | None = None, **data: Any) -> ToolResult:
    """A call that came to nothing, which the run is told."""
    said = {"message": message, **data}
    return ToolResult(ResultStatus.FAILURE, said, NOT_TAKEN, beliefs=dict(beliefs or {}))


def told(error: HandoffError) -> ToolResult:
    """What the manager refused."""
    return refused(f"{error.code}: {error.message}", handoff_code=error.code.value)
