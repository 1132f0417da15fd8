"""A debate as a run: a turn of each side at once, round by round, and the judge in both orders.

Every turn and every pass of the judge is a handoff to an agent of its own that knows nothing but its task.
The rules and the ledger are `engine.crew.methods.debate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.core.actions import ToolResult
from engine.core.agents import DEBATE
from engine.crew.methods import debate as rules
from engine.crew.methods import debate_judge as judging
from engine.crew.ontology.context import options_of
from engine.crew.ontology.kinds import Effect, ErrorCode, InvalidError, RequestKind
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec, Instructions
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.thinker.model_calls import FORM
from engine.crew.thinker.run_plan import carried
from engine.crew.tool.tool_call import ToolCall, call_refused, call_succeeded, part_of, sources_of

_JUDGE = "You judge a debate by what was said and shown, not by who said it or in which order it stands."

OPERATOR = "operator"
"""Where a debate's progress has the operator's own verdict."""


class _IncompleteError(Exception):
    """A side gave no turn, or made no claim, twice; there is no verdict from one side alone."""

    def __init__(self, why: str, code: ErrorCode = ErrorCode.DEBATE_INCOMPLETE) -> None:
        super().__init__(why)
        self.code = code


async def debate(work: ToolCall) -> ToolResult:
    """Argue the motion from its sides and have it judged."""
    spec = work.handoff.spec.debate
    if spec is None:
        return call_refused(f"{work.handoff.spec.id} has no debate in its specification")
    context = work.handoff.context
    spec = rules.with_rounds(spec, context.metadata)
    state = rules.begin(spec, str(work.args.get("motion") or "") or context.task_description)
    held = work.brief.kept(work.beliefs, DEBATE)
    if isinstance(held, Mapping) and "motion" in held:
        before = rules.Debate.loaded(held)
        if (before.spec, before.motion) == (spec, state.motion):
            state = before  # it goes on behind the last round that was closed
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
    now = work.service.handoff_of(work.run)
    if now is not None and (verdict_text := now.progress.get(OPERATOR)):
        verdict = judging.overridden(verdict, str(verdict_text))
    await work.keep("debate.verdict", {DEBATE: _json(state), "verdict": _json(verdict)}, verdict.winner)
    return call_succeeded(
        f"{verdict.winner}, confidence {verdict.confidence:g}, {state.calls} calls",
        beliefs={DEBATE: _outcome(state, verdict)},
        verdict=_json(verdict),
        calls=state.calls,
        ended=state.ended,
    )


def _kept(work: ToolCall, state: rules.Debate) -> rules.Debate:
    """The debate as it stands in the handoff, where the operator's word between rounds counts."""
    now = work.service.handoff_of(work.run)
    held = now.progress.get(DEBATE) if now is not None else None
    return rules.Debate.loaded(held) if isinstance(held, Mapping) and "motion" in held else state


# ------------------------------------------------------------------ rounds


async def _round(work: ToolCall, state: rules.Debate) -> rules.Debate:
    """A round of every side at once; each turn that breaks a rule is sent back once."""
    results = await _asked(work, state, dict.fromkeys(state.labels, ""))
    if all(result.error_code is ErrorCode.NO_MODEL for result in results.values()):
        raise _IncompleteError("a debate needs a model: its turns are written by one", ErrorCode.NO_MODEL)
    turns: dict[str, rules.TurnAnswer] = {}
    again: dict[str, str] = {}
    for side, result in results.items():
        turn, wrong = _read(state, side, result)
        if turn is not None:
            turns[side] = turn
        if wrong:
            again[side] = wrong
    calls = len(results) + len(again)
    if again:
        for side, result in (await _asked(work, state, again)).items():
            turn, wrong = _read(state, side, result)
            if turn is not None and (turn.claims or state.now or side not in turns):
                turns[side] = turn
            elif side not in turns:
                raise _IncompleteError(f"side {side} gave no turn in round {state.now}, twice: {wrong}")
    if state.now == 0 and (silent := [side for side, turn in turns.items() if not turn.claims]):
        raise _IncompleteError(
            f"side {' and side '.join(silent)} made no claim in the openings, twice; nothing was judged",
            ErrorCode.DEBATE_VOID,
        )
    for side, turn in turns.items():
        await work.keep("debate.turn", {}, f"round {state.now}, side {side}: {len(turn.claims)} claims")
    closed = rules.close_round(state, turns, sources_of(work))
    closed = closed.model_copy(update={"calls": state.calls + calls})
    counts = ", ".join(f"{number} {name}" for name, number in closed.ledger.items())
    await work.keep("debate.ledger", {DEBATE: _json(closed)}, f"after round {closed.closed}: {counts}")
    return closed


async def _asked(work: ToolCall, state: rules.Debate, sides: Mapping[str, str]) -> dict[str, HandoffResult]:
    asks = [_turn_ask(work, state, side, wrong) for side, wrong in sides.items()]
    try:
        results = await work.service.gather(work.run, asks, min_success=0)
    except HandoffError as error:
        raise _IncompleteError(f"round {state.now}: {error.code}: {error.message}") from error
    return dict(zip(sides, results, strict=True))


