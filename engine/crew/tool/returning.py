"""Returning a result: read, counted in code, checked, sent back at most twice (ontology spec §1.5, §1.12)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from engine.agents import computing
from engine.agents.answers import Returned, read_returned
from engine.agents.criteria import Subject, check_all, failed, fault, unjudged
from engine.agents.kinds import AgentType, Check, ConfidenceSource, ErrorCode, OutputFormat
from engine.agents.methods import guided, judging
from engine.agents.result import GateOutcome, HandoffResult
from engine.agents.values import problems_in
from engine.crew.tool.looking import whole
from engine.crew.tool.work import Work, done, refused
from engine.domain.action import ToolResult
from engine.domain.running import DEBATE, GUIDED, RETURNED, VIEWS
from engine.domain.text import clean_line
from engine.thinkers.spec_methods import pipeline_of

REPAIRS_MOST = 2
"""Times that a result is sent back."""
_FIELDS = frozenset(Returned.model_fields)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A result before it is one."""

    said: Returned
    gates: tuple[GateOutcome, ...] = ()
    further: dict[str, Any] = field(default_factory=dict)
    """Fields of the result besides what the agent filled in."""
    warnings: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[GateOutcome, ...]:
        """Hard criteria that are not passed."""
        return failed(self.gates)


async def return_result(work: Work) -> ToolResult:
    """End the handoff with a result, or with why there is none."""
    if work.beliefs.get(RETURNED):
        return done(f"its handoff is {work.beliefs[RETURNED]} already")
    if error := str(work.args.get("error") or "").strip():
        if _has_views(work):
            return await _give(
                work, _joined(work, f"they were not put together: {clean_line(error, limit=300)}")
            )
        return await work.give(work.failing(_code(work.args.get("code")), error))
    given = {name: value for name, value in work.args.items() if name in _FIELDS and value not in (None, "")}
    draft = await (_checked(work, read_returned(given)) if given else gathered(work))
    if not draft.wrong:
        return await _give(work, draft)
    if given and work.repairs < REPAIRS_MOST and not work.args.get("final"):
        return work.sent_back(list(map(fault, draft.wrong)), given)
    if _has_views(work):
        return await _give(work, _joined(work, "the synthesis did not pass what it is checked for"))
    return await _give_failed(work, draft)


async def compute(work: Work) -> ToolResult:
    """Compute by the specification's formula."""
    try:
        found = computing.compute(work.handoff.spec.compute, work.args["data"])
    except computing.ComputingError as error:
        return refused(str(error))
    return done(
        ", ".join(found.corrected) or "computed",
        data=found.data,
        scores=found.scores,
        corrected=list(found.corrected),
    )


def _code(given: object) -> ErrorCode:
    try:
        return ErrorCode(str(given))
    except ValueError:
        return ErrorCode.INTERNAL


async def _give(work: Work, draft: _Draft) -> ToolResult:
    context, said = work.handoff.context, draft.said
    own = context.to_agent
    soft = [one for one in draft.gates if not one.hard and one.passed is False]
    open_ones = [f"{one.wanted}: {one.message}" for one in unjudged(draft.gates)]
    suggested = tuple(one for one in dict.fromkeys(said.suggested_next_agents) if one != own)
    fields: dict[str, Any] = {
        **said.model_dump(exclude={"confidence", "suggested_next_agents"}),
        "output_format": work.handoff.spec.handoff.returns.output_format,
        "confidence": said.confidence or 0.0,
        "confidence_source": said.confidence_source,
        "suggested_next_agents": suggested,
        "quality": draft.gates,
        "needs_human_input": bool(open_ones),
        "human_input_reason": "; ".join(open_ones),
        "warnings": (*draft.warnings, *map(fault, soft), *open_ones),
        **draft.further,
    }
    try:
        result = HandoffResult(
            handoff_id=context.handoff_id,
            from_agent=own,
            to_agent=context.return_to,
            success=True,
            attempt=context.attempt,
            **fields,
        )
    except ValidationError as error:
        wrong = [str(problem) for problem in problems_in(error)]
        if work.repairs < REPAIRS_MOST and not work.args.get("final"):
            return work.sent_back(wrong, said.model_dump(mode="json", exclude_defaults=True))
        return await work.give(work.failing(ErrorCode.OUTPUT_FORMAT, "; ".join(wrong), output=said.output))
    return await work.give(result)


async def _give_failed(work: Work, draft: _Draft) -> ToolResult:
    said = "; ".join(map(fault, draft.wrong))
    kept = draft.said
    result = work.failing(
        ErrorCode.QUALITY_GATE,
        clean_line(f"what was returned does not pass: {said}", limit=2_000),
        output=kept.output,
        key_findings=kept.key_findings,
        recommendations=kept.recommendations,
        scores=kept.scores,
        data=kept.data,
        quality=draft.gates,
        partial=True,
    )
    return await work.give(result)


# ------------------------------------------------------------------ what is looked at


async def _checked(work: Work, said: Returned) -> _Draft:
    """What an agent wants to return, with its numbers counted and everything that its specification asks."""
    spec, gates, warnings = work.handoff.spec, [], []
    if spec.compute and spec.compute != computing.BUILD:
        try:
            found = computing.compute(spec.compute, said.data)
        except computing.ComputingError as error:
            gates.append(_gate(Check.NUMBER_RANGE, f"data.{error}"))
        else:
            said = Returned.read(
                {**said.model_dump(), "data": found.data, "scores": {**said.scores, **found.scores}}
            )
            warnings += [f"computed: {line}" for line in found.corrected]
    if spec.handoff.returns.output_format is OutputFormat.JSON:
        gates += _not_json(said.output)
    subject = Subject(text=said.output, data=_looked_at(said), sources=sources_of(work))
    criteria = spec.instructions.quality_criteria
    gates += check_all(criteria, await whole(work, criteria, subject))
    further: dict[str, Any] = {}
    if views := work.beliefs.get(VIEWS):
        gates += _names_each(said.output, views)
        further, said = _of_views(work, views, said)
    return _Draft(said, tuple(gates), further, tuple(warnings))


