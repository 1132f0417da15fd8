"""Where commands come in: a table by command type says what carries each out; and budgets as they are set."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from engine.agent.agent import Agent
from engine.agent.controls import Controls
from engine.agent.decisions.approvals import changed
from engine.agent.decisions.outcome import RefusedError
from engine.agent.live_agents import LiveAgents
from engine.agent.model_calls import spent_by_charge
from engine.agent.shared import SharedServices
from engine.agent.steering.learned_rules import learn_rules
from engine.agent.steering.ledger import WORKSPACE as WORKSPACE_BUDGET
from engine.agent.steering.ledger import Ledger
from engine.agent.steering.left_out import whole_text
from engine.agent.stops import StopController
from engine.agent.submissions import Submissions
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import ForServers, RunState
from engine.core.campaigns import ForMastermind, ModelCharged
from engine.core.command import NOT_RECORDED
from engine.core.crew_commands import ForCrew
from engine.core.journal import MASTERMIND, WORKSPACE, JournalError, canonical
from engine.core.ports import Clock
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.streams import StreamLog
from engine.core.text import NESTING_LIMIT, too_deep
from engine.memory.tool import remember_for_operator
from engine.sandbox.policy import Network, Tier
from engine.sandbox.tier import JailRefusal, best_jail

_Route = Callable[[Any, str], Awaitable[cmd.Receipt]]
_AgentRoute = Callable[[Agent, Any, str], Awaitable[cmd.Receipt]]


REST_S = 0.05
"""How long a command waits for what a reasoner is in the middle of; it then meets the newest state."""


class AgentBudgets:
    """Sets budgets and lets agents continue that they no longer hold.

    Args:
        ledger: the one that all agents ask.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def restore(self, store: JournalStore, *, foreign: bool = False) -> None:
        """Find what the operator set for all together in an earlier session, and what Mastermind took.

        Args:
            store: the journal.
            foreign: it is somebody else's, so that what was set in it does not count.
        """
        budgets = [] if foreign else await store.last(1, WORKSPACE, kind=ev.WorkspaceBudgetSet.kind)
        for event in budgets:
            if isinstance(payload := ev.payload_of(event), ev.WorkspaceBudgetSet):
                self.ledger.workspace = payload.limits
        for event in await store.last(sys.maxsize, MASTERMIND, kind=ModelCharged.kind):
            if isinstance(payload := ev.payload_of(event), ModelCharged):
                self.ledger.beside += spent_by_charge(payload)

    def resolved(self, command: cmd.Command, state: AgentState | None) -> cmd.Command:
        """A command whose amounts are to come on top of what holds, with the amounts that come of it."""
        if not isinstance(command, cmd.BudgetAmounts) or not command.more:
            return command
        if isinstance(command, cmd.SetBudget) and command.goal:
            budget = f"goal {command.goal}"
        else:
            budget = WORKSPACE_BUDGET if isinstance(command, cmd.SetWorkspaceBudget) else "agent"
        account = self.ledger.account(budget, state)
        limits = self.ledger.on_top(command.limits, account, command.more)
        amounts = {kind.value: limits.of(kind) for kind in command.more}
        return cmd.parse_command({**command.model_dump(), **amounts, "more": ()})

    def release_agents(self, agents: Mapping[str, Agent], actor: str) -> list[str]:
        """Let agents continue that no budget holds any more; their ids."""
        eased = [name for name in self.ledger.eased() if name in agents]
        for name in eased:
            agents[name].ease(actor)
            agents[name].commit_soon()
        return eased

    def keep_time(self, agents: Mapping[str, Agent]) -> None:
        """Hold the agents whose time is up."""
        for name, objection in list(self.ledger.overtime()):
            if name in agents:
                agents[name].time_is_up(objection)


