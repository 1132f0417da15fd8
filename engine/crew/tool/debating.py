"""A debate as a run: a turn of each side at once, round by round, and the judge in both orders (§1.11).

Every turn and every pass of the judge is a handoff to an agent of its own that knows nothing but what it is
told: blindness is kept by who is asked what. The rules and the ledger are `engine.agents.methods.debate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.agents.human import Option
from engine.agents.kinds import AgentType, Effect, ErrorCode, RequestKind
from engine.agents.methods import debate as rules
from engine.agents.methods import judging
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec, Instructions
from engine.agents.values import InvalidError
from engine.crew.parts import Ask, HandoffError, Question
from engine.crew.tool.handing import alone
from engine.crew.tool.returning import sources_of
from engine.crew.tool.work import Work, done, refused
from engine.domain.action import ToolResult
from engine.domain.running import DEBATE
from engine.thinkers.brief import carried
from engine.thinkers.spec_tools import FORM

_JUDGE = "You judge a debate by what was said and shown, not by who said it or in which order it stands."

OPERATOR = "operator"
"""Where a debate's progress has the operator's own verdict."""


class _IncompleteError(Exception):
    """A side gave no turn twice; there is no verdict from one side alone."""

    def __init__(self, why: str, code: ErrorCode = ErrorCode.DEBATE_INCOMPLETE) -> None:
        super().__init__(why)
        self.code = code


async def debate(work: Work) -> ToolResult:
    """Argue the motion from its sides and have it judged."""
    spec = work.handoff.spec.debate
    if spec is None:
        return refused(f"{work.handoff.spec.id} has no debate in its specification")
    context = work.handoff.context
    spec = rules.with_rounds(spec, context.metadata)
    held = work.brief.kept(work.beliefs, DEBATE)
    if isinstance(held, Mapping) and "motion" in held:
        state = rules.Debate.loaded(held)[0]  # it goes on behind the last round that was closed
    else:
        state = rules.begin(spec, str(work.args.get("motion") or "") or context.task_description)
    try:
        while not state.ended:
            state = await _round(work, state)
            if not await _between(work, state):
                return await work.give(work.failing(ErrorCode.CANCELLED, "the operator ended the debate"))
            state = _kept(work, state)
    except _IncompleteError as error:
        result = work.failing(
            error.code,
            str(error),
            output=rules.record(state, state.labels) if state.turns else "",
            partial=bool(state.turns),
        )
        return await work.give(result)
    passes, calls = await _judged(work, state)
    state = state.model_copy(update={"calls": state.calls + calls})
    verdict = judging.verdict(state, passes)
    now = work.desk.handoff_of(work.run)
    if now is not None and (said := now.progress.get(OPERATOR)):
        verdict = judging.overridden(verdict, str(said))
    await work.keep("debate.verdict", {DEBATE: _json(state), "verdict": _json(verdict)}, verdict.winner)
    return done(
        f"{verdict.winner}, confidence {verdict.confidence:g}, {state.calls} calls",
        beliefs={DEBATE: _outcome(state, verdict)},
        verdict=_json(verdict),
        calls=state.calls,
        ended=state.ended,
    )


def _kept(work: Work, state: rules.Debate) -> rules.Debate:
    """The debate as it stands in the handoff, where the operator's word between rounds counts."""
    now = work.desk.handoff_of(work.run)
    held = now.progress.get(DEBATE) if now is not None else None
    return rules.Debate.loaded(held)[0] if isinstance(held, Mapping) and "motion" in held else state


# ------------------------------------------------------------------ rounds


