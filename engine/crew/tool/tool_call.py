"""One call of the tool `crew`: its run, its handoff, how it is answered, and how the run returns its result.

A result is read, counted in code, checked, and sent back at most twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from engine.core import actions as action
from engine.core.actions import ResultStatus, ToolResult
from engine.core.agents import DEBATE, GUIDED, REPAIRS, RETURNED, VIEWS
from engine.core.journal import canonical
from engine.core.ports import CallContext
from engine.core.reasons import Reason, read_reason
from engine.core.text import clean_line
from engine.crew.methods import debate_judge as judging
from engine.crew.methods import dialogue as guided
from engine.crew.ontology import results as computing
from engine.crew.ontology.context import Answer
from engine.crew.ontology.criteria import (
    Rubric,
    RubricVerdict,
    Subject,
    check_all,
    failed,
    failure_text,
    needs_log,
    not_passed,
    rubrics_in,
    unjudged,
    value_at,
    value_text,
)
from engine.crew.ontology.kinds import (
    AgentType,
    Check,
    ConfidenceSource,
    ErrorCode,
    OutputFormat,
    RequestKind,
    problems_in,
)
from engine.crew.ontology.results import (
    CriterionResult,
    HandoffResult,
    ReturnedResult,
    failure_of,
    parse_returned,
    result_of,
)
from engine.crew.ontology.spec import (
    AgentSpec,
    Criterion,
    Handoffs,
    Instructions,
    Receives,
    Routing,
    Supports,
)
from engine.crew.ports import HandoffError, OperatorQuestion, RunningHandoff
from engine.crew.run_service import RunService
from engine.crew.thinker.run_plan import Brief, pipeline_of, quotable
from engine.value import dataclass, field, replace

NOT_TAKEN = action.ErrorCode.BAD_ARGUMENTS
"""What a model is shown and answers by another try; nothing is repeated by itself."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a run."""

    service: RunService
    run: str
    handoff: RunningHandoff
    command: str
    args: Mapping[str, Any]
    context: CallContext

    @property
    def brief(self) -> Brief:
        """What the run was made for, with how far the handoff is."""
        return Brief(self.handoff.spec, self.handoff.context, self.handoff.progress)

    @property
    def beliefs(self) -> Mapping[str, Any]:
        """What the run believes."""
        return self.context.beliefs

    @property
    def key(self) -> str:
        """The same for a call that is made again after the program's end."""
        text = canonical([self.command, dict(self.args)])
        return f"{self.run}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def repairs(self) -> int:
        """How often what it wants to say was sent back."""
        repairs = self.beliefs.get(REPAIRS)
        return int(repairs.get("times", 0)) if isinstance(repairs, Mapping) else 0

    def reject(self, wrong: Sequence[str], draft: Mapping[str, Any]) -> ToolResult:
        """Send it back with exactly what is wrong."""
        held = {"times": self.repairs + 1, "what": list(wrong), "draft": dict(draft)}
        return call_refused("; ".join(wrong), beliefs={REPAIRS: held}, failed=list(wrong))

    @property
    def steps(self) -> bool:
        """Whether the operator wants to be asked after each checkpoint or round, as things stand now."""
        return (self.service.handoff_of(self.run) or self.handoff).steps

    async def keep(self, what: str, progress: Mapping[str, Any], note: str = "") -> None:
        """Have the manager record how far the run is."""
        now = self.service.handoff_of(self.run)
        before = now.progress if now is not None else self.handoff.progress
        await self.service.keep(self.run, what, {**before, **progress}, note)

    async def give(self, result: HandoffResult, **beliefs: Any) -> ToolResult:
        """Hand the result to the manager; where the handoff has ended meanwhile, the run is over as well."""
        try:
            await self.service.accept(self.run, result)
        except HandoffError as error:
            over = self.service.handoff_of(self.run)
            earlier = over.result.end if over and over.result else Reason("end.cut", why=error.message)
            held = {RETURNED: earlier.recorded, REPAIRS: None, **beliefs}
            return call_succeeded(f"too late: {error.message}", beliefs=held)
        message = "returned" if result.success else f"ended as {result.error_code}: {result.error}"
        held = {RETURNED: result.end.recorded, REPAIRS: None, **beliefs}
        return call_succeeded(message, beliefs=held, state=result.state.value, warnings=list(result.warnings))

    async def ask(self, kind: RequestKind, code: str, title: str, question: str, **more: Any) -> Answer:
        """Ask the operator and wait; `more` are other fields of the question."""
        return await self.service.ask(self.run, OperatorQuestion(kind, code, title, question, **more))

    def failing(self, code: ErrorCode, error: str, **fields: Any) -> HandoffResult:
        """A result that says why there is none."""
        return failure_of(self.handoff.context, code, error, **fields)