def _read(state: rules.Debate, side: str, result: HandoffResult) -> tuple[rules.TurnAnswer | None, str]:
    """A side's turn, and what is wrong with it; None where it cannot be used at all."""
    if not result.success:
        return None, f"{result.error_code}: {result.error}"
    try:
        turn, wrong = rules.parse_turn(state, side, result.data)
    except InvalidError as error:
        return None, str(error)
    return turn, "; ".join(wrong)


def _turn_ask(work: ToolCall, state: rules.Debate, side: str, wrong: str) -> HandoffRequest:
    speaker = next(side_spec for side_spec in state.spec.sides if side_spec.label == side)
    task = rules.turn_prompt(state, side)
    if wrong:
        task += f"\n\nYour turn was sent back, once. Put exactly this right:\n{wrong}"
    base = _registered(work, speaker.agent_id)
    ident = re.sub(r"[^a-z0-9]+", "-", f"side-{side}".lower()).strip("-")[:64] or "side"
    stance = f"In this debate you are for this: {speaker.stance}"
    return HandoffRequest(
        to=ident,
        task=task,
        expected="your turn as `data`, and in a sentence as `output`",
        priority=work.handoff.context.priority,
        spec=_turn_spec(work.handoff.spec, base, ident, f"Side {side}", stance),
        metadata={
            FORM: rules.TurnAnswer.model_json_schema(),
            "call": f"{work.key}:{state.now}:{side}:{bool(wrong)}",
            "debate": {"side": side, "round": state.now, "agent": speaker.agent_id},
            **carried(work.handoff.context.metadata),
        },
    )


def _registered(work: ToolCall, agent: str) -> AgentSpec | None:
    return next((spec for spec in work.service.callable_by(work.run) if spec.id == agent), None)


def _turn_spec(spec: AgentSpec, base: AgentSpec | None, ident: str, name: str, words: str) -> AgentSpec:
    """Who speaks in a debate: by its own instructions, without tools, so that a turn is one call."""
    own = base.instructions.system if base is not None else ""
    instructions = Instructions(system=f"{own}\n\n{words}".strip())
    more = {"model": (base or spec).model, "done_by": base.done_by if base is not None else ""}
    return part_of(spec, ident, name, f"{name} of a debate of {spec.name}", instructions, **more)


# ------------------------------------------------------------------ the judge


async def _judged(work: ToolCall, state: rules.Debate) -> tuple[list[judging.Judgement], int]:
    """Every pass of the judge; one that cannot be used is asked once more, then undecided."""
    orders = judging.orders(state)
    results = await work.service.gather(
        work.run, [_judge_ask(work, state, n, order) for n, order in enumerate(orders)], min_success=0
    )
    passes, calls = [], len(orders)
    for number, (order, result) in enumerate(zip(orders, results, strict=True)):
        judgement, wrong = _judgement(state, result)
        if judgement is None:
            calls += 1
            ask = _judge_ask(work, state, number, order, wrong)
            judgement, wrong = _judgement(state, await work.service.delegate(work.run, ask))
        passes.append(judgement or judging.undecided_judgement(wrong))
    return passes, calls


def _judgement(state: rules.Debate, result: HandoffResult) -> tuple[judging.Judgement | None, str]:
    if not result.success:
        return None, f"{result.error_code}: {result.error}"
    try:
        return judging.parse_judgement(state, result.data), ""
    except InvalidError as error:
        return None, str(error)


def _judge_ask(
    work: ToolCall, state: rules.Debate, number: int, order: Sequence[str], wrong: str = ""
) -> HandoffRequest:
    judge = _registered(work, state.spec.judge_agent)
    prompt = judging.judge_prompt(state, order, work.handoff.context.problem_clarity.success or "")
    if wrong:
        prompt += f"\n\nYour judgement was sent back, once. Put exactly this right:\n{wrong}"
    ident = f"judge-{number + 1}"
    return HandoffRequest(
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


_BETWEEN = options_of(
    ("go_on", "go on", Effect.RESUME),
    ("note", "a question or evidence that both sides answer", Effect.RESUME, "must"),
    ("round", "one round more", Effect.RESUME),
    ("time", "call time: judge it now", Effect.ACCEPT),
    ("override", "your verdict; the judge's stands beside it", Effect.ACCEPT, "must"),
    ("abort", "end the debate", Effect.ABORT),
)


async def _between(work: ToolCall, state: rules.Debate) -> bool:
    """Where the operator steps through it, ask how to continue after a round; False when they ended it."""
    if not work.steps or state.ended:
        return True
    over = f"round {state.closed} of {state.rounds} is over"
    ledger = ", ".join(f"{number} {name}" for name, number in state.ledger.items())
    question = RequestKind.DECISION, "debate.round", over, "How does the debate go on?"
    answer = await work.ask(*question, context=ledger, options=_BETWEEN)
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
    result = "undecided, contested" if verdict.contested else verdict.winner
    return {
        "text": f"Motion: {state.motion}\n"
        f"Verdict: {result} (confidence {verdict.confidence:g}; {state.ended})\n\n"
        + rules.record(state, state.labels),
        "verdict": _json(verdict),
        "ledger": state.ledger,
        "decisive": decisive,
        "calls": state.calls,
    }


def _json(value: Any) -> dict[str, Any]:
    stored: dict[str, Any] = value.model_dump(mode="json")
    return stored
