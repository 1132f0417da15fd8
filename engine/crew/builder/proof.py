"""Proves a new agent by a first handoff through the manager, answered by a script or by the model.

The handoff is marked as a proof: it counts as no use of the agent, asks the operator nothing, and nothing of
it is known outside. The scripted model answers by the run's own specification, and is offered the same
tools as a run's model. The proof's message says what the handoff shows of the agent, and what it does not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from engine.core.agents import DEBATE, HANDOFF, PIPELINE, PROOF
from engine.core.agents import GUIDED as SESSION
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.crew.builder.registration import Proof
from engine.crew.crew import Crew
from engine.crew.handoffs.contexts import HandoffDraft, operator_context
from engine.crew.methods import debate_judge as judging
from engine.crew.methods import pipeline
from engine.crew.methods.debate import Debate
from engine.crew.methods.dialogue import GuidedSession, StepStatus
from engine.crew.methods.pipeline import PipelineRun
from engine.crew.ontology.context import HumanRequest
from engine.crew.ontology.criteria import Subject, check_all, failed, failure_text
from engine.crew.ontology.kinds import (
    AgentType,
    Check,
    Effect,
    ErrorCode,
    HandoffState,
    HandoffType,
    InputKind,
)
from engine.crew.ontology.results import BUILD, PILLARS, FormulaError, GateOutcome, HandoffResult, compute
from engine.crew.ontology.spec import AgentSpec, Criterion, GuidedStep
from engine.crew.operator_requests import CONVERSATION, GUIDED
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.state import LIVE, SCRIPTED, Handoff
from engine.crew.thinker.model_calls import FORM
from engine.crew.thinker.run_plan import Brief, brief_of, pipeline_of
from engine.crew.worker import LIVE_CALLS
from engine.models.capabilities import Capabilities
from engine.models.completion import ModelClient, PieceSink, Recorder, ignore_call, ignore_piece
from engine.models.messages import ModelAnswer, StopReason, ToolUse
from engine.models.request import ModelRequest

NAME = "scripted"
QUESTION = "This is scripted: who has the problem?"
WORDS = "A scripted answer, to prove that the agent answers."
ENDS = ("return_result", "checkpoint", "reply", "draft")
"""Tools that end what a step is about, the first that is offered is called."""


class ScriptedModel:
    """Answers every request of a run by the first of `ENDS` that is offered.

    Args:
        state: the run.
        debate: the debate that the run speaks in, as it stands; None where it speaks in none.
    """

    def __init__(self, state: AgentState, debate: Callable[[], Debate | None] = lambda: None) -> None:
        self._state, self._debate = state, debate

    def capabilities(self, model: str) -> Capabilities:
        """See `ModelClient`."""
        return Capabilities(model or NAME, tools=True, refuses=frozenset(), known=True)

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
    ) -> ModelAnswer:
        """See `ModelClient`."""
        offered = {tool.name: tool.input_schema for tool in request.tools}
        name = next((tool for tool in ENDS if tool in offered), next(iter(offered), ""))
        given = self._given(name, offered[name]) if name else {}
        answer = ModelAnswer((ToolUse("scripted-1", name, given),), StopReason.TOOL_USE, model=NAME)
        record(request, answer)
        return answer

    def _given(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        brief = brief_of(self._state.config.meta)
        if name == "reply":
            return {"text": QUESTION}
        if name == "checkpoint":
            phase = pipeline.next_phase(brief.spec.phases, pipeline_of(brief, self._state.belief_values()))
            names = phase.outputs if phase is not None else ()
            return {"output": WORDS, "outputs": dict.fromkeys(names, WORDS)}
        if name != "return_result":
            return schema_sample(schema)
        form = brief.context.metadata.get(FORM)
        if isinstance(form, Mapping):
            return schema_sample(schema) | {"output": WORDS, "data": self._turn(brief) or schema_sample(form)}
        text, data = scripted_answer(brief.spec)
        return {**schema_sample(schema), "output": text, "data": data}

    def _turn(self, brief: Brief) -> dict[str, Any]:
        """What a side, or the judge, says in a debate; empty outside of one."""
        place = brief.context.metadata.get("debate")
        if not isinstance(place, Mapping):
            return {}
        if "judge" in place:
            return {"winner": judging.SYNTHESIS, "confidence": 0.0}
        side, debate = str(place.get("side")), self._debate()
        if not place.get("round") or debate is None:
            return {"claims": [{"text": f"Side {side} says so, scripted."}]}
        others = [claim for claim in debate.standing() if claim.side != side]
        replies = [{"claim": other.id, "kind": "refute", "text": "Scripted."} for other in others[:1]]
        return {"restated": others[0].text if others else WORDS, "replies": replies}


def schema_sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest object that a JSON Schema asks for."""
    value = _value(schema, schema, 0)
    return value if isinstance(value, dict) else {}


