"""What an agent returns: the values of a result, how one is read from an answer, and what is computed of it.

An answer is read in this order: the arguments of the tool `return_result`; the last fenced block of JSON that
fits; bullets under headings that name findings, recommendations or open questions. The rest is the output.
Nothing is invented: a missing part is empty, and a missing confidence is 0.0 with source none. Sums, verdicts
and scores that can be computed overwrite a model's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from engine.core.reasons import Reason
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.crew.ontology.context import HandoffContext, Moment, PreviousAnalysis
from engine.crew.ontology.kinds import (
    AgentId,
    Check,
    ConfidenceSource,
    ErrorCode,
    HandoffState,
    InvalidError,
    OntologyValue,
    OutputFormat,
    Share,
    Words,
)
from engine.crew.ontology.spec import AgentSpec
from engine.value import dataclass, field


class ReturnedResult(OntologyValue):
    """What an agent fills in of its result."""

    output: Words = ""
    """The answer in full, in the form that was asked for."""
    key_findings: tuple[str, ...] = Field(default=(), max_length=50)
    """What was found, a sentence each; empty when nothing was."""
    recommendations: tuple[str, ...] = Field(default=(), max_length=50)
    """What follows from it; empty when nothing does."""
    confidence: Share | None = None
    """How sure the answer is, from 0 to 1; leave it out rather than guess."""
    scores: dict[str, float] = Field(default_factory=dict)
    """Numbers by name, where the method gives any."""
    suggested_next_agents: tuple[str, ...] = Field(default=(), max_length=10)
    """Ids of agents that might continue from here."""
    open_questions: tuple[str, ...] = Field(default=(), max_length=50)
    """What is not known yet."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The structured answer by field, where the method asks for one."""


def schema_for(spec: AgentSpec) -> dict[str, Any]:
    """The JSON Schema of `return_result` for an agent: what its spec does not return is left out."""
    schema = ReturnedResult.model_json_schema()
    del schema["title"], schema["description"]
    returns = spec.handoff.returns
    renamed = {"confidence": "confidence_score", "suggested_next_agents": "suggested_next"}
    for name in ("key_findings", "recommendations", "confidence", "suggested_next_agents", "open_questions"):
        if not getattr(returns, renamed.get(name, name)):
            del schema["properties"][name]
    if returns.score_names:
        numbers = {name: {"type": "number"} for name in returns.score_names}
        schema["properties"]["scores"] = {"type": "object", "properties": numbers, "required": list(numbers)}
    schema["required"] = ["output"]
    return schema


def parse_returned(given: Mapping[str, Any]) -> ReturnedResult:
    """What was given to `return_result`.

    Raises:
        InvalidError: it does not fit; every field that is wrong is named.
    """
    return ReturnedResult.read(given, "return_result")


_FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S | re.I)


def parse_text_answer(text: str) -> ReturnedResult:
    """What a text without a call says."""
    for block in reversed(list(_FENCED.finditer(text))):
        try:
            given = read_json(block.group(1))
            if isinstance(given, dict) and set(given) & set(ReturnedResult.model_fields):
                rest = (text[: block.start()] + text[block.end() :]).strip()
                return ReturnedResult.read({"output": rest or text.strip(), **given})
        except (StrictJsonError, InvalidError, ValidationError):
            continue
    return _from_headings(text)


_HEADING = re.compile(r"^(?:#{1,6}\s+(.+?)|\*\*(.+?)\*\*:?)\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+?)\s*$")
_MEANS = {
    "key_findings": re.compile(r"\bfindings?\b", re.I),
    "recommendations": re.compile(r"\brecommend(ed|ation)?s?\b|\bnext steps\b", re.I),
    "open_questions": re.compile(r"\bopen questions?\b", re.I),
}


def _from_headings(text: str) -> ReturnedResult:
    sections: dict[str, list[str]] = {name: [] for name in _MEANS}
    under = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            title = heading.group(1) or heading.group(2)
            under = next((name for name, means in _MEANS.items() if means.search(title)), "")
        elif under and (bullet := _BULLET.match(line)) and len(sections[under]) < 50:
            sections[under].append(bullet.group(1))
    return ReturnedResult(output=text.strip(), **{name: tuple(lines) for name, lines in sections.items()})


