"""A session: one agent as a client of the protocol has it, and the turn that a prompt of the client begins.

The agent's events are folded here, so that whatever another operator does beside the client is seen, too:
what the agent asks is put to the client until anybody has answered it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from acp import RequestError, schema
from acp import helpers as acp
from acp.interfaces import Client

from app.commands.goal_engine import GoalEngine
from app.commands.missions import is_idle
from app.commands.registry import built_in
from app.gateways.acp.updates import Updates
from engine.agent.steering.rules import PRESETS, rule_text
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.approvals import Question, Source
from engine.core.fold import apply
from engine.core.plan import Op
from engine.core.reasons import free_text
from engine.core.recovery import Intervention
from engine.core.state import AgentState
from engine.core.text import clean, clean_line
from engine.inquiry.inbox import question_text, review_text
from engine.value import dataclass

CANCELLED = free_text("cancelled by the client")
LOST = "the engine has gone; what is done the journal says, and the next prompt opens it again"


class RefusedError(Exception):
    """What is not done; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """A workspace whose engine is used, in this program or in another one."""

    path: Path
    engine: GoalEngine
    line: Callable[[str, str], Awaitable[tuple[int, dict[str, Any], str]]]
    """Carries out a line of the command bar, for an agent."""


Option = tuple[schema.PermissionOptionKind, str, cmd.Command | None]
"""Its kind, its name, and what is sent when it is chosen; None ends the turn."""


