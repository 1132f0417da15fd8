"""Reads a specification: adds the defaults of its type and reports every problem with its place in the YAML.

The defaults (`DEFAULTS`) are filled in before anything is checked, so that a specification says all that
counts. What a field must be by itself is defined in `spec.py`; what must fit together is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from engine.crew.ontology.kinds import (
    AGENT_ID,
    AgentType,
    Check,
    InputKind,
    InvalidError,
    SpecProblem,
    ThinkingMode,
    problems_in,
)
from engine.crew.ontology.spec import ANYBODY, AgentSpec, ModelChoice

_THOROUGH = {
    "receives": {"requires_who": True, "requires_success": True, "min_clarity": 0.5},
    "model": {"tier": "deep", "thinking": "adaptive"},
}
DEFAULTS: dict[AgentType, dict[str, Any]] = {
    AgentType.ROLE: {
        "receives": {"requires_what": False, "min_clarity": 0.3},
        "routing": {"return_behavior": "passthrough"},
        "supports": {"transfer": True},
    },
    AgentType.OPERATOR: {"receives": {"min_clarity": 0.5}},
    AgentType.COLLABORATIVE: _THOROUGH,
    AgentType.PIPELINE: {**_THOROUGH, "routing": {"return_behavior": "iterate"}},
    AgentType.GUIDED: {
        "receives": {"requires_what": False, "min_clarity": 0.0},
        "routing": {"return_behavior": "iterate"},
        "supports": {"transfer": True},
    },
}
"""What a spec of each type says where it says nothing."""


def parse_spec(given: Mapping[str, Any]) -> AgentSpec:
    """The spec of what a file, a builder or a person gave, with the defaults of its type.

    Raises:
        InvalidError: it is none; every problem is reported, each with its place in the YAML.
    """
    fields = _with_defaults(given)
    try:
        spec = AgentSpec.model_validate(fields)
    except ValidationError as error:
        raise InvalidError("agent spec", (*problems_in(error), *_behind(fields, error))) from error
    if problems := tuple(problems_of(spec)):
        raise InvalidError("agent spec", problems)
    return spec


def _behind(fields: Mapping[str, Any], error: ValidationError) -> Iterator[SpecProblem]:
    """What does not fit together in the parts of a spec that can be read."""
    unread = {details["loc"][0] for details in error.errors() if details["loc"]}
    stands_in = {"id": "x", "name": "x", "description": "x"}
    if "type" in unread:
        unread |= {"handoff", "phases", "steps", "sub_agents"}
        stands_in["type"] = AgentType.OPERATOR
    try:
        spec = AgentSpec.model_validate(
            stands_in | {key: value for key, value in fields.items() if key not in unread}
        )
    except ValidationError:
        return
    yield from (problem for problem in problems_of(spec) if problem.path.split(".")[0] not in unread)


def _with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, above the defaults of its type."""
    fields = dict(given)
    try:
        usual = DEFAULTS[AgentType(fields.get("type", ""))]
    except ValueError:
        return fields
    handoff = fields.get("handoff", {})
    if isinstance(handoff, dict):
        parts = ("receives", "routing", "supports")
        fields["handoff"] = handoff | {part: _above(handoff, part, usual) for part in parts}
    return fields | {"model": _above(fields, "model", usual)}


def _above(given: Mapping[str, Any], part: str, usual: Mapping[str, Any]) -> Any:
    """A part as it was given, above what is usual for it."""
    said, below = given.get(part, {}), usual.get(part, {})
    return {**below, **said} if isinstance(said, Mapping) else said


def problems_of(spec: AgentSpec) -> Iterator[SpecProblem]:
    """What does not fit together across the fields of a spec."""
    yield from _model_problems(spec.model)
    yield from _type_problems(spec)
    yield from _order_problems(spec)
    routing, callers = spec.handoff.routing, spec.handoff.routing.can_be_called_by
    routes = {
        "handoff.routing.can_delegate_to": routing.can_delegate_to,
        "chaining.precedes": [agent.id for agent in spec.chaining.precedes],
        "chaining.follows": [agent.id for agent in spec.chaining.follows],
        "handoff.routing.can_be_called_by": callers if callers != ANYBODY else (),
    }
    for path, agents in routes.items():
        for agent in agents:
            if not AGENT_ID.match(agent):
                yield SpecProblem(path, f"{agent!r} is no agent id")
            elif agent == spec.id:
                yield SpecProblem(path, f"SELF_ROUTE: {agent} names itself")