PILLARS = ("problem", "solution", "business_case", "people")
PILLAR_MOST = 25
NO_EVIDENCE_MOST = 12
"""The most that a pillar without evidence can have."""
GO, PIVOT = 80, 60
"""Totals from which the verdict is GO, and PIVOT."""
SCENARIOS = 4


class FormulaError(ValueError):
    """What is to be computed with is missing or out of range; the message says which field."""


@dataclass(frozen=True, slots=True)
class FormulaResult:
    """The result of a computation."""

    data: dict[str, Any]
    """The fields as they are to stand in the answer."""
    scores: dict[str, float] = field(default_factory=dict)
    corrected: tuple[str, ...] = ()
    """What the model had written otherwise, a line each."""


def pws(data: Mapping[str, Any]) -> FormulaResult:
    """PWS validation: four pillars of 0 to 25 with evidence; total and verdict.

    Takes `pillars: {problem: {score, evidence: [...]}, …}`; a bare number is a score without evidence.

    Raises:
        ComputingError: a pillar is missing or out of range.
    """
    given = data.get("pillars", data)
    if not isinstance(given, Mapping):
        raise FormulaError("pillars: an object with the scores of problem, solution, business_case, people")
    pillars: dict[str, dict[str, Any]] = {}
    corrected: list[str] = []
    for name in PILLARS:
        if name not in given:
            raise FormulaError(f"pillars.{name}: is missing")
        entry = given[name] if isinstance(given[name], Mapping) else {"score": given[name]}
        score = _number(entry.get("score"), f"pillars.{name}.score", 0, PILLAR_MOST)
        evidence = [str(evidence) for evidence in entry.get("evidence", ()) if str(evidence).strip()]
        if isinstance(given[name], Mapping) and not evidence and score > NO_EVIDENCE_MOST:
            corrected.append(f"{name}: {score:g} without evidence becomes {NO_EVIDENCE_MOST}")
            score = float(NO_EVIDENCE_MOST)
        pillars[name] = {"score": score, "evidence": evidence or ["no evidence"]}
    total = sum(pillar["score"] for pillar in pillars.values())
    verdict = "GO" if total >= GO else "PIVOT" if total >= PIVOT else "NO-GO"
    corrected += _changed(data, {"total": total, "verdict": verdict})
    scores = {name: pillar["score"] for name, pillar in pillars.items()} | {"total": total}
    answer = {**data, "pillars": pillars, "total": total, "verdict": verdict}
    return FormulaResult({k: v for k, v in answer.items() if k not in PILLARS}, scores, tuple(corrected))


def opportunity(importance: float, satisfaction: float) -> float:
    """The opportunity of a job: importance + max(importance - satisfaction, 0)."""
    return importance + max(importance - satisfaction, 0.0)


def jtbd(data: Mapping[str, Any]) -> FormulaResult:
    """Jobs to be done: the opportunity of each job, highest first.

    Takes `jobs: [{kind, statement, importance, satisfaction}, …]`, both from 0 to 10.

    Raises:
        ComputingError: a number is missing or out of range.
    """
    jobs, corrected = [], []
    for index, given in enumerate(_list(data, "jobs")):
        place = f"jobs[{index}]"
        if not isinstance(given, Mapping):
            raise FormulaError(f"{place}: an object with importance and satisfaction")
        importance = _number(given.get("importance"), f"{place}.importance", 0, 10)
        satisfaction = _number(given.get("satisfaction"), f"{place}.satisfaction", 0, 10)
        value = opportunity(importance, satisfaction)
        corrected += [f"{place}.{line}" for line in _changed(given, {"opportunity": value})]
        jobs.append({**given, "opportunity": value})
    ranked = sorted(jobs, key=lambda job: -job["opportunity"])
    if ranked != jobs and any("opportunity" in given for given in data["jobs"]):
        corrected.append("the jobs are put in order of their opportunity")
    scores = {"highest_opportunity": ranked[0]["opportunity"]} if ranked else {}
    return FormulaResult({**data, "jobs": ranked}, scores, tuple(corrected))