def _value(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    while "$ref" in schema:
        schema = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several) and depth < DEEPEST:
            return _value(schema[several][0], root, depth + 1)
    match schema.get("type", "object" if "properties" in schema else ""):
        case "object":
            required = schema.get("required", ()) if depth < DEEPEST else ()
            known = schema.get("properties", {})
            return {name: _value(known.get(name, {}), root, depth + 1) for name in required}
        case "array":
            return [_value(schema.get("items", {}), root, depth + 1)] * int(schema.get("minItems", 0))
        case "number" | "integer":
            return schema.get("minimum", 0)
        case "boolean":
            return True
        case "null":
            return None
    return WORDS[: int(schema.get("maxLength", len(WORDS)))]


DEEPEST = 12
"""How deep a form is filled in."""
_JOB = {"statement": "", "importance": 5, "satisfaction": 5}
_BASES: dict[str, dict[str, Any]] = {
    "pws": {"pillars": {name: {"score": 10, "evidence": ["scripted"]} for name in PILLARS}},
    "jtbd": {"jobs": [{"kind": kind, **_JOB} for kind in ("functional", "emotional", "social")]},
    "scenarios": {
        "scenarios": [{"name": f"scripted {name}"} for name in ("first", "second", "third", "fourth")],
        "options": [{"name": "scripted option", "survives": ["scripted first"]}],
    },
}
"""What computations need, by name (`engine.crew.ontology.results`)."""


def scripted_answer(spec: AgentSpec) -> tuple[str, dict[str, Any]]:
    """The words and data by which a script answers: the views are named, and what is computed is there."""
    views = [f"[{sub_agent.id}]" for sub_agent in spec.sub_agents]
    text = f"{WORDS} It names {', '.join(views)}." if views else WORDS
    return text, deepcopy(_BASES.get(spec.compute, {}))


def unmet_by_script(criteria: Sequence[Criterion], spec: AgentSpec) -> tuple[GateOutcome, ...]:
    """The criteria that the script's answer does not meet."""
    text, data = scripted_answer(spec)
    with suppress(FormulaError):
        data = compute(spec.compute, data).data
    return failed(check_all(criteria, Subject(text, data)))


NAMED_MOST = 4
"""Criteria that are named; the others are counted."""


def judge_proof(spec: AgentSpec, handoff: Handoff, *, live: bool) -> Proof:
    """What a handoff that has ended proves of an agent.

    Only what shows that its own path ran counts. Where no script meets a criterion, that it can be met was
    not shown, and the message says so.
    """
    result = handoff.result
    assert result is not None
    if live:
        return _live(result)
    brief = Brief(spec, handoff.context, handoff.progress)
    if not result.success:
        return _failed(brief, result)
    if spec.type is AgentType.COLLABORATIVE and (wrong := _views(brief, result)) is not None:
        return wrong
    run = PipelineRun.loaded(handoff.progress.get(PIPELINE) or {})[0]
    message = f"a handoff came back after {result.duration_seconds:.1f} s"
    return Proof(True, "; ".join((message, *_shown(result, run))))


def _live(result: HandoffResult) -> Proof:
    if not result.success:
        return Proof(False, clean_line(f"{result.error_code}: {result.error}", limit=300))
    calls = f"{result.usage.calls} call{'s' * (result.usage.calls != 1)} of its model"
    message = f"a handoff came back after {result.duration_seconds:.1f} s and {calls}"
    return Proof(True, "; ".join((message, *_left_open(result.quality))))


def _failed(brief: Brief, result: HandoffResult) -> Proof:
    """A proof whose handoff failed: it counts where the script alone was the reason, and that is reported."""
    spec, code = brief.spec, result.error_code
    if code is ErrorCode.CHECKPOINT and spec.compute == BUILD:
        return Proof(
            True,
            "its phases are those of a build and its proof names no skill: it ran and said so; a build by it "
            "was not shown",
        )
    if code is ErrorCode.QUORUM:
        unmet = _unmet_views(brief, result)
    else:
        unmet = failed(result.quality) if code in (ErrorCode.QUALITY_GATE, ErrorCode.CHECKPOINT) else ()
    if not unmet:
        return Proof(False, clean_line(f"{code}: {result.error}", limit=300))
    return Proof(True, f"it ran and ended as {code}, as its own checks want: {_not_shown(unmet)}")