def _model_problems(model: ModelChoice) -> Iterator[SpecProblem]:
    budget = model.thinking_budget
    if model.thinking is ThinkingMode.BUDGET:
        if budget is None or not 1024 <= budget < model.max_tokens:
            given = "none" if budget is None else f"{budget:,}"
            bounds = f"at least 1,024 and below max_tokens ({model.max_tokens:,})"
            yield SpecProblem("model.thinking_budget", f"is {given}; it must be {bounds}")
    elif budget is not None:
        yield SpecProblem("model.thinking_budget", f"is given and thinking is {model.thinking}; leave it out")
    if model.thinking is not ThinkingMode.OFF and model.temperature is not None:
        yield SpecProblem("model.temperature", "cannot be set while the model thinks; leave it out")


def _type_problems(spec: AgentSpec) -> Iterator[SpecProblem]:
    kind = spec.type
    if kind is AgentType.ROLE:
        for path, parts in (("phases", spec.phases), ("sub_agents", spec.sub_agents)):
            if parts:
                yield SpecProblem(path, "a role has none")
    if spec.done_by and kind is not AgentType.OPERATOR:
        yield SpecProblem("done_by", f"only an operator agent has one, and this is {kind}")
    if spec.done_by and spec.instructions.quality_criteria:
        message = "an agent with done_by has none: its result is taken as it is"
        yield SpecProblem("instructions.quality_criteria", message)
    if kind is AgentType.COLLABORATIVE and len(spec.sub_agents) < 2 and spec.debate is None:
        yield SpecProblem("sub_agents", "a collaborative agent has at least two, or a debate")
    if kind is AgentType.PIPELINE and not spec.phases:
        yield SpecProblem("phases", "a pipeline has at least one")
    if kind is AgentType.GUIDED and not spec.steps:
        yield SpecProblem("steps", "a guided agent has at least one")
    if spec.handoff.supports.transfer and kind not in (AgentType.ROLE, AgentType.GUIDED):
        message = f"TRANSFER_NOT_ALLOWED: only role and guided agents take the floor, and this is {kind}"
        yield SpecProblem("handoff.supports.transfer", message)
    if spec.quorum is not None and spec.sub_agents and spec.quorum > len(spec.sub_agents):
        yield SpecProblem("quorum", f"is {spec.quorum} of {len(spec.sub_agents)} sub-agents")
    for path in ("sub_agents", "phases", "steps"):
        ids = [part.id for part in getattr(spec, path)]
        for index, part_id in enumerate(ids):
            if part_id in ids[:index]:
                yield SpecProblem(f"{path}[{index}].id", f"{part_id!r} is taken by one before it")


FROM_CONTEXT = frozenset(
    (
        *("task", "task_description", "expected_output", "what", "who", "success", "clarity", "conversation"),
        *("previous_analyses", "focus_areas", "ignore_areas", "session_id", "metadata"),
    )
)
"""Inputs of a phase that the context gives."""


def _order_problems(spec: AgentSpec) -> Iterator[SpecProblem]:
    known = set(FROM_CONTEXT)
    for index, phase in enumerate(spec.phases):
        for at, name in enumerate(phase.inputs):
            if name not in known:
                message = f"{name!r} is no output of an earlier phase and not in the context"
                yield SpecProblem(f"phases[{index}].inputs[{at}]", message)
        known |= set(phase.outputs)
    before: set[str] = set()
    for index, step in enumerate(spec.steps):
        where = f"steps[{index}]"
        for at, name in enumerate(step.depends_on):
            if name not in before:
                yield SpecProblem(f"{where}.depends_on[{at}]", f"{name!r} is no step before this one")
        before.add(step.id)
        if step.input in (InputKind.CHOICE, InputKind.MULTI) and not step.options:
            yield SpecProblem(f"{where}.options", f"a step of kind {step.input} has options")
        for at, validator in enumerate(step.validators):
            if validator.check is Check.LLM_RUBRIC:
                message = "an answer is checked while it is typed, and llm_rubric needs a model"
                yield SpecProblem(f"{where}.validators[{at}].check", message)
            try:
                re.compile(str(validator.args.get("pattern", "")) if validator.check is Check.REGEX else "")
            except re.error:
                yield SpecProblem(f"{where}.validators[{at}].pattern", "is no regular expression")
