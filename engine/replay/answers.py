"""What answers from the record where an agent would ask its surroundings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.actions.saving import Saved, Unsaved
from engine.domain.action import SandboxSession, ToolResult
from engine.domain.parameters import Extraction, Survey
from engine.domain.ports import CallContext, CommandSpec, Tool
from engine.domain.reasoning import Generation
from engine.domain.session import ReturnedShell
from engine.domain.state import ActiveAction
from engine.domain.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest, ThinkingError
from engine.generation.pgp.asking import Answerer, Prompt, Reply
from engine.generation.pgp.config import EffectiveConfig
from engine.journal import events as ev
from engine.loop.generating import PlanMaker
from engine.loop.offering import commands_of
from engine.loop.recording import RecordingAgent
from engine.models import ModelError, ModelErrorKind
from engine.parameters import Enquiry, Question
from engine.reasoner.reasoner import Reasoner
from engine.replay.record import DivergedError, Record
from engine.snapshots import Changes
from engine.tools.registry import ToolRegistry

_MEANWHILE = (
    *(ev.ReasonerAdvanced, ev.GenerationAsked, ev.GenerationSettled, ev.PlansHeld),
    *(ev.GenerationBegun, ev.AgentPaused),
)
"""What an agent with a reasoner does while an action runs."""
_TURNS = 100_000
"""Turns of the event loop that a reasoner has to go on during one action."""


class RecordedThinker:
    """Answers with the plans on record."""

    free = True
    name = "recorded"

    def __init__(self, record: Record) -> None:
        self._record = record

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """The plan that the record has next."""
        self._fail()
        said = next(self._record.said(ev.PlanGenerated))
        return PlanProposal(said.steps, said.uncovered, said.thinker)

    async def decide(self, request: DecisionRequest) -> Decision:
        """The decision that the record has next."""
        self._fail()
        return next(self._record.said(ev.DecisionMade)).decision

    def _fail(self) -> None:
        """Fail as the thinker did, where it did."""
        failed = self._record.next_payload
        if isinstance(failed, ev.ThinkingFailed):
            raise ThinkingError(failed.failure, failed.message, failed.retry_after_s)


@dataclass(frozen=True, slots=True)
class _OnRecord:
    """Stands for the model that was asked; its answers are fed in."""

    model: str

    async def answer(self, prompt: Prompt, config: EffectiveConfig) -> Reply:
        """Never asked."""
        raise DivergedError("a model is asked, and the record does not have it")


class RecordedPlanMaker(PlanMaker):
    """Goes on with a generation when the record does; asks and checks nothing."""

    def __init__(self, record: Record, agent: RecordingAgent, reasoner: Reasoner) -> None:
        super().__init__(agent, reasoner, None)
        self._record = record

    @property
    def due(self) -> Generation | None:
        """The generation that the record goes on with."""
        payload = self._record.next_payload
        if not isinstance(payload, ev.GenerationAsked | ev.GenerationSettled | ev.PlansHeld):
            return None
        return self._agent.state.generations.get(payload.generation)

    @property
    def _answerer(self) -> Answerer | None:
        payload = self._record.next_payload
        match payload:
            case ev.GenerationAsked():
                return _OnRecord(payload.model)
            case ev.GenerationBegun(trigger="proactive"):
                return _OnRecord("")
        return None

    def _begin(self, ident: str, work: Coroutine[Any, Any, None]) -> None:
        work.close()


class RecordedWorld:
    """Answers tool calls, snapshots and glances at the workspace from the record."""

    def __init__(self, record: Record, blob: Callable[[str], Awaitable[bytes | None]]) -> None:
        self._record = record
        self._blob = blob

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """The recorded answer; a call that was cut off waits until it is cut off again."""
        said = next((end for end in self._record.said(ev.ActionFinished) if end.action == action), None)
        if said is None:
            await self._what_was_done_meanwhile()
            cancelled = (end.action for end in self._record.said(ev.ActionCancelled))
            killed = isinstance(self._record.next_payload, ev.AgentOpened | None)
            if not killed and action not in cancelled:
                raise DivergedError(f"the record has no end of action {action}")
            raise asyncio.CancelledError
        await self._what_was_done_meanwhile()
        data = said.result
        if said.blob is not None:
            whole = await self._blob(said.blob)
            if whole is None:
                raise DivergedError(f"the answer of action {action} is missing: blob {said.blob}")
            data = json.loads(whole)
        beliefs, terms = self._record.beliefs_after(said)
        return ToolResult(
            said.status, data, said.code, said.session, beliefs, said.world, said.duration_ms, terms
        )

    async def _what_was_done_meanwhile(self) -> None:
        """Let a reasoner do what it did while the action ran."""
        for _ in range(_TURNS):
            if not isinstance(self._record.next_payload, _MEANWHILE):
                return
            await asyncio.sleep(0)
        raise DivergedError("the reasoner does not go on as it did on record while an action ran")

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        """The recorded outcome; none was saved where the action starts without."""
        for said in self._record.said(ev.Payload):
            match said:
                case ev.SnapshotTaken() | ev.SnapshotFailed() if said.action == action.id:
                    return said
                case ev.ActionStarted() if said.action == action.id:
                    return Unsaved()
        raise DivergedError(f"the record does not say whether the workspace was saved before {action.id}")

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """Never asked: what was perceived is fed in before the agent would look."""
        raise DivergedError("the agent looks at its workspace, and the record does not have it")

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: Enquiry) -> Survey:
        """What the record has next of this action; where it has nothing, nothing was found amiss."""
        told = (said for said in self._record.said(ev.ParametersProcessed) if said.action == action.id)
        said = next(told, None)
        return said.survey if said is not None else Survey()

    async def lost_by(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Nothing: why an action needs the operator is fed in."""
        return 0

    async def changes(self, agent: str, shell: ReturnedShell) -> Changes | str:
        """Never asked: what was offered is fed in before the agent would compare."""
        raise DivergedError("the agent looks for the operator's changes, and the record does not have them")


class RecordedAsker:
    """Finds in a goal what a model found in it."""

    def __init__(self, record: Record, asked: ev.ParametersAsked) -> None:
        self.model = asked.model
        self._action = asked.action
        self._record = record

    async def extract(self, question: Question) -> Extraction:
        """What the record has; nothing where the answer was not used, as it will not be again now."""
        if self._record.was_held(ev.ParametersAsked):
            raise ModelError(ModelErrorKind.BUDGET, "held by a budget")
        for said in self._record.said(ev.ParametersProcessed):
            if said.action == self._action and said.extraction is not None:
                return said.extraction
        return Extraction(self.model)


class DescribedTool:
    """A tool's commands without the tool."""

    description = "described only"

    def __init__(self, tool_id: str, commands: Mapping[str, CommandSpec]) -> None:
        self.id = tool_id
        self.commands = commands

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Never called: a replay takes answers from the record."""
        raise DivergedError(f"{self.id}.{command} was called outside the record")


class RecordedRegistry(ToolRegistry):
    """The house's tools, and those from outside as far as they had come on record."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._house = tuple(self._tools)

    def offer(self, said: ev.ToolOffered) -> None:
        """A tool from outside offers this from now on."""
        self._tools[said.tool] = DescribedTool(said.tool, commands_of(said))

    def forget(self) -> None:
        """A session ended, and the tools from outside with it."""
        self._tools = {name: self._tools[name] for name in self._house}