def _views(brief: Brief, result: HandoffResult) -> Proof | None:
    """What is wrong with the views that were put together, or not shown of them; None where all is well."""
    if result.missing:
        unmet = _unmet_views(brief, result)
        return Proof(
            bool(unmet),
            f"{', '.join(result.missing)} gave nothing" + (f": {_not_shown(unmet)}" if unmet else ""),
        )
    if not result.partial:
        return None
    if unmet := unmet_by_script(brief.spec.instructions.quality_criteria, brief.spec):
        return Proof(True, f"its views came back; they were not put together: {_not_shown(unmet)}")
    why = f"its views were not put together: {'; '.join(result.warnings)}"
    return Proof(False, clean_line(why, limit=300))


def _unmet_views(brief: Brief, result: HandoffResult) -> tuple[GateOutcome, ...]:
    """What no script meets of the views that are missing; nothing where one is missing without that."""
    missing = [sub.criteria for sub in brief.spec.sub_agents if sub.id in result.missing]
    each = [unmet_by_script(criteria, brief.spec) for criteria in missing]
    return tuple(outcome for unmet in each for outcome in unmet) if each and all(each) else ()


def _shown(result: HandoffResult, run: PipelineRun) -> Iterator[str]:
    outcomes = [*result.quality, *(criterion for record in run.records for criterion in record.criteria)]
    if run.records:
        yield f"{len(run.records)} phases were committed"
    if wrong := failed(outcomes):
        yield _not_shown(wrong)
    yield from _left_open(outcomes)


def _left_open(outcomes: Iterable[GateOutcome]) -> Iterator[str]:
    if left := sum(outcome.passed is None for outcome in outcomes):
        yield f"{left} rubric{'s' * (left != 1)} not judged"


def _not_shown(unmet: Iterable[GateOutcome]) -> str:
    message = list(dict.fromkeys(clean_line(failure_text(outcome), limit=120) for outcome in unmet))
    more = f" and {len(message) - NAMED_MOST} more" if len(message) > NAMED_MOST else ""
    return f"no script meets {'; '.join(message[:NAMED_MOST])}{more}, so that they can be met was not shown"


CLEAR_PROBLEM = {
    "what": "Support answers tickets four hours late",
    "who": "Shops with fewer than ten agents",
    "success": "Every ticket is answered within one hour",
    **dict.fromkeys(("what_clarity", "who_clarity", "success_clarity"), 1.0),
}
"""A problem that every agent admits."""
ACTOR = "builder"
TASK = "Prove that you answer"
LIMIT_S = 60
TURNS = 2
"""Of the session that a role or a guided agent is proved by."""
CHECKPOINT = "checkpoint"
"""Reason code of what a pipeline asks where a checkpoint is not passed."""


