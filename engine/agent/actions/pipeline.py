"""Calling tools: what is asked is validated, what is answered is kept whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from engine.agent.recorder import AgentRecorder
from engine.agent.recovery import code_of
from engine.core import events as ev
from engine.core.actions import ResultStatus, Reversibility, ToolResult
from engine.core.beliefs import BeliefTerms, outweighs
from engine.core.journal import BlobError, canonical
from engine.core.plan import StepStatus
from engine.core.ports import CallContext
from engine.core.reasons import Reason
from engine.core.recovery import ActiveAction
from engine.sandbox.output import OutputPump
from engine.tools.registry import Checked, ToolRegistry
from engine.value import fields_of

INLINE_LIMIT = 16 * 1024
"""Bytes of an answer that an event holds; a larger answer goes to a blob."""
DROPPED = Reason("action.dropped")
CUT = 2_000
"""Characters that the event keeps of each long string then."""


class Toolbox(Protocol):
    """Who answers an agent's calls: the tools themselves, or a recording of them."""

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """Run one validated call; `action` names it in the journal."""


class LiveToolbox:
    """Calls the registered tools."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """Run the call; a tool that breaks its contract is an INTERNAL error, never a success."""
        return await answer_of(f"{tool}.{command}", self.registry.get(tool).call(command, args, context))


async def answer_of(name: str, call: Awaitable[ToolResult]) -> ToolResult:
    """What a call gives, as it can be kept; one that breaks its contract is an INTERNAL error."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        answer = _conforming(await call)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001  a tool is foreign code: its fault is an answer
        message = f"{name} broke: {type(error).__name__}: {error}"[:2_000]
        answer = ToolResult(ResultStatus.ERROR, {"message": message}, code_of(error))
    return replace(answer, duration_ms=round((loop.time() - began) * 1000))


def _conforming(answer: object) -> ToolResult:
    if not isinstance(answer, ToolResult):
        raise TypeError(f"the answer is {type(answer).__name__}, not a tool result")
    if answer.ok != (answer.code is None):
        raise ValueError(f"the answer is {answer.status} with code {answer.code}")
    # What is kept is JSON; what the agent goes on with has to be the same, or a replay would differ.
    return replace(answer, data=_as_json(answer.data), beliefs=_as_json(answer.beliefs))


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(canonical(dict(value))))


