"""Who may command an agent where several operators work with one engine.

Nobody holds an agent's controls until an operator commands it while another one is connected, or takes them.
From then on what others command is refused, but for stopping, answering what was asked, and notes. Alone,
nothing is recorded. Presence is known only while the engine runs, so all that follows from it comes into an
agent's stream as an event from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.agent.agent import Agent
from engine.agent.decisions.outcome import RefusedError, refuse
from engine.agent.live_agents import LiveAgents
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.control import PROGRAMS, operator_of
from engine.core.reasons import Reason
from engine.core.state import AgentState

_SERVE = "operator:serve"
"""In whose name an engine that starts again lets agents go on."""
_ALWAYS = (
    *(cmd.Pause, cmd.Stop, cmd.StopJob, cmd.CancelBackground, cmd.DropCall),
    *(cmd.AnswerApproval, cmd.DecidePlans, cmd.AddNote, cmd.ForkAgent, cmd.ForControl, cmd.HearMessage),
)
"""Stopping, answers, what agents say to each other, and what leaves the agent as it is."""
_OF_REPLANS = (cmd.AcceptPlan, cmd.RejectReplan)
_OF_TURNS = (cmd.GiveResult, cmd.RetryStep, cmd.SkipStep, cmd.WaiveSnapshot, cmd.HandBack)

Clients = Callable[[], Iterable[Mapping[str, Any]]]
"""Who is connected: rows with `operator`, the name, and `watch`, whether nothing may be changed."""


def answers(state: AgentState, command: cmd.Command) -> bool:
    """Whether a command settles what the agent itself has asked of its operators."""
    if isinstance(command, _OF_REPLANS):
        return command.goal in state.approvals.held
    turn = state.intervention
    if not isinstance(command, _OF_TURNS) or turn is None or turn.reason.is_a("turn.taken"):
        return False
    return getattr(command, "step", turn.step) == turn.step


class Controls:
    """Refuses commands of others than the holder, and carries out those about the controls.

    Args:
        live: the agents.
        clients: who is connected.
    """

    def __init__(self, live: LiveAgents, clients: Clients) -> None:
        self._live, self._clients = live, clients

    def _present(self) -> set[str]:
        """The names of the operators who are connected and may change something."""
        return {str(row["operator"]) for row in self._clients() if not row["watch"]} - PROGRAMS

    def _changed(self, command: cmd.Command) -> list[Agent]:
        """The agents that a command would change and that only their holder may change."""
        if isinstance(command, _ALWAYS):
            return []
        names: Iterable[str] = (command.agent,)
        if isinstance(command, cmd.Thaw) and command.scope != "agent":
            names = self._live.family(command.agent) if command.scope == "children" else self._live.here
        agents = (self._live.here[name] for name in names if name in self._live.here)
        return [agent for agent in agents if not answers(agent.state, command)]

    def admit(self, command: cmd.Command, actor: str) -> str:
        """See that a command may be carried out; the controls are its operator's where others are connected.

        Returns:
            What to say of the controls beside the result; empty for nothing.

        Raises:
            RefusedError: somebody else holds them; the reason says who.
        """
        agents, taken, name = self._changed(command), [], operator_of(actor)
        for agent in agents:
            goes_on = actor == _SERVE and isinstance(command, cmd.Run)
            if agent.state.control.bars(actor) and not goes_on:
                raise RefusedError(_held(agent.state))
        connected = self._present() if agents else set()
        if name in connected and len(connected) > 1:
            taken = [agent for agent in agents if not agent.state.control.holder]
        for agent in taken:
            agent.append(ev.ControlTaken(holder=name), actor)
            agent.commit_soon()
        names = ", ".join(agent.state.agent_id for agent in taken)
        return f"you hold the controls of {names} now" if taken else ""

    async def carry_out(self, command: cmd.ForControl, actor: str) -> cmd.Receipt:
        """Change who holds an agent's controls."""
        agent = self._live.here.get(command.agent)
        if agent is None:
            return cmd.Receipt(ok=False, message=self._live.unreachable_reason(command.agent))
        name = operator_of(actor)
        try:
            refuse(not name, Reason("refused.no-operator", name=actor.partition(":")[2]))
            payload, message = self._decided(agent.state, command, name)
        except RefusedError as error:
            return cmd.Receipt(ok=False, message=str(error))
        if payload is None:
            return cmd.Receipt(ok=True, message=message)
        event = agent.append(payload, actor)
        await agent.log.commit()
        return cmd.Receipt(ok=True, message=message, event=event.ref)

    def _decided(
        self, state: AgentState, command: cmd.ForControl, name: str
    ) -> tuple[ev.Payload | None, str]:
        """The event that a command about the controls leads to, and what to say of it.

        Raises:
            RefusedError: it cannot be done.
        """
        agent, control = state.agent_id, state.control
        holder = control.holder
        if isinstance(command, cmd.TakeControl):
            if holder == name:
                return None, f"you hold the controls of {agent} already"
            before = f"; {holder} had them" if holder else ""
            return ev.ControlTaken(holder=name, before=holder), f"you hold the controls of {agent}{before}"
        refuse(not holder, Reason("refused.no-holder", agent=agent))
        if isinstance(command, cmd.AskControl):
            if holder == name:
                return None, f"you hold the controls of {agent} already"
            asked = name in dict(control.asked)
            refuse(asked, Reason("refused.asked-already", holder=holder, agent=agent))
            away = (
                "" if holder in self._present() else f"; {holder} is not connected: control take takes them"
            )
            return ev.ControlAsked(
                by=name, holder=holder
            ), f"{holder} is asked for the controls of {agent}{away}"
        refuse(holder != name, Reason("refused.not-yours", holder=holder, agent=agent))
        to = command.to if isinstance(command, cmd.GiveControl) else ""
        if to == name:
            return None, f"you hold the controls of {agent} already"
        known = sorted({*self._present(), *dict(control.asked)} - {name})
        if to and to not in known:
            listed = ", ".join(known) or "nobody else is"
            raise RefusedError(Reason("refused.no-such-operator", name=to, listed=listed))
        message = f"{to} holds the controls of {agent} now" if to else f"nobody holds the controls of {agent}"
        return ev.ControlGiven(holder=to, before=name), message


def _held(state: AgentState) -> Reason:
    """Why a command of another than the holder is not carried out."""
    control = state.control
    since = control.since[:16].replace("T", " ")
    return Reason("refused.held", holder=control.holder, agent=state.agent_id, since=since)
