"""How a fork begins: the first two events of its stream, from an event of another agent's.

What the other agent had planned, believed and done up to there is taken over as it stands, so that nothing
of it is asked of a model or run again. Source: steering §3 idea 5.
"""

from __future__ import annotations

from engine.domain import commands as cmd
from engine.domain.rewinding import RewindScope, course_at
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.fold import copy_state
from engine.steering.rewinding import RewindError, Surroundings, preview


async def begun_at(
    state: AgentState, around: Surroundings, command: cmd.ForkAgent
) -> tuple[ev.AgentCreated, ev.AgentForked]:
    """The events by which a fork begins.

    Args:
        state: how the other agent stands now, all of it durable.
        around: what the journal and the snapshots say of it.
        command: from which event, and under which id.

    Raises:
        RewindError: no fork can begin there.
        SnapshotError: the present files cannot be saved.
        JournalError: the journal cannot be read.
    """
    if state.reasons:
        raise RewindError("the mind of an agent with a program of its own cannot be forked")
    if around.snapshots is None:
        raise RewindError("no snapshots of files are taken here, so that a fork would have none of its own")
    found = await preview(around, copy_state(state), command.to, RewindScope.BOTH, looks=False)
    files = found.files
    if files is None or (not files.snapshot and not files.exact):
        raise RewindError(files.note if files is not None else "the files as of then are not known")
    # Where no action has changed files since, they are as they are now.
    snapshot = files.snapshot or (await around.snapshots.take(label=f"{command.name} begins")).id
    created = ev.AgentCreated(
        agent_id=command.name,
        agent_type=state.agent_type,
        description=f"fork of {state.agent_id}:{found.to}",
        config=state.config,
    )
    forked = ev.AgentForked(
        parent=f"{state.agent_id}:{found.to}",
        course=course_at(found.then, AgentState()),
        snapshot=snapshot,
        next_id=dict(found.then.next_id),
        budget=state.budget,
    )
    return created, forked