async def _round(work: Work, state: rules.Debate) -> rules.Debate:
    """A round of every side at once; each turn that breaks a rule is sent back once."""
    results = await _asked(work, state, dict.fromkeys(state.labels, ""))
    if all(result.error_code is ErrorCode.NO_MODEL for result in results.values()):
        raise _IncompleteError("a debate needs a model: its turns are written by one", ErrorCode.NO_MODEL)
    said: dict[str, rules.Said] = {}
    again: dict[str, str] = {}
    for side, result in results.items():
        turn, wrong = _read(state, side, result)
        if turn is not None:
            said[side] = turn
        if wrong:
            again[side] = wrong
    calls = len(results) + len(again)
    if again:
        for side, result in (await _asked(work, state, again)).items():
            turn, wrong = _read(state, side, result)
            if turn is not None:
                said[side] = turn
            elif side not in said:
                raise _IncompleteError(f"side {side} gave no turn in round {state.now}, twice: {wrong}")
    for side, turn in said.items():
        await work.keep("debate.turn", {}, f"round {state.now}, side {side}: {len(turn.claims)} claims")
    closed = rules.close_round(state, said, sources_of(work))
    closed = closed.model_copy(update={"calls": state.calls + calls})
    counts = ", ".join(f"{number} {name}" for name, number in closed.ledger.items())
    await work.keep("debate.ledger", {DEBATE: _json(closed)}, f"after round {closed.closed}: {counts}")
    return closed


async def _asked(work: Work, state: rules.Debate, sides: Mapping[str, str]) -> dict[str, HandoffResult]:
    asks = [_turn_ask(work, state, side, wrong) for side, wrong in sides.items()]
    try:
        results = await work.desk.gather(work.run, asks, min_success=0)
    except HandoffError as error:
        raise _IncompleteError(f"round {state.now}: {error.code}: {error.message}") from error
    return dict(zip(sides, results, strict=True))


def _read(state: rules.Debate, side: str, result: HandoffResult) -> tuple[rules.Said | None, str]:
    """A side's turn, and what is wrong with it; None where it cannot be used at all."""
    if not result.success:
        return None, f"{result.error_code}: {result.error}"
    try:
        said, wrong = rules.read_said(state, side, result.data)
    except InvalidError as error:
        return None, str(error)
    return said, "; ".join(wrong)


def _turn_ask(work: Work, state: rules.Debate, side: str, wrong: str) -> Ask:
    one = next(one for one in state.spec.sides if one.label == side)
    task = rules.told(state, side)
    if wrong:
        task += f"\n\nYour turn was sent back, once. Put exactly this right:\n{wrong}"
    base = next((spec for spec in work.desk.callable_by(work.run) if spec.id == one.agent_id), None)
    ident = _ident(f"side-{side}")
    stance = f"In this debate you are for this: {one.stance}"
    return Ask(
        to=ident,
        task=task,
        expected="your turn as `data`, and in a sentence as `output`",
        priority=work.handoff.context.priority,
        spec=_turn_spec(work.handoff.spec, base, ident, f"Side {side}", stance),
        metadata={
            FORM: rules.Said.model_json_schema(),
            "call": f"{work.key}:{state.now}:{side}:{bool(wrong)}",
            "debate": {"side": side, "round": state.now, "agent": one.agent_id},
            **carried(work.handoff.context.metadata),
        },
    )


def _turn_spec(spec: AgentSpec, base: AgentSpec | None, ident: str, name: str, words: str) -> AgentSpec:
    """Who speaks in a debate: by its own instructions, without tools, so that a turn is one call."""
    own = base.instructions.system if base is not None else ""
    return AgentSpec(
        id=ident,
        name=name,
        type=AgentType.OPERATOR,
        description=f"{name} of a debate of {spec.name}",
        model=base.model if base is not None else spec.model,
        instructions=Instructions(system=f"{own}\n\n{words}".strip()),
        handoff=alone(spec),
        selectable=False,
    )


def _ident(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64] or "side"


# ------------------------------------------------------------------ the judge


async def _judged(work: Work, state: rules.Debate) -> tuple[list[judging.Judgement], int]:
    """Every pass of the judge; one that cannot be used is asked once more, then undecided."""
    orders = judging.orders(state)
    results = await work.desk.gather(
        work.run, [_judge_ask(work, state, n, order) for n, order in enumerate(orders)], min_success=0
    )
    passes, calls = [], len(orders)
    for number, (order, result) in enumerate(zip(orders, results, strict=True)):
        found, wrong = _judgement(state, result)
        if found is None:
            calls += 1
            ask = _judge_ask(work, state, number, order, wrong)
            found, wrong = _judgement(state, await work.desk.delegate(work.run, ask))
        passes.append(found or judging.undecided(wrong))
    return passes, calls


