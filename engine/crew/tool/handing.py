"""Handing work on: to one agent, to several at once, or the floor (ontology spec §1.10 to §1.12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.agents.kinds import AgentType, ErrorCode, Priority
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec, Handoffs, Instructions, Receives, Routing, SubAgent, Supports
from engine.agents.values import InvalidError, Problem
from engine.crew.parts import Ask, HandoffError
from engine.crew.tool.work import Work, done, refused
from engine.domain.action import ToolResult
from engine.domain.running import AWAY, VIEWS
from engine.thinkers.brief import carried

OUTPUT_MOST = 40_000
"""Characters of a view that are kept."""


async def delegate(work: Work) -> ToolResult:
    """Hand work to another agent and wait for what comes back."""
    said = work.args
    try:
        priority = Priority(int(said.get("priority") or 1))
    except ValueError:
        problem = Problem(path="priority", message=f"is {said.get('priority')!r}; it is 1, 2 or 3")
        raise InvalidError("delegate", (problem,)) from None
    ask = Ask(
        to=str(said["to"]),
        task=str(said["task"]),
        expected=str(said.get("expected") or ""),
        focus=tuple(map(str, said.get("focus") or ())),
        ignore=tuple(map(str, said.get("ignore") or ())),
        priority=priority,
        timeout_s=said.get("timeout_s"),
        metadata={"call": work.key},
    )
    result = await work.desk.delegate(work.run, ask)
    return _told(result)


def _told(result: HandoffResult) -> ToolResult:
    """What came of a delegation, as its caller is told it."""
    data: dict[str, Any] = {
        "handoff": result.handoff_id,
        "state": result.state.value,
        "output": result.output,
        "key_findings": list(result.key_findings),
        "recommendations": list(result.recommendations),
        "confidence": result.confidence,
        "confidence_source": result.confidence_source.value,
    }
    if result.success:
        return done(f"{result.from_agent} returned", **data)
    why = f"{result.from_agent}: {result.error_code or result.state}: {result.error}"
    return refused(why, **data)


async def transfer_to(work: Work) -> ToolResult:
    """Give the floor to another agent."""
    to = str(work.args["agent"])
    said = await work.desk.transfer(work.run, to, str(work.args["reason"]))
    return done(said or f"{to} has the floor", beliefs={AWAY: to})


# ------------------------------------------------------------------ several at once


async def gather(work: Work) -> ToolResult:
    """Have every sub-agent work on the task; below the quorum the handoff ends."""
    spec = work.handoff.spec
    if not spec.sub_agents:
        return refused(f"{spec.id} has no sub-agents")
    asks = [_ask(work, sub) for sub in spec.sub_agents]
    try:
        results = await work.desk.gather(work.run, asks, min_success=spec.least)
    except HandoffError as error:
        return await work.give(work.failing(error.code, error.message))
    views = [_view(sub, result) for sub, result in zip(spec.sub_agents, results, strict=True)]
    missing = [view["id"] for view in views if not view["ok"]]
    if (short := _below_quorum(spec, views)) is not None:
        code, why = short
        kept = "\n\n".join(f"## {view['id']}\n{view['output']}" for view in views if view["ok"])
        result = work.failing(code, why, output=kept, partial=bool(kept), missing=tuple(missing))
        return await work.give(result, **{VIEWS: views})
    message = f"{len(views) - len(missing)} of {len(views)} views"
    return done(
        message + (f"; missing: {', '.join(missing)}" if missing else ""),
        beliefs={VIEWS: views},
        missing=missing,
    )


def _below_quorum(spec: AgentSpec, views: Sequence[dict[str, Any]]) -> tuple[ErrorCode, str] | None:
    """Why there are too few views; None when there are enough."""
    lacking = [view for view in views if not view["ok"]]
    required = {sub.id for sub in spec.sub_agents if sub.required}
    gone = [view["id"] for view in lacking if view["id"] in required]
    got = len(views) - len(lacking)
    if not gone and got >= spec.least:
        return None
    if lacking and all(view["code"] == ErrorCode.NO_MODEL for view in lacking):
        return ErrorCode.NO_MODEL, f"{spec.name} needs a model: its views are written by one"
    why = (
        f"{', '.join(gone)} is required and gave nothing"
        if gone
        else f"{got} views, and {spec.least} are needed"
    )
    return ErrorCode.QUORUM, f"{why}: " + "; ".join(f"{view['id']}: {view['error']}" for view in lacking)


def _view(sub: SubAgent, result: HandoffResult) -> dict[str, Any]:
    return {
        "id": sub.id,
        "role": sub.role,
        "ok": result.success,
        "output": result.output[:OUTPUT_MOST] if result.success else "",
        "key_findings": list(result.key_findings) if result.success else [],
        "confidence": result.confidence,
        "handoff": result.handoff_id,
        "error": result.error or "",
        "code": result.error_code.value if result.error_code is not None else "",
    }


def _ask(work: Work, sub: SubAgent) -> Ask:
    """What a sub-agent is asked: the task with its own view, and nothing of the others."""
    context = work.handoff.context
    known = {one.id for one in work.desk.callable_by(work.run)}
    registered = sub.id in known and not sub.instructions and not sub.criteria
    task = (
        str(work.args.get("task") or "")
        or context.task_description
        or context.problem_clarity.what
        or sub.role
    )
    return Ask(
        to=sub.id,
        task=task,
        expected=f"your view as {sub.role}, and nothing of the others'",
        focus=context.focus_areas,
        ignore=context.ignore_areas,
        priority=context.priority,
        spec=None if registered else spec_of(work.handoff.spec, sub),
        metadata={"call": f"{work.key}:{sub.id}", "view": sub.id, **carried(context.metadata)},
    )


def spec_of(spec: AgentSpec, sub: SubAgent) -> AgentSpec:
    """A sub-agent as an agent of its own: one task in, one view out; it calls nobody."""
    return AgentSpec(
        id=sub.id,
        name=sub.role,
        type=AgentType.OPERATOR,
        version=spec.version,
        description=f"{sub.role}, for {spec.name}",
        model=sub.model or spec.model,
        instructions=Instructions(
            system=sub.instructions or f"You give one view: {sub.role}. Keep to it.",
            quality_criteria=sub.criteria,
            tone=spec.instructions.tone,
        ),
        handoff=alone(spec),
        tools=spec.tools,
        selectable=False,
    )


def alone(spec: AgentSpec) -> Handoffs:
    """The side of the protocol of an agent that is called by another's run only."""
    return Handoffs(
        receives=Receives(requires_what=False, min_clarity=0.0),
        returns=spec.handoff.returns.model_copy(update={"score_names": ()}),
        routing=Routing(default_return_to=spec.id),
        supports=Supports(escalate=False),
    )
