"""Carries out the operator's commands to the crew."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from engine.core import crew as ce
from engine.core import crew_commands as cc
from engine.core.agents import RECORDING
from engine.core.command import Receipt
from engine.core.text import clean_line
from engine.crew.crew import Crew
from engine.crew.handoffs.admission import key_by_prefix
from engine.crew.handoffs.contexts import HandoffDraft, operator_context, with_sources
from engine.crew.handoffs.remote import report, take
from engine.crew.methods.debate import ROUNDS
from engine.crew.ontology.kinds import (
    AgentType,
    ErrorCode,
    HandoffMode,
    HandoffState,
    IllegalTransition,
    InvalidError,
    Priority,
    ReturnBehavior,
)
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.operator_requests import GUIDED
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.state import CrewState, Handoff
from engine.crew.thinker.run_plan import GIVEN, why_model
from engine.models.choice import NO_MODEL

DEBATER = "decision-debate"


def without_model(crew: CrewState, command: cc.ForCrew) -> str:
    """Why a command needs a model, with how to have one; empty where it does not."""
    to = getattr(command, "to", ())
    if isinstance(command, cc.Debate):
        to = command.pro or command.agent_id or DEBATER
    elif not isinstance(command, cc.Delegate | cc.Sequence | cc.Parallel | cc.Transfer):
        return ""
    given = getattr(command, "given", None)
    metadata = getattr(command, "metadata", {}) | ({GIVEN: given} if given is not None else {})
    if RECORDING in metadata:
        return ""
    for name in (to,) if isinstance(to, str) else to:
        entry = crew.agents.get(name)
        asks = entry is not None and entry.spec.type is AgentType.GUIDED
        if entry and not asks and (why := why_model(entry.spec, metadata)):
            return f"{why}; {NO_MODEL}"
    return ""


async def run_crew_command(crew: Crew, command: cc.ForCrew, actor: str) -> Receipt:
    """Carry a command out; what the receipt says is durable, and work continues behind it.

    Raises:
        JournalError: the journal refused.
    """
    try:
        receipt = await _carried_out(crew, command, actor)
    except (HandoffError, IllegalTransition, InvalidError) as error:
        return Receipt(ok=False, message=clean_line(str(error)))
    await crew.stream.commit()
    return receipt


async def _carried_out(crew: Crew, command: cc.ForCrew, actor: str) -> Receipt:
    if not crew.thinks and (why := without_model(crew.state, command)):
        return Receipt(ok=False, message=why, data={"code": ErrorCode.NO_MODEL.value})
    match command:
        case cc.Delegate() | cc.Debate() | cc.Sequence() | cc.Parallel() | cc.Select():
            return await _work(crew, command, actor)
        case cc.Transfer():
            message = await crew.floor.transfer(
                command.to, command.reason, clarity=command.clarity, actor=actor
            )
            return Receipt(ok=True, message=message, data={"handoff": crew.state.floor[-1].handoff})
        case cc.TakeBack():
            return Receipt(ok=True, message=await crew.floor.take_back(actor))
        case cc.Say():
            holder = await crew.floor.say(command.text, actor)
            return Receipt(ok=True, message=f"told {holder}")
        case cc.CancelHandoff() if not command.handoff:
            return await _cancel_all(crew, command, actor)
        case (
            cc.CancelHandoff() | cc.RetryHandoff() | cc.PauseHandoff() | cc.ResumeHandoff()
            | cc.SetPriority() | cc.StepMode() | cc.TakeOver() | cc.GuidedMove()
        ):  # fmt: skip
            return await _on_handoff(crew, command, crew.handoff(command.handoff), actor)
        case cc.TakeHandoff():
            return Receipt(ok=True, message=f"{await take(crew.handoffs, command, actor)} is taken in")
        case cc.ReportHandoff():
            return Receipt(ok=True, message=await report(crew.handoffs, command))
        case cc.AnswerRequest():
            name = key_by_prefix("request", command.request, crew.state.requests, "hr-")
            await crew.requests.answer(name, command.option, command.text, actor)
            return Receipt(ok=True, message=f"{name} is answered", data={"request": name})
        case cc.DismissRequest():
            name = key_by_prefix("request", command.request, crew.state.requests, "hr-")
            await crew.requests.dismiss(name, actor, command.reason)
            return Receipt(ok=True, message=f"{name} is dismissed", data={"request": name})
        case cc.RevokePermission():
            crew.requests.revoke(command.who, command.tool, actor)
            return Receipt(ok=True, message=f"{command.who} asks again before it uses {command.tool}")
        case cc.RegisterAgent():
            entry = await crew.registry.register(command.spec, source=command.source, actor=actor)
            message = "; ".join((f"{entry.spec.id} {entry.spec.version} is registered", *entry.warnings))
            return Receipt(ok=True, message=message, event=entry.event, data={"agent": entry.spec.id})
        case cc.BuildAgent() if crew.builds is not None:
            return Receipt(ok=True, message=await crew.builds.add(Path(command.path), actor=actor))
        case cc.RemoveAgent():
            if crew.builds is not None:
                return Receipt(ok=True, message=await crew.builds.remove(command.who, actor=actor))
            await crew.registry.remove(command.who, reason=command.reason, actor=actor)
            return Receipt(ok=True, message=f"{command.who} is removed; what runs continues")
        case cc.EnableAgent():
            await crew.registry.enable(command.who, command.enabled, actor=actor)
            how = "takes work" if command.enabled else "takes no work"
            return Receipt(ok=True, message=f"{command.who} {how}")
    return Receipt(ok=False, message=f"{command.do} is not known here")


# ------------------------------------------------------------------ work


async def _work(crew: Crew, command: cc.Bringing, actor: str) -> Receipt:
    command = await with_sources(command, crew.state, crew.engine.root)
    match command:
        case cc.Delegate():
            _require(crew, command.to)
            return await _begun(crew, _draft(crew, command, command.to, actor))
        case cc.Debate():
            return await _debate(crew, command, actor)
        case cc.Sequence():
            drafts = _many(crew, command, actor, mode=HandoffMode.SEQUENTIAL)
            group = crew.groups.begin(HandoffMode.SEQUENTIAL, drafts)
            crew.handoffs.moves.start_task(crew.groups.sequential(drafts, group), f"sequence {group}")
            message = f"{group} begins: {' → '.join(command.to)}"
            return Receipt(ok=True, message=message, data={"group": group})
        case cc.Parallel():
            how = {"mode": HandoffMode.PARALLEL, "returns": ReturnBehavior.SYNTHESIZE}
            drafts = _many(crew, command, actor, **how)
            least = command.min_success or -(-len(drafts) // 2)
            group = crew.groups.begin(HandoffMode.PARALLEL, drafts, min_success=least)
            work = crew.groups.parallel(drafts, group=group, min_success=least, synthesize=True)
            crew.handoffs.moves.start_task(work, f"parallel {group}")
            return Receipt(ok=True, message=f"{group} begins: {', '.join(command.to)}", data={"group": group})
        case cc.Select():
            return await _selected(crew, command, actor)
    raise HandoffError(ErrorCode.BAD_CONTEXT, f"{command.do} is no work")


def _draft(
    crew: Crew, command: cc.Delegate | cc.Sequence | cc.Parallel | cc.Select, to: str, actor: str, **how: Any
) -> HandoffDraft:
    """The work of a command for an agent; `how` are other fields of `operator_context`."""
    priority, metadata = Priority(command.priority), command.metadata
    areas = command.focus, command.skip
    ask = HandoffRequest(
        to, command.task, command.expected, *areas, priority, command.timeout_s, metadata=metadata
    )
    clarity, setting = command.clarity, crew.handoffs.setting
    return HandoffDraft(operator_context(crew.state, setting, ask, clarity=clarity, **how), actor=actor)


def _many(crew: Crew, command: cc.Sequence | cc.Parallel, actor: str, **how: Any) -> list[HandoffDraft]:
    for agent in command.to:
        _require(crew, agent)
    return [_draft(crew, command, agent, actor, **how) for agent in command.to]


def _require(crew: Crew, agent: str) -> None:
    """Refuse work for an agent that is neither registered here nor can be on another engine."""
    if not crew.state.remote:
        crew.registry.entry(agent)


async def _begun(crew: Crew, draft: HandoffDraft) -> Receipt:
    name = await crew.handoffs.hand_over(draft)
    handoff = crew.state.handoffs[name]
    data = {"handoff": name, "state": str(handoff.state)}
    if handoff.state is HandoffState.REJECTED and handoff.result is not None:
        code, error = handoff.result.error_code, handoff.result.error
        return Receipt(ok=False, message=f"{name} {code}: {error}", data={**data, "code": str(code)})
    crew.handoffs.moves.start_task(crew.handoffs.run_to_end(draft, handed=name), f"conduct {name}")
    task = clean_line(draft.context.task_description, limit=80)
    return Receipt(ok=True, message=f"{name} goes to {handoff.agent}: {task}", data=data)


async def _selected(crew: Crew, command: cc.Select, actor: str) -> Receipt:
    candidates = crew.selective.candidates(command.task, command.among)
    if crew.selective.clarifies(candidates):
        message = await crew.floor.transfer(
            candidates[0].id, command.task, clarity=command.clarity, actor=actor
        )
        why = "; ".join(candidates[0].why)
        data = {"agent": candidates[0].id, "handoff": crew.state.floor[-1].handoff}
        return Receipt(ok=True, message=f"{message}: {why}", data=data)

    def make(agent: str) -> HandoffDraft:
        return _draft(crew, command, agent, actor, mode=HandoffMode.SELECTIVE)

    group = crew.selective.begin(candidates, make)
    crew.handoffs.moves.start_task(crew.selective.run(candidates, make, group), f"select {group}")
    names = ", ".join(f"{candidate.id} {candidate.score:.4f}" for candidate in candidates[:3])
    return Receipt(ok=True, message=f"{group} begins: {names}", data={"group": group})


async def _debate(crew: Crew, command: cc.Debate, actor: str) -> Receipt:
    spec = None
    if bool(command.pro) != bool(command.con):
        raise HandoffError(ErrorCode.BAD_CONTEXT, "a debate has two sides: name both pro and con")
    if command.pro:
        for side in (command.pro, command.con):
            crew.registry.entry(side)
        spec = parse_spec(_ad_hoc(command))
        to, debate = spec.id, spec.debate
    else:
        entry = crew.registry.entry(command.agent_id or DEBATER)
        to, debate = entry.spec.id, entry.spec.debate
    if debate is None:
        raise HandoffError(ErrorCode.NOT_CALLABLE, f"{to} has no debate")
    if spec is None and command.judge not in ("", debate.judge_agent):
        message = f"{to} is judged by {debate.judge_agent}; name two agents to have another judge"
        raise HandoffError(ErrorCode.BAD_CONTEXT, message)
    metadata: dict[str, Any] = {**command.metadata, "motion": command.motion}
    if spec is None and command.rounds is not None:
        metadata[ROUNDS] = command.rounds
    ask = HandoffRequest(to, command.motion, priority=Priority(command.priority), timeout_s=command.timeout_s,
              metadata=metadata)  # fmt: skip
    context = operator_context(
        crew.state, crew.handoffs.setting, ask, clarity=command.clarity, mode=HandoffMode.DEBATE
    )
    return await _begun(crew, HandoffDraft(context, spec, actor=actor))


def _ad_hoc(command: cc.Debate) -> dict[str, Any]:
    sides = [
        {"label": label, "agent_id": agent, "stance": f"{label.title()} the motion: {command.motion[:1_900]}"}
        for label, agent in (("for", command.pro), ("against", command.con))
    ]
    return {
        "id": "debate",
        "name": "Debate",
        "type": "collaborative",
        "description": "A debate that the operator asked for.",
        "debate": {"motion": command.motion, "sides": sides, "judge_agent": command.judge or "judge",
                   "rounds": command.rounds or 2},
        "handoff": {"receives": {"requires_who": False, "requires_success": False, "min_clarity": 0.0}},
        "selectable": False,
    }  # fmt: skip


# ------------------------------------------------------------------ on one handoff


async def _on_handoff(crew: Crew, command: cc.ForCrew, handoff: Handoff, actor: str) -> Receipt:
    name = about = handoff.id
    match command:
        case cc.CancelHandoff():
            open_ = await crew.handoffs.moves.cancel(name, command.reason, actor=actor)
            words = crew.state.handoffs[name].state.words
            message = f"{name} is {words}" if open_ else f"{name} is over already: {words}"
        case cc.RetryHandoff():
            about = await crew.results.retry(handoff, actor)
            message = f"{about} tries {name} again"
        case cc.PauseHandoff():
            await crew.handoffs.pause(name, actor)
            message = f"{name} is paused"
        case cc.ResumeHandoff():
            await crew.handoffs.resume(name, actor)
            message = f"{name} goes on"
        case cc.SetPriority() | cc.StepMode() if not handoff.open:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} is over: {handoff.state.words}")
        case cc.SetPriority():
            crew.stream.append(ce.PriorityChanged(handoff=name, priority=command.priority), actor=actor)
            crew.handoffs.dispatch()
            message = f"{name} has priority {command.priority}"
        case cc.StepMode():
            if not handoff.halts:
                message = f"{name} has no phases and no rounds to halt after: {handoff.agent} is no pipeline"
                raise HandoffError(ErrorCode.BAD_CONTEXT, f"{message} and no debate")
            crew.stream.append(ce.StepModeSet(handoff=name, on=command.on), actor=actor)
            how = "halts after each part and asks" if command.on else "goes through without a halt"
            message = f"{name} {how}"
        case cc.TakeOver():
            about = await crew.results.take_over(handoff, command.text, actor)
            message = f"{about} has your text as its result"
        case cc.GuidedMove():
            return await _guided(crew, command, handoff, actor)
        case _:
            return Receipt(ok=False, message=f"{command.do} is not known here")
    return Receipt(ok=True, message=message, data={"handoff": about})


async def _guided(crew: Crew, command: cc.GuidedMove, handoff: Handoff, actor: str) -> Receipt:
    """Give a move to the run that waits for it; saving pauses the handoff and leaves its question open."""
    if command.move == "save":
        await crew.handoffs.pause(handoff.id, actor)
        return Receipt(ok=True, message=f"{handoff.id} is saved and paused", data={"handoff": handoff.id})
    asked = [
        request for request in crew.state.open_requests(handoff.id) if request.reason_code.startswith(GUIDED)
    ]
    if not asked:
        raise HandoffError(ErrorCode.BAD_CONTEXT, f"{handoff.id} waits for no step: {handoff.state.words}")
    move = {"move": command.move, "value": command.value, "step": command.step, "reason": command.reason}
    await crew.requests.answer(asked[0].id, "", json.dumps(move, ensure_ascii=False), actor)
    return Receipt(ok=True, message=f"{command.move}: {asked[0].title}", data={"handoff": handoff.id})


async def _cancel_all(crew: Crew, command: cc.CancelHandoff, actor: str) -> Receipt:
    open_ids = [handoff.id for handoff in crew.state.open()]
    tops = [handoff for handoff in open_ids if not any(above.open for above in crew.state.ancestors(handoff))]
    await asyncio.gather(
        *(crew.handoffs.moves.cancel(handoff, command.reason, actor=actor) for handoff in tops)
    )
    return Receipt(ok=True, message=f"{len(open_ids)} handoffs are cancelled", data={"handoffs": open_ids})
