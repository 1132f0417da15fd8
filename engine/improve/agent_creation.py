"""Creates and removes agents by the commands that any operator has, so that gate and journal hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from engine.core import commands as cmd
from engine.core.command import Receipt
from engine.core.journal import of_agent
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.core.text import clean_line, first_problem
from engine.improve.agent_specification import Specification, check_specification, specify
from engine.improve.agent_types import CheckContext, CreationError
from engine.improve.ports import JobRefused, MastermindHost
from engine.improve.state import EventStream

Prepare = Callable[[dict[str, Any]], dict[str, Any]]
"""What is done to typed settings first, such as reading a program's file; it may refuse."""


class RemovalError(JobRefused):
    """The agent was not deleted; the message says why and what to do, in one line."""


class AgentService:
    """Creates and removes agents, with a line of Mastermind's log for each.

    Args:
        host: the engine.
        stream: Mastermind's stream.
    """

    def __init__(self, host: MastermindHost, stream: EventStream) -> None:
        self.host = host
        self._stream = stream

    @property
    def _allowed(self) -> CheckContext:
        """What configurations are checked against in the workspace."""
        thinkers = ("procedural", "claude") if self.host.model is not None else ("procedural",)
        return CheckContext(self.host.sandbox().policy, self.host.agents, thinkers)

    def understand(self, argument: str, prepare: Prepare = lambda config: config) -> Specification:
        """What `agent_create ARGUMENT` would make; nothing is done, no model is asked.

        Raises:
            CreationError: it would be refused; the message is one line.
        """
        taken = tuple(name for name in self.host.store.names if of_agent(name))
        return specify(argument, self._allowed, self.host.library, taken=taken, prepare=prepare)

    async def create(self, specification: Specification, *, operator: str = "operator") -> Receipt:
        """Make an agent: created, its budget set aside, its goals adopted, and paused; the ids of its goals.

        Raises:
            CreationError: there is none; the message is one line.
        """
        commands = _commands(check_specification(specification, self._allowed))
        ident = specification.id
        receipt = await self.host.submit(commands[0], operator=operator)
        if not receipt.ok:
            raise CreationError(clean_line(receipt.message, limit=1_000))
        for command in commands[1:]:
            adopted = await self.host.submit(command, operator=operator)
            if not adopted.ok:
                await self.host.submit(cmd.DeleteAgent(agent=ident), operator=operator)
                why = clean_line(adopted.message, limit=1_000)
                raise CreationError(f"{why}; {ident} was deleted again, its history has the name")
        goals = tuple((await self.host.view(ident)).goals)
        count = f"{len(goals)} goal{'s' if len(goals) != 1 else ''}"
        what = count if goals else "no goal yet: goal TEXT gives it one"
        kind = specification.kind.name
        article = "an" if kind[:1] in "aeiou" else "a"
        message = f"agent {ident} created, {article} {kind}, with {what}; it is paused"
        data = {"agent": ident, "type": kind, "goals": len(goals), "event": receipt.event}
        await self._note("agent.created", message, data, operator)
        made = {"agent": ident, "agent_type": kind, "goals": goals}
        return Receipt(ok=True, message=message, event=receipt.event, data=made)

    async def describe_removal(self, ident: str) -> tuple[str, ...]:
        """What deleting an agent would do, line by line; nothing is changed.

        Raises:
            RemovalError: it would be refused.
        """
        state = await self._removable(ident)
        running = [job.command for job in state.running_jobs]
        lines = [f"{ident} is stopped and deleted; its {state.version} events and its files stay"]
        if state.acting and state.action is not None:
            lines.append(f"its action is cut off: {state.action.tool} {state.action.command}")
        lines += [f"its background job is ended: {clean_line(command, limit=120)}" for command in running]
        if helpers := self.host.family(ident)[1:]:
            lines.append(f"{', '.join(helpers)} worked for it and stay")
        return tuple(lines)

    async def remove(self, ident: str, *, operator: str = "operator") -> Receipt:
        """Delete an agent: all that it started is ended first, its locks are given up, its history stays.

        The receipt counts the processes that were ended with it, and those that could not be (`alive`).

        Raises:
            RemovalError: there is none, the workspace needs it, or it could not be stopped.
        """
        before = await self._removable(ident)
        stop = cmd.Stop(agent=ident, reason=Reason("run.stopped.deleting"))
        halted = await self.host.submit(stop, operator=operator)
        if not halted.ok:
            raise RemovalError(f"{ident} was not deleted: {clean_line(halted.message)}")
        await self.host.stopped()
        receipt = await self.host.submit(cmd.DeleteAgent(agent=ident), operator=operator)
        if not receipt.ok:
            raise RemovalError(f"{ident} is stopped and was not deleted: {clean_line(receipt.message)}")
        state = await self.host.view(ident)
        seen = state.stop_receipt if state.stop_receipt != before.stop_receipt else None
        ended = sum(item.processes for item in seen.stopped) if seen is not None else 0
        alive = seen.alive if seen is not None else 0
        history = f"its history of {state.version} events stays"
        message = f"agent {ident} deleted; {ended} of its processes were ended; {history}"
        message += f"; {alive} processes could not be ended" if alive else ""
        data = {"agent": ident, "ended": ended, "event": receipt.event}
        await self._note("agent.deleted", message, data, operator)
        gone = {"agent": ident, "ended": ended, "alive": alive}
        return Receipt(ok=not alive, message=message, event=receipt.event, data=gone)

    async def _removable(self, ident: str) -> AgentState:
        shown = clean_line(ident, limit=40)
        known = ", ".join(self.host.agents) or "none yet"
        unknown = RemovalError(f"there is no agent '{shown}'; agents: {known}")
        try:
            state = await self.host.view(ident)
        except KeyError:
            raise unknown from None
        if state.deleted:
            raise RemovalError(f"{shown} was deleted before; its history stays")
        if ident not in self.host.agents or not of_agent(ident):
            raise unknown
        if state.core:
            raise RemovalError(Reason("refused.core-agent", agent=shown))
        if why := self.host.fault(ident):
            why = clean_line(why, limit=300)
            raise RemovalError(f"{shown} cannot be taken up, so it cannot be deleted here: {why}")
        return state

    async def _note(self, topic: str, text: str, data: dict[str, Any], operator: str) -> None:
        self._stream.tell(topic, text, data, actor=f"operator:{operator}")
        await self._stream.commit()


def _commands(specification: Specification) -> Sequence[cmd.Command]:
    """The commands that make an agent, the one that creates it first."""
    ident = specification.id
    try:
        created = cmd.CreateAgent(
            agent=ident,
            agent_type=specification.kind.name,
            description=specification.description,
            config=dict(specification.config),
        )
        return (created, *(cmd.AdoptGoal(agent=ident, text=text) for text in specification.goals))
    except ValidationError as error:
        raise CreationError(first_problem(error)) from None
