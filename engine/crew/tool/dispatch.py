"""Dispatches the commands of the tool `crew`, and has those that reach agents, the operator and files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from engine.core.actions import ToolResult
from engine.core.agents import AWAY, OPENED, REPAIRS, ROLE, TURNS, VIEWS
from engine.core.ports import CallContext
from engine.core.text import clean_line
from engine.crew.builder.agent_folders import SkillFileError, read_text
from engine.crew.methods import dialogue as role
from engine.crew.ontology.context import SLOTS, Answer, Option
from engine.crew.ontology.criteria import failed
from engine.crew.ontology.kinds import Effect, ErrorCode, InvalidError, Priority, RequestKind, SpecProblem
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import OPENED_MOST, AgentSpec, Instructions, SubAgent
from engine.crew.operator_requests import CONVERSATION
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.run_service import RunService
from engine.crew.thinker.run_plan import carried
from engine.crew.tool import debate as debating
from engine.crew.tool import steps as stepping
from engine.crew.tool.tool_call import (
    ToolCall,
    call_refused,
    call_succeeded,
    compute,
    handoff_refused,
    part_of,
    return_result,
)

OUTPUT_MOST = 40_000
"""Characters of a view that are kept."""


async def delegate(work: ToolCall) -> ToolResult:
    """Hand work to another agent and wait for what comes back."""
    args = work.args
    try:
        priority = Priority(int(args.get("priority") or 1))
    except ValueError:
        problem = SpecProblem("priority", f"is {args.get('priority')!r}; it is 1, 2 or 3")
        raise InvalidError("delegate", (problem,)) from None
    ask = HandoffRequest(
        to=str(args["to"]),
        task=str(args["task"]),
        expected=str(args.get("expected") or ""),
        focus=tuple(map(str, args.get("focus") or ())),
        ignore=tuple(map(str, args.get("ignore") or ())),
        priority=priority,
        timeout_s=args.get("timeout_s"),
        metadata={"call": work.key},
    )
    result = await work.service.delegate(work.run, ask)
    return _told(result)


def _told(result: HandoffResult) -> ToolResult:
    """The result of a delegation for its caller."""
    told = {"state", "output", "key_findings", "recommendations", "confidence", "confidence_source"}
    data = {"handoff": result.handoff_id, **result.model_dump(mode="json", include=told)}
    if result.success:
        return call_succeeded(f"{result.from_agent} returned", **data)
    why = f"{result.from_agent}: {result.error_code or result.state}: {result.error}"
    return call_refused(why, **data)


async def transfer_to(work: ToolCall) -> ToolResult:
    """Give the floor to another agent."""
    to = str(work.args["agent"])
    message = await work.service.transfer(work.run, to, str(work.args["reason"]))
    return call_succeeded(message or f"{to} has the floor", beliefs={AWAY: to})


# ------------------------------------------------------------------ several at once


async def gather(work: ToolCall) -> ToolResult:
    """Have every sub-agent work on the task; below the quorum the handoff ends."""
    spec = work.handoff.spec
    if not spec.sub_agents:
        return call_refused(f"{spec.id} has no sub-agents")
    asks = [_ask(work, sub) for sub in spec.sub_agents]
    try:
        results = await work.service.gather(work.run, asks, min_success=spec.least)
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
    return call_succeeded(
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
    good = result.success
    return {
        "id": sub.id,
        "role": sub.role,
        "ok": good,
        "output": result.output[:OUTPUT_MOST] if good else "",
        "key_findings": list(result.key_findings) if good else [],
        "confidence": result.confidence,
        "handoff": result.handoff_id,
        "error": result.error or "",
        "code": result.error_code.value if result.error_code is not None else "",
    }


def _ask(work: ToolCall, sub: SubAgent) -> HandoffRequest:
    """What a sub-agent is asked: the task with its own view, and nothing of the others."""
    context = work.handoff.context
    known = {spec.id for spec in work.service.callable_by(work.run)}
    registered = sub.id in known and not sub.instructions and not sub.criteria
    task = (
        str(work.args.get("task") or "")
        or context.task_description
        or context.problem_clarity.what
        or sub.role
    )
    return HandoffRequest(
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
    """A sub-agent as an agent of its own: one task in, one view out; it calls no other agent."""
    instructions = Instructions(
        system=sub.instructions or f"You give one view: {sub.role}. Keep to it.",
        quality_criteria=sub.criteria,
        tone=spec.instructions.tone,
    )
    about = f"{sub.role}, for {spec.name}"
    more = {"version": spec.version, "model": sub.model or spec.model, "tools": spec.tools}
    return part_of(spec, sub.id, sub.role, about, instructions, **more)


TURNS_KEPT = 10
TURN = "role.turn"
IDEA_LIMIT = 2_000
_YES = re.compile(
    r"^\s*(yes|yep|yeah|right|correct|exactly|ok(ay)?|confirmed?|that'?s (it|right|correct)|true)\b", re.I
)


async def escalate(work: ToolCall) -> ToolResult:
    """Ask the operator what only a person can know or decide."""
    args = work.args
    try:
        kind = RequestKind(str(args.get("kind") or RequestKind.QUESTION))
    except ValueError as error:
        raise InvalidError("escalate", (SpecProblem("kind", str(error)),)) from None
    question = str(args["question"])
    labels = [
        clean_line(str(option), limit=200) for option in args.get("options") or () if str(option).strip()
    ]
    options = tuple(Option(id=str(n), label=label, effect=Effect.RESUME) for n, label in enumerate(labels, 1))
    context = str(args.get("context") or "")
    answer = await work.ask(kind, "agent", question, question, context=context, options=options)
    text = answered(answer, options)
    return call_succeeded(
        f"{answer.by}: {clean_line(text, limit=120)}", answer=text, option=answer.option_id, by=answer.by
    )


def answered(answer: Answer, options: tuple[Option, ...]) -> str:
    """An answer in words."""
    chosen = next((option.label for option in options if option.id == answer.option_id), "")
    return ": ".join(part for part in (chosen, answer.text) if part)


async def reply(work: ToolCall) -> ToolResult:
    """Say something to the operator and wait for what they say next; it is looked at before it is shown."""
    state = state_of(work)
    text = str(work.args.get("text") or "").strip()
    flagged: list[str] = []
    if text or not work.beliefs.get(AWAY):
        wrong = failed(role.lint_reply(text, ready=state.ready, rules=work.handoff.spec.role))
        flagged = [result.message for result in wrong]
        if flagged and (not work.repairs or not text):
            return work.reject(flagged, {"text": text})
        state = role.replied(state, text, flagged=bool(flagged))
    turns = [
        *(work.brief.kept(work.beliefs, TURNS) or ()),
        *([{"role": "assistant", "text": text}] if text else []),
    ]
    await work.keep(TURN, {ROLE: _json(state), TURNS: turns[-TURNS_KEPT:]}, "; ".join(flagged))
    context = f"shown although it breaks a rule: {'; '.join(flagged)}" if flagged else ""
    answer = await work.ask(RequestKind.QUESTION, CONVERSATION, work.handoff.spec.name, text, context=context)
    turns = [*turns, {"role": "operator", "text": answer.text}][-TURNS_KEPT:]
    state = role.parked(state, work.service.parked(work.run))
    await work.keep(TURN, {ROLE: _json(state), TURNS: turns})
    return call_succeeded(
        f"the operator: {clean_line(answer.text, limit=120)}",
        beliefs={ROLE: _json(state), TURNS: turns, REPAIRS: None, AWAY: None},
        said=answer.text,
        flagged=flagged,
    )


async def update_clarity(work: ToolCall) -> ToolResult:
    """Note what is known of the problem; the score is capped, and only the operator confirms."""
    slot = str(work.args["slot"])
    if slot not in SLOTS:
        raise InvalidError("update_clarity", (SpecProblem("slot", f"is one of {', '.join(SLOTS)}"),))
    score = float(work.args["score"])
    if not 0 <= score <= 1:
        raise InvalidError("update_clarity", (SpecProblem("score", "is a number from 0 to 1"),))
    state = state_of(work)
    confirmed = bool(work.args.get("confirmed")) and _said_yes(work)
    clarity = state.clarity.updated(slot, str(work.args["text"]), score, confirmed)
    after = state.model_copy(update={"clarity": clarity})
    await work.keep(TURN, {ROLE: _json(after)}, f"{slot}: {clarity.score(slot):.2f}")
    ready = "ready" if after.ready else "not ready yet"
    return call_succeeded(
        f"{slot} is {clarity.score(slot):.2f} clear; the problem is {ready}",
        beliefs={ROLE: _json(after)},
        clarity=clarity.to_dict(),
        ready=after.ready,
    )


async def park(work: ToolCall) -> ToolResult:
    """Put an idea aside; the operator takes it up, or drops it, when they like."""
    idea = clean_line(str(work.args["idea"]), limit=IDEA_LIMIT).strip()
    if not idea:
        raise InvalidError("park", (SpecProblem("idea", "needs some words"),))
    name = await work.service.park(work.run, idea)
    state = role.parked(state_of(work), work.service.parked(work.run))
    await work.keep(TURN, {ROLE: _json(state)}, f"parked {name}: {clean_line(idea, limit=120)}")
    return call_succeeded(f"parked as {name}", beliefs={ROLE: _json(state)}, idea=name)


def _said_yes(work: ToolCall) -> bool:
    """Whether the operator's last words are a yes."""
    turns = [turn for turn in work.brief.kept(work.beliefs, TURNS) or () if turn["role"] == "operator"]
    return bool(turns) and _YES.match(str(turns[-1]["text"])) is not None