def call_succeeded(message: str, *, beliefs: Mapping[str, Any] | None = None, **data: Any) -> ToolResult:
    """A call that went well."""
    return ToolResult(ResultStatus.SUCCESS, {"message": message, **data}, beliefs=dict(beliefs or {}))


def call_refused(message: str, *, beliefs: Mapping[str, Any] | None = None, **data: Any) -> ToolResult:
    """A call that came to nothing, which is the run's answer."""
    fields = {"message": message, **data}
    return ToolResult(ResultStatus.FAILURE, fields, NOT_TAKEN, beliefs=dict(beliefs or {}))


def handoff_refused(error: HandoffError) -> ToolResult:
    """What the manager refused."""
    return call_refused(f"{error.code}: {error.message}", handoff_code=error.code.value)


RUBRIC = "rubric"
NOTHING = "there is nothing to judge"


async def complete_subject(work: ToolCall, criteria: Sequence[Criterion], subject: Subject) -> Subject:
    """What is looked at, with all that the criteria need of it."""
    if needs_log(criteria):
        names = frozenset(quotable(work.handoff.context.metadata))
        subject = replace(subject, log=names | await work.service.log(work.run))
    return await _judged(work, criteria, subject)


async def _judged(work: ToolCall, criteria: Sequence[Criterion], subject: Subject) -> Subject:
    """What is looked at, with a verdict on each rubric among the criteria; verdicts are kept on record.

    Without a model, and where it says nothing that can be used, a rubric stays open with the reason.
    """
    rubrics = rubrics_in(criteria)
    if not rubrics:
        return subject
    asked = tuple(rubric for rubric in rubrics if _something(subject, rubric))
    verdicts = dict.fromkeys(rubrics, RubricVerdict(reason=NOTHING)) | dict.fromkeys(asked, RubricVerdict())
    if asked:
        verdicts |= await work.service.judge(work.run, asked, subject)
    note = "; ".join(f"{rubric.text}: {verdict.said}" for rubric, verdict in verdicts.items())
    await work.keep(RUBRIC, {}, note)
    return replace(subject, verdicts=verdicts)


def _something(subject: Subject, rubric: Rubric) -> bool:
    value = value_at(subject, rubric.field)
    return bool(value_text(value).strip()) or (
        not rubric.field and bool(value_text(dict(subject.data)).strip())
    )


REPAIRS_MOST = 2
"""Times that a result is sent back."""
_FIELDS = frozenset(ReturnedResult.model_fields)
_LISTS = ("key_findings", "recommendations", "open_questions")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A result before it is one."""

    said: ReturnedResult
    gates: tuple[CriterionResult, ...] = ()
    further: dict[str, Any] = field(default_factory=dict)
    """Fields of the result besides what the agent filled in."""
    warnings: tuple[str, ...] = ()


async def return_result(work: ToolCall) -> ToolResult:
    """End the handoff with a result, or with why there is none."""
    if work.beliefs.get(RETURNED):
        return call_succeeded(f"its handoff is over already: {read_reason(work.beliefs[RETURNED])}")
    if error := str(work.args.get("error") or "").strip():
        if _has_views(work):
            return await _give(
                work, _joined(work, f"they were not put together: {clean_line(error, limit=300)}")
            )
        return await work.give(work.failing(_code(work.args.get("code")), error))
    given = {name: value for name, value in work.args.items() if name in _FIELDS and value not in (None, "")}
    draft = await (_checked(work, parse_returned(given)) if given else gathered(work))
    wrong = failed(draft.gates)
    if not wrong:
        return await _give(work, draft)
    if given and work.repairs < REPAIRS_MOST and not work.args.get("final"):
        return work.reject(list(map(failure_text, wrong)), given)
    if _has_views(work):
        return await _give(work, _joined(work, "the synthesis did not pass what it is checked for"))
    kept = draft.said.model_dump(include={"output", "key_findings", "recommendations", "scores", "data"})
    result = work.failing(
        ErrorCode.QUALITY_GATE, not_passed(draft.gates), **kept, quality=draft.gates, partial=True
    )
    return await work.give(result)


async def compute(work: ToolCall) -> ToolResult:
    """Compute by the specification's formula."""
    try:
        computed = computing.compute(work.handoff.spec.compute, work.args["data"])
    except computing.FormulaError as error:
        return call_refused(str(error))
    return call_succeeded(
        ", ".join(computed.corrected) or "computed",
        data=computed.data,
        scores=computed.scores,
        corrected=list(computed.corrected),
    )


