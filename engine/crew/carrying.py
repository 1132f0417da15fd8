"""Commands to the crew and what is done for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.agents.kinds import (
    ErrorCode,
    HandoffMode,
    HandoffState,
    IllegalTransition,
    Priority,
    ReturnBehavior,
)
from engine.agents.methods.debate import ROUNDS, with_rounds
from engine.agents.reading import read_spec
from engine.agents.result import HandoffResult
from engine.agents.values import InvalidError
from engine.crew import ideas
from engine.crew.admission import nearest
from engine.crew.contexts import Wanted, from_user
from engine.crew.iterating import iterate
from engine.crew.material import settled
from engine.crew.operator_decides import OperatorDecides
from engine.crew.parts import Ask, HandoffError
from engine.crew.requests import GUIDED
from engine.crew.state import Handoff
from engine.domain import crew_commands as cc
from engine.domain.command import Receipt
from engine.domain.text import clean_line
from engine.journal import crew_events as ce
from engine.selection import GraphFault

if TYPE_CHECKING:
    from engine.crew.crew import Crew

DEBATER = "decision-debate"


async def carry_out(crew: Crew, command: cc.ForCrew, actor: str) -> Receipt:
    """Carry a command out; what the receipt says is durable, and work goes on behind it.

    Raises:
        JournalError: the journal refused.
    """
    try:
        receipt = await _carried_out(crew, command, actor)
    except (HandoffError, IllegalTransition, InvalidError, GraphFault) as error:
        return Receipt(ok=False, message=clean_line(str(error)))
    await crew.spine.commit()
    return receipt


async def _carried_out(crew: Crew, command: cc.ForCrew, actor: str) -> Receipt:
    match command:
        case cc.Delegate() | cc.Debate() | cc.Sequence() | cc.Parallel() | cc.Select():
            return await _work(crew, command, actor)
        case cc.Transfer():
            said = await crew.floor.transfer(command.to, command.reason, clarity=command.clarity, actor=actor)
            return Receipt(ok=True, message=said, data={"handoff": crew.state.floor[-1].handoff})
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
            return await _on_handoff(crew, command, handoff_named(crew, command.handoff), actor)
        case cc.AnswerRequest():
            name = _request_named(crew, command.request)
            await crew.requests.answer(name, command.option, command.text, actor)
            return Receipt(ok=True, message=f"{name} is answered", data={"request": name})
        case cc.DismissRequest():
            name = _request_named(crew, command.request)
            await crew.requests.dismiss(name, actor, command.reason)
            return Receipt(ok=True, message=f"{name} is dismissed", data={"request": name})
        case cc.RevokePermission():
            crew.requests.revoke(command.who, command.tool, actor)
            return Receipt(ok=True, message=f"{command.who} asks again before it uses {command.tool}")
        case cc.TakeIdea() | cc.DropIdea():
            name = _named("idea", command.idea, crew.state.ideas, "i-")
            return await ideas.settle(crew, command, crew.state.ideas[name], actor)
        case cc.RegisterAgent():
            entry = await crew.registry.register(command.spec, source=command.source, actor=actor)
            said = "; ".join((f"{entry.spec.id} {entry.spec.version} is registered", *entry.warnings))
            return Receipt(ok=True, message=said, event=entry.event, data={"agent": entry.spec.id})
        case cc.RemoveAgent():
            if crew.builds is not None:
                return Receipt(ok=True, message=await crew.builds.remove(command.who, actor=actor))
            await crew.registry.remove(command.who, reason=command.reason, actor=actor)
            return Receipt(ok=True, message=f"{command.who} is removed; what runs goes on")
        case cc.EnableAgent():
            await crew.registry.enable(command.who, command.enabled, actor=actor)
            how = "takes work" if command.enabled else "takes no work"
            return Receipt(ok=True, message=f"{command.who} {how}")
    return Receipt(ok=False, message=f"{command.do} is not known here")


# ------------------------------------------------------------------ work


async def _work(crew: Crew, command: cc.Bringing, actor: str) -> Receipt:
    command = await settled(command, crew.state, crew.ground.root)
    match command:
        case cc.Delegate(returns="synthesize"):
            wanted = _many(crew, command, (command.to,), HandoffMode.PARALLEL, actor)
            return _in_parallel(crew, wanted, min_success=1, fail_fast=False, synthesize=True)
        case cc.Delegate():
            crew.registry.entry(command.to)
            returns = ReturnBehavior(command.returns or ReturnBehavior.PASSTHROUGH)
            context = from_user(
                crew.state, crew.handoffs.setting, _ask(command, command.to), clarity=command.clarity,
                returns=returns,
            )  # fmt: skip
            return await _begun(
                crew, Wanted(context, actor=actor), iterates=returns is ReturnBehavior.ITERATE
            )
        case cc.Debate():
            return await _debate(crew, command, actor)
        case cc.Sequence():
            wanted = _many(crew, command, command.to, HandoffMode.SEQUENTIAL, actor)
            group = crew.groups.begin(HandoffMode.SEQUENTIAL, wanted)
            work = crew.groups.sequential(
                wanted, group=group, on_fail=command.on_fail, synthesize=command.returns == "synthesize"
            )
            crew.handoffs.own(work, f"sequence {group}")
            return Receipt(
                ok=True, message=f"{group} begins: {' → '.join(command.to)}", data={"group": group}
            )
        case cc.Parallel():
            wanted = _many(crew, command, command.to, HandoffMode.PARALLEL, actor)
            return _in_parallel(
                crew, wanted, min_success=command.min_success, fail_fast=command.fail_fast,
                synthesize=command.returns == "synthesize",
            )  # fmt: skip
        case cc.Select():
            return await _selected(crew, command, actor)
    raise HandoffError(ErrorCode.BAD_CONTEXT, f"{command.do} is no work")


def _ask(command: cc.Delegate | cc.Sequence | cc.Parallel | cc.Select, to: str) -> Ask:
    return Ask(
        to,
        command.task,
        command.expected,
        command.focus,
        command.skip,
        Priority(command.priority),
        command.timeout_s,
        metadata=command.metadata,
    )


def _many(
    crew: Crew,
    command: cc.Delegate | cc.Sequence | cc.Parallel,
    to: Sequence[str],
    mode: HandoffMode,
    actor: str,
) -> list[Wanted]:
    for one in to:
        crew.registry.entry(one)
    returns = ReturnBehavior.SYNTHESIZE if command.returns == "synthesize" else ReturnBehavior.PASSTHROUGH
    return [
        Wanted(
            from_user(crew.state, crew.handoffs.setting, _ask(command, one), clarity=command.clarity,
                      mode=mode, returns=returns),
            actor=actor,
        )
        for one in to
    ]  # fmt: skip


async def _begun(crew: Crew, wanted: Wanted, *, iterates: bool = False, note: str = "") -> Receipt:
    name = await crew.handoffs.hand_over(wanted)
    handoff = crew.state.handoffs[name]
    data = {"handoff": name, "state": str(handoff.state)}
    if handoff.state is HandoffState.REJECTED and handoff.result is not None:
        return Receipt(
            ok=False,
            message=f"{name} {handoff.result.error_code}: {handoff.result.error}",
            data={**data, "code": str(handoff.result.error_code)},
        )
    if iterates:
        decides = OperatorDecides(crew.requests, crew.handoffs, wanted, attended=crew.attended)
        handed = [name]

        async def conduct(one: Wanted) -> HandoffResult:
            last, result = await crew.handoffs.conduct(one, handed=handed.pop() if handed else "")
            decides.last = last
            return result

        crew.handoffs.own(iterate(wanted, conduct, decides), f"iterate {name}")
    else:
        crew.handoffs.own(crew.handoffs.conduct(wanted, handed=name), f"conduct {name}")
    said = clean_line(wanted.context.task_description, limit=80)
    return Receipt(ok=True, message=f"{name} goes to {handoff.agent}: {said}{note}", data=data)


def _in_parallel(
    crew: Crew, wanted: list[Wanted], *, min_success: int | None, fail_fast: bool, synthesize: bool
) -> Receipt:
    least = min_success if min_success is not None else -(-len(wanted) // 2)
    group = crew.groups.begin(HandoffMode.PARALLEL, wanted, min_success=least)

    async def run() -> None:
        together = await crew.groups.parallel(
            wanted, group=group, min_success=min_success, fail_fast=fail_fast, synthesize=synthesize
        )
        if together.code is ErrorCode.QUORUM and not fail_fast:
            crew.answers.missed(together)

    crew.handoffs.own(run(), f"parallel {group}")
    names = ", ".join(one.context.to_agent for one in wanted)
    return Receipt(ok=True, message=f"{group} begins: {names}", data={"group": group})


async def _selected(crew: Crew, command: cc.Select, actor: str) -> Receipt:
    setting = crew.handoffs.setting
    found = await crew.selective.candidates(command.task, command.among, "user", crew.state.finished())
    if crew.selective.clarifies(found):
        said = await crew.floor.transfer(found[0].agent, command.task, clarity=command.clarity, actor=actor)
        why = "; ".join(found[0].why)
        data = {"agent": found[0].agent, "handoff": crew.state.floor[-1].handoff}
        return Receipt(ok=True, message=f"{said}: {why}", data=data)

    def make(agent: str) -> Wanted:
        context = from_user(
            crew.state, setting, _ask(command, agent), clarity=command.clarity, mode=HandoffMode.SELECTIVE
        )
        return Wanted(context, actor=actor)

    group = crew.selective.begin(found, make)
    crew.handoffs.own(crew.selective.run(found, make, group=group), f"select {group}")
    names = ", ".join(f"{one.agent} {one.score:.4f}" for one in found[:3])
    return Receipt(ok=True, message=f"{group} begins: {names}", data={"group": group})


async def _debate(crew: Crew, command: cc.Debate, actor: str) -> Receipt:
    spec = None
    if bool(command.pro) != bool(command.con):
        raise HandoffError(ErrorCode.BAD_CONTEXT, "a debate has two sides: name both pro and con")
    if command.pro:
        for one in (command.pro, command.con):
            crew.registry.entry(one)
        spec = read_spec(_ad_hoc(command))
        to, debate = spec.id, spec.debate
    else:
        entry = crew.registry.entry(command.agent_id or DEBATER)
        to, debate = entry.spec.id, entry.spec.debate
    if debate is None:
        raise HandoffError(ErrorCode.NOT_CALLABLE, f"{to} has no debate")
    if spec is None and command.judge not in ("", debate.judge_agent):
        said = f"{to} is judged by {debate.judge_agent}; name two agents to have another judge"
        raise HandoffError(ErrorCode.BAD_CONTEXT, said)
    metadata: dict[str, Any] = {**command.metadata, "motion": command.motion}
    if spec is None and command.rounds is not None:
        metadata[ROUNDS] = command.rounds
        debate = with_rounds(debate, metadata)
    ask = Ask(to, command.motion, priority=Priority(command.priority), timeout_s=command.timeout_s,
              metadata=metadata)  # fmt: skip
    context = from_user(
        crew.state, crew.handoffs.setting, ask, clarity=command.clarity, mode=HandoffMode.DEBATE
    )
    return await _begun(crew, Wanted(context, spec, actor=actor), note=f" (up to {debate.calls} model calls)")


def _ad_hoc(command: cc.Debate) -> dict[str, Any]:
    sides = [
        {"label": "for", "agent_id": command.pro, "stance": f"For the motion: {command.motion[:1_900]}"},
        {
            "label": "against",
            "agent_id": command.con,
            "stance": f"Against the motion: {command.motion[:1_900]}",
        },
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
    name, data = handoff.id, {"handoff": handoff.id}
    match command:
        case cc.CancelHandoff():
            if not await crew.handoffs.cancel(name, command.reason, actor=actor):
                return Receipt(ok=True, message=f"{name} is over already: {handoff.state.words}", data=data)
            return Receipt(ok=True, message=f"{name} is {crew.state.handoffs[name].state.words}", data=data)
        case cc.RetryHandoff():
            after = await crew.answers.retry(handoff, actor)
            return Receipt(ok=True, message=f"{after} tries {name} again", data={"handoff": after})
        case cc.PauseHandoff():
            await crew.handoffs.pause(name, actor)
            return Receipt(ok=True, message=f"{name} is paused", data=data)
        case cc.ResumeHandoff():
            await crew.handoffs.resume(name, actor)
            return Receipt(ok=True, message=f"{name} goes on", data=data)
        case cc.SetPriority():
            if not handoff.open:
                raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} is over: {handoff.state.words}")
            crew.spine.append(ce.PriorityChanged(handoff=name, priority=command.priority), actor=actor)
            crew.handoffs.dispatch()
            return Receipt(ok=True, message=f"{name} has priority {command.priority}", data=data)
        case cc.StepMode():
            if not handoff.open:
                raise HandoffError(ErrorCode.BAD_CONTEXT, f"{name} is over: {handoff.state.words}")
            if not handoff.halts:
                said = f"{name} has no phases and no rounds to halt after: {handoff.agent} is no pipeline"
                raise HandoffError(ErrorCode.BAD_CONTEXT, f"{said} and no debate")
            crew.spine.append(ce.StepModeSet(handoff=name, on=command.on), actor=actor)
            how = "halts after each part and asks" if command.on else "goes through without a halt"
            return Receipt(ok=True, message=f"{name} {how}", data=data)
        case cc.TakeOver():
            taken = await crew.returns.take_over(handoff, command.text, actor)
            return Receipt(ok=True, message=f"{taken} has your text as its result", data={"handoff": taken})
        case cc.GuidedMove():
            return await _guided(crew, command, handoff, actor)
    return Receipt(ok=False, message=f"{command.do} is not known here")


async def _guided(crew: Crew, command: cc.GuidedMove, handoff: Handoff, actor: str) -> Receipt:
    """Give a move to the run that waits for it; saving pauses the handoff and leaves its question open."""
    if command.move == "save":
        await crew.handoffs.pause(handoff.id, actor)
        return Receipt(ok=True, message=f"{handoff.id} is saved and paused", data={"handoff": handoff.id})
    asked = [one for one in crew.state.open_requests(handoff.id) if one.reason_code.startswith(GUIDED)]
    if not asked:
        raise HandoffError(ErrorCode.BAD_CONTEXT, f"{handoff.id} waits for no step: {handoff.state.words}")
    move = {"move": command.move, "value": command.value, "step": command.step, "reason": command.reason}
    await crew.requests.answer(asked[0].id, "", json.dumps(move, ensure_ascii=False), actor)
    return Receipt(ok=True, message=f"{command.move}: {asked[0].title}", data={"handoff": handoff.id})


async def _cancel_all(crew: Crew, command: cc.CancelHandoff, actor: str) -> Receipt:
    found = [one.id for one in crew.state.open()]
    tops = [one for one in found if not any(above.open for above in crew.state.ancestors(one))]
    await asyncio.gather(*(crew.handoffs.cancel(one, command.reason, actor=actor) for one in tops))
    return Receipt(ok=True, message=f"{len(found)} handoffs are cancelled", data={"handoffs": found})


# ------------------------------------------------------------------ names


def handoff_named(crew: Crew, wanted: str) -> Handoff:
    """A handoff by its id or a unique beginning of it.

    Raises:
        HandoffError: none or several are meant.
    """
    return crew.state.handoffs[_named("handoff", wanted, crew.state.handoffs, "h-")]


def _request_named(crew: Crew, wanted: str) -> str:
    return _named("request", wanted, crew.state.requests, "hr-")


def _named(what: str, wanted: str, among: dict[str, Any], prefix: str) -> str:
    said = clean_line(wanted, limit=80)
    for one in (wanted, prefix + wanted):
        if one in among:
            return one
    found = [one for one in among if one.startswith((wanted, prefix + wanted))]
    if len(found) == 1:
        return found[0]
    if found:
        raise HandoffError(
            ErrorCode.BAD_CONTEXT, f"{said} is the beginning of {len(found)} {what}s; say more of it"
        )
    near = ", ".join(nearest(wanted, among)) or "none is like it"
    raise HandoffError(ErrorCode.BAD_CONTEXT, f"there is no {what} {said}: {near}")