class Prover:
    """Proves agents by handoffs.

    Args:
        crew: hands them over.
        thinks: whether there is a model for live proofs.
    """

    def __init__(self, crew: Crew, *, thinks: bool) -> None:
        self._crew, self._thinks = crew, thinks
        self._scripted: set[str] = set()
        """Handoffs at the root of what is answered by the script."""

    def scripted(self, state: AgentState) -> ModelClient | None:
        """Who answers a run instead of the model; None for all that is no scripted proof."""
        given = state.config.meta.get(HANDOFF, {})
        root = given.get("root_id") or given.get("handoff_id")
        if root not in self._scripted:
            return None
        return ScriptedModel(state, lambda: self._debate(str(given.get("parent_id") or "")))

    def _debate(self, name: str) -> Debate | None:
        """The debate of a handoff, as it was kept last."""
        handoff = self._crew.state.handoffs.get(name)
        held = handoff.progress.get(DEBATE) if handoff is not None else None
        return Debate.loaded(held)[0] if isinstance(held, dict) and "motion" in held else None

    async def prove(self, spec: AgentSpec, *, live: bool) -> Proof:
        """Hand something over to an agent and see what comes back."""
        if live and not self._thinks:
            return Proof(False, "a live proof needs a model, and none is configured")
        kind = HandoffType.DELEGATE
        if spec.type is AgentType.ROLE and spec.handoff.supports.transfer:
            kind = HandoffType.TRANSFER
        ask = HandoffRequest(spec.id, TASK, timeout_s=LIMIT_S, metadata={PROOF: LIVE if live else SCRIPTED})
        context = operator_context(
            self._crew.state, self._crew.handoffs.setting, ask, clarity=CLEAR_PROBLEM, kind=kind
        )
        name = context.handoff_id
        if not live:
            self._scripted.add(name)
        try:
            async with asyncio.timeout(LIMIT_S):
                await self._crew.handoffs.hand_over(HandoffDraft(context, actor=ACTOR))
                return await self._followed(name, spec, live=live)
        except TimeoutError:
            return Proof(False, f"no answer came within {LIMIT_S} s")
        except HandoffError as error:
            return Proof(False, error.message)
        finally:
            await self._crew.handoffs.endings.cancel(name, "the proof is over", actor=ACTOR)
            self._scripted.discard(name)

    async def _followed(self, name: str, spec: AgentSpec, *, live: bool) -> Proof:
        """Answer what is asked in it until it has ended, or has had its turns."""
        turns = 0
        while self._crew.state.handoffs[name].open:
            request = self._asked(name)
            if request is not None:
                talk = request.handoff_id == name and request.reason_code.startswith((CONVERSATION, GUIDED))
                turns += talk
                if turns > TURNS:
                    return self._steps_taken(name, spec)
                await self._answer(request, turns if talk else 0)
                if turns == TURNS and request.reason_code == CONVERSATION:
                    return Proof(True, f"{TURNS} turns of a session: it asked twice, and took both answers")
            elif self._held(name):
                return Proof(False, self._why_held(name, live=live))
            else:
                await self._crew.stream.changed()
        done = self._crew.state.handoffs[name]
        return judge_proof(spec, done, live=live)

    def _steps_taken(self, name: str, spec: AgentSpec) -> Proof:
        """What a guided session showed, without a model: an answer that was stored, and the way back."""
        session = GuidedSession.loaded(self._crew.state.handoffs[name].progress[SESSION])[0]
        first = spec.steps[0]
        if session.active != first.id:
            return Proof(False, f"after an answer and a step back it stands at {session.active or 'its end'}")
        if session.of(first.id).status is StepStatus.ANSWERED:
            return Proof(True, f"{TURNS} turns of a session: {first.title!r} was answered and gone back to")
        return Proof(
            True,
            f"{TURNS} turns of a session: it asked, and refused an answer and a step back as its rules say; "
            f"no script fits {first.title!r}, so that an answer is taken was not shown",
        )

    def _why_held(self, name: str, *, live: bool) -> str:
        """Why nothing of it goes on by itself."""
        worker, all_of_them = self._crew.handoffs.moves.worker, self._crew.state.handoffs.values()
        runs = [
            handoff.run
            for handoff in all_of_them
            if handoff.run and name in (handoff.id, handoff.context.root_id)
        ]
        calls = sum(worker.usage(run).calls for run in runs) if worker is not None else 0
        if worker is not None and live and calls >= LIVE_CALLS:
            message = f"it wants another call of its model, and a live proof has {LIVE_CALLS}"
            trouble = next(filter(None, map(worker.trouble, runs)), "")
            return f"{message}; before that: {trouble}" if trouble else message
        return "its run waits for the operator, and a proof asks nobody"

    def _asked(self, name: str) -> HumanRequest | None:
        """What is asked in a proof and waited for."""
        below = {name, *self._crew.handoffs.endings.below(name)}
        asked = (
            request
            for request in self._crew.state.open_requests()
            if request.handoff_id in below and request.blocking
        )
        return next(asked, None)

    def _held(self, name: str) -> bool:
        waits = HandoffState.WAITING_HUMAN
        return any(
            self._crew.state.handoffs[handoff].state is waits
            for handoff in (name, *self._crew.handoffs.endings.below(name))
        )

    async def _answer(self, request: HumanRequest, turn: int) -> None:
        option, text = "", WORDS
        if request.reason_code.startswith(GUIDED):
            move: dict[str, Any] = {"move": "back"}
            if turn == 1:
                move = {"move": "answer", "value": self._sample(request.agent_id)}
            text = json.dumps(move)
        elif request.reason_code == CHECKPOINT:
            option, text = "accept", "a scripted proof goes on to the next phase"
        elif request.options:
            ends = [option for option in request.options if option.effect is Effect.ABORT]
            option = (ends or list(request.options))[0].id
        await self._crew.requests.answer(request.id, option, text, ACTOR)

    def _sample(self, agent: str) -> Any:
        """An answer of the right kind to a guided agent's first step."""
        step = self._crew.state.agents[agent].spec.steps[0]
        text = step.options[0] if step.options else WORDS
        kinds = {InputKind.MULTI: [text], InputKind.NUMBER: _number(step), InputKind.CONFIRM: True}
        return kinds.get(step.input, text)


def _number(step: GuidedStep) -> float:
    """A number that a step's validators take, where they say from where on."""
    lows = [
        criterion.args.get("low") for criterion in step.validators if criterion.check is Check.NUMBER_RANGE
    ]
    return next((float(low) for low in lows if isinstance(low, int | float)), 1)