def _judgement(state: rules.Debate, result: HandoffResult) -> tuple[judging.Judgement | None, str]:
    if not result.success:
        return None, f"{result.error_code}: {result.error}"
    try:
        return judging.read_judgement(state, result.data), ""
    except InvalidError as error:
        return None, str(error)


def _judge_ask(work: Work, state: rules.Debate, number: int, order: Sequence[str], wrong: str = "") -> Ask:
    judge = next((one for one in work.desk.callable_by(work.run) if one.id == state.spec.judge_agent), None)
    prompt = judging.judge_prompt(state, order, work.handoff.context.problem_clarity.success or "")
    if wrong:
        prompt += f"\n\nYour judgement was sent back, once. Put exactly this right:\n{wrong}"
    ident = f"judge-{number + 1}"
    return Ask(
        to=ident,
        task=prompt,
        expected="your judgement as `data`, and in a sentence as `output`",
        priority=work.handoff.context.priority,
        spec=_turn_spec(work.handoff.spec, judge, ident, "Judge", _JUDGE),
        metadata={
            FORM: judging.Judgement.model_json_schema(),
            "call": f"{work.key}:judge:{number}:{bool(wrong)}",
            "debate": {"judge": number + 1},
        },
    )


# ------------------------------------------------------------------ the operator


async def _between(work: Work, state: rules.Debate) -> bool:
    """Where the operator steps through it, ask how to go on after a round; False when they ended it."""
    if not work.steps or state.ended:
        return True
    options = (
        Option(id="go_on", label="go on", effect=Effect.RESUME),
        Option(
            id="note",
            label="a question or evidence that both sides answer",
            effect=Effect.RESUME,
            words="must",
        ),
        Option(id="round", label="one round more", effect=Effect.RESUME),
        Option(id="time", label="call time: judge it now", effect=Effect.ACCEPT),
        Option(
            id="override",
            label="your verdict; the judge's stands beside it",
            effect=Effect.ACCEPT,
            words="must",
        ),
        Option(id="abort", label="end the debate", effect=Effect.ABORT),
    )
    answer = await work.desk.ask(
        work.run,
        Question(
            RequestKind.DECISION,
            "debate.round",
            f"round {state.closed} of {state.rounds} is over",
            "How does the debate go on?",
            context=", ".join(f"{number} {name}" for name, number in state.ledger.items()),
            options=options,
        ),
    )
    progress: dict[str, Any] = {}
    match answer.option_id or ("note" if answer.text.strip() else "go_on"):
        case "abort":
            return False
        case "note" if answer.text.strip():
            state = rules.note(state, answer.text)
        case "round" if state.rounds < rules.ROUNDS_MOST:
            state = rules.one_more(state)
        case "time":
            state = rules.call_time(state)
        case "override" if answer.text.strip():
            state, progress = rules.call_time(state), {OPERATOR: answer.text}
    await work.keep(
        "debate.ledger", {DEBATE: _json(state), **progress}, f"the operator: {answer.option_id or 'note'}"
    )
    return True


def _outcome(state: rules.Debate, verdict: judging.Verdict) -> dict[str, Any]:
    """What is believed of a debate that is over."""
    decisive = [
        f"{claim.id} ({claim.shown}): {claim.text}"
        for ident in verdict.decisive
        if (claim := state.claim(ident)) is not None
    ]
    said = "undecided, contested" if verdict.contested else verdict.winner
    return {
        "text": f"Motion: {state.motion}\n"
        f"Verdict: {said} (confidence {verdict.confidence:g}; {state.ended})\n\n"
        + rules.record(state, state.labels),
        "verdict": _json(verdict),
        "ledger": state.ledger,
        "decisive": decisive,
        "calls": state.calls,
    }


def _json(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = value.model_dump(mode="json")
    return found
