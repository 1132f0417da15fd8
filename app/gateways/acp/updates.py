"""Events of an agent as updates of a session: messages, thoughts, plan, and tool calls with their diffs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

from acp import helpers as acp
from acp.schema import FileEditToolCallContent, PlanEntry, ToolCallLocation, ToolCallStatus, ToolKind

from app.projection.event_lines import call_text, line_of, step_text
from engine.agent.branches import SNAPSHOTS_DIRECTORY
from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.goals import GoalStatus, ending_of
from engine.core.journal import Event
from engine.core.plan import StepStatus
from engine.core.sandbox import place_of
from engine.core.state import AgentState
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean, clean_line
from engine.sandbox.files import FORKS_DIRECTORY, SANDBOX_DIRECTORY, SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.snapshots.entry import SnapshotError
from engine.sandbox.snapshots.store import SnapshotStore
from engine.value import dataclass

OUTPUT_LIMIT = 8_000
"""Characters of a call's output that a client is shown, the newest."""
DIFF_LIMIT = 200_000
"""Characters of a file beyond which no diff is made of it."""
_PATHS = ("path", "source", "target")
_KINDS: Mapping[str, ToolKind] = {
    **dict.fromkeys(("read", "ls", "jobs", "job_output"), "read"),
    **dict.fromkeys(("write", "append", "replace", "mkdir", "copy", "create_venv"), "edit"),
    **dict.fromkeys(("run", "start", "wait_job"), "execute"),
    **dict.fromkeys(("rm",), "delete"),
    **dict.fromkeys(("move",), "move"),
    **dict.fromkeys(("find",), "search"),
}
_STATUS: Mapping[StepStatus, Literal["in_progress", "pending"]] = {StepStatus.RUNNING: "in_progress"}
_TOLD = frozenset({"thought", "warning", "error"})
"""Kinds of lines that a client is shown as thoughts."""
_SHOWN_ELSEWHERE = (
    *("goal.selected", "goal.ended", "plan.generated", "plan.rejected", "step.ended", "approval.asked"),
    *("action.finished", "action.cancelled", "intervention.opened", "command.refused"),
)
"""Kinds of events that are updates of another kind, or lines that say the same once more."""


@dataclass(slots=True)
class ToolCall:
    """A call that a client was told of."""

    command: str
    args: Mapping[str, Any]
    path: str = ""
    """Of the file that it changes, relative to the root."""
    before: str | None = None
    """The file's text before it; None where there was none, or it is not known."""
    output: str = ""


