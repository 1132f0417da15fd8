"""An agent's state at an event, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

from app.comparing import at_ref, read_ref
from app.lines import call_text
from engine.domain.plan import PlanStep
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.journal.fold import dump_state
from engine.journal.past import Past

WORDS = 200


async def state_at(past: Past, ref: str) -> tuple[dict[str, Any], str]:
    """The state that a word names, as JSON and as text.

    Args:
        past: the agent's.
        ref: an event's version or reference, or `now`.

    Raises:
        PastError: there is no such event of this agent's.
        JournalError: the journal cannot be read.
    """
    state = await at_ref(past, read_ref(ref, past.stream))
    answer = {
        "at": f"{past.stream}:{state.version}",
        "time": state.at,
        "newest": await past.head(),
        "mode": state.mode.value,
        "point": state.pause_point.value,
        "state": _plain(state),
    }
    return answer, _text(state)


def _plain(state: AgentState) -> Any:
    """The whole state, as a snapshot has it."""
    return json.loads(dump_state(state).partition("\n")[2])


def _text(state: AgentState) -> str:
    goals = [f"{goal.id} {goal.status.value}: {goal.text}" for goal in state.goals.values()]
    plan = state.plan
    steps = [_step(step) for step in plan.steps] if plan is not None else []
    beliefs = [f"{key} = {belief.value}" for key, belief in state.beliefs.items()]
    beliefs += [held.text for held in state.held_beliefs.values()]
    failures = [
        f"{one.kind.value} {one.subject}: {one.message}" for one in state.failures if not one.resolved
    ]
    lines = [
        f"{state.agent_id}:{state.version} {state.at} tick {state.tick} · {state.mode} ({state.pause_point})",
        f"{state.actions} actions, {state.failed_actions} failed, {state.operator_actions} the operator's, "
        f"{state.tokens} tokens, ${state.cost_usd:.2f}",
    ]
    title = f"Plan of {plan.goal}, revision {plan.revision}" if plan is not None else "Plan"
    for heading, rows in (
        ("Goals", goals),
        (title, steps),
        ("Beliefs", beliefs),
        ("Open failures", failures),
    ):
        lines += ["", heading, *(f"  {clean_line(row, limit=WORDS)}" for row in rows or ["none"])]
    return "\n".join(lines)


def _step(step: PlanStep) -> str:
    words = call_text(step.command, step.args) if step.command else step.description or step.op.value
    return f"{step.id} {step.status.value}: {words}"