class ApprovalDeadlines:
    """Until when an approval can be given before it is denied by itself, counted in this session alone.

    Args:
        clock: the engine's.
        after_s: how long an approval may wait; None for as long as it takes.
    """

    def __init__(self, clock: Clock, after_s: float | None) -> None:
        self._clock, self.after_s = clock, after_s
        self._ends: dict[str, tuple[str, float, str]] = {}

    def overdue(self, states: Mapping[str, AgentState]) -> list[cmd.DenyOverdue]:
        """What of these agents is to be denied now."""
        if self.after_s is None:
            return []
        self._ends = {name: end for name, end in self._ends.items() if name in states}
        return [
            cmd.DenyOverdue(agent=state.agent_id, action=state.approvals.question.action)
            for state in states.values()
            if state.approvals.question is not None and self.is_over(state)
        ]

    def is_over(self, state: AgentState) -> bool:
        """Whether what an agent asks has waited as long as it may."""
        end = self._end(state)
        return end is not None and self._clock.monotonic() >= end[1]

    def until(self, state: AgentState) -> str:
        """When what an agent asks is denied, ISO 8601 UTC; empty where it never is."""
        end = self._end(state)
        return end[2] if end is not None else ""

    def _end(self, state: AgentState) -> tuple[str, float, str] | None:
        question = state.approvals.question
        if self.after_s is None or question is None or state.run is RunState.STOPPED:
            self._ends.pop(state.agent_id, None)
            return None
        end = self._ends.get(state.agent_id)
        if end is None or end[0] != question.event:
            at = datetime.fromisoformat(self._clock.now()) + timedelta(seconds=self.after_s)
            shown = at.strftime("%Y-%m-%dT%H:%M:%SZ")
            end = self._ends[state.agent_id] = (question.event, self._clock.monotonic() + self.after_s, shown)
        return end