def state_of(work: ToolCall) -> role.RoleState:
    """Where a role stands; it begins with what was handed over."""
    kept = work.brief.read(work.beliefs, ROLE, role.RoleState)
    ideas = tuple(work.service.parked(work.run))
    return kept or role.RoleState(clarity=work.handoff.context.problem_clarity, parked=ideas)


def _json(state: role.RoleState) -> dict[str, object]:
    return state.model_dump(mode="json")


async def read_skill(work: ToolCall) -> ToolResult:
    """Open a file: from now on the run's model is shown it."""
    opened = tuple(work.beliefs.get(OPENED) or ())
    files = await work.service.skill_of(work.run)
    if files is None:
        return call_refused(f"no files came with {work.handoff.spec.name}")
    path = str(work.args["path"]).strip().removeprefix("./")
    if path not in files.sizes:
        near = get_close_matches(path, files.sizes, n=3, cutoff=0.4)
        there = f"near it: {', '.join(near)}" if near else f"there are {len(files.sizes)} others"
        return call_refused(f"there is no file {clean_line(path, limit=120)!r}; {there}")
    if path in opened:
        return call_succeeded(f"{path} is open already")
    if len(opened) >= OPENED_MOST:
        return call_refused(f"{OPENED_MOST} files are open, which is the most: {', '.join(opened)}")
    try:
        text = await asyncio.to_thread(read_text, Path(files.folder), path)
    except SkillFileError as error:
        return call_refused(f"{error} ({files.sizes[path]:,} bytes); programs that you run can read it there")
    message = f"{path}, {len(text):,} characters, is open"
    return call_succeeded(message, beliefs={OPENED: [*opened, path]})


_HANDLERS: dict[str, Callable[[ToolCall], Awaitable[ToolResult]]] = {
    "delegate": delegate,
    "gather": gather,
    "transfer_to": transfer_to,
    "debate": debating.debate,
    "return_result": return_result,
    "compute": compute,
    "escalate": escalate,
    "reply": reply,
    "update_clarity": update_clarity,
    "park": park,
    "checkpoint": stepping.checkpoint,
    "ask": stepping.ask,
    "read_skill": read_skill,
}


async def dispatch(
    service: RunService, command: str, args: Mapping[str, Any], context: CallContext
) -> ToolResult:
    """Do what a run asks; what it cannot be is answered, never raised."""
    handoff = service.handoff_of(context.agent)
    if handoff is None:
        return call_refused(f"{context.agent or 'nobody'} works on no handoff, so it cannot {command}")
    try:
        return await _HANDLERS[command](ToolCall(service, context.agent, handoff, command, args, context))
    except HandoffError as error:
        return handoff_refused(error)
    except InvalidError as error:
        return call_refused(str(error))