class Updates:
    """Makes updates of the events of one agent.

    Args:
        workspace: the directory of its workspace.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._calls: dict[str, ToolCall] = {}
        self._plan: list[PlanEntry] = []

    def root(self, state: AgentState) -> Path:
        """Where an agent's files are."""
        place = (FORKS_DIRECTORY, state.agent_id) if state.forked is not None else (SANDBOX_DIRECTORY,)
        return self._workspace.joinpath(*place)

    async def of(
        self, event: Event, payload: ev.Payload, state: AgentState, own: bool
    ) -> list[acp.SessionUpdate]:
        """What an event tells a client.

        Args:
            event: the event.
            payload: its payload.
            state: the agent's state after it.
            own: whether a goal that it adopts is one that the client has just given itself.
        """
        match payload:
            case ev.GoalAdopted(parent=None) if not own:
                return [acp.update_user_message_text(clean(payload.text))]
            case ev.GoalEnded() if state.goals[payload.goal].parent is None:
                return [acp.update_agent_message_text(_end_text(payload)), *self._plan_update(state)]
            case ev.InterventionOpened(failure=None):  # a question, which the next prompt answers
                return [acp.update_agent_message_text(clean(str(payload.reason)))]
            case ev.AgentStopped() | ev.BudgetReached():
                line = line_of(event, payload)
                return [acp.update_agent_message_text(line.text)] if line is not None else []
            case ev.ModelSaid(stream="thinking" | "text"):
                return [acp.update_agent_thought_text(clean(payload.text))]
            case ev.ModelSaid():
                return []
            case ev.ReasonerAdvanced() if payload.said:
                return [acp.update_agent_message_text(clean("\n".join(payload.said)))]
        updates = [*await self._call_update(payload, state), *self._plan_update(state)]
        line = line_of(event, payload) if payload.kind not in _SHOWN_ELSEWHERE else None
        if line is not None and line.kind in _TOLD:
            updates.append(acp.update_agent_thought_text(f"{line.text}\n"))
        return updates

    async def diff_now(self, state: AgentState, command: str, args: Mapping[str, Any]) -> list[Any]:
        """What a call that waits would change in the file as it is now."""
        call = ToolCall(command, args, _changed_path(state, command, args))
        if call.path:
            call.before = await asyncio.to_thread(_text_now, self.root(state), call.path)
        return self._diff(state, call)

    def _plan_update(self, state: AgentState) -> list[acp.SessionUpdate]:
        """The plan with the plans of its sub-goals, where it is another than before."""
        root = next(iter(reversed(state.lineage(state.current_goal))), None)
        entries = list(_entries(state, root.id)) if root is not None else []
        if entries == self._plan or not entries:
            return []
        self._plan = entries
        return [acp.update_plan(entries)]

    async def _call_update(self, payload: ev.Payload, state: AgentState) -> list[acp.SessionUpdate]:
        if isinstance(payload, ev.ActionRequested):
            return [self._requested(payload, state)]
        call = self._calls.get(str(getattr(payload, "action", "")))
        if call is None:
            return []
        match payload:
            case ev.ParametersProcessed():
                call.args = payload.args
                title = call_text(call.command, dict(call.args))
                return [acp.update_tool_call(payload.action, title=title, raw_input=dict(call.args))]
            case ev.ActionStarted():
                call.path = _changed_path(state, call.command, call.args)
                if call.path and payload.snapshot:
                    store = self._workspace / DATA_DIRECTORY / SNAPSHOTS_DIRECTORY
                    call.before = await asyncio.to_thread(_text_then, store, payload.snapshot, call.path)
                diff = self._diff(state, call) or None
                return [acp.update_tool_call(payload.action, status="in_progress", content=diff)]
            case ev.ActionOutput() if payload.stream != "terminal":
                call.output = (call.output + clean(payload.text))[-OUTPUT_LIMIT:]
                return [acp.update_tool_call(payload.action, content=[_text(call.output)])]
            case ev.ActionFinished():
                good = payload.status is ResultStatus.SUCCESS
                shown = (self._diff(state, call) if good else []) or [_text(_result(payload, call))]
                return [self._ended(payload.action, good, shown, dict(payload.result))]
            case ev.ActionCancelled() | ev.ActionWithdrawn() | ev.ActionOutcomeUnknown():
                why = clean(str(getattr(payload, "reason", "outcome unknown: the program ended meanwhile")))
                return [self._ended(payload.action, False, [_text(why)])]
        return []

    def _requested(self, payload: ev.ActionRequested, state: AgentState) -> acp.SessionUpdate:
        self._calls[payload.action] = ToolCall(payload.command, payload.args)
        root, cwd = self.root(state), state.sandbox.cwd
        places = [str(payload.args[name]) for name in _PATHS if isinstance(payload.args.get(name), str)]
        title = call_text(payload.command, payload.args)
        return acp.start_tool_call(
            payload.action,
            title if payload.tool == "simple_coder" else f"{clean_line(payload.tool)}.{title}",
            kind=_KINDS.get(payload.command, "other") if payload.tool == "simple_coder" else "other",
            status="pending",
            locations=[ToolCallLocation(path=str(root / place_of(cwd, each))) for each in places],
            raw_input=payload.args,
        )

    def _ended(self, action: str, good: bool, content: list[Any], raw: Any = None) -> acp.SessionUpdate:
        del self._calls[action]
        status: ToolCallStatus = "completed" if good else "failed"
        return acp.update_tool_call(action, status=status, content=content, raw_output=raw)

    def _diff(self, state: AgentState, call: ToolCall) -> list[FileEditToolCallContent]:
        after = _edited(call) if call.path else None
        if after is None or len(after) > DIFF_LIMIT:
            return []
        return [acp.tool_diff_content(str(self.root(state) / call.path), after, call.before)]


def _entries(state: AgentState, goal: str) -> Iterator[PlanEntry]:
    plan = state.plans.get(goal)
    for step in plan.steps if plan is not None else ():
        status = "completed" if step.status.terminal else _STATUS.get(step.status, "pending")
        yield acp.plan_entry(clean_line(step.description) or step_text(step), status=status)
        for child in state.children(goal):
            if child.parent_step == step.id:
                yield from _entries(state, child.id)


def _end_text(payload: ev.GoalEnded) -> str:
    """How a goal ended, as the agent says it."""
    achieved = payload.status is GoalStatus.ACHIEVED
    words = "Done" if achieved else ending_of(payload.status, payload.reason)[1].capitalize()
    return clean(f"{words}: {payload.reason}" if payload.reason else words)


def _result(payload: ev.ActionFinished, call: ToolCall) -> str:
    """What a call answered, as a text."""
    result = payload.result
    given = result.get("content") or result.get("items") or result.get("matches") or ""
    text = "\n".join(map(str, given)) if isinstance(given, list) else str(given)
    return clean(call.output or text or payload.summary or payload.status.value)[-OUTPUT_LIMIT:]


def _text(text: str) -> Any:
    return acp.tool_content(acp.text_block(text))


def _changed_path(state: AgentState, command: str, args: Mapping[str, Any]) -> str:
    """The file whose text a call changes, relative to the root; empty where it changes none."""
    path = args.get("path")
    edits = command in ("write", "append", "replace") and isinstance(path, str)
    place = place_of(state.sandbox.cwd, str(path)) if edits else ""
    return "" if place.startswith(("/", "..")) else place


def _edited(call: ToolCall) -> str | None:
    """The file's text after a call; None where it cannot be said."""
    before = call.before or ""
    content, old, new = (str(call.args.get(name, "")) for name in ("content", "old", "new"))
    if call.command == "replace":
        return before.replace(old, new) if before and old else None
    return (before if call.command == "append" else "") + content


def _text_now(root: Path, path: str) -> str | None:
    with suppress(PathError, UnicodeDecodeError), closing(SandboxFiles(root)) as files:
        return files.read_bytes(path, DIFF_LIMIT).decode()
    return None


def _text_then(directory: Path, snapshot: str, path: str) -> str | None:
    with suppress(SnapshotError, UnicodeDecodeError):
        return SnapshotStore(directory).text(snapshot, path, DIFF_LIMIT)
    return None