class CommandRouter:
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
        controls: which operator may command which agent.
    """

    def __init__(
        self,
        shared: SharedServices,
        live: LiveAgents,
        budgets: AgentBudgets,
        log: StreamLog,
        session: str,
        mastermind: Callable[[ForMastermind, str], Awaitable[cmd.Receipt]],
        crew: Callable[[ForCrew, str], Awaitable[cmd.Receipt]],
        servers: Callable[[ForServers, str], Awaitable[cmd.Receipt]],
        controls: Controls,
    ) -> None:
        self._shared, self._live, self._budgets = shared, live, budgets
        self._log, self._session, self._controls = log, session, controls
        self.stops = StopController()
        self._submissions = Submissions(shared.store)
        self.deadlines = ApprovalDeadlines(shared.ports.clock, shared.config.deny_after_s)
        self._carrying: set[asyncio.Task[cmd.Receipt]] = set()
        self._routes: dict[type[cmd.Command], _Route] = {
            cmd.CreateAgent: live.create,
            cmd.AcceptTier: self._accept_tier,
            cmd.GrantNetwork: self._grant_network,
            ForMastermind: mastermind,
            ForCrew: crew,
            ForServers: servers,
            cmd.ForControl: controls.carry_out,
            cmd.Remember: self._remember,
            cmd.Stop: self._halt,
            cmd.Thaw: self._halt,
            cmd.SetWorkspaceBudget: self._set_workspace_budget,
            cmd.RecordAccess: self._record_access,
            cmd.Command: self._to_agent,
        }
        """Carries a command out, by its type or the nearest type that it is of."""
        self._agent_routes: dict[type[cmd.Command], _AgentRoute] = {
            cmd.Rewind: shared.branches.rewind,
            cmd.AdoptFork: shared.branches.rewind,
            cmd.ForkAgent: live.fork,
            cmd.SetBudget: self._handle_and_ease,
            cmd.DeleteAgent: self._handle_and_ease,
            cmd.Undo: self._handle_and_ease,
            cmd.ProposeRules: self._propose_rules,
            cmd.DenyOverdue: self._deny_overdue,
            cmd.RestoreContext: self._restore_context,
            cmd.RetryStep: self._retry,
        }
        """Carries a command to an agent out that the agent does not handle alone."""

    async def submit(
        self, command: cmd.Command, *, operator: str = "operator", own: bool = False
    ) -> cmd.Receipt:
        """Carry out a command to the end, even when the caller is cancelled; see `Engine.submit`.

        Args:
            command: what is to be done.
            operator: who asks.
            own: whether the engine itself does, whoever holds an agent's controls.
        """
        actor = f"operator:{operator}"
        carrying = self._submissions.carrying(command, actor, partial(self._carry_out, own=own))
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)
        return await asyncio.shield(carrying)

    async def close(self) -> None:
        """Wait for the commands that came in; those of stopping look no further for their results."""
        await asyncio.gather(*self._carrying, return_exceptions=True)
        await self.stops.close()

    async def _carry_out(self, command: cmd.Command, actor: str, own: bool) -> cmd.Receipt:
        if self._shared.config.looks_only:
            return cmd.Receipt(ok=False, message=str(Reason("refused.looks-only")))
        if isinstance(command, cmd.CallTool | cmd.DropCall) and command.client:
            actor = f"client:{command.client}"
        try:
            command = _recordable(command)
        except (ValueError, TypeError, RecursionError) as error:
            return cmd.Receipt(ok=False, message=f"this cannot be recorded: {error}")
        route = next(self._routes[kind] for kind in type(command).__mro__ if kind in self._routes)
        try:
            beside = "" if own else self._controls.admit(command, actor)
            receipt = await route(command, actor)
        except RefusedError as error:
            return cmd.Receipt(ok=False, message=str(error))
        except JournalError as error:
            return cmd.Receipt(ok=False, message=f"{NOT_RECORDED}: {error}")
        return receipt.model_copy(update={"message": f"{receipt.message}; {beside}"}) if beside else receipt

    async def _to_agent(self, command: cmd.Command, actor: str) -> cmd.Receipt:
        """Carry out a command to one agent, where nothing keeps the agent from it."""
        agent = self._live.here.get(command.agent)
        if agent is None:
            return cmd.Receipt(ok=False, message=self._live.unreachable_reason(command.agent))
        begins = isinstance(command, cmd.Run | cmd.Step)
        thinks = self._shared.thinks(agent.state)
        if begins and (why := self._shared.ledger.no_start(command.agent, thinks=thinks)):
            return cmd.Receipt(ok=False, message=why)
        if busy := self._shared.branches.held(agent, command):
            return cmd.Receipt(ok=False, message=busy)
        return await self._agent_routes.get(type(command), self._handle)(agent, command, actor)

    async def _retry(self, agent: Agent, command: cmd.RetryStep, actor: str) -> cmd.Receipt:
        """Ask a model again at once where its calls wait for that, else run a step or a goal again."""
        client = self._shared.client
        if client is None or not client.rests or not (agent.around.model and agent.around.model.calls):
            return await self._handle(agent, command, actor)
        for rest in client.rests:
            rest.over.set()
        return cmd.Receipt(ok=True, message="the model is asked again now")

    async def _handle(self, agent: Agent, command: cmd.Command, actor: str) -> cmd.Receipt:
        if not isinstance(command, cmd.Pause):
            await agent.deliberation.rests(REST_S)
        receipt = agent.handle(self._budgets.resolved(command, agent.state), actor)
        await agent.log.commit()
        if agent.state.deleted:
            await agent.close()
            del self._live.here[command.agent]
            self._shared.coders.remove(command.agent)
        return receipt

    async def deny_overdue(self) -> None:
        """Deny what nobody decided about in time."""
        for command in self.deadlines.overdue({name: agent.state for name, agent in self._live.here.items()}):
            await self._carry_out(command, "system", own=True)

    async def _deny_overdue(self, agent: Agent, command: cmd.DenyOverdue, _actor: str) -> cmd.Receipt:
        """Deny what an agent asks, whoever says that it is time for that."""
        question, after_s = agent.state.approvals.question, self.deadlines.after_s
        if after_s is None or question is None or question.action != command.action:
            return cmd.Receipt(
                ok=False, message=str(Reason("refused.no-approval-waits", agent=command.agent))
            )
        if not self.deadlines.is_over(agent.state):
            return cmd.Receipt(ok=False, message=str(Reason("refused.not-overdue", action=command.action)))
        return await self._handle(agent, command.model_copy(update={"after_s": float(after_s)}), "system")

    async def _propose_rules(self, agent: Agent, command: cmd.ProposeRules, actor: str) -> cmd.Receipt:
        """Learn rules from the agent's history, and have them proposed."""
        await agent.log.commit()
        shared, spec_of = self._shared, agent.around.registry.spec
        history = (shared.store, agent.state, spec_of, shared.config.trust)
        learned = await learn_rules(*history, command.needed)
        return await self._handle(agent, command.model_copy(update={"learned": learned}), actor)

    async def _restore_context(self, agent: Agent, command: cmd.RestoreContext, actor: str) -> cmd.Receipt:
        """Read what is to be brought back, and have it recorded."""
        await agent.log.commit()  # what has just happened is looked for in the journal too
        whole = await whole_text(self._shared.store, self._shared.blobs, agent.state, command.what)
        about, text = (whole.about, whole.text) if whole is not None else ("", "")
        fields = {"about": about, "text": text, "tokens": whole.tokens if whole is not None else 0}
        return await self._handle(agent, command.model_copy(update=fields), actor)

    async def _handle_and_ease(self, agent: Agent, command: cmd.Command, actor: str) -> cmd.Receipt:
        """Carry out a command after which there may be more of a budget for others."""
        receipt = await self._handle(agent, command, actor)
        return self._with_eased(receipt, actor, command.agent) if receipt.ok else receipt

    async def _halt(self, command: cmd.Stop | cmd.Thaw, actor: str) -> cmd.Receipt:
        """Stop or thaw every agent that is meant, in one go."""
        if command.scope == "all":
            meant = tuple(self._live.here)
        elif command.agent in self._live.here:
            meant = self._live.family(command.agent) if command.scope == "children" else (command.agent,)
        else:
            return cmd.Receipt(ok=False, message=self._live.unreachable_reason(command.agent))
        if not meant:
            return cmd.Receipt(ok=False, message=self._live.unreachable_reason(command.agent))
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
        accepts = ev.TierAccepted(session=self._session, tier=tier, reason=report.refusal)
        event = self._log.append(accepts, actor=actor, causes=(), tick=0)
        await self._log.commit()
        self._shared.coders.accept(tier)
        return cmd.Receipt(ok=True, message=self._shared.coders.report().standing, event=event.ref)

    async def _grant_network(self, command: cmd.GrantNetwork, actor: str) -> cmd.Receipt:
        """Open or close the network for this session, recorded before it counts."""
        network, coders = Network(command.network), self._shared.coders
        jail = best_jail(coders.report().policy.with_network(network))
        if isinstance(jail, JailRefusal):
            return cmd.Receipt(ok=False, message=jail.message)
        granted = ev.NetworkGranted(session=self._session, network=network)
        event = self._log.append(granted, actor=actor, causes=(), tick=0)
        await self._log.commit()
        coders.grant_network(network)
        return cmd.Receipt(ok=True, message=f"programs: {coders.report().summary}", event=event.ref)

    async def _set_workspace_budget(self, command: cmd.SetWorkspaceBudget, actor: str) -> cmd.Receipt:
        resolved = self._budgets.resolved(command, None)
        assert isinstance(resolved, cmd.SetWorkspaceBudget)
        limits = changed(self._budgets.ledger.workspace, resolved)
        message = f"budget of the workspace: {limits}" if limits else "the settings' budget holds again"
        event = self._log.append(ev.WorkspaceBudgetSet(limits=limits), actor=actor, causes=(), tick=0)
        await self._log.commit()
        self._budgets.ledger.workspace = limits
        return self._with_eased(cmd.Receipt(ok=True, message=message, event=event.ref), actor)

    async def _record_access(self, command: cmd.RecordAccess, actor: str) -> cmd.Receipt:
        used = ev.AccessUsed(**command.model_dump(exclude={"do", "agent"}))
        event = self._log.append(used, actor=actor, causes=(), tick=0)
        await self._log.commit()
        return cmd.Receipt(ok=True, message="recorded", event=event.ref)

    def _with_eased(self, receipt: cmd.Receipt, actor: str, agent: str = "") -> cmd.Receipt:
        """Let agents continue for which there is more of a budget now, and say which do."""
        eased = self._budgets.release_agents(self._live.here, actor)
        running = [name for name in eased if self._live.here[name].state.run is RunState.RUNNING]
        suffix = f"; {', '.join(running)} {'goes' if len(running) == 1 else 'go'} on" if running else ""
        live = self._live.here.get(agent)
        if live is not None and live.state.held_by is not None:
            why = self._shared.ledger.still(agent)
            suffix += f"; {agent} is still held: {why.reason}" if why is not None else ""
        return receipt.model_copy(update={"message": receipt.message + suffix})

    async def _remember(self, command: cmd.Remember, actor: str) -> cmd.Receipt:
        agent = self._live.here.get(command.agent)
        if command.agent and agent is None:
            return cmd.Receipt(ok=False, message=self._live.unreachable_reason(command.agent))
        goal = agent.state.goal_at_hand if agent is not None else ""
        return await remember_for_operator(self._shared.memory, command, actor, goal, self._shared.kept)


def _recordable(command: cmd.Command) -> cmd.Command:
    """The command as the journal will give it back, so that the live state and its fold are the same.

    Raises:
        ValueError, TypeError, RecursionError: it holds what JSON cannot say or what is nested too deep.
    """
    plain = json.loads(canonical(command.model_dump()))
    if too_deep(plain):
        raise ValueError(f"it is nested more than {NESTING_LIMIT} deep")
    return cmd.parse_command(plain)