@dataclass(frozen=True, slots=True)
class Need:
    """What the agent needs the client for, as a call that waits, with its answers."""

    key: str
    call: str
    words: str
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
        self.ident, self.agent, self.state = ident, agent, AgentState()
        self.lost = True
        """Whether its events are followed no more, as the engine has gone."""
        self.workspace: OpenWorkspace
        self._client, self._operator = client, operator
        self._seq, self._quiet = 0, False
        self._moved, self._lock, self._sending = asyncio.Event(), asyncio.Lock(), asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._doing: asyncio.Future[None] | None = None
        """What the client chose, as it is done."""
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
        self.workspace, self._updates = workspace, Updates(workspace.path)
        self._quiet, self.lost = quiet, False
        self._following = asyncio.create_task(self._follow(), name=f"session {self.ident}")
        await self._until(lambda: self.state.version >= version)
        self._quiet = False

    async def close(self) -> None:
        """End the turn and follow no more."""
        if self._following is not None and not self.lost:
            await self.cancel()
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self) -> None:
        try:
            async for event in self.workspace.engine.events(self._seq, stream=self.agent):
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
                    if isinstance(payload, ev.ApprovalsSet) and not self._quiet:
                        await self._client.session_update(self.ident, acp.update_current_mode(self.mode))
                self._moved.set()
        finally:
            self.lost = True
            self._moved.set()

    async def _until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds of the state, or the engine is lost."""
        while not holds() and not self.lost:
            self._moved.clear()
            await self._moved.wait()

    async def say(self, text: str) -> None:
        """Let the agent say something to the client."""
        await self._client.session_update(self.ident, acp.update_agent_message_text(clean(text)))

    @property
    def mode(self) -> str:
        """What the agent asks about beside what the workspace says, as the name of a preset."""
        policy = self.state.approvals.policies.get(Source.OPERATOR)
        return next((name for name, preset in PRESETS.items() if preset == policy), "allow")

    # -------------------------------------------------------------- a turn

    async def prompt(self, text: str) -> schema.StopReason:
        """Carry out what the client wants, and return why that has ended.

        Raises:
            RefusedError: it cannot be begun.
            RequestError: the engine has gone, or the agent ended by a fault.
        """
        if self._busy:
            raise RefusedError("a prompt is under way in this session: cancel it, or wait for its end")
        self._busy, self._cancelled = True, False
        try:
            if text.startswith("/") and built_in(f"{text[1:]} ".split(" ", 1)[0]):
                await self.say((await self.workspace.line(text[1:], self.agent))[2] or "done")
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
            await self.do(cmd.Stop(agent=self.agent, reason=CANCELLED))
            await self._drop()
        self._moved.set()

    async def do(self, command: cmd.Command) -> cmd.Receipt:
        """Send a command."""
        return await self.workspace.engine.submit(command, operator=self._operator)

    async def _drop(self) -> None:
        if self._goal:
            await self.do(cmd.DropGoal(agent=self.agent, goal=self._goal, reason=CANCELLED))

    async def _begin(self, text: str) -> None:
        """Answer what the agent asks, or adopt the text as the most urgent goal; then let it act."""
        turn = self.state.intervention
        self._before = (self.state.run_event, self.state.stop_event)
        if turn is not None and self._asks(turn):
            self._goal = self.state.lineage(turn.goal)[-1].id
            receipt = await self.do(cmd.GiveResult(agent=self.agent, step=turn.step, result=text))
        else:
            self._given, self._goal = text, ""
            highest = max((goal.priority for goal in self.state.open_goals), default=0)
            receipt = await self.do(cmd.AdoptGoal(agent=self.agent, text=text, priority=highest + 1))
        if not receipt.ok:
            raise RefusedError(receipt.message)
        await self._until(lambda: self._goal)
        async with self._sending:
            if self._cancelled:
                await self._drop()  # it was adopted meanwhile
                return
            receipt = await self.do(cmd.Run(agent=self.agent, until=self._goal))
            waits = (await self.workspace.engine.view(self.agent)).intervention is not None
            if not receipt.ok and not waits:  # what waits is put to the client
                raise RefusedError(receipt.message)

    async def _until_end(self) -> schema.StopReason:
        """Put what the agent asks to the client, until the turn is over."""
        fault = asyncio.ensure_future(self.workspace.engine.faulted(self.agent))
        ask: asyncio.Task[None] | None = None
        asked = ""
        try:
            while True:
                self._moved.clear()
                async with self._lock:
                    end, need = self._end(), self._need()
                if end is not None:
                    return end
                if self._cancelled and not self.state.busy:
                    await self._drop()  # while its action was being ended, that was refused
                if self.lost or fault.done():
                    why = "" if self.lost or fault.exception() else f"the agent has ended: {fault.result()}"
                    raise RequestError(-32603, clean_line(why or LOST))
                if (need.key if need is not None else "") != asked:  # also when somebody else has answered
                    asked = need.key if need is not None else ""
                    if ask is not None:
                        ask.cancel()
                    ask = asyncio.create_task(self._ask(need)) if need is not None else None
                moved = asyncio.ensure_future(self._moved.wait())
                await asyncio.wait({moved, fault}, return_when=asyncio.FIRST_COMPLETED)
                moved.cancel()
        finally:
            for task in (fault, ask):
                if task is not None:
                    task.cancel()
            if self._doing is not None:
                await asyncio.gather(self._doing, return_exceptions=True)

    def _end(self) -> schema.StopReason | None:
        """Why the turn is over; None while it is not."""
        state, goal = self.state, self.state.goals.get(self._goal)
        over = goal is None or goal.status.terminal
        if self._cancelled:
            return "cancelled" if over and not state.busy else None
        if state.held_by is not None:
            return "max_turn_requests"
        stopped = state.run is RunState.STOPPED and state.stop_event != self._before[1]
        turn = state.intervention
        return "end_turn" if over or stopped or (turn is not None and self._asks(turn)) else None

    def _asks(self, turn: Intervention) -> bool:
        """Whether it is a question of the thinker's, which the next prompt answers."""
        located = self.state.find_step(turn.step)
        return not turn.kind and located is not None and located[1].op is Op.THINK

    # -------------------------------------------------------------- what the client is asked

    async def _ask(self, need: Need) -> None:
        """Put it to the client where there is a choice, and do what is chosen."""
        chosen = await self._chosen(need) if len(need.options) > 1 else "0"
        command = {str(number): option[2] for number, option in enumerate(need.options)}.get(chosen)
        self._doing = asyncio.ensure_future(self._answer(need, command))
        await asyncio.shield(self._doing)  # its own event makes what was asked something of the past

    async def _chosen(self, need: Need) -> str:
        action = self.state.action
        shown = schema.ToolCallUpdate(tool_call_id=need.call, title=clean_line(need.words, limit=300))
        if action is not None and action.id == need.call:
            shown.content = await self._updates.diff_now(self.state, action.command, action.args) or None
        options = [
            schema.PermissionOption(option_id=str(number), name=clean_line(name, limit=200), kind=kind)
            for number, (kind, name, _) in enumerate(need.options)
        ]
        try:
            answer = await self._client.request_permission(self.ident, shown, options)
        except (RequestError, ValueError, OSError):
            return ""
        return str(getattr(answer.outcome, "option_id", ""))

    async def _answer(self, need: Need, command: cmd.Command | None) -> None:
        """Do what was chosen; without a choice the turn ends."""
        if command is None:
            await self.cancel()
        elif not (receipt := await self.do(command)).ok:
            await self.say(receipt.message)
        if need.call == need.key and len(need.options) > 1:  # no call of the agent's: nothing else ends it
            done = acp.update_tool_call(need.call, status="completed")
            await self._client.session_update(self.ident, done)

    def _need(self) -> Need | None:
        """What the agent needs somebody for now."""
        state = self.state
        if self._cancelled:
            return None
        if state.approvals.question is not None and state.run is not RunState.STOPPED:
            return self._approval(state.approvals.question)
        if state.intervention is not None and not state.shell_taken:
            return self._turn(state.intervention)
        paused = state.run is not RunState.RUNNING and state.run_event != self._before[0]
        return self._pause() if paused and is_idle(state) else None

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
        parts = (question_text(question), str(question.why), review_text(self.state, question))
        return Need(question.event, question.action, " — ".join(filter(None, parts)), options)

    def _turn(self, turn: Intervention) -> Need:
        options: list[Option] = []  # without a step there is no plan, and only another prompt helps
        if not turn.kind:
            options.append(("allow_once", "Let it continue", cmd.HandBack(agent=self.agent)))
        elif turn.step:
            options.append(("allow_once", "Try again", cmd.RetryStep(agent=self.agent, step=turn.step)))
            options.append(("allow_once", "Skip the step", cmd.SkipStep(agent=self.agent, step=turn.step)))
        abort = cmd.AbortGoal(agent=self.agent, goal=self._goal, reason=turn.reason)
        options.append(("reject_once", "Give the goal up", abort))
        return Need(turn.event, turn.event, str(turn.reason), options)

    def _pause(self) -> Need:
        """Leave to go on, where it was paused or held beside the client."""
        state = self.state
        step = f": {state.step.description}" if state.step is not None else ""
        options: list[Option] = [
            ("allow_once", "One action", cmd.Step(agent=self.agent)),
            ("allow_always", "Run", cmd.Run(agent=self.agent, until=self._goal)),
            ("reject_once", "Stop", None),
        ]
        key = f"{state.run_event} {state.actions}"
        return Need(key, key, f"{state.run_reason}{step}", options)