def scenarios(data: Mapping[str, Any]) -> FormulaResult:
    """How robust options are: the tier of each by how many of the four scenarios it survives.

    Takes `options: [{name, survives: [scenario, …]}, …]` and `scenarios: [{name, …}, …]`.

    Raises:
        ComputingError: there are not four scenarios of different names, or an option names another one.
    """
    given_names = _list(data, "scenarios")
    names = [str(name.get("name", "") if isinstance(name, Mapping) else name) for name in given_names]
    if len(names) != SCENARIOS or len(set(names)) != SCENARIOS or not all(name.strip() for name in names):
        raise FormulaError(f"scenarios: four of different names are needed; {len(set(names))} were given")
    options, corrected = [], []
    for index, given in enumerate(_list(data, "options")):
        if not isinstance(given, Mapping):
            raise FormulaError(f"options[{index}]: an object with name and survives")
        survives = list(dict.fromkeys(str(name) for name in given.get("survives", ())))
        if unknown := [name for name in survives if name not in names]:
            raise FormulaError(f"options[{index}].survives: {unknown[0]!r} is none of the scenarios")
        tier = SCENARIOS + 1 - len(survives) if survives else None
        corrected += [f"options[{index}].{line}" for line in _changed(given, {"tier": tier})]
        options.append({**given, "survives": survives, "tier": tier})
    return FormulaResult({**data, "options": options}, {}, tuple(corrected))


FORMULAS: dict[str, Callable[[Mapping[str, Any]], FormulaResult]] = {
    "pws": pws,
    "jtbd": jtbd,
    "scenarios": scenarios,
}
"""What `AgentSpec.compute` may name."""


def compute(name: str, data: Mapping[str, Any]) -> FormulaResult:
    """Compute by name.

    Raises:
        ComputingError: there is no such computation, or the data will not do.
    """
    formula = FORMULAS.get(name)
    if formula is None:
        raise FormulaError(f"there is no computation {name!r}; there are {', '.join(FORMULAS)}")
    return formula(data)


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    given = data.get(name)
    if not isinstance(given, list | tuple):
        raise FormulaError(f"{name}: a list is needed")
    return list(given)


