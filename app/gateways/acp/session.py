"""A session: one agent as a client of the protocol has it, and the turn that a prompt of the client begins.

The agent's events are folded here, so that whatever another operator does beside the client is seen, too:
what the agent asks is put to the client until anybody has answered it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from acp import RequestError
from acp import helpers as acp
from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption, PermissionOptionKind, StopReason, ToolCallUpdate

from app.commands.goal_engine import GoalEngine
from app.commands.missions import is_idle
from app.commands.registry import built_in
from app.gateways.acp.updates import Updates
from app.gateways.engine_client import EngineLostError
from engine.agent.steering.rules import rule_text
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.approvals import Question
from engine.core.fold import apply
from engine.core.plan import Op
from engine.core.reasoner import GenerationStage
from engine.core.reasons import free_text
from engine.core.recovery import Intervention
from engine.core.state import AgentState
from engine.core.text import clean, clean_line
from engine.inquiry.inbox import question_text, review_text
from engine.value import dataclass

STEP, RUN = "step", "run"
"""The modes: the client is asked before each action, or as rules say."""
CANCELLED = free_text("cancelled by the client")
BUDGET: StopReason = "max_turn_requests"


class RefusedError(Exception):
    """A prompt that begins no turn; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """A workspace whose engine is used, in this program or in another one."""

    path: Path
    engine: GoalEngine
    agents: Callable[[], Awaitable[list[str]]]
    """Ids of all agents."""
    line: Callable[[str, str], Awaitable[tuple[int, dict[str, Any], str]]]
    """Carries out a line of the command bar for an agent."""


Option = tuple[PermissionOptionKind, str, cmd.Command | None]
"""Its kind, its name, and what is sent when it is chosen; None ends the turn."""


@dataclass(frozen=True, slots=True)
class Need:
    """What the agent needs the client for."""

    key: str
    call: ToolCallUpdate
    options: list[Option]