def _code(given: object) -> ErrorCode:
    try:
        return ErrorCode(str(given))
    except ValueError:
        return ErrorCode.INTERNAL


async def _give(work: ToolCall, draft: _Draft) -> ToolResult:
    context, returned = work.handoff.context, draft.said
    own = context.to_agent
    soft = [gate for gate in draft.gates if not gate.hard and gate.passed is False]
    open_ones = [f"{gate.wanted}: {gate.message}" for gate in unjudged(draft.gates)]
    suggested = tuple(agent for agent in dict.fromkeys(returned.suggested_next_agents) if agent != own)
    source = ConfidenceSource.NONE if returned.confidence is None else ConfidenceSource.AGENT
    fields: dict[str, Any] = {
        **returned.model_dump(exclude={"confidence", "suggested_next_agents"}),
        "output_format": work.handoff.spec.handoff.returns.output_format,
        "confidence": returned.confidence or 0.0,
        "confidence_source": source,
        "suggested_next_agents": suggested,
        "quality": draft.gates,
        "needs_human_input": bool(open_ones),
        "human_input_reason": "; ".join(open_ones),
        "warnings": (*draft.warnings, *map(failure_text, soft), *open_ones),
        **draft.further,
    }
    try:
        result = result_of(context, success=True, **fields)
    except ValidationError as error:
        wrong = [str(problem) for problem in problems_in(error)]
        if work.repairs < REPAIRS_MOST and not work.args.get("final"):
            return work.reject(wrong, returned.model_dump(mode="json", exclude_defaults=True))
        return await work.give(
            work.failing(ErrorCode.OUTPUT_FORMAT, "; ".join(wrong), output=returned.output)
        )
    return await work.give(result)


# ------------------------------------------------------------------ what is looked at


async def _checked(work: ToolCall, returned: ReturnedResult) -> _Draft:
    """What an agent wants to return, with its numbers counted and everything that its specification asks."""
    spec, gates, warnings = work.handoff.spec, [], []
    if spec.compute:
        try:
            computed = computing.compute(spec.compute, returned.data)
        except computing.FormulaError as error:
            gates.append(_gate(Check.NUMBER_RANGE, "data that can be computed", f"data.{error}"))
        else:
            scores = {**returned.scores, **computed.scores}
            returned = returned.model_copy(update={"data": computed.data, "scores": scores})
            warnings += [f"computed: {line}" for line in computed.corrected]
    if spec.handoff.returns.output_format is OutputFormat.JSON:
        gates += _not_json(returned.output)
    lists = {name: list(getattr(returned, name)) for name in _LISTS}
    # What criteria can name: the fields of the structured answer, and the lists beside it.
    data = {**lists, "scores": returned.scores, **returned.data}
    subject = Subject(text=returned.output, data=data, sources=sources_of(work))
    criteria = spec.instructions.quality_criteria
    gates += check_all(criteria, await complete_subject(work, criteria, subject))
    further: dict[str, Any] = {}
    if views := work.beliefs.get(VIEWS):
        gates += _names_each(returned.output, views)
        further, returned = _of_views(work, views, returned)
    return _Draft(returned, tuple(gates), further, tuple(warnings))


def sources_of(work: ToolCall) -> dict[str, str]:
    """What can be quoted, by name: earlier analyses, the task, and what is believed of views."""
    context = work.handoff.context
    sources = {
        analysis.framework_id: f"{analysis.output}\n" + "\n".join(analysis.key_findings)
        for analysis in context.previous_analyses
    }
    return sources | {"task": context.task_description} | quotable(context.metadata)


def _not_json(output: str) -> list[CriterionResult]:
    try:
        json.loads(output)
    except ValueError as error:
        return [_gate(Check.JSON_SCHEMA, "JSON", f"output: is to be JSON and is not: {error}")]
    return []


def _gate(check: Check, wanted: str, message: str, measured: str = "") -> CriterionResult:
    message = clean_line(message, limit=500)
    return CriterionResult(
        check=check, passed=False, wanted=wanted, measured=measured or message, message=message
    )


# ------------------------------------------------------------------ what the run has by now


