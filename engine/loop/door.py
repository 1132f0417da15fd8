"""Where commands come in: each is given to who carries it out; those to all agents are carried out here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from engine.domain import commands as cmd
from engine.domain.crew_commands import ForCrew
from engine.domain.mastermind_commands import ForMastermind
from engine.domain.server_commands import ForServers
from engine.domain.state import RunState
from engine.domain.strict_json import NESTING_LIMIT, too_deep
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.journal.event import canonical
from engine.journal.log import StreamLog
from engine.loop.budgets import Budgets
from engine.loop.live_agents import LiveAgents
from engine.loop.sharing import Shared
from engine.loop.stopping import Stops
from engine.memory.operating import remember
from engine.sandbox.policy import Tier
from engine.sandbox.tier import JailRefusal, best_jail


class Door:
    """Carries commands out, those to agents and those to all.

    Args:
        shared: what the agents share.
        live: the agents.
        budgets: what they may take.
        log: the workspace's own stream.
        session: the session's id.
        mastermind: carries out what is asked of the system itself.
        crew: carries out what is asked of agents that hand work to each other.
        servers: carries out what is asked of MCP servers.
    """

    def __init__(
        self,
        shared: Shared,
        live: LiveAgents,
        budgets: Budgets,
        log: StreamLog,
        session: str,
        mastermind: Callable[[ForMastermind, str], Awaitable[cmd.Receipt]],
        crew: Callable[[ForCrew, str], Awaitable[cmd.Receipt]],
        servers: Callable[[ForServers, str], Awaitable[cmd.Receipt]],
    ) -> None:
        self._shared, self._live, self._budgets = shared, live, budgets
        self._log, self._session, self._mastermind, self._crew = log, session, mastermind, crew
        self._servers = servers
        self.stops = Stops()
        self._carrying: set[asyncio.Task[cmd.Receipt]] = set()

    async def submit(self, command: cmd.Command, *, operator: str = "operator") -> cmd.Receipt:
        """Carry out a command to the end, even when the caller is cancelled; see `Engine.submit`."""
        carrying = asyncio.create_task(self._carry_out(command, f"operator:{operator}"), name=command.do)
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)
        return await asyncio.shield(carrying)

    async def close(self) -> None:
        """Wait for the commands that came in; those of stopping look no further for what came of them."""
        await asyncio.gather(*self._carrying, return_exceptions=True)
        await self.stops.close()

    async def _carry_out(self, command: cmd.Command, actor: str) -> cmd.Receipt:
        if isinstance(command, cmd.CallTool | cmd.DropCall) and command.client:
            actor = f"client:{command.client}"
        try:
            command = _recordable(command)
        except (ValueError, TypeError, RecursionError) as error:
            return cmd.Receipt(ok=False, message=f"this cannot be recorded: {error}")
        try:
            if isinstance(command, cmd.CreateAgent):
                return await self._live.create(command, actor)
            if isinstance(command, cmd.AcceptTier):
                return await self._accept_tier(command, actor)
            if isinstance(command, ForMastermind):
                return await self._mastermind(command, actor)
            if isinstance(command, ForCrew):
                return await self._crew(command, actor)
            if isinstance(command, ForServers):
                return await self._servers(command, actor)
            if isinstance(command, cmd.Remember):
                return await self._remember(command, actor)
            if isinstance(command, cmd.Stop | cmd.Thaw):
                return await self._halt(command, actor)
            if isinstance(command, cmd.SetWorkspaceBudget):
                return await self._set_workspace_budget(command, actor)
            agent = self._live.here.get(command.agent)
            if agent is None:
                return cmd.Receipt(ok=False, message=self._live.nobody(command.agent))
            if isinstance(command, cmd.Run | cmd.Step):
                thinks = self._shared.thinks(agent.state)
                if why := self._shared.ledger.no_start(command.agent, thinks=thinks):
                    return cmd.Receipt(ok=False, message=why)
            if busy := self._shared.branches.held(agent, command):
                return cmd.Receipt(ok=False, message=busy)
            if isinstance(command, cmd.Rewind | cmd.AdoptFork):
                return await self._shared.branches.rewind(agent, command, actor)
            if isinstance(command, cmd.ForkAgent):
                return await self._live.fork(agent, command, actor)
            receipt = agent.handle(self._budgets.resolved(command, agent.state), actor)
            await agent.log.commit()
            if agent.state.deleted:
                await agent.close()
                del self._live.here[command.agent]
                self._shared.coders.leave(command.agent)
            if isinstance(command, cmd.SetBudget | cmd.DeleteAgent | cmd.Undo) and receipt.ok:
                receipt = self._with_eased(receipt, actor, command.agent)
        except JournalError as error:
            return cmd.Receipt(ok=False, message=f"not recorded yet: {error}")
        else:
            return receipt

    async def _halt(self, command: cmd.Stop | cmd.Thaw, actor: str) -> cmd.Receipt:
        """Stop or thaw every agent that is meant, in one go."""
        if command.scope == "all":
            meant = tuple(self._live.here)
        elif command.agent in self._live.here:
            meant = self._live.family(command.agent) if command.scope == "children" else (command.agent,)
        else:
            return cmd.Receipt(ok=False, message=self._live.nobody(command.agent))
        if not meant:
            return cmd.Receipt(ok=False, message=self._live.nobody(command.agent))
        agents = [self._live.here[name] for name in meant]
        if isinstance(command, cmd.Thaw):
            return await self.stops.thaw(agents, command, actor)
        return await self.stops.carry_out(agents, command, actor)

    async def _accept_tier(self, command: cmd.AcceptTier, actor: str) -> cmd.Receipt:
        """Go on with less than the policy requires, for this session and recorded before it counts."""
        report, tier = self._shared.coders.report(), Tier(command.tier)
        if not report.refusal:
            return cmd.Receipt(ok=False, message=f"programs run already, in the jail {report.tier}")
        if tier is not report.tier:
            return cmd.Receipt(ok=False, message=f"this machine gives {report.tier}, not {tier}")
        accepted = best_jail(report.policy.accepting(tier))
        if isinstance(accepted, JailRefusal):
            return cmd.Receipt(ok=False, message=accepted.message)
        said = ev.TierAccepted(session=self._session, tier=tier, reason=report.refusal)
        event = self._log.append(said, actor=actor, causes=(), tick=0)
        await self._log.commit()
        self._shared.coders.accept(tier)
        return cmd.Receipt(ok=True, message=self._shared.coders.report().standing, event=event.ref)

    async def _set_workspace_budget(self, command: cmd.SetWorkspaceBudget, actor: str) -> cmd.Receipt:
        resolved = self._budgets.resolved(command, None)
        assert isinstance(resolved, cmd.SetWorkspaceBudget)
        said, told = self._budgets.of_all(resolved)
        event = self._log.append(said, actor=actor, causes=(), tick=0)
        await self._log.commit()
        self._budgets.now_holds(said.limits)
        return self._with_eased(cmd.Receipt(ok=True, message=told, event=event.ref), actor)

    def _with_eased(self, receipt: cmd.Receipt, actor: str, agent: str = "") -> cmd.Receipt:
        """Let agents go on for which there is more of a budget now, and say which do."""
        eased = self._budgets.ease(self._live.here, actor)
        running = [name for name in eased if self._live.here[name].state.run is RunState.RUNNING]
        told = f"; {', '.join(running)} {'goes' if len(running) == 1 else 'go'} on" if running else ""
        live = self._live.here.get(agent)
        if live is not None and live.state.held_by is not None:
            why = self._shared.ledger.still(agent)
            told += f"; {agent} is still held: {why.reason}" if why is not None else ""
        return receipt.model_copy(update={"message": receipt.message + told})

    async def _remember(self, command: cmd.Remember, actor: str) -> cmd.Receipt:
        agent = self._live.here.get(command.agent)
        if command.agent and agent is None:
            return cmd.Receipt(ok=False, message=self._live.nobody(command.agent))
        goal = agent.state.goal_at_hand if agent is not None else ""
        return await remember(self._shared.memory, command, actor, goal, self._shared.kept)


def _recordable(command: cmd.Command) -> cmd.Command:
    """The command as the journal will give it back, so that the live state and its fold are the same.

    Raises:
        ValueError, TypeError, RecursionError: it holds what JSON cannot say or what is nested too deep.
    """
    plain = json.loads(canonical(command.model_dump()))
    if too_deep(plain):
        raise ValueError(f"it is nested more than {NESTING_LIMIT} deep")
    return cmd.parse_command(plain)
