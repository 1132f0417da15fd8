"""How agents are: `status` and `agent_list`, also of a workspace that no engine has open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.command import NO_AGENT, Answer, GrammarError, Show
from app.commands.registry import command_of
from app.commands.user import user_home
from engine.api.closed_workspace import ClosedWorkspace, closed_workspace
from engine.core.ports import SystemClock
from engine.core.text import clean_line, duration_text
from engine.memory.metacognition.stuck import signs_of

if TYPE_CHECKING:
    from engine.api.workspace_engine import WorkspaceEngine


async def answer_of_closed(workspace: Path, line: str, agent: str) -> Answer | None:
    """The answer to a line about agents, read from the journal.

    None where the line asks for something else, or an engine has to open the workspace for it.

    Args:
        workspace: its directory.
        line: as typed in the command bar.
        agent: for whom it is meant; empty for the first one.
    """
    try:
        command, rest = command_of(line)
    except GrammarError:
        return None
    if rest or not isinstance(command.run, Show) or command.run.states is None:
        return None
    async with closed_workspace(workspace, user_home()) as closed:
        if closed is None or (agent and agent not in closed.agents):
            return None
        code, answer, text = await command.run.states(closed, agent or next(iter(closed.agents), ""))
        return code, {"changed": False, **answer}, text


async def show_status(states: WorkspaceEngine | ClosedWorkspace, agent: str) -> Answer:
    """How the agent is, and what it waits for."""
    if not agent:
        return 2, {}, NO_AGENT
    state, waits = await states.view(agent), await states.waiting(agent)
    signs = signs_of(state.meta)
    answer = {
        "agent": agent,
        "mode": state.mode.value,
        "point": state.pause_point.value,
        "goals": [{"id": g.id, "text": g.text, "status": g.status.value} for g in state.goals.values()],
        "step": state.step.id if state.step else "",
        "waits_for": state.intervention.reason if state.intervention else "",
        "waiting": {"kind": waits.kind.value, "what": waits.what, "since": waits.since, "event": waits.event},
        "actions": state.actions,
        "failed_actions": state.failed_actions,
        "background": [{"job": j.id, "task": j.task.value, "why": j.why} for j in state.meta.running],
        "signals": [sign.text for sign in signs],
    }
    goals = "; ".join(f"{g.id} {g.status}: {g.text}" for g in state.goals.values()) or "no goals"
    stuck = "".join(f" · may be stuck: {sign.text}" for sign in signs)
    now = SystemClock().now()
    since = f", since {waits.since[11:19]} ({duration_text(waits.since, now)})" if waits.since else ""
    waiting = f"waits for {clean_line(waits.what)}{since}"
    return 0, answer, f"{agent} {state.mode} ({state.pause_point}) · {waiting} · {goals}{stuck}"


async def list_agents(states: WorkspaceEngine | ClosedWorkspace, _agent: str) -> Answer:
    """The agents that have not been handed back."""
    views = [await states.view(name) for name in states.agents]
    rows = [
        {
            "id": state.agent_id,
            "type": state.agent_type,
            "mode": state.mode.value,
            "goals": len(state.open_goals),
            "fault": states.fault(state.agent_id),
        }
        for state in views
        if not state.handed_back
    ]
    lines = [
        f"{row['id']:<20} {row['type']:<12} {row['mode']:<13} "
        + (
            f"fault: {row['fault']}"
            if row["fault"]
            else f"{row['goals']} open goal{'s' * (row['goals'] != 1)}"
        )
        for row in rows
    ]
    return 0, {"agents": rows}, "\n".join(lines) or NO_AGENT.replace("there is no agent", "no agents")