async def gathered(work: ToolCall) -> _Draft:
    """The result of what the run has, without another word of a model."""
    spec = work.handoff.spec
    if spec.type is AgentType.PIPELINE:
        outputs = pipeline_of(work.brief, work.beliefs).outputs()
        last = spec.phases[-1].outputs
        shown = {name: outputs[name] for name in last if name in outputs} or outputs
        text = _in_words(shown)
        return await _checked(work, ReturnedResult(output=text, data=outputs))
    if spec.type is AgentType.GUIDED:
        session = work.brief.read(work.beliefs, GUIDED, guided.GuidedSession) or guided.begin(spec.steps)
        text = guided.export(spec.name, spec.steps, session)
        return await _checked(work, ReturnedResult(output=text, data=session.answers))
    if work.beliefs.get(DEBATE):
        return _of_debate(work, work.beliefs[DEBATE])
    if _has_views(work):
        return _joined(work, "nobody put the views together")
    return await _checked(work, ReturnedResult())


def _in_words(outputs: Mapping[str, Any]) -> str:
    if len(outputs) == 1:
        (only,) = outputs.values()
        return only if isinstance(only, str) else json.dumps(only, ensure_ascii=False, indent=1)
    return "\n\n".join(f"## {name}\n{_in_words({name: value})}" for name, value in outputs.items())


def _of_debate(work: ToolCall, held: Mapping[str, Any]) -> _Draft:
    verdict = judging.Verdict.loaded(held["verdict"])
    contested = verdict.contested
    reasons = [
        f"pass {number}: {judgement.winner} ({judgement.confidence:g}): "
        + "; ".join(judgement.reasons.values())
        for number, judgement in enumerate(verdict.passes, 1)
    ]
    further: dict[str, Any] = {
        "confidence_source": ConfidenceSource.JUDGE,
        "needs_human_input": contested,
        "human_input_reason": "the judge's passes differ: " + " · ".join(reasons) if contested else "",
    }
    returned = ReturnedResult(
        output=str(held["text"]),
        key_findings=tuple(str(line) for line in held.get("decisive", ())),
        confidence=verdict.confidence,
        open_questions=tuple(f"dissent: {line}" for line in verdict.dissent),
        data={"verdict": held["verdict"], "ledger": held.get("ledger", {}), "calls": held.get("calls", 0)},
    )
    return _Draft(returned, (), further)


# ------------------------------------------------------------------ views


def _has_views(work: ToolCall) -> bool:
    return any(view.get("ok") for view in work.beliefs.get(VIEWS) or ())


def _names_each(output: str, views: Sequence[Mapping[str, Any]]) -> list[CriterionResult]:
    """Whether a synthesis names every view, and every one that is missing."""
    text = output.casefold()
    unnamed = [view for view in views if str(view["id"]).casefold() not in text]
    return [
        _gate(
            Check.CITES_RESOLVE,
            f"the view {view['id']} is named" if view.get("ok") else f"{view['id']} is named as missing",
            f"name the view {view['id']}" if view.get("ok") else f"name {view['id']} as missing",
            "it is not named",
        )
        for view in unnamed
    ]


def _of_views(
    work: ToolCall, views: Sequence[Mapping[str, Any]], returned: ReturnedResult
) -> tuple[dict[str, Any], ReturnedResult]:
    """What views mean for a result: who is missing, and how much of it was there."""
    missing = tuple(str(view["id"]) for view in views if not view.get("ok"))
    share = (len(views) - len(missing)) / len(views)
    if returned.confidence is not None and missing:
        returned = returned.model_copy(update={"confidence": returned.confidence * share})
    return {"missing": missing}, returned


def _joined(work: ToolCall, why: str) -> _Draft:
    """The views side by side, where no synthesis was written."""
    views = work.beliefs.get(VIEWS) or ()
    parts = [
        f"## {view['id']}: {view['role']}\n{view['output']}"
        if view.get("ok")
        else f"## {view['id']}\n*missing*"
        for view in views
    ]
    findings = tuple(line for view in views if view.get("ok") for line in view.get("key_findings", ()))
    returned = ReturnedResult(output="\n\n".join(parts), key_findings=findings[:50])
    further, returned = _of_views(work, views, returned)
    return _Draft(returned, (), {**further, "partial": True}, (f"{why}: they are returned as they came",))


def part_of(
    spec: AgentSpec, ident: str, name: str, about: str, instructions: Instructions, **more: Any
) -> AgentSpec:
    """An agent that is called by another's run only: one task in, one answer out; it calls no other."""
    handoff = Handoffs(
        receives=Receives(requires_what=False, min_clarity=0.0),
        returns=spec.handoff.returns.model_copy(update={"score_names": ()}),
        routing=Routing(default_return_to=spec.id),
        supports=Supports(escalate=False),
    )
    fields = {"id": ident, "name": name, "description": about, "instructions": instructions, **more}
    return AgentSpec(type=AgentType.OPERATOR, handoff=handoff, selectable=False, **fields)