def _looked_at(said: Returned) -> dict[str, Any]:
    """What criteria can name: the fields of the structured answer, and the lists beside it."""
    lists = {
        name: list(getattr(said, name)) for name in ("key_findings", "recommendations", "open_questions")
    }
    return {**lists, "scores": said.scores, **said.data}


def sources_of(work: Work) -> dict[str, str]:
    """What can be quoted, by name: earlier analyses, the task, and what is believed of views."""
    context = work.handoff.context
    found = {
        one.framework_id: f"{one.output}\n" + "\n".join(one.key_findings) for one in context.previous_analyses
    }
    found["task"] = context.task_description
    given = context.metadata.get("sources")
    if isinstance(given, Mapping):
        found |= {str(name): str(text) for name, text in given.items()}
    return found


def _not_json(output: str) -> list[GateOutcome]:
    try:
        json.loads(output)
    except ValueError as error:
        return [_gate(Check.JSON_SCHEMA, f"output: is to be JSON and is not: {error}")]
    return []


def _gate(check: Check, message: str) -> GateOutcome:
    return GateOutcome(check=check, passed=False, message=clean_line(message, limit=500))


# ------------------------------------------------------------------ what the run has by now


async def gathered(work: Work) -> _Draft:
    """The result of what the run has, without another word of a model."""
    spec = work.handoff.spec
    if spec.type is AgentType.PIPELINE:
        outputs = pipeline_of(work.brief, work.beliefs).outputs()
        last = spec.phases[-1].outputs
        shown = {name: outputs[name] for name in last if name in outputs} or outputs
        text = _in_words(shown)
        return await _checked(work, Returned(output=text, data=outputs))
    if spec.type is AgentType.GUIDED:
        session = work.brief.read(work.beliefs, GUIDED, guided.GuidedSession) or guided.begin(spec.steps)
        text = guided.export(spec.name, spec.steps, session)
        return await _checked(work, Returned(output=text, data=session.answers))
    if work.beliefs.get(DEBATE):
        return _of_debate(work, work.beliefs[DEBATE])
    if _has_views(work):
        return _joined(work, "nobody put the views together")
    return await _checked(work, Returned())


def _in_words(outputs: Mapping[str, Any]) -> str:
    if len(outputs) == 1:
        (only,) = outputs.values()
        return only if isinstance(only, str) else json.dumps(only, ensure_ascii=False, indent=1)
    return "\n\n".join(f"## {name}\n{_in_words({name: value})}" for name, value in outputs.items())


def _of_debate(work: Work, held: Mapping[str, Any]) -> _Draft:
    verdict = judging.Verdict.loaded(held["verdict"])[0]
    contested = verdict.contested
    reasons = [
        f"pass {number}: {one.winner} ({one.confidence:g}): " + "; ".join(one.reasons.values())
        for number, one in enumerate(verdict.passes, 1)
    ]
    further: dict[str, Any] = {
        "confidence_source": ConfidenceSource.JUDGE,
        "needs_human_input": contested,
        "human_input_reason": "the judge's passes differ: " + " · ".join(reasons) if contested else "",
    }
    said = Returned(
        output=str(held["text"]),
        key_findings=tuple(str(line) for line in held.get("decisive", ())),
        confidence=verdict.confidence,
        open_questions=tuple(f"dissent: {line}" for line in verdict.dissent),
        data={"verdict": held["verdict"], "ledger": held.get("ledger", {}), "calls": held.get("calls", 0)},
    )
    return _Draft(said, (), further)


# ------------------------------------------------------------------ views


def _has_views(work: Work) -> bool:
    return any(view.get("ok") for view in work.beliefs.get(VIEWS) or ())


def _names_each(output: str, views: Sequence[Mapping[str, Any]]) -> list[GateOutcome]:
    """Whether a synthesis names every view, and every one that is missing (ontology spec §1.10)."""
    text = output.casefold()
    unnamed = [view for view in views if str(view["id"]).casefold() not in text]
    return [
        _gate(
            Check.CITES_RESOLVE,
            f"name the view {view['id']}" if view.get("ok") else f"name {view['id']} as missing",
        )
        for view in unnamed
    ]


def _of_views(
    work: Work, views: Sequence[Mapping[str, Any]], said: Returned
) -> tuple[dict[str, Any], Returned]:
    """What views mean for a result: who is missing, and how much of it was there (ontology spec §1.12)."""
    missing = tuple(str(view["id"]) for view in views if not view.get("ok"))
    share = (len(views) - len(missing)) / len(views)
    if said.confidence is not None and missing:
        said = Returned.read({**said.model_dump(), "confidence": said.confidence * share})
    return {"missing": missing}, said


def _joined(work: Work, why: str) -> _Draft:
    """The views side by side, where nobody put them together."""
    views = work.beliefs.get(VIEWS) or ()
    parts = [
        f"## {view['id']}: {view['role']}\n{view['output']}"
        if view.get("ok")
        else f"## {view['id']}\n*missing*"
        for view in views
    ]
    findings = tuple(line for view in views if view.get("ok") for line in view.get("key_findings", ()))
    said = Returned(output="\n\n".join(parts), key_findings=findings[:50])
    further, said = _of_views(work, views, said)
    return _Draft(said, (), {**further, "partial": True}, (f"{why}: they are returned as they came",))
