"""Who decides for an agent that another program is: each decision is what the program asks for next.

A goal becomes a turn of the program, which is an action as well: the workspace is saved before it. What the
program then asks for becomes an action, and is answered by its result; what was refused, skipped or changed
by the operator is told as well. At the turn's end the files are compared with what it asked for.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from engine.agent.acp.requests import DELEGATE, Ask, refusal
from engine.agent.acp.session import AcpSession
from engine.agent.acp.settings import AcpError
from engine.agent.acp.updates import Earlier, Taken, TurnEnd
from engine.agent.actions.pipeline import Toolbox, answer_of
from engine.agent.actions.snapshots import Saver
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.agents import ACP, TASK, RunState
from engine.core.plan import Op, PlanStep, StepStatus
from engine.core.ports import CallContext
from engine.core.recovery import FailureKind
from engine.core.sandbox import ReturnedShell
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.core.thinking import (
    Decision,
    DecisionKind,
    DecisionRequest,
    PlanProposal,
    PlanRequest,
    ThinkingError,
)
from engine.sandbox.paths import PathError
from engine.sandbox.snapshots.entry import Changes
from engine.tools.acp_tool import OPTIONS, PROMPT, SET_OPTION, TOOL
from engine.tools.simple_coder import SimpleCoder

OWN_TOOL_S = 3_600.0
"""Seconds that a tool call of the program's own may take once it is allowed."""
SILENT_S = 2.0
"""Seconds after which such a call counts as over where the program asks for something else meanwhile."""
LISTED = 20
"""Files that are named of those that were changed outside of the protocol."""
Known = Callable[[], Awaitable[Earlier]]
"""Gives the session that the agent had last, in an earlier run of Pilothouse or before it was forked."""