class Pipeline:
    """Runs requested actions that passed the gate, one at a time.

    Args:
        recorder: the agent's record.
        toolbox: answers calls.
        registry: what can be called.
        put_blob: stores bytes and gives their digest.
        answer_counted: whether an action's answer counts although it was cut off at that moment, by its id.
    """

    def __init__(
        self,
        recorder: AgentRecorder,
        toolbox: Toolbox,
        registry: ToolRegistry,
        put_blob: Callable[[bytes], Awaitable[str]],
        answer_counted: Callable[[str], bool] = lambda _action: False,
    ) -> None:
        self._recorder = recorder
        self._answer_counted = answer_counted
        self._toolbox = toolbox
        self._registry = registry
        self._put_blob = put_blob
        self._call: asyncio.Task[ToolResult] | None = None
        self._cut = False
        self.rests = asyncio.Event()
        """Set while no action is under way, from its start to its end on record."""
        self.rests.set()

    def cut(self) -> None:
        """Cut the running action off, if there is one; its tool ends everything it started."""
        self._cut = True
        if self._call is not None:
            self._call.cancel()

    def _was_cut(self, action: str) -> bool:
        """Whether the operator cut this action off."""
        return self._cut and not self._answer_counted(action)

    async def run(self, *causes: str) -> ToolResult | None:
        """Run the requested action of the state; None when it was cut off.

        "Started" is durable before the tool is called. The action's end is recorded, but not
        what follows from it for the plan, except that a step that was cut off is put back.

        Raises:
            asyncio.CancelledError: the agent is being closed; the cancellation is recorded, not committed.
        """
        self.rests.clear()
        try:
            return await self._run(*causes)
        finally:
            self.rests.set()

    async def _run(self, *causes: str) -> ToolResult | None:
        action = self._recorder.state.action
        assert action is not None
        self._cut = False
        spec = self._registry.get(action.tool).commands[action.command]
        undo, snapshot = Reversibility(spec.undo), action.snapshot or None
        start = ev.ActionStarted(action=action.id, undo=undo, mutates=spec.mutates, snapshot=snapshot)
        started = self._recorder.append(start, action.actor, *causes)
        try:
            await self._recorder.commit()
        except asyncio.CancelledError:
            self._record_cancelled(action, started.ref)
            raise
        if self._was_cut(action.id):
            self._record_cancelled(action, started.ref)
            return None

        def emit(stream: str, text: str, skipped: int) -> None:
            piece = ev.ActionOutput(action=action.id, stream=stream, text=text, skipped=skipped)
            self._recorder.append(piece, action.actor, started.ref)
            self._recorder.commit_soon()

        pump = OutputPump(emit)
        try:
            answer = await self._start(action, pump, started.ref)
        except asyncio.CancelledError:
            pump.flush()
            self._record_cancelled(action, started.ref)
            if self._was_cut(action.id):
                return None
            raise
        finally:
            self._call = None
        pump.flush()
        return await self._record_answer(action, answer, started.ref)

    async def refuse(self, checked: Checked, *causes: str) -> ToolResult:
        """Record that the requested action cannot be called with these arguments."""
        action = self._recorder.state.action
        assert action is not None
        answer = ToolResult(ResultStatus.ERROR, {"message": checked.message}, checked.problems[0].code)
        return await self._record_answer(action, answer, *causes)

    async def _start(self, action: ActiveAction, pump: OutputPump, started: str) -> ToolResult:
        state = self._recorder.state
        context = CallContext(
            session=state.sandbox,
            agent=state.agent_id,
            action=action.id,
            goal=action.goal or state.goal_at_hand,
            workflow=state.workflow_at_hand,
            event=started,
            observer=self._recorder,
            actor=action.actor,
            output=pump,
            beliefs=state.belief_values(),
            world=state.world,
            granted=bool(action.needs),
            own=state.own_content if action.step or action.client else "",
        )
        call = self._toolbox.call(action.id, action.tool, action.command, action.args, context)
        self._call = asyncio.create_task(call, name=f"action {action.id}")
        return await self._call

    def _record_cancelled(self, action: ActiveAction, started: str) -> None:
        state = self._recorder.state
        cut = self._was_cut(action.id)
        reason = state.run_reason if cut else Reason("action.session-closed")
        cause = state.run_event if cut else started
        if cut and state.action is not None and state.action.dropped:
            reason, cause = DROPPED, started
        cancelled = self._recorder.append(
            ev.ActionCancelled(action=action.id, reason=reason), "system", cause
        )
        if action.step:
            again = ev.StepEnded(
                goal=action.goal, step=action.step, status=StepStatus.PLANNED, summary=Reason("step.cut-off")
            )
            self._recorder.append(again, "system", cancelled.ref)

    async def _record_answer(self, action: ActiveAction, answer: ToolResult, *causes: str) -> ToolResult:
        """Record how the action ended; the answer comes back as it could be kept."""
        try:
            result, blob = await keep_answer(answer, self._put_blob)
        except BlobError as error:
            # A full disk must not take the outcome with it: what happened is known, only its text is lost.
            note = f"{answer.message} (the whole answer could not be kept: {error})"
            answer = replace(answer, data={"message": note})
            result, blob = dict(answer.data), None
        about = fields_of(answer, "status", "code", "session", "world", "duration_ms")
        end = ev.ActionFinished(action=action.id, result=result, blob=blob, summary=answer.message, **about)
        finished = self._recorder.append(end, action.actor, *causes)
        for key, value in answer.beliefs.items():
            self._believe(key, value, answer.terms.get(key), finished.ref)
        return answer

    def _believe(self, key: str, value: Any, terms: BeliefTerms | None, cause: str) -> None:
        held = self._recorder.state.beliefs.get(key)
        if value is None:
            if held is not None:
                self._recorder.append(ev.BeliefRemoved(key=key), "agent", cause, held.event)
            return
        added = ev.BeliefAdded(key=key, value=value)
        if terms is not None:
            sure = added.confidence if terms.confidence is None else terms.confidence
            weight = {"confidence": sure, "source": terms.source, "ttl_s": terms.ttl_s}
            if held is not None and outweighs(held, sure, terms.source):
                weaker = ev.BeliefOutweighed(key=key, value=value, **weight)
                self._recorder.append(weaker, "agent", cause, held.event)
                return
            added = added.model_copy(update=weight)
        if held is None or held.value != value or terms is not None:
            self._recorder.append(added, "agent", cause)


async def keep_answer(
    answer: ToolResult, put: Callable[[bytes], Awaitable[str]]
) -> tuple[dict[str, Any], str | None]:
    """The answer for an event, and the digest of the whole when it is too large for one.

    Args:
        answer: what the tool said.
        put: stores bytes and gives their digest.
    """
    whole = canonical(answer.data).encode()
    if len(whole) <= INLINE_LIMIT:
        return dict(answer.data), None
    return {key: _cut(value) for key, value in answer.data.items()}, await put(whole)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > CUT:
        return f"{value[:CUT]}… ({len(value)} characters)"
    if isinstance(value, list) and len(value) > 100:
        return [*value[:100], f"… ({len(value)} items)"]
    return value