def _number(given: object, place: str, low: float, high: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise FormulaError(f"{place}: a number from {low:g} to {high:g} is needed")
    if not low <= given <= high:
        raise FormulaError(f"{place}: {given:g} is not from {low:g} to {high:g}")
    return float(given)


def _changed(given: Mapping[str, Any], computed: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {given[name]!r} becomes {value!r}"
        for name, value in computed.items()
        if name in given and given[name] != value
    ]


class CriterionResult(OntologyValue):
    """What a criterion says of an output."""

    check: Check
    passed: bool | None
    """None where nothing could be said: a rubric without a model."""
    hard: bool = True
    field: str = ""
    """What was looked at; empty is the output."""
    wanted: str = ""
    measured: str = ""
    """What was found, as `17 < 20`."""
    message: str = ""

    @property
    def line(self) -> str:
        """Its mark, what was looked at, what was found and what was wanted."""
        where = f"{self.field or 'output'} {self.check}"
        if self.passed:
            return clean_line(f"✓ {where}: {self.measured or self.wanted}".rstrip(": "))
        found = self.measured or ("not judged" if self.passed is None else "nothing")
        told = f"{found}, wanted {self.wanted}" if self.wanted else found
        if self.message not in ("", self.wanted) and not (self.measured and self.measured in self.message):
            told += f" · {self.message}"
        return clean_line(f"{'✗' if self.hard and self.passed is False else '·'} {where}: {told}")


class Usage(OntologyValue):
    """What a handoff took of models."""

    calls: int = Field(default=0, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    usd: float = Field(default=0.0, ge=0.0)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
        )


_ANALYSED = ("output", "key_findings", "recommendations", "confidence", "handoff_id", "partial")
"""What later agents are shown of a result."""


class HandoffResult(OntologyValue):
    """The result of a handoff. Nothing in it is invented: a missing confidence is 0.0 with source none."""

    handoff_id: str
    from_agent: AgentId
    """Who answers."""
    to_agent: str
    """Whom the answer is for."""
    success: bool
    output: Words = ""
    output_format: OutputFormat = OutputFormat.MARKDOWN
    key_findings: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    confidence: Share = 0.0
    scores: dict[str, float] = Field(default_factory=dict)
    suggested_next_agents: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    needs_human_input: bool = False
    human_input_reason: str = ""
    duration_seconds: float = Field(default=0.0, ge=0.0)
    error: str | None = None
    error_code: ErrorCode | None = None
    state: HandoffState = HandoffState.COMPLETED
    partial: bool = False
    confidence_source: ConfidenceSource = ConfidenceSource.NONE
    quality: tuple[CriterionResult, ...] = ()
    missing: tuple[str, ...] = ()
    """Sub-agents that gave nothing."""
    usage: Usage = Usage()
    attempt: int = Field(default=1, ge=1)
    warnings: tuple[str, ...] = ()
    data: dict[str, Any] = Field(default_factory=dict)
    """Structured answers by field."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.success != (self.error is None):
            raise ValueError("success: a result is a success exactly when it has no error")
        if self.success and not (self.output.strip() or self.data or self.scores or self.key_findings):
            raise ValueError("output: a success has an output, findings, scores or data")
        if self.needs_human_input != bool(self.human_input_reason.strip()):
            raise ValueError("human_input_reason: given exactly when needs_human_input is true")
        if not self.state.terminal:
            raise ValueError(f"state: {self.state} is no end of a handoff")
        if self.success != (self.state is HandoffState.COMPLETED):
            raise ValueError(f"state: {self.state} does not go with success={self.success}")
        if self.output_format is OutputFormat.JSON and self.success:
            try:
                json.loads(self.output)
            except ValueError as error:
                raise ValueError(f"output: is to be JSON and is not: {error}") from error
        if self.from_agent in self.suggested_next_agents:
            raise ValueError("suggested_next_agents: an agent does not suggest itself")
        return self

    @property
    def failures(self) -> tuple[str, ...]:
        """The hard checks that it did not pass, a line each."""
        return tuple(gate.line for gate in self.quality if gate.hard and gate.passed is False)

    @property
    def end(self) -> Reason:
        """How the work ended: what the goal of its run, the timeline and the command line say."""
        if self.success:
            return Reason("end.achieved")
        return Reason(f"end.{self._kind_of_end()}", why=self.error or "")

    def _kind_of_end(self) -> str:
        if self.error_code in (ErrorCode.QUALITY_GATE, ErrorCode.CHECKPOINT) and self.failures:
            return "gate"
        if self.error_code is ErrorCode.DEBATE_VOID:
            return "void"
        if self.state is HandoffState.REJECTED:
            return "refused"
        cut = self.state in (HandoffState.CANCELLED, HandoffState.TIMED_OUT)
        return "cut" if cut or self.error_code is ErrorCode.CANCELLED else "failed"

    def to_analysis(self, name: str = "", at: Moment | None = None) -> PreviousAnalysis:
        """What later agents are shown of it.

        Raises:
            ValueError: it failed; failures are no analyses.
        """
        if not self.success:
            raise ValueError(f"{self.handoff_id} failed: {self.error}; it is no analysis")
        return PreviousAnalysis(
            framework_id=self.from_agent,
            framework_name=name or self.from_agent,
            timestamp=at,
            **{name: getattr(self, name) for name in _ANALYSED},
        )


def result_of(context: HandoffContext, **fields: Any) -> HandoffResult:
    """The result of a handoff: from whom it was handed to, for whom it returns to."""
    ends = {"handoff_id": context.handoff_id, "from_agent": context.to_agent, "to_agent": context.return_to}
    return HandoffResult(**{**ends, "attempt": context.attempt, **fields})


def failure_of(
    context: HandoffContext,
    code: ErrorCode,
    error: str,
    state: HandoffState = HandoffState.FAILED,
    **more: Any,
) -> HandoffResult:
    """The result of a handoff that came to nothing.

    Args:
        context: of the handoff.
        code: why.
        error: why, in words.
        state: how it ended.
        more: other fields of the result.
    """
    why = {"success": False, "error": error or str(code), "error_code": code, "state": state}
    return result_of(context, **why, **more)