class Session:
    """One agent and its client.

    Args:
        ident: the session's id.
        agent: the agent's id.
        client: the other end.
        operator: in whose name commands are sent.
    """

    def __init__(self, ident: str, agent: str, client: Client, operator: str) -> None:
        self.ident, self.agent, self.state, self.mode = ident, agent, AgentState(), RUN
        self.lost = True
        """Whether its events are followed no more, as the engine has gone."""
        self._client, self._operator = client, operator
        self._seq, self._quiet = 0, False
        self._moved, self._lock, self._sending = asyncio.Event(), asyncio.Lock(), asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._busy = self._cancelled = False
        self._given = self._goal = ""
        """The text of a goal that is about to be adopted, and the goal of the turn."""
        self._before = ("", "")
        """The newest change of its run and the newest stop when the turn began."""

    async def follow(self, workspace: OpenWorkspace, *, quiet: bool) -> None:
        """Follow the agent's events in an engine; returns when the present is reached.

        Args:
            workspace: with the engine.
            quiet: whether the client is told nothing of what happened before.

        Raises:
            KeyError: there is no such agent.
        """
        version = (await workspace.engine.view(self.agent)).version
        await self.close()
        self._workspace, self._updates = workspace, Updates(workspace.path)
        self._quiet, self.lost = quiet, False
        self._following = asyncio.create_task(self._follow(), name=f"session {self.ident}")
        while self.state.version < version and not self.lost:
            self._moved.clear()
            await self._moved.wait()
        self._quiet = False

    async def close(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self) -> None:
        try:
            async for event in self._workspace.engine.events(self._seq, stream=self.agent):
                payload = ev.payload_of(event)
                async with self._lock:
                    apply(self.state, event, payload)
                    self._seq = event.seq
                    own = isinstance(payload, ev.GoalAdopted) and payload.text == self._given
                    if isinstance(payload, ev.GoalAdopted) and own:
                        self._goal, self._given = payload.goal, ""
                    for update in await self._updates.of(event, payload, self.state, own):
                        if not self._quiet:
                            await self._client.session_update(self.ident, update)
                self._moved.set()
        finally:
            self.lost = True
            self._moved.set()

    async def say(self, text: str) -> None:
        """Let the agent say something to the client."""
        await self._client.session_update(self.ident, acp.update_agent_message_text(clean(text)))

    # -------------------------------------------------------------- a turn

    async def prompt(self, text: str) -> StopReason:
        """Carry out what the client wants, and return why that has ended.

        Raises:
            RefusedError: it cannot be begun.
            RequestError: the engine has gone, or the agent ended by a fault.
        """
        if self._busy:
            raise RefusedError("a prompt is under way in this session: cancel it, or wait for its end")
        self._busy, self._cancelled = True, False
        try:
            if text.startswith("/") and built_in(text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""):
                await self.say((await self._workspace.line(text[1:], self.agent))[2] or "done")
                return "cancelled" if self._cancelled else "end_turn"
            await self._begin(text)
            return await self._until_end()
        finally:
            self._busy = False

    async def cancel(self) -> None:
        """Stop the agent and end the turn; the goal is given up."""
        if not self._busy:
            return
        async with self._sending:
            self._cancelled = True
            await self._do(cmd.Stop(agent=self.agent, reason=CANCELLED))
            if self._goal:
                await self._drop()
        self._moved.set()

    async def set_mode(self, mode: str) -> None:
        """Ask before each action from now on, or only as rules say."""
        self.mode = mode
        if self._busy and self._goal:
            await self._go()

    async def set_approvals(self, preset: str) -> None:
        """Say what this agent asks about, beside what the workspace says.

        Raises:
            RefusedError: it is refused.
        """
        receipt = await self._do(cmd.SetApprovals(agent=self.agent, policy=preset))
        if not receipt.ok:
            raise RefusedError(receipt.message)

    async def _do(self, command: cmd.Command) -> cmd.Receipt:
        return await self._workspace.engine.submit(command, operator=self._operator)

    async def _begin(self, text: str) -> None:
        """Answer what the agent asks, or adopt the text as the most urgent goal; then let it act."""
        turn = self.state.intervention
        self._before = (self.state.run_event, self.state.stop_event)
        if turn is not None and self._asks(turn):
            self._goal = self.state.lineage(turn.goal)[-1].id
            receipt = await self._do(cmd.GiveResult(agent=self.agent, step=turn.step, result=text))
        else:
            self._given, self._goal = text, ""
            highest = max((goal.priority for goal in self.state.open_goals), default=0)
            receipt = await self._do(cmd.AdoptGoal(agent=self.agent, text=text, priority=highest + 1))
        if not receipt.ok:
            raise RefusedError(receipt.message)
        while not self._goal and not self.lost:
            self._moved.clear()
            await self._moved.wait()
        await self._go()

    async def _go(self) -> None:
        async with self._sending:
            if self._cancelled:
                if self._goal:  # it was adopted meanwhile
                    await self._drop()
            elif self.mode == RUN:
                receipt = await self._do(cmd.Run(agent=self.agent, until=self._goal))
                if not receipt.ok and not await self._turn_waits():
                    raise RefusedError(receipt.message)
            elif self.state.run is RunState.RUNNING:
                await self._do(cmd.Pause(agent=self.agent))

    async def _drop(self) -> None:
        await self._do(cmd.DropGoal(agent=self.agent, goal=self._goal, reason=CANCELLED))

    async def _turn_waits(self) -> bool:
        return (await self._workspace.engine.view(self.agent)).intervention is not None

    async def _until_end(self) -> StopReason:
        """Put what the agent asks to the client, until the turn is over."""
        fault = asyncio.create_task(self._workspace.engine.faulted(self.agent))
        asked: tuple[Need, asyncio.Task[int | None]] | None = None
        answered = ""
        try:
            while True:
                self._moved.clear()
                async with self._lock:
                    end, need = self._end(), self._need() if not self._cancelled else None
                if end is not None:
                    return end
                if self.lost or fault.done():
                    raise RequestError(-32603, self._why_lost(fault))
                if asked is not None and (need is None or need.key != asked[0].key):
                    asked[1].cancel()  # somebody else has answered
                    asked = None
                if need is not None and need.key != answered and self._unplanned():
                    answered = need.key  # the goal fails with the reason, which the client is told
                    await self._take(need, len(need.options) - 1)
                elif need is not None and asked is None and need.key != answered:
                    asked = (need, asyncio.create_task(self._ask(need)))
                moved = asyncio.create_task(self._moved.wait())
                tasks = {moved, fault, *([asked[1]] if asked is not None else [])}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                moved.cancel()
                if asked is not None and asked[1].done():
                    answered = asked[0].key
                    await self._take(asked[0], asked[1].result())
                    asked = None
        finally:
            fault.cancel()
            if asked is not None:
                asked[1].cancel()

    def _why_lost(self, fault: asyncio.Task[str]) -> str:
        with suppress(EngineLostError, asyncio.InvalidStateError):
            return clean_line(f"the agent ended by a fault: {fault.result()}")
        return "the engine has gone; what is done the journal says, and the next prompt opens it again"

    def _end(self) -> StopReason | None:
        """Why the turn is over; None while it is not."""
        state, goal = self.state, self.state.goals.get(self._goal)
        over = goal is None or goal.status.terminal
        if self._cancelled:
            return "cancelled" if over and not state.busy else None
        if state.held_by is not None:
            return BUDGET
        stopped = state.run is RunState.STOPPED and state.stop_event != self._before[1]
        turn = state.intervention
        return "end_turn" if over or stopped or (turn is not None and self._asks(turn)) else None

    def _unplanned(self) -> bool:
        """Whether the agent has no plan for what it was given, so that only another prompt helps."""
        turn = self.state.intervention
        return turn is not None and bool(turn.kind) and not turn.step

    def _asks(self, turn: Intervention) -> bool:
        """Whether it is a question of the thinker's, which the next prompt answers."""
        located = self.state.find_step(turn.step)
        return not turn.kind and located is not None and located[1].op is Op.THINK

    # -------------------------------------------------------------- what the client is asked

    async def _ask(self, need: Need) -> int | None:
        """The number of the option that the client chose; None for none."""
        options = [
            PermissionOption(option_id=str(number), name=clean_line(name, limit=200), kind=kind)
            for number, (kind, name, _) in enumerate(need.options)
        ]
        if (action := self.state.action) is not None and action.id == need.call.tool_call_id:
            diff = await self._updates.diff_now(self.state, action.command, action.args)
            need.call.content = diff or None
        try:
            answer = await self._client.request_permission(
                session_id=self.ident, tool_call=need.call, options=options
            )
        except (RequestError, ValueError, ConnectionError):
            return None
        chosen = answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else ""
        return int(chosen) if chosen in map(str, range(len(options))) else None

    async def _take(self, need: Need, chosen: int | None) -> None:
        """Do what the client chose; without a choice the turn ends."""
        command = need.options[chosen][2] if chosen is not None else None
        if command is None:
            await self.cancel()
            return
        if isinstance(command, cmd.Run):
            self.mode = RUN
            await self._client.session_update(self.ident, acp.update_current_mode(RUN))
        receipt = await self._do(command)
        if not receipt.ok:
            await self.say(receipt.message)
        if need.call.tool_call_id == need.key:
            done = acp.update_tool_call(need.key, status="completed")
            await self._client.session_update(self.ident, done)

    def _need(self) -> Need | None:
        """What the agent needs somebody for now."""
        state, approvals, agent = self.state, self.state.approvals, self.agent
        if approvals.question is not None and state.run is not RunState.STOPPED:
            return self._approval(approvals.question)
        if (turn := state.intervention) is not None and not state.shell_taken:
            return self._turn(turn)
        for goal, held in approvals.held.items():
            accept = cmd.AcceptPlan(agent=agent, goal=goal)
            reject = cmd.RejectReplan(agent=agent, goal=goal)
            return _decision(held.event, f"the plan is another than accepted: {held.change}", accept, reject)
        for made in state.generations.values():
            if made.stage is GenerationStage.HELD:
                decide = partial(cmd.DecidePlans, agent=agent, generation=made.id)
                options = decide(decision="approve"), decide(decision="reject")
                return _decision(made.event, f"plans for {made.goal} wait for you", *options)
        return self._pause()

    def _approval(self, question: Question) -> Need:
        answer = partial(cmd.AnswerApproval, agent=self.agent, action=question.action)
        options: list[Option] = [("allow_once", "Allow once", answer(allow=True))]
        if not question.call.request:
            rule = rule_text(question.offered)
            options += [
                ("allow_always", f"Allow in this session: {rule}", answer(allow=True, scope="session")),
                ("allow_always", f"Allow always: {rule}", answer(allow=True, scope="always")),
            ]
        options.append(("reject_once", "Deny", answer(allow=False)))
        review = review_text(self.state, question)
        words = " — ".join(filter(None, (question_text(question), str(question.why), review)))
        return Need(question.event, _call(question.action, words), options)

    def _turn(self, turn: Intervention) -> Need:
        again = cmd.RetryStep(agent=self.agent, step=turn.step)
        options: list[Option] = [("allow_once", "Try again", again)]
        if not turn.kind:
            options = [("allow_once", "Let it continue", cmd.HandBack(agent=self.agent))]
        if turn.step:
            options.append(("allow_once", "Skip the step", cmd.SkipStep(agent=self.agent, step=turn.step)))
        abort = cmd.AbortGoal(agent=self.agent, goal=self._goal, reason=turn.reason)
        options.append(("reject_once", "Give the goal up", abort))
        return Need(turn.event, _call(turn.event, str(turn.reason)), options)

    def _pause(self) -> Need | None:
        """Leave for the next action, where it is paused in step mode or was held by something else."""
        state = self.state
        paused = self.mode == STEP or state.run_event != self._before[0]
        if state.run is RunState.RUNNING or not paused or not is_idle(state):
            return None
        step = state.step
        if step is None and not state.config.replans and not state.reasons:
            return None  # its plan is about to come
        key = f"{state.run_event} {step.id if step is not None else ''} {state.actions}"
        what = step.description if step is not None else "think about what to do next"
        why = str(state.run_reason) if self.mode == RUN else "next"
        options: list[Option] = [
            ("allow_once", "This step", cmd.Step(agent=self.agent)),
            ("allow_always", "Run", cmd.Run(agent=self.agent, until=self._goal)),
            ("reject_once", "Stop", None),
        ]
        return Need(
            key, _call(state.action.id if state.action is not None else key, f"{why}: {what}"), options
        )


def _decision(key: str, words: str, accept: cmd.Command, reject: cmd.Command) -> Need:
    return Need(key, _call(key, words), [("allow_once", "Accept", accept), ("reject_once", "Reject", reject)])


def _call(ident: str, words: str) -> ToolCallUpdate:
    return ToolCallUpdate(tool_call_id=ident, title=clean_line(words, limit=300), status="pending")