class AcpThinker:
    """Decides what the program asks for.

    Args:
        session: the program.
        state: the agent's state.
        saver: says what changed in the workspace.
        coder: gives the agent's sandbox.
        record: takes what the program took of models.
        earlier: see `Known`.
        flush: records what the program said so far.
    """

    name = ACP
    free = False

    def __init__(
        self,
        session: AcpSession,
        state: AgentState,
        saver: Saver,
        coder: Callable[[], SimpleCoder],
        record: Callable[[ev.ModelCalled], None],
        earlier: Known,
        flush: Callable[[], None],
    ) -> None:
        self.session, self._state, self._saver, self._coder = session, state, saver, coder
        self._record, self._earlier, self._flush = record, earlier, flush
        self._pending: Ask | None = None
        """What the last decision was about, until the program is told of its result."""
        self._result: ToolResult | None = None
        self._goal: tuple[str, str] = ("", "")
        """The goal that the turn is for, and its text."""
        self._began = ("", "", "")
        """Action and snapshot before the turn, and the newest stop or rewind."""
        self._declared: set[str] = set()
        self._programs = False
        """Whether programs ran in this turn that may have changed any file."""
        self._left: deque[Decision] = deque()
        """What is still to be decided at the turn's end."""
        self._told = Taken()
        self._refused = ""
        """What the program was refused last in this turn, where it got nothing since."""
        self._failed = ""
        """Why the last turn could not begin; empty where it did."""

    @property
    def said(self) -> str:
        """The end of what the program said in its last turn."""
        return self.session.updates.said.strip()

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """Never asked: the program is given the goal as it is."""
        raise ThinkingError(FailureKind.PLANNING_ERROR, "this agent decides one action after the other")

    async def decide(self, request: DecisionRequest) -> Decision:
        """What the program asks for next, or the turn that it is to have."""
        try:
            return await self._decide(request)
        except asyncio.CancelledError:
            if self._state.run is RunState.STOPPED or self._state.held or not self._goal_open():
                self.session.cancel("the operator stopped the agent")
            raise

    def _goal_open(self) -> bool:
        goal = self._state.goals.get(self._goal[0])
        return goal is not None and not goal.status.terminal

    async def _decide(self, request: DecisionRequest) -> Decision:
        goal, session = (request.goal.id, request.goal.text), self.session
        self._tell_result(request)
        stale = session.in_turn and (goal != self._goal or self._began[2] != self._state.stop_event)
        if stale or (session.in_turn and request.guidance):
            await session.cancelled("the operator wants something else")
            self._left.clear()
        if goal != self._goal:
            self._left.clear()
        if self._left:
            return self._left.popleft()
        if not session.in_turn:
            failed, self._failed = self._failed, ""
            if failed:
                return Decision(DecisionKind.GIVE_UP, failed)
            text = prompt_text(request, str(self._state.config.meta.get(TASK, "")))
            return Decision(DecisionKind.CALL, f"a turn of {session.label}", TOOL, PROMPT, {"text": text})
        came = await session.next()
        self._flush()
        self._charge(request.goal.id)
        if came is None:
            return Decision(DecisionKind.OUTLINE, steps=outline(session.plan or ()))
        if isinstance(came, Ask):
            self._pending, self._result = came, None
            return Decision(DecisionKind.CALL, came.title, came.tool, came.command, dict(came.args))
        return await self._ended(came)

    def _tell_result(self, request: DecisionRequest) -> None:
        """Tell the program of what it asked for and did not get."""
        ask, self._pending = self._pending, None
        if ask is None or ask.answer.done():
            return
        why = self._result.message if self._result is not None else ""
        if not why and self._state.failures and request.recent and not request.recent[-1].ok:
            why = str(self._state.failures[-1].message)
        missing = self._result is not None and self._result.code is ErrorCode.NOT_FOUND
        ask.reply(refusal(ask, why or "the operator did not let it run", missing=missing))
        self._refused, self.session.updates.said = ask.title, ""

    async def _ended(self, end: TurnEnd) -> Decision:
        """What follows from the end of a turn."""
        changed = await self._outside()
        said = clean_line(end.text.strip().rpartition("\n\n")[2], limit=300)
        if changed:
            self._left.append(Decision(DecisionKind.THINK, changed, thought_type="observation"))
        match end.reason:
            case "end_turn" if self._refused and not said:
                why = f"{self.session.label} ended its turn without a word when it was refused"
                why = f"{why}: {self._refused}"
                self._left.append(Decision(DecisionKind.GIVE_UP, why))
            case "end_turn":
                last = Decision(DecisionKind.FINISH, f"{changed}; {said}" if changed else said or "done")
                self._left.extend((Decision(DecisionKind.OUTLINE, text="over"), last))
            case "failed":
                self._left.append(Decision(DecisionKind.GIVE_UP, end.text))
            case reason:
                why = f"{self.session.label} ended its turn: {clean_line(reason, limit=60)}"
                self._left.append(Decision(DecisionKind.GIVE_UP, f"{why}: {said}" if said else why))
        return self._left.popleft()

    async def _outside(self) -> str:
        """The files that changed and were not asked about, in words; empty where there are none."""
        action, snapshot, _ = self._began
        changes = await self._saver.changes(self._state.agent_id, ReturnedShell(action, snapshot, {}, ""))
        if not isinstance(changes, Changes):
            return ""
        paths = sorted({*changes.added, *changes.changed, *changes.removed} - self._declared)
        folders = {
            path for path in paths if any(other.startswith(f"{path}/") for other in (*paths, *self._declared))
        }
        paths = [path for path in paths if path not in folders]
        if not paths:
            return ""
        more = f" and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
        how = (
            "outside the protocol, or by programs that it was allowed to run"
            if self._programs
            else "outside the protocol"
        )
        count = f"{len(paths)} file{'s' * (len(paths) != 1)}"
        return f"changed {how}: {count}: {', '.join(paths[:LISTED])}{more}"

    def _charge(self, goal: str) -> None:
        """Record what the program says that it took of models since the last time."""
        now, before = self.session.updates.taken, self._told
        if now == before:
            return
        usd = None if now.usd is None else max(0.0, now.usd - (before.usd or 0.0))
        self._told = replace(now)
        about = {"session": self.session.id, "messages": []}
        tokens = max(0, now.tokens - before.tokens)
        label = self.session.label
        self._record(
            ev.ModelCalled(goal=goal, purpose="turn", model=label, request=about, tokens=tokens, cost_usd=usd)
        )

    # -------------------------------------------------------------- carried out by the pipeline

    async def begin(self, text: str, context: CallContext) -> ToolResult:
        """Give the program its turn; the program is started where it does not run."""
        session, action = self.session, self._state.action
        self._failed = f"a turn of {session.label} did not begin"
        try:
            if not session.alive:
                await asyncio.to_thread(importlib.import_module, "acp")
                earlier = Earlier(session.id) if session.id else await self._earlier()
                await session.open(context.observer, earlier)
        except AcpError as error:
            self._failed = str(error)
            return _error(ErrorCode.INTERNAL, self._failed)
        self._failed = ""
        goal = self._state.goals.get(context.goal)
        self._goal = (context.goal, goal.text if goal is not None else "")
        self._began = (context.action, action.snapshot if action is not None else "", self._state.stop_event)
        self._declared, self._programs, self._result, self._refused = set(), False, None, ""
        session.prompt(text)
        lacks = f"; it lacks {', '.join(session.lacks)}" if session.lacks else ""
        about = {"agent": session.label, "session": session.id, "lacks": list(session.lacks)}
        return ToolResult(
            ResultStatus.SUCCESS, {"message": f"a turn of {session.label} began{lacks}", **about}
        )

    async def perform(
        self,
        inner: Toolbox,
        action: str,
        tool: str,
        command: str,
        args: Mapping[str, Any],
        context: CallContext,
    ) -> ToolResult:
        """Carry out an action: what the program asked for, or what the operator made of it."""
        ask = self._pending
        if ask is None or ask.answer.done() or not ask.same(tool, command, args):
            return await inner.call(action, tool, command, args, context)
        self._declared.update(self._paths(args))
        self._programs = self._programs or command in ("run", "start", "use")
        try:
            if ask.call:
                result = await self._allow(ask, inner, action, args, context)
            elif command == "start":
                result = await self._open_terminal(ask, context)
            else:
                result = await inner.call(action, tool, command, args, context)
                if result.ok:
                    ask.reply(_content(ask, result))
        except asyncio.CancelledError:
            self.session.cancel("its action was cut off")
            raise
        self._result, self._refused = result, "" if result.ok else self._refused
        return result

    def _paths(self, args: Mapping[str, Any]) -> list[str]:
        with suppress(PathError):
            return [self._coder().files.relative(str(args["path"]))] if "path" in args else []
        return []

    async def _allow(
        self, ask: Ask, inner: Toolbox, action: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """Give the program leave for a tool call of its own, and wait until that is over."""
        if "path" in args:
            try:
                self._coder().files.relative(str(args["path"]))
            except PathError as error:
                return _error(error.code, error.message)
        options = {str(o.get("kind")): o.get("optionId") for o in reversed(ask.given["options"])}
        option = options.get("allow_once", options.get("allow_always"))
        if option is None:
            return _error(ErrorCode.BAD_ARGUMENTS, f"{self.session.label} offered nothing that allows it")
        ask.reply({"outcome": {"outcome": "selected", "optionId": option}})
        call = self.session.updates.calls[ask.call]

        async def serve(part: Ask) -> bool:
            """Do what is a part of what was just allowed, where the program has Pilothouse do it."""
            if not _part_of(ask, part, args):
                return False
            leave = replace(context, granted=True)
            if part.command == "start":
                done = await self._open_terminal(part, leave)
            else:
                done = await inner.call(action, part.tool, part.command, part.args, leave)
            part.reply(_content(part, done) if done.ok else refusal(part, done.message))
            return True

        known = await self.session.call_over(call, OWN_TOOL_S, SILENT_S, serve)
        if call.content:
            context.output("stdout", call.content)
        if not known:
            return _done(f"{self.session.label} did it; it did not say how it ended")
        if call.status == "failed":
            message = clean_line(call.content, limit=300) or "it failed"
            return ToolResult(ResultStatus.FAILURE, {"message": message}, ErrorCode.EXIT_STATUS)
        return _done(f"done by {self.session.label}: {ask.title}", content=call.content[:20_000])

    async def _open_terminal(self, ask: Ask, context: CallContext) -> ToolResult:
        """Start what the program wants to run, as a background job of the agent."""
        given = ask.given
        words = [given["command"], *given.get("args", [])]
        if len(words) == 1:
            words = ["sh", "-c", words[0]]
        pairs = [f"{each['name']}={each['value']}" for each in given.get("env", [])]
        coder, where = self._coder(), given.get("cwd") or "."
        try:
            place = replace(context.session, cwd=coder.files.relative(str(where)))
        except PathError as error:
            return _error(error.code, error.message)
        result = await coder.start_program(
            ["/usr/bin/env", *pairs, *words], replace(context, session=place), ask.title
        )
        if (job := result.data.get("job")) is not None:
            with suppress(PathError):
                self.session.terminals[job] = coder.sessions.job(context.agent, job)
                ask.reply({"terminalId": job})
                return replace(result, status=ResultStatus.SUCCESS, code=None)
        return result

    async def options(self, command: str, args: Mapping[str, Any]) -> ToolResult:
        """What can be chosen in the session, or one of it chosen."""
        session = self.session
        if not session.alive:
            return _error(ErrorCode.NOT_FOUND, "its program does not run yet: give it a goal first")
        if command == SET_OPTION:
            try:
                await session.choose(str(args["option"]), args["value"])
            except AcpError as error:
                return _error(ErrorCode.BAD_ARGUMENTS, str(error))
        lines = [
            f"{name}: {known['value']} of {', '.join(known['values'])}"
            for name, known in session.updates.options.items()
        ]
        return ToolResult(ResultStatus.SUCCESS, {"items": [clean_line(line, limit=400) for line in lines]})


class AcpToolbox:
    """Answers the calls of an agent that another program is."""

    def __init__(self, thinker: AcpThinker, inner: Toolbox) -> None:
        self._thinker, self._inner = thinker, inner

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        """Run the call; see `Toolbox`."""
        thinker = self._thinker
        if tool == TOOL and command == PROMPT:
            call = thinker.begin(str(args["text"]), context)
        elif tool == TOOL and command in (OPTIONS, SET_OPTION):
            call = thinker.options(command, args)
        else:
            call = thinker.perform(self._inner, action, tool, command, args, context)
        return await answer_of(f"{tool}.{command}", call)


def prompt_text(request: DecisionRequest, task: str = "") -> str:
    """What the program is asked: the goal, and what was done for it already."""
    lines = [task or request.goal.text]
    lines += [f"It must hold: {criterion}" for criterion in request.goal.criteria]
    done = [line for line in request.plan if line.partition(" ")[2].startswith("completed")]
    if done:
        lines += ["", "Continue this work. Done already:", *done[-30:]]
    return "\n".join([*lines, *(f"\nFrom the operator: {text}" for text in request.guidance)])


def outline(entries: Sequence[tuple[str, str]]) -> tuple[PlanStep, ...]:
    """The program's plan as steps that are not to be run themselves."""
    return tuple(
        PlanStep(
            str(number),
            text,
            op=Op.THINK,
            status=StepStatus.COMPLETED if status == "completed" else StepStatus.PLANNED,
        )
        for number, (text, status) in enumerate(entries, 1)
    )


def _part_of(ask: Ask, part: Ask, args: Mapping[str, Any]) -> bool:
    """Whether a request belongs to a tool call that was allowed: its file, or its command."""
    if part.call:
        return False
    if part.command == "read":
        return bool(part.args["path"] == args.get("path"))
    command = "run" if part.command == "start" else part.command
    return (part.tool, command, part.args) == (ask.tool, ask.command, args)


def _content(ask: Ask, result: ToolResult) -> dict[str, str]:
    """The answer to what was done: of a file the part that was asked for."""
    if ask.method == DELEGATE:
        return {"output": str(result.data.get("output", ""))}
    if ask.command != "read":
        return {}
    lines = str(result.data.get("content", "")).splitlines(keepends=True)
    first = max(0, (ask.given.get("line") or 1) - 1)
    limit = ask.given.get("limit")
    return {"content": "".join(lines[first : None if limit is None else first + limit])}


def _done(message: str, **more: Any) -> ToolResult:
    return ToolResult(ResultStatus.SUCCESS, {"message": clean_line(message, limit=300), **more})


def _error(code: ErrorCode, message: str) -> ToolResult:
    return ToolResult(ResultStatus.ERROR, {"message": message}, code)
